/* SPDX-License-Identifier: MIT */
/* See relay.h. One loop of poll(2) over pairs of blocking sockets: what comes from one end is sent
 * to the other at once. Clients here are few and their requests small, so a send that has to wait
 * for its receiver does not matter. Orders come over the process's line and are answered when they
 * are carried out. */
#include "relay.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { PAIRS_MAX = 32, LINE = 0, LISTENER = 1, FIRST_PAIR = 2 };

struct pair {
    int ends[2]; /* the client's and the server's; -1: unused */
    bool stalled;
};

struct switchboard {
    int line;
    int listener;
    char socket[96];
    long long accepted;
    long long spoilt;
    bool cut;
    char grants; /* what to do to the next one: 'p'ass, 'l'ose or 'c'ut */
    int answers; /* of scripts, that are still to be lost */
    int hides;   /* the run_id */
    struct pair pairs[PAIRS_MAX];
};

static struct switchboard board;

/* ---- In the relay's process ------------------------------------------------------------------ */

static void hang_up(struct pair *pair)
{
    (void)close(pair->ends[0]);
    (void)close(pair->ends[1]);
    *pair = (struct pair){.ends = {-1, -1}};
}

static int connect_server(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", board.socket);
    int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (descriptor >= 0 && connect(descriptor, (struct sockaddr *)&address, sizeof(address)) != 0) {
        (void)close(descriptor);
        return -1;
    }
    return descriptor;
}

static void take_connection(void)
{
    const int yes = 1;
    struct pair *pair = NULL;
    int client = accept4(board.listener, NULL, NULL, SOCK_CLOEXEC);
    for (int i = 0; i < PAIRS_MAX && pair == NULL; i++)
        pair = board.pairs[i].ends[0] < 0 ? &board.pairs[i] : NULL;
    if (client < 0 || pair == NULL)
        _exit(1);
    (void)setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    board.accepted++;
    *pair = (struct pair){.ends = {client, connect_server()}, .stalled = board.cut};
    if (pair->ends[1] < 0)
        hang_up(pair);
}

static void obey(void)
{
    char order[LINE_MAX_TEXT];
    if (!line_hear(board.line, order, 0))
        _exit(0); /* the test is gone */
    bool of_grants = strncmp(order, "grants:", 7) == 0;
    bool done = of_grants || sscanf(order, "answers:%d", &board.answers) == 1 ||
                sscanf(order, "hides:%d", &board.hides) == 1 || strcmp(order, "count") == 0 ||
                strcmp(order, "spoilt") == 0;
    if (of_grants)
        board.grants = order[7];
    board.cut = strcmp(order, "cut") == 0 || (done && board.cut);
    for (int i = 0; i < PAIRS_MAX && !done; i++) {
        struct pair *pair = &board.pairs[i];
        pair->stalled = pair->ends[0] >= 0 && (board.cut || strcmp(order, "stall") == 0);
        done = pair->stalled && !board.cut;
    }
    line_say(board.line, "%lld", strcmp(order, "spoilt") == 0 ? board.spoilt : board.accepted);
}

/* Whether these bytes of the server are a grant that must not arrive. */
static bool spoils(const char *bytes, ssize_t count)
{
    static const char grant[] = "\r\ng "; /* how the text of its message begins */
    if (board.grants == 'p' || count <= 0 ||
        memmem(bytes, (size_t)count, grant, sizeof(grant) - 1) == NULL)
        return false;
    board.spoilt++;
    return true;
}

/* The same of an answer that is made of numbers. */
static bool spoils_answer(const char *bytes, ssize_t count)
{
    static const char start[] = "*2\r\n:";
    bool several = count >= (ssize_t)sizeof(start) && memcmp(bytes, start, sizeof(start) - 1) == 0;
    if (board.answers == 0 || count <= 0 || (bytes[0] != ':' && !several))
        return false;
    board.answers--;
    board.spoilt++;
    return true;
}

/* A field of the same length, so that the answer stays one. */
static void hide_run_id(char *bytes, ssize_t count)
{
    static const char field[] = "\nrun_id:";
    char *found =
        count > 0 && board.hides ? memmem(bytes, (size_t)count, field, sizeof(field) - 1) : NULL;
    if (found != NULL)
        found[1] = 'x';
}

static void pass_along(struct pair *pair, int from)
{
    static char bytes[64 * 1024];
    ssize_t count = recv(pair->ends[from], bytes, sizeof(bytes), 0);
    hide_run_id(bytes, from == 1 ? count : 0);
    if (from == 1 && spoils_answer(bytes, count)) {
        hang_up(pair);
        return;
    }
    if (from == 1 && spoils(bytes, count)) {
        if (board.grants == 'c')
            hang_up(pair);
        board.grants = 'p';
        return;
    }
    for (ssize_t done = 0; done < count;) {
        ssize_t sent =
            send(pair->ends[1 - from], bytes + done, (size_t)(count - done), MSG_NOSIGNAL);
        if (sent <= 0)
            count = 0;
        else
            done += sent;
    }
    if (count <= 0)
        hang_up(pair);
}

static void round_of_poll(void)
{
    struct pollfd asked[FIRST_PAIR + 2 * PAIRS_MAX];
    asked[LINE] = (struct pollfd){.fd = board.line, .events = POLLIN};
    asked[LISTENER] = (struct pollfd){.fd = board.listener, .events = POLLIN};
    for (int i = 0; i < 2 * PAIRS_MAX; i++) {
        const struct pair *pair = &board.pairs[i / 2];
        asked[FIRST_PAIR + i] =
            (struct pollfd){.fd = pair->stalled ? -1 : pair->ends[i % 2], .events = POLLIN};
    }
    (void)poll(asked, sizeof(asked) / sizeof(asked[0]), -1);
    for (int i = 0; i < 2 * PAIRS_MAX; i++)
        if (asked[FIRST_PAIR + i].revents != 0 && board.pairs[i / 2].ends[0] >= 0)
            pass_along(&board.pairs[i / 2], i % 2);
    if (asked[LISTENER].revents != 0)
        take_connection();
    if (asked[LINE].revents != 0)
        obey();
}

static void run(int line, void *arg)
{
    (void)arg;
    board.line = line;
    board.grants = 'p';
    for (int i = 0; i < PAIRS_MAX; i++)
        board.pairs[i] = (struct pair){.ends = {-1, -1}};
    for (;;)
        round_of_poll();
}

/* ---- In the test's process ------------------------------------------------------------------- */

struct relay relay_start(const struct redis_server *server)
{
    struct relay relay;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    board.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(board.listener >= 0);
    assert_int_equal(bind(board.listener, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(board.listener, 64), 0);
    assert_int_equal(getsockname(board.listener, (struct sockaddr *)&address, &size), 0);
    (void)snprintf(board.socket, sizeof(board.socket), "%s", server->socket);
    (void)snprintf(relay.url, sizeof(relay.url), "redis://127.0.0.1:%d", ntohs(address.sin_port));
    relay.process = process_start(run, NULL);
    (void)close(board.listener);
    return relay;
}

static long long order(const struct relay *relay, const char *what)
{
    char heard[LINE_MAX_TEXT];
    long long accepted = -1;
    line_say(relay->process->line, "%s", what);
    assert_true(line_hear(relay->process->line, heard, 10000));
    assert_int_equal(sscanf(heard, "%lld", &accepted), 1);
    return accepted;
}

void relay_stall_one(const struct relay *relay)
{
    (void)order(relay, "stall");
}

void relay_cut(const struct relay *relay)
{
    (void)order(relay, "cut");
}

void relay_heal(const struct relay *relay)
{
    (void)order(relay, "heal");
}

void relay_lose_grant(const struct relay *relay)
{
    (void)order(relay, "grants:lose");
}

void relay_cut_grant(const struct relay *relay)
{
    (void)order(relay, "grants:cut");
}

void relay_cut_answers(const struct relay *relay, int count)
{
    char what[32];
    (void)snprintf(what, sizeof(what), "answers:%d", count);
    (void)order(relay, what);
}

void relay_hide_run_id(const struct relay *relay, bool hides)
{
    (void)order(relay, hides ? "hides:1" : "hides:0");
}

long long relay_spoilt(const struct relay *relay)
{
    return order(relay, "spoilt");
}

long long relay_connections(const struct relay *relay)
{
    return order(relay, "count");
}
