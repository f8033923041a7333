/* SPDX-License-Identifier: MIT */
/* Acquiring: try, and try again, within the limits that the caller set.
 *
 * A try ends with the server's word, with a failed attempt to connect before anything was sent, or
 * with its time. All tries of a call are one hold with one value, so however many copies the server
 * sees, it grants once, and an answer to any copy counts. A copy that was sent and not answered
 * leaves the outcome open: the call then ends as "unknown", unless the answer to a later copy tells
 * more, and in any case the hold is released in the background.
 *
 * Between tries the call pauses for its retry interval, or until the holder's lease is over if that
 * is sooner. The last pause is cut short so that one more try fits in before the deadline. */
#include "base/mutant.h"
#include "base/text.h"
#include "core/fail.h"
#include "core/state.h"

enum { PAUSE_MIN_MS = 10 };

static void granted(hf_hold *hold, uint64_t fence, int64_t remaining_ms);

static hf__request *request_of(hf_hold *hold)
{
    return &hold->requests[HF__REQUEST_ACQUIRE];
}

static void set_timer(hf__call *call)
{
    hf__instant due = hf__is_never(call->next_try) ? call->try_ends : call->next_try;
    hf__timer_set(&call->hold->core->timers, &call->timer, hf__earlier(due, call->deadline));
}

/* Whether the server may have granted a copy without our knowing. */
static bool outcome_open(hf_hold *hold)
{
    return request_of(hold)->place == HF__IN_FLIGHT || hold->copy_lost || hold->granted_late;
}

void hf__acquire_end(hf_hold *hold, hf_status status, const char *text)
{
    hf__core *core = hold->core;
    hf__call *call = hold->call;
    hold->call = NULL;
    hf__link_withdraw(request_of(hold));
    bool forgets = (HF__MUTANT(UNKNOWN_REFUSED) && status == HF_EUNKNOWN) ||
                   (HF__MUTANT(CANCEL_KEEPS) && status == HF_ECANCELLED);
    if (outcome_open(hold) && !forgets)
        hf__release_in_background(hold);
    else
        hf__hold_over(hold);
    core->stats.failures++;
    hf__call_done(core, call, status, text);
}

/* The caller's time is up, or the last try has brought nothing. */
static void give_up(hf_hold *hold, const hf_error *last)
{
    const hf__link *link = hold->link;
    hf_error unknown;
    hf__fail(&unknown, HF_EUNKNOWN, "%s gave no answer in time; given back if it was granted",
             hold->core->config.server->display);
    if (last->status == HF_EBUSY && request_of(hold)->place == HF__IDLE)
        hf__acquire_end(hold, HF_EBUSY, last->text);
    else if (outcome_open(hold) && HF__MUTANT(UNKNOWN_GRANTED))
        granted(hold, 1, hf__span_to_ms(hold->lease));
    else if (outcome_open(hold))
        hf__acquire_end(hold, HF_EUNKNOWN, unknown.text);
    else if (last->status != HF_OK && request_of(hold)->place == HF__IDLE)
        hf__acquire_end(hold, last->status, last->text);
    else
        hf__acquire_end(hold, HF_EUNAVAILABLE,
                        link->trouble.text[0] != '\0' ? link->trouble.text
                                                      : "no connection in time");
}

static void begin_try(hf__call *call)
{
    hf_hold *hold = call->hold;
    hf__core *core = hold->core;
    call->next_try = HF__NEVER;
    call->asked_again = false;
    call->try_ends = hf__after(core->now, core->config.call_timeout);
    set_timer(call);
    hf__link_submit(request_of(hold));
}

/* When the next try begins; never, if none fits in before the deadline. */
static hf__instant plan_next_try(const hf__call *call, int64_t holder_remaining_ms)
{
    hf__instant now = call->hold->core->now;
    hf__instant soonest = hf__after(now, hf__span_ms(PAUSE_MIN_MS));
    hf__instant next = hf__after(now, call->retry_interval);
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
static void try_over(hf_hold *hold, const hf_error *why, int64_t holder_remaining_ms)
{
    hf__call *call = hold->call;
    call->error = *why;
    if (call->retries_limited && call->max_retries-- == 0) {
        give_up(hold, why);
        return;
    }
    call->next_try = plan_next_try(call, holder_remaining_ms);
    if (hf__is_never(call->next_try))
        give_up(hold, why);
    else
        set_timer(call);
}

static void hand_out(hf_hold *handle, hf__call *call)
{
    handle->call = NULL;
    hf__call_done(handle->core, call, HF_OK, "");
}

static void begin(hf__core *core, hf__call *call)
{
    hf_hold *hold = call->hold;
    hold->link = &core->links[hold->slot % (unsigned)core->config.links];
    hf__list_append(&core->holds, &hold->node);
    call->retries_limited = call->max_retries > 0 || call->wait_ms == 0;
    call->deadline =
        call->wait_ms > 0 ? hf__after(core->now, hf__span_ms(call->wait_ms)) : HF__NEVER;
    if (call->cancelled)
        hf__acquire_end(hold, HF_ECANCELLED, "cancelled");
    else if (core->closing)
        hf__acquire_end(hold, HF_ECLOSED, "the client is being closed");
    else if (hf__link_full(hold->link))
        hf__acquire_end(hold, HF_EUNAVAILABLE, "too many requests wait for this server");
    else
        begin_try(call);
    hf__hold_settle(hold);
}

void hf__acquire_start(hf__core *core, hf__call *call)
{
    hf_hold *hold = call->hold;
    hold->core = core;
    hold->stage = HF__HOLD_TRYING;
    hold->call = call;
    call->started = core->now;
    if (!call->cancelled && !core->closing && hf__reentry_try(hold))
        hand_out(hold, call);
    else
        begin(core, call);
}

void hf__acquire_timer(hf__call *call)
{
    hf_hold *hold = call->hold;
    hf__core *core = hold->core;
    if (!hf__before(core->now, call->deadline)) {
        hf_error last = call->error;
        give_up(hold, &last);
    } else if (!hf__is_never(call->next_try)) {
        begin_try(call);
    } else {
        hf_error why = hold->link->trouble;
        if (outcome_open(hold) || why.text[0] == '\0')
            hf__fail(&why, HF_EUNKNOWN, "no answer in time");
        try_over(hold, &why, -1);
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
    try_over(hold, &why, -1);
}

static void granted(hf_hold *hold, uint64_t fence, int64_t remaining_ms)
{
    hf__instant sent = request_of(hold)->sent;
    if (HF__MUTANT(RESEND_FULL_LEASE))
        remaining_ms = hf__span_to_ms(hold->lease);
    hf__hold_believe(hold, sent, remaining_ms);
    if (hf__hold_expired(hold)) {
        granted_too_late(hold);
        return;
    }
    hold->stage = HF__HOLD_HELD;
    hold->users = 1;
    hold->fence = fence;
    hold->run = hold->link->run;
    hold->granted = hold->core->now;
    hold->fence_kept = sent;
    hf__stats_granted(hold, hold->call);
    hf__reentry_allow(hold);
    hf__watch_renewed(hold, sent);
    hand_out(hold, hold->call);
}

static void busy(hf_hold *hold, int64_t remaining_ms, const hf__reply *holder)
{
    char shown[120];
    hf_error why;
    hold->granted_late = false;
    if (!hold->call->contended)
        hold->core->stats.contentions++;
    hold->call->contended = true;
    hf_hold *ours = hf__release_find(hold, (hf__slice){holder->text, holder->length});
    if (ours != NULL) {
        /* It is a hold of our own that is being released, and its release was refused for the
         * moment (such as: the server had forgotten the script). Go again, behind it. */
        hf__release_hurry(ours);
        hf__link_submit(request_of(hold));
        return;
    }
    hf__printable(shown, sizeof(shown), holder->text, holder->length);
    hf__fail(&why, HF_EBUSY, "held by %s", shown);
    try_over(hold, &why, remaining_ms);
}

/* {fence, remaining}, {0, remaining, holder} or {-1} */
bool hf__acquire_answered(hf_hold *hold, const hf__reply *reply)
{
    const hf__reply *words = reply->elements;
    size_t count = reply->kind == HF__REPLY_ARRAY ? reply->count : 0;
    hold->call->round_trip = hf__between(request_of(hold)->sent, hold->core->now);
    if (count == 0 || words[0].kind != HF__REPLY_INTEGER)
        return false;
    if (count == 1 && words[0].integer == -1) {
        /* No live call can have sent a release; so a copy was granted, and broken by force. */
        hf__acquire_end(hold, HF_EBUSY, "taken away by force while it was being acquired");
        return true;
    }
    if (count < 2 || words[1].kind != HF__REPLY_INTEGER)
        return false;
    int64_t remaining_ms = hf__sane_ms(words[1].integer);
    if (count == 2 && words[0].integer > 0 && remaining_ms >= 0) {
        granted(hold, (uint64_t)words[0].integer, remaining_ms);
        return true;
    }
    if (count == 3 && words[0].integer == 0 && words[2].kind == HF__REPLY_TEXT) {
        busy(hold, remaining_ms, &words[2]);
        return true;
    }
    return false;
}

void hf__acquire_refused(hf_hold *hold, const hf_error *why)
{
    if (hf__may_pass(why->status))
        try_over(hold, why, -1);
    else
        hf__acquire_end(hold, why->status, why->text);
}

/* A request of which a copy is out waits for the next connection; only its answer tells. */
void hf__acquire_unreachable(hf_hold *hold, const hf_error *why)
{
    if (!hf__may_pass(why->status)) {
        hf__acquire_end(hold, why->status, why->text);
    } else if (!hold->copy_lost) {
        hf__link_withdraw(request_of(hold));
        try_over(hold, why, -1);
    }
}
