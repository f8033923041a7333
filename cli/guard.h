/* SPDX-License-Identifier: MIT */
/* A small process that watches over this one: should it die or hang while its child runs, the guard
 * ends the child before the lease can end. */
#ifndef CLI_GUARD_H
#define CLI_GUARD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct guard_plan {
    int64_t kill_after_ns; /* from TERM to KILL */
    int64_t margin_ns;     /* KILL comes so long before the deadline, or a little less */
    bool group;            /* the child has a process group of its own */
};

/* False: it has been said why. Without a guard the other functions do nothing. */
bool guard_start(const struct guard_plan *plan);

/* The lock is ours until then. */
void guard_set_deadline(int64_t deadline);

/* The child has had its TERM; the guard only has KILL to add. */
void guard_set_told(void);

/* It has ended the child, because we did not: we were stopped, or hung. */
bool guard_has_acted(void);

/* In the child, before it becomes another program: from now on the guard knows it. */
void guard_watch_me(void);

/* In another new process: so that the guard notices our death, and not only its. */
void guard_forget(void);

/* The child is gone; so may the guard. Does not wait for it. */
void guard_dismiss(void);

/* The same, and waits. */
void guard_bury(void);

/* Was that process, which has ended, the guard that we still need? */
bool guard_was(pid_t pid);

#endif
