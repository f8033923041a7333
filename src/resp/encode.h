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
char *hf__slice_put(char *place, hf__slice slice); /* copies it there; returns the end */
bool hf__slice_begins(hf__slice slice, hf__slice start);

/* Appends one command as a whole, or nothing and false when memory is short. */
bool hf__resp_encode(hf__buffer *out, const hf__slice *words, size_t count);

/* The same in pieces, for words that are not all at hand at once: make room for so many words of so
 * many bytes together, or fail; then begin, and append exactly that many. */
bool hf__resp_reserve(hf__buffer *out, size_t count, size_t bytes);
void hf__resp_begin(hf__buffer *out, size_t count);
void hf__resp_word(hf__buffer *out, hf__slice word);

#endif
