/* SPDX-License-Identifier: MIT */
/* Commands of the model server on ranges of sorted sets, by rank and by score. Every range is made
 * a first position and a count; what is done with it, answered or removed, is the same for all.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "state.h"

sim_range sim_range_of_ranks(const sim_key *key, int64_t first, int64_t last)
{
    int64_t length = key != NULL ? (int64_t)key->count : 0;
    if (first < 0)
        first = first + length < 0 ? 0 : first + length;
    if (last < 0)
        last += length;
    if (last >= length)
        last = length - 1;
    if (first > last)
        return (sim_range){0, 0};
    return (sim_range){(size_t)first, (size_t)(last - first + 1)};
}

/* ---- Scores ---- */

typedef struct bound {
    double score;
    bool open;
} bound;

/* As Redis: whatever strtod takes as a whole, also nothing, which is 0. */
static bool parse_bound(hf__slice word, bound *parsed)
{
    char text[256];
    if (word.length >= sizeof(text))
        return false;
    if (word.length > 0)
        memcpy(text, word.bytes, word.length);
    text[word.length] = '\0';
    parsed->open = text[0] == '(';
    char *end = NULL;
    parsed->score = strtod(text + (parsed->open ? 1 : 0), &end);
    return *end == '\0' && !isnan(parsed->score);
}

static bool parse_bounds(sim_call *call, int low_word, int high_word, bound *low, bound *high)
{
    if (parse_bound(call->words[low_word], low) && parse_bound(call->words[high_word], high))
        return true;
    sim_reply_error(call->out, "ERR min or max is not a float");
    return false;
}

/* The first position whose score is above the bound; `beyond` also passes those that are equal. */
static size_t position_of(const sim_key *key, double score, bool beyond)
{
    size_t low = 0;
    size_t high = key->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        double here = key->items[middle].score;
        if (here < score || (beyond && !(here > score)))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static sim_range range_of_scores(const sim_key *key, bound low, bound high)
{
    if (key == NULL)
        return (sim_range){0, 0};
    size_t first = position_of(key, low.score, low.open);
    size_t end = position_of(key, high.score, !high.open);
    return (sim_range){first, end > first ? end - first : 0};
}

/* ---- ZRANGE ---- */

typedef struct zrange_options {
    bool by_score, reverse, with_scores;
    int64_t offset, limit;
} zrange_options;

/* `any`: ZRANGE, which takes the options that decide what kind of range it is. */
static bool zrange_parse(sim_call *call, bool any, zrange_options *options)
{
    for (int i = 4; i < call->count; i++) {
        hf__slice word = call->words[i];
        if (sim_is(word, "WITHSCORES")) {
            options->with_scores = true;
        } else if (sim_is(word, "LIMIT") && call->count - i - 1 >= 2) {
            if (!sim_call_integer(call, i + 1, &options->offset) ||
                !sim_call_integer(call, i + 2, &options->limit))
                return false;
            i += 2;
        } else if (any && sim_is(word, "REV") && !options->reverse) {
            options->reverse = true;
        } else if (any && sim_is(word, "BYSCORE") && !options->by_score) {
            options->by_score = true;
        } else {
            sim_reply_error(call->out, SIM_SYNTAX);
            return false;
        }
    }
    if (options->limit == -1 || options->by_score)
        return true;
    sim_reply_error(call->out, "ERR syntax error, LIMIT is only supported in combination with "
                               "either BYSCORE or BYLEX");
    return false;
}

static void reply_range(sim_call *call, const sim_key *key, sim_range range,
                        const zrange_options *options)
{
    sim_reply_array(call->out, range.count * (options->with_scores ? 2 : 1));
    for (size_t i = 0; i < range.count; i++) {
        size_t at = options->reverse ? range.first + range.count - 1 - i : range.first + i;
        sim_reply_bulk(call->out, sim_bytes_slice(&key->items[at].name));
        if (options->with_scores)
            sim_reply_double(call->out, key->items[at].score);
    }
}

static sim_range limited(sim_range range, const zrange_options *options)
{
    if (options->offset < 0 || (uint64_t)options->offset >= range.count)
        return (sim_range){0, 0};
    size_t left = range.count - (size_t)options->offset;
    size_t count =
        options->limit < 0 || (uint64_t)options->limit > left ? left : (size_t)options->limit;
    size_t skipped = options->reverse ? left - count : (size_t)options->offset;
    return (sim_range){range.first + skipped, count};
}

static void answer_scores(sim_call *call, const zrange_options *options)
{
    sim_key *key = NULL;
    bound low;
    bound high;
    int low_word = options->reverse ? 3 : 2;
    if (parse_bounds(call, low_word, 5 - low_word, &low, &high) &&
        sim_call_key(call, 1, SIM_ZSET, &key))
        reply_range(call, key, limited(range_of_scores(key, low, high), options), options);
}

static void answer_ranks(sim_call *call, const zrange_options *options)
{
    sim_key *key = NULL;
    int64_t first = 0;
    int64_t last = 0;
    if (!sim_call_integer(call, 2, &first) || !sim_call_integer(call, 3, &last) ||
        !sim_call_key(call, 1, SIM_ZSET, &key))
        return;
    sim_range range = sim_range_of_ranks(key, first, last);
    if (options->reverse && range.count > 0)
        range.first = key->count - range.first - range.count;
    reply_range(call, key, range, options);
}

void sim_run_zrange(sim_call *call)
{
    zrange_options options = {.limit = -1};
    if (!zrange_parse(call, true, &options))
        return;
    (options.by_score ? answer_scores : answer_ranks)(call, &options);
}

/* The old form of ZRANGE with REV, which takes nothing but WITHSCORES. */
void sim_run_zrevrange(sim_call *call)
{
    zrange_options options = {.limit = -1};
    if (!zrange_parse(call, false, &options))
        return;
    options.reverse = true;
    answer_ranks(call, &options);
}

void sim_run_zrangebyscore(sim_call *call)
{
    zrange_options options = {.limit = -1, .by_score = true};
    if (zrange_parse(call, false, &options))
        answer_scores(call, &options);
}

void sim_run_zrevrangebyscore(sim_call *call)
{
    zrange_options options = {.limit = -1, .by_score = true, .reverse = true};
    if (zrange_parse(call, false, &options))
        answer_scores(call, &options);
}

void sim_run_zcount(sim_call *call)
{
    sim_key *key = NULL;
    bound low;
    bound high;
    if (parse_bounds(call, 2, 3, &low, &high) && sim_call_key(call, 1, SIM_ZSET, &key))
        sim_reply_integer(call->out, (int64_t)range_of_scores(key, low, high).count);
}

/* ---- Removing ---- */

static void remove_range(sim_call *call, sim_key *key, sim_range range)
{
    if (key != NULL) {
        sim_item_remove(key, range.first, range.count);
        sim_call_drop_if_empty(call, key);
    }
    sim_reply_integer(call->out, (int64_t)range.count);
}

void sim_run_zremrangebyscore(sim_call *call)
{
    sim_key *key = NULL;
    bound low;
    bound high;
    if (parse_bounds(call, 2, 3, &low, &high) && sim_call_key(call, 1, SIM_ZSET, &key))
        remove_range(call, key, range_of_scores(key, low, high));
}

void sim_run_zremrangebyrank(sim_call *call)
{
    sim_key *key = NULL;
    int64_t first = 0;
    int64_t last = 0;
    if (sim_call_integer(call, 2, &first) && sim_call_integer(call, 3, &last) &&
        sim_call_key(call, 1, SIM_ZSET, &key))
        remove_range(call, key, sim_range_of_ranks(key, first, last));
}
