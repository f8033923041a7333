/* SPDX-License-Identifier: MIT */
/* What the servers of a quorum say about a lock, made into one answer. */
#ifndef HF_CORE_AGREE_H
#define HF_CORE_AGREE_H

#include <holdfast.h>

#include <stdbool.h>

#include "resp/encode.h"

typedef struct hf__opinion {   /* of one server */
    const hf_inspection *seen; /* NULL: it has not answered */
    hf__slice value;           /* of the lock's key, as it is; of interest if it is held */
} hf__opinion;

typedef enum hf__agreement {
    HF__AGREE_OPEN, /* those that have not answered decide it */
    HF__AGREE_HELD, /* a majority says so, of the same hold or owner */
    HF__AGREE_FREE  /* a majority has answered, and nobody can have one */
} hf__agreement;

static inline int hf__majority(int count)
{
    return count / 2 + 1;
}

/* Held: *leader is the first of those that agree. */
hf__agreement hf__agree(const hf__opinion *opinions, int count, int *leader);

/* Whether it has the lock for that hold, or owner: as a value of another server says it. */
bool hf__agree_is(const hf__opinion *opinion, bool shared, hf__slice value);

/* Fills it, but for the name, with what is agreed; leader -1: nobody has a majority. */
void hf__agree_merge(const hf__opinion *opinions, int count, int leader, hf_inspection *inspection);

#endif
