/* SPDX-License-Identifier: MIT */
/* Letting go of a hold, not of its lock: nobody here renews, releases or re-enters it any more, and
 * whoever waits behind it has to wait for the token. */
#include <string.h>

#include "crowd.h"
#include "token.h"

#define S the_stage

static void the_lock_outlives_the_client(void **state)
{
    (void)state;
    SETUP();
    stage_token token;
    ACQUIRE(1, "x", .lease_ms = 3000, .renew_interval_ms = 1000);
    ADVANCE_MS(10000);
    int renewals = S.node.renewals;
    assert_int_equal(stage_detach(1, &token), HF_OK);
    CLOSE(2);
    EXPECT(2, HF_OK);
    expect_held();
    ADVANCE_MS(3001);
    assert_int_equal(S.node.renewals, renewals); /* nobody renews it */
    EXPECT_NO_KEY("x");
    EXPECT_QUIET(1);
    FINISH();
}

static void with_a_renewal_in_flight(void **state)
{
    (void)state;
    SETUP(.reply_timeout_ms = 5000);
    stage_token token;
    ACQUIRE(1, "x", .lease_ms = 3000, .renew_interval_ms = 1000);
    S.mute = true;
    ADVANCE_MS(1100);
    assert_int_equal(S.node.renewals, 1);
    assert_int_equal(stage_detach(1, &token), HF_OK);
    S.mute = false;
    stage_run();
    ADVANCE_MS(1000);
    assert_int_equal(S.node.renewals, 1);
    expect_held();
    ATTACH(2, &token, "x");
    EXPECT(2, HF_OK);
    FINISH();
}

/* The copy that was on its way is not sent again for a hold that nobody has. */
static void with_a_renewal_on_a_connection_that_breaks(void **state)
{
    (void)state;
    SETUP(.reply_timeout_ms = 5000);
    stage_token token;
    ACQUIRE(1, "x", .lease_ms = 3000, .renew_interval_ms = 1000);
    S.deaf = true;
    ADVANCE_MS(1100);
    assert_int_equal(stage_detach(1, &token), HF_OK);
    S.deaf = false;
    CUT();
    ADVANCE_MS(500);
    assert_int_equal(S.node.renewals, 0);
    expect_held();
    FINISH();
}

static void ends_an_extend_of_another_thread(void **state)
{
    (void)state;
    SETUP();
    stage_token token;
    ACQUIRE(1, "x");
    hf_hold *hold = stage_hold(1);
    S.mute = true;
    S.calls[2] = (hf__call){.kind = HF__CALL_EXTEND, .hold = hold, .lease = hf__span_ms(9000)};
    hf__event event = {.kind = HF__EVENT_START, .call = &S.calls[2], .now = S.now};
    hf__core_step(S.core, &event);
    assert_int_equal(stage_detach(1, &token), HF_OK);
    EXPECT(2, HF_EINVAL);
    S.mute = false;
    stage_run();
    expect_held();
    FINISH();
}

static void a_reentered_hold_stays(void **state)
{
    (void)state;
    SETUP();
    stage_token token;
    ACQUIRE(1, "x", .reenters = true);
    ACQUIRE(2, "x", .reenters = true);
    assert_int_equal(stage_detach(1, &token), HF_EINVAL);
    assert_int_equal(stage_detach(2, &token), HF_EINVAL);
    EXPECT_STATE(1, HF_SAFE);
    RELEASE(1);
    EXPECT(1, HF_OK);
    assert_int_equal(stage_detach(2, &token), HF_OK); /* the last handle, whichever it is */
    expect_held();
    ACQUIRE(3, "x", .reenters = true); /* the thread does not have it any more */
    EXPECT(3, HF_EBUSY);
    ATTACH(4, &token, "x");
    EXPECT(4, HF_OK);
    FINISH();
}

static void after_the_deadline_it_is_lost(void **state)
{
    (void)state;
    SETUP();
    stage_token token;
    ACQUIRE(1, "x", .lease_ms = 1000);
    PAUSE_MS(989); /* the server still has it */
    assert_int_equal(stage_detach(1, &token), HF_ELOST);
    EXPECT_NO_KEY("x"); /* given back as by a release */
    FINISH();
}

static void those_behind_it_go_to_the_server(void **state)
{
    (void)state;
    stage_token token;
    crowd_begin(CROWD_TURNS);
    ACQUIRE(1, "x", MEMBER(1));
    EXPECT(1, HF_OK);
    for (int i = 2; i <= 4; i++)
        ACQUIRE(i, "x", MEMBER((uint64_t)i));
    assert_int_equal(stage_detach(1, &token), HF_OK);
    ADVANCE_MS(10);
    for (int i = 2; i <= 4; i++)
        EXPECT_WAITING(i);
    assert_int_equal(S.node.releases, 0);
    ATTACH(5, &token, "x", .deaf = true);
    EXPECT(5, HF_OK);
    RELEASE(5);
    EXPECT(5, HF_OK);
    ADVANCE_MS(10);
    EXPECT(2, HF_OK);
    assert_true(FENCE(2) > token.fence_top); /* what was reserved is not used by others */
    EXPECT_WAITING(3);
    RELEASE(2);
    EXPECT(3, HF_OK);
    crowd_end();
}

/* A copy of the acquire that got lost may reach the server after the release of somebody else. */
static void a_late_copy_does_not_take_it_again(void **state)
{
    (void)state;
    SETUP();
    stage_token token;
    ACQUIRE(5, "warm"); /* the connection is there */
    S.delays = true;
    ACQUIRE(1, "x", .wait_ms = 5000);
    S.delays = false;
    CUT();
    ADVANCE_MS(100);
    EXPECT(1, HF_OK);
    assert_int_equal(stage_detach(1, &token), HF_OK);
    assert_true(token.late);
    ATTACH(2, &token, "x");
    RELEASE(2);
    EXPECT(2, HF_OK);
    stage_deliver_late();
    EXPECT_NO_KEY("x");
    FINISH();
}

/* Whoever takes it up only to release it says so with a short lease. The copy is as late as it
 * would have been. */
static void a_short_lease_is_no_short_guard(void **state)
{
    (void)state;
    SETUP();
    stage_token token = taken(10000);
    token.late = true;
    ATTACH(2, &token, "x", .lease_ms = HF_LEASE_MIN_MS);
    RELEASE(2);
    EXPECT(2, HF_OK);
    assert_int_equal(S.node.last_tombstone_ms, 10000);
    FINISH();
}

/* The server keeps it for as long as it was extended, which the token does not say: a release goes
 * on until then. No more is believed than the token says. */
static void an_extended_hold_is_released_as_long(void **state)
{
    (void)state;
    SETUP();
    stage_token token;
    ACQUIRE(1, "x", .lease_ms = 1000);
    EXTEND(1, 10000);
    EXPECT(1, HF_OK);
    assert_int_equal(stage_detach(1, &token), HF_OK);
    ATTACH(2, &token, "x");
    EXPECT(2, HF_OK);
    assert_int_equal(stage_remaining_ms(2), 1000 - 10 - 2);
    S.deaf = true;
    assert_int_equal(stage_let_go(2), HF_OK);
    ADVANCE_MS(5000);
    EXPECT_KEY("x");
    S.deaf = false;
    ADVANCE_MS(3000);
    EXPECT_NO_KEY("x");
    FINISH();
}

static void usually_no_copy_is_late(void **state)
{
    (void)state;
    SETUP();
    stage_token token = taken(10000);
    assert_false(token.late);
    ATTACH(2, &token, "x");
    RELEASE(2);
    assert_int_equal(S.node.tomb_count, 0);
    FINISH();
}

/* ---- Counting ---- */

static void both_are_counted(void **state)
{
    (void)state;
    SETUP();
    hf_stats stats;
    stage_token token = taken(10000);
    hf__core_stats(S.core, &stats);
    assert_int_equal(stats.held, 0);
    S.mute = true;
    ATTACH(2, &token, "x");
    ADVANCE_MS(100);
    S.mute = false;
    stage_run();
    hf__core_stats(S.core, &stats);
    assert_int_equal(stats.held, 1);
    assert_int_equal(stats.acquisitions, 2);
    assert_int_equal(stats.wait.total_us, 100000);
    ATTACH(3, &token, "y");
    hf__core_stats(S.core, &stats);
    assert_int_equal(stats.failures, 1);
    FINISH();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_lock_outlives_the_client),
        cmocka_unit_test(with_a_renewal_in_flight),
        cmocka_unit_test(with_a_renewal_on_a_connection_that_breaks),
        cmocka_unit_test(ends_an_extend_of_another_thread),
        cmocka_unit_test(a_reentered_hold_stays),
        cmocka_unit_test(after_the_deadline_it_is_lost),
        cmocka_unit_test(those_behind_it_go_to_the_server),
        cmocka_unit_test(a_late_copy_does_not_take_it_again),
        cmocka_unit_test(a_short_lease_is_no_short_guard),
        cmocka_unit_test(an_extended_hold_is_released_as_long),
        cmocka_unit_test(usually_no_copy_is_late),
        cmocka_unit_test(both_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
