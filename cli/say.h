/* SPDX-License-Identifier: MIT */
/* What people are told, on standard error: one sentence, which says what to do. */
#ifndef CLI_SAY_H
#define CLI_SAY_H

#include <stdbool.h>

void say_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
void say_note(const char *format, ...) __attribute__((format(printf, 1, 2))); /* unless quiet */
void say_more(const char *format, ...) __attribute__((format(printf, 1, 2))); /* if verbose */
void say_set_level(bool quiet, bool verbose);

/* From now on a reader who does not read is hardly waited for: what does not fit is lost. For those
 * who have something to keep alive. */
void say_in_a_hurry(void);

/* A line on a terminal that is written over by the next one; nothing if standard error is not one.
 * NULL: takes it away. */
void say_live(const char *text);
bool say_has_terminal(void);

#endif
