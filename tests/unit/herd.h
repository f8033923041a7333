/* SPDX-License-Identifier: MIT */
/* Many renewed holds on the stage, for those who test the watchdog. */
#ifndef HF_TESTS_HERD_H
#define HF_TESTS_HERD_H

#include <stdio.h>

#include "stage.h"

#define RENEWED .lease_ms = 9000, .renew_interval_ms = 3000

enum { FULL_MS = 9000 - 90 - 2 /* of a lease of nine seconds */ };

/* Those with these numbers, all at once. */
static inline void acquire_from(int first, int last)
{
    char name[32];
    for (int i = first; i <= last; i++) {
        snprintf(name, sizeof(name), "lock-%d", i);
        ACQUIRE(i, name, RENEWED);
        EXPECT(i, HF_OK);
    }
}

static inline void acquire_many(int count)
{
    acquire_from(1, count);
}

static inline void expect_all_safe(int count)
{
    for (int i = 1; i <= count; i++) {
        EXPECT_STATE(i, HF_SAFE);
        EXPECT_QUIET(i);
    }
}

#endif
