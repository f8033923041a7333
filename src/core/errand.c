/* SPDX-License-Identifier: MIT */
/* Errands: calls of scripts that have nothing to do with locks. An errand is kept as it will be
 * sent, word by word, and is the same in every copy but for two words that belong to the copy: the
 * server process that it goes to, and whether an earlier one may have come there. A script whose
 * work must not be done twice knows by the latter that it may have been done. */
#include <string.h>

#include "base/memory.h"
#include "base/mutant.h"
#include "base/text.h"
#include "core/name.h"
#include "core/state.h"

enum { NUMBER_MAX = 20, OWN_WORDS = 2 };

/* ---- As it is kept ---- */

static size_t size_of(const hf__slice *words, size_t count)
{
    size_t size = 0;
    for (size_t i = 0; i < count; i++)
        size += sizeof(uint32_t) + words[i].length;
    return size;
}

static char *put(char *place, const hf__slice *words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t length = (uint32_t)words[i].length;
        memcpy(place, &length, sizeof(length));
        place = hf__slice_put(place + sizeof(length), words[i]);
    }
    return place;
}

static hf__slice take(const char **at)
{
    uint32_t length;
    memcpy(&length, *at, sizeof(length));
    hf__slice word = {*at + sizeof(length), length};
    *at = word.bytes + length;
    return word;
}

hf__query *hf__query_new_errand(const hf__errand *errand)
{
    size_t size =
        size_of(errand->keys, errand->key_count) + size_of(errand->words, errand->word_count);
    hf__query *query = hf__query_new_sized(HF__QUERY_ERRAND, errand->prefix, errand->name, size);
    if (query == NULL)
        return NULL;
    query->script = errand->script;
    query->letters = errand->letters;
    query->keys = errand->key_count;
    query->words = errand->key_count + errand->word_count;
    char *at = put(query->bytes + query->key_length, errand->keys, errand->key_count);
    put(at, errand->words, errand->word_count);
    return query;
}

/* ---- As it is sent ---- */

static void put_number(hf__buffer *out, uint64_t number)
{
    char digits[NUMBER_MAX];
    hf__resp_word(out, (hf__slice){digits, hf__digits(digits, number)});
}

static void put_letters(const hf__query *query, hf__buffer *out)
{
    char side[HF_NAME_MAX + HF__SIDE_KEY_EXTRA];
    hf__slice key = {query->bytes, query->key_length};
    for (const char *letter = query->letters; *letter != '\0'; letter++) {
        hf__slice word = key;
        if (*letter != '=')
            word = (hf__slice){side, hf__side_key(side, query->core->config.side_prefix, *letter,
                                                  key, query->slot)};
        hf__resp_word(out, word);
    }
}

size_t hf__errand_key_count(const hf__query *query)
{
    return strlen(query->letters) + query->keys;
}

size_t hf__errand_bytes(const hf__query *query)
{
    size_t side = (size_t)query->key_length + HF__SIDE_KEY_EXTRA;
    return strlen(query->letters) * side + query->text_length;
}

const char *hf__errand_put_keys(const hf__query *query, hf__buffer *out)
{
    const char *at = query->bytes + query->key_length;
    put_letters(query, out);
    for (size_t i = 0; i < query->keys; i++)
        hf__resp_word(out, take(&at));
    return at;
}

bool hf__errand_encode(const hf__part *part, hf__buffer *out)
{
    const hf__query *query = part->query;
    const hf__script *script = &hf__scripts[query->script];
    bool whole = part->request.whole;
    hf__slice code = whole ? (hf__slice){script->body, script->length}
                           : (hf__slice){script->sha1, sizeof(script->sha1) - 1};
    size_t keys = hf__errand_key_count(query);
    size_t count = 3 + keys + OWN_WORDS + query->words - query->keys;
    size_t bytes = code.length + hf__errand_bytes(query) + sizeof(part->link->run_id);
    if (!hf__resp_reserve(out, count, bytes + 3 * NUMBER_MAX))
        return false;
    hf__resp_begin(out, count);
    hf__resp_word(out, whole ? HF__SLICE("EVAL") : HF__SLICE("EVALSHA"));
    hf__resp_word(out, code);
    put_number(out, keys);
    const char *at = hf__errand_put_keys(query, out);
    hf__resp_word(out, hf__slice_text(part->link->run_id));
    put_number(out, part->request.unanswered && !HF__MUTANT(ERRAND_FRESH));
    for (size_t i = query->keys; i < query->words; i++)
        hf__resp_word(out, take(&at));
    return true;
}

/* ---- What is said to it ---- */

static hf__read_answer keep_text(const hf__reply *reply, hf__answer *answer)
{
    hf__buffer_clear(&answer->value);
    if (!hf__buffer_reserve(&answer->value, reply->length))
        return HF__ANSWER_NO_MEMORY;
    hf__buffer_append(&answer->value, reply->text, reply->length);
    return HF__ANSWER_READ;
}

hf__read_answer hf__errand_read(const hf__reply *reply, hf__answer *answer)
{
    bool many = reply->kind == HF__REPLY_ARRAY;
    const hf__reply *elements = many ? reply->elements : reply;
    size_t count = many ? reply->count : 1;
    hf__numbers numbers = {0};
    for (size_t i = 0; i < count; i++) {
        if (elements[i].kind == HF__REPLY_TEXT && i > 0 && i + 1 == count) {
            answer->numbers = numbers;
            return keep_text(&elements[i], answer);
        }
        if (elements[i].kind != HF__REPLY_INTEGER || i == HF__NUMBERS_MAX)
            return HF__ANSWER_MALFORMED;
        numbers.number[numbers.count++] = elements[i].integer;
    }
    answer->numbers = numbers;
    return numbers.count > 0 ? HF__ANSWER_READ : HF__ANSWER_MALFORMED;
}
