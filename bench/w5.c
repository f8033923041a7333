/* SPDX-License-Identifier: MIT
 *
 * W5: ten thousand locks held at once, lease 10 s, for three leases. One run in a process of its
 * own (holder.c) answers all questions, and each row of the table shows one of them:
 *
 *   w5-commands   commands a second at the server
 *   w5-slowest    the longest script call, if one took 500 us or more (SLOWLOG)
 *   w5-processor  share of one core that the client uses, in percent
 *   w5-memory     resident memory of the client
 *   w5-threads    threads of the client
 *
 * A hold that is lost makes all of them fail. The operation, of which the table shows the processor
 * time, is one hold that is kept for one second.
 */
#include <stdio.h>

#include "bench.h"
#include "holding.h"
#include "info.h"
#include "server.h"

#define HOLDS       10000
#define QUICK_HOLDS 500
#define LEASE_MS    10000
#define SECONDS     30
#define SLOW_US     500

struct w5 {
    bool measured;
    double commands, slowest_us, processor_percent, memory_mib, threads;
    double cpu_us; /* of client and server, for one hold and second */
};

static struct w5 last; /* of this run of the program */

static bool watch(redisContext *info, const struct server *server, struct holding *holding,
                  int seconds, struct result *result)
{
    double calls, total_us;
    char slower[64];
    snprintf(slower, sizeof slower, "CONFIG SET slowlog-log-slower-than %d", SLOW_US);
    if (!info_order(info, slower, result) || !info_order(info, "SLOWLOG RESET", result) ||
        !info_order(info, "CONFIG RESETSTAT", result))
        return false;
    if (!holding_keep(holding, server, seconds * 1000, result) ||
        !info_command(info, "evalsha", &calls, &total_us, result) ||
        !info_slowest_us(info, &last.slowest_us, result))
        return false;
    last.commands = calls / seconds;
    last.processor_percent = holding->client_ns / seconds / 1e9 * 100;
    last.cpu_us =
        (holding->client_ns + holding->server_ns) / 1e3 / seconds / (double)holding->holds;
    last.memory_mib = holding->full_kib / 1024;
    last.threads = holding->threads;
    last.measured = true;
    return true;
}

static bool measure(const struct bench *bench, const struct server *server, struct result *result)
{
    redisContext *info;
    struct holding holding;
    if (!info_open(&info, server, result))
        return false;
    bool measured =
        holding_start(&holding, server, bench->quick ? QUICK_HOLDS : HOLDS, LEASE_MS, 0, result) &&
        watch(info, server, &holding, bench->quick ? 1 : SECONDS, result);
    holding_stop(&holding);
    redisFree(info);
    return measured;
}

/* Measures, unless another row has, and shows one of the numbers. */
static bool show(const struct bench *bench, const struct workload *workload, const double *number,
                 struct result *result)
{
    struct server server;
    bool measured = last.measured;
    if (!measured) {
        if (!bench_move_to(bench, workload->placement, result) ||
            !server_start(&server, bench_cpus(bench, workload->placement), result))
            return false;
        measured = measure(bench, &server, result);
        server_stop(&server);
    }
    result->value = *number;
    if (number != &last.memory_mib && number != &last.threads)
        result->cpu_us = last.cpu_us;
    return measured;
}

bool run_w5_commands(const struct bench *bench, const struct workload *workload,
                     struct result *result)
{
    return show(bench, workload, &last.commands, result);
}

bool run_w5_slowest(const struct bench *bench, const struct workload *workload,
                    struct result *result)
{
    return show(bench, workload, &last.slowest_us, result);
}

bool run_w5_processor(const struct bench *bench, const struct workload *workload,
                      struct result *result)
{
    return show(bench, workload, &last.processor_percent, result);
}

bool run_w5_memory(const struct bench *bench, const struct workload *workload,
                   struct result *result)
{
    return show(bench, workload, &last.memory_mib, result);
}

bool run_w5_threads(const struct bench *bench, const struct workload *workload,
                    struct result *result)
{
    return show(bench, workload, &last.threads, result);
}
