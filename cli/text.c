/* SPDX-License-Identifier: MIT */
/* Characters are told apart here, in one place, for everybody who prints bytes (printable.c,
 * json.c); and columns are counted for what is to be lined up. */
#include "text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- Characters ---- */

size_t text_character(const char *bytes, size_t left, uint32_t *code)
{
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *at = (const unsigned char *)bytes;
    size_t length = at[0] < 0x80 ? 1 : at[0] >= 0xf0 ? 4 : at[0] >= 0xe0 ? 3 : 2;
    uint32_t found = at[0] & (0xffU >> (length == 1 ? 0 : length + 1));
    if (length > left || (length > 1 && (at[0] < 0xc2 || at[0] > 0xf4)))
        return 0;
    for (size_t i = 1; i < length; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return 0;
        found = found << 6 | (at[i] & 0x3f);
    }
    if (found < smallest[length] || found > 0x10ffff || (found >= 0xd800 && found <= 0xdfff))
        return 0;
    if (code != NULL)
        *code = found;
    return length;
}

/* ---- Columns ---- */

/* Near enough to line up a table: East Asian characters and pictures take two. */
static size_t columns_of(uint32_t code)
{
    static const struct {
        uint32_t first, last;
    } wide[] = {{0x1100, 0x115f}, {0x2e80, 0xa4cf}, {0xac00, 0xd7a3},   {0xf900, 0xfaff},
                {0xfe30, 0xfe6f}, {0xff00, 0xff60}, {0x1f300, 0x1faff}, {0x20000, 0x3fffd}};
    if (code >= 0x300 && code <= 0x36f) /* put on top of the one before */
        return 0;
    for (size_t i = 0; i < sizeof(wide) / sizeof(wide[0]); i++)
        if (code >= wide[i].first && code <= wide[i].last)
            return 2;
    return 1;
}

/* Walks over at most `limit` columns; tells how many, and how many bytes. */
static size_t walk(const char *text, size_t limit, size_t *columns)
{
    size_t length = strlen(text), at = 0;
    *columns = 0;
    while (at < length) {
        uint32_t code = 0;
        size_t bytes = text_character(text + at, length - at, &code);
        size_t more = columns_of(code);
        if (bytes == 0 || *columns + more > limit)
            break;
        *columns += more;
        at += bytes;
    }
    return at;
}

size_t text_width(const char *text)
{
    size_t columns;
    (void)walk(text, SIZE_MAX / 2, &columns);
    return columns;
}

size_t text_cut(const char *text, size_t width)
{
    size_t columns;
    return walk(text, width, &columns);
}

/* ---- Times ---- */

char *text_time(char place[TEXT_TIME_MAX], int64_t ms)
{
    int64_t seconds = ms / 1000, minutes = seconds / 60, hours = minutes / 60;
    if (ms < 1000)
        (void)snprintf(place, TEXT_TIME_MAX, "%" PRId64 "ms", ms > 0 ? ms : 0);
    else if (seconds < 10)
        (void)snprintf(place, TEXT_TIME_MAX, "%" PRId64 ".%" PRId64 "s", seconds, ms / 100 % 10);
    else if (minutes == 0)
        (void)snprintf(place, TEXT_TIME_MAX, "%" PRId64 "s", seconds);
    else if (hours == 0)
        (void)snprintf(place, TEXT_TIME_MAX, "%" PRId64 "m%02" PRId64 "s", minutes, seconds % 60);
    else if (hours < 24)
        (void)snprintf(place, TEXT_TIME_MAX, "%" PRId64 "h%02" PRId64 "m", hours, minutes % 60);
    else
        (void)snprintf(place, TEXT_TIME_MAX, "%" PRId64 "d%02" PRId64 "h", hours / 24, hours % 24);
    return place;
}
