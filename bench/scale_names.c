/* SPDX-License-Identifier: MIT
 *
 * Scale-names: one client takes and releases a million locks, each with a name of its own. What
 * does the server keep of locks that nobody holds any more? The value is the growth of used_memory.
 *
 * A hundred lanes work side by side in one loop (as in w2a.c): each acquires its next name,
 * releases it when it is granted, and goes on when that is confirmed. The first names only warm up:
 * they connect, load the scripts and make the server's buffers grow. The server shrinks its tables
 * in the background, some time after the last release; so we look again for a few seconds.
 */
#include <holdfast.h>
#include <poll.h>
#include <stdio.h>
#include <time.h>

#include "bench.h"
#include "cpu.h"
#include "info.h"
#include "server.h"

enum { LANES = 100, WARM_UP = 10000, QUICK_PART = 100, LOOKS = 50 };

struct names {
    hf_client *client;
    long next, end; /* of the names to be taken in this round */
    int lanes;      /* that still work */
    char problem[PROBLEM_SIZE];
};

static void note_problem(struct names *names, const char *call, const hf_error *error)
{
    if (names->problem[0] == '\0')
        snprintf(names->problem, sizeof names->problem, "%s: %s: %s", call,
                 hf_status_name(error->status), error->text);
}

static void take_next(struct names *names);

static void on_released(void *arg, const hf_error *error)
{
    if (error->status != HF_OK)
        note_problem(arg, "hf_release_async", error);
    take_next(arg);
}

static void on_acquired(void *arg, hf_hold *hold, const hf_error *error)
{
    hf_error trouble = *error;
    if (hold != NULL && hf_release_async(&hold, on_released, arg, &trouble) == HF_OK)
        return;
    note_problem(arg, "hf_acquire_async", &trouble);
    take_next(arg);
}

/* The lane ends when there is no name left, or something went wrong. */
static void take_next(struct names *names)
{
    char name[LOCK_NAME_SIZE];
    hf_error error;
    if (names->next < names->end && names->problem[0] == '\0' && !bench_interrupted) {
        snprintf(name, sizeof name, "bench:name:%ld", names->next++);
        if (hf_acquire_async(names->client, name, HF_ACQUIRE(.lease_ms = BENCH_LEASE_MS),
                             on_acquired, names, NULL, &error) == HF_OK)
            return;
        note_problem(names, "hf_acquire_async", &error);
    }
    names->lanes--;
}

static bool take_names(struct names *names, long count, struct result *result)
{
    names->end = names->next + count;
    names->lanes = LANES;
    for (int i = 0; i < LANES; i++)
        take_next(names);
    while (names->lanes > 0) {
        struct pollfd wanted = {.fd = hf_loop_descriptor(names->client), .events = POLLIN};
        poll(&wanted, 1, hf_loop_timeout_ms(names->client));
        hf_error error;
        if (hf_process(names->client, &error) != HF_OK)
            return result_fail(result, "hf_process: %s", error.text);
    }
    if (bench_interrupted)
        return result_fail(result, "interrupted");
    return names->problem[0] == '\0' || result_fail(result, "%s", names->problem);
}

static bool look_for_growth(redisContext *info, double before, double enough_mib,
                            struct result *result)
{
    for (int i = 0; i < LOOKS; i++) {
        double after;
        if (!info_memory(info, &after, result))
            return false;
        result->value = (after - before) / (1024 * 1024);
        if (result->value <= enough_mib)
            break;
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    }
    return true;
}

static bool measure(const struct bench *bench, const struct workload *workload, redisContext *info,
                    struct names *names, struct result *result)
{
    struct cpu_meter cpu = {0};
    long count = bench->quick ? workload->threads / QUICK_PART : workload->threads;
    double before;
    if (!take_names(names, WARM_UP, result) || !info_memory(info, &before, result))
        return false;
    cpu_begin(&cpu);
    bool taken = take_names(names, count, result);
    cpu_end(&cpu, (uint64_t)count);
    result->cpu_us = cpu_per_operation_us(&cpu);
    return taken && look_for_growth(info, before, workload->gate, result);
}

static bool run_on_server(const struct bench *bench, const struct workload *workload,
                          const struct server *server, redisContext *info, struct result *result)
{
    char url[64];
    hf_error error;
    struct names names = {0};
    snprintf(url, sizeof url, "redis://127.0.0.1:%d", server->port);
    if (hf_open(url, HF_CLIENT(.own_loop = true), &names.client, &error) != HF_OK)
        return result_fail(result, "hf_open: %s", error.text);
    bool measured = measure(bench, workload, info, &names, result);
    hf_status closed = hf_close(names.client);
    if (measured && closed != HF_OK)
        measured = result_fail(result, "hf_close: %s", hf_status_name(closed));
    return measured;
}

bool run_scale_names(const struct bench *bench, const struct workload *workload,
                     struct result *result)
{
    struct server server;
    redisContext *info;
    if (!bench_move_to(bench, workload->placement, result) ||
        !server_start(&server, bench_cpus(bench, workload->placement), result))
        return false;
    bool measured = info_open(&info, &server, result);
    if (measured) {
        measured = run_on_server(bench, workload, &server, info, result);
        redisFree(info);
    }
    server_stop(&server);
    return measured;
}
