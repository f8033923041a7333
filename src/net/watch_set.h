/* SPDX-License-Identifier: MIT */
/* A handful of descriptors behind a single one, which is readable while any of them is ready: what
 * a loop of the application polls.
 *
 * It is written twice. watch_set_epoll.c leaves everything to the kernel. watch_set_poll.c, for
 * systems without epoll, has a thread that only waits; CMake takes it with HOLDFAST_POLL.
 *
 * Calls on one set come one at a time; its user has a mutex for that. In a child after fork() the
 * set is the parent's: nothing but hf__watch_set_close() may be called there. */
#ifndef HF_NET_WATCH_SET_H
#define HF_NET_WATCH_SET_H

#include <stdbool.h>
#include <stdint.h>

#include "holdfast.h"

enum {
    HF__LINKS_MAX = HF_SERVERS_MAX * (HF_LINKS_MAX + 1), /* to all servers of a client */
    HF__WATCH_MAX = HF__LINKS_MAX + 2                    /* connections, a timer, and a kick */
};

typedef struct hf__watch_set hf__watch_set;

hf__watch_set *hf__watch_set_open(void); /* NULL: no memory, descriptor or thread is left */

/* Waits for HF_WAIT_READ, HF_WAIT_WRITE or both on the descriptor from now on, instead of what it
 * was to wait for before. It must be removed before it is closed. False: it cannot be waited for,
 * and is not in the set. */
bool hf__watch_set_put(hf__watch_set *set, int descriptor, int wait, uint32_t tag);
/* When this returns, nobody is looking at the descriptor any more. */
void hf__watch_set_remove(hf__watch_set *set, int descriptor);

/* Fills in the tags of what is ready now, and returns how many there are; never waits. */
int hf__watch_set_take(hf__watch_set *set, uint32_t tags[HF__WATCH_MAX]);

/* The one to poll for reading. It follows what happens outside as fast as the system lets it; what
 * this process has done to the descriptors, such as to read them empty, may be known to it only
 * after hf__watch_set_settle(). */
int hf__watch_set_descriptor(const hf__watch_set *set);
void hf__watch_set_settle(hf__watch_set *set);

void hf__watch_set_close(hf__watch_set *set, bool forked); /* NULL is fine */

#endif
