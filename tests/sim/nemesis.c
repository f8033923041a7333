/* SPDX-License-Identifier: MIT */
/* What goes wrong, apart from messages (net.c): visits every 50 ms or so and draws for each kind of
 * fault whether it happens now. Healing undoes what would last. */
#include <stdio.h>
#include <string.h>

#include "core/name.h"
#include "sim.h"

void server_set_clock(world *w)
{
    int64_t passed_us = w->now_ns / 1000;
    sim_server_set_time(w->server,
                        w->server_offset_us + passed_us + passed_us * w->server_rate_ppm / 1000000);
}

static int any_client(world *w)
{
    return (int)draw(w, (uint64_t)w->plan.clients);
}

static void restart(world *w, const sim_image *image, const char *with)
{
    world_log(w, "server: restarts with %s", with);
    net_break_all(w, !draw_chance(w, 0.2));
    server_set_clock(w);
    sim_server_restart(w->server, image);
    w->server_down = true;
    world_schedule(w, (sim_event){.kind = EVENT_SERVER_UP}, MS(draw_between(w, 1, 400)));
}

static void restart_with_data(world *w)
{
    sim_image *image = sim_server_copy(w->server);
    restart(w, image, "its data");
    sim_image_free(image);
}

static void server_faults(world *w)
{
    if (w->server_down)
        return;
    /* A pause is never cut short: what waits for its end must stay ahead of what comes later. */
    if (w->server_paused_until_ns <= w->now_ns && fault_happens(w, FAULT_NODE_PAUSE)) {
        w->server_paused_until_ns = w->now_ns + MS(draw_between(w, 1, 2000));
        world_log(w, "server: paused");
    }
    if (fault_happens(w, FAULT_FLUSH))
        sim_server_flush_scripts(w->server);
    if (fault_happens(w, FAULT_TROUBLE)) {
        static const char *const troubles[] = {"LOADING Redis is loading the dataset in memory",
                                               "BUSY Redis is busy running a script.",
                                               "OOM command not allowed"};
        sim_server_set_trouble(w->server, troubles[draw(w, 3)]);
        world_log(w, "server: in trouble");
    } else if (draw(w, 4) == 0) {
        sim_server_set_trouble(w->server, NULL);
    }
    if (fault_happens(w, FAULT_RESTART_DATA))
        restart_with_data(w);
}

static void forgetful_faults(world *w)
{
    if (w->server_down)
        return;
    server_set_clock(w);
    if (w->old_copy == NULL || draw(w, 5) == 0) {
        sim_image_free(w->old_copy);
        w->old_copy = sim_server_copy(w->server);
    }
    if (fault_happens(w, FAULT_EVICT)) {
        const char *name = lock_names[draw(w, LOCKS)];
        char side[64];
        size_t length = strlen(name);
        size_t side_length = hf__side_key(side, 'q', name, length, hf__slot(name, length));
        bool main_key = draw(w, 2) == 0;
        world_log(w, "server: evicts %s%s", main_key ? "" : "the side key of ", name);
        sim_server_evict(w->server, main_key ? name : side, main_key ? length : side_length);
    }
    if (fault_happens(w, FAULT_CLOCK_STEP)) {
        w->server_offset_us += draw_between(w, -3000000, 3000000);
        world_log(w, "server: clock jumps");
    }
    if (fault_happens(w, FAULT_RESTART_EMPTY))
        restart(w, NULL, "nothing");
    else if (fault_happens(w, FAULT_RESTART_OLD))
        restart(w, w->old_copy, "an old copy");
}

static void client_faults(world *w)
{
    if (fault_happens(w, FAULT_PAUSE))
        client_pause(w, any_client(w), MS(draw_between(w, 1, 2 * w->plan.lease_max_ms)), false);
    if (fault_happens(w, FAULT_SUSPEND))
        client_pause(w, any_client(w), MS(draw_between(w, 500, 4000)), true);
    int victim = any_client(w);
    if (w->clients[victim].alive && fault_happens(w, FAULT_KILL))
        client_kill(w, victim);
    if (fault_happens(w, FAULT_CANCEL)) {
        int index = any_client(w);
        int number = (int)draw(w, (uint64_t)w->plan.actors);
        const sim_client *c = &w->clients[index];
        sim_event event = {.kind = EVENT_ACTOR, .index = index, .actor = number};
        event.generation = (uint32_t)c->actors[number].generation + (c->generation << 32);
        if (c->alive && c->actors[number].state == ACTOR_ACQUIRES)
            world_schedule(w, event, MS(1) / 10 * draw_between(w, 0, 50));
    }
}

void nemesis_act(world *w)
{
    if (w->healing)
        return;
    client_faults(w);
    server_faults(w);
    if (w->plan.beyond)
        forgetful_faults(w);
    check_leaks(w);
    world_schedule(w, (sim_event){.kind = EVENT_NEMESIS}, MS(draw_between(w, 20, 80)));
}

/* Somebody else's program: takes the key with SET NX PX, releases it by comparing, or, beyond the
 * assumptions, by DEL. */
void nemesis_foreign(world *w)
{
    int lock = (int)draw(w, LOCKS);
    const char *name = lock_names[lock];
    char lease[24], value[32];
    if (w->healing)
        return;
    world_schedule(w, (sim_event){.kind = EVENT_FOREIGN}, MS(draw_between(w, 5, 100)));
    if (w->server_down || w->server_paused_until_ns > w->now_ns)
        return;
    server_set_clock(w);
    if (fault_happens(w, FAULT_FOREIGN_DEL)) {
        world_log(w, "foreigner: DEL %s", name);
        sim_server_run(w->server, 2, (const char *const[]){"DEL", name});
    }
    const char *held = sim_server_get(w->server, name, strlen(name));
    if (held != NULL && w->foreign_value[lock][0] != '\0' &&
        strcmp(held, w->foreign_value[lock]) == 0 && draw(w, 2) == 0) {
        world_log(w, "foreigner: releases %s", name);
        sim_server_run(w->server, 2, (const char *const[]){"DEL", name});
    } else if (fault_happens(w, FAULT_FOREIGN)) {
        snprintf(lease, sizeof(lease), "%lld", (long long)draw_between(w, 50, 800));
        snprintf(value, sizeof(value), "foreign:%llu", (unsigned long long)w->orders);
        const char *words[] = {"SET", name, value, "NX", "PX", lease};
        if (strcmp(sim_server_run(w->server, 6, words), "OK") == 0) {
            world_log(w, "foreigner: takes %s as %s", name, value);
            snprintf(w->foreign_value[lock], sizeof(w->foreign_value[lock]), "%s", value);
            check_remember_value(w, value);
        }
    }
}

void nemesis_heal(world *w)
{
    world_log(w, "healing");
    w->healing = true;
    sim_server_set_trouble(w->server, NULL);
    for (int i = 0; i < WIRES_MAX; i++)
        if (w->wires[i].used && w->wires[i].half_open && w->wires[i].client_open)
            net_break(w, i, true);
}
