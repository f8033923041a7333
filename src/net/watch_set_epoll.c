/* SPDX-License-Identifier: MIT */
/* See watch_set.h. An epoll set is all that: one descriptor, level-triggered, and always right, so
 * there is nothing to settle. */
#include "net/watch_set.h"

#include <sys/epoll.h>
#include <unistd.h>

#include "base/memory.h"

struct hf__watch_set {
    int descriptor;
};

hf__watch_set *hf__watch_set_open(void)
{
    hf__watch_set *set = hf__alloc(sizeof(*set));
    if (set == NULL)
        return NULL;
    set->descriptor = epoll_create1(EPOLL_CLOEXEC);
    if (set->descriptor >= 0)
        return set;
    hf__free(set);
    return NULL;
}

bool hf__watch_set_put(hf__watch_set *set, int descriptor, int wait, uint32_t tag)
{
    struct epoll_event entry = {.events = (wait & HF_WAIT_READ ? EPOLLIN : 0U) |
                                          (wait & HF_WAIT_WRITE ? EPOLLOUT : 0U),
                                .data.u32 = tag};
    return epoll_ctl(set->descriptor, EPOLL_CTL_MOD, descriptor, &entry) == 0 ||
           epoll_ctl(set->descriptor, EPOLL_CTL_ADD, descriptor, &entry) == 0;
}

void hf__watch_set_remove(hf__watch_set *set, int descriptor)
{
    epoll_ctl(set->descriptor, EPOLL_CTL_DEL, descriptor, NULL);
}

int hf__watch_set_take(hf__watch_set *set, uint32_t tags[HF__WATCH_MAX])
{
    struct epoll_event ready[HF__WATCH_MAX];
    int count = epoll_wait(set->descriptor, ready, HF__WATCH_MAX, 0);
    for (int i = 0; i < count; i++)
        tags[i] = ready[i].data.u32;
    return count > 0 ? count : 0;
}

int hf__watch_set_descriptor(const hf__watch_set *set)
{
    return set->descriptor;
}

void hf__watch_set_settle(hf__watch_set *set)
{
    (void)set;
}

/* The descriptor is our own copy, in a child too. */
void hf__watch_set_close(hf__watch_set *set, bool forked)
{
    (void)forked;
    if (set == NULL)
        return;
    close(set->descriptor);
    hf__free(set);
}
