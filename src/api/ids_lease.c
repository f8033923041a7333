/* SPDX-License-Identifier: MIT */
/* Ids from blocks that were reserved ahead, without a lock as long as there are some.
 *
 * The cursor is one number: which block (its generation), and how far it is used up (the offset). A
 * thread adds to it what it wants, and has got the ids that it moved over, if they lie within the
 * block. Blocks are in slots, by generation. Who has the mutex installs the next one: first it
 * fills the slot, then it sets the cursor to the next generation.
 *
 * Why nobody gets an id twice, nor one that is not ours:
 *   - In a generation the offset only grows, but for one case: when it is behind the end of the
 *     block, it may be put back to the end. Below the end each offset is passed by one addition
 *     only. A generation that was left does not come again before all 2^38 were used.
 *   - The slot says whose block it has before and after it is read. Who fills it first takes that
 *     away. A reader who saw any of the new block (each part is released and acquired) must find it
 *     taken away, or a newer generation, when it looks again; then it has got nothing, and the ids
 *     that it moved over are lost. Otherwise all that it saw is of the generation that it got from
 *     the cursor; and the cursor had that only after the slot was filled.
 *   - Offsets do not run over into the generation: a thread that has moved the cursor behind the
 *     end takes the mutex before it moves it again, and then it is put back, or there is another
 *     block. So it is behind by no more than there are threads, and there are less than 2^24.
 *     Who wants several ids never moves it behind the end.
 *   - Blocks grow: one attempt to fetch is made at a time, and what it brings is larger than all
 *     before (ids_reserve.c); what was fetched earlier is installed earlier, or never. So ids grow
 *     in the order in which the cursor was moved.
 *
 * A thread of its own fetches the next block when half of the current one is used. If that comes
 * too late, those who need ids wait for it, or one of them fetches for all. */
#include "api/ids.h"
#include "core/fail.h"
#include "net/clock.h"
#include "net/thread.h"

enum {
    OFFSET_BITS = 26,
    FIRST_SIZE = 64,
    CHUNK_MAX = 256,     /* ids that a thread takes for itself */
    CHUNKS_IN_BLOCK = 8, /* at least */
    CHUNKS = 4,          /* that a thread keeps, of as many generators */
    SHORT_MS = 500,      /* a block that lasts shorter was too small, */
    LONG_MS = 2000,      /* or longer: too large */
    AGE_MAX_MS = 10000,
    OLD_MS = 1000 /* how long old ids will do, once the server is gone */
};

static const uint64_t offset_mask = (UINT64_C(1) << OFFSET_BITS) - 1;
static const uint64_t generation_mask = UINT64_MAX >> OFFSET_BITS;
static const uint64_t no_generation = UINT64_MAX;

typedef struct claim {
    hf__ids_block ids; /* count 0: none */
    int64_t expires_ns;
    bool crosses; /* the middle of the block */
} claim;

/* ---- Without a lock ---- */

typedef struct view { /* of a slot */
    int64_t first, count, expires_ns;
} view;

static inline bool look(const hf__ids_lease *lease, uint64_t generation, view *v)
{
    const hf__ids_slot *slot = &lease->slots[generation % HF__IDS_SLOTS];
    if (atomic_load_explicit(&slot->generation, memory_order_acquire) != generation)
        return false;
    v->first = atomic_load_explicit(&slot->first, memory_order_acquire);
    v->count = atomic_load_explicit(&slot->count, memory_order_acquire);
    v->expires_ns = atomic_load_explicit(&slot->expires_ns, memory_order_acquire);
    return atomic_load_explicit(&slot->generation, memory_order_relaxed) == generation;
}

/* A block of a single id is one that hardly anybody wants. */
static inline bool crosses(int64_t offset, int64_t count, int64_t all)
{
    return offset <= all / 2 && all / 2 < offset + count && all > 1;
}

static inline bool claim_one(hf__ids_lease *lease, int64_t now_ns, claim *got)
{
    view v;
    uint64_t at = atomic_fetch_add_explicit(&lease->cursor, 1, memory_order_acquire);
    int64_t offset = (int64_t)(at & offset_mask);
    if (!look(lease, at >> OFFSET_BITS, &v) || offset >= v.count || now_ns >= v.expires_ns)
        return false;
    *got = (claim){{v.first + offset, 1}, v.expires_ns, crosses(offset, 1, v.count)};
    return true;
}

static int64_t chunk_of(int64_t count)
{
    int64_t chunk = count / CHUNKS_IN_BLOCK;
    return chunk < 1 ? 1 : chunk < CHUNK_MAX ? chunk : CHUNK_MAX;
}

/* At most so many; 0: a chunk. */
static bool claim_some(hf__ids_lease *lease, int64_t now_ns, int64_t wanted, claim *got)
{
    view v;
    uint64_t at = atomic_load_explicit(&lease->cursor, memory_order_acquire);
    int64_t offset, count;
    do {
        offset = (int64_t)(at & offset_mask);
        if (!look(lease, at >> OFFSET_BITS, &v) || offset >= v.count || now_ns >= v.expires_ns)
            return false;
        count = wanted > 0 ? wanted : chunk_of(v.count);
        if (count > v.count - offset)
            count = v.count - offset;
    } while (!atomic_compare_exchange_weak_explicit(&lease->cursor, &at, at + (uint64_t)count,
                                                    memory_order_acquire, memory_order_acquire));
    *got = (claim){{v.first + offset, count}, v.expires_ns, crosses(offset, count, v.count)};
    return true;
}

/* ---- Blocks: with the mutex ---- */

/* What is left of the current block, and when it expires. */
static int64_t left_of(const hf__ids_lease *lease, view *v)
{
    uint64_t at = atomic_load(&lease->cursor);
    *v = (view){0};
    look(lease, at >> OFFSET_BITS, v); /* true: with the mutex the current one stays */
    return v->count - (int64_t)(at & offset_mask);
}

static bool is_usable(const hf__ids_lease *lease)
{
    view v;
    return left_of(lease, &v) > 0 && hf__clock_coarse().ns < v.expires_ns;
}

/* So that a block lasts for about a second. */
static void adapt(hf__ids_lease *lease, hf__instant now)
{
    view v;
    int64_t left = left_of(lease, &v);
    int64_t lasted_ns = hf__between(lease->installed, now).ns;
    lease->installed = now;
    if (v.count == 0)
        return; /* there was none */
    if (left <= 0 && lasted_ns < hf__span_ms(SHORT_MS).ns && lease->size < HF__IDS_BLOCK_MAX)
        lease->size *= 2;
    else if ((left > 0 || lasted_ns > hf__span_ms(LONG_MS).ns) && lease->size > 1)
        lease->size /= 2;
}

/* The first ones of it are taken. */
static void install(hf__ids_lease *lease, const hf__ids_block *block, hf__instant expires,
                    int64_t taken)
{
    uint64_t generation = (atomic_load(&lease->cursor) >> OFFSET_BITS) + 1;
    generation &= generation_mask;
    hf__ids_slot *slot = &lease->slots[generation % HF__IDS_SLOTS];
    adapt(lease, hf__clock_coarse());
    atomic_store_explicit(&slot->generation, no_generation, memory_order_relaxed);
    atomic_store_explicit(&slot->first, block->first, memory_order_release);
    atomic_store_explicit(&slot->count, block->count, memory_order_release);
    atomic_store_explicit(&slot->expires_ns, expires.ns, memory_order_release);
    atomic_store_explicit(&slot->generation, generation, memory_order_release);
    atomic_store_explicit(&lease->cursor, generation << OFFSET_BITS | (uint64_t)taken,
                          memory_order_release);
    lease->next.count = 0; /* or it would come after larger ones */
}

/* See above: who is behind the end. */
static void put_back(hf__ids_lease *lease)
{
    view v;
    uint64_t at = atomic_load(&lease->cursor);
    if (left_of(lease, &v) < 0)
        atomic_store(&lease->cursor, (at & ~offset_mask) | (uint64_t)v.count);
}

/* Old ids rather than none, for a while. False: there are none. */
static bool use_old(hf__ids_lease *lease)
{
    view v;
    hf__instant expires = hf__after(hf__clock_coarse(), hf__span_ms(OLD_MS));
    hf__ids_block next = lease->next;
    uint64_t generation = atomic_load(&lease->cursor) >> OFFSET_BITS;
    if (left_of(lease, &v) > 0)
        atomic_store(&lease->slots[generation % HF__IDS_SLOTS].expires_ns, expires.ns);
    else if (next.count > 0)
        install(lease, &next, hf__later(expires, lease->next_expires), 0);
    else
        return false;
    return true;
}

/* ---- Fetching: with the mutex, but not all the time ---- */

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
static void fetch_ahead(hf_ids *ids)
{
    hf__ids_lease *lease = &ids->as.lease;
    hf__ids_block block;
    hf__instant expires;
    bool was_gone = lease->outcome.status != HF_OK;
    if (lease->fetching || (lease->next.count > 0 && !was_gone))
        return;
    if (fetch(ids, lease->size, hf__ids_deadline(ids), &block, &expires, NULL) != HF_OK)
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
            fetch_ahead(ids);
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

static void __attribute__((noinline)) crossed(hf_ids *ids)
{
    hf__ids_lease *lease = &ids->as.lease;
    int cancel_state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    pthread_mutex_lock(&lease->mutex);
    if (!ids->client->own_loop)
        wake_thread(ids);
    else if (hf__client_check(ids->client, NULL) == HF_OK)
        fetch_ahead(ids);
    pthread_mutex_unlock(&lease->mutex);
    pthread_setcancelstate(cancel_state, NULL);
}

/* ---- When there are none: with the mutex ---- */

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
static hf_status fetch_now(hf_ids *ids, int64_t wanted, hf__instant ends, claim *got,
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
    int64_t taken = wanted > 0 ? wanted : chunk_of(size);
    install(lease, &block, expires, taken);
    *got = (claim){{block.first, taken}, expires.ns, crosses(0, taken, size)};
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
static hf_status refill_locked(hf_ids *ids, int64_t wanted, hf__instant ends, claim *got,
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

static hf_status refill(hf_ids *ids, int64_t wanted, hf__instant ends, claim *got, hf_error *error)
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

/* ---- Taking ---- */

static hf_status __attribute__((noinline))
take(hf_ids *ids, int64_t wanted, hf__instant ends, claim *got, hf_error *error)
{
    hf_status status = HF_OK;
    while (!claim_some(&ids->as.lease, hf__clock_coarse().ns, wanted, got)) {
        status = refill(ids, wanted, ends, got, error);
        if (status != HF_OK || got->ids.count > 0)
            break;
    }
    if (status == HF_OK && got->crosses)
        crossed(ids);
    return status;
}

static hf_status next_shared(hf_ids *ids, int64_t *plain, hf_error *error)
{
    claim got;
    if (!claim_one(&ids->as.lease, hf__clock_coarse().ns, &got)) {
        hf_status status = take(ids, 1, hf__ids_deadline(ids), &got, error);
        if (status != HF_OK)
            return status;
    } else if (got.crosses) {
        crossed(ids);
    }
    *plain = got.ids.first;
    return HF_OK;
}

/* ---- By thread ---- */

typedef struct chunk { /* what a thread has taken for itself; worth nothing once it is closed */
    uint64_t serial;
    int64_t next, end, expires_ns;
} chunk;

static _Thread_local chunk chunks[CHUNKS];
static _Thread_local unsigned last_chunk;

/* The one of this generator; if there is none, an empty one in the place of another. */
static chunk *find_chunk(const hf_ids *ids)
{
    for (unsigned i = 0; i < CHUNKS; i++)
        if (chunks[i].serial == ids->serial)
            return &chunks[i];
    chunk *place = &chunks[last_chunk++ % CHUNKS];
    *place = (chunk){.serial = ids->serial};
    return place;
}

static inline bool has_left(const chunk *own)
{
    return own->next < own->end && hf__clock_coarse().ns < own->expires_ns;
}

static hf_status next_own(hf_ids *ids, int64_t *plain, hf_error *error)
{
    chunk *own = find_chunk(ids);
    if (!has_left(own)) {
        claim got;
        hf_status status = take(ids, 0, hf__ids_deadline(ids), &got, error);
        if (status != HF_OK)
            return status;
        own->next = got.ids.first;
        own->end = got.ids.first + got.ids.count;
        own->expires_ns = got.expires_ns;
    }
    *plain = own->next++;
    return HF_OK;
}

/* ---- What ids.c sees ---- */

hf_status hf__ids_lease_next(hf_ids *ids, int64_t *plain, hf_error *error)
{
    return ids->by_thread ? next_own(ids, plain, error) : next_shared(ids, plain, error);
}

hf_status hf__ids_lease_some(hf_ids *ids, int64_t count, hf__instant ends, hf__ids_block *part,
                             hf_error *error)
{
    claim got;
    chunk *own = ids->by_thread ? find_chunk(ids) : NULL;
    if (own != NULL && has_left(own)) {
        int64_t left = own->end - own->next;
        *part = (hf__ids_block){own->next, left < count ? left : count};
        own->next += part->count;
        return HF_OK;
    }
    hf_status status = take(ids, count, ends, &got, error);
    if (status == HF_OK)
        *part = got.ids;
    return status;
}

bool hf__ids_lease_init(hf__ids_lease *lease)
{
    lease->size = FIRST_SIZE;
    if (pthread_mutex_init(&lease->mutex, NULL) != 0)
        return false;
    return hf__thread_condition_init(&lease->changed) && hf__thread_condition_init(&lease->work);
}

void hf__ids_lease_end(hf_ids *ids)
{
    hf__ids_lease *lease = &ids->as.lease;
    pthread_mutex_lock(&lease->mutex);
    lease->thread_ends = true;
    pthread_cond_signal(&lease->work);
    pthread_mutex_unlock(&lease->mutex);
    if (lease->thread_runs)
        pthread_join(lease->thread, NULL);
    pthread_cond_destroy(&lease->work);
    pthread_cond_destroy(&lease->changed);
    pthread_mutex_destroy(&lease->mutex);
}
