/* SPDX-License-Identifier: MIT */
/* Calls that do not wait, and clients in a loop of the application.
 *
 * An operation is a call on the heap with the callback that is owed for it. It belongs to the
 * driver from its start until it is told, holds a reference to its client all that time, and is
 * freed after the callback. What is returned instead of HF_OK is all that the caller will hear. */
#include "api/client.h"
#include "base/memory.h"
#include "core/fail.h"

typedef struct operation {
    hf__operation base;
    hf_client *client;
    hf_acquired_function *acquired;
    hf_done_function *released;
    void *arg;
    hf_cancel *cancel;
    hf__cancel_entry entry;
} operation;

static operation *operation_of(hf__operation *base)
{
    return HF__ENTRY(base, operation, base);
}

static operation *new_operation(hf_client *client, hf__call_kind kind, void *arg)
{
    operation *fresh = hf__alloc(sizeof(*fresh));
    if (fresh == NULL)
        return NULL;
    fresh->base.call.kind = kind;
    fresh->client = client;
    fresh->arg = arg;
    atomic_fetch_add(&client->references, 1);
    return fresh;
}

static void end_operation(operation *ended)
{
    hf__client_release(ended->client);
    hf__free(ended);
}

/* If the callback has forked, this is the child, which may have closed its copy of the client;
 * whoever called us still looks at it, so that its memory stays. */
static void end_told(operation *told)
{
    if (hf__driver_forked(told->client->driver))
        hf__free(told);
    else
        end_operation(told);
}

/* ---- Acquire ---- */

static void tell_acquired(hf__operation *base)
{
    operation *told = operation_of(base);
    hf__call *call = &base->call;
    hf__cancel_detach(told->cancel, &told->entry);
    if (call->error.status != HF_OK)
        hf__client_release(told->client); /* the hold's reference */
    told->acquired(told->arg, call->error.status == HF_OK ? call->hold : NULL, &call->error);
    end_told(told);
}

static void drop_acquire(hf__operation *base)
{
    operation *dropped = operation_of(base);
    if (base->call.done && base->call.error.status == HF_OK)
        hf__hold_abandon(base->call.hold);
    hf__client_release(dropped->client);
    end_operation(dropped);
}

static operation *new_acquire(hf_client *client, const char *name,
                              const hf_acquire_options *options, void *arg)
{
    operation *fresh = new_operation(client, HF__CALL_ACQUIRE, arg);
    if (fresh == NULL)
        return NULL;
    hf__call *call = &fresh->base.call;
    hf_hold *hold = hf__client_new_hold(client, name, options, true);
    if (hold == NULL) {
        end_operation(fresh);
        return NULL;
    }
    *call = hf__client_new_call(client, hold, options);
    fresh->base.tell = tell_acquired;
    fresh->base.drop = drop_acquire;
    fresh->cancel = options->cancel;
    fresh->entry = (hf__cancel_entry){.driver = client->driver, .call = call};
    return fresh;
}

static hf_status start_acquire(operation *fresh, hf_operation *number, hf_error *error)
{
    hf_client *client = fresh->client;
    atomic_fetch_add(&client->references, 1); /* the hold's */
    hf__cancel_attach(fresh->cancel, &fresh->entry);
    hf_status status = hf__driver_start(client->driver, &fresh->base, number);
    if (status == HF_OK)
        return hf__ok(error);
    hf__cancel_detach(fresh->cancel, &fresh->entry);
    hf__hold_drop(fresh->base.call.hold);
    hf__client_release(client);
    end_operation(fresh);
    if (status == HF_EUNAVAILABLE)
        return hf__fail(error, status, "%d operations have not been told yet", HF_OPERATIONS_MAX);
    return hf__plain(error, status);
}

hf_status hf_acquire_async(hf_client *client, const char *name, const hf_acquire_options *options,
                           hf_acquired_function *function, void *arg, hf_operation *number,
                           hf_error *error)
{
    HF__VISIT(client);
    hf_acquire_options checked;
    if (number != NULL)
        *number = 0;
    if (client == NULL || function == NULL)
        return hf__fail(error, HF_EINVAL, "%s is NULL", client == NULL ? "client" : "function");
    if (hf__driver_forked(client->driver))
        return hf__plain(error, HF_EFORKED);
    hf_status status = hf__acquire_options_read(client, options, &checked, error);
    if (status == HF_OK)
        status = hf__name_check(client, name, &checked.name_length, error);
    if (status != HF_OK)
        return status;
    operation *fresh = new_acquire(client, name, &checked, arg);
    if (fresh == NULL)
        return hf__fail(error, HF_ENOMEM, "out of memory");
    fresh->acquired = function;
    return start_acquire(fresh, number, error);
}

hf_status hf_cancel_operation(hf_client *client, hf_operation number)
{
    HF__VISIT(client);
    return client != NULL ? hf__driver_cancel_operation(client->driver, number) : HF_EINVAL;
}

/* ---- Release ---- */

static void tell_released(hf__operation *base)
{
    operation *told = operation_of(base);
    told->released(told->arg, &base->call.error);
    end_told(told);
}

static void drop_release(hf__operation *base)
{
    end_operation(operation_of(base));
}

static hf_status start_release(hf_hold *hold, hf_done_function *function, void *arg)
{
    hf_client *client = hf__hold_client(hold);
    if (hf__driver_forked(client->driver))
        return HF_EFORKED;
    operation *fresh = new_operation(client, HF__CALL_RELEASE, arg);
    if (fresh == NULL)
        return HF_ENOMEM;
    fresh->base.call.hold = hold;
    fresh->base.tell = tell_released;
    fresh->base.drop = drop_release;
    fresh->released = function;
    hf_status status = hf__driver_start(client->driver, &fresh->base, NULL);
    if (status != HF_OK)
        end_operation(fresh);
    return status;
}

/* A release that cannot be told about is a release all the same. */
hf_status hf_release_async(hf_hold **hold, hf_done_function *function, void *arg, hf_error *error)
{
    if (hold == NULL || *hold == NULL)
        return hf__fail(error, HF_EINVAL, "hold is NULL");
    hf_client *client = hf__hold_client(*hold);
    hf_status status;
    if (function == NULL) {
        status = hf__driver_let_go(client->driver, *hold);
    } else {
        status = start_release(*hold, function, arg);
        if (status != HF_OK)
            hf__driver_let_go(client->driver, *hold);
    }
    *hold = NULL;
    hf__client_release(client); /* the hold's reference */
    return hf__plain(error, status);
}

/* ---- In a loop of the application ---- */

int hf_loop_descriptor(hf_client *client)
{
    HF__VISIT(client);
    return client != NULL ? hf__driver_loop_descriptor(client->driver) : -1;
}

int hf_loop_timeout_ms(hf_client *client)
{
    HF__VISIT(client);
    return client != NULL ? hf__driver_loop_timeout_ms(client->driver) : -1;
}

hf_status hf_process(hf_client *client, hf_error *error)
{
    HF__VISIT(client);
    if (client == NULL)
        return hf__fail(error, HF_EINVAL, "client is NULL");
    hf_status status = hf__client_check(client, error);
    if (status != HF_OK)
        return status;
    status = hf__driver_process(client->driver);
    if (status == HF_EINVAL)
        return hf__fail(error, status, "not opened with own_loop, or another thread is in here");
    return hf__plain(error, status);
}
