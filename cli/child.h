/* SPDX-License-Identifier: MIT */
/* The command that runs under the lock: one at a time. */
#ifndef CLI_CHILD_H
#define CLI_CHILD_H

#include <stdbool.h>
#include <stdint.h>

struct child_plan {
    char *const *words; /* ends with NULL */
    bool foreground;    /* it stays in our process group */
    /* What it is told about its lock, in its environment. */
    const char *name;
    const char *owner;
    uint64_t fence;
    int64_t ttl_ms;
    int64_t waited_ms;
};

/* False: there can be no new process; it has been said why. */
bool child_start(const struct child_plan *plan);

/* To the child and, unless it is in our group, to all of its group. False: somebody there belongs
 * to another user and cannot be signalled by us. */
bool child_signal(int number);

/* To be called when SIGCHLD has come. */
void child_look(void);
bool child_has_ended(void);
int child_takes_stop(void); /* the signal that has stopped it since this was last asked; 0: none */

/* As a shell would say it; 126 or 127 if it could not be run. */
int child_exit_code(void);
bool child_could_not_run(void);
const char *child_failure(void); /* why, in that case */

/* Others of its group still live, after it has ended. */
bool child_left_others(void);

/* Who of it still lives, and whom we may not signal. */
struct group_view;
void child_view(struct group_view *view);

/* Stops this process, as a stopped child in a shell does, until it is continued; the child goes on
 * with it. */
void child_stop_with_us(void);

/* Whether we have handed our terminal to the child. */
bool child_has_terminal(void);

#endif
