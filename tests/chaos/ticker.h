/* SPDX-License-Identifier: MIT */
/* Time that was taken from a process: by SIGSTOP, by a virtual machine that stands still, by a
 * loaded processor. A bound that is missed by so much was not missed by the library. */
#ifndef HOLDFAST_TESTS_TICKER_H
#define HOLDFAST_TESTS_TICKER_H

#include "chaos.h"

/* In a client process, once, before its other threads. */
bool ticker_start(void);

/* All the time that was taken from this process so far. The difference over a call is what the call
 * may come late. */
int64_t ticker_lost_ns(void);

/* In a process of its own, which nobody stops: writes the stalls of the whole machine to the board,
 * and how far the wall clock, by which the server expires keys, stepped against our clock. Runs
 * until it is killed. */
void ticker_watch(struct board *board);

#endif
