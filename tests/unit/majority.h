/* SPDX-License-Identifier: MIT */
/* A hold that three nodes have, for the tests of what becomes of it. */
#ifndef HF_TESTS_MAJORITY_H
#define HF_TESTS_MAJORITY_H

#include "ballots.h"

#define RENEWED .lease_ms = 9000, .renew_interval_ms = 3000

enum { FULL_MS = 9000 - 90 - 2 };

/* Held at three nodes, renewed every three seconds. */
static inline void begin(void)
{
    SETUP(.servers = 3, .messages = true);
    rival_begin();
    ACQUIRE(1, "x", RENEWED);
    EXPECT(1, HF_OK);
    assert_int_equal(count_votes("x"), 3);
}

static inline void end(void)
{
    rival_end();
    FINISH();
}

static inline void lose_at(int node)
{
    node_delete(&S.nodes[node], "x");
}

#endif
