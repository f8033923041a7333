/* SPDX-License-Identifier: MIT */
/* See json.h. The only state is whether the next value needs a comma; an error of writing is kept
 * by standard output until the end. */
#include "json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool needs_comma;

static void put_escaped(unsigned char c)
{
    if (c == '"' || c == '\\')
        printf("\\%c", c);
    else if (c == '\n')
        printf("\\n");
    else if (c < 0x20 || c == 0x7f)
        printf("\\u%04x", c);
    else
        putchar(c);
}

/* How many bytes the UTF-8 character there has; 0: it is none. */
static size_t utf8_length(const unsigned char *at, size_t left)
{
    size_t length = at[0] < 0x80 ? 1 : at[0] >= 0xf0 ? 4 : at[0] >= 0xe0 ? 3 : 2;
    uint32_t code = at[0] & (0xffU >> (length == 1 ? 0 : length + 1));
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    if (length == 1)
        return 1;
    if (at[0] < 0xc2 || at[0] > 0xf4 || left < length)
        return 0;
    for (size_t i = 1; i < length; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (at[i] & 0x3f);
    }
    bool valid = code >= smallest[length] && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
    return valid ? length : 0;
}

static void put_string(const char *bytes, size_t length)
{
    const unsigned char *at = (const unsigned char *)bytes;
    putchar('"');
    for (size_t i = 0; i < length;) {
        size_t width = utf8_length(at + i, length - i);
        if (width == 0)
            printf("\\ufffd");
        for (size_t j = 0; j < width; j++)
            put_escaped(at[i + j]);
        i += width > 0 ? width : 1;
    }
    putchar('"');
}

static void begin_value(const char *key)
{
    if (needs_comma)
        putchar(',');
    if (key != NULL) {
        put_string(key, strlen(key));
        putchar(':');
    }
    needs_comma = true;
}

void json_begin_object(const char *key)
{
    begin_value(key);
    putchar('{');
    needs_comma = false;
}

void json_end_object(void)
{
    putchar('}');
    needs_comma = true;
}

void json_begin_array(const char *key)
{
    begin_value(key);
    putchar('[');
    needs_comma = false;
}

void json_end_array(void)
{
    putchar(']');
    needs_comma = true;
}

void json_bytes(const char *key, const char *bytes, size_t length)
{
    begin_value(key);
    put_string(bytes, length);
}

void json_text(const char *key, const char *text)
{
    json_bytes(key, text, strlen(text));
}

void json_number(const char *key, int64_t number)
{
    begin_value(key);
    printf("%" PRId64, number);
}

void json_unsigned(const char *key, uint64_t number)
{
    begin_value(key);
    printf("%" PRIu64, number);
}

void json_bool(const char *key, bool value)
{
    begin_value(key);
    printf(value ? "true" : "false");
}

void json_null(const char *key)
{
    begin_value(key);
    printf("null");
}

bool json_finish(void)
{
    putchar('\n');
    needs_comma = false;
    return fflush(stdout) == 0 && ferror(stdout) == 0;
}
