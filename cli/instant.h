/* SPDX-License-Identifier: MIT */
/* Moments: nanoseconds on the clock that also runs while the machine sleeps,
 * for leases do not wait either. */
#ifndef CLI_INSTANT_H
#define CLI_INSTANT_H

#include <stdint.h>
#include <time.h>

#define NS_PER_MS     INT64_C(1000000)
#define INSTANT_NEVER INT64_MAX

static inline int64_t instant_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000 * NS_PER_MS + now.tv_nsec;
}

static inline int64_t instant_now_ms(void)
{
    return instant_now() / NS_PER_MS;
}

static inline int64_t instant_earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* For poll(2): whole milliseconds until then, rounded up; -1: never. */
static inline int instant_timeout_ms(int64_t when, int64_t now)
{
    if (when == INSTANT_NEVER)
        return -1;
    int64_t ms = when <= now ? 0 : (when - now + NS_PER_MS - 1) / NS_PER_MS;
    return ms > INT32_MAX ? INT32_MAX : (int)ms;
}

#endif
