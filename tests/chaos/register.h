/* SPDX-License-Identifier: MIT */
/* A store that knows fences: a number per lock, in a file. Whoever reads or writes it shows the
 * fence of his hold, and is refused if the store has seen a larger one. So a holder that was
 * stopped between its read and its write comes too late and is told, and no write that was
 * acknowledged is ever undone, whatever the clocks and the processes do. */
#ifndef HOLDFAST_TESTS_REGISTER_H
#define HOLDFAST_TESTS_REGISTER_H

#include "chaos.h"

enum register_answer { REGISTER_DONE, REGISTER_REFUSED, REGISTER_BROKEN };

bool register_make(const char *folder, int lock); /* with the value 0 */
enum register_answer register_read(const char *folder, int lock, uint64_t fence, int64_t *value);
enum register_answer register_write(const char *folder, int lock, uint64_t fence, int64_t value);

/* What is in it in the end, by nobody's fence. */
bool register_look(const char *folder, int lock, int64_t *value);

#endif
