/* SPDX-License-Identifier: MIT
 *
 * Backends whose locks go over a connection: each task has one of its own, since a connection that
 * waits for a lock can do nothing else. Locks that are only held, and ids, share one. The backend
 * says how to dial; this is the rest of its sessions and places.
 */
#ifndef PEERS_WIRE_H
#define PEERS_WIRE_H

#include "driver.h"

struct wire_session {
    const struct settings *settings;
    void *shared; /* NULL: each place has a connection of its own */
};

struct wire_place {
    const struct settings *settings;
    void *connection;
    bool own_connection;
    char lock[LOCK_NAME_SIZE];
};

/* By the backend. NULL: failed, and the problem says why. */
void *wire_dial(const struct settings *settings, char *problem);
void wire_hang_up(void *connection);

void *wire_session_open(const struct settings *settings, char *problem);
void wire_session_close(void *session);
void *wire_place_open(void *session, const char *lock, char *problem);
void wire_place_close(void *place);

/* For the table of a backend. */
#define WIRE_PLACES                                                                        \
    .open = wire_session_open, .close = wire_session_close, .place_open = wire_place_open, \
    .place_close = wire_place_close

#endif
