/* SPDX-License-Identifier: MIT */
/* The stage with messages and a rival on it, for those who test how one waits for somebody else. */
#ifndef HF_TESTS_CONTEST_H
#define HF_TESTS_CONTEST_H

#include "rival.h"
#include "stage.h"

enum { COMMANDS, PUSH, CAREFUL }; /* the links, by index */

static inline void contest_begin(void)
{
    SETUP(.messages = true);
    rival_begin();
}

/* The rival has "x", for longer than any test. */
static inline void contest_begin_held(void)
{
    contest_begin();
    RIVAL_ACQUIRES("x", .number = 1, .lease = 600000);
}

static inline void contest_end(void)
{
    rival_end();
    FINISH();
}

#endif
