/* SPDX-License-Identifier: MIT
 *
 * A bare connection that runs one prepared command, alone or several of it in a pipeline: what ids
 * and stock are measured against.
 */
#ifndef BENCH_ERRAND_H
#define BENCH_ERRAND_H

#include <hiredis/hiredis.h>

#include "bench.h"
#include "server.h"

#define ERRAND_ARGUMENTS_MAX 16

/* Must not move once it is open. */
struct errand {
    redisContext *context;
    int depth; /* commands in flight in one step */
    int count;
    const char *argument[ERRAND_ARGUMENTS_MAX];
    char sha1[41];
    char request[40]; /* counted up before each step, if a script takes it */
    char problem[160];
};

bool errand_open(struct errand *errand, const struct server *server, enum transport transport,
                 struct result *result);
void errand_close(struct errand *errand);
/* Loads a script, whose name is in `sha1` from then on. */
bool errand_load(struct errand *errand, const char *script, struct result *result);
void errand_fill(struct errand *errand, const char *const *arguments); /* ends with NULL */

/* A measure_step: sends `depth` copies and takes their replies, which must be numbers above 0. */
const char *errand_step(void *arg);

#endif
