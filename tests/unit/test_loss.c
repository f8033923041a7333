/* SPDX-License-Identifier: MIT */
/* States of a hold: in jeopardy when something is wrong, safe again when it is not, lost for good
 * when the deadline has passed or the server says so. Nobody is told "valid" after "lost", and what
 * was lost never touches what others hold now. */
#include <stdio.h>
#include <string.h>

#include "stage.h"

#define S       the_stage
#define RENEWED .lease_ms = 10000, .renew_interval_ms = 3000, .renew_timeout_ms = 500

enum { DEADLINE_MS = 10000 - 100 - 2 /* of a lease of ten seconds */ };

/* ---- Late renewals ---- */

static void a_late_answer_is_jeopardy_and_then_safe_again(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", RENEWED);
    S.deaf = true;
    ADVANCE_MS(3499);
    EXPECT_QUIET(1);
    EXPECT_STATE(1, HF_SAFE);
    ADVANCE_MS(1);
    assert_int_equal(stage_next_told(1)->remaining_ms, DEADLINE_MS - 3500);
    EXPECT_TOLD(1, HF_JEOPARDY, LATE);
    EXPECT_STATE(1, HF_JEOPARDY);
    S.deaf = false;
    ADVANCE_MS(600); /* the silent connection is given up after a second */
    EXPECT_TOLD(1, HF_SAFE, NONE);
    EXPECT_STATE(1, HF_SAFE);
    assert_true(stage_remaining_ms(1) > 9000);
    ADVANCE_MS(60000);
    EXPECT_QUIET(1);
    FINISH();
}

static void the_deadline_is_a_loss_whatever_the_server_does(void **state)
{
    (void)state;
    enum { DEAF, MUTE, REFUSING, SWALLOWING, FAULTS };
    for (int fault = DEAF; fault < FAULTS; fault++) {
        SETUP();
        ACQUIRE(1, "x", RENEWED);
        S.deaf = fault == DEAF;
        S.mute = fault == MUTE;
        S.refuses = fault == REFUSING;
        S.swallows = fault == SWALLOWING;
        if (fault >= REFUSING)
            CUT();
        ADVANCE_MS(DEADLINE_MS - 1);
        EXPECT_TOLD(1, HF_JEOPARDY, LATE);
        EXPECT_QUIET(1);
        assert_int_equal(stage_remaining_ms(1), 1);
        ADVANCE_MS(1);
        assert_int_equal(stage_next_told(1)->remaining_ms, 0);
        EXPECT_TOLD(1, HF_LOST, EXPIRED);
        assert_int_equal(stage_remaining_ms(1), 0);
        S.deaf = S.mute = S.refuses = S.swallows = false;
        ADVANCE_MS(60000);
        EXPECT_STATE(1, HF_LOST);
        EXPECT_QUIET(1);
        RELEASE(1);
        EXPECT(1, HF_ELOST);
        EXPECT_QUIET(1);
        FINISH();
    }
}

static void an_answer_after_the_loss_does_not_revive(void **state)
{
    (void)state;
    SETUP(.reply_timeout_ms = 60000);
    ACQUIRE(1, "x", RENEWED);
    S.mute = true;
    ADVANCE_MS(DEADLINE_MS);
    EXPECT_TOLD(1, HF_JEOPARDY, LATE);
    EXPECT_TOLD(1, HF_LOST, EXPIRED);
    EXPECT_KEY("x"); /* it was renewed, only we did not hear of it */
    S.mute = false;
    stage_run();
    ADVANCE_MS(20000);
    EXPECT_STATE(1, HF_LOST);
    assert_int_equal(stage_remaining_ms(1), 0);
    EXPECT_QUIET(1);
    assert_int_equal(S.node.renewals, 1);
    FINISH();
}

/* ---- What the server says ---- */

static void a_hold_that_is_gone_is_lost_at_once(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", RENEWED);
    node_delete(&S.node, "x");
    ADVANCE_MS(3000);
    EXPECT_TOLD(1, HF_LOST, GONE);
    EXPECT_STATE(1, HF_LOST);
    assert_int_equal(stage_remaining_ms(1), 0);
    EXPECT_NO_KEY("x");
    ADVANCE_MS(20000);
    assert_int_equal(S.node.renewals, 2); /* one, a closer look, and never again */
    EXPECT_QUIET(1);
    FINISH();
}

static void a_server_that_forgot_everything_is_a_loss(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", RENEWED);
    ACQUIRE(2, "y", RENEWED, .owner = "me");
    node_restart(&S.node);
    CUT();
    ADVANCE_MS(3100);
    EXPECT_TOLD(1, HF_LOST, GONE);
    EXPECT_TOLD(2, HF_LOST, GONE);
    assert_int_equal(node_count(&S.node), 0); /* never silently made anew */
    FINISH();
}

static void extend_finds_the_loss_too(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", RENEWED);
    node_set(&S.node, "x", "another", 60000);
    EXTEND(1, 20000);
    EXPECT(1, HF_ELOST);
    EXPECT_TOLD(1, HF_LOST, GONE);
    EXPECT_QUIET(1);
    FINISH();
}

static void a_broken_hold_says_so(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", RENEWED);
    uint64_t fence = FENCE(1);
    BREAK(2, "x", node_get(&S.node, "x"), fence);
    EXPECT(2, HF_OK);
    assert_true(ANSWER(2)->number > fence);
    EXPECT_STATE(1, HF_SAFE); /* it cannot know yet */
    ADVANCE_MS(3000);
    EXPECT_TOLD(1, HF_LOST, BROKEN);
    EXPECT_QUIET(1);
    FINISH();
}

/* The lock was broken once, long ago; this hold was deleted by hand. */
static void somebody_elses_break_is_not_ours(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", RENEWED);
    BREAK(2, "x", node_get(&S.node, "x"), FENCE(1));
    ADVANCE_MS(3000);
    EXPECT_TOLD(1, HF_LOST, BROKEN);
    ACQUIRE(3, "x", RENEWED);
    EXPECT(3, HF_OK);
    node_delete(&S.node, "x");
    ADVANCE_MS(3000);
    EXPECT_TOLD(3, HF_LOST, GONE);
    RELEASE(3);
    EXPECT(3, HF_ELOST);
    FINISH();
}

/* ---- Held for too long ---- */

static void renewals_stop_after_max_hold(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", RENEWED, .max_hold_ms = 20000);
    ADVANCE_MS(19999);
    EXPECT_QUIET(1);
    assert_int_equal(S.node.renewals, 6); /* the last one at 18 000 */
    ADVANCE_MS(1);
    EXPECT_TOLD(1, HF_JEOPARDY, MAX_HOLD);
    EXPECT_STATE(1, HF_JEOPARDY);
    ADVANCE_MS(18000 + DEADLINE_MS - 20000 - 1);
    EXPECT_QUIET(1);
    assert_int_equal(stage_remaining_ms(1), 1);
    ADVANCE_MS(1);
    EXPECT_TOLD(1, HF_LOST, MAX_HOLD);
    assert_int_equal(S.node.renewals, 6);
    RELEASE(1);
    EXPECT(1, HF_ELOST);
    FINISH();
}

static void a_renewal_under_way_at_max_hold_is_the_last(void **state)
{
    (void)state;
    SETUP(.reply_timeout_ms = 5000);
    ACQUIRE(1, "x", RENEWED, .max_hold_ms = 3100);
    S.mute = true;
    ADVANCE_MS(3200);
    EXPECT_TOLD(1, HF_JEOPARDY, MAX_HOLD);
    S.mute = false;
    stage_run();
    ADVANCE_MS(30000);
    EXPECT_TOLD(1, HF_LOST, MAX_HOLD);
    EXPECT_QUIET(1);
    assert_int_equal(S.node.renewals, 1);
    FINISH();
}

static void max_hold_in_a_time_of_trouble_has_the_last_word(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", RENEWED, .max_hold_ms = 5000);
    S.deaf = true;
    ADVANCE_MS(5000);
    EXPECT_TOLD(1, HF_JEOPARDY, LATE);
    EXPECT_TOLD(1, HF_JEOPARDY, MAX_HOLD);
    S.deaf = false;
    ADVANCE_MS(10000);
    EXPECT_TOLD(1, HF_LOST, MAX_HOLD);
    assert_int_equal(S.node.renewals, 0); /* what was resent is withdrawn */
    FINISH();
}

static void a_release_in_time_after_max_hold_is_a_release(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", RENEWED, .max_hold_ms = 5000);
    ADVANCE_MS(6000);
    EXPECT_TOLD(1, HF_JEOPARDY, MAX_HOLD);
    RELEASE(1);
    EXPECT(1, HF_OK);
    EXPECT_NO_KEY("x");
    ADVANCE_MS(20000);
    EXPECT_QUIET(1);
    FINISH();
}

/* ---- The deadline is near ---- */

static void a_warning_comes_so_long_before_the_deadline(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", .lease_ms = 5000, .warn_ms = 1000);
    ADVANCE_MS(3947);
    EXPECT_QUIET(1);
    ADVANCE_MS(1);
    assert_int_equal(stage_next_told(1)->remaining_ms, 1000);
    EXPECT_TOLD(1, HF_JEOPARDY, NEAR);
    ADVANCE_MS(999);
    EXPECT_QUIET(1);
    EXPECT_STATE(1, HF_JEOPARDY);
    ADVANCE_MS(1);
    EXPECT_TOLD(1, HF_LOST, EXPIRED);
    FINISH();
}

static void extend_ends_a_warning(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", .lease_ms = 5000, .warn_ms = 1000);
    ADVANCE_MS(4000);
    EXPECT_TOLD(1, HF_JEOPARDY, NEAR);
    EXTEND(1, 5000);
    EXPECT(1, HF_OK);
    EXPECT_TOLD(1, HF_SAFE, NONE);
    ADVANCE_MS(3947);
    EXPECT_QUIET(1);
    ADVANCE_MS(1);
    EXPECT_TOLD(1, HF_JEOPARDY, NEAR);
    FINISH();
}

static void a_warning_that_is_wider_than_the_renewals_comes_and_goes(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", RENEWED, .warn_ms = 8000);
    for (int round = 0; round < 5; round++) {
        ADVANCE_MS(DEADLINE_MS - 8000);
        EXPECT_TOLD(1, HF_JEOPARDY, NEAR);
        ADVANCE_MS(3000 - (DEADLINE_MS - 8000));
        EXPECT_TOLD(1, HF_SAFE, NONE);
        EXPECT_QUIET(1);
    }
    FINISH();
}

static void a_warning_wider_than_the_lease_is_there_from_the_start(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", RENEWED, .warn_ms = 60000);
    EXPECT(1, HF_OK);
    EXPECT_TOLD(1, HF_JEOPARDY, NEAR);
    ADVANCE_MS(60000);
    EXPECT_QUIET(1); /* renewed all the time, and never far from its deadline */
    EXPECT_STATE(1, HF_JEOPARDY);
    EXPECT_KEY("x");
    FINISH();
}

/* ---- Afterwards ---- */

static void the_release_of_a_lost_hold_is_harmless(void **state)
{
    (void)state;
    for (int nowait = 0; nowait < 2; nowait++) {
        SETUP();
        ACQUIRE(1, "x", RENEWED);
        uint64_t fence = FENCE(1);
        node_delete(&S.node, "x");
        ADVANCE_MS(3000);
        EXPECT_TOLD(1, HF_LOST, GONE);
        ACQUIRE(2, "x");
        EXPECT(2, HF_OK);
        assert_true(FENCE(2) > fence);
        if (nowait) {
            assert_int_equal(stage_let_go(1), HF_ELOST);
        } else {
            RELEASE(1);
            EXPECT(1, HF_ELOST);
        }
        EXPECT_KEY("x");
        EXTEND(2, 10000);
        EXPECT(2, HF_OK);
        RELEASE(2);
        EXPECT(2, HF_OK);
        FINISH();
    }
}

static void a_broken_hold_that_was_not_told_yet_hears_it_from_its_release(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", RENEWED);
    BREAK(2, "x", node_get(&S.node, "x"), FENCE(1));
    RELEASE(1);
    EXPECT(1, HF_ELOST);
    EXPECT_TEXT(1, "broken");
    FINISH();
}

/* The second copy finds nothing. Were it not for the break, nobody could tell why. */
static void a_resent_release_of_a_broken_hold_is_a_loss(void **state)
{
    (void)state;
    static char reply[40];
    for (int broken = 0; broken < 2; broken++) {
        SETUP();
        ACQUIRE(1, "x", RENEWED);
        snprintf(reply, sizeof(reply), ":-%llu\r\n",
                 (unsigned long long)FENCE(1) - (broken ? 0 : 1)); /* this one, or one before */
        S.deaf = true;
        RELEASE(1);
        CUT();
        S.deaf = false;
        node_say(&S.node, reply);
        ADVANCE_MS(50);
        assert_int_equal(S.node.canned_count, 0);
        EXPECT(1, broken ? HF_ELOST : HF_EUNKNOWN);
        FINISH();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_late_answer_is_jeopardy_and_then_safe_again),
        cmocka_unit_test(the_deadline_is_a_loss_whatever_the_server_does),
        cmocka_unit_test(an_answer_after_the_loss_does_not_revive),
        cmocka_unit_test(a_hold_that_is_gone_is_lost_at_once),
        cmocka_unit_test(a_server_that_forgot_everything_is_a_loss),
        cmocka_unit_test(extend_finds_the_loss_too),
        cmocka_unit_test(a_broken_hold_says_so),
        cmocka_unit_test(somebody_elses_break_is_not_ours),
        cmocka_unit_test(renewals_stop_after_max_hold),
        cmocka_unit_test(a_renewal_under_way_at_max_hold_is_the_last),
        cmocka_unit_test(max_hold_in_a_time_of_trouble_has_the_last_word),
        cmocka_unit_test(a_release_in_time_after_max_hold_is_a_release),
        cmocka_unit_test(a_warning_comes_so_long_before_the_deadline),
        cmocka_unit_test(extend_ends_a_warning),
        cmocka_unit_test(a_warning_that_is_wider_than_the_renewals_comes_and_goes),
        cmocka_unit_test(a_warning_wider_than_the_lease_is_there_from_the_start),
        cmocka_unit_test(the_release_of_a_lost_hold_is_harmless),
        cmocka_unit_test(a_broken_hold_that_was_not_told_yet_hears_it_from_its_release),
        cmocka_unit_test(a_resent_release_of_a_broken_hold_is_a_loss),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
