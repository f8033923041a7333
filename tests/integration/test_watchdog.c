/* SPDX-License-Identifier: MIT */
/* Goal: a hold lasts for as long as it is wanted, and no longer: renewed by itself before its lease
 * ends, at the interval that was asked for, in few messages; ended by max_hold_ms; left alone with
 * no_renewal.
 *
 * Alice holds, Bob wants. Leases are short, and a machine that stands still for longer than one
 * ends a hold rightly: a test that has to see it survive watches the clock meanwhile, and starts
 * over when the machine was away for too long.
 */
#include <stdio.h>

#include "fixture.h"
#include "witness.h"

enum { TRIES = 10 };

static hf_hold *hold;
static hf_error error;
static struct witness witness;

static int begin(void **state)
{
    hold = NULL;
    witness_clear(&witness);
    return begin_with_both(state);
}

/* ---- Verbs ----------------------------------------------------------------------------------- */

#define ALICE_ACQUIRES(...)                                                                       \
    EXPECT(HF_OK, hf_acquire(alice, "lock",                                                       \
                             HF_ACQUIRE(__VA_ARGS__, .on_event = witness_event, .arg = &witness), \
                             &hold, &error))

static void bob_gets_it_in_the_end(void)
{
    hf_hold *got = acquire_with(bob, HF_ACQUIRE(.wait_ms = 20000, .retry_interval_ms = 10));
    release(&got);
}

/* Holds it for `duration_ms` and ends with the hold still there, in a time without a pause of
 * `too_long_ms`. Returns the number of renewals. */
static uint64_t hold_undisturbed(const hf_acquire_options *options, int64_t duration_ms,
                                 int64_t too_long_ms)
{
    for (int i = 0; i < TRIES; i++) {
        EXPECT(HF_OK, hf_acquire(alice, "lock", options, &hold, &error));
        uint64_t before = stats_of(alice)->renewals;
        if (longest_pause_ms(duration_ms) < too_long_ms)
            return stats_of(alice)->renewals - before;
        print_message("the machine was away for too long; once more\n");
        (void)hf_release(&hold, NULL);
        witness_clear(&witness);
    }
    fail_msg("the machine never was calm for %lld ms", (long long)duration_ms);
    return 0;
}

static void expect_safe_and_untold(void)
{
    assert_true(hf_is_valid(hold));
    assert_int_equal(hf_hold_state(hold), HF_SAFE);
    assert_int_equal(atomic_load(&witness.count), 0);
}

/* ---- Renewed --------------------------------------------------------------------------------- */

static void a_hold_outlives_three_leases(void **state)
{
    (void)state;
    enum { LEASE_MS = 400 };
    uint64_t renewals = hold_undisturbed(
        HF_ACQUIRE(.lease_ms = LEASE_MS, .on_event = witness_event, .arg = &witness), 3 * LEASE_MS,
        LEASE_MS / 4);
    assert_in_range(renewals, 6, 12); /* every third of the lease, or a little earlier */
    expect_safe_and_untold();
    expect_refused(bob);
    assert_in_range(raw_number(server, "PTTL lock"), 1, LEASE_MS);
    release(&hold);
    assert_string_equal(raw(server, "EXISTS lock"), "0");
}

/* "Eight of ten seconds", ten times as fast. */
static void the_interval_is_the_caller_s(void **state)
{
    (void)state;
    enum { LEASE_MS = 1000, INTERVAL_MS = 800 };
    uint64_t renewals =
        hold_undisturbed(HF_ACQUIRE(.lease_ms = LEASE_MS, .renew_interval_ms = INTERVAL_MS,
                                    .on_event = witness_event, .arg = &witness),
                         3 * LEASE_MS, 90);
    assert_in_range(renewals, 3, 4);
    expect_safe_and_untold();
    expect_refused(bob);
    release(&hold);
}

static void a_longer_lease_by_hand_is_not_shortened(void **state)
{
    (void)state;
    ALICE_ACQUIRES(.lease_ms = 1500, .renew_interval_ms = 50);
    EXPECT(HF_OK, hf_extend(hold, 30000, &error));
    uint64_t before = stats_of(alice)->renewals;
    WAIT_UNTIL(stats_of(alice)->renewals >= before + 3, 10000);
    assert_in_range(raw_number(server, "PTTL lock"), 15000, 30000);
    assert_true(hf_remaining_ms(hold) > 15000);
    release(&hold);
}

/* The lease that was asked for is what each renewal gives. */
static void a_renewal_gives_the_whole_lease(void **state)
{
    (void)state;
    ALICE_ACQUIRES(.lease_ms = 20000, .renew_interval_ms = 100);
    assert_string_equal(raw(server, "PEXPIRE lock 10000"), "1");
    WAIT_UNTIL(raw_number(server, "PTTL lock") > 15000, 10000);
    release(&hold);
}

/* Two hundred holds on four links, in step: far fewer messages than holds times intervals. */
static void holds_are_renewed_together(void **state)
{
    (void)state;
    enum { HOLDS = 200, LEASE_MS = 3000, DURATION_MS = 2000 };
    static hf_hold *holds[HOLDS];
    for (int i = 0; i < HOLDS; i++) {
        char name[24];
        (void)snprintf(name, sizeof(name), "lock %d", i);
        EXPECT(HF_OK, hf_acquire(alice, name, HF_ACQUIRE(.lease_ms = LEASE_MS), &holds[i], &error));
    }
    uint64_t before = stats_of(alice)->renewals;
    long long scripts_before = scripts_run(server);
    WAIT_UNTIL(stats_of(alice)->renewals >= before + 2 * HOLDS, 20000);
    long long scripts = scripts_run(server) - scripts_before;
    uint64_t renewals = stats_of(alice)->renewals - before;
    assert_in_range(scripts, 1, (long long)renewals / 5);
    for (int i = 0; i < HOLDS; i++) {
        assert_true(hf_is_valid(holds[i]));
        EXPECT(HF_OK, hf_release(&holds[i], &error));
    }
}

/* ---- Not renewed ----------------------------------------------------------------------------- */

static void a_hold_without_renewal_expires(void **state)
{
    (void)state;
    enum { LEASE_MS = 400 };
    int64_t start = now_ms();
    ALICE_ACQUIRES(.lease_ms = LEASE_MS, .no_renewal = true);
    int64_t granted = now_ms();
    WAIT_UNTIL(times_told(&witness, HF_LOST, HF_REASONS) == 1, 10000);
    EXPECT_TOLD(&witness, 0, HF_LOST, HF_REASON_EXPIRED);
    assert_int_equal(witness.told[0].remaining_ms, 0);
    assert_true(witness.told[0].at_ms - start >= LEASE_MS - LEASE_MS / 100 - 3);
    assert_true(witness.told[0].at_ms - granted <= LEASE_MS + SLACK_MS);
    assert_int_equal(hf_hold_state(hold), HF_LOST);
    bob_gets_it_in_the_end();
    EXPECT(HF_ELOST, hf_release(&hold, &error));
    assert_int_equal(stats_of(alice)->renewals, 0);
}

static void renewals_stop_after_max_hold(void **state)
{
    (void)state;
    enum { LEASE_MS = 1500, MAX_MS = 300 };
    int64_t start = now_ms();
    ALICE_ACQUIRES(.lease_ms = LEASE_MS, .renew_interval_ms = 50, .max_hold_ms = MAX_MS);
    int64_t granted = now_ms();
    expect_refused(bob);
    WAIT_UNTIL(times_told(&witness, HF_LOST, HF_REASONS) == 1, 10000);
    assert_false(hf_is_valid(hold));
    EXPECT_TOLD(&witness, 0, HF_JEOPARDY, HF_REASON_MAX_HOLD);
    EXPECT_TOLD(&witness, 1, HF_LOST, HF_REASON_MAX_HOLD);
    assert_true(witness.told[0].at_ms - start >= MAX_MS);
    assert_true(witness.told[1].at_ms - granted <= MAX_MS + LEASE_MS + SLACK_MS);
    bob_gets_it_in_the_end();
    assert_int_equal(stats_of(alice)->losses[HF_REASON_MAX_HOLD], 1);
    EXPECT(HF_ELOST, hf_release(&hold, &error));
}

static void a_release_before_max_hold_is_fine(void **state)
{
    (void)state;
    ALICE_ACQUIRES(.lease_ms = 20000, .max_hold_ms = 200);
    WAIT_UNTIL(times_told(&witness, HF_JEOPARDY, HF_REASON_MAX_HOLD) == 1, 10000);
    assert_true(hf_is_valid(hold));
    release(&hold);
    assert_string_equal(raw(server, "EXISTS lock"), "0");
}

/* ---- Warned ---------------------------------------------------------------------------------- */

static void the_warning_comes_before_the_deadline(void **state)
{
    (void)state;
    enum { LEASE_MS = 2000, WARN_MS = 1900 };
    ALICE_ACQUIRES(.lease_ms = LEASE_MS, .warn_ms = WARN_MS, .no_renewal = true);
    WAIT_UNTIL(atomic_load(&witness.count) == 2, 10000);
    EXPECT_TOLD(&witness, 0, HF_JEOPARDY, HF_REASON_NEAR);
    EXPECT_TOLD(&witness, 1, HF_LOST, HF_REASON_EXPIRED);
    assert_true(witness.told[0].remaining_ms <= WARN_MS);
    EXPECT(HF_ELOST, hf_release(&hold, &error));
}

static void an_extension_takes_the_warning_back(void **state)
{
    (void)state;
    ALICE_ACQUIRES(.lease_ms = 5000, .warn_ms = 4800, .no_renewal = true);
    WAIT_UNTIL(times_told(&witness, HF_JEOPARDY, HF_REASON_NEAR) == 1, 10000);
    assert_int_equal(hf_hold_state(hold), HF_JEOPARDY);
    EXPECT(HF_OK, hf_extend(hold, 30000, &error));
    assert_int_equal(hf_hold_state(hold), HF_SAFE);
    WAIT_UNTIL(atomic_load(&witness.count) == 2, 10000);
    EXPECT_TOLD(&witness, 0, HF_JEOPARDY, HF_REASON_NEAR);
    EXPECT_TOLD(&witness, 1, HF_SAFE, HF_REASON_NONE);
    release(&hold);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, close_clients)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_hold_outlives_three_leases),
        TEST(the_interval_is_the_caller_s),
        TEST(a_longer_lease_by_hand_is_not_shortened),
        TEST(a_renewal_gives_the_whole_lease),
        TEST(holds_are_renewed_together),
        TEST(a_hold_without_renewal_expires),
        TEST(renewals_stop_after_max_hold),
        TEST(a_release_before_max_hold_is_fine),
        TEST(the_warning_comes_before_the_deadline),
        TEST(an_extension_takes_the_warning_back),
    };
    return cmocka_run_group_tests_name("watchdog", tests, start_server, end_server);
}
