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
 * A hold that is lost makes all of them fail.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"
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
};

static struct w5 last; /* of this run of the program */

struct holder {
    pid_t pid;
    FILE *to, *from;
};

static void become_holder(int in, int out, const struct server *server, int holds)
{
    char path[512], url[128], count[16], lease[16];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - sizeof "-holder");
    if (length < 0)
        _exit(127);
    memcpy(path + length, "-holder", sizeof "-holder");
    snprintf(url, sizeof url, "redis://127.0.0.1:%d", server->port);
    snprintf(count, sizeof count, "%d", holds);
    snprintf(lease, sizeof lease, "%d", LEASE_MS);
    dup2(in, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    execl(path, path, url, count, lease, (char *)NULL);
    _exit(127);
}

static bool holder_start(struct holder *holder, const struct server *server, int holds,
                         struct result *result)
{
    int to[2], from[2];
    if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0)
        return result_fail(result, "pipe: %s", strerror(errno));
    holder->pid = fork();
    if (holder->pid == 0)
        become_holder(to[0], from[1], server, holds);
    close(to[0]);
    close(from[1]);
    holder->to = fdopen(to[1], "w");
    holder->from = fdopen(from[0], "r");
    char line[256] = "no answer";
    if (holder->pid > 0 && fgets(line, sizeof line, holder->from) != NULL &&
        strcmp(line, "ready\n") == 0)
        return true;
    return result_fail(result, "holdfast-bench-holder: %s", line);
}

static void holder_stop(struct holder *holder)
{
    fclose(holder->to); /* it reads the end, and ends */
    fclose(holder->from);
    if (holder->pid > 0)
        waitpid(holder->pid, NULL, 0);
}

static void wait_seconds(int seconds)
{
    for (int i = 0; i < 10 * seconds && !bench_interrupted; i++)
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
}

static bool ask_holder(struct holder *holder, double *used_us, double *resident_kib,
                       struct result *result)
{
    double lost;
    fputs("enough\n", holder->to);
    fflush(holder->to);
    if (fscanf(holder->from, "%lf %lf %lf %lf", used_us, resident_kib, &last.threads, &lost) != 4)
        return result_fail(result, "the holder gave no numbers");
    return lost == 0 || result_fail(result, "%.0f holds were lost", lost);
}

static bool watch(redisContext *info, struct holder *holder, int seconds, struct result *result)
{
    double used_us, resident_kib, calls, total_us;
    char slower[64];
    snprintf(slower, sizeof slower, "CONFIG SET slowlog-log-slower-than %d", SLOW_US);
    if (!info_order(info, slower, result) || !info_order(info, "SLOWLOG RESET", result) ||
        !info_order(info, "CONFIG RESETSTAT", result))
        return false;
    wait_seconds(seconds);
    if (bench_interrupted)
        return result_fail(result, "interrupted");
    if (!info_command(info, "evalsha", &calls, &total_us, result) ||
        !info_slowest_us(info, &last.slowest_us, result) ||
        !ask_holder(holder, &used_us, &resident_kib, result))
        return false;
    last.commands = calls / seconds;
    last.processor_percent = used_us / seconds / 1e6 * 100;
    last.memory_mib = resident_kib / 1024;
    last.measured = true;
    return true;
}

static bool measure(const struct bench *bench, const struct server *server, struct result *result)
{
    redisContext *info;
    struct holder holder = {0};
    if (!info_open(&info, server, result))
        return false;
    bool started = holder_start(&holder, server, bench->quick ? QUICK_HOLDS : HOLDS, result);
    bool measured = started && watch(info, &holder, bench->quick ? 1 : SECONDS, result);
    holder_stop(&holder);
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
