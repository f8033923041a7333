/* SPDX-License-Identifier: MIT
 *
 * What a pair of acquire and release costs the server, against SET NX PX and compare-and-delete:
 * the time that INFO commandstats counts for the commands that clients send (commands inside a
 * script are part of the script's). Both sides take turns in short slices on one server; the ratio
 * is the median of the ratios of neighbouring slices.
 */
#include "bare.h"
#include "bench.h"
#include "info.h"
#include "measure.h"
#include "numbers.h"
#include "subject.h"

#define SLICES         MEDIAN_MAX
#define PAIRS_IN_SLICE 2000
#define QUICK_SLICES   3

/* Server time of one pair, in us. */
static bool slice(redisContext *info, measure_step *step, void *arg, double *pair_us,
                  struct cpu_meter *cpu, struct result *result)
{
    double calls, evalsha_us, set_us;
    if (!info_order(info, "CONFIG RESETSTAT", result))
        return false;
    cpu_begin(cpu);
    for (int i = 0; i < PAIRS_IN_SLICE; i++) {
        const char *problem = bench_interrupted ? "interrupted" : step(arg);
        if (problem != NULL)
            return result_fail(result, "%s", problem);
    }
    cpu_end(cpu, PAIRS_IN_SLICE);
    if (!info_command(info, "evalsha", &calls, &evalsha_us, result) ||
        !info_command(info, "set", &calls, &set_us, result))
        return false;
    *pair_us = evalsha_us / PAIRS_IN_SLICE;
    if (step == bare_pair) /* the canonical SET is the client's; the others are in scripts */
        *pair_us += set_us / PAIRS_IN_SLICE;
    return true;
}

static bool measure(const struct bench *bench, redisContext *info, struct subject *subject,
                    struct bare *bare, struct result *result)
{
    double ours[SLICES], theirs[SLICES];
    struct cpu_meter cpu = {0}, bare_cpu = {0};
    int slices = bench->quick ? QUICK_SLICES : SLICES;
    for (int i = 0; i < slices; i++) {
        if (!slice(info, subject_pair, subject, &ours[i], &cpu, result) ||
            !slice(info, bare_pair, bare, &theirs[i], &bare_cpu, result))
            return false;
    }
    result_take_runs(result, ours, theirs, slices);
    result->cpu_us = cpu_per_operation_us(&cpu);
    return true;
}

static bool run_on_server(const struct bench *bench, const struct workload *workload,
                          const struct server *server, struct result *result)
{
    redisContext *info;
    struct bare bare;
    struct subject subject;
    bool measured = false;
    if (!info_open(&info, server, result))
        return false;
    if (bare_open_canonical(&bare, server, workload->transport, "bench:control", result)) {
        if (subject_open(&subject, server, workload->transport, result)) {
            measured = measure(bench, info, &subject, &bare, result);
            struct result closing = {0};
            if (!subject_close(&subject, &closing) && measured)
                measured = result_fail(result, "%s", closing.problem);
        }
        bare_close(&bare);
    }
    redisFree(info);
    return measured;
}

bool run_server_time(const struct bench *bench, const struct workload *workload,
                     struct result *result)
{
    struct server server;
    if (!bench_move_to(bench, workload->placement, result) ||
        !server_start(&server, bench_cpus(bench, workload->placement), result))
        return false;
    bool measured = run_on_server(bench, workload, &server, result);
    server_stop(&server);
    return measured;
}
