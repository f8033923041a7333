/* SPDX-License-Identifier: MIT */
/* See buffer.h. The storage grows by doubling and is kept while it is small; a buffer that grew
 * beyond KEEP_MAX for one burst gives its memory back when it is empty, so that an idle client
 * stays small. */
#include "base/buffer.h"

#include <assert.h>
#include <string.h>

#include "base/memory.h"

enum { FIRST_CAPACITY = 1024, KEEP_MAX = 64 * 1024 };

bool hf__buffer_reserve(hf__buffer *buffer, size_t count)
{
    if (buffer->capacity - buffer->end >= count)
        return true;
    size_t length = hf__buffer_length(buffer);
    if (length > 0 && buffer->start > 0)
        memmove(buffer->bytes, buffer->bytes + buffer->start, length);
    buffer->start = 0;
    buffer->end = length;
    size_t capacity = buffer->capacity > 0 ? buffer->capacity : FIRST_CAPACITY;
    while (capacity - length < count)
        capacity *= 2;
    if (capacity == buffer->capacity)
        return true;
    char *bytes = hf__resize(buffer->bytes, capacity);
    if (bytes == NULL)
        return false;
    buffer->bytes = bytes;
    buffer->capacity = capacity;
    return true;
}

void hf__buffer_append(hf__buffer *buffer, const void *bytes, size_t count)
{
    assert(buffer->capacity - buffer->end >= count);
    if (count > 0)
        memcpy(buffer->bytes + buffer->end, bytes, count);
    buffer->end += count;
}

void hf__buffer_take(hf__buffer *buffer, size_t count)
{
    assert(count <= hf__buffer_length(buffer));
    buffer->start += count;
    if (buffer->start == buffer->end)
        hf__buffer_clear(buffer);
}

void hf__buffer_clear(hf__buffer *buffer)
{
    buffer->start = buffer->end = 0;
    if (buffer->capacity > KEEP_MAX)
        hf__buffer_free(buffer);
}

void hf__buffer_free(hf__buffer *buffer)
{
    hf__free(buffer->bytes);
    *buffer = (hf__buffer){0};
}
