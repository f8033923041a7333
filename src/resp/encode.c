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

static void append_header(hf__buffer *out, char kind, size_t number)
{
    char header[HEADER_MAX];
    header[0] = kind;
    size_t length = 1 + hf__digits(header + 1, number);
    header[length++] = '\r';
    header[length++] = '\n';
    hf__buffer_append(out, header, length);
}

bool hf__resp_reserve(hf__buffer *out, size_t count, size_t bytes)
{
    return hf__buffer_reserve(out, HEADER_MAX + count * (HEADER_MAX + TRAILER) + bytes);
}

void hf__resp_begin(hf__buffer *out, size_t count)
{
    append_header(out, '*', count);
}

void hf__resp_word(hf__buffer *out, hf__slice word)
{
    append_header(out, '$', word.length);
    hf__buffer_append(out, word.bytes, word.length);
    hf__buffer_append(out, "\r\n", TRAILER);
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
