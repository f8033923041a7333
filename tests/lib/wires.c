/* SPDX-License-Identifier: MIT */
/* See wires.h. One mutex guards all of it. Whatever is allocated here is exempt from the memory
 * gate of the test: it is the library that is to be starved, not its surroundings. */
#include "wires.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

enum { WIRES_MAX = 2 * (HF_LINKS_MAX + 2) };

typedef struct wire {
    bool used;
    bool broken;
    int descriptor;
    int asks;
    int refusals; /* that are left before bytes are taken again */
    hf__buffer to_node;
    hf__buffer to_client;
} wire;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static wires network;
static wire all[WIRES_MAX];

static _Thread_local bool working; /* for the network, not for the library */

bool wires_working(void)
{
    return working;
}

wires *wires_lock(void)
{
    pthread_mutex_lock(&mutex);
    working = true;
    return &network;
}

void wires_unlock(void)
{
    working = false;
    pthread_mutex_unlock(&mutex);
}

void wires_begin(bool with_descriptor)
{
    wires *n = wires_lock();
    memset(n, 0, sizeof(*n));
    memset(all, 0, sizeof(all));
    node_init(&n->node);
    n->with_descriptor = with_descriptor;
    n->cut_after = WIRES_UNLIMITED;
    wires_unlock();
}

static void free_wire(wire *w)
{
    if (w->descriptor >= 0)
        close(w->descriptor);
    node_forget(&network.node, &w->to_client);
    hf__buffer_free(&w->to_node);
    hf__buffer_free(&w->to_client);
    w->used = false;
}

void wires_end(void)
{
    wires_lock();
    for (int i = 0; i < WIRES_MAX; i++)
        if (all[i].used)
            free_wire(&all[i]);
    node_free(&network.node);
    wires_unlock();
}

/* Makes the descriptor say what there is: bytes, an end, or a connection that gets ready. */
static void show(wire *w)
{
    eventfd_t discarded;
    if (w->descriptor < 0)
        return;
    bool connecting = network.connected_plan[w->asks % WIRES_PLAN] != 0 && !network.never_connects;
    bool readable = hf__buffer_length(&w->to_client) > 0 && !network.mute;
    eventfd_read(w->descriptor, &discarded);
    if (readable || connecting || w->broken || network.lies > 0)
        eventfd_write(w->descriptor, 1);
}

void wires_unmute(void)
{
    wires_lock()->mute = false;
    for (int i = 0; i < WIRES_MAX; i++)
        if (all[i].used)
            show(&all[i]);
    wires_unlock();
}

static void tell_time(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    network.node.now_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

bool wires_has_key(const char *name)
{
    struct node *n = &wires_lock()->node;
    tell_time();
    bool has = node_get(n, name) != NULL;
    wires_unlock();
    return has;
}

/* How many of `count` bytes pass before the connection breaks. */
static size_t allowance(wire *w, size_t count)
{
    if (network.cut_after == WIRES_UNLIMITED)
        return count;
    size_t left = (size_t)network.cut_after;
    size_t passed = count < left ? count : left;
    network.cut_after -= (long)passed;
    if (network.cut_after == 0) {
        network.cut_after = WIRES_UNLIMITED;
        network.cuts++;
        w->broken = true;
    }
    return passed;
}

/* ---- The functions of the transport ---- */

static int begin_open(const hf_endpoint *endpoint, void **connection)
{
    network.last_endpoint = *endpoint;
    if (network.open_failure != 0)
        return -network.open_failure;
    for (int i = 0; i < WIRES_MAX; i++) {
        wire *w = &all[i];
        if (w->used)
            continue;
        *w = (wire){.used = true, .descriptor = -1, .refusals = network.write_refusals};
        if (network.with_descriptor)
            w->descriptor = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        network.opens++;
        show(w);
        *connection = w;
        return 0;
    }
    abort(); /* connections are not closed */
}

static int wires_open(void *arg, const hf_endpoint *endpoint, void **connection)
{
    (void)arg;
    wires_lock();
    int status = begin_open(endpoint, connection);
    wires_unlock();
    return status;
}

static int wires_connected(void *connection)
{
    wire *w = connection;
    wires *n = wires_lock();
    n->asks++;
    int status =
        n->connected_failure != 0 ? -n->connected_failure : n->connected_plan[w->asks % WIRES_PLAN];
    if (n->never_connects) {
        status = HF_WAIT_READ;
        n->lies -= n->lies > 0;
    } else if (status > 0) {
        w->asks++;
    }
    show(w);
    wires_unlock();
    return status;
}

static int wires_descriptor(void *connection)
{
    wire *w = connection;
    wires_lock();
    int descriptor = w->descriptor;
    wires_unlock();
    return descriptor;
}

static int take(wire *w, void *bytes, size_t capacity)
{
    size_t count = hf__buffer_length(&w->to_client);
    if (w->broken)
        return -network.cut_failure;
    if (count == 0 || network.mute) {
        network.lies -= network.lies > 0;
        return -EAGAIN;
    }
    count = count < capacity ? count : capacity;
    if (network.read_limit > 0 && count > network.read_limit)
        count = network.read_limit;
    count = allowance(w, count);
    memcpy(bytes, hf__buffer_front(&w->to_client), count);
    hf__buffer_take(&w->to_client, count);
    return (int)count;
}

static int wires_read(void *connection, void *bytes, size_t capacity)
{
    wires_lock();
    int status = take(connection, bytes, capacity);
    show(connection);
    wires_unlock();
    return status;
}

static int give(wire *w, const void *bytes, size_t count)
{
    if (network.write_failure != 0)
        return -network.write_failure;
    if (w->broken)
        return network.cut_failure != 0 ? -network.cut_failure : -EPIPE;
    if (w->refusals > 0) {
        w->refusals--;
        return -EAGAIN;
    }
    w->refusals = network.write_refusals;
    if (network.write_limit > 0 && count > network.write_limit)
        count = network.write_limit;
    count = allowance(w, count);
    if (!hf__buffer_reserve(&w->to_node, count))
        abort();
    hf__buffer_append(&w->to_node, bytes, count);
    tell_time();
    node_work(&network.node, &w->to_node, &w->to_client);
    return (int)count;
}

static int wires_write(void *connection, const void *bytes, size_t count)
{
    wires_lock();
    int status = give(connection, bytes, count);
    for (int i = 0; i < WIRES_MAX; i++) /* what one says may be news for others */
        if (all[i].used)
            show(&all[i]);
    wires_unlock();
    return status;
}

static void wires_close(void *connection)
{
    wires_lock()->closes++;
    free_wire(connection);
    wires_unlock();
}

const hf_transport wires_transport = {.size = sizeof(hf_transport),
                                      .open = wires_open,
                                      .connected = wires_connected,
                                      .descriptor = wires_descriptor,
                                      .read = wires_read,
                                      .write = wires_write,
                                      .close = wires_close};
