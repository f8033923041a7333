/* SPDX-License-Identifier: MIT */
/* What the driver and the workers of a mixed run share: an older and this library use the same
 * locks. The worker is one source that is compiled twice, against either library; so this header
 * knows no library, and what it describes is only in files that both programs use: the ledger
 * (tests/lib/ledger.h) of records, and a board on which everybody counts. Both survive the SIGKILL
 * of whoever wrote on them. */
#ifndef HOLDFAST_TESTS_MIXED_H
#define HOLDFAST_TESTS_MIXED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "../lib/chance.h"
#include "../lib/ledger.h"

enum {
    LOCKS = 6,
    OWNERS = 2,
    THREADS = 3,
    LEASE_LEAST_MS = 250,
    LEASE_USUAL_MS = 400,
    LEASE_MOST_MS = 1200,
    WAIT_MOST_MS = 10000,
    CALL_TIMEOUT_MS = 3000,
    CALM_LOCK = 10,   /* for which all queue in a calm run */
    CALM_NAMES = 100, /* the first of the names of a calm run */
    CALM_NAMES_MOST = 4096
};

#define MIXED_PREFIX "mixed:"

enum side { SIDE_OLD, SIDE_NEW, SIDES };

static inline const char *side_name(enum side side)
{
    return side == SIDE_OLD ? "old" : "new";
}

/* How a record came about. */
#define HOW_MAP(X)                     \
    X(TRIED, "tried once")             \
    X(QUEUED, "queued")                \
    X(FAIR, "queued, fair")            \
    X(POLLED, "polled")                \
    X(JOINED, "with an owner")         \
    X(ATTACHED, "attached by a token") \
    X(GAVE_UP, "waited in vain")       \
    X(BROKE, "broke a lock")

#define HOW_ENUM(name, text) HOW_##name,
enum how { HOW_MAP(HOW_ENUM) HOWS };

/* One grant, one wait that came to nothing (an empty belief), or one hf_break(): that is under way
 * from belief.from_ns to belief.until_ns, its new fence is `fence`, 0 while that is unknown. One
 * that broke nothing takes no time. */
struct record {
    belief belief;
    int64_t asked_ns;    /* before the call */
    int64_t released_ns; /* before the release; 0: there was none */
    int64_t done_ns;     /* after it */
    uint64_t fence;
    uint32_t side;
    uint32_t how;
    uint64_t excused; /* for the judge alone: whether its fence may be smaller than others */
};

/* The numbers of workers are of processes and threads. */
static inline uint32_t worker_number(uint32_t process, uint32_t thread)
{
    return process * 16 + thread;
}

static inline uint32_t process_of(uint32_t worker)
{
    return worker / 16;
}

#define COUNT_MAP(X)                                    \
    X(TURNS, "turns between threads")                   \
    X(RENEWALS, "renewals")                             \
    X(REENTRIES, "re-entries")                          \
    X(BREAKS, "locks broken")                           \
    X(REVOKES, "revokes that were left")                \
    X(REVOKED, "revokes that were told")                \
    X(LOST, "losses that were told")                    \
    X(DETACHED, "tokens made")                          \
    X(TOKENS_OF_OLD, "tokens of the old side taken up") \
    X(TOKENS_OF_NEW, "tokens of the new side taken up") \
    X(SAW_OLD, "observers saw the old side granted")    \
    X(SAW_NEW, "observers saw the new side granted")    \
    X(SESSIONS, "clients closed")

#define COUNT_ENUM(name, text) COUNT_##name,
enum count_kind { COUNT_MAP(COUNT_ENUM) COUNTS };

struct board {
    atomic_bool stop; /* everybody finishes and closes */
    atomic_llong counts[SIDES][COUNTS];
    atomic_int complaints; /* things that must not happen */
    char complaint[512];   /* the first of them */
};

/* The board of a folder; NULL: it cannot be used. The driver makes it. */
struct board *board_map(const char *folder, bool make);

/* Counts something that must not happen, and keeps the first description. */
void complain(struct board *board, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* What a worker process does, by the word that the driver gives it. */
#define MODE_STORM "storm"
#define MODE_RUSH                                                                               \
    "rush"                 /* no faults: threads of all processes want one lock, with leases of \
                              their own, so that each grant reserves fences for turns in vain */
#define MODE_QUEUE "queue" /* calm: all queue for one lock, and release it at once */
#define MODE_NAMES "names" /* calm: free locks of many names */

#endif
