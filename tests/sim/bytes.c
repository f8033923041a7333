/* SPDX-License-Identifier: MIT */
/* See bytes.h. Numbers are parsed as Redis' string2ll and string2d do it, because scripts and tests
 * may depend on what it refuses. A lack of memory aborts: a simulation that goes on without its
 * server would prove nothing.
 */
#include "bytes.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"

void *sim_alloc(size_t size)
{
    void *block = calloc(1, size > 0 ? size : 1);
    if (block == NULL)
        abort();
    return block;
}

void *sim_resize(void *block, size_t size)
{
    block = realloc(block, size > 0 ? size : 1);
    if (block == NULL)
        abort();
    return block;
}

sim_bytes sim_bytes_copy(hf__slice slice)
{
    sim_bytes copy = {sim_resize(NULL, slice.length + 1), slice.length};
    if (slice.length > 0)
        memcpy(copy.bytes, slice.bytes, slice.length);
    copy.bytes[slice.length] = '\0';
    return copy;
}

void sim_bytes_set(sim_bytes *bytes, hf__slice slice)
{
    sim_bytes copy = sim_bytes_copy(slice);
    sim_bytes_free(bytes);
    *bytes = copy;
}

void sim_bytes_free(sim_bytes *bytes)
{
    free(bytes->bytes);
    *bytes = (sim_bytes){NULL, 0};
}

char *sim_buffer_room(sim_buffer *buffer, size_t count)
{
    if (buffer->capacity - buffer->end < count) {
        size_t length = buffer->end - buffer->start;
        if (buffer->start > 0 && length > 0)
            memmove(buffer->bytes, buffer->bytes + buffer->start, length);
        buffer->start = 0;
        buffer->end = length;
        if (buffer->capacity - length < count) {
            buffer->capacity = (length + count) * 2 + 64;
            buffer->bytes = sim_resize(buffer->bytes, buffer->capacity);
        }
    }
    return buffer->bytes + buffer->end;
}

void sim_buffer_append(sim_buffer *buffer, const void *bytes, size_t count)
{
    if (count == 0)
        return;
    memcpy(sim_buffer_room(buffer, count), bytes, count);
    buffer->end += count;
}

void sim_buffer_take(sim_buffer *buffer, size_t count)
{
    buffer->start += count;
    if (buffer->start >= buffer->end)
        sim_buffer_clear(buffer);
}

void sim_buffer_clear(sim_buffer *buffer)
{
    buffer->start = buffer->end = 0;
}

void sim_buffer_free(sim_buffer *buffer)
{
    free(buffer->bytes);
    *buffer = (sim_buffer){NULL, 0, 0, 0};
}

int sim_compare(hf__slice a, hf__slice b)
{
    size_t common = a.length < b.length ? a.length : b.length;
    int order = common > 0 ? memcmp(a.bytes, b.bytes, common) : 0;
    if (order != 0)
        return order;
    return (a.length > b.length) - (a.length < b.length);
}

bool sim_equal(hf__slice a, hf__slice b)
{
    return a.length == b.length && (a.length == 0 || memcmp(a.bytes, b.bytes, a.length) == 0);
}

bool sim_is(hf__slice word, const char *text)
{
    return strlen(text) == word.length && strncasecmp(word.bytes, text, word.length) == 0;
}

bool sim_parse_integer(hf__slice word, int64_t *number)
{
    bool negative = word.length > 0 && word.bytes[0] == '-';
    size_t at = negative ? 1 : 0;
    if (word.length == at || word.length > 20)
        return false;
    if (word.bytes[at] == '0' && (word.length > at + 1 || negative))
        return false;
    uint64_t limit = (uint64_t)INT64_MAX + (negative ? 1 : 0);
    uint64_t value = 0;
    for (; at < word.length; at++) {
        unsigned digit = (unsigned char)word.bytes[at] - (unsigned)'0';
        if (digit > 9 || value > (limit - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    *number = negative ? (int64_t)(0 - value) : (int64_t)value;
    return true;
}

bool sim_parse_double(hf__slice word, double *number)
{
    char text[256];
    if (word.length == 0 || word.length >= sizeof(text) || isspace((unsigned char)word.bytes[0]))
        return false;
    memcpy(text, word.bytes, word.length);
    text[word.length] = '\0';
    char *end = NULL;
    errno = 0;
    double value = strtod(text, &end);
    if (end != text + word.length || isnan(value))
        return false;
    if (errno == ERANGE && (isinf(value) || fpclassify(value) == FP_ZERO))
        return false;
    *number = value;
    return true;
}

size_t sim_print_integer(char digits[21], int64_t number)
{
    uint64_t size = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    digits[0] = '-';
    return number < 0 ? hf__digits(digits + 1, size) + 1 : hf__digits(digits, size);
}

size_t sim_print_number(char text[40], double number)
{
    bool whole = number > -1e15 && number < 1e15 && !(number < floor(number)) &&
                 !(number > floor(number)) && !signbit(number);
    return whole ? sim_print_integer(text, (int64_t)number)
                 : (size_t)snprintf(text, 40, "%.17g", number);
}
