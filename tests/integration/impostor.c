/* SPDX-License-Identifier: MIT */
/* See impostor.h. One loop of poll(2) over pairs of sockets, as in relay.c. A pair that is attacked
 * is no longer a pair: what the client sends is read and forgotten, but for its PINGs, and what it
 * gets is the attack. The server's end stays open, so that the client looks alive to those who ask
 * the server. */
#include "impostor.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { PAIRS_MAX = 32, LINE = 0, LISTENER = 1, FIRST_PAIR = 2, TURN_MAX = 16, IDLE_MS = 10 };

enum part { SAYING, REPEATING, PONGING, SILENT };

struct pair {
    int ends[2];                 /* the client's and the server's; -1: unused */
    const struct attack *attack; /* NULL: it is passed along */
    enum part part;
    size_t done; /* bytes of that part */
    int pongs_owed;
    int64_t next_ms;
};

static struct {
    int line;
    int listener;
    char socket[96];
    enum moment moment;
    const struct attack *attack; /* NULL: it relents */
    long long attacked;
    struct pair pairs[PAIRS_MAX];
} self;

/* ---- In the impostor's process: saying ------------------------------------------------------- */

static void hang_up(struct pair *pair)
{
    (void)close(pair->ends[0]);
    (void)close(pair->ends[1]);
    *pair = (struct pair){.ends = {-1, -1}};
}

static const char *text_of(const struct pair *pair)
{
    if (pair->part == SAYING)
        return pair->attack->says;
    if (pair->part == REPEATING)
        return pair->attack->repeats;
    return pair->part == PONGING ? "*2\r\n$4\r\npong\r\n$0\r\n\r\n" : NULL;
}

/* Goes on to the next part that has something to say. */
static void choose_part(struct pair *pair)
{
    pair->done = 0;
    pair->pongs_owed -= pair->part == PONGING;
    if (pair->attack->answers_pings && pair->pongs_owed > 0)
        pair->part = PONGING;
    else
        pair->part = pair->attack->repeats != NULL ? REPEATING : SILENT;
}

static bool wants_to_say(const struct pair *pair)
{
    return pair->attack != NULL && (text_of(pair) != NULL || pair->pongs_owed > 0);
}

/* False: nothing more can be said now. */
static bool say_piece(struct pair *pair)
{
    if (text_of(pair) == NULL)
        choose_part(pair);
    const char *text = text_of(pair);
    size_t length = text != NULL ? strlen(text) : 0;
    size_t wanted = length - pair->done;
    if (pair->attack->pace_ms > 0 && wanted > 1)
        wanted = 1;
    ssize_t sent = wanted > 0
                       ? send(pair->ends[0], text + pair->done, wanted, MSG_NOSIGNAL | MSG_DONTWAIT)
                       : 0;
    if (sent < 0)
        return false; /* if the connection has ended, reading will tell */
    pair->done += (size_t)sent;
    if (pair->done >= length)
        choose_part(pair);
    pair->next_ms = now_ms() + pair->attack->pace_ms;
    return pair->attack->pace_ms == 0;
}

static void say_some(struct pair *pair)
{
    for (int i = 0; i < TURN_MAX && wants_to_say(pair) && now_ms() >= pair->next_ms; i++)
        if (!say_piece(pair))
            return;
}

static void strike(struct pair *pair)
{
    pair->attack = self.attack;
    pair->part = SAYING;
    self.attacked++;
    if (pair->attack->says == NULL)
        choose_part(pair);
    say_some(pair);
}

/* ---- In the impostor's process: passing along ------------------------------------------------ */

static bool has(const char *bytes, ssize_t count, const char *word)
{
    return memmem(bytes, (size_t)count, word, strlen(word)) != NULL;
}

static bool send_all(int to, const char *bytes, ssize_t count)
{
    for (ssize_t done = 0; done < count;) {
        ssize_t sent = send(to, bytes + done, (size_t)(count - done), MSG_NOSIGNAL);
        if (sent <= 0)
            return false;
        done += sent;
    }
    return true;
}

static void take_from_client(struct pair *pair, const char *bytes, ssize_t count)
{
    bool now = self.attack != NULL && (self.moment == AT_GREETING ||
                                       (self.moment == AT_CALL && has(bytes, count, "\r\nEVAL")));
    if (pair->attack != NULL) {
        pair->pongs_owed += pair->attack->answers_pings && has(bytes, count, "\r\nPING\r\n");
        say_some(pair);
    } else if (now) {
        strike(pair);
    } else if (!send_all(pair->ends[1], bytes, count)) {
        hang_up(pair);
    }
}

static void take_from_server(struct pair *pair, const char *bytes, ssize_t count)
{
    if (pair->attack != NULL)
        return;
    if (!send_all(pair->ends[0], bytes, count))
        hang_up(pair);
    else if (self.attack != NULL && self.moment == AT_MESSAGES &&
             has(bytes, count, "\r\nsubscribe\r\n"))
        strike(pair);
}

static void take_bytes(struct pair *pair, int from)
{
    static char bytes[64 * 1024];
    ssize_t count = recv(pair->ends[from], bytes, sizeof(bytes), 0);
    if (count <= 0)
        hang_up(pair);
    else if (from == 0)
        take_from_client(pair, bytes, count);
    else
        take_from_server(pair, bytes, count);
}

static int connect_server(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", self.socket);
    int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(descriptor, (struct sockaddr *)&address, sizeof(address)) != 0)
        _exit(1);
    return descriptor;
}

static void take_connection(void)
{
    const int yes = 1;
    struct pair *pair = NULL;
    int client = accept4(self.listener, NULL, NULL, SOCK_CLOEXEC);
    for (int i = 0; i < PAIRS_MAX && pair == NULL; i++)
        pair = self.pairs[i].ends[0] < 0 ? &self.pairs[i] : NULL;
    if (client < 0 || pair == NULL)
        _exit(1);
    (void)setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    *pair = (struct pair){.ends = {client, connect_server()}};
}

/* ---- In the impostor's process: orders ------------------------------------------------------- */

static long long count_victims(void)
{
    long long count = 0;
    for (int i = 0; i < PAIRS_MAX; i++)
        count += self.pairs[i].attack != NULL;
    return count;
}

static void obey(void)
{
    char order[LINE_MAX_TEXT];
    int moment;
    uintptr_t attack;
    if (!line_hear(self.line, order, 0))
        _exit(0); /* the test is gone */
    if (sscanf(order, "attack %d %" SCNxPTR, &moment, &attack) == 2) {
        self.moment = (enum moment)moment;
        self.attack = (const struct attack *)attack;
    } else if (strcmp(order, "relent") == 0) {
        self.attack = NULL;
        for (int i = 0; i < PAIRS_MAX; i++)
            if (self.pairs[i].attack != NULL)
                hang_up(&self.pairs[i]);
    }
    line_say(self.line, "%lld", strcmp(order, "victims") == 0 ? count_victims() : self.attacked);
}

static struct pollfd entry_of(const struct pair *pair, int end)
{
    bool floods = end == 0 && wants_to_say(pair) && pair->attack->pace_ms == 0;
    return (struct pollfd){.fd = pair->ends[end],
                           .events = (short)(POLLIN | (floods ? POLLOUT : 0))};
}

static void round_of_poll(void)
{
    struct pollfd asked[FIRST_PAIR + 2 * PAIRS_MAX];
    asked[LINE] = (struct pollfd){.fd = self.line, .events = POLLIN};
    asked[LISTENER] = (struct pollfd){.fd = self.listener, .events = POLLIN};
    for (int i = 0; i < 2 * PAIRS_MAX; i++)
        asked[FIRST_PAIR + i] = entry_of(&self.pairs[i / 2], i % 2);
    (void)poll(asked, sizeof(asked) / sizeof(asked[0]), IDLE_MS);
    for (int i = 0; i < 2 * PAIRS_MAX; i++)
        if ((asked[FIRST_PAIR + i].revents & ~POLLOUT) != 0 && self.pairs[i / 2].ends[0] >= 0)
            take_bytes(&self.pairs[i / 2], i % 2);
    for (int i = 0; i < PAIRS_MAX; i++)
        if (self.pairs[i].ends[0] >= 0)
            say_some(&self.pairs[i]);
    if (asked[LISTENER].revents != 0)
        take_connection();
    if (asked[LINE].revents != 0)
        obey();
}

static void run(int line, void *arg)
{
    (void)arg;
    self.line = line;
    for (int i = 0; i < PAIRS_MAX; i++)
        self.pairs[i] = (struct pair){.ends = {-1, -1}};
    for (;;)
        round_of_poll();
}

/* ---- In the test's process ------------------------------------------------------------------- */

struct impostor impostor_start(const struct redis_server *server)
{
    struct impostor impostor;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    self.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(self.listener >= 0);
    assert_int_equal(bind(self.listener, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(self.listener, 64), 0);
    assert_int_equal(getsockname(self.listener, (struct sockaddr *)&address, &size), 0);
    (void)snprintf(self.socket, sizeof(self.socket), "%s", server->socket);
    (void)snprintf(impostor.url, sizeof(impostor.url), "redis://127.0.0.1:%d",
                   ntohs(address.sin_port));
    impostor.process = process_start(run, NULL);
    (void)close(self.listener);
    return impostor;
}

static long long order(const struct impostor *impostor, const char *what)
{
    char heard[LINE_MAX_TEXT];
    long long number = -1;
    line_say(impostor->process->line, "%s", what);
    assert_true(line_hear(impostor->process->line, heard, 10000));
    assert_int_equal(sscanf(heard, "%lld", &number), 1);
    return number;
}

void impostor_attack(const struct impostor *impostor, enum moment moment,
                     const struct attack *attack)
{
    char text[LINE_MAX_TEXT];
    (void)snprintf(text, sizeof(text), "attack %d %" PRIxPTR, (int)moment, (uintptr_t)attack);
    (void)order(impostor, text);
}

void impostor_relent(const struct impostor *impostor)
{
    (void)order(impostor, "relent");
}

long long impostor_attacked(const struct impostor *impostor)
{
    return order(impostor, "count");
}

long long impostor_victims(const struct impostor *impostor)
{
    return order(impostor, "victims");
}

/* ---- Memory ---------------------------------------------------------------------------------- */

static int64_t resident_before;

static int64_t peak_kib(void)
{
    char line[256];
    long long peak = -1;
    FILE *status = fopen("/proc/self/status", "re");
    assert_non_null(status);
    while (peak < 0 && fgets(line, sizeof(line), status) != NULL)
        (void)sscanf(line, "VmHWM: %lld", &peak);
    (void)fclose(status);
    assert_true(peak > 0);
    return peak;
}

/* Where the peak cannot be set back, only what goes beyond the last one is seen. */
void memory_watch_begin(void)
{
    int reset = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
    bool done = reset >= 0 && write(reset, "5", 1) == 1;
    (void)close(reset);
    resident_before = done ? resident_kib() : peak_kib();
}

int64_t memory_growth_kib(void)
{
    int64_t growth = peak_kib() - resident_before;
    return growth > 0 ? growth : 0;
}
