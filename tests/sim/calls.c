/* SPDX-License-Identifier: MIT */
/* What must be true of the outcome of a call: no call outlasts its bound, nobody is called a holder
 * who never was one, what was released is gone from the server, and nothing there lasts longer than
 * the longest lease that anybody asks for. */
#include <stdio.h>
#include <string.h>

#include "core/state.h"
#include "sim.h"

void check_bound(world *w, int index, int64_t began_ns, int64_t paused_before_ns, int64_t bound_ns)
{
    const sim_client *c = &w->clients[index];
    if (bound_ns == INT64_MAX)
        return;
    int64_t took_ns = w->run.now_ns - began_ns - (c->paused_total_ns - paused_before_ns);
    int64_t allowed_ns = bound_ns + bound_ns / 15 + MS(2); /* its clock may be slow */
    if (took_ns > allowed_ns)
        world_fail(w, "client %d: a call took %lld ms instead of %lld", index,
                   (long long)(took_ns / 1000000), (long long)(bound_ns / 1000000));
}

static bool may_line_up(const world *w, const sim_actor *a)
{
    return w->plan.local_turns > 0 && !a->call.polls && !a->call.fair &&
           a->subject.wish.owner == NO_OWNER;
}

static void check_refusal(world *w, const sim_actor *a)
{
    static const char start[] = "held by ";
    const char *text = a->call.error.text;
    w->stats.refusals++;
    if (w->locks[a->subject.wish.lock].breaks > 0 && strncmp(text, "taken away", 10) == 0)
        return; /* by force, before it was heard of */
    if (strncmp(text, "another thread", 14) == 0 && may_line_up(w, a))
        return;
    if (strstr(text, a->subject.value) != NULL)
        world_fail(w, "refused because of itself: %s", text);
    if (strncmp(text, start, sizeof(start) - 1) != 0 ||
        !check_knows_value(w, text + sizeof(start) - 1))
        world_fail(w, "refused because of a holder that never was: %s", text);
}

/* Beliefs of others in the same lock, who may not share it. */
static void count_overlaps(world *w, const sim_wish *mine)
{
    for (int i = 0; i < w->plan.clients; i++) {
        sim_client *c = &w->clients[i];
        for (uint64_t left = c->alive ? c->held : 0; left != 0; left &= left - 1) {
            sim_handle *h = &c->handles[__builtin_ctzll(left)];
            hf__instant now = {client_clock_ns(c, w->run.now_ns)};
            w->stats.overlaps += h->wish.lock == mine->lock && h->wish.party != mine->party &&
                                 hf__hold_remaining(h->hold, now).ns > 0;
        }
    }
}

static void check_acquire(world *w, const sim_actor *a, hf_status status)
{
    if (status == HF_OK) {
        w->stats.grants++;
        w->stats.contended +=
            a->call.round_trip.ns > 0 && w->run.now_ns - a->call_began_ns > MS(10);
        if (w->plan.beyond)
            count_overlaps(w, &a->subject.wish);
    } else if (status == HF_EBUSY) {
        check_refusal(w, a);
    } else if (status == HF_EUNKNOWN) {
        w->stats.unknowns++;
    }
}

/* Nobody asks for more than the longest lease, so nothing may last longer at the server. */
static void check_extend(world *w, const sim_actor *a)
{
    const char *name = lock_names[a->subject.wish.lock];
    const char *words[] = {"PTTL", name};
    long long left_ms = 0;
    w->stats.extends++;
    server_set_clock(w);
    sscanf(sim_server_run(w->server, 2, words), "%lld", &left_ms);
    if (!w->plan.beyond && left_ms > w->plan.lease_max_ms)
        world_fail(w, "%s lasts %lld ms, longer than any lease", name, left_ms);
}

/* A client that learns late of its release may find that a copy of its acquire, later still than
 * the tombstone, has taken the lock for nobody: docs/safety.md admits that. */
static void check_release(world *w, int index, int number)
{
    const sim_actor *a = &w->clients[index].actors[number];
    const hf_hold *hold = check_hold_of(&w->clients[index], a->subject.value);
    bool passed_on = hold != NULL && hold->stage == HF__HOLD_HELD; /* to another thread */
    server_set_clock(w);
    if (!passed_on && a->was_last && a->subject.wish.owner == NO_OWNER &&
        !check_was_released(w, a->subject.value))
        world_fail(w, "client %d.%d: said to have released %s, which no release has found", index,
                   number, lock_names[a->subject.wish.lock]);
    if (!w->plan.beyond && !w->plan.very_late && !passed_on && a->was_last &&
        check_server_has(w, &a->subject))
        world_fail(w, "client %d.%d: released %s, but the server still has it", index, number,
                   lock_names[a->subject.wish.lock]);
}

/* A server that no longer knows a hold has not got it, unless a copy of the acquire comes late. */
static void check_attach(world *w, int index, int number, hf_status status)
{
    const sim_actor *a = &w->clients[index].actors[number];
    server_set_clock(w);
    if (status == HF_ELOST && strstr(a->call.error.text, "no longer knows") != NULL &&
        !w->plan.beyond && !net_may_be_late(w) && check_server_has(w, &a->subject))
        world_fail(w, "client %d.%d: did not attach %s, but the server has it", index, number,
                   lock_names[a->subject.wish.lock]);
}

/* An extend ends with its hold, whose deadline the watchdog may have moved meanwhile. */
static int64_t bound_of(const world *w, int index, const sim_actor *a)
{
    const sim_client *c = &w->clients[index];
    if (a->call.kind != HF__CALL_EXTEND)
        return a->bound_ns;
    int64_t left_ns = c->handles[a->slot].deadline_local_ns - client_clock_ns(c, a->call_began_ns);
    return left_ns > 0 ? left_ns : 0;
}

static bool is_denied(const world *w, int index, const sim_actor *a)
{
    return a->call.error.status == HF_EDENIED &&
           permits_denied_since(&w->clients[index].permits, a->subject.wish.lock, a->call_began_ns);
}

void check_call(world *w, int index, int number)
{
    const sim_actor *a = &w->clients[index].actors[number];
    hf_status status = a->call.error.status;
    check_bound(w, index, a->call_began_ns, a->paused_before_ns, bound_of(w, index, a));
    if (status == HF_EINTERNAL || status == HF_EINVAL || status == HF_ESERVER ||
        (status == HF_EDENIED && !is_denied(w, index, a)))
        world_fail(w, "client %d.%d: %s: %s", index, number, hf_status_name(status),
                   a->call.error.text);
    w->stats.losses += status == HF_ELOST;
    if (a->call.kind == HF__CALL_ACQUIRE)
        check_acquire(w, a, status);
    else if (a->call.kind == HF__CALL_EXTEND && status == HF_OK)
        check_extend(w, a);
    else if (a->call.kind == HF__CALL_RELEASE && status == HF_OK)
        check_release(w, index, number);
    else if (a->call.kind == HF__CALL_ATTACH)
        check_attach(w, index, number, status);
}
