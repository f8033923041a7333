/* SPDX-License-Identifier: MIT */
/* Code of the application, run by us: the log hook, the source of credentials, what listens to
 * holds, and the callbacks of operations (operation.c). It runs without the mutex, so the core must
 * be consistent, and anything may have changed when it returns; and with a mark on the thread, so
 * that calls that wait turn back instead of waiting for themselves.
 *
 * The log hook runs on whichever thread has something to say, credentials are fetched by whichever
 * finds a new connection up. What listens to holds is run by a
 * thread of its own, the teller, which is started when the first listener comes: so a listener that
 * takes its time holds up other listeners, and neither calls nor renewals. A release waits until
 * the listener of its hold has returned, unless it comes from a callback itself. The teller also
 * runs the callbacks of operations, in turns with them.
 *
 * A driver with an own loop has no teller. hf_process() does its work, and hf_close() what is left
 * of it in the end. */
#include "net/engine.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include "base/text.h"
#include "net/clock.h"
#include "net/thread.h"

static _Thread_local bool in_callback;

bool hf__driver_in_callback(void)
{
    return in_callback;
}

void hf__engine_log(hf__driver *d, hf_log_level level, const char *line)
{
    char text[300];
    if (d->log == NULL)
        return;
    hf__format(text, sizeof(text), "%s", line);
    bool nested = in_callback; /* it may call what does not wait, and that may log too */
    in_callback = true;
    hf__engine_unlock(d);
    d->log(d->log_arg, level, text);
    pthread_mutex_lock(&d->mutex);
    in_callback = nested;
}

hf_status hf__engine_fetch_credentials(hf__driver *d, const hf__url *server,
                                       hf_credentials *credentials, bool *given, hf_error *error)
{
    bool nested = in_callback;
    in_callback = true;
    hf__engine_unlock(d);
    hf_status status = hf__secret_fetch(&d->secret, server, credentials, given, error);
    pthread_mutex_lock(&d->mutex);
    in_callback = nested;
    return status;
}

bool hf__engine_has_callbacks(const hf__driver *d)
{
    return d->finished.count > 0 || hf__core_has_news(d->core);
}

/* ---- The teller ---- */

static void run_callback(hf__driver *d, hf__tell *tell)
{
    hf__span left = hf__hold_remaining(tell->hold, hf__clock_now());
    tell->event.remaining_ms = hf__span_to_ms(left);
    hf__engine_unlock(d);
    tell->function(tell->arg, &tell->event);
    pthread_mutex_lock(&d->mutex);
}

static void tell_one(hf__driver *d, hf__tell *tell)
{
    if (tell->function != NULL)
        run_callback(d, tell);
    hf__core_told(d->core);
    pthread_cond_broadcast(&d->told);
}

static void show_one(hf__driver *d, const hf__sight *sight)
{
    hf__engine_unlock(d);
    sight->function(sight->arg, &sight->sight);
    pthread_mutex_lock(&d->mutex);
    hf__core_sight_told(d->core);
    pthread_cond_broadcast(&d->told);
}

/* Of finished operations only those of now: their callbacks may well start the next ones, and a
 * loss must not wait until that is over. */
void hf__engine_tell_here(hf__driver *d)
{
    hf__tell tell;
    hf__sight sight;
    bool nested = in_callback;
    in_callback = true;
    if (d->finished.count > 0)
        hf__operations_tell(d);
    while (!hf__fork_is_child(&d->fork_guard) && !d->teller_ends &&
           hf__core_next_tell(d->core, &tell))
        tell_one(d, &tell);
    if (!hf__fork_is_child(&d->fork_guard) && !d->teller_ends &&
        hf__core_next_sight(d->core, &sight))
        show_one(d, &sight); /* one, so that losses come before the next */
    in_callback = nested;
}

static void *run_teller(void *arg)
{
    hf__driver *d = arg;
    pthread_mutex_lock(&d->mutex);
    while ((!d->teller_ends || d->finished.count > 0) && !hf__fork_is_child(&d->fork_guard)) {
        if (hf__engine_has_callbacks(d))
            hf__engine_tell_here(d);
        else
            pthread_cond_wait(&d->news, &d->mutex);
    }
    pthread_mutex_unlock(&d->mutex);
    return NULL;
}

bool hf__engine_start_teller(hf__driver *d)
{
    if (d->own_loop)
        return true; /* hf_process() will run them */
    if (!d->teller_runs)
        d->teller_runs = hf__thread_start(&d->teller, run_teller, d);
    return d->teller_runs;
}

void hf__engine_stop_teller(hf__driver *d)
{
    d->teller_ends = true;
    pthread_cond_signal(&d->news);
    pthread_mutex_unlock(&d->mutex);
    if (d->teller_runs)
        pthread_join(d->teller, NULL);
    pthread_mutex_lock(&d->mutex);
    while (d->finished.count > 0 && !hf__fork_is_child(&d->fork_guard))
        hf__engine_tell_here(d); /* there is no teller in an own loop */
}

/* Descriptors do not wait for callbacks. Without a teller there is nothing else. */
void hf__engine_tell(hf__driver *d)
{
    hf__tell tell;
    int descriptor;
    while ((descriptor = hf__core_next_descriptor(d->core)) >= 0)
        eventfd_write(descriptor, 1);
    if (!hf__engine_has_callbacks(d))
        return;
    if (d->own_loop)
        hf__loop_kick(d);
    else if (d->teller_runs)
        pthread_cond_signal(&d->news);
    while (!d->own_loop && !d->teller_runs && hf__core_next_tell(d->core, &tell))
        tell_one(d, &tell);
}

void hf__engine_wait_told(hf__driver *d, const hf_hold *hold)
{
    while (!in_callback && !hf__fork_is_child(&d->fork_guard) && d->core != NULL &&
           hf__core_is_telling(d->core, hold))
        pthread_cond_wait(&d->told, &d->mutex);
}

void hf__engine_wait_seen(hf__driver *d, const hf_observer *observer)
{
    while (!in_callback && !hf__fork_is_child(&d->fork_guard) && d->core != NULL &&
           hf__core_is_seeing(d->core, observer))
        pthread_cond_wait(&d->told, &d->mutex);
}

/* ---- Descriptors ---- */

int hf__engine_descriptor(hf__driver *d, hf_hold *hold)
{
    if (hf__hold_descriptor(hold) >= 0)
        return hf__hold_descriptor(hold);
    hf__hold_set_descriptor(hold, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    int descriptor = hf__hold_descriptor(hold);
    if (descriptor >= 0 && hf__hold_state(hold, hf__clock_now()) != HF_SAFE)
        eventfd_write(descriptor, 1); /* the callback may have heard it already */
    hf__engine_tell(d);
    return descriptor;
}

void hf__engine_close_descriptor(hf_hold *hold)
{
    if (hf__hold_descriptor(hold) >= 0)
        close(hf__hold_descriptor(hold));
    hf__hold_set_descriptor(hold, -1);
}
