/* SPDX-License-Identifier: MIT */
/* See gate.h. Counts atomically, because the library's own thread allocates too. Doubles that use
 * the library's buffers are let through by gate_exempt, so that only the library is starved. */
#include "gate.h"

#include <stddef.h>

#include "base/memory.h"

enum { GATE_OPEN = -1 };

atomic_long gate_asked;
bool (*gate_exempt)(void);
static atomic_long left = GATE_OPEN; /* that pass before one is refused */
static atomic_long refused;

static bool ask(void)
{
    if (gate_exempt != NULL && gate_exempt())
        return true;
    atomic_fetch_add(&gate_asked, 1);
    if (atomic_load(&left) == GATE_OPEN)
        return true;
    if (atomic_fetch_sub(&left, 1) != 0)
        return true;
    atomic_fetch_add(&refused, 1); /* it is GATE_OPEN again from here on */
    return false;
}

void gate_install(void)
{
    hf__memory_set_gate(ask);
}

void gate_fail_at(long number)
{
    atomic_store(&refused, 0);
    atomic_store(&left, number);
}

bool gate_open(void)
{
    atomic_store(&left, GATE_OPEN);
    return atomic_load(&refused) > 0;
}
