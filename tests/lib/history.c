/* SPDX-License-Identifier: MIT */
/* See history.h. The beliefs are a growing array; the question sorts it by lock and beginning, and
 * walks it once, comparing neighbours.
 *
 * Neighbours are enough: as long as none of them overlapped, each ended before the next began, so
 * the last one seen reaches farthest, and whatever overlaps with any earlier one overlaps with it.
 * Hence the walk ends with the first pair that it finds.
 *
 * A belief that ends when or before it begins was never held for any time, such as a grant whose
 * reply was read after its deadline. It overlaps with nothing.
 */
#include "history.h"

#include <stdlib.h>

struct history {
    belief *beliefs;
    size_t count;
    size_t capacity;
};

history *history_new(void)
{
    return calloc(1, sizeof(history));
}

void history_free(history *told)
{
    if (told != NULL)
        free(told->beliefs);
    free(told);
}

static bool grow(history *told)
{
    size_t capacity = told->capacity == 0 ? 64 : told->capacity * 2;
    if (capacity > SIZE_MAX / sizeof(belief))
        return false;
    belief *beliefs = realloc(told->beliefs, capacity * sizeof(belief));
    if (beliefs == NULL)
        return false;
    told->beliefs = beliefs;
    told->capacity = capacity;
    return true;
}

bool history_add(history *told, const belief *next)
{
    if (told->count == told->capacity && !grow(told))
        return false;
    told->beliefs[told->count++] = *next;
    return true;
}

size_t history_count(const history *told)
{
    return told->count;
}

/* Ties are broken by everything there is, so that the same history gives the same report. */
static int by_lock_and_beginning(const void *left, const void *right)
{
    const belief *a = left;
    const belief *b = right;
    if (a->lock != b->lock)
        return a->lock < b->lock ? -1 : 1;
    if (a->from_ns != b->from_ns)
        return a->from_ns < b->from_ns ? -1 : 1;
    if (a->until_ns != b->until_ns)
        return a->until_ns < b->until_ns ? -1 : 1;
    if (a->client != b->client)
        return a->client < b->client ? -1 : 1;
    return a->hold < b->hold ? -1 : a->hold > b->hold;
}

bool history_find_overlap(history *told, belief *first, belief *second)
{
    const belief *last = NULL;
    if (told->count > 1)
        qsort(told->beliefs, told->count, sizeof(belief), by_lock_and_beginning);
    for (size_t i = 0; i < told->count; i++) {
        const belief *next = &told->beliefs[i];
        if (next->until_ns <= next->from_ns)
            continue;
        bool same_lock = last != NULL && last->lock == next->lock;
        if (same_lock && next->from_ns < last->until_ns) {
            *first = *last;
            *second = *next;
            return true;
        }
        last = next;
    }
    return false;
}
