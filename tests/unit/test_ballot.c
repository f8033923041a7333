/* SPDX-License-Identifier: MIT */
/* Winning a majority: what a try comes to and when that is certain, what is said if it is nothing,
 * and that whatever was asked for in vain is given back everywhere. */
#include "ballots.h"

/* Connections are there, and nothing else. */
static void begin(int servers)
{
    stage_begin(&(stage_setup){.servers = servers});
    ACQUIRE(9, "warm", .deaf = true);
    EXPECT(9, HF_OK);
}

static int count_acquires(void)
{
    int count = 0;
    for (int i = 0; i < S.server_count; i++)
        count += S.nodes[i].acquires;
    return count;
}

/* ---- Deciding ---- */

static void all_servers_are_asked_at_once(void **state)
{
    (void)state;
    begin(5);
    ACQUIRE(1, "x");
    EXPECT(1, HF_OK);
    assert_int_equal(count_votes("x"), 5);
    assert_int_equal(count_acquires(), 5 + 5);
    RELEASE(1);
    EXPECT(1, HF_OK);
    assert_int_equal(count_votes("x"), 0);
    FINISH();
}

static void it_is_decided_at_the_second_grant_of_three(void **state)
{
    (void)state;
    begin(3);
    STALL(1);
    STALL(2);
    ACQUIRE(1, "x");
    EXPECT_WAITING(1); /* one is not enough */
    REVIVE(1);
    EXPECT(1, HF_OK); /* and the third is not waited for */
    FINISH();
}

static void five_need_three(void **state)
{
    (void)state;
    begin(5);
    for (int i = 2; i < 5; i++)
        STALL(i);
    ACQUIRE(1, "x");
    EXPECT_WAITING(1);
    REVIVE(4);
    EXPECT(1, HF_OK);
    FINISH();
}

static void two_need_both(void **state)
{
    (void)state;
    begin(2);
    STALL(1);
    ACQUIRE(1, "x");
    EXPECT_WAITING(1);
    REVIVE(1);
    EXPECT(1, HF_OK);
    FINISH();
}

static void a_late_grant_is_a_vote_too(void **state)
{
    (void)state;
    begin(3);
    STALL(2);
    ACQUIRE(1, "x", .lease_ms = 9000, .renew_interval_ms = 3000);
    EXPECT(1, HF_OK);
    REVIVE(2);
    assert_true(has_vote(2, "x"));
    assert_int_equal(S.nodes[2].releases, 0);
    KILL(0); /* and it counts: with the second it is a majority */
    ADVANCE_MS(30000);
    EXPECT_STATE(1, HF_SAFE);
    FINISH();
}

/* A server that is asked twice, because the first copy went unanswered, has one vote. */
static void a_vote_that_was_asked_for_twice_counts_once(void **state)
{
    (void)state;
    begin(3);
    take_for_ann("x", 1, 2);
    STALL(1);
    STALL(2);
    mute(REQUESTS(0));
    ACQUIRE(1, "x");
    stage_cut_link(REQUESTS(0));
    unmute(REQUESTS(0));
    ADVANCE_MS(100); /* it is connected again */
    assert_int_equal(S.nodes[0].acquires, 1 + 2);
    EXPECT_WAITING(1);
    REVIVE(1);
    REVIVE(2);
    EXPECT(1, HF_EBUSY);
    EXPECT_TEXT(1, "1 of 3 servers granted it");
    FINISH();
}

/* ---- The deadline ---- */

enum { FULL_MS = 10000 - 100 - 2 };

/* Votes are asked for one after the other, as connections come up. All have the same fence, so that
 * none has to be raised, which would renew it. */
static void begin_unconnected(int servers)
{
    stage_begin(&(stage_setup){.servers = servers});
    for (int i = 0; i < servers; i++)
        put_fence(i, "x", 5000000);
}

static void the_deadline_is_that_of_the_second_best(void **state)
{
    (void)state;
    begin_unconnected(3);
    STALL(1);
    STALL(2);
    ACQUIRE(1, "x");
    ADVANCE_MS(300);
    REVIVE(1);
    EXPECT(1, HF_OK);
    assert_int_equal(stage_remaining_ms(1), FULL_MS - 300);
    ADVANCE_MS(200);
    REVIVE(2); /* now the second best is the one from 300 ms later */
    assert_int_equal(stage_remaining_ms(1), FULL_MS - 200);
    FINISH();
}

static void of_five_it_is_that_of_the_third_best(void **state)
{
    (void)state;
    begin_unconnected(5);
    for (int i = 1; i < 5; i++)
        STALL(i);
    ACQUIRE(1, "x");
    for (int i = 1; i < 4; i++) {
        ADVANCE_MS(100);
        REVIVE(i);
    }
    EXPECT(1, HF_OK);
    assert_int_equal(stage_remaining_ms(1), FULL_MS - 200); /* sent at 0, 100, 200 and 300 ms */
    FINISH();
}

/* Who is told that it is valid can rely on what is left, and not on less than nothing. */
static void a_majority_that_is_too_late_is_none(void **state)
{
    (void)state;
    SETUP(.servers = 3, .reply_timeout_ms = 60000, .call_timeout_ms = 60000);
    ACQUIRE(9, "warm", .deaf = true);
    mute(REQUESTS(0));
    mute(REQUESTS(1));
    mute(REQUESTS(2));
    ACQUIRE(1, "x", .lease_ms = 1000);
    PAUSE_MS(1200);
    unmute(REQUESTS(0));
    unmute(REQUESTS(1));
    EXPECT(1, HF_OK); /* they were asked once more, and that was in time */
    assert_int_equal(stage_remaining_ms(1), 1000 - 10 - 2);
    FINISH();
}

/* ---- Failing ---- */

static void a_refusal_is_known_before_the_last_server_answers(void **state)
{
    (void)state;
    begin(3);
    take_for_ann("x", 0, 1);
    STALL(2);
    ACQUIRE(1, "x");
    EXPECT(1, HF_EBUSY);
    EXPECT_TEXT(1, "0 of 3 servers granted it");
    EXPECT_TEXT(1, "node-0:6379: held by " ANN);
    EXPECT_TEXT(1, "node-1:6379: held by " ANN);
    EXPECT_TEXT(1, "node-2:6379: no answer yet");
    FINISH();
}

static void a_fault_of_a_minority_is_no_fault(void **state)
{
    (void)state;
    begin(3);
    KILL(2);
    take_for_ann("y", 0, 1);
    ACQUIRE(2, "y");
    EXPECT(2, HF_EBUSY);
    EXPECT_TEXT(2, "node-2:6379: refused");
    ACQUIRE(1, "x");
    EXPECT(1, HF_OK);
    FINISH();
}

static void without_a_majority_it_is_unavailable(void **state)
{
    (void)state;
    begin(3);
    take_for_ann("x", 0, 0);
    KILL(1);
    KILL(2);
    ACQUIRE(1, "x");
    EXPECT(1, HF_EUNAVAILABLE);
    EXPECT_TEXT(1, "node-1:6379: refused");
    EXPECT_TEXT(1, "node-2:6379: refused");
    ACQUIRE(2, "y"); /* one vote and two servers that cannot have granted anything */
    ADVANCE_MS(100);
    EXPECT(2, HF_EUNAVAILABLE);
    EXPECT_TEXT(2, "1 of 3 servers granted it; node-0:6379: granted");
    assert_false(has_vote(0, "y"));
    FINISH();
}

static void answers_that_may_make_a_majority_leave_it_unknown(void **state)
{
    (void)state;
    begin(3);
    KILL(1);
    mute(REQUESTS(2));
    ACQUIRE(1, "x");
    EXPECT_WAITING(1);
    ADVANCE_MS(3000);
    EXPECT(1, HF_EUNKNOWN);
    EXPECT_TEXT(1, "node-0:6379: granted");
    EXPECT_TEXT(1, "node-2:6379 gave no answer in time");
    FINISH();
}

static void answers_that_cannot_do_not(void **state)
{
    (void)state;
    begin(3);
    take_for_ann("x", 0, 0);
    KILL(1);
    mute(REQUESTS(2));
    ACQUIRE(1, "x");
    EXPECT_WAITING(1); /* it cannot be ours; whether it is busy, only node 2 can tell */
    ADVANCE_MS(3000);
    EXPECT(1, HF_EUNAVAILABLE);
    EXPECT_TEXT(1, "node-0:6379: held by " ANN);
    FINISH();
}

static void what_a_server_says_for_good_counts_only_from_a_majority(void **state)
{
    (void)state;
    begin(3);
    store_make(&S.nodes[0], HF__SLICE("x"), NODE_HASH);
    ACQUIRE(1, "x");
    EXPECT(1, HF_OK);
    store_make(&S.nodes[0], HF__SLICE("y"), NODE_HASH);
    store_make(&S.nodes[1], HF__SLICE("y"), NODE_HASH);
    ACQUIRE(2, "y", .wait_ms = -1);
    EXPECT(2, HF_ESERVER); /* waiting would not help */
    EXPECT_TEXT(2, "node-1:6379");
    EXPECT_TEXT(2, "wrong kind of value");
    assert_false(has_vote(2, "y"));
    FINISH();
}

/* ---- Giving back ---- */

static void what_was_granted_in_vain_is_given_back(void **state)
{
    (void)state;
    begin(3);
    take_for_ann("x", 1, 2);
    ACQUIRE(1, "x");
    EXPECT(1, HF_EBUSY);
    assert_int_equal(count_votes("x"), 0);
    assert_int_equal(S.nodes[0].releases, 1);
    assert_int_equal(S.nodes[1].releases + S.nodes[2].releases, 0); /* they said no */
    FINISH();
}

static void also_where_the_answer_is_on_its_way(void **state)
{
    (void)state;
    begin(3);
    take_for_ann("x", 0, 1);
    mute(REQUESTS(2));
    ACQUIRE(1, "x");
    EXPECT(1, HF_EBUSY);
    assert_int_equal(S.nodes[2].acquires, 2);
    assert_int_equal(S.nodes[2].releases, 1); /* behind it, on the same connection */
    assert_false(has_vote(2, "x"));
    unmute(REQUESTS(2)); /* nobody believes in that grant any more */
    assert_int_equal(count_votes("x"), 0);
    FINISH();
}

static void also_where_the_request_is_on_its_way(void **state)
{
    (void)state;
    begin(3);
    take_for_ann("x", 0, 1);
    STALL(2);
    ACQUIRE(1, "x");
    EXPECT(1, HF_EBUSY);
    REVIVE(2);
    assert_int_equal(S.nodes[2].acquires, 2);
    assert_int_equal(S.nodes[2].releases, 1);
    assert_int_equal(count_votes("x"), 0);
    FINISH();
}

/* A copy may have been lost with its connection, or be late: a tombstone turns it away. */
static void also_where_a_copy_was_lost(void **state)
{
    (void)state;
    begin(3);
    mute(REQUESTS(1));
    mute(REQUESTS(2));
    ACQUIRE(1, "x");
    stage_cut_link(REQUESTS(1));
    stage_cut_link(REQUESTS(2));
    ADVANCE_MS(3000);
    EXPECT(1, HF_EUNKNOWN);
    assert_false(has_vote(0, "x"));
    unmute(REQUESTS(1));
    unmute(REQUESTS(2));
    ADVANCE_MS(2000);
    assert_int_equal(S.nodes[0].tomb_count, 0);
    assert_int_equal(S.nodes[1].tomb_count + S.nodes[2].tomb_count, 2);
    assert_int_equal(count_votes("x"), 0);
    FINISH();
}

static void also_if_the_caller_gives_up(void **state)
{
    (void)state;
    begin(3);
    STALL(1);
    mute(REQUESTS(2));
    ACQUIRE(1, "x");
    assert_int_equal(count_votes("x"), 2);
    stage_cancel(1);
    EXPECT(1, HF_ECANCELLED);
    REVIVE(1);
    assert_int_equal(count_votes("x"), 0);
    FINISH();
}

static void the_same_client_can_have_it_again_at_once(void **state)
{
    (void)state;
    begin(3);
    mute(REQUESTS(2));
    for (int i = 0; i < 5; i++) {
        ACQUIRE(1, "x");
        EXPECT(1, HF_OK);
        RELEASE(1);
        EXPECT(1, HF_OK);
    }
    unmute(REQUESTS(2));
    assert_int_equal(count_votes("x"), 0);
    FINISH();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_servers_are_asked_at_once),
        cmocka_unit_test(it_is_decided_at_the_second_grant_of_three),
        cmocka_unit_test(five_need_three),
        cmocka_unit_test(two_need_both),
        cmocka_unit_test(a_late_grant_is_a_vote_too),
        cmocka_unit_test(a_vote_that_was_asked_for_twice_counts_once),
        cmocka_unit_test(the_deadline_is_that_of_the_second_best),
        cmocka_unit_test(of_five_it_is_that_of_the_third_best),
        cmocka_unit_test(a_majority_that_is_too_late_is_none),
        cmocka_unit_test(a_refusal_is_known_before_the_last_server_answers),
        cmocka_unit_test(a_fault_of_a_minority_is_no_fault),
        cmocka_unit_test(without_a_majority_it_is_unavailable),
        cmocka_unit_test(answers_that_may_make_a_majority_leave_it_unknown),
        cmocka_unit_test(answers_that_cannot_do_not),
        cmocka_unit_test(what_a_server_says_for_good_counts_only_from_a_majority),
        cmocka_unit_test(what_was_granted_in_vain_is_given_back),
        cmocka_unit_test(also_where_the_answer_is_on_its_way),
        cmocka_unit_test(also_where_the_request_is_on_its_way),
        cmocka_unit_test(also_where_a_copy_was_lost),
        cmocka_unit_test(also_if_the_caller_gives_up),
        cmocka_unit_test(the_same_client_can_have_it_again_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
