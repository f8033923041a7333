/* SPDX-License-Identifier: MIT */
/* See json.h. The only state is whether the next value needs a comma; an error of writing is kept
 * by standard output until the end. */
#include "json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "text.h"

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

static void put_string(const char *bytes, size_t length)
{
    putchar('"');
    for (size_t i = 0; i < length;) {
        size_t width = text_character(bytes + i, length - i, NULL);
        if (width == 0)
            printf("\\ufffd");
        for (size_t j = 0; j < width; j++)
            put_escaped((unsigned char)bytes[i + j]);
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
