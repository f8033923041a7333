/* SPDX-License-Identifier: MIT */
/* Several servers of a test's own, which are a quorum, and verbs for looking at all of them.
 *
 * A server that was just started has no vote for as long as the longest lease: where that is not
 * what the test is about, it is told by hand that it has one, as an older client would have done
 * (src/lua/join.lua). A server that is restarted has forgotten that too.
 *
 * The lock is "lock" in all of them. Looking at a server that is frozen takes two seconds and
 * fails the test, so each of these looks at those that run, unless it says otherwise.
 */
#ifndef HOLDFAST_TESTS_QUORUM_H
#define HOLDFAST_TESTS_QUORUM_H

#include "fixture.h"
#include "puppet.h"

enum { QUORUM_PATIENCE_MS = 20000 };

struct quorum {
    int count;
    struct redis_server *servers[HF_SERVERS_MAX];
    bool frozen[HF_SERVERS_MAX];
};

extern struct quorum quorum;

/* So that a slow machine is not taken for a server that is gone. */
#define PATIENT                                                                       \
    .connect_timeout_ms = QUORUM_PATIENCE_MS, .reply_timeout_ms = QUORUM_PATIENCE_MS, \
    .call_timeout_ms = QUORUM_PATIENCE_MS

void quorum_start(int count);         /* each has a vote */
void quorum_start_durable(int count); /* that never forget anything */
int quorum_end(void **state); /* teardown of a test: everything, also clients and processes */

void quorum_give_vote(int number);
const char *quorum_run_id(int number);  /* valid until the next call */
const char *quorum_urls(int count);     /* of the first ones; valid until the next call */
const char *quorum_address(int number); /* as messages have it; the same */

void quorum_kill(int number);
void quorum_freeze(int number);
void quorum_thaw(int number);
void quorum_restart(int number);

int quorum_running(void);

/* At how many of the running servers somebody has the lock, and that client. */
int quorum_held(void);
int quorum_held_by(const hf_hold *hold);

/* How many wait at that server; and whether it is so many at each that runs. */
long long quorum_queued(int number);
bool quorum_all_queued(long long waiters);

/* Takes the lock and its queue away by hand; its fence stays. */
void quorum_forget_lock(void);

/* Two puppets that wait get the lock, whichever is the first, with growing fences, and release. */
void quorum_serves_both(struct process *waiters[2], uint64_t fence);

/* How many scripts all of them have been asked to run. */
long long quorum_scripts(void);

#endif
