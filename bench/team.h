/* SPDX-License-Identifier: MIT
 *
 * Many processes that do the same thing at once, for a while, when told to: a crowd (crowd.h) whose
 * members have a client each.
 */
#ifndef BENCH_TEAM_H
#define BENCH_TEAM_H

#include <stdatomic.h>

#include "cpu.h"
#include "numbers.h"
#include "server.h"
#include "subject.h"

#define TEAM_MAX 64

/* What the processes tell each other, in shared memory. Written by whoever has the lock. */
struct board {
    atomic_int last_holder;        /* in this slice; -1: there was none */
    atomic_llong release_begun_ns; /* by that one */
    atomic_llong first_grant_ns;   /* in this slice */
    atomic_llong last_grant_ns;
    atomic_ullong section_ns; /* sum of the times for which the lock was held */
    atomic_bool slice_over;
};

struct player {
    int number;
    struct subject subject;
    struct board *board;
    uint64_t count; /* of acquisitions, or whatever the step counts */
    struct histogram histogram;
};

/* Does the work once. NULL when it went well, else a text that belongs to the player. */
typedef const char *team_step(struct player *player);

struct team;

/* Starts parked processes, each with a client that is open. NULL: result says why, and none is
 * left. */
struct team *team_start(team_step *step, int count, const struct server *server,
                        struct result *result);
/* Lets all of them step for so long, and waits until they are parked again. The first problem of
 * any of them is the team's. */
bool team_run(struct team *team, int64_t duration_ns, struct result *result);
struct board *team_board(struct team *team);
/* While they are parked: adds what they have counted since the last time, and the processor time
 * of all that (us for each of what they count: cpu.h). */
void team_take(struct team *team, struct histogram *histogram, struct cpu_meter *cpu);
bool team_end(struct team *team, struct result *result); /* NULL is fine */

#endif
