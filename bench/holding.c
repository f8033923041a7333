/* SPDX-License-Identifier: MIT
 *
 * Starts holder.c and talks with it, in lines over two pipes. Every answer is waited for with a
 * bound: a client that hangs must not stop the benchmark for ever. The processor time of client and
 * server is read from here, for both in the same way.
 */
#include "holding.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"
#include "cpu.h"
#include "process.h"

#define ANSWER_MS (10 * 60 * 1000)

static void become_holder(int in, int out, const struct server *server, long holds,
                          int64_t lease_ms, int under_way)
{
    char path[512], url[128], count[24], lease[24], most[24];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - sizeof "-holder");
    if (length < 0)
        _exit(127);
    memcpy(path + length, "-holder", sizeof "-holder");
    snprintf(url, sizeof url, "redis://127.0.0.1:%d", server->port);
    snprintf(count, sizeof count, "%ld", holds);
    snprintf(lease, sizeof lease, "%lld", (long long)lease_ms);
    snprintf(most, sizeof most, "%d", under_way);
    dup2(in, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    execl(path, path, url, count, lease, most, (char *)NULL);
    _exit(127);
}

/* Only one line is ever under way, so nothing waits in the buffer of `from`. */
static bool read_line(struct holding *holding, char *line, int size, struct result *result)
{
    struct pollfd entry = {.fd = fileno(holding->from), .events = POLLIN};
    int ready = poll(&entry, 1, ANSWER_MS);
    if (bench_interrupted)
        return result_fail(result, "interrupted");
    if (ready == 0)
        return result_fail(result, "the holder has been silent for %d s", ANSWER_MS / 1000);
    if (ready < 0 || fgets(line, size, holding->from) == NULL)
        return result_fail(result, "the holder has ended without an answer");
    line[strcspn(line, "\n")] = '\0';
    return true;
}

static bool ask(struct holding *holding, char *line, int size, struct result *result)
{
    fputs("go on\n", holding->to);
    fflush(holding->to);
    return read_line(holding, line, size, result);
}

bool holding_start(struct holding *holding, const struct server *server, long holds,
                   int64_t lease_ms, int under_way, struct result *result)
{
    int to[2], from[2];
    char line[320];
    *holding = (struct holding){.holds = holds};
    if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0)
        return result_fail(result, "pipe: %s", strerror(errno));
    holding->pid = process_fork();
    if (holding->pid == 0)
        become_holder(to[0], from[1], server, holds, lease_ms, under_way);
    close(to[0]);
    close(from[1]);
    holding->to = fdopen(to[1], "w");
    holding->from = fdopen(from[0], "r");
    if (!read_line(holding, line, sizeof line, result))
        return false;
    return sscanf(line, "ready %lf", &holding->empty_kib) == 1 || result_fail(result, "%s", line);
}

static void wait_ms(int64_t duration_ms)
{
    for (int64_t waited_ms = 0; waited_ms < duration_ms && !bench_interrupted; waited_ms += 100)
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
}

bool holding_keep(struct holding *holding, const struct server *server, int64_t duration_ms,
                  struct result *result)
{
    char line[320];
    double lost;
    int64_t client_ns = cpu_of_ns(holding->pid), server_ns = cpu_of_ns(server->pid);
    wait_ms(duration_ms);
    holding->client_ns = (double)(cpu_of_ns(holding->pid) - client_ns);
    holding->server_ns = (double)(cpu_of_ns(server->pid) - server_ns);
    if (!ask(holding, line, sizeof line, result))
        return false;
    if (sscanf(line, "%lf %lf %lf", &holding->full_kib, &holding->threads, &lost) != 3)
        return result_fail(result, "the holder gave no numbers: %s", line);
    return lost == 0 || result_fail(result, "%.0f of %ld holds were lost", lost, holding->holds);
}

bool holding_release(struct holding *holding, struct result *result)
{
    char line[320];
    long failed;
    if (!ask(holding, line, sizeof line, result))
        return false;
    if (sscanf(line, "%ld", &failed) != 1)
        return result_fail(result, "the holder gave no numbers: %s", line);
    return failed == 0 || result_fail(result, "%ld of %ld releases failed", failed, holding->holds);
}

/* Its locks go with the server. */
void holding_stop(struct holding *holding)
{
    if (holding->to != NULL)
        fclose(holding->to);
    if (holding->from != NULL)
        fclose(holding->from);
    process_kill(holding->pid);
    *holding = (struct holding){0};
}
