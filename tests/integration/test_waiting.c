/* SPDX-License-Identifier: MIT */
/* Goal: a call waits for a lock for as long as its options say, gets it when it is free, and can be
 * called back.
 *
 * Alice holds, Bob waits; leases are not renewed, and long where they must not be the reason for
 * what is seen. That somebody waits is seen at the server, by the number of scripts that it was
 * asked to run, never guessed from time.
 */
#include <string.h>

#include "fixture.h"

static hf_hold *hold;
static hf_hold *other;
static hf_error error;
static struct attempt waiter;

/* ---- Verbs ----------------------------------------------------------------------------------- */

static void bob_waits(const hf_acquire_options *options)
{
    long long before = scripts_run(server);
    attempt_begin(&waiter, bob, "lock", options);
    WAIT_UNTIL(scripts_run(server) >= before + 2, 5000);
    assert_false(attempt_is_over(&waiter));
}

/* ---- Waiting --------------------------------------------------------------------------------- */

static void one_try_is_answered_at_once(void **state)
{
    (void)state;
    hold = acquire_for(alice, 5000);
    int64_t start = now_ms();
    expect_refused(bob);
    EXPECT_TOOK(start, 0, 0);
    release(&hold);
}

/* Also: a hold may be released by another thread than the one that acquired it. */
static void a_waiter_is_granted_after_the_release(void **state)
{
    (void)state;
    hold = acquire_for(alice, 30000);
    bob_waits(HF_ACQUIRE(.wait_ms = 20000, .retry_interval_ms = 20));
    release(&hold);
    assert_int_equal(attempt_end(&waiter), HF_OK);
    assert_true(hf_is_valid(waiter.hold));
    EXPECT(HF_OK, hf_release(&waiter.hold, &error));
}

static void a_waiter_without_limit_is_granted_after_the_lease(void **state)
{
    (void)state;
    hold = acquire_for(alice, 600);
    attempt_begin(&waiter, bob, "lock", HF_ACQUIRE(.wait_ms = -1, .retry_interval_ms = 20));
    assert_int_equal(attempt_end(&waiter), HF_OK);
    assert_false(hf_is_valid(hold));
    EXPECT(HF_OK, hf_release(&waiter.hold, &error));
    EXPECT(HF_ELOST, hf_release(&hold, &error));
}

static void wait_ms_bounds_the_wait(void **state)
{
    (void)state;
    hold = acquire_for(alice, 30000);
    int64_t start = now_ms();
    EXPECT(HF_EBUSY, hf_acquire(bob, "lock", HF_ACQUIRE(.wait_ms = 300, .retry_interval_ms = 20),
                                &other, &error));
    EXPECT_TOOK(start, 200, 300);
    release(&hold);
}

static void a_wait_shorter_than_the_pause_is_kept(void **state)
{
    (void)state;
    hold = acquire_for(alice, 30000);
    int64_t start = now_ms();
    EXPECT(HF_EBUSY, hf_acquire(bob, "lock", HF_ACQUIRE(.wait_ms = 100, .retry_interval_ms = 60000),
                                &other, &error));
    EXPECT_TOOK(start, 0, 100);
    release(&hold);
}

/* Alice asks for her own lock, so that her connection is up and the scripts are known before the
 * counting starts. */
static void max_retries_bounds_the_tries(void **state)
{
    (void)state;
    hold = acquire_for(alice, 30000);
    long long before = scripts_run(server);
    int64_t start = now_ms();
    EXPECT(HF_EBUSY,
           hf_acquire(alice, "lock",
                      HF_ACQUIRE(.max_retries = 3, .retry_interval_ms = 50, .no_reentry = true),
                      &other, &error));
    EXPECT_TOOK(start, 3 * 50 / 2, 3 * 50 * 2);
    assert_int_equal(scripts_run(server) - before, 4);
    release(&hold);
}

static void the_first_limit_ends_the_wait(void **state)
{
    (void)state;
    hold = acquire_for(alice, 30000);
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
    release(&hold);
}

/* ---- Cancellation ---------------------------------------------------------------------------- */

static void a_waiter_can_be_cancelled(void **state)
{
    (void)state;
    hf_cancel *cancel = hf_cancel_new();
    assert_non_null(cancel);
    hold = acquire_for(alice, 30000);
    bob_waits(HF_ACQUIRE(.wait_ms = -1, .retry_interval_ms = 20, .cancel = cancel));
    int64_t start = now_ms();
    hf_cancel_fire(cancel);
    assert_int_equal(attempt_end(&waiter), HF_ECANCELLED);
    EXPECT_TOOK(start, 0, 0);
    assert_null(waiter.hold);
    release(&hold);
    assert_string_equal(raw(server, "EXISTS lock"), "0");
    hf_cancel_free(cancel);
}

/* In the pause between two tries nothing is under way at the server, so only the cancel itself can
 * end this wait early. */
static void a_long_pause_can_be_cancelled(void **state)
{
    (void)state;
    hf_cancel *cancel = hf_cancel_new();
    hold = acquire_for(alice, 30000);
    long long before = scripts_run(server);
    attempt_begin(&waiter, bob, "lock",
                  HF_ACQUIRE(.wait_ms = -1, .retry_interval_ms = 60000, .cancel = cancel));
    WAIT_UNTIL(scripts_run(server) > before, 5000);
    hf_cancel_fire(cancel);
    assert_int_equal(attempt_end(&waiter), HF_ECANCELLED);
    assert_true(waiter.took_ms < 5000);
    release(&hold);
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
    expect_free(bob);
    hf_cancel_free(cancel);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin_with_both, close_clients)

int main(void)
{
    const struct CMUnitTest tests[] = {
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
    };
    return cmocka_run_group_tests_name("waiting", tests, start_server, end_server);
}
