/* SPDX-License-Identifier: MIT */
/* Commands of the model server on keys of any type: whether they are there, and until when. An
 * expiry that is not in the future deletes the key at once, as in Redis.
 */
#include "state.h"

void sim_run_del(sim_call *call)
{
    int64_t removed = 0;
    for (int i = 1; i < call->count; i++) {
        sim_key *key = sim_key_find(call->keys, call->words[i]);
        if (key != NULL) {
            sim_key_remove(call->keys, key);
            removed++;
        }
    }
    sim_reply_integer(call->out, removed);
}

void sim_run_rename(sim_call *call)
{
    sim_key *key = sim_key_find(call->keys, call->words[1]);
    if (key == NULL) {
        sim_reply_error(call->out, "ERR no such key");
        return;
    }
    if (!sim_equal(call->words[1], call->words[2]))
        sim_key_rename(call->keys, key, call->words[2]);
    sim_reply_ok(call->out);
}

void sim_run_exists(sim_call *call)
{
    int64_t found = 0;
    for (int i = 1; i < call->count; i++)
        found += sim_key_find(call->keys, call->words[i]) != NULL;
    sim_reply_integer(call->out, found);
}

void sim_run_type(sim_call *call)
{
    const sim_key *key = sim_key_find(call->keys, call->words[1]);
    sim_reply_status(call->out, key != NULL ? sim_type_name(key->type) : "none");
}

/* -2: no key, -1: no expiry. */
static int64_t remaining_ms(sim_call *call)
{
    const sim_key *key = sim_key_find(call->keys, call->words[1]);
    if (key == NULL)
        return -2;
    return key->expiry_ms == SIM_NO_EXPIRY ? -1 : key->expiry_ms - call->keys->now_ms;
}

void sim_run_pttl(sim_call *call)
{
    sim_reply_integer(call->out, remaining_ms(call));
}

void sim_run_ttl(sim_call *call)
{
    int64_t remaining = remaining_ms(call);
    sim_reply_integer(call->out, remaining < 0 ? remaining : (remaining + 500) / 1000);
}

void sim_run_persist(sim_call *call)
{
    sim_key *key = sim_key_find(call->keys, call->words[1]);
    bool changes = key != NULL && key->expiry_ms != SIM_NO_EXPIRY;
    if (changes)
        key->expiry_ms = SIM_NO_EXPIRY;
    sim_reply_integer(call->out, changes);
}

/* ---- EXPIRE and its like ---- */

typedef struct expire_options {
    bool nx, xx, gt, lt;
} expire_options;

static bool expire_parse(sim_call *call, expire_options *options)
{
    for (int i = 3; i < call->count; i++) {
        hf__slice word = call->words[i];
        bool *option = sim_is(word, "NX")   ? &options->nx
                       : sim_is(word, "XX") ? &options->xx
                       : sim_is(word, "GT") ? &options->gt
                       : sim_is(word, "LT") ? &options->lt
                                            : NULL;
        if (option == NULL) {
            sim_reply_errorf(call->out, "ERR Unsupported option %.*s", (int)word.length,
                             word.bytes);
            return false;
        }
        *option = true;
    }
    const char *conflict =
        options->nx && (options->xx || options->gt || options->lt)
            ? "ERR NX and XX, GT or LT options at the same time are not compatible"
        : options->gt && options->lt ? "ERR GT and LT options at the same time are not compatible"
                                     : NULL;
    if (conflict != NULL)
        sim_reply_error(call->out, conflict);
    return conflict == NULL;
}

/* "No expiry" counts as one that never comes. */
static bool expire_applies(const expire_options *options, const sim_key *key, int64_t when_ms)
{
    bool eternal = key->expiry_ms == SIM_NO_EXPIRY;
    if (options->nx && !eternal)
        return false;
    if (options->xx && eternal)
        return false;
    if (options->gt && (eternal || when_ms <= key->expiry_ms))
        return false;
    return !(options->lt && !eternal && when_ms >= key->expiry_ms);
}

static void expire_at(sim_call *call, const char *name, int64_t unit, int64_t base_ms)
{
    expire_options options = {0};
    int64_t when = 0;
    if (!expire_parse(call, &options) || !sim_call_integer(call, 2, &when))
        return;
    if (__builtin_mul_overflow(when, unit, &when) || when > INT64_MAX - base_ms) {
        sim_reply_errorf(call->out, "ERR invalid expire time in '%s' command", name);
        return;
    }
    when += base_ms;
    sim_key *key = sim_key_find(call->keys, call->words[1]);
    bool applies = key != NULL && expire_applies(&options, key, when);
    if (applies && when <= call->keys->now_ms)
        sim_key_remove(call->keys, key);
    else if (applies)
        key->expiry_ms = when;
    sim_reply_integer(call->out, applies);
}

void sim_run_pexpire(sim_call *call)
{
    expire_at(call, "pexpire", 1, call->keys->now_ms);
}

void sim_run_expire(sim_call *call)
{
    expire_at(call, "expire", 1000, call->keys->now_ms);
}

void sim_run_pexpireat(sim_call *call)
{
    expire_at(call, "pexpireat", 1, 0);
}

/* ---- All keys ---- */

void sim_run_dbsize(sim_call *call)
{
    sim_keyspace_expire(call->keys);
    sim_reply_integer(call->out, (int64_t)call->keys->count);
}

void sim_run_flushall(sim_call *call)
{
    bool fits =
        call->count == 1 ||
        (call->count == 2 && (sim_is(call->words[1], "ASYNC") || sim_is(call->words[1], "SYNC")));
    if (!fits) {
        sim_reply_error(call->out, SIM_SYNTAX);
        return;
    }
    sim_keyspace_clear(call->keys);
    sim_reply_ok(call->out);
}
