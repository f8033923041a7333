/* SPDX-License-Identifier: MIT */
/* See run.h. One loop looks after the children: a process that is stopped, by us or by itself, is
 * found by waitpid() and let go on after a while. A process ends by itself only after the board has
 * said stop; anything else is a finding. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run.h"

enum { FAULT_PAUSE_LEAST_MS = 50, FAULT_PAUSE_MOST_MS = 600, END_BOUND_MS = 20000 };

static int64_t wall_offset_ns(void)
{
    struct timespec wall;
    int64_t before = now_ns();
    (void)clock_gettime(CLOCK_REALTIME, &wall);
    bool interrupted = now_ns() - before > MS_NS / 10;
    return interrupted ? 0 : (int64_t)wall.tv_sec * 1000000000 + wall.tv_nsec - before;
}

static void watch_wall_clock(struct run *run)
{
    int64_t offset_ns = wall_offset_ns();
    if (offset_ns == 0)
        return;
    int64_t step_ns = run->wall_offset_ns != 0 ? llabs(offset_ns - run->wall_offset_ns) : 0;
    if (step_ns > run->wall_step_ns)
        run->wall_step_ns = step_ns;
    run->wall_offset_ns = offset_ns;
}

void run_begin(struct run *run)
{
    size_t length = 0;
    run->chance = chance_for(run->seed, 0);
    for (int i = 0; i < run->server_count; i++) {
        run->servers[i] = redis_server_start(NULL);
        length += (size_t)snprintf(run->urls + length, sizeof(run->urls) - length, "%s%s",
                                   i > 0 ? "," : "", run->servers[i]->url);
    }
}

/* ---- Children -------------------------------------------------------------------------------- */

static void become_worker(const struct crew *crew, enum side side)
{
    struct run *run = crew->run;
    char number[16];
    char seed[24];
    (void)snprintf(number, sizeof(number), "%u", run->started);
    (void)snprintf(seed, sizeof(seed), "%llu", (unsigned long long)run->seed);
    (void)execl(run->programs[side], run->programs[side], crew->mode, run->urls, crew->folder,
                side_name(side), number, seed, run->sabotage == SABOTAGE_LIE ? "lie" : "", NULL);
    perror(run->programs[side]);
    _exit(127);
}

void child_start(struct crew *crew, int slot, enum side side)
{
    pid_t parent = getpid();
    crew->run->started++;
    pid_t pid = fork();
    if (pid == 0) {
        die_with_parent(parent);
        become_worker(crew, side);
    }
    if (pid < 0)
        complain(crew->board, "cannot fork");
    crew->children[slot] = (struct child){.pid = pid > 0 ? pid : 0, .side = side};
}

void child_kill(struct crew *crew, int slot)
{
    struct child *child = &crew->children[slot];
    int status;
    if (child->pid <= 0)
        return;
    (void)kill(child->pid, SIGKILL);
    (void)waitpid(child->pid, &status, 0);
    child->pid = 0;
}

/* From a short pause to well beyond the longest lease. */
static int64_t pause_ns(struct crew *crew)
{
    struct chance *chance = &crew->run->chance;
    bool beyond = chance_percent(chance, 40);
    return MS_NS * (beyond ? chance_between(chance, LEASE_MOST_MS, LEASE_MOST_MS + 800)
                           : chance_between(chance, 10, 500));
}

static void child_ended(struct crew *crew, struct child *child, int status)
{
    bool orderly = WIFEXITED(status) && WEXITSTATUS(status) == 0 && atomic_load(&crew->board->stop);
    child->pid = 0;
    if (!orderly)
        complain(crew->board, "a process of the %s side ended by itself, %s %d",
                 side_name(child->side), WIFSIGNALED(status) ? "signal" : "status",
                 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

static void child_look_after(struct crew *crew, struct child *child)
{
    int status;
    if (child->pid == 0)
        return;
    if (waitpid(child->pid, &status, WNOHANG | WUNTRACED) == child->pid) {
        if (WIFSTOPPED(status)) {
            crew->stopped++;
            child->thaw_at_ns = now_ns() + pause_ns(crew);
        } else {
            child_ended(crew, child, status);
        }
    }
    bool due = atomic_load(&crew->board->stop) || now_ns() >= child->thaw_at_ns;
    if (child->pid != 0 && child->thaw_at_ns != 0 && due) {
        (void)kill(child->pid, SIGCONT);
        child->thaw_at_ns = 0;
    }
}

static int look_after_all(struct crew *crew)
{
    int alive = 0;
    for (int slot = 0; slot < crew->count; slot++) {
        child_look_after(crew, &crew->children[slot]);
        alive += crew->children[slot].pid != 0;
    }
    if (crew->frozen >= 0 && now_ns() >= crew->server_thaw_at_ns)
        server_thaw(crew);
    watch_wall_clock(crew->run);
    return alive;
}

/* ---- The crew -------------------------------------------------------------------------------- */

bool crew_begin(struct crew *crew, struct run *run, const char *mode, int old, int new)
{
    *crew = (struct crew){.run = run, .mode = mode, .count = old + new, .frozen = -1};
    (void)snprintf(crew->folder, sizeof(crew->folder), "%s/%s-%d", run->servers[0]->folder, mode,
                   run->phases++);
    bool made = mkdir(crew->folder, 0700) == 0;
    crew->board = made ? board_map(crew->folder, true) : NULL;
    if (crew->board == NULL) {
        (void)fprintf(stderr, "cannot use %s\n", crew->folder);
        return false;
    }
    for (int slot = 0; slot < crew->count; slot++)
        child_start(crew, slot, slot < old ? SIDE_OLD : SIDE_NEW);
    return true;
}

void crew_work(struct crew *crew, int64_t duration_ms)
{
    struct chance *chance = &crew->run->chance;
    int64_t end_ns = now_ns() + duration_ms * MS_NS;
    int64_t next_fault_ns = now_ns() + 300 * MS_NS; /* some of the first grants in peace */
    bool calm = strcmp(crew->mode, MODE_STORM) != 0;
    while (now_ns() < end_ns) {
        (void)look_after_all(crew);
        if (!calm && now_ns() >= next_fault_ns) {
            fault_fire(crew);
            next_fault_ns =
                now_ns() +
                chance_between(chance, FAULT_PAUSE_LEAST_MS, FAULT_PAUSE_MOST_MS) * MS_NS;
        }
        sleep_ms(5);
    }
}

void crew_end(struct crew *crew)
{
    int64_t give_up_ns = now_ns() + END_BOUND_MS * MS_NS;
    atomic_store(&crew->board->stop, true);
    crew->server_thaw_at_ns = 0;
    while (look_after_all(crew) > 0 && now_ns() < give_up_ns)
        sleep_ms(5);
    if (look_after_all(crew) > 0)
        complain(crew->board, "a process does not finish within %d ms of the end", END_BOUND_MS);
    crew_kill(crew);
}

void crew_kill(struct crew *crew)
{
    for (int slot = 0; slot < crew->count; slot++)
        child_kill(crew, slot);
}
