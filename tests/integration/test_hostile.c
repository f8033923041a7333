/* SPDX-License-Identifier: MIT */
/* Goal: whoever answers at the address, or nobody, a call ends in its bound with a text that helps,
 * memory stays bounded, and the client can be closed.
 *
 * Nothing here is a Redis server; real servers that refuse are in test_unwilling.c. One test runs
 * per peer: one try, bounded by call_timeout_ms, then a wait, bounded by wait_ms, which meets the
 * peer on several connections. The peer is a process of its own, so that what it does to fill our
 * memory is not counted as ours.
 */
#include <stdio.h>
#include <string.h>

#include "../lib/peer.h"

enum { CALL_MS = 300, WAIT_MS = 500 };

static hf_error error;
static struct attempt victim;

static int end(void **state)
{
    (void)state;
    peer_end_all();
    return 0;
}

/* ---- Verbs ----------------------------------------------------------------------------------- */

static hf_client *open_impatient(const char *url)
{
    hf_client *client;
    EXPECT(HF_OK, hf_open(url,
                          HF_CLIENT(.connect_timeout_ms = 150, .reply_timeout_ms = 150,
                                    .call_timeout_ms = CALL_MS),
                          &client, &error));
    return client;
}

/* The text is for somebody who has to find out which of his servers is out of reach. */
static void expect_failed(hf_status status, const hf_hold *hold, const hf_error *why,
                          const char *address)
{
    if (status != HF_EUNAVAILABLE && status != HF_EUNKNOWN)
        fail_msg("%s: %s", hf_status_name(status), why->text);
    assert_int_equal(why->status, status);
    assert_null(hold);
    assert_true(strlen(why->text) > 0);
    if (status == HF_EUNAVAILABLE && strstr(why->text, address) == NULL)
        fail_msg("does not name %s: %s", address, why->text);
}

static void expect_one_try_fails(hf_client *client, const char *address)
{
    hf_hold *hold;
    int64_t start = now_ms();
    hf_status status = hf_acquire(client, "lock", NULL, &hold, &error);
    EXPECT_TOOK(start, 0, CALL_MS);
    expect_failed(status, hold, &error, address);
}

static void expect_wait_fails(hf_client *client, const char *address)
{
    hf_hold *hold;
    int64_t start = now_ms();
    hf_status status = hf_acquire(
        client, "lock", HF_ACQUIRE(.wait_ms = WAIT_MS, .retry_interval_ms = 50), &hold, &error);
    EXPECT_TOOK(start, WAIT_MS / 2, WAIT_MS);
    expect_failed(status, hold, &error, address);
}

/* Some request may be left unanswered, which hf_close() may say, but not wait for. */
static void expect_closes(hf_client *client)
{
    int64_t start = now_ms();
    hf_status status = hf_close(client);
    EXPECT_TOOK(start, 0, CALL_MS);
    assert_true(status == HF_OK || status == HF_EUNKNOWN);
}

static void expect_all_fails(const char *url, const char *address)
{
    hf_client *client = open_impatient(url);
    expect_one_try_fails(client, address);
    expect_wait_fails(client, address);
    expect_closes(client);
}

static const char *address_of(const struct peer *peer)
{
    return peer->url + strlen("redis://");
}

/* ---- Nobody there ---------------------------------------------------------------------------- */

static void refused_connection(void **state)
{
    (void)state;
    struct peer *peer = peer_start_refusing();
    hf_client *client;
    hf_hold *hold;
    EXPECT(HF_OK, hf_open(peer->url, HF_CLIENT(.call_timeout_ms = 20000), &client, &error));
    int64_t start = now_ms();
    EXPECT(HF_EUNAVAILABLE, hf_acquire(client, "lock", NULL, &hold, &error));
    EXPECT_TOOK(start, 0, 500);
    EXPECT_STATUS(HF_OK, hf_close(client));

    client = open_impatient(peer->url);
    EXPECT(HF_EUNAVAILABLE,
           hf_acquire(client, "lock", HF_ACQUIRE(.max_retries = 3, .retry_interval_ms = 20), &hold,
                      &error));
    expect_wait_fails(client, address_of(peer));
    expect_closes(client);
}

/* The name look-up may take many seconds where no name server answers: the call must not. */
static void host_name_that_nobody_knows(void **state)
{
    (void)state;
    expect_all_fails("redis://nonexistent.invalid", "nonexistent.invalid");
}

static void full_backlog(void **state)
{
    (void)state;
    struct peer *peer = peer_start_full();
    if (peer == NULL) {
        print_message("this system accepts connections beyond the backlog\n");
        skip();
        return;
    }
    expect_all_fails(peer->url, address_of(peer));
}

/* A wait without limit can be left by hf_cancel_fire() although nobody ever answers. */
static void a_silent_wait_can_be_cancelled(void **state)
{
    (void)state;
    struct peer *peer = peer_start(&(struct peer_script){.says = NULL});
    hf_client *client = open_impatient(peer->url);
    hf_cancel *cancel = hf_cancel_new();
    assert_non_null(cancel);
    attempt_begin(&victim, client, "lock", HF_ACQUIRE(.wait_ms = -1, .cancel = cancel));
    /* No condition can be observed here: nothing comes back. Fired early or late, it must end. */
    hf_cancel_fire(cancel);
    assert_int_equal(attempt_end(&victim), HF_ECANCELLED);
    assert_true(victim.took_ms < 5000);
    hf_cancel_free(cancel);
    expect_closes(client);
}

/* ---- Somebody else there --------------------------------------------------------------------- */

static void hostile_peer(void **state)
{
    struct peer *peer = peer_start(*state);
    expect_all_fails(peer->url, address_of(peer));
}

static void http_server(void **state)
{
    struct peer *peer = peer_start(*state);
    hf_client *client = open_impatient(peer->url);
    hf_hold *hold;
    EXPECT(HF_EUNAVAILABLE, hf_acquire(client, "lock", NULL, &hold, &error));
    assert_non_null(strstr(error.text, "protocol"));
    expect_wait_fails(client, address_of(peer));
    expect_closes(client);
}

/* Whatever "+OK" may be the answer to, it grants no lock. */
static void yes_man(void **state)
{
    struct peer *peer = peer_start(*state);
    hf_client *client = open_impatient(peer->url);
    hf_hold *hold;
    int64_t start = now_ms();
    assert_int_not_equal(hf_acquire(client, "lock", HF_ACQUIRE(.wait_ms = WAIT_MS), &hold, &error),
                         HF_OK);
    EXPECT_TOOK(start, 0, WAIT_MS);
    assert_null(hold);
    expect_closes(client);
}

/* AddressSanitizer keeps freed memory for a while to catch late uses of it: up to 256 MiB, which
 * would be counted as the library's. It looks for this function from its own shared library. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "quarantine_size_mb=4";
}

/* The greatest growth while the victim is fed, not what is left of it afterwards. The reply timeout
 * is longer than the test, so that memory is what has to have a limit here. */
static void flood(void **state)
{
    enum { FLOOD_MS = 1000, GROWTH_MAX_KIB = 16 * 1024 };
    struct peer *peer = peer_start(*state);
    hf_client *client;
    EXPECT(HF_OK,
           hf_open(peer->url, HF_CLIENT(.reply_timeout_ms = 10000, .call_timeout_ms = CALL_MS),
                   &client, &error));
    int64_t before = resident_kib();
    int64_t highest = before;
    attempt_begin(&victim, client, "lock",
                  HF_ACQUIRE(.wait_ms = FLOOD_MS, .retry_interval_ms = 20));
    while (!attempt_is_over(&victim)) {
        int64_t resident = resident_kib();
        highest = resident > highest ? resident : highest;
        sleep_ms(1);
    }
    hf_status status = attempt_end(&victim);
    assert_in_range(victim.took_ms, 0, FLOOD_MS + SLACK_MS);
    expect_failed(status, victim.hold, &victim.error, address_of(peer));
    assert_in_range(highest - before, 0, GROWTH_MAX_KIB);
    expect_closes(client);
}

static struct peer_script silence = {.says = NULL, .ending = PEER_STAYS_SILENT};
static struct peer_script hang_up = {.says = NULL, .ending = PEER_HANGS_UP};
static struct peer_script http = {.says = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n",
                                  .ending = PEER_HANGS_UP};
static struct peer_script http_open = {.says = "HTTP/1.1 400 Bad Request\r\n\r\n"};
static struct peer_script half_status = {.says = "+O"};
static struct peer_script half_bulk = {.says = "$100\r\nabc"};
static struct peer_script half_array = {.says = "*3\r\n:1\r\n"};
static struct peer_script cut_status = {.says = "+O", .ending = PEER_HANGS_UP};
static struct peer_script cut_bulk = {.says = "$10\r\nabc", .ending = PEER_HANGS_UP};
static struct peer_script garbage = {.says = "\x16\x03\x01\xff\xfe garbage \r\n\r\n"};
static struct peer_script no_number = {.says = "*x\r\n$-7\r\n:\r\n"};
static struct peer_script negative_array = {.says = "*-5\r\n"};
static struct peer_script huge_array = {.says = "*2147483647\r\n"};
static struct peer_script huge_bulk = {.says = "$9223372036854775807\r\n"};
static struct peer_script yes_to_all = {.repeats = "+OK\r\n"};
static struct peer_script endless_line = {.says = "+", .repeats = "aaaaaaaaaaaaaaaa"};
static struct peer_script endless_bulk = {.says = "$536870912\r\n", .repeats = "aaaaaaaaaaaaaaaa"};
static struct peer_script endless_array = {.says = "*2147483647\r\n", .repeats = ":1\r\n"};
static struct peer_script endless_nesting = {.repeats = "*1\r\n"};
static struct peer_script endless_replies = {.repeats = ":1\r\n"};

#define TEST(function) cmocka_unit_test_teardown(function, end)
#define PEER(function, peer)                                 \
    {                                                        \
#function " with " #peer, function, NULL, end, &peer \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(refused_connection),
        TEST(host_name_that_nobody_knows),
        TEST(full_backlog),
        TEST(a_silent_wait_can_be_cancelled),
        PEER(hostile_peer, silence),
        PEER(hostile_peer, hang_up),
        PEER(hostile_peer, half_status),
        PEER(hostile_peer, half_bulk),
        PEER(hostile_peer, half_array),
        PEER(hostile_peer, cut_status),
        PEER(hostile_peer, cut_bulk),
        PEER(hostile_peer, garbage),
        PEER(hostile_peer, no_number),
        PEER(hostile_peer, negative_array),
        PEER(hostile_peer, huge_array),
        PEER(hostile_peer, huge_bulk),
        PEER(http_server, http),
        PEER(http_server, http_open),
        PEER(yes_man, yes_to_all),
        PEER(flood, endless_line),
        PEER(flood, endless_bulk),
        PEER(flood, endless_array),
        PEER(flood, endless_nesting),
        PEER(flood, endless_replies),
    };
    return cmocka_run_group_tests_name("hostile peers", tests, NULL, NULL);
}
