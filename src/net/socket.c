/* SPDX-License-Identifier: MIT */
/* TCP and unix sockets behind the transport interface: non-blocking, close-on-exec, no SIGPIPE.
 *
 * A host name may have several addresses; they are tried one after the other. An address that
 * swallows packets uses up the whole connect timeout: then the next attempt starts with the one
 * after it, so that all get their turn. */
#include "net/socket.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/memory.h"
#include "net/lookup.h"

typedef struct connection {
    int descriptor; /* -1: none yet */
    bool established;
    hf__lookup *lookup; /* while looking up */
    struct addrinfo *addresses;
    struct addrinfo *next; /* to be tried */
    unsigned left;         /* how many are to be tried */
} connection;

static atomic_uint first_address; /* which address an attempt starts with */

static void drop_socket(connection *c)
{
    if (c->descriptor >= 0)
        close(c->descriptor);
    c->descriptor = -1;
}

/* 0 when connected at once, HF_WAIT_WRITE while it takes time, or a negative errno. */
static int start_connect(connection *c, const struct sockaddr *address, socklen_t length)
{
    const int on = 1;
    c->descriptor = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (c->descriptor < 0)
        return -errno;
    if (address->sa_family != AF_UNIX) {
        setsockopt(c->descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        setsockopt(c->descriptor, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    }
    if (connect(c->descriptor, address, length) == 0) {
        c->established = true;
        return 0;
    }
    if (errno == EINPROGRESS || errno == EINTR)
        return HF_WAIT_WRITE;
    int failure = errno == EAGAIN ? ECONNREFUSED : errno; /* a unix socket's full backlog */
    drop_socket(c);
    return -failure;
}

static int try_addresses(connection *c, int failure)
{
    while (c->left > 0) {
        struct addrinfo *address = c->next;
        c->left--;
        c->next = address->ai_next != NULL ? address->ai_next : c->addresses;
        int result = start_connect(c, address->ai_addr, address->ai_addrlen);
        if (result >= 0)
            return result;
        failure = result;
    }
    return failure;
}

static int use_addresses(connection *c, struct addrinfo *addresses)
{
    unsigned count = 0;
    for (struct addrinfo *a = addresses; a != NULL; a = a->ai_next)
        count++;
    c->addresses = c->next = addresses;
    c->left = count;
    for (unsigned skip = atomic_load(&first_address) % count; skip > 0; skip--)
        c->next = c->next->ai_next;
    return try_addresses(c, -EHOSTUNREACH);
}

static void close_connection(void *arg)
{
    connection *c = arg;
    if (c->descriptor >= 0 && !c->established)
        atomic_fetch_add(&first_address, 1);
    drop_socket(c);
    hf__lookup_end(c->lookup);
    if (c->addresses != NULL)
        freeaddrinfo(c->addresses);
    hf__free(c);
}

static int open_unix(connection *c, const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = strlen(path);
    if (length >= sizeof(address.sun_path))
        return -ENAMETOOLONG;
    memcpy(address.sun_path, path, length + 1);
    return start_connect(c, (struct sockaddr *)&address, sizeof(address));
}

static int open_tcp(connection *c, const char *host, int port)
{
    struct addrinfo *numeric = hf__lookup_numeric(host, port);
    if (numeric != NULL)
        return use_addresses(c, numeric);
    c->lookup = hf__lookup_start(host, port);
    return c->lookup != NULL ? 0 : -EAGAIN;
}

static int open_connection(void *arg, const hf_endpoint *endpoint, void **result)
{
    (void)arg;
    connection *c = hf__alloc(sizeof(*c));
    if (c == NULL)
        return -ENOMEM;
    c->descriptor = -1;
    int status = endpoint->path != NULL ? open_unix(c, endpoint->path)
                                        : open_tcp(c, endpoint->host, endpoint->port);
    if (status < 0) {
        close_connection(c);
        return status;
    }
    *result = c;
    return 0;
}

static int connecting_failed(connection *c)
{
    int failure = 0;
    socklen_t size = sizeof(failure);
    if (getsockopt(c->descriptor, SOL_SOCKET, SO_ERROR, &failure, &size) != 0)
        failure = errno;
    return failure;
}

/* A socket whose connect has not finished has no error and no peer. */
static int check_socket(connection *c)
{
    struct sockaddr_storage peer;
    socklen_t size = sizeof(peer);
    int failure = connecting_failed(c);
    if (failure != 0) {
        drop_socket(c);
        return try_addresses(c, -failure);
    }
    if (getpeername(c->descriptor, (struct sockaddr *)&peer, &size) != 0)
        return HF_WAIT_WRITE;
    c->established = true;
    return 0;
}

static int is_connected(void *arg)
{
    connection *c = arg;
    struct addrinfo *addresses = NULL;
    if (c->established)
        return 0;
    if (c->lookup == NULL)
        return check_socket(c);
    int status = hf__lookup_result(c->lookup, &addresses);
    if (status == -EAGAIN)
        return HF_WAIT_READ;
    hf__lookup_end(c->lookup);
    c->lookup = NULL;
    return status == 0 ? use_addresses(c, addresses) : status;
}

static int descriptor_of(void *arg)
{
    connection *c = arg;
    return c->lookup != NULL ? hf__lookup_descriptor(c->lookup) : c->descriptor;
}

static int read_bytes(void *arg, void *bytes, size_t capacity)
{
    connection *c = arg;
    ssize_t count;
    do {
        count = recv(c->descriptor, bytes, capacity, 0);
    } while (count < 0 && errno == EINTR);
    return count >= 0 ? (int)count : -errno;
}

static int write_bytes(void *arg, const void *bytes, size_t count)
{
    connection *c = arg;
    ssize_t written;
    do {
        written = send(c->descriptor, bytes, count, MSG_NOSIGNAL);
    } while (written < 0 && errno == EINTR);
    return written >= 0 ? (int)written : -errno;
}

const hf_transport hf__socket_transport = {
    .size = sizeof(hf_transport),
    .open = open_connection,
    .connected = is_connected,
    .descriptor = descriptor_of,
    .read = read_bytes,
    .write = write_bytes,
    .close = close_connection,
};
