/* SPDX-License-Identifier: MIT */
/* After fork() the child has a copy of every client but none of their threads, and shares the
 * parent's sockets: using them there would mix two processes' requests on one connection. So the
 * child only gets to know that it is one. The mutexes are taken before the fork and given back on
 * both sides; otherwise the child might inherit a driver in the middle of a step and could not
 * even free it. */
#include "net/fork.h"

static pthread_mutex_t registry_mutex = PTHREAD_MUTEX_INITIALIZER;
static hf__list registry;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool registered;

static hf__fork_guard *guard_of(hf__node *node)
{
    return HF__ENTRY(node, hf__fork_guard, node);
}

static void before_fork(void)
{
    pthread_mutex_lock(&registry_mutex);
    for (hf__node *n = hf__list_first(&registry); n != NULL; n = hf__list_next(&registry, n))
        pthread_mutex_lock(guard_of(n)->mutex);
}

static void after_fork_in_parent(void)
{
    for (hf__node *n = hf__list_first(&registry); n != NULL; n = hf__list_next(&registry, n))
        pthread_mutex_unlock(guard_of(n)->mutex);
    pthread_mutex_unlock(&registry_mutex);
}

static void after_fork_in_child(void)
{
    for (hf__node *n = hf__list_first(&registry); n != NULL; n = hf__list_next(&registry, n))
        guard_of(n)->forked = true;
    after_fork_in_parent();
}

static void register_handlers(void)
{
    hf__list_init(&registry);
    registered = pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) == 0;
}

bool hf__fork_guard_add(hf__fork_guard *guard, pthread_mutex_t *mutex)
{
    pthread_once(&once, register_handlers);
    if (!registered)
        return false;
    guard->mutex = mutex;
    pthread_mutex_lock(&registry_mutex);
    hf__list_append(&registry, &guard->node);
    pthread_mutex_unlock(&registry_mutex);
    return true;
}

void hf__fork_guard_remove(hf__fork_guard *guard)
{
    pthread_mutex_lock(&registry_mutex);
    hf__list_remove(&registry, &guard->node);
    pthread_mutex_unlock(&registry_mutex);
}
