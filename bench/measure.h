/* SPDX-License-Identifier: MIT
 *
 * Times two or more ways of doing the same thing against each other, in turns.
 */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include "bench.h"
#include "cpu.h"
#include "numbers.h"

#define REPETITIONS_MAX 5

/* Does the work once. NULL when it went well, else a text that belongs to arg. */
typedef const char *measure_step(void *arg);

struct side {
    measure_step *step;
    void *arg;
    double step_us[REPETITIONS_MAX]; /* time of one step, for each repetition */
    struct histogram histogram;      /* of the steps of all repetitions */
    struct cpu_meter cpu;            /* the same */
};

/* Runs every side for the same time in each repetition, in many short slices that take turns and
 * begin with another side each time, so that a machine that slows down slows all of them down. */
bool measure_in_turns(const struct bench *bench, struct side *sides, int side_count,
                      struct result *result);

/* Fills the result from the two sides: medians of the repetitions; the ratio is the median of the
 * repetitions' ratios. Percentiles and processor time are those of the subject. */
void measure_compare(const struct bench *bench, const struct side *subject,
                     const struct side *baseline, struct result *result);

#endif
