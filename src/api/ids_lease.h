/* SPDX-License-Identifier: MIT */
/* What ids_lease.c (without a lock) and ids_fetch.c (with one) both know of blocks. */
#ifndef HF_API_IDS_LEASE_H
#define HF_API_IDS_LEASE_H

#include "api/ids.h"

enum {
    HF__IDS_OFFSET_BITS = 26,   /* of the cursor; the generation is above */
    HF__IDS_CHUNK_MAX = 256,    /* ids that a thread takes for itself, */
    HF__IDS_CHUNKS_IN_BLOCK = 8 /* and how often that can be done at least */
};

#define HF__IDS_OFFSET_MASK ((UINT64_C(1) << HF__IDS_OFFSET_BITS) - 1)

typedef struct hf__ids_claim {
    hf__ids_block ids; /* count 0: none */
    int64_t expires_ns;
    bool crosses; /* the middle of the block */
} hf__ids_claim;

typedef struct hf__ids_view { /* of a slot */
    int64_t first, count, expires_ns;
} hf__ids_view;

static inline bool hf__ids_look(const hf__ids_lease *lease, uint64_t generation, hf__ids_view *v)
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
static inline bool hf__ids_crosses(int64_t offset, int64_t count, int64_t all)
{
    return offset <= all / 2 && all / 2 < offset + count && all > 1;
}

static inline int64_t hf__ids_chunk_of(int64_t count)
{
    int64_t chunk = count / HF__IDS_CHUNKS_IN_BLOCK;
    return chunk < 1 ? 1 : chunk < HF__IDS_CHUNK_MAX ? chunk : HF__IDS_CHUNK_MAX;
}

/* ids_fetch.c: there are none, or they are old. HF_OK: *got so many (0: a chunk), or try again. */
hf_status hf__ids_refill(hf_ids *ids, int64_t wanted, hf__instant ends, hf__ids_claim *got,
                         hf_error *error);
/* ids_fetch.c: half of a block is used, in a call that must be over by then. */
void hf__ids_crossed(hf_ids *ids, hf__instant ends);

#endif
