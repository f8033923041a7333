/* SPDX-License-Identifier: MIT
 *
 * What happened, acquisition by acquisition. Kept in memory and written at the end, so that
 * measuring costs no system call but the clock.
 */
#ifndef PEERS_RECORDS_H
#define PEERS_RECORDS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "driver.h"

#define ERRORS_KEPT 3

struct record {
    int64_t asked_ns;
    int64_t entered_ns;
    int64_t leaving_ns;
    int64_t released_ns;
};

struct records { /* of one task */
    struct record *list;
    uint64_t count;
    uint64_t capacity;
    uint64_t refused;
    int error_count; /* of those that are kept */
    char errors[ERRORS_KEPT][PROBLEM_SIZE];
};

void records_add(struct records *records, const struct record *record);
void records_error(struct records *records, const char *problem);
bool records_write(const struct records *tasks, int count, const char *path);
/* The one line of JSON at the end. */
void records_tell(const struct records *tasks, int count);
void records_free(struct records *tasks, int count);

#endif
