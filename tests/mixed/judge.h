/* SPDX-License-Identifier: MIT */
/* What the records of a run say about two holders at once, and about the order of fences. */
#ifndef HOLDFAST_TESTS_MIXED_JUDGE_H
#define HOLDFAST_TESTS_MIXED_JUDGE_H

#include "mixed.h"

struct findings {
    bool unreadable;
    bool overlap;
    bool fences;
};

/* Prints what it finds. The beliefs of holds that were broken by force are cut in `records`. */
struct findings judge(struct record *records, size_t count, bool quorum);

#endif
