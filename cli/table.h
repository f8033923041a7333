/* SPDX-License-Identifier: MIT */
/* Rows of printable texts in columns, sorted by the first. */
#ifndef CLI_TABLE_H
#define CLI_TABLE_H

#include <stdbool.h>
#include <stddef.h>

enum { TABLE_COLUMNS_MAX = 8 };

struct table {
    size_t columns;
    size_t widths[TABLE_COLUMNS_MAX];
    char ***rows; /* the first has the titles */
    size_t count, capacity;
    bool out_of_memory;
};

void table_begin(struct table *table, const char *const *titles); /* which end with NULL */
void table_add(struct table *table, const char *const *cells);
/* To standard output; if that is a terminal, no line is wider than it is. */
void table_print(struct table *table);
void table_free(struct table *table);

#endif
