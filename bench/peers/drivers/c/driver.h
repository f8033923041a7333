/* SPDX-License-Identifier: MIT
 *
 * What a driver in C is made of: a backend, which knows one kind of lock, and a harness, which
 * knows the rest of the contract: options, tasks, records and modes. Each program links the harness
 * and one backend.
 */
#ifndef PEERS_DRIVER_H
#define PEERS_DRIVER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROBLEM_SIZE   256
#define LOCK_NAME_SIZE 128

enum mode { MODE_PAIRS, MODE_HOLD, MODE_DIE, MODE_QUEUE, MODE_IDS };

struct settings {
    const char *peer;
    const char *url; /* several are separated by commas */
    const char *lock;
    const char *records;
    int tasks;
    bool own_locks;
    bool wait;          /* until the lock is there; otherwise one try */
    int64_t section_us; /* of work under the lock */
    int64_t pause_us;   /* after each turn */
    int64_t lease_ms;
    enum mode mode;
};

enum outcome { GOT, REFUSED, FAILED };

/* A process has one session, and each of its tasks a place in it, which is used by one thread at a
 * time. Whatever fails writes why into `problem`, of PROBLEM_SIZE bytes. */
struct backend {
    const char *const *peers; /* the names that it answers to; the last one is NULL */
    void *(*open)(const struct settings *settings, char *problem);
    void (*close)(void *session);
    void *(*place_open)(void *session, const char *lock, char *problem);
    void (*place_close)(void *place);
    enum outcome (*acquire)(void *place, char *problem);
    bool (*release)(void *place, char *problem);        /* false: it was not held to the end */
    uint64_t (*take_ids)(void *session, char *problem); /* how many; 0: failed. NULL: has no ids */
    bool lasts; /* a held lock is renewed, or needs no renewal */
    bool several_servers;
    const char *refusal; /* one line for a mode that it cannot do */
};

extern const struct backend backend;

int64_t now_ns(void);
void sleep_us(int64_t duration_us);
void problem_set(char *problem, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The signals from outside: a line that starts the tasks, and a line or the end that stops them. */
struct run {
    const struct settings *settings;
    void *session;
    atomic_bool stopped;
};

bool wait_for_go(void);
void wait_for_stop(struct run *run);

int run_pairs(struct run *run);
int run_hold(struct run *run);
int run_die(struct run *run);
int run_queue(struct run *run);
int run_ids(struct run *run);

#endif
