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
#include "mutants.h"
#include "sim.h"

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

bool draw_chance(world *w, double chance)
{
    return (double)draw(w, 1000000) < chance * 1000000.0;
}

bool fault_happens(world *w, sim_fault fault)
{
    if (w->healing || w->plan.chance[fault] <= 0 || !draw_chance(w, w->plan.chance[fault]))
        return false;
    w->stats.faults[fault]++;
    return true;
}

/* ---- The trace ---- */

static void trace_line(world *w, const char *text)
{
    char *line = w->trace[w->trace_count++ % TRACE_LINES];
    snprintf(line, TRACE_TEXT, "%7lld.%03d ms  %.130s", (long long)(w->now_ns / 1000000),
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

static bool earlier(const sim_event *a, const sim_event *b)
{
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

static void swap(sim_event *a, sim_event *b)
{
    sim_event kept = *a;
    *a = *b;
    *b = kept;
}

void world_schedule(world *w, sim_event event, int64_t delay_ns)
{
    if (w->queue_count == w->queue_capacity) {
        w->queue_capacity = w->queue_capacity ? 2 * w->queue_capacity : 256;
        w->queue = realloc(w->queue, w->queue_capacity * sizeof(*w->queue));
        if (w->queue == NULL)
            abort();
    }
    event.at_ns = w->now_ns + (delay_ns > 0 ? delay_ns : 0);
    event.order = w->orders++;
    size_t at = w->queue_count++;
    w->queue[at] = event;
    for (; at > 0 && earlier(&w->queue[at], &w->queue[(at - 1) / 2]); at = (at - 1) / 2)
        swap(&w->queue[at], &w->queue[(at - 1) / 2]);
}

static sim_event take_first(world *w)
{
    sim_event first = w->queue[0];
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

static void handle(world *w, sim_event *event)
{
    switch (event->kind) {
    case EVENT_WAKE:
    case EVENT_ACTOR:
    case EVENT_RESUME:
    case EVENT_START:
    case EVENT_KEEPER:
    case EVENT_QUERY:
    case EVENT_TOLD:
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

/* Runs until `until_ns`, or until `over` says so, or something is wrong. */
static void run_until(world *w, int64_t until_ns, bool (*over)(const world *))
{
    while (w->failure[0] == '\0' && w->queue_count > 0 && w->queue[0].at_ns <= until_ns) {
        if (over != NULL && over(w))
            return;
        sim_event event = take_first(w);
        w->now_ns = event.at_ns;
        w->stats.steps++;
        handle(w, &event);
        free(event.bytes);
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
    w->seed = seed;
    w->random = seed ^ 0x5bf03635f0a31e1bu;
    w->trace_hash = 0xcbf29ce484222325u;
    w->print_trace = print_trace;
    plan_draw(&w->plan, seed);
    hf__memory_set_gate(allocation_gate);
    hf__url_parse("redis://node", &w->url, &error);
    w->history = history_new();
    w->server = sim_server_new();
    w->server_runs = 1;
    sim_server_set_change(w->server, active_mutant != NULL ? mutant_change_script : NULL);
    w->server_rate_ppm = draw_between(w, -4500, 4500);
    w->server_offset_us = 1700000000000000 + draw_between(w, 0, 1000000000);
    server_set_clock(w);
    fences_begin(w);
    queues_begin(w);
    world_log(w, "seed %llu: %d clients x %d actors, leases %lld..%lld ms%s",
              (unsigned long long)seed, w->plan.clients, w->plan.actors,
              (long long)w->plan.lease_min_ms, (long long)w->plan.lease_max_ms,
              w->plan.beyond ? ", beyond the assumptions" : "");
    for (int i = 0; i < w->plan.clients; i++)
        client_start(w, i);
    world_schedule(w, (sim_event){.kind = EVENT_NEMESIS}, MS(20));
    world_schedule(w, (sim_event){.kind = EVENT_FOREIGN}, MS(30));
}

enum { QUIET_MS = 3000 };

/* Faults, then healing, then a time without any, then everybody once more, then closing: each
 * within a bound. */
void world_run(world *w, uint64_t seed, bool print_trace)
{
    begin(w, seed, print_trace);
    run_until(w, w->plan.duration_ns, NULL);
    nemesis_heal(w);
    run_until(w, w->now_ns + MS(8000), NULL); /* longer than the latest message and its lease */
    w->resting = false;
    w->quiet = true;
    actor_all_go_on(w);
    if (draw(w, 2) == 0)
        world_schedule(w, (sim_event){.kind = EVENT_CUT}, MS(200));
    run_until(w, w->now_ns + MS(QUIET_MS), NULL);
    actor_finish_round(w);
    run_until(w, w->now_ns + MS(60000), actor_all_done);
    if (w->failure[0] == '\0' && !actor_all_done(w))
        world_fail(w, "after healing, somebody still waits");
    client_close_all(w);
    run_until(w, w->now_ns + MS(20000), closed_and_over);
    if (w->failure[0] == '\0' && !closed(w))
        world_fail(w, "a client does not close");
    if (w->failure[0] == '\0')
        check_end(w);
}

void world_free(world *w)
{
    for (int i = 0; i < CLIENTS_MAX; i++)
        client_free(&w->clients[i]);
    for (size_t i = 0; i < w->queue_count; i++)
        free(w->queue[i].bytes);
    free(w->queue);
    history_free(w->history);
    queues_free(w);
    sim_image_free(w->old_copy);
    sim_server_free(w->server);
    hf__url_free(&w->url);
    hf__memory_set_gate(NULL);
}
