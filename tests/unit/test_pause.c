/* SPDX-License-Identifier: MIT */
/* Time that nobody saw pass: the process was stopped, or the machine slept. Whatever happens first
 * after that, a hold whose deadline has passed is lost, and nothing is done for it any more. */
#include <string.h>

#include "stage.h"

#define S       the_stage
#define RENEWED .lease_ms = 10000, .renew_interval_ms = 3000, .renew_timeout_ms = 500

enum { DEADLINE_MS = 10000 - 100 - 2 /* of a lease of ten seconds */ };

static void a_pause_past_the_deadline_is_found_before_anything_else(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", RENEWED);
    PAUSE_MS(20000);
    EXPECT_STATE(1, HF_LOST);
    assert_int_equal(stage_remaining_ms(1), 0);
    S.mute = true;
    ACQUIRE(2, "y");
    EXPECT_WAITING(2);
    EXPECT_TOLD(1, HF_LOST, EXPIRED);
    EXPECT_QUIET(1);
    S.mute = false;
    stage_run();
    assert_int_equal(S.node.renewals, 0); /* it is not ours to renew */
    FINISH();
}

/* The server still has it, and would give it to nobody for another lease. */
static void nothing_lost_in_a_pause_is_renewed(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", RENEWED);
    PAUSE_MS(DEADLINE_MS + 50);
    EXPECT_KEY("x");
    ADVANCE_MS(60);
    EXPECT_TOLD(1, HF_LOST, EXPIRED);
    EXPECT_NO_KEY("x");
    assert_int_equal(S.node.renewals, 0);
    FINISH();
}

static void a_call_on_a_hold_that_expired_in_a_pause_says_lost(void **state)
{
    (void)state;
    for (int extend = 0; extend < 2; extend++) {
        SETUP();
        ACQUIRE(1, "x", RENEWED);
        PAUSE_MS(20000);
        node_set(&S.node, "x", "another", 60000);
        if (extend) {
            EXTEND(1, 10000);
            EXPECT(1, HF_ELOST);
            EXPECT_TOLD(1, HF_LOST, EXPIRED);
        }
        RELEASE(1);
        EXPECT(1, HF_ELOST);
        EXPECT_QUIET(1); /* the outcome of the release says it */
        assert_string_equal(node_get(&S.node, "x"), "another");
        FINISH();
    }
}

static void an_answer_that_waited_through_a_pause_revives_nothing(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", RENEWED);
    S.mute = true;
    ADVANCE_MS(3000);
    assert_int_equal(S.node.renewals, 1);
    PAUSE_MS(20000);
    S.mute = false;
    stage_run(); /* the bytes are read before the clock is */
    EXPECT_TOLD(1, HF_LOST, EXPIRED);
    EXPECT_STATE(1, HF_LOST);
    ADVANCE_MS(10000);
    EXPECT_QUIET(1);
    FINISH();
}

static void a_short_pause_is_made_up_for(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", RENEWED);
    PAUSE_MS(9000);
    ADVANCE_MS(0);
    ADVANCE_MS(100);
    assert_int_equal(S.node.renewals, 1);
    EXPECT_STATE(1, HF_SAFE);
    EXPECT_KEY("x");
    FINISH();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pause_past_the_deadline_is_found_before_anything_else),
        cmocka_unit_test(nothing_lost_in_a_pause_is_renewed),
        cmocka_unit_test(a_call_on_a_hold_that_expired_in_a_pause_says_lost),
        cmocka_unit_test(an_answer_that_waited_through_a_pause_revives_nothing),
        cmocka_unit_test(a_short_pause_is_made_up_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
