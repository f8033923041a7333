/* SPDX-License-Identifier: MIT */
/* The ledger: what everybody believed, in one file of fixed-size records that all append to. A
 * record is a belief, or a larger struct that begins with one; all records of a ledger are of one
 * size.
 *
 * A hold is written when it is granted, with the deadline that is known then, and again whenever
 * that changes: renewed, or given up. The last record of a hold counts. So a holder that is killed
 * has left a belief that ends at its deadline, which is what it would have believed. */
#ifndef HOLDFAST_TESTS_LEDGER_H
#define HOLDFAST_TESTS_LEDGER_H

#include "history.h"

int ledger_open(const char *folder); /* a descriptor, or -1 */
bool ledger_write(int ledger, const void *record, size_t size);

/* The record that counts of each hold, by client and hold, in memory that the caller frees.
 * NULL: unreadable or torn. */
void *ledger_records(const char *folder, size_t size, size_t *count);

/* The beliefs of a ledger that has nothing else, one per hold. NULL: unreadable or torn. */
history *ledger_read(const char *folder);

#endif
