/* SPDX-License-Identifier: MIT */
/* What goes wrong, apart from messages (net.c): visits every 50 ms or so and draws for each kind of
 * fault whether it happens now. Servers fail in a minority at a time; a partition may cut anybody
 * from any number of them, which makes people wait, and no more.
 *
 * A server forgets when it is restarted without its memory, or with an old one. Within the
 * assumptions there are never more than a minority that did and do not vote again; in most worlds
 * it is one after the other, as in a rolling restart. A clock that jumps forward would end leases
 * early: that too is only within the assumptions while the server has no vote. */
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "quorum.h"

#define HOUR_US INT64_C(3600000000)

static int any_client(world *w)
{
    return (int)draw(w, (uint64_t)w->plan.clients);
}

/* ---- Servers ---- */

static bool is_afflicted(node *n)
{
    const world *w = n->world;
    bool jumped = w->plan.kind == KIND_JUMPY && n->jumped_us != 0;
    bool unnamed = sim_server_hides(n->server, GAP_RUN_ID); /* and has no vote */
    return n->down || n->dead || n->forgot || jumped || unnamed ||
           n->stalled_until_ns > w->run.now_ns || n->slow_until_ns > w->run.now_ns ||
           !node_votes(n);
}

/* A server that may suffer something; NULL: enough of them do. */
static node *any_victim(world *w)
{
    node *chosen = &w->nodes[draw(w, (uint64_t)w->plan.nodes)];
    int others = 0;
    for (int i = 0; i < w->plan.nodes; i++)
        others += &w->nodes[i] != chosen && is_afflicted(&w->nodes[i]);
    return others < w->plan.nodes - w->plan.quorum && !chosen->down ? chosen : NULL;
}

void nemesis_notice_votes(world *w)
{
    for (int i = 0; i < w->plan.nodes; i++) {
        node *n = &w->nodes[i];
        if (!n->forgot || !node_votes(n))
            continue;
        n->forgot = false;
        w->stats.rejoined++;
        world_log(w, "server %d: votes again", i);
    }
}

static bool may_forget(world *w, const node *n)
{
    int forgetful = 0;
    for (int i = 0; i < w->plan.nodes; i++)
        forgetful += w->nodes[i].forgot && &w->nodes[i] != n;
    if (w->plan.burst || n->forgot)
        return forgetful < w->plan.nodes - w->plan.quorum;
    return forgetful == 0 && (w->last_forgot_ns == 0 ||
                              w->run.now_ns > w->last_forgot_ns + MS(w->plan.max_lease_ms + 1000));
}

void nemesis_forget(node *n, const sim_image *image, const char *with)
{
    n->forgot = true;
    n->world->last_forgot_ns = n->world->run.now_ns;
    n->world->stats.forgetting++;
    ids_forgotten(n);
    node_restart(n, image, with);
}

static void restart_with_data(node *n)
{
    sim_image *image = sim_server_copy(n->server);
    node_restart(n, image, "its data");
    sim_image_free(image);
}

static void restarts(world *w, node *n)
{
    if (n->old_copy == NULL || draw(w, 5) == 0) {
        sim_image_free(n->old_copy);
        n->old_copy = sim_server_copy(n->server);
    }
    if (fault_happens(w, FAULT_RESTART))
        restart_with_data(n);
    else if (may_forget(w, n) && fault_happens(w, FAULT_RESTART_EMPTY))
        nemesis_forget(n, NULL, "nothing");
    else if (may_forget(w, n) && fault_happens(w, FAULT_RESTART_OLD))
        nemesis_forget(n, n->old_copy, "an old copy");
}

/* Faults overlap: a short one that begins while a long one lasts does not end it. */
static void disturb_until(world *w, int64_t until_ns)
{
    w->disturbed_ns = until_ns > w->disturbed_ns ? until_ns : w->disturbed_ns;
}

static void interruptions(world *w, node *n)
{
    if (n->stalled_until_ns <= w->run.now_ns && fault_happens(w, FAULT_STALL)) {
        n->stalled_until_ns = w->run.now_ns + MS(draw_between(w, 1, 3000));
        disturb_until(w, n->stalled_until_ns);
        world_log(w, "server %d: stalls for %lld ms", n->index,
                  (long long)((n->stalled_until_ns - w->run.now_ns) / 1000000));
    }
    if (fault_happens(w, FAULT_SLOW)) {
        n->slow_until_ns = w->run.now_ns + MS(draw_between(w, 100, 3000));
        world_log(w, "server %d: slow", n->index);
    }
    if (fault_happens(w, FAULT_FLUSH))
        sim_server_flush_scripts(n->server);
    if (fault_happens(w, FAULT_DOWN)) {
        world_log(w, "server %d: down", n->index);
        for (int i = 0; i < WIRES_MAX; i++)
            if (n->wires[i].used && n->wires[i].server_open)
                sim_server_disconnect(n->server, i);
        net_break_all(n, draw(w, 3) > 0);
        n->down = true;
        world_schedule(w, (sim_event){.kind = EVENT_NODE_UP, .node = n->index},
                       MS(draw_between(w, 50, 3000)));
    }
}

/* ---- Clocks ---- */

void nemesis_jump(node *n, int64_t jump_us)
{
    n->jumped_us += jump_us;
    n->put_back_us -= jump_us < 0 ? jump_us : 0;
    ids_clock_moved(n);
    world_log(n->world, "server %d: clock jumps by %lld ms", n->index, (long long)(jump_us / 1000));
}

static int64_t draw_jump_us(world *w)
{
    static const int64_t most_us[] = {5000000, 60000000, HOUR_US};
    int64_t most = most_us[draw(w, 3)];
    return draw_between(w, -most, most);
}

static void clocks(world *w, node *n)
{
    bool has_say = w->plan.kind != KIND_JUMPY && !n->forgot;
    if (n->jumped_us == 0 && fault_happens(w, FAULT_CLOCK_BACK))
        nemesis_jump(n, -1000 * draw_between(w, 1, BACK_MAX_MS - 1));
    if (has_say || !fault_happens(w, FAULT_CLOCK_JUMP))
        return;
    if (w->plan.kind == KIND_JUMPY && n->jumped_us != 0 && draw(w, 2) == 0)
        nemesis_jump(n, -n->jumped_us); /* it is put right */
    else
        nemesis_jump(n, draw_jump_us(w));
}

static void server_faults(world *w)
{
    node *n = any_victim(w);
    if (n == NULL)
        return;
    node_set_clock(n);
    if (gaps_change(&w->gaps))
        node_hide_fields(n);
    clocks(w, n);
    interruptions(w, n);
    if (!n->down)
        restarts(w, n);
}

/* ---- Clients ---- */

void nemesis_part(world *w, int index, const bool *nodes, int64_t length_ns, bool drops)
{
    client *c = &w->clients[index];
    char list[NODES_MAX + 1] = "";
    memcpy(c->parted, nodes, sizeof(c->parted));
    c->parted_until_ns = w->run.now_ns + length_ns;
    c->parted_drops = drops;
    if (!drops)
        disturb_until(w, c->parted_until_ns);
    for (int i = 0; i < w->plan.nodes; i++)
        list[i] = nodes[i] ? 'x' : '.';
    world_log(w, "client %d: parted from %s for %lld ms%s", index, list,
              (long long)(length_ns / 1000000), drops ? "" : ", held back");
}

static void client_faults(world *w)
{
    if (fault_happens(w, FAULT_PAUSE))
        client_pause(w, any_client(w), MS(draw_between(w, 1, 2 * w->plan.lease_max_ms)));
    int victim = any_client(w);
    client *c = &w->clients[victim];
    if (c->parted_until_ns <= w->run.now_ns && fault_happens(w, FAULT_PARTITION)) {
        bool nodes[NODES_MAX] = {false};
        for (int i = 0; i < w->plan.nodes; i++)
            nodes[i] = draw(w, 2) == 0;
        nemesis_part(w, victim, nodes, MS(draw_between(w, 50, 4000)), draw(w, 2) == 0);
    }
    if (c->alive && fault_happens(w, FAULT_PUSH_DEAF))
        net_make_deaf(w, victim, (int)draw(w, (uint64_t)w->plan.nodes));
    if (c->alive && !c->paused && fault_happens(w, FAULT_KILL))
        client_kill(w, victim);
    if (c->alive && fault_happens(w, FAULT_CANCEL)) {
        int number = (int)draw(w, (uint64_t)w->plan.actors);
        sim_event e = {.kind = EVENT_ACTOR, .index = victim, .actor = number};
        e.generation = (uint32_t)c->actors[number].generation + (c->generation << 32);
        if (c->actors[number].state == ACTOR_ACQUIRES)
            world_schedule(w, e, MS(1) / 10 * draw_between(w, 0, 50));
    }
}

/* ---- Permissions ---- */

static void tell_permits(world *w, int index, node *n)
{
    for (int i = 0; i < WIRES_MAX; i++)
        if (n->wires[i].used && n->wires[i].server_open && n->wires[i].client == index)
            permits_apply(&w->clients[index].permits[n->index], n->server, i, lock_names, LOCKS);
}

/* A server ends connections that are subscribed to what is denied now. */
static void toggle_messages(world *w, int index, node *n)
{
    sim_permits *permits = &w->clients[index].permits[n->index];
    bool denies = permits->messages == SIM_ALLOWED;
    sim_denial kind = draw(w, 2) == 0 ? SIM_NO_CHANNELS : SIM_NO_PUBSUB;
    permits_set_messages(permits, denies ? kind : SIM_ALLOWED);
    int wire = net_subscription(w, index, n->index);
    if (denies && wire >= 0)
        net_break(n, wire);
    world_log(w, "client %d: messages are %s at %d", index, denies ? "denied" : "allowed",
              n->index);
}

static void permission_faults(world *w)
{
    int index = any_client(w);
    node *n = &w->nodes[draw(w, (uint64_t)w->plan.nodes)];
    if (!w->clients[index].alive)
        return;
    if (fault_happens(w, FAULT_DENY_LOCK)) {
        int lock = (int)draw(w, (uint64_t)w->plan.locks);
        permits_toggle_lock(&w->clients[index].permits[n->index], lock, w->run.now_ns);
        world_log(w, "client %d: the permission for %s changes at %d", index, lock_names[lock],
                  n->index);
    }
    if (fault_happens(w, FAULT_DENY_MESSAGES))
        toggle_messages(w, index, n);
    tell_permits(w, index, n);
    if (fault_happens(w, FAULT_PROBE))
        client_probe(w, index);
}

static void lift_denials(world *w)
{
    for (int i = 0; i < w->plan.nodes; i++) {
        prober_remove(w->nodes[i].server);
        for (int k = 0; k < w->plan.clients; k++) {
            permits_lift(&w->clients[k].permits[i], w->run.now_ns);
            tell_permits(w, k, &w->nodes[i]);
        }
    }
}

static void memory_faults(world *w)
{
    node *n = &w->nodes[draw(w, (uint64_t)w->plan.nodes)];
    if (fault_happens(w, FAULT_FULL)) {
        memory_press(n->server, draw(w, 100));
        world_log(w, "server %d: full", n->index);
    } else if (draw(w, 4) == 0) {
        memory_lift(n->server);
    }
}

static void observer_faults(world *w)
{
    int index = w->plan.observers > 0 ? any_client(w) : 0;
    if (w->plan.observers > 0 && w->clients[index].alive && !w->clients[index].paused)
        observers_change(w, index);
}

void nemesis_act(world *w)
{
    if (w->healing)
        return;
    client_faults(w);
    if (w->plan.permissions)
        permission_faults(w);
    observer_faults(w);
    nemesis_notice_votes(w);
    if (w->plan.chance[FAULT_FULL] > 0)
        memory_faults(w);
    server_faults(w);
    leaks_check(w);
    world_schedule(w, (sim_event){.kind = EVENT_NEMESIS}, MS(draw_between(w, 20, 80)));
}

/* What was granted before a clock was put back may last for an hour: somebody cleans up. */
static void clean_up(node *n)
{
    int64_t longest_ms = n->world->plan.max_lease_ms + BACK_MAX_MS;
    node_set_clock(n);
    for (int i = 0; i < n->world->plan.locks; i++) {
        const char *words[] = {"PTTL", lock_names[i]};
        if (strtoll(sim_server_run(n->server, 2, words), NULL, 10) > longest_ms)
            sim_server_evict(n->server, lock_names[i], strlen(lock_names[i]));
    }
}

/* Those who are paused or down come back by themselves; the last of them, when? */
int64_t nemesis_heal(world *w)
{
    int64_t last_ns = w->run.now_ns;
    world_log(w, "healing");
    w->healing = w->resting = true;
    w->healed_ns = w->run.now_ns;
    if (w->plan.permissions)
        lift_denials(w);
    for (int i = 0; i < w->plan.clients; i++)
        if (w->clients[i].parted_drops)
            w->clients[i].parted_until_ns = 0;
    for (int i = 0; i < w->plan.nodes; i++) {
        node *n = &w->nodes[i];
        n->slow_until_ns = 0;
        sim_server_hide(n->server, 0);
        memory_lift(n->server);
        clean_up(n);
        if (!n->dead && n->stalled_until_ns > last_ns)
            last_ns = n->stalled_until_ns;
        for (int wire = 0; wire < WIRES_MAX; wire++)
            if (n->wires[wire].used && n->wires[wire].half_open && n->wires[wire].client_open)
                net_break(n, wire);
    }
    return last_ns;
}
