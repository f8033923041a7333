/* SPDX-License-Identifier: MIT */
/* A cancel keeps a list of the calls that run under it. Its mutex is taken before a driver's, never
 * the other way round: a call attaches before it enters its driver and detaches after it has left.
 * So a call in the list is alive, and firing may touch it. */
#include "api/client.h"

#include <pthread.h>

#include "base/memory.h"

struct hf_cancel {
    pthread_mutex_t mutex;
    bool fired;
    hf__list calls;
};

hf_cancel *hf_cancel_new(void)
{
    hf_cancel *cancel = hf__alloc(sizeof(*cancel));
    if (cancel == NULL)
        return NULL;
    pthread_mutexattr_t recursive; /* a log hook that runs while firing may fire again */
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&cancel->mutex, &recursive);
    pthread_mutexattr_destroy(&recursive);
    hf__list_init(&cancel->calls);
    return cancel;
}

void hf_cancel_free(hf_cancel *cancel)
{
    if (cancel == NULL)
        return;
    pthread_mutex_destroy(&cancel->mutex);
    hf__free(cancel);
}

void hf_cancel_fire(hf_cancel *cancel)
{
    if (cancel == NULL)
        return;
    pthread_mutex_lock(&cancel->mutex);
    cancel->fired = true;
    hf__node *node = hf__list_first(&cancel->calls);
    while (node != NULL) {
        hf__cancel_entry *entry = HF__ENTRY(node, hf__cancel_entry, node);
        hf__driver_cancel(entry->driver, entry->call);
        node = hf__list_next(&cancel->calls, node);
    }
    pthread_mutex_unlock(&cancel->mutex);
}

void hf__cancel_attach(hf_cancel *cancel, hf__cancel_entry *entry)
{
    if (cancel == NULL)
        return;
    pthread_mutex_lock(&cancel->mutex);
    entry->call->cancelled = cancel->fired;
    hf__list_append(&cancel->calls, &entry->node);
    pthread_mutex_unlock(&cancel->mutex);
}

void hf__cancel_detach(hf_cancel *cancel, hf__cancel_entry *entry)
{
    if (cancel == NULL)
        return;
    pthread_mutex_lock(&cancel->mutex);
    hf__list_remove(&cancel->calls, &entry->node);
    pthread_mutex_unlock(&cancel->mutex);
}
