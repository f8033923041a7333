/* SPDX-License-Identifier: MIT */
/* A run of the world, from the first event to the last check. What drives it is ../clockwork.c. */
#include <stdio.h>
#include <string.h>

#include "quorum.h"

clockwork *world_clockwork(world *w)
{
    return &w->run;
}

bool fault_happens(world *w, sim_fault fault)
{
    if (w->healing || w->plan.chance[fault] <= 0 || !draw_chance(w, w->plan.chance[fault]))
        return false;
    w->stats.faults[fault]++;
    return true;
}

void world_handle(world *w, sim_event *e)
{
    w->stats.steps++;
    switch ((event_kind)e->kind) {
    case EVENT_WAKE:
    case EVENT_ACTOR:
    case EVENT_LOAD:
    case EVENT_RESERVER:
    case EVENT_SEEN:
    case EVENT_RESUME:
    case EVENT_START:
        client_handle(w, e);
        break;
    case EVENT_CONNECTED:
    case EVENT_REFUSED:
    case EVENT_TO_SERVER:
    case EVENT_TO_CLIENT:
    case EVENT_CLIENT_END:
    case EVENT_SERVER_END:
        net_handle(w, e);
        break;
    case EVENT_NODE_UP:
        w->nodes[e->node].down = false;
        world_log(w, "server %d: up", e->node);
        break;
    case EVENT_NEMESIS:
        nemesis_act(w);
        break;
    }
}

static void begin_nodes(world *w)
{
    for (int i = 0; i < w->plan.nodes; i++) {
        char url[32];
        hf_error error;
        snprintf(url, sizeof(url), "redis://node%d", i);
        hf__url_parse(url, &w->urls[i], &error);
        node_begin(w, i);
        w->nodes[i].dead = i < w->plan.dead;
        w->nodes[i].down = w->nodes[i].dead && !w->plan.dead_stall;
        if (w->nodes[i].dead && w->plan.dead_stall)
            w->nodes[i].stalled_until_ns = INT64_MAX / 2;
    }
}

void world_begin(world *w, uint64_t seed, const plan *p, bool print_trace)
{
    static const char *const kinds[] = {"quiet", "within the assumptions", "clocks jump"};
    memset(w, 0, sizeof(*w));
    clockwork_begin(&w->run, seed, TRACE_WIDTH, print_trace);
    w->plan = *p;
    world_log(w,
              "seed %llu: %s, %d servers (%d dead), %d clients x %d actors, leases %lld..%lld ms",
              (unsigned long long)seed, kinds[p->kind], p->nodes, p->dead, p->clients, p->actors,
              (long long)p->lease_min_ms, (long long)p->lease_max_ms);
    w->sights.count = p->observers;
    w->sights.locks = p->locks;
    begin_nodes(w);
    fences_begin(w);
}

/* In quiet worlds some come later, and find others waiting. */
static void begin_clients(world *w)
{
    for (int i = 0; i < w->plan.clients; i++) {
        bool later = w->plan.kind == KIND_QUIET && i > 0 && draw(w, 2) == 0;
        world_schedule(w, (sim_event){.kind = EVENT_START, .index = i},
                       MS(later ? draw_between(w, 100, 2500) : 0));
    }
    world_schedule(w, (sim_event){.kind = EVENT_NEMESIS}, MS(20));
}

static bool all_rest(const world *w)
{
    return actor_all_rest(w) && ids_all_rest(w);
}

/* Actors do not rest meanwhile. Many of them are a load of their own, which a slow server cannot
 * keep up with (seed 10580). */
static bool actors_are_few(const world *w)
{
    const sim_capacity *capacity = &w->plan.load.capacity;
    int64_t slow = capacity->slow > 0 ? capacity->slow : 1;
    int64_t round_ns = w->plan.clients * w->plan.actors * capacity->call_ns * slow;
    return round_ns < MS(w->plan.lease_min_ms) / 4;
}

/* The longest lease, and the time in which the last calls end. */
static void end_load(world *w)
{
    if (w->plan.load.kind == LOAD_NONE)
        return;
    world_run_until(w, w->run.now_ns + MS(8000), NULL);
    for (int i = 0; i < w->plan.clients; i++)
        load_check_rest(w, &w->clients[i].load, i, actors_are_few(w));
    for (int i = 0; i < w->plan.nodes; i++)
        capacity_end(&w->nodes[i].capacity);
    w->unloaded = true;
}

/* Faults, then healing, in which those who wait get what they wait for; then everybody once more,
 * then closing: each within a bound. And then there is nothing left but fences. */
void world_run(world *w, uint64_t seed, int nodes, bool print_trace)
{
    plan p;
    plan_draw(&p, seed, nodes);
    world_begin(w, seed, &p, print_trace);
    for (int i = 0; i < p.nodes && p.permissions; i++)
        prober_put(w->nodes[i].server);
    if (p.kind != KIND_QUIET && !p.permissions && p.observers == 0)
        gaps_begin(&w->gaps, seed);
    begin_clients(w);
    if (p.kind == KIND_QUIET)
        observers_settle(w, false);
    int64_t bound_ns = MS(3 * p.max_lease_ms + 5000);
    world_run_until(w, p.duration_ns, NULL);
    /* Longer than the longest back-off: of connections, or of messages that were denied. */
    world_run_until(w, nemesis_heal(w) + MS(p.permissions ? 9000 : 3000), NULL);
    end_load(w);
    world_run_until(w, w->run.now_ns + bound_ns, all_rest);
    actor_name_late(w, ACTOR_THINKS, "when all is well again");
    if (w->run.failure[0] == '\0' && !ids_all_rest(w))
        world_fail(w, "when all is well again, somebody still reserves ids");
    observers_settle(w, false);
    actor_finish_round(w);
    world_run_until(w, w->run.now_ns + bound_ns, actor_all_done);
    actor_name_late(w, ACTOR_DONE, "in the last round");
    if (w->run.failure[0] == '\0' && p.observers > 0)
        sights_outsider(w);
    client_close_all(w);
    world_run_until(w, w->run.now_ns + MS(20000), client_all_closed);
    if (w->run.failure[0] == '\0' && !client_all_closed(w))
        world_fail(w, "a client does not close");
    world_run_until(w, w->run.now_ns + MS(3 * p.max_lease_ms + 6000), NULL);
    if (w->run.failure[0] == '\0')
        leaks_check_end(w);
    fences_end(w);
    w->stats.sights = w->sights.told;
    w->stats.sights_missed = w->sights.missed;
}

void world_free(world *w)
{
    for (int i = 0; i < CLIENTS_MAX; i++)
        client_free(&w->clients[i]);
    for (int i = 0; i < w->plan.nodes; i++) {
        node_free(&w->nodes[i]);
        hf__url_free(&w->urls[i]);
    }
    clockwork_end(&w->run);
}
