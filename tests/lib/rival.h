/* SPDX-License-Identifier: MIT */
/* Another client at the nodes of the stage: says by hand what a client of this library would say,
 * so that there is somebody to wait for and to be waited for by. Its holds are known by numbers. */
#ifndef HF_TESTS_RIVAL_H
#define HF_TESTS_RIVAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RIVAL_CLIENT "00000000000000000000000000000008"

typedef struct rival_wish {
    const char *name;
    int number;    /* of the hold */
    int64_t copy;  /* 0: does not queue */
    int64_t lease; /* 0: 10 s */
    int64_t range; /* 0: 1 */
    const char *owner;
    int64_t ticket; /* its place in the queue, of a quorum */
} rival_wish;

void rival_begin(void);  /* subscribes, at all nodes */
void rival_go(int node); /* what follows is said there; first it is at node 0 */
void rival_end(void);
void rival_hang_up(void);                   /* its subscription is gone */
bool rival_acquire(const rival_wish *wish); /* whether it was granted */
void rival_release(const char *name, int number);
void rival_revoke(const char *name, const char *why); /* whoever has it */
void rival_break(const char *name);                   /* the same */
/* Whether the message was heard, at any node; those before it are forgotten. */
bool rival_heard(const char *part);

#define RIVAL_AT(node)      rival_go(node)
#define RIVAL_ACQUIRES(...) assert_true(rival_acquire(&(rival_wish){.name = __VA_ARGS__}))
#define RIVAL_QUEUES(...)   assert_false(rival_acquire(&(rival_wish){.copy = 1, .name = __VA_ARGS__}))

#endif
