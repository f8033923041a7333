/* SPDX-License-Identifier: MIT */
/* A driver's birth and death. It is born with a port for each link of its core, and each port knows
 * the server to which it leads; all that is told apart by server is in there (hf__target). It dies
 * in two steps: hf__driver_stop() ends everything that moves, and the memory stays until nobody can
 * come late any more. */
#include "net/engine.h"

#include <sched.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/memory.h"
#include "net/thread.h"

static bool open_descriptors(hf__driver *d)
{
    if (!hf__memory_allowed())
        return false;
    d->kick = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    d->park_kick = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    d->park_timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    return d->kick >= 0 && d->park_kick >= 0 && d->park_timer >= 0 &&
           (!d->own_loop || hf__loop_open(d));
}

static void close_descriptors(hf__driver *d)
{
    int *all[] = {&d->kick, &d->park_kick, &d->park_timer};
    hf__loop_close(d); /* first: it looks at the others */
    for (int i = 0; i < 3; i++) {
        if (*all[i] >= 0)
            close(*all[i]);
        *all[i] = -1;
    }
}

/* A machine with more processors than the set has room for has more than one. */
static bool has_one_processor(void)
{
    cpu_set_t processors;
    return sched_getaffinity(0, sizeof(processors), &processors) == 0 &&
           CPU_COUNT(&processors) == 1;
}

static void aim(hf__target *target, const hf__url *url, const hf_transport *transport)
{
    target->url = url;
    target->endpoint = (hf_endpoint){url->host, url->port, url->path};
    memcpy(&target->transport, transport, transport->size);
}

static bool make_ports(hf__driver *d, const hf__driver_config *config)
{
    int links = hf__core_links(d->core);
    d->targets = hf__alloc((size_t)config->core.server_count * sizeof(*d->targets));
    d->ports = hf__alloc((size_t)links * sizeof(*d->ports));
    if (d->targets == NULL || d->ports == NULL)
        return false;
    for (int i = 0; i < config->core.server_count; i++)
        aim(&d->targets[i], &config->core.servers[i], config->transports[i]);
    d->link_count = links;
    for (int i = 0; i < links; i++)
        d->ports[i].target = &d->targets[hf__core_server(d->core, i)];
    return true;
}

static void free_parts(hf__driver *d)
{
    hf__free(d->ports);
    hf__free(d->targets);
    hf__free(d);
}

static void warn_of_two(hf__driver *d, int server_count)
{
    if (server_count != 2)
        return;
    pthread_mutex_lock(&d->mutex);
    hf__engine_log(d, HF_LOG_WARNING,
                   "two servers add no availability: both are needed; use three");
    hf__engine_unlock(d);
}

hf__driver *hf__driver_new(const hf__driver_config *config)
{
    hf__driver *d = hf__alloc(sizeof(*d));
    if (d == NULL || !hf__fork_guard_add(&d->fork_guard, &d->mutex)) {
        hf__free(d);
        return NULL;
    }
    d->kick = d->park_kick = d->park_timer = -1;
    d->own_loop = config->own_loop;
    d->has_one_processor = has_one_processor();
    hf__operations_init(d);
    d->secret = config->secret;
    d->log = config->log;
    d->log_arg = config->log_arg;
    d->parked_until = HF__NEVER;
    hf__list_init(&d->waiters);
    hf__list_init(&d->woken);
    pthread_cond_init(&d->quiet, NULL);
    pthread_cond_init(&d->news, NULL);
    pthread_cond_init(&d->told, NULL);
    d->core = hf__core_new(&config->core);
    if (d->core != NULL && make_ports(d, config) && open_descriptors(d) &&
        (d->own_loop || hf__thread_start(&d->background, hf__engine_run_background, d))) {
        warn_of_two(d, config->core.server_count);
        return d;
    }
    hf__fork_guard_remove(&d->fork_guard);
    hf__core_free(d->core);
    close_descriptors(d);
    free_parts(d);
    return NULL;
}

/* The parent's connections and threads are not ours to end: only our copies of the descriptors. */
static void take_apart(hf__driver *d)
{
    hf__engine_close_ports(d);
    hf__core_free(d->core);
    d->core = NULL;
    hf__operations_drop(d);
    close_descriptors(d);
}

void hf__driver_stop(hf__driver *d)
{
    if (hf__driver_is_torn(d))
        return;
    pthread_mutex_lock(&d->mutex);
    d->stopped = true;
    d->background_ends = true;
    if (!hf__fork_is_child(&d->fork_guard)) {
        eventfd_write(d->park_kick, 1);
        eventfd_write(d->kick, 1);
        while (d->inside > 0)
            pthread_cond_wait(&d->quiet, &d->mutex);
        pthread_mutex_unlock(&d->mutex);
        if (!d->own_loop)
            pthread_join(d->background, NULL);
        pthread_mutex_lock(&d->mutex);
        hf__operations_end(d);
        hf__engine_stop_teller(d);
    }
    take_apart(d);
    pthread_mutex_unlock(&d->mutex);
}

void hf__driver_free(hf__driver *d)
{
    hf__fork_guard_remove(&d->fork_guard);
    if (!hf__fork_is_child(
            &d->fork_guard)) { /* it would wait for the parent's threads, which wait on these */
        pthread_cond_destroy(&d->told);
        pthread_cond_destroy(&d->news);
        pthread_cond_destroy(&d->quiet);
    }
    pthread_mutex_destroy(&d->mutex);
    free_parts(d);
}
