/* SPDX-License-Identifier: MIT */
/* Small random numbers for jitter, replayable from a seed (splitmix64). Not for secrets: ids come
 * from the system. */
#ifndef HF_BASE_RANDOM_H
#define HF_BASE_RANDOM_H

#include <stdint.h>

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

#endif
