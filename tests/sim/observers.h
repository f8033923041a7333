/* SPDX-License-Identifier: MIT */
/* Observers in a simulated world, whether it has one server (sim.h) or several (quorum/quorum.h):
 * clients that watch locks, and what must be true of what they are told. Each world says how its
 * locks stand; everything else is here. */
#ifndef HF_SIM_OBSERVERS_H
#define HF_SIM_OBSERVERS_H

#include "clockwork.h"
#include "core/core.h"

enum {
    OBSERVERS_MAX = 2,   /* of one client */
    OBSERVED_MAX = 16,   /* locks */
    STANDINGS_MAX = 512, /* at hand, of one lock */
    AT_ONCE_MAX = 8,     /* standings of a lock at one moment: one, unless it is shared */
    SEEN_GRANTS_MAX = 64 /* that an observer may be behind */
};

/* How a lock stands: FREE, or who has it. Each world chooses what tells holders apart. */
enum { STANDS_FREE = 0, STANDS_SHARED = 1, STANDS_NAMELESS = 2 };

typedef struct sim_observer {
    hf_observer *observer; /* NULL: none */
    int lock;
    int64_t began_ns;
    bool told;  /* something, since it began */
    bool knows; /* how the lock stands, by what it was told: not after it missed something */
    uint64_t standing;
    uint64_t fence;   /* that it was told last */
    uint64_t highest; /* own fence of a holder that it was told of */
    bool hears;       /* every message: these are quiet times, and nothing has broken */
    uint64_t next;    /* the grant that it must be told next, if it hears */
} sim_observer;

typedef struct sim_standing {
    uint64_t who;
    int64_t last_ns; /* when it was so last */
} sim_standing;

typedef struct sim_seen_grant {
    uint64_t fence;
    int64_t at_ns;
    bool released; /* by a script; otherwise it still stands, or has expired */
} sim_seen_grant;

typedef struct sim_observed {              /* a lock, as it really stands */
    sim_standing standings[STANDINGS_MAX]; /* the last ones, by their numbers */
    uint64_t standing_count;
    uint64_t current[AT_ONCE_MAX];
    int current_count;
    sim_seen_grant grants[SEEN_GRANTS_MAX]; /* the last ones, by their numbers */
    uint64_t grant_count;
} sim_observed;

typedef struct sim_sights {
    int count;    /* of observers in each client; 0: there are none in this world */
    int locks;    /* that may be watched */
    bool settled; /* no fault is felt any more: what is told is exact, and in time */
    int64_t settled_ns;
    int64_t asked;   /* scripts that observers have run since then */
    int64_t changes; /* of locks, since then */
    int64_t deaf;    /* subscriptions that were cut, since then */
    sim_observed observed[OBSERVED_MAX];
    int64_t told, missed; /* for the batch */
} sim_sights;

typedef struct observer_site { /* of one client */
    hf__core *core;            /* NULL: it is not alive */
    sim_observer *observers;
    bool *seeing; /* a callback runs */
} observer_site;

/* What a world says. */
sim_sights *world_sights(world *world);
observer_site world_observers(world *world, int client);
int world_client_count(const world *world);
int world_servers(const world *world);
const char *world_lock_name(int lock);
int world_standings(world *world, int lock, uint64_t standings[AT_ONCE_MAX]); /* now */
uint64_t world_standing_in(const hf_sight *sight);    /* whom it names as the holder */
bool world_fences_grow(const world *world, int lock); /* as far as observers can see */
/* Of the holder that it names; 0: it has none, or has not got it yet. */
uint64_t world_own_fence(const world *world, int lock, const hf_sight *sight);
/* Within which one agrees about a lock; -1: some day. */
int64_t world_agree_ns(world *world, int client, int lock);
void world_returns_later(world *world, int client, int64_t delay_ns); /* a callback does */
void client_step(world *world, int client, hf__event *event);

/* What a world calls. */
void observers_begin(world *world, int client);     /* when a client starts */
void observers_tell(world *world, int client);      /* after each step */
void observers_told(world *world, int client);      /* a callback has returned */
void observers_free(observer_site site);            /* after its core is gone */
void observers_change(world *world, int client);    /* one ends, or begins */
void observers_look(world *world);                  /* how locks stand now */
void observers_ran(world *world, const char *sha1); /* a script, by which locks may have changed */
void observers_settle(world *world, bool hear);     /* no fault any more; `hear`: by message */
void observers_deaf(world *world, int client);      /* messages may be lost */
void observers_check(world *world);                 /* after every step of anybody */
void observers_agree(world *world);                 /* they must by now */

#endif
