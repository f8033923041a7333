/* SPDX-License-Identifier: MIT */
/* The simulated world of a quorum: several servers (../server.h), each with a clock of its own,
 * and clients that run the same src/core, all from one seed and in virtual time. It stands beside
 * the world with one server (../sim.h), which knows much more about that one. The files:
 *
 *   main.c     what is counted and shown         plan.c      what a seed draws
 *   world.c    a run from begin to end           net.c       wires between clients and servers
 *   node.c     servers and their clocks          nemesis.c   what goes wrong, and with how many
 *   client.c   clients and their clocks          scenario.c  stories with a known end
 *   actor.c    what applications do              give_way.c  more of them
 *   ids.c      and what they do to get ids       ids_story.c  and of ids
 *   mutants.c  deliberate bugs that must be caught
 *   sights.c   how locks stand, for observers
 *
 * What both worlds have: ../clockwork.c (the queue of events, the trace), ../simulator.c (many
 * seeds, the hunt for mutants), ../client_time.c (clocks and timers of clients), ../fence_book.c
 * (whose a fence is), ../observers.c (those who watch locks), ../capacity.c (servers whose work
 * takes time) and ../load.c (clients that start many calls at once, and what must be true then).
 *
 * What must be true: check.c (one holder at a time; what is believed is so at a majority), fences.c
 * (fences and the register that they protect), order.c (who waits is served, in order, by so many
 * messages), heal.c (copies in place of lost ones), leaks.c (nothing is held or queued for nobody).
 *
 * A hold may have another value at each server, and a new one whenever it has yielded. What all of
 * them have in common is the label, which the world makes and no other acquire has. */
#ifndef HF_SIM_QUORUM_H
#define HF_SIM_QUORUM_H

#include <holdfast.h>

#include "base/buffer.h"
#include "client_time.h"
#include "clockwork.h"
#include "core/ids.h"
#include "fence_book.h"
#include "gaps.h"
#include "load.h"
#include "observers.h"
#include "permits.h"
#include "plan.h"
#include "prober.h"
#include "script_edit.h"
#include "server.h"

enum {
    NODES_MAX = 5,
    CLIENTS_MAX = 10,
    ACTORS_MAX = 24,  /* of one client: a swarm */
    USUAL_ACTORS = 4, /* at most, unless it is a swarm */
    HANDLES_MAX = 40, /* of one client */
    USUAL_HANDLES = 8,
    LOCKS = 8,
    NO_OWNER = -1,
    WIRES_MAX = SIM_CONNECTIONS_MAX, /* of one server */
    LINKS_MAX = NODES_MAX * (HF_LINKS_MAX + 1),
    LABEL_SIZE = 24,
    OWN_FENCES_MAX = 64, /* at hand, of one lock */
    IDS_EPOCH_S = 1600000000,
    IDS_GIVEN_MAX = 1000,
    BACK_MAX_MS = 5000, /* by which a clock may be put back while its server has a vote */
    TRACE_WIDTH = 170   /* hashes depend on it */
};

#define OWNERS 1

/* ---- Servers ---- */

typedef struct sim_wire {
    bool used;
    uint64_t generation;
    int client;
    uint64_t client_generation;
    int link;
    bool client_open, server_open;
    bool half_open;
    int64_t last_to_server_ns, last_to_client_ns; /* arrivals are in order */
    int64_t worked_ns; /* when the server has done what arrived; see capacity.h */
    int64_t heard_ns;  /* when the client last heard something */
} sim_wire;

typedef struct node {
    world *world;
    int index;
    sim_server *server;
    sim_capacity capacity;
    sim_watch watch;
    bool down;
    bool dead;          /* for the whole run */
    bool forgot;        /* it was restarted without all of its memory, and has no vote since */
    int64_t unnamed_ns; /* when it last hid its run_id: nobody could release anything there */
    int64_t stalled_until_ns, slow_until_ns;
    int64_t rate_ppm, offset_us;
    int64_t jumped_us;   /* of its offset: what is not right */
    int64_t put_back_us; /* by all its jumps: so much longer may last what it has */
    sim_image *old_copy;
    sim_wire wires[WIRES_MAX];
} node;

/* ---- Clients ---- */

typedef enum actor_state {
    ACTOR_THINKS,
    ACTOR_ACQUIRES,
    ACTOR_WORKS,
    ACTOR_EXTENDS,
    ACTOR_RELEASES,
    ACTOR_DONE
} actor_state;

typedef struct sim_wish { /* of an acquire */
    int lock;
    int owner;      /* or NO_OWNER */
    uint64_t party; /* who may hold it several times: a thread or an owner; never 0 */
    bool reenters, fair;
    int64_t lease_ms, interval_ms;
    char label[LABEL_SIZE];
} sim_wish;

/* In the hands of an application, from the grant to the release. */
typedef struct handle {
    hf_hold *hold;       /* NULL: none */
    const hf_hold *real; /* the hold that it is a handle of */
    int actor;
    bool nested; /* got by re-entering */
    bool moved;  /* got from another thread of the client */
    sim_wish wish;
    uint64_t fence;
    int64_t granted_ns;
    bool lost;
    /* What it has read in the register. */
    bool writes, fence_accepted;
    int64_t fenced_value;
    /* Copies that were made after the grant. */
    uint64_t first_healed;       /* their numbers begin with that; 0: they are not followed */
    uint64_t healed[NODES_MAX];  /* number of the last one at each server; 0: none */
    unsigned renewed[NODES_MAX]; /* which servers have renewed it since that was asked for */
    bool untried[NODES_MAX];     /* it has not been renewed itself yet */
} handle;

typedef struct actor {
    actor_state state;
    uint64_t generation; /* of its EVENT_ACTOR */
    uint64_t thread, party;
    hf__call call;
    handle subject; /* what the call is about */
    int64_t bound_ns, call_began_ns, paused_before_ns;
    uint64_t told_own, told_else; /* highest fences told before, to its party and to others */
    unsigned queued;              /* at which servers it has been seen to wait, or to hold */
    int64_t queued_ns;            /* since when at a majority; 0: it is not */
    int64_t messages;             /* scripts that were run for its acquire */
    int steps_left;               /* of work */
    bool final;                   /* in the last round */
} actor;

/* Reserves ids, one block after the other. */
typedef enum reserver_stage {
    RESERVER_IDLE,
    RESERVER_ACQUIRES,
    RESERVER_HOLDS, /* and is about to ask */
    RESERVER_ASKS,
    RESERVER_CHOSE, /* and is about to say so */
    RESERVER_KEEPS,
    RESERVER_ENDS, /* and is about to release */
    RESERVER_REPEATS
} reserver_stage;

typedef struct reserver {
    reserver_stage stage;
    reserver_stage repeats; /* where it is again when that is done */
    hf__call call;
    hf_hold *hold; /* NULL: none */
    uint64_t fence;
    hf__answer answer;
    hf__numbers said[NODES_MAX];
    hf__ids_choice choice;
    int64_t seen, began_ns;
    int given;
} reserver;

typedef struct client {
    bool alive;
    uint64_t generation;
    hf__core *core;
    hf__config config;
    uint64_t numbers, threads;
    int links[LINKS_MAX]; /* wire + 1; 0: none */
    sim_timer timer;      /* its clock, and its EVENT_WAKE */
    bool paused;
    int64_t paused_since_ns, resumes_ns, paused_total_ns;
    bool parted[NODES_MAX]; /* it cannot talk to these, */
    int64_t parted_until_ns;
    bool parted_drops; /* and what it says is lost, or late */
    handle handles[HANDLES_MAX];
    actor actors[ACTORS_MAX];
    reserver reserver;
    sim_load load;
    sim_permits permits[NODES_MAX]; /* of its user */
    sim_prober prober;
    sim_observer observers[OBSERVERS_MAX];
    bool seeing; /* a callback of an observer runs */
    hf__call close_call;
} client;

/* ---- The world ---- */

typedef enum event_kind {
    EVENT_WAKE,       /* client: its core's timer */
    EVENT_ACTOR,      /* client, actor: goes on with what it does */
    EVENT_LOAD,       /* client: starts and ends calls */
    EVENT_RESERVER,   /* client: goes on to reserve ids */
    EVENT_SEEN,       /* client: a callback of an observer returns */
    EVENT_RESUME,     /* client */
    EVENT_START,      /* client */
    EVENT_CONNECTED,  /* wire */
    EVENT_REFUSED,    /* wire */
    EVENT_TO_SERVER,  /* wire, bytes */
    EVENT_TO_CLIENT,  /* wire, bytes */
    EVENT_CLIENT_END, /* wire: the client learns that it is broken */
    EVENT_SERVER_END, /* wire: the server learns it */
    EVENT_NODE_UP,    /* node */
    EVENT_NEMESIS
} event_kind;

typedef struct own_fence { /* as a client was told of its hold */
    uint64_t who;          /* as in a standing */
    uint64_t fence;
} own_fence;

typedef struct sim_lock {
    char side[4][64]; /* its side keys, as in side_letters */
    size_t side_length[4];
    uint64_t told_threads, told_owner[OWNERS]; /* highest fences */
    int64_t value, acknowledged;               /* of the register */
    uint64_t highest;                          /* fence that the register has seen */
    int64_t idle_ns;   /* since when nobody has it, though somebody waits; 0: it is not so */
    int64_t shared_ns; /* when a server last had it as that of an owner; 0: none has */
    own_fence own[OWN_FENCES_MAX]; /* of the last grants, by their numbers */
    uint64_t own_count;
} sim_lock;

typedef struct sim_reservation { /* a block of ids that was given out */
    int client;
    uint64_t fence;
    hf__ids_block block;
    int64_t began_ns, given_ns;
} sim_reservation;

typedef struct sim_ids {
    sim_reservation given[IDS_GIVEN_MAX];
    int count, jumps;
    int64_t jumped_ns;                   /* when one last did */
    int64_t clock_low_us, clock_high_us; /* how wrong clocks have been */
    bool forgot;                         /* a server did, */
    bool hasty;                          /* too soon after a jump */
} sim_ids;

enum { SIDE_Q, SIDE_F, SIDE_W, SIDE_H, SIDES };

typedef struct stats {
    int64_t steps, grants, contended, extends, losses, refusals, unknowns, overlaps, nested, joined;
    int64_t fenced_writes, fenced_refusals, forgetting, rejoined, served_in_order;
    int64_t ids_given, ids_outdated, ids_jumps, ids_unpromised, ids_twice;
    int64_t sights, sights_missed;
    int64_t messages, messages_max; /* of acquires that were granted */
    int64_t hidden;                 /* how often a server began to hide its run_id */
    int64_t faults[FAULT_COUNT];
} stats;

struct world {
    clockwork run;
    plan plan;
    sim_gaps gaps;
    hf__url urls[NODES_MAX];
    node nodes[NODES_MAX];
    client clients[CLIENTS_MAX];
    sim_lock locks[LOCKS];
    sim_ids ids;
    sim_sights sights;
    bool outsider; /* another program uses the locks, and nobody else does */
    uint64_t parties, labels;
    int64_t last_forgot_ns; /* when a server last did; 0: none has */
    int64_t gave_up_ns;     /* when a client last stopped trying to release */
    int64_t disturbed_ns;   /* the last moment at which a server stood still, or a partition held
                             * messages back */
    bool healing;           /* no faults any more, */
    int64_t healed_ns;      /* since then */
    bool resting;           /* nobody begins anything */
    bool unloaded;          /* nor will there be any load */
    bool finished;
    stats stats;
    fence_book fences;
};

extern const char *const lock_names[LOCKS];
extern const char *const owner_names[OWNERS];

/* world.c */
bool fault_happens(world *world, sim_fault fault); /* one occasion; counts it */
void world_begin(world *world, uint64_t seed, const plan *plan, bool print_trace);
void world_run(world *world, uint64_t seed, int nodes, bool print_trace);

/* node.c */
void node_begin(world *world, int index);
void node_free(node *node);
int64_t node_now_us(const node *node);
int64_t node_error_us(const node *node); /* of its clock */
void node_set_clock(node *node);
bool node_votes(node *node);       /* by what it has written down */
void node_hide_fields(node *node); /* others, from now on, if that is in this run */
void node_restart(node *node, const sim_image *image, const char *with);
const char *node_held_as(node *node, int lock); /* NULL: it is free */
/* Whether the hold with this label has the lock there, at this moment of the server's clock. */
bool node_has(node *node, const sim_wish *wish, const char *label);
bool has_label(const char *value, const char *label); /* a value of a hold */

/* net.c */
void net_connect(world *world, int client, int link);
void net_close(world *world, int client, int link); /* by the client */
void net_send(world *world, int client, int link, const char *bytes, size_t count);
void net_break(node *node, int wire);
void net_break_all(node *node, bool clients_learn);
void net_make_deaf(world *world, int client, int node);         /* the subscription */
int net_subscription(const world *world, int client, int node); /* its wire; -1: none */
void net_hold_back(world *world, int client, int node, bool to_server, int64_t length_ns);
void net_handle(world *world, sim_event *event);

/* client.c */
void client_start(world *world, int index);
void client_kill(world *world, int index);
void client_free(client *client);
void client_pause(world *world, int index, int64_t length_ns);
void client_step(world *world, int index, hf__event *event);
hf__instant client_now(const world *world, const client *client);
void client_handle(world *world, const sim_event *event);
void client_close_all(world *world);
void client_probe(world *world, int index); /* somebody looks at something large */
bool client_all_closed(const world *world);

/* actor.c */
void actor_begin(world *world, int index, int number);
void actor_go_on(world *world, int index, int number);
void actor_call_done(world *world, int index, int number);
void actor_acquire(world *world, int index, int number, sim_wish wish, hf__call limits);
handle *actor_handle(client *client, int number); /* one of its own; NULL: it has none */
void actor_finish_round(world *world);            /* everybody once more */
bool actor_all_done(const world *world);
bool actor_all_rest(const world *world); /* nobody waits and nobody holds */
/* Fails if somebody alive is in another state. */
void actor_name_late(world *world, actor_state state, const char *when);

/* ids.c */
void ids_begin(world *world, int client);
void ids_go_on(world *world, int client);
void ids_call_done(world *world, int client);
void ids_repeat(world *world, int client, const hf__ids_choice *choice); /* NULL: asks again */
void ids_clock_moved(node *node);
void ids_forgotten(node *node);
bool ids_all_rest(const world *world); /* nobody is about to reserve some */

/* sights.c */
void sights_granted(world *world, const handle *handle);
void sights_outsider(world *world); /* in the end; observers find it out */

/* nemesis.c */
void nemesis_act(world *world);
int64_t nemesis_heal(world *world); /* when the last server goes on, in true time */
void nemesis_part(world *world, int client, const bool *nodes, int64_t length_ns, bool drops);
void nemesis_jump(node *node, int64_t jump_us);
void nemesis_forget(node *node, const sim_image *image, const char *with); /* restarts it */
void nemesis_notice_votes(world *world); /* of servers that had forgotten */

/* check.c */
void check_beliefs(world *world); /* after every step of anybody */
void check_call(world *world, int client, int actor);
bool check_valid(const world *world, const client *client, const handle *handle);
/* Of the hold that a handle stands for: another thread may have begun it. False: it has none. */
bool check_label(const handle *handle, char label[LABEL_SIZE]);

/* leaks.c */
void leaks_check(world *world);            /* now and then */
void leaks_step(world *world, int client); /* before each of its steps */
void leaks_check_end(world *world);

/* order.c */
void order_look(node *node); /* who waits there now */
void order_granted(world *world, int client, int actor);
void order_check(world *world); /* after every step of anybody */
/* What the servers are watched by. */
void order_ran(void *node, const char *sha1, const hf__slice *arguments, int count);
void order_published(void *node, const char *channel, size_t channel_length, const char *message,
                     size_t length);

/* heal.c */
void heal_granted(handle *handle);
void heal_ran(node *node, const char *sha1, hf__slice value);

/* fences.c */
void fences_begin(world *world);
void fences_call_begins(world *world, actor *actor);
void fences_granted(world *world, int client, actor *actor, handle *handle);
bool fences_write(world *world, int client, const handle *handle); /* false: refused */
void fences_end(world *world);

/* mutants.c */
typedef struct mutant {
    const char *name;
    const char *what;
    int core;             /* HF__MUTANT_... */
    int seeds;            /* within which it must be caught */
    const char *scenario; /* in which it must be caught instead; NULL: none */
    sim_edit edits[EDITS_MAX];
} mutant;

extern const mutant mutants[];
extern const int mutant_count;
extern const mutant *active_mutant;     /* NULL: the real thing */
sim_change_script mutant_change_script; /* what the active one does to scripts */

/* scenario.c */
bool scenario_fails(world *world, const char *name, bool print_trace, bool quietly, char *how,
                    size_t size);

#endif
