/* SPDX-License-Identifier: MIT */
/* The comparison of the model server with a real one: the same commands to both, every reply
 * compared. */
#ifndef HF_SIM_HONESTY_H
#define HF_SIM_HONESTY_H

#include <stdint.h>

/* Fails the cmocka test at the first difference, with what led to it. Prints how much of what was
 * compared. */
void honesty_compare(uint64_t seed, int64_t operations);

/* Prints how fast the model is. */
int model_bench(void);

#endif
