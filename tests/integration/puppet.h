/* SPDX-License-Identifier: MIT */
/* Child processes with a client of their own, which do what they are told over their line and say
 * what came of it. They are forked before the test opens a client.
 *
 *     acquire LEASE WAIT [OWNER]   the lock "lock", renewed           -> the status
 *     lease LEASE WAIT [OWNER]     the same, not renewed              -> the status
 *     queue LEASE WAIT [OWNER]     renewed, and waits in the queue instead of polling
 *     extend, release, nowait                                         -> the status
 *     state                                                           -> SAFE, JEOPARDY or LOST
 *     valid                                                           -> yes or no
 *     fence                                                           -> the number
 *     when                         it was acquired, on now_ms()'s clock -> the number
 *     why                          the text of the last call's error  -> so much of it as fits
 *     told                         what on_event was told so far      -> "JEOPARDY:1 LOST:4"
 *     spin                         asks hf_is_valid() without a pause until it says no
 *                                  -> "MS STATE": when it asked the last time that it said yes, and
 *                                     the state right after it had said no
 */
#ifndef HOLDFAST_TESTS_PUPPET_H
#define HOLDFAST_TESTS_PUPPET_H

#include "../lib/redis_server.h"

struct process *puppet_start(const struct redis_server *server);
struct process *puppet_start_at(const char *url, const hf_client_options *options);

void tell(struct process *puppet, const char *order);

/* Tells, and asserts the answer. */
#define ASK(puppet, order, answer)        \
    do {                                  \
        tell((puppet), (order));          \
        EXPECT_HEARD((puppet), (answer)); \
    } while (0)

/* Tells, and returns the number that the answer begins with. */
long long ask_number(struct process *puppet, const char *order);

#endif
