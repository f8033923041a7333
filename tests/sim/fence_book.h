/* SPDX-License-Identifier: MIT */
/* Every fence that was ever granted, and whose it is: no two parties may have the same one. */
#ifndef HF_SIM_FENCE_BOOK_H
#define HF_SIM_FENCE_BOOK_H

#include <stdint.h>

enum { FENCES_MAX = 8192 }; /* a power of two */

typedef struct sim_fence {
    uint64_t fence; /* 0: none */
    uint64_t party;
    int lock;
} sim_fence;

typedef struct fence_book {
    sim_fence fences[FENCES_MAX];
} fence_book;

/* The first party that had the fence; it is noted if nobody had. */
uint64_t fence_book_party(fence_book *book, int lock, uint64_t fence, uint64_t party);

#endif
