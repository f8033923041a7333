/* SPDX-License-Identifier: MIT */
/* Orders about locks that one does not hold: requests to give up, and breaking by force. They reach
 * whom they are meant for, once, and nobody else. */
#include <stdio.h>
#include <string.h>

#include "stage.h"

#define S           the_stage
#define ME          .owner = "request 7"
#define RENEWED     .lease_ms = 10000, .renew_interval_ms = 3000
#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

/* ---- Revoke ---- */

static void a_request_reaches_the_holder_once(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", RENEWED);
    REVOKE(2, "x", "maintenance at noon");
    EXPECT(2, HF_OK);
    assert_true(ANSWER(2)->number == 1);
    EXPECT_QUIET(1);
    ADVANCE_MS(3000);
    assert_string_equal(stage_next_told(1)->text, "maintenance at noon");
    EXPECT_TOLD(1, HF_SAFE, REVOKED); /* no change of state */
    ADVANCE_MS(30000);
    EXPECT_QUIET(1);
    EXPECT_STATE(1, HF_SAFE);
    RELEASE(1);
    EXPECT(1, HF_OK);
    FINISH();
}

static void a_request_comes_with_an_extend_too(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x");
    REVOKE(2, "x", "now");
    EXTEND(1, 10000);
    EXPECT(1, HF_OK);
    EXPECT_TOLD(1, HF_SAFE, REVOKED);
    EXPECT_QUIET(1);
    FINISH();
}

static void a_request_to_nobody_is_not_left(void **state)
{
    (void)state;
    SETUP();
    REVOKE(1, "x", "please");
    EXPECT(1, HF_OK);
    assert_true(ANSWER(1)->number == 0);
    ACQUIRE(2, "x", RENEWED);
    ADVANCE_MS(30000);
    EXPECT_QUIET(2);
    FINISH();
}

static void a_request_is_for_one_grant(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", RENEWED);
    REVOKE(2, "x", "please");
    RELEASE(1);
    ACQUIRE(3, "x", RENEWED); /* the next holder has not been asked */
    ADVANCE_MS(30000);
    EXPECT_QUIET(3);
    FINISH();
}

/* Another hold has the lock by the time the request arrives. */
static void a_request_that_comes_too_late_is_not_left(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x");
    uint64_t fence = FENCE(1);
    RELEASE(1);
    ACQUIRE(2, "x", RENEWED);
    QUERY(3, HF__QUERY_REVOKE, "x", "please", fence);
    EXPECT(3, HF_OK);
    assert_true(ANSWER(3)->number == 0);
    ADVANCE_MS(30000);
    EXPECT_QUIET(2);
    FINISH();
}

static void a_request_reaches_all_who_share(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", RENEWED, ME);
    ACQUIRE(2, "x", RENEWED, ME);
    ACQUIRE(3, "y", RENEWED, .reenters = true);
    ACQUIRE(4, "y", RENEWED, .reenters = true);
    REVOKE(5, "x", "");
    REVOKE(6, "y", "y!");
    ADVANCE_MS(9000);
    for (int i = 1; i <= 4; i++) {
        assert_string_equal(stage_next_told(i)->text, i <= 2 ? "" : "y!");
        EXPECT_TOLD(i, HF_SAFE, REVOKED);
        EXPECT_QUIET(i);
    }
    FINISH();
}

/* What refresh says of a hold that it leaves to renew, the only one of its call. */
#define LOOK_CLOSER "*2\r\n:1\r\n:1\r\n"

static void the_words_of_a_request_are_made_printable_and_cut(void **state)
{
    (void)state;
    static char reply[600];
    SETUP();
    ACQUIRE(1, "x", RENEWED);
    char text[301] = "a\tb\x1b[31m:";
    memset(text + strlen(text), 'z', 300 - strlen(text));
    snprintf(reply, sizeof(reply), "*1\r\n*2\r\n:10000\r\n$%zu\r\n%llu:%s\r\n", strlen(text) + 8,
             (unsigned long long)FENCE(1), text);
    assert_in_range(FENCE(1), 1000000, 9999999); /* seven digits and a colon */
    node_say(&S.node, LOOK_CLOSER);
    node_say(&S.node, reply);
    ADVANCE_MS(3000);
    assert_memory_equal(stage_next_told(1)->text, "a?b?[31m:zzzz", 13);
    assert_in_range(strlen(stage_next_told(1)->text), 100, HF_REASON_MAX);
    EXPECT_TOLD(1, HF_SAFE, REVOKED);
    FINISH();
}

/* Notes that are for nobody or make no sense must do no harm: the renewal itself stands. */
static void strange_notes_are_ignored(void **state)
{
    (void)state;
    static const char *const notes[] = {
        "*1\r\n*2\r\n:10000\r\n$0\r\n\r\n",
        "*1\r\n*2\r\n:10000\r\n$1\r\n:\r\n",
        "*1\r\n*2\r\n:10000\r\n$7\r\n1000000\r\n",
        "*1\r\n*2\r\n:10000\r\n$5\r\n1:old\r\n",
        "*1\r\n*2\r\n:10000\r\n$6\r\nx1:new\r\n",
        "*1\r\n*2\r\n:10000\r\n$3\r\n0:x\r\n",
        "*1\r\n*2\r\n:10000\r\n$1\r\n=\r\n",
        "*1\r\n*2\r\n:10000\r\n$2\r\n=:\r\n",
        "*1\r\n*2\r\n:10000\r\n$7\r\n=them:x\r\n",
        "*1\r\n*2\r\n:10000\r\n$34\r\n99999999999999999999999999999999:x\r\n",
    };
    for (size_t i = 0; i < COUNT(notes); i++) {
        SETUP();
        ACQUIRE(1, "x", RENEWED);
        node_say(&S.node, LOOK_CLOSER);
        node_say(&S.node, notes[i]);
        ADVANCE_MS(3000);
        EXPECT_QUIET(1);
        EXPECT_STATE(1, HF_SAFE);
        assert_int_equal(stage_remaining_ms(1), 10000 - 100 - 2);
        FINISH();
    }
}

/* Its counter was lost, so the fence does not say which grant is meant: the lock's value does. */
static void a_request_without_a_fence_is_for_the_value(void **state)
{
    (void)state;
    static const char *const owners[] = {NULL, "request:7"};
    for (int i = 0; i < 2; i++) {
        SETUP();
        ACQUIRE(1, "x", RENEWED, .owner = owners[i]);
        node_delete(&S.node, node_side(&S.node, 'f', "x")->name.bytes);
        REVOKE(2, "x", "please: now");
        EXPECT(2, HF_OK);
        assert_true(ANSWER(2)->number == 1);
        ADVANCE_MS(9000);
        assert_string_equal(stage_next_told(1)->text, "please: now");
        EXPECT_TOLD(1, HF_SAFE, REVOKED);
        EXPECT_QUIET(1);
        RELEASE(1);
        ACQUIRE(3, "x", RENEWED);
        ADVANCE_MS(9000);
        EXPECT_QUIET(3);
        FINISH();
    }
}

/* ---- Break ---- */

static void a_break_takes_the_lock_and_raises_the_fence(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", RENEWED, ME);
    ACQUIRE(2, "x", RENEWED, ME);
    uint64_t fence = FENCE(1);
    BREAK(3, "x", "request 7", fence);
    EXPECT(3, HF_OK);
    uint64_t raised = ANSWER(3)->number;
    assert_true(raised > fence);
    EXPECT_NO_KEY("x");
    assert_null(node_side(&S.node, 'h', "x"));
    ACQUIRE(4, "x");
    EXPECT(4, HF_OK);
    assert_true(FENCE(4) > raised);
    ADVANCE_MS(3000);
    EXPECT_TOLD(1, HF_LOST, BROKEN);
    EXPECT_TOLD(2, HF_LOST, BROKEN);
    RELEASE(1);
    EXPECT(1, HF_ELOST);
    assert_int_equal(stage_let_go(2), HF_ELOST);
    EXPECT_KEY("x");
    FINISH();
}

/* A copy of the victim's own request is still in the network. */
static void a_broken_hold_does_not_come_back(void **state)
{
    (void)state;
    static const char *const owners[] = {NULL, "request 7"};
    for (int i = 0; i < 2; i++) {
        SETUP();
        ACQUIRE(1, "warm");
        S.delays = true;
        ACQUIRE(2, "x", .owner = owners[i]);
        CUT();
        S.delays = false;
        ADVANCE_MS(30);
        EXPECT(2, HF_OK);
        BREAK(3, "x", node_get(&S.node, "x"), FENCE(2));
        EXPECT(3, HF_OK);
        EXPECT_NO_KEY("x");
        stage_deliver_late();
        EXPECT_NO_KEY("x");
        FINISH();
    }
}

static void a_break_is_meant_for_one_hold(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x");
    BREAK(2, "x", "another", FENCE(1));
    assert_true(ANSWER(2)->number == 0);
    BREAK(2, "x", node_get(&S.node, "x"), FENCE(1) - 1);
    assert_true(ANSWER(2)->number == 0);
    EXPECT_KEY("x");
    BREAK(2, "y", "", 0);
    EXPECT(2, HF_OK);
    assert_true(ANSWER(2)->number == 0);
    RELEASE(1);
    EXPECT(1, HF_OK);
    FINISH();
}

static void a_foreign_lock_can_be_broken(void **state)
{
    (void)state;
    SETUP();
    node_set(&S.node, "x", "somebody", -1);
    BREAK(1, "x", "somebody", 0);
    EXPECT(1, HF_OK);
    assert_true(ANSWER(1)->number > 0);
    EXPECT_NO_KEY("x");
    FINISH();
}

/* The first copy did it, and the second must neither break what came after nor lose the fence. */
static void a_repeated_break_knows_what_the_first_copy_did(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x");
    uint64_t fence = FENCE(1);
    S.mute = true;
    BREAK(2, "x", node_get(&S.node, "x"), fence);
    EXPECT_NO_KEY("x");
    CUT();
    S.mute = false;
    ADVANCE_MS(30);
    EXPECT(2, HF_OK);
    assert_int_equal(S.node.breaks, 2);
    assert_true(ANSWER(2)->number > fence);
    FINISH();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_reaches_the_holder_once),
        cmocka_unit_test(a_request_comes_with_an_extend_too),
        cmocka_unit_test(a_request_to_nobody_is_not_left),
        cmocka_unit_test(a_request_is_for_one_grant),
        cmocka_unit_test(a_request_that_comes_too_late_is_not_left),
        cmocka_unit_test(a_request_reaches_all_who_share),
        cmocka_unit_test(the_words_of_a_request_are_made_printable_and_cut),
        cmocka_unit_test(strange_notes_are_ignored),
        cmocka_unit_test(a_request_without_a_fence_is_for_the_value),
        cmocka_unit_test(a_break_takes_the_lock_and_raises_the_fence),
        cmocka_unit_test(a_broken_hold_does_not_come_back),
        cmocka_unit_test(a_break_is_meant_for_one_hold),
        cmocka_unit_test(a_foreign_lock_can_be_broken),
        cmocka_unit_test(a_repeated_break_knows_what_the_first_copy_did),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
