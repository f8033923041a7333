/* SPDX-License-Identifier: MIT */
/* Wires. Each direction delivers in order, after a delay that is drawn for each piece; a piece may
 * be late by more than a lease, and everything behind it then is too. A wire that breaks may still
 * deliver to the server what was on its way: that is how a request arrives after its client has
 * given up the connection and asked again on another one. A half-open wire swallows everything and
 * tells nobody. */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

/* A reply may be late by more than any lease. A request, in most runs, by less than the shortest
 * one, which is what a tombstone lasts for: docs/safety.md says what a copy may do that comes
 * later. */
static int64_t late_ns(world *w, bool to_server)
{
    int64_t longest_ms = 2 * w->plan.lease_max_ms;
    if (to_server && !w->plan.very_late)
        longest_ms = w->plan.lease_min_ms * 9 / 10;
    return MS(1) / 10 * draw_between(w, 1, longest_ms * 10);
}

/* What comes while the server stands still waits in its sockets. */
bool net_may_be_late(const world *w)
{
    int64_t after_ms = 3 * w->plan.lease_max_ms;
    return w->plan.very_late || (w->server_paused_until_ns > 0 &&
                                 w->run.now_ns < w->server_paused_until_ns + MS(after_ms));
}

/* What the server tells on a subscription may be late for reasons of its own. */
static int64_t delay_ns(world *w, bool to_server, bool pushed)
{
    if (fault_happens(w, FAULT_DELAY) || (pushed && fault_happens(w, FAULT_PUSH_STALL)))
        return late_ns(w, to_server);
    int64_t away_ns = w->plan.load.away_ns;
    return 1000 + away_ns + (int64_t)draw(w, (uint64_t)(w->plan.delay_ns - away_ns));
}

static sim_event wire_event(const world *w, event_kind kind, int index)
{
    return (sim_event){.kind = kind, .index = index, .generation = w->wires[index].generation};
}

static int free_wire(world *w)
{
    for (int i = 0; i < WIRES_MAX; i++)
        if (!w->wires[i].used)
            return i;
    abort();
}

void net_connect(world *w, int client_index, int link)
{
    sim_client *client = &w->clients[client_index];
    int index = free_wire(w);
    uint64_t generation = w->wires[index].generation + 1;
    w->wires[index] = (sim_wire){.used = true,
                                 .generation = generation,
                                 .client = client_index,
                                 .client_generation = client->generation,
                                 .link = link,
                                 .push = link == client->config.links,
                                 .client_open = true};
    client->links[link] = index + 1;
    bool refused = w->server_down;
    if (fault_happens(w, FAULT_HALF_OPEN))
        return; /* neither yes nor no */
    world_schedule(w, wire_event(w, refused ? EVENT_REFUSED : EVENT_CONNECTED, index),
                   delay_ns(w, false, false));
}

/* Arrivals are in order: not before the one before. */
static int64_t arrival(const world *w, int64_t delay, int64_t *last_ns)
{
    int64_t at_ns = w->run.now_ns + delay;
    *last_ns = at_ns > *last_ns ? at_ns : *last_ns + 1;
    return *last_ns - w->run.now_ns;
}

static void send_piece(world *w, event_kind kind, int index, hf__slice piece, int64_t delay)
{
    sim_wire *wire = &w->wires[index];
    bool to_server = kind == EVENT_TO_SERVER;
    sim_event event = wire_event(w, kind, index);
    event.bytes = malloc(piece.length);
    if (event.bytes == NULL)
        abort();
    memcpy(event.bytes, piece.bytes, piece.length);
    event.count = piece.length;
    int64_t *last_ns = to_server ? &wire->last_to_server_ns : &wire->last_to_client_ns;
    world_schedule(w, event, arrival(w, delay, last_ns));
}

/* The last piece of a wire: all of it or up to any byte, and perhaps long after its client has
 * asked again on another one. */
static void send_last(world *w, event_kind kind, int index, hf__slice piece)
{
    bool to_server = kind == EVENT_TO_SERVER;
    if (draw(w, 2) == 0)
        piece.length = (size_t)draw(w, piece.length + 1);
    int64_t delay = draw(w, 3) == 0 ? late_ns(w, to_server) : delay_ns(w, to_server, false);
    if (piece.length > 0)
        send_piece(w, kind, index, piece, delay);
    net_break(w, index, true);
}

/* One message in one direction. */
static void send(world *w, event_kind kind, int index, const char *bytes, size_t count)
{
    hf__slice piece = {bytes, count};
    if (w->wires[index].half_open)
        return;
    if (fault_happens(w, FAULT_HALF_OPEN))
        w->wires[index].half_open = true;
    else if (fault_happens(w, FAULT_CUT))
        send_last(w, kind, index, piece);
    else
        send_piece(
            w, kind, index, piece,
            delay_ns(w, kind == EVENT_TO_SERVER, kind == EVENT_TO_CLIENT && w->wires[index].push));
}

void net_send(world *w, int client_index, int link, const char *bytes, size_t count)
{
    int index = w->clients[client_index].links[link] - 1;
    if (index >= 0 && w->wires[index].client_open)
        send(w, EVENT_TO_SERVER, index, bytes, count);
}

void net_collect(world *w)
{
    for (int i = 0; i < WIRES_MAX; i++) {
        const char *bytes;
        if (!w->wires[i].used || !w->wires[i].server_open)
            continue;
        size_t count = sim_server_output(w->server, i, &bytes);
        if (count == 0)
            continue;
        if (w->wires[i].client_open)
            send(w, EVENT_TO_CLIENT, i, bytes, count);
        sim_server_taken(w->server, i, count);
    }
}

int net_subscription(const world *w, int client_index)
{
    const sim_client *client = &w->clients[client_index];
    return client->alive ? client->links[client->config.links] - 1 : -1;
}

static void forget(world *w, int index)
{
    sim_wire *wire = &w->wires[index];
    if (wire->client_open || wire->server_open)
        return;
    *wire = (sim_wire){.generation = wire->generation + 1};
}

/* The client's end is gone; the server learns of it after whatever is still on the way. */
static void end_at_client(world *w, int index)
{
    sim_wire *wire = &w->wires[index];
    if (!wire->client_open)
        return;
    wire->client_open = false;
    int64_t last_ns =
        wire->last_to_server_ns > w->run.now_ns ? wire->last_to_server_ns : w->run.now_ns;
    if (!draw_chance(w, 0.5))
        last_ns = w->run.now_ns; /* or it never arrives */
    world_schedule(w, wire_event(w, EVENT_SERVER_END, index), last_ns - w->run.now_ns + 1000);
}

void net_close(world *w, int client_index, int link)
{
    sim_client *client = &w->clients[client_index];
    int index = client->links[link] - 1;
    client->links[link] = 0;
    if (index >= 0)
        end_at_client(w, index);
}

void net_break(world *w, int index, bool client_learns)
{
    sim_wire *wire = &w->wires[index];
    if (wire->client_open && client_learns)
        world_schedule(w, wire_event(w, EVENT_CLIENT_END, index), delay_ns(w, false, false));
    wire->half_open = true; /* nothing new passes */
    if (wire->server_open && draw_chance(w, 0.5))
        world_schedule(w, wire_event(w, EVENT_SERVER_END, index),
                       wire->last_to_server_ns - w->run.now_ns + 1000);
}

void net_break_all(world *w, bool clients_learn, bool subscribed_too)
{
    for (int i = 0; i < WIRES_MAX; i++) {
        sim_wire *wire = &w->wires[i];
        if (!wire->used || (!subscribed_too && sim_server_is_subscribed(w->server, i)))
            continue;
        wire->server_open = false;
        wire->half_open = true;
        if (wire->client_open && clients_learn)
            world_schedule(w, wire_event(w, EVENT_CLIENT_END, i), delay_ns(w, false, false));
        forget(w, i);
    }
}

/* ---- What arrives ---- */

static void note_subscription(world *w, int index)
{
    const sim_wire *wire = &w->wires[index];
    sim_client *client = &w->clients[wire->client];
    if (wire->push && client->generation == wire->client_generation &&
        wire->server_run > client->subscribed_run && sim_server_is_subscribed(w->server, index))
        client->subscribed_run = wire->server_run;
}

static void to_server(world *w, sim_event *event)
{
    if (w->server_down || !w->wires[event->index].server_open)
        return;
    server_set_clock(w);
    queues_look(w);
    observers_look(w);
    w->watching = true;
    w->may_push = w->clients[w->wires[event->index].client].permits.messages != SIM_NO_PUBSUB;
    sim_server_receive(w->server, event->index, event->bytes, event->count);
    w->watching = false;
    note_subscription(w, event->index);
    check_beliefs(w);
    if (!w->wires[event->index].client_open)
        check_leaks(w);
    net_collect(w);
}

static void to_client(world *w, sim_event *event, hf__event_kind kind)
{
    sim_wire *wire = &w->wires[event->index];
    sim_client *client = &w->clients[wire->client];
    if (!client->alive || client->generation != wire->client_generation ||
        client->links[wire->link] != event->index + 1)
        return;
    int index = wire->client, link = wire->link;
    if (kind == HF__EVENT_DISCONNECTED)
        end_at_client(w, event->index);
    hf__event core_event = {.kind = kind,
                            .link = link,
                            .bytes = event->bytes,
                            .count = event->count,
                            .wall = {server_now_us(w)},
                            .reason = "broken"};
    client_step(w, index, &core_event);
    if (client->alive && (kind == HF__EVENT_CONNECTED || load_answered(client->core, link)))
        wire->heard_ns = w->run.now_ns;
}

/* A paused party gets its events when it goes on. */
static bool postponed(world *w, sim_event *event)
{
    int64_t until_ns = 0;
    const sim_wire *wire = &w->wires[event->index];
    const sim_client *client = &w->clients[wire->client];
    if (event->kind == EVENT_TO_SERVER || event->kind == EVENT_SERVER_END)
        until_ns = w->server_paused_until_ns;
    else if (client->alive && client->paused && client->generation == wire->client_generation)
        until_ns = client->resumes_ns;
    if (event->kind == EVENT_SERVER_END && wire->worked_ns > until_ns)
        until_ns = wire->worked_ns;
    if (until_ns <= w->run.now_ns)
        return false;
    sim_event again = *event;
    event->bytes = NULL;
    world_schedule(w, again, until_ns - w->run.now_ns);
    return true;
}

void net_handle(world *w, sim_event *event)
{
    sim_wire *wire = &w->wires[event->index];
    if (!wire->used || wire->generation != event->generation || postponed(w, event))
        return;
    switch (event->kind) {
    case EVENT_CONNECTED:
        if (!wire->client_open || w->server_down)
            break;
        wire->server_open = true;
        wire->server_run = w->server_runs;
        sim_server_connect(w->server, event->index);
        permits_apply(&w->clients[wire->client].permits, w->server, event->index, lock_names,
                      LOCKS);
        if (w->plan.elders >> wire->client & 1)
            sim_server_set_elder(w->server, event->index);
        to_client(w, event, HF__EVENT_CONNECTED);
        break;
    case EVENT_REFUSED:
    case EVENT_CLIENT_END:
        to_client(w, event, HF__EVENT_DISCONNECTED);
        break;
    case EVENT_TO_SERVER:
        if (w->capacity.limited && !event->worked)
            wire->worked_ns = capacity_queue(w, &w->capacity, event);
        else
            to_server(w, event);
        break;
    case EVENT_TO_CLIENT:
        if (wire->client_open)
            to_client(w, event, HF__EVENT_BYTES);
        break;
    default: /* EVENT_SERVER_END */
        if (wire->server_open && !w->server_down)
            sim_server_disconnect(w->server, event->index);
        wire->server_open = false;
        forget(w, event->index);
        break;
    }
}
