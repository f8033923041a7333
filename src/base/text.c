/* SPDX-License-Identifier: MIT */
/* See text.h. The only file that knows stdio, so that rooms above can format without being able to
 * print. */
#include "base/text.h"

#include <stdio.h>
#include <string.h>

void hf__vformat(char *place, size_t capacity, const char *format, va_list arguments)
{
    if (vsnprintf(place, capacity, format, arguments) < 0 && capacity > 0)
        place[0] = '\0';
}

void hf__format(char *place, size_t capacity, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    hf__vformat(place, capacity, format, arguments);
    va_end(arguments);
}

/* Every word of a request has its length before it, and many are numbers: so it is done by twos. */
size_t hf__digits(char *digits, uint64_t number)
{
    static const char twos[] = "00010203040506070809101112131415161718192021222324"
                               "25262728293031323334353637383940414243444546474849"
                               "50515253545556575859606162636465666768697071727374"
                               "75767778798081828384858687888990919293949596979899";
    size_t count = 1;
    for (uint64_t limit = 10; count < 20 && number >= limit; limit *= 10)
        count++;
    char *first = digits + count;
    for (; number >= 10; number /= 100)
        memcpy(first -= 2, twos + number % 100 * 2, 2);
    if (first > digits)
        *digits = (char)('0' + number);
    return count;
}

void hf__printable(char *place, size_t capacity, const char *bytes, size_t count)
{
    if (capacity == 0)
        return;
    size_t length = count < capacity - 1 ? count : capacity - 1;
    for (size_t i = 0; i < length; i++)
        place[i] = (char)(bytes[i] >= ' ' && bytes[i] <= '~' ? bytes[i] : '?');
    place[length] = '\0';
}

bool hf__parse_decimal(const char *text, size_t length, uint64_t max, uint64_t *number)
{
    uint64_t value = 0;
    if (length == 0)
        return false;
    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        uint64_t digit = (uint64_t)(text[i] - '0');
        if (digit > max || value > (max - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    *number = value;
    return true;
}

size_t hf__parse_leading(const char *text, size_t length, uint64_t max, uint64_t *number)
{
    size_t digits = 0;
    while (digits < length && text[digits] >= '0' && text[digits] <= '9')
        digits++;
    return hf__parse_decimal(text, digits, max, number) ? digits : 0;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

int hf__percent(const char *at, size_t left)
{
    int high = left > 2 ? hex_digit(at[1]) : -1;
    int low = high >= 0 ? hex_digit(at[2]) : -1;
    return low >= 0 ? high * 16 + low : -1;
}
