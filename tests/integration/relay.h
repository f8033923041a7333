/* SPDX-License-Identifier: MIT */
/* A process between clients and a server that passes bytes along and can stall one connection or
 * all: one is then neither read nor written nor closed, so neither end learns anything. It also
 * knows the message by which the server grants a lock, and can make it get lost, as it can answers.
 * Start it before the test opens a client. It ends with process_end_all(). */
#ifndef HOLDFAST_TESTS_RELAY_H
#define HOLDFAST_TESTS_RELAY_H

#include "../lib/redis_server.h"

struct relay {
    struct process *process;
    char url[64]; /* redis://127.0.0.1:PORT */
};

struct relay relay_start(const struct redis_server *server);

/* Stalls the oldest connection that is open; returns when nothing moves on it any more. */
void relay_stall_one(const struct relay *relay);
/* Stalls all of them, and those that are opened from now on. What was sent meanwhile arrives when
 * it is healed, however late that is. */
void relay_cut(const struct relay *relay);
void relay_heal(const struct relay *relay);

/* What happens to the next message of a grant, once: it vanishes, or its connection ends instead.
 */
void relay_lose_grant(const struct relay *relay);
void relay_cut_grant(const struct relay *relay);
/* The next answers of scripts that are two numbers: what they answer is done, and the connection
 * ends instead of telling. */
void relay_cut_answers(const struct relay *relay, int count);
long long relay_spoilt(const struct relay *relay); /* how often any of that has happened */

/* Whether the run_id in what the server tells of itself is called something else from now on. */
void relay_hide_run_id(const struct relay *relay, bool hides);

/* How many connections it has been asked for so far. */
long long relay_connections(const struct relay *relay);

#endif
