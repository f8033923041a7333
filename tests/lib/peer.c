/* SPDX-License-Identifier: MIT */
/* See peer.h. The listening socket is made by the test and inherited by the peer's process: the
 * port is known, and open, before anybody can connect. The peer runs plain blocking socket calls;
 * it ends by SIGKILL, from peer_end_all() or with its parent.
 */
#include "peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PEERS_MAX = 8, FLOOD_BYTES = 64 * 1024 };

static struct peer peers[PEERS_MAX];
static size_t peer_count;

/* ---- The peer's side ------------------------------------------------------------------------- */

static bool send_all(int connection, const char *bytes, size_t count)
{
    while (count > 0) {
        ssize_t sent = send(connection, bytes, count, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return false;
        bytes += sent;
        count -= (size_t)sent;
    }
    return true;
}

/* Sends `text` again and again, many copies at a time: a flood has to be faster than its victim. */
static void flood(int connection, const char *text)
{
    static char copies[FLOOD_BYTES];
    size_t length = strlen(text);
    size_t filled = 0;
    while (filled + length <= sizeof(copies)) {
        memcpy(copies + filled, text, length);
        filled += length;
    }
    while (send_all(connection, copies, filled))
        ;
}

static void serve(int connection, const struct peer_script *script)
{
    char request[4096];
    if (recv(connection, request, sizeof(request), 0) <= 0)
        return;
    if (script->says != NULL && !send_all(connection, script->says, strlen(script->says)))
        return;
    if (script->repeats != NULL)
        flood(connection, script->repeats);
    if (script->ending == PEER_HANGS_UP)
        return;
    while (recv(connection, request, sizeof(request), 0) > 0)
        ;
}

static void run_peer(int listener, const struct peer_script *script)
{
    for (;;) {
        int connection = accept(listener, NULL, NULL);
        if (connection < 0)
            continue;
        serve(connection, script);
        (void)close(connection);
    }
}

/* ---- The test's side ------------------------------------------------------------------------- */

static struct peer *peer_new(struct sockaddr_in *address)
{
    socklen_t size = sizeof(*address);
    *address =
        (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_true(peer_count < PEERS_MAX);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(listener >= 0);
    struct peer *peer = &peers[peer_count++];
    *peer = (struct peer){.listener = listener};
    assert_int_equal(bind(listener, (struct sockaddr *)address, size), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)address, &size), 0);
    peer->port = ntohs(address->sin_port);
    (void)snprintf(peer->url, sizeof(peer->url), "redis://127.0.0.1:%d", peer->port);
    return peer;
}

struct peer *peer_start(const struct peer_script *script)
{
    struct sockaddr_in address;
    struct peer *peer = peer_new(&address);
    assert_int_equal(listen(peer->listener, 64), 0);
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0) {
        die_with_parent(parent);
        run_peer(peer->listener, script);
        _exit(0);
    }
    assert_true(pid > 0);
    peer->pid = pid;
    return peer;
}

struct peer *peer_start_refusing(void)
{
    struct sockaddr_in address;
    return peer_new(&address);
}

static bool connects_within(int descriptor, int bound_ms)
{
    struct pollfd writable = {.fd = descriptor, .events = POLLOUT};
    return poll(&writable, 1, bound_ms) > 0;
}

struct peer *peer_start_full(void)
{
    struct sockaddr_in address;
    struct peer *peer = peer_new(&address);
    assert_int_equal(listen(peer->listener, 0), 0);
    while (peer->filler_count < sizeof(peer->fillers) / sizeof(peer->fillers[0])) {
        int filler = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        assert_true(filler >= 0);
        peer->fillers[peer->filler_count++] = filler;
        if (connect(filler, (struct sockaddr *)&address, sizeof(address)) != 0 &&
            !connects_within(filler, 100))
            return peer;
    }
    return NULL;
}

void peer_end_all(void)
{
    for (size_t i = 0; i < peer_count; i++) {
        struct peer *peer = &peers[i];
        int status;
        if (peer->pid != 0) {
            (void)kill(peer->pid, SIGKILL);
            (void)waitpid(peer->pid, &status, 0);
        }
        for (size_t j = 0; j < peer->filler_count; j++)
            (void)close(peer->fillers[j]);
        (void)close(peer->listener);
    }
    peer_count = 0;
}
