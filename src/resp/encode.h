/* SPDX-License-Identifier: MIT */
/* Requests on the wire: an array of bulk strings, as every Redis since 1.2 reads it. */
#ifndef HF_RESP_ENCODE_H
#define HF_RESP_ENCODE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"

typedef struct hf__slice {
    const char *bytes;
    size_t length;
} hf__slice;

#define HF__SLICE(literal) ((hf__slice){"" literal, sizeof(literal) - 1})

hf__slice hf__slice_text(const char *text);

/* Appends one command as a whole, or nothing and false when memory is short. */
bool hf__resp_encode(hf__buffer *out, const hf__slice *words, size_t count);

#endif
