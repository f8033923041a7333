/* SPDX-License-Identifier: MIT */
/* See memory.h. Blocks come zeroed because a struct whose fields are all zero is a valid empty one
 * throughout this library. */
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

static hf__memory_gate *current_gate;

void hf__memory_set_gate(hf__memory_gate *gate)
{
    current_gate = gate;
}

bool hf__memory_allowed(void)
{
    return current_gate == NULL || current_gate();
}

void *hf__alloc(size_t size)
{
    return hf__memory_allowed() ? calloc(1, size) : NULL;
}

void *hf__resize(void *block, size_t size)
{
    return hf__memory_allowed() ? realloc(block, size) : NULL;
}

void hf__free(void *block)
{
    free(block);
}

char *hf__copy_text(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = hf__alloc(size);
    if (copy != NULL)
        memcpy(copy, text, size);
    return copy;
}

/* Through a volatile pointer, so that the compiler cannot leave out a write that nobody reads. */
void hf__wipe(void *bytes, size_t count)
{
    volatile char *at = bytes;
    for (size_t i = 0; i < count; i++)
        at[i] = '\0';
}
