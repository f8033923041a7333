/* SPDX-License-Identifier: MIT */
/* The judge of the simulator and of the live runs: what clients believed, in true time, and whether
 * two of them believed to hold the same lock at once, who were not allowed to share it. */
#ifndef HF_TESTS_HISTORY_H
#define HF_TESTS_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct history history;

/* One client's belief: it held `lock` from `from_ns` until, at the latest, `until_ns` (its own
 * deadline, or the moment at which it began to release, whichever came first). */
typedef struct belief {
    uint32_t lock;
    uint32_t client;
    uint64_t hold; /* to tell them apart in a report */
    uint64_t
        party; /* a thread, or an owner, who may hold it several times; 0: shares with nobody */
    int64_t from_ns;
    int64_t until_ns;
} belief;

history *history_new(void);
void history_free(history *history);
bool history_add(history *history, const belief *belief); /* false: out of memory */
size_t history_count(const history *history);

/* Finds two beliefs in one lock that overlap and are not of one party, whichever clients they are
 * of; false: there are none. Touching (until of one == from of the next) is no overlap. O(n log n).
 */
bool history_find_overlap(history *history, belief *first, belief *second);

#endif
