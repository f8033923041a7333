/* SPDX-License-Identifier: MIT */
/* getaddrinfo() can take many seconds and cannot be interrupted. So it runs on a thread that nobody
 * waits for: the job is shared by that thread and the connection that asked, and the last of the
 * two to let go frees it. A connection that is closed meanwhile just forgets the job; so that a
 * resolver that hangs cannot pile up threads, only RUNNING_MAX of them run in a process. */
#include "net/lookup.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "net/thread.h"

struct hf__lookup {
    atomic_int users;
    atomic_bool finished;
    int descriptor;
    char port[8];
    struct addrinfo *addresses; /* NULL after failure; the thread's until finished */
    char host[];
};

enum { RUNNING_MAX = 32 }; /* enough for all servers of a client, and two links to each */

static atomic_int running; /* threads, also those that nobody waits for any more */

static int resolve(const char *host, const char *port, int flags, struct addrinfo **addresses)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = flags | AI_NUMERICSERV};
    return getaddrinfo(host, port, &hints, addresses);
}

struct addrinfo *hf__lookup_numeric(const char *host, int port)
{
    struct addrinfo *addresses = NULL;
    char digits[8];
    hf__format(digits, sizeof(digits), "%d", port);
    return resolve(host, digits, AI_NUMERICHOST, &addresses) == 0 ? addresses : NULL;
}

void hf__lookup_end(hf__lookup *lookup)
{
    if (lookup == NULL || atomic_fetch_sub(&lookup->users, 1) > 1)
        return;
    if (lookup->addresses != NULL)
        freeaddrinfo(lookup->addresses);
    close(lookup->descriptor);
    hf__free(lookup);
}

static void *run(void *arg)
{
    hf__lookup *lookup = arg;
    if (resolve(lookup->host, lookup->port, 0, &lookup->addresses) != 0)
        lookup->addresses = NULL;
    atomic_store(&lookup->finished, true);
    eventfd_write(lookup->descriptor, 1);
    hf__lookup_end(lookup);
    atomic_fetch_sub(&running, 1);
    return NULL;
}

hf__lookup *hf__lookup_start(const char *host, int port)
{
    pthread_t thread;
    hf__lookup *lookup = hf__alloc(sizeof(*lookup) + strlen(host) + 1);
    if (lookup == NULL)
        return NULL;
    memcpy(lookup->host, host, strlen(host) + 1);
    hf__format(lookup->port, sizeof(lookup->port), "%d", port);
    lookup->descriptor = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    lookup->users = 2;
    bool allowed = atomic_fetch_add(&running, 1) < RUNNING_MAX;
    if (allowed && lookup->descriptor >= 0 && hf__thread_start(&thread, run, lookup)) {
        pthread_detach(thread);
        return lookup;
    }
    atomic_fetch_sub(&running, 1);
    if (lookup->descriptor >= 0)
        close(lookup->descriptor);
    hf__free(lookup);
    return NULL;
}

int hf__lookup_descriptor(const hf__lookup *lookup)
{
    return lookup->descriptor;
}

int hf__lookup_result(hf__lookup *lookup, struct addrinfo **addresses)
{
    if (!atomic_load(&lookup->finished))
        return -EAGAIN;
    *addresses = lookup->addresses;
    lookup->addresses = NULL;
    return *addresses != NULL ? 0 : -ENXIO;
}
