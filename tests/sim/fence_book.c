/* SPDX-License-Identifier: MIT */
/* A hash table with open addressing; nothing is ever taken out of it. */
#include <stddef.h>

#include "fence_book.h"

uint64_t fence_book_party(fence_book *book, int lock, uint64_t fence, uint64_t party)
{
    size_t at = (size_t)(fence * 0x9e3779b97f4a7c15u >> 32) % FENCES_MAX;
    while (book->fences[at].fence != 0 &&
           (book->fences[at].fence != fence || book->fences[at].lock != lock))
        at = (at + 1) % FENCES_MAX;
    if (book->fences[at].fence == 0)
        book->fences[at] = (sim_fence){fence, party, lock};
    return book->fences[at].party;
}
