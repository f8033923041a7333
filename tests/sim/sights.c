/* SPDX-License-Identifier: MIT */
/* What observers.c asks about the world with one server. A lock stands as its key says, and who
 * has it is told by the fence: nothing else is both in a message and at the server. */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

enum {
    LOOK_MS = 1000,    /* as in src/core/observe.c */
    REPEAT_MS = 10000, /* the same */
    SLACK_MS = 30,
    TROUBLE_MS = 1500 /* until one that was cut off has looked */
};

sim_sights *world_sights(world *w)
{
    return &w->sights;
}

observer_site world_observers(world *w, int client)
{
    sim_client *c = &w->clients[client];
    return (observer_site){c->core, c->observers, &c->seeing};
}

int world_client_count(const world *w)
{
    return w->plan.clients;
}

int world_servers(const world *w)
{
    (void)w;
    return 1;
}

const char *world_lock_name(int lock)
{
    return lock_names[lock];
}

int world_standings(world *w, int lock, uint64_t standings[AT_ONCE_MAX])
{
    server_set_clock(w);
    uint64_t fence = fences_by_name(w, &w->locks[lock]);
    const char *held = check_held_as(w, lock);
    standings[0] = fence > 0 ? fence : STANDS_NAMELESS;
    if (held == NULL)
        standings[0] = STANDS_FREE;
    for (int i = 0; held != NULL && i < OWNERS; i++)
        if (strcmp(held, owner_names[i]) == 0)
            w->locks[lock].shared_ns = w->run.now_ns;
    return 1;
}

uint64_t world_standing_in(const hf_sight *sight)
{
    return sight->fence > 0 ? sight->fence : STANDS_NAMELESS;
}

/* No server forgets them, and no clock jumps. */
bool world_fences_grow(const world *w, int lock)
{
    (void)lock;
    return !w->plan.beyond;
}

uint64_t world_own_fence(const world *w, int lock, const hf_sight *sight)
{
    (void)w;
    (void)lock;
    return sight->fence;
}

/* Who hears messages knows after the time that one takes, or when a lease is over: then two
 * questions go to and fro, and clocks differ. Who may not publish tells nobody. A sharer that
 * leaves may take the longest lease with it, of which nobody is told either (seed 2395). */
int64_t world_agree_ns(world *w, int client, int lock)
{
    int64_t trip_ns = 10 * w->plan.delay_ns + MS(SLACK_MS), lease_ns = MS(w->plan.lease_max_ms);
    int64_t shared_ns = w->locks[lock].shared_ns;
    trip_ns += shared_ns > 0 && w->run.now_ns - shared_ns < lease_ns ? lease_ns : 0;
    trip_ns += w->plan.beyond ? MS(w->plan.lease_max_ms / 10) : 0;
    if (w->plan.denies_some || w->outsider)
        return -1;
    if (w->plan.denies_all)
        return MS(LOOK_MS + LOOK_MS / 100) + trip_ns;
    return w->clients[client].cut_ns > 0 ? MS(LOOK_MS + TROUBLE_MS) + trip_ns : trip_ns;
}

void world_returns_later(world *w, int client, int64_t delay_ns)
{
    sim_event back = {.kind = EVENT_SEEN, .index = client};
    back.generation = w->clients[client].generation;
    world_schedule(w, back, delay_ns);
}

/* Another program takes all locks, and gives them back: that is found by looking, every 10 s. It
 * waits until nobody holds any: a hold that was detached lasts without its client (seed 1982). */
static void outsider_runs(world *w, int count, const char *const *words)
{
    server_set_clock(w);
    sim_server_run(w->server, count, words);
}

void sights_outsider(world *w)
{
    int64_t until_found_ns = MS(REPEAT_MS + REPEAT_MS / 100 + TROUBLE_MS) + 20 * w->plan.delay_ns;
    world_run_until(w, w->run.now_ns + MS(20000), tokens_over);
    w->outsider = true;
    observers_settle(w, false);
    for (int i = 0; i < w->plan.locks; i++)
        outsider_runs(w, 5, (const char *const[]){"SET", lock_names[i], "other", "PX", "60000"});
    world_run_until(w, w->run.now_ns + until_found_ns, NULL);
    observers_agree(w);
    for (int i = 0; i < w->plan.locks; i++)
        outsider_runs(w, 2, (const char *const[]){"DEL", lock_names[i]});
    world_run_until(w, w->run.now_ns + until_found_ns, NULL);
    observers_agree(w);
}
