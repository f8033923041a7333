/* SPDX-License-Identifier: MIT
 *
 * A server that is far away: a process that passes on what it gets, in both directions, a while
 * later.
 */
#ifndef BENCH_DELAY_H
#define BENCH_DELAY_H

#include <stdint.h>
#include <sys/types.h>

#include "server.h"

struct delay {
    pid_t pid; /* 0: none */
};

/* `door` is filled with what a client has to know: the server, with another unix socket. */
bool delay_start(struct delay *delay, const struct server *server, int64_t delay_ns,
                 struct server *door, struct result *result);
void delay_stop(struct delay *delay);

#endif
