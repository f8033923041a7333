/* SPDX-License-Identifier: MIT */
/* See watch_set.h. Without epoll, somebody has to wait for many so that others can wait for one: a
 * thread, the watcher. It does nothing else. When something is ready it raises the flag, an
 * eventfd, which is what the application polls, and then rests until the flag is down again: so
 * what is ready and not yet taken costs no time.
 *
 * The flag is never raised or lowered by hearsay. Whoever does it holds the mutex and has just
 * asked the kernel (settle): the watcher when it wakes up, and the owner of the set after it may
 * have changed what is ready. So a loop that has taken all there is finds the flag down, and the
 * watcher, which is told so, is on the look-out again before the loop can miss anything: what is
 * ready by then ends its poll() at once.
 *
 * The watcher sleeps on a copy of the list, without the mutex. A change of the list wakes it. A
 * removal waits until it has woken up: the kernel keeps open what somebody polls, so a connection
 * that is closed too early would not end; and by then its number might be somebody else's.
 *
 * A forked child has the parent's eventfds but not the parent's watcher, and perhaps a mutex that
 * nobody will ever give back. It closes its copies of the descriptors and touches nothing else. */
#include "net/watch_set.h"

#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/memory.h"
#include "net/thread.h"

struct hf__watch_set {
    pthread_mutex_t mutex;
    pthread_cond_t news; /* the flag was lowered, the watcher woke up, or the end has come */
    pthread_t watcher;
    bool ends;
    bool asleep;    /* the watcher is in poll() */
    uint64_t turns; /* how often it has slept */
    bool raised;    /* the flag is readable */
    int flag;
    int wake; /* eventfd that ends the watcher's sleep */
    int count;
    struct pollfd entries[HF__WATCH_MAX];
    uint32_t tags[HF__WATCH_MAX]; /* of the entries */
};

/* ---- The watcher ---- */

/* Makes the flag say what is so now. */
static void settle(hf__watch_set *set)
{
    eventfd_t discarded;
    bool ready = poll(set->entries, (nfds_t)set->count, 0) > 0;
    if (ready && !set->raised)
        eventfd_write(set->flag, 1);
    if (!ready && set->raised) {
        eventfd_read(set->flag, &discarded);
        pthread_cond_broadcast(&set->news);
    }
    set->raised = ready;
}

static void sleep_on_all(hf__watch_set *set)
{
    struct pollfd entries[HF__WATCH_MAX + 1];
    eventfd_t discarded;
    nfds_t count = (nfds_t)set->count;
    memcpy(entries, set->entries, count * sizeof(*entries));
    entries[count] = (struct pollfd){.fd = set->wake, .events = POLLIN};
    set->asleep = true;
    pthread_mutex_unlock(&set->mutex);
    poll(entries, count + 1, -1);
    pthread_mutex_lock(&set->mutex);
    eventfd_read(set->wake, &discarded);
    set->asleep = false;
    set->turns++;
    pthread_cond_broadcast(&set->news);
}

static void *watch(void *arg)
{
    hf__watch_set *set = arg;
    pthread_mutex_lock(&set->mutex);
    while (!set->ends) {
        if (set->raised) {
            pthread_cond_wait(&set->news, &set->mutex);
        } else {
            sleep_on_all(set);
            settle(set);
        }
    }
    pthread_mutex_unlock(&set->mutex);
    return NULL;
}

/* Its sleep is on a list that does not count any more. */
static void rouse(hf__watch_set *set)
{
    if (set->asleep)
        eventfd_write(set->wake, 1);
}

/* ---- Calls ---- */

static int place_of(const hf__watch_set *set, int descriptor)
{
    int place = 0;
    while (place < set->count && set->entries[place].fd != descriptor)
        place++;
    return place;
}

static bool can_be_polled(int descriptor)
{
    struct pollfd entry = {.fd = descriptor};
    return poll(&entry, 1, 0) >= 0 && !(entry.revents & POLLNVAL);
}

bool hf__watch_set_put(hf__watch_set *set, int descriptor, int wait, uint32_t tag)
{
    int events = (wait & HF_WAIT_READ ? POLLIN : 0) | (wait & HF_WAIT_WRITE ? POLLOUT : 0);
    if (!can_be_polled(descriptor))
        return false;
    pthread_mutex_lock(&set->mutex);
    int place = place_of(set, descriptor);
    bool fits = place < HF__WATCH_MAX;
    if (fits) {
        set->entries[place] = (struct pollfd){.fd = descriptor, .events = (short)events};
        set->tags[place] = tag;
        set->count += place == set->count;
        rouse(set);
    }
    pthread_mutex_unlock(&set->mutex);
    return fits;
}

void hf__watch_set_remove(hf__watch_set *set, int descriptor)
{
    pthread_mutex_lock(&set->mutex);
    int place = place_of(set, descriptor);
    uint64_t turns = set->turns;
    if (place < set->count) {
        set->count--;
        set->entries[place] = set->entries[set->count];
        set->tags[place] = set->tags[set->count];
        rouse(set);
        while (set->asleep && set->turns == turns)
            pthread_cond_wait(&set->news, &set->mutex);
    }
    pthread_mutex_unlock(&set->mutex);
}

int hf__watch_set_take(hf__watch_set *set, uint32_t tags[HF__WATCH_MAX])
{
    int taken = 0;
    pthread_mutex_lock(&set->mutex);
    if (poll(set->entries, (nfds_t)set->count, 0) > 0)
        for (int i = 0; i < set->count; i++)
            if (set->entries[i].revents != 0)
                tags[taken++] = set->tags[i];
    pthread_mutex_unlock(&set->mutex);
    return taken;
}

int hf__watch_set_descriptor(const hf__watch_set *set)
{
    return set->flag;
}

void hf__watch_set_settle(hf__watch_set *set)
{
    pthread_mutex_lock(&set->mutex);
    settle(set);
    pthread_mutex_unlock(&set->mutex);
}

/* ---- Birth and death ---- */

static void close_descriptors(hf__watch_set *set)
{
    if (set->flag >= 0)
        close(set->flag);
    if (set->wake >= 0)
        close(set->wake);
}

static void free_locks(hf__watch_set *set)
{
    pthread_cond_destroy(&set->news);
    pthread_mutex_destroy(&set->mutex);
}

hf__watch_set *hf__watch_set_open(void)
{
    hf__watch_set *set = hf__alloc(sizeof(*set));
    if (set == NULL)
        return NULL;
    set->flag = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    set->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_mutex_init(&set->mutex, NULL);
    pthread_cond_init(&set->news, NULL);
    if (set->flag >= 0 && set->wake >= 0 && hf__thread_start(&set->watcher, watch, set))
        return set;
    free_locks(set);
    close_descriptors(set);
    hf__free(set);
    return NULL;
}

static void end_watcher(hf__watch_set *set)
{
    pthread_mutex_lock(&set->mutex);
    set->ends = true;
    rouse(set);
    pthread_cond_broadcast(&set->news);
    pthread_mutex_unlock(&set->mutex);
    pthread_join(set->watcher, NULL);
}

void hf__watch_set_close(hf__watch_set *set, bool forked)
{
    if (set == NULL)
        return;
    if (!forked) {
        end_watcher(set);
        free_locks(set);
    }
    close_descriptors(set);
    hf__free(set);
}
