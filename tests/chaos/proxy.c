/* SPDX-License-Identifier: MIT */
/* See proxy.h. One process with one loop of poll(2). A connection is two flows (flow.h) and what
 * was ordered for it. Every round: take an order, take new connections, read what may be read, send
 * what is due, end what is over.
 *
 * A stalled connection is not read, not written and not closed, so neither end learns anything: a
 * half-open connection as far as the client can tell. When the stall ends, bytes that the client
 * gave up long ago go on to the server, which is the late copy that the protocol must survive.
 *
 * A descriptor that wants nothing is left out of the poll: poll reports a hang-up whether asked to
 * or not, and the loop would spin for as long as a stalled client is gone.
 */
#include "proxy.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "../lib/process.h"
#include "flow.h"

enum { CONNECTIONS_MAX = 256, LISTENERS = 2, BUSY_ROUND_MS = 2, IDLE_ROUND_MS = 50 };

struct connection {
    bool used;
    int client;
    int server;
    struct flow requests;
    struct flow replies;
    int64_t stalled_until_ns;
    int64_t swallow_ms;   /* from the first swallowed reply to the end */
    int64_t doomed_at_ns; /* 0: not */
};

struct relay {
    const struct chaos *chaos;
    struct chance chance;
    int line;
    int listeners[LISTENERS];
    struct proxy_order order;
    int64_t order_until_ns;
    struct connection connections[CONNECTIONS_MAX];
};

static void count(struct relay *relay, enum fault_kind fault)
{
    (void)atomic_fetch_add(&relay->chaos->board->faults[fault], 1);
}

/* ---- Orders ---------------------------------------------------------------------------------- */

static void delay(struct relay *relay, struct connection *connection, bool jitter)
{
    /* 1: requests, 2: replies, 3: both. */
    int which = chance_between(&relay->chance, 1, 3);
    struct flow *flows[] = {&connection->requests, &connection->replies};
    for (int i = 0; i < 2; i++) {
        if ((which & (1 << i)) == 0)
            continue;
        flows[i]->delay_ns = relay->order.amount * MS_NS;
        flows[i]->jitter = jitter;
        flows[i]->delay_until_ns = relay->order_until_ns;
    }
}

static void stall(struct relay *relay, struct connection *connection)
{
    connection->stalled_until_ns = now_ns() + relay->order.amount * MS_NS;
    count(relay, FAULT_STALLED);
}

static void cut_later(struct relay *relay, struct connection *connection)
{
    bool requests = chance_percent(&relay->chance, 50);
    struct flow *flow = requests ? &connection->requests : &connection->replies;
    flow->cut_after = chance_between(&relay->chance, 1, relay->order.amount);
}

static void heal(struct connection *connection)
{
    connection->stalled_until_ns = 0;
    connection->replies.swallow = connection->replies.swallowed;
    flow_hurry(&connection->requests);
    flow_hurry(&connection->replies);
}

static void trouble(struct relay *relay, struct connection *connection)
{
    if (connection->requests.subscribes)
        count(relay, FAULT_OF_SUBSCRIPTIONS);
    switch (relay->order.trouble) {
    case TROUBLE_DELAY:
    case TROUBLE_JITTER:
        delay(relay, connection, relay->order.trouble == TROUBLE_JITTER);
        break;
    case TROUBLE_STALL:
        stall(relay, connection);
        break;
    case TROUBLE_CUT:
        cut_later(relay, connection);
        break;
    case TROUBLE_SWALLOW:
        connection->replies.swallow = true;
        connection->swallow_ms = chance_between(&relay->chance, 0, relay->order.amount);
        break;
    case TROUBLE_NONE:
    case TROUBLE_REFUSE:
        break;
    }
}

static bool concerns(struct relay *relay, const struct connection *connection)
{
    if (relay->order.subscriptions)
        return connection->requests.subscribes;
    return chance_percent(&relay->chance, relay->order.share_percent);
}

static void take_order(struct relay *relay)
{
    if (recv(relay->line, &relay->order, sizeof(relay->order), 0) != (ssize_t)sizeof(relay->order))
        _exit(0); /* the driver is gone */
    relay->order_until_ns = now_ns() + relay->order.lasts_ms * MS_NS;
    for (int i = 0; i < CONNECTIONS_MAX; i++) {
        struct connection *connection = &relay->connections[i];
        if (!connection->used)
            continue;
        if (relay->order.trouble == TROUBLE_NONE)
            heal(connection);
        else if (concerns(relay, connection))
            trouble(relay, connection);
    }
}

/* ---- Connections ----------------------------------------------------------------------------- */

/* A reset, so that the peer also learns of lost bytes by an error and not only by an end. */
static void reset(int descriptor)
{
    const struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    (void)setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    (void)close(descriptor);
}

static void end(struct relay *relay, struct connection *connection)
{
    flow_end(&connection->requests);
    flow_end(&connection->replies);
    if (chance_percent(&relay->chance, 50))
        reset(connection->client);
    else
        (void)close(connection->client);
    (void)close(connection->server);
    connection->used = false;
}

/* -1: there is no server now. */
static int connect_server(const struct chaos *chaos)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", chaos->server_socket);
    int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (descriptor >= 0 && connect(descriptor, (struct sockaddr *)&address, sizeof(address)) != 0) {
        (void)close(descriptor);
        return -1;
    }
    return descriptor;
}

static struct connection *unused(struct relay *relay)
{
    for (int i = 0; i < CONNECTIONS_MAX; i++)
        if (!relay->connections[i].used)
            return &relay->connections[i];
    return NULL;
}

static void take_connection(struct relay *relay, int listener)
{
    const int yes = 1;
    int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (client < 0)
        return;
    (void)setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes)); /* not on unix: fine */
    bool troubled = now_ns() < relay->order_until_ns && !relay->order.subscriptions &&
                    chance_percent(&relay->chance, relay->order.share_percent);
    struct connection *connection = unused(relay);
    int server = -1;
    if (troubled && relay->order.trouble == TROUBLE_REFUSE)
        count(relay, FAULT_REFUSED);
    else if (connection != NULL)
        server = connect_server(relay->chaos);
    if (server < 0) {
        reset(client);
        return;
    }
    *connection = (struct connection){.used = true, .client = client, .server = server};
    flow_begin(&connection->requests, client, server);
    flow_begin(&connection->replies, server, client);
    if (troubled)
        trouble(relay, connection);
}

/* ---- A round --------------------------------------------------------------------------------- */

static bool stalled(const struct connection *connection, int64_t now)
{
    return now < connection->stalled_until_ns;
}

/* Sends what is due, and ends the connection when it is over one way or the other. */
static void advance(struct relay *relay, struct connection *connection, int64_t now)
{
    connection->stalled_until_ns = 0;
    flow_deliver(&connection->requests, now);
    flow_deliver(&connection->replies, now);
    if (connection->replies.swallowed && connection->doomed_at_ns == 0) {
        connection->doomed_at_ns = now + connection->swallow_ms * MS_NS;
        count(relay, FAULT_REPLIES_DROPPED);
    }
    bool cut = flow_is_cut(&connection->requests) || flow_is_cut(&connection->replies);
    bool doomed = connection->doomed_at_ns != 0 && now >= connection->doomed_at_ns;
    if (cut)
        count(relay, FAULT_CUT);
    if (cut || doomed || (connection->requests.closed && connection->replies.closed))
        end(relay, connection);
}

static bool idle(const struct connection *connection)
{
    return connection->requests.first == NULL && connection->replies.first == NULL &&
           connection->stalled_until_ns == 0 && connection->doomed_at_ns == 0;
}

static void ask_for(struct pollfd *asked, const struct flow *flow, bool moving)
{
    asked->fd = moving && flow_wants_bytes(flow) ? flow->from : -1;
    asked->events = POLLIN;
}

static void round_of_poll(struct relay *relay)
{
    static struct pollfd asked[1 + LISTENERS + 2 * CONNECTIONS_MAX];
    struct pollfd *of_flows = asked + 1 + LISTENERS;
    int64_t now = now_ns();
    int patience_ms = IDLE_ROUND_MS;
    asked[0] = (struct pollfd){.fd = relay->line, .events = POLLIN};
    for (int i = 0; i < LISTENERS; i++)
        asked[1 + i] = (struct pollfd){.fd = relay->listeners[i], .events = POLLIN};
    for (int i = 0; i < CONNECTIONS_MAX; i++) {
        const struct connection *connection = &relay->connections[i];
        bool moving = connection->used && !stalled(connection, now);
        ask_for(&of_flows[2 * i], &connection->requests, moving);
        ask_for(&of_flows[2 * i + 1], &connection->replies, moving);
        if (connection->used && !idle(connection))
            patience_ms = BUSY_ROUND_MS;
    }
    (void)poll(asked, sizeof(asked) / sizeof(asked[0]), patience_ms);
    for (int i = 0; i < CONNECTIONS_MAX; i++) {
        struct connection *connection = &relay->connections[i];
        if (of_flows[2 * i].fd >= 0 && of_flows[2 * i].revents != 0)
            flow_read(&connection->requests, &relay->chance, relay->chaos->board);
        if (of_flows[2 * i + 1].fd >= 0 && of_flows[2 * i + 1].revents != 0)
            flow_read(&connection->replies, &relay->chance, relay->chaos->board);
        if (connection->used && !stalled(connection, now_ns()))
            advance(relay, connection, now_ns());
    }
    for (int i = 0; i < LISTENERS; i++)
        if (asked[1 + i].revents != 0)
            take_connection(relay, asked[1 + i].fd);
    if (asked[0].revents != 0)
        take_order(relay);
}

/* ---- Start ----------------------------------------------------------------------------------- */

static int listen_tcp(int *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (descriptor < 0 || bind(descriptor, (struct sockaddr *)&address, size) != 0 ||
        listen(descriptor, 128) != 0 ||
        getsockname(descriptor, (struct sockaddr *)&address, &size) != 0)
        return -1;
    *port = ntohs(address.sin_port);
    return descriptor;
}

static int listen_unix(const char *folder)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/proxy.sock", folder);
    int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (descriptor < 0 || bind(descriptor, (struct sockaddr *)&address, sizeof(address)) != 0 ||
        listen(descriptor, 128) != 0)
        return -1;
    return descriptor;
}

bool proxy_start(struct proxy *proxy, struct chaos *chaos)
{
    static struct relay relay;
    int ends[2];
    relay.listeners[0] = listen_tcp(&proxy->port);
    relay.listeners[1] = listen_unix(chaos->folder);
    if (relay.listeners[0] < 0 || relay.listeners[1] < 0 ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return false;
    pid_t parent = getpid();
    proxy->line = ends[0];
    proxy->pid = fork();
    if (proxy->pid == 0) {
        die_with_parent(parent);
        relay.chaos = chaos;
        relay.line = ends[1];
        relay.chance = chance_for(chaos->seed, 1000000);
        (void)close(ends[0]);
        for (;;)
            round_of_poll(&relay);
    }
    (void)close(ends[1]);
    for (int i = 0; i < LISTENERS; i++)
        (void)close(relay.listeners[i]);
    (void)snprintf(chaos->tcp_url, sizeof(chaos->tcp_url), "redis://127.0.0.1:%d", proxy->port);
    (void)snprintf(chaos->unix_url, sizeof(chaos->unix_url), "unix://%s/proxy.sock", chaos->folder);
    return proxy->pid > 0;
}

bool proxy_order(const struct proxy *proxy, const struct proxy_order *order)
{
    return send(proxy->line, order, sizeof(*order), MSG_NOSIGNAL) == (ssize_t)sizeof(*order);
}
