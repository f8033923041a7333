/* SPDX-License-Identifier: MIT */
/* Tests of the scripts on a model server, as the library calls them: locks that are shared, and
 * locks that are handed on by messages. */
#include "lua/scripts.h"
#include "model_words.h"

#define ACQUIRE_KEYS "5", "lock", "queue", "fence", "notes", "holders"

static void messages_reach_subscribers(void **state)
{
    (void)state;
    sim_server_connect(server, 1);
    sim_server_connect(server, 2);
    say(1, "*2\r\n$9\r\nSUBSCRIBE\r\n$1\r\nc\r\n");
    EXPECT_SAID(1, "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n");
    EXPECT_RUN("[1 1]", "EVAL",
               "return {redis.call('PUBSUB', 'NUMSUB', 'c')[2], redis.call('PUBLISH', 'c', 'hi')}",
               "0");
    EXPECT_SAID(1, "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$2\r\nhi\r\n");
    EXPECT_SAID(2, "");
    sim_server_disconnect(server, 1);
    EXPECT_RUN("0", "PUBLISH", "c", "hi");
}

/* The scripts as the library calls them, where a lock is shared. */
static void sharers_have_a_life_of_their_own(void **state)
{
    (void)state;
    int64_t wall_us = 1800000000000000;
    const char *acquire = hf__scripts[HF__SCRIPT_ACQUIRE].body;
    const char *release = hf__scripts[HF__SCRIPT_RELEASE].body;
    sim_server_set_time(server, wall_us);
    EXPECT_RUN("[1800000000000000 500]", "EVAL", acquire, ACQUIRE_KEYS, "one", "500", "1000", "1",
               "0", "", "us");
    EXPECT_RUN("[1800000000000000 300]", "EVAL", acquire, ACQUIRE_KEYS, "two", "300", "1000", "1",
               "0", "", "us");
    EXPECT_RUN("[0 500 us]", "EVAL", acquire, ACQUIRE_KEYS, "other", "300", "1000", "1", "0", "",
               "them");
    double score = 0;
    assert_true(sim_server_score(server, "holders", 7, "two", &score));
    assert_true(score == 1800000000300.0);
    advance_ms(&wall_us, 400);
    EXPECT_RUN("1", "EVAL", release, ACQUIRE_KEYS, "one", "0", "1000", "us");
    EXPECT_RUN("-2", "PTTL", "lock");
}

/* A release gives the lock to the first who waits and can hear of it, and tells nobody else. */
static void a_release_hands_on(void **state)
{
    (void)state;
    const char *acquire = hf__scripts[HF__SCRIPT_ACQUIRE].body;
    const char *release = hf__scripts[HF__SCRIPT_RELEASE].body;
#define CLIENT(digit)  "0000000000000000000000000000000" digit
#define TAKE(value, n) "EVAL", acquire, ACQUIRE_KEYS, value, "500", "1000", "1", n
    sim_server_connect(server, 1);
    say(1, "*2\r\n$9\r\nSUBSCRIBE\r\n$37\r\nhf:c:" CLIENT("2") "\r\n");
    sim_server_taken(server, 1, sim_server_output(server, 1, &(const char *){NULL}));
    EXPECT_RUN("1700000000000000", TAKE(CLIENT("1") ":1@h", "0"));
    EXPECT_RUN("[0 500 " CLIENT("1") ":1@h 1 0]", TAKE(CLIENT("3") ":1@h", "4"));
    EXPECT_RUN("[0 500 " CLIENT("1") ":1@h 2 0]", TAKE(CLIENT("2") ":7@h", "5"));
    EXPECT_RUN("[0 500 " CLIENT("1") ":1@h 3 0]", TAKE(CLIENT("2") ":8@h", "6"));
    EXPECT_RUN("1", "EVAL", release, ACQUIRE_KEYS, CLIENT("1") ":1@h", "0", "1000");
    EXPECT_RUN(CLIENT("2") ":7@h", "GET", "lock");
    EXPECT_SAID(
        1, "*3\r\n$7\r\nmessage\r\n$37\r\nhf:c:" CLIENT("2") "\r\n$28\r\n"
                                                             "g 7 5 1700000000000001 500 1\r\n");
    EXPECT_RUN("1", "ZCARD", "queue");
}

/* After a failover, whoever is subscribed at the old primary hears what is published, and counts
 * for nothing. */
static void a_demoted_primary_still_tells(void **state)
{
    (void)state;
    sim_server_connect(server, 1);
    sim_server_connect(server, 2);
    say(1, "*2\r\n$9\r\nSUBSCRIBE\r\n$1\r\nc\r\n");
    EXPECT_SAID(1, "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n");
    (void)RUN("SET", "a", "1");
    sim_server_fail_over(server);
    assert_string_equal(sim_server_get(server, "a", 1), "1");
    assert_int_equal(sim_server_subscribers(server, "c"), 0);
    EXPECT_RUN("[c 0]", "PUBSUB", "NUMSUB", "c");
    EXPECT_RUN("0", "PUBLISH", "c", "hi");
    EXPECT_SAID(1, "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$2\r\nhi\r\n");
    say(2, "*1\r\n$4\r\nPING\r\n");
    EXPECT_SAID(2, "");
}

/* Who may not ask whether a waiter can be told goes by its time alone; and hands on in silence. */
static void a_release_without_permission_hands_on(void **state)
{
    (void)state;
    const char *acquire = hf__scripts[HF__SCRIPT_ACQUIRE].body;
    EXPECT_RUN("1700000000000000", TAKE(CLIENT("1") ":1@h", "0"));
    EXPECT_RUN("[0 500 " CLIENT("1") ":1@h 1 0]", TAKE(CLIENT("2") ":7@h", "5"));
    sim_server_connect(server, 3);
    sim_server_deny(server, 3, SIM_NO_PUBSUB);
    (void)RUN("SCRIPT", "LOAD", hf__scripts[HF__SCRIPT_RELEASE].body);
    hf__buffer request = {.bytes = NULL};
    const char *words[] = {"EVALSHA",    hf__scripts[HF__SCRIPT_RELEASE].sha1,
                           ACQUIRE_KEYS, CLIENT("1") ":1@h",
                           "0",          "1000"};
    hf__slice slices[sizeof(words) / sizeof(words[0])];
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        slices[i] = hf__slice_text(words[i]);
    assert_true(hf__resp_encode(&request, slices, sizeof(words) / sizeof(words[0])));
    sim_server_receive(server, 3, hf__buffer_front(&request), hf__buffer_length(&request));
    hf__buffer_free(&request);
    EXPECT_SAID(3, ":1\r\n");
    EXPECT_RUN(CLIENT("2") ":7@h", "GET", "lock");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        TEST(messages_reach_subscribers),
        TEST(sharers_have_a_life_of_their_own),
        TEST(a_release_hands_on),
        TEST(a_demoted_primary_still_tells),
        TEST(a_release_without_permission_hands_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
