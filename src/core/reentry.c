/* SPDX-License-Identifier: MIT */
/* Several handles on one hold. A thread that acquires a lock which it holds already gets another
 * handle on that hold, without any message: same fence, same deadline, and a listener of its own.
 * The hold is released when the last of its handles is given back, in whatever order.
 *
 * A hold with handles counts them in `users`, its own handle among them. A re-entrant handle is the
 * hold that was made for its acquire and never started; it points to the real one and is in the
 * list of its inners. Holds that may be re-entered are in a table by the slot of their key, so that
 * finding one does not take longer with ten thousand others. */
#include <string.h>

#include "base/mutant.h"
#include "core/state.h"

static hf__list *bucket_of(const hf_hold *hold)
{
    return &hold->core->table[hold->slot % HF__BUCKETS];
}

void hf__reentry_allow(hf_hold *hold)
{
    if (hold->reenters)
        hf__list_append(bucket_of(hold), &hold->bucket);
}

void hf__reentry_forbid(hf_hold *hold)
{
    if (hf__node_linked(&hold->bucket))
        hf__list_remove(bucket_of(hold), &hold->bucket);
}

static bool same_lock_and_thread(const hf_hold *a, const hf_hold *b)
{
    return a->thread == b->thread && hf__same_key(a, b);
}

static hf_hold *find(const hf_hold *fresh)
{
    hf__list *bucket = bucket_of(fresh);
    hf__node *node = hf__list_first(bucket);
    while (node != NULL && !same_lock_and_thread(HF__ENTRY(node, hf_hold, bucket), fresh))
        node = hf__list_next(bucket, node);
    return node != NULL ? HF__ENTRY(node, hf_hold, bucket) : NULL;
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
