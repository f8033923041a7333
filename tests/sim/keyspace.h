/* SPDX-License-Identifier: MIT */
/* Keys and values of the model server. */
#ifndef HF_SIM_KEYSPACE_H
#define HF_SIM_KEYSPACE_H

#include "bytes.h"

typedef enum sim_type { SIM_STRING, SIM_LIST, SIM_HASH, SIM_ZSET } sim_type;

enum { SIM_NO_EXPIRY = -1 };
#define SIM_NOWHERE SIZE_MAX

/* An element: of a list the value, of a hash name and value, of a sorted set name and score. */
typedef struct sim_item {
    uint32_t hash;
    double score;
    sim_bytes name;
    sim_bytes value;
} sim_item;

typedef struct sim_key {
    struct sim_key *chain;         /* the next one in the same bucket */
    struct sim_key *newer, *older; /* in the order in which the keys were made */
    uint64_t number;               /* larger than that of every older one */
    uint32_t hash;
    sim_type type;
    int64_t expiry_ms; /* a wall clock's instant, or SIM_NO_EXPIRY */
    sim_bytes name;
    sim_bytes value; /* of a string */
    sim_item *items;
    size_t count;
    size_t capacity;
} sim_key;

typedef struct sim_keyspace {
    sim_key **buckets;
    size_t bucket_count; /* a power of two, or 0 */
    size_t count;
    uint64_t made;
    sim_key *oldest, *newest;
    int64_t now_ms;
    bool keeps_expired; /* a replica hides what has expired, and lets its primary delete it */
} sim_keyspace;

void sim_keyspace_clear(sim_keyspace *keyspace); /* frees all keys */
/* Replaces all keys by copies of the other's, in the same order. */
void sim_keyspace_copy(sim_keyspace *keyspace, const sim_keyspace *from);
void sim_keyspace_expire(sim_keyspace *keyspace); /* deletes what has expired, if it may */

sim_key *sim_key_find(sim_keyspace *keyspace, hf__slice name); /* NULL: none, or it has expired */
sim_key *sim_key_add(sim_keyspace *keyspace, hf__slice name, sim_type type); /* must not be there */
void sim_key_remove(sim_keyspace *keyspace, sim_key *key);
/* Another key of that name goes. */
void sim_key_rename(sim_keyspace *keyspace, sim_key *key, hf__slice name);
bool sim_key_expired(const sim_keyspace *keyspace, const sim_key *key);
const char *sim_type_name(sim_type type);

/* ---- Elements, by their position ---- */

size_t sim_item_find(const sim_key *key, hf__slice name); /* or SIM_NOWHERE */
sim_item *sim_item_insert(sim_key *key, size_t at, hf__slice name, hf__slice value);
void sim_item_remove(sim_key *key, size_t at, size_t count);

/* Where a sorted set has or would have this score and name. */
size_t sim_zset_place(const sim_key *key, double score, hf__slice name);
/* Adds a member, or moves the one at `old` (SIM_NOWHERE: none) to its new score. */
void sim_zset_put(sim_key *key, size_t old, double score, hf__slice name);

#endif
