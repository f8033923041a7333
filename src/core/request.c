/* SPDX-License-Identifier: MIT */
/* What a request looks like on the wire, and who is told what came of it. All requests are script
 * calls on the keys of one lock; everything about a copy is taken from its hold at the moment of
 * sending, so that a resent copy has the same identity and never an outdated argument. */
#include "core/name.h"
#include "core/state.h"

#include "base/mutant.h"
#include "base/text.h"

enum { WORDS_MAX = 7 };

static const struct {
    hf__script_id script;
    bool side_key;
    bool (*answered)(hf_hold *, const hf__reply *);
    void (*refused)(hf_hold *, const hf_error *);
    void (*unreachable)(hf_hold *, const hf_error *);
} kinds[HF__REQUEST_KINDS] = {
    {HF__SCRIPT_ACQUIRE, true, hf__acquire_answered, hf__acquire_refused, hf__acquire_unreachable},
    {HF__SCRIPT_RELEASE, true, hf__release_answered, hf__release_refused, hf__release_unreachable},
    {HF__SCRIPT_RENEW, false, hf__extend_answered, hf__extend_refused, hf__extend_unreachable},
};

bool hf__request_wanted(const hf__request *request)
{
    static const hf__hold_state states[HF__REQUEST_KINDS] = {HF__HOLD_TRYING, HF__HOLD_RELEASING,
                                                             HF__HOLD_HELD};
    if (request->kind == HF__REQUEST_RENEW && request->hold->extends.count == 0)
        return false;
    return request->hold->state == states[request->kind];
}

/* The number that a script takes, in milliseconds; 0: it is left out. */
static uint64_t argument_ms(const hf__request *request)
{
    const hf_hold *hold = request->hold;
    hf__span span = hold->lease;
    if (request->kind == HF__REQUEST_RELEASE && (!hold->copy_lost || HF__MUTANT(NO_TOMBSTONE)))
        span = hf__span_ms(0); /* no copy can be late: no tombstone needed */
    if (request->kind == HF__REQUEST_RENEW)
        span = HF__ENTRY(hf__list_first(&hold->extends), hf__call, node)->lease;
    return (uint64_t)hf__span_to_ms(span);
}

bool hf__request_encode(const hf__request *request, hf__buffer *out)
{
    const hf_hold *hold = request->hold;
    const hf__script *script = &hf__scripts[kinds[request->kind].script];
    char side[HF_NAME_MAX + HF__SIDE_KEY_EXTRA];
    char number[20];
    uint64_t argument = argument_ms(request);
    bool side_key = kinds[request->kind].side_key && argument > 0;
    hf__slice words[WORDS_MAX];
    size_t count = 0;
    words[count++] = request->whole ? HF__SLICE("EVAL") : HF__SLICE("EVALSHA");
    words[count++] = request->whole ? (hf__slice){script->body, script->length}
                                    : (hf__slice){script->sha1, sizeof(script->sha1) - 1};
    words[count++] = side_key ? HF__SLICE("2") : HF__SLICE("1");
    words[count++] = hf__hold_key(hold);
    if (side_key) {
        size_t length = hf__side_key(side, 'q', hold->text, hold->key_length, hold->slot);
        words[count++] = (hf__slice){side, length};
    }
    words[count++] = hf__hold_value(hold);
    if (argument > 0)
        words[count++] = (hf__slice){number, hf__digits(number, argument)};
    return hf__resp_encode(out, words, count);
}

/* The server answered with an error. */
static void refuse(hf__request *request, const hf__reply *reply)
{
    hf__link *link = request->hold->link;
    hf_error why;
    hf__verdict verdict = hf__judge(reply, link->core->config.server->display, &why);
    if (!hf__request_wanted(request))
        return;
    if (HF__MUTANT(NOSCRIPT_REFUSES) && verdict == HF__VERDICT_RELOAD)
        why.status = HF_EBUSY;
    else if (verdict == HF__VERDICT_RELOAD && !request->whole) {
        request->whole = true;
        hf__link_submit(request);
        return;
    }
    kinds[request->kind].refused(request->hold, &why);
    if (verdict == HF__VERDICT_MOVED)
        hf__link_fail(link, why.status, "%s", why.text);
}

bool hf__request_answer(hf__request *request, const hf__reply *reply)
{
    if (reply->kind == HF__REPLY_ERROR) {
        refuse(request, reply);
        return true;
    }
    request->whole = false;
    return !hf__request_wanted(request) || kinds[request->kind].answered(request->hold, reply);
}

void hf__request_unreachable(hf__request *request, const hf_error *why)
{
    kinds[request->kind].unreachable(request->hold, why);
}
