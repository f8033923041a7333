/* SPDX-License-Identifier: MIT */
/* A client's time: its clock, which runs a bit fast or slow; the one event that is to wake it; and
 * how long a call may take. */
#ifndef HF_SIM_CLIENT_TIME_H
#define HF_SIM_CLIENT_TIME_H

#include "clockwork.h"
#include "core/core.h"

typedef struct sim_timer {
    int64_t rate_ppm; /* its clock runs at 1 + that / 1e6 */
    int64_t base_ns;  /* and shows this in the beginning */
    int64_t wakes_ns; /* when an event is scheduled, in true time; INT64_MAX: none is */
} sim_timer;

int64_t timer_shows_ns(const sim_timer *timer, int64_t true_ns);
/* Schedules the event for the instant `wake` of the client's clock, unless an earlier one is. */
void timer_set(world *world, sim_timer *timer, hf__instant now, hf__instant wake, sim_event event);

/* INT64_MAX: it may wait for ever. */
int64_t acquire_bound_ns(const hf__call *call, int64_t call_timeout_ms);

#endif
