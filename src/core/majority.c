/* SPDX-License-Identifier: MIT */
/* Keeping a majority. Each vote is renewed by itself, at its own server, and has a deadline of its
 * own; the hold lasts until the q-th largest of them, for until then that many servers have it. So
 * one server that is slow or silent delays nothing, and a hold is lost when the q-th vote is.
 *
 * A server that has lost its copy is given a new one, but only once a majority of the other votes
 * was renewed after the loss was found: whoever has no majority must not make himself one. It
 * queues there before everybody else, so that one who waits, and has got the vote meanwhile, gives
 * way. The new copy counts from its first renewal on. */
#include "base/mutant.h"
#include "core/quorum.h"

static bool counts(const hf_hold *vote)
{
    return hf__vote_is_held(vote) && !vote->vote->healed;
}

/* ---- The q-th largest ---- */

static void insert(int64_t *sorted, int count, int64_t value)
{
    int at = count;
    for (; at > 0 && sorted[at - 1] < value; at--)
        sorted[at] = sorted[at - 1];
    sorted[at] = value;
}

/* The n-th largest of what the votes that count have; 0: there are not so many. */
static int64_t find_nth(const hf_hold *main, int n, int64_t (*of)(const hf_hold *vote))
{
    int64_t sorted[HF_SERVERS_MAX + 1] = {0};
    int count = 0;
    for (int i = 0; i < hf__servers_of(main); i++)
        if (counts(main->ballot->votes[i]))
            insert(sorted, count++, of(main->ballot->votes[i]));
    return sorted[n - 1];
}

static int64_t deadline_of(const hf_hold *vote)
{
    return atomic_load(&vote->deadline_ns);
}

static int64_t confirmed_of(const hf_hold *vote)
{
    return vote->vote->confirmed.ns;
}

int64_t hf__majority_deadline(const hf_hold *main)
{
    return find_nth(main, HF__MUTANT(DEADLINE_FIRST) ? 1 : hf__quorum_size(main->core),
                    deadline_of);
}

hf__instant hf__majority_confirmed_at(const hf_hold *main)
{
    return (hf__instant){find_nth(main, hf__quorum_size(main->core), confirmed_of)};
}

/* ---- Renewals ---- */

static void set_interval(hf_hold *vote, hf__span interval)
{
    vote->watch.interval = interval;
    hf__watch_renewed(vote, vote->vote->confirmed);
}

void hf__majority_replan(hf_hold *main)
{
    for (int i = 0; i < hf__servers_of(main); i++) {
        hf_hold *vote = main->ballot->votes[i];
        if (hf__vote_is_held(vote) && vote->watch.interval.ns != main->watch.interval.ns)
            set_interval(vote, main->watch.interval);
    }
}

void hf__majority_stop_renewals(hf_hold *main)
{
    for (int i = 0; i < hf__servers_of(main); i++)
        if (hf__vote_is_held(main->ballot->votes[i]))
            set_interval(main->ballot->votes[i], hf__span_ms(0));
}

/* What was renewed while it was not decided is renewed as the application wants it. */
void hf__majority_begin(hf_hold *main)
{
    main->ballot->confirmed = hf__majority_confirmed_at(main);
    hf__majority_replan(main);
    for (int i = 0; i < hf__servers_of(main); i++) {
        hf_hold *vote = main->ballot->votes[i];
        main->ballot->missing[i] = main->core->now;
        if (vote != NULL && vote->stage != HF__HOLD_HELD && vote->stage != HF__HOLD_TRYING)
            hf__vote_drop(vote);
    }
}

/* ---- Copies that were lost ---- */

static bool may_heal(const hf_hold *main, int server)
{
    int renewed = 0;
    for (int i = 0; i < hf__servers_of(main); i++) {
        const hf_hold *vote = main->ballot->votes[i];
        renewed += counts(vote) && hf__before(main->ballot->missing[server], vote->vote->confirmed);
    }
    return renewed >= hf__quorum_size(main->core) || HF__MUTANT(HEALED_SAME_ROUND);
}

static void heal(hf_hold *main)
{
    for (int i = 0; i < hf__servers_of(main); i++) {
        hf__ballot *ballot = main->ballot;
        if (ballot->votes[i] != NULL || !may_heal(main, i))
            continue;
        ballot->missing[i] = main->core->now;
        if (hf__vote_start(main, i, hf__vote_number(main), true) && ballot->votes[i] != NULL)
            ballot->votes[i]->vote->healed = !HF__MUTANT(HEALED_COUNTED);
    }
}

/* ---- The deadline ---- */

/* Later than before, if enough votes have been renewed; earlier, if one was lost. */
static void settle_deadline(hf_hold *main)
{
    int64_t deadline = hf__majority_deadline(main);
    hf__instant confirmed = hf__majority_confirmed_at(main);
    bool renewed = hf__before(main->ballot->confirmed, confirmed);
    if (!hf__hold_move_deadline(main, deadline)) {
        hf__hold_expire(main, "the lease ended before a majority had renewed it");
        return;
    }
    main->core->stats.renewals += renewed;
    main->ballot->confirmed = hf__later(main->ballot->confirmed, confirmed);
    hf__watch_renewed(main, main->ballot->confirmed);
}

void hf__majority_confirmed(hf_hold *vote)
{
    hf_hold *main = vote->vote->main;
    settle_deadline(main);
    if (main->stage == HF__HOLD_HELD && atomic_load(&main->state) != HF_LOST)
        heal(main);
}

void hf__majority_lost(hf_hold *main, int server, hf_reason reason)
{
    main->ballot->missing[server] = main->core->now;
    main->ballot->extended &= ~(1U << server); /* by a vote that is no more */
    if (atomic_load(&main->state) == HF_LOST)
        return;
    /* Whoever breaks a lock breaks it everywhere: it must not be put together again. */
    if (reason == HF_REASON_BROKEN || hf__majority_deadline(main) <= main->core->now.ns)
        hf__hold_lose(main, reason,
                      reason == HF_REASON_BROKEN
                          ? hf_reason_text(reason)
                          : "a majority of the servers does not have it any more");
    else
        settle_deadline(main);
}

/* Votes that last longer are of no use to anybody, and in the way of those who wait. */
void hf__majority_over(hf_hold *main)
{
    for (int i = 0; i < hf__servers_of(main); i++)
        if (main->ballot->votes[i] != NULL)
            hf__vote_drop(main->ballot->votes[i]);
}

/* ---- Extensions ---- */

static bool has_extended(const hf_hold *main, int server)
{
    return (main->ballot->extended & 1U << server) != 0;
}

/* Those that may still take part, and those that have. */
static void count_extensions(const hf_hold *main, int *open, int *done)
{
    *open = *done = 0;
    for (int i = 0; i < hf__servers_of(main); i++) {
        const hf_hold *vote = main->ballot->votes[i];
        *done += counts(vote) && has_extended(main, i);
        *open += counts(vote) && !has_extended(main, i) && vote->vote->extending;
    }
}

static void extend_vote(hf_hold *vote, hf__span lease)
{
    hf__call *call = &vote->vote->extend;
    if (vote->vote->extending && call->lease.ns >= lease.ns)
        return; /* an earlier one, which asks for as much */
    if (vote->vote->extending) {
        call->lease = lease; /* goes again if a copy for less is under way */
        if (vote->longest_lease.ns < lease.ns)
            vote->longest_lease = lease;
        return;
    }
    *call = (hf__call){.kind = HF__CALL_EXTEND,
                       .hold = vote,
                       .vote = vote,
                       .lease = lease,
                       .timer = {.kind = HF__TIMER_CALL}};
    vote->vote->extending = true;
    hf__renew_start(call);
}

void hf__majority_extend(hf_hold *main)
{
    hf__span lease;
    if (main->ballot->extending || !hf__renew_first(main, &lease))
        return;
    main->ballot->extending = true;
    main->ballot->extended = 0;
    for (int i = 0; i < hf__servers_of(main); i++)
        if (hf__vote_is_held(main->ballot->votes[i]))
            extend_vote(main->ballot->votes[i], lease);
}

/* One more than there were: it is renewed as the application wants it, not as the ballot did, and
 * takes part in an extension that is under way. */
void hf__majority_granted(hf_hold *vote)
{
    hf_hold *main = vote->vote->main;
    bool stopped = main->reason == HF_REASON_MAX_HOLD;
    hf__span interval = stopped ? hf__span_ms(0) : main->watch.interval, lease;
    if (vote->watch.interval.ns != interval.ns)
        set_interval(vote, interval);
    hf__majority_confirmed(vote);
    if (main->ballot->extending && hf__vote_is_held(vote) && hf__renew_first(main, &lease))
        extend_vote(vote, lease);
}

/* That a vote is lost is not to say that the hold is. */
static void end_extension(hf_hold *main, const hf_error *outcome)
{
    if (outcome->status == HF_ELOST && hf__majority_deadline(main) > main->core->now.ns)
        hf__renew_end_first(main, HF_EUNAVAILABLE, "too few servers have extended it");
    else
        hf__renew_end_first(main, outcome->status, outcome->text);
}

void hf__majority_extended(hf_hold *vote, const hf_error *outcome)
{
    hf_hold *main = vote->vote->main;
    int quorum = hf__quorum_size(main->core), open, done;
    if (!main->ballot->extending || main->stage != HF__HOLD_HELD)
        return;
    if (outcome->status == HF_OK)
        main->ballot->extended |= 1U << hf__vote_server(vote);
    count_extensions(main, &open, &done);
    if (done < quorum && done + open >= quorum)
        return;
    main->ballot->extending = false;
    if (done >= quorum)
        settle_deadline(main);
    if (!hf__renew_first(main, &(hf__span){0}))
        return; /* it was lost over this */
    if (done >= quorum)
        hf__renew_end_first(main, HF_OK, "");
    else
        end_extension(main, outcome);
    hf__majority_extend(main);
}
