/* SPDX-License-Identifier: MIT */
/* Releasing: what is said about it, that it never touches another's lock, and that it goes on in
 * the background until the server has heard it or the lease is over. */
#include <string.h>

#include "rival.h"
#include "stage.h"

#define S the_stage

static void releases_in_one_round_trip(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x");
    RELEASE(1);
    EXPECT(1, HF_OK);
    EXPECT_NO_KEY("x");
    assert_int_equal(S.node.releases, 1);
    assert_int_equal(S.node.last_tombstone_ms, 0); /* no tombstone where no copy can be late */
    FINISH();
}

static void says_lost_after_the_deadline_and_still_cleans_up(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", .lease_ms = 1000);
    ADVANCE_MS(989); /* the deadline is at 988, the server's expiry at 1000 */
    assert_int_equal(stage_remaining_ms(1), 0);
    EXPECT_KEY("x");
    RELEASE(1);
    EXPECT(1, HF_ELOST);
    EXPECT_NO_KEY("x");
    FINISH();
}

static void never_touches_anothers_lock(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x");
    node_set(&S.node, "x", "another", 5000);
    RELEASE(1);
    EXPECT(1, HF_ELOST);
    assert_string_equal(node_get(&S.node, "x"), "another");
    FINISH();
}

static void says_lost_when_the_lock_is_gone(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x");
    node_delete(&S.node, "x");
    RELEASE(1);
    EXPECT(1, HF_ELOST);
    FINISH();
}

/* The first copy was carried out, only its answer was lost: the second finds nothing, as it would
 * if somebody else had deleted the lock before. */
static void a_second_copy_that_finds_nothing_knows_nothing(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x");
    S.mute = true;
    RELEASE(1);
    EXPECT_NO_KEY("x");
    EXPECT_WAITING(1);
    CUT();
    S.mute = false;
    ADVANCE_MS(20);
    EXPECT(1, HF_EUNKNOWN);
    EXPECT_TEXT(1, "the lock was gone");
    assert_int_equal(S.node.releases, 2);
    FINISH();
}

/* The first copy never came, and somebody deleted the lock: its fence is there, which a release
 * would have deleted. */
static void a_second_copy_that_finds_the_fence_was_lost(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x");
    S.deaf = true;
    RELEASE(1);
    node_delete(&S.node, "x");
    CUT();
    S.deaf = false;
    ADVANCE_MS(20);
    EXPECT(1, HF_ELOST);
    EXPECT_TEXT(1, "taken away");
    assert_null(node_side(&S.node, 'f', "x"));
    FINISH();
}

/* And another one had it since: nobody can tell any more. */
static void a_second_copy_behind_another_holder_knows_nothing(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x");
    S.deaf = true;
    RELEASE(1);
    node_delete(&S.node, "x");
    assert_true(rival_acquire(&(rival_wish){.name = "x", .number = 1}));
    rival_release("x", 1);
    CUT();
    S.deaf = false;
    ADVANCE_MS(20);
    EXPECT(1, HF_EUNKNOWN);
    FINISH();
}

static void a_second_copy_at_a_server_that_forgot_is_lost(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x");
    S.deaf = true;
    RELEASE(1);
    node_restart(&S.node);
    CUT();
    S.deaf = false;
    ADVANCE_MS(20);
    EXPECT(1, HF_ELOST);
    FINISH();
}

static void no_answer_is_unknown_and_tried_until_it_is_heard(void **state)
{
    (void)state;
    SETUP(.call_timeout_ms = 400);
    ACQUIRE(1, "x");
    S.deaf = true;
    RELEASE(1);
    ADVANCE_MS(399);
    EXPECT_WAITING(1);
    ADVANCE_MS(1);
    EXPECT(1, HF_EUNKNOWN);
    EXPECT_KEY("x");
    S.deaf = false;
    ADVANCE_MS(1000); /* the silent connection is given up and the request sent again */
    EXPECT_NO_KEY("x");
    FINISH();
}

static void no_connection_is_unavailable_and_tried_until_there_is_one(void **state)
{
    (void)state;
    SETUP(.call_timeout_ms = 400);
    ACQUIRE(1, "x");
    CUT();
    S.refuses = true;
    RELEASE(1);
    ADVANCE_MS(400);
    EXPECT(1, HF_EUNAVAILABLE);
    EXPECT_TEXT(1, "refused");
    S.refuses = false;
    ADVANCE_MS(1500);
    EXPECT_NO_KEY("x");
    FINISH();
}

static void the_background_ends_with_the_lease(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", .lease_ms = 2000);
    CUT();
    S.refuses = true;
    RELEASE(1);
    ADVANCE_MS(2100);
    EXPECT(1, HF_EUNKNOWN);
    int attempts = S.connects;
    ADVANCE_MS(60000);
    assert_int_equal(S.connects, attempts);
    assert_true(hf__is_never(hf__core_wake(S.core)));
    FINISH();
}

static void errors_that_may_pass_are_tried_again(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x");
    node_say(&S.node, "-LOADING Redis is loading the dataset in memory\r\n");
    node_say(&S.node, "-BUSY Redis is busy running a script.\r\n");
    RELEASE(1);
    EXPECT_WAITING(1);
    ADVANCE_MS(200);
    EXPECT(1, HF_OK);
    EXPECT_NO_KEY("x");
    FINISH();
}

static void an_error_that_does_not_pass_in_time_is_told(void **state)
{
    (void)state;
    SETUP(.call_timeout_ms = 1000);
    ACQUIRE(1, "x");
    S.node.always = "-LOADING Redis is loading the dataset in memory\r\n";
    RELEASE(1);
    ADVANCE_MS(999);
    EXPECT_WAITING(1);
    ADVANCE_MS(1);
    EXPECT(1, HF_EUNAVAILABLE);
    EXPECT_TEXT(1, "loading");
    S.node.always = NULL;
    ADVANCE_MS(200);
    EXPECT_NO_KEY("x");
    FINISH();
}

static void a_final_error_is_told_and_tried_again_in_the_background(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x");
    node_say(&S.node, "-NOPERM this user has no permissions\r\n");
    RELEASE(1);
    EXPECT(1, HF_EDENIED);
    EXPECT_KEY("x");
    ADVANCE_MS(1000);
    EXPECT_NO_KEY("x");
    FINISH();
}

static void nonsense_is_asked_again(void **state)
{
    (void)state;
    static const char *const nonsense[] = {"+OK\r\n", "$-1\r\n", "*0\r\n", "$1\r\n1\r\n"};
    for (size_t i = 0; i < sizeof(nonsense) / sizeof(nonsense[0]); i++) {
        SETUP();
        ACQUIRE(1, "x");
        node_say(&S.node, nonsense[i]);
        RELEASE(1);
        EXPECT_WAITING(1);
        ADVANCE_MS(20);
        EXPECT(1, HF_OK);
        FINISH();
    }
}

/* ---- Without waiting ---- */

static void let_go_writes_at_once(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x");
    S.mute = true;
    assert_int_equal(stage_let_go(1), HF_OK);
    EXPECT_NO_KEY("x");
    S.mute = false;
    stage_run();
    FINISH();
}

static void let_go_of_an_expired_hold_says_lost(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", .lease_ms = 1000);
    ADVANCE_MS(2000);
    assert_int_equal(stage_let_go(1), HF_ELOST);
    FINISH();
}

static void let_go_survives_a_cut(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x");
    S.deaf = true;
    assert_int_equal(stage_let_go(1), HF_OK);
    CUT();
    S.deaf = false;
    ADVANCE_MS(20);
    EXPECT_NO_KEY("x");
    FINISH();
}

/* ---- Found by review ---- */

/* The renewal was carried out, but its answer came after the deadline: the server keeps the lock
 * for the time that was asked for unless it is told. */
static void a_hold_lost_while_extending_is_still_released(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", .lease_ms = 1000);
    ADVANCE_MS(500);
    S.mute = true;
    EXTEND(1, 60000);
    ADVANCE_MS(600);
    EXPECT(1, HF_ELOST);
    S.mute = false;
    ADVANCE_MS(100);
    EXPECT_KEY("x");
    RELEASE(1);
    EXPECT(1, HF_ELOST);
    EXPECT_NO_KEY("x");
    FINISH();
}

static void closing_releases_a_hold_lost_while_extending(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", .lease_ms = 1000);
    ADVANCE_MS(500);
    S.mute = true;
    EXTEND(1, 60000);
    ADVANCE_MS(600);
    EXPECT(1, HF_ELOST);
    S.mute = false;
    stage_run();
    CLOSE(2);
    EXPECT(2, HF_OK);
    EXPECT_NO_KEY("x");
    FINISH();
}

static void the_background_lasts_as_long_as_the_extended_lease(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", .lease_ms = 100);
    EXTEND(1, 60000);
    EXPECT(1, HF_OK);
    S.deaf = true;
    RELEASE(1);
    ADVANCE_MS(5000);
    EXPECT(1, HF_EUNKNOWN);
    EXPECT_KEY("x");
    S.deaf = false;
    ADVANCE_MS(3000);
    EXPECT_NO_KEY("x");
    FINISH();
}

/* A copy that the server answered with an error has done nothing; it does not explain why the next
 * one finds nothing. */
static void a_refused_copy_does_not_hide_a_loss(void **state)
{
    (void)state;
    static const char *const refusals[] = {"-NOSCRIPT No matching script.\r\n",
                                           "-BUSY Redis is busy running a script.\r\n"};
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
        SETUP();
        ACQUIRE(1, "x");
        node_set(&S.node, "x", "another", 5000);
        node_say(&S.node, refusals[i]);
        RELEASE(1);
        ADVANCE_MS(200);
        EXPECT(1, HF_ELOST);
        FINISH();
    }
}

static void more_than_two_is_no_answer(void **state)
{
    (void)state;
    static const char *const nonsense[] = {":3\r\n", ":9223372036854775807\r\n"};
    for (size_t i = 0; i < sizeof(nonsense) / sizeof(nonsense[0]); i++) {
        SETUP();
        ACQUIRE(1, "x");
        node_say(&S.node, nonsense[i]);
        RELEASE(1);
        EXPECT_WAITING(1);
        ADVANCE_MS(20);
        EXPECT(1, HF_OK);
        EXPECT_NO_KEY("x");
        FINISH();
    }
}

/* "Not yours, and the hold with that fence was broken": whether that was this one or not. */
static void a_negative_answer_is_a_loss(void **state)
{
    (void)state;
    static const char *const losses[] = {":-7\r\n", ":-9223372036854775807\r\n",
                                         ":-9223372036854775808\r\n"};
    for (size_t i = 0; i < sizeof(losses) / sizeof(losses[0]); i++) {
        SETUP();
        ACQUIRE(1, "x");
        node_say(&S.node, losses[i]);
        RELEASE(1);
        EXPECT(1, HF_ELOST);
        FINISH();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(releases_in_one_round_trip),
        cmocka_unit_test(says_lost_after_the_deadline_and_still_cleans_up),
        cmocka_unit_test(never_touches_anothers_lock),
        cmocka_unit_test(says_lost_when_the_lock_is_gone),
        cmocka_unit_test(a_second_copy_that_finds_nothing_knows_nothing),
        cmocka_unit_test(a_second_copy_that_finds_the_fence_was_lost),
        cmocka_unit_test(a_second_copy_behind_another_holder_knows_nothing),
        cmocka_unit_test(a_second_copy_at_a_server_that_forgot_is_lost),
        cmocka_unit_test(no_answer_is_unknown_and_tried_until_it_is_heard),
        cmocka_unit_test(no_connection_is_unavailable_and_tried_until_there_is_one),
        cmocka_unit_test(the_background_ends_with_the_lease),
        cmocka_unit_test(errors_that_may_pass_are_tried_again),
        cmocka_unit_test(an_error_that_does_not_pass_in_time_is_told),
        cmocka_unit_test(a_final_error_is_told_and_tried_again_in_the_background),
        cmocka_unit_test(nonsense_is_asked_again),
        cmocka_unit_test(let_go_writes_at_once),
        cmocka_unit_test(let_go_of_an_expired_hold_says_lost),
        cmocka_unit_test(let_go_survives_a_cut),
        cmocka_unit_test(a_hold_lost_while_extending_is_still_released),
        cmocka_unit_test(closing_releases_a_hold_lost_while_extending),
        cmocka_unit_test(the_background_lasts_as_long_as_the_extended_lease),
        cmocka_unit_test(a_refused_copy_does_not_hide_a_loss),
        cmocka_unit_test(more_than_two_is_no_answer),
        cmocka_unit_test(a_negative_answer_is_a_loss),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
