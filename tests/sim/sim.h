/* SPDX-License-Identifier: MIT */
/* The simulated world: one server (server.h), several clients that run the same src/core, a network
 * and clocks, all from one seed. Time is a number; nothing waits, nothing is random but what the
 * seed says. The files:
 *
 *   main.c     seeds, mutants, statistics        plan.c     what a seed draws
 *   world.c    the queue of events, the trace    net.c      wires between clients and server
 *   client.c   clients, their clocks, actors     nemesis.c  what goes wrong
 *   check.c    what must be true                 mutants.c  deliberate bugs that must be caught
 */
#ifndef HF_SIM_SIM_H
#define HF_SIM_SIM_H

#include <holdfast.h>

#include "base/buffer.h"
#include "core/core.h"
#include "history.h"
#include "server.h"

enum {
    CLIENTS_MAX = 5,
    ACTORS_MAX = 4, /* of one client */
    LOCKS = 3,
    WIRES_MAX = SIM_CONNECTIONS_MAX,
    VALUES_MAX = 16384, /* remembered values of holds; a power of two */
    TRACE_LINES = 400,
    TRACE_TEXT = 160
};

#define MS(n) ((int64_t)(n)*1000000)

typedef struct world world;

/* ---- What a seed draws (plan.c) ---- */

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
    /* Beyond the assumptions of docs/safety.md: holds may overlap. */
    FAULT_RESTART_EMPTY,
    FAULT_RESTART_OLD, /* with an old copy; also a failover to a replica that lags */
    FAULT_EVICT,
    FAULT_CLOCK_STEP, /* the server's, either way */
    FAULT_CLOCK_RATE, /* beyond what is allowed for */
    FAULT_FOREIGN_DEL,
    FAULT_COUNT
} sim_fault;

extern const char *const fault_names[FAULT_COUNT];

typedef struct sim_plan {
    bool beyond; /* the assumptions */
    bool
        very_late; /* requests may arrive when their tombstone is gone: a lock may be left behind */
    int clients;
    int actors;
    int64_t delay_ns; /* of an ordinary message, up to that */
    int64_t lease_min_ms, lease_max_ms;
    int64_t connect_timeout_ms, reply_timeout_ms, call_timeout_ms;
    int links;
    double chance[FAULT_COUNT]; /* of one occasion; 0: not in this run */
    int64_t duration_ns;
} sim_plan;

void plan_draw(sim_plan *plan, uint64_t seed);

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

typedef struct sim_actor {
    actor_state state;
    uint64_t generation; /* of its EVENT_ACTOR */
    hf__call call;
    hf_hold *hold; /* in its hands */
    int lock;
    char value[128];                   /* of the hold */
    bool was_invalid;                  /* the hold has been seen invalid */
    int64_t lease_ms;                  /* longest asked for */
    int64_t granted_ns, last_valid_ns; /* true times of its belief in the hold */
    int64_t bound_ns;                  /* of the current call; INT64_MAX: none */
    int64_t call_began_ns;
    int64_t paused_before_ns; /* of its client, when the call began */
    int64_t read_value;       /* of the register */
    int steps_left;           /* of work */
    bool final;               /* in the last round */
} sim_actor;

typedef struct sim_client {
    bool alive;
    uint64_t generation;
    hf__core *core;
    hf__config config;
    uint64_t numbers;
    int links[HF_LINKS_MAX]; /* wire + 1; 0: none */
    int64_t wakes_ns;        /* when an EVENT_WAKE is scheduled; INT64_MAX: none is */
    bool paused;
    bool suspended;
    int64_t paused_since_ns, resumes_ns, paused_total_ns, suspended_total_ns;
    int64_t rate_ppm; /* its clock runs at 1 + that / 1e6 */
    int64_t clock_base_ns;
    sim_actor actors[ACTORS_MAX];
    hf__call close_call;
} sim_client;

typedef struct protected_register { /* what the locks protect; checks a fence when there are fences
                                     */
    int64_t value;
    int64_t acknowledged;
} protected_register;

typedef struct sim_stats {
    int64_t steps, grants, contended, extends, losses, refusals, unknowns, overlaps, lost_writes;
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
    protected_register registers[LOCKS];
    char foreign_value[LOCKS][32];
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
};

extern const char *const lock_names[LOCKS];
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
void client_finish_round(world *world); /* everybody once more, then close */
bool client_all_done(const world *world);
void client_close_all(world *world);

/* nemesis.c */
void nemesis_act(world *world);
void nemesis_foreign(world *world);
void nemesis_heal(world *world);
void server_set_clock(world *world);

/* check.c */
void check_beliefs(world *world); /* after every step of anybody */
void check_call(world *world, int client, int actor);
void check_belief_over(world *world, int client, int actor); /* it lets go, or dies */
void check_leaks(world *world);                              /* now and then */
void check_end(world *world);
void check_remember_value(world *world, const char *value);

/* mutants.c */
typedef struct sim_mutant {
    const char *name;
    const char *what;
    int core;                  /* HF__MUTANT_..., or 0 */
    sim_change_script *change; /* or NULL */
    bool monotonic;            /* clocks stop while the machine is suspended */
    int seeds;                 /* within which it must be caught */
} sim_mutant;

extern const sim_mutant mutants[];
extern const int mutant_count;
extern const sim_mutant *active_mutant; /* NULL: the real thing */

#endif
