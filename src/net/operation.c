/* SPDX-License-Identifier: MIT */
/* Operations: calls for which no thread waits. Each is in the driver's table from its start until
 * it is about to be told, so that it can be cancelled by its number; when the core is done with it,
 * it joins the finished ones. Those are told in one go: the teller (or hf_process(), or at last
 * hf_close()) takes the whole list, and lets go of the mutex once for all of them. What listens to
 * a hold hears nothing before that, so that a loss is never told before the grant.
 *
 * An operation that was admitted is told exactly once. Only in a child after fork() nobody is told
 * anything, and hf_close() there drops them; but not those that the parent was telling just then:
 * they belonged to a thread that the child does not have, in whatever state that had them. */
#include "core/fail.h"
#include "net/engine.h"

enum { OPERATIONS_MAX = HF_OPERATIONS_MAX };

static hf__list *bucket_of(hf__driver *d, uint64_t number)
{
    return &d->operations[number % HF__OPERATION_BUCKETS];
}

void hf__operations_init(hf__driver *d)
{
    for (int i = 0; i < HF__OPERATION_BUCKETS; i++)
        hf__list_init(&d->operations[i]);
    hf__list_init(&d->finished);
    hf__list_init(&d->being_told);
}

hf_status hf__operation_admit(hf__driver *d, hf__operation *operation)
{
    bool release = operation->call.kind == HF__CALL_RELEASE; /* must not be turned away */
    if (d->operation_count >= OPERATIONS_MAX && !release)
        return HF_EUNAVAILABLE;
    if (!hf__engine_start_teller(d))
        return HF_ENOMEM;
    operation->call.is_operation = true;
    operation->number = ++d->last_operation;
    hf__list_append(bucket_of(d, operation->number), &operation->node);
    d->operation_count++;
    return HF_OK;
}

hf__operation *hf__operation_find(hf__driver *d, uint64_t number)
{
    hf__list *bucket = bucket_of(d, number);
    for (hf__node *n = hf__list_first(bucket); n != NULL; n = hf__list_next(bucket, n))
        if (HF__ENTRY(n, hf__operation, node)->number == number)
            return HF__ENTRY(n, hf__operation, node);
    return NULL;
}

void hf__operation_finished(hf__driver *d, hf__call *call)
{
    hf__list_append(&d->finished, &HF__ENTRY(call, hf__operation, call)->finished);
}

bool hf__operations_under_way(const hf__driver *d)
{
    return d->operation_count > d->finished.count;
}

static hf__operation *take_first(hf__list *finished)
{
    hf__node *node = hf__list_first(finished);
    hf__list_remove(finished, node);
    return HF__ENTRY(node, hf__operation, finished);
}

static void leave_table(hf__driver *d, hf__operation *operation)
{
    hf__list_remove(bucket_of(d, operation->number), &operation->node);
    d->operation_count--;
}

static bool was_granted(const hf__call *call)
{
    return call->kind == HF__CALL_ACQUIRE && call->error.status == HF_OK;
}

void hf__operations_tell(hf__driver *d)
{
    while (d->finished.count > 0) {
        hf__operation *operation = take_first(&d->finished);
        leave_table(d, operation);
        hf__list_append(&d->being_told, &operation->finished);
        if (was_granted(&operation->call))
            hf__hold_listen(operation->call.hold);
    }
    hf__engine_unlock(d);
    while (d->being_told.count > 0 && !hf__fork_is_child(&d->fork_guard)) {
        hf__operation *operation = take_first(&d->being_told);
        operation->tell(operation);
    }
    pthread_mutex_lock(&d->mutex);
}

/* The core is not stepped any more, so nothing else will end them. It has ended them all when it
 * was closed; this is for the promise that each is told. */
void hf__operations_end(hf__driver *d)
{
    for (int i = 0; i < HF__OPERATION_BUCKETS; i++) {
        hf__list *bucket = &d->operations[i];
        for (hf__node *n = hf__list_first(bucket); n != NULL; n = hf__list_next(bucket, n)) {
            hf__operation *operation = HF__ENTRY(n, hf__operation, node);
            if (operation->call.done)
                continue;
            operation->call.done = true;
            hf__fail(&operation->call.error, HF_ECLOSED, "the client was closed");
            hf__operation_finished(d, &operation->call);
        }
    }
}

void hf__operations_drop(hf__driver *d)
{
    hf__node *node;
    for (int i = 0; i < HF__OPERATION_BUCKETS; i++)
        while ((node = hf__list_first(&d->operations[i])) != NULL) {
            hf__operation *operation = HF__ENTRY(node, hf__operation, node);
            leave_table(d, operation);
            operation->drop(operation);
        }
}
