/* SPDX-License-Identifier: MIT */
/* Time and chance of the live runs. All times are CLOCK_BOOTTIME in nanoseconds, the clock of the
 * library, on which all processes of one machine agree. Chance comes from a seed. */
#ifndef HOLDFAST_TESTS_CHANCE_H
#define HOLDFAST_TESTS_CHANCE_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define MS_NS 1000000LL

static inline int64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* splitmix64: small, and good from any seed. */
struct chance {
    uint64_t state;
};

static inline uint64_t chance_next(struct chance *chance)
{
    uint64_t mixed = chance->state += 0x9e3779b97f4a7c15ULL;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ULL;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebULL;
    return mixed ^ (mixed >> 31);
}

static inline int chance_between(struct chance *chance, int least, int most)
{
    return least + (int)(chance_next(chance) % (uint64_t)(most - least + 1));
}

static inline bool chance_percent(struct chance *chance, int percent)
{
    return chance_between(chance, 0, 99) < percent;
}

/* A stream of its own for each party, so that one's draws do not shift another's. */
static inline struct chance chance_for(uint64_t seed, uint64_t party)
{
    struct chance chance = {seed * 0x2545f4914f6cdd1dULL + party};
    (void)chance_next(&chance);
    return chance;
}

#endif
