/* SPDX-License-Identifier: MIT */
/* The only door to the heap. Tests hang a gate into it that fails the n-th allocation, so that
 * every error path for lack of memory is walked once. */
#ifndef HF_BASE_MEMORY_H
#define HF_BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

void *hf__alloc(size_t size); /* zeroed; NULL when there is none */
void *hf__resize(void *block, size_t size);
void hf__free(void *block); /* NULL is fine */
char *hf__copy_text(const char *text);
void hf__wipe(void *bytes, size_t count); /* with zeros, whatever the compiler thinks of it */

/* Asked before every allocation; false makes it fail. NULL: always allowed. For tests only, set
 * while no other thread is inside the library. */
typedef bool hf__memory_gate(void);
void hf__memory_set_gate(hf__memory_gate *gate);
bool hf__memory_allowed(void);

#endif
