/* SPDX-License-Identifier: MIT */
/* Holds on a quorum that go from one process to another; attach.c does the same for one server.
 *
 * A token has the value of the hold. Its votes have the same but for the number, and all numbers of
 * a hold lie in one step, which no other hold of its client uses: so each server is asked who has
 * the lock, and where that is a vote of ours, it is taken up with the number that it has there, by
 * a renewal, like the hold of any token. Nothing is held before a majority has confirmed its vote.
 * If that does not come about, the votes are let go of as they are, for they are not ours to give
 * back.
 *
 * When a majority is there, the others are waited for a little longer, because a process that has a
 * token may only want to renew or release it, and that should reach every server that can be
 * reached. What is answered still later becomes a vote as long as the hold is held.
 *
 * Usually a vote can only be the one that the token's hold had: numbers are not used twice. But if
 * a copy of the acquire was on its way when the hold was detached, that may bring a vote back long
 * after the lock has been somebody else's. A fence is the time of its grant, in microseconds, or
 * not much more; and nobody else can have had the lock within a lease from ours, but by losing
 * votes. So if there may be such copies, a server whose last fence is later than that proves
 * nothing. It may be right all the same, if others have tried there in vain: then it is not known
 * whether the hold is still there, unless a majority of the other servers knows. */
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "core/fail.h"
#include "core/holder.h"
#include "core/quorum.h"

enum { PATIENCE_MIN_MS = 50 };

typedef enum claim_stage {
    ASKED,  /* who has it */
    RENEWS, /* it has a vote of ours, which is being taken up */
    OURS,
    NOT_OURS, /* what it said is in `why`, */
    FAILED    /* and here why it did not say anything to the matter */
} claim_stage;

typedef struct claim { /* to what one server has */
    claim_stage stage;
    bool guessed; /* the number: there are too many to be told all */
    bool proven;  /* nothing that matters was granted there since */
    hf__call call;
    hf__answer answer;
    hf_inspection seen;
    hf_error why;
} claim;

struct hf__takeover {
    bool beginning; /* not all have been asked yet */
    bool waits;     /* a majority is there, and the others have a little time left */
    bool hurries;   /* they had */
    int count;
    claim claims[];
};

/* With so many it is held, */
static bool is_majority(const hf_hold *main, int count)
{
    return count >= hf__quorum_size(main->core);
}

/* and if so many do not have it, it is not, whatever the others say. */
static bool is_blocking(const hf_hold *main, int count)
{
    return count > main->core->config.server_count - hf__quorum_size(main->core);
}

static const char *name_of(const hf_hold *main, int server)
{
    return main->core->servers[server].url->display;
}

static hf__call *call_of(const hf_hold *main)
{
    return HF__ENTRY(hf__list_first(&main->extends), hf__call, node);
}

/* ---- Detach ---- */

/* Of an acquire that is under way and does not queue, whatever comes of it belongs to the token. */
static bool is_underway(const hf_hold *vote)
{
    return vote->stage == HF__HOLD_TRYING && vote->vote->call.wait_ms == 0 &&
           vote->requests[HF__REQUEST_ACQUIRE].place == HF__IN_FLIGHT;
}

bool hf__takeover_detach(hf_hold *main)
{
    bool late = false;
    hf__takeover_stop(main);
    for (int i = 0; i < main->core->config.server_count; i++) {
        hf_hold *vote = main->ballot->votes[i];
        if (vote == NULL)
            continue;
        bool queued = vote->stage == HF__HOLD_TRYING && vote->place.base > 0;
        late = late || queued || hf__detach_is_late(vote);
        if (vote->stage == HF__HOLD_HELD || is_underway(vote))
            hf__vote_forget(vote);
        else
            hf__vote_drop(vote);
    }
    return late;
}

/* ---- Memory ---- */

void hf__takeover_free(hf__takeover *takeover)
{
    for (int i = 0; takeover != NULL && i < takeover->count; i++)
        hf__buffer_free(&takeover->claims[i].answer.value);
    hf__free(takeover);
}

static int count_in(const hf__takeover *takeover, claim_stage stage)
{
    int count = 0;
    for (int i = 0; i < takeover->count; i++)
        count += takeover->claims[i].stage == stage;
    return count;
}

/* Once it is decided, it is only needed for answers that are still to come. */
static void tidy(hf_hold *main)
{
    hf__takeover *takeover = main->ballot->takeover;
    if (takeover == NULL || takeover->beginning || main->attaching || count_in(takeover, ASKED) > 0)
        return;
    main->ballot->takeover = NULL;
    hf__takeover_free(takeover);
}

void hf__takeover_stop(hf_hold *main)
{
    hf__takeover *takeover = main->ballot->takeover;
    for (int i = 0; takeover != NULL && i < takeover->count; i++) {
        claim *c = &takeover->claims[i];
        if (c->stage != ASKED)
            continue;
        c->stage = FAILED;
        if (c->call.query != NULL)
            hf__query_end(c->call.query, HF_ECANCELLED, "");
    }
    tidy(main);
}

void hf__takeover_end(hf_hold *main)
{
    hf__takeover_stop(main);
    for (int i = 0; i < main->core->config.server_count; i++)
        if (main->ballot->votes[i] != NULL)
            hf__vote_forget(main->ballot->votes[i]);
}

/* ---- What it comes to ---- */

static int count_proven(const hf__takeover *takeover)
{
    int count = 0;
    for (int i = 0; i < takeover->count; i++)
        count += takeover->claims[i].stage == OURS && takeover->claims[i].proven;
    return count;
}

static hf__instant latest_give_up(const hf_hold *main)
{
    hf__instant latest = {0};
    for (int i = 0; i < main->core->config.server_count; i++)
        if (hf__vote_is_held(main->ballot->votes[i]))
            latest = hf__later(latest, main->ballot->votes[i]->give_up);
    return latest;
}

/* Its votes have been renewed just now, so what they come to has not passed. */
static void take_up(hf_hold *main)
{
    atomic_store(&main->deadline_ns, hf__majority_deadline(main));
    main->attaching = false;
    main->users = 1;
    main->granted = main->core->now;
    main->give_up = latest_give_up(main);
    hf__stats_granted(main, call_of(main));
    hf__majority_begin(main);
    hf__watch_renewed(main, main->ballot->confirmed);
    hf__renew_end_first(main, HF_OK, "");
    if (main->revoked)
        hf__tell_all(main);
}

/* What the servers said that do not have it, as far as it is known. The status is of those that did
 * not say anything to the matter. */
static void explain(const hf_hold *main, hf_error *why)
{
    const hf__takeover *takeover = main->ballot->takeover;
    const hf_error *said[HF_SERVERS_MAX], *failed[HF_SERVERS_MAX];
    int said_count = 0, failed_count = 0, lost = 0;
    for (int i = 0; i < takeover->count; i++) {
        const claim *c = &takeover->claims[i];
        if (c->stage == OURS && c->proven)
            continue;
        said[said_count++] = &c->why;
        lost += c->stage == NOT_OURS;
        if (c->stage != NOT_OURS)
            failed[failed_count++] = &c->why;
    }
    hf_status status = hf__fail_each(NULL, failed, failed_count, "%s", "");
    hf__fail_each(why, said, said_count, "%d of %d servers have it", count_proven(takeover),
                  takeover->count);
    why->status = is_blocking(main, lost) ? HF_ELOST : status;
}

static void conclude(hf_hold *main)
{
    hf_error why;
    bool enough = is_majority(main, count_proven(main->ballot->takeover));
    if (enough && hf__majority_deadline(main) > main->core->now.ns) {
        take_up(main);
        return;
    }
    explain(main, &why);
    if (enough)
        hf__fail(&why, HF_ELOST, "the lease ended before a majority had confirmed it");
    hf__attach_fail(main, why.status, why.text);
}

/* For as long again as it has taken until now: the others are not much further away. */
static void wait_for_others(hf_hold *main)
{
    hf__call *call = call_of(main);
    hf__instant now = main->core->now;
    hf__instant until = hf__after(now, hf__between(call->started, now));
    until = hf__later(until, hf__after(now, hf__span_ms(PATIENCE_MIN_MS)));
    hf__timer_set(&main->core->timers, &call->timer, hf__earlier(until, call->deadline));
    main->ballot->takeover->waits = true;
}

static void look(hf_hold *main)
{
    hf__takeover *takeover = main->ballot->takeover;
    if (takeover == NULL || takeover->beginning || !main->attaching)
        return;
    int open = count_in(takeover, ASKED) + count_in(takeover, RENEWS);
    bool enough = is_majority(main, count_proven(takeover));
    if (open == 0 || is_blocking(main, count_in(takeover, NOT_OURS)) ||
        (enough && takeover->hurries))
        conclude(main);
    else if (enough && !takeover->waits)
        wait_for_others(main);
}

static void go_on(hf_hold *main)
{
    look(main);
    tidy(main);
    hf__hold_settle(main);
}

/* ---- Whose it is there ---- */

static bool is_in_step(const hf_hold *main, uint64_t number)
{
    return number / HF__NUMBER_STEP == main->number / HF__NUMBER_STEP;
}

static bool find_sharer(const hf_hold *main, claim *c, uint64_t *number)
{
    const hf_holder ours = hf__holder_of(hf__hold_value(main));
    for (size_t i = 0; i < c->seen.holder_count; i++) {
        const hf_holder *holder = &c->seen.holders[i];
        if (strcmp(holder->client_id, ours.client_id) == 0 && is_in_step(main, holder->number)) {
            *number = holder->number;
            return true;
        }
    }
    c->guessed = c->seen.hold_count > c->seen.holder_count;
    *number = main->number; /* if nobody had to give way */
    return c->guessed;
}

/* Whether the lock is ours, as the server has told, and with which number. */
static bool find_number(const hf_hold *main, claim *c, uint64_t *number)
{
    hf__slice value = {hf__buffer_front(&c->answer.value), hf__buffer_length(&c->answer.value)};
    hf__slice owner = hf__hold_owner(main);
    if (!c->seen.held)
        return false;
    if (owner.length > 0)
        return c->seen.shared && value.length == owner.length &&
               memcmp(value.bytes, owner.bytes, owner.length) == 0 && find_sharer(main, c, number);
    *number = c->seen.holders[0].number;
    return is_in_step(main, *number) && hf__vote_is_value(main, *number, value);
}

/* ---- What a server says ---- */

static void settle_claim(claim *c, claim_stage stage, hf_status status, const char *server,
                         const char *what)
{
    c->stage = stage;
    hf__fail(&c->why, status, "%s %s", server, what);
}

/* Of votes of this very hold. */
static uint64_t latest_fence(const hf_hold *main)
{
    return main->fence_top + (uint64_t)main->longest_lease.ns / 1000;
}

/* It has answered. One that was restarted, and may have forgotten something, has no say. */
static void judge(hf_hold *main, int server)
{
    claim *c = &main->ballot->takeover->claims[server];
    const char *name = name_of(main, server);
    uint64_t number = 0;
    if (!find_number(main, c, &number)) {
        settle_claim(c, NOT_OURS, HF_ELOST, name, "does not have it");
    } else if (!hf__standing_has_vote(hf__server_link(&main->core->servers[server], main->slot))) {
        settle_claim(c, FAILED, HF_EUNAVAILABLE, name, "was restarted and has no vote yet");
    } else {
        settle_claim(c, RENEWS, HF_EUNKNOWN, name, "may have granted it anew since");
        c->proven = !main->copy_lost || c->seen.fence <= latest_fence(main);
        if (main->ballot->votes[server] == NULL &&
            !hf__vote_attach(main, server, number, c->seen.fence))
            settle_claim(c, FAILED, HF_ENOMEM, name, "has it, but there is no memory for it");
    }
}

void hf__takeover_answered(hf__call *call)
{
    hf_hold *main = call->taken_up;
    claim *c = HF__ENTRY(call, claim, call);
    int server = (int)(c - main->ballot->takeover->claims);
    call->query = NULL; /* it goes by itself */
    if (c->stage != ASKED)
        return;
    if (call->error.status == HF_OK) {
        judge(main, server);
    } else {
        c->stage = FAILED;
        c->why = call->error;
    }
    go_on(main);
}

void hf__takeover_confirmed(hf_hold *vote)
{
    hf_hold *main = vote->vote->main;
    claim *c = &main->ballot->takeover->claims[hf__vote_server(vote)];
    if (c->stage == RENEWS)
        c->stage = OURS;
    go_on(main);
}

/* Also of one that comes behind the decision: then it is only one vote less. */
void hf__takeover_refused(hf_hold *vote, const hf_error *why)
{
    hf_hold *main = vote->vote->main;
    int server = hf__vote_server(vote);
    hf__vote_forget(vote);
    main->ballot->missing[server] = main->core->now;
    if (!main->attaching)
        return;
    claim *c = &main->ballot->takeover->claims[server];
    c->stage = why->status == HF_ELOST && !c->guessed ? NOT_OURS : FAILED;
    c->why = *why;
    if (why->status == HF_ELOST)
        settle_claim(c, c->stage, c->guessed ? HF_EUNKNOWN : HF_ELOST, name_of(main, server),
                     c->guessed ? "has too many who share it to tell"
                                : "does not have it any more");
    go_on(main);
}

void hf__takeover_lost(hf_hold *main, int server)
{
    settle_claim(&main->ballot->takeover->claims[server], NOT_OURS, HF_ELOST, name_of(main, server),
                 "does not have it any more");
    go_on(main);
}

/* ---- Attach ---- */

static void ask(hf_hold *main, int server)
{
    claim *c = &main->ballot->takeover->claims[server];
    hf__query *query =
        hf__query_new(HF__QUERY_INSPECT, HF__SLICE(""), hf__hold_key(main), HF__SLICE(""), 0);
    if (query == NULL) {
        settle_claim(c, FAILED, HF_ENOMEM, name_of(main, server), "was not asked: out of memory");
        return;
    }
    hf__query_ask(query, server);
    c->answer.inspection = &c->seen;
    c->call = (hf__call){.kind = HF__CALL_QUERY,
                         .query = query,
                         .answer = &c->answer,
                         .taken_up = main,
                         .timer = {.kind = HF__TIMER_CALL}};
    hf__query_start(main->core, &c->call);
}

/* Copies that will replace lost ones need numbers that nobody who had the hold has used. */
static void number_anew(hf_hold *main)
{
    main->number = hf__holder_of(hf__hold_value(main)).number;
    main->ballot->numbers =
        HF__NUMBER_STEP / 4 + hf__random_below(&main->core->random, HF__NUMBER_STEP / 2);
}

void hf__takeover_start(hf_hold *main)
{
    int count = main->core->config.server_count;
    number_anew(main);
    if (main->number == 0 || main->number % HF__NUMBER_STEP != 0) {
        hf__attach_fail(main, HF_ELOST, "the token is not of a lock on several servers");
        return;
    }
    hf__takeover *takeover = hf__alloc(sizeof(*takeover) + (size_t)count * sizeof(claim));
    if (takeover == NULL) {
        hf__attach_fail(main, HF_ENOMEM, "out of memory");
        return;
    }
    main->ballot->takeover = takeover;
    takeover->count = count;
    takeover->beginning = true;
    for (int i = 0; i < count; i++)
        ask(main, i);
    takeover->beginning = false;
    go_on(main);
}

static void fail_silent(hf_hold *main, int server)
{
    claim *c = &main->ballot->takeover->claims[server];
    if (c->stage == RENEWS) {
        settle_claim(c, FAILED, HF_EUNKNOWN, name_of(main, server), "gave no answer in time");
    } else if (c->stage == ASKED) {
        hf__query_part_trouble(&c->call.query->part, &c->why);
        c->stage = FAILED;
        hf__query_end(c->call.query, c->why.status, "");
    }
}

void hf__takeover_timer(hf_hold *main)
{
    hf__takeover *takeover = main->ballot->takeover;
    hf__call *call = call_of(main);
    takeover->hurries = true;
    if (hf__before(main->core->now, call->deadline))
        hf__timer_set(&main->core->timers, &call->timer, call->deadline);
    for (int i = 0; i < takeover->count && !hf__before(main->core->now, call->deadline); i++)
        fail_silent(main, i);
    go_on(main);
}
