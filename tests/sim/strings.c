/* SPDX-License-Identifier: MIT */
/* Commands of the model server on strings: GET, MGET, SET with all its options, INCR and their
 * like. */
#include "state.h"

#include <string.h>

void sim_run_get(sim_call *call)
{
    sim_key *key = NULL;
    if (!sim_call_key(call, 1, SIM_STRING, &key))
        return;
    if (key != NULL)
        sim_reply_bulk(call->out, sim_bytes_slice(&key->value));
    else
        sim_reply_nil(call->out);
}

/* A key of another type is as if it were not there. */
void sim_run_mget(sim_call *call)
{
    sim_reply_array(call->out, (size_t)call->count - 1);
    for (int i = 1; i < call->count; i++) {
        sim_key *key = sim_key_find(call->keys, call->words[i]);
        if (key != NULL && key->type == SIM_STRING)
            sim_reply_bulk(call->out, sim_bytes_slice(&key->value));
        else
            sim_reply_nil(call->out);
    }
}

void sim_run_strlen(sim_call *call)
{
    sim_key *key = NULL;
    if (sim_call_key(call, 1, SIM_STRING, &key))
        sim_reply_integer(call->out, key != NULL ? (int64_t)key->value.length : 0);
}

/* ---- SET ---- */

typedef struct set_options {
    bool if_absent, if_present, answers_old, keeps_expiry;
    int expiry_word; /* 0: none */
    bool in_seconds, is_instant;
} set_options;

static bool set_option(sim_call *call, set_options *options, int *at)
{
    hf__slice word = call->words[*at];
    bool expires = options->expiry_word != 0;
    bool has_next = *at + 1 < call->count;
    bool is_ex = sim_is(word, "EX") || sim_is(word, "EXAT");
    bool is_px = sim_is(word, "PX") || sim_is(word, "PXAT");
    if (sim_is(word, "NX") && !options->if_present) {
        options->if_absent = true;
    } else if (sim_is(word, "XX") && !options->if_absent) {
        options->if_present = true;
    } else if (sim_is(word, "GET")) {
        options->answers_old = true;
    } else if (sim_is(word, "KEEPTTL") && !expires) {
        options->keeps_expiry = true;
    } else if ((is_ex || is_px) && !options->keeps_expiry && !expires && has_next) {
        options->in_seconds = is_ex;
        options->is_instant = word.length == 4;
        options->expiry_word = ++*at;
    } else {
        sim_reply_error(call->out, SIM_SYNTAX);
        return false;
    }
    return true;
}

static bool set_expiry(sim_call *call, const set_options *options, int64_t *expiry_ms)
{
    *expiry_ms = SIM_NO_EXPIRY;
    if (options->expiry_word == 0)
        return true;
    int64_t value = 0;
    if (!sim_call_integer(call, options->expiry_word, &value))
        return false;
    int64_t unit = options->in_seconds ? 1000 : 1;
    int64_t base = options->is_instant ? 0 : call->keys->now_ms;
    if (value <= 0 || value > INT64_MAX / unit || value * unit > INT64_MAX - base) {
        sim_reply_error(call->out, "ERR invalid expire time in 'set' command");
        return false;
    }
    *expiry_ms = value * unit + base;
    return true;
}

/* Makes the key a string with this value, whatever it was. */
static void store(sim_call *call, sim_key *key, const set_options *options, int64_t expiry_ms)
{
    if (key != NULL && key->type != SIM_STRING) {
        int64_t kept_ms = key->expiry_ms;
        sim_key_remove(call->keys, key);
        key = sim_key_add(call->keys, call->words[1], SIM_STRING);
        key->expiry_ms = kept_ms;
    }
    key = sim_call_make_key(call, 1, SIM_STRING, key);
    sim_bytes_set(&key->value, call->words[2]);
    if (!options->keeps_expiry)
        key->expiry_ms = expiry_ms;
}

void sim_run_set(sim_call *call)
{
    set_options options = {0};
    int64_t expiry_ms = SIM_NO_EXPIRY;
    for (int at = 3; at < call->count; at++)
        if (!set_option(call, &options, &at))
            return;
    if (!set_expiry(call, &options, &expiry_ms))
        return;
    sim_key *key = sim_key_find(call->keys, call->words[1]);
    if (options.answers_old) {
        if (key != NULL && key->type != SIM_STRING) {
            sim_reply_error(call->out, SIM_WRONG_TYPE);
            return;
        }
        sim_run_get(call);
    }
    if ((options.if_absent && key != NULL) || (options.if_present && key == NULL)) {
        if (!options.answers_old)
            sim_reply_nil(call->out);
        return;
    }
    store(call, key, &options, expiry_ms);
    if (!options.answers_old)
        sim_reply_ok(call->out);
}

/* ---- Changing a part ---- */

static void add_to(sim_call *call, int64_t step)
{
    sim_key *key = NULL;
    int64_t value = 0;
    if (!sim_call_key(call, 1, SIM_STRING, &key))
        return;
    if (key != NULL && !sim_parse_integer(sim_bytes_slice(&key->value), &value)) {
        sim_reply_error(call->out, SIM_NOT_INTEGER);
        return;
    }
    if (__builtin_add_overflow(value, step, &value)) {
        sim_reply_error(call->out, "ERR increment or decrement would overflow");
        return;
    }
    char digits[21];
    key = sim_call_make_key(call, 1, SIM_STRING, key);
    sim_bytes_set(&key->value, (hf__slice){digits, sim_print_integer(digits, value)});
    sim_reply_integer(call->out, value);
}

void sim_run_incr(sim_call *call)
{
    add_to(call, 1);
}

void sim_run_incrby(sim_call *call)
{
    int64_t step = 0;
    if (sim_call_integer(call, 2, &step))
        add_to(call, step);
}

void sim_run_append(sim_call *call)
{
    sim_key *key = NULL;
    if (!sim_call_key(call, 1, SIM_STRING, &key))
        return;
    key = sim_call_make_key(call, 1, SIM_STRING, key);
    hf__slice more = call->words[2];
    size_t length = key->value.length + more.length;
    key->value.bytes = sim_resize(key->value.bytes, length + 1);
    if (more.length > 0)
        memcpy(key->value.bytes + key->value.length, more.bytes, more.length);
    key->value.bytes[length] = '\0';
    key->value.length = length;
    sim_reply_integer(call->out, (int64_t)length);
}
