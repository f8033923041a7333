/* SPDX-License-Identifier: MIT */
/* Questions and orders about locks that one does not hold: inspect, revoke, break, scan. Each is
 * one request, which is sent again if its connection breaks: all of them can be repeated (a break
 * names the very hold that it is meant for). A query belongs to the core; its call may end before
 * its request has come back, and then the memory waits for that. */
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "core/checks.h"
#include "core/fail.h"
#include "core/holder.h"
#include "core/name.h"
#include "core/state.h"

enum { WORDS_MAX = 12, NUMBER_MAX = 20, SIDE_KEYS_MAX = 4, SCAN_COUNT = 200 };

hf__query *hf__query_new(hf__query_kind kind, hf__slice prefix, hf__slice name, hf__slice text,
                         uint64_t number)
{
    size_t key_length = prefix.length + name.length;
    hf__query *query = hf__alloc(sizeof(*query) + key_length + text.length);
    if (query == NULL)
        return NULL;
    query->kind = kind;
    query->number = number;
    query->request.kind = HF__REQUEST_QUERY;
    query->key_length = (unsigned short)key_length;
    query->text_length = text.length;
    hf__slice_put(hf__slice_put(hf__slice_put(query->bytes, prefix), name), text);
    query->slot = (unsigned short)hf__slot(query->bytes, key_length);
    return query;
}

void hf__query_drop(hf__query *query)
{
    hf__free(query);
}

/* ---- The call ---- */

void hf__query_end(hf__query *query, hf_status status, const char *text)
{
    hf__call *call = query->call;
    hf__link_withdraw(&query->request);
    query->call = NULL;
    if (call != NULL)
        hf__call_done(query->core, call, status, text);
}

/* Within a step anybody up the call chain may still look at a query that has just ended. */
void hf__query_bury(hf__core *core)
{
    hf__node *node = hf__list_first(&core->queries);
    while (node != NULL) {
        hf__query *query = HF__ENTRY(node, hf__query, node);
        node = hf__list_next(&core->queries, node);
        if (query->call == NULL && query->request.place == HF__IDLE) {
            hf__list_remove(&core->queries, &query->node);
            hf__query_drop(query);
        }
    }
}

void hf__query_start(hf__core *core, hf__call *call)
{
    hf__query *query = call->query;
    query->core = core;
    query->link = hf__server_link(&core->servers[0], query->slot);
    query->call = call;
    hf__list_append(&core->queries, &query->node);
    if (core->closing) {
        hf__query_end(query, HF_ECLOSED, "the client is being closed");
    } else if (hf__link_full(query->link)) {
        hf__query_end(query, HF_EUNAVAILABLE, "too many requests wait for this server");
    } else {
        call->deadline = hf__after(core->now, core->config.call_timeout);
        hf__timer_set(&core->timers, &call->timer, call->deadline);
        hf__link_submit(&query->request);
    }
}

static void end_unknown(hf__query *query)
{
    hf_error why;
    hf__fail(&why, HF_EUNKNOWN, "%s gave no answer in time", query->link->server->url->display);
    hf__query_end(query, why.status, why.text);
}

void hf__query_timer(hf__call *call)
{
    hf__query *query = call->query;
    const hf_error *trouble = &query->link->trouble;
    if (query->request.place == HF__IN_FLIGHT || query->request.unanswered)
        end_unknown(query);
    else if (trouble->text[0] != '\0')
        hf__query_end(query, trouble->status, trouble->text);
    else
        hf__query_end(query, HF_EUNAVAILABLE, "no connection in time");
}

/* If a copy is out, what became of it is not known, whatever a later one is told. */
void hf__query_refused(hf__query *query, const hf_error *why)
{
    if (query->request.unanswered && hf__may_pass(why->status))
        end_unknown(query);
    else
        hf__query_end(query, why->status, why->text);
}

void hf__query_unreachable(hf__query *query, const hf_error *why)
{
    if (!query->request.unanswered || !hf__may_pass(why->status))
        hf__query_end(query, why->status, why->text);
}

/* ---- On the wire ---- */

static const struct {
    hf__script_id script;
    const char *side_keys;
} scripts[] = {[HF__QUERY_INSPECT] = {HF__SCRIPT_INSPECT, "fhqw"},
               [HF__QUERY_REVOKE] = {HF__SCRIPT_REVOKE, "fwh"},
               [HF__QUERY_BREAK] = {HF__SCRIPT_BREAK, "qfwh"},
               [HF__QUERY_OBSERVE] = {HF__SCRIPT_OBSERVE, "fw"}};

static hf__slice text_of(const hf__query *query)
{
    return (hf__slice){query->bytes + query->key_length, query->text_length};
}

static hf__slice number_word(char *place, uint64_t number)
{
    return (hf__slice){place, hf__digits(place, number)};
}

static bool encode_scan(const hf__query *query, hf__buffer *out)
{
    char cursor[NUMBER_MAX], count[NUMBER_MAX];
    hf__slice words[] = {HF__SLICE("SCAN"),  number_word(cursor, query->number),
                         HF__SLICE("MATCH"), text_of(query),
                         HF__SLICE("COUNT"), number_word(count, SCAN_COUNT)};
    return hf__resp_encode(out, words, sizeof(words) / sizeof(words[0]));
}

static size_t put_arguments(const hf__query *query, hf__slice *words, char numbers[][NUMBER_MAX])
{
    uint64_t keep_ms = (uint64_t)hf__span_to_ms(query->core->config.fence_keep);
    size_t count = 0;
    if (query->kind == HF__QUERY_INSPECT) {
        words[count++] = number_word(numbers[0], HF_HOLDERS_MAX);
        words[count++] = number_word(numbers[1], HF_WAITERS_MAX);
        return count;
    }
    if (query->kind == HF__QUERY_OBSERVE) {
        words[count++] = number_word(numbers[0], query->number);
        return count;
    }
    words[count++] = text_of(query);
    words[count++] = number_word(numbers[1], query->number);
    words[count++] = number_word(numbers[2], keep_ms);
    return count;
}

bool hf__query_encode(const hf__query *query, hf__buffer *out)
{
    char side[SIDE_KEYS_MAX][HF_NAME_MAX + HF__SIDE_KEY_EXTRA];
    char numbers[4][NUMBER_MAX];
    hf__slice words[WORDS_MAX];
    size_t count = 0;
    if (query->kind == HF__QUERY_SCAN)
        return encode_scan(query, out);
    if (query->kind == HF__QUERY_INFO || query->kind == HF__QUERY_TIME) {
        hf__slice word = query->kind == HF__QUERY_INFO ? HF__SLICE("INFO") : HF__SLICE("TIME");
        return hf__resp_encode(out, &word, 1);
    }
    const hf__script *script = &hf__scripts[scripts[query->kind].script];
    const char *letters = scripts[query->kind].side_keys;
    hf__slice key = {query->bytes, query->key_length};
    bool whole = query->request.whole;
    words[count++] = whole ? HF__SLICE("EVAL") : HF__SLICE("EVALSHA");
    words[count++] = whole ? (hf__slice){script->body, script->length}
                           : (hf__slice){script->sha1, sizeof(script->sha1) - 1};
    words[count++] = number_word(numbers[3], 1 + strlen(letters));
    words[count++] = key;
    for (size_t i = 0; letters[i] != '\0'; i++) {
        size_t length =
            hf__side_key(side[i], query->core->config.side_prefix, letters[i], key, query->slot);
        words[count++] = (hf__slice){side[i], length};
    }
    count += put_arguments(query, words + count, numbers);
    return hf__resp_encode(out, words, count);
}

/* ---- Answers ---- */

/* {cursor, {key, ...}} */
static bool scan_answered(hf__query *query, const hf__reply *reply)
{
    hf__answer *answer = query->call->answer;
    const hf__reply *parts = reply->elements;
    if (reply->kind != HF__REPLY_ARRAY || reply->count != 2 || parts[0].kind != HF__REPLY_TEXT ||
        parts[1].kind != HF__REPLY_ARRAY ||
        !hf__parse_decimal(parts[0].text, parts[0].length, UINT64_MAX, &answer->number))
        return false;
    hf__buffer_clear(&answer->keys);
    for (size_t i = 0; i < parts[1].count; i++) {
        const hf__reply *key = &parts[1].elements[i];
        uint32_t length = (uint32_t)key->length;
        if (key->kind != HF__REPLY_TEXT)
            return false;
        if (!hf__buffer_reserve(&answer->keys, sizeof(length) + length)) {
            hf__query_end(query, HF_ENOMEM, "out of memory");
            return true;
        }
        hf__buffer_append(&answer->keys, &length, sizeof(length));
        hf__buffer_append(&answer->keys, key->text, length);
    }
    hf__query_end(query, HF_OK, "");
    return true;
}

static bool number_answered(hf__query *query, const hf__reply *reply)
{
    if (reply->kind != HF__REPLY_INTEGER || reply->integer < 0)
        return false;
    query->call->answer->number = (uint64_t)reply->integer;
    hf__query_end(query, HF_OK, "");
    return true;
}

static bool inspect_answered(hf__query *query, const hf__reply *reply)
{
    hf__answer *answer = query->call->answer;
    if (!hf__holder_read(reply, answer->inspection))
        return false;
    const hf__reply *value = &reply->elements[0];
    if (!hf__buffer_reserve(&answer->value, value->length)) {
        hf__query_end(query, HF_ENOMEM, "out of memory");
        return true;
    }
    hf__buffer_append(&answer->value, value->text, value->length);
    hf__query_end(query, HF_OK, "");
    return true;
}

static bool facts_answered(hf__query *query, const hf__reply *reply)
{
    hf__answer *answer = query->call->answer;
    bool fits = query->kind == HF__QUERY_INFO ? hf__examine_read(reply, answer->examination)
                                              : hf__check_read_time(reply, &answer->wall);
    if (fits)
        hf__query_end(query, HF_OK, "");
    return fits;
}

bool hf__query_answered(hf__query *query, const hf__reply *reply)
{
    if (query->kind == HF__QUERY_SCAN)
        return scan_answered(query, reply);
    if (query->kind == HF__QUERY_INSPECT)
        return inspect_answered(query, reply);
    if (query->kind == HF__QUERY_INFO || query->kind == HF__QUERY_TIME)
        return facts_answered(query, reply);
    return number_answered(query, reply);
}
