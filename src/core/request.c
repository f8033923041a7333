/* SPDX-License-Identifier: MIT */
/* What a request looks like on the wire, and who is told what came of it. Requests of holds are
 * script calls on the keys of their locks; everything about a copy is taken from its hold at the
 * moment of sending, so that a resent copy has the same identity and never an outdated argument.
 *
 * Renewals that wait one behind the other leave as one call: each stays a request of its own, with
 * its own hold and its own fate when the connection breaks; only the bytes and the reply are
 * shared. There are two scripts for them: refresh for plain ones, which are nearly all, and renew
 * for the others and for those of which refresh says that something is the matter. */
#include "base/mutant.h"
#include "base/text.h"
#include "core/name.h"
#include "core/state.h"

enum {
    NUMBER_MAX = 20,
    FIXED_BYTES = 200, /* more than the words of a call that do not depend on names */
    KEYS_MAX = 5,
    ARGUMENTS_MAX = 4
};

static const struct {
    hf__script_id script;
    hf__hold_stage stage; /* in which it is wanted */
    bool (*answered)(hf_hold *, const hf__reply *);
    void (*refused)(hf_hold *, const hf_error *);
    void (*unreachable)(hf_hold *, const hf_error *);
} kinds[HF__REQUEST_KINDS] = {
    {HF__SCRIPT_ACQUIRE, HF__HOLD_TRYING, hf__acquire_answered, hf__acquire_refused,
     hf__acquire_unreachable},
    {HF__SCRIPT_RELEASE, HF__HOLD_RELEASING, hf__release_answered, hf__release_refused,
     hf__release_unreachable},
    {HF__SCRIPT_RENEW, HF__HOLD_HELD, hf__renew_answered, hf__renew_refused, hf__renew_unreachable},
};

hf__link *hf__request_link(const hf__request *request)
{
    return request->kind == HF__REQUEST_QUERY ? hf__request_query(request)->link
                                              : hf__request_hold(request)->link;
}

bool hf__request_wanted(const hf__request *request)
{
    if (request->kind == HF__REQUEST_QUERY)
        return hf__request_query(request)->call != NULL;
    const hf_hold *hold = hf__request_hold(request);
    if (request->kind == HF__REQUEST_RENEW && hold->extends.count == 0 &&
        hold->watch.renewal != HF__UNDER_WAY)
        return false;
    return hold->stage == kinds[request->kind].stage;
}

void hf__request_settle(hf__request *request)
{
    if (request->kind != HF__REQUEST_QUERY)
        hf__hold_settle(hf__request_hold(request));
}

/* ---- On the wire ---- */

/* How long the fence must be remembered: longer than any lease lasts. */
static hf__span fence_keep(const hf_hold *hold)
{
    hf__span keep = hold->core->config.fence_keep;
    hf__span twice = {2 * hold->longest_lease.ns};
    return keep.ns > twice.ns ? keep : twice;
}

/* The server need not be told to keep the fence with every renewal, if it is told early enough: the
 * next renewal comes within half of that time. */
bool hf__request_is_plain(const hf_hold *hold)
{
    hf__span quarter = {fence_keep(hold).ns / 4};
    return hold->owner_length == 0 && hold->extends.count == 0 && !hold->look_closer &&
           hf__before(hold->core->now, hf__after(hold->fence_kept, quarter));
}

static bool is_refresh(const hf__request *request)
{
    return request->kind == HF__REQUEST_RENEW && hf__request_is_plain(hf__request_hold(request));
}

/* The letters of the side keys that a script takes behind the lock itself, the last one only with
 * an owner: q queue, f fence, w notes, h holders. */
static const char *const side_letters[HF__REQUEST_KINDS] = {"qfh", "qfwh", "fwh"};

static size_t side_key_count(const hf__request *request, bool refresh)
{
    static const size_t counts[HF__REQUEST_KINDS] = {2, 3, 2};
    bool owned = hf__request_hold(request)->owner_length > 0;
    return refresh ? 1 : counts[request->kind] + owned;
}

static void put_keys(const hf__request *request, bool refresh, hf__buffer *out)
{
    const hf_hold *hold = hf__request_hold(request);
    char side[HF_NAME_MAX + HF__SIDE_KEY_EXTRA];
    const char *letters = side_letters[request->kind];
    size_t count = side_key_count(request, refresh);
    hf__resp_word(out, hf__hold_key(hold));
    for (size_t i = 0; i < count; i++) {
        size_t length =
            hf__side_key_tagged(side, letters[i], hold->text, hold->key_length, hold->tag);
        hf__resp_word(out, (hf__slice){side, length});
    }
}

static void put_ms(hf__buffer *out, hf__span span)
{
    char number[NUMBER_MAX];
    hf__resp_word(out, (hf__slice){number, hf__digits(number, (uint64_t)hf__span_to_ms(span))});
}

static void put_acquire(hf_hold *hold, bool refresh, hf__buffer *out)
{
    (void)refresh;
    hf__resp_word(out, hf__hold_value(hold));
    put_ms(out, hold->lease);
    put_ms(out, fence_keep(hold));
    if (hold->owner_length > 0)
        hf__resp_word(out, hf__hold_owner(hold));
}

static void put_release(hf_hold *hold, bool refresh, hf__buffer *out)
{
    (void)refresh;
    bool may_be_late = hold->copy_lost && !HF__MUTANT(NO_TOMBSTONE);
    hf__resp_word(out, hf__hold_value(hold));
    put_ms(out, may_be_late ? hold->lease : hf__span_ms(0));
    if (hold->owner_length > 0)
        hf__resp_word(out, hf__hold_owner(hold));
}

/* For the first call that waits; what the watchdog wants is asked for along with it. */
static void put_renew(hf_hold *hold, bool refresh, hf__buffer *out)
{
    const hf__node *first = hf__list_first(&hold->extends);
    hold->asked = hold->lease;
    hold->asked_to_keep = !refresh;
    if (first != NULL) {
        hf__span wanted = HF__ENTRY(first, hf__call, node)->lease;
        if (wanted.ns > hold->lease.ns || hold->watch.interval.ns == 0)
            hold->asked = wanted;
    }
    hf__resp_word(out, hf__hold_value(hold));
    put_ms(out, hold->asked);
    if (refresh)
        return;
    put_ms(out, fence_keep(hold));
    hf__resp_word(out, hf__hold_owner(hold));
}

static size_t argument_count(const hf__request *request, bool refresh)
{
    static const size_t counts[HF__REQUEST_KINDS] = {3, 2};
    bool owned = hf__request_hold(request)->owner_length > 0;
    if (request->kind == HF__REQUEST_RENEW)
        return refresh ? 2 : 4;
    return counts[request->kind] + owned;
}

static size_t bytes_of(const hf_hold *hold)
{
    return KEYS_MAX * ((size_t)hold->key_length + HF__SIDE_KEY_EXTRA) + hold->value_length +
           hold->owner_length + ARGUMENTS_MAX * NUMBER_MAX;
}

typedef struct extent { /* of one call */
    unsigned requests;
    size_t keys, arguments, bytes;
    bool refresh;
    bool whole;
} extent;

static const hf__request *behind(const hf__list *waiting, const hf__request *request)
{
    const hf__node *next = hf__list_next(waiting, &request->node);
    return next != NULL ? HF__ENTRY(next, hf__request, node) : NULL;
}

/* Only renewals share a call, and only those for the same script. */
static bool joins(const hf__request *request, const extent *e)
{
    return request->kind == HF__REQUEST_RENEW && e->requests < HF__BATCH_MAX &&
           is_refresh(request) == e->refresh;
}

static extent measure(const hf__list *waiting, const hf__request *first)
{
    extent e = {.bytes = FIXED_BYTES, .refresh = is_refresh(first)};
    for (const hf__request *r = first; r == first || (r != NULL && joins(r, &e));
         r = first->kind == HF__REQUEST_RENEW ? behind(waiting, r) : NULL) {
        e.requests++;
        e.keys += 1 + side_key_count(r, e.refresh);
        e.arguments += argument_count(r, e.refresh);
        e.bytes += bytes_of(hf__request_hold(r));
        e.whole = e.whole || r->whole;
    }
    return e;
}

static bool encode_calls(const hf__list *waiting, const hf__request *first, const extent *e,
                         hf__buffer *out)
{
    static void (*const put_arguments[])(hf_hold *, bool, hf__buffer *) = {put_acquire, put_release,
                                                                           put_renew};
    const hf__script *script =
        &hf__scripts[e->refresh ? HF__SCRIPT_REFRESH : kinds[first->kind].script];
    hf__slice body = {script->body, script->length};
    hf__slice sha1 = {script->sha1, sizeof(script->sha1) - 1};
    char number[NUMBER_MAX];
    size_t words = 3 + e->keys + e->arguments;
    if (!hf__resp_reserve(out, words, e->bytes + (e->whole ? body.length : 0)))
        return false;
    hf__resp_begin(out, words);
    hf__resp_word(out, e->whole ? HF__SLICE("EVAL") : HF__SLICE("EVALSHA"));
    hf__resp_word(out, e->whole ? body : sha1);
    hf__resp_word(out, (hf__slice){number, hf__digits(number, e->keys)});
    const hf__request *r = first;
    for (unsigned i = 0; i < e->requests; i++, r = behind(waiting, r))
        put_keys(r, e->refresh, out);
    r = first;
    for (unsigned i = 0; i < e->requests; i++, r = behind(waiting, r))
        put_arguments[r->kind](hf__request_hold(r), e->refresh, out);
    return true;
}

unsigned hf__request_encode(const hf__list *waiting, hf__buffer *out)
{
    const hf__request *first = HF__ENTRY(hf__list_first(waiting), hf__request, node);
    if (first->kind == HF__REQUEST_QUERY)
        return hf__query_encode(hf__request_query(first), out) ? 1 : 0;
    extent e = measure(waiting, first);
    return encode_calls(waiting, first, &e, out) ? e.requests : 0;
}

/* ---- What came of it ---- */

static void pass_on_refusal(hf__request *request, const hf_error *why)
{
    if (request->kind == HF__REQUEST_QUERY)
        hf__query_refused(hf__request_query(request), why);
    else
        kinds[request->kind].refused(hf__request_hold(request), why);
}

/* The server answered with an error. */
static void refuse(hf__request *request, const hf__reply *reply)
{
    hf__link *link = hf__request_link(request);
    hf_error why;
    hf__verdict verdict = hf__judge(reply, link->core->config.server->display, &why);
    if (!hf__request_wanted(request))
        return;
    if (HF__MUTANT(NOSCRIPT_REFUSES) && verdict == HF__VERDICT_RELOAD)
        why.status = HF_EBUSY;
    else if (verdict == HF__VERDICT_RELOAD && !request->whole) {
        request->whole = true;
        hf__link_enqueue(request); /* sent when the rest of its call has been told as well */
        return;
    }
    pass_on_refusal(request, &why);
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
    if (!hf__request_wanted(request))
        return true;
    if (request->kind == HF__REQUEST_QUERY)
        return hf__query_answered(hf__request_query(request), reply);
    return kinds[request->kind].answered(hf__request_hold(request), reply);
}

void hf__request_unreachable(hf__request *request, const hf_error *why)
{
    if (request->kind == HF__REQUEST_QUERY)
        hf__query_unreachable(hf__request_query(request), why);
    else
        kinds[request->kind].unreachable(hf__request_hold(request), why);
}
