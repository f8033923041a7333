/* SPDX-License-Identifier: MIT */
/* Commands of the model server on sorted sets, one member at a time; ranges are in zranges.c. */
#include "state.h"

typedef struct zadd_options {
    bool nx, xx, gt, lt, ch;
} zadd_options;

/* Returns the first word that is no option. */
static int zadd_parse(const sim_call *call, zadd_options *options)
{
    int at = 2;
    for (; at < call->count; at++) {
        hf__slice word = call->words[at];
        bool *option = sim_is(word, "NX")   ? &options->nx
                       : sim_is(word, "XX") ? &options->xx
                       : sim_is(word, "GT") ? &options->gt
                       : sim_is(word, "LT") ? &options->lt
                       : sim_is(word, "CH") ? &options->ch
                                            : NULL;
        if (option == NULL)
            break;
        *option = true;
    }
    return at;
}

static bool zadd_valid(sim_call *call, const zadd_options *options, int first)
{
    int words = call->count - first;
    const char *error = NULL;
    double score = 0;
    if (words == 0 || words % 2 != 0)
        error = SIM_SYNTAX;
    else if (options->nx && options->xx)
        error = "ERR XX and NX options at the same time are not compatible";
    else if (((options->gt || options->lt) && options->nx) || (options->gt && options->lt))
        error = "ERR GT, LT, and/or NX options at the same time are not compatible";
    for (int i = first; error == NULL && i < call->count; i += 2)
        if (!sim_parse_double(call->words[i], &score))
            error = SIM_NOT_FLOAT;
    if (error != NULL)
        sim_reply_error(call->out, error);
    return error == NULL;
}

typedef struct zadd_counts {
    int64_t added, updated;
} zadd_counts;

static void zadd_one(sim_key *key, const zadd_options *options, double score, hf__slice name,
                     zadd_counts *counts)
{
    size_t at = sim_item_find(key, name);
    if (at == SIM_NOWHERE) {
        if (options->xx)
            return;
        sim_zset_put(key, SIM_NOWHERE, score, name);
        counts->added++;
        return;
    }
    double old = key->items[at].score;
    bool greater = score > old;
    bool less = score < old;
    if (options->nx || (!greater && !less) || (options->gt && !greater) || (options->lt && !less))
        return;
    sim_zset_put(key, at, score, name);
    counts->updated++;
}

void sim_run_zadd(sim_call *call)
{
    sim_key *key = NULL;
    zadd_options options = {0};
    zadd_counts counts = {0, 0};
    int first = zadd_parse(call, &options);
    if (!zadd_valid(call, &options, first) || !sim_call_key(call, 1, SIM_ZSET, &key))
        return;
    if (key == NULL && !options.xx)
        key = sim_call_make_key(call, 1, SIM_ZSET, key);
    for (int i = first; key != NULL && i < call->count; i += 2) {
        double score = 0;
        (void)sim_parse_double(call->words[i], &score);
        zadd_one(key, &options, score, call->words[i + 1], &counts);
    }
    sim_reply_integer(call->out, counts.added + (options.ch ? counts.updated : 0));
}

void sim_run_zrem(sim_call *call)
{
    sim_call_remove_items(call, SIM_ZSET);
}

/* The position of the member in word 2; false: it is not there, or an error was answered. */
static bool find_member(sim_call *call, sim_key **key, size_t *at)
{
    if (!sim_call_key(call, 1, SIM_ZSET, key))
        return false;
    *at = *key != NULL ? sim_item_find(*key, call->words[2]) : SIM_NOWHERE;
    if (*at == SIM_NOWHERE)
        sim_reply_nil(call->out);
    return *at != SIM_NOWHERE;
}

void sim_run_zscore(sim_call *call)
{
    sim_key *key = NULL;
    size_t at = 0;
    if (find_member(call, &key, &at))
        sim_reply_double(call->out, key->items[at].score);
}

void sim_run_zrank(sim_call *call)
{
    sim_key *key = NULL;
    size_t at = 0;
    if (find_member(call, &key, &at))
        sim_reply_integer(call->out, (int64_t)at);
}

void sim_run_zcard(sim_call *call)
{
    sim_key *key = NULL;
    if (sim_call_key(call, 1, SIM_ZSET, &key))
        sim_reply_integer(call->out, key != NULL ? (int64_t)key->count : 0);
}

void sim_run_zpopmin(sim_call *call)
{
    sim_key *key = NULL;
    int64_t wanted = 1;
    if (call->count > 3) {
        sim_reply_error(call->out, SIM_SYNTAX);
        return;
    }
    if (call->count == 3 && (!sim_parse_integer(call->words[2], &wanted) || wanted < 0)) {
        sim_reply_error(call->out, "ERR value is out of range, must be positive");
        return;
    }
    if (!sim_call_key(call, 1, SIM_ZSET, &key))
        return;
    size_t size = key != NULL ? key->count : 0;
    size_t count = (uint64_t)wanted < size ? (size_t)wanted : size;
    sim_reply_array(call->out, count * 2);
    for (size_t i = 0; i < count; i++) {
        sim_reply_bulk(call->out, sim_bytes_slice(&key->items[i].name));
        sim_reply_double(call->out, key->items[i].score);
    }
    if (key != NULL) {
        sim_item_remove(key, 0, count);
        sim_call_drop_if_empty(call, key);
    }
}
