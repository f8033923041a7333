/* SPDX-License-Identifier: MIT */
/* Locks that others have at the nodes of a quorum, written into them by hand: who has which vote is
 * the test's to say, and no acquire is needed for it. */
#ifndef HF_TESTS_VOTES_H
#define HF_TESTS_VOTES_H

#include <stdio.h>
#include <string.h>

#include "core/name.h"
#include "node_store.h"
#include "stage.h"

#define ANN "00000000000000000000000000000aaa"
#define BOB "00000000000000000000000000000bbb"
/* A vote of theirs: the number is of the vote, the rest of the hold. */
#define VALUE(client, number) client ":" #number "@there:5/1/report"

static inline hf__slice side_key_of(char letter, const char *name)
{
    static char place[HF_NAME_MAX + HF__SIDE_KEY_EXTRA];
    hf__slice key = hf__slice_text(name);
    size_t length =
        hf__side_key(place, (hf__slice){"", 0}, letter, key, hf__slot(key.bytes, key.length));
    return (hf__slice){place, length};
}

static inline void put_fence(int node, const char *name, uint64_t fence)
{
    char text[32];
    snprintf(text, sizeof(text), "%llu", (unsigned long long)fence);
    store_set(&the_stage.nodes[node], side_key_of('f', name), hf__slice_text(text), -1);
}

static inline void put_vote(int node, const char *name, const char *value, int64_t ttl_ms,
                            uint64_t fence)
{
    node_set(&the_stage.nodes[node], name, value, ttl_ms);
    put_fence(node, name, fence);
}

/* One of those who share it; the owner's vote is to be put as well. */
static inline void put_sharer(int node, const char *name, const char *value, int64_t ttl_ms)
{
    struct node *at = &the_stage.nodes[node];
    node_key *holders = store_make(at, side_key_of('h', name), NODE_ZSET);
    store_add(holders, hf__slice_text(value))->score = at->now_ms + ttl_ms;
}

static inline void put_waiter(int node, const char *name, const char *value, int64_t place)
{
    node_key *queue = store_make(&the_stage.nodes[node], side_key_of('q', name), NODE_ZSET);
    store_add(queue, hf__slice_text(value))->score = place;
}

#endif
