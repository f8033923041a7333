/* SPDX-License-Identifier: MIT */
/* What fork() means for drivers: see fork.c. */
#ifndef HF_NET_FORK_H
#define HF_NET_FORK_H

#include <pthread.h>
#include <stdbool.h>

#include "base/list.h"

typedef struct hf__fork_guard {
    hf__node node;
    pthread_mutex_t *mutex; /* held across a fork, so that the child finds a consistent state */
    bool forked;            /* we are in a child */
} hf__fork_guard;

bool hf__fork_guard_add(hf__fork_guard *guard, pthread_mutex_t *mutex); /* false: out of memory */
void hf__fork_guard_remove(hf__fork_guard *guard);

#endif
