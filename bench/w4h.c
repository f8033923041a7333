/* SPDX-License-Identifier: MIT
 *
 * W4h: 8 processes that work: 2 ms under the lock, then 10 ms without it, again and again. More
 * than the lock can serve, so it should never be free; everything above 2 ms from one grant to the
 * next was lost in passing it on. Work and pause are sleeps (clock_nanosleep), which take some 70
 * us longer than asked for even without the kernel's usual slack of 50 us: hence 480 acquisitions a
 * second at best, not 500.
 *
 *   w4h-rate  acquisitions a second; the baseline is what the sections alone would have allowed
 *   w4h-wait  time in hf_acquire(), p99 against p50: whether everybody waits about as long
 *
 * Counted from the first grant of a slice to the last before its end. Medians of the repetitions.
 */
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

#include "bench.h"
#include "measure.h"
#include "team.h"

#define WORK_NS   2000000
#define THINK_NS  10000000
#define STRETCHES 2 /* of the usual time, for each repetition */

static struct w4h {
    bool measured;
    int repetitions;
    double rate[REPETITIONS_MAX], ideal[REPETITIONS_MAX];
    double p50_us[REPETITIONS_MAX], p99_us[REPETITIONS_MAX];
    struct cpu_meter cpu;
    struct result result;
} last; /* of this run of the program */

static void pause_for(long ns)
{
    prctl(PR_SET_TIMERSLACK, 1); /* of this thread, in ns */
    clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){.tv_nsec = ns}, NULL);
}

static void book(struct player *player, int64_t called_ns, int64_t granted_ns)
{
    struct board *board = player->board;
    if (atomic_load(&board->slice_over))
        return;
    if (atomic_load(&board->first_grant_ns) == 0)
        atomic_store(&board->first_grant_ns, granted_ns);
    atomic_store(&board->last_grant_ns, granted_ns);
    player->count++;
    histogram_add(&player->histogram, (uint64_t)(granted_ns - called_ns));
}

static const char *work(struct player *player)
{
    hf_hold *hold;
    pause_for(THINK_NS);
    int64_t called_ns = now_ns();
    const char *problem = subject_acquire(&player->subject, &hold);
    if (problem != NULL)
        return problem;
    int64_t granted_ns = now_ns();
    pause_for(WORK_NS);
    int64_t worked_ns = now_ns() - granted_ns;
    book(player, called_ns, granted_ns);
    if (!atomic_load(&player->board->slice_over))
        atomic_fetch_add(&player->board->section_ns, (unsigned long long)worked_ns);
    return subject_release(&player->subject, &hold);
}

static bool run_repetition(const struct bench *bench, struct team *team, int repetition,
                           struct w4h *w4h)
{
    struct histogram *waits = calloc(1, sizeof *waits);
    struct cpu_meter warming = {0}, cpu = {0};
    if (waits == NULL)
        return result_fail(&w4h->result, "out of memory");
    bool measured = team_run(team, bench->warm_up_ns, &w4h->result);
    team_take(team, waits, &warming);
    *waits = (struct histogram){0};
    measured = measured && team_run(team, STRETCHES * bench->stretch_ns, &w4h->result);
    team_take(team, waits, &cpu);
    w4h->cpu.used_ns += cpu.used_ns;
    w4h->cpu.operations += cpu.operations;
    const struct board *board = team_board(team);
    double seconds = (double)(board->last_grant_ns - board->first_grant_ns) / 1e9;
    double count = (double)cpu.operations;
    if (measured && count > 1) {
        w4h->rate[repetition] = (count - 1) / seconds;
        w4h->ideal[repetition] = count * 1e9 / (double)board->section_ns;
        w4h->p50_us[repetition] = histogram_quantile_us(waits, 0.50);
        w4h->p99_us[repetition] = histogram_quantile_us(waits, 0.99);
    } else if (measured) {
        measured = result_fail(&w4h->result, "nobody got the lock");
    }
    free(waits);
    return measured;
}

static void run_on_server(const struct bench *bench, const struct server *server, int processes,
                          struct w4h *w4h)
{
    struct team *team = team_start(work, processes, server, &w4h->result);
    bool measured = team != NULL;
    w4h->repetitions = bench->repetitions;
    for (int i = 0; measured && i < w4h->repetitions; i++)
        measured = run_repetition(bench, team, i, w4h);
    struct result ending = {0};
    if (!team_end(team, &ending) && measured)
        result_fail(&w4h->result, "%s", ending.problem);
}

static bool measure(const struct bench *bench, const struct workload *workload,
                    struct result *result)
{
    struct server server;
    if (!last.measured) {
        last.measured = true;
        if (bench_move_to(bench, workload->placement, &last.result) &&
            server_start(&server, bench_server_cpus(bench, workload->placement), &last.result)) {
            run_on_server(bench, &server, workload->threads, &last);
            server_stop(&server);
        }
    }
    return last.result.problem[0] == '\0' || result_fail(result, "%s", last.result.problem);
}

bool run_w4h_rate(const struct bench *bench, const struct workload *workload, struct result *result)
{
    if (!measure(bench, workload, result))
        return false;
    result_take_runs(result, last.rate, last.ideal, last.repetitions);
    result->cpu_us = cpu_per_operation_us(&last.cpu);
    return true;
}

bool run_w4h_wait(const struct bench *bench, const struct workload *workload, struct result *result)
{
    if (!measure(bench, workload, result))
        return false;
    result_take_runs(result, last.p99_us, last.p50_us, last.repetitions);
    result->cpu_us = cpu_per_operation_us(&last.cpu);
    return true;
}
