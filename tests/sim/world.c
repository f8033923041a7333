/* SPDX-License-Identifier: MIT */
/* A run of the world, from the first event to the last check. What drives it is clockwork.c. */
#include <string.h>

#include "mutants.h"
#include "sim.h"

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

void world_handle(world *w, sim_event *event)
{
    w->stats.steps++;
    switch ((event_kind)event->kind) {
    case EVENT_WAKE:
    case EVENT_ACTOR:
    case EVENT_RESUME:
    case EVENT_START:
    case EVENT_KEEPER:
    case EVENT_QUERY:
    case EVENT_LOAD:
    case EVENT_CLERK:
    case EVENT_TOLD:
    case EVENT_SEEN:
        client_handle(w, event);
        break;
    case EVENT_CONNECTED:
    case EVENT_REFUSED:
    case EVENT_TO_SERVER:
    case EVENT_TO_CLIENT:
    case EVENT_CLIENT_END:
    case EVENT_SERVER_END:
        net_handle(w, event);
        break;
    case EVENT_TOKEN:
        tokens_arrive(w, event->index);
        break;
    case EVENT_SERVER_UP:
        w->server_down = false;
        world_log(w, "server: up");
        break;
    case EVENT_NEMESIS:
        nemesis_act(w);
        break;
    case EVENT_FOREIGN:
        nemesis_foreign(w);
        break;
    case EVENT_CUT:
        nemesis_cut(w);
        break;
    }
}

static bool closed(const world *w)
{
    for (int i = 0; i < w->plan.clients; i++)
        if (w->clients[i].alive && !w->clients[i].close_call.done)
            return false;
    return true;
}

static bool closed_and_over(const world *w)
{
    return closed(w) && tokens_over(w);
}

static void begin(world *w, uint64_t seed, bool print_trace)
{
    hf_error error;
    memset(w, 0, sizeof(*w));
    clockwork_begin(&w->run, seed, TRACE_WIDTH, print_trace);
    plan_draw(&w->plan, seed);
    if (!w->plan.permissions && w->plan.observers == 0)
        gaps_begin(&w->gaps, seed);
    hf__url_parse("redis://node", &w->url, &error);
    w->history = history_new();
    w->server = sim_server_new();
    w->server_runs = 1;
    w->capacity = w->plan.load.capacity;
    sim_server_set_change(w->server, active_mutant != NULL ? mutant_change_script : NULL);
    w->server_rate_ppm = draw_between(w, -4500, 4500);
    w->server_offset_us = 1700000000000000 + draw_between(w, 0, 1000000000);
    server_set_clock(w);
    w->sights.count = w->plan.observers;
    w->sights.locks = w->plan.locks;
    sim_server_hide(w->server, gaps_draw(&w->gaps));
    fences_begin(w);
    queues_begin(w);
    ids_begin(w);
    shop_begin(w);
    world_log(w, "seed %llu: %d clients x %d actors, leases %lld..%lld ms%s",
              (unsigned long long)seed, w->plan.clients, w->plan.actors,
              (long long)w->plan.lease_min_ms, (long long)w->plan.lease_max_ms,
              w->plan.beyond        ? ", beyond the assumptions"
              : w->plan.elders != 0 ? ", some of 0.7"
                                    : "");
    for (int i = 0; i < w->plan.clients; i++)
        client_start(w, i);
    if (w->plan.permissions)
        prober_put(w->server);
    world_schedule(w, (sim_event){.kind = EVENT_NEMESIS}, MS(20));
    world_schedule(w, (sim_event){.kind = EVENT_FOREIGN}, MS(30));
}

enum { QUIET_MS = 3000 };

/* Faults, then healing, then a time without any, then everybody once more, then closing: each
 * within a bound. */
void world_run(world *w, uint64_t seed, bool print_trace)
{
    begin(w, seed, print_trace);
    world_run_until(w, w->plan.duration_ns, NULL);
    nemesis_heal(w);
    /* Longer than the latest message and its lease. */
    world_run_until(w, w->run.now_ns + MS(8000), NULL);
    for (int i = 0; i < w->plan.clients; i++)
        load_check_rest(w, &w->clients[i].load, i, true);
    capacity_end(&w->capacity);
    if (w->plan.observers > 0) /* each has asked again */
        world_run_until(w, w->run.now_ns + MS(11000), NULL);
    w->resting = false;
    w->quiet = true;
    w->quiet_ns = w->run.now_ns;
    observers_settle(w, !w->plan.denies_some && !w->plan.denies_all);
    actor_all_go_on(w);
    if (draw(w, 2) == 0)
        world_schedule(w, (sim_event){.kind = EVENT_CUT}, MS(200));
    world_run_until(w, w->run.now_ns + MS(QUIET_MS), NULL);
    actor_finish_round(w);
    world_run_until(w, w->run.now_ns + MS(60000), actor_all_done);
    if (w->run.failure[0] == '\0' && !actor_all_done(w))
        world_fail(w, "after healing, somebody still waits");
    if (w->run.failure[0] == '\0' && w->plan.observers > 0)
        sights_outsider(w);
    client_close_all(w);
    world_run_until(w, w->run.now_ns + MS(20000), closed_and_over);
    if (w->run.failure[0] == '\0' && !closed(w))
        world_fail(w, "a client does not close");
    if (w->run.failure[0] == '\0')
        check_end(w);
    w->stats.sights = w->sights.told;
    w->stats.sights_missed = w->sights.missed;
}

void world_free(world *w)
{
    for (int i = 0; i < CLIENTS_MAX; i++)
        client_free(&w->clients[i]);
    history_free(w->history);
    queues_free(w);
    sim_image_free(w->old_copy);
    sim_server_free(w->server);
    hf__url_free(&w->url);
    clockwork_end(&w->run);
}
