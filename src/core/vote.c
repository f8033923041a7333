/* SPDX-License-Identifier: MIT */
/* One vote: a hold at one server, acquired by a call that is the vote's own. The files for holds do
 * the work; here is how a vote begins and ends, and what its ballot hears of it.
 *
 * A vote gives way to an earlier ticket while its hold is not decided: it is given back, and
 * another one with a number of its own queues in its place, behind it on the same connection. The
 * number must be a new one, for a grant to the old one may be on its way. Whoever holds a vote
 * hears of earlier tickets by message; one that may have missed a message gives way as if it had
 * come, which costs nothing but the way: if nobody was there, it has the vote again. */
#include <string.h>

#include "base/memory.h"
#include "base/mutant.h"
#include "base/text.h"
#include "core/quorum.h"

enum {
    VALUE_MAX = 512 + 20, /* that of a token, which anybody may have made, with a number */
    FIRST_TICKET = 1      /* of a hold that is decided: before all others */
};

/* ---- Beginning ---- */

/* The value of the hold, with another number. */
static size_t make_value(const hf_hold *main, uint64_t number, char *place)
{
    hf__slice value = hf__hold_value(main);
    const char *colon = memchr(value.bytes, ':', value.length);
    size_t rest = colon != NULL ? value.length - (size_t)(colon - value.bytes) : 0;
    const char *at = rest > 0 ? memchr(colon, '@', rest) : NULL;
    if (at == NULL)
        return 0; /* a token's, which is no value of ours */
    char *end = hf__slice_put(place, (hf__slice){value.bytes, (size_t)(colon + 1 - value.bytes)});
    end += hf__digits(end, number);
    end = hf__slice_put(end, (hf__slice){at, (size_t)(value.bytes + value.length - at)});
    return (size_t)(end - place);
}

static hf_hold *make(hf_hold *main, uint64_t number)
{
    char value[VALUE_MAX];
    hf__wish wish = {.who = {.number = number, .thread = main->thread},
                     .name = hf__hold_key(main),
                     .owner = hf__hold_owner(main),
                     .value = {value, make_value(main, number, value)},
                     .lease = main->lease,
                     .lease_before = main->longest_lease,
                     .renew_interval = main->watch.interval,
                     .renew_timeout = main->watch.timeout};
    if (main->watch.interval.ns == 0) /* votes are kept until they are decided */
        wish.renew_interval = (hf__span){main->lease.ns / 3};
    hf_hold *vote = hf__hold_new(&wish);
    if (vote == NULL)
        return NULL;
    vote->vote = hf__alloc(sizeof(*vote->vote));
    if (vote->vote == NULL) {
        hf__hold_drop(vote);
        return NULL;
    }
    vote->vote->main = main;
    vote->range =
        main->stage == HF__HOLD_HELD ? 0 : main->range; /* or a copy: no fence of its own */
    vote->users = 1;                                    /* its ballot */
    return vote;
}

static void place(hf_hold *vote, int server, hf__hold_stage stage)
{
    hf_hold *main = vote->vote->main;
    main->ballot->votes[server] = vote;
    vote->core = main->core;
    vote->link = hf__server_link(&main->core->servers[server], vote->slot);
    vote->stage = (unsigned char)stage;
    hf__list_append(&vote->core->holds, &vote->node);
}

static void prepare_call(hf_hold *vote, bool waits)
{
    const hf__call *of_main = vote->vote->main->call;
    vote->vote->call = (hf__call){.kind = HF__CALL_ACQUIRE,
                                  .hold = vote,
                                  .vote = vote,
                                  .wait_ms = waits ? -1 : 0,
                                  .retries_limited = !waits,
                                  .retry_interval = hf__span_ms(100),
                                  .started = vote->core->now,
                                  .deadline = HF__NEVER,
                                  .timer = {.kind = HF__TIMER_CALL}};
    if (of_main != NULL)
        vote->vote->call.retry_interval = of_main->retry_interval;
    vote->call = &vote->vote->call;
}

uint64_t hf__vote_number(hf_hold *main)
{
    hf__ballot *ballot = main->ballot;
    if (ballot->numbers < HF__NUMBER_STEP)
        ballot->numbers++;
    return main->number + ballot->numbers - 1;
}

/* There is no memory for a vote now. */
static void try_again(hf_hold *main)
{
    hf__call *call = main->call;
    if (main->stage != HF__HOLD_TRYING || main->ballot->ticket == 0)
        return;
    call->next_try = hf__after(main->core->now, call->retry_interval);
    hf__acquire_set_timer(call);
}

bool hf__vote_start(hf_hold *main, int server, uint64_t number, bool waits)
{
    bool used_up = main->ballot->numbers == HF__NUMBER_STEP;
    hf_hold *vote = used_up ? NULL : make(main, number);
    if (vote == NULL) {
        try_again(main);
        return false;
    }
    place(vote, server, HF__HOLD_TRYING);
    prepare_call(vote, waits);
    hf__acquire_go(vote);
    return true;
}

bool hf__vote_is_value(const hf_hold *main, uint64_t number, hf__slice value)
{
    char own[VALUE_MAX];
    size_t length = make_value(main, number, own);
    return length > 0 && length == value.length && memcmp(own, value.bytes, length) == 0;
}

/* Its renewal decides, as for any hold that is taken up (attach.c). A grant since its fence was
 * told is noticed by that. */
bool hf__vote_attach(hf_hold *main, int server, uint64_t number, uint64_t fence)
{
    hf_hold *vote = make(main, number);
    if (vote == NULL)
        return false;
    place(vote, server, HF__HOLD_HELD);
    vote->attaching = true;
    vote->range = 1;
    vote->fence = vote->fence_top = fence;
    vote->copy_lost = main->copy_lost;
    vote->watch.interval = main->watch.interval;
    atomic_store(&vote->deadline_ns, HF__NEVER.ns); /* which nobody looks at */
    vote->vote->extend = (hf__call){.kind = HF__CALL_ATTACH,
                                    .hold = vote,
                                    .vote = vote,
                                    .lease = main->lease,
                                    .started = main->core->now,
                                    .timer = {.kind = HF__TIMER_CALL}};
    hf__list_append(&vote->extends, &vote->vote->extend.node);
    hf__link_submit(&vote->requests[HF__REQUEST_RENEW]);
    return true;
}

/* ---- The end ---- */

bool hf__vote_is_held(const hf_hold *vote)
{
    return vote != NULL && vote->stage == HF__HOLD_HELD && !vote->attaching;
}

bool hf__vote_of_nobody(const hf_hold *hold)
{
    return hold->vote != NULL && hold->vote->main == NULL;
}

hf_hold *hf__vote_main(const hf_hold *vote)
{
    return vote->vote->main;
}

bool hf__vote_forgets(const hf_hold *hold)
{
    return hold->vote != NULL && hold->vote->forgets;
}

/* What is done for a vote that is held ends. */
static void stop(hf_hold *vote)
{
    hf__watch_end(vote);
    hf__renew_end_calls(vote, HF_ECANCELLED, "");
}

static void let_go(hf_hold *vote)
{
    hf_hold *main = vote->vote->main;
    int server = hf__vote_server(vote);
    if (main != NULL && main->ballot->votes[server] == vote)
        main->ballot->votes[server] = NULL;
    vote->vote->main = NULL;
    vote->users = 0;
    hf__standing_leave_gate(vote);
}

void hf__vote_drop(hf_hold *vote)
{
    const hf_hold *main = vote->vote->main;
    vote->vote->forgets =
        main != NULL && (main->stage == HF__HOLD_TRYING ? HF__MUTANT(LATE_GRANT_KEPT)
                                                        : HF__MUTANT(RELEASE_GRANTERS));
    let_go(vote);
    if (vote->stage == HF__HOLD_TRYING) {
        hf__acquire_end(vote, HF_ECANCELLED, "");
    } else if (vote->stage == HF__HOLD_HELD) {
        stop(vote);
        hf__release_in_background(vote);
    }
    hf__hold_settle(vote);
}

void hf__vote_forget(hf_hold *vote)
{
    let_go(vote);
    if (vote->stage == HF__HOLD_TRYING) {
        hf__timer_clear(&vote->core->timers, &vote->vote->call.timer);
        hf__queue_leave(vote);
        hf__hold_over(vote);
    } else if (vote->stage == HF__HOLD_HELD) {
        stop(vote);
        hf__hold_over(vote);
    }
    hf__hold_settle(vote);
}

/* ---- Giving way ---- */

void hf__vote_yield(hf_hold *vote)
{
    hf_hold *main = vote->vote->main;
    int server = hf__vote_server(vote);
    uint64_t number = HF__MUTANT(YIELD_OLD_ID) ? vote->number : hf__vote_number(main);
    hf__vote_drop(vote);
    hf__vote_start(main, server, number, true);
}

static bool is_undecided(const hf_hold *main)
{
    return main != NULL && main->stage == HF__HOLD_TRYING && main->ballot->ticket > 0;
}

/* Tickets are numbers, and those with the same number are in the order of their clients. */
static bool is_earlier(const hf_hold *main, uint64_t ticket, hf__slice client)
{
    if (ticket != main->ballot->ticket)
        return ticket < main->ballot->ticket;
    return client.length == 32 && memcmp(client.bytes, main->core->config.client_id, 32) < 0;
}

/* "<ticket> <client>" */
void hf__vote_inquired(hf_hold *vote, hf__slice rest)
{
    hf_hold *main = vote->vote->main;
    uint64_t ticket;
    if (main == NULL)
        return;
    hf__cohort_passed_over(main);
    vote->vote->inquired = true; /* a ticket that is still to be taken will be a later one */
    bool decided = main->stage == HF__HOLD_HELD && HF__MUTANT(YIELD_DECIDED);
    if ((!is_undecided(main) && !decided) || !hf__push_number(&rest, &ticket) || ticket == 0)
        return;
    bool queues = vote->stage == HF__HOLD_TRYING;
    if (queues && HF__MUTANT(INQUIRE_DROPPED))
        return;
    if (is_earlier(main, ticket, rest))
        hf__vote_yield(vote);
}

void hf__vote_check_server(hf__server *server)
{
    hf__list *holds = &server->core->holds;
    for (size_t left = holds->count; left > 0 && holds->count > 0; left--) {
        hf_hold *vote = HF__ENTRY(hf__list_rotate(holds), hf_hold, node);
        if (vote->vote != NULL && vote->link->server == server && hf__vote_is_held(vote) &&
            is_undecided(vote->vote->main))
            hf__vote_yield(vote);
    }
}

/* ---- What the ballot hears ---- */

void hf__vote_called(hf__call *call)
{
    hf_hold *vote = call->vote;
    hf__vote *v = vote->vote;
    if (call == &v->extend) {
        v->extending = false;
        if (v->main != NULL && call->kind == HF__CALL_EXTEND)
            hf__majority_extended(vote, &call->error);
        else if (v->main != NULL && call->error.status != HF_OK)
            hf__takeover_refused(vote, &call->error); /* else its confirmation says more */
        return;
    }
    if (v->main == NULL)
        return;
    if (call->error.status == HF_OK) {
        v->faulty = false;
        v->counted_twice = vote->requests[HF__REQUEST_ACQUIRE].unanswered;
        hf__ballot_vote_granted(vote);
    } else {
        v->faulty = call->error.status != HF_EBUSY;
        hf__ballot_vote_failed(vote);
    }
}

void hf__vote_tried(hf_hold *vote, const hf_error *why)
{
    if (vote->vote == NULL || vote->vote->main == NULL)
        return;
    vote->vote->faulty = why->status != HF_EBUSY;
    hf__ballot_vote_failed(vote);
}

void hf__vote_seen(hf_hold *vote, uint64_t ticket)
{
    hf_hold *main = vote->vote != NULL ? vote->vote->main : NULL;
    if (main != NULL && main->ballot->seen < ticket)
        main->ballot->seen = ticket;
}

void hf__vote_granted(hf_hold *vote, hf__instant sent, bool others_wait)
{
    hf__standing_leave_gate(vote); /* a message may come while its check waits there */
    vote->vote->confirmed = sent;
    vote->place.passed = others_wait;
    /* It has joined its owner past those who wait, and gives way if it has to wait itself. */
    vote->vote->inquired = vote->vote->inquired || others_wait;
}

void hf__vote_confirmed(hf_hold *vote, hf__instant sent)
{
    hf__vote *v = vote->vote;
    bool raised = v->raise_sent;
    v->confirmed = hf__later(v->confirmed, sent);
    v->raise_sent = false;
    v->healed = false;
    if (v->main == NULL)
        return;
    if (raised)
        hf__ballot_vote_raised(vote);
    else if (v->raising)
        hf__link_submit(&vote->requests[HF__REQUEST_RENEW]);
    if (v->main != NULL && v->main->attaching)
        hf__takeover_confirmed(vote);
    else if (v->main != NULL && v->main->stage == HF__HOLD_HELD)
        hf__majority_confirmed(vote);
    else if (v->main != NULL)
        hf__ballot_check(v->main); /* a floor that it waits for may have been refused */
}

/* All servers that a try asks are proposed the same, though it may take a while until the last of
 * them is connected. */
static uint64_t propose_for(hf__ballot *ballot, uint64_t usual)
{
    if (ballot->proposal == 0)
        ballot->proposal = usual;
    return ballot->proposal;
}

/* Above those of its own, in case that the server has forgotten them; or that of the hold of which
 * it is a copy. */
uint64_t hf__vote_proposal(const hf_hold *vote)
{
    const hf_hold *main = vote->vote->main;
    if (vote->range == 0 && main != NULL)
        return main->fence_top + 1; /* from which the server counts back */
    uint64_t own = vote->fence_top + 1, ticket = hf__vote_ticket(vote);
    uint64_t usual = hf__standing_propose(vote->core);
    if (main != NULL && vote->stage == HF__HOLD_TRYING && main->ballot->ticket == 0)
        return propose_for(main->ballot, usual);
    if (own < ticket)
        own = ticket; /* who comes later is told of the fence, and takes a later one */
    return own > usual ? own : usual;
}

uint64_t hf__vote_ticket(const hf_hold *vote)
{
    const hf_hold *main = vote->vote->main;
    if (main == NULL || vote->vote->call.wait_ms == 0)
        return 0;
    return main->stage == HF__HOLD_HELD ? FIRST_TICKET : main->ballot->ticket;
}

bool hf__vote_is_raising(const hf_hold *hold)
{
    return hold->vote != NULL && hold->vote->raising;
}

void hf__vote_raise_sent(hf_hold *vote)
{
    vote->vote->raise_sent = true;
}

/* Whatever the reason, the server may still have it, if only because our clock is ahead. */
void hf__vote_lost(hf_hold *vote, hf_reason reason)
{
    hf_hold *main = vote->vote->main;
    int server = hf__vote_server(vote);
    if (main == NULL)
        return;
    bool held = main->stage == HF__HOLD_HELD;
    if (main->attaching) {
        hf__vote_forget(vote); /* nothing of it is ours yet */
        hf__takeover_lost(main, server);
        return;
    }
    hf__vote_drop(vote);
    if (held)
        hf__majority_lost(main, server, reason);
    else if (main->stage == HF__HOLD_TRYING && main->ballot->ticket > 0)
        hf__vote_start(main, server, hf__vote_number(main), true);
    else if (main->stage == HF__HOLD_TRYING)
        hf__ballot_check(main);
}

/* It is given back for its hold, which wants to know what came of it; also if a grant may be on its
 * way. */
bool hf__vote_release(hf_hold *vote)
{
    if (vote->stage == HF__HOLD_HELD) {
        stop(vote);
        hf__release_in_background(vote);
    } else if (vote->stage == HF__HOLD_TRYING) {
        vote->vote->forgets = HF__MUTANT(RELEASE_GRANTERS);
        hf__standing_leave_gate(vote);
        hf__acquire_end(vote, HF_ECANCELLED, "");
    }
    return vote->stage == HF__HOLD_RELEASING;
}

void hf__vote_unreachable(hf_hold *vote)
{
    hf_hold *main = vote->vote->main;
    int server = hf__vote_server(vote);
    if (main == NULL || main->stage != HF__HOLD_RELEASING)
        return;
    let_go(vote);
    hf__handback_unheard(main, server, vote->requests[HF__REQUEST_RELEASE].unanswered);
}

void hf__vote_released(hf_hold *vote, hf__outcome outcome)
{
    hf_hold *main = vote->vote->main;
    int server = hf__vote_server(vote);
    if (main == NULL || main->stage != HF__HOLD_RELEASING)
        return; /* one that ended without a grant, and was given back in case that there was one */
    let_go(vote);
    hf__handback_released(main, server, outcome);
}
