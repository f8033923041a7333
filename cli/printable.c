/* SPDX-License-Identifier: MIT */
/* Names and labels are whatever somebody has chosen, at another machine perhaps. What reaches a
 * terminal must not be able to move its cursor or paint over what we say. */
#include "printable.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "text.h"

static bool is_control(uint32_t code)
{
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || (code >= 0x200e && code <= 0x200f) ||
           (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

/* How many bytes the printable character there has; 0: it is none. */
static size_t width_of(const char *at, size_t left)
{
    uint32_t code = 0;
    size_t width = text_character(at, left, &code);
    return is_control(code) ? 0 : width;
}

const char *printable(const char *bytes, size_t length, char *place, size_t capacity)
{
    size_t used = 0;
    for (size_t i = 0; i < length;) {
        size_t width = width_of(bytes + i, length - i);
        size_t needed = width > 0 ? width : 4;
        if (used + needed >= capacity)
            break;
        if (width > 0)
            memcpy(place + used, bytes + i, width);
        else
            (void)snprintf(place + used, 5, "\\x%02x", (unsigned char)bytes[i]);
        used += needed;
        i += width > 0 ? width : 1;
    }
    place[used] = '\0';
    return place;
}
