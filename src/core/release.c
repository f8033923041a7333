/* SPDX-License-Identifier: MIT */
/* Giving back: a hold that ends is released at the server, by a call that waits for the outcome or
 * in the background, until the server has answered or the lease is over anyway.
 *
 * "Lost" is said when the deadline had passed before the release was asked for, and when the server
 * does not know the hold although no copy of the release has gone unanswered. If one has, and the
 * next finds nothing, that one may have done it, or somebody else took the lock away before: the
 * outcome is unknown, unless the server still has the fence of the hold, which every release takes
 * away. Another server process may have forgotten the lock long before. */
#include <string.h>

#include "base/mutant.h"
#include "core/fail.h"
#include "core/state.h"

enum { RETRY_MS = 100, RETRY_FINAL_MS = 1000, LONG_US = 500 };
enum { RELEASED = 1, FENCE_THERE = 2 }; /* what the script says; see src/lua/release.lua */

static hf__request *request_of(hf_hold *hold)
{
    return &hold->requests[HF__REQUEST_RELEASE];
}

/* The call that waits for the outcome. One that acquires, and gives back what too few replicas have
 * acknowledged, has its own. */
static hf__call *call_of(const hf_hold *hold)
{
    return hold->call != NULL && hold->call->kind == HF__CALL_RELEASE ? hold->call : NULL;
}

void hf__release_end_call(hf_hold *hold, hf_status status, const char *text)
{
    hf__call *call = call_of(hold);
    if (call == NULL)
        return;
    hold->call = NULL;
    hf__call_done(hold->core, call, status, text);
}

static void end_unknown(hf_hold *hold, const char *when)
{
    hf_error unknown;
    hf__fail(&unknown, HF_EUNKNOWN, "%s gave no answer %s", hold->link->server->url->display, when);
    hf__release_end_call(hold, HF_EUNKNOWN, unknown.text);
}

/* How long the server can have it still: one that is queued may be granted as long as it counts as
 * alive, for a lease, and then it lasts another. */
static hf__span lasts_at_most(const hf_hold *hold)
{
    if (HF__MUTANT(SHORT_CLEANUP))
        return hold->lease;
    return (hf__span){hold->longest_lease.ns * (hold->place.base > 0 ? 2 : 1)};
}

void hf__release_in_background(hf_hold *hold)
{
    hf__core *core = hold->core;
    hf__link_withdraw(&hold->requests[HF__REQUEST_RENEW]);
    hold->stage = HF__HOLD_RELEASING;
    hf__list_append(&core->releasing, &hold->releasing);
    atomic_store(&hold->deadline_ns, 0);
    hold->give_up = hf__later(hold->give_up, hf__after(core->now, lasts_at_most(hold)));
    hf__timer_set(&core->timers, &hold->timer, hold->give_up);
    if (hold->ballot != NULL)
        hf__handback_start(hold);
    else
        hf__link_submit(request_of(hold));
}

/* What the application loses with its last handle. */
static void let_go(hf_hold *hold)
{
    hf__renew_end_calls(hold, HF_EINVAL, "the hold was released by another thread");
    hf__reentry_forbid(hold);
    hf__watch_end(hold);
}

/* Whether others want it who have had the time to fall asleep, and need a processor to wake up. */
static bool gives_way(const hf_hold *hold)
{
    return hold->contended && hf__between(hold->granted, hold->core->now).ns > LONG_US * 1000;
}

static hf_status release_last(hf_hold *hold, hf__call *call)
{
    hf__core *core = hold->core;
    hf_status status = HF_OK;
    hold->call = call;
    core->gives_way = gives_way(hold);
    let_go(hold);
    if (hf__hold_expired(hold)) {
        hf__hold_expire(hold, "");
        status = HF_ELOST;
        hf__release_end_call(hold, status, hf_reason_text((hf_reason)hold->reason));
    } else {
        hf__stats_ended(hold);
    }
    if (HF__MUTANT(LOST_KEPT) && status == HF_ELOST) {
        hf__hold_over(hold);
        hf__cohort_leave(hold);
        return status;
    }
    hf__release_in_background(hold); /* a lost one too: the server may still have it */
    hf__cohort_leave(hold);
    if (hold->call != NULL) {
        call->gives_way = core->gives_way;
        call->deadline = hf__after(core->now, core->config.call_timeout);
        hf__timer_set(&core->timers, &call->timer, call->deadline);
    }
    return status;
}

/* Returns what can be said before the server answers: HF_OK if it must be asked, else the outcome,
 * which a call has then been told. */
hf_status hf__release_start(hf_hold *handle, hf__call *call)
{
    hf__core *core = handle->core;
    hf_hold *all = hf__hold_of(handle);
    hf_status status = hf__hold_expired(all) ? HF_ELOST : HF_OK;
    hf_hold *hold = hf__reentry_leave(handle);
    if (core->closing || all->stage != HF__HOLD_HELD) {
        status = HF_ECLOSED;
        if (call != NULL)
            hf__call_done(core, call, status,
                          "the client is being closed, which releases the lock");
    } else if (hold != NULL && (status != HF_OK || !hf__cohort_hand_over(hold, call))) {
        if (call != NULL)
            call->hold = hold; /* whichever handle was the last: the hold is released */
        status = release_last(hold, call);
    } else if (hold == NULL && call != NULL) {
        hf__call_done(core, call, status, status == HF_OK ? "" : "the hold has ended");
    }
    hf__hold_settle(all);
    return status;
}

void hf__release_call_timer(hf__call *call)
{
    hf_hold *hold = call->hold;
    hf_error late, unsent;
    if (hold->ballot != NULL) {
        hf__handback_late(hold, &late);
        hf__release_end_call(hold, late.status, late.text);
    } else if (call->error.status != HF_OK)
        hf__release_end_call(hold, call->error.status, call->error.text);
    else if (request_of(hold)->place == HF__IN_FLIGHT || request_of(hold)->unanswered)
        end_unknown(hold, "in time; the release goes on in the background");
    else {
        hf__flow_trouble(hold->link, &unsent);
        hf__release_end_call(hold, HF_EUNAVAILABLE, unsent.text);
    }
}

void hf__release_timer(hf_hold *hold)
{
    hf__core *core = hold->core;
    if (!hf__before(core->now, hold->give_up)) {
        if (!hf__vote_of_nobody(hold))
            hf__log(core, HF_LOG_WARNING, "a release was not answered; its lease is over now");
        if (hold->ballot != NULL) {
            hf__handback_over(hold);
            return;
        }
        if (hold->call != NULL)
            end_unknown(hold, "before the lease was over");
        hf__hold_over(hold);
        hf__hold_settle(hold);
        return;
    }
    hf__timer_set(&core->timers, &hold->timer, hold->give_up);
    if (hold->ballot == NULL)
        hf__link_submit(request_of(hold));
}

static bool is_broken(const hf_hold *hold, int64_t word)
{
    return hold->fence > 0 && word <= -(int64_t)hold->fence;
}

/* What the server's word comes to. */
static hf__outcome outcome_of(hf_hold *hold, int64_t word)
{
    bool repeated = request_of(hold)->unanswered && hold->run == hold->link->run;
    if (word == RELEASED)
        return HF__RELEASE_DONE;
    if (word == FENCE_THERE || is_broken(hold, word) || !repeated)
        return HF__RELEASE_LOST;
    return HF__MUTANT(UNKNOWN_RELEASED) ? HF__RELEASE_DONE : HF__RELEASE_UNKNOWN;
}

static void tell_lost(hf_hold *hold, int64_t word)
{
    const char *text = "the lock was taken away before the release";
    if (is_broken(hold, word))
        text = hf_reason_text(HF_REASON_BROKEN);
    else if (hold->run != hold->link->run)
        text = "the server restarted and may have lost the lock";
    hf__release_end_call(hold, HF_ELOST, text);
}

bool hf__release_answered(hf_hold *hold, const hf__reply *reply)
{
    if (reply->kind != HF__REPLY_INTEGER || reply->integer > FENCE_THERE)
        return false;
    int64_t word = reply->integer;
    hf__outcome outcome = outcome_of(hold, word);
    if (outcome != HF__RELEASE_UNKNOWN)
        hf__stats_released(hold, outcome == HF__RELEASE_DONE,
                           is_broken(hold, word) ? HF_REASON_BROKEN : HF_REASON_GONE);
    if (hold->vote != NULL)
        hf__vote_released(hold, outcome);
    if (outcome == HF__RELEASE_DONE)
        hf__release_end_call(hold, HF_OK, "");
    else if (outcome == HF__RELEASE_LOST)
        tell_lost(hold, word);
    else
        hf__release_end_call(hold, HF_EUNKNOWN,
                             "the answer to the release was lost, and the lock was gone when it "
                             "was sent again: released by the first copy, or lost before");
    hf__hold_over(hold);
    return true;
}

void hf__release_refused(hf_hold *hold, const hf_error *why)
{
    hf__core *core = hold->core;
    if (call_of(hold) != NULL)
        call_of(hold)->error = *why;
    int64_t pause_ms = RETRY_MS;
    if (!hf__may_pass(why->status)) {
        hf__release_end_call(hold, why->status, why->text);
        pause_ms = RETRY_FINAL_MS;
        request_of(hold)->refused = true;
    }
    hf__instant again = hf__after(core->now, hf__span_ms(pause_ms));
    hf__timer_set(&core->timers, &hold->timer, hf__earlier(again, hold->give_up));
}

void hf__release_unreachable(hf_hold *hold, const hf_error *why)
{
    if (hold->vote != NULL)
        hf__vote_unreachable(hold);
    if (!hf__may_pass(why->status))
        hf__release_end_call(hold, why->status, why->text);
}

static bool same(hf__slice a, hf__slice b)
{
    return a.length == b.length && memcmp(a.bytes, b.bytes, a.length) == 0;
}

hf_hold *hf__release_find(const hf_hold *wanting, hf__slice value)
{
    hf__list *list = &wanting->core->releasing;
    for (hf__node *node = hf__list_first(list); node != NULL; node = hf__list_next(list, node)) {
        hf_hold *hold = HF__ENTRY(node, hf_hold, releasing);
        if (hold->link == wanting->link && same(hf__hold_in_key(hold), value) &&
            same(hf__hold_key(hold), hf__hold_key(wanting)))
            return request_of(hold)->refused ? NULL : hold;
    }
    return NULL;
}

void hf__release_hurry(hf_hold *hold)
{
    hf__link_submit(request_of(hold));
}
