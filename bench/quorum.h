/* SPDX-License-Identifier: MIT
 *
 * Several private servers for one workload, near or far.
 */
#ifndef BENCH_QUORUM_H
#define BENCH_QUORUM_H

#include "delay.h"
#include "server.h"

#define QUORUM_MAX 5

struct quorum {
    int count;
    struct server servers[QUORUM_MAX];
    struct server doors[QUORUM_MAX]; /* where clients reach them: the same, or behind a delay */
    struct delay delays[QUORUM_MAX];
};

/* On failure nothing is left behind. */
bool quorum_start(struct quorum *quorum, int count, const cpu_set_t *cpus, struct result *result);
/* The same, reached over unix sockets that delay each direction by so much. */
bool quorum_start_far(struct quorum *quorum, int count, int64_t delay_ns, const cpu_set_t *cpus,
                      struct result *result);
void quorum_stop(struct quorum *quorum);

/* The last so many stand still (SIGSTOP), or go on. */
void quorum_stall(const struct quorum *quorum, int count);
void quorum_go_on(const struct quorum *quorum, int count);

#endif
