/* SPDX-License-Identifier: MIT */
/* The inside of a worker process: the process (worker.c), what its threads do in a storm (deeds.c)
 * and in a calm run (calm.c), tokens on their way (tokens.c), and what is written down (notes.c).
 * Only the public API is used, and only what both libraries have. */
#ifndef HOLDFAST_TESTS_MIXED_WORKER_H
#define HOLDFAST_TESTS_MIXED_WORKER_H

#include <pthread.h>

#include <holdfast.h>

#include "mixed.h"

/* One process. It opens one client after the other; its threads share it. */
struct party {
    const char *url;
    const char *folder;
    enum side side;
    uint32_t number;
    uint64_t seed;
    bool fences_lie; /* sabotage */
    struct board *board;
    int ledger;
    struct chance chance;
    hf_client *client;
    int64_t session_until_ns;
    bool brisk;          /* this session: all threads want one lock, and pass it on */
    uint64_t seen_fence; /* by the observer */
};

struct worker {
    struct party *party;
    uint32_t number;
    pthread_t thread;
    struct chance chance;
    uint64_t holds;
};

/* A hold, and what is believed about it. */
struct tenure {
    hf_hold *hold;
    struct record record;
    int64_t lease_ms;
};

void *storm_run(void *worker); /* until the session is over */
void *meddler_run(void *worker);
void *rush_run(void *worker);
void *queue_run(void *worker);
void *names_run(void *worker);

bool is_over(const struct worker *worker);
void nap(struct worker *worker, int most_ms);
void perhaps_stop(struct worker *worker); /* the whole process, until the driver lets it go on */
void lock_name(char name[16], uint32_t lock);

/* ---- Notes ----------------------------------------------------------------------------------- */

void count_one(struct party *party, enum count_kind kind);

/* Complains if that call cannot have that outcome, whatever happened to processes and servers. */
void note_status(struct party *party, const char *call, hf_status status, const hf_error *error);

/* Begins a record that nobody else has. */
struct record note_begin(struct worker *worker, uint32_t lock, enum how how, int64_t asked_ns);
void note(struct worker *worker, const struct record *record);

/* A hold that was granted just now; its deadline; and before it is released. */
void note_granted(struct worker *worker, struct tenure *tenure);
bool note_deadline(struct worker *worker, struct tenure *tenure); /* false: it is over */
void note_release(struct worker *worker, struct tenure *tenure);

/* ---- Tokens ---------------------------------------------------------------------------------- */

/* Lets go of the hold; its token can be taken up by any process of either side. */
void token_leave(struct worker *worker, struct tenure *tenure);

/* Takes up the token of that lock; false: there is none, or its hold has ended. */
bool token_take(struct worker *worker, struct tenure *tenure, uint32_t lock);

#endif
