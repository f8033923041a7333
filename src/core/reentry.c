/* SPDX-License-Identifier: MIT */
/* Several handles on one hold. A thread that acquires a lock which it holds already gets another
 * handle on that hold, without any message: same fence, same deadline, and a listener of its own.
 * The hold is released when the last of its handles is given back, in whatever order.
 *
 * A hold with handles counts them in `users`, its own handle among them. A re-entrant handle is the
 * hold that was made for its acquire and never started; it points to the real one and is in the
 * list of its inners. Holds that may be re-entered are in a table by their key, so that finding one
 * does not take longer with a million others. */
#include <string.h>

#include "base/mutant.h"
#include "core/state.h"

uint64_t hf__reentry_hash(const hf__node *node)
{
    return HF__ENTRY(node, hf_hold, reentered)->hash;
}

void hf__reentry_allow(hf_hold *hold)
{
    if (hold->reenters)
        hf__table_add(&hold->core->reentered, &hold->reentered);
}

void hf__reentry_forbid(hf_hold *hold)
{
    if (hf__node_linked(&hold->reentered))
        hf__table_remove(&hold->core->reentered, &hold->reentered);
}

static bool same_lock_and_thread(const hf_hold *a, const hf_hold *b)
{
    return a->thread == b->thread && hf__same_key(a, b);
}

static hf_hold *find(const hf_hold *fresh)
{
    const hf__table *table = &fresh->core->reentered;
    hf__node *node = hf__table_first(table, fresh->hash);
    while (node != NULL && !same_lock_and_thread(HF__ENTRY(node, hf_hold, reentered), fresh))
        node = hf__table_next(table, node);
    return node != NULL ? HF__ENTRY(node, hf_hold, reentered) : NULL;
}

bool hf__reentry_try(hf_hold *fresh)
{
    hf_hold *hold = fresh->reenters ? find(fresh) : NULL;
    if (hold == NULL || (hf__hold_expired(hold) && !HF__MUTANT(REENTRY_STALE)))
        return false;
    fresh->outer = hold;
    fresh->listener.told_state = (unsigned char)atomic_load(&hold->state);
    fresh->listener.told_reason = hold->reason;
    hf__list_append(&hold->inners, &fresh->node);
    hold->users++;
    hold->core->stats.reentries++;
    return true;
}

hf_hold *hf__reentry_leave(hf_hold *handle)
{
    hf_hold *hold = hf__hold_of(handle);
    hf__tell_silence(handle);
    if (handle != hold) {
        hf__list_remove(&hold->inners, &handle->node);
        hf__list_append(&hold->core->dead, &handle->node);
        handle->dead = true;
    }
    return --hold->users == 0 || HF__MUTANT(RELEASE_FIRST) ? hold : NULL;
}
