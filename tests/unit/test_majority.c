/* SPDX-License-Identifier: MIT */
/* Keeping a majority: renewals, votes that are lost and healed, and the loss of the hold. */
#include "majority.h"

/* ---- Renewals ---- */

static void a_majority_is_renewed(void **state)
{
    (void)state;
    begin();
    ADVANCE_MS(60000);
    EXPECT_STATE(1, HF_SAFE);
    EXPECT_QUIET(1);
    for (int i = 0; i < 3; i++)
        assert_int_equal(S.nodes[i].renewed, 20);
    hf_stats stats;
    hf__core_stats(S.core, &stats);
    assert_int_equal(stats.renewals, 20); /* of the hold, not of its votes */
    assert_int_equal(stats.held, 1);
    end();
}

static void one_silent_server_changes_nothing(void **state)
{
    (void)state;
    begin();
    STALL(1);
    for (int i = 0; i < 20; i++) {
        ADVANCE_MS(3000);
        assert_int_equal(stage_remaining_ms(1), FULL_MS);
    }
    EXPECT_STATE(1, HF_SAFE);
    EXPECT_QUIET(1);
    end();
}

static void with_two_silent_servers_it_ends_with_their_leases(void **state)
{
    (void)state;
    begin();
    STALL(1);
    STALL(2);
    ADVANCE_MS(3000 + 600);
    EXPECT_TOLD(1, HF_JEOPARDY, LATE);
    ADVANCE_MS(FULL_MS - 3601);
    EXPECT_STATE(1, HF_JEOPARDY);
    ADVANCE_MS(1);
    EXPECT_TOLD(1, HF_LOST, EXPIRED);
    EXPECT_STATE(1, HF_LOST);
    REVIVE(1);
    REVIVE(2);
    ADVANCE_MS(3000);
    EXPECT_STATE(1, HF_LOST); /* for good */
    EXPECT_QUIET(1);
    end();
}

static void a_hold_that_does_not_renew_itself_ends_with_its_second_vote(void **state)
{
    (void)state;
    SETUP(.servers = 3, .messages = true);
    ACQUIRE(1, "x", .lease_ms = 9000);
    ADVANCE_MS(FULL_MS - 1);
    EXPECT_STATE(1, HF_SAFE);
    for (int i = 0; i < 3; i++)
        assert_int_equal(S.nodes[i].renewals, 0);
    ADVANCE_MS(1);
    EXPECT_TOLD(1, HF_LOST, EXPIRED);
    FINISH();
}

static void renewals_end_when_it_was_held_for_too_long(void **state)
{
    (void)state;
    SETUP(.servers = 3, .messages = true);
    ACQUIRE(1, "x", RENEWED, .max_hold_ms = 20000);
    ADVANCE_MS(20000);
    EXPECT_TOLD(1, HF_JEOPARDY, MAX_HOLD);
    int before = S.nodes[0].renewed;
    ADVANCE_MS(9000);
    EXPECT_TOLD(1, HF_LOST, MAX_HOLD);
    assert_int_equal(S.nodes[0].renewed, before);
    FINISH();
}

static void what_is_taken_off_for_clocks_can_be_set(void **state)
{
    (void)state;
    SETUP(.servers = 3, .drift_ppm = 50000, .drift_ms = 100);
    ACQUIRE(1, "x");
    EXPECT(1, HF_OK);
    assert_int_equal(stage_remaining_ms(1), 10000 - 500 - 100);
    FINISH();
}

/* ---- Votes that are lost ---- */

static void a_lost_vote_is_healed_after_a_majority_was_renewed_since(void **state)
{
    (void)state;
    begin();
    lose_at(0);
    mute(REQUESTS(1));
    mute(REQUESTS(2));
    ADVANCE_MS(3000); /* which is found out now, */
    ADVANCE_MS(100);
    unmute(REQUESTS(1)); /* and these were asked no later */
    unmute(REQUESTS(2));
    assert_false(has_vote(0, "x"));
    EXPECT_STATE(1, HF_SAFE);
    ADVANCE_MS(2900);
    assert_true(has_vote(0, "x"));
    assert_int_equal(stage_fence_at(0, "x"), FENCE(1)); /* no new one */
    assert_int_equal(S.nodes[0].last_range, 0);
    EXPECT_QUIET(1);
    end();
}

/* From the loss until then it is two votes, of which none may be lost. */
/* Else one who joins the owner there would take it for his own (simulator, seed 812102). */
static void a_copy_does_not_have_the_fence_of_somebody_else(void **state)
{
    (void)state;
    begin();
    uint64_t other = stage_fence_at(0, "x") + 1000;
    put_vote(0, "x", VALUE(ANN, 1), 3500, other); /* until it ends, nobody else can have it there */
    ADVANCE_MS(12000);
    assert_true(has_vote(0, "x"));
    assert_true(stage_fence_at(0, "x") > other);
    EXPECT_STATE(1, HF_SAFE);
    end();
}

static void begin_healed(void)
{
    begin();
    lose_at(0);
    ADVANCE_MS(3000);
    assert_false(has_vote(0, "x"));
    ADVANCE_MS(3000);
    assert_true(has_vote(0, "x"));
}

static void a_healed_vote_does_not_count_before_its_first_renewal(void **state)
{
    (void)state;
    begin_healed();
    lose_at(1);
    mute(REQUESTS(0)); /* where that is on its way */
    ADVANCE_MS(2999);
    assert_true(has_vote(0, "x") && has_vote(2, "x"));
    ADVANCE_MS(1);
    EXPECT_STATE(1, HF_LOST);
    EXPECT_TOLD(1, HF_LOST, GONE);
    end();
}

static void and_counts_from_then_on(void **state)
{
    (void)state;
    begin_healed();
    ADVANCE_MS(3000);
    lose_at(1);
    ADVANCE_MS(3000);
    EXPECT_STATE(1, HF_SAFE);
    assert_int_equal(stage_remaining_ms(1), FULL_MS);
    EXPECT_QUIET(1);
    end();
}

static void a_vote_that_somebody_else_has_is_not_taken_away(void **state)
{
    (void)state;
    begin();
    put_vote(0, "x", VALUE(ANN, 1), 20000, stage_fence_at(0, "x") + 1);
    ADVANCE_MS(18000);
    assert_false(has_vote(0, "x"));
    EXPECT_STATE(1, HF_SAFE);
    ADVANCE_MS(6000); /* it is free again */
    assert_true(has_vote(0, "x"));
    EXPECT_QUIET(1);
    end();
}

/* Who has got it there and waits for others hears of a ticket before all others. */
static void who_has_it_there_meanwhile_is_asked_to_give_way(void **state)
{
    (void)state;
    begin();
    lose_at(0);
    RIVAL_ACQUIRES("x", .number = 1, .lease = 600000);
    ADVANCE_MS(3000);
    assert_false(rival_heard("i 1 "));
    ADVANCE_MS(3000); /* a majority has been renewed since that was found out */
    assert_true(rival_heard("i 1 1 " STAGE_CLIENT));
    rival_release("x", 1);
    assert_true(has_vote(0, "x"));
    ADVANCE_MS(3000);
    lose_at(1);
    ADVANCE_MS(3000);
    EXPECT_STATE(1, HF_SAFE); /* by this one, which has been renewed */
    end();
}

static void with_the_majority_the_hold_is_lost_at_once(void **state)
{
    (void)state;
    begin();
    lose_at(1);
    lose_at(2);
    ADVANCE_MS(3000);
    EXPECT_TOLD(1, HF_LOST, GONE);
    EXPECT_STATE(1, HF_LOST);
    ADVANCE_MS(30000);
    assert_false(has_vote(1, "x") || has_vote(2, "x")); /* nothing is healed any more */
    RELEASE(1);
    EXPECT(1, HF_ELOST);
    assert_int_equal(count_votes("x"), 0);
    end();
}

static void of_five_three_must_be_lost(void **state)
{
    (void)state;
    SETUP(.servers = 5, .messages = true);
    ACQUIRE(1, "x", RENEWED);
    lose_at(3);
    lose_at(4);
    ADVANCE_MS(3000);
    EXPECT_STATE(1, HF_SAFE);
    lose_at(2);
    ADVANCE_MS(3000);
    EXPECT_STATE(1, HF_LOST);
    assert_int_equal(count_votes("x"), 0); /* the other two would only be in the way */
    FINISH();
}

/* Whoever waits does not have to wait for what nobody can use, nor for the application. */
static void what_outlasts_the_hold_is_given_back(void **state)
{
    (void)state;
    SETUP(.servers = 3, .messages = true);
    rival_begin();
    STALL(2);
    ACQUIRE(1, "x", .lease_ms = 9000);
    ADVANCE_MS(500);
    REVIVE(2); /* its vote lasts longer than those of the others */
    RIVAL_AT(2);
    RIVAL_QUEUES("x", .number = 1, .ticket = 5);
    ADVANCE_MS(FULL_MS - 501);
    EXPECT_STATE(1, HF_SAFE);
    assert_true(has_vote(2, "x"));
    ADVANCE_MS(1);
    EXPECT_STATE(1, HF_LOST);
    assert_true(rival_has(2, "x"));
    RELEASE(1);
    EXPECT(1, HF_ELOST);
    assert_true(rival_has(2, "x"));
    end();
}

static void who_breaks_a_vote_breaks_the_hold(void **state)
{
    (void)state;
    begin();
    RIVAL_AT(1);
    rival_break("x");
    EXPECT_TOLD(1, HF_LOST, BROKEN);
    end();
}

static void a_request_is_told_once(void **state)
{
    (void)state;
    begin();
    for (int i = 0; i < 3; i++) {
        RIVAL_AT(i);
        rival_revoke("x", "please");
    }
    ADVANCE_MS(10000); /* renewals bring it too */
    assert_string_equal(stage_next_told(1)->text, "please");
    EXPECT_TOLD(1, HF_SAFE, REVOKED);
    EXPECT_QUIET(1);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_majority_is_renewed),
        cmocka_unit_test(one_silent_server_changes_nothing),
        cmocka_unit_test(with_two_silent_servers_it_ends_with_their_leases),
        cmocka_unit_test(a_hold_that_does_not_renew_itself_ends_with_its_second_vote),
        cmocka_unit_test(renewals_end_when_it_was_held_for_too_long),
        cmocka_unit_test(what_is_taken_off_for_clocks_can_be_set),
        cmocka_unit_test(a_lost_vote_is_healed_after_a_majority_was_renewed_since),
        cmocka_unit_test(a_copy_does_not_have_the_fence_of_somebody_else),
        cmocka_unit_test(a_healed_vote_does_not_count_before_its_first_renewal),
        cmocka_unit_test(and_counts_from_then_on),
        cmocka_unit_test(a_vote_that_somebody_else_has_is_not_taken_away),
        cmocka_unit_test(who_has_it_there_meanwhile_is_asked_to_give_way),
        cmocka_unit_test(with_the_majority_the_hold_is_lost_at_once),
        cmocka_unit_test(of_five_three_must_be_lost),
        cmocka_unit_test(what_outlasts_the_hold_is_given_back),
        cmocka_unit_test(who_breaks_a_vote_breaks_the_hold),
        cmocka_unit_test(a_request_is_told_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
