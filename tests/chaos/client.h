/* SPDX-License-Identifier: MIT */
/* The inside of a client process: the process (client.c), what its threads do (worker.c), and the
 * calls of the library with a watch on them (calls.c). */
#ifndef HOLDFAST_TESTS_CLIENT_H
#define HOLDFAST_TESTS_CLIENT_H

#include <pthread.h>

#include "../lib/ledger.h"
#include "chaos.h"

/* A cancel that the process fires when its time has come, because the worker is inside a call. */
struct planned_cancel {
    hf_cancel *cancel; /* NULL: none */
    int64_t fire_at_ns;
};

/* One process. It opens one client after the other; its threads share it. */
struct party {
    const struct chaos *chaos;
    int slot;
    int ledger;
    int counters[LOCKS];
    struct chance chance;
    hf_client *client;
    int64_t call_timeout_ms;
    int64_t session_until_ns;
    pthread_mutex_t mutex; /* of the planned cancels */
    struct planned_cancel planned[THREADS];
};

/* What is told to one hold, and what of that must not be (listener.c). */
struct listener {
    struct board *board;
    atomic_bool released; /* the release has returned */
    atomic_bool lost;     /* was told */
};

/* A listener stays as it was for some holds more, to catch whoever tells it something too late. */
enum { LISTENERS_KEPT = 64 };

struct worker {
    struct party *party;
    int index;
    pthread_t thread;
    struct chance chance;
    uint32_t number; /* of all workers of the run */
    uint64_t holds;
    hf_hold *left; /* a hold that was left for hf_close() to release */
    struct listener listeners[LISTENERS_KEPT];
};

/* A hold, and what is believed about it. */
struct tenure {
    hf_hold *hold;
    hf_hold *again; /* re-entered; NULL: not */
    bool shared;    /* by an owner */
    bool reenters;
    int64_t longest_lease_ms;
    belief belief;
    struct listener *listener;
};

void *worker_run(void *arg); /* a struct worker; until the session is over */

void listen_to(void *arg, const hf_event *event); /* on_event; arg is a struct listener */

/* ---- Calls, see calls.c ---------------------------------------------------------------------- */

bool call_open(struct party *party);
void call_close(struct party *party);

/* A try with random options; true: `tenure` is held and in the ledger. */
bool call_acquire(struct worker *worker, struct tenure *tenure);

/* Asks how long it is still valid, and complains if the answer claims too much. */
int64_t call_remaining(struct worker *worker, const struct tenure *tenure);

/* The same, and writes it down: the watchdog moves the deadline without being asked. */
bool call_is_valid(struct worker *worker, struct tenure *tenure);

void call_reenter(struct worker *worker, struct tenure *tenure); /* perhaps */
void call_leave_again(struct worker *worker, struct tenure *tenure);
void call_look_around(struct worker *worker); /* at some lock, perhaps asking for it */

void call_extend(struct worker *worker, struct tenure *tenure);

/* The end of the belief comes first, then the call. */
void call_release(struct worker *worker, struct tenure *tenure);
void call_give_up(struct worker *worker, struct tenure *tenure); /* only the belief */
void call_release_left(struct worker *worker);                   /* after hf_close() */

#endif
