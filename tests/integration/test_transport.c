/* SPDX-License-Identifier: MIT */
/* Goal: transports of the application, with TLS on top and without. One moves a single byte at a
 * time, so that every place where a message can be cut is met; one is from before transports could
 * describe anything; and one says by itself that a peer is not to be talked to.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <holdfast_store.h>
#include <pthread.h>
#include <stdatomic.h>

#include "protected.h"

enum { READERS = 4, HOARD = READERS * 65536 };

static hf_client *client;
static hf_error error;

/* ---- A transport that connects to 127.0.0.1 -------------------------------------------------- */

struct wire {
    int descriptor;
    bool rests_reading; /* the next read, or write, moves nothing */
    bool rests_writing;
    size_t hoarded; /* bytes in hoard, which nobody has seen yet */
    char hoard[2 * HOARD];
};

/* How it behaves; the tests set it before they open a client. */
static struct {
    size_t chunk;         /* bytes at a time */
    bool rests;           /* every other time it moves nothing */
    int verdict;          /* of connected() */
    const char *says;     /* describe() */
    atomic_bool hoards;   /* delivers nothing before it has HOARD bytes, then all it has */
    atomic_int described; /* how often it was asked */
} manner;

static int wire_open(void *arg, const hf_endpoint *endpoint, void **connection)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                  .sin_port = htons((uint16_t)endpoint->port)};
    (void)arg;
    int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (descriptor < 0)
        return -errno;
    if (connect(descriptor, (struct sockaddr *)&address, sizeof(address)) != 0) {
        int failure = errno;
        (void)close(descriptor);
        return -failure;
    }
    (void)fcntl(descriptor, F_SETFL, O_NONBLOCK);
    struct wire *wire = calloc(1, sizeof(*wire));
    if (wire == NULL)
        abort();
    wire->descriptor = descriptor;
    *connection = wire;
    return 0;
}

static int wire_connected(void *connection)
{
    (void)connection;
    return manner.verdict;
}

static int wire_descriptor(void *connection)
{
    return ((struct wire *)connection)->descriptor;
}

static size_t portion(size_t count)
{
    return count < manner.chunk ? count : manner.chunk;
}

static bool rests(bool *tired)
{
    *tired = manner.rests && !*tired;
    return manner.rests && !*tired;
}

/* As a transport that decodes does: what it has taken in, the descriptor does not show. */
static int read_hoard(struct wire *wire, void *bytes, size_t capacity)
{
    ssize_t count = 1;
    while (count > 0 && wire->hoarded < sizeof(wire->hoard)) {
        count = recv(wire->descriptor, wire->hoard + wire->hoarded,
                     sizeof(wire->hoard) - wire->hoarded, 0);
        wire->hoarded += count > 0 ? (size_t)count : 0;
    }
    if (wire->hoarded >= HOARD)
        atomic_store(&manner.hoards, false);
    if (wire->hoarded == 0 || atomic_load(&manner.hoards))
        return count == 0 ? 0 : -EAGAIN;
    size_t given = wire->hoarded < capacity ? wire->hoarded : capacity;
    memcpy(bytes, wire->hoard, given);
    memmove(wire->hoard, wire->hoard + given, wire->hoarded - given);
    wire->hoarded -= given;
    return (int)given;
}

static int wire_read(void *connection, void *bytes, size_t capacity)
{
    struct wire *wire = connection;
    if (atomic_load(&manner.hoards) || wire->hoarded > 0)
        return read_hoard(wire, bytes, capacity);
    if (rests(&wire->rests_reading))
        return -EAGAIN;
    ssize_t count = recv(wire->descriptor, bytes, portion(capacity), 0);
    return count >= 0 ? (int)count : -errno;
}

static int wire_write(void *connection, const void *bytes, size_t count)
{
    struct wire *wire = connection;
    if (rests(&wire->rests_writing))
        return -EAGAIN;
    ssize_t written = send(wire->descriptor, bytes, portion(count), MSG_NOSIGNAL);
    return written >= 0 ? (int)written : -errno;
}

static void wire_close(void *connection)
{
    struct wire *wire = connection;
    (void)close(wire->descriptor);
    free(wire);
}

static const char *wire_describe(void *connection)
{
    (void)connection;
    atomic_fetch_add(&manner.described, 1);
    return manner.says;
}

#define WIRE(...)                                                                               \
    {                                                                                           \
        .open = wire_open, .connected = wire_connected, .descriptor = wire_descriptor,          \
        .read = wire_read, .write = wire_write, .close = wire_close, .describe = wire_describe, \
        __VA_ARGS__                                                                             \
    }

static const hf_transport wires = WIRE(.size = sizeof(hf_transport));
static const hf_transport old_wires = WIRE(.size = offsetof(hf_transport, describe));

static int begin(void **state)
{
    (void)state;
    manner.chunk = 1 << 20;
    manner.rests = false;
    manner.verdict = 0;
    manner.says = NULL;
    atomic_store(&manner.hoards, false);
    atomic_store(&manner.described, 0);
    forget_log();
    return 0;
}

static void open_over(const hf_transport *transport, const char *url, const hf_tls *tls)
{
    open_client_at(url, &client,
                   HF_CLIENT(.transport = transport, .tls = tls, .log = keep_log, .links = 1,
                             .connect_timeout_ms = 10000, .reply_timeout_ms = 10000,
                             .call_timeout_ms = 20000));
}

/* ---- A byte at a time ------------------------------------------------------------------------ */

static void work_in_portions(size_t chunk, bool resting, const char *protocols)
{
    manner.chunk = chunk;
    manner.rests = resting;
    start_protected(
        "server", &(struct redis_server_tls){.client_certificates = "yes", .protocols = protocols});
    open_over(&wires, server->tls_url, showing("client"));
    for (int i = 0; i < 3; i++)
        expect_free(client);
    assert_int_equal(raw_number(server, "CLIENT KILL TYPE normal"), 1);
    hf_hold *hold = acquire_with(client, HF_ACQUIRE(.wait_ms = 10000));
    release(&hold);
    assert_true(logged("session resumed") > 0);
    close_client(&client);
}

static void a_byte_at_a_time(void **state)
{
    (void)state;
    work_in_portions(1, true, "TLSv1.3");
    work_in_portions(1, true, "TLSv1.2");
}

static void odd_portions(void **state)
{
    (void)state;
    work_in_portions(7, false, "TLSv1.3");
    work_in_portions(1000, true, "TLSv1.3");
}

/* ---- All at once ----------------------------------------------------------------------------- */

static atomic_int values_read;

static void *read_value(void *arg)
{
    static _Thread_local char place[HF_VALUE_MAX];
    size_t length = 0;
    uint64_t version;
    hf_error why;
    (void)arg;
    if (hf_value_read(client, "v", 0, place, sizeof(place), &length, &version, &why) == HF_OK &&
        length == sizeof(place))
        atomic_fetch_add(&values_read, 1);
    return NULL;
}

/* More than the library reads in one turn, as answers to several threads. Should it forget the
 * rest, calls would end after reply_timeout_ms, with another status. */
static void more_than_is_read_in_one_turn(void **state)
{
    static char value[HF_VALUE_MAX];
    pthread_t readers[READERS];
    (void)state;
    memset(value, 'x', sizeof(value));
    start_showing("server");
    open_client_at(server->url, &client,
                   HF_CLIENT(.transport = &wires, .links = 1, .reply_timeout_ms = 10000,
                             .call_timeout_ms = 10000));
    EXPECT(HF_OK, hf_value_write(client, "v", 0, value, sizeof(value), 0, NULL, &error));
    atomic_store(&manner.hoards, true);
    atomic_store(&values_read, 0);
    int64_t start = now_ms();
    for (int i = 0; i < READERS; i++)
        assert_int_equal(pthread_create(&readers[i], NULL, read_value, NULL), 0);
    for (int i = 0; i < READERS; i++)
        pthread_join(readers[i], NULL);
    assert_int_equal(atomic_load(&values_read), READERS);
    EXPECT_TOOK(start, 0, 2000);
    assert_false(atomic_load(&manner.hoards));
}

/* ---- Describing ------------------------------------------------------------------------------ */

static void a_transport_of_an_older_version(void **state)
{
    (void)state;
    manner.says = "not to be heard";
    start_showing("server");
    open_over(&old_wires, server->url, NULL);
    expect_free(client);
    close_client(&client);
    open_over(&old_wires, server->tls_url, trusting());
    expect_free(client);
    assert_int_equal(atomic_load(&manner.described), 0);
}

static void what_a_transport_says_is_logged(void **state)
{
    (void)state;
    manner.says = "by pigeon";
    start_showing("server");
    open_over(&wires, server->url, NULL);
    expect_free(client);
    assert_int_equal(logged("(by pigeon)"), 1);
}

/* With TLS on top or without, in the transport's words, if it has any. */
static void expect_verdict(int verdict, hf_status status, const char *says, const char *words)
{
    hf_hold *hold;
    manner.verdict = verdict;
    manner.says = says;
    for (int i = 0; i < 2; i++) {
        open_over(&wires, i == 0 ? server->url : server->tls_url, i == 0 ? NULL : trusting());
        int64_t start = now_ms();
        EXPECT(status, hf_acquire(client, "lock", HF_ACQUIRE(.wait_ms = 20000), &hold, &error));
        EXPECT_TOOK(start, 0, 500);
        expect_says(error.text, words);
        close_client(&client);
    }
}

static void a_transport_that_refuses_its_peer(void **state)
{
    (void)state;
    start_showing("server");
    expect_verdict(HF_PEER_UNSAFE, HF_EUNSAFE, "it has a beard", "it has a beard");
    expect_verdict(HF_PEER_DENIES, HF_EDENIED, "no entry", "no entry");
    expect_verdict(HF_PEER_UNSAFE, HF_EUNSAFE, NULL, hf_status_text(HF_EUNSAFE));
    expect_verdict(HF_PEER_DENIES, HF_EDENIED, "", hf_status_text(HF_EDENIED));
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end_everything)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_byte_at_a_time),
        TEST(odd_portions),
        TEST(more_than_is_read_in_one_turn),
        TEST(a_transport_of_an_older_version),
        TEST(what_a_transport_says_is_logged),
        TEST(a_transport_that_refuses_its_peer),
    };
    return cmocka_run_group_tests_name("transports", tests, begin_certificates, end_certificates);
}
