/* SPDX-License-Identifier: MIT
 *
 * The stopwatch. The machine beside us is noisy, drifts, and has phases of seconds in which all is
 * half as fast: absolute times say little. What counts is the ratio of two sides that ran within
 * fractions of a second of each other. Hence the slices that take turns, and the median of
 * per-repetition ratios instead of a ratio of medians.
 *
 * The clock is read once per step on every side alike (the end of one step is the start of the
 * next), and a sample costs one increment in a table of fixed size: measuring takes well below
 * 0.1 us of steps that take 30 us and more, and it allocates nothing.
 */
#include "measure.h"

enum { SLICES = 25, SIDES_MAX = 4 };

_Static_assert(SLICES <= MEDIAN_MAX && REPETITIONS_MAX <= MEDIAN_MAX, "median() takes them");

/* Steps for at least duration_ns and at least once. samples may be NULL. */
static bool slice_run(const struct side *side, int64_t duration_ns, struct histogram *samples,
                      double *step_us, uint64_t *step_count, struct result *result)
{
    int64_t start_ns = now_ns();
    int64_t last_ns = start_ns;
    uint64_t steps = 0;
    while (steps == 0 || last_ns - start_ns < duration_ns) {
        const char *problem = side->step(side->arg);
        if (bench_interrupted)
            problem = "interrupted";
        if (problem != NULL)
            return result_fail(result, "%s", problem);
        int64_t end_ns = now_ns();
        if (samples != NULL)
            histogram_add(samples, (uint64_t)(end_ns - last_ns));
        last_ns = end_ns;
        steps++;
    }
    *step_us = (double)(last_ns - start_ns) / 1e3 / (double)steps;
    *step_count = steps;
    return true;
}

static bool slice_measure(struct side *side, int64_t duration_ns, double *step_us,
                          struct result *result)
{
    uint64_t steps = 0;
    cpu_begin(&side->cpu);
    bool measured = slice_run(side, duration_ns, &side->histogram, step_us, &steps, result);
    cpu_end(&side->cpu, steps);
    return measured;
}

/* A repetition's time is the median of its slices: a machine that stands still for 100 ms spoils
 * one slice and nothing else. */
static bool repetition_run(const struct bench *bench, struct side *sides, int side_count,
                           int repetition, struct result *result)
{
    double slices[SIDES_MAX][SLICES];
    for (int slice = 0; slice < SLICES; slice++) {
        for (int turn = 0; turn < side_count; turn++) {
            int i = (turn + slice + repetition) % side_count;
            if (!slice_measure(&sides[i], bench->stretch_ns / SLICES, &slices[i][slice], result))
                return false;
        }
    }
    for (int i = 0; i < side_count; i++)
        sides[i].step_us[repetition] = median(slices[i], SLICES);
    return true;
}

bool measure_in_turns(const struct bench *bench, struct side *sides, int side_count,
                      struct result *result)
{
    for (int repetition = 0; repetition < bench->repetitions; repetition++) {
        double warming;
        uint64_t steps;
        for (int i = 0; i < side_count; i++)
            if (!slice_run(&sides[i], bench->warm_up_ns, NULL, &warming, &steps, result))
                return false;
        if (!repetition_run(bench, sides, side_count, repetition, result))
            return false;
    }
    return true;
}

void measure_compare(const struct bench *bench, const struct side *subject,
                     const struct side *baseline, struct result *result)
{
    result_take_runs(result, subject->step_us, baseline->step_us, bench->repetitions);
    result->cpu_us = cpu_per_operation_us(&subject->cpu);
    result_take_histogram(result, &subject->histogram);
}
