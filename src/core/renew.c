/* SPDX-License-Identifier: MIT */
/* Manual renewal. A hold serves its extend calls one after the other; each sends one renewal, and
 * its answer moves the deadline. Nothing is believed after the deadline has passed. A broken or
 * silent connection is no answer: the request is sent again on the next one until the deadline;
 * an error that the server sends is handed to the caller, for whom the old deadline still stands.
 */
#include "base/mutant.h"
#include "core/state.h"

static hf__request *request_of(hf_hold *hold)
{
    return &hold->requests[HF__REQUEST_RENEW];
}

static hf__call *first_call(hf_hold *hold)
{
    hf__node *node = hf__list_first(&hold->extends);
    return node != NULL ? HF__ENTRY(node, hf__call, node) : NULL;
}

static void end_first(hf_hold *hold, hf_status status, const char *text)
{
    hf__call *call = first_call(hold);
    hf__list_remove(&hold->extends, &call->node);
    hf__call_done(hold->core, call, status, text);
}

void hf__extend_end_all(hf_hold *hold, hf_status status, const char *text)
{
    hf__link_withdraw(request_of(hold));
    while (first_call(hold) != NULL)
        end_first(hold, status, text);
}

static void lose(hf_hold *hold, const char *text)
{
    hf__hold_lose(hold);
    hf__extend_end_all(hold, HF_ELOST, text);
}

static void serve_next(hf_hold *hold)
{
    if (first_call(hold) != NULL)
        hf__link_submit(request_of(hold));
}

/* A call ends with its hold. */
static void set_timer(hf__call *call)
{
    hf__core *core = call->hold->core;
    call->deadline = hf__after(core->now, hf__hold_remaining(call->hold, core->now));
    hf__timer_set(&core->timers, &call->timer, call->deadline);
}

void hf__extend_start(hf__call *call)
{
    hf_hold *hold = call->hold;
    hf__core *core = hold->core;
    if (core->closing || hold->state != HF__HOLD_HELD) {
        hf__call_done(core, call, HF_ECLOSED, "the client is being closed");
        return;
    }
    hf__list_append(&hold->extends, &call->node);
    if (hf__hold_expired(hold)) {
        lose(hold, "the lease has ended");
        return;
    }
    if (hold->longest_lease.ns < call->lease.ns)
        hold->longest_lease = call->lease;
    set_timer(call);
    serve_next(hold);
}

void hf__extend_timer(hf__call *call)
{
    hf_hold *hold = call->hold;
    if (hf__hold_expired(hold)) {
        lose(hold, "the lease ended before the server answered");
        return;
    }
    set_timer(call); /* another call has moved the deadline */
}

bool hf__extend_answered(hf_hold *hold, const hf__reply *reply)
{
    if (reply->kind != HF__REPLY_INTEGER)
        return false;
    if (reply->integer <= 0) {
        lose(hold, "the server no longer knows this hold");
        return true;
    }
    if ((hf__hold_expired(hold) && !HF__MUTANT(REVIVES)) ||
        !hf__hold_believe(hold, request_of(hold)->sent, hf__sane_ms(reply->integer))) {
        lose(hold, "the lease ended before the server's answer came");
        return true;
    }
    if (first_call(hold) != NULL)
        end_first(hold, HF_OK, "");
    serve_next(hold);
    return true;
}

void hf__extend_refused(hf_hold *hold, const hf_error *why)
{
    if (first_call(hold) != NULL)
        end_first(hold, why->status, why->text);
    serve_next(hold);
}

void hf__extend_unreachable(hf_hold *hold, const hf_error *why)
{
    if (!hf__may_pass(why->status))
        hf__extend_end_all(hold, why->status, why->text);
}
