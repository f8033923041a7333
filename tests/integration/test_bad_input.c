/* SPDX-License-Identifier: MIT */
/* Goal: a bad argument gets HF_EINVAL and a text that says what is wrong with it, and nothing else
 * happens: no object is made, no byte is sent.
 *
 * That nothing is sent is the server's word: it counts the connections that it was offered, and
 * the client under test never makes one. URLs are in test_bad_url.c; hosts that cannot be reached
 * and servers that are none in test_hostile.c.
 */
#include <stdio.h>
#include <string.h>

#include "../lib/peer.h"
#include "fixture.h"

static long long connections_before;
static hf_client *client;
static hf_error error;

static int begin(void **state)
{
    (void)state;
    connections_before = connections_seen();
    open_client(&client);
    return 0;
}

static int end(void **state)
{
    peer_end_all();
    return close_clients(state);
}

/* ---- Verbs ----------------------------------------------------------------------------------- */

static void refuse_options(const hf_acquire_options *options, const char *word)
{
    hf_hold *hold = (hf_hold *)&error; /* anything but NULL: the call has to clear it */
    EXPECT(HF_EINVAL, hf_acquire(client, "lock", options, &hold, &error));
    assert_null(hold);
    expect_says(error.text, word);
    assert_int_equal(connections_seen(), connections_before);
}

static void refuse_name(hf_client *by, const char *name, size_t length, const char *word)
{
    hf_hold *hold = (hf_hold *)&error;
    EXPECT(HF_EINVAL, hf_acquire(by, name, HF_ACQUIRE(.name_length = length), &hold, &error));
    assert_null(hold);
    expect_says(error.text, word);
    assert_int_equal(connections_seen(), connections_before);
}

static void refuse_client(const char *url, const hf_client_options *options, const char *word)
{
    hf_client *none = (hf_client *)&error;
    EXPECT(HF_EINVAL, hf_open(url, options, &none, &error));
    assert_null(none);
    expect_says(error.text, word);
}

/* ---- NULL ------------------------------------------------------------------------------------ */

static void null_where_something_is_needed(void **state)
{
    (void)state;
    hf_hold *hold = (hf_hold *)&error;
    EXPECT(HF_EINVAL, hf_acquire(NULL, "lock", NULL, &hold, &error));
    assert_null(hold);
    hold = (hf_hold *)&error;
    EXPECT(HF_EINVAL, hf_acquire(client, NULL, NULL, &hold, &error));
    assert_null(hold);
    EXPECT(HF_EINVAL, hf_acquire(client, "lock", NULL, NULL, &error));
    EXPECT(HF_EINVAL, hf_open(server->url, NULL, NULL, &error));
    EXPECT(HF_EINVAL, hf_extend(NULL, 0, &error));
    EXPECT_STATUS(HF_EINVAL, hf_acquire(client, NULL, NULL, NULL, NULL));
    EXPECT_STATUS(HF_EINVAL, hf_open(NULL, NULL, NULL, NULL));
    assert_int_equal(connections_seen(), connections_before);
}

static void null_where_nothing_is_fine(void **state)
{
    (void)state;
    hf_hold *none = NULL;
    EXPECT(HF_OK, hf_release(NULL, &error));
    EXPECT(HF_OK, hf_release(&none, &error));
    EXPECT_STATUS(HF_OK, hf_release(NULL, NULL));
    EXPECT_STATUS(HF_OK, hf_release_nowait(NULL));
    EXPECT_STATUS(HF_OK, hf_release_nowait(&none));
    EXPECT_STATUS(HF_OK, hf_close(NULL));
    hf_cancel_free(NULL);
    assert_false(hf_is_valid(NULL));
    assert_int_equal(hf_remaining_ms(NULL), 0);
}

static void unknown_statuses_have_a_name(void **state)
{
    (void)state;
    assert_string_equal(hf_status_name(HF_EBUSY), "HF_EBUSY");
    assert_non_null(hf_status_name((hf_status)9999));
    assert_non_null(hf_status_text((hf_status)9999));
    assert_non_null(hf_status_text((hf_status)-1));
}

/* ---- Names ----------------------------------------------------------------------------------- */

static void names_that_are_refused(void **state)
{
    (void)state;
    char long_name[HF_NAME_MAX + 2];
    memset(long_name, 'n', sizeof(long_name) - 1);
    long_name[sizeof(long_name) - 1] = '\0';
    refuse_name(client, "", 0, "empty");
    refuse_name(client, long_name, 0, "1024");
    refuse_name(client, long_name, HF_NAME_MAX + 1, "1024");
    refuse_name(client, long_name, SIZE_MAX, "1024");
    refuse_name(client, "hf:", 0, "hf:");
    refuse_name(client, "hf:q:{1}x", 0, "hf:");
    refuse_name(client, "hf:\0x", 5, "hf:");
}

/* What counts is the key that comes of prefix and name. */
static void prefixes_that_make_a_refused_key(void **state)
{
    (void)state;
    static const char *const parts[][2] = {
        {"h", "f:x"}, {"hf", ":x"}, {"hf:", "x"}, {"p:", "hf:ids:x"}};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        hf_client *prefixed;
        hf_status opened =
            hf_open(server->url, HF_CLIENT(.prefix = parts[i][0]), &prefixed, &error);
        if (opened == HF_OK)
            refuse_name(prefixed, parts[i][1], 0, "hf:");
        else
            assert_int_equal(opened, HF_EINVAL); /* "hf:" may be refused as soon as it is known */
        assert_true(opened == HF_OK || i == 2);
        EXPECT_STATUS(HF_OK, hf_close(prefixed));
    }
}

static void a_prefix_counts_for_the_length(void **state)
{
    (void)state;
    hf_client *prefixed;
    char name[HF_NAME_MAX + 1];
    memset(name, 'n', HF_NAME_MAX);
    name[HF_NAME_MAX] = '\0';
    EXPECT(HF_OK, hf_open(server->url, HF_CLIENT(.prefix = "p"), &prefixed, &error));
    refuse_name(prefixed, name, 0, "1024");
    EXPECT_STATUS(HF_OK, hf_close(prefixed));
}

/* ---- Numbers --------------------------------------------------------------------------------- */

static void leases_that_are_refused(void **state)
{
    (void)state;
    refuse_options(HF_ACQUIRE(.lease_ms = 99), "100");
    refuse_options(HF_ACQUIRE(.lease_ms = 1), "100");
    refuse_options(HF_ACQUIRE(.lease_ms = -1), "100");
    refuse_options(HF_ACQUIRE(.lease_ms = INT64_MIN), "100");
    refuse_options(HF_ACQUIRE(.lease_ms = 60001), "60000");
    refuse_options(HF_ACQUIRE(.lease_ms = INT64_MAX), "60000");
}

static void the_longest_lease_is_the_client_s(void **state)
{
    (void)state;
    hf_client *other;
    hf_hold *hold;
    EXPECT(HF_OK, hf_open(server->url, HF_CLIENT(.max_lease_ms = 120000), &other, &error));
    EXPECT(HF_EINVAL, hf_acquire(other, "lock", HF_ACQUIRE(.lease_ms = 120001), &hold, &error));
    expect_says(error.text, "120000");
    EXPECT(HF_OK, hf_acquire(other, "lock", HF_ACQUIRE(.lease_ms = 120000), &hold, &error));
    EXPECT(HF_OK, hf_release(&hold, &error));
    EXPECT_STATUS(HF_OK, hf_close(other));
}

static void extensions_that_are_refused(void **state)
{
    (void)state;
    static const int64_t leases[] = {1, 99, 60001, -1, INT64_MIN, INT64_MAX};
    hf_hold *hold;
    EXPECT(HF_OK, hf_acquire(client, "lock", HF_ACQUIRE(.lease_ms = 30000), &hold, &error));
    for (size_t i = 0; i < sizeof(leases) / sizeof(leases[0]); i++) {
        EXPECT(HF_EINVAL, hf_extend(hold, leases[i], &error));
        assert_true(hf_is_valid(hold));
    }
    assert_in_range(raw_number(server, "PTTL lock"), 20000, 30000);
    EXPECT(HF_OK, hf_release(&hold, &error));
}

static void waits_that_are_refused(void **state)
{
    (void)state;
    refuse_options(HF_ACQUIRE(.wait_ms = -2), "wait_ms");
    refuse_options(HF_ACQUIRE(.wait_ms = INT64_MIN), "wait_ms");
    refuse_options(HF_ACQUIRE(.wait_ms = (int64_t)HF_MS_MAX + 1), "wait_ms");
    refuse_options(HF_ACQUIRE(.wait_ms = INT64_MAX), "wait_ms");
    refuse_options(HF_ACQUIRE(.retry_interval_ms = -1), "retry_interval_ms");
    refuse_options(HF_ACQUIRE(.retry_interval_ms = INT64_MAX), "retry_interval_ms");
    refuse_options(HF_ACQUIRE(.max_retries = -1), "max_retries");
    refuse_options(HF_ACQUIRE(.max_retries = INT64_MIN), "max_retries");
}

static void client_numbers_that_are_refused(void **state)
{
    (void)state;
    const char *url = server->url;
    refuse_client(url, HF_CLIENT(.connect_timeout_ms = -1), "connect_timeout_ms");
    refuse_client(url, HF_CLIENT(.reply_timeout_ms = -1), "reply_timeout_ms");
    refuse_client(url, HF_CLIENT(.call_timeout_ms = -1), "call_timeout_ms");
    refuse_client(url, HF_CLIENT(.max_lease_ms = -1), "max_lease_ms");
    refuse_client(url, HF_CLIENT(.max_lease_ms = 99), "max_lease_ms");
    refuse_client(url, HF_CLIENT(.max_lease_ms = (int64_t)HF_MS_MAX + 1), "max_lease_ms");
    refuse_client(url, HF_CLIENT(.call_timeout_ms = INT64_MAX), "call_timeout_ms");
    refuse_client(url, HF_CLIENT(.links = -1), "links");
    refuse_client(url, HF_CLIENT(.links = HF_LINKS_MAX + 1), "links");
}

/* ---- Sizes ----------------------------------------------------------------------------------- */

static void options_of_a_wrong_size(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, sizeof(size_t) - 1, SIZE_MAX};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        refuse_options(&(hf_acquire_options){.size = sizes[i]}, "size");
        refuse_client(server->url, &(hf_client_options){.size = sizes[i]}, "size");
        refuse_client(server->url, HF_CLIENT(.transport = &(hf_transport){.size = sizes[i]}),
                      "transport");
    }
}

/* From a header of the future, with a wish that this library cannot know. */
static void options_that_are_too_new(void **state)
{
    (void)state;
    struct {
        hf_acquire_options known;
        uint64_t unknown;
    } acquire = {.known.size = sizeof(acquire), .unknown = 1};
    struct {
        hf_client_options known;
        uint64_t unknown;
    } open = {.known.size = sizeof(open), .unknown = 1};
    refuse_options(&acquire.known, "newer");
    refuse_client(server->url, &open.known, "newer");
}

static void a_transport_without_functions(void **state)
{
    (void)state;
    refuse_client(server->url,
                  HF_CLIENT(.transport = &(hf_transport){.size = sizeof(hf_transport)}),
                  "transport");
}

/* ---- Callbacks ------------------------------------------------------------------------------- */

/* What calls that wait came to inside the log function, and how often it ran. */
static struct {
    hf_client *_Atomic client;
    atomic_int lines;
    atomic_int acquire_status;
    atomic_int close_status;
} overheard;

static void call_back(void *arg, hf_log_level level, const char *text)
{
    (void)arg;
    (void)level;
    (void)text;
    hf_hold *hold;
    hf_client *by = atomic_load(&overheard.client);
    if (by == NULL)
        return;
    atomic_store(&overheard.acquire_status, hf_acquire(by, "lock", NULL, &hold, NULL));
    atomic_store(&overheard.close_status, hf_close(by));
    atomic_fetch_add(&overheard.lines, 1);
}

static void calls_from_a_callback_are_refused(void **state)
{
    (void)state;
    struct peer *peer = peer_start_refusing();
    hf_client *logging;
    hf_hold *hold;
    EXPECT(HF_OK, hf_open(peer->url, HF_CLIENT(.log = call_back), &logging, &error));
    atomic_store(&overheard.client, logging);
    EXPECT(HF_EUNAVAILABLE, hf_acquire(logging, "lock", HF_ACQUIRE(.wait_ms = 200), &hold, &error));
    WAIT_UNTIL(atomic_load(&overheard.lines) > 0, 5000);
    atomic_store(&overheard.client, NULL);
    EXPECT_STATUS(HF_OK, hf_close(logging));
    assert_int_equal(atomic_load(&overheard.acquire_status), HF_EDEADLK);
    assert_int_equal(atomic_load(&overheard.close_status), HF_EDEADLK);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(null_where_something_is_needed),    TEST(null_where_nothing_is_fine),
        TEST(unknown_statuses_have_a_name),      TEST(names_that_are_refused),
        TEST(prefixes_that_make_a_refused_key),  TEST(a_prefix_counts_for_the_length),
        TEST(leases_that_are_refused),           TEST(the_longest_lease_is_the_client_s),
        TEST(extensions_that_are_refused),       TEST(waits_that_are_refused),
        TEST(client_numbers_that_are_refused),   TEST(options_of_a_wrong_size),
        TEST(options_that_are_too_new),          TEST(a_transport_without_functions),
        TEST(calls_from_a_callback_are_refused),
    };
    return cmocka_run_group_tests_name("bad input", tests, start_server, end_server);
}
