/* SPDX-License-Identifier: MIT */
/* A client inside a loop of the application: no thread of ours, but one descriptor that is readable
 * whenever there is something to do, and hf_process(), which does it.
 *
 * The descriptor is an epoll set: every connection, a timer for what the core wants to be woken
 * for, and an eventfd with which calls from elsewhere say that they have left something: bytes for
 * a busy connection, or callbacks to run. It is level-triggered, so nothing is missed if a loop
 * comes late. Threads that make calls that wait drive as they always do (driver.c), beside the
 * loop: whoever reads an answer first serves it.
 *
 * A connection is put into the set when it is opened, and looked at again whenever what it waits
 * for may have changed. Until it is connected its descriptor may be another one with the same
 * number, so then the kernel is asked each time. A connection that cannot be in the set is looked
 * at every few milliseconds. */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "net/clock.h"
#include "net/engine.h"

enum { TIMER = 1000, KICK, READY_MAX = 16 }; /* what else is in the set besides links */

static bool add(hf__driver *d, int descriptor, uint32_t what, uint32_t events)
{
    struct epoll_event entry = {.events = events, .data.u32 = what};
    return epoll_ctl(d->loop, EPOLL_CTL_ADD, descriptor, &entry) == 0;
}

bool hf__loop_open(hf__driver *d)
{
    d->loop = epoll_create1(EPOLL_CLOEXEC);
    return d->loop >= 0 && add(d, d->park_timer, TIMER, EPOLLIN) &&
           add(d, d->park_kick, KICK, EPOLLIN);
}

/* In a child the set is the parent's. */
static bool has_set(const hf__driver *d)
{
    return d->own_loop && !d->fork_guard.forked;
}

void hf__loop_watch(hf__driver *d, int link)
{
    hf__port *port = &d->ports[link];
    if (!has_set(d) || port->connection == NULL)
        return;
    int wait = hf__port_wait(port);
    if (port->watched && port->watched_wait == wait)
        return;
    int descriptor = d->transport.descriptor(port->connection);
    struct epoll_event entry = {.events = (wait & HF_WAIT_READ ? EPOLLIN : 0U) |
                                          (wait & HF_WAIT_WRITE ? EPOLLOUT : 0U),
                                .data.u32 = (uint32_t)link};
    port->watched_wait = port->connected ? wait : -1;
    port->watched =
        descriptor >= 0 && (epoll_ctl(d->loop, EPOLL_CTL_MOD, descriptor, &entry) == 0 ||
                            epoll_ctl(d->loop, EPOLL_CTL_ADD, descriptor, &entry) == 0);
}

/* Closing alone would not do if a child has inherited the descriptor. */
void hf__loop_forget(hf__driver *d, int link)
{
    if (!has_set(d))
        return;
    int descriptor = d->transport.descriptor(d->ports[link].connection);
    if (descriptor >= 0)
        epoll_ctl(d->loop, EPOLL_CTL_DEL, descriptor, NULL);
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
    struct epoll_event ready[READY_MAX];
    int count = epoll_wait(d->loop, ready, READY_MAX, 0);
    for (int i = 0; i < count && !d->fork_guard.forked; i++)
        serve(d, ready[i].data.u32);
    for (int i = 0; i < d->link_count && !d->fork_guard.forked; i++)
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
