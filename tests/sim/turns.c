/* SPDX-License-Identifier: MIT */
/* Locks that pass between the threads of a client without a message. What the server knows stays as
 * it was, so a thread that gets a lock in this way holds it with the value of another one, and with
 * a fence of its own, which fences.c checks. That is for threads that neither insist on their order
 * nor poll nor share, and it has bounds: so often, not longer than a third of a lease after the
 * grant, and, in quiet times, not when a waiter of another client has been passed over for longer
 * than its patience and the time that a message takes. */
#include <stdio.h>
#include <string.h>

#include "sim.h"

enum { PATIENCE_MS = 20, SLACK_MS = 5, RECONNECT_MS = 200 };

/* Who may not subscribe does not hear of those who wait. Nor does one that is about to, or whose
 * subscription was cut just before. */
static bool hears(const world *w, int index, const sim_front *front)
{
    char channel[48];
    const sim_client *c = &w->clients[index];
    if ((c->cut_ns > 0 && c->cut_ns > front->from_ns - MS(RECONNECT_MS)) ||
        c->permits.messages != SIM_ALLOWED)
        return false;
    snprintf(channel, sizeof(channel), "hf:c:%.32s", c->config.client_id);
    return sim_server_subscribers(w->server, channel) > 0 ||
           (!c->permits.was_deaf && w->run.now_ns - front->from_ns > MS(RECONNECT_MS));
}

static void check_turn(world *w, int index, const sim_front *front, const sim_handle *h)
{
    const sim_client *c = &w->clients[index];
    int64_t local_ns = client_clock_ns(c, w->run.now_ns) - front->from_local_ns;
    int64_t patience_ns = MS(PATIENCE_MS + SLACK_MS) + 2 * w->plan.delay_ns;
    const char *name = lock_names[h->wish.lock];
    if (front->turns > c->config.local_turns)
        world_fail(w, "client %d.%d: %s has been passed on %d times", index, h->actor, name,
                   front->turns);
    if (local_ns > MS(h->wish.lease_ms) / 3 + MS(1))
        world_fail(w, "client %d.%d: %s is passed on %lld ms after its grant", index, h->actor,
                   name, (long long)(local_ns / 1000000));
    if (w->quiet && hears(w, index, front) && w->run.now_ns - front->from_ns > patience_ns &&
        queues_others_wait(w, h->wish.lock, index, w->run.now_ns - patience_ns))
        world_fail(w, "client %d.%d: %s is passed on, and others have waited for long", index,
                   h->actor, name);
}

void turns_granted(world *w, int index, const sim_actor *a, sim_handle *h)
{
    sim_front *front = &w->clients[index].fronts[h->wish.lock];
    if (h->nested)
        return;
    h->moved = strcmp(h->value, a->subject.value) != 0;
    if (h->moved && (a->call.fair || a->call.polls || h->wish.owner != NO_OWNER))
        world_fail(w, "client %d.%d: got %s from another thread, and may not", index, h->actor,
                   lock_names[h->wish.lock]);
    if (strcmp(front->value, h->value) == 0) {
        w->stats.turns++;
        front->turns++;
        check_turn(w, index, front, h);
        return;
    }
    *front = (sim_front){.from_ns = w->run.now_ns,
                         .from_local_ns = client_clock_ns(&w->clients[index], w->run.now_ns)};
    snprintf(front->value, sizeof(front->value), "%s", h->value);
}
