/* SPDX-License-Identifier: MIT
 *
 * W6: a process that holds the lock is killed (SIGKILL) while another one waits. Its lease of 2 s
 * must end; how much later does the waiter have the lock? The end of the lease is taken from the
 * server, right after the kill, when nobody can renew it any more. The holder is killed at another
 * moment each time, so that some have been renewed after the waiter had begun to wait, and some
 * not.
 *
 * The value is the worst of all repetitions, p50 their median. The processor time is that of waiter
 * and server from the kill on.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"
#include "cpu.h"
#include "info.h"
#include "measure.h"
#include "process.h"
#include "server.h"
#include "subject.h"

#define LEASE_MS       2000
#define QUICK_LEASE_MS 300
#define WAIT_MS        20000
#define LIMIT_MS       15000
#define LOCK           "bench:orphan"

struct scene { /* in shared memory */
    int64_t lease_ms;
    atomic_llong holds_ns;
    atomic_llong inherits_ns;
    atomic_bool failed;
    char problem[PROBLEM_SIZE];
};

static void take(struct scene *scene, const struct server *server, atomic_llong *when_ns)
{
    struct subject subject;
    struct result opening = {0};
    hf_hold *hold;
    hf_error error = {.text = ""};
    bool taken = subject_open(&subject, server, OVER_TCP, &opening);
    if (taken) {
        taken = hf_acquire(subject.client, LOCK,
                           HF_ACQUIRE(.lease_ms = scene->lease_ms, .wait_ms = WAIT_MS), &hold,
                           &error) == HF_OK;
        atomic_store(when_ns, taken ? now_ns() : 0);
    }
    if (!taken) {
        snprintf(scene->problem, sizeof scene->problem, "%s",
                 opening.problem[0] != '\0' ? opening.problem : error.text);
        atomic_store(&scene->failed, true);
    }
}

static void sleep_ms(int64_t ms)
{
    nanosleep(
        &(struct timespec){.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000},
        NULL);
}

static pid_t start(struct scene *scene, const struct server *server, atomic_llong *when_ns)
{
    pid_t pid = process_fork();
    if (pid != 0)
        return pid;
    take(scene, server, when_ns);
    for (;;)
        pause();
}

static bool wait_until(struct scene *scene, const atomic_llong *when_ns, struct result *result)
{
    for (int waited_ms = 0; atomic_load(when_ns) == 0; waited_ms++) {
        if (atomic_load(&scene->failed))
            return result_fail(result, "%s", scene->problem);
        if (waited_ms > LIMIT_MS || bench_interrupted)
            return result_fail(result, "nobody has the lock after %d ms", waited_ms);
        sleep_ms(1);
    }
    return true;
}

static bool ask_integer(redisContext *info, const char *command, long long *answer,
                        struct result *result)
{
    redisReply *reply = redisCommand(info, command);
    bool answered =
        reply != NULL && (reply->type == REDIS_REPLY_INTEGER || reply->type == REDIS_REPLY_ARRAY);
    if (answered)
        *answer = reply->type == REDIS_REPLY_ARRAY ? (long long)reply->elements : reply->integer;
    freeReplyObject(reply);
    return answered || result_fail(result, "%s: no answer", command);
}

static bool wait_queued(redisContext *info, struct result *result)
{
    long long queues = 0;
    for (int waited_ms = 0; queues == 0; waited_ms++) {
        if (!ask_integer(info, "KEYS hf:q:*", &queues, result))
            return false;
        if (waited_ms > LIMIT_MS || bench_interrupted)
            return result_fail(result, "nobody queues after %d ms", waited_ms);
        sleep_ms(1);
    }
    return true;
}

struct outcome {
    double excess_ms; /* from the end of the dead holder's lease to the waiter's grant */
    double cpu_us;
};

static int64_t used_ns(const struct server *server, pid_t waiter)
{
    return cpu_of_ns(server->pid) + cpu_of_ns(waiter);
}

static bool play(redisContext *info, struct scene *scene, const struct server *server,
                 int64_t alive_ms, struct outcome *outcome, struct result *result)
{
    long long remaining_ms = 0;
    pid_t waiter = 0, holder = start(scene, server, &scene->holds_ns);
    bool ready = holder > 0 && wait_until(scene, &scene->holds_ns, result);
    if (ready) {
        waiter = start(scene, server, &scene->inherits_ns);
        ready = waiter > 0 && wait_queued(info, result);
        sleep_ms(alive_ms);
    }
    process_kill(holder);
    int64_t before_ns = used_ns(server, waiter);
    bool done = ready && ask_integer(info, "PTTL " LOCK, &remaining_ms, result);
    int64_t asked_ns = now_ns();
    done = done && wait_until(scene, &scene->inherits_ns, result);
    outcome->cpu_us = (double)(used_ns(server, waiter) - before_ns) / 1e3;
    process_kill(waiter);
    outcome->excess_ms = (double)(scene->inherits_ns - asked_ns) / 1e6 - (double)remaining_ms;
    return done;
}

static bool repeat(const struct bench *bench, redisContext *info, const struct server *server,
                   struct result *result)
{
    double excess_ms[REPETITIONS_MAX], cpu_us[REPETITIONS_MAX];
    struct scene *scene = process_share(sizeof *scene);
    bool done = scene != NULL || result_fail(result, "no shared memory");
    result->value = 0;
    for (int i = 0; done && i < bench->repetitions; i++) {
        struct outcome outcome = {0};
        *scene = (struct scene){.lease_ms = bench->quick ? QUICK_LEASE_MS : LEASE_MS};
        done = info_order(info, "FLUSHALL", result) &&
               play(info, scene, server, i * scene->lease_ms / 6, &outcome, result);
        excess_ms[i] = outcome.excess_ms;
        cpu_us[i] = outcome.cpu_us;
        if (done && excess_ms[i] > result->value)
            result->value = excess_ms[i];
    }
    if (done) {
        result->p50_us = median(excess_ms, bench->repetitions) * 1e3;
        result->max_us = result->value * 1e3;
        result->cpu_us = median(cpu_us, bench->repetitions);
    }
    if (scene != NULL)
        process_unshare(scene, sizeof *scene);
    return done;
}

bool run_w6(const struct bench *bench, const struct workload *workload, struct result *result)
{
    struct server server;
    redisContext *info;
    if (!bench_move_to(bench, workload->placement, result) ||
        !server_start(&server, bench_server_cpus(bench, workload->placement), result))
        return false;
    bool done = info_open(&info, &server, result);
    if (done) {
        done = repeat(bench, info, &server, result);
        redisFree(info);
    }
    server_stop(&server);
    return done;
}
