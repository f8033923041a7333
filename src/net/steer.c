/* SPDX-License-Identifier: MIT */
/* Who drives: one engine, one mutex, one wheel.
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
 * within the last LINGER_MS. Operations (operation.c) are what it does not linger for: nobody else
 * will read their answers. In an own loop there is no such thread; loop.c says who does its work.
 */
#include "net/engine.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "net/clock.h"

enum { LINGER_MS = 20, IDLE_MS = 100 };

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

void hf__engine_drive(hf__driver *d, const hf__call *call)
{
    d->driving = true;
    d->drivers_call = call;
    if (!call->done && d->blind) {
        hf__engine_flush(d); /* what they answer at once is there at once */
        hf__engine_serve_blind(d);
    }
    while (!call->done && !hf__fork_is_child(&d->fork_guard))
        hf__engine_turn(d);
    hand_on_wheel(d);
}

bool hf__engine_wait_for_wheel(hf__driver *d, hf__call *call)
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

hf__instant hf__engine_next_duty(const hf__driver *d)
{
    hf__instant duty = hf__core_wake(d->core);
    int64_t pause_ms = hf__operations_under_way(d) ? 0 : LINGER_MS;
    if (d->own_loop && !hf__loop_is_blind(d))
        return duty; /* its set has the connections */
    if (d->own_loop)
        pause_ms = HF__BLIND_POLL_MS;
    if (hf__engine_expects(d))
        duty = hf__earlier(duty, hf__after(hf__clock_now(), hf__span_ms(pause_ms)));
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
           !hf__fork_is_child(&d->fork_guard))
        hf__engine_turn(d);
    hand_on_wheel(d);
}

void hf__engine_kick(hf__driver *d)
{
    if (!d->kicked)
        eventfd_write(d->kick, 1);
    d->kicked = true;
}

/* Whether somebody who sleeps must learn of what was just done: the driver, if there is one. The
 * sleepers of a forked child are its parent's. */
void hf__engine_notify(hf__driver *d)
{
    if (hf__fork_is_child(&d->fork_guard))
        return;
    if (d->driving) {
        if (d->asleep && (d->ports_changed || hf__before(hf__core_wake(d->core), d->sleep_ends)))
            hf__engine_kick(d);
        return;
    }
    hf__instant duty = hf__engine_next_duty(d);
    if (hf__before(duty, d->parked_until))
        park_until(d, duty);
}

void hf__engine_look_if_idle(hf__driver *d)
{
    if (!d->driving && hf__before(hf__after(d->last_turn, hf__span_ms(IDLE_MS)), hf__clock_now()))
        hf__engine_look(d);
}

void hf__engine_step_outside(hf__driver *d, hf__event *event)
{
    hf__engine_step(d, event);
    hf__engine_carry_out(d);
    hf__engine_notify(d);
}

void hf__engine_step_operation(hf__driver *d, hf__event *event)
{
    hf__engine_step(d, event);
    hf__engine_carry_out_patiently(d);
    hf__engine_notify(d);
    if (!hf__engine_left_bytes(d))
        return;
    if (d->driving && d->asleep)
        hf__engine_kick(d);
    else if (!d->driving)
        hf__loop_kick(d); /* the background thread, where there is one, has been notified */
}

void *hf__engine_run_background(void *arg)
{
    hf__driver *d = arg;
    pthread_mutex_lock(&d->mutex);
    while (!d->background_ends && !hf__fork_is_child(&d->fork_guard)) {
        hf__instant now = hf__clock_now();
        hf__instant rested = hf__after(d->last_turn, hf__span_ms(LINGER_MS / 2));
        if (d->driving || d->waiters.count > 0) {
            park_until(d, HF__NEVER); /* whoever leaves last sees to what is left */
            park(d);
        } else if (!hf__before(now, hf__core_wake(d->core))) {
            if (hf__engine_expects(d))
                hf__engine_look(d); /* what has come since saves a wake-up of its own */
            else
                hf__engine_look_if_idle(d);
            hf__engine_step_outside(d, &(hf__event){.kind = HF__EVENT_TICK});
        } else if (hf__engine_expects(d) &&
                   (hf__operations_under_way(d) || !hf__before(now, rested))) {
            drive_in_background(d);
        } else {
            park_until(d, hf__engine_next_duty(d));
            park(d);
        }
    }
    hf__engine_unlock(d);
    return NULL;
}
