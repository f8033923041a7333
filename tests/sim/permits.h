/* SPDX-License-Identifier: MIT */
/* What a client may do at one server, and when that changed, for both worlds: which locks it may
 * use, and whether it may have messages. And what follows from it: a hold is lost only if its own
 * lock was denied, and messages that are allowed again are used again. */
#ifndef HF_SIM_PERMITS_H
#define HF_SIM_PERMITS_H

#include <stdbool.h>
#include <stdint.h>

#include "server.h"

typedef struct sim_permits {
    sim_denial messages;
    bool was_deaf;                        /* messages were denied at some time */
    unsigned locks;                       /* bits of those that are denied */
    int64_t denied_ns[SIM_FORBIDDEN_MAX]; /* when each last was; 0: never */
    int64_t deaf_ns; /* when it first queued without messages, since they are allowed for good */
} sim_permits;

/* One in six worlds is about this and nothing else: faults of other kinds would excuse all. */
bool permits_rule(uint64_t seed);

void permits_toggle_lock(sim_permits *permits, int lock, int64_t now_ns);
void permits_set_messages(sim_permits *permits, sim_denial messages);
void permits_lift(sim_permits *permits, int64_t now_ns); /* everything is allowed */
/* Tells the server, of one of the client's connections. */
void permits_apply(const sim_permits *permits, sim_server *server, int connection,
                   const char *const *lock_names, int lock_count);
bool permits_denied_since(const sim_permits *permits, int lock, int64_t since_ns);
/* It has got a place in a queue, in a time without faults; deaf: as one without messages. False: it
 * should have messages by now. */
bool permits_may_queue(sim_permits *permits, bool deaf, int64_t now_ns);

#endif
