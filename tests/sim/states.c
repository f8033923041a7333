/* SPDX-License-Identifier: MIT */
/* SAFE, JEOPARDY and LOST, and what listeners are told of them.
 *
 * A hold is LOST exactly when it is not valid. It must be in JEOPARDY when its last good renewal is
 * longer ago than the interval and the timeout together: that is computed here from when its
 * deadline last moved, not from what the core planned. A hold with a limit ends by itself, one
 * lease after the limit. A lost hold is not renewed: the server drops it when the last renewal that
 * could have been on its way is over.
 *
 * Listeners hear of each state once it is one, nothing twice, nothing after LOST, nothing before
 * the grant and nothing after the release. "Once" means: as soon as the core has done all that was
 * due; a process that was stopped has something due when it goes on. */
#include <stdlib.h>
#include <string.h>

#include "core/state.h"
#include "sim.h"

static int64_t local_ns(const world *w, const sim_client *c)
{
    return client_clock_ns(c, w->run.now_ns);
}

/* Nothing waits to be done at this time. */
static bool is_up_to_date(const world *w, const sim_client *c)
{
    hf__instant now = {local_ns(w, c)};
    return !c->paused && !c->telling && hf__before(now, hf__core_wake(c->core));
}

void states_granted(world *w, int index, sim_handle *h)
{
    const sim_client *c = &w->clients[index];
    hf__instant now = {local_ns(w, c)};
    h->granted_local_ns = h->moved_local_ns = now.ns;
    h->deadline_local_ns = now.ns + hf__hold_remaining(h->hold, now).ns;
    h->told_state = h->nested ? (hf_state)h->hold->listener.told_state : HF_SAFE;
    h->stretched = w->plan.chance[FAULT_CLOCK_STEP] > 0; /* perhaps */
    if (h->deadline_local_ns == now.ns)
        world_fail(w, "client %d.%d: granted %s, which is not valid", index, h->actor,
                   lock_names[h->wish.lock]);
}

/* ---- Rules ---- */

/* A hold that was made longer, by hand or by the server's clock, may be renewed without moving its
 * deadline. */
static void check_jeopardy(world *w, int index, const sim_handle *h, hf_state state)
{
    int64_t now_ns = local_ns(w, &w->clients[index]);
    int64_t late_ns = h->moved_local_ns + MS(h->wish.interval_ms + h->wish.timeout_ms + 1);
    if (h->nested || h->wish.interval_ms == 0 || h->stretched)
        return;
    if (state == HF_SAFE && now_ns > late_ns)
        world_fail(w, "client %d.%d: %s is SAFE, but was not renewed for %lld ms", index, h->actor,
                   lock_names[h->wish.lock], (long long)((now_ns - h->moved_local_ns) / 1000000));
}

/* When the last answered renewal was sent, by the client's clock: its deadline, less a lease. If
 * the server had less than a lease to give, it was later. */
static int64_t renewed_ns(const sim_handle *h)
{
    int64_t lease_ns = MS(h->wish.lease_ms);
    return h->deadline_local_ns - lease_ns + lease_ns / 100 + MS(2);
}

/* The other way round: a renewal that is not late yet is no reason. */
static void check_alarm(world *w, int index, const sim_handle *h, hf_state state)
{
    int64_t late_ns = renewed_ns(h) + MS(h->wish.interval_ms + h->wish.timeout_ms);
    if (h->nested || h->stretched || state != HF_JEOPARDY || h->real->reason != HF_REASON_LATE)
        return;
    if (local_ns(w, &w->clients[index]) < late_ns)
        world_fail(w, "client %d.%d: %s is in jeopardy too early", index, h->actor,
                   lock_names[h->wish.lock]);
}

/* A renewal that was sent when the request was there, and while it is kept, brings it along. */
static void check_revoked(world *w, int index, const sim_handle *h)
{
    const sim_lock *lock = &w->locks[h->wish.lock];
    const sim_client *c = &w->clients[index];
    if (h->real->fence_top != lock->revoked_fence || h->told_revoked || h->nested || h->stretched ||
        w->plan.beyond || w->plan.very_late || w->plan.chance[FAULT_NODE_PAUSE] > 0)
        return;
    int64_t since_ns = renewed_ns(h) - client_clock_ns(c, lock->revoked_ns);
    if (h->moved_local_ns > h->granted_local_ns && since_ns > MS(1) && since_ns < MS(200))
        world_fail(w, "client %d.%d: renewed %s, and was not told that somebody asks for it", index,
                   h->actor, lock_names[h->wish.lock]);
}

static void check_limit(world *w, int index, const sim_handle *h)
{
    int64_t until_ns = h->granted_local_ns + MS(h->wish.max_hold_ms + h->wish.lease_ms + 1);
    if (h->nested || h->extended || h->stretched || h->wish.max_hold_ms == 0)
        return;
    if (local_ns(w, &w->clients[index]) > until_ns)
        world_fail(w, "client %d.%d: %s is valid for longer than its limit and a lease", index,
                   h->actor, lock_names[h->wish.lock]);
}

/* How late a request may be, and what it can give when it arrives. */
static int64_t latest_renewal_ns(const world *w, const sim_handle *h)
{
    int64_t delay_ms = w->plan.very_late ? 2 * w->plan.lease_max_ms : w->plan.lease_min_ms;
    int64_t longest_ms = delay_ms + h->longest_ms;
    if (w->plan.chance[FAULT_NODE_PAUSE] > 0)
        longest_ms += 2000;
    return MS(longest_ms + longest_ms / 50 + 20);
}

static void check_abandoned(world *w, int index, const sim_handle *h)
{
    if (w->plan.beyond || h->nested || w->run.now_ns - h->lost_ns <= latest_renewal_ns(w, h))
        return;
    if (check_server_has(w, h))
        world_fail(w, "client %d.%d: %s was lost %lld ms ago, and the server still has it", index,
                   h->actor, lock_names[h->wish.lock],
                   (long long)((w->run.now_ns - h->lost_ns) / 1000000));
}

static void note_move(world *w, int index, sim_handle *h)
{
    hf__instant now = {local_ns(w, &w->clients[index])};
    int64_t deadline_ns = now.ns + hf__hold_remaining(h->hold, now).ns;
    if (deadline_ns < h->deadline_local_ns)
        world_fail(w, "client %d.%d: the deadline of %s went back", index, h->actor,
                   lock_names[h->wish.lock]);
    if (deadline_ns == h->deadline_local_ns)
        return;
    w->stats.renewals += !h->nested;
    h->deadline_local_ns = deadline_ns;
    h->moved_local_ns = now.ns;
    h->stretched |= deadline_ns > now.ns + MS(h->wish.lease_ms);
}

void states_check(world *w, int index, sim_handle *h, bool valid)
{
    const sim_client *c = &w->clients[index];
    hf_state state = hf__hold_state(h->hold, (hf__instant){local_ns(w, c)});
    if (valid != (state != HF_LOST))
        world_fail(w, "client %d.%d: %s is %s and %s", index, h->actor, lock_names[h->wish.lock],
                   valid ? "valid" : "not valid", hf_state_name(state));
    if (valid)
        note_move(w, index, h);
    else
        check_abandoned(w, index, h);
    if (!is_up_to_date(w, c) || w->finished || h->untold)
        return;
    if (state != h->told_state)
        world_fail(w, "client %d.%d: %s is %s, but its listener knows %s", index, h->actor,
                   lock_names[h->wish.lock], hf_state_name(state), hf_state_name(h->told_state));
    if (valid) {
        check_jeopardy(w, index, h, state);
        check_alarm(w, index, h, state);
        check_limit(w, index, h);
        check_revoked(w, index, h);
    }
}

/* ---- What is told ---- */

void states_revoked(world *w, int lock)
{
    sim_lock *l = &w->locks[lock];
    const char *words[] = {"HGET", l->side[SIDE_W], "#revoked"};
    server_set_clock(w);
    l->revoked_fence = strtoull(sim_server_run(w->server, 3, words), NULL, 10);
    l->revoked_ns = w->run.now_ns;
}

static sim_handle *handle_of(sim_client *c, const hf_hold *hold)
{
    for (int i = 0; i < HANDLES_MAX; i++)
        if (c->handles[i].hold == hold)
            return &c->handles[i];
    return NULL;
}

static bool reason_fits(const world *w, const sim_handle *h, const hf_event *event)
{
    const sim_lock *lock = &w->locks[h->wish.lock];
    switch (event->reason) {
    case HF_REASON_NONE:
        return event->state == HF_SAFE;
    case HF_REASON_LATE:
        return event->state == HF_JEOPARDY && h->real->watch.interval.ns > 0;
    case HF_REASON_NEAR:
        return event->state == HF_JEOPARDY && h->real->watch.warn.ns > 0;
    case HF_REASON_MAX_HOLD:
        return event->state != HF_SAFE && h->real->watch.max_hold.ns > 0;
    case HF_REASON_EXPIRED:
        return event->state == HF_LOST;
    case HF_REASON_GONE:
        return event->state == HF_LOST && w->plan.beyond;
    case HF_REASON_BROKEN:
        return event->state == HF_LOST && lock->breaks > 0;
    case HF_REASON_REVOKED:
        return event->state != HF_LOST && lock->revokes > 0 && !h->told_revoked;
    default:
        return false;
    }
}

/* A server whose memory is full refuses checks, which alone tell of a grant that is stale: such a
 * hold may be heard of when it is too late for the first renewal (seed 5369). */
static bool was_heard_late(const world *w, const hf_hold *hold)
{
    return w->plan.chance[FAULT_FULL] > 0 &&
           hf__between(hold->granted, hold->core->now).ns < hold->watch.interval.ns;
}

/* Where nothing but permissions goes wrong, a hold that is renewed in good time is lost only if its
 * own lock was denied: not for another one's sake. */
static void check_own_fault(world *w, int index, const sim_handle *h)
{
    const hf_hold *hold = h->real;
    int64_t since_ns = w->run.now_ns - hold->lease.ns - hold->lease.ns / 20 - MS(20);
    bool in_time = hold->watch.interval.ns > 0 && 2 * hold->watch.interval.ns <= hold->lease.ns;
    if (w->plan.permissions && in_time && hold->watch.max_hold.ns == 0 && !was_heard_late(w, hold) &&
        !permits_denied_since(&w->clients[index].permits, h->wish.lock, since_ns))
        world_fail(w, "client %d.%d: lost %s for the sake of another lock", index, h->actor,
                   lock_names[h->wish.lock]);
}

void states_told(world *w, int index, const hf__tell *tell)
{
    sim_client *c = &w->clients[index];
    sim_handle *h = handle_of(c, tell->hold);
    const hf_event *event = &tell->event;
    const char *state = hf_state_name(event->state);
    world_log(w, "client %d: told %s: %s", index, state, event->text);
    if (h == NULL) {
        world_fail(w, "client %d: told %s of a hold that nobody has", index, state);
        return;
    }
    if (h->untold)
        world_fail(w, "client %d.%d: told %s before its grant", index, h->actor, state);
    if (h->told_state == HF_LOST)
        world_fail(w, "client %d.%d: told %s after LOST", index, h->actor, state);
    if (!reason_fits(w, h, event))
        world_fail(w, "client %d.%d: told %s because %s", index, h->actor, state, event->text);
    if (event->state == HF_LOST)
        check_own_fault(w, index, h);
    hf__span left = hf__hold_remaining(h->hold, (hf__instant){local_ns(w, c)});
    if ((event->state == HF_LOST) != (left.ns == 0))
        world_fail(w, "client %d.%d: told %s with %lld ms left", index, h->actor, state,
                   (long long)hf__span_to_ms(left));
    if (event->state == HF_LOST && load_keeps(&w->plan.load, h->real))
        world_fail(w, "client %d.%d: lost %s: %s", index, h->actor, lock_names[h->wish.lock],
                   event->text);
    w->stats.jeopardies += event->state == HF_JEOPARDY && h->told_state == HF_SAFE;
    w->stats.told_lost += event->state == HF_LOST;
    w->stats.revoked += event->reason == HF_REASON_REVOKED;
    h->told_revoked |= event->reason == HF_REASON_REVOKED;
    h->told_state = event->state;
}
