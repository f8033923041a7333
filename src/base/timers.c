/* SPDX-License-Identifier: MIT */
/* A pairing heap: every timer is due no earlier than its parent, so the root is the next. Setting
 * is constant time, taking out logarithmic (amortised). Children form a list through `sibling`;
 * `back` lets a timer in the middle be cut out without searching. Equal times keep no order. */
#include "base/timers.h"

#include <assert.h>
#include <stddef.h>

/* Joins two heaps, either of which may be empty; the later root becomes the earlier one's child. */
static hf__timer *join(hf__timer *a, hf__timer *b)
{
    if (a == NULL)
        return b;
    if (b == NULL)
        return a;
    if (hf__before(b->due, a->due)) {
        hf__timer *swap = a;
        a = b;
        b = swap;
    }
    b->sibling = a->child;
    if (a->child != NULL)
        a->child->back = b;
    b->back = a;
    a->child = b;
    return a;
}

/* Joins a list of siblings into one heap: pairs from left to right, then all pairs into one. */
static hf__timer *join_siblings(hf__timer *first)
{
    hf__timer *pairs = NULL; /* reversed list of joined pairs, linked by `sibling` */
    while (first != NULL) {
        hf__timer *a = first;
        hf__timer *b = a->sibling;
        first = b != NULL ? b->sibling : NULL;
        a->sibling = a->back = NULL;
        if (b != NULL)
            b->sibling = b->back = NULL;
        hf__timer *pair = join(a, b);
        pair->sibling = pairs;
        pairs = pair;
    }
    hf__timer *heap = NULL;
    while (pairs != NULL) {
        hf__timer *next = pairs->sibling;
        pairs->sibling = NULL;
        heap = join(heap, pairs);
        pairs = next;
    }
    return heap;
}

void hf__timer_set(hf__timers *timers, hf__timer *timer, hf__instant due)
{
    hf__timer_clear(timers, timer);
    *timer = (hf__timer){.due = due, .set = true, .kind = timer->kind};
    timers->root = join(timers->root, timer);
}

void hf__timer_clear(hf__timers *timers, hf__timer *timer)
{
    if (!timer->set)
        return;
    hf__timer *orphans = join_siblings(timer->child);
    if (timers->root == timer) {
        timers->root = orphans;
    } else {
        assert(timer->back != NULL);
        if (timer->back->child == timer)
            timer->back->child = timer->sibling;
        else
            timer->back->sibling = timer->sibling;
        if (timer->sibling != NULL)
            timer->sibling->back = timer->back;
        timers->root = join(timers->root, orphans);
    }
    *timer = (hf__timer){.kind = timer->kind};
}

hf__timer *hf__timers_take_due(hf__timers *timers, hf__instant now)
{
    hf__timer *timer = timers->root;
    if (timer == NULL || hf__before(now, timer->due))
        return NULL;
    hf__timer_clear(timers, timer);
    return timer;
}
