/* SPDX-License-Identifier: MIT */
/* See names.h. Names are added in any order, a few thousand at most in practice: finding the place
 * is cheap, and so is making room there. */
#include "names.h"

#include <stdlib.h>
#include <string.h>

static int compare(const struct name *a, const char *bytes, size_t length)
{
    size_t common = a->length < length ? a->length : length;
    int order = memcmp(a->bytes, bytes, common);
    return order != 0 ? order : (a->length > length) - (a->length < length);
}

/* The index of the first that is not before it. */
static size_t place_of(const struct names *names, const char *bytes, size_t length)
{
    size_t low = 0, high = names->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare(&names->items[middle], bytes, length) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool has_room(struct names *names)
{
    if (names->count < names->capacity)
        return true;
    size_t capacity = names->capacity == 0 ? 64 : 2 * names->capacity;
    struct name *items = realloc(names->items, capacity * sizeof(*items));
    if (items == NULL)
        return false;
    names->items = items;
    names->capacity = capacity;
    return true;
}

bool names_add(struct names *names, const char *bytes, size_t length)
{
    size_t at = place_of(names, bytes, length);
    if (at < names->count && compare(&names->items[at], bytes, length) == 0)
        return false;
    char *copy = malloc(length + 1);
    if (copy == NULL || !has_room(names)) {
        free(copy);
        names->out_of_memory = true;
        return false;
    }
    memcpy(copy, bytes, length);
    copy[length] = '\0';
    memmove(names->items + at + 1, names->items + at, (names->count - at) * sizeof(*names->items));
    names->items[at] = (struct name){copy, length};
    names->count++;
    return true;
}

void names_free(struct names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->items[i].bytes);
    free(names->items);
    *names = (struct names){NULL, 0, 0, false};
}
