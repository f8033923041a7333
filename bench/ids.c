/* SPDX-License-Identifier: MIT
 *
 * Ids. Leased ones need no message, so there is nothing bare to compare them with: what counts is
 * how many a thread gets, and what two get. Ids that grow within the whole process have one counter
 * that both threads write to; those that grow by thread have none.
 *
 *   ids-leased, -two   millions of ids a second from one thread, and from two together
 *   ids-by-thread      two threads against one, each with ids that grow within the thread
 *   ids-ordered        eight threads, one id at a time, against eight bare connections with an INCR
 *                      at a time
 *   ids-ordered-16     the same for 16 at a time, against pipelines of 16 INCR
 */
#include <holdfast_ids.h>
#include <math.h>
#include <stdio.h>

#include "bench.h"
#include "crowd.h"
#include "errand.h"
#include "server.h"
#include "subject.h"

enum { IDS_IN_STEP = 20000, PIPELINE = 16 };

struct taker { /* of ids; one for each thread */
    hf_ids *ids;
    int64_t last;
    char problem[PROBLEM_SIZE];
};

static const char *trouble(struct taker *taker, const hf_error *error)
{
    snprintf(taker->problem, sizeof taker->problem, "%s: %s", hf_status_name(error->status),
             error->text);
    return taker->problem;
}

/* Leased and ordered ids alike grow for the one who takes them. */
static const char *take(struct taker *taker, int count)
{
    hf_error error;
    int64_t id;
    for (int i = 0; i < count; i++) {
        if (hf_ids_next(taker->ids, &id, &error) != HF_OK)
            return trouble(taker, &error);
        if (id <= taker->last)
            return "an id is not larger than the one before";
        taker->last = id;
    }
    return NULL;
}

static const char *take_one(void *arg)
{
    return take(arg, 1);
}

static const char *take_many(void *arg)
{
    return take(arg, IDS_IN_STEP);
}

static const char *take_batch(void *arg)
{
    struct taker *taker = arg;
    hf_error error;
    int64_t ids[PIPELINE];
    if (hf_ids_next_batch(taker->ids, ids, PIPELINE, &error) != HF_OK)
        return trouble(taker, &error);
    if (ids[0] <= taker->last)
        return "an id is not larger than the one before";
    taker->last = ids[PIPELINE - 1];
    return NULL;
}

/* ---- What all have in common ---- */

typedef bool ids_measure(const struct bench *bench, const struct workload *workload,
                         const struct server *server, hf_ids *ids, struct result *result);

static bool with_ids(const struct bench *bench, const struct workload *workload,
                     const hf_ids_options *options, ids_measure *measure, struct result *result)
{
    struct server server;
    struct subject subject;
    hf_ids *ids = NULL;
    hf_error error;
    bool measured = false;
    if (!bench_move_to(bench, workload->placement, result) ||
        !server_start(&server, bench_server_cpus(bench, workload->placement), result))
        return false;
    if (subject_open(&subject, &server, workload->transport, result)) {
        if (hf_ids_open(subject.client, "bench", options, &ids, &error) == HF_OK)
            measured = measure(bench, workload, &server, ids, result);
        else
            result_fail(result, "hf_ids_open: %s", error.text);
        hf_ids_close(ids);
        struct result closing = {0};
        if (!subject_close(&subject, &closing) && measured)
            measured = result_fail(result, "%s", closing.problem);
    }
    server_stop(&server);
    return measured;
}

static struct crowd *takers_start(struct taker *takers, int count, hf_ids *ids, measure_step *step,
                                  struct result *result)
{
    void *args[CROWD_MAX];
    for (int i = 0; i < count; i++) {
        takers[i] = (struct taker){.ids = ids};
        args[i] = &takers[i];
    }
    return crowd_start(step, args, count, result);
}

/* ---- Leased ---- */

static bool measure_rate(const struct bench *bench, const struct workload *workload,
                         const struct server *server, hf_ids *ids, struct result *result)
{
    struct taker takers[CROWD_MAX];
    double rates[REPETITIONS_MAX];
    (void)server;
    struct crowd *crowd = takers_start(takers, workload->threads, ids, take_many, result);
    bool measured = crowd != NULL;
    for (int i = 0; i < bench->repetitions && measured; i++)
        measured = crowd_run(crowd, bench->warm_up_ns, NULL, result) &&
                   crowd_run(crowd, bench->stretch_ns, &rates[i], result);
    if (measured) {
        result_take_runs(result, rates, NULL, bench->repetitions);
        result->value *= IDS_IN_STEP / 1e6;
        result->cpu_us = crowd_cpu_us(crowd) / IDS_IN_STEP;
    }
    crowd_end(crowd);
    return measured;
}

bool run_ids_leased(const struct bench *bench, const struct workload *workload,
                    struct result *result)
{
    return with_ids(bench, workload, NULL, measure_rate, result);
}

static bool measure_against_one(const struct bench *bench, const struct workload *workload,
                                const struct server *server, hf_ids *ids, struct result *result)
{
    struct taker takers[CROWD_MAX], lone;
    (void)server;
    struct crowd *crowd = takers_start(takers, workload->threads, ids, take_many, result);
    struct crowd *one = crowd != NULL ? takers_start(&lone, 1, ids, take_many, result) : NULL;
    bool measured = one != NULL && crowd_compare(bench, crowd, one, result);
    result->value *= IDS_IN_STEP / 1e3;
    result->baseline *= IDS_IN_STEP / 1e3;
    result->cpu_us /= IDS_IN_STEP;
    result->p50_us = result->p99_us = result->max_us = NAN; /* of so many ids: they say nothing */
    crowd_end(one);
    crowd_end(crowd);
    return measured;
}

bool run_ids_by_thread(const struct bench *bench, const struct workload *workload,
                       struct result *result)
{
    return with_ids(bench, workload, HF_IDS(.by_thread = true), measure_against_one, result);
}

/* ---- Ordered ---- */

static bool measure_against_incr(const struct bench *bench, const struct workload *workload,
                                 const struct server *server, hf_ids *ids, int depth,
                                 struct result *result)
{
    struct taker takers[CROWD_MAX];
    struct errand errands[CROWD_MAX];
    void *args[CROWD_MAX];
    int open = 0;
    for (bool opened = true; opened && open < workload->threads; open += opened) {
        opened = errand_open(&errands[open], server, workload->transport, result);
        errands[open].depth = depth;
        errand_fill(&errands[open], (const char *[]){"INCR", "bench:bare", NULL});
        args[open] = &errands[open];
    }
    struct crowd *subject = NULL, *baseline = NULL;
    if (open == workload->threads) {
        subject = takers_start(takers, open, ids, depth > 1 ? take_batch : take_one, result);
        baseline = subject != NULL ? crowd_start(errand_step, args, open, result) : NULL;
    }
    bool measured = baseline != NULL && crowd_compare(bench, subject, baseline, result);
    crowd_end(baseline);
    crowd_end(subject);
    while (open > 0)
        errand_close(&errands[--open]);
    return measured;
}

static bool measure_ordered(const struct bench *bench, const struct workload *workload,
                            const struct server *server, hf_ids *ids, struct result *result)
{
    return measure_against_incr(bench, workload, server, ids, 1, result);
}

static bool measure_ordered_16(const struct bench *bench, const struct workload *workload,
                               const struct server *server, hf_ids *ids, struct result *result)
{
    return measure_against_incr(bench, workload, server, ids, PIPELINE, result);
}

bool run_ids_ordered(const struct bench *bench, const struct workload *workload,
                     struct result *result)
{
    return with_ids(bench, workload, HF_IDS(.ordered = true), measure_ordered, result);
}

bool run_ids_ordered_16(const struct bench *bench, const struct workload *workload,
                        struct result *result)
{
    return with_ids(bench, workload, HF_IDS(.ordered = true), measure_ordered_16, result);
}
