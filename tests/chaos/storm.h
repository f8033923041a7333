/* SPDX-License-Identifier: MIT */
/* The driver of a live run: starts the processes, fires the faults, and ends everything that it
 * started. */
#ifndef HOLDFAST_TESTS_STORM_H
#define HOLDFAST_TESTS_STORM_H

#include "../lib/redis_server.h"
#include "chaos.h"
#include "proxy.h"

struct child {
    pid_t pid;          /* 0: none */
    int64_t thaw_at_ns; /* 0: not stopped, as far as we know */
};

struct storm {
    struct chaos *chaos;
    struct chance chance;
    struct redis_server *server;
    struct proxy proxy;
    pid_t watch;
    struct child children[CLIENTS_MAX + 1]; /* the clients, then the foreigner */
    uint32_t started;
    int64_t server_back_at_ns; /* 0: it is there */
    bool server_frozen;
    int64_t next_fault_ns;
};

bool storm_begin(struct storm *storm, struct chaos *chaos);
void storm_blow(struct storm *storm, const volatile int *interrupted); /* for the time of the run */

/* Heals everything and waits for everybody to finish; complains about who does not. */
void storm_settle(struct storm *storm);

/* What the server still has when the longest lease is over; "": nothing. */
const char *storm_leftovers(struct storm *storm);

/* Kills whatever is left, by its number. Safe to repeat. */
void storm_end(struct storm *storm);

#endif
