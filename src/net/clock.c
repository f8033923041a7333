/* SPDX-License-Identifier: MIT */
/* CLOCK_BOOTTIME, because it goes on while the machine is suspended, as the server's expiry does;
 * CLOCK_MONOTONIC stands still then, and a hold would seem valid after waking up. Systems without
 * it are not supported: a clock that can stop would break promise 2 of docs/safety.md. */
#include "net/clock.h"

#include <time.h>

static hf__instant now_on(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (hf__instant){(int64_t)now.tv_sec * 1000000000 + now.tv_nsec};
}

hf__instant hf__clock_now(void)
{
    return now_on(CLOCK_BOOTTIME);
}

hf__instant hf__clock_coarse(void)
{
    return now_on(CLOCK_MONOTONIC_COARSE);
}

hf__wall hf__clock_wall(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (hf__wall){(int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000};
}
