/* SPDX-License-Identifier: MIT */
/* The calls that the rooms above make. Each enters (takes the mutex, and is counted, so that
 * hf__driver_stop() can wait for it), steps the core, and leaves; how those that wait wait is said
 * in steer.c. */
#include "net/engine.h"

#include <unistd.h>

#include "net/clock.h"

bool hf__driver_forked(const hf__driver *driver)
{
    return hf__fork_is_child(&driver->fork_guard);
}

bool hf__driver_is_torn(const hf__driver *driver)
{
    return hf__fork_is_torn(&driver->fork_guard);
}

/* ---- Calls ---- */

void hf__engine_went_out(hf__driver *d)
{
    if (--d->inside == 0 && d->stopped)
        pthread_cond_broadcast(&d->quiet);
}

static hf_status enter(hf__driver *d, int *cancel_state)
{
    if (hf__fork_is_child(&d->fork_guard))
        return HF_EFORKED;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, cancel_state);
    atomic_fetch_add(&d->knocking, 1);
    pthread_mutex_lock(&d->mutex);
    atomic_fetch_sub(&d->knocking, 1);
    d->entries++;
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
    hf__loop_settle(d);
    hf__engine_went_out(d);
    hf__engine_unlock(d);
    pthread_setcancelstate(cancel_state, NULL);
}

/* A release that comes too late for the driver still takes the handle out of the caller's hand. */
static void abandon(hf__driver *d, hf_hold *hold)
{
    if (hf__driver_is_torn(d))
        return;
    pthread_mutex_lock(&d->mutex);
    hf__engine_wait_told(d, hold);
    hf__engine_close_descriptor(hold);
    hf__hold_abandon(hold);
    pthread_mutex_unlock(&d->mutex);
}

/* Until the call is done: true, with the mutex and still inside; or false, out and without it. */
static bool run_call(hf__driver *d, hf__call *call)
{
    hf__engine_step_outside(d, &(hf__event){.kind = HF__EVENT_START, .call = call});
    if (!call->done && d->driving && d->drivers_call == NULL && d->asleep)
        hf__engine_kick(d); /* the background thread: it makes way, also for the calls to come */
    if (!call->done && d->driving && !hf__engine_wait_for_wheel(d, call))
        return false;
    if (!call->done || d->drivers_call == call)
        hf__engine_drive(d, call); /* also if it is done by now: the wheel must be handed on */
    hf__engine_notify(d);
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
    hf__engine_look_if_idle(d);
    bool telling = call->kind == HF__CALL_RELEASE && hf__core_is_telling(d->core, handle);
    if (call->kind == HF__CALL_RELEASE)
        hf__engine_close_descriptor(handle);
    if (telling ? run_release(d, call, handle) : run_call(d, call))
        leave(d, cancel_state);
    else
        pthread_setcancelstate(cancel_state, NULL);
    return call->done ? call->error.status : HF_EFORKED; /* by a callback, of all places */
}

/* What ends a handle without waiting; HF_EINVAL: it stays, and so does its descriptor. */
static hf_status end_handle(hf__driver *d, hf_hold *hold, hf__event *event)
{
    int cancel_state;
    hf_status status = enter(d, &cancel_state);
    if (status != HF_OK) {
        abandon(d, hold);
        return status;
    }
    hf__engine_look_if_idle(d);
    event->hold = hold;
    bool telling = hf__core_is_telling(d->core, hold);
    int descriptor = hf__hold_descriptor(hold);
    hf__engine_step_outside(d, event); /* after which the hold may be gone */
    if (descriptor >= 0 && event->status != HF_EINVAL)
        close(descriptor);
    if (telling && event->status != HF_EINVAL)
        hf__engine_wait_told(d, hold);
    leave(d, cancel_state);
    return event->status;
}

hf_status hf__driver_let_go(hf__driver *d, hf_hold *hold)
{
    return end_handle(d, hold, &(hf__event){.kind = HF__EVENT_LET_GO});
}

hf_status hf__driver_detach(hf__driver *d, hf_hold *hold, bool *late)
{
    hf__event event = {.kind = HF__EVENT_DETACH};
    hf_status status = end_handle(d, hold, &event);
    *late = event.late;
    return status;
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

hf_status hf__driver_load(hf__driver *d, hf_load *load)
{
    int cancel_state;
    hf_status status = enter(d, &cancel_state);
    if (status != HF_OK)
        return status;
    hf__core_load(d->core, load);
    leave(d, cancel_state);
    return HF_OK;
}

void hf__driver_cancel(hf__driver *d, hf__call *call)
{
    int cancel_state;
    if (enter(d, &cancel_state) != HF_OK)
        return;
    hf__engine_look_if_idle(d);
    hf__engine_step_outside(d, &(hf__event){.kind = HF__EVENT_CANCEL, .call = call});
    leave(d, cancel_state);
}

hf_status hf__driver_start(hf__driver *d, hf__operation *operation, uint64_t *number)
{
    int cancel_state;
    hf_status status = enter(d, &cancel_state);
    if (status != HF_OK)
        return status;
    hf__engine_look_if_idle(d);
    status = hf__operation_admit(d, operation);
    if (status == HF_OK) {
        if (number != NULL)
            *number = operation->number; /* now: it may be told before we are back */
        if (operation->call.kind == HF__CALL_RELEASE)
            hf__engine_close_descriptor(operation->call.hold);
        hf__engine_step_operation(d,
                                  &(hf__event){.kind = HF__EVENT_START, .call = &operation->call});
    }
    leave(d, cancel_state);
    return status;
}

hf_status hf__driver_cancel_operation(hf__driver *d, uint64_t number)
{
    int cancel_state;
    hf_status status = enter(d, &cancel_state);
    if (status != HF_OK)
        return status;
    hf__engine_look_if_idle(d);
    hf__operation *operation = hf__operation_find(d, number);
    if (number == 0 || number > d->last_operation)
        status = HF_EINVAL;
    else if (operation != NULL && operation->call.kind == HF__CALL_ACQUIRE)
        hf__engine_step_operation(d,
                                  &(hf__event){.kind = HF__EVENT_CANCEL, .call = &operation->call});
    leave(d, cancel_state);
    return status;
}

/* ---- In a loop of the application ---- */

int hf__driver_loop_descriptor(hf__driver *d)
{
    int cancel_state;
    if (enter(d, &cancel_state) != HF_OK)
        return -1;
    int descriptor = hf__loop_descriptor(d);
    leave(d, cancel_state);
    return descriptor;
}

/* Rounded up: a loop that comes too early would come again and again. */
static int ms_until(hf__instant due)
{
    hf__instant now = hf__clock_now();
    if (hf__is_never(due))
        return -1;
    if (!hf__before(now, due))
        return 0;
    int64_t ms = (hf__between(now, due).ns + 999999) / 1000000;
    return (int)(ms < HF_MS_MAX ? ms : HF_MS_MAX);
}

int hf__driver_loop_timeout_ms(hf__driver *d)
{
    int cancel_state;
    int timeout_ms = -1;
    if (enter(d, &cancel_state) != HF_OK)
        return -1;
    if (d->own_loop)
        timeout_ms = hf__engine_has_callbacks(d) ? 0 : ms_until(hf__engine_next_duty(d));
    leave(d, cancel_state);
    return timeout_ms;
}

hf_status hf__driver_process(hf__driver *d)
{
    int cancel_state;
    hf_status status = enter(d, &cancel_state);
    if (status != HF_OK)
        return status;
    if (!d->own_loop || d->processing) {
        status = HF_EINVAL;
    } else {
        hf__loop_process(d);
        hf__engine_notify(d);
        status = hf__fork_is_child(&d->fork_guard) ? HF_EFORKED : HF_OK;
    }
    leave(d, cancel_state);
    return status;
}

hf_status hf__driver_observe(hf__driver *d, hf_observer *observer)
{
    int cancel_state;
    hf_status status = enter(d, &cancel_state);
    if (status != HF_OK)
        return status;
    hf__engine_look_if_idle(d);
    if (!hf__engine_start_teller(d))
        status = HF_ENOMEM;
    else
        hf__engine_step_outside(d, &(hf__event){.kind = HF__EVENT_OBSERVE, .observer = observer});
    leave(d, cancel_state);
    return status;
}

void hf__driver_unobserve(hf__driver *d, hf_observer *observer)
{
    int cancel_state;
    if (hf__driver_is_torn(d))
        return;
    if (enter(d, &cancel_state) != HF_OK) {
        pthread_mutex_lock(&d->mutex);
        hf__engine_wait_seen(d, observer);
        hf__observer_abandon(observer);
        pthread_mutex_unlock(&d->mutex);
        return;
    }
    hf__engine_look_if_idle(d);
    hf__engine_step_outside(d, &(hf__event){.kind = HF__EVENT_UNOBSERVE, .observer = observer});
    hf__engine_wait_seen(d, observer); /* freed by now, but it is still known by its address */
    leave(d, cancel_state);
}
