/* SPDX-License-Identifier: MIT */
/* Guarded writes and values on the wire: each call is one of the scripts src/lua/write_held.lua,
 * write_fenced.lua and value.lua.
 *
 * A refusal is certain, "nothing was written", only if no earlier copy of the same call can have
 * been there: the scripts say so, and what they cannot know is HF_EUNKNOWN. */
#include "core/store.h"

#include <string.h>

#include "core/fail.h"
#include "core/words.h"

/* The lock, its holders, marks; guard, marks; value, marks. */
#define HELD_KEYS   "=hl"
#define FENCED_KEYS "gl"
#define VALUE_KEYS  "vl"

/* ---- What may be written ---- */

/* One of ours, with the side prefix or without. */
static bool is_ours(hf__slice key, hf__slice side_prefix)
{
    if (hf__slice_begins(key, HF__SLICE("hf:")))
        return true;
    if (!hf__slice_begins(key, side_prefix))
        return false;
    hf__slice rest = {key.bytes + side_prefix.length, key.length - side_prefix.length};
    return hf__slice_begins(rest, HF__SLICE("hf:"));
}

static hf__slice key_of(const hf_write *write)
{
    size_t length = write->key_length;
    if (length == 0 && write->key != NULL)
        length = strnlen(write->key, HF_NAME_MAX + 1);
    return (hf__slice){write->key, length};
}

static const char *what_is_wrong(const hf_write *write, hf__slice side_prefix, hf__slice lock)
{
    hf__slice key = key_of(write);
    if (key.bytes == NULL)
        return "its key is NULL";
    if (key.length == 0)
        return "its key is empty";
    if (key.length > HF_NAME_MAX)
        return "its key is too long";
    if (is_ours(key, side_prefix))
        return "keys that begin with \"hf:\", behind side_prefix or not, belong to the library";
    if (key.length == lock.length && memcmp(key.bytes, lock.bytes, lock.length) == 0)
        return "its key is that of the lock itself";
    if (write->value == NULL && write->value_length > 0)
        return "its value is NULL, but has a length";
    if (write->value == NULL && write->expire_ms != 0)
        return "it deletes its key, so it cannot have expire_ms";
    if (write->expire_ms < 0 || write->expire_ms > HF__STORE_NUMBER_MAX)
        return "its expire_ms is out of range";
    return NULL;
}

hf_status hf__store_check(const hf__store_writes *writes, hf__slice side_prefix, hf__slice lock,
                          hf_error *error)
{
    size_t left = HF_VALUE_MAX;
    if (writes->all == NULL)
        return hf__fail(error, HF_EINVAL, "writes is NULL");
    if (writes->count == 0 || writes->count > HF_WRITES_MAX)
        return hf__fail(error, HF_EINVAL, "%zu writes; 1 to %d are possible", writes->count,
                        HF_WRITES_MAX);
    for (size_t i = 0; i < writes->count; i++) {
        const hf_write *write = &writes->all[i];
        const char *wrong = what_is_wrong(write, side_prefix, lock);
        if (wrong == NULL && write->value_length > left)
            wrong = "with it the values are too large";
        if (wrong != NULL)
            return hf__fail(error, HF_EINVAL, "write %zu of %zu: %s", i + 1, writes->count, wrong);
        left -= write->value_length;
    }
    return hf__ok(error);
}

/* ---- Orders ---- */

static void put_writes(hf__words *w, const hf__store_writes *writes)
{
    for (size_t i = 0; i < writes->count; i++) {
        const hf_write *write = &writes->all[i];
        hf__words_put(w, write->value != NULL ? HF__SLICE("s") : HF__SLICE("d"));
        hf__words_put(w, (hf__slice){write->value, write->value_length});
        hf__words_put_number(w, write->expire_ms);
    }
}

/* With the keys of what is written, if anything is. */
static hf__query *order(hf__script_id script, hf__slice prefix, hf__slice name, const char *letters,
                        const hf__words *w, const hf__store_writes *writes)
{
    hf__slice keys[HF_WRITES_MAX];
    size_t key_count = writes != NULL ? writes->count : 0;
    for (size_t i = 0; i < key_count; i++)
        keys[i] = key_of(&writes->all[i]);
    return hf__query_new_errand(&(hf__errand){.script = script,
                                              .prefix = prefix,
                                              .name = name,
                                              .letters = letters,
                                              .keys = keys,
                                              .key_count = key_count,
                                              .words = w->all,
                                              .word_count = w->count});
}

hf__query *hf__store_write_held(const hf__store_held *held, hf__slice call,
                                const hf__store_writes *writes)
{
    hf__words w;
    hf__words_begin(&w);
    hf__words_put(&w, call);
    hf__words_put(&w, held->value);
    hf__words_put(&w, held->owner);
    put_writes(&w, writes);
    return order(HF__SCRIPT_WRITE_HELD, (hf__slice){NULL, 0}, held->key, HELD_KEYS, &w, writes);
}

hf__query *hf__store_write_fenced(hf__slice prefix, hf__slice guard, hf__slice call, uint64_t fence,
                                  const hf__store_writes *writes)
{
    hf__words w;
    hf__words_begin(&w);
    hf__words_put(&w, call);
    hf__words_put_number(&w, (int64_t)fence);
    put_writes(&w, writes);
    return order(HF__SCRIPT_WRITE_FENCED, prefix, guard, FENCED_KEYS, &w, writes);
}

hf__query *hf__store_read(hf__slice prefix, hf__slice name)
{
    hf__words w;
    hf__words_begin(&w);
    return order(HF__SCRIPT_VALUE, prefix, name, VALUE_KEYS, &w, NULL);
}

hf__query *hf__store_write(hf__slice prefix, hf__slice name, hf__slice call, uint64_t expected,
                           hf__slice bytes)
{
    hf__words w;
    hf__words_begin(&w);
    hf__words_put(&w, call);
    hf__words_put_number(&w, (int64_t)expected);
    if (bytes.bytes != NULL)
        hf__words_put(&w, bytes);
    return order(HF__SCRIPT_VALUE, prefix, name, VALUE_KEYS, &w, NULL);
}

/* ---- Answers ---- */

typedef enum verdict { UNSURE = -1, REFUSED, WRITTEN } verdict;

static bool is_number(int64_t said)
{
    return said >= 0 && said <= HF__STORE_NUMBER_MAX;
}

static hf_status fail_senseless(hf_error *error)
{
    return hf__fail(error, HF_ESERVER, "the server's answer to a write makes no sense");
}

static hf_status fail_unsure(hf_error *error, const char *what)
{
    return hf__fail(error, HF_EUNKNOWN,
                    "the answer to a first message was lost, and now %s: it may have been written",
                    what);
}

hf_status hf__store_held_outcome(const hf__numbers *said, hf_error *error)
{
    if (said->count != 1)
        return fail_senseless(error);
    switch (said->number[0]) {
    case WRITTEN:
        return hf__ok(error);
    case REFUSED:
        return hf__fail(error, HF_ELOST, "the hold has ended at the server; nothing was written");
    case UNSURE:
        return fail_unsure(error, "the hold has ended");
    default:
        return fail_senseless(error);
    }
}

/* A code, and a number that *place is for. */
static hf_status read_pair(const hf__numbers *said, uint64_t *place, const char *stale,
                           const char *unsure, hf_error *error)
{
    int64_t code = said->number[0];
    bool fits = said->count == 2 && code >= UNSURE && code <= WRITTEN && is_number(said->number[1]);
    if (!fits)
        return fail_senseless(error);
    if (place != NULL)
        *place = (uint64_t)said->number[1];
    if (code == WRITTEN)
        return hf__ok(error);
    return code == REFUSED ? hf__fail(error, HF_ESTALE, "%s", stale) : fail_unsure(error, unsure);
}

hf_status hf__store_fenced_outcome(const hf__numbers *said, uint64_t *newest, hf_error *error)
{
    return read_pair(said, newest, "somebody with a larger fence was there before",
                     "somebody with a larger fence was there", error);
}

hf_status hf__store_read_outcome(const hf__numbers *said, uint64_t *version, hf_error *error)
{
    if (said->count != 1 || !is_number(said->number[0]))
        return fail_senseless(error);
    if (said->number[0] == 0)
        return hf__fail(error, HF_EMISSING, "there is no such value");
    *version = (uint64_t)said->number[0];
    return hf__ok(error);
}

hf_status hf__store_write_outcome(const hf__numbers *said, uint64_t *version, hf_error *error)
{
    return read_pair(said, version, "the value has another version by now",
                     "the value has another version", error);
}
