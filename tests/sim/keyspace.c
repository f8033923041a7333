/* SPDX-License-Identifier: MIT */
/* See keyspace.h. Keys live in a chained hash table and in a list by age; the list is what is
 * walked, so no order depends on an address or on the table's size. All collections are plain
 * arrays: a list in its order, a hash in the order of insertion (as Redis' small hashes are), a
 * sorted set by score and then name. Names are searched by comparing their 32-bit hashes first,
 * which is fast enough for the ten thousand members that a queue may have.
 *
 * A key whose instant has passed is not there: it is deleted when somebody looks, as in Redis, or
 * only hidden on a replica. An instant counts as passed one millisecond after it, also as in Redis.
 */
#include "keyspace.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_BUCKETS = 64 };

static uint32_t hash_of(hf__slice name)
{
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (size_t i = 0; i < name.length; i++)
        hash = (hash ^ (unsigned char)name.bytes[i]) * 16777619u;
    return hash ^ (hash >> 15);
}

static sim_key **bucket_of(const sim_keyspace *keyspace, uint32_t hash)
{
    return &keyspace->buckets[hash & (keyspace->bucket_count - 1)];
}

const char *sim_type_name(sim_type type)
{
    static const char *const names[] = {"string", "list", "hash", "zset"};
    return names[type];
}

/* ---- Keys ---- */

static void items_free(sim_key *key)
{
    for (size_t i = 0; i < key->count; i++) {
        sim_bytes_free(&key->items[i].name);
        sim_bytes_free(&key->items[i].value);
    }
    free(key->items);
}

static void key_free(sim_key *key)
{
    items_free(key);
    sim_bytes_free(&key->name);
    sim_bytes_free(&key->value);
    free(key);
}

void sim_keyspace_clear(sim_keyspace *keyspace)
{
    sim_key *key = keyspace->oldest;
    while (key != NULL) {
        sim_key *newer = key->newer;
        key_free(key);
        key = newer;
    }
    free(keyspace->buckets);
    keyspace->buckets = NULL;
    keyspace->oldest = keyspace->newest = NULL;
    keyspace->bucket_count = keyspace->count = 0;
}

static void grow(sim_keyspace *keyspace)
{
    free(keyspace->buckets);
    keyspace->bucket_count =
        keyspace->bucket_count > 0 ? keyspace->bucket_count * 2 : FIRST_BUCKETS;
    keyspace->buckets = sim_alloc(keyspace->bucket_count * sizeof(sim_key *));
    for (sim_key *key = keyspace->oldest; key != NULL; key = key->newer) {
        sim_key **bucket = bucket_of(keyspace, key->hash);
        key->chain = *bucket;
        *bucket = key;
    }
}

sim_key *sim_key_add(sim_keyspace *keyspace, hf__slice name, sim_type type)
{
    if (keyspace->count >= keyspace->bucket_count)
        grow(keyspace);
    sim_key *key = sim_alloc(sizeof(*key));
    key->name = sim_bytes_copy(name);
    key->number = ++keyspace->made;
    key->hash = hash_of(name);
    key->type = type;
    key->expiry_ms = SIM_NO_EXPIRY;
    sim_key **bucket = bucket_of(keyspace, key->hash);
    key->chain = *bucket;
    *bucket = key;
    key->older = keyspace->newest;
    *(keyspace->newest != NULL ? &keyspace->newest->newer : &keyspace->oldest) = key;
    keyspace->newest = key;
    keyspace->count++;
    return key;
}

void sim_key_remove(sim_keyspace *keyspace, sim_key *key)
{
    sim_key **link = bucket_of(keyspace, key->hash);
    while (*link != key)
        link = &(*link)->chain;
    *link = key->chain;
    *(key->older != NULL ? &key->older->newer : &keyspace->oldest) = key->newer;
    *(key->newer != NULL ? &key->newer->older : &keyspace->newest) = key->older;
    keyspace->count--;
    key_free(key);
}

bool sim_key_expired(const sim_keyspace *keyspace, const sim_key *key)
{
    return key->expiry_ms != SIM_NO_EXPIRY && keyspace->now_ms > key->expiry_ms;
}

sim_key *sim_key_find(sim_keyspace *keyspace, hf__slice name)
{
    if (keyspace->count == 0)
        return NULL;
    uint32_t hash = hash_of(name);
    sim_key *key = *bucket_of(keyspace, hash);
    while (key != NULL && (key->hash != hash || !sim_equal(sim_bytes_slice(&key->name), name)))
        key = key->chain;
    if (key == NULL || !sim_key_expired(keyspace, key))
        return key;
    if (!keyspace->keeps_expired)
        sim_key_remove(keyspace, key);
    return NULL;
}

/* What is in it moves over; the key itself is a new one, as far as the order is concerned. */
void sim_key_rename(sim_keyspace *keyspace, sim_key *key, hf__slice name)
{
    sim_key *old = sim_key_find(keyspace, name);
    if (old != NULL)
        sim_key_remove(keyspace, old);
    sim_key *made = sim_key_add(keyspace, name, key->type);
    made->expiry_ms = key->expiry_ms;
    made->value = key->value;
    made->items = key->items;
    made->count = key->count;
    made->capacity = key->capacity;
    key->value = (sim_bytes){NULL, 0};
    key->items = NULL;
    key->count = key->capacity = 0;
    sim_key_remove(keyspace, key);
}

void sim_keyspace_expire(sim_keyspace *keyspace)
{
    sim_key *key = keyspace->keeps_expired ? NULL : keyspace->oldest;
    while (key != NULL) {
        sim_key *newer = key->newer;
        if (sim_key_expired(keyspace, key))
            sim_key_remove(keyspace, key);
        key = newer;
    }
}

static void key_copy(sim_keyspace *keyspace, const sim_key *from)
{
    sim_key *key = sim_key_add(keyspace, sim_bytes_slice(&from->name), from->type);
    key->expiry_ms = from->expiry_ms;
    if (from->value.bytes != NULL)
        key->value = sim_bytes_copy(sim_bytes_slice(&from->value));
    for (size_t i = 0; i < from->count; i++) {
        const sim_item *item = &from->items[i];
        sim_item_insert(key, i, sim_bytes_slice(&item->name), sim_bytes_slice(&item->value))
            ->score = item->score;
    }
}

void sim_keyspace_copy(sim_keyspace *keyspace, const sim_keyspace *from)
{
    sim_keyspace_clear(keyspace);
    for (const sim_key *key = from->oldest; key != NULL; key = key->newer)
        key_copy(keyspace, key);
}

/* ---- Elements ---- */

size_t sim_item_find(const sim_key *key, hf__slice name)
{
    uint32_t hash = hash_of(name);
    for (size_t i = 0; i < key->count; i++)
        if (key->items[i].hash == hash && sim_equal(sim_bytes_slice(&key->items[i].name), name))
            return i;
    return SIM_NOWHERE;
}

sim_item *sim_item_insert(sim_key *key, size_t at, hf__slice name, hf__slice value)
{
    if (key->count == key->capacity) {
        key->capacity = key->capacity * 2 + 4;
        key->items = sim_resize(key->items, key->capacity * sizeof(sim_item));
    }
    sim_item *item = &key->items[at];
    memmove(item + 1, item, (key->count - at) * sizeof(*item));
    *item = (sim_item){hash_of(name), 0, sim_bytes_copy(name), sim_bytes_copy(value)};
    key->count++;
    return item;
}

void sim_item_remove(sim_key *key, size_t at, size_t count)
{
    for (size_t i = at; i < at + count; i++) {
        sim_bytes_free(&key->items[i].name);
        sim_bytes_free(&key->items[i].value);
    }
    key->count -= count;
    if (count > 0)
        memmove(&key->items[at], &key->items[at + count], (key->count - at) * sizeof(sim_item));
}

size_t sim_zset_place(const sim_key *key, double score, hf__slice name)
{
    size_t low = 0;
    size_t high = key->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const sim_item *item = &key->items[middle];
        bool before = item->score < score || (!(item->score > score) &&
                                              sim_compare(sim_bytes_slice(&item->name), name) < 0);
        if (before)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The small sets of Redis, of up to 128 members, write -0 as the integer 0. */
void sim_zset_put(sim_key *key, size_t old, double score, hf__slice name)
{
    score += 0.0;
    if (old == SIM_NOWHERE) {
        size_t at = sim_zset_place(key, score, name);
        sim_item_insert(key, at, name, HF__SLICE(""))->score = score;
        return;
    }
    sim_item item = key->items[old];
    item.score = score;
    key->count--;
    memmove(&key->items[old], &key->items[old + 1], (key->count - old) * sizeof(item));
    size_t at = sim_zset_place(key, score, sim_bytes_slice(&item.name));
    memmove(&key->items[at + 1], &key->items[at], (key->count - at) * sizeof(item));
    key->items[at] = item;
    key->count++;
}
