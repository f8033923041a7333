/* SPDX-License-Identifier: MIT */
/* What is in the hands of applications, from the grant, or from taking up a token, until it is
 * given back. A client has room for so many; each belongs to an actor, or to whoever keeps it for
 * one. */
#include <stdio.h>
#include <string.h>

#include "core/state.h"
#include "sim.h"

/* One of the actor's handles, drawn; -1: it has none. */
int handles_any(world *w, const sim_client *c, int number, int *count)
{
    int found[HANDLES_MAX];
    *count = 0;
    for (int i = 0; i < HANDLES_MAX; i++)
        if (c->handles[i].hold != NULL && c->handles[i].actor == number)
            found[(*count)++] = i;
    return *count > 0 ? found[draw(w, (uint64_t)*count)] : -1;
}

int handles_free(const world *w, const sim_client *c, int *first)
{
    int count = 0;
    for (int i = w->plan.handles - 1; i >= 0; i--)
        if (c->handles[i].hold == NULL) {
            *first = i;
            count++;
        }
    return count;
}

bool handles_is_last(const sim_client *c, const sim_handle *handle)
{
    for (int i = 0; i < HANDLES_MAX; i++)
        if (&c->handles[i] != handle && c->handles[i].hold != NULL &&
            c->handles[i].real == handle->real)
            return false;
    return true;
}

/* The application gives the handle back: what it believed is over. */
hf_hold *handles_take_away(world *w, int index, int slot)
{
    sim_client *c = &w->clients[index];
    sim_handle *h = &c->handles[slot];
    hf_hold *hold = h->hold;
    fences_write(w, index, h, hf__hold_remaining(hold, client_now(w, c)).ns > 0);
    check_beliefs(w);
    check_belief_over(w, index, h);
    h->hold = NULL;
    c->held &= ~(UINT64_C(1) << slot);
    return hold;
}

void handles_put_value(sim_handle *handle, const hf_hold *hold)
{
    hf__slice value = hf__hold_value(hold);
    snprintf(handle->value, sizeof(handle->value), "%.*s", (int)value.length, value.bytes);
}

/* The handle that the actor has got. */
sim_handle *handles_take(world *w, int index, int number)
{
    sim_client *c = &w->clients[index];
    sim_actor *a = &c->actors[number];
    int slot = 0;
    (void)handles_free(w, c, &slot);
    sim_handle *h = &c->handles[slot];
    *h = a->subject;
    h->hold = a->call.hold;
    h->nested = h->hold->outer != NULL;
    h->real = h->nested ? h->hold->outer : h->hold;
    handles_put_value(h, h->real); /* perhaps that of another thread of its client */
    h->granted_ns = h->last_valid_ns = w->run.now_ns;
    h->fence = hf__hold_fence(h->hold);
    c->held |= UINT64_C(1) << slot;
    return h;
}
