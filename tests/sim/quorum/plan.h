/* SPDX-License-Identifier: MIT */
/* What a seed draws for a world with several servers. */
#ifndef HF_SIM_QUORUM_PLAN_H
#define HF_SIM_QUORUM_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "load.h"

typedef enum sim_fault {
    /* For every message. */
    FAULT_DELAY,     /* perhaps beyond a lease */
    FAULT_CUT,       /* a connection, after any byte; what is on the way may still arrive */
    FAULT_HALF_OPEN, /* no error, no bytes */
    FAULT_MEMORY,    /* for every step: an allocation of a client */
    /* For every visit of the nemesis. */
    FAULT_PAUSE, /* a client, longer than its leases */
    FAULT_KILL,  /* a client, which is started anew */
    FAULT_CANCEL,
    FAULT_PUSH_DEAF, /* no message comes, and nobody notices */
    FAULT_PARTITION, /* some clients from some servers, of which it may be any number */
    /* Of a minority of the servers at a time. */
    FAULT_STALL,
    FAULT_DOWN, /* cannot be reached, and remembers everything */
    FAULT_SLOW,
    FAULT_FLUSH, /* scripts */
    FAULT_RESTART,
    FAULT_RESTART_EMPTY,
    FAULT_RESTART_OLD, /* with the memory of an earlier time */
    FAULT_CLOCK_BACK,  /* by seconds */
    FAULT_CLOCK_JUMP,  /* by up to an hour, either way */
    FAULT_DRAWN, /* those before are drawn for each world; the others are of permissions alone */
    FAULT_DENY_LOCK = FAULT_DRAWN, /* at one server, a client's permission for a lock changes */
    FAULT_DENY_MESSAGES,           /* or that for messages */
    FAULT_PROBE,                   /* somebody looks at a key with megabytes */
    FAULT_FULL,                    /* the memory of a server is short; see memory.h */
    FAULT_COUNT
} sim_fault;

extern const char *const fault_names[FAULT_COUNT];

typedef enum sim_kind {
    KIND_QUIET,  /* no faults, but perhaps some servers are down all the time */
    KIND_WITHIN, /* the assumptions: one holder at a time */
    KIND_JUMPY   /* clocks jump at servers that have votes: fences only */
} sim_kind;

typedef struct plan {
    sim_kind kind;
    int nodes, quorum;
    int dead; /* quiet: so many servers never answer */
    bool dead_stall;
    int clients, actors, locks;
    bool all_fair;    /* nobody polls, nobody passes on locks among his threads */
    bool burst;       /* as many servers as may forget at once, otherwise one after the other */
    bool very_late;   /* requests may come when their tombstone is gone */
    bool fresh;       /* the servers have just been started */
    bool durable;     /* they never forget, and the clients know it */
    bool ids;         /* clients reserve ids too */
    int observers;    /* of each client; mostly none */
    bool swarm;       /* actors make asynchronous calls, tens of them at once */
    bool permissions; /* change, and no other fault happens; see ../permits.h */
    bool scripted;    /* nobody does anything by himself: a scenario says what */
    int links, local_turns;
    int64_t delay_ns; /* of an ordinary message, up to that */
    int64_t lease_min_ms, lease_max_ms, max_lease_ms;
    int64_t connect_timeout_ms, reply_timeout_ms, call_timeout_ms;
    int64_t fence_keep_ms;
    int64_t ids_skew_s;
    int64_t work_ms; /* of one step of work, up to that */
    double chance[FAULT_COUNT];
    load_plan load;
    int64_t duration_ns;
} plan;

/* nodes: 0, or how many there shall be. */
void plan_draw(plan *plan, uint64_t seed, int nodes);

#endif
