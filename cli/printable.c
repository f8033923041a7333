/* SPDX-License-Identifier: MIT */
/* Names and labels are whatever somebody has chosen, at another machine perhaps. What reaches a
 * terminal must not be able to move its cursor or paint over what we say. */
#include "printable.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static bool is_control(uint32_t code)
{
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || (code >= 0x200e && code <= 0x200f) ||
           (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

/* How many bytes the printable character there has; 0: it is none. */
static size_t width_of(const unsigned char *at, size_t left)
{
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t width = at[0] < 0x80 ? 1 : at[0] >= 0xf0 ? 4 : at[0] >= 0xe0 ? 3 : 2;
    if (width == 1)
        return is_control(at[0]) ? 0 : 1;
    if (at[0] < 0xc2 || at[0] > 0xf4 || left < width)
        return 0;
    uint32_t code = at[0] & (0xffU >> (width + 1));
    for (size_t i = 1; i < width; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (at[i] & 0x3f);
    }
    bool good = code >= smallest[width] && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
    return good && !is_control(code) ? width : 0;
}

const char *printable(const char *bytes, size_t length, char *place, size_t capacity)
{
    size_t used = 0;
    for (size_t i = 0; i < length;) {
        size_t width = width_of((const unsigned char *)bytes + i, length - i);
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
