/* SPDX-License-Identifier: MIT */
/* Load: worlds whose servers have a capacity (capacity.h), and clients that start many calls at
 * once. Both worlds use it. What must be true there:
 *
 *   - No hold is lost for another's sake. Where nothing else goes wrong, and the server can renew
 *     the holds that there are, no renewed hold is LOST, whatever its client starts beside it.
 *   - A server that answers slowly but steadily is not given up: no connection is closed for lack
 *     of an answer while answers come in time.
 *   - A server that is far away is not overloaded: nobody is held back for that.
 *   - After the overload everything is well again: every call has ended, no renewal is late, and
 *     nobody is held back. */
#ifndef HF_SIM_LOAD_H
#define HF_SIM_LOAD_H

#include "capacity.h"
#include "core/core.h"

#define LOAD_FIRST_NUMBER (UINT64_C(1) << 50) /* of its holds: above those of all others */

typedef enum load_kind {
    LOAD_NONE,
    LOAD_WAVES, /* many calls at once, again and again; the server is able to renew what they get */
    LOAD_GROWS, /* a client acquires more and more, in the end more than the server can renew */
    LOAD_ROUGH, /* waves, and other faults: holds may be lost */
    LOAD_FAR    /* waves, at a server that is far away and has nothing to do */
} load_kind;

typedef struct load_plan {
    load_kind kind;
    sim_capacity capacity;
    int calls;        /* that a client may have at a time */
    int wave;         /* that it begins at once, at most */
    int64_t pause_ms; /* until the next wave, at most */
    int64_t lease_ms, keep_ms, wait_ms;
    int64_t away_ns; /* each message takes at least that long */
} load_plan;

/* What the load of a seed is, in a world with so many clients, with so many links to each server.
 * `swarm`: tens of actors in each client, who would be served at a distance some day only. */
void load_draw(load_plan *plan, uint64_t seed, int clients, int links, bool swarm);
/* Nothing excuses the loss of a renewed hold. */
bool load_keeps_all(const load_plan *plan);

/* It must last: the watchdog renews it as usual, and the server has time for that. */
bool load_keeps(const load_plan *plan, const hf_hold *hold);

typedef struct load_call load_call;

typedef struct sim_load { /* of one client */
    const load_plan *plan;
    hf__core *core;
    const char *client_id;
    load_call *calls;
    uint64_t made;
    int held, most_held;
} sim_load;

/* What a world says. */
void client_step(world *world, int client, hf__event *event);
bool world_takes_load(const world *world);                            /* false: healing has begun */
void world_schedule_load(world *world, int client, int64_t delay_ns); /* to call load_go_on() */

void load_begin(world *world, sim_load *load, int client);
void load_go_on(world *world, sim_load *load, int client);
void load_free(sim_load *load); /* when its core is gone */
/* What the core says; false: it is about somebody else. */
bool load_done(world *world, sim_load *load, int client, const hf__call *call);
bool load_told(world *world, sim_load *load, int client, const hf__tell *tell);
/* After a step for bytes: there was an answer among them. */
bool load_answered(const hf__core *core, int link);
/* The client closes a connection over which it last heard something at that time. */
void load_closes(world *world, hf__core *core, int client, int link, int64_t heard_ns);
/* Long after the last wave. `idle`: nothing else keeps the servers busy. */
void load_check_rest(world *world, const sim_load *load, int client, bool idle);

#endif
