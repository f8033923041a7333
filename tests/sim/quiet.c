/* SPDX-License-Identifier: MIT */
/* Quiet times, when no fault is felt any more: nobody waits in vain. What was granted is heard of
 * as soon as a message takes, also if that overtakes an answer; and a lock that became free by
 * itself is taken within a third of a lease if anybody wants it, also one who has lined up behind
 * another thread. Subscriptions are cut now and then, with everybody told at once: then whoever
 * missed a message finds out when he is connected again. And no hold that is renewed gets lost. */
#include <string.h>

#include "core/state.h"
#include "sim.h"

enum { SLACK_MS = 5, DESERTED_SLACK_MS = 120, RECONNECT_MS = 60 };

/* At the server, behind another thread, or between two tries. */
static bool is_wanted(const world *w, int lock)
{
    for (int i = 0; i < w->plan.clients; i++)
        for (int n = 0; w->clients[i].alive && n < w->plan.actors; n++)
            if (w->clients[i].actors[n].state == ACTOR_ACQUIRES &&
                w->clients[i].actors[n].subject.wish.lock == lock)
                return true;
    return false;
}

static void check_deserted(world *w, int lock)
{
    sim_queue *queue = &w->locks[lock].queue;
    if (check_held_as(w, lock) != NULL || !is_wanted(w, lock))
        queue->deserted_ns = 0;
    else if (queue->deserted_ns == 0)
        queue->deserted_ns = w->run.now_ns;
    else if (w->run.now_ns - queue->deserted_ns > MS(w->plan.lease_max_ms / 3 + DESERTED_SLACK_MS))
        world_fail(w, "%s is free for %lld ms, and somebody wants it", lock_names[lock],
                   (long long)((w->run.now_ns - queue->deserted_ns) / 1000000));
}

static int64_t bound_after_cut_ns(const world *w, int index, int64_t held_ns)
{
    int64_t late_ns = w->clients[index].cut_ns - held_ns;
    return (late_ns > 0 ? late_ns : 0) + 10 * w->plan.delay_ns + MS(RECONNECT_MS);
}

static void check_heard(world *w, int lock)
{
    const sim_queue *queue = &w->locks[lock].queue;
    const char *held = check_held_as(w, lock);
    int index = held != NULL && strcmp(held, queue->held) == 0 ? queues_client_of(w, held) : -1;
    int64_t bound_ns = 2 * w->plan.delay_ns + MS(SLACK_MS);
    if (w->plan.load.away_ns > 0) /* it may have to look first, and again */
        bound_ns += 8 * w->plan.delay_ns;
    if (index >= 0 && w->clients[index].cut_ns > 0) /* it was not told, and asks */
        bound_ns = bound_after_cut_ns(w, index, queue->held_ns);
    if (w->plan.denies_some || w->plan.denies_all ||
        w->plan.permissions) /* who may not publish, or hear, asks */
        bound_ns += MS(w->plan.lease_max_ms / 3);
    bool overloaded = w->plan.load.kind == LOAD_ROUGH && queue->held_ns < w->quiet_ns;
    if (index < 0 || overloaded || w->run.now_ns - queue->held_ns <= bound_ns)
        return; /* a server that was overloaded may have cut it off just before (seed 7719) */
    const hf_hold *hold = check_hold_of(&w->clients[index], held);
    if (hold != NULL && hold->stage == HF__HOLD_TRYING)
        world_fail(w, "client %d was given %s %lld ms ago, and has not heard of it", index,
                   lock_names[lock], (long long)((w->run.now_ns - queue->held_ns) / 1000000));
}

/* Whatever else is done over its connections: watching, asking, or many calls at once. */
void quiet_lost(world *w, int index, const sim_handle *h)
{
    const sim_wish *wish = &h->wish;
    if (w->quiet && !w->plan.beyond && !h->nested && !h->moved && wish->max_hold_ms == 0 &&
        wish->interval_ms > 0 && wish->interval_ms <= wish->lease_ms / 3)
        world_fail(w, "client %d.%d: %s was renewed in quiet times, and is lost", index, h->actor,
                   lock_names[wish->lock]);
}

void quiet_check(world *w)
{
    observers_check(w);
    for (int lock = 0; lock < w->plan.locks && w->quiet && !w->finished; lock++) {
        check_deserted(w, lock);
        check_heard(w, lock);
    }
}
