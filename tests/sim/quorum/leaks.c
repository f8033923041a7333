/* SPDX-License-Identifier: MIT */
/* Nothing is left for nobody: what a server has, held or waiting, belongs to a hold that its client
 * still works on, unless that client was killed. And when all is over and the leases too, there is
 * nothing at any server but what is meant to stay: fences, and who may vote. */
#include <stdio.h>
#include <string.h>

#include "core/quorum.h"
#include "quorum.h"

static client *client_of(world *w, const char *value)
{
    for (int i = 0; i < w->plan.clients; i++) {
        client *c = &w->clients[i];
        if (c->alive && strncmp(value, c->config.client_id, strlen(c->config.client_id)) == 0)
            return c;
    }
    return NULL;
}

static bool knows(const client *c, const char *value)
{
    const hf__list *holds = &c->core->holds;
    for (hf__node *n = hf__list_first(holds); n != NULL; n = hf__list_next(holds, n)) {
        const hf_hold *hold = HF__ENTRY(n, hf_hold, node);
        hf__slice own = hf__hold_value(hold);
        if (own.length == strlen(value) && memcmp(own.bytes, value, own.length) == 0 &&
            hold->stage != HF__HOLD_OVER)
            return true;
    }
    return false;
}

static void check_known(node *n, int lock, const char *value, const char *how)
{
    const client *c = client_of(n->world, value);
    if (c != NULL && !knows(c, value))
        world_fail(n->world, "server %d: %s %s %s, of which nobody knows", n->index, value, how,
                   lock_names[lock]);
}

typedef struct look {
    node *node;
    int lock;
    hf__slice wanted; /* empty: whatever is there must be known */
    bool found;
} look;

static void see(look *l, const char *value, const char *how)
{
    if (l->wanted.length == 0)
        check_known(l->node, l->lock, value, how);
    else if (l->wanted.length == strlen(value) &&
             memcmp(l->wanted.bytes, value, l->wanted.length) == 0)
        l->found = true;
}

static void see_holder(void *arg, const char *value, double until_ms)
{
    look *l = arg;
    if (until_ms > (double)(node_now_us(l->node) / 1000))
        see(l, value, "holds");
}

static void see_waiter(void *arg, const char *value, double score)
{
    look *l = arg;
    const sim_lock *k = &l->node->world->locks[l->lock];
    const char *record =
        sim_server_field(l->node->server, k->side[SIDE_W], k->side_length[SIDE_W], value);
    long long alive_until_ms = 0;
    if (score < 0 || record == NULL || sscanf(record, "%*s %lld", &alive_until_ms) != 1)
        return; /* a tombstone; or the next one who looks will drop it */
    if (alive_until_ms >= node_now_us(l->node) / 1000)
        see(l, value, "waits for");
}

static void look_at(look *l)
{
    node *n = l->node;
    const sim_lock *k = &n->world->locks[l->lock];
    node_set_clock(n);
    const char *held = node_held_as(n, l->lock);
    bool shared = held != NULL && strcmp(held, owner_names[0]) == 0;
    if (held != NULL && !shared)
        see(l, held, "holds");
    if (shared)
        sim_server_members(n->server, k->side[SIDE_H], k->side_length[SIDE_H], see_holder, l);
    sim_server_members(n->server, k->side[SIDE_Q], k->side_length[SIDE_Q], see_waiter, l);
}

static void check_node(node *n, int lock_index)
{
    look_at(&(look){.node = n, .lock = lock_index});
}

/* ---- Given up ---- */

static bool is_there(node *n, const hf_hold *vote)
{
    look l = {.node = n, .wanted = hf__hold_value(vote)};
    for (; l.lock < n->world->plan.locks && !l.found; l.lock++)
        look_at(&l);
    return l.found;
}

/* Releases are repeated for a lease, and who gives one up says so; but not of a vote that its hold
 * has done without. If the acquire of such a one was late and not answered, and its
 * release lost with the connection, the server has it for longer than that (seed 13338). */
void leaks_step(world *w, int index)
{
    const client *c = &w->clients[index];
    const hf__list *holds = &c->core->holds;
    for (hf__node *n = hf__list_first(holds); n != NULL; n = hf__list_next(holds, n)) {
        const hf_hold *vote = HF__ENTRY(n, hf_hold, node);
        bool unheard = vote->fence == 0 && vote->place.number == 0;
        bool given_up =
            vote->stage == HF__HOLD_RELEASING && !hf__before(client_now(w, c), vote->give_up);
        if (given_up && unheard && hf__vote_of_nobody(vote) &&
            is_there(&w->nodes[hf__vote_server(vote)], vote))
            w->gave_up_ns = w->run.now_ns;
    }
}

/* A release that is denied leaves the lock until its lease ends. */
static bool was_denied(const world *w, int node_index, int lock, int64_t since_ns)
{
    for (int i = 0; i < w->plan.clients; i++)
        if (permits_denied_since(&w->clients[i].permits[node_index], lock, since_ns))
            return true;
    return false;
}

/* Releases reach no server that hides its run_id: its connections are refused. */
static bool can_be_released(node *n, int64_t while_ns)
{
    bool hides = sim_server_hides(n->server, GAP_RUN_ID);
    return !hides && (n->unnamed_ns == 0 || n->world->run.now_ns > n->unnamed_ns + while_ns);
}

/* A server that stood still for longer than a lease may hear of a hold when its client has long
 * given up releasing it; and one that has come back with an old copy has what is long over. */
void leaks_check(world *w)
{
    int64_t while_ns = MS(3 * w->plan.lease_max_ms);
    if (w->plan.very_late || w->plan.kind == KIND_JUMPY || w->plan.chance[FAULT_RESTART_OLD] > 0 ||
        w->plan.chance[FAULT_CLOCK_BACK] > 0)
        return;
    if ((w->disturbed_ns > 0 && w->run.now_ns < w->disturbed_ns + while_ns) ||
        (w->gave_up_ns > 0 && w->run.now_ns < w->gave_up_ns + while_ns))
        return;
    for (int i = 0; i < w->plan.nodes; i++)
        for (int lock = 0; lock < w->plan.locks && can_be_released(&w->nodes[i], while_ns); lock++)
            if (!was_denied(w, i, lock, w->run.now_ns - while_ns))
                check_node(&w->nodes[i], lock);
}

/* ---- The end ---- */

static void see_key(void *arg, const char *key, size_t length, const char *type,
                    int64_t remaining_ms)
{
    node *n = arg;
    world *w = n->world;
    (void)type;
    bool kept = strncmp(key, "hf:f:", 5) == 0 || strncmp(key, "hf:n:", 5) == 0 ||
                strncmp(key, "hf:run", length) == 0 || strncmp(key, "hf:floor", length) == 0;
    if (!kept)
        world_fail(w, "server %d: %.*s is left, with %lld ms", n->index, (int)length, key,
                   (long long)remaining_ms);
    if (strncmp(key, "hf:f:", 5) == 0 && remaining_ms < 0)
        world_fail(w, "server %d: %.*s is left for ever", n->index, (int)length, key);
}

void leaks_check_end(world *w)
{
    for (int i = 0; i < w->plan.nodes && w->plan.kind != KIND_JUMPY; i++) {
        node *n = &w->nodes[i];
        node_set_clock(n);
        if (n->put_back_us < BACK_MAX_MS * 1000) /* else what it has may last for an hour */
            sim_server_keys(n->server, see_key, n);
    }
    for (int i = 0; i < w->plan.clients; i++)
        if (w->clients[i].alive && w->clients[i].close_call.error.status != HF_OK)
            world_fail(w, "client %d: closing: %s", i, w->clients[i].close_call.error.text);
}
