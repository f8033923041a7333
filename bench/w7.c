/* SPDX-License-Identifier: MIT
 *
 * W7: a job that does nothing, run under a lock that nobody else wants: `holdfast run -n x -- true`
 * against `flock -n FILE true`. Both are processes that start another one, so this is the price of
 * the command as cron pays it: two more round trips, a guard process and a larger program.
 *
 * A step is one such process, from posix_spawn() to its end. The server runs already and is reached
 * over a unix socket.
 */
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "measure.h"
#include "server.h"

struct program {
    char *words[8];
    char **environment;
    char problem[PROBLEM_SIZE];
};

static const char *fail(struct program *program, const char *what, int number)
{
    snprintf(program->problem, sizeof program->problem, "%s: %s %d", program->words[0], what,
             number);
    return program->problem;
}

static const char *run_once(void *arg)
{
    struct program *program = arg;
    pid_t pid;
    int status;
    int problem =
        posix_spawnp(&pid, program->words[0], NULL, NULL, program->words, program->environment);
    if (problem != 0)
        return fail(program, "cannot be started, error", problem);
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return fail(program, "cannot be waited for, error", errno);
    return status == 0 ? NULL : fail(program, "ended with the status", status);
}

static bool compare(const struct bench *bench, struct program *subject, struct program *baseline,
                    struct result *result)
{
    struct side *sides = calloc(2, sizeof *sides);
    if (sides == NULL)
        return result_fail(result, "out of memory");
    sides[0].step = sides[1].step = run_once;
    sides[0].arg = subject;
    sides[1].arg = baseline;
    bool measured = measure_in_turns(bench, sides, 2, result);
    if (measured)
        measure_compare(bench, &sides[0], &sides[1], result);
    free(sides);
    return measured;
}

/* The same environment for both, in which no setting of whoever runs this can be found. */
static bool run_on_server(const struct bench *bench, const struct server *server,
                          struct result *result)
{
    char file[sizeof server->folder + 16], home[sizeof server->folder + 16];
    char url[sizeof server->socket_path + 32], path[] = "PATH=/usr/local/bin:/usr/bin:/bin";
    snprintf(file, sizeof file, "%s/flock", server->folder);
    snprintf(home, sizeof home, "HOME=%s", server->folder);
    snprintf(url, sizeof url, "HOLDFAST_URL=unix://%s", server->socket_path);
    char *environment[] = {path, home, url, NULL};
    struct program subject = {.words = {HOLDFAST_COMMAND, "run", "-n", "bench", "--", "true"},
                              .environment = environment};
    struct program baseline = {.words = {"flock", "-n", file, "true"}, .environment = environment};
    bool measured = compare(bench, &subject, &baseline, result);
    (void)unlink(file);
    return measured;
}

bool run_w7(const struct bench *bench, const struct workload *workload, struct result *result)
{
    struct server server;
    if (!bench_move_to(bench, workload->placement, result) ||
        !server_start(&server, bench_server_cpus(bench, workload->placement), result))
        return false;
    bool measured = run_on_server(bench, &server, result);
    server_stop(&server);
    return measured;
}
