/* SPDX-License-Identifier: MIT */
/* Wires. Each leads from a client's link to one server, and each of its directions delivers in
 * order, after a delay that is drawn for each piece; between two wires there is no order. A piece
 * may be late by more than a lease, and everything behind it then is too. A wire that breaks may
 * still deliver to the server what was on its way. A half-open wire swallows everything and tells
 * nobody. Between a client and a server that are parted, everything is lost, or held back until
 * they are not. */
#include <stdlib.h>
#include <string.h>

#include "quorum.h"

/* A reply may be late by more than any lease. A request, in most runs, by less than the shortest
 * one, which is what a tombstone lasts for. */
static int64_t late_ns(world *w, bool to_server)
{
    int64_t longest_ms = 2 * w->plan.lease_max_ms;
    if (to_server && !w->plan.very_late)
        longest_ms = w->plan.lease_min_ms * 9 / 10;
    return MS(1) / 10 * draw_between(w, 1, longest_ms * 10);
}

static int64_t delay_ns(node *n, bool to_server)
{
    world *w = n->world;
    if (fault_happens(w, FAULT_DELAY))
        return late_ns(w, to_server);
    int64_t away_ns = w->plan.load.away_ns;
    int64_t usual_ns = 1000 + away_ns + (int64_t)draw(w, (uint64_t)(w->plan.delay_ns - away_ns));
    return n->slow_until_ns > w->run.now_ns ? 10 * usual_ns : usual_ns;
}

static bool is_parted(const node *n, int client_index)
{
    const client *c = &n->world->clients[client_index];
    return c->parted[n->index] && c->parted_until_ns > n->world->run.now_ns;
}

static sim_event wire_event(const node *n, event_kind kind, int index)
{
    return (sim_event){
        .kind = kind, .node = n->index, .index = index, .generation = n->wires[index].generation};
}

static int free_wire(const node *n)
{
    for (int i = 0; i < WIRES_MAX; i++)
        if (!n->wires[i].used)
            return i;
    abort();
}

void net_connect(world *w, int client_index, int link)
{
    client *c = &w->clients[client_index];
    node *n = &w->nodes[hf__core_server(c->core, link)];
    int index = free_wire(n);
    uint64_t generation = n->wires[index].generation + 1;
    n->wires[index] = (sim_wire){.used = true,
                                 .generation = generation,
                                 .client = client_index,
                                 .client_generation = c->generation,
                                 .link = link,
                                 .client_open = true};
    c->links[link] = index + 1;
    bool refused = n->down;
    if (is_parted(n, client_index) || fault_happens(w, FAULT_HALF_OPEN))
        return; /* neither yes nor no */
    world_schedule(w, wire_event(n, refused ? EVENT_REFUSED : EVENT_CONNECTED, index),
                   delay_ns(n, false));
}

/* Arrivals are in order: not before the one before. */
static int64_t arrival(const world *w, int64_t delay, int64_t *last_ns)
{
    int64_t at_ns = w->run.now_ns + delay;
    *last_ns = at_ns > *last_ns ? at_ns : *last_ns + 1;
    return *last_ns - w->run.now_ns;
}

static void send_piece(node *n, event_kind kind, int index, hf__slice piece, int64_t delay)
{
    sim_wire *wire = &n->wires[index];
    sim_event e = wire_event(n, kind, index);
    e.bytes = malloc(piece.length);
    if (e.bytes == NULL)
        abort();
    memcpy(e.bytes, piece.bytes, piece.length);
    e.count = piece.length;
    int64_t *last_ns =
        kind == EVENT_TO_SERVER ? &wire->last_to_server_ns : &wire->last_to_client_ns;
    world_schedule(n->world, e, arrival(n->world, delay, last_ns));
}

/* The last piece of a wire: all of it or up to any byte, and perhaps long after its client has
 * asked again on another one. */
static void send_last(node *n, event_kind kind, int index, hf__slice piece)
{
    world *w = n->world;
    bool to_server = kind == EVENT_TO_SERVER;
    if (draw(w, 2) == 0)
        piece.length = (size_t)draw(w, piece.length + 1);
    int64_t delay = draw(w, 3) == 0 ? late_ns(w, to_server) : delay_ns(n, to_server);
    if (piece.length > 0)
        send_piece(n, kind, index, piece, delay);
    net_break(n, index);
}

/* One message in one direction. */
static void send(node *n, event_kind kind, int index, const char *bytes, size_t count)
{
    world *w = n->world;
    sim_wire *wire = &n->wires[index];
    const client *c = &w->clients[wire->client];
    hf__slice piece = {bytes, count};
    if (is_parted(n, wire->client) && c->parted_drops)
        wire->half_open = true;
    if (wire->half_open)
        return;
    if (is_parted(n, wire->client))
        send_piece(n, kind, index, piece, c->parted_until_ns - w->run.now_ns + delay_ns(n, true));
    else if (fault_happens(w, FAULT_HALF_OPEN))
        wire->half_open = true;
    else if (fault_happens(w, FAULT_CUT))
        send_last(n, kind, index, piece);
    else
        send_piece(n, kind, index, piece, delay_ns(n, kind == EVENT_TO_SERVER));
}

void net_send(world *w, int client_index, int link, const char *bytes, size_t count)
{
    client *c = &w->clients[client_index];
    node *n = &w->nodes[hf__core_server(c->core, link)];
    int index = c->links[link] - 1;
    if (index >= 0 && n->wires[index].client_open)
        send(n, EVENT_TO_SERVER, index, bytes, count);
}

/* What the server has said. */
static void collect(node *n)
{
    for (int i = 0; i < WIRES_MAX; i++) {
        const char *bytes;
        if (!n->wires[i].used || !n->wires[i].server_open)
            continue;
        size_t count = sim_server_output(n->server, i, &bytes);
        if (count == 0)
            continue;
        if (n->wires[i].client_open)
            send(n, EVENT_TO_CLIENT, i, bytes, count);
        sim_server_taken(n->server, i, count);
    }
}

/* ---- Endings ---- */

static void forget(sim_wire *wire)
{
    if (!wire->client_open && !wire->server_open)
        *wire = (sim_wire){.generation = wire->generation + 1};
}

/* The client's end is gone; the server learns of it after whatever is still on the way. */
static void end_at_client(node *n, int index)
{
    world *w = n->world;
    sim_wire *wire = &n->wires[index];
    if (!wire->client_open)
        return;
    wire->client_open = false;
    int64_t last_ns =
        wire->last_to_server_ns > w->run.now_ns ? wire->last_to_server_ns : w->run.now_ns;
    if (draw(w, 2) == 0)
        last_ns = w->run.now_ns; /* or it never arrives */
    world_schedule(w, wire_event(n, EVENT_SERVER_END, index), last_ns - w->run.now_ns + 1000);
}

void net_close(world *w, int client_index, int link)
{
    client *c = &w->clients[client_index];
    int index = c->links[link] - 1;
    c->links[link] = 0;
    if (index >= 0)
        end_at_client(&w->nodes[hf__core_server(c->core, link)], index);
}

void net_break(node *n, int index)
{
    world *w = n->world;
    sim_wire *wire = &n->wires[index];
    if (wire->client_open)
        world_schedule(w, wire_event(n, EVENT_CLIENT_END, index), delay_ns(n, false));
    wire->half_open = true; /* nothing new passes */
    if (wire->server_open && draw(w, 2) == 0)
        world_schedule(w, wire_event(n, EVENT_SERVER_END, index),
                       wire->last_to_server_ns - w->run.now_ns + 1000);
}

void net_break_all(node *n, bool clients_learn)
{
    for (int i = 0; i < WIRES_MAX; i++) {
        sim_wire *wire = &n->wires[i];
        if (!wire->used)
            continue;
        wire->server_open = false;
        wire->half_open = true;
        if (wire->client_open && clients_learn)
            world_schedule(n->world, wire_event(n, EVENT_CLIENT_END, i), delay_ns(n, false));
        forget(wire);
    }
}

int net_subscription(const world *w, int client_index, int node_index)
{
    const client *c = &w->clients[client_index];
    return c->links[node_index * (c->config.links + 1) + c->config.links] - 1;
}

void net_make_deaf(world *w, int client_index, int node_index)
{
    int index = net_subscription(w, client_index, node_index);
    if (index < 0)
        return;
    w->nodes[node_index].wires[index].half_open = true;
    world_log(w, "client %d: its subscription at %d is deaf", client_index, node_index);
}

/* Everything that is said from now on, apart from messages, arrives after that. */
void net_hold_back(world *w, int client_index, int node_index, bool to_server, int64_t length_ns)
{
    const client *c = &w->clients[client_index];
    for (int i = 0; i < c->config.links; i++) {
        int index = c->links[node_index * (c->config.links + 1) + i] - 1;
        if (index < 0)
            continue;
        sim_wire *wire = &w->nodes[node_index].wires[index];
        *(to_server ? &wire->last_to_server_ns : &wire->last_to_client_ns) =
            w->run.now_ns + length_ns;
    }
}

/* ---- What arrives ---- */

static void to_server(node *n, sim_event *e)
{
    world *w = n->world;
    if (n->down || !n->wires[e->index].server_open)
        return;
    node_set_clock(n);
    observers_look(w);
    sim_server_receive(n->server, e->index, e->bytes, e->count);
    order_look(n);
    check_beliefs(w);
    if (!n->wires[e->index].client_open)
        leaks_check(w);
    collect(n);
}

static void to_client(node *n, sim_event *e, hf__event_kind kind)
{
    world *w = n->world;
    sim_wire *wire = &n->wires[e->index];
    client *c = &w->clients[wire->client];
    if (!c->alive || c->generation != wire->client_generation ||
        c->links[wire->link] != e->index + 1)
        return;
    int index = wire->client, link = wire->link;
    if (kind == HF__EVENT_DISCONNECTED)
        end_at_client(n, e->index);
    client_step(w, index,
                &(hf__event){.kind = kind,
                             .link = link,
                             .bytes = e->bytes,
                             .count = e->count,
                             .wall = {1700000000000000 + w->run.now_ns / 1000},
                             .reason = "broken"});
    if (c->alive && (kind == HF__EVENT_CONNECTED || load_answered(c->core, link)))
        wire->heard_ns = w->run.now_ns;
}

/* A paused party gets its events when it goes on. */
static bool postponed(node *n, sim_event *e)
{
    world *w = n->world;
    const sim_wire *wire = &n->wires[e->index];
    const client *c = &w->clients[wire->client];
    int64_t until_ns = 0;
    if (e->kind == EVENT_TO_SERVER ||
        (e->kind == EVENT_SERVER_END && wire->server_open && !n->dead))
        until_ns = n->stalled_until_ns;
    else if (c->alive && c->paused && c->generation == wire->client_generation)
        until_ns = c->resumes_ns;
    if (e->kind == EVENT_SERVER_END && wire->worked_ns > until_ns)
        until_ns = wire->worked_ns;
    if (until_ns <= w->run.now_ns)
        return false;
    sim_event again = *e;
    e->bytes = NULL;
    world_schedule(w, again, until_ns - w->run.now_ns);
    return true;
}

void net_handle(world *w, sim_event *e)
{
    node *n = &w->nodes[e->node];
    sim_wire *wire = &n->wires[e->index];
    if (!wire->used || wire->generation != e->generation || postponed(n, e))
        return;
    switch (e->kind) {
    case EVENT_CONNECTED:
        if (!wire->client_open || n->down)
            break;
        wire->server_open = true;
        sim_server_connect(n->server, e->index);
        permits_apply(&w->clients[wire->client].permits[n->index], n->server, e->index, lock_names,
                      LOCKS);
        to_client(n, e, HF__EVENT_CONNECTED);
        break;
    case EVENT_REFUSED:
    case EVENT_CLIENT_END:
        to_client(n, e, HF__EVENT_DISCONNECTED);
        break;
    case EVENT_TO_SERVER:
        if (n->capacity.limited && !e->worked)
            wire->worked_ns = capacity_queue(w, &n->capacity, e);
        else
            to_server(n, e);
        break;
    case EVENT_TO_CLIENT:
        if (wire->client_open)
            to_client(n, e, HF__EVENT_BYTES);
        break;
    default: /* EVENT_SERVER_END */
        if (wire->server_open && !n->down)
            sim_server_disconnect(n->server, e->index);
        wire->server_open = false;
        forget(wire);
        break;
    }
}
