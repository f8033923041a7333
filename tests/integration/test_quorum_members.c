/* SPDX-License-Identifier: MIT */
/* Goal: whoever names servers that are no quorum, or whose servers cannot make one now, is told so,
 * and what is the matter with each of them.
 */
#include <stdio.h>
#include <string.h>

#include "quorum.h"

static hf_client *client;
static hf_error error;
static hf_hold *hold;

/* With a client that was not connected to it: what is sent to a server that is just dying may have
 * been done, and that is another answer. */
static void kill_unseen(int number)
{
    assert_int_equal(close_clients(NULL), 0);
    quorum_kill(number);
    open_client_at(quorum_urls(quorum.count), &client, HF_CLIENT(PATIENT));
}

/* ---- The same one twice ---------------------------------------------------------------------- */

static void an_address_that_is_listed_twice_is_refused(void **state)
{
    char urls[256];
    (void)state;
    quorum_start(2);
    const char *first = quorum.servers[0]->url, *second = quorum.servers[1]->url;
    (void)snprintf(urls, sizeof(urls), "%s,%s,%s", first, second, first);
    EXPECT(HF_EINVAL, hf_open(urls, NULL, &client, &error));
    assert_null(client);
    expect_says(error.text, "twice");
    (void)snprintf(urls, sizeof(urls), "redis://127.0.0.1:%d,127.0.0.1:%d", quorum.servers[0]->port,
                   quorum.servers[0]->port);
    EXPECT(HF_EINVAL, hf_open(urls, NULL, &client, &error));
    assert_null(client);
}

/* Two names that only the server can tell to be one. Neither order may make a majority of one. */
static void a_server_with_two_names_has_one_vote(void **state)
{
    char urls[256];
    (void)state;
    quorum_start(1);
    const char *names[] = {"127.0.0.1", "localhost"};
    for (int i = 0; i < 2; i++) {
        (void)snprintf(urls, sizeof(urls), "redis://%s:%d redis://%s:%d", names[i],
                       quorum.servers[0]->port, names[1 - i], quorum.servers[0]->port);
        open_client_at(urls, &client, HF_CLIENT(PATIENT));
        EXPECT(HF_EUNSAFE, hf_acquire(client, "lock", HF_ACQUIRE(.wait_ms = 5000), &hold, &error));
        assert_null(hold);
        expect_says(error.text, "the same server");
        WAIT_UNTIL(quorum_held() == 0, QUORUM_PATIENCE_MS);
        assert_int_equal(close_clients(NULL), 0);
    }
}

static void by_its_socket_it_is_the_same_server_too(void **state)
{
    char urls[512];
    (void)state;
    quorum_start(2);
    (void)snprintf(urls, sizeof(urls), "%s %s %s", quorum.servers[0]->url,
                   quorum.servers[0]->unix_url, quorum.servers[1]->url);
    open_client_at(urls, &client, HF_CLIENT(PATIENT));
    quorum_kill(1); /* now two of three answer, but they are one */
    EXPECT(HF_EUNAVAILABLE, hf_acquire(client, "lock", NULL, &hold, &error));
    expect_says(error.text, "the same server");
    WAIT_UNTIL(quorum_held() == 0, QUORUM_PATIENCE_MS);
}

/* ---- Two of them ----------------------------------------------------------------------------- */

static char warning[256];

static void keep_warning(void *arg, hf_log_level level, const char *text)
{
    (void)arg;
    if (level == HF_LOG_WARNING && strstr(text, "two servers") != NULL)
        (void)snprintf(warning, sizeof(warning), "%s", text);
}

static void two_servers_work_and_are_warned_of(void **state)
{
    (void)state;
    quorum_start(3);
    warning[0] = '\0';
    open_client_at(quorum_urls(3), &client, HF_CLIENT(PATIENT, .log = keep_warning));
    assert_string_equal(warning, "");
    assert_int_equal(close_clients(NULL), 0);
    quorum.count = 2;
    open_client_at(quorum_urls(2), &client, HF_CLIENT(PATIENT, .log = keep_warning));
    expect_says(warning, "no availability");
    expect_free(client);
    kill_unseen(1);
    EXPECT(HF_EUNAVAILABLE, hf_acquire(client, "lock", NULL, &hold, &error));
    expect_says(error.text, quorum_address(1));
}

/* ---- What is the matter with each ------------------------------------------------------------ */

static void expect_each_named(int count)
{
    for (int i = 0; i < count; i++)
        expect_says(error.text, quorum_address(i));
}

static void servers_that_are_down_are_named(void **state)
{
    (void)state;
    for (int count = 3; count <= 5; count += 2) {
        quorum_start(count);
        open_client_at(quorum_urls(count), &client, HF_CLIENT(PATIENT));
        for (int i = 0; i < count; i++)
            quorum_kill(i);
        EXPECT(HF_EUNAVAILABLE, hf_acquire(client, "lock", NULL, &hold, &error));
        assert_null(hold);
        expect_each_named(count);
        expect_says(error.text, "refused");
        assert_int_equal(quorum_end(NULL), 0);
    }
}

/* Two that have answered are enough to know it, so one of them may be missing. */
static void the_holder_is_named(void **state)
{
    (void)state;
    quorum_start(3);
    open_client_at(quorum_urls(3), &client, HF_CLIENT(PATIENT));
    for (int i = 0; i < 3; i++)
        raw(quorum.servers[i], "SET lock somebody");
    EXPECT(HF_EBUSY, hf_acquire(client, "lock", NULL, &hold, &error));
    expect_each_named(3);
    expect_says(error.text, "held by somebody");
}

/* A refusal and a fault are told apart: the lock is free or held at two, and one says nothing. */
static void a_refusal_is_not_a_fault(void **state)
{
    (void)state;
    quorum_start(3);
    open_client_at(quorum_urls(3), &client, HF_CLIENT(PATIENT));
    quorum_kill(2);
    raw(quorum.servers[0], "SET lock somebody");
    raw(quorum.servers[1], "SET lock somebody");
    EXPECT(HF_EBUSY, hf_acquire(client, "lock", NULL, &hold, &error));
    raw(quorum.servers[1], "DEL lock");
    EXPECT(HF_EBUSY, hf_acquire(client, "lock", NULL, &hold, &error));
    expect_says(error.text, "1 of 3");
    WAIT_UNTIL(quorum_held() == 1, QUORUM_PATIENCE_MS); /* what was granted is given back */
    kill_unseen(1);
    EXPECT(HF_EUNAVAILABLE, hf_acquire(client, "lock", NULL, &hold, &error));
}

static void what_no_server_will_ever_do_ends_the_waiting(void **state)
{
    (void)state;
    quorum_start(3);
    open_client_at(quorum_urls(3), &client, HF_CLIENT(PATIENT));
    raw(quorum.servers[0], "LPUSH lock x");
    hold = acquire_with(client, HF_ACQUIRE(.wait_ms = QUORUM_PATIENCE_MS)); /* the other two do */
    release(&hold);
    raw(quorum.servers[1], "LPUSH lock x");
    EXPECT(HF_ESERVER, hf_acquire(client, "lock", HF_ACQUIRE(.wait_ms = -1), &hold, &error));
    expect_says(error.text, "WRONGTYPE");
    WAIT_UNTIL(raw_number(quorum.servers[2], "EXISTS lock") == 0, QUORUM_PATIENCE_MS);
}

/* ---- Unwilling ones -------------------------------------------------------------------------- */

static void who_is_not_let_in_by_one_needs_the_others(void **state)
{
    (void)state;
    quorum_start(3);
    raw(quorum.servers[0], "CONFIG SET requirepass secret");
    open_client_at(quorum_urls(3), &client, HF_CLIENT(PATIENT));
    expect_free(client);
    assert_int_equal(close_clients(NULL), 0);
    raw(quorum.servers[1], "CONFIG SET requirepass secret");
    open_client_at(quorum_urls(3), &client, HF_CLIENT(PATIENT));
    EXPECT(HF_EDENIED, hf_acquire(client, "lock", HF_ACQUIRE(.wait_ms = -1), &hold, &error));
    expect_says(error.text, quorum_address(0));
    expect_says(error.text, quorum_address(1));
}

/* One of three has no memory left for anything: that is one server less, and passes. */
static void a_full_server_is_a_fault_of_one(void **state)
{
    (void)state;
    quorum_start(3);
    open_client_at(quorum_urls(3), &client, HF_CLIENT(PATIENT));
    raw(quorum.servers[0], "CONFIG SET maxmemory 1");
    expect_free(client);
    raw(quorum.servers[1], "CONFIG SET maxmemory 1");
    EXPECT(HF_EUNAVAILABLE, hf_acquire(client, "lock", NULL, &hold, &error));
    expect_says(error.text, "memory");
    raw(quorum.servers[1], "CONFIG SET maxmemory 0");
    hold = acquire_with(client, HF_ACQUIRE(.wait_ms = QUORUM_PATIENCE_MS));
    release(&hold);
    WAIT_UNTIL(quorum_held() == 0, QUORUM_PATIENCE_MS);
}

#define TEST(test) cmocka_unit_test_teardown(test, quorum_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_address_that_is_listed_twice_is_refused),
        TEST(a_server_with_two_names_has_one_vote),
        TEST(by_its_socket_it_is_the_same_server_too),
        TEST(two_servers_work_and_are_warned_of),
        TEST(servers_that_are_down_are_named),
        TEST(the_holder_is_named),
        TEST(a_refusal_is_not_a_fault),
        TEST(who_is_not_let_in_by_one_needs_the_others),
        TEST(a_full_server_is_a_fault_of_one),
        TEST(what_no_server_will_ever_do_ends_the_waiting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
