/* SPDX-License-Identifier: MIT */
/* Holds that go from one process to another: a token has all that makes a hold.
 *
 * Detaching ends what we do for a hold and leaves the lock alone. Attaching is a renewal, sent for
 * a hold that nobody here has yet: what the server answers decides whether there is one. If it
 * fails, the hold is dropped and not released, for the lock is not ours to give back. */
#include "base/mutant.h"
#include "core/fail.h"
#include "core/state.h"

static hf__request *request_of(hf_hold *hold)
{
    return &hold->requests[HF__REQUEST_RENEW];
}

/* ---- Detach ---- */

/* Whether a copy of its acquire may reach the server after the release, which others will send. */
bool hf__detach_is_late(const hf_hold *hold)
{
    bool late = hold->copy_lost || hold->requests[HF__REQUEST_ACQUIRE].place == HF__IN_FLIGHT;
    return late && !HF__MUTANT(DETACH_FORGETS);
}

hf_status hf__detach(hf_hold *handle, bool *late)
{
    hf_hold *hold = hf__hold_of(handle);
    if (hold->users > 1)
        return HF_EINVAL;
    if (hold->core->closing || hold->stage != HF__HOLD_HELD || hf__hold_expired(hold))
        return hf__release_start(handle, NULL);
    *late = hf__detach_is_late(hold);
    hf__reentry_leave(handle);
    hf__renew_end_calls(hold, HF_EINVAL, "the hold was detached by another thread");
    hf__reentry_forbid(hold);
    if (HF__MUTANT(DETACH_RENEWS))
        return HF_OK;
    hf__watch_end(hold);
    hf__stats_ended(hold);
    if (hold->ballot != NULL)
        *late = hf__takeover_detach(hold) || *late;
    hf__hold_over(hold);
    hf__cohort_leave(hold);
    hf__hold_settle(hold);
    return HF_OK;
}

/* ---- Attach ---- */

static hf__call *call_of(hf_hold *hold)
{
    return HF__ENTRY(hf__list_first(&hold->extends), hf__call, node);
}

void hf__attach_start(hf__core *core, hf__call *call)
{
    hf_hold *hold = call->hold;
    hold->core = core;
    bool quorum = hf__is_quorum(core), has_memory = !quorum || hf__ballot_new(hold);
    hold->link = quorum ? NULL : hf__server_link(&core->servers[0], hold->slot);
    hold->stage = HF__HOLD_HELD;
    hold->attaching = true;
    call->started = core->now;
    atomic_store(&hold->deadline_ns, HF__NEVER.ns); /* which nobody can see */
    hf__list_append(&core->holds, &hold->node);
    hf__list_append(&hold->extends, &call->node);
    if (core->closing) {
        hf__attach_fail(hold, HF_ECLOSED, "the client is being closed");
    } else if (!has_memory) {
        hf__attach_fail(hold, HF_ENOMEM, "out of memory");
    } else if (!quorum && hf__link_full(hold->link)) {
        hf__attach_fail(hold, HF_EUNAVAILABLE, "too many requests wait for this server");
    } else {
        call->deadline = hf__after(core->now, core->config.call_timeout);
        hf__timer_set(&core->timers, &call->timer, call->deadline);
        if (quorum)
            hf__takeover_start(hold);
        else
            hf__link_submit(request_of(hold));
    }
    hf__hold_settle(hold);
}

/* From now on its deadline is what the server says, unless that has passed already: then nobody
 * gets the hold. Messages for it go to the client that acquired it; what they would say comes with
 * the renewals too. */
bool hf__attach_confirm(hf_hold *hold, hf__instant sent, int64_t remaining_ms)
{
    atomic_store(&hold->deadline_ns, 1); /* long ago, so that any other is later */
    hf__hold_believe(hold, HF__MUTANT(ATTACH_EARLY) ? hold->core->now : sent, remaining_ms);
    if (hf__hold_expired(hold)) {
        hf__attach_fail(hold, HF_ELOST, "the lease ended before the server's answer came");
        return false;
    }
    hold->attaching = false;
    hold->handed = true;
    hold->users = 1;
    hold->run = hold->link->run;
    hold->granted = hold->core->now;
    /* Longer than anybody here has asked for, if somebody elsewhere has extended it. */
    hold->give_up = hf__after(hold->core->now, hf__span_ms(remaining_ms));
    hf__stats_granted(hold, call_of(hold));
    return true;
}

/* What the servers have stays there. */
static void let_be(hf_hold *hold)
{
    if (hold->ballot != NULL)
        hf__takeover_end(hold);
    hf__hold_over(hold);
}

void hf__attach_fail(hf_hold *hold, hf_status status, const char *text)
{
    hf__call *call = call_of(hold);
    hold->attaching = false;
    hf__list_remove(&hold->extends, &call->node);
    if (HF__MUTANT(ATTACH_RELEASES) && !hold->core->closing)
        hf__release_in_background(hold);
    else
        let_be(hold);
    hold->core->stats.failures += hold->vote == NULL;
    hf__call_done(hold->core, call, status, text);
}

void hf__attach_timer(hf__call *call)
{
    hf_hold *hold = call->hold;
    if (hold->ballot != NULL) {
        hf__takeover_timer(hold);
        return;
    }
    hf_error unknown, unsent;
    hf__fail(&unknown, HF_EUNKNOWN, "%s gave no answer in time", hold->link->server->url->display);
    if (request_of(hold)->place == HF__IN_FLIGHT || request_of(hold)->unanswered)
        hf__attach_fail(hold, HF_EUNKNOWN, unknown.text);
    else {
        hf__flow_trouble(hold->link, &unsent);
        hf__attach_fail(hold, HF_EUNAVAILABLE, unsent.text);
    }
    hf__hold_settle(hold);
}
