/* SPDX-License-Identifier: MIT */
/* Fences, and what they are for.
 *
 * A grant has a fence that is larger than every fence of its lock which anybody had been told
 * before the acquire was called; only one who joins holds of his own party has theirs. No two
 * parties ever have the same one. A break is a grant to nobody: its fence is larger than the
 * victim's and smaller than those that follow. This holds in all runs, with one exception, which
 * docs/safety.md names: the server has forgotten the last fence (evicted, restarted without it,
 * kept for its time and dropped) and its clock is behind that fence. Whether it had reason to
 * forget is computed here, from what happened to it, and not taken from what it has. It knows a
 * fence by the lock's own key or by the mark of its slot.
 *
 * No fence that anybody is told is ahead of the server's clock, at its highest; but whoever breaks
 * a lock, or takes away its key, leaves what was reserved to nobody; and so does 0.7.
 *
 * Two registers for each lock show what it means. Both are read at the grant and written once, at
 * the release. One believes whoever thinks that he holds the lock; beyond the assumptions it must
 * lose writes, or the checker is blind. The other one refuses every fence that is smaller than the
 * highest it has seen, and is written to even by those who have lost their hold; it must never lose
 * an acknowledged write, whatever happens. Sharers of an owner do not write. */
#include <stdlib.h>
#include <string.h>

#include "core/name.h"
#include "sim.h"

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

uint64_t fences_highest(const sim_lock *lock)
{
    uint64_t highest = larger(lock->told_threads, lock->told_breaks);
    for (int i = 0; i < OWNERS; i++)
        highest = larger(highest, lock->told_owner[i]);
    return highest;
}

static uint64_t highest_of_others(const sim_lock *lock, int owner)
{
    uint64_t highest = larger(lock->told_threads, lock->told_breaks);
    for (int i = 0; i < OWNERS; i++)
        if (i != owner)
            highest = larger(highest, lock->told_owner[i]);
    return highest;
}

void fences_begin(world *w)
{
    w->parties = OWNERS; /* the owners are the first ones */
    for (int i = 0; i < OWNERS; i++)
        check_remember_value(w, owner_names[i]);
    for (int i = 0; i < LOCKS; i++) {
        const char *name = lock_names[i];
        size_t length = strlen(name);
        unsigned slot = hf__slot(name, length);
        w->locks[i].slot_length =
            hf__slot_key(w->locks[i].slot, HF__SLICE(""), hf__slot_tags[slot]);
        for (int side = 0; side < SIDES; side++)
            w->locks[i].side_length[side] =
                hf__side_key(w->locks[i].side[side], HF__SLICE(""), side_letters[side],
                             (hf__slice){name, length}, slot);
    }
}

/* ---- Grants ---- */

void fences_call_begins(world *w, sim_actor *a)
{
    const sim_wish *wish = &a->subject.wish;
    const sim_lock *lock = &w->locks[wish->lock];
    a->told_own = wish->owner != NO_OWNER ? lock->told_owner[wish->owner] : 0;
    a->told_else = highest_of_others(lock, wish->owner);
}

/* Others of the party who hold it now have the same fence; beyond the assumptions, those of the
 * same hold. */
static void check_sharers(world *w, int index, const sim_handle *mine)
{
    for (int i = 0; i < w->plan.clients; i++) {
        const sim_client *c = &w->clients[i];
        hf__instant now = {client_clock_ns(c, w->run.now_ns)};
        for (uint64_t left = c->alive ? c->held : 0; left != 0; left &= left - 1) {
            const sim_handle *h = &c->handles[__builtin_ctzll(left)];
            bool shares = w->plan.beyond ? h->real == mine->real
                                         : h->wish.lock == mine->wish.lock &&
                                               h->wish.party == mine->wish.party;
            if (h == mine || !shares || hf__hold_remaining(h->hold, now).ns == 0)
                continue;
            w->stats.joined += !mine->nested;
            if (h->fence != mine->fence)
                world_fail(w, "clients %d and %d share %s with fences %llu and %llu", index, i,
                           lock_names[h->wish.lock], (unsigned long long)mine->fence,
                           (unsigned long long)h->fence);
        }
    }
}

/* Beyond the assumptions a lock may have been lost, and its client not know it yet: a thread that
 * gets it from another one has a fence of the old grant. The register refuses it. */
static void check_order(world *w, int index, const sim_actor *a, const sim_handle *h)
{
    const sim_lock *lock = &w->locks[h->wish.lock];
    bool shared = h->wish.owner != NO_OWNER;
    bool grows = h->fence > a->told_else && (!shared || h->fence >= a->told_own);
    if (lock->excused || h->nested || (shared && lock->old_copy) || (h->moved && w->plan.beyond))
        return;
    if (!grows)
        world_fail(w, "client %d.%d: granted %s with fence %llu after %llu had been told", index,
                   h->actor, lock_names[h->wish.lock], (unsigned long long)h->fence,
                   (unsigned long long)larger(a->told_else, a->told_own));
}

static void read_registers(world *w, sim_handle *h)
{
    sim_lock *lock = &w->locks[h->wish.lock];
    h->writes = h->wish.owner == NO_OWNER && !h->nested;
    h->read_value = lock->plain.value;
    h->fence_accepted = h->fence >= lock->fenced.highest;
    lock->fenced.highest = larger(lock->fenced.highest, h->fence);
    h->fenced_value = lock->fenced.value;
}

enum { AHEAD_US = 2 };

/* The clock at its highest; those who have one slot share the mark. */
static void check_ahead(world *w, int index, const sim_handle *h)
{
    int64_t highest_us = server_now_us(w) - w->server_offset_us + w->highest_offset_us;
    int64_t bound_us = AHEAD_US, ahead_us = (int64_t)h->fence - highest_us;
    for (int i = 0; i < LOCKS; i++)
        bound_us += w->locks[i].breaks * (1 + w->plan.local_turns);
    if (ahead_us > bound_us && !w->plan.beyond && w->plan.elders == 0)
        world_fail(w, "client %d.%d: granted %s with a fence that is %lld us ahead of the clock",
                   index, h->actor, lock_names[h->wish.lock], (long long)ahead_us);
}

void fences_granted(world *w, int index, sim_actor *a, sim_handle *h)
{
    sim_lock *lock = &w->locks[h->wish.lock];
    bool shared = h->wish.owner != NO_OWNER;
    check_ahead(w, index, h);
    if (h->fence == 0)
        world_fail(w, "client %d.%d: granted %s without a fence", index, h->actor,
                   lock_names[h->wish.lock]);
    if (fence_book_party(&w->fences, h->wish.lock, h->fence, h->wish.party) != h->wish.party &&
        !lock->excused)
        world_fail(w, "client %d.%d: granted %s with fence %llu of another party", index, h->actor,
                   lock_names[h->wish.lock], (unsigned long long)h->fence);
    check_order(w, index, a, h);
    check_sharers(w, index, h);
    w->stats.nested += h->nested;
    uint64_t *told = shared ? &lock->told_owner[h->wish.owner] : &lock->told_threads;
    *told = larger(*told, h->fence);
    read_registers(w, h);
}

/* Who takes up a hold has its fence, which within the assumptions nobody has passed meanwhile; and
 * goes on with what was read before, or reads anew what was written before. */
void fences_attached(world *w, int index, sim_handle *h, const sim_token *token)
{
    const sim_lock *lock = &w->locks[h->wish.lock];
    if (h->fence != token->fence || hf__hold_fence_top(h->hold) != token->fence_top)
        world_fail(w, "client %d.%d: attached %s with fence %llu instead of %llu", index, h->actor,
                   lock_names[h->wish.lock], (unsigned long long)h->fence,
                   (unsigned long long)token->fence);
    if (!w->plan.beyond && !lock->excused && h->fence < fences_highest(lock))
        world_fail(w, "client %d.%d: attached %s with fence %llu after %llu had been told", index,
                   h->actor, lock_names[h->wish.lock], (unsigned long long)h->fence,
                   (unsigned long long)fences_highest(lock));
    read_registers(w, h);
    if (!token->writes)
        return;
    h->fence_accepted = token->fence_accepted;
    h->read_value = token->read_value;
    h->fenced_value = token->fenced_value;
}

void fences_broken(world *w, int index, sim_query *query)
{
    sim_lock *lock = &w->locks[query->lock];
    uint64_t fence = query->answer.number;
    if (fence == 0)
        return;
    w->stats.broken++;
    if (fence <= query->told_before && !lock->excused)
        world_fail(w, "client %d: broke %s with fence %llu after %llu had been told", index,
                   lock_names[query->lock], (unsigned long long)fence,
                   (unsigned long long)query->told_before);
    if (fence_book_party(&w->fences, query->lock, fence, BREAKERS) != BREAKERS && !lock->excused)
        world_fail(w, "client %d: broke %s with fence %llu of another party", index,
                   lock_names[query->lock], (unsigned long long)fence);
    lock->told_breaks = larger(lock->told_breaks, fence);
    lock->fenced.highest = larger(lock->fenced.highest, fence); /* as holdfast.h advises */
}

/* ---- Registers ---- */

void fences_write(world *w, int index, const sim_handle *h, bool valid)
{
    sim_lock *lock = &w->locks[h->wish.lock];
    if (!h->writes)
        return;
    if (valid) {
        lock->plain.value = h->read_value + 1;
        lock->plain.acknowledged++;
    }
    if (!h->fence_accepted || h->fence < lock->fenced.highest) {
        w->stats.fenced_refusals++;
        world_log(w, "client %d: write with fence %llu refused", index,
                  (unsigned long long)h->fence);
        return;
    }
    w->stats.fenced_writes++;
    lock->fenced.value = h->fenced_value + 1;
    lock->fenced.acknowledged++;
}

void fences_end(world *w)
{
    for (int i = 0; i < LOCKS; i++) {
        const sim_lock *lock = &w->locks[i];
        int64_t lost = lock->plain.acknowledged - lock->plain.value;
        w->stats.lost_writes += lost;
        w->stats.excused += lock->excused;
        if (lost != 0 && !w->plan.beyond)
            world_fail(w, "%s: %lld acknowledged writes are lost", lock_names[i], (long long)lost);
        if (lock->fenced.acknowledged != lock->fenced.value && !lock->excused)
            world_fail(w, "%s: %lld acknowledged writes are lost in spite of the fence",
                       lock_names[i], (long long)(lock->fenced.acknowledged - lock->fenced.value));
    }
}

/* ---- What may make a fence smaller ---- */

static uint64_t number_at(world *w, const char *key, size_t length)
{
    const char *text = sim_server_get(w->server, key, length);
    return text != NULL ? strtoull(text, NULL, 10) : 0;
}

uint64_t fences_by_name(world *w, const sim_lock *lock)
{
    return number_at(w, lock->side[SIDE_F], lock->side_length[SIDE_F]);
}

/* The mark of the slot counts where the name has no fence of its own: if that is an old one, which
 * came back with an old copy, the mark does not help. */
static uint64_t at_server(world *w, const sim_lock *lock)
{
    uint64_t by_name = fences_by_name(w, lock);
    return by_name > 0 ? by_name : number_at(w, lock->slot, lock->slot_length);
}

/* Whoever holds the lock, and does use this library, has a fence under its name. */
static void check_named(world *w, int lock)
{
    const sim_lock *l = &w->locks[lock];
    const char *held = check_held_as(w, lock);
    bool ours = held != NULL && strcmp(held, l->foreign_value) != 0 && !w->outsider;
    if (ours && !w->plan.beyond && number_at(w, l->side[SIDE_F], l->side_length[SIDE_F]) == 0)
        world_fail(w, "%s is held as %s, without a fence", lock_names[lock], held);
}

void fences_kept(world *w, int lock)
{
    check_named(w, lock);
    const sim_lock *l = &w->locks[lock];
    uint64_t known = at_server(w, l), told = fences_highest(l);
    int64_t kept_until_ms = (int64_t)(told / 1000) + w->plan.fence_keep_ms;
    if (known < told && server_now_us(w) / 1000 < kept_until_ms && !w->plan.beyond)
        world_fail(w, "the server has %llu for %s, whose fence was %llu", (unsigned long long)known,
                   lock_names[lock], (unsigned long long)told);
}

void fences_before_fault(world *w)
{
    server_set_clock(w);
    for (int i = 0; i < w->plan.locks; i++) {
        sim_lock *lock = &w->locks[i];
        uint64_t known = at_server(w, lock), told = fences_highest(lock);
        int64_t kept_until_ms = (int64_t)(lock->minted / 1000) + w->plan.fence_keep_ms;
        /* What was reserved for nobody may be given back. */
        lock->minted = larger(lock->forgotten ? lock->minted : known, told);
        if (known >= lock->minted) {
            lock->minted = known;
            lock->forgotten = false;
        } else if (server_now_us(w) / 1000 > kept_until_ms) {
            lock->forgotten = true; /* its time was over */
        }
    }
}

void fences_after_fault(world *w)
{
    server_set_clock(w);
    for (int i = 0; i < w->plan.locks; i++) {
        sim_lock *lock = &w->locks[i];
        if (lock->forgotten && (uint64_t)server_now_us(w) <= lock->minted && !lock->excused) {
            lock->excused = true;
            world_log(w, "server: has forgotten the fence of %s and its time", lock_names[i]);
        }
    }
}

void fences_lost(world *w, bool old_copy)
{
    for (int i = 0; i < w->plan.locks; i++) {
        w->locks[i].forgotten |= at_server(w, &w->locks[i]) < w->locks[i].minted;
        w->locks[i].old_copy |= old_copy;
    }
}
