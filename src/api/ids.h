/* SPDX-License-Identifier: MIT */
/* A generator of ids as its files see it: ids.c (opening, closing, what ids say), ids_reserve.c (at
 * the servers), ids_lease.c and ids_fetch.c (blocks, reserved ahead) and ids_order.c (in one order,
 * over all processes). */
#ifndef HF_API_IDS_H
#define HF_API_IDS_H

#include <holdfast_ids.h>
#include <pthread.h>
#include <stdatomic.h>

#include "api/client.h"
#include "base/shuffle.h"
#include "core/ids.h"

enum {
    HF__IDS_SLOTS = 4,
    HF__IDS_BLOCK_MAX = 1 << 24,
    HF__CACHE_LINE = 128 /* and its neighbour */
};

typedef struct hf__ids_slot { /* a block, for those who have no lock */
    atomic_uint_fast64_t generation;
    atomic_int_fast64_t first, count, expires_ns;
} hf__ids_slot;

typedef struct hf__ids_lease {
    hf__ids_slot slots[HF__IDS_SLOTS];
    char before[HF__CACHE_LINE]; /* everybody reads the slots, everybody writes the cursor */
    atomic_uint_fast64_t cursor;
    char behind[HF__CACHE_LINE];

    /* The rest is behind the mutex. */
    pthread_mutex_t mutex;
    hf__ids_block next; /* fetched ahead; count 0: none */
    hf__instant next_expires;
    int64_t size; /* of the block to be fetched */
    hf__instant installed;
    bool fetching;          /* somebody is, without the mutex */
    uint64_t attempts;      /* that have ended */
    hf_error outcome;       /* of the last one */
    int64_t waiting;        /* ids that are waited for, while somebody fetches */
    pthread_cond_t changed; /* an attempt has ended */

    pthread_t thread; /* fetches ahead */
    bool thread_runs, thread_ends, thread_wanted;
    pthread_cond_t work; /* for the thread */
} hf__ids_lease;

typedef struct hf__ids_order {
    pthread_mutex_t mutex;
    int rounds;       /* that are under way: somebody asks the server for some who came before */
    hf__list waiting; /* those who have come since */
} hf__ids_order;

struct hf_ids {
    hf__driver *driver;
    uint64_t serial; /* never the same for two in a process */
    bool ordered, by_thread, keyed;
    hf__shuffle shuffle;
    hf_client *client;
    hf__ids_config config;
    char *name;
    atomic_int_fast64_t seen; /* the id behind the highest that was ever given to us */
    union {
        hf__ids_lease lease;
        hf__ids_order order;
    } as;
};

/* When a call that begins now must be over. */
hf__instant hf__ids_deadline(const hf_ids *ids);

/* ids_reserve.c: at most HF__IDS_BLOCK_MAX. They are ours, all of them larger than any before. */
hf_status hf__ids_reserve(hf_ids *ids, int64_t count, hf__instant ends, hf__ids_block *block,
                          hf_error *error);

/* ids_lease.c */
bool hf__ids_lease_init(hf__ids_lease *lease);
void hf__ids_lease_end(hf_ids *ids); /* not in a forked child */
hf_status hf__ids_lease_next(hf_ids *ids, int64_t *plain, hf_error *error);
/* Some of them, from one on, in *part. */
hf_status hf__ids_lease_some(hf_ids *ids, int64_t count, hf__instant ends, hf__ids_block *part,
                             hf_error *error);

/* ids_order.c */
bool hf__ids_order_init(hf__ids_order *order);
void hf__ids_order_end(hf__ids_order *order); /* not in a forked child */
hf_status hf__ids_order_take(hf_ids *ids, int64_t count, int64_t *first, hf_error *error);

#endif
