/* SPDX-License-Identifier: MIT
 *
 * W4: 8 or 64 processes, each with a client of its own, want the same lock all the time and do
 * nothing under it. Every acquisition is a hand-off from one process to another.
 *
 *   w4-*-commands  commands that the clients send, per acquisition: one to queue, one to hand on
 *   w4-*-p50, p99  time of a hand-off, from the call of hf_release() in one process to the return
 * of hf_acquire() in the next, against the time of one bare EVALSHA round trip (the library's own
 * scripts on a lock that nobody wants) while all others sleep
 *
 * Hand-offs and round trips take turns in short slices, so that the ratios compare what happened
 * within fractions of a second; each ratio is the median of the repetitions'. Acquisitions that a
 * process has twice in a row are acquisitions, but not hand-offs. All rows of one number of
 * processes come from one run.
 */
#include <stdlib.h>
#include <string.h>

#include "bare.h"
#include "bench.h"
#include "info.h"
#include "measure.h"
#include "process.h"
#include "team.h"

enum { SLICES = 10, QUANTILES = 2 };

static const double quantiles[QUANTILES] = {0.50, 0.99};

struct quantile_row {
    double handoff_us[REPETITIONS_MAX], trip_us[REPETITIONS_MAX];
};

static struct w4 {
    int processes; /* 0: not measured yet */
    double commands;
    struct cpu_meter cpu; /* and the acquisitions */
    int repetitions;
    struct quantile_row quantile[QUANTILES];
    struct result result; /* problem, and percentiles of all hand-offs */
} last[2];                /* of this run of the program */

struct field {
    const struct bench *bench;
    struct team *team;
    struct bare bare;
    redisContext *info;
    struct histogram handoffs, trips; /* of one repetition */
    struct histogram all_handoffs;
};

static const char *hand_off(struct player *player)
{
    struct board *board = player->board;
    hf_hold *hold;
    const char *problem = subject_acquire(&player->subject, &hold);
    if (problem != NULL)
        return problem;
    int64_t granted_ns = now_ns();
    int before = atomic_exchange(&board->last_holder, player->number);
    if (before >= 0 && before != player->number)
        histogram_add(&player->histogram,
                      (uint64_t)(granted_ns - atomic_load(&board->release_begun_ns)));
    player->count++;
    atomic_store(&board->release_begun_ns, now_ns());
    return subject_release(&player->subject, &hold);
}

static bool run_team(struct field *field, int64_t duration_ns, struct w4 *w4)
{
    double commands;
    if (!info_order(field->info, "CONFIG RESETSTAT", &w4->result) ||
        !team_run(field->team, duration_ns, &w4->result) ||
        !info_sent(field->info, &commands, &w4->result))
        return false;
    team_take(field->team, &field->handoffs, &w4->cpu);
    w4->commands += commands;
    return true;
}

static bool run_bare(struct field *field, int64_t duration_ns, struct w4 *w4)
{
    int64_t start_ns = now_ns(), last_ns = start_ns;
    const char *problem = NULL;
    for (bool acquires = true; problem == NULL && (!acquires || last_ns - start_ns < duration_ns);
         acquires = !acquires) {
        problem = acquires ? bare_acquire(&field->bare) : bare_release(&field->bare);
        int64_t end_ns = now_ns();
        histogram_add(&field->trips, (uint64_t)(end_ns - last_ns));
        last_ns = end_ns;
    }
    return problem == NULL || result_fail(&w4->result, "%s", problem);
}

static bool run_both(struct field *field, bool team_first, int64_t duration_ns, struct w4 *w4)
{
    if (team_first)
        return run_team(field, duration_ns, w4) && run_bare(field, duration_ns, w4);
    return run_bare(field, duration_ns, w4) && run_team(field, duration_ns, w4);
}

static void forget(struct field *field)
{
    memset(&field->handoffs, 0, sizeof field->handoffs);
    memset(&field->trips, 0, sizeof field->trips);
}

static bool run_repetition(struct field *field, int repetition, struct w4 *w4)
{
    const struct bench *bench = field->bench;
    if (!run_both(field, true, bench->warm_up_ns, w4))
        return false;
    forget(field);
    if (repetition == 0) { /* the first ones also connected */
        w4->commands = 0;
        w4->cpu = (struct cpu_meter){0};
    }
    for (int slice = 0; slice < SLICES; slice++)
        if (!run_both(field, (slice + repetition) % 2 == 0, bench->stretch_ns / SLICES, w4))
            return false;
    for (int i = 0; i < QUANTILES; i++) {
        struct quantile_row *row = &w4->quantile[i];
        row->handoff_us[repetition] = histogram_quantile_us(&field->handoffs, quantiles[i]);
        row->trip_us[repetition] = histogram_quantile_us(&field->trips, quantiles[i]);
    }
    histogram_merge(&field->all_handoffs, &field->handoffs);
    return true;
}

static bool run_field(struct field *field, const struct server *server, struct w4 *w4)
{
    bool measured =
        info_open(&field->info, server, &w4->result) &&
        bare_open_same_scripts(&field->bare, server, OVER_TCP, "bench:control", &w4->result);
    w4->repetitions = field->bench->repetitions;
    for (int i = 0; measured && i < w4->repetitions; i++)
        measured = run_repetition(field, i, w4);
    result_take_histogram(&w4->result, &field->all_handoffs);
    w4->result.cpu_us = cpu_per_operation_us(&w4->cpu);
    if (field->bare.context != NULL)
        bare_close(&field->bare);
    if (field->info != NULL)
        redisFree(field->info);
    return measured;
}

static void run_on_server(const struct bench *bench, const struct server *server, struct w4 *w4)
{
    struct field *field = calloc(1, sizeof *field);
    if (field == NULL) {
        result_fail(&w4->result, "out of memory");
        return;
    }
    field->bench = bench;
    field->team = team_start(hand_off, w4->processes, server, &w4->result);
    if (field->team != NULL) {
        bool measured = run_field(field, server, w4);
        struct result ending = {0};
        if (!team_end(field->team, &ending) && measured)
            result_fail(&w4->result, "%s", ending.problem);
    }
    free(field);
}

static const struct w4 *measure(const struct bench *bench, const struct workload *workload)
{
    struct w4 *w4 = &last[workload->threads == TEAM_MAX];
    struct server server;
    if (w4->processes > 0)
        return w4;
    w4->processes = workload->threads;
    result_clear(&w4->result);
    if (bench_move_to(bench, workload->placement, &w4->result) &&
        server_start(&server, bench_server_cpus(bench, workload->placement), &w4->result)) {
        run_on_server(bench, &server, w4);
        server_stop(&server);
    }
    return w4;
}

bool run_w4_commands(const struct bench *bench, const struct workload *workload,
                     struct result *result)
{
    const struct w4 *w4 = measure(bench, workload);
    result->value = w4->commands / (double)w4->cpu.operations;
    result->cpu_us = w4->result.cpu_us;
    return w4->result.problem[0] == '\0' || result_fail(result, "%s", w4->result.problem);
}

static bool show(const struct w4 *w4, const struct quantile_row *row, struct result *result)
{
    *result = w4->result;
    if (result->problem[0] != '\0')
        return false;
    result_take_runs(result, row->handoff_us, row->trip_us, w4->repetitions);
    return true;
}

bool run_w4_p50(const struct bench *bench, const struct workload *workload, struct result *result)
{
    const struct w4 *w4 = measure(bench, workload);
    return show(w4, &w4->quantile[0], result);
}

bool run_w4_p99(const struct bench *bench, const struct workload *workload, struct result *result)
{
    const struct w4 *w4 = measure(bench, workload);
    return show(w4, &w4->quantile[1], result);
}
