/* SPDX-License-Identifier: MIT */
/* The calls on locks: check the arguments, make the call, hand out or take back the hold. */
#include "api/client.h"
#include "core/fail.h"
#include "net/clock.h"

enum { RETRY_INTERVAL_MS = 100 };

static uint64_t fresh_number(void)
{
    static atomic_uint_fast64_t last;
    return atomic_fetch_add(&last, 1) + 1;
}

/* A number for the calling thread that is never given to another one, unlike pthread_self(). */
static uint64_t thread_number(void)
{
    static _Thread_local uint64_t mine;
    if (mine == 0)
        mine = fresh_number();
    return mine;
}

hf_status hf__call_outcome(hf_error *error, hf_status status, const hf__call *call)
{
    if (status == HF_OK)
        return hf__ok(error);
    bool started = call->done; /* otherwise the driver turned it away */
    return hf__fail(error, status, "%s", started ? call->error.text : hf_status_text(status));
}

static hf__slice slice_or_none(const char *text)
{
    return text != NULL ? hf__slice_text(text) : (hf__slice){NULL, 0};
}

hf__wish hf__client_wish(hf_client *client, const char *name, const hf_acquire_options *options,
                         bool lone)
{
    return (hf__wish){
        .who = {.client_id = client->client_id,
                .host = client->host,
                .pid = client->pid,
                .thread = lone ? fresh_number() : thread_number(),
                .number = atomic_fetch_add(&client->next_number, client->number_step)},
        .prefix = hf__client_prefix(client),
        .name = {name, options->name_length},
        .owner = slice_or_none(options->owner),
        .label = slice_or_none(options->label),
        .reenters = !options->no_reentry && !lone,
        .lease = hf__span_ms(options->lease_ms),
        .renew_interval = hf__span_ms(options->no_renewal ? 0 : options->renew_interval_ms),
        .renew_timeout = hf__span_ms(options->renew_timeout_ms),
        .max_hold = hf__span_ms(options->max_hold_ms),
        .warn = hf__span_ms(options->warn_ms),
        .on_event = options->on_event,
        .arg = options->arg,
        .listens_later = lone,
        .replicas = options->replicas};
}

hf_hold *hf__client_new_hold(hf_client *client, const char *name, const hf_acquire_options *options,
                             bool lone)
{
    hf__wish wish = hf__client_wish(client, name, options, lone);
    hf_hold *hold = hf__hold_new(&wish);
    if (hold != NULL)
        hf__hold_set_client(hold, client);
    return hold;
}

hf__call hf__client_new_call(const hf_client *client, hf_hold *hold,
                             const hf_acquire_options *options)
{
    int64_t interval_ms = options->retry_interval_ms;
    return (hf__call){.kind = HF__CALL_ACQUIRE,
                      .hold = hold,
                      .wait_ms = options->wait_ms,
                      .max_retries = options->max_retries,
                      .polls = options->max_retries > 0 || interval_ms > 0,
                      .fair = options->fair || client->fair,
                      .retry_interval =
                          hf__span_ms(interval_ms > 0 ? interval_ms : RETRY_INTERVAL_MS)};
}

hf_status hf__client_acquire(hf_client *client, hf_hold *fresh, const hf_acquire_options *options,
                             hf_hold **hold, hf_error *error)
{
    hf__call call = hf__client_new_call(client, fresh, options);
    hf__cancel_entry entry = {.driver = client->driver, .call = &call};
    atomic_fetch_add(&client->references, 1); /* the hold's; also in case of hf_close() meanwhile */
    hf__cancel_attach(options->cancel, &entry);
    hf_status status = hf__driver_call(client->driver, &call);
    hf__cancel_detach(options->cancel, &entry);
    if (!call.taken)
        hf__hold_drop(fresh); /* never started */
    if (status == HF_OK)
        *hold = call.hold; /* which may be another one: see core/cohort.c */
    else
        hf__client_release(client);
    return hf__call_outcome(error, status, &call);
}

hf_status hf__client_prepare(hf_client *client, const char *name, const hf_acquire_options *options,
                             hf_acquire_options *checked, hf_error *error)
{
    hf_status status = hf__acquire_options_read(client, options, checked, error);
    if (status == HF_OK)
        status = hf__name_check(client, name, &checked->name_length, error);
    if (status != HF_OK || checked->on_event == NULL)
        return status;
    status = hf__driver_listen(client->driver);
    return status == HF_OK ? status : hf__plain(error, status);
}

hf_status hf_acquire(hf_client *client, const char *name, const hf_acquire_options *options,
                     hf_hold **hold, hf_error *error)
{
    HF__VISIT(client);
    hf_acquire_options checked;
    if (hold == NULL)
        return hf__fail(error, HF_EINVAL, "hold is NULL");
    *hold = NULL;
    if (client == NULL)
        return hf__fail(error, HF_EINVAL, "client is NULL");
    hf_status status = hf__client_check(client, error);
    if (status == HF_OK)
        status = hf__client_prepare(client, name, options, &checked, error);
    if (status != HF_OK)
        return status;
    hf_hold *fresh = hf__client_new_hold(client, name, &checked, false);
    if (fresh == NULL)
        return hf__fail(error, HF_ENOMEM, "out of memory");
    return hf__client_acquire(client, fresh, &checked, hold, error);
}

hf_status hf_release(hf_hold **hold, hf_error *error)
{
    if (hold == NULL || *hold == NULL)
        return hf__ok(error);
    hf_client *client = hf__hold_client(*hold);
    if (hf__driver_in_callback() && !hf__driver_forked(client->driver))
        return hf__client_check(client, error);
    hf__call call = {.kind = HF__CALL_RELEASE, .hold = *hold};
    hf_status status = hf__driver_call(client->driver, &call);
    *hold = NULL;
    hf__client_release(client);
    return hf__call_outcome(error, status, &call);
}

hf_status hf_release_nowait(hf_hold **hold)
{
    if (hold == NULL || *hold == NULL)
        return HF_OK;
    hf_client *client = hf__hold_client(*hold);
    hf_status status = hf__driver_let_go(client->driver, *hold);
    *hold = NULL;
    hf__client_release(client);
    return status;
}

hf_status hf_extend(hf_hold *hold, int64_t lease_ms, hf_error *error)
{
    if (hold == NULL)
        return hf__fail(error, HF_EINVAL, "hold is NULL");
    hf_client *client = hf__hold_client(hold);
    hf_status status = hf__client_check(client, error);
    if (status != HF_OK)
        return status;
    hf__call call = {.kind = HF__CALL_EXTEND, .hold = hold, .lease = hf__hold_lease(hold)};
    if (lease_ms != 0) {
        status = hf__lease_check(client, lease_ms, error);
        if (status != HF_OK)
            return status;
        call.lease = hf__span_ms(lease_ms);
    }
    return hf__call_outcome(error, hf__driver_call(client->driver, &call), &call);
}

static hf__span remaining(const hf_hold *hold)
{
    const hf_client *client = hold != NULL ? hf__hold_client(hold) : NULL;
    if (hold == NULL || hf__driver_forked(client->driver))
        return hf__span_ms(0);
    /* Finding it expired is remembered in the hold, which is not what const promises not to do. */
    return hf__hold_remaining((hf_hold *)hold, hf__clock_now());
}

int64_t hf_remaining_ms(const hf_hold *hold)
{
    return hf__span_to_ms(remaining(hold));
}

bool hf_is_valid(const hf_hold *hold)
{
    return remaining(hold).ns > 0;
}

hf_state hf_hold_state(const hf_hold *hold)
{
    if (hold == NULL || hf__driver_forked(((hf_client *)hf__hold_client(hold))->driver))
        return HF_LOST;
    return hf__hold_state((hf_hold *)hold, hf__clock_now());
}

uint64_t hf_fence(const hf_hold *hold)
{
    return hold != NULL ? hf__hold_fence(hold) : 0;
}

int hf_descriptor(hf_hold *hold)
{
    if (hold == NULL)
        return -1;
    hf_client *client = hf__hold_client(hold);
    return hf__driver_descriptor(client->driver, hold);
}
