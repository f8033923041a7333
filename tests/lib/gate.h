/* SPDX-License-Identifier: MIT */
/* A memory gate for tests: lets so many allocations pass and refuses exactly the next one. */
#ifndef HF_TESTS_GATE_H
#define HF_TESTS_GATE_H

#include <stdatomic.h>
#include <stdbool.h>

extern atomic_long gate_asked;    /* allocations so far */
extern bool (*gate_exempt)(void); /* whether this thread works for a double; may be NULL */

void gate_install(void); /* before the library is first used; stays for the rest of the program */
void gate_fail_at(long number); /* from 0 */
bool gate_open(void);           /* lets all pass again; whether anything was refused meanwhile */

#endif
