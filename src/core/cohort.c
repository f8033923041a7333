/* SPDX-License-Identifier: MIT */
/* Waiting in this process. Threads of one client that want the same lock form a cohort: one of
 * them, the contender, stands for all of them at the server, however many they are; the others line
 * up behind it here. When the lock is given back, the next in line may get it at once and without a
 * message: the same grant with the same deadline, and the next of the fences that were reserved
 * with it. That is bounded, for those who wait elsewhere: so often, not longer than a third of a
 * lease after the server's grant, and not when somebody elsewhere has been passed over for
 * PATIENCE_MS.
 *
 * Fences are microseconds of the server's clock, and must not run away from it. So a contender asks
 * for a few more than the last grant here has used, never for all that might be; a turn is taken
 * only when so many microseconds have passed since the grant; and a release gives back those that
 * nobody has had (not on a quorum).
 *
 * A hold is what the server knows (key, value, deadline, fences); what a caller brings along (call,
 * listener, thread, wishes about renewal) can be swapped between two holds of one lock. So a grant
 * that passes on stays where it is, and so does the place in the queue of a contender whose call
 * ends while others stand behind it.
 *
 * Holds with an owner stay out: others may share such a lock. So do fair calls, those that poll,
 * and those for which replicas must acknowledge each grant. */
#include "base/memory.h"
#include "base/mutant.h"
#include "core/state.h"

enum { PATIENCE_MS = 20, LEASE_DIVISOR = 3, MORE_TURNS = 8, NS_PER_FENCE = 1000 };

/* ---- Cohorts ---- */

uint64_t hf__cohort_hash(const hf__node *node)
{
    return HF__ENTRY(node, hf__cohort, node)->hash;
}

static const hf_hold *member_of(const hf__cohort *cohort)
{
    return cohort->front != NULL ? cohort->front : cohort->contender;
}

static hf__cohort *find(const hf_hold *hold)
{
    const hf__table *table = &hold->core->cohorts;
    for (hf__node *n = hf__table_first(table, hold->hash); n != NULL; n = hf__table_next(table, n))
        if (hf__same_key(member_of(HF__ENTRY(n, hf__cohort, node)), hold))
            return HF__ENTRY(n, hf__cohort, node);
    return NULL;
}

static hf__cohort *found_cohort(hf_hold *hold)
{
    hf__cohort *cohort = hf__alloc(sizeof(*cohort));
    if (cohort == NULL)
        return NULL; /* then this one goes to the server alone */
    cohort->passed = HF__NEVER;
    cohort->timer.kind = HF__TIMER_COHORT;
    hf__list_init(&cohort->waiting);
    cohort->hash = hold->hash;
    hf__table_add(&hold->core->cohorts, &cohort->node);
    return cohort;
}

/* Nobody is left in it. Up the call chain somebody may still look at it, so it is freed at the end
 * of the step. */
static void retire(hf__core *core, hf__cohort *cohort)
{
    if (cohort->retired || member_of(cohort) != NULL || cohort->waiting.count > 0)
        return;
    cohort->retired = true;
    hf__table_remove(&core->cohorts, &cohort->node);
    hf__list_append(&core->retired, &cohort->node);
}

void hf__cohort_drop(hf__node *node)
{
    hf__free(HF__ENTRY(node, hf__cohort, node));
}

void hf__cohort_bury(hf__core *core)
{
    hf__node *node;
    while ((node = hf__list_first(&core->retired)) != NULL) {
        hf__list_remove(&core->retired, node);
        hf__cohort_drop(node);
    }
}

static hf_hold *next_in_line(const hf__cohort *cohort)
{
    hf__node *first = hf__list_first(&cohort->waiting);
    return first != NULL ? HF__ENTRY(first, hf_hold, lined_up) : NULL;
}

static bool takes_part(const hf_hold *hold)
{
    const hf__call *call = hold->call;
    return hold->core->config.local_turns > 0 && !call->polls && !call->fair &&
           call->wait_ms != 0 && hold->replicas == NULL &&
           (hold->owner_length == 0 || HF__MUTANT(TURN_OWNER));
}

/* ---- Passing on ---- */

/* Until when the lock that the front has may be passed on here. */
static hf__instant turns_end(const hf__cohort *cohort)
{
    hf__instant ends =
        hf__after(cohort->began, (hf__span){cohort->front->lease.ns / LEASE_DIVISOR});
    if (HF__MUTANT(TURN_LATE))
        return HF__NEVER;
    if (hf__is_never(cohort->passed))
        return ends;
    return hf__earlier(ends, hf__after(cohort->passed, hf__span_ms(PATIENCE_MS)));
}

/* The clock of the server has passed the next fence, if it was not behind the first one. */
static bool clock_allows(const hf__cohort *cohort)
{
    const hf_hold *front = cohort->front;
    int64_t passed_ns = hf__between(cohort->began, front->core->now).ns;
    return passed_ns >= (int64_t)cohort->turns * NS_PER_FENCE;
}

/* Whether it may still be. */
static bool may_turn(const hf__cohort *cohort)
{
    hf_hold *front = cohort->front;
    if (front == NULL || front->stage != HF__HOLD_HELD || front->fence >= front->fence_top)
        return false;
    hf__instant now = front->core->now;
    bool lasts = LEASE_DIVISOR * hf__hold_remaining(front, now).ns >= front->lease.ns;
    return cohort->turns < (unsigned)front->core->config.local_turns && clock_allows(cohort) &&
           hf__before(now, turns_end(cohort)) && (lasts || HF__MUTANT(TURN_LATE)) &&
           !front->revoked && atomic_load(&front->state) == HF_SAFE;
}

/* Whether the one could do with what the server knows of the other. Whoever renews by hand counts
 * on a whole lease. */
static bool fits(const hf_hold *next, const hf_hold *hold)
{
    return next->lease.ns == hold->lease.ns && next->watch.interval.ns > 0 &&
           hold->watch.interval.ns > 0 && hold->longest_lease.ns == hold->lease.ns;
}

#define SWAP(type, a, b)    \
    do {                    \
        type swapped = (a); \
        (a) = (b);          \
        (b) = swapped;      \
    } while (0)

/* Exchanges what their callers brought along. */
static void swap(hf_hold *a, hf_hold *b)
{
    SWAP(hf__call *, a->call, b->call);
    SWAP(uint64_t, a->thread, b->thread);
    SWAP(bool, a->reenters, b->reenters);
    SWAP(hf__span, a->watch.interval, b->watch.interval);
    SWAP(hf__span, a->watch.timeout, b->watch.timeout);
    SWAP(hf__span, a->watch.warn, b->watch.warn);
    SWAP(hf__span, a->watch.max_hold, b->watch.max_hold);
    SWAP(hf_event_function *, a->listener.function, b->listener.function);
    SWAP(void *, a->listener.arg, b->listener.arg);
    SWAP(bool, a->listener.listens_later, b->listener.listens_later);
    if (a->call != NULL)
        a->call->hold = a;
    if (b->call != NULL)
        b->call->hold = b;
}

/* It has left the line without having been at the server. */
static void dismiss(hf_hold *hold)
{
    hold->cohort = NULL;
    hf__hold_over(hold);
    hf__hold_settle(hold);
}

/* The next one may want its renewals at other times. */
static void replan(hf_hold *hold, hf__span interval_before)
{
    if (hold->ballot != NULL)
        hf__majority_replan(hold);
    if (hold->watch.interval.ns != interval_before.ns)
        hf__watch_replan(hold);
    else
        hf__watch_look(hold);
}

static void take_turn(hf_hold *hold, hf_hold *next)
{
    hf__cohort *cohort = hold->cohort;
    hf__core *core = hold->core;
    hf__span interval = hold->watch.interval;
    hf__list_remove(&cohort->waiting, &next->lined_up);
    hf__push_unlisten(hold);
    swap(hold, next);
    hf__push_listen(hold);
    hold->fence += HF__MUTANT(TURN_FENCE) ? 0 : 1;
    hold->users = 1;
    hold->granted = core->now;
    hold->listener.told_state = HF_SAFE;
    hold->listener.told_reason = HF_REASON_NONE;
    cohort->turns++;
    core->stats.turns++;
    hf__stats_granted(hold, hold->call);
    hf__reentry_allow(hold);
    replan(hold, interval);
    hf__acquire_hand_out(hold, hold->call);
    dismiss(next);
}

bool hf__cohort_hand_over(hf_hold *hold, hf__call *call)
{
    const hf__cohort *cohort = hold->cohort;
    hf_hold *next = cohort != NULL ? next_in_line(cohort) : NULL;
    /* What is still on its way to the server because of this turn must not arrive in the next one,
     * which has the same value there. */
    bool under_way = hold->in_doubt || (call != NULL && call->ahead != NULL);
    if (next == NULL || under_way || cohort->front != hold || cohort->contender != NULL ||
        !may_turn(cohort) || !fits(next, hold) || hf__tell_needs(hold->core, hold))
        return false;
    hf__renew_end_calls(hold, HF_EINVAL, "the hold was released by another thread");
    hf__reentry_forbid(hold);
    hf__stats_ended(hold);
    hf__stats_released(hold, true, HF_REASON_NONE);
    if (call != NULL)
        hf__call_done(hold->core, call, HF_OK, ""); /* is told before the next one has it */
    take_turn(hold, next);
    return true;
}

/* ---- Standing for the others ---- */

/* Several fences are asked for if there is anybody to pass them on to. */
static void contend(hf__cohort *cohort, hf_hold *hold)
{
    bool crowded = cohort->front != NULL || cohort->waiting.count > 0;
    unsigned most = (unsigned)hold->core->config.local_turns;
    unsigned turns = cohort->turns + MORE_TURNS;
    if (HF__MUTANT(RANGE_KEPT))
        turns = most = UINT16_MAX - 1;
    hold->cohort = cohort;
    hold->range = (unsigned short)(crowded ? 1 + (turns < most ? turns : most) : 1);
    cohort->contender = hold;
}

/* If those in line have nobody to wait for, the first of them goes to the server; and if that may
 * come to be so before the lock is given back, a timer looks again. */
static void send_next(hf__cohort *cohort)
{
    hf_hold *next = next_in_line(cohort);
    if (next == NULL || cohort->contender != NULL)
        return;
    if (may_turn(cohort)) {
        if (!cohort->timer.set)
            hf__timer_set(&next->core->timers, &cohort->timer, turns_end(cohort));
        return;
    }
    hf__list_remove(&cohort->waiting, &next->lined_up);
    contend(cohort, next);
    hf__acquire_go(next);
}

void hf__cohort_timer(hf__cohort *cohort)
{
    send_next(cohort);
}

static void set_front(hf__core *core, hf__cohort *cohort, hf_hold *hold)
{
    hf_hold *before = cohort->front;
    if (before != NULL) {
        before->cohort = NULL;
        core->turning -= before->range > 1;
    }
    cohort->front = hold;
    if (hold != NULL)
        core->turning += hold->range > 1;
    hf__timer_clear(&core->timers, &cohort->timer);
}

bool hf__cohort_line_up(hf_hold *hold)
{
    if (!takes_part(hold))
        return false;
    hf__cohort *cohort = find(hold);
    if (cohort == NULL)
        cohort = found_cohort(hold);
    if (cohort == NULL)
        return false;
    if (cohort->contender == NULL && cohort->waiting.count == 0 && !may_turn(cohort)) {
        contend(cohort, hold);
        return false;
    }
    hold->cohort = cohort;
    hf__list_append(&cohort->waiting, &hold->lined_up);
    send_next(cohort);
    return true;
}

void hf__cohort_granted(hf_hold *hold, bool others_wait)
{
    hf__cohort *cohort = hold->cohort;
    if (cohort == NULL)
        return;
    cohort->contender = NULL;
    set_front(hold->core, cohort, hold); /* another one may still believe that it has it */
    cohort->turns = 0;
    cohort->began = hold->core->now;
    cohort->passed = others_wait || hold->place.passed ? hold->core->now : HF__NEVER;
    if (hold->range > 1)
        hf__push_want_all(hold->core); /* to hear of those who begin to wait elsewhere */
    send_next(cohort);
}

void hf__cohort_passed_over(hf_hold *hold)
{
    hf__cohort *cohort = hold->cohort;
    hold->contended = true;
    if (cohort != NULL && cohort->contender == hold)
        hold->place.passed = true; /* the message has overtaken the grant */
    if (cohort == NULL || cohort->front != hold)
        return;
    cohort->passed = hf__earlier(cohort->passed, hold->core->now);
    hf__timer_clear(&hold->core->timers, &cohort->timer);
    send_next(cohort);
}

void hf__cohort_leave(hf_hold *hold)
{
    hf__cohort *cohort = hold->cohort;
    if (cohort == NULL)
        return;
    hold->cohort = NULL;
    if (hf__node_linked(&hold->lined_up))
        hf__list_remove(&cohort->waiting, &hold->lined_up);
    if (cohort->front == hold)
        set_front(hold->core, cohort, NULL);
    if (cohort->contender == hold)
        cohort->contender = NULL;
    if (!hold->core->closing)
        send_next(cohort);
    retire(hold->core, cohort);
}

hf_hold *hf__cohort_substitute(hf_hold *hold)
{
    hf__cohort *cohort = hold->cohort;
    hf_hold *next = cohort != NULL ? next_in_line(cohort) : NULL;
    if (next == NULL || cohort->contender != hold || !fits(next, hold) || hold->core->closing)
        return hold;
    const hf__call *ended = hold->call;
    hf__call *call = next->call;
    hf__list_remove(&cohort->waiting, &next->lined_up);
    next->cohort = NULL;
    swap(hold, next);
    call->next_try = ended->next_try;
    call->try_ends = ended->try_ends;
    call->round_trip = ended->round_trip;
    call->contended = ended->contended;
    call->asked_again = ended->asked_again;
    if (hf__is_never(call->next_try) && hold->requests[HF__REQUEST_ACQUIRE].place == HF__IDLE)
        hf__acquire_go(hold);
    else
        hf__acquire_set_timer(call);
    return next;
}
