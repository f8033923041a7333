/* SPDX-License-Identifier: MIT */
/* The driver of a mixed run: servers, and crews of worker processes of both sides. */
#ifndef HOLDFAST_TESTS_MIXED_RUN_H
#define HOLDFAST_TESTS_MIXED_RUN_H

#include <sys/types.h>

#include "../lib/redis_server.h"
#include "mixed.h"

enum { CREW = 6, SERVERS_MOST = 3 };

enum sabotage {
    SABOTAGE_NONE,
    SABOTAGE_DELETE, /* somebody deletes the keys of locks: holds must overlap */
    SABOTAGE_LIE     /* some fences are written down too small */
};

struct run {
    const char *programs[SIDES];
    uint64_t seed;
    int seconds;
    int server_count;
    enum sabotage sabotage;
    struct redis_server *servers[SERVERS_MOST];
    char urls[256];
    uint32_t started; /* worker processes, of all phases */
    int phases;
    struct chance chance;
    int64_t wall_offset_ns; /* of the wall clock, by which servers expire keys, to ours */
    int64_t wall_step_ns;   /* the largest step of it: beyond the assumptions */
};

/* The worker processes of one storm or calm. Processes that die are replaced in a storm. */
struct child {
    pid_t pid; /* 0: none */
    enum side side;
    int64_t thaw_at_ns; /* 0: not stopped, as far as we know */
};

struct crew {
    struct run *run;
    const char *mode;
    char folder[96];
    struct board *board;
    int count;
    struct child children[CREW];
    int killed;
    int stopped;
    int servers_frozen;
    int frozen; /* the server that stands still; -1: none */
    int64_t server_thaw_at_ns;
};

void run_begin(struct run *run);

/* Starts so many processes of each side. false: it cannot; the reason is printed. */
bool crew_begin(struct crew *crew, struct run *run, const char *mode, int old, int new);

/* For so long: lets stopped processes go on, and in a storm stops and kills them. */
void crew_work(struct crew *crew, int64_t duration_ms);

/* Tells all to finish, and waits for it. Complains about who does not. */
void crew_end(struct crew *crew);

void crew_kill(struct crew *crew); /* whatever is left, by its number; safe to repeat */

/* Fires one fault; storm only. */
void fault_fire(struct crew *crew);
void child_start(struct crew *crew, int slot, enum side side);
void child_kill(struct crew *crew, int slot);
void server_thaw(struct crew *crew);

#endif
