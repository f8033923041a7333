/* SPDX-License-Identifier: MIT */
/* What ../observers.c asks about the world of a quorum. A lock stands as a majority of the servers
 * has it. Who has it is told by the label, which no two holds have in common; of those who share it
 * any one may be told. There are no messages: everything is found by looking. */
#include <string.h>

#include "quorum.h"

enum { LOOK_MS = 1000, SLACK_MS = 200 };

sim_sights *world_sights(world *w)
{
    return &w->sights;
}

observer_site world_observers(world *w, int index)
{
    client *c = &w->clients[index];
    return (observer_site){c->core, c->observers, &c->seeing};
}

int world_client_count(const world *w)
{
    return w->plan.clients;
}

int world_servers(const world *w)
{
    return w->plan.nodes;
}

const char *world_lock_name(int lock)
{
    return lock_names[lock];
}

static uint64_t hash_of(const char *label)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (; *label != '\0'; label++)
        hash = (hash ^ (unsigned char)*label) * 0x100000001b3u;
    return hash | 0x100; /* not one of the standings that have a name */
}

static uint64_t standing_at(node *n, int lock)
{
    node_set_clock(n);
    const char *held = node_held_as(n, lock);
    if (held == NULL)
        return STANDS_FREE;
    if (strcmp(held, owner_names[0]) == 0) {
        n->world->locks[lock].shared_ns = n->world->run.now_ns;
        return STANDS_SHARED;
    }
    const char *label = strrchr(held, '/');
    return label != NULL ? hash_of(label + 1) : STANDS_NAMELESS;
}

int world_standings(world *w, int lock, uint64_t standings[AT_ONCE_MAX])
{
    uint64_t at[NODES_MAX];
    for (int i = 0; i < w->plan.nodes; i++)
        at[i] = standing_at(&w->nodes[i], lock);
    standings[0] = STANDS_FREE;
    for (int i = 0; i < w->plan.nodes; i++) {
        int same = 0;
        for (int k = 0; k < w->plan.nodes; k++)
            same += at[k] == at[i];
        if (same >= w->plan.quorum)
            standings[0] = at[i];
    }
    return 1;
}

uint64_t world_standing_in(const hf_sight *sight)
{
    return sight->who.client_id[0] != '\0' ? hash_of(sight->who.label) : STANDS_NAMELESS;
}

/* Sharers may have different fences (docs/safety.md, Q6), and a look tells the highest of those
 * that the servers name which have answered: seed 306. */
bool world_fences_grow(const world *w, int lock)
{
    int64_t shared_ns = w->locks[lock].shared_ns;
    return w->plan.kind != KIND_JUMPY && (shared_ns == 0 || w->run.now_ns - shared_ns > MS(10000));
}

/* What is told may be higher: a server that came to the hold late, or again, goes on above what it
 * has given to others meanwhile, though none of them got a majority. The next holder need not have
 * met that server: seed 14611. */
uint64_t world_own_fence(const world *w, int lock, const hf_sight *sight)
{
    uint64_t who = world_standing_in(sight), highest = 0;
    for (int i = 0; i < OWN_FENCES_MAX; i++) {
        const own_fence *own = &w->locks[lock].own[i];
        if (own->who == who && own->fence > highest)
            highest = own->fence;
    }
    return highest;
}

void sights_granted(world *w, const handle *h)
{
    sim_lock *l = &w->locks[h->wish.lock];
    char label[LABEL_SIZE];
    if (check_label(h, label))
        l->own[l->own_count++ % OWN_FENCES_MAX] = (own_fence){hash_of(label), h->fence};
}

/* A look takes as long as a call may, if servers are silent whose word is needed; the next one
 * comes a second later. */
int64_t world_agree_ns(world *w, int index, int lock)
{
    (void)lock;
    const client *c = &w->clients[index];
    int64_t look_ms = LOOK_MS + LOOK_MS / 100 + w->plan.call_timeout_ms;
    int64_t agree_ns = MS(2 * look_ms + SLACK_MS);
    bool awoke = w->run.now_ns < c->resumes_ns + agree_ns; /* lately, or it will */
    bool parted = w->run.now_ns < c->parted_until_ns + agree_ns;
    return w->outsider || w->plan.kind == KIND_JUMPY || awoke || parted ? -1 : agree_ns;
}

void world_returns_later(world *w, int index, int64_t delay_ns)
{
    sim_event back = {.kind = EVENT_SEEN, .index = index};
    back.generation = w->clients[index].generation;
    world_schedule(w, back, delay_ns);
}

/* Another program takes all locks at all servers, and gives them back. */
static void outsider_runs(world *w, int count, const char *const *words)
{
    for (int i = 0; i < w->plan.nodes; i++) {
        node_set_clock(&w->nodes[i]);
        sim_server_run(w->nodes[i].server, count, words);
    }
}

void sights_outsider(world *w)
{
    int64_t until_found_ns = MS(3 * (LOOK_MS + w->plan.call_timeout_ms) + SLACK_MS);
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
