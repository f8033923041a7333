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
#include "core/fail.h"
#include "core/name.h"
#include "core/state.h"

enum {
    NUMBER_MAX = 20,
    FIXED_BYTES = 200 /* more than the words of a call that do not depend on names */
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
    {HF__SCRIPT_CONFIRM, HF__HOLD_CONFIRMING, hf__confirm_answered, hf__replicas_failed,
     hf__replicas_failed},
    {HF__SCRIPT_COUNT, HF__HOLD_CONFIRMING, hf__wait_answered, hf__replicas_failed,
     hf__replicas_failed}, /* no script */
};

hf__link *hf__request_link(const hf__request *request)
{
    if (request->kind == HF__REQUEST_SERVER)
        return &hf__request_server(request)->links[0];
    if (request->kind == HF__REQUEST_QUERY)
        return hf__request_part(request)->link;
    hf__link *link = hf__request_hold(request)->link;
    return request->kind < HF__OWN_REQUESTS ? link : hf__careful_link(link->server);
}

hf__request *hf__request_ahead(hf__request *request)
{
    bool waits = request->kind == HF__REQUEST_WAIT;
    return waits ? &hf__request_hold(request)->replicas->confirm : NULL;
}

bool hf__request_wanted(const hf__request *request)
{
    if (request->kind == HF__REQUEST_SERVER)
        return true;
    if (request->kind == HF__REQUEST_QUERY)
        return hf__query_wants(hf__request_part(request));
    const hf_hold *hold = hf__request_hold(request);
    if (request->kind == HF__REQUEST_RENEW && hold->extends.count == 0 &&
        hold->renewal != HF__UNDER_WAY && !hf__vote_is_raising(hold))
        return false;
    return hold->stage == kinds[request->kind].stage;
}

void hf__request_settle(hf__request *request)
{
    if (request->kind < HF__REQUEST_KINDS)
        hf__hold_settle(hf__request_hold(request));
}

/* ---- On the wire ---- */

static bool is_refresh(const hf__request *request)
{
    return request->kind == HF__REQUEST_RENEW && hf__request_is_plain(hf__request_hold(request));
}

typedef struct extent { /* of one call */
    unsigned requests, most;
    size_t keys, arguments, bytes;
    bool refresh;
    bool mixed; /* leases of a refresh */
    bool whole;
} extent;

static const hf__request *behind(const hf__list *waiting, const hf__request *request)
{
    const hf__node *next = hf__list_next(waiting, &request->node);
    return next != NULL ? HF__ENTRY(next, hf__request, node) : NULL;
}

/* Only renewals share a call, and only those for the same script; see also split.c. */
static bool joins(const hf__request *request, const extent *e)
{
    if (request->kind != HF__REQUEST_RENEW || is_refresh(request) != e->refresh)
        return false;
    unsigned shares = hf__request_hold(request)->shares_call;
    return e->requests < e->most && (shares == 0 || e->requests < shares);
}

static extent measure(const hf__list *waiting, const hf__request *first)
{
    extent e = {.bytes = FIXED_BYTES, .refresh = is_refresh(first)};
    e.most = e.refresh ? HF__BATCH_MAX : HF__BATCH_SLOW;
    int64_t lease_ns = hf__request_hold(first)->lease.ns;
    for (const hf__request *r = first; r == first || (r != NULL && joins(r, &e));
         r = first->kind == HF__REQUEST_RENEW ? behind(waiting, r) : NULL) {
        const hf_hold *hold = hf__request_hold(r);
        e.requests++;
        if (hold->shares_call > 0 && hold->shares_call < e.most)
            e.most = hold->shares_call;
        e.keys += e.refresh ? 2 : hf__arguments_key_count(r);
        e.arguments += e.refresh ? 1 : hf__arguments_count(r);
        e.bytes += hf__arguments_bytes(hold);
        e.mixed = e.mixed || hold->lease.ns != lease_ns;
        e.whole = e.whole || r->whole || r->kind == HF__REQUEST_CONFIRM;
    }
    if (e.refresh)
        e.arguments += e.mixed ? e.requests : 1;
    return e;
}

static void put_calls(const hf__list *waiting, const hf__request *first, const extent *e,
                      hf__buffer *out)
{
    const hf__request *r = first;
    for (unsigned i = 0; i < e->requests; i++, r = behind(waiting, r))
        hf__arguments_put_keys(r, out);
    r = first;
    for (unsigned i = 0; i < e->requests; i++, r = behind(waiting, r))
        hf__arguments_put(r, out);
}

static void put_refresh(const hf__list *waiting, const hf__request *first, const extent *e,
                        hf__buffer *out)
{
    hf_hold *holds[HF__BATCH_MAX];
    const hf__request *r = first;
    for (unsigned i = 0; i < e->requests; i++, r = behind(waiting, r))
        holds[i] = hf__request_hold(r);
    hf__arguments_put_refresh(holds, e->requests, e->mixed, out);
}

static bool encode_calls(const hf__list *waiting, const hf__request *first, const extent *e,
                         hf__buffer *out)
{
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
    if (e->refresh)
        put_refresh(waiting, first, e, out);
    else
        put_calls(waiting, first, e, out);
    return true;
}

unsigned hf__request_encode(const hf__list *waiting, hf__buffer *out)
{
    const hf__request *first = HF__ENTRY(hf__list_first(waiting), hf__request, node);
    if (first->asks_why != HF__WHY_NOT)
        return hf__permit_ask_why(first, out) ? 1 : 0;
    if (first->kind == HF__REQUEST_SERVER)
        return hf__standing_encode(hf__request_server(first), out) ? 1 : 0;
    if (first->kind == HF__REQUEST_QUERY)
        return hf__question_encode(hf__request_part(first), out) ? 1 : 0;
    if (first->kind == HF__REQUEST_WAIT)
        return hf__replicas_encode_wait(hf__request_hold(first), out) ? 1 : 0;
    extent e = measure(waiting, first);
    return encode_calls(waiting, first, &e, out) ? e.requests : 0;
}

/* ---- The reply of a call, divided among its requests ---- */

static bool is_number(const hf__reply *reply, unsigned number)
{
    return reply->kind == HF__REPLY_INTEGER && reply->integer == number;
}

/* Refresh says how many it has looked at, then names those, in order, that must be looked at more
 * closely; the others have been renewed for as long as was asked. */
static bool divide_refresh(const hf__reply *reply, hf__request *const *group, unsigned count,
                           hf__reply *parts)
{
    const hf__reply *named = reply->elements;
    size_t left = reply->count;
    if (left == 0 || !is_number(named, count))
        return false;
    named++;
    left--;
    for (unsigned i = 0; i < count; i++) {
        hf__span asked = hf__request_hold(group[i])->asked;
        bool special = left > 0 && is_number(named, i + 1);
        parts[i] = (hf__reply){.kind = HF__REPLY_INTEGER};
        parts[i].integer = special ? HF__LOOK_CLOSER : hf__span_to_ms(asked);
        named += special;
        left -= special;
    }
    return left == 0;
}

/* A call of refresh or renew is answered with an array, other calls, and all errors, as a whole. */
bool hf__request_divide(const hf__reply *reply, hf__request *const *group, unsigned count,
                        hf__reply *parts)
{
    bool renewals = group[0]->kind == HF__REQUEST_RENEW;
    bool whole = hf__reply_refuses(reply) || !renewals;
    if (!whole && reply->kind != HF__REPLY_ARRAY)
        return false;
    if (!whole && !hf__request_hold(group[0])->asked_to_keep)
        return divide_refresh(reply, group, count, parts);
    if (!whole && reply->count != count)
        return false;
    for (unsigned i = 0; i < count; i++)
        parts[i] = whole ? *reply : reply->elements[i];
    return true;
}

/* ---- What came of it ---- */

static void pass_on_refusal(hf__request *request, const hf_error *why)
{
    if (request->kind == HF__REQUEST_SERVER)
        hf__standing_refused(hf__request_server(request), why);
    else if (request->kind == HF__REQUEST_QUERY)
        hf__query_refused(hf__request_part(request), why);
    else
        kinds[request->kind].refused(hf__request_hold(request), why);
}

/* Of something that the server does not name. */
static bool is_denial(hf__verdict verdict)
{
    return verdict == HF__VERDICT_KEY || verdict == HF__VERDICT_COMMAND;
}

/* Whether it can say what a refusal was about. Renewals and confirmations need nothing that the
 * acquire before them did not. */
static bool asks_back(const hf__request *request)
{
    return request->kind <= HF__REQUEST_RELEASE || request->kind == HF__REQUEST_QUERY;
}

/* The server answered with an error. */
static void refuse(hf__request *request, const hf__reply *reply)
{
    hf__link *link = hf__request_link(request);
    hf_error why;
    hf__verdict verdict = hf__judge(reply, link->server->url->display, &why);
    bool asked = request->asks_why != HF__WHY_NOT;
    request->asks_why = HF__WHY_NOT;
    if (!hf__request_wanted(request))
        return;
    if (HF__MUTANT(NOSCRIPT_REFUSES) && verdict == HF__VERDICT_RELOAD)
        why.status = HF_EBUSY;
    else if (verdict == HF__VERDICT_RELOAD && !request->whole) {
        request->whole = true;
        hf__link_enqueue(request); /* sent when the rest of its call has been told as well */
        return;
    }
    if (is_denial(verdict) && asks_back(request) && !asked) {
        request->asks_why = verdict == HF__VERDICT_KEY ? HF__WHY_KEY : HF__WHY_COMMAND;
        hf__link_enqueue(request);
        return;
    }
    pass_on_refusal(request, &why);
    if (verdict == HF__VERDICT_MOVED)
        hf__link_fail(link, why.status, "%s", why.text);
}

/* The answer to a question that a refused request has asked. It may well be allowed by now. */
static void learn_why(hf__request *request, const hf__reply *reply)
{
    const char *server = hf__request_link(request)->server->url->display;
    hf_error why;
    bool key = request->asks_why == HF__WHY_KEY;
    request->asks_why = HF__WHY_NOT;
    if (!hf__request_wanted(request))
        return;
    if (!hf__permit_read(reply, server, key ? "access to" : "the commands", &why))
        hf__fail(&why, HF_EDENIED, "%s denies %s (see docs/wire.md)", server,
                 key ? "access to one of the keys" : "a command of a script");
    pass_on_refusal(request, &why);
}

bool hf__request_answer(hf__request *request, const hf__reply *reply)
{
    if (hf__reply_refuses(reply)) {
        refuse(request, reply);
        return true;
    }
    if (request->asks_why != HF__WHY_NOT) {
        learn_why(request, reply);
        return true;
    }
    request->whole = false;
    if (!hf__request_wanted(request))
        return true;
    if (request->kind == HF__REQUEST_SERVER)
        return hf__standing_answered(hf__request_server(request), reply);
    if (request->kind == HF__REQUEST_QUERY)
        return hf__query_answered(hf__request_part(request), reply);
    return kinds[request->kind].answered(hf__request_hold(request), reply);
}

void hf__request_unreachable(hf__request *request, const hf_error *why)
{
    if (request->kind == HF__REQUEST_SERVER)
        hf__standing_refused(hf__request_server(request), why);
    else if (request->kind == HF__REQUEST_QUERY)
        hf__query_unreachable(hf__request_part(request), why);
    else
        kinds[request->kind].unreachable(hf__request_hold(request), why);
}
