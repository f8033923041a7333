/* SPDX-License-Identifier: MIT */
/* Orders about a lock on a quorum: each server is asked first, and told about what it has said
 * itself; only votes of the hold with the majority are touched; and who is told that it worked can
 * rely on it. */
#include <string.h>

#include "gate.h"
#include "votes.h"

#define S          the_stage
#define ASK(call)  QUERY(call, HF__QUERY_REVOKE, "x", "please", 0)
#define TAKE(call) QUERY(call, HF__QUERY_BREAK, "x", "", 0)

/* Each vote has a value of its own. The fence of a hold is known to a majority: here the first
 * server has not heard of it. */
static void hold_at_all(int count)
{
    static const char *const values[] = {VALUE(ANN, 1), VALUE(ANN, 2), VALUE(ANN, 3), VALUE(ANN, 4),
                                         VALUE(ANN, 5)};
    for (int i = 0; i < count; i++)
        put_vote(i, "x", values[i], 60000, i == 0 ? 1000070 : 1000072);
}

static bool is_revoked_at(int node)
{
    return node_member_of(node_side(&S.nodes[node], 'w', "x"), "#revoked") != NULL;
}

static bool is_held_at(int node)
{
    return node_get(&S.nodes[node], "x") != NULL;
}

/* What a server says that has it for ANN's or BOB's vote of that number, by then or by now. */
#define SAYS(client, number, fence)                                                        \
    "*7\r\n$51\r\n" VALUE(client, number) "\r\n:60000\r\n$7\r\n" #fence "\r\n:0\r\n*0\r\n" \
                                          ":0\r\n*0\r\n"

/* ---- Revoke ---- */

static void all_that_have_it_are_told(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    hold_at_all(3);
    ASK(1);
    EXPECT(1, HF_OK);
    assert_int_equal(ANSWER(1)->number, 1);
    for (int i = 0; i < 3; i++)
        assert_true(is_revoked_at(i));
    FINISH();
}

static void others_with_a_vote_are_left_alone(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    hold_at_all(2);
    put_vote(2, "x", VALUE(BOB, 1), 60000, 1000099);
    ASK(1);
    EXPECT(1, HF_OK);
    assert_true(is_revoked_at(0) && is_revoked_at(1) && !is_revoked_at(2));
    TAKE(1);
    EXPECT(1, HF_OK);
    assert_false(is_held_at(0) || is_held_at(1));
    assert_true(is_held_at(2));
    FINISH();
}

static void who_has_no_majority_is_not_asked(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    hold_at_all(1);
    ASK(1);
    EXPECT(1, HF_OK);
    assert_int_equal(ANSWER(1)->number, 0);
    assert_false(is_revoked_at(0));
    TAKE(1);
    EXPECT(1, HF_OK);
    assert_int_equal(ANSWER(1)->number, 0);
    assert_true(is_held_at(0));
    FINISH();
}

static void a_request_that_a_majority_took_is_left(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    hold_at_all(3);
    STALL(1);
    ASK(1);
    EXPECT(1, HF_OK);
    assert_true(is_revoked_at(0) && !is_revoked_at(1) && is_revoked_at(2));
    FINISH();
}

/* The second fails when it has said who has it: what is left is one of three. */
static void a_request_that_one_took_is_left(void **state)
{
    (void)state;
    SETUP(.servers = 3, .call_timeout_ms = 700);
    INSPECT(1, "x");
    hold_at_all(2);
    node_say(&S.nodes[1], SAYS(ANN, 2, 1000071));
    node_say(&S.nodes[1], "-OOM no memory\r\n");
    ASK(2);
    EXPECT(2, HF_OK);
    assert_int_equal(ANSWER(2)->number, 1);
    assert_true(is_revoked_at(0) && !is_revoked_at(1));
    FINISH();
}

static void a_request_that_none_took_says_why(void **state)
{
    (void)state;
    static const char *const said[] = {SAYS(ANN, 1, 1000070), "-OOM no memory\r\n"};
    SETUP(.servers = 3);
    INSPECT(1, "x");
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++)
            node_say(&S.nodes[i], said[j]);
    ASK(2);
    assert_true(S.calls[2].done);
    assert_int_not_equal(S.calls[2].error.status, HF_OK);
    EXPECT_TEXT(2, "0 of 3 took the request: node-0:6379");
    EXPECT_TEXT(2, "; node-1:6379");
    FINISH();
}

/* ---- Break ---- */

static void the_hold_is_broken_everywhere(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    hold_at_all(3);
    TAKE(1);
    EXPECT(1, HF_OK);
    for (int i = 0; i < 3; i++) {
        assert_false(is_held_at(i));
        assert_true(stage_fence_at(i, "x") > 1000072); /* above all that were known */
        assert_true(stage_fence_at(i, "x") <= ANSWER(1)->number);
    }
    FINISH();
}

/* Its fence is at the third, where it has no vote any more. */
static void the_new_fence_is_above_all(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    hold_at_all(2);
    put_fence(2, "x", 9000000000);
    STALL(1);
    TAKE(1);
    EXPECT_WAITING(1);
    REVIVE(1);
    EXPECT(1, HF_OK);
    assert_int_equal(ANSWER(1)->number, 9000000001);
    FINISH();
}

static void a_stalled_minority_is_not_waited_for(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    hold_at_all(3);
    STALL(2);
    TAKE(1);
    EXPECT(1, HF_OK);
    assert_false(is_held_at(0) || is_held_at(1));
    assert_true(is_held_at(2));
    FINISH();
}

static void who_answers_late_gets_the_order_too(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    hold_at_all(3);
    STALL(2);
    TAKE(1);
    EXPECT(1, HF_OK);
    assert_true(is_held_at(2));
    REVIVE(2);
    assert_false(is_held_at(2));
    assert_true(stage_fence_at(2, "x") > 1000072);
    FINISH();
}

/* The third of its four servers fails to break, which makes two and the one that never had it: that
 * is enough when no more comes in time. */
static void also_when_the_time_was_over(void **state)
{
    (void)state;
    SETUP(.servers = 5, .call_timeout_ms = 700);
    INSPECT(1, "x");
    hold_at_all(4);
    node_say(&S.nodes[2], SAYS(ANN, 3, 1000072));
    node_say(&S.nodes[2], "-OOM no memory\r\n");
    STALL(3);
    TAKE(1);
    ADVANCE_MS(699);
    EXPECT_WAITING(1);
    ADVANCE_MS(1);
    EXPECT(1, HF_OK);
    assert_true(is_held_at(3));
    REVIVE(3);
    assert_false(is_held_at(3));
    FINISH();
}

static void what_is_lost_behind_the_end_is_not_repeated(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    INSPECT(1, "x");
    hold_at_all(3);
    STALL(2);
    TAKE(1);
    EXPECT(1, HF_OK);
    KILL(2); /* with the question */
    REVIVE(2);
    ADVANCE_MS(10000);
    assert_true(is_held_at(2));
    int before = S.connects;
    KILL(2);
    hold_at_all(2);
    TAKE(1); /* does not get through to it at all */
    EXPECT(1, HF_OK);
    assert_true(S.connects > before);
    before = S.connects;
    ADVANCE_MS(10000);
    assert_int_equal(S.connects, before); /* nobody is left who would want it */
    FINISH();
}

static void closing_ends_what_goes_on(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    INSPECT(1, "x");
    hold_at_all(3);
    STALL(2);
    TAKE(1);
    EXPECT(1, HF_OK);
    CLOSE(2);
    EXPECT(2, HF_OK);
    REVIVE(2);
    assert_true(is_held_at(2));
    FINISH();
}

/* Of two votes one is broken, and the third server has never had one: that leaves one of three. */
static void what_is_left_must_not_be_a_majority(void **state)
{
    (void)state;
    SETUP(.servers = 3, .call_timeout_ms = 700);
    INSPECT(1, "x");
    hold_at_all(2);
    node_say(&S.nodes[1], SAYS(ANN, 2, 1000071));
    node_say(&S.nodes[1], "-OOM no memory\r\n");
    TAKE(2);
    EXPECT(2, HF_OK);
    assert_true(ANSWER(2)->number > 1000071);
    assert_false(is_held_at(0));
    FINISH();
}

static void too_few_that_were_broken_are_told(void **state)
{
    (void)state;
    static const char *const said[] = {SAYS(ANN, 2, 1000071), "-OOM no memory\r\n"};
    SETUP(.servers = 3);
    INSPECT(1, "x");
    hold_at_all(1);
    KILL(2);
    for (int i = 0; i < 2; i++)
        node_say(&S.nodes[1], said[i]);
    TAKE(2);
    EXPECT(2, HF_EUNKNOWN);
    EXPECT_TEXT(2, "1 of 3 broken, no majority: node-1:6379");
    EXPECT_TEXT(2, "; node-2:6379: refused");
    FINISH();
}

static void a_dead_majority_is_told(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    hold_at_all(3);
    KILL(0);
    KILL(1);
    TAKE(1);
    EXPECT(1, HF_EUNAVAILABLE);
    EXPECT_TEXT(1, "2 of 3 did not answer: node-0:6379: refused; node-1:6379: refused");
    assert_true(is_held_at(2));
    FINISH();
}

static void an_owner_is_broken_with_all_that_share_it(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    for (int i = 0; i < 3; i++) {
        put_vote(i, "x", "request 7", 60000, 1000070);
        put_sharer(i, "x", VALUE(ANN, 1), 60000);
    }
    TAKE(1);
    EXPECT(1, HF_OK);
    for (int i = 0; i < 3; i++)
        assert_false(is_held_at(i));
    FINISH();
}

/* ---- What changes meanwhile ---- */

static void a_vote_with_a_fresh_number_is_asked_about_again(void **state)
{
    (void)state;
    static const char old[] = SAYS(ANN, 9, 1000069);
    SETUP(.servers = 3);
    INSPECT(1, "x");
    hold_at_all(3);
    for (int i = 0; i < 3; i++)
        node_say(&S.nodes[i], old);
    TAKE(1);
    EXPECT(1, HF_OK);
    assert_true(ANSWER(1)->number > 1000072);
    for (int i = 0; i < 3; i++)
        assert_false(is_held_at(i));
    FINISH();
}

static void another_hold_that_follows_is_left_alone(void **state)
{
    (void)state;
    static const char old[] = SAYS(BOB, 9, 1000069);
    SETUP(.servers = 3);
    INSPECT(1, "x");
    hold_at_all(3);
    for (int i = 0; i < 3; i++)
        node_say(&S.nodes[i], old);
    TAKE(1);
    EXPECT(1, HF_OK);
    assert_int_equal(ANSWER(1)->number, 0);
    for (int i = 0; i < 3; i++)
        assert_true(is_held_at(i));
    FINISH();
}

static void a_lock_that_never_stays_is_given_up(void **state)
{
    (void)state;
    static const char old[] = SAYS(ANN, 9, 1000069);
    SETUP(.servers = 3);
    INSPECT(1, "x");
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++) {
            node_say(&S.nodes[i], old);
            node_say(&S.nodes[i], ":0\r\n");
        }
        node_say(&S.nodes[i], old);
    }
    TAKE(1);
    EXPECT(1, HF_EUNKNOWN);
    EXPECT_TEXT(1, "0 of 3 broken, no majority: node-0:6379: the lock changes all the time");
    FINISH();
}

/* ---- Lost copies ---- */

static void an_order_that_was_lost_is_repeated(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    INSPECT(1, "x");
    hold_at_all(3);
    for (long after = 1; after < 3000; after += 37) { /* wherever the bytes end */
        hold_at_all(3);
        S.cut_after = after;
        TAKE(1);
        S.cut_after = STAGE_UNLIMITED;
        SETTLE(1);
        EXPECT(1, HF_OK);
        assert_true(ANSWER(1)->number > 1000072);
        int held = is_held_at(0) + is_held_at(1) + is_held_at(2);
        assert_true(held <= 1);
    }
    FINISH();
}

/* What was lost was a question, so nothing is in doubt. */
static void a_lost_question_has_done_nothing(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    INSPECT(1, "x");
    S.mute = true;
    TAKE(1);
    CUT();
    S.mute = false;
    for (int i = 0; i < 3; i++) {
        node_say(&S.nodes[i], SAYS(ANN, 1, 1000072));
        node_say(&S.nodes[i], "-LOADING not yet\r\n");
    }
    SETTLE(1);
    EXPECT(1, HF_EUNAVAILABLE);
    EXPECT_TEXT(1, "0 of 3 broken");
    FINISH();
}

static bool break_without(long number)
{
    SETUP(.servers = 3);
    hold_at_all(3);
    gate_fail_at(number);
    bool started = stage_start_query(1, HF__QUERY_BREAK, "x", "", 0);
    if (started)
        SETTLE(1);
    bool failed = gate_open();
    hf_status status = S.calls[1].error.status;
    assert_true(!started || status == HF_OK || status == HF_ENOMEM || status == HF_EUNAVAILABLE ||
                status == HF_EUNKNOWN);
    if (started && status == HF_OK)
        assert_true(is_held_at(0) + is_held_at(1) + is_held_at(2) <= 1);
    FINISH();
    return failed;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    long number = 0;
    while (break_without(number))
        assert_true(++number < 1000);
    assert_true(number > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_that_have_it_are_told),
        cmocka_unit_test(others_with_a_vote_are_left_alone),
        cmocka_unit_test(who_has_no_majority_is_not_asked),
        cmocka_unit_test(a_request_that_a_majority_took_is_left),
        cmocka_unit_test(a_request_that_one_took_is_left),
        cmocka_unit_test(a_request_that_none_took_says_why),
        cmocka_unit_test(the_hold_is_broken_everywhere),
        cmocka_unit_test(the_new_fence_is_above_all),
        cmocka_unit_test(a_stalled_minority_is_not_waited_for),
        cmocka_unit_test(who_answers_late_gets_the_order_too),
        cmocka_unit_test(also_when_the_time_was_over),
        cmocka_unit_test(what_is_lost_behind_the_end_is_not_repeated),
        cmocka_unit_test(closing_ends_what_goes_on),
        cmocka_unit_test(what_is_left_must_not_be_a_majority),
        cmocka_unit_test(too_few_that_were_broken_are_told),
        cmocka_unit_test(a_dead_majority_is_told),
        cmocka_unit_test(an_owner_is_broken_with_all_that_share_it),
        cmocka_unit_test(a_vote_with_a_fresh_number_is_asked_about_again),
        cmocka_unit_test(another_hold_that_follows_is_left_alone),
        cmocka_unit_test(a_lock_that_never_stays_is_given_up),
        cmocka_unit_test(an_order_that_was_lost_is_repeated),
        cmocka_unit_test(a_lost_question_has_done_nothing),
        cmocka_unit_test(every_allocation_may_fail),
    };
    stage_install_gate();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
