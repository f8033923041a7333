/* SPDX-License-Identifier: MIT */
/* Closing: live holds are released, waiting calls end, and all of it within a bound. */
#include <string.h>

#include "stage.h"

#define S the_stage

static void releases_what_is_held(void **state)
{
    (void)state;
    SETUP(.links = 4);
    ACQUIRE(1, "x");
    ACQUIRE(2, "y");
    CLOSE(3);
    EXPECT(3, HF_OK);
    assert_int_equal(node_count(&S.node), 0);
    RELEASE(1);
    EXPECT(1, HF_ECLOSED);
    assert_int_equal(stage_let_go(2), HF_ECLOSED);
    FINISH();
}

static void ends_calls_that_wait(void **state)
{
    (void)state;
    SETUP();
    node_set(&S.node, "x", "somebody", -1);
    ACQUIRE(1, "x", .wait_ms = -1);
    ACQUIRE(2, "y");
    S.mute = true;
    EXTEND(2, 5000);
    ACQUIRE(3, "z", .wait_ms = -1);
    CLOSE(4);
    EXPECT(1, HF_ECLOSED);
    EXPECT(2, HF_ECLOSED);
    EXPECT(3, HF_ECLOSED);
    EXPECT_WAITING(4);
    S.mute = false;
    stage_run();
    EXPECT(4, HF_OK);
    assert_int_equal(node_count(&S.node), 1); /* somebody's */
    FINISH();
}

static void turns_away_what_comes_after(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x");
    S.deaf = true;
    CLOSE(2);
    ACQUIRE(3, "y");
    EXPECT(3, HF_ECLOSED);
    EXTEND(1, 5000);
    EXPECT(1, HF_ECLOSED);
    EXPECT_WAITING(2);
    FINISH();
}

static void is_bounded(void **state)
{
    (void)state;
    SETUP(.call_timeout_ms = 300);
    ACQUIRE(1, "x");
    S.deaf = true;
    CLOSE(2);
    ADVANCE_MS(299);
    EXPECT_WAITING(2);
    ADVANCE_MS(1);
    EXPECT(2, HF_EUNKNOWN);
    FINISH();
}

static void nothing_to_do_is_done_at_once(void **state)
{
    (void)state;
    SETUP();
    CLOSE(1);
    EXPECT(1, HF_OK);
    assert_int_equal(S.connects, 0);
    FINISH();
}

static void a_release_under_way_is_waited_for(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x");
    S.mute = true;
    RELEASE(1);
    CLOSE(2);
    EXPECT_WAITING(1);
    S.mute = false;
    stage_run();
    EXPECT(1, HF_OK);
    EXPECT(2, HF_OK);
    FINISH();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(releases_what_is_held),
        cmocka_unit_test(ends_calls_that_wait),
        cmocka_unit_test(turns_away_what_comes_after),
        cmocka_unit_test(is_bounded),
        cmocka_unit_test(nothing_to_do_is_done_at_once),
        cmocka_unit_test(a_release_under_way_is_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
