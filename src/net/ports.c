/* SPDX-License-Identifier: MIT */
/* Carrying out what the core decides: connections (dial.c), bytes, log lines, and the sleep in
 * between. Steps taken in here may make the core want something new; so every
 * function that steps is followed by hf__engine_carry_out(). Callbacks run without the mutex,
 * and anything may have changed when they return: after carrying out, a port is looked up anew.
 *
 * When to write. A connection over which nothing is on its way gets its bytes at once, whoever
 * brings them: nothing is gained by waiting. A busy one can wait until the driver has dealt with
 * all there is and has let in those whom it woke; then what several threads brought leaves in one
 * write, which is most of what makes many threads on few connections fast. A driver that sleeps
 * would be waited for in vain, so then everybody writes at once. */
#include "net/engine.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>

#include "net/clock.h"

enum { READS_PER_TURN = 16, LOOK_US = 250, NEAR_US = 150, DEAF_TURNS = 1, WAY_US = 100 };

void hf__engine_step(hf__driver *d, hf__event *event)
{
    event->now = hf__clock_now();
    hf__core_step(d->core, event);
}

static int read_some(hf__driver *d, int link)
{
    const hf__port *port = &d->ports[link];
    return port->target->transport.read(port->connection, d->read_space, HF__READ_SIZE);
}

/* Those that are in the space for reading. */
static void step_bytes(hf__driver *d, int link, size_t count)
{
    hf__event event = {
        .kind = HF__EVENT_BYTES, .link = link, .bytes = d->read_space, .count = count};
    hf__engine_step(d, &event);
}

void hf__engine_unlock(hf__driver *d)
{
    hf__list woken;
    hf__node *node;
    hf__list_init(&woken);
    while ((node = hf__list_first(&d->woken)) != NULL) {
        hf__list_remove(&d->woken, node);
        hf__list_append(&woken, node);
        d->crowded = true;
    }
    pthread_mutex_unlock(&d->mutex);
    while ((node = hf__list_first(&woken)) != NULL) {
        hf__list_remove(&woken, node);
        sem_post(&HF__ENTRY(node, hf__waiter, node)->wake); /* the last we know of it */
    }
}

/* Wakes the thread whose call is done: it waits for the driver, or it is the driver. A waiter is
 * out with this, so that it need not take the mutex to leave. */
static void tell_caller(hf__driver *d, hf__call *call)
{
    hf__waiter *waiter = call->waiter;
    if (call->is_operation) {
        hf__operation_finished(d, call);
    } else if (waiter != NULL) {
        hf__list_remove(&d->waiters, &waiter->node);
        hf__list_append(&d->woken, &waiter->node);
        hf__engine_went_out(d);
    } else if (call == d->drivers_call && d->asleep) {
        eventfd_write(d->kick, 1);
    }
}

/* A peer that hangs up may have said why before: that is still there to be read, and counts. */
static void step_broken(hf__driver *d, int link, int failure)
{
    int count = read_some(d, link);
    if (count > 0)
        step_bytes(d, link, (size_t)count);
    hf__port_lost(d, link, hf__port_verdict(-count) != HF_OK ? -count : failure);
}

static bool write_output(hf__driver *d, int link)
{
    hf__port *port = &d->ports[link];
    const char *bytes;
    size_t count;
    while ((count = hf__core_output(d->core, link, &bytes)) > 0) {
        int written = port->target->transport.write(port->connection, bytes, count);
        if (written < 0 && written != -EAGAIN) {
            step_broken(d, link, -written);
            return false;
        }
        if (written <= 0) {
            d->ports_changed = d->ports_changed || !port->held_back;
            port->held_back = true;
            hf__loop_watch(d, link);
            return true;
        }
        port->busy = true;
        hf__core_written(d->core, link, (size_t)written);
    }
    port->held_back = false;
    hf__loop_watch(d, link);
    return true;
}

/* Writes what can be written, to busy ports too or not; false if that made something new to do. If
 * a callback has forked, the child finds itself here too, and the connections are its parent's. */
static bool write_all(hf__driver *d, bool busy_too)
{
    bool quiet = true;
    for (int i = 0; i < d->link_count && !hf__fork_is_child(&d->fork_guard); i++)
        if (d->ports[i].connected && (busy_too || !d->ports[i].busy))
            quiet = write_output(d, i) && quiet;
    return quiet;
}

/* Until the core wants nothing more. Steps taken in here may add actions, which follow. */
static void act(hf__driver *d)
{
    hf__action action;
    while (!hf__fork_is_child(&d->fork_guard) && hf__core_next(d->core, &action)) {
        switch (action.kind) {
        case HF__ACTION_CLOSE:
            hf__port_close(d, action.link);
            break;
        case HF__ACTION_CONNECT:
            hf__port_open(d, action.link);
            break;
        case HF__ACTION_DONE:
            tell_caller(d, action.call);
            break;
        case HF__ACTION_LOG:
            hf__engine_log(d, action.level, action.text);
            break;
        }
    }
}

void hf__engine_flush(hf__driver *d)
{
    do {
        act(d);
    } while (!write_all(d, true));
    hf__engine_tell(d);
}

void hf__engine_carry_out(hf__driver *d)
{
    do {
        act(d);
    } while (!write_all(d, !d->driving || d->asleep));
    hf__engine_tell(d);
}

void hf__engine_carry_out_patiently(hf__driver *d)
{
    do {
        act(d);
    } while (!write_all(d, false));
    hf__engine_tell(d);
}

bool hf__engine_left_bytes(const hf__driver *d)
{
    const char *bytes;
    for (int i = 0; i < d->link_count; i++)
        if (d->ports[i].connected && !d->ports[i].held_back &&
            hf__core_output(d->core, i, &bytes) > 0)
            return true;
    return false;
}

/* ---- Sleeping ---- */

/* A transport that decodes may have more than its descriptor shows, unless it has just returned
 * less than there was room for. */
static void read_port(hf__driver *d, int link)
{
    d->ports[link].unread = false;
    for (int i = 0;
         i < READS_PER_TURN && d->ports[link].connected && !hf__fork_is_child(&d->fork_guard);
         i++) {
        int count = read_some(d, link);
        if (count == -EAGAIN)
            return;
        if (count <= 0) {
            hf__port_lost(d, link, -count);
            hf__engine_carry_out(d);
            return;
        }
        d->ports[link].busy = false;
        step_bytes(d, link, (size_t)count);
        hf__engine_carry_out(d);
        if (count < HF__READ_SIZE)
            return;
    }
    d->ports[link].unread = d->ports[link].connected;
}

void hf__engine_serve(hf__driver *d, int link)
{
    if (d->ports[link].connection == NULL || d->ports[link].introducing)
        return; /* closed while others of this turn were served, or not ready for it */
    if (d->ports[link].held_back)
        hf__engine_flush(d); /* there may be room now */
    if (d->ports[link].connected) {
        read_port(d, link);
    } else if (d->ports[link].connection != NULL) {
        hf__port_check(d, link);
        hf__engine_carry_out(d);
    }
}

int hf__port_wait(const hf__port *port)
{
    if (!port->connected)
        return port->wait;
    return port->held_back ? HF_WAIT_READ | HF_WAIT_WRITE : HF_WAIT_READ;
}

static short poll_events(const hf__port *port)
{
    int wait = hf__port_wait(port);
    return (short)((wait & HF_WAIT_READ ? POLLIN : 0) | (wait & HF_WAIT_WRITE ? POLLOUT : 0));
}

static int descriptor_of(const hf__port *port)
{
    return port->target->transport.descriptor(port->connection);
}

/* Fills one entry for each connection with a descriptor, after the one for the kick. */
static nfds_t list_descriptors(hf__driver *d, struct pollfd *entries, int *links)
{
    nfds_t count = 0;
    entries[count++] = (struct pollfd){.fd = d->kick, .events = POLLIN};
    d->blind = d->ports_changed = false;
    for (int i = 0; i < d->link_count; i++) {
        const hf__port *port = &d->ports[i];
        if (port->connection == NULL || port->introducing)
            continue;
        int descriptor = descriptor_of(port);
        d->blind = d->blind || descriptor < 0 || port->unread;
        if (descriptor < 0)
            continue;
        links[count] = i;
        entries[count++] = (struct pollfd){.fd = descriptor, .events = poll_events(port)};
    }
    return count;
}

static void sleep_until(hf__driver *d, struct pollfd *entries, nfds_t count)
{
    hf__instant now = hf__clock_now();
    hf__instant ends = hf__core_wake(d->core);
    if (d->blind)
        ends = hf__earlier(ends, hf__after(now, hf__span_ms(HF__BLIND_POLL_MS)));
    struct timespec pause = {0};
    if (hf__before(now, ends)) {
        pause.tv_sec = (time_t)(hf__between(now, ends).ns / 1000000000);
        pause.tv_nsec = (long)(hf__between(now, ends).ns % 1000000000);
    }
    d->asleep = true;
    d->sleep_ends = ends;
    hf__engine_unlock(d);
    int ready = ppoll(entries, count, hf__is_never(ends) ? NULL : &pause, NULL);
    pthread_mutex_lock(&d->mutex);
    d->asleep = d->kicked = false;
    if (ready < 0) /* EINTR: nothing is known to be ready */
        for (nfds_t i = 0; i < count; i++)
            entries[i].revents = 0;
}

/* A connection without a descriptor cannot be waited for, nor can one that has left bytes; it is
 * looked at before and after. */
void hf__engine_serve_blind(hf__driver *d)
{
    for (int i = 0; d->blind && i < d->link_count; i++)
        if (d->ports[i].connection != NULL &&
            (d->ports[i].unread || descriptor_of(&d->ports[i]) < 0))
            hf__engine_serve(d, i);
}

static void serve_ready(hf__driver *d, const struct pollfd *entries, nfds_t count, const int *links)
{
    eventfd_t kicks;
    if (entries[0].revents != 0)
        eventfd_read(d->kick, &kicks);
    for (nfds_t i = 1; i < count; i++)
        if (entries[i].revents != 0)
            hf__engine_serve(d, links[i]);
    hf__engine_serve_blind(d);
}

void hf__engine_look(hf__driver *d)
{
    struct pollfd entries[HF__LINKS_MAX + 1];
    int links[HF__LINKS_MAX + 1];
    nfds_t count = list_descriptors(d, entries, links);
    d->last_turn = hf__clock_now();
    if (poll(entries, count, 0) >= 0)
        serve_ready(d, entries, count, links);
}

/* A mutex is not fair: a driver that never has to sleep, because its connection is flooded, takes
 * it back before anybody whom it woke is up. */
static bool keeps_others_out(hf__driver *d)
{
    bool deaf = atomic_load(&d->knocking) > 0 && d->entries == d->entries_seen;
    d->entries_seen = d->entries;
    d->deaf_turns = deaf ? d->deaf_turns + 1 : 0;
    return d->deaf_turns > DEAF_TURNS;
}

/* Those who were woken since the last sleep are about to bring their next requests: they get the
 * chance before the driver writes. */
static void let_others_in(hf__driver *d)
{
    bool way_is_given = keeps_others_out(d);
    if (d->woken.count == 0 && !d->crowded && !way_is_given)
        return;
    hf__engine_unlock(d);
    if (way_is_given)
        nanosleep(&(struct timespec){.tv_nsec = WAY_US * 1000}, NULL);
    else
        sched_yield();
    pthread_mutex_lock(&d->mutex);
    d->crowded = false;
}

bool hf__engine_expects(const hf__driver *d)
{
    for (int i = 0; i < d->link_count; i++)
        if (hf__core_expects(d->core, i))
            return true;
    return false;
}

/* A lone caller looks out if answers have lately come from near by; but not if it would keep the
 * only processor from a server that may be waiting for it, or any from a process that is woken with
 * the lock. */
static bool looks_out(const hf__driver *d)
{
    bool near = d->usual_ns < NEAR_US * 1000 && !d->has_one_processor;
    bool lone = d->drivers_call != NULL && !d->drivers_call->gives_way;
    return d->waiters.count > 0 || (lone && near);
}

/* An answer that is not far is cheaper to look out for than to fall asleep and be woken, which may
 * take longer than the server does. Meanwhile the driver writes for those who call. True: there is
 * something to deal with. */
static bool look_out(hf__driver *d, struct pollfd *entries, nfds_t count, hf__instant began)
{
    hf__instant ends = {began.ns + LOOK_US * 1000};
    int ready = 0;
    while (looks_out(d) && hf__core_awaits(d->core) && ready == 0 && !d->ports_changed &&
           hf__before(hf__clock_now(), ends)) {
        hf__engine_unlock(d);
        sched_yield();
        ready = poll(entries, count, 0);
        pthread_mutex_lock(&d->mutex);
        hf__engine_flush(d);
    }
    return ready > 0 || d->ports_changed;
}

/* An average that soon forgets; one answer that took for ever counts as a few that were slow. */
static void learn_usual(hf__driver *d, hf__instant began)
{
    int64_t took = hf__between(began, hf__clock_now()).ns;
    int64_t most = 4 * NEAR_US * 1000;
    d->usual_ns += ((took < most ? took : most) - d->usual_ns) / 8;
}

/* Others can end the driver's call while it is awake without the mutex; then nobody kicks it. */
static bool drivers_call_done(const hf__driver *d)
{
    return d->drivers_call != NULL && d->drivers_call->done;
}

/* Read anew even if nothing stepped: a descriptor that lies about being ready must not stop the
 * time. */
void hf__engine_tick(hf__driver *d)
{
    d->last_turn = hf__clock_now();
    if (!hf__before(d->last_turn, hf__core_wake(d->core))) {
        hf__engine_step(d, &(hf__event){.kind = HF__EVENT_TICK});
        hf__engine_carry_out(d);
    }
}

void hf__engine_turn(hf__driver *d)
{
    struct pollfd entries[HF__LINKS_MAX + 1];
    int links[HF__LINKS_MAX + 1];
    let_others_in(d);
    hf__engine_flush(d);
    nfds_t count = list_descriptors(d, entries, links);
    bool awaits = hf__core_awaits(d->core);
    hf__instant began = hf__clock_now();
    if (!look_out(d, entries, count, began) && !drivers_call_done(d))
        sleep_until(d, entries, count);
    if (awaits)
        learn_usual(d, began);
    serve_ready(d, entries, count, links);
    hf__engine_tick(d);
}

void hf__engine_close_ports(hf__driver *d)
{
    for (int i = 0; i < d->link_count; i++)
        hf__port_close(d, i);
}
