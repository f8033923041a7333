/* SPDX-License-Identifier: MIT */
/* See buffer.h. The storage grows by doubling and is kept while it is small; a buffer that grew
 * beyond KEEP_MAX for one burst gives its memory back when it is empty, so that an idle client
 * stays small. What is secret is wiped when it is taken, moved or dropped. */
#include "base/buffer.h"

#include <assert.h>
#include <string.h>

#include "base/memory.h"

enum { FIRST_CAPACITY = 1024, KEEP_MAX = 64 * 1024 };

/* As hf__resize(), which may leave a copy in memory that is not ours any more. */
static char *resize(hf__buffer *buffer, size_t capacity)
{
    if (!buffer->secret)
        return hf__resize(buffer->bytes, capacity);
    char *bytes = hf__alloc(capacity);
    if (bytes == NULL)
        return NULL;
    if (buffer->end > 0)
        memcpy(bytes, buffer->bytes, buffer->end);
    hf__wipe(buffer->bytes, buffer->end);
    hf__free(buffer->bytes);
    return bytes;
}

static void move_to_front(hf__buffer *buffer)
{
    size_t length = hf__buffer_length(buffer);
    if (length > 0 && buffer->start > 0)
        memmove(buffer->bytes, buffer->bytes + buffer->start, length);
    if (buffer->secret && buffer->end > length)
        hf__wipe(buffer->bytes + length, buffer->end - length);
    buffer->start = 0;
    buffer->end = length;
}

bool hf__buffer_reserve(hf__buffer *buffer, size_t count)
{
    if (buffer->capacity - buffer->end >= count)
        return true;
    move_to_front(buffer);
    size_t length = buffer->end;
    size_t capacity = buffer->capacity > 0 ? buffer->capacity : FIRST_CAPACITY;
    while (capacity - length < count)
        capacity *= 2;
    if (capacity == buffer->capacity)
        return true;
    char *bytes = resize(buffer, capacity);
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

char *hf__buffer_room(hf__buffer *buffer, size_t count)
{
    assert(buffer->capacity - buffer->end >= count);
    (void)count;
    return buffer->bytes + buffer->end;
}

void hf__buffer_added(hf__buffer *buffer, size_t count)
{
    assert(buffer->capacity - buffer->end >= count);
    buffer->end += count;
}

void hf__buffer_keep_secret(hf__buffer *buffer)
{
    buffer->secret = true;
}

void hf__buffer_take(hf__buffer *buffer, size_t count)
{
    assert(count <= hf__buffer_length(buffer));
    if (buffer->secret)
        hf__wipe(buffer->bytes + buffer->start, count);
    buffer->start += count;
    if (buffer->start == buffer->end)
        hf__buffer_clear(buffer);
}

static void wipe_rest(hf__buffer *buffer)
{
    if (buffer->secret && hf__buffer_length(buffer) > 0)
        hf__wipe(buffer->bytes + buffer->start, hf__buffer_length(buffer));
}

void hf__buffer_clear(hf__buffer *buffer)
{
    if (buffer->capacity > KEEP_MAX) {
        hf__buffer_free(buffer);
        return;
    }
    wipe_rest(buffer);
    buffer->secret = false;
    buffer->start = buffer->end = 0;
}

void hf__buffer_free(hf__buffer *buffer)
{
    wipe_rest(buffer);
    hf__free(buffer->bytes);
    *buffer = (hf__buffer){0};
}
