/* SPDX-License-Identifier: MIT */
/* A server with a capacity: its work takes time. It does one command after the other, in the order
 * in which they arrived, over whichever connection; the answer to one leaves when that one is done.
 * Both worlds use it, that with one server (sim.h) and that with several (quorum/quorum.h). */
#ifndef HF_SIM_CAPACITY_H
#define HF_SIM_CAPACITY_H

#include "clockwork.h"

typedef struct sim_capacity {
    bool limited;     /* else all work takes no time, and the rest does not count */
    int64_t call_ns;  /* for each script call, */
    int64_t word_ns;  /* and for each word of it beyond those of a call about one lock */
    int64_t phase_ns; /* in the second half of each such time */
    int slow;         /* all takes so many times as long; 0: there are no such times */
    int64_t free_ns;  /* when everything is done that has arrived */
} sim_capacity;

/* Takes what has arrived, and schedules the event again for each command in it, marked as worked
 * off, when that command is done. Returns when the last one is. */
int64_t capacity_queue(world *world, sim_capacity *capacity, const sim_event *event);
/* From now on work takes no time; what has arrived before is still done first. */
void capacity_end(sim_capacity *capacity);

#endif
