/* SPDX-License-Identifier: MIT
 *
 * Memory: a client that acquires and releases for days must not grow. The resident set is read
 * once the pools are warm, and again ten times as many pairs later; nothing else happens in
 * between, so the growth is the library's.
 */
#include <stdio.h>
#include <unistd.h>

#include "bench.h"
#include "server.h"
#include "subject.h"

static double resident_kib(void)
{
    long total_pages = 0, resident_pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL)
        return -1;
    int fields = fscanf(file, "%ld %ld", &total_pages, &resident_pages);
    fclose(file);
    if (fields != 2)
        return -1;
    return (double)resident_pages * (double)sysconf(_SC_PAGESIZE) / 1024;
}

static bool run_steps(struct subject *subject, long count, struct result *result)
{
    for (long step = 0; step < count; step++) {
        const char *problem = subject_pair(subject);
        if (bench_interrupted)
            problem = "interrupted";
        if (problem != NULL)
            return result_fail(result, "%s", problem);
    }
    return true;
}

static bool measure_growth(const struct bench *bench, struct subject *subject,
                           struct result *result)
{
    long first_mark = bench->quick ? 1000 : 100000;
    if (!run_steps(subject, first_mark, result))
        return false;
    double before_kib = resident_kib();
    if (!run_steps(subject, 9 * first_mark, result))
        return false;
    double after_kib = resident_kib();
    if (before_kib < 0 || after_kib < 0)
        return result_fail(result, "/proc/self/statm cannot be read");
    result->value = after_kib - before_kib;
    return true;
}

bool run_w1_memory(const struct bench *bench, const struct workload *workload,
                   struct result *result)
{
    struct server server;
    if (!bench_move_to(bench, workload->placement, result) ||
        !server_start(&server, bench_cpus(bench, workload->placement), result))
        return false;
    struct subject subject;
    bool measured = false;
    if (subject_open(&subject, &server, workload->transport, result)) {
        measured = measure_growth(bench, &subject, result);
        struct result closing = {0};
        if (!subject_close(&subject, &closing) && measured)
            measured = result_fail(result, "%s", closing.problem);
    }
    server_stop(&server);
    return measured;
}
