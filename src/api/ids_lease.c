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
 * Where blocks come from is in ids_fetch.c. */
#include "api/ids_lease.h"
#include "net/clock.h"
#include "net/thread.h"

enum {
    FIRST_SIZE = 64,
    CHUNKS = 4 /* that a thread keeps, of as many generators */
};

/* ---- Without a lock ---- */

static inline bool claim_one(hf__ids_lease *lease, int64_t now_ns, hf__ids_claim *got)
{
    hf__ids_view v;
    uint64_t at = atomic_fetch_add_explicit(&lease->cursor, 1, memory_order_acquire);
    int64_t offset = (int64_t)(at & HF__IDS_OFFSET_MASK);
    if (!hf__ids_look(lease, at >> HF__IDS_OFFSET_BITS, &v) || offset >= v.count ||
        now_ns >= v.expires_ns)
        return false;
    *got =
        (hf__ids_claim){{v.first + offset, 1}, v.expires_ns, hf__ids_crosses(offset, 1, v.count)};
    return true;
}

/* At most so many; 0: a chunk. */
static bool claim_some(hf__ids_lease *lease, int64_t now_ns, int64_t wanted, hf__ids_claim *got)
{
    hf__ids_view v;
    uint64_t at = atomic_load_explicit(&lease->cursor, memory_order_acquire);
    int64_t offset, count;
    do {
        offset = (int64_t)(at & HF__IDS_OFFSET_MASK);
        if (!hf__ids_look(lease, at >> HF__IDS_OFFSET_BITS, &v) || offset >= v.count ||
            now_ns >= v.expires_ns)
            return false;
        count = wanted > 0 ? wanted : hf__ids_chunk_of(v.count);
        if (count > v.count - offset)
            count = v.count - offset;
    } while (!atomic_compare_exchange_weak_explicit(&lease->cursor, &at, at + (uint64_t)count,
                                                    memory_order_acquire, memory_order_acquire));
    *got = (hf__ids_claim){
        {v.first + offset, count}, v.expires_ns, hf__ids_crosses(offset, count, v.count)};
    return true;
}

/* ---- Taking ---- */

static hf_status __attribute__((noinline))
take(hf_ids *ids, int64_t wanted, hf__instant ends, hf__ids_claim *got, hf_error *error)
{
    hf_status status = HF_OK;
    while (!claim_some(&ids->as.lease, hf__clock_coarse().ns, wanted, got)) {
        status = hf__ids_refill(ids, wanted, ends, got, error);
        if (status != HF_OK || got->ids.count > 0)
            break;
    }
    if (status == HF_OK && got->crosses)
        hf__ids_crossed(ids, ends);
    return status;
}

static hf_status next_shared(hf_ids *ids, int64_t *plain, hf_error *error)
{
    hf__ids_claim got;
    if (!claim_one(&ids->as.lease, hf__clock_coarse().ns, &got)) {
        hf_status status = take(ids, 1, hf__ids_deadline(ids), &got, error);
        if (status != HF_OK)
            return status;
    } else if (got.crosses) {
        hf__ids_crossed(ids, hf__ids_deadline(ids));
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
        hf__ids_claim got;
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
    hf__ids_claim got;
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
    int cancel_state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    pthread_mutex_lock(&lease->mutex);
    lease->thread_ends = true;
    pthread_cond_signal(&lease->work);
    pthread_mutex_unlock(&lease->mutex);
    if (lease->thread_runs)
        pthread_join(lease->thread, NULL);
    pthread_cond_destroy(&lease->work);
    pthread_cond_destroy(&lease->changed);
    pthread_mutex_destroy(&lease->mutex);
    pthread_setcancelstate(cancel_state, NULL);
}
