/* SPDX-License-Identifier: MIT */
/* What drives a simulated world, however many servers it has: one stream of random numbers, a queue
 * of events in true time, a trace with a hash. There are two worlds, with one server (sim.h) and
 * with several (quorum/quorum.h), each a `struct world` in a program of its own; each says where
 * its clockwork is and what its events do. */
#ifndef HF_SIM_CLOCKWORK_H
#define HF_SIM_CLOCKWORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MS(n) ((int64_t)(n)*1000000)

enum { TRACE_LINES = 1500, TRACE_TEXT = 200 };

typedef struct world world;

typedef struct sim_event {
    int64_t at_ns;
    uint64_t order; /* of scheduling: events at the same time happen in this order */
    unsigned kind;  /* an event_kind of its world */
    int node;       /* where there are several */
    int index;      /* client or wire */
    int actor;
    uint64_t generation; /* of the client or wire it was meant for */
    char *bytes;
    size_t count;
} sim_event;

typedef struct clockwork {
    uint64_t seed, random;
    int64_t now_ns; /* true time */
    uint64_t orders;
    sim_event *queue; /* a binary heap */
    size_t queue_count, queue_capacity;
    char failure[400]; /* empty: none */
    char trace[TRACE_LINES][TRACE_TEXT];
    int trace_width; /* a longer text is cut, before it is hashed */
    uint64_t trace_count, trace_hash;
    bool print_trace;
} clockwork;

/* What a world says. */
clockwork *world_clockwork(world *world);
void world_handle(world *world, sim_event *event); /* its bytes stay the clockwork's */
void world_free(world *world);

/* Of an empty world, and of its end. */
void clockwork_begin(clockwork *clockwork, uint64_t seed, int trace_width, bool print_trace);
void clockwork_end(clockwork *clockwork);

extern int sim_allocation_fails; /* which of the next ones of a client; 0: none */

uint64_t draw(world *world, uint64_t limit); /* 0 to limit - 1 */
int64_t draw_between(world *world, int64_t low, int64_t high);
bool draw_chance(world *world, double chance);

void world_log(world *world, const char *format, ...) __attribute__((format(printf, 2, 3)));
void world_fail(world *world, const char *format, ...) __attribute__((format(printf, 2, 3)));
void clockwork_print_failure(const clockwork *clockwork); /* and what led to it */

void world_schedule(world *world, sim_event event, int64_t delay_ns);
/* Or until `over` says so (NULL: it never does), or something is wrong. */
void world_run_until(world *world, int64_t until_ns, bool (*over)(const struct world *));

#endif
