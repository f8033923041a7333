/* SPDX-License-Identifier: MIT */
/* What is asked of a hold on a quorum: that it is extended, and that it is given back. */
#include "majority.h"

/* ---- Extensions ---- */

static void an_extension_needs_a_majority(void **state)
{
    (void)state;
    begin();
    STALL(1);
    STALL(2);
    EXTEND(1, 20000);
    EXPECT_WAITING(1);
    REVIVE(2);
    EXPECT(1, HF_OK);
    assert_int_equal(stage_remaining_ms(1), 20000 - 200 - 2);
    REVIVE(1);
    assert_true(node_ttl_ms(&S.nodes[1], "x") > 19000);
    end();
}

static void an_extension_that_cannot_have_one_fails(void **state)
{
    (void)state;
    begin();
    node_say(&S.nodes[0], "-OOM command not allowed\r\n");
    node_say(&S.nodes[2], "-OOM command not allowed\r\n");
    STALL(1);
    EXTEND(1, 20000);
    EXPECT(1, HF_EUNAVAILABLE); /* without waiting for the third */
    EXPECT_TEXT(1, "OOM");
    EXPECT_STATE(1, HF_SAFE); /* as it was */
    assert_int_equal(stage_remaining_ms(1), FULL_MS);
    end();
}

static void an_extension_finds_out_that_it_is_lost(void **state)
{
    (void)state;
    begin();
    lose_at(0);
    lose_at(1);
    EXTEND(1, 20000);
    EXPECT(1, HF_ELOST);
    EXPECT_TOLD(1, HF_LOST, GONE);
    end();
}

static void extensions_are_served_one_after_the_other(void **state)
{
    (void)state;
    begin();
    STALL(1);
    STALL(2);
    hf_hold *hold = stage_hold(1);
    EXTEND(1, 20000);
    S.holds[2] = hold;
    stage_start(2, HF__CALL_EXTEND, 40000);
    S.holds[2] = NULL;
    REVIVE(1);
    EXPECT(1, HF_OK);
    EXPECT(2, HF_OK);
    assert_int_equal(stage_remaining_ms(1), 40000 - 400 - 2);
    end();
}

/* ---- Releases ---- */

static void a_release_is_done_with_a_majority(void **state)
{
    (void)state;
    begin();
    STALL(2);
    RELEASE(1);
    EXPECT(1, HF_OK);
    assert_true(has_vote(2, "x"));
    REVIVE(2); /* it goes on there by itself */
    assert_int_equal(count_votes("x"), 0);
    end();
}

static void a_minority_may_have_lost_it(void **state)
{
    (void)state;
    begin();
    lose_at(0);
    RELEASE(1);
    EXPECT(1, HF_OK);
    assert_int_equal(count_votes("x"), 0);
    end();
}

static void a_majority_may_not(void **state)
{
    (void)state;
    begin();
    lose_at(0);
    lose_at(1);
    STALL(2);
    RELEASE(1);
    EXPECT(1, HF_ELOST); /* whatever the third says */
    REVIVE(2);
    assert_int_equal(count_votes("x"), 0);
    end();
}

/* A server that cannot be reached may well have had it. */
static void what_a_minority_lost_is_not_lost(void **state)
{
    (void)state;
    begin();
    lose_at(0);
    KILL(1);
    RELEASE(1);
    ADVANCE_MS(100);
    EXPECT(1, HF_EUNAVAILABLE);
    assert_false(has_vote(2, "x"));
    end();
}

static void a_release_that_is_not_answered_is_unknown(void **state)
{
    (void)state;
    begin();
    STALL(1);
    STALL(2);
    RELEASE(1);
    EXPECT_WAITING(1);
    ADVANCE_MS(3000);
    EXPECT(1, HF_EUNKNOWN); /* they may have got it */
    REVIVE(1);
    REVIVE(2);
    ADVANCE_MS(2000);
    assert_int_equal(count_votes("x"), 0);
    end();
}

static void so_is_one_that_is_not_answered_in_time(void **state)
{
    (void)state;
    SETUP(.servers = 3, .reply_timeout_ms = 20000);
    ACQUIRE(1, "x");
    STALL(1);
    STALL(2);
    RELEASE(1);
    ADVANCE_MS(3000);
    EXPECT(1, HF_EUNKNOWN);
    EXPECT_TEXT(1, "2 of 3 servers gave no answer in time");
    REVIVE(1);
    REVIVE(2);
    assert_int_equal(count_votes("x"), 0);
    FINISH();
}

static void one_that_cannot_be_sent_is_not_done(void **state)
{
    (void)state;
    begin();
    KILL(1);
    KILL(2);
    RELEASE(1);
    ADVANCE_MS(100);
    EXPECT(1, HF_EUNAVAILABLE);
    assert_false(has_vote(0, "x"));
    REVIVE(1);
    REVIVE(2);
    ADVANCE_MS(2000); /* in the background it is */
    assert_int_equal(count_votes("x"), 0);
    end();
}

/* Also what was never granted, as far as we know: the request is on its way. */
static void votes_that_are_still_asked_for_are_given_back_too(void **state)
{
    (void)state;
    SETUP(.servers = 3, .messages = true);
    ACQUIRE(9, "warm");
    STALL(2);
    ACQUIRE(1, "x");
    EXPECT(1, HF_OK);
    RELEASE(1);
    EXPECT(1, HF_OK);
    REVIVE(2);
    assert_int_equal(S.nodes[2].acquires, 2);
    assert_int_equal(count_votes("x"), 0);
    FINISH();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_extension_needs_a_majority),
        cmocka_unit_test(an_extension_that_cannot_have_one_fails),
        cmocka_unit_test(an_extension_finds_out_that_it_is_lost),
        cmocka_unit_test(extensions_are_served_one_after_the_other),
        cmocka_unit_test(a_release_is_done_with_a_majority),
        cmocka_unit_test(a_minority_may_have_lost_it),
        cmocka_unit_test(a_majority_may_not),
        cmocka_unit_test(what_a_minority_lost_is_not_lost),
        cmocka_unit_test(a_release_that_is_not_answered_is_unknown),
        cmocka_unit_test(so_is_one_that_is_not_answered_in_time),
        cmocka_unit_test(one_that_cannot_be_sent_is_not_done),
        cmocka_unit_test(votes_that_are_still_asked_for_are_given_back_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
