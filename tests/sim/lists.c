/* SPDX-License-Identifier: MIT */
/* Commands of the model server on lists. */
#include "state.h"

static void push(sim_call *call, bool at_front)
{
    sim_key *key = NULL;
    if (!sim_call_key(call, 1, SIM_LIST, &key))
        return;
    key = sim_call_make_key(call, 1, SIM_LIST, key);
    for (int i = 2; i < call->count; i++)
        sim_item_insert(key, at_front ? 0 : key->count, HF__SLICE(""), call->words[i]);
    sim_reply_integer(call->out, (int64_t)key->count);
}

void sim_run_lpush(sim_call *call)
{
    push(call, true);
}

void sim_run_rpush(sim_call *call)
{
    push(call, false);
}

static void pop_items(sim_call *call, sim_key *key, bool at_front, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t at = at_front ? 0 : key->count - 1;
        sim_reply_bulk(call->out, sim_bytes_slice(&key->items[at].value));
        sim_item_remove(key, at, 1);
    }
    sim_call_drop_if_empty(call, key);
}

static void pop(sim_call *call, const char *name, bool at_front)
{
    sim_key *key = NULL;
    int64_t wanted = 1;
    bool counted = call->count == 3;
    if (call->count > 3) {
        sim_reply_errorf(call->out, "ERR wrong number of arguments for '%s' command", name);
        return;
    }
    if (counted && (!sim_parse_integer(call->words[2], &wanted) || wanted < 0)) {
        sim_reply_error(call->out, "ERR value is out of range, must be positive");
        return;
    }
    if (!sim_call_key(call, 1, SIM_LIST, &key))
        return;
    if (key == NULL) {
        (counted ? sim_reply_nil_array : sim_reply_nil)(call->out);
        return;
    }
    size_t count = (uint64_t)wanted < key->count ? (size_t)wanted : key->count;
    if (counted)
        sim_reply_array(call->out, count);
    pop_items(call, key, at_front, count);
}

void sim_run_lpop(sim_call *call)
{
    pop(call, "lpop", true);
}

void sim_run_rpop(sim_call *call)
{
    pop(call, "rpop", false);
}

void sim_run_llen(sim_call *call)
{
    sim_key *key = NULL;
    if (sim_call_key(call, 1, SIM_LIST, &key))
        sim_reply_integer(call->out, key != NULL ? (int64_t)key->count : 0);
}

void sim_run_lrange(sim_call *call)
{
    sim_key *key = NULL;
    int64_t first = 0;
    int64_t last = 0;
    if (!sim_call_integer(call, 2, &first) || !sim_call_integer(call, 3, &last) ||
        !sim_call_key(call, 1, SIM_LIST, &key))
        return;
    sim_range range = sim_range_of_ranks(key, first, last);
    sim_reply_array(call->out, range.count);
    for (size_t i = 0; i < range.count; i++)
        sim_reply_bulk(call->out, sim_bytes_slice(&key->items[range.first + i].value));
}

void sim_run_lrem(sim_call *call)
{
    sim_key *key = NULL;
    int64_t wanted = 0;
    int64_t removed = 0;
    if (!sim_call_integer(call, 2, &wanted) || !sim_call_key(call, 1, SIM_LIST, &key))
        return;
    size_t left = key != NULL ? key->count : 0;
    size_t at = wanted < 0 ? left : 0; /* from the back: one past the next to look at */
    uint64_t most = wanted < 0 ? 0 - (uint64_t)wanted : (uint64_t)wanted;
    for (; left > 0 && (most == 0 || (uint64_t)removed < most); left--) {
        size_t here = wanted < 0 ? --at : at;
        if (sim_equal(sim_bytes_slice(&key->items[here].value), call->words[3])) {
            sim_item_remove(key, here, 1);
            removed++;
        } else if (wanted >= 0) {
            at++;
        }
    }
    if (key != NULL)
        sim_call_drop_if_empty(call, key);
    sim_reply_integer(call->out, removed);
}
