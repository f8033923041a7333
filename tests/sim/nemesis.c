/* SPDX-License-Identifier: MIT */
/* What goes wrong, apart from messages (net.c): visits every 50 ms or so and draws for each kind of
 * fault whether it happens now. Healing undoes what would last. */
#include <stdio.h>
#include <string.h>

#include "memory.h"
#include "sim.h"

enum { STEP_MAX_MS = 8000 /* of the clock, either way: longer than any fence is kept */ };

int64_t server_now_us(const world *w)
{
    int64_t passed_us = w->run.now_ns / 1000;
    return w->server_offset_us + passed_us + passed_us * w->server_rate_ppm / 1000000;
}

void server_set_clock(world *w)
{
    sim_server_set_time(w->server, server_now_us(w));
}

static int any_client(world *w)
{
    return (int)draw(w, (uint64_t)w->plan.clients);
}

static void hide_fields(world *w)
{
    sim_server_hide(w->server, gaps_draw(&w->gaps));
    if (sim_server_hides(w->server, GAP_RUN_ID))
        world_log(w, "server: hides its run_id");
    w->stats.hidden += sim_server_hides(w->server, GAP_RUN_ID);
}

static void restart(world *w, const sim_image *image, const char *with)
{
    world_log(w, "server: restarts with %s", with);
    net_break_all(w, !draw_chance(w, 0.2), true);
    server_set_clock(w);
    sim_server_restart(w->server, image);
    hide_fields(w);
    w->capacity.free_ns = 0;
    w->server_runs++;
    w->server_down = true;
    world_schedule(w, (sim_event){.kind = EVENT_SERVER_UP}, MS(draw_between(w, 1, 400)));
}

static void restart_with_data(world *w)
{
    sim_image *image = sim_server_copy(w->server);
    restart(w, image, "its data");
    sim_image_free(image);
}

/* The old primary becomes a replica of the new one; it tells its subscribers what is published
 * there, and they may not have noticed anything. */
static void fail_over(world *w)
{
    world_log(w, "server: fails over");
    net_break_all(w, true, false);
    server_set_clock(w);
    sim_server_fail_over(w->server);
    hide_fields(w);
    w->server_runs++;
}

static void server_faults(world *w)
{
    if (w->server_down)
        return;
    /* A pause is never cut short: what waits for its end must stay ahead of what comes later. */
    if (w->server_paused_until_ns <= w->run.now_ns && fault_happens(w, FAULT_NODE_PAUSE)) {
        w->server_paused_until_ns = w->run.now_ns + MS(draw_between(w, 1, 2000));
        world_log(w, "server: paused");
    }
    if (fault_happens(w, FAULT_FLUSH))
        sim_server_flush_scripts(w->server);
    if (gaps_change(&w->gaps))
        hide_fields(w);
    if (fault_happens(w, FAULT_TROUBLE)) {
        static const char *const troubles[] = {"LOADING Redis is loading the dataset in memory",
                                               "BUSY Redis is busy running a script.",
                                               "OOM command not allowed"};
        sim_server_set_trouble(w->server, troubles[draw(w, 3)]);
        world_log(w, "server: in trouble");
    } else if (draw(w, 4) == 0) {
        sim_server_set_trouble(w->server, NULL);
    }
    if (fault_happens(w, FAULT_FULL)) {
        memory_press(w->server, draw(w, 100));
        world_log(w, "server: full");
    } else if (w->plan.chance[FAULT_FULL] > 0 && draw(w, 4) == 0) {
        memory_lift(w->server);
    }
    if (fault_happens(w, FAULT_RESTART_DATA))
        restart_with_data(w);
    else if (fault_happens(w, FAULT_FAILOVER))
        fail_over(w);
}

/* ---- Beyond the assumptions ---- */

static void evict(world *w)
{
    int which = (int)draw(w, (uint64_t)(w->plan.swarm ? LOCKS : USUAL_LOCKS));
    int side = (int)draw(w, 2 * SIDES); /* or the lock itself */
    sim_lock *lock = &w->locks[which];
    fences_before_fault(w);
    if (side < SIDES)
        sim_server_evict(w->server, lock->side[side], lock->side_length[side]);
    else
        sim_server_evict(w->server, lock_names[which], strlen(lock_names[which]));
    world_log(w, "server: evicts %s", side < SIDES ? lock->side[side] : lock_names[which]);
    fences_lost(w, false);
    fences_after_fault(w);
}

/* By seconds; or, for ids, to anywhere within what clocks may be apart. */
static int64_t draw_step_ms(world *w)
{
    int64_t above_lowest_ms = (w->server_offset_us - w->lowest_offset_us) / 1000;
    if (w->plan.small_steps)
        return draw_between(w, 0, w->plan.skew_s * 1000) - above_lowest_ms;
    return draw_between(w, -STEP_MAX_MS, STEP_MAX_MS);
}

static void step_clock(world *w)
{
    int64_t step_ms = draw_step_ms(w);
    fences_before_fault(w);
    w->server_offset_us += step_ms * 1000;
    if (w->server_offset_us > w->highest_offset_us)
        w->highest_offset_us = w->server_offset_us;
    w->shop.set_back_ms += step_ms < 0 ? -step_ms : 0;
    world_log(w, "server: clock jumps by %lld ms", (long long)step_ms);
    fences_after_fault(w);
}

/* Another server has another clock. */
static void restart_forgetting(world *w, const sim_image *image, const char *with)
{
    if (w->plan.small_steps && w->plan.chance[FAULT_CLOCK_STEP] > 0)
        step_clock(w);
    fences_before_fault(w);
    restart(w, image, with);
    fences_lost(w, image != NULL);
    ids_lost(w);
    shop_lost(w, image != NULL);
    fences_after_fault(w);
}

static void forgetful_faults(world *w)
{
    if (w->server_down)
        return;
    server_set_clock(w);
    if (w->old_copy == NULL || draw(w, 5) == 0) {
        sim_image_free(w->old_copy);
        w->old_copy = sim_server_copy(w->server);
        shop_copied(w);
    }
    if (fault_happens(w, FAULT_EVICT))
        evict(w);
    if (fault_happens(w, FAULT_CLOCK_STEP))
        step_clock(w);
    if (fault_happens(w, FAULT_RESTART_EMPTY))
        restart_forgetting(w, NULL, "nothing");
    else if (fault_happens(w, FAULT_RESTART_OLD))
        restart_forgetting(w, w->old_copy, "an old copy");
}

static void client_faults(world *w)
{
    if (fault_happens(w, FAULT_PAUSE))
        client_pause(w, any_client(w), MS(draw_between(w, 1, 2 * w->plan.lease_max_ms)), false);
    if (fault_happens(w, FAULT_SUSPEND))
        client_pause(w, any_client(w), MS(draw_between(w, 500, 4000)), true);
    if (w->lull_until_ns <= w->run.now_ns && fault_happens(w, FAULT_LULL)) {
        w->lull_until_ns = w->run.now_ns + MS(draw_between(w, 1000, 8000));
        world_log(w, "a lull");
    }
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

static void subscription_faults(world *w)
{
    int victim = any_client(w);
    int wire = net_subscription(w, victim);
    if (wire < 0 || w->server_down)
        return;
    if (fault_happens(w, FAULT_PUSH_CUT)) {
        world_log(w, "client %d: its subscription breaks", victim);
        net_break(w, wire, draw(w, 4) > 0);
    } else if (fault_happens(w, FAULT_PUSH_DEAF)) {
        world_log(w, "client %d: its subscription is deaf", victim);
        w->wires[wire].half_open = true;
    }
}

static void observer_faults(world *w)
{
    int index = w->plan.observers > 0 ? any_client(w) : 0;
    if (w->plan.observers > 0 && w->clients[index].alive && !w->clients[index].paused)
        observers_change(w, index);
}

void nemesis_cut(world *w)
{
    int victim = any_client(w);
    int wire = net_subscription(w, victim);
    if (w->finished)
        return;
    world_schedule(w, (sim_event){.kind = EVENT_CUT}, MS(draw_between(w, 100, 500)));
    if (wire < 0 || !w->wires[wire].server_open)
        return;
    world_log(w, "client %d: its subscription breaks", victim);
    w->clients[victim].cut_ns = w->run.now_ns;
    observers_deaf(w, victim);
    net_break(w, wire, true);
}

/* ---- Permissions ---- */

static void tell_permits(world *w, int index)
{
    for (int i = 0; i < WIRES_MAX; i++)
        if (w->wires[i].used && w->wires[i].server_open && w->wires[i].client == index)
            permits_apply(&w->clients[index].permits, w->server, i, lock_names, LOCKS);
}

/* A server ends connections that are subscribed to what is denied now. */
static void toggle_messages(world *w, int index)
{
    sim_permits *permits = &w->clients[index].permits;
    bool denies = permits->messages == SIM_ALLOWED;
    sim_denial kind = draw(w, 2) == 0 ? SIM_NO_CHANNELS : SIM_NO_PUBSUB;
    permits_set_messages(permits, denies ? kind : SIM_ALLOWED);
    int wire = net_subscription(w, index);
    if (denies && wire >= 0)
        net_break(w, wire, true);
    world_log(w, "client %d: messages are %s", index, denies ? "denied" : "allowed");
}

static void permission_faults(world *w)
{
    int index = any_client(w);
    if (w->server_down || !w->clients[index].alive)
        return;
    if (fault_happens(w, FAULT_DENY_LOCK)) {
        int lock = (int)draw(w, (uint64_t)w->plan.locks);
        permits_toggle_lock(&w->clients[index].permits, lock, w->run.now_ns);
        world_log(w, "client %d: the permission for %s changes", index, lock_names[lock]);
    }
    if (fault_happens(w, FAULT_DENY_MESSAGES))
        toggle_messages(w, index);
    tell_permits(w, index);
    if (fault_happens(w, FAULT_PROBE))
        client_probe(w, index);
}

static void outsiders(world *w)
{
    if (fault_happens(w, FAULT_LOOK))
        query_begin(w, any_client(w), draw(w, 4) == 0 ? HF__QUERY_SCAN : HF__QUERY_INSPECT);
    if (fault_happens(w, FAULT_REVOKE))
        query_begin(w, any_client(w), HF__QUERY_REVOKE);
    if (fault_happens(w, FAULT_BREAK))
        query_begin(w, any_client(w), HF__QUERY_BREAK);
}

void nemesis_act(world *w)
{
    if (w->healing)
        return;
    client_faults(w);
    observer_faults(w);
    subscription_faults(w);
    if (w->plan.permissions)
        permission_faults(w);
    outsiders(w);
    server_faults(w);
    if (w->plan.beyond)
        forgetful_faults(w);
    check_leaks(w);
    world_schedule(w, (sim_event){.kind = EVENT_NEMESIS}, MS(draw_between(w, 20, 80)));
}

/* ---- Somebody else's program ---- */

static void foreign_take(world *w, int lock)
{
    sim_lock *l = &w->locks[lock];
    char text[24], value[32];
    int64_t lease_ms = draw_between(w, 50, 800);
    snprintf(text, sizeof(text), "%lld", (long long)lease_ms);
    if (draw(w, 4) == 0 && !w->plan.beyond)
        snprintf(value, sizeof(value), "%s", owner_names[draw(w, OWNERS)]);
    else
        snprintf(value, sizeof(value), "foreign:%llu", (unsigned long long)w->run.orders);
    const char *words[] = {"SET", lock_names[lock], value, "NX", "PX", text};
    if (strcmp(sim_server_run(w->server, 6, words), "OK") != 0)
        return;
    world_log(w, "foreigner: takes %s as %s", lock_names[lock], value);
    check_foreign_over(w, lock);
    snprintf(l->foreign_value, sizeof(l->foreign_value), "%s", value);
    l->foreign_from_ns = w->run.now_ns;
    l->foreign_until_ns = w->run.now_ns + MS(lease_ms - 2 - lease_ms / 100);
    l->foreign_gone_ns = w->run.now_ns + MS(lease_ms + 2 + lease_ms / 100);
    check_remember_value(w, value);
}

static void foreign_release(world *w, int lock)
{
    world_log(w, "foreigner: releases %s", lock_names[lock]);
    check_foreign_over(w, lock);
    w->locks[lock].foreign_gone_ns = 0;
    sim_server_run(w->server, 2, (const char *const[]){"DEL", lock_names[lock]});
}

/* Takes the key with SET NX PX, sometimes with the name of an owner as its value (but not where
 * others delete keys: holders that are left over would be taken for that owner's); releases it
 * while its lease lasts and the value is its own, or, beyond the assumptions, by DEL. */
void nemesis_foreign(world *w)
{
    int lock = (int)draw(w, (uint64_t)w->plan.locks);
    const char *name = lock_names[lock];
    sim_lock *l = &w->locks[lock];
    if (w->healing)
        return;
    world_schedule(w, (sim_event){.kind = EVENT_FOREIGN}, MS(draw_between(w, 5, 100)));
    if (w->server_down || w->server_paused_until_ns > w->run.now_ns)
        return;
    server_set_clock(w);
    if (fault_happens(w, FAULT_FOREIGN_DEL)) {
        world_log(w, "foreigner: DEL %s", name);
        sim_server_run(w->server, 2, (const char *const[]){"DEL", name});
    }
    const char *held = sim_server_get(w->server, name, strlen(name));
    if (held != NULL && l->foreign_until_ns > w->run.now_ns &&
        strcmp(held, l->foreign_value) == 0 && draw(w, 2) == 0)
        foreign_release(w, lock);
    else if (fault_happens(w, FAULT_FOREIGN))
        foreign_take(w, lock);
}

void nemesis_heal(world *w)
{
    world_log(w, "healing");
    w->healing = w->resting = true;
    w->lull_until_ns = 0;
    sim_server_set_trouble(w->server, NULL);
    memory_lift(w->server);
    for (int i = 0; i < w->plan.clients && w->plan.permissions; i++) {
        permits_lift(&w->clients[i].permits, w->run.now_ns);
        tell_permits(w, i);
        prober_remove(w->server);
    }
    if (!w->gaps.for_good)
        sim_server_hide(w->server, 0);
    for (int i = 0; i < WIRES_MAX; i++)
        if (w->wires[i].used && w->wires[i].half_open && w->wires[i].client_open)
            net_break(w, i, true);
}
