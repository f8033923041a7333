/* SPDX-License-Identifier: MIT
 *
 * The baselines: what an expert would write by hand with hiredis, for one thread and one lock.
 */
#ifndef BENCH_BARE_H
#define BENCH_BARE_H

#include <hiredis/hiredis.h>
#include <openssl/types.h>
#include <stdbool.h>

#include "bench.h"
#include "server.h"

#define BARE_ARGUMENTS_MAX 20

struct bare_command {
    int count;
    const char *argument[BARE_ARGUMENTS_MAX];
    size_t length[BARE_ARGUMENTS_MAX];
};

/* Must not move once it is open: the commands point into it. */
struct bare {
    redisContext *context;
    SSL *ssl; /* NULL: without */
    char key[LOCK_NAME_SIZE];
    char queue_key[LOCK_NAME_SIZE + 16];
    char fence_key[LOCK_NAME_SIZE + 16];
    char notes_key[LOCK_NAME_SIZE + 16];
    char holders_key[LOCK_NAME_SIZE + 16];
    char value[80];
    char proposal[24]; /* of a fence, on a quorum; empty: none */
    char acquire_sha[41];
    char release_sha[41];
    struct bare_command acquire;
    struct bare_command release;
    int acquire_reply_type;
    char problem[160];
};

/* Opens a loop on this lock that runs the library's own scripts, or the canonical SET NX PX with a
 * compare-and-delete script. On failure there is nothing to close. */
bool bare_open_same_scripts(struct bare *bare, const struct server *server,
                            enum transport transport, const char *lock, struct result *result);
bool bare_open_canonical(struct bare *bare, const struct server *server, enum transport transport,
                         const char *lock, struct result *result);
/* The same scripts with the arguments that they get on a quorum, for one of its servers. */
bool bare_open_vote(struct bare *bare, const struct server *server, enum transport transport,
                    const char *lock, struct result *result);
void bare_close(struct bare *bare);

/* One round trip each; a text that belongs to `bare` if it went wrong. Only a try may be refused.
 */
const char *bare_try(struct bare *bare, bool *granted);
const char *bare_acquire(struct bare *bare);
const char *bare_release(struct bare *bare);

/* A measure_step: acquires and releases once. */
const char *bare_pair(void *arg);

/* One half of a pair, for pipelines: appends its command to what the connection is to write; writes
 * that; takes its reply, and writes first if none is there. Not over TLS. */
enum bare_verb { BARE_ACQUIRE, BARE_RELEASE };
void bare_append(struct bare *bare, enum bare_verb verb);
/* The same for several servers, of which the first has the command for all. */
void bare_append_all(struct bare *bares, int count, enum bare_verb verb);
void bare_write(struct bare *bare);
const char *bare_take(struct bare *bare, enum bare_verb verb);
/* The same without waiting for one: reads what has come; takes a reply of that, if there is one. */
void bare_read(struct bare *bare);
const char *bare_take_read(struct bare *bare, enum bare_verb verb, bool *taken);

#endif
