/* SPDX-License-Identifier: MIT
 *
 * W2: 2, 4, 8 or 32 threads, each on a lock of its own that nobody else wants, acquire and release
 * as fast as they can: what it costs that threads share a client. One client with its default
 * links, against as many threads with a bare connection each, which run the same scripts. The value
 * is a throughput, so higher is better.
 *
 * Not pinned: that threads, server and kernel meet on all cores is the point. Which locks share a
 * link is decided by their names; the names used here spread evenly over four links, so this says
 * nothing about threads whose locks all fall on one.
 */
#include <stdio.h>

#include "bare.h"
#include "bench.h"
#include "crowd.h"
#include "server.h"
#include "subject.h"

static bool compare_crowds(const struct bench *bench, struct subject *subjects, struct bare *bares,
                           int count, struct result *result)
{
    void *subject_args[CROWD_MAX], *bare_args[CROWD_MAX];
    for (int i = 0; i < count; i++) {
        subject_args[i] = &subjects[i];
        bare_args[i] = &bares[i];
    }
    struct crowd *subject = crowd_start(subject_pair, subject_args, count, result);
    if (subject == NULL)
        return false;
    struct crowd *baseline = crowd_start(bare_pair, bare_args, count, result);
    bool measured = baseline != NULL && crowd_compare(bench, subject, baseline, result);
    crowd_end(baseline);
    crowd_end(subject);
    return measured;
}

static bool run_client(const struct bench *bench, const struct server *server, struct bare *bares,
                       int count, struct result *result)
{
    struct subject subjects[CROWD_MAX];
    if (!subject_open(&subjects[0], server, OVER_TCP, result))
        return false;
    for (int i = count - 1; i >= 0; i--) {
        subjects[i] = subjects[0];
        snprintf(subjects[i].lock, sizeof subjects[i].lock, "bench:subject-%02d", i);
    }
    bool measured = compare_crowds(bench, subjects, bares, count, result);
    struct result closing = {0};
    if (!subject_close(&subjects[0], &closing) && measured)
        measured = result_fail(result, "%s", closing.problem);
    return measured;
}

static bool run_on_server(const struct bench *bench, const struct server *server, int count,
                          struct result *result)
{
    struct bare bares[CROWD_MAX];
    int open = 0;
    for (bool opened = true; opened && open < count; open += opened) {
        char lock[LOCK_NAME_SIZE];
        snprintf(lock, sizeof lock, "bench:control-%02d", open);
        opened = bare_open_same_scripts(&bares[open], server, OVER_TCP, lock, result);
    }
    bool measured = open == count && run_client(bench, server, bares, count, result);
    while (open > 0)
        bare_close(&bares[--open]);
    return measured;
}

bool run_w2(const struct bench *bench, const struct workload *workload, struct result *result)
{
    struct server server;
    if (!bench_move_to(bench, workload->placement, result) ||
        !server_start(&server, bench_cpus(bench, workload->placement), result))
        return false;
    bool measured = run_on_server(bench, &server, workload->threads, result);
    server_stop(&server);
    return measured;
}
