/* SPDX-License-Identifier: MIT */
/* Goal: a real server that cannot serve now is waited for, within the caller's bound, and named in
 * the text; one that never will is reported at once; and what it keeps is not touched.
 *
 * Each test brings a server into one such state and, where that state can pass, out of it again:
 * the same client must then get its lock. What a server that never was a Redis server does is in
 * test_hostile.c.
 */
#include <string.h>

#include "fixture.h"

enum { WAIT_MS = 300 };

static hf_client *client;
static hf_hold *hold;
static hf_error error;
static struct attempt waiter;

static int begin(void **state)
{
    (void)state;
    hold = NULL;
    return 0;
}

/* ---- Verbs ----------------------------------------------------------------------------------- */

static void expect_acquired(int64_t wait_ms)
{
    hold = acquire_with(client, HF_ACQUIRE(.wait_ms = wait_ms, .retry_interval_ms = 20));
}

/* One try says so, and so does a wait when it is over; both in their bounds. Never by re-entry,
 * which would not ask the server. */
static void expect_unavailable(const char *name, const char *word)
{
    hf_hold *none;
    int64_t start = now_ms();
    EXPECT(HF_EUNAVAILABLE,
           hf_acquire(client, name, HF_ACQUIRE(.no_reentry = true), &none, &error));
    EXPECT_TOOK(start, 0, 1000);
    if (strstr(error.text, word) == NULL)
        fail_msg("does not say %s: %s", word, error.text);

    /* A server that is slow as well may still be owing an answer when the wait is over. */
    hf_status waited = HF_EUNKNOWN;
    for (int i = 0; i < 5 && waited == HF_EUNKNOWN; i++) {
        start = now_ms();
        waited =
            hf_acquire(client, name,
                       HF_ACQUIRE(.wait_ms = WAIT_MS, .retry_interval_ms = 20, .no_reentry = true),
                       &none, &error);
        EXPECT_TOOK(start, WAIT_MS / 2, WAIT_MS);
    }
    EXPECT(HF_EUNAVAILABLE, waited);
    if (strstr(error.text, word) == NULL)
        fail_msg("does not say %s: %s", word, error.text);
}

/* ---- States that pass ------------------------------------------------------------------------ */

static void a_replica_is_refused_until_it_is_promoted(void **state)
{
    (void)state;
    struct redis_server *primary = redis_server_start(&(struct redis_server_options){
        .extra = (const char *const[]){"--repl-diskless-sync-delay", "0", NULL}});
    server = redis_server_start(NULL);
    assert_string_equal(raw(server, "REPLICAOF 127.0.0.1 %d", primary->port), "OK");
    WAIT_UNTIL(strstr(raw(server, "INFO replication"), "master_link_status:up") != NULL, 10000);
    open_client(&client);
    expect_unavailable("lock", "replica");

    attempt_begin(&waiter, client, "lock", HF_ACQUIRE(.wait_ms = 20000, .retry_interval_ms = 20));
    assert_string_equal(raw(server, "REPLICAOF NO ONE"), "OK");
    assert_int_equal(attempt_end(&waiter), HF_OK);
    EXPECT(HF_OK, hf_release(&waiter.hold, &error));
}

/* A primary that becomes a replica under a connected client, with a lock that is held there. Its
 * new primary does not send its data for a minute, so nothing is forgotten in this test. */
static void a_primary_that_is_demoted_is_noticed(void **state)
{
    (void)state;
    struct redis_server *primary = redis_server_start(&(struct redis_server_options){
        .extra = (const char *const[]){"--repl-diskless-sync-delay", "60", NULL}});
    server = redis_server_start(NULL);
    open_client(&client);
    expect_acquired(0);
    assert_string_equal(raw(server, "REPLICAOF 127.0.0.1 %d", primary->port), "OK");
    expect_unavailable("other", "replica");
    assert_string_equal(raw(server, "REPLICAOF NO ONE"), "OK");
    EXPECT(HF_OK, hf_extend(hold, 0, &error));
    release(&hold);
    expect_acquired(20000);
    release(&hold);
}

static void out_of_memory_stops_taking_but_not_releasing(void **state)
{
    (void)state;
    server = redis_server_start(NULL);
    open_client(&client);
    expect_acquired(0);
    assert_string_equal(raw(server, "CONFIG SET maxmemory 1mb maxmemory-policy noeviction"), "OK");
    assert_true(strncmp(raw(server, "SET probe x"), "OOM", 3) == 0);
    expect_unavailable("other", "OOM");
    EXPECT(HF_OK, hf_extend(hold, 30000, &error));
    assert_in_range(raw_number(server, "PTTL lock"), 20000, 30000);
    release(&hold);
    assert_string_equal(raw(server, "EXISTS lock"), "0");

    assert_string_equal(raw(server, "CONFIG SET maxmemory 0"), "OK");
    expect_acquired(5000);
    release(&hold);
}

static void a_busy_server_is_waited_for(void **state)
{
    (void)state;
    server = redis_server_start(&(struct redis_server_options){
        .extra = (const char *const[]){"--busy-reply-threshold", "20", NULL}});
    open_client(&client);
    expect_acquired(0);
    redisContext *endless = begin_endless_script();
    WAIT_UNTIL(strncmp(raw(server, "PING"), "BUSY", 4) == 0, 5000);
    expect_unavailable("other", "BUSY");
    expect_unavailable("lock", "BUSY");

    assert_string_equal(raw(server, "SCRIPT KILL"), "OK");
    WAIT_UNTIL(strcmp(raw(server, "PING"), "PONG") == 0, 5000);
    redisFree(endless);
    EXPECT(HF_OK, hf_extend(hold, 0, &error));
    release(&hold);
    expect_acquired(5000);
    release(&hold);
}

/* Four hundred keys that take 5 ms each to load: a state that lasts two seconds. */
static void a_loading_server_is_waited_for(void **state)
{
    (void)state;
    server = redis_server_start(&(struct redis_server_options){
        .may_be_loading = true,
        .extra = (const char *const[]){"--key-load-delay", "5000",
                                       "--loading-process-events-interval-bytes", "1024", NULL}});
    assert_string_equal(
        raw(server, "EVAL %s 0",
            "for i = 1, 400 do redis.call('SET', 'key' .. i, string.rep(i, 30)) end return 'done'"),
        "done");
    assert_string_equal(raw(server, "SAVE"), "OK");
    redis_server_restart(server);
    assert_true(strncmp(raw(server, "PING"), "LOADING", 7) == 0);

    open_client(&client);
    expect_unavailable("lock", "LOADING");
    expect_acquired(20000);
    release(&hold);
    assert_string_equal(raw(server, "EXISTS key400"), "1");
}

static void a_full_server_is_waited_for(void **state)
{
    (void)state;
    server = redis_server_start(NULL);
    assert_string_equal(raw(server, "CONFIG SET maxclients 1"), "OK"); /* raw() is that one */
    open_client(&client);
    expect_unavailable("lock", ""); /* whether its words arrive before it hangs up is its affair */
    assert_string_equal(raw(server, "CONFIG SET maxclients 100"), "OK");
    expect_acquired(5000);
    release(&hold);
}

/* ---- A state that does not pass -------------------------------------------------------------- */

static void another_type_of_key_is_reported_at_once(void **state)
{
    (void)state;
    server = redis_server_start(NULL);
    hf_hold *none;
    open_client(&client);
    assert_string_equal(raw(server, "RPUSH lock a b c"), "3");
    int64_t start = now_ms();
    EXPECT(HF_ESERVER, hf_acquire(client, "lock", HF_ACQUIRE(.wait_ms = 20000), &none, &error));
    EXPECT_TOOK(start, 0, 500);
    assert_null(none);
    assert_non_null(strstr(error.text, "WRONGTYPE"));
    assert_string_equal(raw(server, "LRANGE lock 0 -1"), "(array of 3)");
    assert_string_equal(raw(server, "PTTL lock"), "-1");
}

/* The key of a hold that somebody replaces by another type is not ours to delete. A release that
 * the server refuses goes on in the background, which hf_close() may say. */
static void another_type_in_place_of_a_hold_survives(void **state)
{
    (void)state;
    server = redis_server_start(NULL);
    open_client_with(&client, HF_CLIENT(.call_timeout_ms = 300));
    EXPECT(HF_OK, hf_acquire(client, "lock", HF_ACQUIRE(.lease_ms = 5000), &hold, &error));
    assert_string_equal(raw(server, "DEL lock"), "1");
    assert_string_equal(raw(server, "RPUSH lock a b c"), "3");
    hf_status extended = hf_extend(hold, 0, &error);
    assert_true(extended == HF_ELOST || extended == HF_ESERVER);
    hf_status released = hf_release(&hold, &error);
    assert_true(released == HF_ELOST || released == HF_ESERVER);
    hf_status closed = hf_close(client);
    client = NULL;
    assert_true(closed == HF_OK || closed == HF_EUNKNOWN);
    assert_string_equal(raw(server, "LRANGE lock 0 -1"), "(array of 3)");
    assert_string_equal(raw(server, "PTTL lock"), "-1");
}

/* Whoever spoils what stands beside a lock does not keep its holder from giving it back. */
static void side_keys_of_another_type_do_not_keep_a_release(void **state)
{
    (void)state;
    server = redis_server_start(NULL);
    open_client(&client);
    for (const char *kind = "qw"; *kind != '\0'; kind++) {
        char spoilt[64];
        snprintf(spoilt, sizeof(spoilt), "%s", side_key(*kind));
        expect_acquired(0);
        assert_string_equal(raw(server, "SET %s 1+ KEEPTTL", side_key('f')), "OK");
        assert_string_equal(raw(server, "ZADD %s 1 somebody", side_key('q')), "1");
        raw(server, "DEL %s", spoilt);
        assert_string_equal(raw(server, "RPUSH %s a b c", spoilt), "3");
        release(&hold);
        assert_string_equal(raw(server, "EXISTS lock"), "0");
        raw(server, "DEL %s", side_key('q'));
        raw(server, "DEL %s", side_key('w'));
    }
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end_everything)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_replica_is_refused_until_it_is_promoted),
        TEST(a_primary_that_is_demoted_is_noticed),
        TEST(out_of_memory_stops_taking_but_not_releasing),
        TEST(a_busy_server_is_waited_for),
        TEST(a_loading_server_is_waited_for),
        TEST(a_full_server_is_waited_for),
        TEST(another_type_of_key_is_reported_at_once),
        TEST(another_type_in_place_of_a_hold_survives),
        TEST(side_keys_of_another_type_do_not_keep_a_release),
    };
    return cmocka_run_group_tests_name("unwilling servers", tests, NULL, NULL);
}
