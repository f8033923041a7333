/* SPDX-License-Identifier: MIT */
/* Holds between two clients. An actor detaches what it holds, and its token gets to some client
 * after a while, at once or after several leases; that client attaches it, and goes on as any
 * holder does; if nothing is known of how that ended, somebody tries again. Some tokens are lost.
 *
 * While nobody has the hold, nobody may end it: within the assumptions the server has it until the
 * time that it had when it was detached, however many have failed to attach it. Nor does anybody
 * renew it: when all that was on its way is over, the lock is free. And no core believes in it.
 *
 * A hold that has ended is not taken up any more, not even if a copy of the acquire that is later
 * than a lease makes the server grant the lock anew to the same value (seed 701581, before renew
 * looked at the fence). A share of an owner's hold may be: if the owner has kept the lock
 * meanwhile, under the same fence, such a copy joins it again (seed 913).
 *
 * A thread's hold is of another party once it is detached: the thread that had it may not have the
 * lock together with whoever has its token. No token is used twice at a time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/state.h"
#include "sim.h"

enum { TRIES_MAX = 30, SLACK_MS = 2 };

/* ---- What is known of one ---- */

static int64_t server_ms(const world *w)
{
    return server_now_us(w) / 1000;
}

static sim_handle as_handle(const sim_token *token)
{
    sim_handle handle = {.wish = token->wish};
    memcpy(handle.value, token->value, sizeof(token->value));
    return handle;
}

static bool server_has(world *w, const sim_token *token)
{
    sim_handle handle = as_handle(token);
    return check_server_has(w, &handle);
}

/* By the server's clock; 0: it has ended. */
static int64_t expiry_ms(world *w, const sim_token *token)
{
    const sim_lock *l = &w->locks[token->wish.lock];
    const char *words[] = {"PTTL", lock_names[token->wish.lock]};
    double until_ms = 0;
    server_set_clock(w);
    if (!server_has(w, token))
        return 0;
    if (token->wish.owner == NO_OWNER)
        return server_ms(w) + strtoll(sim_server_run(w->server, 2, words), NULL, 10);
    sim_server_score(w->server, l->side[SIDE_H], l->side_length[SIDE_H], token->value, &until_ms);
    return (int64_t)until_ms;
}

/* How late a request may be, and what it can give when it arrives. */
static void note_end(world *w, sim_token *token)
{
    int64_t longest_ms = w->plan.lease_min_ms + token->longest_ms;
    if (w->plan.chance[FAULT_NODE_PAUSE] > 0)
        longest_ms += 2000;
    if (w->plan.very_late)
        longest_ms += 2 * w->plan.lease_max_ms;
    token->gone_ns = w->run.now_ns + MS(longest_ms + longest_ms / 50 + 20);
    token->until_ms = expiry_ms(w, token);
}

static bool is_in_use(const world *w, const sim_token *token)
{
    return token->state == TOKEN_DROPPED ? w->run.now_ns <= token->gone_ns
                                         : token->state != TOKEN_NONE;
}

bool tokens_know(const world *w, const char *value)
{
    for (int i = 0; i < w->token_count; i++)
        if (is_in_use(w, &w->tokens[i]) && w->run.now_ns <= w->tokens[i].gone_ns &&
            strcmp(w->tokens[i].value, value) == 0)
            return true;
    return false;
}

bool tokens_over(const world *w)
{
    for (int i = 0; i < w->token_count; i++)
        if (is_in_use(w, &w->tokens[i]))
            return false;
    return true;
}

/* ---- The way of one ---- */

sim_token *tokens_find_place(world *w)
{
    int at = 0;
    while (at < TOKENS_MAX && is_in_use(w, &w->tokens[at]))
        at++;
    if (at == TOKENS_MAX)
        return NULL;
    w->token_count = at < w->token_count ? w->token_count : at + 1;
    return &w->tokens[at];
}

/* As src/api/token.c does it; the rest is for the checks. */
static sim_token write_down(world *w, const sim_handle *h)
{
    sim_token token = {.wish = h->wish,
                       .fence = hf__hold_fence(h->hold),
                       .fence_top = hf__hold_fence_top(h->hold),
                       .lease_ms = hf__span_to_ms(hf__hold_longest_lease(h->hold)),
                       .longest_ms = h->longest_ms,
                       .stretched = h->stretched,
                       .fence_accepted = h->fence_accepted,
                       .read_value = h->read_value,
                       .fenced_value = h->fenced_value};
    hf__slice value = hf__hold_value_text(h->hold);
    snprintf(token.value, sizeof(token.value), "%.*s", (int)value.length, value.bytes);
    if (token.wish.owner == NO_OWNER)
        token.wish.party = ++w->parties;
    return token;
}

static void drop(world *w, sim_token *token)
{
    world_log(w, "the token of %s is dropped", strchr(token->value, ':'));
    w->stats.dropped++;
    token->state = TOKEN_DROPPED;
}

/* Mostly soon enough to find the lock held; a copy of its acquire may be slower. */
static int64_t delay_ns(world *w, const sim_token *token)
{
    if (draw(w, token->late ? 6 : 3) > 0)
        return MS(1) / 10 * draw_between(w, 0, 100);
    return MS(
        draw_between(w, 0, draw(w, 2) == 0 ? w->plan.lease_min_ms : 3 * w->plan.lease_max_ms));
}

static void send_on(world *w, sim_token *token)
{
    note_end(w, token);
    token->state = TOKEN_UNDER_WAY;
    token->tries = 0;
    if (draw(w, 5) == 0)
        drop(w, token);
    else
        world_schedule(w, (sim_event){.kind = EVENT_TOKEN, .index = (int)(token - w->tokens)},
                       delay_ns(w, token));
}

/* One that was re-entered is not detached, and nothing happens to it. */
void tokens_detach_in_vain(world *w, int index, int number, int slot)
{
    hf_hold *hold = w->clients[index].handles[slot].hold;
    hf__event event = {.kind = HF__EVENT_DETACH, .hold = hold};
    client_step(w, index, &event);
    if (event.status != HF_EINVAL)
        world_fail(w, "client %d.%d: detached what it has re-entered: %s", index, number,
                   hf_status_name(event.status));
    actor_goes_on(w, index, number);
}

/* What it has read goes with the token, or is written first. */
void tokens_detach(world *w, int index, int number, int slot, sim_token *place)
{
    sim_client *c = &w->clients[index];
    sim_handle *h = &c->handles[slot];
    bool valid = hf__hold_remaining(h->hold, client_now(w, c)).ns > 0;
    bool carries = valid && draw(w, 2) == 0;
    sim_token token = write_down(w, h);
    token.writes = carries && h->writes;
    h->writes &= !carries;
    hf__event event = {.kind = HF__EVENT_DETACH, .hold = handles_take_away(w, index, slot)};
    client_step(w, index, &event);
    world_log(w, "client %d.%d: detach %s: %s%s", index, number, strchr(h->value, ':'),
              hf_status_name(event.status), event.late ? ", late" : "");
    if (event.status != (valid ? HF_OK : HF_ELOST))
        world_fail(w, "client %d.%d: detached %s, which is %s: %s", index, number,
                   lock_names[h->wish.lock], valid ? "valid" : "lost",
                   hf_status_name(event.status));
    if (event.status == HF_OK) {
        *place = token;
        place->late = event.late;
        w->stats.detached++;
        send_on(w, place);
    }
    actor_goes_on(w, index, number);
}

void tokens_arrive(world *w, int number)
{
    sim_token *token = &w->tokens[number];
    bool nobody = w->resting || w->finished || ++token->tries > TRIES_MAX;
    if (nobody)
        drop(w, token);
    else if (!actor_attach(w, (int)draw(w, (uint64_t)w->plan.clients), number))
        world_schedule(w, (sim_event){.kind = EVENT_TOKEN, .index = number},
                       MS(draw_between(w, 1, 20)));
}

void tokens_attached(world *w, int number)
{
    sim_token *token = &w->tokens[number];
    w->stats.attached++;
    token->state = TOKEN_NONE;
    bool revived = token->wish.owner != NO_OWNER && net_may_be_late(w);
    if (token->ended && !revived && !w->plan.beyond)
        world_fail(w, "client %d: attached %s as %s, which had ended", token->client,
                   lock_names[token->wish.lock], token->value);
}

void tokens_refused(world *w, int number, hf_status status)
{
    sim_token *token = &w->tokens[number];
    w->stats.unattached++;
    if (status != HF_ELOST) {
        send_on(w, token);
        return;
    }
    note_end(w, token);
    drop(w, token);
}

/* What it had of others is known to nobody then; perhaps it was about to release it. What it only
 * failed to attach is still the token's (seed 726013). */
void tokens_client_dies(world *w, int index)
{
    const sim_client *c = &w->clients[index];
    for (int i = 0; i < w->token_count; i++)
        if (w->tokens[i].state == TOKEN_ATTACHING && w->tokens[i].client == index) {
            note_end(w, &w->tokens[i]);
            drop(w, &w->tokens[i]);
        }
    const hf__list *holds = &c->core->holds;
    for (hf__node *n = hf__list_first(holds); n != NULL; n = hf__list_next(holds, n)) {
        const hf_hold *hold = HF__ENTRY(n, hf_hold, node);
        hf__slice value = hf__hold_value(hold);
        sim_token *place = NULL;
        if (hold->attaching || hold->stage == HF__HOLD_OVER ||
            memcmp(value.bytes, c->config.client_id, 32) == 0 ||
            (place = tokens_find_place(w)) == NULL)
            continue;
        *place = (sim_token){.state = TOKEN_DROPPED, .longest_ms = w->plan.lease_max_ms};
        snprintf(place->value, sizeof(place->value), "%.*s", (int)value.length, value.bytes);
        note_end(w, place);
        place->until_ms = 0;
    }
}

/* ---- Checks ---- */

void tokens_check(world *w)
{
    for (int i = 0; i < w->token_count && !w->plan.beyond; i++) {
        sim_token *token = &w->tokens[i];
        if (!is_in_use(w, token) || server_has(w, token))
            continue;
        token->ended = true;
        if (server_ms(w) + SLACK_MS < token->until_ms)
            world_fail(w, "%s was detached as %s and has time left, but the server has it not",
                       lock_names[token->wish.lock], token->value);
    }
}

/* Only the core that has been asked to attach it may have it, and does not believe in it yet. */
void tokens_check_cores(world *w)
{
    for (int i = 0; i < w->token_count; i++) {
        const sim_token *token = &w->tokens[i];
        for (int n = 0; is_in_use(w, token) && n < w->plan.clients; n++) {
            const sim_client *c = &w->clients[n];
            const hf_hold *hold = c->alive ? check_hold_of(c, token->value) : NULL;
            bool asked = token->state == TOKEN_ATTACHING && token->client == n;
            if (hold != NULL && hold->stage != HF__HOLD_OVER && !(asked && hold->attaching))
                world_fail(w, "client %d has %s, which was detached as %s", n,
                           lock_names[token->wish.lock], token->value);
        }
    }
}
