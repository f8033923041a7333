/* SPDX-License-Identifier: MIT */
/* The ledger: what everybody believed, in one file of fixed-size records that all append to.
 *
 * A hold is written when it is granted, with the deadline that is known then, and again whenever
 * that changes: renewed, or given up. The last record of a hold counts. So a holder that is killed
 * has left a belief that ends at its deadline, which is what it would have believed. */
#ifndef HOLDFAST_TESTS_LEDGER_H
#define HOLDFAST_TESTS_LEDGER_H

#include "../lib/history.h"

int ledger_open(const char *folder); /* a descriptor, or -1 */
bool ledger_write(int ledger, const belief *belief);

/* The beliefs of the whole run, one per hold. NULL: unreadable or torn. */
history *ledger_read(const char *folder);

#endif
