/* SPDX-License-Identifier: MIT */
/* Tokens of locks on a quorum: a hold is let go of, and taken up, at all servers, each of which may
 * have it under a number of its own. */
#include "takeover.h"

#define S the_stage

/* ---- Detach ---- */

static void the_lock_outlives_the_client(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    stage_token token;
    ACQUIRE(1, "x", .lease_ms = 3000, .renew_interval_ms = 1000);
    ADVANCE_MS(10000);
    EXPECT_STATE(1, HF_SAFE);
    assert_int_equal(stage_detach(1, &token), HF_OK);
    assert_false(token.late);
    CLOSE(2);
    EXPECT(2, HF_OK);
    assert_int_equal(count_held(), 3);
    assert_int_equal(count_releases(), 0);
    ADVANCE_MS(3001);
    assert_int_equal(count_held(), 0); /* nobody renews it */
    EXPECT_QUIET(1);
    FINISH();
}

/* What is on its way belongs to the token, which will find it. */
static void a_vote_under_way_is_left_to_the_token(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    stage_token token;
    INSPECT(9, "x"); /* all are connected now */
    ACQUIRE(8, "y");
    EXPECT(8, HF_OK);
    STALL(2);
    ACQUIRE(1, "x");
    EXPECT(1, HF_OK);
    assert_int_equal(stage_detach(1, &token), HF_OK);
    assert_true(token.late);
    REVIVE(2);
    assert_int_equal(count_held(), 3);
    assert_int_equal(count_releases(), 0);
    ATTACH(2, &token, "x");
    EXPECT(2, HF_OK);
    RELEASE(2);
    EXPECT(2, HF_OK);
    assert_int_equal(count_held(), 0);
    FINISH();
}

/* Nothing has been sent, and nothing will be. */
static void a_vote_that_could_not_be_asked_for_is_dropped(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    KILL(2);
    stage_token token = taken(10000);
    assert_false(token.late);
    REVIVE(2);
    ADVANCE_MS(5000);
    assert_false(is_held_at(2));
    assert_int_equal(at(2)->acquires, 0);
    FINISH();
}

static void a_lost_hold_has_no_token(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    stage_token token;
    ACQUIRE(1, "x", .lease_ms = 1000);
    PAUSE_MS(989);
    assert_int_equal(stage_detach(1, &token), HF_ELOST);
    assert_int_equal(count_held(), 0); /* given back as by a release */
    FINISH();
}

/* ---- Attach ---- */

static void takes_it_up_everywhere(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    stage_token token = taken(10000);
    ADVANCE_MS(4000);
    ATTACH(2, &token, "x");
    EXPECT(2, HF_OK);
    assert_int_equal(FENCE(2), token.fence);
    assert_int_equal(stage_remaining_ms(2), 10000 - 100 - 2);
    for (int i = 0; i < 3; i++)
        assert_int_equal(node_ttl_ms(at(i), "x"), 10000);
    RELEASE(2);
    EXPECT(2, HF_OK);
    assert_int_equal(count_held(), 0);
    FINISH();
}

static void each_vote_has_its_own_number(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    stage_token token = taken(10000);
    renumber(1, &token, 1);
    renumber(2, &token, HF__NUMBER_STEP - 1);
    ATTACH(2, &token, "x", .renew_interval_ms = 1000, .lease_ms = 3000);
    EXPECT(2, HF_OK);
    ADVANCE_MS(20000);
    EXPECT_STATE(2, HF_SAFE);
    assert_int_equal(count_held(), 3);
    RELEASE(2);
    EXPECT(2, HF_OK);
    assert_int_equal(count_held(), 0);
    FINISH();
}

/* Of the same client and thread, but the next one. */
static void the_next_hold_of_the_thread_is_another(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    stage_token token = taken(10000);
    for (int i = 0; i < 3; i++)
        renumber(i, &token, HF__NUMBER_STEP);
    ATTACH(2, &token, "x");
    EXPECT(2, HF_ELOST);
    EXPECT_TEXT(2, "0 of 3 servers have it: node-0:6379 does not have it; node-1:6379 does not");
    assert_int_equal(count_held(), 3);
    assert_int_equal(count_releases(), 0);
    FINISH();
}

static void another_label_is_another_hold(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    stage_token token = taken(10000);
    char other[400];
    snprintf(other, sizeof(other), "%s/label", token.value);
    for (int i = 0; i < 3; i++)
        node_set(at(i), "x", other, 5000);
    ATTACH(2, &token, "x");
    EXPECT(2, HF_ELOST);
    assert_int_equal(count_releases(), 0);
    FINISH();
}

static void an_owner_finds_its_own(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    stage_token first, second;
    ACQUIRE(1, "x", .owner = "request 7");
    ACQUIRE(2, "x", .owner = "request 7");
    EXPECT(2, HF_OK);
    assert_int_equal(stage_detach(1, &first), HF_OK);
    assert_int_equal(stage_detach(2, &second), HF_OK);
    ATTACH(1, &first, "x");
    RELEASE(1);
    EXPECT(1, HF_OK);
    assert_int_equal(count_held(), 3); /* for the other */
    ATTACH(1, &first, "x");
    EXPECT(1, HF_ELOST);
    ATTACH(2, &second, "x");
    EXPECT(2, HF_OK);
    RELEASE(2);
    EXPECT(2, HF_OK);
    assert_int_equal(count_held(), 0);
    FINISH();
}

/* The list of those who share it is cut; who was not listed is asked for with its first number. */
static void an_owner_finds_its_own_among_many(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    stage_token token;
    char other[100];
    ACQUIRE(1, "x", .owner = "request 7");
    assert_int_equal(stage_detach(1, &token), HF_OK);
    for (int i = 0; i < 3 * (HF_HOLDERS_MAX + 1); i++) {
        snprintf(other, sizeof(other), ANN ":%d@there:5/1", i);
        put_sharer(i % 3, "x", other, 20000);
    }
    ATTACH(2, &token, "x");
    EXPECT(2, HF_OK);
    RELEASE(2);
    EXPECT(2, HF_OK);
    ATTACH(2, &token, "x"); /* it may be there under another number */
    EXPECT(2, HF_EUNKNOWN);
    EXPECT_TEXT(2, "too many who share it");
    FINISH();
}

static void a_short_lease_only_looks(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    stage_token token = taken(10000);
    ADVANCE_MS(4000);
    ATTACH(2, &token, "x", .lease_ms = HF_LEASE_MIN_MS);
    EXPECT(2, HF_OK);
    assert_int_equal(stage_remaining_ms(2), 6000 - 60 - 2);
    assert_int_equal(stage_detach(2, &token), HF_OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(node_ttl_ms(at(i), "x"), 6000);
    assert_int_equal(count_releases(), 0);
    FINISH();
}

static void it_lasts_as_long_as_a_majority_says(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    stage_token token = taken(10000);
    node_set(at(0), "x", token.value, 3000);
    node_set(at(2), "x", token.value, 6000);
    ATTACH(2, &token, "x", .lease_ms = HF_LEASE_MIN_MS);
    EXPECT(2, HF_OK);
    assert_int_equal(stage_remaining_ms(2), 6000 - 60 - 2);
    FINISH();
}

static void a_request_to_give_it_up_is_heard(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    stage_token token = taken(10000);
    REVOKE(3, "x", "please");
    EXPECT(3, HF_OK);
    ATTACH(2, &token, "x");
    EXPECT(2, HF_OK);
    EXPECT_TOLD(2, HF_SAFE, REVOKED);
    EXPECT_QUIET(2);
    FINISH();
}

/* ---- Tokens of other locks ---- */

static void a_token_of_one_server_is_none_of_several(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    stage_token token = {.value = STAGE_CLIENT ":5@host:1/1", .fence = 7, .fence_top = 7};
    token.lease_ms = 5000;
    for (int i = 0; i < 3; i++)
        put_vote(i, "x", STAGE_CLIENT ":6@host:1/1", 5000, 7);
    ATTACH(2, &token, "x");
    EXPECT(2, HF_ELOST);
    EXPECT_TEXT(2, "not of a lock on several servers");
    FINISH();
}

/* ---- Ends ---- */

static void close_ends_an_attempt(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    stage_token token = taken(10000);
    STALL(0);
    STALL(1);
    ATTACH(2, &token, "x");
    EXPECT_WAITING(2);
    CLOSE(3);
    EXPECT(2, HF_ECLOSED);
    EXPECT(3, HF_OK);
    ATTACH(4, &token, "x");
    EXPECT(4, HF_ECLOSED);
    REVIVE(0);
    REVIVE(1);
    assert_int_equal(count_held(), 3);
    assert_int_equal(count_releases(), 0);
    FINISH();
}

static void detaching_forgets_those_that_have_not_answered(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    stage_token token = taken(10000);
    STALL(1);
    ATTACH(2, &token, "x");
    ADVANCE_MS(PATIENCE_MS);
    assert_int_equal(stage_detach(2, &token), HF_OK);
    REVIVE(1);
    assert_int_equal(count_held(), 3);
    assert_int_equal(at(1)->renewals, 0);
    FINISH();
}

/* With questions and votes of an attempt under way. */
static void the_core_may_go_first(void **state)
{
    (void)state;
    SETUP(.servers = 5);
    stage_token token = taken(10000);
    STALL(0);
    STALL(1);
    STALL(2);
    ATTACH(2, &token, "x");
    EXPECT_WAITING(2);
    FINISH();
}

static void close_releases_what_was_taken_up(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    stage_token token = taken(10000);
    STALL(1);
    ATTACH(2, &token, "x");
    ADVANCE_MS(PATIENCE_MS);
    EXPECT(2, HF_OK);
    CLOSE(3);
    EXPECT(3, HF_OK);
    assert_false(is_held_at(0) || is_held_at(2));
    REVIVE(1);
    assert_true(is_held_at(1)); /* it had not said whose it is */
    FINISH();
}

static void both_are_counted(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    hf_stats stats;
    stage_token token = taken(10000);
    hf__core_stats(S.core, &stats);
    assert_int_equal(stats.held, 0);
    ATTACH(2, &token, "x");
    hf__core_stats(S.core, &stats);
    assert_int_equal(stats.held, 1);
    assert_int_equal(stats.acquisitions, 2);
    ATTACH(3, &token, "y");
    EXPECT(3, HF_ELOST);
    hf__core_stats(S.core, &stats);
    assert_int_equal(stats.failures, 1);
    FINISH();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_lock_outlives_the_client),
        cmocka_unit_test(a_vote_under_way_is_left_to_the_token),
        cmocka_unit_test(a_vote_that_could_not_be_asked_for_is_dropped),
        cmocka_unit_test(a_lost_hold_has_no_token),
        cmocka_unit_test(takes_it_up_everywhere),
        cmocka_unit_test(each_vote_has_its_own_number),
        cmocka_unit_test(the_next_hold_of_the_thread_is_another),
        cmocka_unit_test(another_label_is_another_hold),
        cmocka_unit_test(an_owner_finds_its_own),
        cmocka_unit_test(an_owner_finds_its_own_among_many),
        cmocka_unit_test(a_short_lease_only_looks),
        cmocka_unit_test(it_lasts_as_long_as_a_majority_says),
        cmocka_unit_test(a_request_to_give_it_up_is_heard),
        cmocka_unit_test(a_token_of_one_server_is_none_of_several),
        cmocka_unit_test(close_ends_an_attempt),
        cmocka_unit_test(detaching_forgets_those_that_have_not_answered),
        cmocka_unit_test(the_core_may_go_first),
        cmocka_unit_test(close_releases_what_was_taken_up),
        cmocka_unit_test(both_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
