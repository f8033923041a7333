/* SPDX-License-Identifier: MIT */
/* A lock that is in the hands of a token, for those who test what becomes of it. */
#ifndef HF_TESTS_TOKEN_H
#define HF_TESTS_TOKEN_H

#include "stage.h"

/* The lock "x" is held, and nobody here knows it any more but by the token. */
static inline stage_token taken(int64_t lease_ms)
{
    stage_token token;
    ACQUIRE(1, "x", .lease_ms = lease_ms);
    EXPECT(1, HF_OK);
    assert_int_equal(stage_detach(1, &token), HF_OK);
    return token;
}

static inline void expect_held(void)
{
    EXPECT_KEY("x");
    assert_int_equal(the_stage.node.releases, 0);
}

#endif
