/* SPDX-License-Identifier: MIT */
/* A client inside a loop of the application: nothing of ours runs by itself, but there is one
 * descriptor that is readable whenever there is something to do, and hf_process(), which does it.
 *
 * The descriptor stands for a set (watch_set.h): every connection, a timer for what the core wants
 * to be woken for, and an eventfd with which calls from elsewhere say that they have left
 * something: bytes for a busy connection, or callbacks to run. It is level-triggered, so nothing is
 * missed if a loop comes late. Threads that make calls that wait drive as they always do
 * (driver.c), beside the loop: whoever reads an answer first serves it.
 *
 * A connection is put into the set when it is opened, and again whenever what it waits for has
 * changed. While it is being made its descriptor may be closed and be another one afterwards, even
 * one with the same number; so before each step of that it is taken out. A connection that cannot
 * be in the set is looked at every few milliseconds. */
#include <sys/eventfd.h>
#include <unistd.h>

#include "net/engine.h"

enum { TIMER = 1000, KICK }; /* what else is in the set besides links */

bool hf__loop_open(hf__driver *d)
{
    d->loop = hf__watch_set_open();
    return d->loop != NULL && hf__watch_set_put(d->loop, d->park_timer, HF_WAIT_READ, TIMER) &&
           hf__watch_set_put(d->loop, d->park_kick, HF_WAIT_READ, KICK);
}

void hf__loop_close(hf__driver *d)
{
    hf__watch_set_close(d->loop, hf__fork_is_child(&d->fork_guard));
    d->loop = NULL;
}

int hf__loop_descriptor(const hf__driver *d)
{
    return d->loop != NULL ? hf__watch_set_descriptor(d->loop) : -1;
}

/* In a child the set is the parent's. */
static bool has_set(const hf__driver *d)
{
    return d->own_loop && !hf__fork_is_child(&d->fork_guard);
}

void hf__loop_watch(hf__driver *d, int link)
{
    hf__port *port = &d->ports[link];
    if (!has_set(d) || port->connection == NULL)
        return;
    int wait = hf__port_wait(port);
    if (port->watched && port->watched_wait == wait)
        return;
    port->watched_wait = wait;
    port->watched_descriptor = port->target->transport.descriptor(port->connection);
    port->watched = port->watched_descriptor >= 0 &&
                    hf__watch_set_put(d->loop, port->watched_descriptor, wait, (uint32_t)link);
}

/* Closing alone would not do if a child has inherited the descriptor. */
void hf__loop_forget(hf__driver *d, int link)
{
    hf__port *port = &d->ports[link];
    if (has_set(d) && port->watched)
        hf__watch_set_remove(d->loop, port->watched_descriptor);
    port->watched = false;
}

void hf__loop_settle(hf__driver *d)
{
    if (has_set(d))
        hf__watch_set_settle(d->loop);
}

/* The set does not tell when there is something on its connection. */
static bool is_blind(const hf__port *port)
{
    return port->connection != NULL && (!port->watched || port->unread);
}

bool hf__loop_is_blind(const hf__driver *d)
{
    for (int i = 0; i < d->link_count; i++)
        if (is_blind(&d->ports[i]))
            return true;
    return false;
}

/* Nobody needs to be woken for what hf_process() will see before it returns. */
void hf__loop_kick(hf__driver *d)
{
    if (!has_set(d) || d->loop_kicked || d->processing)
        return;
    d->loop_kicked = true;
    eventfd_write(d->park_kick, 1);
}

/* ---- hf_process() ---- */

static void serve(hf__driver *d, uint32_t what)
{
    uint64_t discarded;
    if (what == TIMER && read(d->park_timer, &discarded, sizeof(discarded)) > 0) {
        d->parked_until = HF__NEVER;
    } else if (what == KICK) {
        d->loop_kicked = false;
        eventfd_read(d->park_kick, &discarded);
    } else if (what < TIMER) {
        hf__engine_serve(d, (int)what);
    }
}

static void serve_ready(hf__driver *d)
{
    uint32_t ready[HF__WATCH_MAX];
    int count = hf__watch_set_take(d->loop, ready);
    for (int i = 0; i < count && !hf__fork_is_child(&d->fork_guard); i++)
        serve(d, ready[i]);
    for (int i = 0; i < d->link_count && !hf__fork_is_child(&d->fork_guard); i++)
        if (is_blind(&d->ports[i]))
            hf__engine_serve(d, i);
}

void hf__loop_process(hf__driver *d)
{
    d->processing = true;
    serve_ready(d);
    hf__engine_tick(d);
    hf__engine_tell_here(d);
    hf__engine_flush(d); /* what the callbacks brought */
    d->processing = false;
    if (hf__engine_has_callbacks(d))
        hf__loop_kick(d); /* they come with the next call: no loop is kept for long */
}
