/* SPDX-License-Identifier: MIT */
/* Commands of the model server on hashes. Fields keep the order in which they came, as in the small
 * hashes of Redis (up to 128 fields of up to 64 bytes); beyond that Redis has no order at all.
 */
#include "state.h"

void sim_run_hset(sim_call *call)
{
    sim_key *key = NULL;
    int64_t added = 0;
    if (call->count % 2 != 0) {
        sim_reply_error(call->out, "ERR wrong number of arguments for 'hset' command");
        return;
    }
    if (!sim_call_key(call, 1, SIM_HASH, &key))
        return;
    key = sim_call_make_key(call, 1, SIM_HASH, key);
    for (int i = 2; i < call->count; i += 2) {
        size_t at = sim_item_find(key, call->words[i]);
        if (at != SIM_NOWHERE) {
            sim_bytes_set(&key->items[at].value, call->words[i + 1]);
            continue;
        }
        sim_item_insert(key, key->count, call->words[i], call->words[i + 1]);
        added++;
    }
    sim_reply_integer(call->out, added);
}

static void reply_field(sim_call *call, const sim_key *key, int word)
{
    size_t at = key != NULL ? sim_item_find(key, call->words[word]) : SIM_NOWHERE;
    if (at != SIM_NOWHERE)
        sim_reply_bulk(call->out, sim_bytes_slice(&key->items[at].value));
    else
        sim_reply_nil(call->out);
}

void sim_run_hget(sim_call *call)
{
    sim_key *key = NULL;
    if (sim_call_key(call, 1, SIM_HASH, &key))
        reply_field(call, key, 2);
}

void sim_run_hmget(sim_call *call)
{
    sim_key *key = NULL;
    if (!sim_call_key(call, 1, SIM_HASH, &key))
        return;
    sim_reply_array(call->out, (size_t)(call->count - 2));
    for (int i = 2; i < call->count; i++)
        reply_field(call, key, i);
}

void sim_run_hexists(sim_call *call)
{
    sim_key *key = NULL;
    if (sim_call_key(call, 1, SIM_HASH, &key))
        sim_reply_integer(call->out,
                          key != NULL && sim_item_find(key, call->words[2]) != SIM_NOWHERE);
}

void sim_run_hlen(sim_call *call)
{
    sim_key *key = NULL;
    if (sim_call_key(call, 1, SIM_HASH, &key))
        sim_reply_integer(call->out, key != NULL ? (int64_t)key->count : 0);
}

void sim_run_hgetall(sim_call *call)
{
    sim_key *key = NULL;
    if (!sim_call_key(call, 1, SIM_HASH, &key))
        return;
    size_t count = key != NULL ? key->count : 0;
    sim_reply_array(call->out, count * 2);
    for (size_t i = 0; i < count; i++) {
        sim_reply_bulk(call->out, sim_bytes_slice(&key->items[i].name));
        sim_reply_bulk(call->out, sim_bytes_slice(&key->items[i].value));
    }
}

static void reply_halves(sim_call *call, bool values)
{
    sim_key *key = NULL;
    if (!sim_call_key(call, 1, SIM_HASH, &key))
        return;
    size_t count = key != NULL ? key->count : 0;
    sim_reply_array(call->out, count);
    for (size_t i = 0; i < count; i++)
        sim_reply_bulk(call->out,
                       sim_bytes_slice(values ? &key->items[i].value : &key->items[i].name));
}

void sim_run_hkeys(sim_call *call)
{
    reply_halves(call, false);
}

void sim_run_hvals(sim_call *call)
{
    reply_halves(call, true);
}

void sim_run_hdel(sim_call *call)
{
    sim_call_remove_items(call, SIM_HASH);
}

void sim_run_hincrby(sim_call *call)
{
    sim_key *key = NULL;
    int64_t step = 0;
    int64_t value = 0;
    if (!sim_call_integer(call, 3, &step) || !sim_call_key(call, 1, SIM_HASH, &key))
        return;
    size_t at = key != NULL ? sim_item_find(key, call->words[2]) : SIM_NOWHERE;
    if (at != SIM_NOWHERE && !sim_parse_integer(sim_bytes_slice(&key->items[at].value), &value)) {
        sim_reply_error(call->out, "ERR hash value is not an integer");
        return;
    }
    if (__builtin_add_overflow(value, step, &value)) {
        sim_reply_error(call->out, "ERR increment or decrement would overflow");
        return;
    }
    char digits[21];
    hf__slice text = {digits, sim_print_integer(digits, value)};
    key = sim_call_make_key(call, 1, SIM_HASH, key);
    if (at != SIM_NOWHERE)
        sim_bytes_set(&key->items[at].value, text);
    else
        sim_item_insert(key, key->count, call->words[2], text);
    sim_reply_integer(call->out, value);
}
