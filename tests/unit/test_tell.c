/* SPDX-License-Identifier: MIT */
/* How news about holds gets to the application: one at a time, once, never out of date, never after
 * the handle was given back. Most of these tests are the driver themselves: they ask for the next
 * thing to tell. */
#include <string.h>

#include "stage.h"

#define S       the_stage
#define RENEWED .lease_ms = 10000, .renew_interval_ms = 3000, .renew_timeout_ms = 500

static bool next(hf__tell *tell)
{
    return hf__core_next_tell(S.core, tell);
}

static bool has_news(void)
{
    return hf__core_has_news(S.core);
}

static void tick(int64_t after_ms)
{
    PAUSE_MS(after_ms);
    hf__event event = {.kind = HF__EVENT_TICK, .now = S.now};
    hf__core_step(S.core, &event);
    stage_run();
}

/* ---- Not before the handle is there ---- */

static void who_listens_later_hears_what_was_missed(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", .lease_ms = 1000, .listens_later = true);
    ACQUIRE(2, "y", .lease_ms = 1000, .listens_later = true);
    tick(2000);
    assert_false(has_news());
    EXPECT_QUIET(1);
    hf__hold_listen(S.calls[1].hold);
    stage_run();
    EXPECT_TOLD(1, HF_LOST, EXPIRED);
    EXPECT_QUIET(1);
    EXPECT_QUIET(2);
    RELEASE(2); /* never heard of */
    EXPECT(2, HF_ELOST);
    FINISH();
}

static void who_missed_nothing_hears_nothing(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", .lease_ms = 1000, .listens_later = true);
    hf__hold_listen(S.calls[1].hold);
    stage_run();
    EXPECT_QUIET(1);
    tick(2000);
    EXPECT_TOLD(1, HF_LOST, EXPIRED);
    FINISH();
}

/* ---- One at a time ---- */

static void one_at_a_time_and_each_once(void **state)
{
    (void)state;
    hf__tell first, second, none;
    SETUP();
    ACQUIRE(1, "x", .lease_ms = 1000);
    ACQUIRE(2, "y", .lease_ms = 1000);
    S.listens_by_hand = true;
    assert_false(next(&none));
    assert_false(has_news());
    tick(2000);
    assert_true(has_news());
    assert_true(next(&first));
    assert_false(next(&none)); /* not before the first one has been told */
    assert_false(has_news());
    assert_true(hf__core_is_telling(S.core, first.hold));
    assert_int_equal(first.event.state, HF_LOST);
    assert_int_equal(first.event.reason, HF_REASON_EXPIRED);
    assert_int_equal(first.event.remaining_ms, 0);
    hf__core_told(S.core);
    assert_false(hf__core_is_telling(S.core, first.hold));
    assert_true(has_news());
    assert_true(next(&second));
    assert_true(second.hold != first.hold);
    hf__core_told(S.core);
    assert_false(next(&none));
    assert_false(has_news());
    tick(60000);
    assert_false(next(&none));
    FINISH();
}

static void the_tell_has_what_the_acquire_gave(void **state)
{
    (void)state;
    hf__tell tell;
    SETUP();
    ACQUIRE(1, "x", .lease_ms = 1000);
    S.listens_by_hand = true;
    tick(2000);
    assert_int_equal(hf__core_next_descriptor(S.core), -1);
    assert_true(next(&tell));
    assert_ptr_equal(tell.hold, stage_hold(1));
    assert_ptr_equal(tell.event.hold, stage_hold(1));
    assert_ptr_equal(tell.arg, &S.holds[1]);
    assert_non_null(tell.function);
    assert_string_equal(tell.event.text, hf_reason_text(HF_REASON_EXPIRED));
    hf__core_told(S.core);
    FINISH();
}

/* ---- Changes that overtake each other ---- */

static void jeopardy_that_became_a_loss_is_told_as_a_loss(void **state)
{
    (void)state;
    hf__tell tell;
    SETUP();
    ACQUIRE(1, "x", RENEWED);
    S.listens_by_hand = true;
    S.deaf = true;
    tick(3500);
    EXPECT_STATE(1, HF_JEOPARDY);
    assert_true(has_news());
    tick(20000);
    assert_true(next(&tell));
    assert_int_equal(tell.event.state, HF_LOST);
    hf__core_told(S.core);
    assert_false(next(&tell));
    FINISH();
}

static void jeopardy_that_passed_is_not_told(void **state)
{
    (void)state;
    hf__tell tell;
    SETUP();
    ACQUIRE(1, "x", .lease_ms = 5000, .warn_ms = 1000);
    S.listens_by_hand = true;
    tick(4000);
    EXPECT_STATE(1, HF_JEOPARDY);
    EXTEND(1, 5000);
    EXPECT(1, HF_OK);
    EXPECT_STATE(1, HF_SAFE);
    assert_false(next(&tell)); /* nothing has changed since they last heard of it */
    assert_false(has_news());
    FINISH();
}

static void what_happens_while_somebody_is_told_is_told_next(void **state)
{
    (void)state;
    hf__tell tell;
    SETUP();
    ACQUIRE(1, "x", RENEWED);
    S.listens_by_hand = true;
    S.deaf = true;
    tick(3500);
    assert_true(next(&tell));
    assert_int_equal(tell.event.state, HF_JEOPARDY);
    tick(10000); /* the callback takes its time */
    EXPECT_STATE(1, HF_LOST);
    assert_false(next(&tell));
    hf__core_told(S.core);
    assert_true(next(&tell));
    assert_int_equal(tell.event.state, HF_LOST);
    hf__core_told(S.core);
    assert_false(next(&tell));
    FINISH();
}

static void a_request_is_told_beside_a_change(void **state)
{
    (void)state;
    hf__tell tell;
    SETUP();
    ACQUIRE(1, "x", .lease_ms = 5000, .warn_ms = 4000);
    S.listens_by_hand = true;
    tick(1500);
    REVOKE(2, "x", "my turn");
    EXTEND(1, 1000); /* which does not help against the warning */
    EXPECT(1, HF_OK);
    assert_true(next(&tell));
    assert_int_equal(tell.event.reason, HF_REASON_NEAR);
    hf__core_told(S.core);
    assert_true(next(&tell));
    assert_int_equal(tell.event.reason, HF_REASON_REVOKED);
    assert_int_equal(tell.event.state, HF_JEOPARDY);
    assert_string_equal(tell.event.text, "my turn");
    hf__core_told(S.core);
    assert_false(next(&tell));
    FINISH();
}

static void a_request_to_give_up_what_is_lost_is_not_told(void **state)
{
    (void)state;
    hf__tell tell;
    SETUP();
    ACQUIRE(1, "x", .lease_ms = 5000);
    S.listens_by_hand = true;
    REVOKE(2, "x", "my turn");
    EXTEND(1, 5000);
    EXPECT(1, HF_OK);
    tick(20000);
    assert_true(next(&tell));
    assert_int_equal(tell.event.state, HF_LOST);
    hf__core_told(S.core);
    assert_false(next(&tell));
    FINISH();
}

/* ---- Never after the release ---- */

static void nothing_is_told_after_the_release(void **state)
{
    (void)state;
    hf__tell tell;
    for (int nowait = 0; nowait < 2; nowait++) {
        SETUP();
        ACQUIRE(1, "x", RENEWED);
        S.listens_by_hand = true;
        S.deaf = true;
        tick(3500);
        assert_true(has_news()); /* there would be something */
        if (nowait)
            stage_let_go(1);
        else
            RELEASE(1);
        assert_false(next(&tell));
        assert_false(has_news());
        tick(30000);
        assert_false(next(&tell));
        FINISH();
    }
}

static void nothing_is_told_after_the_close(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", RENEWED);
    CLOSE(2);
    EXPECT(2, HF_OK);
    ADVANCE_MS(60000);
    EXPECT_QUIET(1);
    FINISH();
}

/* The callback itself gives the handle back: its memory must stay until it returns. */
static void a_handle_may_be_given_back_while_it_is_told(void **state)
{
    (void)state;
    hf__tell tell;
    for (int handles = 1; handles <= 2; handles++) {
        for (int given = 1; given <= handles; given++) {
            SETUP();
            for (int i = 1; i <= handles; i++)
                ACQUIRE(i, "x", RENEWED, .reenters = true);
            S.listens_by_hand = true;
            S.deaf = true;
            tick(3500);
            while (next(&tell) && tell.hold != stage_hold(given))
                hf__core_told(S.core);
            assert_ptr_equal(tell.hold, stage_hold(given));
            S.deaf = false;
            assert_int_equal(stage_let_go(given), HF_OK);
            assert_true(hf__core_is_telling(S.core, tell.hold));
            tick(1500);
            assert_int_equal(tell.event.hold == tell.hold, true);
            assert_string_equal(tell.event.text, hf_reason_text(HF_REASON_LATE));
            hf__core_told(S.core);
            while (next(&tell))
                hf__core_told(S.core);
            tick(1);
            FINISH();
        }
    }
}

/* ---- Who cannot be told ---- */

static void nobody_listens(void **state)
{
    (void)state;
    hf__tell tell;
    SETUP();
    ACQUIRE(1, "x", .lease_ms = 1000, .deaf = true);
    S.listens_by_hand = true;
    tick(2000);
    EXPECT_STATE(1, HF_LOST);
    assert_false(has_news());
    assert_false(next(&tell));
    FINISH();
}

static void a_descriptor_is_a_listener(void **state)
{
    (void)state;
    hf__tell tell;
    SETUP();
    ACQUIRE(1, "x", .lease_ms = 1000, .deaf = true);
    assert_int_equal(hf__hold_descriptor(stage_hold(1)), -1);
    hf__hold_set_descriptor(stage_hold(1), 77);
    assert_int_equal(hf__hold_descriptor(stage_hold(1)), 77);
    S.listens_by_hand = true;
    assert_int_equal(hf__core_next_descriptor(S.core), -1); /* nothing has happened yet */
    tick(2000);
    assert_int_equal(hf__core_next_descriptor(S.core), 77);
    assert_int_equal(hf__core_next_descriptor(S.core), -1); /* once is enough */
    assert_true(next(&tell));
    assert_null(tell.function);
    hf__core_told(S.core);
    assert_false(next(&tell));
    FINISH();
}

/* It was lost before anybody could have been told by it. */
static void a_descriptor_that_comes_late(void **state)
{
    (void)state;
    hf__tell tell;
    SETUP();
    ACQUIRE(1, "x", RENEWED, .deaf = true, .warn_ms = 1000);
    S.listens_by_hand = true;
    S.deaf = true;
    tick(9500);
    EXPECT_STATE(1, HF_JEOPARDY);
    hf__hold_set_descriptor(stage_hold(1), 77);
    tick(1000);
    assert_true(next(&tell));
    assert_int_equal(tell.event.state, HF_LOST);
    hf__core_told(S.core);
    assert_false(next(&tell));
    FINISH();
}

/* Told after the acquire is done, not before: its caller has the handle by then. */
static void nothing_is_told_inside_the_acquire(void **state)
{
    (void)state;
    hf__tell tell;
    SETUP();
    ACQUIRE(2, "warm");
    S.mute = true;
    S.listens_by_hand = true;
    ACQUIRE(1, "x", .lease_ms = 1000, .warn_ms = 5000);
    assert_false(next(&tell));
    EXPECT_WAITING(1);
    S.mute = false;
    stage_run();
    EXPECT(1, HF_OK);
    assert_true(next(&tell));
    assert_ptr_equal(tell.hold, S.calls[1].hold);
    assert_int_equal(tell.event.reason, HF_REASON_NEAR);
    hf__core_told(S.core);
    FINISH();
}

/* ---- Names ---- */

static void states_and_reasons_have_names(void **state)
{
    (void)state;
    assert_string_equal(hf_state_name(HF_SAFE), "SAFE");
    assert_string_equal(hf_state_name(HF_JEOPARDY), "JEOPARDY");
    assert_string_equal(hf_state_name(HF_LOST), "LOST");
    assert_non_null(hf_state_name((hf_state)99));
    for (int i = 0; i < HF_REASONS; i++) {
        assert_true(strlen(hf_reason_text((hf_reason)i)) > 0);
        for (int j = 0; j < i; j++)
            assert_string_not_equal(hf_reason_text((hf_reason)i), hf_reason_text((hf_reason)j));
    }
    assert_int_equal(HF_REASONS, HF_REASON_REVOKED + 1);
    assert_non_null(hf_reason_text(HF_REASONS));
    assert_non_null(hf_reason_text((hf_reason)99));
    assert_string_equal(hf_status_name(HF_ENOTHELD), "HF_ENOTHELD");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_listens_later_hears_what_was_missed),
        cmocka_unit_test(who_missed_nothing_hears_nothing),
        cmocka_unit_test(one_at_a_time_and_each_once),
        cmocka_unit_test(the_tell_has_what_the_acquire_gave),
        cmocka_unit_test(jeopardy_that_became_a_loss_is_told_as_a_loss),
        cmocka_unit_test(jeopardy_that_passed_is_not_told),
        cmocka_unit_test(what_happens_while_somebody_is_told_is_told_next),
        cmocka_unit_test(a_request_is_told_beside_a_change),
        cmocka_unit_test(a_request_to_give_up_what_is_lost_is_not_told),
        cmocka_unit_test(nothing_is_told_after_the_release),
        cmocka_unit_test(nothing_is_told_after_the_close),
        cmocka_unit_test(a_handle_may_be_given_back_while_it_is_told),
        cmocka_unit_test(nobody_listens),
        cmocka_unit_test(a_descriptor_is_a_listener),
        cmocka_unit_test(a_descriptor_that_comes_late),
        cmocka_unit_test(nothing_is_told_inside_the_acquire),
        cmocka_unit_test(states_and_reasons_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
