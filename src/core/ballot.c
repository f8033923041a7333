/* SPDX-License-Identifier: MIT */
/* Winning a majority.
 *
 * A try asks all servers at once, without queueing, and is over as soon as it is certain what it
 * comes to: a majority of votes is there, or cannot be any more. If it failed because others have
 * the lock, and the caller may wait, the hold takes a ticket, later than all that the servers have
 * told of, and queues at every server that has not granted it; each server serves its queue in the
 * order of tickets. What was granted is kept, and renewed, but for votes that give way (vote.c): so
 * the earliest ticket gets every vote in the end, and two who have a part each do not wait for each
 * other for ever. Nor do they wait for a server that is silent: whoever has heard from a majority,
 * and could only win by a vote of the others, gives these a little time and queues as well. If so
 * many servers cannot be reached that there is no majority to be had, all votes are given back
 * until the next try: they would only be in the way of those who can.
 *
 * The fence is one that a majority knows of. Each server is proposed the same one, and normally
 * they all take it. If they disagree, the highest is made known to the votes that have another one,
 * and only when a majority has confirmed it, of votes that are still held, is the lock ours.
 *
 * Whatever ends without a majority is given back everywhere: also where no answer came. */
#include <string.h>

#include "base/memory.h"
#include "base/mutant.h"
#include "base/text.h"
#include "core/fail.h"
#include "core/quorum.h"

enum { PATIENCE_MIN_MS = 50 };

bool hf__ballot_new(hf_hold *main)
{
    main->ballot = hf__alloc(sizeof(*main->ballot));
    return main->ballot != NULL;
}

void hf__ballot_free(hf__ballot *ballot)
{
    if (ballot != NULL)
        hf__takeover_free(ballot->takeover);
    hf__free(ballot);
}

/* ---- Counting ---- */

typedef struct tally {
    int held;    /* votes that we have */
    int open;    /* that may still be granted by this try */
    int busy;    /* that somebody else has */
    int faults;  /* servers that did not say */
    int final;   /* of these, that will not say anything else */
    int unknown; /* of these, that may have granted it */
} tally;

static void count_failed(const hf_hold *vote, tally *c)
{
    hf_status status = vote->vote->call.error.status;
    if (status == HF_EBUSY) {
        c->busy++;
        return;
    }
    c->faults++;
    c->final += status != HF_OK && !hf__may_pass(status);
    c->unknown += status == HF_EUNKNOWN;
}

static tally count_votes(const hf_hold *main)
{
    tally c = {0};
    for (int i = 0; i < hf__servers_of(main); i++) {
        const hf_hold *vote = main->ballot->votes[i];
        if (vote == NULL)
            c.faults++; /* no memory for one */
        else if (hf__vote_is_held(vote))
            c.held += 1 + (HF__MUTANT(VOTE_TWICE) && vote->vote->counted_twice);
        else if (vote->stage == HF__HOLD_TRYING && !vote->vote->faulty)
            c.open++;
        else
            count_failed(vote, &c);
    }
    return c;
}

/* ---- The fence ---- */

/* How many of the votes are at servers that know this fence, and keep it in mind. */
static int count_agreeing(const hf_hold *main, uint64_t fence)
{
    int agreeing = 0;
    for (int i = 0; i < hf__servers_of(main); i++) {
        const hf_hold *vote = main->ballot->votes[i];
        if (hf__vote_is_held(vote) && vote->fence == fence &&
            vote->link->server->floor >= fence + main->range - 1)
            agreeing += 1 + (HF__MUTANT(VOTE_TWICE) && vote->vote->counted_twice);
    }
    return agreeing;
}

/* The fence that a majority agrees on; 0: there is none. */
static uint64_t find_agreed(const hf_hold *main, uint64_t *highest)
{
    *highest = 0;
    for (int i = 0; i < hf__servers_of(main); i++) {
        const hf_hold *vote = main->ballot->votes[i];
        if (!hf__vote_is_held(vote))
            continue;
        if (vote->fence > *highest)
            *highest = vote->fence;
        if (count_agreeing(main, vote->fence) >= hf__quorum_size(main->core))
            return vote->fence;
    }
    return HF__MUTANT(FENCE_NOT_RAISED) ? *highest : 0;
}

/* Servers that have not said yet who has the lock. One that has queued it has; so has one that has
 * refused it, where there is no subscription to queue with, and is only asked again. */
static int count_silent(const hf_hold *main)
{
    int silent = 0;
    for (int i = 0; i < hf__servers_of(main); i++) {
        const hf_hold *vote = main->ballot->votes[i];
        silent += vote != NULL && vote->stage == HF__HOLD_TRYING && !vote->vote->faulty &&
                  vote->place.number == 0 && vote->vote->call.error.status != HF_EBUSY;
    }
    return silent;
}

/* Whoever joins others of its owner is to have their fence, which a majority has if it is decided:
 * so those servers are waited for that may still say so. */
static bool may_agree(const hf_hold *main)
{
    int silent = count_silent(main);
    for (int i = 0; i < hf__servers_of(main) && main->owner_length > 0; i++) {
        const hf_hold *vote = main->ballot->votes[i];
        int alike = 0;
        for (int j = 0; j < hf__servers_of(main) && hf__vote_is_held(vote); j++)
            alike += hf__vote_is_held(main->ballot->votes[j]) &&
                     main->ballot->votes[j]->fence == vote->fence;
        if (alike > 0 && alike < hf__quorum_size(main->core) &&
            alike + silent >= hf__quorum_size(main->core))
            return true;
    }
    return false;
}

static void raise_fence(hf_hold *main, uint64_t fence)
{
    for (int i = 0; i < hf__servers_of(main); i++) {
        hf_hold *vote = main->ballot->votes[i];
        if (!hf__vote_is_held(vote))
            continue;
        hf__standing_reserve(vote->link->server, fence + main->range - 1);
        if (vote->fence == fence || vote->vote->raising)
            continue;
        vote->vote->raising = true;
        vote->fence_top = fence + main->range - 1;
        hf__link_submit(&vote->requests[HF__REQUEST_RENEW]);
    }
}

void hf__ballot_vote_raised(hf_hold *vote)
{
    vote->vote->raising = false;
    vote->fence = vote->fence_top - vote->range + 1;
    hf__ballot_check(vote->vote->main);
}

/* ---- Deciding ---- */

static void stop(hf_hold *main)
{
    main->core->undecided -= main->ballot->undecided;
    main->ballot->undecided = main->ballot->under_way = false;
}

/* Whoever has a vote and queues for others must hear of earlier tickets, wherever it has one. */
static void listen(hf_hold *main)
{
    main->core->undecided += !main->ballot->undecided;
    main->ballot->undecided = true;
    hf__push_want_all(main->core);
}

/* Who joins the owner there would have another fence. A copy takes its place. */
static void drop_others(hf_hold *main, uint64_t fence)
{
    for (int i = 0; i < hf__servers_of(main); i++)
        if (hf__vote_is_held(main->ballot->votes[i]) && main->ballot->votes[i]->fence != fence)
            hf__vote_drop(main->ballot->votes[i]);
}

static void decide(hf_hold *main, uint64_t fence)
{
    bool others_wait = false;
    for (int i = 0; i < hf__servers_of(main); i++)
        others_wait = others_wait || (hf__vote_is_held(main->ballot->votes[i]) &&
                                      main->ballot->votes[i]->place.passed);
    stop(main);
    if (main->owner_length > 0)
        drop_others(main, fence);
    hf__hold_move_deadline(main, hf__majority_deadline(main));
    hf__majority_begin(main);
    hf__acquire_take(main, fence, hf__majority_confirmed_at(main), others_wait);
}

void hf__ballot_end(hf_hold *main)
{
    stop(main);
    for (int i = 0; i < hf__servers_of(main); i++)
        if (main->ballot->votes[i] != NULL)
            hf__vote_drop(main->ballot->votes[i]);
}

static bool may_queue(const hf_hold *main)
{
    return main->call->wait_ms != 0 && !main->call->polls;
}

/* What the servers said, one after the other, as far as there is room. */
static void list_outcomes(const hf_hold *main, char *text, size_t size)
{
    size_t length = strlen(text);
    for (int i = 0; i < hf__servers_of(main) && length + 1 < size; i++) {
        const hf_hold *vote = main->ballot->votes[i];
        const char *name = main->core->servers[i].url->display;
        const char *said = vote != NULL ? vote->vote->call.error.text : "out of memory";
        if (hf__vote_is_held(vote))
            said = "granted";
        else if (vote != NULL && vote->stage == HF__HOLD_TRYING && said[0] == '\0')
            said = "no answer yet";
        bool names_itself = strncmp(said, name, strlen(name)) == 0;
        hf__format(text + length, size - length, "; %s%s%s", names_itself ? "" : name,
                   names_itself ? "" : ": ", said);
        length += strlen(text + length);
    }
}

/* A refusal is not a fault: with a majority of servers that answer, the lock is busy. */
static void explain(const hf_hold *main, const tally *c, hf_error *why)
{
    int needed = hf__quorum_size(main->core), others = hf__servers_of(main) - needed;
    hf_status status = HF_EBUSY;
    if (c->final > others)
        status = HF_ESERVER;
    else if (c->faults > others)
        status = c->held + c->unknown >= needed ? HF_EUNKNOWN : HF_EUNAVAILABLE;
    for (int i = 0; i < hf__servers_of(main) && status == HF_ESERVER; i++) {
        const hf_hold *vote = main->ballot->votes[i];
        hf_status said = vote != NULL ? vote->vote->call.error.status : HF_OK;
        if (said != HF_OK && !hf__may_pass(said))
            status = said;
    }
    hf__fail(why, status, "%d of %d servers granted it", c->held, hf__servers_of(main));
    list_outcomes(main, why->text, sizeof(why->text));
}

static void fail_try(hf_hold *main, const tally *c)
{
    hf_error why;
    explain(main, c, &why);
    hf__ballot_end(main);
    if (hf__may_pass(why.status))
        hf__acquire_try_over(main, &why, -1);
    else
        hf__acquire_end(main, why.status, why.text);
}

/* No two holds of a client have the same. */
static void take_ticket(hf_hold *main)
{
    hf__core *core = main->core;
    if (core->last_ticket < main->ballot->seen)
        core->last_ticket = main->ballot->seen;
    main->ballot->ticket = HF__MUTANT(TICKET_ZERO) ? 1 : ++core->last_ticket;
}

/* The lock is somebody's: queues where it has no vote, or one that somebody with an earlier ticket
 * waits for. One that has not been answered yet follows when it is. */
static void queue_up(hf_hold *main, const tally *c)
{
    hf__ballot *ballot = main->ballot;
    explain(main, c, &main->call->error);
    main->call->next_try = main->call->try_ends = HF__NEVER;
    hf__acquire_set_timer(main->call);
    if (!main->call->contended)
        main->core->stats.contentions++;
    main->call->contended = true;
    take_ticket(main);
    listen(main);
    hf__deaf_plan(main);
    uint64_t number = hf__vote_number(main);
    for (int i = 0; i < hf__servers_of(main); i++) {
        hf_hold *vote = ballot->votes[i];
        if (vote != NULL && !vote->vote->inquired &&
            (hf__vote_is_held(vote) || vote->stage == HF__HOLD_TRYING))
            continue;
        if (vote != NULL)
            hf__vote_drop(vote);
        hf__vote_start(main, i, number, true);
    }
}

/* Whether a majority has said who has the lock, and it is not ours by that. */
static bool is_refused(const hf_hold *main, const tally *c)
{
    int quorum = hf__quorum_size(main->core);
    return c->held < quorum && c->held + c->busy >= quorum && !HF__MUTANT(SILENCE_AWAITED);
}

/* The others have as long again as those that have answered, for they are not much further away;
 * one that is gone would let those wait until the try ends who wait for what we have. */
static void hurry(hf_hold *main)
{
    hf__call *call = main->call;
    hf__instant now = main->core->now;
    main->ballot->try_ends = hf__later(main->ballot->try_ends, call->try_ends);
    hf__instant began = {main->ballot->try_ends.ns - main->core->config.call_timeout.ns};
    hf__instant until = hf__after(now, hf__between(began, now));
    until = hf__later(until, hf__after(now, hf__span_ms(PATIENCE_MIN_MS)));
    call->try_ends = hf__earlier(call->try_ends, until);
    hf__acquire_set_timer(call);
}

void hf__ballot_check(hf_hold *main)
{
    hf__ballot *ballot = main->ballot;
    uint64_t highest;
    if (main->stage != HF__HOLD_TRYING || !ballot->under_way)
        return;
    tally c = count_votes(main);
    int quorum = hf__quorum_size(main->core);
    if (c.held >= quorum) {
        uint64_t agreed = find_agreed(main, &highest);
        if (agreed == 0 && !may_agree(main))
            raise_fence(main, highest);
        else if (agreed > 0 && hf__majority_deadline(main) > main->core->now.ns)
            decide(main, agreed);
    } else if (c.faults > hf__servers_of(main) - quorum) {
        fail_try(main, &c);
    } else if (c.held + c.open < quorum && (c.held + c.busy >= quorum || c.open == 0)) {
        if (!may_queue(main))
            fail_try(main, &c);
        else if (ballot->ticket == 0)
            queue_up(main, &c);
    } else if (ballot->ticket == 0 && is_refused(main, &c) && may_queue(main)) {
        hurry(main);
    }
}

void hf__ballot_check_all(hf__core *core)
{
    for (size_t left = core->holds.count; left > 0 && core->holds.count > 0; left--) {
        hf_hold *hold = HF__ENTRY(hf__list_rotate(&core->holds), hf_hold, node);
        if (hold->ballot != NULL && hold->ballot->under_way) {
            hf__ballot_check(hold);
            hf__hold_settle(hold);
        }
    }
}

void hf__ballot_vote_granted(hf_hold *vote)
{
    hf_hold *main = vote->vote->main;
    if (vote->range == 0)
        vote->fence = vote->fence_top;
    if (main->stage == HF__HOLD_TRYING)
        hf__ballot_check(main);
    else if (main->stage == HF__HOLD_HELD && main->owner_length > 0 && vote->range > 0 &&
             vote->fence != main->fence)
        hf__vote_lost(vote, HF_REASON_GONE); /* who joins there would have another fence */
    else if (main->stage == HF__HOLD_HELD)
        hf__majority_granted(vote);
    hf__hold_settle(main);
}

/* Of a hold that is decided, it is only one vote less. */
void hf__ballot_vote_failed(hf_hold *vote)
{
    hf_hold *main = vote->vote->main;
    bool ended = vote->stage != HF__HOLD_TRYING;
    int server = hf__vote_server(vote);
    if (main->stage == HF__HOLD_HELD && ended) {
        hf__vote_drop(vote);
        main->ballot->missing[server] = main->core->now;
    } else if (main->stage == HF__HOLD_TRYING && ended && main->ballot->ticket > 0 &&
               hf__may_pass(vote->vote->call.error.status)) {
        hf__vote_drop(vote);
        hf__vote_start(main, server, hf__vote_number(main), true);
    }
    hf__ballot_check(main);
    hf__hold_settle(main);
}

/* ---- Trying ---- */

/* One that is under way goes on, where there was no memory for a vote. */
void hf__ballot_go(hf_hold *main)
{
    hf__ballot *ballot = main->ballot;
    bool waits = ballot->ticket > 0;
    if (ballot->under_way && !waits) {
        hf__ballot_check(main);
        return;
    }
    uint64_t number = hf__vote_number(main);
    ballot->proposal = 0;
    if (waits) {
        listen(main);
        main->call->try_ends = HF__NEVER;
        hf__acquire_set_timer(main->call);
        hf__deaf_give_way(main);
    }
    for (int i = 0; i < hf__servers_of(main); i++)
        if (ballot->votes[i] == NULL)
            hf__vote_start(main, i, number, waits);
    ballot->under_way = true;
    hf__ballot_check(main);
}

/* A server that has not answered by now is a fault. One that has queued it has. */
static void note_silence(hf_hold *main)
{
    for (int i = 0; i < hf__servers_of(main); i++) {
        hf_hold *vote = main->ballot->votes[i];
        if (vote == NULL || vote->stage != HF__HOLD_TRYING || vote->place.number > 0)
            continue;
        hf_error *why = &vote->vote->call.error;
        const char *name = vote->link->server->url->display;
        vote->vote->faulty = true;
        if (vote->requests[HF__REQUEST_ACQUIRE].place == HF__IN_FLIGHT || vote->copy_lost)
            hf__fail(why, HF_EUNKNOWN, "%s gave no answer in time", name);
        else
            hf__flow_trouble(vote->link, why);
    }
}

void hf__ballot_try_ends(hf_hold *main)
{
    tally c = count_votes(main);
    bool queues = is_refused(main, &c) && may_queue(main);
    if (!queues && hf__before(main->core->now, main->ballot->try_ends)) {
        main->call->try_ends = main->ballot->try_ends; /* it has got votes since it hurried */
        hf__acquire_set_timer(main->call);
        return;
    }
    note_silence(main);
    c = count_votes(main);
    if (queues)
        queue_up(main, &c);
    else
        fail_try(main, &c);
}

/* The caller's time is up, perhaps between two tries. */
void hf__ballot_give_up(hf_hold *main, const hf_error *last)
{
    hf_error why = *last;
    if (main->ballot->under_way) {
        note_silence(main);
        tally c = count_votes(main);
        explain(main, &c, &why);
    } else if (why.status == HF_OK) {
        hf__fail(&why, HF_EUNAVAILABLE, "no connection in time");
    }
    hf__acquire_end(main, why.status, why.text);
}
