/* SPDX-License-Identifier: MIT */
/* The world's clockwork: a queue of events in true time, and a trace of what happened. Everything
 * that is drawn is drawn here, from one stream, in the order of the events; so the same seed gives
 * the same run, and its trace the same hash. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "quorum.h"

bool sim_allocation_fails;

/* ---- Randomness ---- */

uint64_t draw(world *w, uint64_t limit)
{
    return hf__random_below(&w->random, limit);
}

int64_t draw_between(world *w, int64_t low, int64_t high)
{
    return low + (int64_t)draw(w, (uint64_t)(high - low + 1));
}

bool fault_happens(world *w, sim_fault fault)
{
    double chance = w->plan.chance[fault];
    if (w->healing || chance <= 0 || (double)draw(w, 1000000) >= chance * 1000000.0)
        return false;
    w->stats.faults[fault]++;
    return true;
}

/* ---- The trace ---- */

static void trace_line(world *w, const char *text)
{
    char *line = w->trace[w->trace_count++ % TRACE_LINES];
    snprintf(line, TRACE_TEXT, "%7lld.%03d ms  %.170s", (long long)(w->now_ns / 1000000),
             (int)(w->now_ns / 1000 % 1000), text);
    for (const char *c = line; *c != '\0'; c++)
        w->trace_hash = (w->trace_hash ^ (unsigned char)*c) * 0x100000001b3u;
    if (w->print_trace)
        puts(line);
}

void world_log(world *w, const char *format, ...)
{
    char text[TRACE_TEXT];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    trace_line(w, text);
}

void world_fail(world *w, const char *format, ...)
{
    char text[sizeof(w->failure)];
    va_list arguments;
    if (w->failure[0] != '\0')
        return; /* the first one counts */
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    memcpy(w->failure, text, sizeof(text));
    world_log(w, "FAILURE: %s", text);
}

/* ---- The queue ---- */

static bool earlier(const event *a, const event *b)
{
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

static void swap(event *a, event *b)
{
    event kept = *a;
    *a = *b;
    *b = kept;
}

void world_schedule(world *w, event e, int64_t delay_ns)
{
    if (w->queue_count == w->queue_capacity) {
        w->queue_capacity = w->queue_capacity ? 2 * w->queue_capacity : 256;
        w->queue = realloc(w->queue, w->queue_capacity * sizeof(*w->queue));
        if (w->queue == NULL)
            abort();
    }
    e.at_ns = w->now_ns + (delay_ns > 0 ? delay_ns : 0);
    e.order = w->orders++;
    size_t at = w->queue_count++;
    w->queue[at] = e;
    for (; at > 0 && earlier(&w->queue[at], &w->queue[(at - 1) / 2]); at = (at - 1) / 2)
        swap(&w->queue[at], &w->queue[(at - 1) / 2]);
}

static event take_first(world *w)
{
    event first = w->queue[0];
    w->queue[0] = w->queue[--w->queue_count];
    for (size_t at = 0;;) {
        size_t least = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < w->queue_count; child++)
            if (earlier(&w->queue[child], &w->queue[least]))
                least = child;
        if (least == at)
            return first;
        swap(&w->queue[at], &w->queue[least]);
        at = least;
    }
}

/* ---- A run ---- */

static void handle_event(world *w, event *e)
{
    switch (e->kind) {
    case EVENT_WAKE:
    case EVENT_ACTOR:
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

void world_run_until(world *w, int64_t until_ns, bool (*over)(const world *))
{
    while (w->failure[0] == '\0' && w->queue_count > 0 && w->queue[0].at_ns <= until_ns) {
        if (over != NULL && over(w))
            return;
        event e = take_first(w);
        w->now_ns = e.at_ns;
        w->stats.steps++;
        handle_event(w, &e);
        free(e.bytes);
    }
    if (w->failure[0] == '\0' && w->now_ns < until_ns && (over == NULL || !over(w)))
        w->now_ns = until_ns;
}

static bool allocation_gate(void)
{
    bool fails = sim_allocation_fails;
    sim_allocation_fails = false;
    return !fails;
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
    w->seed = seed;
    w->random = seed ^ 0x5bf03635f0a31e1bu;
    w->trace_hash = 0xcbf29ce484222325u;
    w->print_trace = print_trace;
    w->plan = *p;
    hf__memory_set_gate(allocation_gate);
    world_log(w,
              "seed %llu: %s, %d servers (%d dead), %d clients x %d actors, leases %lld..%lld ms",
              (unsigned long long)seed, kinds[p->kind], p->nodes, p->dead, p->clients, p->actors,
              (long long)p->lease_min_ms, (long long)p->lease_max_ms);
    begin_nodes(w);
    fences_begin(w);
}

/* In quiet worlds some come later, and find others waiting. */
static void begin_clients(world *w)
{
    for (int i = 0; i < w->plan.clients; i++) {
        bool later = w->plan.kind == KIND_QUIET && i > 0 && draw(w, 2) == 0;
        world_schedule(w, (event){.kind = EVENT_START, .index = i},
                       MS(later ? draw_between(w, 100, 2500) : 0));
    }
    world_schedule(w, (event){.kind = EVENT_NEMESIS}, MS(20));
}

/* Faults, then healing, in which those who wait get what they wait for; then everybody once more,
 * then closing: each within a bound. And then there is nothing left but fences. */
void world_run(world *w, uint64_t seed, int nodes, bool print_trace)
{
    plan p;
    plan_draw(&p, seed, nodes);
    world_begin(w, seed, &p, print_trace);
    begin_clients(w);
    int64_t bound_ns = MS(3 * p.max_lease_ms + 5000);
    world_run_until(w, p.duration_ns, NULL);
    world_run_until(w, nemesis_heal(w) + MS(3000), NULL); /* longer than the longest back-off */
    world_run_until(w, w->now_ns + bound_ns, actor_all_rest);
    actor_name_late(w, ACTOR_THINKS, "when all is well again");
    actor_finish_round(w);
    world_run_until(w, w->now_ns + bound_ns, actor_all_done);
    actor_name_late(w, ACTOR_DONE, "in the last round");
    client_close_all(w);
    world_run_until(w, w->now_ns + MS(20000), client_all_closed);
    if (w->failure[0] == '\0' && !client_all_closed(w))
        world_fail(w, "a client does not close");
    world_run_until(w, w->now_ns + MS(3 * p.max_lease_ms + 6000), NULL);
    if (w->failure[0] == '\0')
        leaks_check_end(w);
    fences_end(w);
}

void world_free(world *w)
{
    for (int i = 0; i < CLIENTS_MAX; i++)
        client_free(&w->clients[i]);
    for (size_t i = 0; i < w->queue_count; i++)
        free(w->queue[i].bytes);
    free(w->queue);
    for (int i = 0; i < w->plan.nodes; i++) {
        node_free(&w->nodes[i]);
        hf__url_free(&w->urls[i]);
    }
    hf__memory_set_gate(NULL);
}
