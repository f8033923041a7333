/* SPDX-License-Identifier: MIT */
/* Renewals: for calls that ask for one (hf_extend), and for the watchdog (watch.c). A hold has one
 * renewal under way at a time, and its answer moves the deadline; it serves the watchdog and the
 * first call that waits, if it asked for enough; the next call sends its own. Nothing is believed
 * after the deadline has passed. A broken or silent connection is no answer: the request is sent
 * again on the next one until the deadline; an error that the server sends is handed to the caller,
 * for whom the old deadline still stands, while the watchdog tries again.
 *
 * With the answer comes what others have left for the holder: a request to give up, or the news
 * that the hold was broken by force; each names the fence that it is meant for. */
#include <string.h>

#include "base/memory.h"
#include "base/mutant.h"
#include "base/text.h"
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

void hf__renew_end_first(hf_hold *hold, hf_status status, const char *text)
{
    hf__call *call = first_call(hold);
    hf__list_remove(&hold->extends, &call->node);
    hf__call_done(hold->core, call, status, text);
}

void hf__renew_end_calls(hf_hold *hold, hf_status status, const char *text)
{
    if (hold->renewal != HF__UNDER_WAY)
        hf__link_withdraw(request_of(hold));
    while (first_call(hold) != NULL)
        hf__renew_end_first(hold, status, text);
}

bool hf__renew_first(const hf_hold *hold, hf__span *lease)
{
    const hf__node *node = hf__list_first(&hold->extends);
    if (node != NULL)
        *lease = HF__ENTRY(node, hf__call, node)->lease;
    return node != NULL;
}

static void serve_next(hf_hold *hold)
{
    if (hold->ballot != NULL)
        hf__majority_extend(hold);
    else if (first_call(hold) != NULL)
        hf__link_submit(request_of(hold));
}

/* ---- Calls ---- */

/* A call needs no timer: it ends with its hold, which the watchdog sees to. */
void hf__renew_start(hf__call *call)
{
    hf_hold *hold = call->hold = hf__hold_of(call->hold);
    hf__core *core = hold->core;
    if (core->closing || hold->stage != HF__HOLD_HELD) {
        hf__call_done(core, call, HF_ECLOSED, "the client is being closed");
        return;
    }
    hf__list_append(&hold->extends, &call->node);
    if (hf__hold_expired(hold)) {
        hf__hold_expire(hold, "the lease has ended");
        return;
    }
    if (hold->longest_lease.ns < call->lease.ns)
        hold->longest_lease = call->lease;
    serve_next(hold);
}

/* ---- Answers ---- */

/* The fence that a note begins with; false: it does not. */
static bool fence_of(hf__slice note, uint64_t *fence)
{
    return hf__parse_leading(note.bytes, note.length, INT64_MAX, fence) > 0;
}

static bool says_broken(const hf_hold *hold, hf__slice note)
{
    uint64_t fence;
    return fence_of(note, &fence) && fence >= hold->fence;
}

static void gone(hf_hold *hold, const hf__reply *note)
{
    if (HF__MUTANT(FENCE_UNHELD) && hf__vote_is_raising(hold)) {
        hf__vote_confirmed(hold, request_of(hold)->sent);
        return;
    }
    if (note != NULL && says_broken(hold, (hf__slice){note->text, note->length}))
        hf__hold_lose(hold, HF_REASON_BROKEN, hf_reason_text(HF_REASON_BROKEN));
    else
        hf__hold_lose(hold, HF_REASON_GONE, "the server no longer knows this hold");
}

void hf__renew_broken(hf_hold *hold, hf__slice note)
{
    if (hold->stage == HF__HOLD_HELD && says_broken(hold, note))
        hf__hold_lose(hold, HF_REASON_BROKEN, hf_reason_text(HF_REASON_BROKEN));
}

/* "<fence>:<words>" or, if the fence was lost, "=<value of the lock>:<words>". The words, if the
 * note is meant for this hold; else NULL. The server knows the last of the fences that a grant has.
 */
static const char *words_for(const hf_hold *hold, hf__slice note)
{
    hf__slice value = hf__hold_in_key(hold);
    const char *colon = note.length > 0 ? memchr(note.bytes, ':', note.length) : NULL;
    uint64_t fence;
    if (fence_of(note, &fence))
        return fence == hold->fence_top && colon != NULL ? colon + 1 : NULL;
    bool ours = note.length >= value.length + 2 && note.bytes[0] == '=' &&
                memcmp(note.bytes + 1, value.bytes, value.length) == 0 &&
                note.bytes[1 + value.length] == ':';
    return ours ? note.bytes + value.length + 2 : NULL;
}

/* A holder is told once, with the words that came first. */
void hf__renew_note(hf_hold *hold, hf__slice note)
{
    const char *words = words_for(hold, note);
    if (hold->vote != NULL)
        hold = hf__vote_main(hold);
    if (hold == NULL)
        return;
    if (hold->stage != HF__HOLD_HELD || hold->revoked || words == NULL)
        return;
    hold->revoked = true;
    hold->revoked_text = hf__alloc(HF_REASON_MAX + 1); /* without the words if there is no memory */
    size_t length = note.length - (size_t)(words - note.bytes);
    if (hold->revoked_text != NULL)
        hf__printable(hold->revoked_text, HF_REASON_MAX + 1, words, length);
    if (!hold->attaching) /* else nobody has it yet */
        hf__tell_all(hold);
}

static void renewed(hf_hold *hold, int64_t remaining_ms)
{
    hf__instant sent = request_of(hold)->sent;
    if (HF__MUTANT(RENEW_LOST) && atomic_load(&hold->state) == HF_LOST) {
        hf__watch_refused(hold); /* goes on as if nothing had happened */
        return;
    }
    bool expired = hf__hold_expired(hold) && !HF__MUTANT(REVIVES);
    if (hold->attaching && !hf__attach_confirm(hold, sent, remaining_ms))
        return;
    if (expired || !hf__hold_believe(hold, sent, remaining_ms)) {
        hf__hold_expire(hold, "the lease ended before the server's answer came");
        return;
    }
    hold->core->stats.renewals += hold->vote == NULL;
    if (hold->asked_to_keep)
        hold->fence_kept = sent;
    hold->asked_to_keep = false;
    hold->link->refuses_renewals = false;
    hf__watch_renewed(hold, sent);
    if (first_call(hold) != NULL && first_call(hold)->lease.ns <= hold->asked.ns)
        hf__renew_end_first(hold, HF_OK, ""); /* else it came when a shorter one was under way */
    serve_next(hold);
    if (hold->vote != NULL)
        hf__vote_confirmed(hold, sent);
}

/* Asks again at once, with the script that finds out what is the matter. False: it was that one. */
static bool look_closer(hf_hold *hold)
{
    if (hf__hold_expired(hold)) {
        hf__hold_expire(hold, "the lease ended before the server's answer came");
        return true;
    }
    if (hold->look_closer)
        return false;
    hold->look_closer = true;
    hf__link_enqueue(request_of(hold)); /* sent when the rest of the call has been answered */
    return true;
}

bool hf__renew_answered(hf_hold *hold, const hf__reply *reply)
{
    const hf__reply *note = NULL;
    if (reply->kind == HF__REPLY_ARRAY) {
        if (reply->count != 2 || reply->elements[1].kind != HF__REPLY_TEXT)
            return false;
        note = &reply->elements[1];
        reply = &reply->elements[0];
    }
    if (reply->kind != HF__REPLY_INTEGER || reply->integer < HF__LOOK_CLOSER)
        return false;
    hold->shares_call = 0;
    if (reply->integer == HF__LOOK_CLOSER)
        return look_closer(hold);
    if (reply->integer == 0) {
        gone(hold, note);
        return true;
    }
    /* What kept refresh from renewing it will do so again: a note stays, and so does the rest of a
     * longer lease. */
    hold->look_closer = note != NULL || reply->integer > hf__span_to_ms(hold->asked);
    renewed(hold, hf__sane_ms(reply->integer));
    if (note != NULL)
        hf__renew_note(hold, (hf__slice){note->text, note->length});
    return true;
}

void hf__renew_refused(hf_hold *hold, const hf_error *why)
{
    hold->core->stats.renewal_failures++;
    if (!hold->link->refuses_renewals)
        hf__log(hold->core, HF_LOG_WARNING, "a renewal was refused: %s", why->text);
    hold->link->refuses_renewals = true;
    if (hold->attaching) {
        hf__attach_fail(hold, why->status, why->text);
        return;
    }
    if (hold->renewal == HF__UNDER_WAY)
        hf__watch_refused(hold);
    if (first_call(hold) != NULL)
        hf__renew_end_first(hold, why->status, why->text);
    serve_next(hold);
}

void hf__renew_unreachable(hf_hold *hold, const hf_error *why)
{
    if (hold->attaching && (!hf__may_pass(why->status) || !request_of(hold)->unanswered))
        hf__attach_fail(hold, why->status, why->text);
    else if (!hf__may_pass(why->status))
        hf__renew_end_calls(hold, why->status, why->text);
}
