/* SPDX-License-Identifier: MIT */
/* Small random numbers for jitter, replayable from a seed (splitmix64). Not for secrets: ids come
 * from the system. */
#ifndef HF_BASE_RANDOM_H
#define HF_BASE_RANDOM_H

#include <stdint.h>

#include "base/instant.h"

static inline uint64_t hf__random_next(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Evenly from 0 to limit - 1; the bias of the modulo does not matter for jitter. */
static inline uint64_t hf__random_below(uint64_t *state, uint64_t limit)
{
    return hf__random_next(state) % limit;
}

/* Before the next try, after so many failures: twice as long each time, and half of it by chance,
 * so that those who failed together do not come back together. */
static inline hf__span hf__random_backoff(uint64_t *state, unsigned failures, uint64_t first_ms,
                                          uint64_t max_ms)
{
    uint64_t limit_ms = first_ms;
    for (unsigned i = 1; i < failures && limit_ms < max_ms; i++)
        limit_ms *= 2;
    if (limit_ms > max_ms)
        limit_ms = max_ms;
    return hf__span_ms((int64_t)(limit_ms / 2 + hf__random_below(state, limit_ms / 2 + 1)));
}

#endif
