/* SPDX-License-Identifier: MIT */
/* Fences, and what they are for, in all worlds.
 *
 * A grant has a fence that is larger than every fence of its lock which anybody had been told
 * before the acquire was called; only one who joins holds of his own party has theirs. No two
 * parties ever have the same one. Which majority granted it, what their clocks say and which
 * minority has forgotten everything makes no difference.
 *
 * The register of each lock is read at the grant and written once, at the release, even by those
 * who have lost their hold. It refuses every fence that is smaller than the highest it has seen,
 * and must never lose an acknowledged write. Sharers of an owner do not write. */
#include <stdlib.h>
#include <string.h>

#include "core/name.h"
#include "quorum.h"

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

void fences_begin(world *w)
{
    static const char side_letters[] = "qfwh";
    for (int i = 0; i < LOCKS; i++) {
        hf__slice name = hf__slice_text(lock_names[i]);
        unsigned slot = hf__slot(name.bytes, name.length);
        for (int side = 0; side < SIDES; side++)
            w->locks[i].side_length[side] =
                hf__side_key(w->locks[i].side[side], HF__SLICE(""), side_letters[side], name, slot);
    }
}

/* ---- Grants ---- */

static uint64_t highest_of_others(const sim_lock *l, int owner)
{
    uint64_t highest = l->told_threads;
    for (int i = 0; i < OWNERS; i++)
        if (i != owner)
            highest = larger(highest, l->told_owner[i]);
    return highest;
}

void fences_call_begins(world *w, actor *a)
{
    const sim_wish *wish = &a->subject.wish;
    const sim_lock *l = &w->locks[wish->lock];
    a->told_own = wish->owner != NO_OWNER ? l->told_owner[wish->owner] : 0;
    a->told_else = highest_of_others(l, wish->owner);
}

/* Others of the party who hold it now have the same fence. */
static void check_sharers(world *w, int index, const handle *mine)
{
    for (int i = 0; i < w->plan.clients && w->plan.kind != KIND_JUMPY; i++) {
        const client *c = &w->clients[i];
        for (int k = 0; c->alive && k < HANDLES_MAX; k++) {
            const handle *h = &c->handles[k];
            if (h == mine || h->hold == NULL || h->wish.lock != mine->wish.lock ||
                h->wish.party != mine->wish.party || !check_valid(w, c, h))
                continue;
            w->stats.joined += !mine->nested;
            if (h->fence != mine->fence && mine->nested)
                world_fail(w, "clients %d and %d share %s with fences %llu and %llu", index, i,
                           lock_names[h->wish.lock], (unsigned long long)mine->fence,
                           (unsigned long long)h->fence);
        }
    }
}

/* Where clocks jump a lock may have been lost, and its client not know it yet: a thread that gets
 * it from another one has a fence of the old grant. The register refuses it. */
static void check_order(world *w, int index, const actor *a, const handle *h)
{
    bool shared = h->wish.owner != NO_OWNER;
    bool grows = h->fence > a->told_else && (!shared || h->fence >= a->told_own);
    if (h->nested || grows || (h->moved && w->plan.kind == KIND_JUMPY))
        return;
    world_fail(w, "client %d.%d: granted %s with fence %llu after %llu had been told", index,
               h->actor, lock_names[h->wish.lock], (unsigned long long)h->fence,
               (unsigned long long)larger(a->told_else, a->told_own));
}

static void read_register(world *w, handle *h)
{
    sim_lock *l = &w->locks[h->wish.lock];
    h->writes = h->wish.owner == NO_OWNER && !h->nested;
    h->fence_accepted = h->fence >= l->highest;
    l->highest = larger(l->highest, h->fence);
    h->fenced_value = l->value;
}

void fences_granted(world *w, int index, actor *a, handle *h)
{
    sim_lock *l = &w->locks[h->wish.lock];
    bool shared = h->wish.owner != NO_OWNER;
    const char *name = lock_names[h->wish.lock];
    if (h->fence == 0)
        world_fail(w, "client %d.%d: granted %s without a fence", index, h->actor, name);
    if (fence_book_party(&w->fences, h->wish.lock, h->fence, h->wish.party) != h->wish.party)
        world_fail(w, "client %d.%d: granted %s with fence %llu of another party", index, h->actor,
                   name, (unsigned long long)h->fence);
    check_order(w, index, a, h);
    check_sharers(w, index, h);
    w->stats.nested += h->nested;
    uint64_t *told = shared ? &l->told_owner[h->wish.owner] : &l->told_threads;
    *told = larger(*told, h->fence);
    read_register(w, h);
}

/* ---- The register ---- */

bool fences_write(world *w, int index, const handle *h)
{
    sim_lock *l = &w->locks[h->wish.lock];
    if (!h->writes)
        return false;
    if (!h->fence_accepted || h->fence < l->highest) {
        w->stats.fenced_refusals++;
        world_log(w, "client %d: write with fence %llu refused", index,
                  (unsigned long long)h->fence);
        return false;
    }
    w->stats.fenced_writes++;
    l->value = h->fenced_value + 1;
    l->acknowledged++;
    return true;
}

void fences_end(world *w)
{
    for (int i = 0; i < LOCKS; i++)
        if (w->locks[i].acknowledged != w->locks[i].value)
            world_fail(w, "%s: %lld acknowledged writes are lost in spite of the fence",
                       lock_names[i], (long long)(w->locks[i].acknowledged - w->locks[i].value));
}
