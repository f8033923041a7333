/* SPDX-License-Identifier: MIT
 *
 * A client that holds many locks, in a process of its own (holder.c).
 */
#ifndef BENCH_HOLDING_H
#define BENCH_HOLDING_H

#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "server.h"

struct holding {
    pid_t pid;
    FILE *to, *from;
    long holds;
    double empty_kib; /* resident, before the first lock */
    double full_kib;  /* with all of them */
    double threads;
    double client_ns, server_ns; /* processor time, while it held all of them */
};

/* Starts the client and returns when it has all locks. At most `under_way` asynchronous acquires
 * are under way at the same time; 0: it acquires one after the other, with calls that wait. Ends
 * with holding_stop(), also if it fails. */
bool holding_start(struct holding *holding, const struct server *server, long holds,
                   int64_t lease_ms, int under_way, struct result *result);
/* Holds them for so long, and fills the numbers above. A hold that is lost is a failure. */
bool holding_keep(struct holding *holding, const struct server *server, int64_t duration_ms,
                  struct result *result);
/* Releases them, after holding_keep(). A release that does not say HF_OK is a failure. */
bool holding_release(struct holding *holding, struct result *result);
void holding_stop(struct holding *holding);

#endif
