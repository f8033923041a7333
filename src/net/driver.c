/* SPDX-License-Identifier: MIT */
/* One engine, one mutex, one wheel.
 *
 * All state is behind the mutex. A thread that makes a call steps the core with it and writes what
 * comes out. Then, if nobody has the wheel, it takes it: it sleeps in ppoll() (without the mutex),
 * reads, steps, and does so for everybody until its own call is done. The others wait, each on a
 * condition of its own, and one of them is handed the wheel when the driver leaves. So a lone
 * thread has no thread switch in its way, and many threads share one sleeper.
 *
 * The background thread is for what is left when nobody calls: answers to requests that nobody
 * waits for, and timers. It must not look at the sockets beside a driving caller (that costs a
 * factor of two), so it is parked on a timer of its own. Leaving callers move that timer earlier if
 * they must, without waking the thread; it never takes the wheel from callers that were active
 * within the last LINGER_MS. */
#include "net/engine.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/memory.h"
#include "net/clock.h"
#include "net/thread.h"

enum { LINGER_MS = 20, IDLE_MS = 100 };

typedef struct hf__waiter { /* a thread that waits while another one drives */
    hf__node node;
    pthread_cond_t wake;
    bool take_wheel;
} hf__waiter;

bool hf__driver_forked(const hf__driver *driver)
{
    return driver->fork_guard.forked;
}

/* ---- The wheel ---- */

static void hand_on_wheel(hf__driver *d)
{
    d->driving = false;
    hf__node *first = hf__list_first(&d->waiters);
    if (first != NULL) {
        hf__waiter *next = HF__ENTRY(first, hf__waiter, node);
        next->take_wheel = true;
        pthread_cond_signal(&next->wake);
    }
}

static void drive(hf__driver *d, const hf__call *call)
{
    d->driving = true;
    d->drivers_call = call;
    if (!call->done && d->blind)
        hf__engine_serve_blind(d);
    while (!call->done)
        hf__engine_turn(d);
    d->drivers_call = NULL;
    hand_on_wheel(d);
}

/* Waits for another thread to finish the call or to hand over the wheel. */
static void wait_for_driver(hf__driver *d, hf__call *call)
{
    hf__waiter self = {.take_wheel = false};
    pthread_cond_init(&self.wake, NULL);
    call->waiter = &self.wake;
    hf__list_append(&d->waiters, &self.node);
    while (!call->done && !self.take_wheel)
        pthread_cond_wait(&self.wake, &d->mutex);
    hf__list_remove(&d->waiters, &self.node);
    call->waiter = NULL;
    pthread_cond_destroy(&self.wake);
    if (call->done && self.take_wheel && !d->driving)
        hand_on_wheel(d); /* not needed here any more */
}

/* ---- The background thread ---- */

static bool answers_expected(const hf__driver *d)
{
    for (int i = 0; i < d->link_count; i++)
        if (hf__core_expects(d->core, i))
            return true;
    return false;
}

/* Parked for ever is the year 2262, which settime takes as any other. */
static void park_until(hf__driver *d, hf__instant when)
{
    struct itimerspec due = {.it_value = {.tv_sec = (time_t)(when.ns / 1000000000),
                                          .tv_nsec = (long)(when.ns % 1000000000)}};
    d->parked_until = when;
    timerfd_settime(d->park_timer, TFD_TIMER_ABSTIME, &due, NULL);
}

/* What the background thread must be back for, if nobody calls any more. */
static hf__instant next_duty(const hf__driver *d)
{
    hf__instant duty = hf__core_wake(d->core);
    if (answers_expected(d))
        duty = hf__earlier(duty, hf__after(hf__clock_now(), hf__span_ms(LINGER_MS)));
    return duty;
}

static void park(hf__driver *d)
{
    struct pollfd entries[2] = {{.fd = d->park_timer, .events = POLLIN},
                                {.fd = d->park_kick, .events = POLLIN}};
    uint64_t discarded;
    pthread_mutex_unlock(&d->mutex);
    poll(entries, 2, -1);
    pthread_mutex_lock(&d->mutex);
    for (int i = 0; i < 2; i++) /* both are non-blocking */
        if (read(entries[i].fd, &discarded, sizeof(discarded)) < 0)
            continue;
}

/* Answers that nobody waits for, until all are in or somebody else wants to drive. */
static void drive_in_background(hf__driver *d)
{
    d->driving = true;
    while (answers_expected(d) && d->waiters.count == 0 && !d->background_ends)
        hf__engine_turn(d);
    hand_on_wheel(d);
}

/* Whether somebody who sleeps must learn of what was just done: the driver, if there is one. */
static void notify_sleeper(hf__driver *d)
{
    if (d->driving) {
        if (d->asleep && (d->ports_changed || hf__before(hf__core_wake(d->core), d->sleep_ends)))
            eventfd_write(d->kick, 1);
        return;
    }
    hf__instant duty = next_duty(d);
    if (hf__before(duty, d->parked_until))
        park_until(d, duty);
}

/* A step that a thread takes without the wheel, with all that follows from it at once. */
static void step_from_outside(hf__driver *d, hf__event *event)
{
    if (!d->driving && hf__before(hf__after(d->last_turn, hf__span_ms(IDLE_MS)), hf__clock_now()))
        hf__engine_look(d); /* a connection that ended meanwhile must not be written to */
    hf__engine_step(d, event);
    hf__engine_carry_out(d);
    notify_sleeper(d);
}

static void *run_background(void *arg)
{
    hf__driver *d = arg;
    pthread_mutex_lock(&d->mutex);
    while (!d->background_ends) {
        hf__instant now = hf__clock_now();
        hf__instant rested = hf__after(d->last_turn, hf__span_ms(LINGER_MS / 2));
        if (d->driving || d->waiters.count > 0) {
            park_until(d, HF__NEVER); /* whoever leaves last sees to what is left */
            park(d);
        } else if (!hf__before(now, hf__core_wake(d->core))) {
            step_from_outside(d, &(hf__event){.kind = HF__EVENT_TICK});
        } else if (answers_expected(d) && !hf__before(now, rested)) {
            drive_in_background(d);
        } else {
            park_until(d, next_duty(d));
            park(d);
        }
    }
    pthread_mutex_unlock(&d->mutex);
    return NULL;
}

/* ---- Calls ---- */

static hf_status enter(hf__driver *d, int *cancel_state)
{
    if (d->fork_guard.forked)
        return HF_EFORKED;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, cancel_state);
    pthread_mutex_lock(&d->mutex);
    if (d->stopped) {
        pthread_mutex_unlock(&d->mutex);
        pthread_setcancelstate(*cancel_state, NULL);
        return HF_ECLOSED;
    }
    d->inside++;
    return HF_OK;
}

static void leave(hf__driver *d, int cancel_state)
{
    if (--d->inside == 0 && d->stopped)
        pthread_cond_broadcast(&d->quiet);
    pthread_mutex_unlock(&d->mutex);
    pthread_setcancelstate(cancel_state, NULL);
}

/* A release that comes too late for the driver still takes the handle out of the caller's hand. */
static void abandon(hf__driver *d, hf_hold *hold)
{
    pthread_mutex_lock(&d->mutex);
    hf__hold_abandon(hold);
    pthread_mutex_unlock(&d->mutex);
}

hf_status hf__driver_call(hf__driver *d, hf__call *call)
{
    int cancel_state;
    hf_status status = enter(d, &cancel_state);
    if (status != HF_OK && call->kind == HF__CALL_RELEASE)
        abandon(d, call->hold);
    if (status != HF_OK)
        return status;
    step_from_outside(d, &(hf__event){.kind = HF__EVENT_START, .call = call});
    while (!call->done) {
        if (d->driving)
            wait_for_driver(d, call);
        else
            drive(d, call);
    }
    notify_sleeper(d);
    leave(d, cancel_state);
    return call->error.status;
}

hf_status hf__driver_let_go(hf__driver *d, hf_hold *hold)
{
    int cancel_state;
    hf_status status = enter(d, &cancel_state);
    if (status != HF_OK) {
        abandon(d, hold);
        return status;
    }
    hf__event event = {.kind = HF__EVENT_LET_GO, .hold = hold};
    step_from_outside(d, &event);
    leave(d, cancel_state);
    return event.status;
}

void hf__driver_cancel(hf__driver *d, hf__call *call)
{
    int cancel_state;
    if (enter(d, &cancel_state) != HF_OK)
        return;
    step_from_outside(d, &(hf__event){.kind = HF__EVENT_CANCEL, .call = call});
    leave(d, cancel_state);
}

/* ---- Birth and death ---- */

static bool open_descriptors(hf__driver *d)
{
    if (!hf__memory_allowed())
        return false;
    d->kick = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    d->park_kick = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    d->park_timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    return d->kick >= 0 && d->park_kick >= 0 && d->park_timer >= 0;
}

static void close_descriptors(hf__driver *d)
{
    int *all[] = {&d->kick, &d->park_kick, &d->park_timer};
    for (int i = 0; i < 3; i++) {
        if (*all[i] >= 0)
            close(*all[i]);
        *all[i] = -1;
    }
}

hf__driver *hf__driver_new(const hf__driver_config *config)
{
    hf__driver *d = hf__alloc(sizeof(*d));
    if (d == NULL)
        return NULL;
    const hf__url *server = config->core.server;
    d->kick = d->park_kick = d->park_timer = -1;
    d->transport = config->transport;
    d->endpoint = (hf_endpoint){server->host, server->port, server->path};
    d->log = config->log;
    d->log_arg = config->log_arg;
    d->link_count = config->core.links;
    d->parked_until = HF__NEVER;
    hf__list_init(&d->waiters);
    pthread_mutex_init(&d->mutex, NULL);
    pthread_cond_init(&d->quiet, NULL);
    d->core = hf__core_new(&config->core);
    if (d->core != NULL && open_descriptors(d) && hf__fork_guard_add(&d->fork_guard, &d->mutex)) {
        if (hf__thread_start(&d->background, run_background, d))
            return d;
        hf__fork_guard_remove(&d->fork_guard);
    }
    hf__core_free(d->core);
    close_descriptors(d);
    hf__free(d);
    return NULL;
}

/* The parent's connections and threads are not ours to end: only our copies of the descriptors. */
static void take_apart(hf__driver *d)
{
    hf__engine_close_ports(d);
    hf__core_free(d->core);
    d->core = NULL;
    close_descriptors(d);
}

void hf__driver_stop(hf__driver *d)
{
    pthread_mutex_lock(&d->mutex);
    d->stopped = true;
    d->background_ends = true;
    if (!d->fork_guard.forked) {
        eventfd_write(d->park_kick, 1);
        eventfd_write(d->kick, 1);
        while (d->inside > 0)
            pthread_cond_wait(&d->quiet, &d->mutex);
        pthread_mutex_unlock(&d->mutex);
        pthread_join(d->background, NULL);
        pthread_mutex_lock(&d->mutex);
    }
    take_apart(d);
    pthread_mutex_unlock(&d->mutex);
}

void hf__driver_free(hf__driver *d)
{
    hf__fork_guard_remove(&d->fork_guard);
    pthread_cond_destroy(&d->quiet);
    pthread_mutex_destroy(&d->mutex);
    hf__free(d);
}
