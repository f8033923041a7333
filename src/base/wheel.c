/* SPDX-License-Identifier: MIT */
/* A tick is a stretch of time, and a slot holds what is due in a tick, and in those that are a
 * whole turn of the wheel later. What was due before the wheel's own tick is kept as if it were due
 * in it: so a spoke's slot follows from its due time and nothing else needs to be remembered,
 * except that `tick` may only move on over slots that hold nothing of an earlier turn. */
#include "base/wheel.h"

static int64_t tick_of(hf__instant at)
{
    return at.ns >> HF__WHEEL_TICK_BITS;
}

static const hf__list *slot_at(const hf__wheel *wheel, int64_t tick)
{
    return &wheel->slots[(uint64_t)tick % HF__WHEEL_SLOTS];
}

static hf__list *slot_of(hf__wheel *wheel, const hf__spoke *spoke)
{
    return (hf__list *)slot_at(wheel, tick_of(spoke->due));
}

void hf__wheel_init(hf__wheel *wheel)
{
    *wheel = (hf__wheel){0};
    for (int i = 0; i < HF__WHEEL_SLOTS; i++)
        hf__list_init(&wheel->slots[i]);
}

void hf__wheel_set(hf__wheel *wheel, hf__spoke *spoke, hf__instant due)
{
    spoke->due = due;
    if (wheel->count++ == 0 || tick_of(due) < wheel->tick)
        wheel->tick = tick_of(due);
    hf__list_append(slot_of(wheel, spoke), &spoke->node);
}

void hf__wheel_clear(hf__wheel *wheel, hf__spoke *spoke)
{
    wheel->count--;
    hf__list_remove(slot_of(wheel, spoke), &spoke->node);
}

/* The earliest in a slot that is due in the tick or before it; NULL: none. */
static hf__spoke *earliest_in(const hf__list *slot, int64_t tick)
{
    hf__spoke *first = NULL;
    for (hf__node *n = hf__list_first(slot); n != NULL; n = hf__list_next(slot, n)) {
        hf__spoke *spoke = HF__ENTRY(n, hf__spoke, node);
        if (tick_of(spoke->due) <= tick && (first == NULL || hf__before(spoke->due, first->due)))
            first = spoke;
    }
    return first;
}

static hf__spoke *earliest_of_all(const hf__wheel *wheel)
{
    hf__spoke *first = NULL;
    for (int i = 0; i < HF__WHEEL_SLOTS && wheel->count > 0; i++) {
        hf__spoke *spoke = earliest_in(&wheel->slots[i], tick_of(HF__NEVER));
        if (spoke != NULL && (first == NULL || hf__before(spoke->due, first->due)))
            first = spoke;
    }
    return first;
}

/* The first in the slot of the wheel's tick that is due by then; NULL: none is. */
static hf__spoke *due_in_tick(const hf__wheel *wheel, hf__instant by)
{
    const hf__list *slot = slot_at(wheel, wheel->tick);
    for (hf__node *n = hf__list_first(slot); n != NULL; n = hf__list_next(slot, n))
        if (!hf__before(by, HF__ENTRY(n, hf__spoke, node)->due))
            return HF__ENTRY(n, hf__spoke, node);
    return NULL;
}

hf__spoke *hf__wheel_take(hf__wheel *wheel, hf__instant by)
{
    hf__spoke *spoke = NULL;
    for (int turned = 0; wheel->count > 0 && wheel->tick <= tick_of(by); turned++) {
        spoke = due_in_tick(wheel, by);
        if (spoke != NULL) {
            hf__wheel_clear(wheel, spoke);
            return spoke;
        }
        if (wheel->tick == tick_of(by))
            return NULL; /* what is left in it is due later in the same tick */
        if (turned < HF__WHEEL_SLOTS)
            wheel->tick++;
        else
            wheel->tick = tick_of(earliest_of_all(wheel)->due); /* nothing for a whole turn */
    }
    return NULL;
}

hf__instant hf__wheel_next(const hf__wheel *wheel)
{
    for (int64_t i = 0; i < HF__WHEEL_SLOTS && wheel->count > 0; i++) {
        int64_t tick = wheel->tick + i;
        const hf__spoke *spoke = earliest_in(slot_at(wheel, tick), tick);
        if (spoke != NULL)
            return spoke->due;
    }
    const hf__spoke *spoke = earliest_of_all(wheel); /* more than a turn away */
    return spoke != NULL ? spoke->due : HF__NEVER;
}
