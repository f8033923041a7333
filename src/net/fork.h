/* SPDX-License-Identifier: MIT */
/* What fork() and its relatives mean for drivers: see fork.c. */
#ifndef HF_NET_FORK_H
#define HF_NET_FORK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/list.h"

typedef struct hf__fork_guard {
    hf__node node;
    pthread_mutex_t *mutex; /* held across a fork, so that the child finds a consistent state */
    const atomic_uint_fast64_t *word; /* the kernel wipes it in every child; */
    uint_fast64_t mark;               /* this is what it says in the process of the guard */
    pid_t process;
    bool held;    /* by the thread that forks, for the fork */
    bool at_rest; /* in a child: the fork found the guarded state between two steps */
} hf__fork_guard;

/* Makes the mutex. False: out of memory. */
bool hf__fork_guard_add(hf__fork_guard *guard, pthread_mutex_t *mutex);
void hf__fork_guard_remove(hf__fork_guard *guard);

bool hf__fork_judge(const hf__fork_guard *guard); /* when the word is not what it was */

/* Whether this process is a child of the one that added the guard. Costs two reads. */
static inline bool hf__fork_is_child(const hf__fork_guard *guard)
{
    return atomic_load_explicit(guard->word, memory_order_relaxed) != guard->mark &&
           hf__fork_judge(guard);
}

/* The same, and nothing behind the guard may be touched: its mutex may be locked for ever. */
static inline bool hf__fork_is_torn(const hf__fork_guard *guard)
{
    return hf__fork_is_child(guard) && !guard->at_rest;
}

#endif
