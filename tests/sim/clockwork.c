/* SPDX-License-Identifier: MIT */
/* The clockwork of a world: a queue of events in true time, and a trace of what happened.
 * Everything that is drawn is drawn here, from one stream, in the order of the events; so the same
 * seed gives the same run, and its trace the same hash. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "clockwork.h"

int sim_allocation_fails;

/* ---- Randomness ---- */

uint64_t draw(world *w, uint64_t limit)
{
    return hf__random_below(&world_clockwork(w)->random, limit);
}

int64_t draw_between(world *w, int64_t low, int64_t high)
{
    return low + (int64_t)draw(w, (uint64_t)(high - low + 1));
}

bool draw_chance(world *w, double chance)
{
    return (double)draw(w, 1000000) < chance * 1000000.0;
}

/* ---- The trace ---- */

static void trace_line(clockwork *c, const char *text)
{
    char *line = c->trace[c->trace_count++ % TRACE_LINES];
    snprintf(line, TRACE_TEXT, "%7lld.%03d ms  %.*s", (long long)(c->now_ns / 1000000),
             (int)(c->now_ns / 1000 % 1000), c->trace_width, text);
    for (const char *at = line; *at != '\0'; at++)
        c->trace_hash = (c->trace_hash ^ (unsigned char)*at) * 0x100000001b3u;
    if (c->print_trace)
        puts(line);
}

void world_log(world *w, const char *format, ...)
{
    char text[TRACE_TEXT];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    trace_line(world_clockwork(w), text);
}

void world_fail(world *w, const char *format, ...)
{
    clockwork *c = world_clockwork(w);
    char text[sizeof(c->failure)];
    va_list arguments;
    if (c->failure[0] != '\0')
        return; /* the first one counts */
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    memcpy(c->failure, text, sizeof(text));
    world_log(w, "FAILURE: %s", text);
}

void clockwork_print_failure(const clockwork *c)
{
    uint64_t shown = c->trace_count < TRACE_LINES ? c->trace_count : TRACE_LINES;
    printf("\n... what led to it (the last %llu lines):\n", (unsigned long long)shown);
    for (uint64_t i = c->trace_count - shown; i < c->trace_count; i++)
        puts(c->trace[i % TRACE_LINES]);
    printf("\nseed %llu failed: %s\n", (unsigned long long)c->seed, c->failure);
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
    clockwork *c = world_clockwork(w);
    if (c->queue_count == c->queue_capacity) {
        c->queue_capacity = c->queue_capacity ? 2 * c->queue_capacity : 256;
        c->queue = realloc(c->queue, c->queue_capacity * sizeof(*c->queue));
        if (c->queue == NULL)
            abort();
    }
    event.at_ns = c->now_ns + (delay_ns > 0 ? delay_ns : 0);
    event.order = c->orders++;
    size_t at = c->queue_count++;
    c->queue[at] = event;
    for (; at > 0 && earlier(&c->queue[at], &c->queue[(at - 1) / 2]); at = (at - 1) / 2)
        swap(&c->queue[at], &c->queue[(at - 1) / 2]);
}

static sim_event take_first(clockwork *c)
{
    sim_event first = c->queue[0];
    c->queue[0] = c->queue[--c->queue_count];
    for (size_t at = 0;;) {
        size_t least = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < c->queue_count; child++)
            if (earlier(&c->queue[child], &c->queue[least]))
                least = child;
        if (least == at)
            return first;
        swap(&c->queue[at], &c->queue[least]);
        at = least;
    }
}

/* ---- A run ---- */

void world_run_until(world *w, int64_t until_ns, bool (*over)(const world *))
{
    clockwork *c = world_clockwork(w);
    while (c->failure[0] == '\0' && c->queue_count > 0 && c->queue[0].at_ns <= until_ns) {
        if (over != NULL && over(w))
            return;
        sim_event event = take_first(c);
        c->now_ns = event.at_ns;
        world_handle(w, &event);
        free(event.bytes);
    }
    if (c->failure[0] == '\0' && c->now_ns < until_ns && (over == NULL || !over(w)))
        c->now_ns = until_ns;
}

static bool allocation_gate(void)
{
    return sim_allocation_fails == 0 || --sim_allocation_fails > 0;
}

void clockwork_begin(clockwork *c, uint64_t seed, int trace_width, bool print_trace)
{
    c->seed = seed;
    c->random = seed ^ 0x5bf03635f0a31e1bu;
    c->trace_width = trace_width;
    c->trace_hash = 0xcbf29ce484222325u;
    c->print_trace = print_trace;
    hf__memory_set_gate(allocation_gate);
}

void clockwork_end(clockwork *c)
{
    for (size_t i = 0; i < c->queue_count; i++)
        free(c->queue[i].bytes);
    free(c->queue);
    hf__memory_set_gate(NULL);
}
