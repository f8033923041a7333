/* SPDX-License-Identifier: MIT */
/* Nothing is left for nobody: a lock that the server has belongs to a hold that its client knows
 * and can still release; an owner's lock has a live holder; and who is in a queue waits. A client
 * that was killed may leave both behind, until they expire. */
#include <stdlib.h>
#include <string.h>

#include "core/state.h"
#include "sim.h"

hf_hold *check_hold_of(const sim_client *c, const char *value)
{
    const hf__list *holds = &c->core->holds;
    hf_hold *over = NULL;
    for (hf__node *n = hf__list_first(holds); n != NULL; n = hf__list_next(holds, n)) {
        hf_hold *hold = HF__ENTRY(n, hf_hold, node);
        hf__slice own = hf__hold_value(hold);
        if (own.length != strlen(value) || memcmp(own.bytes, value, own.length) != 0)
            continue;
        if (hold->stage != HF__HOLD_OVER)
            return hold;
        over = hold; /* it was detached, and perhaps taken up again */
    }
    return over;
}

/* ---- Locks that are held for nobody ---- */

static bool is_in_hands(const sim_client *c, const hf_hold *hold)
{
    for (int i = 0; i < HANDLES_MAX; i++)
        if (c->handles[i].hold != NULL && c->handles[i].real == hold)
            return true;
    return false;
}

/* By the client that acquired it, unless that was killed; or by one that has taken up its token. */
static void check_value_is_known(world *w, int lock, const char *value)
{
    bool known = queues_client_of(w, value) < 0 || tokens_know(w, value);
    for (int i = 0; i < w->plan.clients; i++) {
        const sim_client *c = &w->clients[i];
        const hf_hold *hold = c->alive ? check_hold_of(c, value) : NULL;
        known |= hold != NULL;
        if (hold != NULL && hold->stage == HF__HOLD_HELD && !hold->attaching &&
            !is_in_hands(c, hold))
            world_fail(w, "%s is held as %s, which nobody can release", lock_names[lock], value);
    }
    if (!known)
        world_fail(w, "%s is held as %s for nobody", lock_names[lock], value);
}

typedef struct holders {
    world *w;
    int lock;
    int live;
    bool excused; /* nobody need know them */
} holders;

/* The lock's own key lasts a millisecond longer than its last holder. */
static void see_holder(void *arg, const char *value, double until_ms)
{
    holders *all = arg;
    if (until_ms + 2 < (double)(server_now_us(all->w) / 1000))
        return;
    all->live++;
    if (until_ms > (double)(server_now_us(all->w) / 1000) && !all->excused)
        check_value_is_known(all->w, all->lock, value);
}

static long remaining_ms(world *w, int lock)
{
    const char *words[] = {"PTTL", lock_names[lock]};
    return strtol(sim_server_run(w->server, 2, words), NULL, 10);
}

static bool is_owner(const char *value)
{
    for (int i = 0; i < OWNERS; i++)
        if (strcmp(value, owner_names[i]) == 0)
            return true;
    return false;
}

static void check_shared_leak(world *w, int lock, const char *held, bool excused)
{
    const sim_lock *l = &w->locks[lock];
    holders all = {w, lock, 0, excused};
    sim_server_members(w->server, l->side[SIDE_H], l->side_length[SIDE_H], see_holder, &all);
    if (all.live == 0 && remaining_ms(w, lock) > 1)
        world_fail(w, "%s is held for %s, by nobody alive", lock_names[lock], held);
}

/* Whoever has a lock at the server knows of it, or has been killed; a foreigner's lock ends with
 * the lease that he asked for. */
static void check_leak(world *w, int lock, bool excused)
{
    const sim_lock *l = &w->locks[lock];
    const char *held = check_held_as(w, lock);
    bool foreign = held != NULL && strcmp(held, l->foreign_value) == 0;
    if (held == NULL || (foreign && w->run.now_ns <= l->foreign_gone_ns))
        return;
    if (is_owner(held))
        check_shared_leak(w, lock, held, excused);
    else if (foreign)
        world_fail(w, "%s is held as %s for longer than the foreigner asked", lock_names[lock],
                   held);
    else if (!excused)
        check_value_is_known(w, lock, held);
}

/* ---- Places in queues ---- */

/* Whoever waits at the server waits here too, or is about to leave, or has let his time pass; or it
 * is a late copy of an acquire whose hold was given away (seed 706106). */
static void check_places(world *w, int lock)
{
    const sim_queue *queue = &w->locks[lock].queue;
    for (int i = 0; i < queue->count; i++) {
        const sim_waiter *waiter = &queue->waiters[i];
        if (waiter->client >= 0 && waiter->alive_until_ms >= server_now_us(w) / 1000 &&
            w->clients[waiter->client].alive &&
            check_hold_of(&w->clients[waiter->client], waiter->value) == NULL &&
            !tokens_know(w, waiter->value))
            world_fail(w, "%s waits for %s, and does not know it", waiter->value, lock_names[lock]);
    }
}

static void check_records(world *w, int lock)
{
    const char *words[] = {"HKEYS", w->locks[lock].side[SIDE_W]};
    const char *all = sim_server_run(w->server, 2, words);
    for (const char *at = all + strspn(all, "[ "); *at != ']' && *at != '\0';) {
        size_t length = strcspn(at, " ]");
        if (*at != '#')
            world_fail(w, "%s has a record of %.*s, and nobody waits", lock_names[lock],
                       (int)length, at);
        at += length + strspn(at + length, " ");
    }
}

void check_leftovers(world *w)
{
    queues_look(w);
    for (int lock = 0; lock < w->plan.locks && !w->plan.beyond; lock++) {
        if (w->locks[lock].queue.count > 0)
            world_fail(w, "%s is left in the queue of %s", w->locks[lock].queue.waiters[0].value,
                       lock_names[lock]);
        check_records(w, lock);
    }
}

/* ---- All ---- */

/* A server that stood still for longer than a lease may hear of a hold when its client has long
 * given up releasing it. */
/* A release that is denied leaves the lock until its lease ends. */
static bool is_denied(const world *w, int lock)
{
    bool denied = false;
    for (int i = 0; i < w->plan.clients; i++)
        denied |= permits_denied_since(&w->clients[i].permits, lock,
                                       w->run.now_ns - MS(2 * w->plan.lease_max_ms));
    return denied;
}

void check_leaks(world *w)
{
    bool late = net_may_be_late(w) ||
                (w->gave_up_ns > 0 && w->run.now_ns - w->gave_up_ns < MS(w->plan.lease_min_ms));
    server_set_clock(w);
    queues_look(w);
    tokens_check_cores(w);
    for (int lock = 0; lock < w->plan.locks && !w->plan.beyond; lock++) {
        bool excused = late || is_denied(w, lock);
        check_leak(w, lock, excused);
        if (!excused)
            check_places(w, lock);
    }
}
