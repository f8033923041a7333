/* SPDX-License-Identifier: MIT */
/* See thread.h. A thread inherits the signal mask of its creator, hence the detour. Conditions know
 * no clock that goes on while the machine is suspended, so what is left is counted anew, on one
 * that does not, whenever somebody waits. */
#include "net/thread.h"

#include <signal.h>
#include <time.h>

#include "base/memory.h"
#include "net/clock.h"

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

bool hf__thread_condition_init(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    if (!hf__memory_allowed() || pthread_condattr_init(&attributes) != 0)
        return false;
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    int failure = pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
    return failure == 0;
}

void hf__thread_wait_until(pthread_cond_t *condition, pthread_mutex_t *mutex, hf__instant ends)
{
    hf__instant until = hf__after(hf__clock_coarse(), hf__between(hf__clock_now(), ends));
    struct timespec due = {.tv_sec = (time_t)(until.ns / 1000000000),
                           .tv_nsec = (long)(until.ns % 1000000000)};
    pthread_cond_timedwait(condition, mutex, &due);
}
