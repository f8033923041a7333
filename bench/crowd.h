/* SPDX-License-Identifier: MIT
 *
 * Many threads that do the same thing at once, for a while, when told to.
 */
#ifndef BENCH_CROWD_H
#define BENCH_CROWD_H

#include "measure.h"

#define CROWD_MAX 32

struct crowd;

/* Starts one parked thread for each of the args. NULL: result says why, and none is left. */
struct crowd *crowd_start(measure_step *step, void *const *args, int count, struct result *result);
/* Lets all of them step for so long, and waits until they are parked again. The first problem of
 * any of them is the crowd's. steps_per_second may be NULL: then they only warm up. */
bool crowd_run(struct crowd *crowd, int64_t duration_ns, double *steps_per_second,
               struct result *result);
/* From now on not steps are counted, but what this says each of the args has done so far. */
void crowd_count_by(struct crowd *crowd, uint64_t (*done)(const void *arg));
/* Processor time for each step (or what is counted), but for those that warmed up. */
double crowd_cpu_us(const struct crowd *crowd);
void crowd_end(struct crowd *crowd); /* NULL is fine */

/* Runs the two crowds in turns, as measure_in_turns() does with single threads, and compares their
 * throughputs. Values are thousands of steps (or what is counted) per second, percentiles and
 * processor time those of the subject. */
bool crowd_compare(const struct bench *bench, struct crowd *subject, struct crowd *baseline,
                   struct result *result);

#endif
