/* SPDX-License-Identifier: MIT */
/* Copies in place of lost ones, by the letter of the rule: a server that has no copy of a hold is
 * given one only after a majority of the others was renewed, and the new copy does not count before
 * it has been renewed itself. Within the assumptions nobody is hurt by who breaks it, for whoever
 * holds a lock may put copies anywhere; the rule is for the day on which the assumptions do not
 * hold. So it is checked here as it stands, from what the servers are asked to do.
 *
 * A copy that is asked for after the grant has a number that no vote had at the grant. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/quorum.h"
#include "lua/scripts.h"
#include "quorum.h"

/* A hold that passes between threads has the label of the first one, and is not followed. */
void heal_granted(handle *h)
{
    const hf__ballot *ballot = h->real->ballot;
    h->first_healed = 0;
    memset(h->healed, 0, sizeof(h->healed));
    memset(h->renewed, 0, sizeof(h->renewed));
    memset(h->untried, 0, sizeof(h->untried));
    if (ballot != NULL && !h->nested && !h->moved)
        h->first_healed = h->real->number + ballot->numbers;
}

static handle *handle_of(world *w, const char *label)
{
    int index = 0, number = 0;
    if (sscanf(label, "w%d.%d.", &index, &number) != 2 || index >= w->plan.clients ||
        !w->clients[index].alive)
        return NULL;
    for (int k = 0; k < HANDLES_MAX; k++) {
        handle *h = &w->clients[index].handles[k];
        if (h->hold != NULL && h->first_healed > 0 && strcmp(h->wish.label, label) == 0)
            return h;
    }
    return NULL;
}

static void renewed(node *n, handle *h, uint64_t number)
{
    for (int i = 0; i < n->world->plan.nodes; i++)
        h->renewed[i] |= 1u << n->index;
    if (number == h->healed[n->index])
        h->untried[n->index] = false;
}

/* One that was on its way at the grant, and is heard after it, is as good as renewed. A copy of the
 * same request may come twice. A client gives up a copy of which it has not heard when the server
 * hides its run_id, and counts from then on: the server may see that copy later. */
static void asked_for(node *n, handle *h, uint64_t number)
{
    const plan *p = &n->world->plan;
    if (number < h->first_healed)
        renewed(n, h, number);
    if (number < h->first_healed || number <= h->healed[n->index])
        return;
    unsigned others = h->renewed[n->index] & ~(1u << n->index);
    if (__builtin_popcount(others) < p->quorum && n->unnamed_ns == 0)
        world_fail(n->world, "server %d is given a copy of %s before a majority was renewed",
                   n->index, h->wish.label);
    h->healed[n->index] = number;
    h->renewed[n->index] = 0;
    h->untried[n->index] = true;
}

static bool is_script(const char *sha1, hf__script_id which)
{
    return strcmp(sha1, hf__scripts[which].sha1) == 0;
}

void heal_ran(node *n, const char *sha1, hf__slice value)
{
    char text[200];
    if (value.length < 35 || value.length >= sizeof(text) || value.bytes[32] != ':')
        return;
    memcpy(text, value.bytes, value.length);
    text[value.length] = '\0';
    const char *label = strrchr(text, '/');
    handle *h = label != NULL ? handle_of(n->world, label + 1) : NULL;
    uint64_t number = strtoull(text + 33, NULL, 10);
    if (h == NULL)
        return;
    if (is_script(sha1, HF__SCRIPT_ACQUIRE))
        asked_for(n, h, number);
    else if (is_script(sha1, HF__SCRIPT_RENEW) || is_script(sha1, HF__SCRIPT_REFRESH))
        renewed(n, h, number);
}
