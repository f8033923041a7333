/* SPDX-License-Identifier: MIT */
/* Signals as something to read: none interrupts us, all can be passed on to the child. */
#ifndef CLI_SIGNALS_H
#define CLI_SIGNALS_H

#include <stdbool.h>

/* From now on signals wait to be read. Those that were ignored or blocked when we were started stay
 * so: nohup must go on working. False: it has been said why. */
bool signals_begin(void);
int signals_descriptor(void);

/* The next signal that has come, or 0. */
int signals_next(void);

/* Would it have ended us, had we not asked to read it? */
bool signals_end_us(int number);

/* In a new process, before it becomes another program: everything as we were given it. */
void signals_restore(void);

#endif
