/* SPDX-License-Identifier: MIT */
/* The stage with the nodes of a quorum, and what is said of our votes at them. A node has one link
 * for requests and one for messages. */
#ifndef HF_TESTS_BALLOTS_H
#define HF_TESTS_BALLOTS_H

#include <stdlib.h>

#include "rival.h"
#include "votes.h"

#define S              the_stage
#define REQUESTS(node) (2 * (node))
#define PUSHES(node)   (2 * (node) + 1)

/* The node gets what we say, and its answers stay on the way. */
static inline void mute(int link)
{
    S.muted |= 1U << link;
}

static inline void unmute(int link)
{
    S.muted &= ~(1U << link);
    stage_run();
}

/* ANN has the lock at these nodes, for longer than any test. */
static inline void take_for_ann(const char *name, int first, int last)
{
    for (int i = first; i <= last; i++)
        put_vote(i, name, VALUE(ANN, 1), 600000, 5);
}

static inline bool has_vote(int node, const char *name)
{
    const char *value = node_get(&S.nodes[node], name);
    return value != NULL && strncmp(value, STAGE_CLIENT ":", 33) == 0;
}

static inline int count_votes(const char *name)
{
    int count = 0;
    for (int i = 0; i < S.server_count; i++)
        count += has_vote(i, name);
    return count;
}

static inline bool rival_has(int node, const char *name)
{
    const char *value = node_get(&S.nodes[node], name);
    return value != NULL && strncmp(value, RIVAL_CLIENT ":", 33) == 0;
}

/* The number of the vote that has the lock there. */
static inline unsigned long long vote_number(int node, const char *name)
{
    assert_true(has_vote(node, name));
    return strtoull(node_get(&S.nodes[node], name) + 33, NULL, 10);
}

/* The ticket of the one of ours that waits there; 0: none does. */
static inline int64_t ticket_at(int node, const char *name)
{
    const node_key *queue = node_side(&S.nodes[node], 'q', name);
    for (size_t i = 0; queue != NULL && i < queue->member_count; i++)
        if (strncmp(queue->members[i].name.bytes, STAGE_CLIENT ":", 33) == 0)
            return queue->members[i].score;
    return 0;
}

#endif
