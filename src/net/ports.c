/* SPDX-License-Identifier: MIT */
/* Carrying out what the core decides: connections, bytes, log lines, and the sleep in between.
 *
 * A port is a link's connection. Steps taken in here may make the core want something new; so every
 * function that steps is followed by hf__engine_carry_out(). The log hook runs without the mutex,
 * and anything may have changed when it returns: after carrying out, a port is looked up anew. */
#include "net/engine.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>

#include "base/text.h"
#include "net/clock.h"

enum { BLIND_POLL_MS = 2, READS_PER_TURN = 16 };

static _Thread_local bool in_callback;

bool hf__driver_in_callback(void)
{
    return in_callback;
}

void hf__engine_step(hf__driver *d, hf__event *event)
{
    event->now = hf__clock_now();
    hf__core_step(d->core, event);
}

static void step_disconnected(hf__driver *d, int link, int failure)
{
    char text[128];
    const char *reason = failure == 0 ? "closed the connection" : NULL;
    if (failure == ENXIO)
        reason = "the host name cannot be resolved";
    if (reason == NULL)
        reason = strerror_r(failure, text, sizeof(text));
    hf__event event = {.kind = HF__EVENT_DISCONNECTED, .link = link, .reason = reason};
    hf__engine_step(d, &event);
}

static void close_port(hf__driver *d, int link)
{
    if (d->ports[link].connection != NULL)
        d->transport->close(d->ports[link].connection);
    d->ports[link] = (hf__port){0};
    d->ports_changed = true;
}

/* Asks how far a new connection is. */
static void check_connected(hf__driver *d, int link)
{
    hf__port *port = &d->ports[link];
    int status = d->transport->connected(port->connection);
    if (status < 0) {
        step_disconnected(d, link, -status);
        return;
    }
    port->wait = status;
    port->connected = status == 0;
    if (port->connected)
        hf__engine_step(d, &(hf__event){.kind = HF__EVENT_CONNECTED, .link = link});
}

static void open_port(hf__driver *d, int link)
{
    hf__port *port = &d->ports[link];
    int status = d->transport->open(d->transport->arg, &d->endpoint, &port->connection);
    d->ports_changed = true;
    if (status < 0) {
        port->connection = NULL;
        step_disconnected(d, link, -status);
    } else {
        check_connected(d, link);
    }
}

/* The hook runs without the mutex; the core is consistent between two actions. */
static void log_line(hf__driver *d, const hf__action *action)
{
    char text[300];
    hf_log_level level = action->level;
    if (d->log == NULL)
        return;
    hf__format(text, sizeof(text), "%s", action->text);
    bool nested = in_callback; /* the hook may call what does not wait, and that may log too */
    pthread_mutex_unlock(&d->mutex);
    in_callback = true;
    d->log(d->log_arg, level, text);
    in_callback = nested;
    pthread_mutex_lock(&d->mutex);
}

/* Wakes the thread whose call is done: it waits for the driver, or it is the driver. */
static void tell_caller(hf__driver *d, const hf__call *call)
{
    pthread_cond_t *wake = call->waiter;
    if (wake != NULL)
        pthread_cond_signal(wake);
    else if (call == d->drivers_call && d->asleep)
        eventfd_write(d->kick, 1);
}

static bool write_output(hf__driver *d, int link)
{
    hf__port *port = &d->ports[link];
    const char *bytes;
    size_t count;
    while ((count = hf__core_output(d->core, link, &bytes)) > 0) {
        int written = d->transport->write(port->connection, bytes, count);
        if (written < 0 && written != -EAGAIN) {
            step_disconnected(d, link, -written);
            return false;
        }
        if (written <= 0) {
            d->ports_changed = d->ports_changed || !port->held_back;
            port->held_back = true;
            return true;
        }
        hf__core_written(d->core, link, (size_t)written);
    }
    port->held_back = false;
    return true;
}

/* Writes what can be written; false if that made something new to do. */
static bool write_all(hf__driver *d)
{
    bool quiet = true;
    for (int i = 0; i < d->link_count; i++)
        if (d->ports[i].connected)
            quiet = write_output(d, i) && quiet;
    return quiet;
}

/* Until the core wants nothing more. Steps taken in here may add actions, which follow. */
void hf__engine_carry_out(hf__driver *d)
{
    hf__action action;
    do {
        while (hf__core_next(d->core, &action)) {
            switch (action.kind) {
            case HF__ACTION_CLOSE:
                close_port(d, action.link);
                break;
            case HF__ACTION_CONNECT:
                open_port(d, action.link);
                break;
            case HF__ACTION_DONE:
                tell_caller(d, action.call);
                break;
            case HF__ACTION_LOG:
                log_line(d, &action);
                break;
            }
        }
    } while (!write_all(d));
}

/* ---- Sleeping ---- */

static void read_port(hf__driver *d, int link)
{
    for (int i = 0; i < READS_PER_TURN && d->ports[link].connected; i++) {
        int count = d->transport->read(d->ports[link].connection, d->read_space, HF__READ_SIZE);
        if (count == -EAGAIN)
            return;
        if (count <= 0) {
            step_disconnected(d, link, -count);
            hf__engine_carry_out(d);
            return;
        }
        hf__engine_step(d, &(hf__event){.kind = HF__EVENT_BYTES,
                                        .link = link,
                                        .bytes = d->read_space,
                                        .count = (size_t)count});
        hf__engine_carry_out(d);
        if (count < HF__READ_SIZE)
            return;
    }
}

static void serve_port(hf__driver *d, int link)
{
    if (d->ports[link].connection == NULL)
        return; /* closed while others of this turn were served */
    if (d->ports[link].held_back)
        hf__engine_carry_out(d); /* there may be room now */
    if (d->ports[link].connected) {
        read_port(d, link);
    } else if (d->ports[link].connection != NULL) {
        check_connected(d, link);
        hf__engine_carry_out(d);
    }
}

static short poll_events(const hf__port *port)
{
    int wait = port->wait;
    if (port->connected)
        wait = port->held_back ? HF_WAIT_READ | HF_WAIT_WRITE : HF_WAIT_READ;
    return (short)((wait & HF_WAIT_READ ? POLLIN : 0) | (wait & HF_WAIT_WRITE ? POLLOUT : 0));
}

/* Fills one entry for each connection with a descriptor, after the one for the kick. */
static nfds_t list_descriptors(hf__driver *d, struct pollfd *entries, int *links)
{
    nfds_t count = 0;
    entries[count++] = (struct pollfd){.fd = d->kick, .events = POLLIN};
    d->blind = d->ports_changed = false;
    for (int i = 0; i < d->link_count; i++) {
        if (d->ports[i].connection == NULL)
            continue;
        int descriptor = d->transport->descriptor(d->ports[i].connection);
        d->blind = d->blind || descriptor < 0;
        if (descriptor < 0)
            continue;
        links[count] = i;
        entries[count++] = (struct pollfd){.fd = descriptor, .events = poll_events(&d->ports[i])};
    }
    return count;
}

static void sleep_until(hf__driver *d, struct pollfd *entries, nfds_t count)
{
    hf__instant now = hf__clock_now();
    hf__instant ends = hf__core_wake(d->core);
    if (d->blind)
        ends = hf__earlier(ends, hf__after(now, hf__span_ms(BLIND_POLL_MS)));
    struct timespec pause = {0};
    if (hf__before(now, ends)) {
        pause.tv_sec = (time_t)(hf__between(now, ends).ns / 1000000000);
        pause.tv_nsec = (long)(hf__between(now, ends).ns % 1000000000);
    }
    d->asleep = true;
    d->sleep_ends = ends;
    pthread_mutex_unlock(&d->mutex);
    int ready = ppoll(entries, count, hf__is_never(ends) ? NULL : &pause, NULL);
    pthread_mutex_lock(&d->mutex);
    d->asleep = false;
    if (ready < 0) /* EINTR: nothing is known to be ready */
        for (nfds_t i = 0; i < count; i++)
            entries[i].revents = 0;
}

/* A connection without a descriptor cannot be waited for; it is looked at before and after. */
void hf__engine_serve_blind(hf__driver *d)
{
    for (int i = 0; d->blind && i < d->link_count; i++)
        if (d->ports[i].connection != NULL && d->transport->descriptor(d->ports[i].connection) < 0)
            serve_port(d, i);
}

static void serve_ready(hf__driver *d, const struct pollfd *entries, nfds_t count, const int *links)
{
    eventfd_t kicks;
    if (entries[0].revents != 0)
        eventfd_read(d->kick, &kicks);
    for (nfds_t i = 1; i < count; i++)
        if (entries[i].revents != 0)
            serve_port(d, links[i]);
    hf__engine_serve_blind(d);
}

void hf__engine_look(hf__driver *d)
{
    struct pollfd entries[HF_LINKS_MAX + 1];
    int links[HF_LINKS_MAX + 1];
    nfds_t count = list_descriptors(d, entries, links);
    if (poll(entries, count, 0) >= 0)
        serve_ready(d, entries, count, links);
}

void hf__engine_turn(hf__driver *d)
{
    struct pollfd entries[HF_LINKS_MAX + 1];
    int links[HF_LINKS_MAX + 1];
    nfds_t count = list_descriptors(d, entries, links);
    sleep_until(d, entries, count);
    serve_ready(d, entries, count, links);
    /* Read anew even if nothing stepped: a descriptor that lies about being ready must not stop the
     * time. */
    d->last_turn = hf__clock_now();
    if (!hf__before(d->last_turn, hf__core_wake(d->core))) {
        hf__engine_step(d, &(hf__event){.kind = HF__EVENT_TICK});
        hf__engine_carry_out(d);
    }
}

void hf__engine_close_ports(hf__driver *d)
{
    for (int i = 0; i < d->link_count; i++)
        close_port(d, i);
}
