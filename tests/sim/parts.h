/* SPDX-License-Identifier: MIT */
/* What a simulated world is made of: wires, clients with their actors, locks as they are seen from
 * outside. */
#ifndef HF_SIM_PARTS_H
#define HF_SIM_PARTS_H

#include <holdfast.h>

#include "base/buffer.h"
#include "client_time.h"
#include "core/core.h"
#include "fence_book.h"
#include "load.h"
#include "observers.h"
#include "permits.h"
#include "plan.h"
#include "prober.h"
#include "server.h"
#include "stores.h"

enum {
    CLIENTS_MAX = 5,
    ACTORS_MAX = 40,  /* of one client: a swarm */
    USUAL_ACTORS = 5, /* at most, unless it is a swarm */
    HANDLES_MAX = 64, /* of one client */
    USUAL_HANDLES = 16,
    NESTED_MAX = 3, /* handles of one actor */
    LOCKS = 12,
    USUAL_LOCKS = 3,
    OWNERS = 2,
    TOKENS_MAX = 32, /* at a time */
    WIRES_MAX = SIM_CONNECTIONS_MAX,
    VALUES_MAX = 131072,          /* remembered values of holds; a power of two */
    QUEUE_MAX = CLIENTS_MAX * 64, /* more than can wait for a lock, the killed ones included */
    MESSAGES_MAX = 1100,          /* of one script */
    TRACE_WIDTH = 130             /* hashes depend on it */
};

typedef struct sim_wire {
    bool used;
    uint64_t generation;
    int client;
    uint64_t client_generation;
    int link;
    bool push;           /* it is the subscription */
    uint64_t server_run; /* the process at its other end */
    bool client_open, server_open;
    bool half_open;
    int64_t last_to_server_ns, last_to_client_ns; /* arrivals are in order */
    int64_t worked_ns; /* when the server has done what arrived; see capacity.h */
    int64_t heard_ns;  /* when the client last heard something */
} sim_wire;

typedef enum actor_state {
    ACTOR_THINKS,
    ACTOR_ACQUIRES,
    ACTOR_WORKS,
    ACTOR_EXTENDS,
    ACTOR_RELEASES,
    ACTOR_ATTACHES,
    ACTOR_DONE
} actor_state;

enum { NO_OWNER = -1, KEEPER = -1 };
#define BREAKERS UINT64_MAX /* as a party: two who break the same hold have one fence */

typedef struct sim_wish { /* of an acquire */
    int lock;
    int owner;      /* or NO_OWNER */
    uint64_t party; /* who may hold it several times: a thread or an owner; never 0 */
    bool reenters;
    int64_t lease_ms, interval_ms, timeout_ms, max_hold_ms, warn_ms;
} sim_wish;

/* In the hands of an application, from the grant to the release. */
typedef struct sim_handle {
    hf_hold *hold;       /* NULL: none */
    const hf_hold *real; /* the hold that it is a handle of */
    int actor;           /* or KEEPER */
    bool nested;         /* got by re-entering */
    bool untold;         /* the call is done, and the application has not heard of it yet */
    sim_wish wish;
    char value[128]; /* of the hold */
    bool moved;      /* it was begun by another thread of the client */
    uint64_t fence;

    /* Beliefs, in true time; 0: never. */
    int64_t granted_ns, last_valid_ns, lost_ns;
    /* By the client's clock. */
    int64_t granted_local_ns, moved_local_ns, deadline_local_ns;
    int64_t longest_ms; /* lease ever asked for */
    bool extended;      /* by hand */
    bool stretched;     /* it may have had more than the lease that it was acquired with */

    /* What its listener was told. */
    hf_state told_state;
    bool told_revoked;

    /* What it has read in the registers. */
    bool writes, fence_accepted;
    int64_t read_value, fenced_value;
} sim_handle;

typedef enum token_state {
    TOKEN_NONE,
    TOKEN_UNDER_WAY,
    TOKEN_ATTACHING, /* a client has asked for it */
    TOKEN_DROPPED    /* nobody will; or who had it was killed */
} token_state;

typedef struct sim_token { /* a hold that nobody has */
    token_state state;
    int client;    /* attaching */
    int tries;     /* that found nobody to take it up */
    sim_wish wish; /* its lock, owner and party count */
    char value[128];
    uint64_t fence, fence_top;
    int64_t lease_ms;
    bool late;
    bool ended;         /* the server has been seen without it */
    int64_t longest_ms; /* lease ever asked for */
    bool stretched;
    int64_t until_ms; /* by the server's clock: it has it until then, whoever does what */
    int64_t gone_ns;  /* in true time: and not after that, unless it is taken up */
    /* What its last holder has read in the registers, and not written. */
    bool writes, fence_accepted;
    int64_t read_value, fenced_value;
} sim_token;

typedef struct sim_actor {
    actor_state state;
    uint64_t generation; /* of its EVENT_ACTOR */
    uint64_t thread;     /* as its client calls it */
    uint64_t party;      /* that thread, and no other one ever */
    hf__call call;
    sim_handle subject; /* what the call is about, as it was when the call began */
    int slot;           /* of that handle; acquire: none yet; attach: of the token */
    bool was_last;      /* release: no other handle of the hold is left */
    int64_t bound_ns;   /* of the current call; INT64_MAX: none */
    int64_t call_began_ns;
    int64_t paused_before_ns;     /* of its client, when the call began */
    uint64_t told_own, told_else; /* highest fences told before, to its party and to others */
    int steps_left;               /* of work */
    bool final;                   /* in the last round */
} sim_actor;

typedef struct sim_query { /* somebody asks about a lock that he need not hold */
    bool busy;
    hf__query_kind wanted, asked; /* some are an inspection first */
    int lock;
    hf__call call;
    hf__answer answer;
    hf_inspection inspection;
    int64_t began_ns, paused_before_ns;
    uint64_t told_before; /* the highest fence, when it began */
} sim_query;

typedef struct sim_front { /* the last grant of a lock to a client that passes on locks */
    char value[128];
    int turns;             /* how often it has been passed on */
    int64_t from_ns;       /* when the client learnt of it */
    int64_t from_local_ns; /* and by its clock */
} sim_front;

typedef struct sim_client {
    bool alive;
    uint64_t generation;
    hf__core *core;
    hf__config config;
    uint64_t numbers;
    uint64_t threads;                            /* numbers of threads are never used twice */
    int links[HF_LINKS_MAX + HF__LINKS_BESIDES]; /* wire + 1; 0: none */
    sim_permits permits;                         /* of its user */
    sim_prober prober;
    sim_front fronts[LOCKS];
    uint64_t subscribed_run; /* the server process that its last subscription was made with */
    int64_t cut_ns;          /* when its subscription was cut last, in quiet times; 0: never */
    sim_timer timer;         /* its clock, and its EVENT_WAKE */
    bool paused;
    bool suspended;
    bool telling; /* a callback runs */
    bool seeing;  /* a callback of an observer does */
    sim_observer observers[OBSERVERS_MAX];
    int64_t paused_since_ns, resumes_ns, paused_total_ns, suspended_total_ns;
    uint64_t held; /* which of the handles are */
    sim_handle handles[HANDLES_MAX];
    sim_actor actors[ACTORS_MAX];
    sim_query query;
    sim_clerk clerks[CLERKS_MAX];
    sim_load load;
    hf__call close_call;
} sim_client;

typedef struct protected_register { /* what a lock protects */
    int64_t value;
    int64_t acknowledged;
    uint64_t highest; /* fence; stays 0 in the register that does not check it */
} protected_register;

typedef struct sim_waiter { /* as the server has it */
    char value[128];
    char owner[16]; /* empty: none */
    int client;     /* or -1: it has been killed */
    bool deaf;      /* no message can tell it of a grant: it asks by itself */
    int64_t alive_until_ms;
    int64_t queued_ns;
} sim_waiter;

typedef struct sim_queue {
    sim_waiter *waiters;
    int count;
    char held[128];      /* the value of the lock's key; empty: it is free */
    int64_t held_ns;     /* since when */
    bool marked;         /* the fence says that there is something in it */
    int64_t deserted_ns; /* since when it is free though somebody waits; 0: it is not */
} sim_queue;

typedef struct sim_message {
    char channel[48];
    char text[96];
} sim_message;

typedef struct sim_lock { /* what is known about a lock from outside */
    char side[4][64];     /* its side keys, as in side_letters */
    size_t side_length[4];
    char slot[32]; /* the mark of its slot */
    size_t slot_length;
    uint64_t told_threads, told_owner[OWNERS], told_breaks; /* highest fences */
    uint64_t minted;                                        /* that the server ever had */
    bool forgotten;    /* the server has lost its last fence, and not by a fault of ours */
    bool excused;      /* and its clock was behind that fence: no fence can be promised any more */
    bool old_copy;     /* the server once came back with an old state of it */
    int64_t shared_ns; /* when it was last held for an owner */
    int revokes, breaks;
    uint64_t revoked_fence; /* whose holder was asked last, and when that was certain */
    int64_t revoked_ns;
    protected_register plain, fenced;
    char foreign_value[32];
    int64_t foreign_from_ns, foreign_until_ns; /* believed by the foreigner; until 0: nothing */
    int64_t foreign_gone_ns;                   /* the server has dropped it by then */
    sim_queue queue;
} sim_lock;

enum { SIDE_Q, SIDE_F, SIDE_W, SIDE_H, SIDES };

typedef struct sim_stats {
    int64_t steps, grants, contended, extends, losses, refusals, unknowns, overlaps, lost_writes;
    int64_t nested, joined, renewals, jeopardies, told_lost, revoked, broken, inspected;
    int64_t fenced_writes, fenced_refusals, excused;
    int64_t queued, pushed, turns;
    int64_t detached, attached, unattached, dropped;
    int64_t ids_blocks, ids_jumps, ids_forgot, ids_excused, ids_refused;
    int64_t hidden; /* how often the server began to hide its run_id */
    int64_t sold, reserved, confirmed, ended, taken_back, refused_orders, begun_again, deleted;
    int64_t forgotten_orders;
    int64_t sights, sights_missed;
    int64_t under_way_max; /* calls of one client at once */
    int64_t faults[FAULT_COUNT];
} sim_stats;

#endif
