/* SPDX-License-Identifier: MIT */
/* See delay.h. Each direction of each connection is a line of parcels: what one read has brought,
 * with the moment at which it is due at the other end. Parcels leave in the order in which they
 * came, so the time from reading to writing is the delay, however many are on their way; whoever
 * finds a line full is not read from until there is room.
 *
 * A connection ends, both ways, as soon as one end hangs up: nobody here relies on the last words
 * of one who has gone. A connection that does not fit is not accepted, and waits. Requests and
 * replies are small against what a socket takes, so a write that does not take all of a parcel is
 * rare, and the rest of it goes later. */
#include "delay.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "numbers.h"
#include "process.h"

enum { CONNECTIONS_MAX = 16, PARCELS_MAX = 64, PARCEL_SIZE = 16384, BACKLOG = 16 };

struct parcel {
    int64_t due_ns;
    size_t length, written;
    char bytes[PARCEL_SIZE];
};

struct line { /* a ring */
    struct parcel parcels[PARCELS_MAX];
    size_t first, count;
};

struct connection {
    int ends[2];           /* client, server; -1: there is none */
    struct line *lines[2]; /* what came from that end, for the other one */
};

struct far { /* the process */
    int listener;
    int64_t delay_ns;
    const struct server *server;
    struct connection connections[CONNECTIONS_MAX];
};

/* ---- Connections ---- */

static bool make_address(const char *path, struct sockaddr_un *address)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address->sun_path)
        return false;
    memcpy(address->sun_path, path, strlen(path));
    return true;
}

static int connect_to(const char *path)
{
    struct sockaddr_un address;
    int end = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (end >= 0 && make_address(path, &address) &&
        connect(end, (struct sockaddr *)&address, sizeof address) == 0)
        return end;
    if (end >= 0)
        close(end);
    return -1;
}

static void connection_close(struct connection *connection)
{
    for (int i = 0; i < 2; i++) {
        if (connection->ends[i] >= 0)
            close(connection->ends[i]);
        free(connection->lines[i]);
    }
    *connection = (struct connection){.ends = {-1, -1}};
}

static void connection_open(struct far *far, struct connection *connection)
{
    connection->ends[0] = accept(far->listener, NULL, NULL);
    connection->ends[1] = connection->ends[0] >= 0 ? connect_to(far->server->socket_path) : -1;
    for (int i = 0; i < 2; i++)
        connection->lines[i] = calloc(1, sizeof *connection->lines[i]);
    if (connection->ends[1] < 0 || connection->lines[0] == NULL || connection->lines[1] == NULL)
        connection_close(connection);
}

static struct connection *find_free(struct far *far)
{
    for (int i = 0; i < CONNECTIONS_MAX; i++)
        if (far->connections[i].ends[0] < 0)
            return &far->connections[i];
    return NULL;
}

/* ---- Parcels ---- */

static bool is_full(const struct line *line)
{
    return line->count == PARCELS_MAX;
}

/* False: that end is gone. */
static bool take_in(struct line *line, int from, int64_t due_ns)
{
    struct parcel *parcel = &line->parcels[(line->first + line->count) % PARCELS_MAX];
    ssize_t length = recv(from, parcel->bytes, PARCEL_SIZE, MSG_DONTWAIT);
    if (length <= 0)
        return length < 0 && (errno == EAGAIN || errno == EINTR);
    parcel->length = (size_t)length;
    parcel->written = 0;
    parcel->due_ns = due_ns;
    line->count++;
    return true;
}

/* Whatever is due and fits; false: that end is gone. */
static bool hand_out(struct line *line, int to)
{
    while (line->count > 0 && line->parcels[line->first].due_ns <= now_ns()) {
        struct parcel *parcel = &line->parcels[line->first];
        ssize_t written = send(to, parcel->bytes + parcel->written,
                               parcel->length - parcel->written, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (written < 0)
            return errno == EAGAIN || errno == EINTR;
        parcel->written += (size_t)written;
        if (parcel->written < parcel->length)
            return true;
        line->first = (line->first + 1) % PARCELS_MAX;
        line->count--;
    }
    return true;
}

/* ---- The process ---- */

/* One entry for the listener, then two for each connection. Waits until something can be read or is
 * due; a socket that takes nothing for the moment is tried again a millisecond later. */
static void wait_for_work(struct far *far, struct pollfd *entries)
{
    int64_t now = now_ns(), pause_ns = INT64_MAX;
    entries[0] = (struct pollfd){.fd = find_free(far) != NULL ? far->listener : -1};
    entries[0].events = POLLIN;
    for (int i = 0; i < 2 * CONNECTIONS_MAX; i++) {
        const struct connection *connection = &far->connections[i / 2];
        const struct line *line = connection->lines[i % 2];
        bool reads = line != NULL && !is_full(line);
        entries[1 + i] =
            (struct pollfd){.fd = reads ? connection->ends[i % 2] : -1, .events = POLLIN};
        if (line == NULL || line->count == 0)
            continue;
        int64_t left_ns = line->parcels[line->first].due_ns - now;
        left_ns = left_ns > 0 ? left_ns : 1000000;
        pause_ns = left_ns < pause_ns ? left_ns : pause_ns;
    }
    struct timespec pause = {.tv_sec = (time_t)(pause_ns / 1000000000),
                             .tv_nsec = (long)(pause_ns % 1000000000)};
    if (ppoll(entries, 1 + 2 * CONNECTIONS_MAX, pause_ns == INT64_MAX ? NULL : &pause, NULL) < 0)
        for (int i = 0; i <= 2 * CONNECTIONS_MAX; i++)
            entries[i].revents = 0;
}

static void serve(struct far *far, struct connection *connection, const struct pollfd *entries)
{
    bool alive = true;
    int64_t due_ns = now_ns() + far->delay_ns;
    for (int i = 0; alive && i < 2; i++)
        if (entries[i].revents != 0)
            alive = take_in(connection->lines[i], connection->ends[i], due_ns);
    for (int i = 0; alive && i < 2; i++)
        alive = hand_out(connection->lines[i], connection->ends[1 - i]);
    if (!alive)
        connection_close(connection);
}

static void run(struct far *far)
{
    struct pollfd entries[1 + 2 * CONNECTIONS_MAX];
    for (int i = 0; i < CONNECTIONS_MAX; i++)
        far->connections[i] = (struct connection){.ends = {-1, -1}};
    for (;;) {
        wait_for_work(far, entries);
        for (int i = 0; i < CONNECTIONS_MAX; i++)
            if (far->connections[i].ends[0] >= 0)
                serve(far, &far->connections[i], &entries[1 + 2 * i]);
        struct connection *vacant = find_free(far);
        if (entries[0].revents != 0 && vacant != NULL)
            connection_open(far, vacant);
    }
}

/* ---- From outside ---- */

static int listen_at(const char *path, struct result *result)
{
    struct sockaddr_un address;
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener >= 0 && make_address(path, &address) &&
        bind(listener, (struct sockaddr *)&address, sizeof address) == 0 &&
        listen(listener, BACKLOG) == 0)
        return listener;
    result_fail(result, "no socket at %s: %s", path, strerror(errno));
    if (listener >= 0)
        close(listener);
    return -1;
}

/* It listens before it is forked off, so clients need not wait for it. Its socket goes with the
 * server's folder. */
bool delay_start(struct delay *delay, const struct server *server, int64_t delay_ns,
                 struct server *door, struct result *result)
{
    *door = *server;
    snprintf(door->socket_path, sizeof door->socket_path, "%s/far.sock", server->folder);
    struct far far = {.delay_ns = delay_ns, .server = server};
    far.listener = listen_at(door->socket_path, result);
    if (far.listener < 0)
        return false;
    delay->pid = process_fork();
    if (delay->pid == 0)
        run(&far);
    close(far.listener);
    if (delay->pid > 0)
        return true;
    delay->pid = 0;
    return result_fail(result, "fork: %s", strerror(errno));
}

void delay_stop(struct delay *delay)
{
    process_kill(delay->pid);
    delay->pid = 0;
}
