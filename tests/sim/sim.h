/* SPDX-License-Identifier: MIT */
/* The simulated world: one server (server.h), several clients that run the same src/core, a network
 * and clocks, all from one seed. Time is a number; nothing waits, nothing is random but what the
 * seed says. The files:
 *
 *   main.c     seeds, mutants, statistics        plan.c     what a seed draws
 *   world.c    the queue of events, the trace    net.c      wires between clients and server
 *   client.c   clients and their clocks          nemesis.c  what goes wrong
 *   actor.c    what applications do              query.c    people who look from outside
 *   wish.c     what they ask for                 mutants.c  deliberate bugs that must be caught
 *
 * What must be true: check.c (beliefs, leaks, the end), calls.c (outcomes of calls), fences.c
 * (fences and the registers that they protect), states.c (SAFE, JEOPARDY, LOST and what is told of
 * them).
 */
#ifndef HF_SIM_SIM_H
#define HF_SIM_SIM_H

#include <holdfast.h>

#include "base/buffer.h"
#include "core/core.h"
#include "history.h"
#include "plan.h"
#include "server.h"

enum {
    CLIENTS_MAX = 5,
    ACTORS_MAX = 4,   /* of one client */
    HANDLES_MAX = 16, /* of one client */
    NESTED_MAX = 3,   /* handles of one actor */
    LOCKS = 3,
    OWNERS = 2,
    FENCES_MAX = 8192, /* remembered fences; a power of two */
    WIRES_MAX = SIM_CONNECTIONS_MAX,
    VALUES_MAX = 16384, /* remembered values of holds; a power of two */
    TRACE_LINES = 400,
    TRACE_TEXT = 160
};

#define MS(n) ((int64_t)(n)*1000000)

typedef struct world world;

/* ---- Randomness (world.c) ---- */

uint64_t draw(world *world, uint64_t limit); /* 0 to limit - 1 */
int64_t draw_between(world *world, int64_t low, int64_t high);
bool draw_chance(world *world, double chance);
bool fault_happens(world *world, sim_fault fault); /* one occasion; counts it */

/* ---- Events ---- */

typedef enum event_kind {
    EVENT_WAKE,       /* client: its core's timer */
    EVENT_ACTOR,      /* client, actor: goes on with what it does */
    EVENT_CONNECTED,  /* wire */
    EVENT_REFUSED,    /* wire */
    EVENT_TO_SERVER,  /* wire, bytes */
    EVENT_TO_CLIENT,  /* wire, bytes */
    EVENT_CLIENT_END, /* wire: the client learns that it is broken */
    EVENT_SERVER_END, /* wire: the server learns it */
    EVENT_RESUME,     /* client */
    EVENT_KEEPER,     /* client, handle in `actor`: who keeps it gives it back */
    EVENT_QUERY,      /* client: goes on with what it asks */
    EVENT_TOLD,       /* client: a callback returns */
    EVENT_START,      /* client, after it was killed */
    EVENT_SERVER_UP,
    EVENT_NEMESIS,
    EVENT_FOREIGN
} event_kind;

typedef struct sim_event {
    int64_t at_ns;
    uint64_t order; /* of scheduling: events at the same time happen in this order */
    event_kind kind;
    int index; /* client or wire */
    int actor;
    uint64_t generation; /* of the client or wire it was meant for */
    char *bytes;
    size_t count;
} sim_event;

/* ---- Parts ---- */

typedef struct sim_wire {
    bool used;
    uint64_t generation;
    int client;
    uint64_t client_generation;
    int link;
    bool client_open, server_open;
    bool half_open;
    int64_t last_to_server_ns, last_to_client_ns; /* arrivals are in order */
} sim_wire;

typedef enum actor_state {
    ACTOR_THINKS,
    ACTOR_ACQUIRES,
    ACTOR_WORKS,
    ACTOR_EXTENDS,
    ACTOR_RELEASES,
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
    sim_wish wish;
    char value[128]; /* of the hold */
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

typedef struct sim_actor {
    actor_state state;
    uint64_t generation; /* of its EVENT_ACTOR */
    uint64_t thread;     /* as its client calls it */
    uint64_t party;      /* that thread, and no other one ever */
    hf__call call;
    sim_handle subject; /* what the call is about, as it was when the call began */
    int slot;           /* of that handle; acquire: none yet */
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

typedef struct sim_client {
    bool alive;
    uint64_t generation;
    hf__core *core;
    hf__config config;
    uint64_t numbers;
    uint64_t threads;        /* numbers of threads are never used twice */
    int links[HF_LINKS_MAX]; /* wire + 1; 0: none */
    int64_t wakes_ns;        /* when an EVENT_WAKE is scheduled; INT64_MAX: none is */
    bool paused;
    bool suspended;
    bool telling; /* a callback runs */
    int64_t paused_since_ns, resumes_ns, paused_total_ns, suspended_total_ns;
    int64_t rate_ppm; /* its clock runs at 1 + that / 1e6 */
    int64_t clock_base_ns;
    uint32_t held; /* which of the handles are */
    sim_handle handles[HANDLES_MAX];
    sim_actor actors[ACTORS_MAX];
    sim_query query;
    hf__call close_call;
} sim_client;

typedef struct protected_register { /* what a lock protects */
    int64_t value;
    int64_t acknowledged;
    uint64_t highest; /* fence; stays 0 in the register that does not check it */
} protected_register;

typedef struct sim_lock { /* what is known about a lock from outside */
    char side[4][64];     /* its side keys, as in side_letters */
    size_t side_length[4];
    uint64_t told_threads, told_owner[OWNERS], told_breaks; /* highest fences */
    uint64_t minted;                                        /* that the server ever had */
    bool forgotten; /* the server has lost its last fence, and not by a fault of ours */
    bool excused;   /* and its clock was behind that fence: no fence can be promised any more */
    bool old_copy;  /* the server once came back with an old state of it */
    int revokes, breaks;
    uint64_t revoked_fence; /* whose holder was asked last, and when that was certain */
    int64_t revoked_ns;
    protected_register plain, fenced;
    char foreign_value[32];
    int64_t foreign_from_ns, foreign_until_ns; /* believed by the foreigner; until 0: nothing */
    int64_t foreign_gone_ns;                   /* the server has dropped it by then */
} sim_lock;

enum { SIDE_Q, SIDE_F, SIDE_W, SIDE_H, SIDES };

typedef struct sim_fence { /* whose it is */
    uint64_t fence;
    uint64_t party;
    int lock;
} sim_fence;

typedef struct sim_stats {
    int64_t steps, grants, contended, extends, losses, refusals, unknowns, overlaps, lost_writes;
    int64_t nested, joined, renewals, jeopardies, told_lost, revoked, broken, inspected;
    int64_t fenced_writes, fenced_refusals, excused;
    int64_t faults[FAULT_COUNT];
} sim_stats;

struct world {
    uint64_t seed;
    uint64_t random;
    sim_plan plan;
    int64_t now_ns; /* true time */
    uint64_t orders;
    sim_event *queue; /* a binary heap */
    size_t queue_count, queue_capacity;
    hf__url url;
    sim_server *server;
    bool server_down;
    int64_t server_paused_until_ns;
    int64_t server_rate_ppm, server_offset_us;
    sim_image *old_copy;
    sim_wire wires[WIRES_MAX];
    sim_client clients[CLIENTS_MAX];
    sim_lock locks[LOCKS];
    uint64_t parties; /* the last one that was given out */
    int64_t lull_until_ns;
    history *history;   /* beliefs, for the judge that also judges live runs */
    int64_t gave_up_ns; /* when a client last stopped trying to release */
    bool healing;       /* no faults any more */
    bool finished;
    sim_stats stats;
    char failure[400]; /* empty: none */
    char trace[TRACE_LINES][TRACE_TEXT];
    uint64_t trace_count;
    uint64_t trace_hash;
    bool print_trace;
    uint64_t values_seen[VALUES_MAX]; /* hashes of values that some hold or foreigner had */
    sim_fence fences_seen[FENCES_MAX];
};

extern const char *const lock_names[LOCKS];
extern const char *const owner_names[OWNERS];
extern const char side_letters[SIDES + 1];
extern bool sim_allocation_fails; /* the next one of a client */

/* world.c */
void world_run(world *world, uint64_t seed, bool print_trace);
void world_free(world *world);
void world_schedule(world *world, sim_event event, int64_t delay_ns);
void world_log(world *world, const char *format, ...) __attribute__((format(printf, 2, 3)));
void world_fail(world *world, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* net.c */
void net_connect(world *world, int client, int link);
void net_close(world *world, int client, int link); /* by the client */
void net_send(world *world, int client, int link, const char *bytes, size_t count);
void net_break(world *world, int wire, bool client_learns);
void net_break_all(world *world, bool clients_learn);
void net_handle(world *world, sim_event *event);
void net_collect(world *world); /* what the server has said */

/* client.c */
void client_start(world *world, int index);
void client_kill(world *world, int index);
void client_free(sim_client *client);
void client_pause(world *world, int index, int64_t length_ns, bool suspend);
void client_step(world *world, int index, hf__event *event);
int64_t client_clock_ns(const sim_client *client, int64_t true_ns);
void client_handle(world *world, const sim_event *event);
void client_close_all(world *world);

/* actor.c */
void actor_begin(world *world, int index, int number); /* a new thread */
void actor_go_on(world *world, int index, int number);
void actor_call_done(world *world, int index, int number);
void actor_give_back_kept(world *world, int index, int slot);
void actor_finish_round(world *world); /* everybody once more, then close */
bool actor_all_done(const world *world);

/* wish.c */
sim_wish wish_draw(world *world, const sim_actor *actor);
void wish_draw_limits(world *world, const sim_actor *actor, bool bounded, hf__call *call);
hf_hold *wish_new_hold(sim_client *client, int index, const sim_actor *actor, const sim_wish *wish);

/* query.c */
void query_begin(world *world, int index, hf__query_kind kind);
void query_go_on(world *world, int index);
void query_done(world *world, int index);
void query_free(sim_query *query);

/* nemesis.c */
void nemesis_act(world *world);
void nemesis_foreign(world *world);
void nemesis_heal(world *world);
void server_set_clock(world *world);
int64_t server_now_us(const world *world);

/* check.c */
void check_beliefs(world *world); /* after every step of anybody */
void check_belief_over(world *world, int client, const sim_handle *handle); /* let go, or dead */
void check_foreign_over(world *world, int lock);
void check_leaks(world *world); /* now and then, and after a copy that came late */
void check_end(world *world);
void check_remember_value(world *world, const char *value);
bool check_knows_value(world *world, const char *value);
/* The server has the hold, at this moment of its own clock. */
bool check_server_has(world *world, const sim_handle *handle);

/* calls.c */
void check_call(world *world, int client, int actor);
void check_bound(world *world, int client, int64_t began_ns, int64_t paused_before_ns,
                 int64_t bound_ns);

/* fences.c */
void fences_begin(world *world);
void fences_call_begins(world *world, sim_actor *actor);
void fences_granted(world *world, int client, sim_actor *actor, sim_handle *handle);
uint64_t fences_highest(const sim_lock *lock);
void fences_broken(world *world, int client, sim_query *query);
void fences_write(world *world, int client, const sim_handle *handle, bool valid);
void fences_before_fault(
    world *world); /* of those that make servers forget, or their clocks jump */
void fences_lost(world *world, bool old_copy); /* the fault was one that forgets */
void fences_after_fault(world *world);
void fences_end(world *world);

/* states.c */
void states_granted(world *world, int client, sim_handle *handle);
void states_check(world *world, int client, sim_handle *handle, bool valid);
void states_told(world *world, int client, const hf__tell *tell);
void states_revoked(world *world, int lock); /* the request is at the server */

#endif
