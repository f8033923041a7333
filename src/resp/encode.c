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

static void append_header(hf__buffer *out, char kind, size_t number)
{
    char header[HEADER_MAX];
    header[0] = kind;
    size_t length = 1 + hf__digits(header + 1, number);
    header[length++] = '\r';
    header[length++] = '\n';
    hf__buffer_append(out, header, length);
}

bool hf__resp_encode(hf__buffer *out, const hf__slice *words, size_t count)
{
    size_t size = HEADER_MAX;
    for (size_t i = 0; i < count; i++)
        size += HEADER_MAX + words[i].length + TRAILER;
    if (!hf__buffer_reserve(out, size))
        return false;
    append_header(out, '*', count);
    for (size_t i = 0; i < count; i++) {
        append_header(out, '$', words[i].length);
        hf__buffer_append(out, words[i].bytes, words[i].length);
        hf__buffer_append(out, "\r\n", 2);
    }
    return true;
}
