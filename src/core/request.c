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
    FIXED_BYTES = 200, /* more than the words of a call that do not depend on names */
    KEYS_MAX = 5,
    ARGUMENTS_MAX = 8
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
           !hf__vote_is_raising(hold) &&
           hf__before(hold->core->now, hf__after(hold->fence_kept, quarter));
}

static bool is_refresh(const hf__request *request)
{
    return request->kind == HF__REQUEST_RENEW && hf__request_is_plain(hf__request_hold(request));
}

/* The first `count` of these letters. */
static void put_side_keys(hf__buffer *out, const char *letters, size_t count, const hf_hold *hold)
{
    char side[HF_NAME_MAX + HF__SIDE_KEY_EXTRA];
    hf__slice prefix = hold->core->config.side_prefix;
    size_t length = hf__side_key_tagged(side, prefix, letters[0], hf__hold_key(hold), hold->tag);
    for (size_t i = 0; i < count; i++) {
        hf__side_key_change(side, prefix, letters[i]);
        hf__resp_word(out, (hf__slice){side, length});
    }
}

/* The letters of the side keys that a script takes behind the lock itself: q queue, f fence, w
 * notes, h holders. Renewals and confirmations name the holders only with an owner. */
static const char *const side_letters[HF__REQUEST_KINDS] = {"qfwh", "qfwh", "fwh", "h"};

static size_t side_key_count(const hf__request *request)
{
    static const size_t counts[HF__REQUEST_KINDS] = {4, 4, 2, 0};
    bool owned = hf__request_hold(request)->owner_length > 0;
    return counts[request->kind] + (owned && request->kind >= HF__REQUEST_RENEW);
}

static void put_keys(const hf__request *request, hf__buffer *out)
{
    const hf_hold *hold = hf__request_hold(request);
    hf__resp_word(out, hf__hold_key(hold));
    put_side_keys(out, side_letters[request->kind], side_key_count(request), hold);
}

static void put_number(hf__buffer *out, uint64_t value)
{
    char number[NUMBER_MAX];
    hf__resp_word(out, (hf__slice){number, hf__digits(number, value)});
}

static void put_ms(hf__buffer *out, hf__span span)
{
    put_number(out, (uint64_t)hf__span_to_ms(span));
}

/* What follows it is for quorums only. */
static void put_owner(const hf_hold *hold, hf__buffer *out)
{
    if (hold->owner_length > 0 || hold->vote != NULL)
        hf__resp_word(out, hf__hold_owner(hold));
}

/* -1: it queues, and no message can tell it of its grant. */
static void put_copy(hf_hold *hold, hf__buffer *out)
{
    uint64_t copy = hf__queue_number_copy(hold);
    if (copy > 0 && hold->link->server->push_denied)
        hf__resp_word(out, HF__SLICE("-1"));
    else
        put_number(out, copy);
}

static void put_acquire(hf_hold *hold, hf__buffer *out)
{
    hf__resp_word(out, hf__hold_value(hold));
    put_ms(out, hold->lease);
    put_ms(out, fence_keep(hold));
    put_number(out, hold->range);
    put_copy(hold, out);
    put_owner(hold, out);
    if (hold->vote == NULL)
        return;
    put_number(out, hf__vote_proposal(hold));
    put_number(out, hf__vote_ticket(hold));
}

static void put_release(hf_hold *hold, hf__buffer *out)
{
    bool may_be_late = hold->copy_lost && !HF__MUTANT(NO_TOMBSTONE) &&
                       !(HF__MUTANT(TOMB_CANCEL) && hold->fence > 0);
    hf__resp_word(out, hf__hold_value(hold));
    /* Whoever takes up a hold may have asked for less than the acquire did. */
    put_ms(out, may_be_late ? hold->longest_lease : hf__span_ms(0));
    put_ms(out, fence_keep(hold));
    put_owner(hold, out);
    if (hold->vote != NULL)
        put_number(out, hf__vote_proposal(hold));
}

static void put_confirm(hf_hold *hold, hf__buffer *out)
{
    hf__resp_word(out, hf__hold_value(hold));
    put_ms(out, hold->lease);
    put_owner(hold, out);
}

/* For the first call that waits; what the watchdog wants is asked for along with it. */
static void put_renew(hf_hold *hold, hf__buffer *out)
{
    const hf__node *first = hf__list_first(&hold->extends);
    hold->asked = hold->lease;
    hold->asked_to_keep = true;
    if (first != NULL) {
        hf__span wanted = HF__ENTRY(first, hf__call, node)->lease;
        if (wanted.ns > hold->lease.ns || hold->watch.interval.ns == 0)
            hold->asked = wanted;
    }
    hf__resp_word(out, hf__hold_value(hold));
    put_ms(out, hold->asked);
    put_ms(out, fence_keep(hold));
    hf__resp_word(out, hf__hold_owner(hold));
    bool raising = hf__vote_is_raising(hold);
    put_number(out, hold->attaching || raising ? hold->fence_top : 0);
    if (raising)
        hf__vote_raise_sent(hold);
}

static size_t argument_count(const hf__request *request)
{
    static const size_t counts[HF__REQUEST_KINDS] = {5, 3, 5, 2}, on_quorum[] = {8, 5, 5};
    const hf_hold *hold = hf__request_hold(request);
    if (hold->vote != NULL)
        return on_quorum[request->kind];
    return counts[request->kind] + (hold->owner_length > 0 && request->kind != HF__REQUEST_RENEW);
}

static size_t bytes_of(const hf_hold *hold)
{
    return KEYS_MAX * ((size_t)hold->key_length + HF__SIDE_KEY_EXTRA) + hold->value_length +
           hold->owner_length + ARGUMENTS_MAX * NUMBER_MAX;
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
        e.keys += e.refresh ? 2 : 1 + side_key_count(r);
        e.arguments += e.refresh ? 1 : argument_count(r);
        e.bytes += bytes_of(hold);
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
    static void (*const put_arguments[])(hf_hold *, hf__buffer *) = {put_acquire, put_release,
                                                                     put_renew, put_confirm};
    const hf__request *r = first;
    for (unsigned i = 0; i < e->requests; i++, r = behind(waiting, r))
        put_keys(r, out);
    r = first;
    for (unsigned i = 0; i < e->requests; i++, r = behind(waiting, r))
        put_arguments[r->kind](hf__request_hold(r), out);
}

/* In columns, so that the script can hand on a column as it is; a lease that all have stands once,
 * since every word is a string that the server must make. */
static void put_refresh(const hf__list *waiting, const hf__request *first, const extent *e,
                        hf__buffer *out)
{
    hf_hold *holds[HF__BATCH_MAX];
    const hf__request *r = first;
    for (unsigned i = 0; i < e->requests; i++, r = behind(waiting, r)) {
        holds[i] = hf__request_hold(r);
        holds[i]->asked = holds[i]->lease;
        holds[i]->asked_to_keep = false;
        hf__resp_word(out, hf__hold_key(holds[i]));
    }
    for (unsigned i = 0; i < e->requests; i++)
        put_side_keys(out, "w", 1, holds[i]);
    for (unsigned i = 0; i < e->requests; i++)
        hf__resp_word(out, hf__hold_value(holds[i]));
    for (unsigned i = 0; i < (e->mixed ? e->requests : 1); i++)
        put_ms(out, holds[i]->lease);
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
