/* SPDX-License-Identifier: MIT */
/* What the records of a run say about progress and speed. */
#ifndef HOLDFAST_TESTS_MIXED_FIGURES_H
#define HOLDFAST_TESTS_MIXED_FIGURES_H

#include <stddef.h>

#include "mixed.h"

/* Prints grants, waits and hand-overs of a storm. false: a side starves, or too little happened to
 * prove anything, which is printed. */
bool figures_of_storm(const struct record *records, size_t count, const struct board *board,
                      int seconds);

/* ---- Calm runs: the same work by the old side alone, the new side alone, and both -------------
 */

enum company { ONLY_OLD, ONLY_NEW, BOTH, COMPANIES };
enum { ROUNDS = 9 };

struct calm_round {
    double hand_over_us[SIDES][SIDES]; /* median, from side to side; negative: there was none */
    double pair_us[SIDES];             /* the same, of acquire and release together */
    double longest_wait_ms[SIDES];
    double grants_per_s[SIDES];
};

struct calm_round figures_of_calm(const struct record *records, size_t count, int64_t duration_ms);

void print_queue(struct calm_round rounds[COMPANIES][ROUNDS]);
void print_names(struct calm_round rounds[COMPANIES][ROUNDS]);

#endif
