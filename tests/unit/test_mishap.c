/* SPDX-License-Identifier: MIT */
/* Automatic renewal when something goes wrong: refusals, cuts, servers that moved or forgot or talk
 * nonsense. A renewal is tried again until the deadline, without a storm, and what happens to one
 * hold is its own affair. */
#include <stdio.h>
#include <string.h>

#include "herd.h"

#define S           the_stage
#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static void a_refused_renewal_is_tried_again(void **state)
{
    (void)state;
    static const char *const refusals[] = {
        "-BUSY Redis is busy running a script.\r\n",
        "-OOM command not allowed when used memory > 'maxmemory'.\r\n",
        "-NOPERM this user has no permissions\r\n", /* these two with one hold; else see split.c */
        "-WRONGTYPE Operation against a key\r\n",
    };
    for (size_t i = 0; i < COUNT(refusals); i++) {
        int holds = i < 2 ? 2 : 1;
        SETUP();
        ACQUIRE(1, "x", RENEWED, .renew_timeout_ms = 1000);
        if (holds == 2)
            ACQUIRE(2, "y", RENEWED, .renew_timeout_ms = 1000);
        node_say(&S.node, refusals[i]);
        ADVANCE_MS(3000);
        assert_int_equal(S.node.canned_count, 0);
        assert_int_equal(S.node.renewals, 0);
        ADVANCE_MS(749);
        assert_int_equal(S.node.renewals, 0); /* no storm */
        ADVANCE_MS(1);
        assert_int_equal(S.node.renewals, 1); /* after a quarter of the interval */
        assert_int_equal(S.node.renewed, holds);
        expect_all_safe(holds);
        assert_int_equal(stage_remaining_ms(holds), FULL_MS);
        FINISH();
    }
}

static void the_pause_after_a_refusal_has_its_limits(void **state)
{
    (void)state;
    static const struct {
        int64_t interval_ms, pause_ms;
    } table[] = {{40, 20}, {80, 20}, {400, 100}, {4000, 1000}, {8000, 1000}};
    for (size_t i = 0; i < COUNT(table); i++) {
        SETUP();
        ACQUIRE(1, "x", .lease_ms = 20000, .renew_interval_ms = table[i].interval_ms);
        node_say(&S.node, "-BUSY Redis is busy running a script.\r\n");
        ADVANCE_MS(table[i].interval_ms);
        assert_int_equal(S.node.canned_count, 0);
        ADVANCE_MS(table[i].pause_ms - 1);
        assert_int_equal(S.node.renewals, 0);
        ADVANCE_MS(1);
        assert_int_equal(S.node.renewals, 1);
        FINISH();
    }
}

static void refusals_without_end_end_with_the_deadline(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", RENEWED);
    S.node.always = "-BUSY Redis is busy running a script.\r\n";
    ADVANCE_MS(3500);
    EXPECT_TOLD(1, HF_JEOPARDY, LATE);
    ADVANCE_MS(FULL_MS - 3501);
    EXPECT_QUIET(1);
    ADVANCE_MS(1);
    EXPECT_TOLD(1, HF_LOST, EXPIRED);
    FINISH();
}

static void a_server_that_moved_is_left_once(void **state)
{
    (void)state;
    SETUP();
    acquire_many(10);
    node_say(&S.node, "-READONLY You can't write against a read only replica.\r\n");
    ADVANCE_MS(3000 + 760);
    assert_int_equal(S.node.greetings, 2);
    assert_int_equal(S.node.renewed, 10);
    for (int i = 1; i <= 10; i++) {
        EXPECT_TOLD(i, HF_JEOPARDY, LATE); /* the quarter took longer than 500 ms */
        EXPECT_TOLD(i, HF_SAFE, NONE);
    }
    expect_all_safe(10);
    FINISH();
}

static void a_cut_loses_no_renewal(void **state)
{
    (void)state;
    for (int heard = 0; heard < 2; heard++) {
        SETUP();
        acquire_many(120);
        S.mute = heard == 1;
        S.deaf = heard == 0;
        ADVANCE_MS(3000 + 10);
        assert_int_equal(S.node.renewed, heard ? 120 : 0);
        CUT();
        S.mute = S.deaf = false;
        ADVANCE_MS(40);
        assert_int_equal(S.node.renewed, heard ? 240 : 120);
        expect_all_safe(120);
        for (int i = 1; i <= 120; i++)
            assert_true(stage_remaining_ms(i) > FULL_MS - 100);
        FINISH();
    }
}

static void an_idle_connection_that_closed_is_opened_again(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", RENEWED);
    CUT();
    assert_int_equal(S.connects, 1);
    ADVANCE_MS(3000);
    assert_int_equal(S.connects, 2);
    assert_int_equal(S.node.renewals, 1);
    expect_all_safe(1);
    FINISH();
}

static void a_server_that_comes_back_in_time_is_in_time(void **state)
{
    (void)state;
    SETUP();
    acquire_many(3);
    CUT();
    S.refuses = true;
    ADVANCE_MS(7500);
    S.refuses = false;
    ADVANCE_MS(1100);
    for (int i = 1; i <= 3; i++) {
        EXPECT_TOLD(i, HF_JEOPARDY, LATE);
        EXPECT_TOLD(i, HF_SAFE, NONE);
    }
    expect_all_safe(3);
    FINISH();
}

static void forgotten_scripts_are_sent_once_for_all(void **state)
{
    (void)state;
    SETUP();
    acquire_many(10);
    S.node.knows_scripts = false;
    ADVANCE_MS(3000);
    assert_int_equal(S.node.evals, 1);
    assert_int_equal(S.node.batches[0].holds, 10);
    expect_all_safe(10);
    S.node.knows_scripts = true; /* which the EVAL has seen to */
    ADVANCE_MS(3000);
    assert_int_equal(S.node.evals, 1);
    assert_int_equal(S.node.renewed, 20);
    FINISH();
}

/* To a call for three holds: as the first answer, or behind `before`. */
static void expect_broken_by(const char *before, const char *nonsense)
{
    SETUP(.reply_timeout_ms = 100);
    acquire_many(3);
    if (before != NULL)
        node_say(&S.node, before);
    node_say(&S.node, nonsense);
    ADVANCE_MS(3000);
    assert_int_equal(S.node.renewals, 0);
    ADVANCE_MS(200);
    assert_int_equal(S.node.greetings, 2);
    assert_int_equal(S.node.renewals, 1);
    expect_all_safe(3);
    ADVANCE_MS(30000);
    expect_all_safe(3);
    FINISH();
}

static void senseless_replies_break_the_link_and_are_asked_for_again(void **state)
{
    (void)state;
    static const char *const to_refresh[] = {
        "+OK\r\n",
        ":3\r\n",
        "*0\r\n",
        "*1\r\n:2\r\n",
        "*1\r\n:4\r\n",
        "*1\r\n$1\r\n3\r\n",
        "*2\r\n:3\r\n:0\r\n",
        "*2\r\n:3\r\n:4\r\n",
        "*2\r\n:3\r\n+1\r\n",
        "*3\r\n:3\r\n:2\r\n:1\r\n",
        "*3\r\n:3\r\n:1\r\n:1\r\n",
        "*5\r\n:3\r\n:1\r\n:2\r\n:3\r\n:4\r\n",
        "*2\r\n:3\r\n",
    };
    static const char *const to_renew[] = {
        "+OK\r\n",
        ":9000\r\n",
        "*0\r\n",
        "*2\r\n:9000\r\n:9000\r\n",
        "*4\r\n:9000\r\n:9000\r\n:9000\r\n:9000\r\n",
        "*3\r\n:9000\r\n+OK\r\n:9000\r\n",
        "*3\r\n:9000\r\n:9000\r\n$-1\r\n",
        "*3\r\n*0\r\n:9000\r\n:9000\r\n",
        "*3\r\n:9000\r\n*2\r\n:9000\r\n:1\r\n:9000\r\n",
        "*3\r\n:9000\r\n:9000\r\n*3\r\n:9000\r\n$1\r\nx\r\n:1\r\n",
        "*3\r\n*2\r\n*1\r\n:1\r\n$1\r\nx\r\n:9000\r\n:9000\r\n",
        "*3\r\n:9000\r\n",
    };
    for (size_t i = 0; i < COUNT(to_refresh); i++)
        expect_broken_by(NULL, to_refresh[i]);
    for (size_t i = 0; i < COUNT(to_renew); i++)
        expect_broken_by("*4\r\n:3\r\n:1\r\n:2\r\n:3\r\n", to_renew[i]);
}

static void a_loss_is_one_holds_own(void **state)
{
    (void)state;
    SETUP();
    acquire_many(5);
    node_set(&S.node, "lock-3", "another", 60000);
    ADVANCE_MS(3000);
    EXPECT_TOLD(3, HF_LOST, GONE);
    for (int i = 1; i <= 5; i++)
        EXPECT_STATE(i, i == 3 ? HF_LOST : HF_SAFE);
    ADVANCE_MS(3000);
    assert_int_equal(S.node.batches[0].holds, 5);
    assert_int_equal(S.node.batches[1].holds, 1); /* a closer look */
    assert_int_equal(S.node.batches[2].holds, 4); /* it left the batch */
    FINISH();
}

/* Somebody has put something else at the name of one of them. */
static void an_error_is_one_holds_own(void **state)
{
    (void)state;
    SETUP();
    acquire_many(5);
    node_find(&S.node, "lock-3", 6)->kind = NODE_HASH;
    ADVANCE_MS(FULL_MS);
    EXPECT_TOLD(3, HF_JEOPARDY, LATE);
    EXPECT_TOLD(3, HF_LOST, EXPIRED);
    for (int i = 1; i <= 5; i++) {
        EXPECT_STATE(i, i == 3 ? HF_LOST : HF_SAFE);
        EXPECT_QUIET(i);
    }
    FINISH();
}

/* One of the answers ends the connection: those behind it are asked for again. */
static void an_error_in_the_middle_that_ends_the_connection(void **state)
{
    (void)state;
    static const char *const replies[] = {
        "*5\r\n:9000\r\n-READONLY x\r\n:9000\r\n:9000\r\n:9000\r\n",
        "*5\r\n-READONLY x\r\n-READONLY x\r\n-READONLY x\r\n:9000\r\n:9000\r\n",
        "*5\r\n:9000\r\n:9000\r\n:9000\r\n:9000\r\n-MASTERDOWN x\r\n",
        "*5\r\n:9000\r\n-READONLY x\r\n$-1\r\n:9000\r\n:9000\r\n", /* and then nonsense */
        "*5\r\n-NOSCRIPT x\r\n:9000\r\n-BUSY x\r\n:9000\r\n-READONLY x\r\n",
    };
    for (size_t i = 0; i < COUNT(replies); i++) {
        SETUP();
        acquire_many(5);
        node_say(&S.node, replies[i]);
        ADVANCE_MS(4500);
        assert_int_equal(S.node.greetings, 2);
        for (int n = 1; n <= 5; n++) {
            EXPECT_STATE(n, HF_SAFE);
            assert_true(stage_remaining_ms(n) >= FULL_MS - 1500);
        }
        ADVANCE_MS(30000);
        for (int n = 1; n <= 5; n++)
            EXPECT_STATE(n, HF_SAFE);
        FINISH();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_refused_renewal_is_tried_again),
        cmocka_unit_test(the_pause_after_a_refusal_has_its_limits),
        cmocka_unit_test(refusals_without_end_end_with_the_deadline),
        cmocka_unit_test(a_server_that_moved_is_left_once),
        cmocka_unit_test(a_cut_loses_no_renewal),
        cmocka_unit_test(an_idle_connection_that_closed_is_opened_again),
        cmocka_unit_test(a_server_that_comes_back_in_time_is_in_time),
        cmocka_unit_test(forgotten_scripts_are_sent_once_for_all),
        cmocka_unit_test(senseless_replies_break_the_link_and_are_asked_for_again),
        cmocka_unit_test(a_loss_is_one_holds_own),
        cmocka_unit_test(an_error_is_one_holds_own),
        cmocka_unit_test(an_error_in_the_middle_that_ends_the_connection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
