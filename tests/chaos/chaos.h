/* SPDX-License-Identifier: MIT */
/* What the processes of a live run share: the run's parameters, and a board in shared memory on
 * which everybody counts. The board survives the SIGKILL of whoever wrote on it; it is evidence
 * about the run. What was believed about locks is in the ledger (ledger.h) instead.
 */
#ifndef HOLDFAST_TESTS_CHAOS_H
#define HOLDFAST_TESTS_CHAOS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <holdfast.h>

#include "../lib/chance.h"

enum {
    LOCKS = 3,
    CLIENTS_MIN = 4,
    CLIENTS_MAX = 6,
    THREADS = 6,
    LEASE_LEAST_MS = 300,
    LEASE_USUAL_MS = 700,
    LEASE_MOST_MS = 1500,
    STATUSES = HF_ENOTHELD + 1,
    EXCESS_ALLOWED_MS = 2000
};

/* ---- The board ------------------------------------------------------------------------------- */

#define CALL_MAP(X)                        \
    X(OPEN, "hf_open")                     \
    X(ACQUIRE, "hf_acquire")               \
    X(REENTER, "hf_acquire, again")        \
    X(EXTEND, "hf_extend")                 \
    X(RELEASE, "hf_release")               \
    X(RELEASE_NOWAIT, "hf_release_nowait") \
    X(INSPECT, "hf_inspect")               \
    X(REVOKE, "hf_revoke")                 \
    X(CLOSE, "hf_close")

#define FAULT_MAP(X)                                       \
    X(CLIENT_STOPPED, "client stopped")                    \
    X(STOPPED_IN_HOLD, "  of these, while it held a lock") \
    X(CLIENT_KILLED, "client killed")                      \
    X(KILLED_IN_HOLD, "  of these, while it held a lock")  \
    X(SERVER_RESTARTED, "server killed and restarted")     \
    X(SERVER_STOPPED, "server stopped for a while")        \
    X(SCRIPTS_FLUSHED, "SCRIPT FLUSH")                     \
    X(CONNECTIONS_KILLED, "CLIENT KILL TYPE normal")       \
    X(SUBSCRIPTIONS_KILLED, "CLIENT KILL TYPE pubsub")     \
    X(DELAYED, "proxy: pieces delayed")                    \
    X(STALLED, "proxy: connections stalled")               \
    X(CUT, "proxy: connections cut after n bytes")         \
    X(REPLIES_DROPPED, "proxy: replies dropped, then cut") \
    X(REFUSED, "proxy: connections refused")               \
    X(OF_SUBSCRIPTIONS, "proxy: troubles of a subscription")

#define CALL_ENUM(name, text)  CALL_##name,
#define FAULT_ENUM(name, text) FAULT_##name,
enum call_kind { CALL_MAP(CALL_ENUM) CALL_KINDS };
enum fault_kind { FAULT_MAP(FAULT_ENUM) FAULT_KINDS };

struct board {
    atomic_bool stop; /* everybody finishes and closes */
    atomic_llong statuses[CALL_KINDS][STATUSES];
    atomic_llong worst_excess_ns[CALL_KINDS];
    atomic_llong faults[FAULT_KINDS];
    atomic_llong contended;           /* grants of a lock that was held when it was asked for */
    atomic_llong increments[LOCKS];   /* writes to the counters that their writers made */
    atomic_llong acknowledged[LOCKS]; /* writes that the registers took (register.h) */
    atomic_llong refused;             /* and those that came with a fence of the past */
    atomic_llong renewed;             /* renewals of clients that were closed */
    atomic_llong turns;               /* and how often a lock passed between threads of one */
    atomic_llong told[HF_LOST + 1][HF_REASONS]; /* by on_event */
    atomic_llong held_until[LOCKS]; /* the newest belief, a hint for the two counts above */
    atomic_int held_by[LOCKS];      /* the slot of the process, -1: nobody */
    atomic_llong sessions;          /* clients that were closed in an orderly way */
    atomic_llong stalls;            /* of the whole machine, see ticker.h */
    atomic_llong longest_stall_ns;
    atomic_llong clock_step_ns; /* the largest step of the wall clock, see ticker.h */
    atomic_int complaints;      /* things that must not happen */
    char complaint[512];        /* the first of them */
};

struct chaos {
    uint64_t seed;
    int seconds;
    bool keep;
    bool sabotage;
    bool expect_fail;
    int clients;
    char folder[64];
    char server_socket[96];
    char tcp_url[64]; /* both lead through the proxy */
    char unix_url[128];
    struct board *board;
};

/* Counts something that must not happen, and keeps the first description. */
void complain(struct board *board, const char *format, ...) __attribute__((format(printf, 2, 3)));

void raise_to(atomic_llong *most, long long value);

void lock_name(char name[16], int lock);

/* ---- The processes: each runs in a child, which ends when it returns ---------------------------
 */

/* `number` counts all that were ever started, so that no two beliefs are of the same client. */
void client_run(const struct chaos *chaos, int slot, uint32_t number);
void foreign_run(const struct chaos *chaos, int slot, uint32_t number);

#endif
