/* SPDX-License-Identifier: MIT */
/* The private redis-server of this user on this machine: what --local and local: mean. */
#ifndef CLI_LOCAL_H
#define CLI_LOCAL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { LOCAL_SOCKET_MAX = 107 }; /* what the address of a unix socket has room for */

/* The URL of its socket. Starts it if it does not run; safe to be called by many processes at the
 * same time, and again whenever the server may have died. False: it cannot be; it has been said
 * why. */
bool local_start(char *url, size_t capacity);

struct local_status {
    bool running;
    pid_t pid; /* 0: unknown, for it is too busy to accept us */
    char folder[LOCAL_SOCKET_MAX + 1];
    char socket[LOCAL_SOCKET_MAX + 1];
};

bool local_look(struct local_status *status); /* false: it has been said why */
bool local_stop(void);                        /* the same; fine if it does not run */

/* It has died: nobody listens there, and nobody has stopped it either. Says nothing. */
bool local_has_died(void);

#endif
