/* SPDX-License-Identifier: MIT */
/* A wheel of lists, for many things that are due one after the other and then again. Setting
 * (mostly) and clearing touch nothing but the neighbours, which a heap of ten thousand cannot say;
 * asking for the first one looks through the heads of the lists.
 *
 * Intrusive like the lists: nothing here allocates or fails. A spoke that is all zero is unset. */
#ifndef HF_BASE_WHEEL_H
#define HF_BASE_WHEEL_H

#include "base/instant.h"
#include "base/list.h"

enum { HF__WHEEL_SLOTS = 1024, HF__WHEEL_TICK_BITS = 24 /* of a nanosecond count: 17 ms */ };

typedef struct hf__spoke {
    hf__node node;
    hf__instant due;
} hf__spoke;

typedef struct hf__wheel {
    int64_t tick; /* all ticks before it are empty */
    size_t count;
    hf__list slots[HF__WHEEL_SLOTS];
} hf__wheel;

void hf__wheel_init(hf__wheel *wheel);
void hf__wheel_set(hf__wheel *wheel, hf__spoke *spoke, hf__instant due); /* must be unset */
void hf__wheel_clear(hf__wheel *wheel, hf__spoke *spoke);                /* must be set */

/* Takes out the first one if it is due by then; NULL: it is not. `by` may be earlier than the last
 * time. */
hf__spoke *hf__wheel_take(hf__wheel *wheel, hf__instant by);

/* Which one is likely to be taken next, if that can be told without looking around; or NULL. */
const hf__spoke *hf__wheel_peek(const hf__wheel *wheel);

/* When the next one is due; never, if there is none. */
hf__instant hf__wheel_next(const hf__wheel *wheel);

#endif
