/* SPDX-License-Identifier: MIT */
/* Acquiring: try, and try again, within the limits that the caller set.
 *
 * A try ends with the server's word, with a failed attempt to connect before anything was sent, or
 * with its time. All tries of a call are one hold with one value, so however many copies the server
 * sees, it grants once, and an answer to any copy counts. A copy that was sent and not answered
 * leaves the outcome open: the call then ends as "unknown", unless the answer to a later copy tells
 * more, and in any case the hold is released in the background.
 *
 * A call that may wait queues at the server (queue.c) or lines up behind another thread of this
 * client (cohort.c). One that polls pauses for its retry interval between tries, or until the
 * holder's lease is over if that is sooner; the last pause is cut short so that one more try fits
 * in before the deadline.
 *
 * A grant that replicas must have too is believed only when they do (replicas.c); otherwise it is
 * given back, and the try is over. */
#include "base/mutant.h"
#include "base/random.h"
#include "base/text.h"
#include "core/fail.h"
#include "core/state.h"

enum { PAUSE_MIN_MS = 10 };

/* A grant may be answered with its fence alone, if that has 16 digits, as the time in microseconds
 * has: no other answer looks like it. */
#define SHORT_GRANT_MIN INT64_C(1000000000000000)

typedef struct grant { /* the server's word */
    hf__instant sent;  /* of the copy that it was given to */
    uint64_t fence;
    int64_t remaining_ms;
    bool others_wait;
} grant;

static void granted(hf_hold *hold, const grant *word);

static hf__request *request_of(hf_hold *hold)
{
    return &hold->requests[HF__REQUEST_ACQUIRE];
}

void hf__acquire_set_timer(hf__call *call)
{
    hf__instant due = hf__is_never(call->next_try) ? call->try_ends : call->next_try;
    hf__timer_set(&call->hold->core->timers, &call->timer, hf__earlier(due, call->deadline));
}

/* Whether the server may have granted a copy without our knowing. */
static bool outcome_open(hf_hold *hold)
{
    return request_of(hold)->place == HF__IN_FLIGHT || hold->copy_lost || hold->granted_late;
}

/* Or may do so, because it is queued. */
static bool is_known_there(hf_hold *hold)
{
    return outcome_open(hold) || hold->stage == HF__HOLD_CONFIRMING ||
           (hold->place.base > 0 && !HF__MUTANT(CANCEL_DROPS));
}

/* If others stand behind this call, and it does not fail for a reason that would be theirs too, one
 * of them goes on in its place. */
void hf__acquire_end(hf_hold *hold, hf_status status, const char *text)
{
    hf__core *core = hold->core;
    hf__call *call = hold->call;
    if (hf__may_pass(status) || status == HF_ECANCELLED)
        hold = hf__cohort_substitute(hold);
    hold->call = NULL;
    hf__link_withdraw(request_of(hold));
    hf__replicas_withdraw(hold);
    hf__queue_leave(hold);
    if (hold->ballot != NULL)
        hf__ballot_end(hold);
    if (hold->vote != NULL)
        hf__standing_leave_gate(hold);
    bool forgets = (HF__MUTANT(UNKNOWN_REFUSED) && status == HF_EUNKNOWN) ||
                   (HF__MUTANT(CANCEL_KEEPS) && status == HF_ECANCELLED) || hf__vote_forgets(hold);
    bool given_back = hold->stage == HF__HOLD_RELEASING || hold->stage == HF__HOLD_OVER;
    if (!given_back && is_known_there(hold) && !forgets)
        hf__release_in_background(hold);
    else if (!given_back)
        hf__hold_over(hold);
    hf__cohort_leave(hold);
    core->stats.failures += hold->vote == NULL;
    hf__call_done(core, call, status, text);
    hf__hold_settle(hold);
}

/* The caller's time is up, or the last try has brought nothing. */
static void give_up(hf_hold *hold, const hf_error *last)
{
    const hf__link *link = hold->link;
    if (hold->ballot != NULL) {
        hf__ballot_give_up(hold, last);
        return;
    }
    bool cut_off = hf__node_linked(&hold->lined_up) && link->trouble.text[0] != '\0';
    hf_error unknown, unsent;
    hf__fail(&unknown, HF_EUNKNOWN, "%s gave no answer in time; given back if it was granted",
             link->server->url->display);
    if (last->status == HF_EBUSY && !cut_off &&
        (request_of(hold)->place == HF__IDLE || hold->place.number > 0))
        hf__acquire_end(hold, HF_EBUSY, last->text);
    else if (outcome_open(hold) && HF__MUTANT(UNKNOWN_GRANTED))
        granted(hold, &(grant){request_of(hold)->sent, 1, hf__span_to_ms(hold->lease), false});
    else if (outcome_open(hold))
        hf__acquire_end(hold, HF_EUNKNOWN, unknown.text);
    else if (last->status != HF_OK && !cut_off && request_of(hold)->place == HF__IDLE)
        hf__acquire_end(hold, last->status, last->text);
    else {
        hf__flow_trouble(hold->link, &unsent);
        hf__acquire_end(hold, HF_EUNAVAILABLE, unsent.text);
    }
}

static void begin_try(hf__call *call)
{
    hf_hold *hold = call->hold;
    hf__core *core = hold->core;
    call->next_try = HF__NEVER;
    call->asked_again = false;
    call->try_ends = hf__after(core->now, core->config.call_timeout);
    hf__acquire_set_timer(call);
    if (hold->ballot != NULL)
        hf__ballot_go(hold);
    else if (hf__standing_admits(hold))
        hf__link_submit(request_of(hold));
}

/* Those who want the votes of several servers at the same time, and get some each, do not meet
 * again. */
static hf__span pause_of(const hf__call *call)
{
    hf__span pause = call->retry_interval;
    if (call->hold->ballot == NULL)
        return pause;
    uint64_t spread = hf__random_below(&call->hold->core->random, (uint64_t)pause.ns + 1);
    return (hf__span){pause.ns / 2 + (int64_t)spread};
}

hf__instant hf__acquire_plan(const hf__call *call, int64_t holder_remaining_ms)
{
    hf__instant now = call->hold->core->now;
    hf__instant soonest = hf__after(now, hf__span_ms(PAUSE_MIN_MS));
    hf__instant next = hf__after(now, pause_of(call));
    if (holder_remaining_ms >= 0)
        next = hf__earlier(next, hf__after(now, hf__span_ms(holder_remaining_ms + 1)));
    next = hf__later(next, soonest);
    if (hf__before(next, call->deadline))
        return next;
    hf__span margin = {2 * call->round_trip.ns};
    if (margin.ns < hf__span_ms(PAUSE_MIN_MS).ns)
        margin = hf__span_ms(PAUSE_MIN_MS);
    hf__instant last_chance = {call->deadline.ns - margin.ns};
    return hf__before(last_chance, soonest) ? HF__NEVER : last_chance;
}

/* A try has ended without a grant and for a reason that may pass. */
void hf__acquire_try_over(hf_hold *hold, const hf_error *why, int64_t holder_remaining_ms)
{
    hf__call *call = hold->call;
    call->error = *why;
    if (call->retries_limited && call->max_retries-- == 0) {
        give_up(hold, why);
        return;
    }
    if (call->contended && hold->ballot == NULL)
        hf__queue_want(hold);
    call->next_try = hf__acquire_plan(call, holder_remaining_ms);
    if (hf__is_never(call->next_try)) {
        give_up(hold, why);
        return;
    }
    hf__acquire_set_timer(call);
    if (hold->vote != NULL)
        hf__vote_tried(hold, why);
}

void hf__acquire_hand_out(hf_hold *handle, hf__call *call)
{
    handle->call = NULL;
    hf__call_done(handle->core, call, HF_OK, "");
}

/* Behind another thread there is nothing to do but to wait. */
static void wait_in_line(hf__call *call)
{
    if (!hf__node_linked(&call->hold->lined_up))
        return; /* those before it have just failed, so it is on its way */
    hf__fail(&call->error, HF_EBUSY, "another thread of this process has it or waits for it");
    call->next_try = call->try_ends = HF__NEVER;
    hf__acquire_set_timer(call);
}

void hf__acquire_go(hf_hold *hold)
{
    if (hold->ballot == NULL)
        hf__queue_enlist(hold);
    begin_try(hold->call);
}

static void begin(hf__core *core, hf__call *call)
{
    hf_hold *hold = call->hold;
    bool quorum = hf__is_quorum(core), has_memory = !quorum || hf__ballot_new(hold);
    hold->link = quorum ? NULL : hf__server_link(&core->servers[0], hold->slot);
    hf__list_append(&core->holds, &hold->node);
    call->retries_limited = call->max_retries > 0 || call->wait_ms == 0;
    call->deadline =
        call->wait_ms > 0 ? hf__after(core->now, hf__span_ms(call->wait_ms)) : HF__NEVER;
    if (call->cancelled)
        hf__acquire_end(hold, HF_ECANCELLED, "cancelled");
    else if (core->closing)
        hf__acquire_end(hold, HF_ECLOSED, "the client is being closed");
    else if (!has_memory)
        hf__acquire_end(hold, HF_ENOMEM, "out of memory");
    else if (!quorum && hf__link_full(hold->link))
        hf__acquire_end(hold, HF_EUNAVAILABLE, "too many requests wait for this server");
    else if (hf__cohort_line_up(hold))
        wait_in_line(call);
    else
        hf__acquire_go(hold);
    hf__hold_settle(hold);
}

void hf__acquire_start(hf__core *core, hf__call *call)
{
    hf_hold *hold = call->hold;
    hold->core = core;
    hold->stage = HF__HOLD_TRYING;
    hold->call = call;
    call->started = core->now;
    call->gives_way = core->gives_way;
    if (!call->cancelled && !core->closing && hf__reentry_try(hold))
        hf__acquire_hand_out(hold, call);
    else
        begin(core, call);
}

void hf__acquire_timer(hf__call *call)
{
    hf_hold *hold = call->hold;
    hf__core *core = hold->core;
    if (hold->stage == HF__HOLD_CONFIRMING) {
        hf__replicas_late(hold);
    } else if (hold->stage == HF__HOLD_RELEASING || hold->stage == HF__HOLD_OVER) {
        hf__acquire_end(hold, call->error.status, call->error.text);
    } else if (!hf__before(core->now, call->deadline)) {
        hf_error last = call->error;
        give_up(hold, &last);
    } else if (!hf__is_never(call->next_try)) {
        begin_try(call);
    } else if (hold->ballot != NULL) {
        hf__ballot_try_ends(hold);
    } else {
        hf_error why;
        if (outcome_open(hold))
            hf__fail(&why, HF_EUNKNOWN, "no answer in time");
        else
            hf__flow_trouble(hold->link, &why);
        hf__acquire_try_over(hold, &why, -1);
    }
    hf__hold_settle(hold);
}

/* Asking again at once, with the same value, renews it or takes it anew; but once a try only, for
 * a network that is slower than the lease would make that a storm. */
static void granted_too_late(hf_hold *hold)
{
    hf_error why;
    hold->granted_late = true;
    if (!hold->call->asked_again) {
        hold->call->asked_again = true;
        hf__link_submit(request_of(hold));
        return;
    }
    hf__fail(&why, HF_EUNKNOWN, "granted, but the answer took longer than the lease");
    hf__acquire_try_over(hold, &why, -1);
}

void hf__acquire_take(hf_hold *hold, uint64_t fence, hf__instant sent, bool others_wait)
{
    hold->stage = HF__HOLD_HELD;
    hold->users = 1;
    hold->fence = fence;
    hold->fence_top = fence + hold->range - 1;
    hold->granted = hold->core->now;
    hold->contended = hold->contended || hold->call->contended || others_wait;
    hf__stats_granted(hold, hold->call);
    hf__reentry_allow(hold);
    hf__watch_renewed(hold, sent);
    hf__acquire_hand_out(hold, hold->call);
    hf__cohort_granted(hold, others_wait);
    hf__push_listen(hold);
}

static void granted(hf_hold *hold, const grant *word)
{
    int64_t remaining_ms = word->remaining_ms;
    if (HF__MUTANT(RESEND_FULL_LEASE))
        remaining_ms = hf__span_to_ms(hold->lease);
    hf__hold_believe(hold, word->sent, remaining_ms);
    if (hf__hold_expired(hold)) {
        granted_too_late(hold);
        return;
    }
    hf__queue_leave(hold);
    hf__link_withdraw(request_of(hold));
    hold->run = hold->link->run;
    hf__instant began = HF__MUTANT(HEARD_LATE) ? word->sent : hf__hold_began(hold);
    hold->fence_kept = began;
    if (hold->vote != NULL)
        hf__vote_granted(hold, word->sent, word->others_wait);
    if (hold->replicas != NULL)
        hf__replicas_ask(hold, word->fence);
    else
        hf__acquire_take(hold, word->fence, began, word->others_wait);
}

/* The lease of a grant that came by message counts from the last check that was answered. If that
 * is long ago, because a busy server answers checks late, too little would be left to renew it in:
 * another check tells how much there is. One that is in flight may have reached the server before
 * the grant was made: then its answer is "queued", and one more has to follow. */
static bool is_stale(const hf_hold *hold, hf__instant sent)
{
    return hf__between(sent, hold->core->now).ns > hold->lease.ns / 2 && !HF__MUTANT(PUSH_STALE);
}

void hf__acquire_pushed(hf_hold *hold, uint64_t fence, int64_t lease_ms, bool others_wait)
{
    hf__instant sent = HF__MUTANT(PUSH_FROM_NOW) ? hold->core->now : hold->place.base_sent;
    hold->handed = true;
    if (is_stale(hold, sent)) {
        hold->place.set_aside = request_of(hold)->place == HF__IN_FLIGHT;
        hf__link_submit(request_of(hold));
    } else {
        granted(hold, &(grant){sent, fence, lease_ms, others_wait});
    }
}

/* Queued: the next try is a check, for which there is no hurry. */
static void waiting(hf_hold *hold, const hf_error *why, int64_t remaining_ms,
                    const hf__reply *place, const hf__reply *foreign)
{
    hf__call *call = hold->call;
    call->error = *why;
    call->next_try = hf__queue_joined(hold, place->integer, remaining_ms, foreign->integer == 1);
    hf__acquire_set_timer(call);
    if (hold->place.set_aside)
        hf__link_submit(request_of(hold));
    hold->place.set_aside = false;
}

/* words: 0, remaining ms, holder; if it is queued, its place and whether the holder is foreign; on
 * a quorum, if it is not, the last ticket */
static void busy(hf_hold *hold, int64_t remaining_ms, const hf__reply *words, bool queued)
{
    const hf__reply *holder = &words[2];
    char shown[120];
    hf_error why;
    hold->granted_late = false;
    if (!hold->call->contended && hold->vote == NULL)
        hold->core->stats.contentions++;
    hold->call->contended = true;
    hf_hold *ours = hf__release_find(hold, (hf__slice){holder->text, holder->length});
    if (ours != NULL) /* and its release was refused for the moment, such as by NOSCRIPT */
        hf__release_hurry(ours);
    if (ours != NULL && !queued) { /* go again, behind it */
        hf__link_submit(request_of(hold));
        return;
    }
    hf__printable(shown, sizeof(shown), holder->text, holder->length);
    hf__fail(&why, HF_EBUSY, "held by %s", shown);
    if (queued)
        waiting(hold, &why, remaining_ms, &words[3], &words[4]);
    else
        hf__acquire_try_over(hold, &why, remaining_ms);
}

static bool all_integers(const hf__reply *words, size_t first, size_t count)
{
    for (size_t i = first; i < count; i++)
        if (words[i].kind != HF__REPLY_INTEGER)
            return false;
    return true;
}

/* fence, {fence, remaining[, 1]}, {0, remaining, holder[, place, foreign]},
 * {0, remaining, holder, ticket} or {-1} */
bool hf__acquire_answered(hf_hold *hold, const hf__reply *reply)
{
    const hf__reply *words = reply->elements;
    size_t count = reply->kind == HF__REPLY_ARRAY ? reply->count : 0;
    hf__instant sent = request_of(hold)->sent;
    hold->call->round_trip = hf__between(sent, hold->core->now);
    if (reply->kind == HF__REPLY_INTEGER && reply->integer >= SHORT_GRANT_MIN &&
        hf__is_fence((uint64_t)reply->integer)) {
        granted(hold, &(grant){sent, (uint64_t)reply->integer, hf__span_to_ms(hold->lease), false});
        return true;
    }
    if (count == 0 || words[0].kind != HF__REPLY_INTEGER)
        return false;
    if (count == 1 && words[0].integer == -1) {
        /* No live call can have sent a release; so a copy was granted, and broken by force. Those
         * behind it begin anew. */
        hf__cohort_leave(hold);
        hf__acquire_end(hold, HF_EBUSY, "taken away by force while it was being acquired");
        return true;
    }
    if (count < 2 || words[1].kind != HF__REPLY_INTEGER)
        return false;
    int64_t remaining_ms = hf__sane_ms(words[1].integer);
    if (hf__is_fence((uint64_t)words[0].integer) && remaining_ms >= 0 && count <= 3 &&
        all_integers(words, 2, count)) {
        hold->handed = hold->place.base > 0 || hold->copy_lost; /* perhaps */
        granted(hold, &(grant){sent, (uint64_t)words[0].integer, remaining_ms, count == 3});
        return true;
    }
    bool told = hold->vote != NULL && count == 4 && all_integers(words, 3, count) &&
                hf__is_fence((uint64_t)words[3].integer);
    if (told)
        hf__vote_seen(hold, (uint64_t)words[3].integer);
    bool queued = count == 5 && all_integers(words, 3, count) && words[3].integer > 0;
    if (words[0].integer == 0 && (count == 3 || told || queued) &&
        words[2].kind == HF__REPLY_TEXT) {
        busy(hold, remaining_ms, words, queued);
        return true;
    }
    return false;
}

void hf__acquire_refused(hf_hold *hold, const hf_error *why)
{
    if (hf__may_pass(why->status))
        hf__acquire_try_over(hold, why, -1);
    else
        hf__acquire_end(hold, why->status, why->text);
}

/* A request of which a copy is out waits for the next connection; only its answer tells. So does
 * the check of one that is queued. */
void hf__acquire_unreachable(hf_hold *hold, const hf_error *why)
{
    if (!hf__may_pass(why->status)) {
        hf__acquire_end(hold, why->status, why->text);
    } else if (!hold->copy_lost && hold->place.base == 0) {
        hf__link_withdraw(request_of(hold));
        hf__acquire_try_over(hold, why, -1);
    }
}
