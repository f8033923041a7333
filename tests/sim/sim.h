/* SPDX-License-Identifier: MIT */
/* The simulated world: one server (server.h), several clients that run the same src/core, a network
 * and clocks, all from one seed. Time is a number; nothing waits, nothing is random but what the
 * seed says. The files:
 *
 *   main.c     what is counted and shown         plan.c     what a seed draws
 *   world.c    a run from begin to end           net.c      wires between clients and server
 *   client.c   clients and their clocks          nemesis.c  what goes wrong
 *   actor.c    what applications do              query.c    people who look from outside
 *   wish.c     what they ask for                 mutants.c  deliberate bugs that must be caught
 *   handles.c  what they have                    tokens.c   holds between two clients
 *   clerks.c   those who use no locks            ids.c      ids that they fetch
 *   shop.c     what they buy                     sights.c   how locks stand, for observers
 *
 * What the world with several servers (quorum/quorum.h) has as well: clockwork.c (the queue of
 * events, the trace), gaps.c (INFO fields that are missing), simulator.c (many seeds, the hunt for
 * mutants), client_time.c (clocks and timers of clients), fence_book.c (whose a fence is),
 * observers.c (those who watch locks), capacity.c (servers whose work takes time) and load.c
 * (clients that start many calls at once, and what must be true then).
 *
 * What must be true: check.c (beliefs, the end), leaks.c (nothing is held or queued for nobody),
 * calls.c (outcomes of calls), fences.c (fences and the registers that they protect), states.c
 * (SAFE, JEOPARDY, LOST and what is told of them), queues.c (who waits is served, in order),
 * quiet.c (and not in vain), turns.c (locks that pass between the threads of a client), ids.c (no
 * id twice, and in order), shop_book.c (nothing is sold twice, or comes back twice), shop_end.c
 * (and nothing is left).
 */
#ifndef HF_SIM_SIM_H
#define HF_SIM_SIM_H

#include "clockwork.h"
#include "gaps.h"
#include "history.h"
#include "observers.h"
#include "parts.h"

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
    EVENT_LOAD,       /* client: starts and ends calls */
    EVENT_CLERK,      /* client, clerk in `actor`: goes on with the next thing */
    EVENT_TOLD,       /* client: a callback returns */
    EVENT_SEEN,       /* client: a callback of an observer returns */
    EVENT_TOKEN,      /* token in `index`: somebody gets it */
    EVENT_START,      /* client, after it was killed */
    EVENT_SERVER_UP,
    EVENT_NEMESIS,
    EVENT_CUT, /* somebody's subscription, in quiet times */
    EVENT_FOREIGN
} event_kind;

struct world {
    clockwork run;
    sim_plan plan;
    sim_gaps gaps;
    hf__url url;
    sim_server *server;
    sim_capacity capacity;
    bool server_down;
    uint64_t server_runs; /* processes; the first is 1 */
    int64_t server_paused_until_ns;
    int64_t server_rate_ppm, server_offset_us;
    sim_image *old_copy;
    sim_wire wires[WIRES_MAX];
    sim_client clients[CLIENTS_MAX];
    sim_lock locks[LOCKS];
    sim_token tokens[TOKENS_MAX];
    int token_count;  /* those in use are among the first so many */
    uint64_t parties; /* the last one that was given out */
    int64_t lull_until_ns;
    history *history;   /* beliefs, for the judge that also judges live runs */
    int64_t gave_up_ns; /* when a client last stopped trying to release */
    bool healing;       /* no faults any more */
    bool resting;       /* nobody begins anything: what is on its way arrives */
    bool quiet;         /* no faults, and none that was is felt any more */
    int64_t quiet_ns;   /* since when */
    bool finished;
    sim_stats stats;
    uint64_t values_seen[VALUES_MAX]; /* hashes of values that some hold or foreigner had */
    fence_book fences;
    sim_ids ids[IDS_NAMES];
    int64_t lowest_offset_us, highest_offset_us; /* of the server's clock: at first, and ever */
    sim_shop shop;
    sim_sights sights;
    bool outsider; /* another program uses the locks, and nobody else does */
    sim_watch watch;
    bool watching; /* scripts of clients run */
    bool may_push; /* whoever runs them may publish */
    sim_message messages[MESSAGES_MAX];
    int message_count;
};

extern const char *const lock_names[LOCKS];
extern const char *const owner_names[OWNERS];
extern const char side_letters[SIDES + 1];

/* world.c */
void world_run(world *world, uint64_t seed, bool print_trace);
bool fault_happens(world *world, sim_fault fault); /* one occasion; counts it */

/* net.c */
void net_connect(world *world, int client, int link);
void net_close(world *world, int client, int link); /* by the client */
void net_send(world *world, int client, int link, const char *bytes, size_t count);
void net_break(world *world, int wire, bool client_learns);
void net_break_all(world *world, bool clients_learn, bool subscribed_too);
bool net_may_be_late(const world *world); /* by more than a lease, on the way to the server */
int net_subscription(const world *world, int client); /* its wire; -1: none */
void net_handle(world *world, sim_event *event);
void net_collect(world *world); /* what the server has said */

/* client.c */
void client_start(world *world, int index);
void client_kill(world *world, int index);
void client_free(sim_client *client);
void client_pause(world *world, int index, int64_t length_ns, bool suspend);
void client_step(world *world, int index, hf__event *event);
int64_t client_clock_ns(const sim_client *client, int64_t true_ns);
hf__instant client_now(const world *world, const sim_client *client);
void client_handle(world *world, const sim_event *event);
void client_close_all(world *world);
void client_probe(world *world, int index); /* somebody looks at something large */

/* actor.c */
void actor_begin(world *world, int index, int number); /* a new thread */
void actor_go_on(world *world, int index, int number);
void actor_call_done(world *world, int index, int number);
void actor_give_back_kept(world *world, int index, int slot);
/* An actor of the client that takes up the token; false: none has time. */
bool actor_attach(world *world, int index, int token);
void actor_goes_on(world *world, int index, int number); /* with what it has left */
void actor_all_go_on(world *world);                      /* after a rest */
void actor_finish_round(world *world);                   /* everybody once more, then close */
bool actor_all_done(const world *world);

/* handles.c */
int handles_any(world *world, const sim_client *client, int actor, int *count);
int handles_free(const world *world, const sim_client *client, int *first);
bool handles_is_last(const sim_client *client, const sim_handle *handle);
hf_hold *handles_take_away(world *world, int index, int slot);
void handles_put_value(sim_handle *handle, const hf_hold *hold);
sim_handle *handles_take(world *world, int index, int actor);

/* wish.c */
sim_wish wish_draw(world *world, const sim_actor *actor);
void wish_draw_limits(world *world, const sim_actor *actor, bool bounded, hf__call *call);
hf_hold *wish_new_hold(world *world, int client, const sim_actor *actor, const sim_wish *wish);
sim_wish wish_draw_attach(world *world, const sim_actor *actor, const sim_token *token);
hf_hold *wish_attach_hold(sim_client *client, int index, const sim_wish *wish,
                          const sim_token *token);

/* tokens.c */
sim_token *tokens_find_place(world *world); /* NULL: there are too many */
/* An actor detaches what it holds, and it goes to others; or it tries to, having re-entered it. */
void tokens_detach(world *world, int index, int number, int slot, sim_token *place);
void tokens_detach_in_vain(world *world, int index, int number, int slot);
void tokens_arrive(world *world, int number);
void tokens_attached(world *world, int number);
void tokens_refused(world *world, int number, hf_status status); /* its attach failed */
void tokens_client_dies(world *world, int index);
void tokens_check(world *world);                         /* after every step of anybody */
void tokens_check_cores(world *world);                   /* now and then */
bool tokens_know(const world *world, const char *value); /* the server may have it for nobody */
bool tokens_over(const world *world);

/* query.c */
void query_begin(world *world, int index, hf__query_kind kind);
void query_go_on(world *world, int index);
void query_done(world *world, int index);
void query_free(sim_query *query);

/* clerks.c */
void clerks_begin(world *world, int index);
void clerk_go_on(world *world, int index, int number);
void clerk_start(world *world, int index, int number, hf__query *query);
void clerk_done(world *world, int index, int number);
void clerks_free(sim_client *client);

/* ids.c */
void ids_begin(world *world);
void ids_ask(world *world, int index, int number);
void ids_answered(world *world, int index, int number);
void ids_ran(world *world);  /* after a script of ids */
void ids_lost(world *world); /* the server has come back, perhaps with less */

/* shop.c */
extern const char *const item_names[ITEMS];
hf__slice shop_user(int user);
hf__slice shop_request(const world *world, int order, char text[REQUEST_SIZE]);
void shop_act(world *world, int index, int number);
void shop_answered(world *world, int index, int number);

/* shop_book.c */
void shop_begin(world *world);
void shop_ran(world *world, const char *sha1, const hf__slice *arguments, int count);
void shop_told(world *world, int index, const sim_clerk *clerk, hf_status status,
               const hf_error *error);
void shop_copied(world *world); /* the world has a new old copy */
void shop_lost(world *world, bool old_copy);

/* shop_end.c */
void shop_end(world *world);

/* nemesis.c */
void nemesis_act(world *world);
void nemesis_foreign(world *world);
void nemesis_cut(world *world);
void nemesis_heal(world *world);
void server_set_clock(world *world);
int64_t server_now_us(const world *world);

/* check.c */
void check_beliefs(world *world); /* after every step of anybody */
void check_belief_over(world *world, int client, const sim_handle *handle); /* let go, or dead */
void check_foreign_over(world *world, int lock);
void check_end(world *world);
void check_remember_value(world *world, const char *value);
bool check_knows_value(world *world, const char *value);
/* A release script has found the hold with that value, and ended it; whether one has. */
void check_note_release(world *world, const char *value);
bool check_was_released(world *world, const char *value);
/* The server has the hold, at this moment of its own clock. */
bool check_server_has(world *world, const sim_handle *handle);
/* What the lock's key holds; NULL: nothing. */
const char *check_held_as(world *world, int lock);

/* leaks.c */
void check_leaks(world *world);     /* now and then, and after a copy that came late */
void check_leftovers(world *world); /* at the end */
hf_hold *check_hold_of(const sim_client *client, const char *value); /* NULL: its core has none */

/* queues.c */
void queues_begin(world *world);
void queues_free(world *world);
void queues_look(world *world); /* what the server has now, however it got there */
int queues_client_of(const world *world, const char *value); /* -1: nobody alive */
bool queues_others_wait(world *world, int lock, int client, int64_t before_ns);

/* quiet.c */
void quiet_check(world *world); /* after every step of anybody */
void quiet_lost(world *world, int client, const sim_handle *handle);

/* sights.c */
void sights_outsider(world *world); /* in the end; observers find it out */

/* turns.c */
void turns_granted(world *world, int client, const sim_actor *actor, sim_handle *handle);

/* calls.c */
void check_call(world *world, int client, int actor);
void check_bound(world *world, int client, int64_t began_ns, int64_t paused_before_ns,
                 int64_t bound_ns);

/* fences.c */
void fences_begin(world *world);
void fences_call_begins(world *world, sim_actor *actor);
void fences_granted(world *world, int client, sim_actor *actor, sim_handle *handle);
void fences_attached(world *world, int client, sim_handle *handle, const sim_token *token);
uint64_t fences_highest(const sim_lock *lock);
uint64_t fences_by_name(world *world, const sim_lock *lock); /* 0: none */
void fences_broken(world *world, int client, sim_query *query);
void fences_write(world *world, int client, const sim_handle *handle, bool valid);
void fences_before_fault(
    world *world); /* of those that make servers forget, or their clocks jump */
void fences_lost(world *world, bool old_copy); /* the fault was one that forgets */
void fences_after_fault(world *world);
/* The server has a fence of the lock that is as high as those that were told, unless its time is
 * over; and one under its name while it is held. */
void fences_kept(world *world, int lock);
void fences_end(world *world);

/* states.c */
void states_granted(world *world, int client, sim_handle *handle);
void states_check(world *world, int client, sim_handle *handle, bool valid);
void states_told(world *world, int client, const hf__tell *tell);
void states_revoked(world *world, int lock); /* the request is at the server */

#endif
