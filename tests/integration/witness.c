/* SPDX-License-Identifier: MIT */
/* See witness.h. The library calls one listener at a time, so an entry is complete before the count
 * says that it is there. */
#include "witness.h"

#include <stdio.h>

void witness_event(void *arg, const hf_event *event)
{
    struct witness *witness = arg;
    size_t index = atomic_load(&witness->count);
    if (index < TOLD_MAX) {
        struct told *told = &witness->told[index];
        told->state = event->state;
        told->reason = event->reason;
        told->remaining_ms = event->remaining_ms;
        told->at_ms = now_ms();
        (void)snprintf(told->text, sizeof(told->text), "%s", event->text);
    }
    atomic_store(&witness->count, index + 1);
}

void witness_clear(struct witness *witness)
{
    atomic_store(&witness->count, 0);
}

size_t times_told(const struct witness *witness, hf_state state, hf_reason reason)
{
    size_t count = atomic_load(&witness->count);
    size_t times = 0;
    for (size_t i = 0; i < count && i < TOLD_MAX; i++) {
        const struct told *told = &witness->told[i];
        times += told->state == state && (reason == HF_REASONS || told->reason == reason);
    }
    return times;
}

void expect_told(const struct witness *witness, size_t index, hf_state state, hf_reason reason,
                 const char *file, int line)
{
    size_t count = atomic_load(&witness->count);
    const struct told *told = &witness->told[index];
    if (index < count && index < TOLD_MAX && told->state == state && told->reason == reason)
        return;
    print_error("not told as number %zu: %s, %s. Told:\n", index, hf_state_name(state),
                hf_reason_text(reason));
    for (size_t i = 0; i < count && i < TOLD_MAX; i++)
        print_error("    %s, %s\n", hf_state_name(witness->told[i].state),
                    hf_reason_text(witness->told[i].reason));
    _fail(file, line);
}
