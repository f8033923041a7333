/* SPDX-License-Identifier: MIT
 *
 * Scale-holds: one client holds from ten thousand to a million locks, in a process of its own
 * (holder.c). It acquires all of them asynchronously, at most 8 000 at the same time, holds them
 * for one lease, in which each is renewed three times, and releases them. One run answers several
 * questions, and each row of the table shows one:
 *
 *   scale-holds-N         processor time of client and server for one hold and second
 *   scale-holds-N-client  the client's part of it
 *   scale-holds-N-server  the server's part of it
 *   scale-holds-N-bytes   resident memory of the client for one hold
 *   scale-holds-busy-N    holds lost, while a busy process on each core loads the machine
 *
 * A hold that is lost, an acquire or a release that fails: all rows of that run fail and say how
 * many. The ratio says whether the price of one hold grows with their number: it compares with ten
 * thousand holds. Up to 300 000 the lease is 10 s, beyond it is 60 s. A lease that is six times as
 * long is renewed a sixth as often; so the baseline of that row is a sixth of what ten thousand
 * holds of 10 s cost.
 */
#include <stdio.h>

#include "bench.h"
#include "holding.h"
#include "process.h"

#define SMALLEST        10000
#define SHORT_HOLDS_MAX 300000
#define SHORT_LEASE_MS  10000
#define LONG_LEASE_MS   60000
#define UNDER_WAY       8000
#define RUNS_MAX        8
#define BUSY_MAX        64
#define QUICK_PART      100 /* of the holds */
#define QUICK_LEASE_MS  1500

enum part { BOTH, OF_CLIENT, OF_SERVER, PARTS };

struct scale_run {
    int holds; /* as the row says, also in a quick run; 0: not measured yet */
    bool busy;
    int64_t lease_ms;
    double cpu_us[PARTS]; /* for one hold and second */
    double bytes;         /* for one hold */
    struct result result; /* the problem */
};

static struct scale_run runs[RUNS_MAX]; /* of this run of the program */

static bool hold_all(const struct bench *bench, const struct server *server, struct scale_run *run)
{
    struct holding holding;
    int holds = bench->quick ? run->holds / QUICK_PART : run->holds;
    bool done = holding_start(&holding, server, holds, run->lease_ms, UNDER_WAY, &run->result) &&
                holding_keep(&holding, server, run->lease_ms, &run->result) &&
                holding_release(&holding, &run->result);
    double hold_seconds = (double)holds * (double)run->lease_ms / 1e3;
    run->cpu_us[OF_CLIENT] = holding.client_ns / 1e3 / hold_seconds;
    run->cpu_us[OF_SERVER] = holding.server_ns / 1e3 / hold_seconds;
    run->cpu_us[BOTH] = run->cpu_us[OF_CLIENT] + run->cpu_us[OF_SERVER];
    run->bytes = (holding.full_kib - holding.empty_kib) * 1024 / holds;
    holding_stop(&holding);
    return done;
}

static void be_busy(void)
{
    for (volatile unsigned turns = 0;; turns++)
        continue;
}

static void run_among_busy(const struct bench *bench, const struct server *server,
                           struct scale_run *run)
{
    pid_t busy[BUSY_MAX];
    int started = 0, wanted = CPU_COUNT(&bench->all_cpus);
    for (; started < wanted && started < BUSY_MAX; started++) {
        busy[started] = process_fork();
        if (busy[started] == 0)
            be_busy();
    }
    hold_all(bench, server, run);
    while (started > 0)
        process_kill(busy[--started]);
}

static void measure(const struct bench *bench, struct scale_run *run)
{
    struct server server;
    if (!bench_move_to(bench, UNPINNED, &run->result) ||
        !server_start(&server, bench_cpus(bench, UNPINNED), &run->result))
        return;
    if (run->busy)
        run_among_busy(bench, &server, run);
    else
        hold_all(bench, &server, run);
    server_stop(&server);
}

static int64_t lease_of(const struct bench *bench, int holds)
{
    if (bench->quick)
        return QUICK_LEASE_MS;
    return holds > SHORT_HOLDS_MAX ? LONG_LEASE_MS : SHORT_LEASE_MS;
}

/* Measures, unless another row has. */
static const struct scale_run *run_of(const struct bench *bench, int holds, bool busy)
{
    struct scale_run *run = runs;
    while (run->holds != 0 && (run->holds != holds || run->busy != busy))
        run++;
    if (run->holds == 0) {
        *run = (struct scale_run){.holds = holds, .busy = busy, .lease_ms = lease_of(bench, holds)};
        measure(bench, run);
    }
    return run;
}

/* The run of this row and the one that it is compared with. NULL: one of them has failed. */
static const struct scale_run *pair_of(const struct bench *bench, const struct workload *workload,
                                       const struct scale_run **smallest, struct result *result)
{
    *smallest = run_of(bench, SMALLEST, false);
    const struct scale_run *run = run_of(bench, workload->threads, false);
    const struct scale_run *failed = run->result.problem[0] != '\0' ? run : *smallest;
    if (failed->result.problem[0] == '\0')
        return run;
    result_fail(result, "%s", failed->result.problem);
    return NULL;
}

static bool show(double value, double baseline, struct result *result)
{
    result->value = value;
    result->baseline = baseline;
    result->ratio = value / baseline;
    return true;
}

static bool show_part(const struct bench *bench, const struct workload *workload, enum part part,
                      struct result *result)
{
    const struct scale_run *smallest, *run = pair_of(bench, workload, &smallest, result);
    if (run == NULL)
        return false;
    double rounds = (double)smallest->lease_ms / (double)run->lease_ms;
    result->cpu_us = run->cpu_us[BOTH];
    return show(run->cpu_us[part], smallest->cpu_us[part] * rounds, result);
}

bool run_scale_holds(const struct bench *bench, const struct workload *workload,
                     struct result *result)
{
    return show_part(bench, workload, BOTH, result);
}

bool run_scale_client(const struct bench *bench, const struct workload *workload,
                      struct result *result)
{
    return show_part(bench, workload, OF_CLIENT, result);
}

bool run_scale_server(const struct bench *bench, const struct workload *workload,
                      struct result *result)
{
    return show_part(bench, workload, OF_SERVER, result);
}

bool run_scale_bytes(const struct bench *bench, const struct workload *workload,
                     struct result *result)
{
    const struct scale_run *smallest, *run = pair_of(bench, workload, &smallest, result);
    return run != NULL && show(run->bytes, smallest->bytes, result);
}

bool run_scale_busy(const struct bench *bench, const struct workload *workload,
                    struct result *result)
{
    const struct scale_run *run = run_of(bench, workload->threads, true);
    if (run->result.problem[0] != '\0')
        return result_fail(result, "%s", run->result.problem);
    result->cpu_us = run->cpu_us[BOTH];
    result->value = 0;
    return true;
}
