/* SPDX-License-Identifier: MIT */
/* Threads of one client that want the same lock, for those who test cohorts. Call n is thread n's.
 */
#ifndef HF_TESTS_CROWD_H
#define HF_TESTS_CROWD_H

#include "rival.h"
#include "stage.h"

enum { CROWD_LEASE_MS = 9000, CROWD_FULL_MS = 9000 - 90 - 2, CROWD_TURNS = 64 };
enum { CROWD_MORE = 8 }; /* turns for which a contender asks beyond those that were used last */

/* What lets a call take part. */
#define MEMBER(number) MEMBER_FOR(number, 60000)
#define MEMBER_FOR(number, ms)                                                                  \
    .wait_ms = (ms), .lease_ms = CROWD_LEASE_MS, .renew_interval_ms = 3000, .thread = (number), \
    .reenters = true

static inline void crowd_begin(int local_turns)
{
    SETUP(.messages = true, .local_turns = local_turns);
    rival_begin();
}

static inline void crowd_end(void)
{
    rival_end();
    FINISH();
}

/* Calls 2 to `last` want what call 1 has. Then call 1 gives it back: 2 has it, with fences for the
 * others, who wait here. */
static inline void crowd_gather(int last)
{
    for (int i = 1; i <= last; i++)
        ACQUIRE(i, "x", MEMBER((uint64_t)i));
    EXPECT(1, HF_OK);
    RELEASE(1);
    EXPECT(2, HF_OK);
    for (int i = 3; i <= last; i++)
        EXPECT_WAITING(i);
}

/* Call `from` gives the lock back and call `to` has it, without a word to the server. */
static inline void crowd_turn(int from, int to)
{
    int writes = the_stage.writes;
    uint64_t fence = FENCE(from);
    RELEASE(from);
    EXPECT(from, HF_OK);
    EXPECT(to, HF_OK);
    assert_int_equal(the_stage.writes, writes);
    assert_true(FENCE(to) == fence + 1);
}

#endif
