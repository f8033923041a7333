/* SPDX-License-Identifier: MIT */
/* Ids as numbers, and how blocks of them are reserved at servers. Pure: questions to be asked, and
 * what their answers come to. See holdfast_ids.h for the words. */
#ifndef HF_CORE_IDS_H
#define HF_CORE_IDS_H

#include "core/core.h"

enum { HF__IDS_SEQUENCE_BITS = 32, HF__IDS_PART_BITS = 31 };

typedef struct hf__ids_config {
    hf__slice prefix, name; /* must outlive what is made of it */
    int64_t epoch_s;
    int64_t skew_s; /* that clocks may be apart */
} hf__ids_config;

typedef struct hf__ids_block { /* ids from the first on, without a key */
    int64_t first;
    int64_t count;
} hf__ids_block;

/* `seen` is always the id behind the highest that this client has ever been given; 0: none. */

/* ---- One server ---- */

hf__query *hf__ids_ask(const hf__ids_config *config, int64_t seen, int64_t count); /* or NULL */
/* HF_OK, HF_EINVAL (another epoch), HF_ESERVER (used up, or nonsense). */
hf_status hf__ids_ask_outcome(const hf__ids_config *config, const hf__numbers *said, int64_t count,
                              hf__ids_block *block, hf_error *error);

/* ---- A quorum, under the lock of hf__ids_lock_name(), with its fence ---- */

typedef struct hf__ids_choice { /* a block, and the server processes that may keep it: */
    hf__ids_block block;
    int asked;                         /* so many, */
    int64_t processes[HF_SERVERS_MAX]; /* by whose answers it was chosen */
} hf__ids_choice;

/* First all are asked what they know; then told what to keep. NULL: out of memory. */
hf__query *hf__ids_ask_votes(const hf__ids_config *config, uint64_t fence);
/* What a majority has said, by server; count 0: nothing. HF_OK: *choice is to be kept, and
 * nobody's before it is. HF_EBUSY: somebody newer has the lock. HF_EINVAL, HF_ESERVER. */
hf_status hf__ids_choose(const hf__ids_config *config, const hf__numbers *said, int servers,
                         int64_t seen, int64_t count, hf__ids_choice *choice, hf_error *error);
hf__query *hf__ids_keep(const hf__ids_config *config, uint64_t fence, const hf__ids_choice *choice);
/* HF_OK: a majority keeps it, it is ours. HF_EBUSY: it is not. HF_EINVAL, HF_ESERVER. */
hf_status hf__ids_keep_outcome(const hf__ids_config *config, const hf__numbers *said, int servers,
                               hf_error *error);

#define HF__IDS_LOCK_EXTRA 7 /* bytes that the lock's name has more than that of the ids */

/* The name of that lock, which no application can have; under the same prefix. Returns its length.
 */
size_t hf__ids_lock_name(char *place, hf__slice name);

/* ---- Numbers ---- */

static inline int64_t hf__ids_make(int64_t part, int64_t sequence)
{
    return (int64_t)((uint64_t)part << HF__IDS_SEQUENCE_BITS) + sequence;
}

static inline int64_t hf__ids_part(int64_t plain)
{
    return plain >> HF__IDS_SEQUENCE_BITS;
}

static inline uint32_t hf__ids_sequence(int64_t plain)
{
    return (uint32_t)plain;
}

#endif
