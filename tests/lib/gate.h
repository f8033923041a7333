/* SPDX-License-Identifier: MIT */
/* A memory gate for tests: lets so many allocations pass and refuses exactly the next one. Counts
 * atomically, because the library's own thread allocates too. The doubles that share the library's
 * buffers step aside with gate_exempt, so that only the library is starved. */
#ifndef HF_TESTS_GATE_H
#define HF_TESTS_GATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/memory.h"

enum { GATE_OPEN = -1 };

static atomic_long gate_left = GATE_OPEN; /* that pass before one is refused */
static atomic_long gate_asked;
static atomic_long gate_refused;
static _Thread_local bool gate_exempt; /* this thread works for a double now */

static inline bool gate_ask(void)
{
    if (gate_exempt)
        return true;
    atomic_fetch_add(&gate_asked, 1);
    if (atomic_load(&gate_left) == GATE_OPEN)
        return true;
    if (atomic_fetch_sub(&gate_left, 1) != 0)
        return true;
    atomic_fetch_add(&gate_refused, 1); /* it is GATE_OPEN again from here on */
    return false;
}

/* Before the library is used for the first time; stays for the rest of the program. */
static inline void gate_install(void)
{
    hf__memory_set_gate(gate_ask);
}

static inline void gate_fail_at(long number) /* from 0 */
{
    atomic_store(&gate_refused, 0);
    atomic_store(&gate_left, number);
}

/* Opens the gate and tells whether it had refused anything. */
static inline bool gate_open(void)
{
    atomic_store(&gate_left, GATE_OPEN);
    return atomic_load(&gate_refused) > 0;
}

#endif
