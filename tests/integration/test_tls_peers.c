/* SPDX-License-Identifier: MIT */
/* Goal: where TLS meets something else, calls end in their bounds, and the text says what is wrong:
 * the most likely mistake with rediss:// is a port that does not speak it, or the other way round.
 */
#include <stdio.h>
#include <string.h>

#include "../lib/peer.h"
#include "protected.h"

enum { CONNECT_MS = 300, WAIT_MS = 700 };

static hf_client *client;
static hf_error error;

static int end(void **state)
{
    int result = end_everything(state);
    peer_end_all();
    return result;
}

/* ---- Verbs ----------------------------------------------------------------------------------- */

/* One try and a wait, which may make several attempts. */
static void expect_unavailable(const char *url, const hf_tls *tls, const char *words)
{
    hf_hold *hold;
    const int64_t waits_ms[] = {0, WAIT_MS};
    open_client_at(
        url, &client,
        HF_CLIENT(.tls = tls, .connect_timeout_ms = CONNECT_MS, .reply_timeout_ms = CONNECT_MS));
    for (size_t i = 0; i < 2; i++) {
        int64_t start = now_ms();
        EXPECT(HF_EUNAVAILABLE,
               hf_acquire(client, "lock", HF_ACQUIRE(.wait_ms = waits_ms[i]), &hold, &error));
        EXPECT_TOOK(start, 0, waits_ms[i] + CONNECT_MS);
        assert_null(hold);
        expect_says(error.text, words);
    }
    close_client(&client);
}

static void expect_unavailable_peer(const struct peer_script *script, const char *words)
{
    char url[64];
    const struct peer *peer = peer_start(script);
    (void)snprintf(url, sizeof(url), "rediss://127.0.0.1:%d", peer->port);
    expect_unavailable(url, trusting(), words);
}

/* ---- The wrong port -------------------------------------------------------------------------- */

/* A Redis server takes a TLS handshake for the start of a long line, and waits for its end. */
static void tls_to_a_plain_port(void **state)
{
    (void)state;
    char url[64];
    start_showing("server");
    (void)snprintf(url, sizeof(url), "rediss://localhost:%d", server->port);
    expect_unavailable(url, trusting(), "did not accept a TLS connection within 300 ms");
}

static void no_tls_to_a_tls_port(void **state)
{
    (void)state;
    char url[64];
    start_showing("server");
    (void)snprintf(url, sizeof(url), "redis://127.0.0.1:%d", server->tls_port);
    expect_unavailable(url, NULL, "rediss://");
}

static void nobody_listens(void **state)
{
    (void)state;
    char url[64];
    (void)snprintf(url, sizeof(url), "rediss://127.0.0.1:%d", peer_start_refusing()->port);
    expect_unavailable(url, trusting(), "refused");
}

/* ---- Peers that are no TLS servers ----------------------------------------------------------- */

static void a_peer_that_never_answers(void **state)
{
    (void)state;
    expect_unavailable_peer(&(struct peer_script){.ending = PEER_STAYS_SILENT}, "within 300 ms");
}

static void a_peer_that_hangs_up(void **state)
{
    (void)state;
    expect_unavailable_peer(&(struct peer_script){.ending = PEER_HANGS_UP},
                            "closed the connection during the TLS handshake");
}

static void peers_that_say_something_else(void **state)
{
    (void)state;
    static const char *const words[] = {
        "-ERR unknown command\r\n",
        "HTTP/1.1 400 Bad Request\r\n\r\n",
        "SSH-2.0-OpenSSH_9.2\r\n",
        "\xff\xff\xff\xff\xff\xff\xff\xff",
        "\x16\x03\x03\x7f\x7f and so on",                 /* a record that is too long */
        "\x16\x03\x03\x01\x01\x02\x01\x01\x01 and so on", /* a ServerHello that goes on for ever */
    };
    for (size_t i = 0; i < 4; i++)
        expect_unavailable_peer(&(struct peer_script){.says = words[i]}, "does not speak TLS here");
    expect_unavailable_peer(&(struct peer_script){.says = words[4]}, "TLS");
    expect_unavailable_peer(&(struct peer_script){.says = words[5]}, "within 300 ms");
}

static void a_flood_of_garbage(void **state)
{
    (void)state;
    expect_unavailable_peer(&(struct peer_script){.repeats = "garbage"}, "does not speak TLS here");
    int64_t before = resident_kib();
    expect_unavailable_peer(
        &(struct peer_script){.repeats = "\x16\x03\x03\x01\x01\x16\x03\x03\x01\x01"}, "TLS");
    assert_true(resident_kib() - before < 32 * 1024);
}

#define TEST(function) cmocka_unit_test_teardown(function, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(tls_to_a_plain_port),  TEST(no_tls_to_a_tls_port),
        TEST(nobody_listens),       TEST(a_peer_that_never_answers),
        TEST(a_peer_that_hangs_up), TEST(peers_that_say_something_else),
        TEST(a_flood_of_garbage),
    };
    return cmocka_run_group_tests_name("TLS and other peers", tests, begin_certificates,
                                       end_certificates);
}
