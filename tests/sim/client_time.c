/* SPDX-License-Identifier: MIT */
/* True time is what the queue of events goes by, and no client knows it: what a client wants to do
 * at an instant of its own clock is put into the queue for when that clock will show it, or a
 * little later. Too early would be a wake for nothing. */
#include "client_time.h"

int64_t timer_shows_ns(const sim_timer *t, int64_t true_ns)
{
    return t->base_ns + true_ns + true_ns * t->rate_ppm / 1000000;
}

/* In true time. */
static int64_t delay_ns(const sim_timer *t, hf__instant from, hf__instant to)
{
    int64_t left_ns = to.ns - from.ns;
    return left_ns <= 0 ? 0 : left_ns * 1000 / (1000000 + t->rate_ppm) * 1000 + 1000;
}

void timer_set(world *w, sim_timer *t, hf__instant now, hf__instant wake, sim_event event)
{
    int64_t true_ns = world_clockwork(w)->now_ns;
    if (hf__is_never(wake) || t->wakes_ns <= true_ns + delay_ns(t, now, wake))
        return;
    t->wakes_ns = true_ns + delay_ns(t, now, wake);
    world_schedule(w, event, delay_ns(t, now, wake));
}

int64_t acquire_bound_ns(const hf__call *call, int64_t call_timeout_ms)
{
    if (call->wait_ms < 0)
        return INT64_MAX;
    if (call->wait_ms > 0)
        return MS(call->wait_ms);
    return MS((call->max_retries + 1) * call_timeout_ms +
              call->max_retries * hf__span_to_ms(call->retry_interval));
}
