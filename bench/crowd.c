/* SPDX-License-Identifier: MIT
 *
 * Throughput of many threads. Both sides' threads exist all the time, and one side runs for a slice
 * while the other is parked, for the reasons given in measure.c: only sides that ran within
 * fractions of a second of each other can be compared.
 *
 * A slice lasts from the moment the threads are let go until the last one is parked again, and all
 * steps begun in it are counted; what waking and parking cost, both sides pay, and it is small
 * against 100 ms. Each thread writes only to its own member while it runs; the mutex that parks it
 * hands the numbers over.
 */
#include "crowd.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SLICES = 10 };

_Static_assert(SLICES <= MEDIAN_MAX && REPETITIONS_MAX <= MEDIAN_MAX, "median() takes them");

struct member {
    struct crowd *crowd;
    pthread_t thread;
    void *arg;
    uint64_t steps; /* so far */
    const char *problem;
    struct histogram histogram;
};

struct crowd {
    measure_step *step;
    uint64_t (*done)(const void *arg); /* NULL: steps are counted */
    pthread_mutex_t mutex;
    pthread_cond_t slice_begins;
    pthread_cond_t all_parked;
    unsigned slice; /* counts up */
    int running;
    bool ends;
    atomic_bool slice_over;
    struct cpu_meter cpu;
    int count;
    struct member members[CROWD_MAX];
};

static void step_until_over(struct member *member)
{
    struct crowd *crowd = member->crowd;
    int64_t last_ns = now_ns();
    while (member->problem == NULL &&
           !atomic_load_explicit(&crowd->slice_over, memory_order_relaxed)) {
        member->problem = crowd->step(member->arg);
        int64_t end_ns = now_ns();
        histogram_add(&member->histogram, (uint64_t)(end_ns - last_ns));
        last_ns = end_ns;
        member->steps++;
    }
}

static void *member_run(void *arg)
{
    struct member *member = arg;
    struct crowd *crowd = member->crowd;
    unsigned seen = 0;
    pthread_mutex_lock(&crowd->mutex);
    for (;;) {
        while (crowd->slice == seen && !crowd->ends)
            pthread_cond_wait(&crowd->slice_begins, &crowd->mutex);
        if (crowd->ends)
            break;
        seen = crowd->slice;
        pthread_mutex_unlock(&crowd->mutex);
        step_until_over(member);
        pthread_mutex_lock(&crowd->mutex);
        if (--crowd->running == 0)
            pthread_cond_signal(&crowd->all_parked);
    }
    pthread_mutex_unlock(&crowd->mutex);
    return NULL;
}

struct crowd *crowd_start(measure_step *step, void *const *args, int count, struct result *result)
{
    struct crowd *crowd = calloc(1, sizeof *crowd);
    if (crowd == NULL) {
        result_fail(result, "out of memory");
        return NULL;
    }
    crowd->step = step;
    pthread_mutex_init(&crowd->mutex, NULL);
    pthread_cond_init(&crowd->slice_begins, NULL);
    pthread_cond_init(&crowd->all_parked, NULL);
    for (int i = 0; i < count; i++) {
        struct member *member = &crowd->members[i];
        member->crowd = crowd;
        member->arg = args[i];
        int failure = pthread_create(&member->thread, NULL, member_run, member);
        if (failure != 0) {
            result_fail(result, "pthread_create: %s", strerror(failure));
            crowd_end(crowd);
            return NULL;
        }
        crowd->count++;
    }
    return crowd;
}

void crowd_end(struct crowd *crowd)
{
    if (crowd == NULL)
        return;
    pthread_mutex_lock(&crowd->mutex);
    crowd->ends = true;
    pthread_cond_broadcast(&crowd->slice_begins);
    pthread_mutex_unlock(&crowd->mutex);
    for (int i = 0; i < crowd->count; i++)
        pthread_join(crowd->members[i].thread, NULL);
    pthread_cond_destroy(&crowd->all_parked);
    pthread_cond_destroy(&crowd->slice_begins);
    pthread_mutex_destroy(&crowd->mutex);
    free(crowd);
}

static void begin_slice(struct crowd *crowd)
{
    atomic_store(&crowd->slice_over, false);
    pthread_mutex_lock(&crowd->mutex);
    crowd->slice++;
    crowd->running = crowd->count;
    pthread_cond_broadcast(&crowd->slice_begins);
    pthread_mutex_unlock(&crowd->mutex);
}

static void end_slice(struct crowd *crowd)
{
    atomic_store(&crowd->slice_over, true);
    pthread_mutex_lock(&crowd->mutex);
    while (crowd->running > 0)
        pthread_cond_wait(&crowd->all_parked, &crowd->mutex);
    pthread_mutex_unlock(&crowd->mutex);
}

void crowd_count_by(struct crowd *crowd, uint64_t (*done)(const void *arg))
{
    crowd->done = done;
}

static uint64_t done_so_far(const struct crowd *crowd)
{
    uint64_t sum = 0;
    for (int i = 0; i < crowd->count; i++)
        sum += crowd->done != NULL ? crowd->done(crowd->members[i].arg) : crowd->members[i].steps;
    return sum;
}

bool crowd_run(struct crowd *crowd, int64_t duration_ns, double *steps_per_second,
               struct result *result)
{
    const struct timespec pause = {.tv_sec = (time_t)(duration_ns / 1000000000),
                                   .tv_nsec = (long)(duration_ns % 1000000000)};
    uint64_t before = done_so_far(crowd);
    cpu_begin(&crowd->cpu);
    int64_t start_ns = now_ns();
    begin_slice(crowd);
    nanosleep(&pause, NULL); /* a signal ends it early, which hurts nothing */
    end_slice(crowd);
    int64_t elapsed_ns = now_ns() - start_ns;
    for (int i = 0; i < crowd->count; i++)
        if (crowd->members[i].problem != NULL)
            return result_fail(result, "%s", crowd->members[i].problem);
    if (steps_per_second != NULL) {
        uint64_t done = done_so_far(crowd) - before;
        cpu_end(&crowd->cpu, done);
        *steps_per_second = (double)done * 1e9 / (double)elapsed_ns;
    }
    return !bench_interrupted || result_fail(result, "interrupted");
}

double crowd_cpu_us(const struct crowd *crowd)
{
    return cpu_per_operation_us(&crowd->cpu);
}

/* A repetition's throughputs are the medians of its slices. */
static bool repetition_run(const struct bench *bench, struct crowd *const crowds[2], int repetition,
                           double per_second[2], struct result *result)
{
    double slices[2][SLICES];
    for (int i = 0; i < 2; i++)
        if (!crowd_run(crowds[i], bench->warm_up_ns, NULL, result))
            return false;
    for (int slice = 0; slice < SLICES; slice++) {
        for (int turn = 0; turn < 2; turn++) {
            int i = (turn + slice + repetition) % 2;
            if (!crowd_run(crowds[i], bench->stretch_ns / SLICES, &slices[i][slice], result))
                return false;
        }
    }
    for (int i = 0; i < 2; i++)
        per_second[i] = median(slices[i], SLICES);
    return true;
}

static bool take_percentiles(const struct crowd *crowd, struct result *result)
{
    struct histogram *all = calloc(1, sizeof *all);
    if (all == NULL)
        return result_fail(result, "out of memory");
    for (int i = 0; i < crowd->count; i++)
        histogram_merge(all, &crowd->members[i].histogram);
    result_take_histogram(result, all);
    free(all);
    return true;
}

bool crowd_compare(const struct bench *bench, struct crowd *subject, struct crowd *baseline,
                   struct result *result)
{
    struct crowd *const crowds[2] = {subject, baseline};
    double values[REPETITIONS_MAX], baselines[REPETITIONS_MAX];
    for (int repetition = 0; repetition < bench->repetitions; repetition++) {
        double per_second[2];
        if (!repetition_run(bench, crowds, repetition, per_second, result))
            return false;
        values[repetition] = per_second[0] / 1e3;
        baselines[repetition] = per_second[1] / 1e3;
    }
    result_take_runs(result, values, baselines, bench->repetitions);
    result->cpu_us = crowd_cpu_us(subject);
    return take_percentiles(subject, result);
}
