/* SPDX-License-Identifier: MIT */
/* See encode.h. */
#include "resp/encode.h"

#include <string.h>

#include "base/text.h"

enum { HEADER_MAX = 1 + 20 + 2, TRAILER = 2 };

hf__slice hf__slice_text(const char *text)
{
    return (hf__slice){text, strlen(text)};
}

char *hf__slice_put(char *place, hf__slice slice)
{
    if (slice.length > 0)
        memcpy(place, slice.bytes, slice.length);
    return place + slice.length;
}

bool hf__slice_begins(hf__slice slice, hf__slice start)
{
    return slice.length >= start.length && memcmp(slice.bytes, start.bytes, start.length) == 0;
}

static char *put_end_of_line(char *place)
{
    *place++ = '\r';
    *place++ = '\n';
    return place;
}

static char *put_header(char *place, char kind, size_t number)
{
    *place++ = kind;
    return put_end_of_line(place + hf__digits(place, number));
}

bool hf__resp_reserve(hf__buffer *out, size_t count, size_t bytes)
{
    return hf__buffer_reserve(out, HEADER_MAX + count * (HEADER_MAX + TRAILER) + bytes);
}

/* Both write into the room that was reserved, without further ado: a request has some twenty words,
 * and they are most of what a call costs besides the system's own work. */
void hf__resp_begin(hf__buffer *out, size_t count)
{
    char *place = hf__buffer_room(out, HEADER_MAX);
    hf__buffer_added(out, (size_t)(put_header(place, '*', count) - place));
}

void hf__resp_word(hf__buffer *out, hf__slice word)
{
    char *place = hf__buffer_room(out, HEADER_MAX + word.length + TRAILER);
    char *end = hf__slice_put(put_header(place, '$', word.length), word);
    hf__buffer_added(out, (size_t)(put_end_of_line(end) - place));
}

bool hf__resp_encode(hf__buffer *out, const hf__slice *words, size_t count)
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += words[i].length;
    if (!hf__resp_reserve(out, count, bytes))
        return false;
    hf__resp_begin(out, count);
    for (size_t i = 0; i < count; i++)
        hf__resp_word(out, words[i]);
    return true;
}
