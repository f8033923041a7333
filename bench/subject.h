/* SPDX-License-Identifier: MIT
 *
 * The library as a user would call it: a client, and a lock for each thread.
 */
#ifndef BENCH_SUBJECT_H
#define BENCH_SUBJECT_H

#include <holdfast.h>

#include "bench.h"
#include "server.h"

/* Copied for each further thread: they share the client, but neither lock nor problem. */
struct subject {
    hf_client *client;
    char lock[LOCK_NAME_SIZE];
    bool nowait;     /* release without waiting for the answer */
    int64_t wait_ms; /* 0: the lock is free, one try */
    char problem[PROBLEM_SIZE];
};

bool subject_open(struct subject *subject, const struct server *server, enum transport transport,
                  struct result *result);
/* On a majority of these; not over TLS. */
bool subject_open_quorum(struct subject *subject, const struct server *servers, int count,
                         enum transport transport, struct result *result);
bool subject_close(struct subject *subject, struct result *result);

/* Anything but HF_OK is a problem. */
const char *subject_acquire(struct subject *subject, hf_hold **hold);
const char *subject_release(struct subject *subject, hf_hold **hold);

/* A measure_step: acquires and releases once. */
const char *subject_pair(void *arg);

#endif
