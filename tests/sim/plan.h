/* SPDX-License-Identifier: MIT */
/* What a seed draws: which faults are in its run and how often, and the sizes of everything. */
#ifndef HF_SIM_PLAN_H
#define HF_SIM_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "load.h"

typedef enum sim_fault {
    FAULT_DELAY,        /* a message, perhaps beyond a lease */
    FAULT_CUT,          /* a connection, after any byte; what is on the way may still arrive */
    FAULT_HALF_OPEN,    /* no error, no bytes */
    FAULT_PAUSE,        /* a client, at any moment and right after a grant */
    FAULT_SUSPEND,      /* a client's machine */
    FAULT_KILL,         /* a client, which is started anew */
    FAULT_NODE_PAUSE,   /* the server */
    FAULT_RESTART_DATA, /* the server, with all its data */
    FAULT_FLUSH,        /* its scripts */
    FAULT_TROUBLE,      /* LOADING, BUSY, OOM for a while */
    FAULT_MEMORY,       /* an allocation of a client */
    FAULT_CANCEL,       /* an acquire */
    FAULT_FOREIGN,      /* somebody who uses SET NX and DEL on the same key */
    FAULT_LULL,         /* nobody begins anything for a while */
    FAULT_LOOK,         /* somebody inspects, or lists */
    FAULT_REVOKE,
    FAULT_THREAD_END, /* a thread ends, and somebody else keeps its holds */
    FAULT_PUSH_CUT,   /* a subscription, whether or not its client learns of it soon */
    FAULT_PUSH_DEAF,  /* no message comes, and nobody notices */
    FAULT_PUSH_STALL, /* a message, perhaps beyond a lease */
    FAULT_FAILOVER,   /* to a replica that has everything; subscriptions stay with the old one */
    /* Beyond the assumptions of docs/safety.md: holds may overlap. */
    FAULT_RESTART_EMPTY,
    FAULT_RESTART_OLD, /* with an old copy; also a failover to a replica that lags */
    FAULT_EVICT,
    FAULT_CLOCK_STEP, /* the server's, either way */
    FAULT_CLOCK_RATE, /* beyond what is allowed for */
    FAULT_FOREIGN_DEL,
    FAULT_BREAK,
    FAULT_DRAWN, /* those before are drawn for each world; the others are of permissions alone */
    FAULT_DENY_LOCK = FAULT_DRAWN, /* a client's permission for a lock is taken away, or given */
    FAULT_DENY_MESSAGES,           /* or that for messages */
    FAULT_PROBE,                   /* somebody looks at a key with megabytes */
    FAULT_FULL,                    /* the memory of a server is short; see memory.h */
    FAULT_COUNT
} sim_fault;

extern const char *const fault_names[FAULT_COUNT];

typedef struct sim_plan {
    bool beyond;    /* the assumptions */
    bool very_late; /* requests may come when their tombstone is gone, and leave a lock behind */
    int clients;
    unsigned elders; /* bits: clients of 0.7, which know fences by name only */
    int actors;
    int locks;                   /* of which there are LOCKS */
    bool swarm;                  /* actors make asynchronous calls, tens of them at once */
    int handles, spare;          /* room for handles of a client, and how much is kept free */
    int local_turns;             /* 0: none */
    bool permissions;            /* change, and no other fault happens; see permits.h */
    bool denies_all;             /* nobody may publish or subscribe */
    bool denies_some;            /* or one client may not */
    int64_t work_ms;             /* of one step of work, up to that */
    bool crowd;                  /* many threads that want much the same */
    int id_clerks, stock_clerks; /* of each client; mostly none */
    int64_t clerk_ms;            /* between two things that one does, up to that */
    int64_t skew_s;              /* that clocks of servers may be apart, for ids */
    bool small_steps;            /* the server's clock stays within that */
    bool many_ids;               /* blocks so large that a second has not enough for a few */
    int items;
    int64_t per_user, units; /* of an item: the limit, 0 none; how many at most */
    bool begins_again;       /* somebody begins items again, or deletes them */
    bool tokens;             /* holds go from client to client */
    int observers;           /* of each client; mostly none */
    int64_t delay_ns;        /* of an ordinary message, up to that */
    int64_t lease_min_ms, lease_max_ms, lease_usual_ms;
    int64_t fence_keep_ms;
    int64_t connect_timeout_ms, reply_timeout_ms, call_timeout_ms;
    int links;
    int checks; /* of servers: 0 those of the library, 1 all, as warnings, 2 only of replicas */
    double chance[FAULT_COUNT]; /* of one occasion; 0: not in this run */
    load_plan load;
    int64_t duration_ns;
} sim_plan;

void plan_draw(sim_plan *plan, uint64_t seed);

#endif
