/* SPDX-License-Identifier: MIT */
/* SCAN and HSCAN on the model server. Keys are walked by age and numbered as they are made, so the
 * cursor is the number of the last one that was seen. That keeps the promise of Redis (what is
 * there from the first call to the last is seen); the order, which Redis promises to nobody, is
 * another one. A hash comes as a whole, whatever COUNT says, as small ones do from Redis.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

#include "state.h"

/* ---- Patterns, as in Redis ---- */

static bool glob(hf__slice pattern, hf__slice text);

static hf__slice rest(hf__slice slice, size_t from)
{
    return (hf__slice){slice.bytes + from, slice.length - from};
}

/* [abc], [a-z], [^a]: `at` is behind the bracket; it ends on the last byte of the class. */
static bool in_class(hf__slice pattern, size_t *at, char byte)
{
    bool found = false;
    bool inverse = *at < pattern.length && pattern.bytes[*at] == '^';
    if (inverse)
        ++*at;
    for (;; ++*at) {
        if (*at >= pattern.length) {
            --*at;
            break;
        }
        char here = pattern.bytes[*at];
        if (here == '\\' && *at + 1 < pattern.length) {
            found |= pattern.bytes[++*at] == byte;
        } else if (here == ']') {
            break;
        } else if (*at + 2 < pattern.length && pattern.bytes[*at + 1] == '-') {
            char last = pattern.bytes[*at + 2];
            char low = here < last ? here : last;
            char high = here < last ? last : here;
            *at += 2;
            found |= byte >= low && byte <= high;
        } else {
            found |= here == byte;
        }
    }
    return found != inverse;
}

static bool any_rest_fits(hf__slice pattern, hf__slice text)
{
    for (size_t skipped = 0; skipped <= text.length; skipped++)
        if (glob(pattern, rest(text, skipped)))
            return true;
    return false;
}

static bool glob(hf__slice pattern, hf__slice text)
{
    size_t at = 0, used = 0;
    for (; at < pattern.length && used < text.length; at++, used++) {
        char here = pattern.bytes[at];
        if (here == '*')
            return any_rest_fits(rest(pattern, at + 1), rest(text, used));
        if (here == '[') {
            at++;
            if (!in_class(pattern, &at, text.bytes[used]))
                return false;
            continue;
        }
        if (here == '\\' && at + 1 < pattern.length)
            here = pattern.bytes[++at];
        else if (here == '?')
            continue;
        if (here != text.bytes[used])
            return false;
    }
    while (at < pattern.length && pattern.bytes[at] == '*')
        at++;
    return at == pattern.length && used == text.length;
}

/* ---- SCAN ---- */

typedef struct scan_options {
    uint64_t cursor;
    int64_t count;
    hf__slice pattern; /* bytes NULL: all */
} scan_options;

static bool scan_cursor(sim_call *call, hf__slice word, uint64_t *cursor)
{
    char *end = NULL;
    char *text = sim_bytes_copy(word).bytes;
    errno = 0;
    *cursor = strtoull(text, &end, 10);
    bool fits = !isspace((unsigned char)text[0]) && *end == '\0' && errno != ERANGE;
    free(text);
    if (!fits)
        sim_reply_error(call->out, "ERR invalid cursor");
    return fits;
}

static bool scan_parse(sim_call *call, int from, scan_options *options)
{
    for (int i = from; i < call->count; i += 2) {
        bool counts = sim_is(call->words[i], "COUNT") && i + 1 < call->count;
        bool matches = sim_is(call->words[i], "MATCH") && i + 1 < call->count;
        if (counts && !sim_call_integer(call, i + 1, &options->count))
            return false;
        if (matches)
            options->pattern = call->words[i + 1];
        if ((!counts && !matches) || options->count < 1) {
            sim_reply_error(call->out, SIM_SYNTAX);
            return false;
        }
    }
    return true;
}

/* The first key behind the cursor, NULL if there is none. */
static const sim_key *key_behind(const sim_keyspace *keys, uint64_t cursor)
{
    const sim_key *key = keys->oldest;
    while (key != NULL && key->number <= cursor)
        key = key->newer;
    return key;
}

void sim_run_scan(sim_call *call)
{
    scan_options options = {.count = 10};
    sim_buffer found = {NULL, 0, 0, 0};
    size_t matching = 0;
    char digits[21];
    if (!scan_cursor(call, call->words[1], &options.cursor) || !scan_parse(call, 2, &options))
        return;
    const sim_key *key = key_behind(call->keys, options.cursor);
    for (; key != NULL && options.count > 0; key = key->newer, options.count--) {
        options.cursor = key->number;
        if (sim_key_expired(call->keys, key) ||
            (options.pattern.bytes != NULL && !glob(options.pattern, sim_bytes_slice(&key->name))))
            continue;
        sim_reply_bulk(&found, sim_bytes_slice(&key->name));
        matching++;
    }
    sim_reply_array(call->out, 2);
    size_t length = sim_print_integer(digits, key != NULL ? (int64_t)options.cursor : 0);
    sim_reply_bulk(call->out, (hf__slice){digits, length});
    sim_reply_array(call->out, matching);
    if (matching > 0)
        sim_buffer_append(call->out, found.bytes + found.start, found.end - found.start);
    sim_buffer_free(&found);
}

/* ---- HSCAN ---- */

static bool field_fits(const sim_item *item, hf__slice pattern)
{
    return pattern.bytes == NULL || glob(pattern, sim_bytes_slice(&item->name));
}

static void reply_fields(sim_call *call, const sim_key *key, hf__slice pattern)
{
    size_t matching = 0;
    for (size_t i = 0; key != NULL && i < key->count; i++)
        matching += field_fits(&key->items[i], pattern);
    sim_reply_array(call->out, 2);
    sim_reply_bulk(call->out, HF__SLICE("0"));
    sim_reply_array(call->out, 2 * matching);
    for (size_t i = 0; key != NULL && i < key->count; i++) {
        if (!field_fits(&key->items[i], pattern))
            continue;
        sim_reply_bulk(call->out, sim_bytes_slice(&key->items[i].name));
        sim_reply_bulk(call->out, sim_bytes_slice(&key->items[i].value));
    }
}

void sim_run_hscan(sim_call *call)
{
    scan_options options = {.count = 10};
    sim_key *key = NULL;
    if (!scan_cursor(call, call->words[2], &options.cursor) ||
        !sim_call_key(call, 1, SIM_HASH, &key) || (key != NULL && !scan_parse(call, 3, &options)))
        return;
    reply_fields(call, key, options.pattern);
}
