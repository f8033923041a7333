/* SPDX-License-Identifier: MIT */
/* See thread.h. A thread inherits the signal mask of its creator, hence the detour. */
#include "net/thread.h"

#include <signal.h>

#include "base/memory.h"

bool hf__thread_start(pthread_t *thread, void *(*body)(void *), void *arg)
{
    sigset_t all, before;
    if (!hf__memory_allowed())
        return false;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failure = pthread_create(thread, NULL, body, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failure == 0)
        pthread_setname_np(*thread, "holdfast");
    return failure == 0;
}
