/* SPDX-License-Identifier: MIT */
/* Goal: a lock on a real server does what the header says, with everybody in good health.
 *
 * Two clients of one process, alice and bob, stand for two programs; raw() is a third one that does
 * not know this library. One server serves all tests and is emptied before each.
 *
 * Leases here are either long (the lock must not go away while we look) or as short as allowed (we
 * wait for it to run out). That somebody waits is seen at the server, by the number of scripts that
 * it was asked to run, never guessed from time.
 */
#include <string.h>

#include "../lib/redis_server.h"

static struct redis_server *server;
static hf_client *alice;
static hf_client *bob;
static hf_hold *hold;
static hf_hold *other;
static hf_error error;
static struct attempt waiter;

static int start_server(void **state)
{
    (void)state;
    server = redis_server_start(NULL);
    return 0;
}

static int end_server(void **state)
{
    (void)state;
    redis_server_end_all();
    return 0;
}

static int open_clients(void **state)
{
    (void)state;
    hold = NULL;
    other = NULL;
    assert_string_equal(raw(server, "FLUSHALL"), "OK");
    assert_string_equal(raw(server, "CONFIG RESETSTAT"), "OK");
    EXPECT(HF_OK, hf_open(server->url, NULL, &alice, &error));
    EXPECT(HF_OK, hf_open(server->url, NULL, &bob, &error));
    return 0;
}

static int close_clients(void **state)
{
    (void)state;
    hf_status alice_ended = hf_close(alice);
    hf_status bob_ended = hf_close(bob);
    return alice_ended == HF_OK && bob_ended == HF_OK ? 0 : -1;
}

/* ---- Verbs ----------------------------------------------------------------------------------- */

static void alice_acquires(int64_t lease_ms)
{
    EXPECT(HF_OK, hf_acquire(alice, "lock", HF_ACQUIRE(.lease_ms = lease_ms), &hold, &error));
    assert_non_null(hold);
}

static void alice_releases(void)
{
    EXPECT(HF_OK, hf_release(&hold, &error));
    assert_null(hold);
}

static void bob_is_refused(void)
{
    other = (hf_hold *)&error; /* anything but NULL: the call has to clear it */
    EXPECT(HF_EBUSY, hf_acquire(bob, "lock", NULL, &other, &error));
    assert_null(other);
}

static void bob_gets_it(void)
{
    EXPECT(HF_OK, hf_acquire(bob, "lock", NULL, &other, &error));
    EXPECT(HF_OK, hf_release(&other, &error));
}

static void bob_waits(const hf_acquire_options *options)
{
    long long before = scripts_run(server);
    attempt_begin(&waiter, bob, "lock", options);
    WAIT_UNTIL(scripts_run(server) >= before + 2, 5000);
    assert_false(attempt_is_over(&waiter));
}

static long long time_left_at_server(void)
{
    return raw_number(server, "PTTL lock");
}

/* ---- One holder ------------------------------------------------------------------------------ */

static void a_lock_has_one_holder(void **state)
{
    (void)state;
    alice_acquires(5000);
    bob_is_refused();
    alice_releases();
    assert_string_equal(raw(server, "EXISTS lock"), "0");
    bob_gets_it();
}

static void a_client_excludes_itself_too(void **state)
{
    (void)state;
    alice_acquires(5000);
    EXPECT(HF_EBUSY, hf_acquire(alice, "lock", NULL, &other, &error));
    alice_releases();
}

static void different_locks_do_not_meet(void **state)
{
    (void)state;
    alice_acquires(5000);
    EXPECT(HF_OK, hf_acquire(bob, "lock2", NULL, &other, &error));
    EXPECT(HF_OK, hf_release(&other, &error));
    alice_releases();
}

static void the_error_is_optional(void **state)
{
    (void)state;
    EXPECT_STATUS(HF_OK, hf_acquire(alice, "lock", NULL, &hold, NULL));
    EXPECT_STATUS(HF_EBUSY, hf_acquire(bob, "lock", NULL, &other, NULL));
    EXPECT_STATUS(HF_OK, hf_extend(hold, 0, NULL));
    EXPECT_STATUS(HF_OK, hf_release(&hold, NULL));
}

/* The header's allowance for clocks that differ is 1 % of the lease + 2 ms. */
static void the_deadline_is_pessimistic(void **state)
{
    (void)state;
    alice_acquires(5000);
    assert_true(hf_is_valid(hold));
    int64_t remaining = hf_remaining_ms(hold);
    assert_in_range(remaining, 4000, 5000 - 52);
    assert_true(time_left_at_server() > hf_remaining_ms(hold));
    alice_releases();
}

/* ---- Waiting --------------------------------------------------------------------------------- */

static void one_try_is_answered_at_once(void **state)
{
    (void)state;
    alice_acquires(5000);
    int64_t start = now_ms();
    bob_is_refused();
    EXPECT_TOOK(start, 0, 0);
    alice_releases();
}

/* Also: a hold may be released by another thread than the one that acquired it. */
static void a_waiter_is_granted_after_the_release(void **state)
{
    (void)state;
    alice_acquires(30000);
    bob_waits(HF_ACQUIRE(.wait_ms = 20000, .retry_interval_ms = 20));
    alice_releases();
    assert_int_equal(attempt_end(&waiter), HF_OK);
    assert_true(hf_is_valid(waiter.hold));
    EXPECT(HF_OK, hf_release(&waiter.hold, &error));
}

static void a_waiter_without_limit_is_granted_after_the_lease(void **state)
{
    (void)state;
    alice_acquires(600);
    attempt_begin(&waiter, bob, "lock", HF_ACQUIRE(.wait_ms = -1, .retry_interval_ms = 20));
    assert_int_equal(attempt_end(&waiter), HF_OK);
    assert_false(hf_is_valid(hold));
    EXPECT(HF_OK, hf_release(&waiter.hold, &error));
    EXPECT(HF_ELOST, hf_release(&hold, &error));
}

static void wait_ms_bounds_the_wait(void **state)
{
    (void)state;
    alice_acquires(30000);
    int64_t start = now_ms();
    EXPECT(HF_EBUSY, hf_acquire(bob, "lock", HF_ACQUIRE(.wait_ms = 300, .retry_interval_ms = 20),
                                &other, &error));
    EXPECT_TOOK(start, 200, 300);
    alice_releases();
}

static void a_wait_shorter_than_the_pause_is_kept(void **state)
{
    (void)state;
    alice_acquires(30000);
    int64_t start = now_ms();
    EXPECT(HF_EBUSY, hf_acquire(bob, "lock", HF_ACQUIRE(.wait_ms = 100, .retry_interval_ms = 60000),
                                &other, &error));
    EXPECT_TOOK(start, 0, 100);
    alice_releases();
}

/* Alice asks for her own lock, so that her connection is up and the scripts are known before the
 * counting starts. */
static void max_retries_bounds_the_tries(void **state)
{
    (void)state;
    alice_acquires(30000);
    long long before = scripts_run(server);
    int64_t start = now_ms();
    EXPECT(HF_EBUSY,
           hf_acquire(alice, "lock", HF_ACQUIRE(.max_retries = 3, .retry_interval_ms = 50), &other,
                      &error));
    EXPECT_TOOK(start, 3 * 50 / 2, 3 * 50 * 2);
    assert_int_equal(scripts_run(server) - before, 4);
    alice_releases();
}

static void the_first_limit_ends_the_wait(void **state)
{
    (void)state;
    alice_acquires(30000);
    int64_t start = now_ms();
    EXPECT(HF_EBUSY,
           hf_acquire(bob, "lock",
                      HF_ACQUIRE(.wait_ms = 20000, .max_retries = 2, .retry_interval_ms = 20),
                      &other, &error));
    EXPECT_TOOK(start, 0, 2 * 20 * 2);

    start = now_ms();
    EXPECT(HF_EBUSY,
           hf_acquire(bob, "lock",
                      HF_ACQUIRE(.wait_ms = 200, .max_retries = 100000, .retry_interval_ms = 20),
                      &other, &error));
    EXPECT_TOOK(start, 100, 200);

    start = now_ms();
    EXPECT(HF_EBUSY,
           hf_acquire(bob, "lock",
                      HF_ACQUIRE(.wait_ms = -1, .max_retries = 2, .retry_interval_ms = 20), &other,
                      &error));
    EXPECT_TOOK(start, 0, 2 * 20 * 2);
    alice_releases();
}

/* ---- Cancellation ---------------------------------------------------------------------------- */

static void a_waiter_can_be_cancelled(void **state)
{
    (void)state;
    hf_cancel *cancel = hf_cancel_new();
    assert_non_null(cancel);
    alice_acquires(30000);
    bob_waits(HF_ACQUIRE(.wait_ms = -1, .retry_interval_ms = 20, .cancel = cancel));
    int64_t start = now_ms();
    hf_cancel_fire(cancel);
    assert_int_equal(attempt_end(&waiter), HF_ECANCELLED);
    EXPECT_TOOK(start, 0, 0);
    assert_null(waiter.hold);
    alice_releases();
    assert_string_equal(raw(server, "EXISTS lock"), "0");
    hf_cancel_free(cancel);
}

/* In the pause between two tries nothing is under way at the server, so only the cancel itself can
 * end this wait early. */
static void a_long_pause_can_be_cancelled(void **state)
{
    (void)state;
    hf_cancel *cancel = hf_cancel_new();
    alice_acquires(30000);
    long long before = scripts_run(server);
    attempt_begin(&waiter, bob, "lock",
                  HF_ACQUIRE(.wait_ms = -1, .retry_interval_ms = 60000, .cancel = cancel));
    WAIT_UNTIL(scripts_run(server) > before, 5000);
    hf_cancel_fire(cancel);
    assert_int_equal(attempt_end(&waiter), HF_ECANCELLED);
    assert_true(waiter.took_ms < 5000);
    alice_releases();
    hf_cancel_free(cancel);
}

static void a_fired_cancel_stays_fired(void **state)
{
    (void)state;
    hf_cancel *cancel = hf_cancel_new();
    hf_cancel_fire(cancel);
    hf_cancel_fire(cancel);
    for (int i = 0; i < 2; i++) {
        EXPECT(HF_ECANCELLED,
               hf_acquire(alice, "lock", HF_ACQUIRE(.wait_ms = 20000, .cancel = cancel), &hold,
                          &error));
        assert_null(hold);
    }
    WAIT_UNTIL(raw_number(server, "EXISTS lock") == 0, 5000);
    bob_gets_it();
    hf_cancel_free(cancel);
}

/* ---- Leases ---------------------------------------------------------------------------------- */

static void an_extended_lease_outlives_the_first(void **state)
{
    (void)state;
    int64_t start = now_ms();
    alice_acquires(600);
    EXPECT(HF_OK, hf_extend(hold, 20000, &error));
    assert_in_range(time_left_at_server(), 15000, 20000);
    assert_in_range(hf_remaining_ms(hold), 15000, 20000 - 202);
    sleep_ms(start + 700 - now_ms());
    assert_true(hf_is_valid(hold));
    bob_is_refused();
    alice_releases();
}

static void extending_never_shortens(void **state)
{
    (void)state;
    alice_acquires(20000);
    EXPECT(HF_OK, hf_extend(hold, HF_LEASE_MIN_MS, &error));
    assert_in_range(time_left_at_server(), 15000, 20000);
    assert_in_range(hf_remaining_ms(hold), 15000, 20000);
    alice_releases();
}

static void extending_by_zero_means_the_first_lease(void **state)
{
    (void)state;
    alice_acquires(5000);
    WAIT_UNTIL(time_left_at_server() < 4600, 5000);
    EXPECT(HF_OK, hf_extend(hold, 0, &error));
    assert_in_range(time_left_at_server(), 4600, 5000);
    assert_in_range(hf_remaining_ms(hold), 4500, 5000 - 52);
    alice_releases();
}

static void a_lease_that_ran_out_is_lost(void **state)
{
    (void)state;
    alice_acquires(HF_LEASE_MIN_MS);
    sleep_ms(HF_LEASE_MIN_MS);
    assert_false(hf_is_valid(hold));
    assert_int_equal(hf_remaining_ms(hold), 0);
    EXPECT(HF_ELOST, hf_extend(hold, 5000, &error));
    assert_false(hf_is_valid(hold));
    EXPECT(HF_ELOST, hf_release(&hold, &error));
    assert_null(hold);
}

static void a_release_without_waiting_knows_of_the_loss(void **state)
{
    (void)state;
    alice_acquires(HF_LEASE_MIN_MS);
    sleep_ms(HF_LEASE_MIN_MS);
    EXPECT_STATUS(HF_ELOST, hf_release_nowait(&hold));
    assert_null(hold);
}

static void a_late_release_leaves_the_next_holder_alone(void **state)
{
    (void)state;
    alice_acquires(HF_LEASE_MIN_MS);
    EXPECT(HF_OK, hf_acquire(bob, "lock", HF_ACQUIRE(.wait_ms = 5000, .retry_interval_ms = 10),
                             &other, &error));
    EXPECT(HF_ELOST, hf_release(&hold, &error));
    assert_string_equal(raw(server, "EXISTS lock"), "1");
    assert_true(hf_is_valid(other));
    EXPECT(HF_OK, hf_release(&other, &error));
}

/* ---- Foreign programs ------------------------------------------------------------------------ */

static void a_deleted_key_is_a_lost_hold(void **state)
{
    (void)state;
    alice_acquires(20000);
    assert_string_equal(raw(server, "DEL lock"), "1");
    EXPECT(HF_ELOST, hf_release(&hold, &error));

    alice_acquires(20000);
    assert_string_equal(raw(server, "DEL lock"), "1");
    EXPECT(HF_ELOST, hf_extend(hold, 0, &error));
    assert_false(hf_is_valid(hold));
    assert_int_equal(hf_remaining_ms(hold), 0);
    assert_string_equal(raw(server, "EXISTS lock"), "0");
    EXPECT(HF_ELOST, hf_release(&hold, &error));
}

static void a_foreign_value_is_never_deleted(void **state)
{
    (void)state;
    alice_acquires(20000);
    assert_string_equal(raw(server, "SET lock foreign PX 10000"), "OK");
    EXPECT(HF_ELOST, hf_release(&hold, &error));
    assert_string_equal(raw(server, "GET lock"), "foreign");

    assert_string_equal(raw(server, "DEL lock"), "1");
    alice_acquires(20000);
    assert_string_equal(raw(server, "SET lock foreign PX 10000"), "OK");
    EXPECT(HF_ELOST, hf_extend(hold, 60000, &error));
    assert_true(time_left_at_server() <= 10000);
    EXPECT(HF_ELOST, hf_release(&hold, &error));
    assert_string_equal(raw(server, "GET lock"), "foreign");
}

static void a_foreign_lock_is_respected(void **state)
{
    (void)state;
    assert_string_equal(raw(server, "SET lock foreign NX PX 400"), "OK");
    bob_is_refused();
    assert_string_equal(raw(server, "GET lock"), "foreign");
    EXPECT(HF_OK, hf_acquire(bob, "lock", HF_ACQUIRE(.wait_ms = 20000, .retry_interval_ms = 20),
                             &other, &error));
    assert_string_not_equal(raw(server, "GET lock"), "foreign");
    EXPECT(HF_OK, hf_release(&other, &error));
}

static void our_lock_is_respected_by_foreigners(void **state)
{
    (void)state;
    alice_acquires(5000);
    assert_string_equal(raw(server, "SET lock foreign NX PX 5000"), "(nil)");
    assert_string_equal(raw(server, "TYPE lock"), "string");
    assert_in_range(time_left_at_server(), 1, 5000);
    alice_releases();
    assert_string_equal(raw(server, "SET lock foreign NX PX 5000"), "OK");
}

static void the_prefix_is_part_of_the_key(void **state)
{
    (void)state;
    hf_client *shop;
    EXPECT(HF_OK, hf_open(server->url, HF_CLIENT(.prefix = "shop:"), &shop, &error));
    EXPECT(HF_OK, hf_acquire(shop, "lock", NULL, &hold, &error));
    assert_string_equal(raw(server, "EXISTS shop:lock"), "1");
    assert_string_equal(raw(server, "EXISTS lock"), "0");
    bob_gets_it();
    EXPECT(HF_EBUSY, hf_acquire(bob, "shop:lock", NULL, &other, &error));
    EXPECT(HF_OK, hf_release(&hold, &error));
    EXPECT_STATUS(HF_OK, hf_close(shop));
}

/* ---- Ending ---------------------------------------------------------------------------------- */

static void an_acquire_comes_after_the_release_before_it(void **state)
{
    (void)state;
    for (int i = 0; i < 1000; i++) {
        EXPECT(HF_OK, hf_acquire(alice, "lock", NULL, &hold, &error));
        EXPECT_STATUS(HF_OK, hf_release_nowait(&hold));
        assert_null(hold);
    }
    WAIT_UNTIL(raw_number(server, "EXISTS lock") == 0, 5000);
}

static void closing_frees_what_is_held(void **state)
{
    (void)state;
    hf_hold *holds[3] = {NULL};
    const char *names[3] = {"first", "second", "third"};
    for (int i = 0; i < 3; i++)
        EXPECT(HF_OK,
               hf_acquire(alice, names[i], HF_ACQUIRE(.lease_ms = 30000), &holds[i], &error));
    assert_string_equal(raw(server, "EXISTS first second third"), "3");
    EXPECT_STATUS(HF_OK, hf_close(alice));
    alice = NULL;
    assert_string_equal(raw(server, "EXISTS first second third"), "0");
    for (int i = 0; i < 3; i++)
        assert_false(hf_is_valid(holds[i]));
    EXPECT(HF_ECLOSED, hf_extend(holds[0], 0, &error));
    EXPECT(HF_ECLOSED, hf_release(&holds[0], &error));
    EXPECT(HF_ECLOSED, hf_release(&holds[1], &error));
    EXPECT_STATUS(HF_ECLOSED, hf_release_nowait(&holds[2]));
    for (int i = 0; i < 3; i++)
        assert_null(holds[i]);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, open_clients, close_clients)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_lock_has_one_holder),
        TEST(a_client_excludes_itself_too),
        TEST(different_locks_do_not_meet),
        TEST(the_error_is_optional),
        TEST(the_deadline_is_pessimistic),
        TEST(one_try_is_answered_at_once),
        TEST(a_waiter_is_granted_after_the_release),
        TEST(a_waiter_without_limit_is_granted_after_the_lease),
        TEST(wait_ms_bounds_the_wait),
        TEST(a_wait_shorter_than_the_pause_is_kept),
        TEST(max_retries_bounds_the_tries),
        TEST(the_first_limit_ends_the_wait),
        TEST(a_waiter_can_be_cancelled),
        TEST(a_long_pause_can_be_cancelled),
        TEST(a_fired_cancel_stays_fired),
        TEST(an_extended_lease_outlives_the_first),
        TEST(extending_never_shortens),
        TEST(extending_by_zero_means_the_first_lease),
        TEST(a_lease_that_ran_out_is_lost),
        TEST(a_release_without_waiting_knows_of_the_loss),
        TEST(a_late_release_leaves_the_next_holder_alone),
        TEST(a_deleted_key_is_a_lost_hold),
        TEST(a_foreign_value_is_never_deleted),
        TEST(a_foreign_lock_is_respected),
        TEST(our_lock_is_respected_by_foreigners),
        TEST(the_prefix_is_part_of_the_key),
        TEST(an_acquire_comes_after_the_release_before_it),
        TEST(closing_frees_what_is_held),
    };
    return cmocka_run_group_tests_name("mutex", tests, start_server, end_server);
}
