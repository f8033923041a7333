/* SPDX-License-Identifier: MIT */
/* Timers, earliest first. Intrusive like the lists: setting one never allocates and so never
 * fails. A timer that is all zero is unset. */
#ifndef HF_BASE_TIMERS_H
#define HF_BASE_TIMERS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/instant.h"

typedef struct hf__timer {
    hf__instant due;
    bool set;
    unsigned char kind;        /* for its owner: what it belongs to; survives set and clear */
    struct hf__timer *child;   /* first of those that are due later */
    struct hf__timer *sibling; /* next child of the same parent */
    struct hf__timer *back;    /* previous sibling, or the parent of a first child */
} hf__timer;

typedef struct hf__timers {
    hf__timer *root;
} hf__timers;

void hf__timer_set(hf__timers *timers, hf__timer *timer, hf__instant due); /* sets anew if set */
void hf__timer_clear(hf__timers *timers, hf__timer *timer);                /* unset is fine */

/* Takes out the earliest timer if it is due; NULL if none is. */
hf__timer *hf__timers_take_due(hf__timers *timers, hf__instant now);

static inline hf__instant hf__timers_next(const hf__timers *timers)
{
    return timers->root != NULL ? timers->root->due : HF__NEVER;
}

#endif
