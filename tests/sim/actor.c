/* SPDX-License-Identifier: MIT */
/* Actors use locks as an application does: acquire, work in steps while the hold is valid, extend
 * now and then, sometimes acquire the same lock once more, write the registers, release in any
 * order; sometimes they sit on a hold for long, whether it is still theirs or not; and sometimes
 * they send it to another client (tokens.c), which goes on with it.
 *
 * An actor is a thread, with a number that no other thread of its client has or had. Sometimes it
 * ends while it holds something: then its handles are kept by somebody who gives them back later,
 * and a new thread goes on in its place, to which those holds mean nothing. */
#include <stdio.h>
#include <string.h>

#include "core/state.h"
#include "mutants.h"
#include "sim.h"

static void schedule(world *w, int index, int number, int64_t delay_ns)
{
    sim_client *c = &w->clients[index];
    sim_event event = {.kind = EVENT_ACTOR, .index = index, .actor = number};
    event.generation = ++c->actors[number].generation + (c->generation << 32);
    world_schedule(w, event, delay_ns);
}

void actor_begin(world *w, int index, int number)
{
    sim_client *c = &w->clients[index];
    sim_actor *a = &c->actors[number];
    bool reused = active_mutant != NULL && active_mutant->reuses_threads;
    a->party = ++w->parties;
    a->thread = reused ? (uint64_t)number + 1 : ++c->threads;
    a->state = ACTOR_THINKS;
    schedule(w, index, number, MS(draw_between(w, 0, 50)));
}

/* ---- Calls ---- */

static void count_under_way(world *w, const sim_client *c)
{
    int64_t count = 0;
    for (int n = 0; n < w->plan.actors; n++)
        count += c->actors[n].state != ACTOR_THINKS && c->actors[n].state != ACTOR_WORKS &&
                 c->actors[n].state != ACTOR_DONE;
    if (count > w->stats.under_way_max)
        w->stats.under_way_max = count;
}

static void begin_call(world *w, int index, int number, hf__call call, int64_t bound_ns)
{
    sim_client *c = &w->clients[index];
    sim_actor *a = &c->actors[number];
    a->call = call;
    a->bound_ns = bound_ns;
    a->call_began_ns = w->run.now_ns;
    a->paused_before_ns = c->paused_total_ns;
    count_under_way(w, c);
    client_step(w, index, &(hf__event){.kind = HF__EVENT_START, .call = &a->call});
}

static bool must_reenter(const world *w, const sim_client *c, const sim_handle *held,
                         const sim_wish *wish)
{
    return !w->plan.beyond && wish->reenters && held->real->reenters &&
           held->wish.party == wish->party && held->wish.owner == NO_OWNER &&
           hf__hold_remaining(held->hold, client_now(w, c)).ns > 0;
}

/* An asynchronous acquire belongs to no thread: nobody re-enters it, or has a turn because of it.
 */
static void be_somebody_else(world *w, sim_client *c, sim_actor *a)
{
    a->party = ++w->parties;
    a->thread = ++c->threads;
}

/* `held`: the lock that the actor has already, by which thread or owner; NULL: none. */
static void acquire(world *w, int index, int number, const sim_handle *held)
{
    sim_client *c = &w->clients[index];
    sim_actor *a = &c->actors[number];
    if (w->plan.swarm)
        be_somebody_else(w, c, a);
    sim_wish wish = wish_draw(w, a);
    if (held != NULL) {
        wish.lock = held->wish.lock;
        wish.owner = held->wish.owner;
        wish.party = held->wish.owner != NO_OWNER ? held->wish.party : a->party;
    }
    hf__call call = {.kind = HF__CALL_ACQUIRE};
    wish_draw_limits(w, a, held != NULL, &call);
    call.hold = wish_new_hold(w, index, a, &wish);
    a->subject = (sim_handle){.wish = wish, .actor = number, .longest_ms = wish.lease_ms};
    handles_put_value(&a->subject, call.hold);
    check_remember_value(w, a->subject.value);
    a->state = ACTOR_ACQUIRES;
    world_log(w, "client %d.%d: acquire %s%s%s lease %lld/%lld/%lld max %lld wait %lld%s%s as %s",
              index, number, lock_names[wish.lock], wish.owner != NO_OWNER ? " for " : "",
              wish.owner != NO_OWNER ? owner_names[wish.owner] : "", (long long)wish.lease_ms,
              (long long)wish.interval_ms, (long long)wish.timeout_ms, (long long)wish.max_hold_ms,
              (long long)call.wait_ms, call.polls ? " polls" : "", call.fair ? " fair" : "",
              strchr(a->subject.value, ':'));
    bool at_once = held != NULL && must_reenter(w, c, held, &wish);
    fences_call_begins(w, a);
    begin_call(w, index, number, call, acquire_bound_ns(&call, w->plan.call_timeout_ms));
    if (at_once && a->state == ACTOR_ACQUIRES)
        world_fail(w, "client %d.%d: waits for %s, which it holds", index, number,
                   lock_names[wish.lock]);
}

void actor_goes_on(world *w, int index, int number)
{
    sim_actor *a = &w->clients[index].actors[number];
    int left = 0;
    (void)handles_any(w, &w->clients[index], number, &left);
    a->state = left > 0 ? ACTOR_WORKS : ACTOR_THINKS;
    schedule(w, index, number, MS(draw_between(w, 0, 60)));
}

static void release(world *w, int index, int number, int slot)
{
    sim_client *c = &w->clients[index];
    sim_actor *a = &c->actors[number];
    a->was_last = handles_is_last(c, &c->handles[slot]);
    hf_hold *hold = handles_take_away(w, index, slot);
    a->subject = c->handles[slot];
    a->state = ACTOR_RELEASES;
    if (draw(w, 3) > 0) {
        begin_call(w, index, number, (hf__call){.kind = HF__CALL_RELEASE, .hold = hold},
                   MS(w->plan.call_timeout_ms));
        return;
    }
    hf__event event = {.kind = HF__EVENT_LET_GO, .hold = hold};
    client_step(w, index, &event);
    world_log(w, "client %d.%d: let go %s: %s", index, number, strchr(a->subject.value, ':'),
              hf_status_name(event.status));
    actor_goes_on(w, index, number);
}

static void extend(world *w, int index, int number, int slot)
{
    sim_client *c = &w->clients[index];
    sim_actor *a = &c->actors[number];
    sim_handle *h = &c->handles[slot];
    int64_t lease_ms = draw_between(w, w->plan.lease_min_ms, w->plan.lease_max_ms);
    for (int i = 0; i < HANDLES_MAX; i++) {
        sim_handle *same = &c->handles[i];
        if (same->hold == NULL || same->real != h->real)
            continue;
        same->extended = true;
        same->stretched |= lease_ms > same->wish.lease_ms;
        same->longest_ms = lease_ms > same->longest_ms ? lease_ms : same->longest_ms;
    }
    a->slot = slot;
    a->subject = *h;
    a->state = ACTOR_EXTENDS;
    hf__call call = {.kind = HF__CALL_EXTEND, .hold = h->hold, .lease = hf__span_ms(lease_ms)};
    begin_call(w, index, number, call, 0); /* its bound moves */
}

/* ---- Tokens ---- */

static int idle_actor(const world *w, const sim_client *c)
{
    int first = 0;
    for (int n = 0; handles_free(w, c, &first) > w->plan.spare && n < w->plan.actors; n++)
        if (c->actors[n].state == ACTOR_THINKS && !c->actors[n].final)
            return n;
    return -1;
}

bool actor_attach(world *w, int index, int number)
{
    sim_client *c = &w->clients[index];
    sim_token *token = &w->tokens[number];
    int chosen = c->alive && !c->paused ? idle_actor(w, c) : -1;
    if (chosen < 0)
        return false;
    sim_actor *a = &c->actors[chosen];
    sim_wish wish = wish_draw_attach(w, a, token);
    a->subject = (sim_handle){.wish = wish, .actor = chosen, .stretched = token->stretched};
    a->subject.longest_ms = wish.lease_ms > token->longest_ms ? wish.lease_ms : token->longest_ms;
    memcpy(a->subject.value, token->value, sizeof(token->value));
    a->slot = number;
    a->state = ACTOR_ATTACHES;
    token->state = TOKEN_ATTACHING;
    token->client = index;
    token->longest_ms = a->subject.longest_ms;
    world_log(w, "client %d.%d: attach %s lease %lld/%lld/%lld max %lld as %s", index, chosen,
              lock_names[wish.lock], (long long)wish.lease_ms, (long long)wish.interval_ms,
              (long long)wish.timeout_ms, (long long)wish.max_hold_ms, token->value);
    hf__call call = {.kind = HF__CALL_ATTACH, .lease = hf__span_ms(wish.lease_ms)};
    call.hold = wish_attach_hold(c, index, &wish, token);
    begin_call(w, index, chosen, call, MS(w->plan.call_timeout_ms));
    return true;
}

/* ---- Threads that end ---- */

static void keep(world *w, int index, int slot, int64_t delay_ns)
{
    sim_client *c = &w->clients[index];
    sim_event later = {.kind = EVENT_KEEPER, .index = index, .actor = slot};
    later.generation = c->generation;
    c->handles[slot].actor = KEEPER;
    world_schedule(w, later, delay_ns);
}

static void end_thread(world *w, int index, int number)
{
    sim_client *c = &w->clients[index];
    world_log(w, "client %d.%d: its thread ends", index, number);
    for (int i = 0; i < HANDLES_MAX; i++) {
        if (c->handles[i].hold == NULL || c->handles[i].actor != number)
            continue;
        keep(w, index, i, MS(draw_between(w, 1, 2500)));
    }
    actor_begin(w, index, number);
}

void actor_give_back_kept(world *w, int index, int slot)
{
    sim_client *c = &w->clients[index];
    if (hf__core_is_telling(c->core, c->handles[slot].hold)) {
        sim_event again = {.kind = EVENT_KEEPER, .index = index, .actor = slot};
        again.generation = c->generation;
        world_schedule(w, again, MS(1));
        return;
    }
    hf__event event = {.kind = HF__EVENT_LET_GO, .hold = handles_take_away(w, index, slot)};
    client_step(w, index, &event);
    world_log(w, "client %d: what was kept is let go %s: %s", index,
              strchr(c->handles[slot].value, ':'), hf_status_name(event.status));
}

/* ---- Work ---- */

static int64_t work_ns(world *w)
{
    return MS(1) / 10 * draw_between(w, 1, 10 * w->plan.work_ms);
}

static bool may_begin_more(const world *w, const sim_actor *a)
{
    return !w->resting && !a->final && !w->finished;
}

/* Where the token goes; NULL: it is not detached. Rare is one that has more to say than others. */
static sim_token *wants_token(world *w, const sim_handle *h)
{
    if (!w->plan.tokens || draw(w, h->real->copy_lost ? 2 : w->plan.crowd ? 20 : 6) > 0)
        return NULL;
    return tokens_find_place(w);
}

static void work(world *w, int index, int number)
{
    sim_client *c = &w->clients[index];
    sim_actor *a = &c->actors[number];
    int count = 0, unused = 0;
    sim_token *place = NULL;
    int slot = handles_any(w, c, number, &count);
    const sim_handle *h = &c->handles[slot];
    hf__span left = hf__hold_remaining(h->hold, client_now(w, c));
    bool more = may_begin_more(w, a);
    if (hf__core_is_telling(c->core, h->hold)) {
        schedule(w, index, number, MS(1)); /* a callback about it runs */
    } else if (more && fault_happens(w, FAULT_THREAD_END)) {
        end_thread(w, index, number);
    } else if (a->steps_left-- <= 0 || (left.ns == 0 && draw(w, 2) == 0)) {
        release(w, index, number, slot);
    } else if (more && draw(w, w->plan.crowd ? 30 : 7) == 0 && count < NESTED_MAX &&
               !w->plan.swarm && handles_free(w, c, &unused) > 4) {
        acquire(w, index, number, h);
    } else if (more && (place = wants_token(w, h)) != NULL) {
        if (handles_is_last(c, h))
            tokens_detach(w, index, number, slot, place);
        else
            tokens_detach_in_vain(w, index, number, slot);
    } else if (draw(w, w->plan.crowd ? 30 : 5) == 0) {
        extend(w, index, number, slot);
    } else if (more && !w->quiet && draw(w, w->plan.crowd ? 200 : 16) == 0) {
        schedule(w, index, number, MS(draw_between(w, 300, 4000))); /* sits on it */
    } else {
        schedule(w, index, number, work_ns(w));
    }
}

/* ---- Asynchronous calls ---- */

/* The callback of an operation waits for those before it; until it runs, the application does not
 * have the handle, and its listener must hear nothing. */
static void tell_later(world *w, int index, int number, sim_handle *h)
{
    bool late = draw(w, 4) == 0;
    h->untold = true;
    schedule(w, index, number, late ? MS(1) / 10 * draw_between(w, 1, 5000) : 0);
}

static void is_told(world *w, int index, int number)
{
    sim_client *c = &w->clients[index];
    for (int i = 0; i < w->plan.handles; i++)
        if (c->handles[i].hold != NULL && c->handles[i].actor == number && c->handles[i].untold) {
            c->handles[i].untold = false;
            hf__hold_listen(c->handles[i].hold);
        }
    client_step(w, index, &(hf__event){.kind = HF__EVENT_TICK});
    if (c->alive)
        schedule(w, index, number, work_ns(w));
}

static bool has_untold(const world *w, const sim_client *c, int number)
{
    for (int i = 0; i < w->plan.handles; i++)
        if (c->handles[i].hold != NULL && c->handles[i].actor == number && c->handles[i].untold)
            return true;
    return false;
}

/* ---- What comes next ---- */

static int64_t lull_left_ns(const world *w)
{
    return w->lull_until_ns > w->run.now_ns ? w->lull_until_ns - w->run.now_ns : 0;
}

void actor_go_on(world *w, int index, int number)
{
    sim_client *c = &w->clients[index];
    sim_actor *a = &c->actors[number];
    int first = 0;
    if (a->state == ACTOR_THINKS && (!w->resting || a->final) && !w->finished) {
        if (lull_left_ns(w) > 0 || handles_free(w, c, &first) <= w->plan.spare)
            schedule(w, index, number, lull_left_ns(w) + MS(draw_between(w, 1, 100)));
        else
            acquire(w, index, number, NULL);
    } else if (a->state == ACTOR_WORKS && has_untold(w, c, number)) {
        is_told(w, index, number);
    } else if (a->state == ACTOR_WORKS) {
        work(w, index, number);
    } else if (a->state == ACTOR_ACQUIRES && !a->call.done) {
        world_log(w, "client %d.%d: cancel", index, number);
        client_step(w, index, &(hf__event){.kind = HF__EVENT_CANCEL, .call = &a->call});
    }
}

static void begin_work(world *w, int index, int number)
{
    sim_actor *a = &w->clients[index].actors[number];
    a->steps_left = (int)draw_between(w, 0, 4);
    a->state = ACTOR_WORKS;
    schedule(w, index, number, work_ns(w));
    if (fault_happens(w, FAULT_PAUSE))
        client_pause(w, index, MS(draw_between(w, 1, 2 * w->plan.lease_max_ms)), false);
}

static void acquired(world *w, int index, int number)
{
    sim_handle *h = handles_take(w, index, number);
    turns_granted(w, index, &w->clients[index].actors[number], h);
    states_granted(w, index, h);
    fences_granted(w, index, &w->clients[index].actors[number], h);
    begin_work(w, index, number);
    if (w->plan.swarm)
        tell_later(w, index, number, h);
}

static void attached(world *w, int index, int number)
{
    sim_token *token = &w->tokens[w->clients[index].actors[number].slot];
    sim_handle *h = handles_take(w, index, number);
    bool late = token->late;
    bool stretched = token->stretched || h->longest_ms > h->wish.lease_ms;
    states_granted(w, index, h);
    h->stretched |= stretched;
    fences_attached(w, index, h, token);
    tokens_attached(w, w->clients[index].actors[number].slot);
    begin_work(w, index, number);
    if ((late || h->wish.lease_ms == HF_LEASE_MIN_MS) && draw(w, 2) == 0) { /* only to release it */
        w->clients[index].actors[number].steps_left = 0;
        schedule(w, index, number, 0);
    }
}

void actor_call_done(world *w, int index, int number)
{
    sim_client *c = &w->clients[index];
    sim_actor *a = &c->actors[number];
    hf_status status = a->call.error.status;
    hf__call_kind kind = a->call.kind;
    static const char *const kinds[] = {"acquire", "release", "extend", "attach", "query", "close"};
    world_log(w, "client %d.%d: %s %s %s: %s", index, number, kinds[kind],
              strchr(a->subject.value, ':'), hf_status_name(status), a->call.error.text);
    check_call(w, index, number);
    if (kind == HF__CALL_ATTACH && status != HF_OK)
        tokens_refused(w, a->slot, status);
    int left = 0;
    (void)handles_any(w, c, number, &left);
    if (kind == HF__CALL_ACQUIRE && status == HF_OK) {
        acquired(w, index, number);
    } else if (kind == HF__CALL_ATTACH && status == HF_OK) {
        attached(w, index, number);
    } else if (left > 0) {
        a->state = ACTOR_WORKS;
        schedule(w, index, number, MS(draw_between(w, 0, 100)));
    } else if (a->final && kind == HF__CALL_RELEASE) {
        a->state = ACTOR_DONE;
    } else {
        a->state = ACTOR_THINKS;
        schedule(w, index, number, MS(draw_between(w, 0, 60)));
    }
}

/* ---- The last round ---- */

void actor_all_go_on(world *w)
{
    for (int i = 0; i < w->plan.clients; i++)
        for (int n = 0; w->clients[i].alive && n < w->plan.actors; n++)
            if (w->clients[i].actors[n].state == ACTOR_THINKS)
                schedule(w, i, n, MS(draw_between(w, 0, 20)));
}

void actor_finish_round(world *w)
{
    for (int i = 0; i < w->plan.clients; i++) {
        for (int n = 0; w->clients[i].alive && n < w->plan.actors; n++) {
            sim_actor *a = &w->clients[i].actors[n];
            a->final = true;
            if (a->state == ACTOR_THINKS)
                schedule(w, i, n, MS(draw_between(w, 0, 20)));
        }
    }
}

bool actor_all_done(const world *w)
{
    for (int i = 0; i < w->plan.clients; i++)
        for (int n = 0; w->clients[i].alive && n < w->plan.actors; n++)
            if (w->clients[i].actors[n].state != ACTOR_DONE)
                return false;
    return true;
}
