/* SPDX-License-Identifier: MIT */
/* See reply.h. All replies of the model are made here, as bytes from the beginning: the script host
 * reads them back as Redis' own does, so a command has one way to answer and needs to know nothing
 * of who asked.
 */
#include "reply.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void line(sim_buffer *out, char kind, const char *text, size_t length)
{
    char *place = sim_buffer_room(out, length + 3);
    place[0] = kind;
    memcpy(place + 1, text, length);
    memcpy(place + 1 + length, "\r\n", 2);
    out->end += length + 3;
}

static void number_line(sim_buffer *out, char kind, int64_t number)
{
    char digits[21];
    line(out, kind, digits, sim_print_integer(digits, number));
}

/* Line ends within become blanks, since the line's own end must be the first. */
static void text_line(sim_buffer *out, char kind, const char *text, size_t length)
{
    line(out, kind, text, length);
    char *written = out->bytes + out->end - 2 - length;
    for (size_t i = 0; i < length; i++)
        if (written[i] == '\r' || written[i] == '\n')
            written[i] = ' ';
}

void sim_reply_status(sim_buffer *out, const char *text)
{
    text_line(out, '+', text, strlen(text));
}

void sim_reply_ok(sim_buffer *out)
{
    line(out, '+', "OK", 2);
}

void sim_reply_error(sim_buffer *out, const char *text)
{
    size_t length = strlen(text);
    while (length > 0 && (text[length - 1] == '\r' || text[length - 1] == '\n'))
        length--;
    text_line(out, '-', text, length);
}

void sim_reply_errorf(sim_buffer *out, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    sim_reply_error(out, text);
}

void sim_reply_integer(sim_buffer *out, int64_t number)
{
    number_line(out, ':', number);
}

void sim_reply_bulk(sim_buffer *out, hf__slice slice)
{
    number_line(out, '$', (int64_t)slice.length);
    sim_buffer_append(out, slice.bytes, slice.length);
    sim_buffer_append(out, "\r\n", 2);
}

void sim_reply_text(sim_buffer *out, const char *text)
{
    sim_reply_bulk(out, hf__slice_text(text));
}

void sim_reply_double(sim_buffer *out, double number)
{
    char text[64];
    if (isinf(number))
        (void)snprintf(text, sizeof(text), "%s", number > 0 ? "inf" : "-inf");
    else
        (void)snprintf(text, sizeof(text), "%.17g", number);
    sim_reply_text(out, text);
}

void sim_reply_nil(sim_buffer *out)
{
    sim_buffer_append(out, "$-1\r\n", 5);
}

void sim_reply_nil_array(sim_buffer *out)
{
    sim_buffer_append(out, "*-1\r\n", 5);
}

void sim_reply_array(sim_buffer *out, size_t count)
{
    number_line(out, '*', (int64_t)count);
}

static const char *show_elements(const char *reply, long long count, sim_buffer *shown)
{
    sim_buffer_append(shown, "[", 1);
    for (long long i = 0; i < count; i++) {
        if (i > 0)
            sim_buffer_append(shown, " ", 1);
        reply = sim_reply_show(reply, shown);
    }
    sim_buffer_append(shown, "]", 1);
    return reply;
}

const char *sim_reply_show(const char *reply, sim_buffer *shown)
{
    const char *end = strchr(reply, '\r');
    const char *next = end + 2;
    long long number = strtoll(reply + 1, NULL, 10);
    if ((*reply == '$' || *reply == '*') && number < 0) {
        sim_buffer_append(shown, "(nil)", 5);
    } else if (*reply == '$') {
        sim_buffer_append(shown, next, (size_t)number);
        next += number + 2;
    } else if (*reply == '*') {
        next = show_elements(next, number, shown);
    } else {
        const char *from = *reply == '-' ? reply : reply + 1;
        sim_buffer_append(shown, from, (size_t)(end - from));
    }
    return next;
}
