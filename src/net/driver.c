/* SPDX-License-Identifier: MIT */
/* One engine, one mutex, one wheel.
 *
 * All state is behind the mutex. A thread that makes a call steps the core with it and writes what
 * comes out, or leaves that to a driver who is awake (ports.c says when). Then, if nobody has the
 * wheel, it takes it: it sleeps in ppoll() (without the mutex), reads, steps, and does so for
 * everybody until its own call is done. The others wait, each on a semaphore of its own, and one of
 * them is handed the wheel when the driver leaves. So a lone thread has no thread switch in its
 * way, and many threads share one sleeper.
 *
 * Whoever finishes the call of a waiter also takes it out of the books (waiters, inside), so that
 * the waiter, once woken, returns without the mutex; and it is woken only after the mutex was given
 * back. The waiter's memory is its own again from then on. Many threads spend their time on nothing
 * else than running into each other otherwise.
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

bool hf__driver_forked(const hf__driver *driver)
{
    return driver->fork_guard.forked;
}

/* ---- The wheel ---- */

static void give_wheel_to(hf__driver *d, hf__waiter *next)
{
    d->drivers_call = next->call;
    next->call->waiter = NULL;
    next->takes_wheel = true;
    hf__list_remove(&d->waiters, &next->node);
    hf__list_append(&d->woken, &next->node);
}

/* The next driver has the wheel from now on, though it may take a while to get up; what was left to
 * the driver to write is left to that one. */
static void hand_on_wheel(hf__driver *d)
{
    hf__node *first = hf__list_first(&d->waiters);
    d->driving = first != NULL;
    d->drivers_call = NULL;
    if (first != NULL)
        give_wheel_to(d, HF__ENTRY(first, hf__waiter, node));
    else
        hf__engine_flush(d);
}

static void drive(hf__driver *d, const hf__call *call)
{
    d->driving = true;
    d->drivers_call = call;
    if (!call->done && d->blind) {
        hf__engine_flush(d); /* what they answer at once is there at once */
        hf__engine_serve_blind(d);
    }
    while (!call->done && !d->fork_guard.forked)
        hf__engine_turn(d);
    hand_on_wheel(d);
}

/* Waits until another thread hands over the wheel: true, with the mutex; or finishes the call:
 * false, without the mutex and not inside any more. */
static bool wait_for_wheel(hf__driver *d, hf__call *call)
{
    hf__waiter self = {.call = call};
    sem_init(&self.wake, 0, 0);
    call->waiter = &self;
    hf__list_append(&d->waiters, &self.node);
    hf__engine_unlock(d);
    while (sem_wait(&self.wake) != 0) /* EINTR */
        continue;
    sem_destroy(&self.wake);
    if (self.takes_wheel)
        pthread_mutex_lock(&d->mutex);
    return self.takes_wheel;
}

/* ---- The background thread ---- */

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
    if (hf__engine_expects(d))
        duty = hf__earlier(duty, hf__after(hf__clock_now(), hf__span_ms(LINGER_MS)));
    return duty;
}

static void park(hf__driver *d)
{
    struct pollfd entries[2] = {{.fd = d->park_timer, .events = POLLIN},
                                {.fd = d->park_kick, .events = POLLIN}};
    uint64_t discarded;
    hf__engine_unlock(d);
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
    while (hf__engine_expects(d) && d->waiters.count == 0 && !d->background_ends &&
           !d->fork_guard.forked)
        hf__engine_turn(d);
    hand_on_wheel(d);
}

/* Whether somebody who sleeps must learn of what was just done: the driver, if there is one. The
 * sleepers of a forked child are its parent's. */
static void notify_sleeper(hf__driver *d)
{
    if (d->fork_guard.forked)
        return;
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
    while (!d->background_ends && !d->fork_guard.forked) {
        hf__instant now = hf__clock_now();
        hf__instant rested = hf__after(d->last_turn, hf__span_ms(LINGER_MS / 2));
        if (d->driving || d->waiters.count > 0) {
            park_until(d, HF__NEVER); /* whoever leaves last sees to what is left */
            park(d);
        } else if (!hf__before(now, hf__core_wake(d->core))) {
            step_from_outside(d, &(hf__event){.kind = HF__EVENT_TICK});
        } else if (hf__engine_expects(d) && !hf__before(now, rested)) {
            drive_in_background(d);
        } else {
            park_until(d, next_duty(d));
            park(d);
        }
    }
    hf__engine_unlock(d);
    return NULL;
}

/* ---- Calls ---- */

void hf__engine_went_out(hf__driver *d)
{
    if (--d->inside == 0 && d->stopped)
        pthread_cond_broadcast(&d->quiet);
}

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
    hf__engine_went_out(d);
    hf__engine_unlock(d);
    pthread_setcancelstate(cancel_state, NULL);
}

/* A release that comes too late for the driver still takes the handle out of the caller's hand. */
static void abandon(hf__driver *d, hf_hold *hold)
{
    pthread_mutex_lock(&d->mutex);
    hf__engine_wait_told(d, hold);
    hf__engine_close_descriptor(hold);
    hf__hold_abandon(hold);
    pthread_mutex_unlock(&d->mutex);
}

/* Until the call is done: true, with the mutex and still inside; or false, out and without it. */
static bool run_call(hf__driver *d, hf__call *call)
{
    step_from_outside(d, &(hf__event){.kind = HF__EVENT_START, .call = call});
    if (!call->done && d->driving && !wait_for_wheel(d, call))
        return false;
    if (!call->done || d->drivers_call == call)
        drive(d, call); /* also if it is done by now: the wheel must be handed on */
    notify_sleeper(d);
    return true;
}

/* The same for a release while the listener of its handle is running: until that has returned. */
static bool run_release(hf__driver *d, hf__call *call, const hf_hold *handle)
{
    bool inside = run_call(d, call);
    if (!inside)
        pthread_mutex_lock(&d->mutex);
    hf__engine_wait_told(d, handle);
    if (!inside)
        pthread_mutex_unlock(&d->mutex);
    return inside;
}

hf_status hf__driver_call(hf__driver *d, hf__call *call)
{
    int cancel_state;
    hf_hold *handle = call->hold; /* the core may put another one of the same hold in its place */
    hf_status status = enter(d, &cancel_state);
    if (status != HF_OK && call->kind == HF__CALL_RELEASE)
        abandon(d, handle);
    if (status != HF_OK)
        return status;
    bool telling = call->kind == HF__CALL_RELEASE && hf__core_is_telling(d->core, handle);
    if (call->kind == HF__CALL_RELEASE)
        hf__engine_close_descriptor(handle);
    if (telling ? run_release(d, call, handle) : run_call(d, call))
        leave(d, cancel_state);
    else
        pthread_setcancelstate(cancel_state, NULL);
    return call->done ? call->error.status : HF_EFORKED; /* by a callback, of all places */
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
    bool telling = hf__core_is_telling(d->core, hold);
    hf__engine_close_descriptor(hold);
    step_from_outside(d, &event);
    if (telling)
        hf__engine_wait_told(d, hold);
    leave(d, cancel_state);
    return event.status;
}

hf_status hf__driver_listen(hf__driver *d)
{
    int cancel_state;
    hf_status status = enter(d, &cancel_state);
    if (status != HF_OK)
        return status;
    if (!hf__engine_start_teller(d))
        status = HF_ENOMEM;
    leave(d, cancel_state);
    return status;
}

int hf__driver_descriptor(hf__driver *d, hf_hold *hold)
{
    int cancel_state;
    if (enter(d, &cancel_state) != HF_OK)
        return -1;
    int descriptor = hf__engine_descriptor(d, hold);
    leave(d, cancel_state);
    return descriptor;
}

hf_status hf__driver_stats(hf__driver *d, hf_stats *stats)
{
    int cancel_state;
    hf_status status = enter(d, &cancel_state);
    if (status != HF_OK)
        return status;
    hf__core_stats(d->core, stats);
    leave(d, cancel_state);
    return HF_OK;
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
    hf__list_init(&d->woken);
    pthread_mutex_init(&d->mutex, NULL);
    pthread_cond_init(&d->quiet, NULL);
    pthread_cond_init(&d->news, NULL);
    pthread_cond_init(&d->told, NULL);
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
        hf__engine_stop_teller(d);
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
    pthread_cond_destroy(&d->told);
    pthread_cond_destroy(&d->news);
    pthread_cond_destroy(&d->quiet);
    pthread_mutex_destroy(&d->mutex);
    hf__free(d);
}
