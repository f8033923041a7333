/* SPDX-License-Identifier: MIT */
/* A TCP peer that is not a Redis server, for tests of what the library makes of one.
 *
 * A peer is a process of its own, so that its work is not counted as the library's, and serves one
 * connection after the other by the same script: wait for the first bytes of a request, say
 * something, perhaps repeat something for as long as the other side takes it, then fall silent or
 * hang up. Start peers before clients: a child inherits the descriptors of its parent, and would
 * keep a client's connections open.
 *
 * Every function belongs to the test's own thread. peer_end_all() belongs into every teardown.
 */
#ifndef HOLDFAST_TESTS_PEER_H
#define HOLDFAST_TESTS_PEER_H

#include "process.h"

enum peer_ending { PEER_STAYS_SILENT, PEER_HANGS_UP };

struct peer_script {
    const char *says;    /* once; NULL: nothing */
    const char *repeats; /* then, without end; NULL: nothing */
    enum peer_ending ending;
};

struct peer {
    pid_t pid; /* 0: it has no process */
    int listener;
    int fillers[16]; /* connections that fill the backlog */
    size_t filler_count;
    int port;
    char url[48]; /* redis://127.0.0.1:PORT */
};

struct peer *peer_start(const struct peer_script *script);
struct peer *peer_start_refusing(void); /* its port is taken, but nobody listens there */

/* Nobody accepts and the backlog is full, so connecting to it does not end. NULL where the system
 * takes connections without end all the same. */
struct peer *peer_start_full(void);

void peer_end_all(void);

#endif
