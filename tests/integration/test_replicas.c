/* SPDX-License-Identifier: MIT */
/* Goal: an acquire with replicas = k says HF_OK only when k replicas have the lock too, however it
 * was granted; otherwise it leaves nothing behind; and while it waits for them, nobody else does.
 *
 * A primary and two replicas, all real. A replica that is stopped counts as connected and
 * acknowledges nothing. That a WAIT is pending is seen at the primary, which counts the connections
 * that it keeps waiting: nothing here is told by time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fixture.h"

enum { REPLICAS = 2, LONG_MS = 60000, SYNC_BOUND_MS = 20000 };

static struct redis_server *replicas[REPLICAS];
static hf_hold *hold;
static hf_error error;
static struct attempt attempt;

/* ---- Verbs ----------------------------------------------------------------------------------- */

static bool is_in_step(struct redis_server *replica)
{
    return strstr(raw(replica, "INFO replication"), "master_link_status:up") != NULL;
}

static int begin(void **state)
{
    (void)state;
    static const char *const at_once[] = {"--repl-diskless-sync-delay", "0", NULL};
    server = redis_server_start(&(struct redis_server_options){.extra = at_once});
    for (int i = 0; i < REPLICAS; i++)
        replicas[i] =
            redis_server_start(&(struct redis_server_options){.replica_of = server->port});
    for (int i = 0; i < REPLICAS; i++)
        WAIT_UNTIL(is_in_step(replicas[i]), SYNC_BOUND_MS);
    /* The first write reaches a new replica only when that has said that it is there. */
    assert_string_equal(raw(server, "SET begun 1"), "OK");
    WAIT_UNTIL(raw_number(server, "WAIT 2 100") == REPLICAS, SYNC_BOUND_MS);
    assert_string_equal(raw(server, "CONFIG RESETSTAT"), "OK");
    return 0;
}

/* One whose WAITs last long enough for a machine that is busy, */
static void open_calm(hf_client **client)
{
    open_client_with(client, HF_CLIENT(.reply_timeout_ms = 4000, .call_timeout_ms = 8000));
}

/* and one whose WAITs last longer than any test. */
static void open_patient(hf_client **client)
{
    open_client_with(client, HF_CLIENT(.reply_timeout_ms = LONG_MS, .call_timeout_ms = LONG_MS));
}

static bool one_is_blocked(void)
{
    return strstr(raw(server, "INFO clients"), "blocked_clients:1\r") != NULL;
}

static long long waits_seen(void)
{
    static const char field[] = "cmdstat_wait:calls=";
    const char *found = strstr(raw(server, "INFO commandstats"), field);
    return found != NULL ? strtoll(found + strlen(field), NULL, 10) : 0;
}

/* The replica has the lock as the primary has it. */
static void expect_copied(struct redis_server *replica)
{
    char value[200];
    (void)snprintf(value, sizeof(value), "%s", raw(server, "GET lock"));
    assert_string_not_equal(value, "(nil)");
    assert_string_equal(raw(replica, "GET lock"), value);
}

/* ---- Granted --------------------------------------------------------------------------------- */

static void granted_when_they_have_it(void **state)
{
    (void)state;
    open_calm(&alice);
    for (int k = 1; k <= REPLICAS; k++) {
        EXPECT(HF_OK, hf_acquire(alice, "lock", HF_ACQUIRE(.replicas = k), &hold, &error));
        assert_true(hf_is_valid(hold));
        for (int i = 0; k == REPLICAS && i < REPLICAS; i++)
            expect_copied(replicas[i]);
        release(&hold);
    }
    EXPECT(HF_OK,
           hf_acquire(alice, "lock", HF_ACQUIRE(.replicas = 2, .owner = "order 7"), &hold, &error));
    expect_copied(replicas[0]);
    expect_copied(replicas[1]);
    release(&hold);
    expect_free(alice);
}

static void one_of_two_is_enough_for_one(void **state)
{
    (void)state;
    open_calm(&alice);
    redis_server_freeze(replicas[0]);
    EXPECT(HF_OK, hf_acquire(alice, "lock", HF_ACQUIRE(.replicas = 1), &hold, &error));
    expect_copied(replicas[1]);
    release(&hold);
    redis_server_thaw(replicas[0]);
}

static void a_failover_keeps_the_lock(void **state)
{
    (void)state;
    char value[200];
    open_calm(&alice);
    redis_server_freeze(replicas[0]);
    EXPECT(HF_OK, hf_acquire(alice, "lock", HF_ACQUIRE(.replicas = 1, .lease_ms = LONG_MS), &hold,
                             &error));
    (void)snprintf(value, sizeof(value), "%s", raw(server, "GET lock"));
    redis_server_kill(server);
    assert_string_equal(raw(replicas[1], "REPLICAOF NO ONE"), "OK");
    assert_string_equal(raw(replicas[1], "GET lock"), value);
    open_client_at(replicas[1]->url, &bob, NULL);
    expect_refused(bob);
    redis_server_thaw(replicas[0]);
    (void)hf_release(&hold, NULL); /* whatever it says: its server is gone */
    (void)hf_close(alice);
    alice = NULL;
}

/* ---- Not granted ----------------------------------------------------------------------------- */

static void too_few_give_it_back(void **state)
{
    (void)state;
    open_calm(&alice);
    redis_server_freeze(replicas[0]);
    EXPECT(HF_EUNAVAILABLE, hf_acquire(alice, "lock", HF_ACQUIRE(.replicas = 2), &hold, &error));
    assert_null(hold);
    assert_true(strncmp(error.text, "1 of 2 replicas acknowledged within ", 36) == 0);
    expect_says(error.text, "given back");
    expect_free(alice);
    EXPECT(HF_EUNAVAILABLE, hf_acquire(alice, "lock", HF_ACQUIRE(.replicas = 3), &hold, &error));
    expect_says(error.text, "1 of 3 replicas");
    redis_server_thaw(replicas[0]);
}

static void one_who_may_wait_gets_it_when_they_are_back(void **state)
{
    (void)state;
    open_calm(&alice);
    redis_server_freeze(replicas[0]);
    attempt_begin(&attempt, alice, "lock", HF_ACQUIRE(.replicas = 2, .wait_ms = -1));
    WAIT_UNTIL(waits_seen() >= 3, SYNC_BOUND_MS);
    assert_false(attempt_is_over(&attempt));
    redis_server_thaw(replicas[0]);
    assert_int_equal(attempt_end(&attempt), HF_OK);
    expect_copied(replicas[0]);
    expect_copied(replicas[1]);
    release(&attempt.hold);
}

static void without_permission_it_is_refused(void **state)
{
    (void)state;
    open_calm(&alice);
    assert_string_equal(raw(server, "ACL SETUSER default -wait"), "OK");
    EXPECT(HF_EDENIED,
           hf_acquire(alice, "lock", HF_ACQUIRE(.replicas = 1, .wait_ms = LONG_MS), &hold, &error));
    expect_says(error.text, "wait");
    expect_free(alice);
}

/* ---- Nobody else is kept waiting ------------------------------------------------------------- */

static void others_are_served_meanwhile(void **state)
{
    (void)state;
    open_patient(&alice);
    redis_server_freeze(replicas[0]);
    attempt_begin(&attempt, alice, "lock", HF_ACQUIRE(.replicas = 2, .lease_ms = LONG_MS));
    WAIT_UNTIL(one_is_blocked(), SYNC_BOUND_MS);
    EXPECT(HF_OK, hf_acquire(alice, "another", NULL, &hold, &error));
    EXPECT(HF_OK, hf_extend(hold, 0, &error));
    release(&hold);
    assert_true(one_is_blocked());
    assert_false(attempt_is_over(&attempt));
    redis_server_thaw(replicas[0]);
    assert_int_equal(attempt_end(&attempt), HF_OK);
    release(&attempt.hold);
}

static void a_lock_that_was_handed_on_is_not_believed_before(void **state)
{
    (void)state;
    open_patient(&bob);
    open_calm(&alice);
    hold = acquire_with(alice, NULL);
    attempt_begin(&attempt, bob, "lock",
                  HF_ACQUIRE(.replicas = 2, .wait_ms = LONG_MS, .lease_ms = LONG_MS));
    WAIT_UNTIL(queued() == 1, SYNC_BOUND_MS);
    redis_server_freeze(replicas[0]);
    release(&hold);
    WAIT_UNTIL(one_is_blocked(), SYNC_BOUND_MS);
    assert_int_equal(queued(), 0); /* it was handed on */
    assert_false(attempt_is_over(&attempt));
    redis_server_thaw(replicas[0]);
    assert_int_equal(attempt_end(&attempt), HF_OK);
    expect_copied(replicas[0]);
    expect_copied(replicas[1]);
    release(&attempt.hold);
}

static void only_such_acquires_wait(void **state)
{
    (void)state;
    open_calm(&alice);
    EXPECT(HF_OK, hf_acquire(alice, "lock", HF_ACQUIRE(.replicas = 2), &hold, &error));
    long long seen = waits_seen();
    long long connections = connections_seen();
    EXPECT(HF_OK, hf_extend(hold, 0, &error));
    release(&hold);
    expect_free(alice);
    assert_int_equal(waits_seen(), seen);
    EXPECT(HF_OK, hf_acquire(alice, "lock", HF_ACQUIRE(.replicas = 2), &hold, &error));
    assert_int_equal(waits_seen(), seen + 1);
    assert_int_equal(connections_seen(), connections); /* on the link that was there */
    release(&hold);
}

static void what_makes_no_sense_is_refused(void **state)
{
    (void)state;
    open_calm(&alice);
    EXPECT(HF_EINVAL, hf_acquire(alice, "lock", HF_ACQUIRE(.replicas = -1), &hold, &error));
    expect_says(error.text, "replicas");
    EXPECT(HF_EINVAL, hf_acquire(alice, "lock", HF_ACQUIRE(.replicas = 1001), &hold, &error));
}

/* Where a majority of servers must have it, nobody is asked about replicas. */
static void it_is_for_one_server(void **state)
{
    (void)state;
    char urls[200];
    (void)snprintf(urls, sizeof(urls), "%s,%s", server->url, replicas[0]->url);
    open_client_at(urls, &alice, HF_CLIENT(.durable_servers = true));
    EXPECT(HF_EINVAL, hf_acquire(alice, "lock", HF_ACQUIRE(.replicas = 1), &hold, &error));
    assert_null(hold);
    expect_says(error.text, "replicas is for one server");
    assert_int_equal(waits_seen(), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end_everything)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(granted_when_they_have_it),
        TEST(one_of_two_is_enough_for_one),
        TEST(a_failover_keeps_the_lock),
        TEST(too_few_give_it_back),
        TEST(one_who_may_wait_gets_it_when_they_are_back),
        TEST(without_permission_it_is_refused),
        TEST(others_are_served_meanwhile),
        TEST(a_lock_that_was_handed_on_is_not_believed_before),
        TEST(only_such_acquires_wait),
        TEST(what_makes_no_sense_is_refused),
        TEST(it_is_for_one_server),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
