/* SPDX-License-Identifier: MIT */
/* A listener that remembers everything it was told, for tests to judge afterwards.
 *
 * It lives in static storage, because a failed assertion leaves the test's stack while the library
 * may still tell it something. witness_event() is the on_event and the witness its arg. */
#ifndef HOLDFAST_TESTS_WITNESS_H
#define HOLDFAST_TESTS_WITNESS_H

#include "../lib/process.h"

enum { TOLD_MAX = 64 };

struct told {
    hf_state state;
    hf_reason reason;
    int64_t remaining_ms;
    int64_t at_ms;
    char text[HF_REASON_MAX + 1];
};

struct witness {
    atomic_size_t count; /* of what was told, also beyond TOLD_MAX */
    struct told told[TOLD_MAX];
};

void witness_event(void *arg, const hf_event *event);
void witness_clear(struct witness *witness);

/* How often it was told this; HF_REASONS counts every reason. */
size_t times_told(const struct witness *witness, hf_state state, hf_reason reason);

/* Asserts that number `index` was told, and was this. */
#define EXPECT_TOLD(witness, index, state, reason) \
    expect_told((witness), (index), (state), (reason), __FILE__, __LINE__)
void expect_told(const struct witness *witness, size_t index, hf_state state, hf_reason reason,
                 const char *file, int line);

#endif
