/* SPDX-License-Identifier: MIT */
/* See table.h. Columns are as wide as their widest cell, with two blanks between them; the last one
 * is not filled up. On a terminal lines are cut, since a wrapped table is hard to read; in a pipe
 * everything is there. */
#include "table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "text.h"

enum { GAP = 2 };

static void free_row(const struct table *table, char **row)
{
    for (size_t i = 0; row != NULL && i < table->columns; i++)
        free(row[i]);
    free(row);
}

static char **copy_row(const struct table *table, const char *const *cells)
{
    char **row = calloc(table->columns, sizeof(*row));
    for (size_t i = 0; row != NULL && i < table->columns; i++) {
        row[i] = strdup(cells[i]);
        if (row[i] == NULL) {
            free_row(table, row);
            return NULL;
        }
    }
    return row;
}

static bool has_room(struct table *table)
{
    if (table->count < table->capacity)
        return true;
    size_t capacity = table->capacity == 0 ? 64 : 2 * table->capacity;
    char ***rows = realloc(table->rows, capacity * sizeof(*rows));
    if (rows == NULL)
        return false;
    table->rows = rows;
    table->capacity = capacity;
    return true;
}

void table_add(struct table *table, const char *const *cells)
{
    char **row = table->out_of_memory ? NULL : copy_row(table, cells);
    if (row == NULL || !has_room(table)) {
        free_row(table, row);
        table->out_of_memory = true;
        return;
    }
    table->rows[table->count++] = row;
    for (size_t i = 0; i < table->columns; i++) {
        size_t width = text_width(cells[i]);
        if (width > table->widths[i])
            table->widths[i] = width;
    }
}

void table_begin(struct table *table, const char *const *titles)
{
    *table = (struct table){.columns = 0};
    while (titles[table->columns] != NULL)
        table->columns++;
    table_add(table, titles);
}

/* ---- Printing ---- */

static size_t line_width(void)
{
    struct winsize size;
    if (isatty(STDOUT_FILENO) != 1)
        return SIZE_MAX / 2;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return SIZE_MAX / 2;
    return size.ws_col;
}

static void print_row(const struct table *table, char *const *row, size_t left)
{
    for (size_t i = 0; i < table->columns && left > 0; i++) {
        bool last = i + 1 == table->columns;
        size_t width = text_width(row[i]);
        size_t shown = width < left ? width : left;
        printf("%.*s", (int)text_cut(row[i], shown), row[i]);
        left -= shown;
        size_t filling = last ? 0 : table->widths[i] - width + GAP;
        filling = filling < left ? filling : left;
        printf("%*s", (int)filling, "");
        left -= filling;
    }
    putchar('\n');
}

static int by_first(const void *a, const void *b)
{
    return strcmp((*(char **const *)a)[0], (*(char **const *)b)[0]);
}

void table_print(struct table *table)
{
    size_t width = line_width();
    qsort(table->rows + 1, table->count - 1, sizeof(*table->rows), by_first);
    for (size_t i = 0; i < table->count; i++)
        print_row(table, table->rows[i], width);
}

void table_free(struct table *table)
{
    for (size_t i = 0; i < table->count; i++)
        free_row(table, table->rows[i]);
    free(table->rows);
    *table = (struct table){.columns = 0};
}
