/* SPDX-License-Identifier: MIT */
/* Blocks of ids, as they come and go; see ids_lease.c for how they are used up. A thread of the
 * generator's own fetches the next block when half of the current one is used. If that comes too
 * late, those who need ids wait for it, or one of them fetches for all. One attempt is made at a
 * time, without the mutex; everything else is done with it.
 *
 * A block is as large as it takes to last for a second or so. If it is not used for longer, its ids
 * would tell a time that is long over, so they are dropped; unless the server is gone, then old ids
 * are better than none, and whether it is back is looked at by the thread, while nobody waits. */
#include "api/ids_lease.h"
#include "core/fail.h"
#include "net/clock.h"
#include "net/thread.h"

enum {
    LEAP = 16,      /* by which blocks grow while they are far too small */
    SHORT_MS = 500, /* a block that lasts shorter was too small, */
    LONG_MS = 2000, /* or longer: too large */
    AGE_MAX_MS = 10000,
    OLD_MS = 1000 /* how long old ids will do, once the server is gone */
};

static const uint64_t generation_mask = UINT64_MAX >> HF__IDS_OFFSET_BITS;
static const uint64_t no_generation = UINT64_MAX;

/* ---- Blocks ---- */

/* What is left of the current block, and when it expires. */
static int64_t left_of(const hf__ids_lease *lease, hf__ids_view *v)
{
    uint64_t at = atomic_load(&lease->cursor);
    if (!hf__ids_look(lease, at >> HF__IDS_OFFSET_BITS, v))
        *v = (hf__ids_view){0}; /* cannot be: with the mutex the current one stays */
    return v->count - (int64_t)(at & HF__IDS_OFFSET_MASK);
}

static bool is_usable(const hf__ids_lease *lease)
{
    hf__ids_view v;
    return left_of(lease, &v) > 0 && hf__clock_coarse().ns < v.expires_ns;
}

/* So that a block lasts for about a second. */
static void adapt(hf__ids_lease *lease, hf__instant now)
{
    hf__ids_view v;
    int64_t left = left_of(lease, &v);
    int64_t lasted_ns = hf__between(lease->installed, now).ns;
    lease->installed = now;
    if (v.count == 0)
        return; /* there was none */
    if (left <= 0 && lasted_ns < hf__span_ms(SHORT_MS).ns)
        lease->size *= lasted_ns < hf__span_ms(SHORT_MS).ns / LEAP ? LEAP : 2;
    else if ((left > 0 || lasted_ns > hf__span_ms(LONG_MS).ns) && lease->size > 1)
        lease->size /= 2;
    if (lease->size > HF__IDS_BLOCK_MAX)
        lease->size = HF__IDS_BLOCK_MAX;
}

/* The first ones of it are taken. */
static void install(hf__ids_lease *lease, const hf__ids_block *block, hf__instant expires,
                    int64_t taken)
{
    uint64_t generation = (atomic_load(&lease->cursor) >> HF__IDS_OFFSET_BITS) + 1;
    generation &= generation_mask;
    hf__ids_slot *slot = &lease->slots[generation % HF__IDS_SLOTS];
    adapt(lease, hf__clock_coarse());
    atomic_store_explicit(&slot->generation, no_generation, memory_order_relaxed);
    atomic_store_explicit(&slot->first, block->first, memory_order_release);
    atomic_store_explicit(&slot->count, block->count, memory_order_release);
    atomic_store_explicit(&slot->expires_ns, expires.ns, memory_order_release);
    atomic_store_explicit(&slot->generation, generation, memory_order_release);
    atomic_store_explicit(&lease->cursor, generation << HF__IDS_OFFSET_BITS | (uint64_t)taken,
                          memory_order_release);
    lease->next.count = 0; /* or it would come after larger ones */
}

/* So that the offset does not run over: see ids_lease.c. */
static void put_back(hf__ids_lease *lease)
{
    hf__ids_view v;
    uint64_t at = atomic_load(&lease->cursor);
    if (left_of(lease, &v) < 0)
        atomic_store(&lease->cursor, (at & ~HF__IDS_OFFSET_MASK) | (uint64_t)v.count);
}

/* Old ids rather than none, for a while. False: there are none. */
static bool use_old(hf__ids_lease *lease)
{
    hf__ids_view v;
    hf__instant expires = hf__after(hf__clock_coarse(), hf__span_ms(OLD_MS));
    hf__ids_block next = lease->next;
    uint64_t generation = atomic_load(&lease->cursor) >> HF__IDS_OFFSET_BITS;
    if (left_of(lease, &v) > 0)
        atomic_store(&lease->slots[generation % HF__IDS_SLOTS].expires_ns, expires.ns);
    else if (next.count > 0)
        install(lease, &next, hf__later(expires, lease->next_expires), 0);
    else
        return false;
    return true;
}

/* ---- Fetching ---- */

static hf_status fetch(hf_ids *ids, int64_t count, hf__instant ends, hf__ids_block *block,
                       hf__instant *expires, hf_error *error)
{
    hf__ids_lease *lease = &ids->as.lease;
    hf_error why = {.status = HF_OK};
    *expires = hf__after(hf__clock_coarse(), hf__span_ms(AGE_MAX_MS));
    lease->fetching = true;
    pthread_mutex_unlock(&lease->mutex);
    hf_status status = hf__ids_reserve(ids, count, ends, block, &why);
    pthread_mutex_lock(&lease->mutex);
    lease->fetching = false;
    lease->attempts++;
    lease->outcome = why;
    lease->outcome.status = status;
    pthread_cond_broadcast(&lease->changed);
    if (status != HF_OK && error != NULL)
        *error = lease->outcome;
    return status;
}

/* If the server was gone, what there is may be old. */
static void fetch_ahead(hf_ids *ids, hf__instant ends)
{
    hf__ids_lease *lease = &ids->as.lease;
    hf__ids_block block;
    hf__instant expires;
    bool was_gone = lease->outcome.status != HF_OK;
    if (lease->fetching || (lease->next.count > 0 && !was_gone))
        return;
    if (fetch(ids, lease->size, ends, &block, &expires, NULL) != HF_OK)
        return;
    if (was_gone || !is_usable(lease)) {
        install(lease, &block, expires, 0);
    } else {
        lease->next = block;
        lease->next_expires = expires;
    }
}

static void *run_thread(void *arg)
{
    hf_ids *ids = arg;
    hf__ids_lease *lease = &ids->as.lease;
    pthread_mutex_lock(&lease->mutex);
    while (!lease->thread_ends) {
        if (lease->thread_wanted) {
            lease->thread_wanted = false;
            fetch_ahead(ids, hf__ids_deadline(ids));
        } else {
            pthread_cond_wait(&lease->work, &lease->mutex);
        }
    }
    pthread_mutex_unlock(&lease->mutex);
    return NULL;
}

/* Without a thread, those who need ids will fetch them. */
static void wake_thread(hf_ids *ids)
{
    hf__ids_lease *lease = &ids->as.lease;
    if (!lease->thread_runs && !lease->thread_ends && !ids->client->own_loop)
        lease->thread_runs = hf__thread_start(&lease->thread, run_thread, ids);
    lease->thread_wanted = lease->thread_runs;
    if (lease->thread_runs)
        pthread_cond_signal(&lease->work);
}

void hf__ids_crossed(hf_ids *ids, hf__instant ends)
{
    hf__ids_lease *lease = &ids->as.lease;
    int cancel_state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    pthread_mutex_lock(&lease->mutex);
    if (!ids->client->own_loop)
        wake_thread(ids);
    else if (hf__client_check(ids->client, NULL) == HF_OK)
        fetch_ahead(ids, ends);
    pthread_mutex_unlock(&lease->mutex);
    pthread_setcancelstate(cancel_state, NULL);
}

/* ---- When there are none ---- */

static hf_status wait_for_fetch(hf__ids_lease *lease, int64_t wanted, hf__instant ends,
                                hf_error *error)
{
    uint64_t before = lease->attempts;
    lease->waiting += wanted;
    while (lease->attempts == before && hf__before(hf__clock_now(), ends))
        hf__thread_wait_until(&lease->changed, &lease->mutex, ends);
    lease->waiting -= wanted;
    if (lease->attempts == before)
        return hf__fail(error, HF_EUNAVAILABLE, "no ids in time");
    if (lease->outcome.status != HF_OK && error != NULL)
        *error = lease->outcome;
    return lease->outcome.status;
}

/* For itself, and for all who wait. */
static hf_status fetch_now(hf_ids *ids, int64_t wanted, hf__instant ends, hf__ids_claim *got,
                           hf_error *error)
{
    hf__ids_lease *lease = &ids->as.lease;
    hf__ids_block block;
    hf__instant expires;
    int64_t size = wanted + lease->waiting;
    size = size > lease->size ? size : lease->size;
    size = size < HF__IDS_BLOCK_MAX ? size : HF__IDS_BLOCK_MAX;
    hf_status status = fetch(ids, size, ends, &block, &expires, error);
    if (status != HF_OK)
        return status;
    int64_t taken = wanted > 0 ? wanted : hf__ids_chunk_of(size);
    install(lease, &block, expires, taken);
    *got = (hf__ids_claim){{block.first, taken}, expires.ns, hf__ids_crosses(0, taken, size)};
    return HF_OK;
}

/* Whether there is something to go on with, without waiting. */
static bool go_on(hf_ids *ids)
{
    hf__ids_lease *lease = &ids->as.lease;
    hf__ids_block next = lease->next;
    if (is_usable(lease))
        return true;
    if (next.count > 0 && hf__before(hf__clock_coarse(), lease->next_expires)) {
        install(lease, &next, lease->next_expires, 0);
        return true;
    }
    if (lease->outcome.status == HF_OK || !lease->thread_runs || !use_old(lease))
        return false;
    wake_thread(ids); /* to see whether the server is back */
    return true;
}

/* HF_OK: *got something, or try again. */
static hf_status refill_locked(hf_ids *ids, int64_t wanted, hf__instant ends, hf__ids_claim *got,
                               hf_error *error)
{
    hf__ids_lease *lease = &ids->as.lease;
    put_back(lease);
    if (!hf__before(hf__clock_now(), ends))
        return hf__fail(error, HF_EUNAVAILABLE, "no ids in time: others were faster");
    while (!go_on(ids)) {
        hf_status status = hf__client_check(ids->client, error);
        bool fetches = status == HF_OK && !lease->fetching;
        if (fetches)
            status = fetch_now(ids, wanted, ends, got, error);
        else if (status == HF_OK)
            status = wait_for_fetch(lease, wanted, ends, error);
        if (status != HF_OK)
            return use_old(lease) ? HF_OK : status;
        if (fetches)
            break;
    }
    return HF_OK;
}

hf_status hf__ids_refill(hf_ids *ids, int64_t wanted, hf__instant ends, hf__ids_claim *got,
                         hf_error *error)
{
    hf__ids_lease *lease = &ids->as.lease;
    int cancel_state;
    got->ids.count = 0;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    pthread_mutex_lock(&lease->mutex);
    hf_status status = refill_locked(ids, wanted, ends, got, error);
    pthread_mutex_unlock(&lease->mutex);
    pthread_setcancelstate(cancel_state, NULL);
    return status;
}
