/* SPDX-License-Identifier: MIT */
/* See history.h. The beliefs are a growing array; the question sorts it by lock and beginning, and
 * walks it once.
 *
 * The walk remembers two beliefs: the one that reaches farthest, and of those that are not of its
 * party again the one that reaches farthest. Whatever overlaps with any earlier belief of another
 * party overlaps with one of these two: with the first, unless it is of the same party, and then
 * with the second.
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

static bool may_share(const belief *a, const belief *b)
{
    return a->party == b->party && a->party != 0;
}

typedef struct reach {      /* of the beliefs in one lock that have been walked */
    const belief *farthest; /* NULL: none yet */
    const belief *other;    /* farthest of those that may not share with it; NULL: none */
} reach;

static const belief *rival_of(const reach *so_far, const belief *next)
{
    const belief *rival = so_far->farthest;
    if (rival != NULL && may_share(rival, next))
        rival = so_far->other;
    return rival != NULL && next->from_ns < rival->until_ns ? rival : NULL;
}

static void walk(reach *so_far, const belief *next)
{
    const belief *farthest = so_far->farthest;
    if (farthest == NULL || next->lock != farthest->lock) {
        *so_far = (reach){next, NULL};
    } else if (next->until_ns > farthest->until_ns) {
        so_far->other = may_share(farthest, next) ? so_far->other : farthest;
        so_far->farthest = next;
    } else if (!may_share(farthest, next) &&
               (so_far->other == NULL || next->until_ns > so_far->other->until_ns)) {
        so_far->other = next;
    }
}

bool history_find_overlap(history *told, belief *first, belief *second)
{
    reach so_far = {NULL, NULL};
    if (told->count > 1)
        qsort(told->beliefs, told->count, sizeof(belief), by_lock_and_beginning);
    for (size_t i = 0; i < told->count; i++) {
        const belief *next = &told->beliefs[i];
        if (next->until_ns <= next->from_ns)
            continue;
        bool same_lock = so_far.farthest != NULL && so_far.farthest->lock == next->lock;
        const belief *rival = same_lock ? rival_of(&so_far, next) : NULL;
        if (rival != NULL) {
            *first = *rival;
            *second = *next;
            return true;
        }
        walk(&so_far, next);
    }
    return false;
}
