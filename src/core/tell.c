/* SPDX-License-Identifier: MIT */
/* What applications are told about their holds. A listener that may have news is put into a queue;
 * what the news is, is decided when its turn comes, from what it was told last. So changes that
 * overtake each other are told as one, nothing is told twice, and nothing needs memory.
 *
 * A descriptor is made readable at once. A callback is run by a thread of its own, one at a time
 * and without any lock: until it is back, its handle and the hold behind it stay in memory, and a
 * release of the handle waits (src/net/callback.c). */
#include "base/mutant.h"
#include "core/state.h"

static void queue(hf__core *core, hf_hold *handle)
{
    hf__listener *listener = &handle->listener;
    bool listens = listener->function != NULL || listener->descriptor >= 0;
    listener->marked = false;
    core->untold_descriptors = core->untold_descriptors || listener->descriptor >= 0;
    bool may = !listener->listens_later || HF__MUTANT(LISTENS_EARLY);
    if (listens && may && !hf__node_linked(&listener->node))
        hf__list_append(&core->untold, &listener->node);
}

void hf__tell_all(hf_hold *hold)
{
    queue(hold->core, hold);
    for (hf__node *n = hf__list_first(&hold->inners); n != NULL;
         n = hf__list_next(&hold->inners, n))
        queue(hold->core, HF__ENTRY(n, hf_hold, node));
}

void hf__tell_silence(hf_hold *handle)
{
    hf__listener *listener = &handle->listener;
    if (hf__node_linked(&listener->node))
        hf__list_remove(&hf__hold_of(handle)->core->untold, &listener->node);
    listener->function = NULL;
    listener->descriptor = -1;
}

static bool changed(const hf_hold *handle)
{
    const hf_hold *hold = hf__hold_of(handle);
    return atomic_load(&hold->state) != handle->listener.told_state ||
           hold->reason != handle->listener.told_reason;
}

/* Told only while the hold can still be given up. */
static bool asked_for(const hf_hold *handle)
{
    const hf_hold *hold = hf__hold_of(handle);
    return hold->revoked && !handle->listener.told_revoked && atomic_load(&hold->state) != HF_LOST;
}

/* A change of state comes first. */
static bool news(hf_hold *handle, hf__tell *tell)
{
    const hf_hold *hold = hf__hold_of(handle);
    hf__listener *listener = &handle->listener;
    hf_state state = (hf_state)atomic_load(&hold->state);
    *tell = (hf__tell){.hold = handle,
                       .function = listener->function,
                       .arg = listener->arg,
                       .event = {.hold = handle, .state = state}};
    if (changed(handle)) {
        listener->told_state = (unsigned char)state;
        listener->told_reason = hold->reason;
        tell->event.reason = (hf_reason)hold->reason;
        tell->event.text = hf_reason_text(tell->event.reason);
        return true;
    }
    if (asked_for(handle)) {
        listener->told_revoked = true;
        tell->event.reason = HF_REASON_REVOKED;
        tell->event.text = hold->revoked_text != NULL ? hold->revoked_text : "";
        return true;
    }
    return false;
}

/* Nothing is told while a timer is due: what it brings may be a loss, and the driver ticks soon. */
static bool may_tell(const hf__core *core)
{
    return core->telling == NULL && hf__before(core->now, hf__core_wake(core));
}

bool hf__core_next_tell(hf__core *core, hf__tell *tell)
{
    hf__node *node;
    while (may_tell(core) && (node = hf__list_first(&core->untold)) != NULL) {
        hf_hold *handle = HF__ENTRY(node, hf_hold, listener.node);
        hf__list_remove(&core->untold, node);
        if (!news(handle, tell))
            continue;
        hf__list_append(&core->untold, node); /* there may be more */
        tell->event.remaining_ms = hf__span_to_ms(hf__hold_remaining(handle, core->now));
        core->telling = handle;
        return true;
    }
    return false;
}

/* The list is not searched unless somebody with a descriptor was queued since it was searched in
 * vain: callbacks of a hundred thousand holds may be in it. */
int hf__core_next_descriptor(hf__core *core)
{
    hf__list *untold = &core->untold;
    if (!core->untold_descriptors)
        return -1;
    for (hf__node *n = hf__list_first(untold); n != NULL; n = hf__list_next(untold, n)) {
        hf_hold *handle = HF__ENTRY(n, hf_hold, listener.node);
        hf__listener *listener = &handle->listener;
        if (listener->descriptor >= 0 && !listener->marked &&
            (changed(handle) || asked_for(handle))) {
            listener->marked = true;
            return listener->descriptor;
        }
    }
    core->untold_descriptors = false;
    return -1;
}

void hf__core_told(hf__core *core)
{
    hf_hold *hold = hf__hold_of(core->telling);
    core->telling = NULL;
    hf__hold_settle(hold);
    hf__hold_bury(core);
}

bool hf__core_has_news(const hf__core *core)
{
    return (core->untold.count > 0 && may_tell(core)) ||
           (core->seen.count > 0 && core->seeing == NULL);
}

bool hf__core_is_telling(const hf__core *core, const hf_hold *handle)
{
    return core->telling == handle;
}

bool hf__tell_needs(const hf__core *core, const hf_hold *hold)
{
    return core->telling != NULL && (core->telling == hold || core->telling->outer == hold);
}
