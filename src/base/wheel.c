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

static hf__spoke *spoke_at(hf__node *node)
{
    return HF__ENTRY(node, hf__spoke, node);
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
    hf__list *slot = slot_of(wheel, spoke);
    hf__node *place = &slot->head; /* what comes later is mostly due later */
    while (place->prev != &slot->head && hf__before(due, spoke_at(place->prev)->due))
        place = place->prev;
    hf__list_insert_before(slot, place, &spoke->node);
}

void hf__wheel_clear(hf__wheel *wheel, hf__spoke *spoke)
{
    wheel->count--;
    hf__list_remove(slot_of(wheel, spoke), &spoke->node);
}

/* The first of a slot, if it is due in the tick or before it; NULL: nothing is. */
static hf__spoke *first_in(const hf__list *slot, int64_t tick)
{
    hf__node *node = hf__list_first(slot);
    return node != NULL && tick_of(spoke_at(node)->due) <= tick ? spoke_at(node) : NULL;
}

static hf__spoke *first_of_all(const hf__wheel *wheel)
{
    hf__spoke *first = NULL;
    for (int i = 0; i < HF__WHEEL_SLOTS && wheel->count > 0; i++) {
        hf__spoke *spoke = first_in(&wheel->slots[i], tick_of(HF__NEVER));
        if (spoke != NULL && (first == NULL || hf__before(spoke->due, first->due)))
            first = spoke;
    }
    return first;
}

/* The first one, and its tick; NULL: the wheel is empty. */
static hf__spoke *find_first(const hf__wheel *wheel, int64_t *tick)
{
    *tick = wheel->tick;
    for (int i = 0; i < HF__WHEEL_SLOTS && wheel->count > 0; i++, ++*tick)
        if (first_in(slot_at(wheel, *tick), *tick) != NULL)
            return first_in(slot_at(wheel, *tick), *tick);
    hf__spoke *spoke = first_of_all(wheel); /* more than a turn away */
    if (spoke != NULL)
        *tick = tick_of(spoke->due);
    return spoke;
}

hf__spoke *hf__wheel_take(hf__wheel *wheel, hf__instant by)
{
    hf__spoke *spoke = find_first(wheel, &wheel->tick);
    if (spoke == NULL || hf__before(by, spoke->due))
        return NULL;
    hf__wheel_clear(wheel, spoke);
    return spoke;
}

const hf__spoke *hf__wheel_peek(const hf__wheel *wheel)
{
    hf__node *node = hf__list_first(slot_at(wheel, wheel->tick));
    return node != NULL ? spoke_at(node) : NULL;
}

hf__instant hf__wheel_next(const hf__wheel *wheel)
{
    int64_t tick;
    const hf__spoke *spoke = find_first(wheel, &tick);
    return spoke != NULL ? spoke->due : HF__NEVER;
}
