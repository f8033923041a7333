/* SPDX-License-Identifier: MIT */
/* A grant that replicas must have too. After the server's word, and before the application hears of
 * it, two requests follow in one write: confirm, a script that writes the grant down once more, and
 * WAIT, which is answered when so many replicas have acknowledged all that this connection has
 * written, or when its time is over. Only both answers make the hold one that is held; its deadline
 * is the one of the grant. Anything else gives it back.
 *
 * Why not a WAIT alone: it covers the writes of its own connection, and the grant may have been
 * made by an acquire on another one, or by a release of another client. So confirm must be answered
 * on the connection of the WAIT, and if that breaks, both go again.
 *
 * A call that may wait tries again, but only when what it had has been given back for certain: all
 * tries of a call have the same value, and a release that came late would end what is granted next.
 *
 * WAIT stalls everything behind it on its connection. So these two have a link of their own, the
 * last one of the server, which is opened when first needed. Those of several holds queue there one
 * behind the other: each takes as long as its replicas do, and delays the next; nothing else. With
 * several servers there is neither that link nor any of this: a majority has the lock instead. */
#include "base/memory.h"
#include "base/text.h"
#include "core/fail.h"
#include "core/state.h"

enum {
    LEASE_DIVISOR = 2, /* it is given up when so much of the lease is over */
    WAIT_DIVISOR = 2   /* of the time that is left: so that the server's answer comes before */
};

hf__link *hf__careful_link(hf__server *server)
{
    return &server->links[server->core->config.links + 1];
}

bool hf__replicas_new(hf_hold *hold, int count)
{
    hf__replicas *replicas = hf__alloc(sizeof(*replicas));
    if (replicas == NULL)
        return false;
    replicas->hold = hold;
    replicas->count = count;
    replicas->confirm.kind = HF__REQUEST_CONFIRM;
    replicas->wait.kind = HF__REQUEST_WAIT;
    hold->replicas = replicas;
    return true;
}

void hf__replicas_withdraw(hf_hold *hold)
{
    if (hold->replicas == NULL)
        return;
    hf__link_withdraw(&hold->replicas->confirm);
    hf__link_withdraw(&hold->replicas->wait);
}

bool hf__replicas_idle(const hf_hold *hold)
{
    const hf__replicas *replicas = hold->replicas;
    return replicas == NULL ||
           (replicas->confirm.place == HF__IDLE && replicas->wait.place == HF__IDLE);
}

/* ---- Giving back ---- */

/* The next try begins when the server has said that it has it back. */
void hf__replicas_failed(hf_hold *hold, const hf_error *why)
{
    hf__core *core = hold->core;
    hf__call *call = hold->call;
    bool last_try = call->retries_limited && call->max_retries-- == 0;
    call->error = *why;
    if (last_try || !hf__may_pass(why->status) || !hf__before(core->now, call->deadline)) {
        hf__acquire_end(hold, why->status, why->text);
        return;
    }
    hf__replicas_withdraw(hold);
    hf__release_in_background(hold);
    call->try_ends = hf__after(core->now, core->config.call_timeout);
    hf__acquire_set_timer(call);
}

/* Whether a copy may still arrive: then it cannot begin anew with the same value, for one of its
 * release would end what is granted next, and a tombstone prevent it. */
static bool may_come_late(const hf_hold *hold)
{
    return hold->copy_lost || hold->requests[HF__REQUEST_RELEASE].unanswered;
}

void hf__replicas_given_back(hf_hold *hold)
{
    hf__call *call = hold->call;
    call->next_try = hf__acquire_plan(call, -1);
    if (hf__is_never(call->next_try) || may_come_late(hold)) {
        hf__acquire_end(hold, call->error.status, call->error.text);
        return;
    }
    hold->stage = HF__HOLD_TRYING;
    hold->granted_late = false;
    hold->handed = false;
    hold->place.base = 0; /* grants to copies from before are out of date */
    hold->place.number = 0;
    hf__acquire_set_timer(call);
}

static void fail_try(hf_hold *hold, const char *text)
{
    hf_error why;
    hf__fail(&why, HF_EUNAVAILABLE, "%s; given back", text);
    hf__replicas_failed(hold, &why);
}

/* ---- Asking ---- */

void hf__replicas_ask(hf_hold *hold, uint64_t fence)
{
    hf__core *core = hold->core;
    hf__call *call = hold->call;
    hf__link *link = hf__careful_link(hold->link->server);
    hf__span part = {hold->lease.ns / LEASE_DIVISOR};
    hold->replicas->fence = fence; /* the hold has it when it is handed out */
    hold->stage = HF__HOLD_CONFIRMING;
    call->next_try = HF__NEVER;
    call->try_ends =
        hf__earlier(hf__after(core->now, core->config.call_timeout), hf__after(core->now, part));
    hf__acquire_set_timer(call);
    if (hf__link_full(link)) {
        fail_try(hold, "too many requests wait for replicas");
        return;
    }
    hf__link_enqueue(&hold->replicas->confirm);
    hf__link_submit(&hold->replicas->wait);
}

/* ---- On the wire ---- */

/* Never 0, which would be without end. */
static int64_t patience_ms(const hf_hold *hold)
{
    const hf__core *core = hold->core;
    hf__instant ends = hf__earlier(hold->call->try_ends, hold->call->deadline);
    hf__span left = hf__between(core->now, ends);
    if (left.ns > core->config.reply_timeout.ns)
        left = core->config.reply_timeout;
    int64_t ms = hf__span_to_ms((hf__span){left.ns / WAIT_DIVISOR});
    return ms > 0 ? ms : 1;
}

bool hf__replicas_encode_wait(const hf_hold *hold, hf__buffer *out)
{
    char count[20], ms[20];
    hf__slice words[] = {HF__SLICE("WAIT"),
                         {count, hf__digits(count, (uint64_t)hold->replicas->count)},
                         {ms, hf__digits(ms, (uint64_t)patience_ms(hold))}};
    return hf__resp_encode(out, words, 3);
}

/* ---- Answers ---- */

bool hf__confirm_answered(hf_hold *hold, const hf__reply *reply)
{
    if (reply->kind != HF__REPLY_INTEGER || reply->integer < 0 || reply->integer > 1)
        return false;
    if (reply->integer == 0)
        fail_try(hold, "the lock was gone before replicas had it");
    return true;
}

/* Without the answer of confirm before it, it says nothing. */
bool hf__wait_answered(hf_hold *hold, const hf__reply *reply)
{
    const hf__replicas *replicas = hold->replicas;
    char text[100];
    if (reply->kind != HF__REPLY_INTEGER || reply->integer < 0 ||
        replicas->confirm.place != HF__IDLE)
        return false;
    if (reply->integer < replicas->count) {
        hf__span waited = hf__between(replicas->wait.sent, hold->core->now);
        hf__format(text, sizeof(text), "%lld of %d replicas acknowledged within %lld ms",
                   (long long)reply->integer, replicas->count, (long long)hf__span_to_ms(waited));
        fail_try(hold, text);
    } else if (hf__hold_expired(hold)) {
        fail_try(hold, "the lease was over before replicas had acknowledged it");
    } else {
        hf__acquire_take(hold, replicas->fence, hold->fence_kept, false);
    }
    return true;
}

void hf__replicas_late(hf_hold *hold)
{
    fail_try(hold, "no answer about replicas in time");
}
