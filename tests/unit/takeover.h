/* SPDX-License-Identifier: MIT */
/* Tokens of locks on a quorum, for those who test what becomes of them. */
#ifndef HF_TESTS_TAKEOVER_H
#define HF_TESTS_TAKEOVER_H

#include <stdlib.h>
#include <string.h>

#include "votes.h"

enum { PATIENCE_MS = 50 }; /* for those that do not answer, once a majority has */

static inline struct node *at(int node)
{
    return &the_stage.nodes[node];
}

static inline bool is_held_at(int node)
{
    return node_get(at(node), "x") != NULL;
}

static inline int count_held(void)
{
    int count = 0;
    for (int i = 0; i < the_stage.server_count; i++)
        count += is_held_at(i);
    return count;
}

static inline int count_releases(void)
{
    int count = 0;
    for (int i = 0; i < the_stage.server_count; i++)
        count += at(i)->releases;
    return count;
}

/* The lock "x" is held, and nobody here knows it any more but by the token. */
static inline stage_token taken(int64_t lease_ms)
{
    stage_token token;
    ACQUIRE(1, "x", .lease_ms = lease_ms);
    EXPECT(1, HF_OK);
    assert_int_equal(stage_detach(1, &token), HF_OK);
    assert_int_equal(count_releases(), 0);
    return token;
}

/* The same value, under another number of the same hold. */
static inline const char *vote_of(const stage_token *token, uint64_t number)
{
    static char value[400];
    const char *colon = strchr(token->value, ':');
    unsigned long long first = strtoull(colon + 1, NULL, 10);
    snprintf(value, sizeof(value), "%.*s:%llu%s", (int)(colon - token->value), token->value,
             first + number, strchr(token->value, '@'));
    return value;
}

static inline void renumber(int node, const stage_token *token, uint64_t number)
{
    node_set(at(node), "x", vote_of(token, number), node_ttl_ms(at(node), "x"));
}

#endif
