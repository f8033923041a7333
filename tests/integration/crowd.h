/* SPDX-License-Identifier: MIT */
/* Many child processes, each with a client of its own, that wait for the lock "lock". Start them
 * before the test opens a client; end_everything() ends them.
 *
 * Each thread of a member asks once, without a limit of time, and gives the lock back as soon as it
 * has it. */
#ifndef HOLDFAST_TESTS_CROWD_H
#define HOLDFAST_TESTS_CROWD_H

#include "../lib/redis_server.h"

struct crowd_wish {
    int threads;
    int64_t lease_ms;
    bool fair;
};

struct crowd_turn { /* what a thread reports when it has had the lock */
    uint64_t fence;
    int64_t granted_ms; /* on the clock of now_ms() */
};

void crowd_start(const struct redis_server *server, int members);
void crowd_join(int member, const struct crowd_wish *wish); /* returns at once */
struct crowd_turn crowd_hear(int member);                   /* fails after 60 s */
void crowd_kill(int member);                                /* SIGKILL, and reaped */
pid_t crowd_pid(int member);
void crowd_end(void);

#endif
