/* SPDX-License-Identifier: MIT */
/* Connections: how they come up, what is said first, what happens when they do not, and that a
 * server that is down is neither stormed nor forgotten. */
#include <stdio.h>
#include <string.h>

#include "stage.h"

#define S the_stage

static void connects_only_when_needed(void **state)
{
    (void)state;
    SETUP(.links = 4);
    ADVANCE_MS(5000);
    assert_int_equal(S.connects, 0);
    ACQUIRE(1, "x");
    EXPECT(1, HF_OK);
    assert_int_equal(S.connects, 1);
    FINISH();
}

static void one_lock_stays_on_one_link(void **state)
{
    (void)state;
    char name[32];
    SETUP(.links = 4);
    for (int i = 0; i < 10; i++) {
        ACQUIRE(1, "x");
        RELEASE(1);
    }
    assert_int_equal(S.connects, 1);
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof(name), "lock-%d", i);
        ACQUIRE(2, name);
        RELEASE(2);
    }
    assert_int_equal(S.connects, 4);
    FINISH();
}

static void greets_with_credentials_and_database(void **state)
{
    (void)state;
    SETUP(.url = "redis://me:secret@node/3");
    S.node.password = "secret";
    ACQUIRE(1, "x");
    EXPECT(1, HF_OK);
    FINISH();
}

static void a_wrong_password_is_final(void **state)
{
    (void)state;
    SETUP(.url = "redis://:wrong@node");
    S.node.password = "secret";
    ACQUIRE(1, "x", .wait_ms = 60000);
    EXPECT(1, HF_EDENIED);
    EXPECT_TEXT(1, "node:6379");
    assert_null(strstr(S.calls[1].error.text, "wrong"));
    FINISH();
}

static void a_replica_is_not_used(void **state)
{
    (void)state;
    SETUP();
    S.node.role = "slave";
    ACQUIRE(1, "x");
    EXPECT(1, HF_EUNAVAILABLE);
    EXPECT_TEXT(1, "replica");
    ACQUIRE(2, "x", .wait_ms = 5000);
    ADVANCE_MS(500);
    EXPECT_WAITING(2);
    S.node.role = "master"; /* promoted */
    ADVANCE_MS(1100);
    EXPECT(2, HF_OK);
    FINISH();
}

static void a_server_that_loads_is_waited_for(void **state)
{
    (void)state;
    SETUP();
    S.node.greeting_error = "-LOADING Redis is loading the dataset in memory\r\n";
    ACQUIRE(1, "x");
    EXPECT(1, HF_EUNAVAILABLE);
    EXPECT_TEXT(1, "loading");
    ACQUIRE(2, "x", .wait_ms = 5000);
    ADVANCE_MS(200);
    EXPECT_WAITING(2);
    S.node.greeting_error = NULL;
    ADVANCE_MS(1100);
    EXPECT(2, HF_OK);
    FINISH();
}

static void one_try_fails_with_the_attempt(void **state)
{
    (void)state;
    SETUP();
    S.refuses = true;
    ACQUIRE(1, "x");
    EXPECT(1, HF_EUNAVAILABLE);
    EXPECT_TEXT(1, "refused");
    FINISH();
}

static void waiting_outlasts_a_server_that_is_down(void **state)
{
    (void)state;
    SETUP();
    S.refuses = true;
    ACQUIRE(1, "x", .wait_ms = 60000);
    ADVANCE_MS(30000);
    EXPECT_WAITING(1);
    S.refuses = false;
    ADVANCE_MS(1100);
    EXPECT(1, HF_OK);
    FINISH();
}

static void a_server_that_is_down_is_not_stormed(void **state)
{
    (void)state;
    SETUP();
    S.refuses = true;
    for (int i = 1; i < 10; i++)
        ACQUIRE(i, "x", .wait_ms = 60000, .retry_interval_ms = 10);
    ADVANCE_MS(30000);
    /* One attempt every 50 ms at the most, however many want it. */
    assert_in_range(S.connects, 100, 620);
    FINISH();
}

/* Nobody asks anew while a request that was sent waits for its answer: then the pauses grow. */
static void attempts_back_off(void **state)
{
    (void)state;
    SETUP(.call_timeout_ms = 60000);
    ACQUIRE(1, "x");
    S.deaf = true;
    RELEASE(1);
    S.refuses = true;
    CUT();
    ADVANCE_MS(9000);
    /* Pauses of at most 10, 20, 40 ... 1000 ms, at least half of that. */
    assert_in_range(S.connects, 14, 28);
    FINISH();
}

static void connecting_has_a_time_limit(void **state)
{
    (void)state;
    SETUP(.connect_timeout_ms = 300);
    S.swallows = true;
    ACQUIRE(1, "x");
    ADVANCE_MS(299);
    EXPECT_WAITING(1);
    ADVANCE_MS(1);
    EXPECT(1, HF_EUNAVAILABLE);
    EXPECT_TEXT(1, "did not accept");
    FINISH();
}

static void greeting_has_a_time_limit(void **state)
{
    (void)state;
    SETUP(.reply_timeout_ms = 300);
    S.mute = true;
    ACQUIRE(1, "x");
    ADVANCE_MS(300);
    EXPECT(1, HF_EUNAVAILABLE);
    EXPECT_TEXT(1, "no answer within 300 ms");
    FINISH();
}

static void the_call_has_a_time_limit_whatever_the_server_does(void **state)
{
    (void)state;
    SETUP(.call_timeout_ms = 700, .connect_timeout_ms = 60000);
    S.swallows = true;
    ACQUIRE(1, "x");
    ACQUIRE(2, "x", .wait_ms = 400);
    ACQUIRE(3, "x", .max_retries = 2);
    ADVANCE_MS(399);
    EXPECT_WAITING(2);
    ADVANCE_MS(1);
    EXPECT(2, HF_EUNAVAILABLE);
    EXPECT_WAITING(1);
    ADVANCE_MS(300);
    EXPECT(1, HF_EUNAVAILABLE);
    ADVANCE_MS(2 * (700 + 100) - 1);
    EXPECT_WAITING(3);
    ADVANCE_MS(1);
    EXPECT(3, HF_EUNAVAILABLE);
    FINISH();
}

static void a_silent_connection_is_given_up(void **state)
{
    (void)state;
    SETUP(.reply_timeout_ms = 500);
    ACQUIRE(1, "warm");
    S.deaf = true;
    ACQUIRE(2, "x");
    ADVANCE_MS(499);
    assert_int_equal(S.connects, 1);
    S.deaf = false;
    ADVANCE_MS(20);
    assert_int_equal(S.connects, 2);
    EXPECT(2, HF_OK);
    FINISH();
}

static void an_idle_connection_that_closes_is_no_trouble(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x");
    CUT();
    ADVANCE_MS(60000);
    assert_int_equal(S.connects, 1);
    ACQUIRE(2, "y");
    EXPECT(2, HF_OK);
    FINISH();
}

static void what_waits_is_sent_in_order(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x");
    S.mute = true;
    RELEASE(1);
    ACQUIRE(2, "x");
    CUT();
    S.mute = false;
    ADVANCE_MS(20);
    EXPECT(1, HF_EUNKNOWN); /* its first copy came before the acquire; who knows what it found */
    EXPECT(2, HF_OK);
    EXPECT_KEY("x");
    FINISH();
}

static void bytes_may_come_one_by_one(void **state)
{
    (void)state;
    SETUP();
    S.trickles = true;
    ACQUIRE(1, "x");
    EXPECT(1, HF_OK);
    RELEASE(1);
    EXPECT(1, HF_OK);
    FINISH();
}

static void greetings_that_make_no_sense(void **state)
{
    (void)state;
    static const char *const nonsense[] = {"HTTP/1.1 400 Bad Request\r\n\r\n", "*2147483648\r\n",
                                           "$-9\r\n", "\r\n", "SSH-2.0-OpenSSH_9.2\r\n"};
    for (size_t i = 0; i < sizeof(nonsense) / sizeof(nonsense[0]); i++) {
        SETUP();
        S.node.greeting_error = nonsense[i];
        ACQUIRE(1, "x");
        EXPECT(1, HF_EUNAVAILABLE);
        EXPECT_TEXT(1, "does not speak the Redis protocol");
        FINISH();
    }
}

/* The greeting works and every request breaks the connection: a proxy that does not like scripts.
 */
static void connections_that_break_again_and_again_are_spaced(void **state)
{
    (void)state;
    SETUP();
    S.node.always = "\r\n"; /* which ends the connection */
    for (int ms = 0; ms < 1000; ms++) {
        ACQUIRE(1 + ms % 8, "x", .wait_ms = 5);
        ADVANCE_MS(1);
    }
    assert_in_range(S.connects, 10, 40);
    FINISH();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(connects_only_when_needed),
        cmocka_unit_test(one_lock_stays_on_one_link),
        cmocka_unit_test(greets_with_credentials_and_database),
        cmocka_unit_test(a_wrong_password_is_final),
        cmocka_unit_test(a_replica_is_not_used),
        cmocka_unit_test(a_server_that_loads_is_waited_for),
        cmocka_unit_test(one_try_fails_with_the_attempt),
        cmocka_unit_test(waiting_outlasts_a_server_that_is_down),
        cmocka_unit_test(a_server_that_is_down_is_not_stormed),
        cmocka_unit_test(attempts_back_off),
        cmocka_unit_test(connecting_has_a_time_limit),
        cmocka_unit_test(greeting_has_a_time_limit),
        cmocka_unit_test(the_call_has_a_time_limit_whatever_the_server_does),
        cmocka_unit_test(a_silent_connection_is_given_up),
        cmocka_unit_test(an_idle_connection_that_closes_is_no_trouble),
        cmocka_unit_test(what_waits_is_sent_in_order),
        cmocka_unit_test(bytes_may_come_one_by_one),
        cmocka_unit_test(greetings_that_make_no_sense),
        cmocka_unit_test(connections_that_break_again_and_again_are_spaced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
