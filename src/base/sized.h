/* SPDX-License-Identifier: MIT */
/* Structs of options that may grow at their end, and carry their size. A caller that was compiled
 * against an older header passes a smaller one and gets zeros, that is defaults, for the rest. A
 * newer one passes a larger one, which is accepted as long as what we do not know is zero. */
#ifndef HF_BASE_SIZED_H
#define HF_BASE_SIZED_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static inline bool hf__sized_is_plausible(size_t given_size)
{
    return given_size != 0 && given_size % sizeof(size_t) == 0 && given_size <= 65536;
}

/* Copies what both know into `place`, which is all zero. False: there is more than we know. */
static inline bool hf__sized_copy(const void *given, size_t given_size, void *place, size_t size)
{
    const char *bytes = given;
    for (size_t i = size; i < given_size; i++)
        if (bytes[i] != 0)
            return false;
    memcpy(place, given, given_size < size ? given_size : size);
    return true;
}

#endif
