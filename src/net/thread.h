/* SPDX-License-Identifier: MIT */
/* Threads of the library's own: named, and with every signal blocked, so that the application's
 * handlers never run on them. And how threads of anybody's wait for each other within a time. */
#ifndef HF_NET_THREAD_H
#define HF_NET_THREAD_H

#include <pthread.h>
#include <stdbool.h>

#include "base/instant.h"

bool hf__thread_start(pthread_t *thread, void *(*body)(void *), void *arg);

/* A condition that can be waited for until an instant, or a little less; see whether it is time. */
bool hf__thread_condition_init(pthread_cond_t *condition);
void hf__thread_wait_until(pthread_cond_t *condition, pthread_mutex_t *mutex, hf__instant ends);

#endif
