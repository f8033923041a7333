/* SPDX-License-Identifier: MIT */
/* A keyed permutation of the positive numbers of 63 bits. */
#ifndef HF_BASE_SHUFFLE_H
#define HF_BASE_SHUFFLE_H

#include <stddef.h>
#include <stdint.h>

enum { HF__SHUFFLE_ROUNDS = 8 };

typedef struct hf__shuffle {
    uint64_t keys[HF__SHUFFLE_ROUNDS][2];
} hf__shuffle;

void hf__shuffle_init(hf__shuffle *shuffle, const void *key, size_t length);
/* Of a positive number; so is the result, and no other number has the same one. */
int64_t hf__shuffle_do(const hf__shuffle *shuffle, int64_t number);
int64_t hf__shuffle_undo(const hf__shuffle *shuffle, int64_t number);

#endif
