/* SPDX-License-Identifier: MIT */
/* Which message about a grant is believed, and for how long. A grant names the copy that queued:
 * one that is older than an answered check is out of date, one that was never sent is forged, and
 * one by another server process means nothing. What is believed lasts from before that copy had
 * left. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "contest.h"

#define S the_stage

/* Somebody says that the hold of call 1 is granted by that copy. */
static void say_granted(int64_t copy, int64_t lease_ms)
{
    char text[100];
    snprintf(text, sizeof(text), "g 1 %" PRId64 " 77 %" PRId64 " 0", copy, lease_ms);
    SAY(text);
}

/* Advances to the next check; returns how long that took. */
static int64_t await_check(void)
{
    int before = S.node.acquires;
    int64_t ms = 0;
    while (S.node.acquires == before && ms++ < 10000)
        ADVANCE_MS(1);
    return ms;
}

/* ---- Numbers ---- */

static void every_copy_has_a_larger_number(void **state)
{
    (void)state;
    contest_begin_held();
    ACQUIRE(1, "x", .wait_ms = 60000, .lease_ms = 1000);
    int64_t last = S.node.last_copy;
    assert_true(last > 0);
    for (int i = 0; i < 5; i++) {
        await_check();
        assert_true(S.node.last_copy > last);
        last = S.node.last_copy;
    }
    CUT();
    ADVANCE_MS(200);
    assert_true(S.node.last_copy > last);
    contest_end();
}

/* So one who has heard of a grant cannot forge the next. */
static void every_hold_counts_from_another_number(void **state)
{
    (void)state;
    int64_t firsts[5];
    contest_begin_held();
    for (int i = 0; i < 5; i++) {
        ACQUIRE(i + 1, "x", .wait_ms = 60000);
        firsts[i] = S.node.last_copy;
        for (int j = 0; j < i; j++)
            assert_true(llabs(firsts[i] - firsts[j]) > UINT32_MAX); /* for this seed */
    }
    contest_end();
}

static void the_first_number_is_hard_to_guess(void **state)
{
    (void)state;
    contest_begin_held();
    ACQUIRE(1, "x", .wait_ms = 5000);
    assert_true(S.node.last_copy > UINT32_MAX); /* for this seed */
    assert_true(S.node.last_copy < INT64_C(1) << 52);
    contest_end();
}

static void the_newest_copy_is_believed(void **state)
{
    (void)state;
    contest_begin_held();
    ACQUIRE(1, "x", .wait_ms = 5000);
    say_granted(S.node.last_copy, 10000);
    EXPECT(1, HF_OK);
    assert_true(FENCE(1) == 77);
    contest_end();
}

static void a_copy_that_was_never_sent_is_not_believed(void **state)
{
    (void)state;
    contest_begin_held();
    ACQUIRE(1, "x", .wait_ms = 5000);
    const int64_t wrong[] = {S.node.last_copy + 1, S.node.last_copy - 1, 0, 1, INT64_MAX};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        say_granted(wrong[i], 10000);
    EXPECT_WAITING(1);
    contest_end();
}

static void a_copy_before_an_answered_check_is_not_believed(void **state)
{
    (void)state;
    contest_begin_held();
    ACQUIRE(1, "x", .wait_ms = 60000, .lease_ms = 3000);
    int64_t first = S.node.last_copy;
    await_check();
    say_granted(first, 3000);
    EXPECT_WAITING(1);
    say_granted(S.node.last_copy, 3000);
    EXPECT(1, HF_OK);
    contest_end();
}

/* Its check has left, but the server has not answered it: the first copy may have queued it. */
static void a_copy_before_an_unanswered_check_is_believed(void **state)
{
    (void)state;
    contest_begin_held();
    ACQUIRE(1, "x", .wait_ms = 60000, .lease_ms = 3000);
    int64_t first = S.node.last_copy;
    S.muted = 1 << COMMANDS;
    int64_t passed = await_check();
    assert_true(S.node.last_copy > first);
    say_granted(first, 3000);
    EXPECT(1, HF_OK);
    assert_int_equal(stage_remaining_ms(1), 3000 - 30 - 2 - passed);
    contest_end();
}

static void one_who_does_not_wait_believes_nothing(void **state)
{
    (void)state;
    contest_begin_held();
    ACQUIRE(2, "x", .wait_ms = 100); /* 1 */
    int64_t copy = S.node.last_copy;
    ADVANCE_MS(100);
    EXPECT(2, HF_EBUSY);
    say_granted(copy, 10000);
    ACQUIRE(3, "x"); /* 2: one try, so it does not queue */
    EXPECT(3, HF_EBUSY);
    assert_int_equal(S.node.last_copy, 0);
    assert_int_equal(S.node.releases, 1);
    contest_end();
}

static void one_who_holds_it_already_believes_nothing(void **state)
{
    (void)state;
    contest_begin_held();
    ACQUIRE(1, "x", .wait_ms = 5000);
    rival_release("x", 1);
    EXPECT(1, HF_OK);
    uint64_t fence = FENCE(1);
    ADVANCE_MS(1000);
    int64_t remaining = stage_remaining_ms(1);
    say_granted(S.node.last_copy, 60000);
    assert_true(FENCE(1) == fence);
    assert_int_equal(stage_remaining_ms(1), remaining);
    contest_end();
}

/* ---- Times ---- */

static void a_message_that_overtakes_the_answer_is_believed(void **state)
{
    (void)state;
    contest_begin_held();
    ACQUIRE(1, "x", .wait_ms = 60000); /* so there is a subscription */
    rival_release("x", 1);
    RELEASE(1);
    RIVAL_ACQUIRES("x", .number = 2);
    S.muted = 1 << COMMANDS;
    ACQUIRE(2, "x", .wait_ms = 5000);
    ADVANCE_MS(300);
    rival_release("x", 2);
    EXPECT(2, HF_OK);
    assert_int_equal(stage_remaining_ms(2), 10000 - 100 - 2 - 300);
    S.muted = 0;
    ADVANCE_MS(1); /* now the answer comes: it is for nobody, and breaks nothing */
    EXPECT_STATE(2, HF_SAFE);
    assert_int_equal(S.node.greetings, 2);
    RELEASE(2);
    EXPECT(2, HF_OK);
    contest_end();
}

static void the_lease_counts_from_the_last_answered_check(void **state)
{
    (void)state;
    contest_begin_held();
    ACQUIRE(1, "x", .wait_ms = 60000, .lease_ms = 3000);
    await_check();
    ADVANCE_MS(123);
    rival_release("x", 1);
    EXPECT(1, HF_OK);
    int64_t expected = 3000 - 30 - 2 - 123;
    assert_in_range(stage_remaining_ms(1), expected - 1, expected); /* it left between two ms */
    contest_end();
}

static void a_message_may_take_long(void **state)
{
    (void)state;
    contest_begin_held();
    ACQUIRE(1, "x", .wait_ms = 60000, .lease_ms = 3000);
    S.muted = 1 << PUSH;
    rival_release("x", 1);
    ADVANCE_MS(800);
    EXPECT_WAITING(1);
    S.muted = 0;
    stage_run();
    EXPECT(1, HF_OK);
    assert_int_equal(stage_remaining_ms(1), 3000 - 30 - 2 - 800);
    contest_end();
}

static void what_a_message_says_of_the_lease_is_bounded(void **state)
{
    (void)state;
    static const int64_t leases[] = {60000, HF_MS_MAX, INT64_MAX};
    for (size_t i = 0; i < sizeof(leases) / sizeof(leases[0]); i++) {
        contest_begin_held();
        ACQUIRE(1, "x", .wait_ms = 5000);
        say_granted(S.node.last_copy, leases[i]);
        EXPECT(1, HF_OK);
        assert_int_equal(stage_remaining_ms(1), 10000 - 100 - 2);
        contest_end();
    }
}

/* The grant is over by the time we hear of it, so the server is asked. */
static void a_message_that_comes_too_late_leads_to_a_check(void **state)
{
    (void)state;
    contest_begin_held();
    ACQUIRE(1, "x", .wait_ms = 60000, .lease_ms = 1000);
    S.muted = 1 << PUSH;
    rival_release("x", 1);
    uint64_t fence = stage_fence_of("x");
    PAUSE_MS(1200); /* the process stood still */
    S.muted = 0;
    stage_run();
    EXPECT(1, HF_OK);
    assert_int_equal(stage_remaining_ms(1), 1000 - 10 - 2);
    assert_true(FENCE(1) > fence); /* it was free, and taken anew */
    contest_end();
}

static void a_message_that_comes_too_late_for_somebody_else(void **state)
{
    (void)state;
    contest_begin_held();
    ACQUIRE(1, "x", .wait_ms = 60000, .lease_ms = 1000);
    S.muted = 1 << PUSH;
    rival_release("x", 1);
    PAUSE_MS(1200);
    RIVAL_ACQUIRES("x", .number = 2); /* behind our grant, which is over */
    S.muted = 0;
    stage_run();
    EXPECT_WAITING(1);
    assert_true(S.node.last_copy > 0); /* queued again */
    rival_release("x", 2);
    EXPECT(1, HF_OK);
    contest_end();
}

/* ---- Servers ---- */

/* After a restart the server refuses for a while: no check is answered, so nothing but its identity
 * tells that the old copies mean nothing any more. */
static void a_copy_to_another_server_process_is_not_believed(void **state)
{
    (void)state;
    contest_begin_held();
    ACQUIRE(1, "x", .wait_ms = 60000);
    int64_t old = S.node.last_copy;
    node_restart(&S.node);
    S.node.always = "-LOADING Redis is loading the dataset in memory\r\n";
    CUT();
    ADVANCE_MS(50);
    assert_int_equal(S.node.subscribes, 2);
    say_granted(old, 10000);
    EXPECT_WAITING(1);
    S.node.always = NULL;
    ADVANCE_MS(200);
    EXPECT(1, HF_OK); /* there is no rival any more */
    contest_end();
}

static void after_a_cut_old_copies_are_still_believed(void **state)
{
    (void)state;
    contest_begin_held();
    ACQUIRE(1, "x", .wait_ms = 60000);
    int64_t old = S.node.last_copy;
    S.node.always = "-BUSY Redis is busy running a script.\r\n";
    CUT();
    ADVANCE_MS(50);
    say_granted(old, 10000);
    EXPECT(1, HF_OK); /* the same process, and it has not said that we wait since */
    contest_end();
}

/* The subscription is at the old process, the commands go to the new one. */
static void a_subscription_elsewhere_is_not_believed(void **state)
{
    (void)state;
    contest_begin_held();
    ACQUIRE(1, "x", .wait_ms = 60000);
    S.node.run_id[0] = '9';
    S.muted = 1 << PUSH;
    stage_cut_link(0);
    ACQUIRE(2, "other");
    EXPECT(2, HF_OK);
    assert_int_equal(S.node.last_copy, 0); /* it asks, but does not queue */
    EXPECT_WAITING(1);
    S.muted = 0;
    ADVANCE_MS(20); /* then there is a new subscription, and it does */
    assert_int_equal(S.node.subscribes, 2);
    assert_true(S.node.last_copy > 0);
    rival_release("x", 1);
    EXPECT(1, HF_OK);
    contest_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_copy_has_a_larger_number),
        cmocka_unit_test(every_hold_counts_from_another_number),
        cmocka_unit_test(the_first_number_is_hard_to_guess),
        cmocka_unit_test(the_newest_copy_is_believed),
        cmocka_unit_test(a_copy_that_was_never_sent_is_not_believed),
        cmocka_unit_test(a_copy_before_an_answered_check_is_not_believed),
        cmocka_unit_test(a_copy_before_an_unanswered_check_is_believed),
        cmocka_unit_test(one_who_does_not_wait_believes_nothing),
        cmocka_unit_test(one_who_holds_it_already_believes_nothing),
        cmocka_unit_test(a_message_that_overtakes_the_answer_is_believed),
        cmocka_unit_test(the_lease_counts_from_the_last_answered_check),
        cmocka_unit_test(a_message_may_take_long),
        cmocka_unit_test(what_a_message_says_of_the_lease_is_bounded),
        cmocka_unit_test(a_message_that_comes_too_late_leads_to_a_check),
        cmocka_unit_test(a_message_that_comes_too_late_for_somebody_else),
        cmocka_unit_test(a_copy_to_another_server_process_is_not_believed),
        cmocka_unit_test(after_a_cut_old_copies_are_still_believed),
        cmocka_unit_test(a_subscription_elsewhere_is_not_believed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
