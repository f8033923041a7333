/* SPDX-License-Identifier: MIT
 *
 * Child processes that do not outlive us. A client does not survive fork(), so they come first and
 * open their own.
 */
#ifndef BENCH_PROCESS_H
#define BENCH_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Like fork(); in the child, signals that the terminal sends are left to the parent. */
pid_t process_fork(void);
void process_wait(pid_t pid);               /* until it has ended; 0 is fine */
void process_kill(pid_t pid);               /* at once, and waits for it; 0 is fine */
bool process_ended(pid_t pid, int *status); /* by itself; does not wait */

/* Zeroed memory that children share with us; NULL: there is none. */
void *process_share(size_t size);
void process_unshare(void *memory, size_t size);

#endif
