/* SPDX-License-Identifier: MIT */
/* A queue of bytes: appended at the end, taken from the front. Appending is done after a
 * successful reserve, so a message is in the buffer as a whole or not at all. */
#ifndef HF_BASE_BUFFER_H
#define HF_BASE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

typedef struct hf__buffer {
    char *bytes;
    size_t start; /* first byte not yet taken */
    size_t end;   /* one past the last byte */
    size_t capacity;
    bool secret; /* until it is empty: what is taken or moved is wiped */
} hf__buffer;

bool hf__buffer_reserve(hf__buffer *buffer, size_t count); /* false: out of memory, unchanged */
void hf__buffer_append(hf__buffer *buffer, const void *bytes, size_t count);
/* For those who append in place: where the next bytes go, up to `count`; so many are there now. */
char *hf__buffer_room(hf__buffer *buffer, size_t count);
void hf__buffer_added(hf__buffer *buffer, size_t count);
/* What is in it from now on, until it is empty, leaves nothing behind. */
void hf__buffer_keep_secret(hf__buffer *buffer);
void hf__buffer_take(hf__buffer *buffer, size_t count);
void hf__buffer_clear(hf__buffer *buffer);
void hf__buffer_free(hf__buffer *buffer);

static inline size_t hf__buffer_length(const hf__buffer *buffer)
{
    return buffer->end - buffer->start;
}

static inline const char *hf__buffer_front(const hf__buffer *buffer)
{
    return buffer->start > 0 ? buffer->bytes + buffer->start : buffer->bytes; /* may be NULL */
}

#endif
