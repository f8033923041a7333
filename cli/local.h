/* SPDX-License-Identifier: MIT */
/* The private redis-server of this user on this machine: what --local and local: mean. */
#ifndef CLI_LOCAL_H
#define CLI_LOCAL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The URL of its socket. Starts it if it does not run. False: it cannot be; it has been said why.
 */
bool local_start(char *url, size_t capacity);

struct local_status {
    bool running;
    pid_t pid;
    char folder[256];
    char socket[300];
};

bool local_look(struct local_status *status); /* false: it has been said why */
bool local_stop(void);                        /* the same; fine if it does not run */

#endif
