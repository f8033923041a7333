/* SPDX-License-Identifier: MIT */
/* What a part of a query looks like on the wire, and what its answer says. Everything about a copy
 * is taken from the part at the moment of sending. Answers are other people's bytes: whatever does
 * not have the form that was asked for is malformed, and then nothing of it counts. */
#include <string.h>

#include "base/text.h"
#include "core/checks.h"
#include "core/holder.h"
#include "core/name.h"
#include "core/state.h"

enum { WORDS_MAX = 13, NUMBER_MAX = 20, SIDE_KEYS_MAX = 5, SCAN_COUNT = 200 };

/* ---- Questions ---- */

static const struct {
    hf__script_id script;
    const char *side_keys;
} scripts[] = {[HF__QUERY_INSPECT] = {HF__SCRIPT_INSPECT, "fhqw"},
               [HF__QUERY_REVOKE] = {HF__SCRIPT_REVOKE, "fwh"},
               [HF__QUERY_BREAK] = {HF__SCRIPT_BREAK, "qfwh"},
               [HF__QUERY_OBSERVE] = {HF__SCRIPT_OBSERVE, "fw"}};

static hf__slice number_word(char *place, uint64_t number)
{
    return (hf__slice){place, hf__digits(place, number)};
}

static bool encode_scan(const hf__part *part, hf__buffer *out)
{
    char cursor[NUMBER_MAX], count[NUMBER_MAX];
    hf__slice words[] = {HF__SLICE("SCAN"),  number_word(cursor, part->number),
                         HF__SLICE("MATCH"), part->text,
                         HF__SLICE("COUNT"), number_word(count, SCAN_COUNT)};
    return hf__resp_encode(out, words, sizeof(words) / sizeof(words[0]));
}

static size_t put_arguments(const hf__part *part, hf__slice *words, char numbers[][NUMBER_MAX])
{
    uint64_t keep_ms = (uint64_t)hf__span_to_ms(part->query->core->config.fence_keep);
    size_t count = 0;
    if (part->kind == HF__QUERY_INSPECT) {
        words[count++] = number_word(numbers[0], HF_HOLDERS_MAX);
        words[count++] = number_word(numbers[1], HF_WAITERS_MAX);
        return count;
    }
    if (part->kind == HF__QUERY_OBSERVE) {
        words[count++] = number_word(numbers[0], part->number);
        return count;
    }
    words[count++] = part->text;
    words[count++] = number_word(numbers[0], part->number);
    words[count++] = number_word(numbers[1], keep_ms);
    if (part->proposal > 0)
        words[count++] = number_word(numbers[2], part->proposal);
    return count;
}

static bool encode_script(const hf__part *part, hf__buffer *out)
{
    char side[SIDE_KEYS_MAX][HF_NAME_MAX + HF__SIDE_KEY_EXTRA];
    char numbers[4][NUMBER_MAX];
    hf__slice words[WORDS_MAX];
    size_t count = 0;
    const hf__query *query = part->query;
    const hf__script *script = &hf__scripts[scripts[part->kind].script];
    const char *letters = scripts[part->kind].side_keys;
    hf__slice key = {query->bytes, query->key_length};
    bool whole = part->request.whole;
    words[count++] = whole ? HF__SLICE("EVAL") : HF__SLICE("EVALSHA");
    words[count++] = whole ? (hf__slice){script->body, script->length}
                           : (hf__slice){script->sha1, sizeof(script->sha1) - 1};
    size_t sides = strlen(letters);
    bool names_slot = part->kind == HF__QUERY_BREAK && !hf__is_quorum(query->core);
    words[count++] = number_word(numbers[3], 1 + sides + names_slot);
    words[count++] = key;
    for (size_t i = 0; i < sides; i++) {
        size_t length =
            hf__side_key(side[i], query->core->config.side_prefix, letters[i], key, query->slot);
        words[count++] = (hf__slice){side[i], length};
    }
    if (names_slot) {
        size_t length =
            hf__slot_key(side[sides], query->core->config.side_prefix, hf__slot_tags[query->slot]);
        words[count++] = (hf__slice){side[sides], length};
    }
    count += put_arguments(part, words + count, numbers);
    return hf__resp_encode(out, words, count);
}

bool hf__question_encode(const hf__part *part, hf__buffer *out)
{
    if (part->kind == HF__QUERY_SCAN)
        return encode_scan(part, out);
    if (part->kind == HF__QUERY_ERRAND)
        return hf__errand_encode(part, out);
    if (part->kind == HF__QUERY_INFO || part->kind == HF__QUERY_TIME) {
        hf__slice word = part->kind == HF__QUERY_INFO ? HF__SLICE("INFO") : HF__SLICE("TIME");
        return hf__resp_encode(out, &word, 1);
    }
    return encode_script(part, out);
}

/* ---- Answers ---- */

/* {cursor, {key, ...}} */
static hf__read_answer read_scan(const hf__reply *reply, hf__answer *answer)
{
    const hf__reply *parts = reply->elements;
    if (reply->kind != HF__REPLY_ARRAY || reply->count != 2 || parts[0].kind != HF__REPLY_TEXT ||
        parts[1].kind != HF__REPLY_ARRAY ||
        !hf__parse_decimal(parts[0].text, parts[0].length, UINT64_MAX, &answer->number))
        return HF__ANSWER_MALFORMED;
    hf__buffer_clear(&answer->keys);
    for (size_t i = 0; i < parts[1].count; i++) {
        const hf__reply *key = &parts[1].elements[i];
        uint32_t length = (uint32_t)key->length;
        if (key->kind != HF__REPLY_TEXT)
            return HF__ANSWER_MALFORMED;
        if (!hf__buffer_reserve(&answer->keys, sizeof(length) + length))
            return HF__ANSWER_NO_MEMORY;
        hf__buffer_append(&answer->keys, &length, sizeof(length));
        hf__buffer_append(&answer->keys, key->text, length);
    }
    return HF__ANSWER_READ;
}

static hf__read_answer read_number(const hf__reply *reply, hf__answer *answer)
{
    if (reply->kind != HF__REPLY_INTEGER || reply->integer < 0)
        return HF__ANSWER_MALFORMED;
    answer->number = (uint64_t)reply->integer;
    return HF__ANSWER_READ;
}

static hf__read_answer read_inspection(const hf__reply *reply, hf__answer *answer)
{
    if (!hf__holder_read(reply, answer->inspection))
        return HF__ANSWER_MALFORMED;
    const hf__reply *value = &reply->elements[0];
    hf__buffer_clear(&answer->value);
    if (!hf__buffer_reserve(&answer->value, value->length))
        return HF__ANSWER_NO_MEMORY;
    hf__buffer_append(&answer->value, value->text, value->length);
    return HF__ANSWER_READ;
}

static hf__read_answer read_facts(hf__query_kind kind, const hf__reply *reply, hf__answer *answer)
{
    bool fits = kind == HF__QUERY_INFO ? hf__examine_read(reply, answer->examination)
                                       : hf__check_read_time(reply, &answer->wall);
    return fits ? HF__ANSWER_READ : HF__ANSWER_MALFORMED;
}

hf__read_answer hf__question_read(const hf__part *part, const hf__reply *reply, hf__answer *answer)
{
    if (part->kind == HF__QUERY_SCAN)
        return read_scan(reply, answer);
    if (part->kind == HF__QUERY_ERRAND)
        return hf__errand_read(reply, answer);
    if (part->kind == HF__QUERY_INSPECT)
        return read_inspection(reply, answer);
    if (part->kind == HF__QUERY_INFO || part->kind == HF__QUERY_TIME)
        return read_facts(part->kind, reply, answer);
    return read_number(reply, answer);
}
