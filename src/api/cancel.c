/* SPDX-License-Identifier: MIT */
/* A cancel keeps a list of the calls that run under it. Firing goes through the list and asks each
 * driver to end its call, without holding the cancel's own mutex: a log hook may run meanwhile, and
 * may want to use this cancel. The call that is being ended is marked, and cannot leave the list
 * (and its thread's stack) before that is over. */
#include "api/client.h"

#include <pthread.h>

#include "base/memory.h"

struct hf_cancel {
    pthread_mutex_t mutex;
    pthread_cond_t told; /* an entry is no longer being told */
    bool fired;
    hf__list calls;
};

hf_cancel *hf_cancel_new(void)
{
    hf_cancel *cancel = hf__alloc(sizeof(*cancel));
    if (cancel == NULL)
        return NULL;
    pthread_mutex_init(&cancel->mutex, NULL);
    pthread_cond_init(&cancel->told, NULL);
    hf__list_init(&cancel->calls);
    return cancel;
}

void hf_cancel_free(hf_cancel *cancel)
{
    if (cancel == NULL)
        return;
    pthread_cond_destroy(&cancel->told);
    pthread_mutex_destroy(&cancel->mutex);
    hf__free(cancel);
}

/* The next call that does not know yet; NULL: none. */
static hf__cancel_entry *next_untold(const hf_cancel *cancel)
{
    hf__node *node = hf__list_first(&cancel->calls);
    while (node != NULL && HF__ENTRY(node, hf__cancel_entry, node)->told)
        node = hf__list_next(&cancel->calls, node);
    return node != NULL ? HF__ENTRY(node, hf__cancel_entry, node) : NULL;
}

void hf_cancel_fire(hf_cancel *cancel)
{
    hf__cancel_entry *entry;
    if (cancel == NULL)
        return;
    pthread_mutex_lock(&cancel->mutex);
    cancel->fired = true;
    while ((entry = next_untold(cancel)) != NULL) {
        entry->told = entry->being_told = true;
        pthread_mutex_unlock(&cancel->mutex);
        hf__driver_cancel(entry->driver, entry->call);
        pthread_mutex_lock(&cancel->mutex);
        entry->being_told = false;
        pthread_cond_broadcast(&cancel->told);
    }
    pthread_mutex_unlock(&cancel->mutex);
}

void hf__cancel_attach(hf_cancel *cancel, hf__cancel_entry *entry)
{
    if (cancel == NULL)
        return;
    pthread_mutex_lock(&cancel->mutex);
    entry->call->cancelled = entry->told = cancel->fired;
    hf__list_append(&cancel->calls, &entry->node);
    pthread_mutex_unlock(&cancel->mutex);
}

void hf__cancel_detach(hf_cancel *cancel, hf__cancel_entry *entry)
{
    if (cancel == NULL)
        return;
    pthread_mutex_lock(&cancel->mutex);
    while (entry->being_told)
        pthread_cond_wait(&cancel->told, &cancel->mutex);
    hf__list_remove(&cancel->calls, &entry->node);
    pthread_mutex_unlock(&cancel->mutex);
}
