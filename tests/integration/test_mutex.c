/* SPDX-License-Identifier: MIT */
/* Goal: a lock on a real server does what the header says, with everybody in good health, without
 * the watchdog and without re-entry, which have tests of their own.
 *
 * Two clients of one process, alice and bob, stand for two programs; raw() is a third one that does
 * not know this library. One server serves all tests and is emptied before each.
 *
 * Leases here are either long (the lock must not go away while we look) or as short as allowed (we
 * wait for it to run out), and nobody renews them. How one waits for a lock is in test_waiting.c.
 */
#include <string.h>

#include "fixture.h"

static hf_hold *hold;
static hf_hold *other;
static hf_error error;

/* ---- Verbs ----------------------------------------------------------------------------------- */

static long long time_left_at_server(void)
{
    return raw_number(server, "PTTL lock");
}

/* ---- One holder ------------------------------------------------------------------------------ */

static void a_lock_has_one_holder(void **state)
{
    (void)state;
    hold = acquire_for(alice, 5000);
    expect_refused(bob);
    release(&hold);
    assert_string_equal(raw(server, "EXISTS lock"), "0");
    expect_free(bob);
}

static void a_client_excludes_itself_too(void **state)
{
    (void)state;
    hold = acquire_for(alice, 5000);
    EXPECT(HF_EBUSY, hf_acquire(alice, "lock", HF_ACQUIRE(.no_reentry = true), &other, &error));
    release(&hold);
}

static void different_locks_do_not_meet(void **state)
{
    (void)state;
    hold = acquire_for(alice, 5000);
    EXPECT(HF_OK, hf_acquire(bob, "lock2", NULL, &other, &error));
    EXPECT(HF_OK, hf_release(&other, &error));
    release(&hold);
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
    hold = acquire_for(alice, 5000);
    assert_true(hf_is_valid(hold));
    int64_t remaining = hf_remaining_ms(hold);
    assert_in_range(remaining, 4000, 5000 - 52);
    assert_true(time_left_at_server() > hf_remaining_ms(hold));
    release(&hold);
}

/* ---- Leases ---------------------------------------------------------------------------------- */

static void an_extended_lease_outlives_the_first(void **state)
{
    (void)state;
    int64_t start = now_ms();
    hold = acquire_for(alice, 600);
    EXPECT(HF_OK, hf_extend(hold, 20000, &error));
    assert_in_range(time_left_at_server(), 15000, 20000);
    assert_in_range(hf_remaining_ms(hold), 15000, 20000 - 202);
    sleep_ms(start + 700 - now_ms());
    assert_true(hf_is_valid(hold));
    expect_refused(bob);
    release(&hold);
}

static void extending_never_shortens(void **state)
{
    (void)state;
    hold = acquire_for(alice, 20000);
    EXPECT(HF_OK, hf_extend(hold, HF_LEASE_MIN_MS, &error));
    assert_in_range(time_left_at_server(), 15000, 20000);
    assert_in_range(hf_remaining_ms(hold), 15000, 20000);
    release(&hold);
}

static void extending_by_zero_means_the_first_lease(void **state)
{
    (void)state;
    hold = acquire_for(alice, 5000);
    WAIT_UNTIL(time_left_at_server() < 4600, 5000);
    EXPECT(HF_OK, hf_extend(hold, 0, &error));
    assert_in_range(time_left_at_server(), 4600, 5000);
    assert_in_range(hf_remaining_ms(hold), 4500, 5000 - 52);
    release(&hold);
}

static void a_lease_that_ran_out_is_lost(void **state)
{
    (void)state;
    hold = acquire_for(alice, HF_LEASE_MIN_MS);
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
    hold = acquire_for(alice, HF_LEASE_MIN_MS);
    sleep_ms(HF_LEASE_MIN_MS);
    EXPECT_STATUS(HF_ELOST, hf_release_nowait(&hold));
    assert_null(hold);
}

static void a_late_release_leaves_the_next_holder_alone(void **state)
{
    (void)state;
    hold = acquire_for(alice, HF_LEASE_MIN_MS);
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
    hold = acquire_for(alice, 20000);
    assert_string_equal(raw(server, "DEL lock"), "1");
    EXPECT(HF_ELOST, hf_release(&hold, &error));

    hold = acquire_for(alice, 20000);
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
    hold = acquire_for(alice, 20000);
    assert_string_equal(raw(server, "SET lock foreign PX 10000"), "OK");
    EXPECT(HF_ELOST, hf_release(&hold, &error));
    assert_string_equal(raw(server, "GET lock"), "foreign");

    assert_string_equal(raw(server, "DEL lock"), "1");
    hold = acquire_for(alice, 20000);
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
    expect_refused(bob);
    assert_string_equal(raw(server, "GET lock"), "foreign");
    EXPECT(HF_OK, hf_acquire(bob, "lock", HF_ACQUIRE(.wait_ms = 20000, .retry_interval_ms = 20),
                             &other, &error));
    assert_string_not_equal(raw(server, "GET lock"), "foreign");
    EXPECT(HF_OK, hf_release(&other, &error));
}

static void our_lock_is_respected_by_foreigners(void **state)
{
    (void)state;
    hold = acquire_for(alice, 5000);
    assert_string_equal(raw(server, "SET lock foreign NX PX 5000"), "(nil)");
    assert_string_equal(raw(server, "TYPE lock"), "string");
    assert_in_range(time_left_at_server(), 1, 5000);
    release(&hold);
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
    expect_free(bob);
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

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin_with_both, close_clients)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_lock_has_one_holder),
        TEST(a_client_excludes_itself_too),
        TEST(different_locks_do_not_meet),
        TEST(the_error_is_optional),
        TEST(the_deadline_is_pessimistic),
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
