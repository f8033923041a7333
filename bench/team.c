/* SPDX-License-Identifier: MIT
 *
 * Processes that take part in a measurement. They are forked before anything of the library is
 * opened, and each opens a client of its own; then they are parked, and run in slices like the
 * threads of crowd.c, so that a baseline can have its turns in between.
 *
 * All they share is one piece of memory: the books below, with a mutex and conditions that work
 * across processes, and the board. A player writes only to its own place while it runs. Waiting for
 * a process is always bounded: one that has died must not stop the benchmark for ever.
 */
#include "team.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "process.h"

#define WAIT_MS          10000 /* for a lock: never needed unless a hand-over was lost for good */
#define PATIENCE_SECONDS 30

struct place {
    pid_t pid;
    struct player player;
    char problem[PROBLEM_SIZE];
};

struct team {
    team_step *step;
    const struct server *server;
    pthread_mutex_t mutex;
    pthread_cond_t slice_begins;
    pthread_cond_t all_parked;
    unsigned slice; /* counts up */
    int running;
    bool ends;
    int count;
    struct cpu_meter cpu; /* since the last team_take() */
    struct board board;
    struct place places[TEAM_MAX];
};

/* ---- In the children ---- */

static void note(struct place *place, const char *problem)
{
    if (problem != NULL)
        snprintf(place->problem, sizeof place->problem, "process %d: %.300s", place->player.number,
                 problem);
}

static void park(struct team *team)
{
    pthread_mutex_lock(&team->mutex);
    if (--team->running == 0)
        pthread_cond_signal(&team->all_parked);
}

static void play(struct team *team, struct place *place)
{
    while (place->problem[0] == '\0' && !atomic_load(&team->board.slice_over))
        note(place, team->step(&place->player));
}

static void live(struct team *team, struct place *place)
{
    struct result opening = {0};
    struct player *player = &place->player;
    unsigned seen = 0;
    if (!subject_open(&player->subject, team->server, OVER_TCP, &opening))
        note(place, opening.problem);
    player->subject.wait_ms = WAIT_MS;
    for (;;) {
        park(team);
        while (team->slice == seen)
            pthread_cond_wait(&team->slice_begins, &team->mutex);
        seen = team->slice;
        bool ends = team->ends;
        pthread_mutex_unlock(&team->mutex);
        if (ends)
            break;
        play(team, place);
    }
    if (!subject_close(&player->subject, &opening))
        note(place, opening.problem);
    park(team);
    pthread_mutex_unlock(&team->mutex);
    _exit(0);
}

/* ---- In the parent ---- */

static void init_shared(struct team *team)
{
    pthread_mutexattr_t mutex;
    pthread_condattr_t cond;
    pthread_mutexattr_init(&mutex);
    pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&team->mutex, &mutex);
    pthread_mutexattr_destroy(&mutex);
    pthread_condattr_init(&cond);
    pthread_condattr_setpshared(&cond, PTHREAD_PROCESS_SHARED);
    pthread_condattr_setclock(&cond, CLOCK_MONOTONIC);
    pthread_cond_init(&team->slice_begins, &cond);
    pthread_cond_init(&team->all_parked, &cond);
    pthread_condattr_destroy(&cond);
}

static bool wait_parked(struct team *team, struct result *result)
{
    struct timespec limit;
    int failure = 0;
    clock_gettime(CLOCK_MONOTONIC, &limit);
    limit.tv_sec += PATIENCE_SECONDS;
    pthread_mutex_lock(&team->mutex);
    while (team->running > 0 && failure == 0)
        failure = pthread_cond_timedwait(&team->all_parked, &team->mutex, &limit);
    int missing = team->running;
    pthread_mutex_unlock(&team->mutex);
    if (missing > 0)
        return result_fail(result, "%d of %d processes do not come back", missing, team->count);
    for (int i = 0; i < team->count; i++)
        if (team->places[i].problem[0] != '\0')
            return result_fail(result, "%s", team->places[i].problem);
    return true;
}

static void let_go(struct team *team, bool ends)
{
    pthread_mutex_lock(&team->mutex);
    team->ends = ends;
    team->slice++;
    team->running = team->count;
    pthread_cond_broadcast(&team->slice_begins);
    pthread_mutex_unlock(&team->mutex);
}

static void destroy(struct team *team)
{
    for (int i = 0; i < team->count; i++)
        process_kill(team->places[i].pid);
    process_unshare(team, sizeof *team);
}

struct team *team_start(team_step *step, int count, const struct server *server,
                        struct result *result)
{
    struct team *team = process_share(sizeof *team);
    if (team == NULL) {
        result_fail(result, "no shared memory");
        return NULL;
    }
    init_shared(team);
    team->step = step;
    team->server = server;
    team->running = count;
    bool started = true;
    while (started && team->count < count) {
        struct place *place = &team->places[team->count];
        place->player.number = team->count;
        place->player.board = &team->board;
        pid_t pid = process_fork();
        if (pid == 0)
            live(team, place);
        place->pid = pid;
        started = pid > 0 || result_fail(result, "fork: %s", strerror(errno));
        team->count += started;
    }
    if (started && wait_parked(team, result))
        return team;
    destroy(team);
    return NULL;
}

bool team_run(struct team *team, int64_t duration_ns, struct result *result)
{
    const struct timespec pause = {.tv_sec = (time_t)(duration_ns / 1000000000),
                                   .tv_nsec = (long)(duration_ns % 1000000000)};
    struct board *board = &team->board;
    atomic_store(&board->last_holder, -1);
    atomic_store(&board->first_grant_ns, 0);
    atomic_store(&board->last_grant_ns, 0);
    atomic_store(&board->section_ns, 0);
    atomic_store(&board->slice_over, false);
    cpu_begin(&team->cpu);
    let_go(team, false);
    nanosleep(&pause, NULL); /* a signal ends it early, which hurts nothing */
    atomic_store(&board->slice_over, true);
    bool parked = wait_parked(team, result);
    cpu_end(&team->cpu, 0);
    return parked && (!bench_interrupted || result_fail(result, "interrupted"));
}

struct board *team_board(struct team *team)
{
    return &team->board;
}

void team_take(struct team *team, struct histogram *histogram, struct cpu_meter *cpu)
{
    cpu->used_ns += team->cpu.used_ns;
    team->cpu.used_ns = 0;
    for (int i = 0; i < team->count; i++) {
        struct player *player = &team->places[i].player;
        histogram_merge(histogram, &player->histogram);
        memset(&player->histogram, 0, sizeof player->histogram);
        cpu->operations += player->count;
        player->count = 0;
    }
}

bool team_end(struct team *team, struct result *result)
{
    if (team == NULL)
        return true;
    let_go(team, true);
    bool ended = wait_parked(team, result);
    destroy(team);
    return ended;
}
