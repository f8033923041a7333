/* SPDX-License-Identifier: MIT */
/* Threads of the library's own: named, and with every signal blocked, so that the application's
 * handlers never run on them. */
#ifndef HF_NET_THREAD_H
#define HF_NET_THREAD_H

#include <pthread.h>
#include <stdbool.h>

bool hf__thread_start(pthread_t *thread, void *(*body)(void *), void *arg);

#endif
