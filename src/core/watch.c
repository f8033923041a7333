/* SPDX-License-Identifier: MIT */
/* The watchdog: renews holds before their lease ends, and notices when one is in danger or lost.
 *
 * Renewals are planned per link and leave in rounds: when the first one is due, those that would
 * be due soon go along, up to HF__BATCH_MAX in one script call, and up to eight calls at once. So
 * holds that were acquired one after the other fall into step, and ten thousand of them cost less
 * than fifty calls a second and few wake-ups. The first call of a long round is a short one: it
 * finds a server with cold caches, which takes twice the time for each. Rounds are paced, and those
 * of different links to one server keep apart, so that neither the server nor those who share it
 * feel a burst: of the calls of one connection, Redis reads 16 kB at a time, which are two, before
 * it turns to others. Links do not wait for each other's answers.
 *
 * The pace follows what is due: when more renewals are overdue than would leave at the usual pace
 * within a sixteenth of their interval, they leave faster, so that all of them leave within that
 * time, however many there are. If the server does not answer at that rate, no more leave once the
 * first of those under way is late by an eighth, but what the server answers within that time (or
 * one call); that also holds back new acquires, see flow.c. The way to the server and back is no
 * lateness, up to half of the interval: one that is further away is too slow for such a lease.
 *
 * Holds whose renewal was refused alone (split.c) have a list of their own. A few of them go with
 * each round, each in a call of its own and behind the others, which they must not delay.
 *
 * A hold is in jeopardy when a renewal is late (it was due `timeout` ago and has not been
 * answered), when the deadline is nearer than the application wished, and when renewals have
 * stopped because it was held for too long. It is lost when the deadline has passed, whatever the
 * server does. A timer looks at the state when something may be wrong. While the next renewal is
 * still to come and nothing can happen before it, none is needed; and those whose renewals are
 * under way share one of their link, which goes off when something may be wrong with the first of
 * them. That saves most of the work. */
#include "base/mutant.h"
#include "core/state.h"

enum {
    CALLS_MAX = 8, /* of a round */
    FIRST_MAX = 24,
    ROUND_MAX = FIRST_MAX + (CALLS_MAX - 1) * HF__BATCH_MAX,
    SLOW_MAX = CALLS_MAX * HF__BATCH_SLOW,
    ALONE_MAX = 16,     /* of a round: holds that were refused, */
    ALONE_A_CALL = 8,   /* of which so many cost about as much as a call of the others */
    LINK_PACE_MS = 4,   /* at most, for each call of a round, until the next one of the link */
    SERVER_DIVISOR = 4, /* of that: until one of another link to the same server */
    AHEAD_DIVISOR = 8,  /* of the interval: how much earlier a renewal may leave with others, */
    LATE_DIVISOR = 8,   /* how much later, before new holds must wait, */
    WAY_DIVISOR = 2,    /* not counting the way to the server and back, up to that; */
    PACE_DIVISOR = 16,  /* and within which time all that are overdue must leave */
    CALM_MS = 1000,     /* renewals are on time again if none was late for so long */
    RETRY_DIVISOR = 4,  /* of the interval: pause after a refusal */
    RETRY_MIN_MS = 20,
    RETRY_MAX_MS = 1000,
    ROUND_MAX_MS = (2 * CALLS_MAX + ALONE_MAX / ALONE_A_CALL) * LINK_PACE_MS
};

/* ---- Planning ---- */

static const hf_hold *first_of(const hf__list *holds)
{
    const hf__node *node = hf__list_first(holds);
    return node != NULL ? HF__ENTRY(node, hf_hold, watch.plan.node) : NULL;
}

/* The way to the server and back, as far as it is no lateness: twice, since a hold that has notes
 * is refreshed in vain first. */
static hf__span way_of(const hf__link *link, hf__span interval)
{
    hf__span most = {HF__MUTANT(WAY_IS_LATE) ? 0 : interval.ns / WAY_DIVISOR};
    hf__span way = {2 * link->round_trip.ns};
    return way.ns < most.ns ? way : most;
}

static hf__span longer(hf__span a, hf__span b)
{
    return a.ns > b.ns ? a : b;
}

/* By how much the renewal of a hold is late, if that is too much; else 0. */
static hf__span lag_of(const hf_hold *hold, hf__span way)
{
    hf__instant now = hold->core->now, by = hf__after(hold->watch.plan.due, way);
    hf__span late = hf__before(by, now) ? hf__between(by, now) : hf__span_ms(0);
    return late.ns > hold->watch.interval.ns / LATE_DIVISOR ? late : hf__span_ms(0);
}

/* The lists are in the order in which their renewals were planned to leave. */
static hf__span own_lag(const hf__link *link)
{
    const hf_hold *unsent = first_of(&link->overdue), *sent = first_of(&link->under_way);
    hf__span lag = unsent != NULL ? lag_of(unsent, hf__span_ms(0)) : hf__span_ms(0);
    return sent != NULL ? longer(lag, lag_of(sent, way_of(link, sent->watch.interval))) : lag;
}

/* The links to a server share what it can do. Over one that answers, and is late all the same, the
 * server is found to be slow; one that is silent is a matter of its connection. */
hf__span hf__watch_lag(const hf__link *link)
{
    hf__span lag = own_lag(link);
    for (int i = 0; i < link->core->config.links; i++) {
        const hf__link *other = &link->server->links[i];
        hf__span late = other != link ? own_lag(other) : hf__span_ms(0);
        if (HF__MUTANT(LAG_PER_LINK))
            break;
        if (late.ns > hf__between(other->unheard, link->core->now).ns)
            lag = longer(lag, late);
    }
    return lag;
}

/* How many of those that are overdue may leave now. What is late already waits here, not at the
 * server: the lease counts from when a renewal leaves. */
static size_t room(const hf__link *link)
{
    const hf_hold *first = first_of(&link->overdue); /* NULL: only some that were refused */
    if (first == NULL || hf__watch_lag(link).ns == 0 || HF__MUTANT(LATE_FLOOD))
        return ROUND_MAX;
    hf__span interval = first->watch.interval;
    hf__span time = {interval.ns / PACE_DIVISOR + way_of(link, interval).ns};
    size_t most = hf__flow_renewals_within(link, time);
    most = most < ROUND_MAX ? most : ROUND_MAX;
    return link->under_way.count < most ? most : 0;
}

static size_t count_overdue(const hf__link *link)
{
    return link->overdue.count + link->overdue_alone.count;
}

static hf__instant next_round(const hf__link *link)
{
    return hf__later(link->next_round, link->server->next_round);
}

/* The timer of a link is left alone if it fires early enough; it looks for itself. */
static void arm(hf__link *link, hf__instant due)
{
    due = hf__later(due, next_round(link));
    if (!hf__is_never(due) && (!link->renew_timer.set || hf__before(due, link->renew_timer.due)))
        hf__timer_set(&link->core->timers, &link->renew_timer, due);
}

/* A grant that was heard of late may have to be renewed at once; that is not late yet. */
static void plan(hf_hold *hold, hf__instant when)
{
    when = hf__later(when, hold->core->now);
    hold->renewal = HF__PLANNED;
    hold->watched_alone = false;
    hf__wheel_set(&hold->link->renewals, &hold->watch.plan, when);
    arm(hold->link, when);
}

static void unplan(hf_hold *hold)
{
    hf__link *link = hold->link;
    switch (hold->renewal) {
    case HF__RENEWAL_NONE:
        break;
    case HF__PLANNED:
        hf__wheel_clear(&link->renewals, &hold->watch.plan);
        break;
    case HF__OVERDUE:
        hf__list_remove(&link->overdue, &hold->watch.plan.node);
        break;
    case HF__OVERDUE_ALONE:
        hf__list_remove(&link->overdue_alone, &hold->watch.plan.node);
        break;
    case HF__UNDER_WAY:
        hf__list_remove(&link->under_way, &hold->watch.plan.node);
        break;
    }
    if (hold->renewal > HF__PLANNED && (count_overdue(link) > 0 || link->server->behind))
        arm(link, link->core->now); /* there is room again */
    hold->renewal = HF__RENEWAL_NONE;
}

static void prefetch_next(const hf__link *link)
{
    const hf__spoke *next = hf__wheel_peek(&link->renewals);
    if (next != NULL)
        hf__request_prefetch(&HF__ENTRY(next, hf_hold, watch.plan)->requests[HF__REQUEST_RENEW]);
}

/* Moves one that is due by then to those that are overdue; false: there is none. */
static bool take_due(hf__link *link, hf__instant by)
{
    hf__spoke *spoke = hf__wheel_take(&link->renewals, by);
    if (spoke == NULL)
        return false;
    prefetch_next(link);
    hf_hold *hold = HF__ENTRY(spoke, hf_hold, watch.plan);
    bool alone = hold->shares_call == 1;
    hold->renewal = alone ? HF__OVERDUE_ALONE : HF__OVERDUE;
    hf__list_append(alone ? &link->overdue_alone : &link->overdue, &spoke->node);
    hf__watch_look(hold);
    return true;
}

static hf_hold *take_overdue(hf__link *link, hf__list *overdue)
{
    hf__node *node = hf__list_first(overdue);
    hf_hold *hold = HF__ENTRY(node, hf_hold, watch.plan.node);
    hf__list_remove(overdue, node);
    hf__list_append(&link->under_way, node);
    hold->renewal = HF__UNDER_WAY;
    return hold;
}

/* If a renewal for a call is under way already, that serves the watchdog too. */
static void enqueue(hf_hold *hold)
{
    hf__link_enqueue(&hold->requests[HF__REQUEST_RENEW]);
}

static int64_t calls_for(size_t count, size_t most)
{
    return (int64_t)((count + most - 1) / most);
}

/* For each call of a round: what is overdue must all leave within `time`. */
static hf__span pace_for(size_t overdue, hf__span time)
{
    hf__span usual = hf__span_ms(LINK_PACE_MS);
    if (overdue == 0)
        return usual;
    hf__span needed = {time.ns / calls_for(overdue, HF__BATCH_MAX)};
    return needed.ns < usual.ns && !HF__MUTANT(PACE_CONSTANT) ? needed : usual;
}

static size_t enqueue_alone(hf__link *link)
{
    size_t count = 0;
    for (; count < ALONE_MAX && link->overdue_alone.count > 0; count++)
        enqueue(take_overdue(link, &link->overdue_alone));
    return count;
}

/* Plain ones first and the others behind them, because calls are made of neighbours. */
static void send_round(hf__link *link, size_t most)
{
    hf__instant now = link->core->now;
    const hf_hold *first = first_of(&link->overdue); /* NULL: only some that were refused */
    hf__span interval = first != NULL ? first->watch.interval : hf__span_ms(0);
    hf__instant soon = hf__after(now, (hf__span){interval.ns / AHEAD_DIVISOR});
    hf_hold *others[SLOW_MAX];
    size_t plain_count = 0, other_count = 0;
    while (link->overdue.count < ROUND_MAX && take_due(link, soon))
        continue;
    hf__span pace = pace_for(link->overdue.count, (hf__span){interval.ns / PACE_DIVISOR});
    bool is_long = link->overdue.count > HF__BATCH_MAX;
    while (plain_count + other_count < most && other_count < SLOW_MAX && link->overdue.count > 0) {
        hf_hold *hold = take_overdue(link, &link->overdue);
        if (!hf__request_is_plain(hold)) {
            others[other_count++] = hold;
            continue;
        }
        enqueue(hold);
        if (++plain_count == FIRST_MAX && is_long)
            hf__link_pump(link);
    }
    for (size_t i = 0; i < other_count; i++)
        enqueue(others[i]);
    int64_t calls = calls_for(plain_count, HF__BATCH_MAX) + calls_for(other_count, HF__BATCH_SLOW) +
                    calls_for(enqueue_alone(link), ALONE_A_CALL);
    link->next_round = hf__after(now, (hf__span){calls * pace.ns});
    if (HF__MUTANT(OBSERVERS_FIRST) && link->core->observers.count > 0)
        link->next_round = hf__after(now, hf__span_ms(2000));
    link->server->next_round = hf__after(now, (hf__span){calls * pace.ns / SERVER_DIVISOR});
    hf__link_pump(link);
}

void hf__watch_note_lag(hf__link *link)
{
    hf__instant now = link->core->now;
    hf__span lag = hf__watch_lag(link);
    hf__server *server = link->server;
    bool was_behind = server->behind;
    if (lag.ns > 0)
        server->calm_at = hf__after(now, hf__span_ms(CALM_MS));
    server->behind = lag.ns > 0 || (was_behind && hf__before(now, server->calm_at));
    if (server->behind && !HF__MUTANT(LAG_REMEMBERED))
        arm(link, server->calm_at); /* perhaps there is no renewal by then */
    if (server->behind == was_behind)
        return;
    link->core->overloads += server->behind;
    if (server->behind)
        hf__log(link->core, HF_LOG_WARNING,
                "renewals at %s are %lld ms late; new locks wait until they are on time",
                link->server->url->display, (long long)hf__span_to_ms(lag));
    else
        hf__log(link->core, HF_LOG_INFO, "renewals at %s are on time again",
                link->server->url->display);
}

void hf__watch_renewals(hf__link *link)
{
    hf__instant now = link->core->now;
    while (take_due(link, now))
        continue;
    if (count_overdue(link) > 0 && room(link) > 0 && !hf__before(now, next_round(link)))
        send_round(link, room(link));
    if (count_overdue(link) > 0 && room(link) > 0)
        arm(link, now);
    arm(link, hf__wheel_next(&link->renewals));
    hf__watch_note_lag(link);
    for (int i = 0; i < link->core->config.links; i++)
        if (link->server->links[i].held_back.count > 0)
            hf__link_pump(&link->server->links[i]);
}

/* ---- State ---- */

static void set_state(hf_hold *hold, hf_state state, hf_reason reason)
{
    int before = atomic_load(&hold->state);
    if (HF__MUTANT(NO_JEOPARDY) && state == HF_JEOPARDY)
        return;
    if (before == (int)state && hold->reason == reason)
        return;
    hold->core->stats.jeopardies += before == HF_SAFE && state == HF_JEOPARDY;
    atomic_store(&hold->state, state);
    hold->reason = (unsigned char)reason;
    hf__tell_all(hold);
}

static hf__instant deadline_of(hf_hold *hold)
{
    return hf__after(hold->core->now, hf__hold_remaining(hold, hold->core->now));
}

static hf__instant late_at(const hf_hold *hold)
{
    return hold->watch.interval.ns > 0 ? hf__after(hold->watch.due, hold->watch.timeout)
                                       : HF__NEVER;
}

static hf__instant too_long_at(const hf_hold *hold)
{
    bool limited = hold->watch.max_hold.ns > 0 && !HF__MUTANT(IGNORE_MAX_HOLD);
    return limited ? hf__after(hold->granted, hold->watch.max_hold) : HF__NEVER;
}

static void stop_renewals(hf_hold *hold)
{
    if (hold->ballot != NULL) {
        hf__majority_stop_renewals(hold);
        return;
    }
    unplan(hold);
    if (hold->extends.count == 0)
        hf__link_withdraw(&hold->requests[HF__REQUEST_RENEW]);
}

static void look_at(hf_hold *hold, hf__instant when)
{
    hf__link *link = hold->link;
    hf__timers *timers = &hold->core->timers;
    bool with_others = hold->renewal > HF__PLANNED && !hold->watched_alone;
    /* A round that leaves before it is due puts off the next one by that much at most. */
    hf__instant due = hf__after(hold->watch.plan.due, hf__span_ms(ROUND_MAX_MS));
    bool after_renewal =
        hold->renewal == HF__PLANNED && hf__before(hf__later(due, next_round(link)), when);
    if (with_others && (!link->look_timer.set || hf__before(when, link->look_timer.due)))
        hf__timer_set(timers, &link->look_timer, when);
    if (with_others || after_renewal)
        hf__timer_clear(timers, &hold->timer);
    else
        hf__timer_set(timers, &hold->timer, when);
}

/* To look at one may end it, and others with it; so each has its own timer for that, which it keeps
 * until it is renewed: were all of them looked at whenever the next one is late, ten thousand late
 * ones would cost a hundred million looks. */
static void look_now(hf__list *holds)
{
    for (hf__node *n = hf__list_first(holds); n != NULL; n = hf__list_next(holds, n)) {
        hf_hold *hold = HF__ENTRY(n, hf_hold, watch.plan.node);
        if (!hold->watched_alone)
            hf__timer_set(&hold->core->timers, &hold->timer, hold->core->now);
        hold->watched_alone = true;
    }
}

void hf__watch_look_at_all(hf__link *link)
{
    look_now(&link->overdue);
    look_now(&link->overdue_alone);
    look_now(&link->under_way);
}

/* What its state is now, and when to look again. */
void hf__watch_look(hf_hold *hold)
{
    if (hf__hold_expired(hold)) {
        hf__hold_expire(hold, "the lease has ended");
        return;
    }
    hf__instant now = hold->core->now;
    hf__instant ends = deadline_of(hold);
    hf__instant warns = {ends.ns - hold->watch.warn.ns};
    hf__instant next = hf__before(now, warns) ? warns : ends;
    if (!hf__before(now, too_long_at(hold))) {
        stop_renewals(hold);
        set_state(hold, HF_JEOPARDY, HF_REASON_MAX_HOLD);
        next = ends;
    } else if (!hf__before(now, late_at(hold))) {
        set_state(hold, HF_JEOPARDY, HF_REASON_LATE);
        next = hf__earlier(ends, too_long_at(hold));
    } else if (hold->watch.warn.ns > 0 && !hf__before(now, warns)) {
        set_state(hold, HF_JEOPARDY, HF_REASON_NEAR);
        next = hf__earlier(hf__earlier(ends, late_at(hold)), too_long_at(hold));
    } else {
        set_state(hold, HF_SAFE, HF_REASON_NONE);
        next = hf__earlier(hf__earlier(next, late_at(hold)), too_long_at(hold));
    }
    look_at(hold, next);
}

/* ---- What happens to a hold ---- */

void hf__watch_renewed(hf_hold *hold, hf__instant sent)
{
    unplan(hold);
    hold->watch.due = hf__after(sent, hold->watch.interval);
    if (hold->watch.interval.ns > 0 && hold->reason != HF_REASON_MAX_HOLD && hold->ballot == NULL)
        plan(hold, hold->watch.due);
    hf__watch_look(hold);
}

/* One that is under way comes first. */
void hf__watch_replan(hf_hold *hold)
{
    hf__instant began = hf__hold_began(hold);
    if (hold->renewal != HF__UNDER_WAY || HF__MUTANT(TURN_REPLANS)) {
        hf__watch_renewed(hold, began);
        return;
    }
    hold->watch.due = hf__after(began, hold->watch.interval);
    hf__watch_look(hold);
}

void hf__watch_refused(hf_hold *hold)
{
    hf__span pause = {hold->watch.interval.ns / RETRY_DIVISOR};
    if (pause.ns < hf__span_ms(RETRY_MIN_MS).ns)
        pause = hf__span_ms(RETRY_MIN_MS);
    if (pause.ns > hf__span_ms(RETRY_MAX_MS).ns)
        pause = hf__span_ms(RETRY_MAX_MS);
    unplan(hold);
    plan(hold, hf__after(hold->core->now, pause));
    hf__timer_set(&hold->core->timers, &hold->timer, hold->core->now); /* for when to look again */
}

void hf__watch_end(hf_hold *hold)
{
    hf__timer_clear(&hold->core->timers, &hold->timer);
    hf__push_unlisten(hold);
    if (HF__MUTANT(RENEW_LOST) && hold->users > 0 && !hold->core->closing)
        return;
    stop_renewals(hold);
}
