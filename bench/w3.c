/* SPDX-License-Identifier: MIT
 *
 * W3: 16 threads of one process want the same lock all the time and do nothing under it. What
 * counts is how often it changes hands: an acquisition by the thread that had it before is worth
 * nothing to those who wait. One client with default options, against the best of the polling
 * loops: a connection for each thread, SET NX PX and compare-and-delete, 1 ms of sleep between
 * tries.
 *
 *   w3-unpinned, w3-split            changes of thread per second
 *   w3-unpinned-fair, w3-split-fair  how far the thread with the fewest or the most acquisitions is
 *                                    from the mean, as a factor
 *
 * Split: all threads on one core, the server on another. Both rows of a placement come from one
 * run.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "bare.h"
#include "bench.h"
#include "crowd.h"
#include "server.h"
#include "subject.h"

#define WAIT_MS      10000
#define POLL_NS      1000000
#define POLLING_LOCK "bench:control"

struct relay { /* of one side */
    atomic_int last;
    atomic_bool held;
};

struct runner {
    struct relay *relay;
    int number;
    uint64_t acquisitions;
    uint64_t changes;
    struct subject subject;
    struct bare bare;
};

struct race {
    struct relay relays[2];
    struct runner subjects[CROWD_MAX];
    struct runner pollers[CROWD_MAX];
};

static struct w3 {
    bool measured;
    double unfairness;
    struct result result;
} last[SPLIT + 1]; /* of this run of the program, by placement */

static const char *section(struct runner *runner)
{
    struct relay *relay = runner->relay;
    if (atomic_exchange(&relay->held, true))
        return "two threads have the lock";
    runner->acquisitions++;
    runner->changes += atomic_exchange(&relay->last, runner->number) != runner->number;
    atomic_store(&relay->held, false);
    return NULL;
}

static const char *subject_turn(void *arg)
{
    struct runner *runner = arg;
    hf_hold *hold;
    const char *problem = subject_acquire(&runner->subject, &hold);
    if (problem == NULL)
        problem = section(runner);
    return problem != NULL ? problem : subject_release(&runner->subject, &hold);
}

static const char *poller_turn(void *arg)
{
    struct runner *runner = arg;
    bool granted;
    const char *problem;
    while ((problem = bare_try(&runner->bare, &granted)) == NULL && !granted)
        clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){.tv_nsec = POLL_NS}, NULL);
    if (problem == NULL)
        problem = section(runner);
    return problem != NULL ? problem : bare_release(&runner->bare);
}

static uint64_t changes_of(const void *arg)
{
    return ((const struct runner *)arg)->changes;
}

static struct crowd *start(struct runner *runners, int count, measure_step *turn,
                           struct result *result)
{
    void *args[CROWD_MAX];
    for (int i = 0; i < count; i++)
        args[i] = &runners[i];
    struct crowd *crowd = crowd_start(turn, args, count, result);
    if (crowd != NULL)
        crowd_count_by(crowd, changes_of);
    return crowd;
}

static bool compare(const struct bench *bench, struct race *race, int count, struct result *result)
{
    struct crowd *subject = start(race->subjects, count, subject_turn, result);
    if (subject == NULL)
        return false;
    struct crowd *baseline = start(race->pollers, count, poller_turn, result);
    bool measured = baseline != NULL && crowd_compare(bench, subject, baseline, result);
    crowd_end(baseline);
    crowd_end(subject);
    return measured;
}

/* One that never had it counts as if it had once. */
static double unfairness(const struct runner *runners, int count)
{
    uint64_t sum = 0, least = UINT64_MAX, most = 0;
    for (int i = 0; i < count; i++) {
        uint64_t own = runners[i].acquisitions;
        sum += own;
        least = own < least ? own : least;
        most = own > most ? own : most;
    }
    double mean = (double)sum / count;
    double below = mean / (double)(least > 0 ? least : 1), above = (double)most / mean;
    return below > above ? below : above;
}

static bool run_client(const struct bench *bench, const struct server *server, struct race *race,
                       int count, struct w3 *w3)
{
    struct subject shared;
    if (!subject_open(&shared, server, OVER_TCP, &w3->result))
        return false;
    shared.wait_ms = WAIT_MS;
    for (int i = 0; i < count; i++)
        race->subjects[i] =
            (struct runner){.relay = &race->relays[0], .number = i + 1, .subject = shared};
    bool measured = compare(bench, race, count, &w3->result);
    struct result closing = {0};
    if (!subject_close(&shared, &closing) && measured)
        measured = result_fail(&w3->result, "%s", closing.problem);
    if (measured)
        w3->unfairness = unfairness(race->subjects, count);
    return measured;
}

/* Each with values of its own: they count up from different first letters. */
static bool open_poller(struct runner *runner, struct relay *relay, int number,
                        const struct server *server, struct result *result)
{
    runner->relay = relay;
    runner->number = number;
    if (!bare_open_canonical(&runner->bare, server, OVER_TCP, POLLING_LOCK, result))
        return false;
    runner->bare.value[0] = (char)('A' + number);
    return true;
}

static bool run_on_server(const struct bench *bench, const struct server *server, int count,
                          struct w3 *w3)
{
    struct race *race = calloc(1, sizeof *race);
    if (race == NULL)
        return result_fail(&w3->result, "out of memory");
    int open = 0;
    for (bool opened = true; opened && open < count; open += opened)
        opened = open_poller(&race->pollers[open], &race->relays[1], open + 1, server, &w3->result);
    bool measured = open == count && run_client(bench, server, race, count, w3);
    while (open > 0)
        bare_close(&race->pollers[--open].bare);
    free(race);
    return measured;
}

static const struct w3 *measure(const struct bench *bench, const struct workload *workload)
{
    struct w3 *w3 = &last[workload->placement];
    struct server server;
    if (w3->measured)
        return w3;
    w3->measured = true;
    result_clear(&w3->result);
    if (bench_move_to(bench, workload->placement, &w3->result) &&
        server_start(&server, bench_server_cpus(bench, workload->placement), &w3->result)) {
        run_on_server(bench, &server, workload->threads, w3);
        server_stop(&server);
    }
    return w3;
}

bool run_w3_changes(const struct bench *bench, const struct workload *workload,
                    struct result *result)
{
    *result = measure(bench, workload)->result;
    return result->problem[0] == '\0';
}

bool run_w3_fairness(const struct bench *bench, const struct workload *workload,
                     struct result *result)
{
    const struct w3 *w3 = measure(bench, workload);
    result->value = w3->unfairness;
    result->cpu_us = w3->result.cpu_us;
    return w3->result.problem[0] == '\0' || result_fail(result, "%s", w3->result.problem);
}
