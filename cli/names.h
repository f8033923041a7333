/* SPDX-License-Identifier: MIT */
/* A sorted set of lock names: a listing may see the same lock twice. */
#ifndef CLI_NAMES_H
#define CLI_NAMES_H

#include <stdbool.h>
#include <stddef.h>

struct name {
    char *bytes; /* with a NUL behind it */
    size_t length;
};

struct names {
    struct name *items;
    size_t count, capacity;
    bool out_of_memory;
};

/* False: it is in there already, or there is no memory. */
bool names_add(struct names *names, const char *bytes, size_t length);
void names_free(struct names *names);

#endif
