/* SPDX-License-Identifier: MIT */
/* Taking up a token on a quorum, when not all servers have it, or say so: a majority that confirms
 * it makes the hold, and an attempt that fails releases nothing anywhere. */
#include "gate.h"
#include "takeover.h"

#define S the_stage

/* ---- Some servers ---- */

static void a_copy_that_was_lost_is_made_again(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    stage_token token = taken(3000);
    node_delete(at(1), "x");
    ATTACH(2, &token, "x", .renew_interval_ms = 1000);
    EXPECT(2, HF_OK);
    assert_false(is_held_at(1));
    ADVANCE_MS(5000);
    assert_int_equal(count_held(), 3);
    assert_string_not_equal(node_get(at(1), "x"), token.value); /* never used before */
    assert_int_equal(stage_detach(2, &token), HF_OK);
    ATTACH(3, &token, "x"); /* and is found again by the number that it has */
    EXPECT(3, HF_OK);
    RELEASE(3);
    EXPECT(3, HF_OK);
    assert_int_equal(count_held(), 0);
    FINISH();
}

static void a_dead_minority_delays_nothing(void **state)
{
    (void)state;
    SETUP(.servers = 5);
    stage_token token = taken(10000);
    KILL(0);
    KILL(3);
    ATTACH(2, &token, "x");
    EXPECT(2, HF_OK);
    RELEASE(2);
    EXPECT(2, HF_OK);
    assert_int_equal(count_held(), 2); /* until their lease is over */
    FINISH();
}

static void a_silent_minority_is_waited_for_a_little(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    stage_token token = taken(10000);
    STALL(1);
    ATTACH(2, &token, "x");
    ADVANCE_MS(PATIENCE_MS - 1);
    EXPECT_WAITING(2);
    ADVANCE_MS(1);
    EXPECT(2, HF_OK);
    REVIVE(1); /* in time to become a vote */
    RELEASE(2);
    EXPECT(2, HF_OK);
    assert_int_equal(count_held(), 0);
    FINISH();
}

/* Those that have been confirmed are renewed meanwhile. */
static void one_that_comes_in_time_is_in(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    stage_token token = taken(10000);
    STALL(1);
    ATTACH(2, &token, "x");
    ADVANCE_MS(PATIENCE_MS - 10);
    REVIVE(1);
    EXPECT(2, HF_OK);
    assert_int_equal(at(1)->renewals, 1);
    FINISH();
}

/* Its answer comes when nobody needs it any more. */
static void what_comes_after_the_end_is_nothing(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    stage_token token = taken(10000);
    STALL(1);
    ATTACH(2, &token, "x");
    ADVANCE_MS(PATIENCE_MS);
    RELEASE(2);
    EXPECT(2, HF_OK);
    REVIVE(1);
    ADVANCE_MS(1000);
    assert_true(is_held_at(1));
    assert_int_equal(at(1)->renewals, 0);
    ACQUIRE(3, "x"); /* two are enough for the next */
    EXPECT(3, HF_OK);
    FINISH();
}

static void two_of_three_have_lost_it(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    stage_token token = taken(10000);
    node_delete(at(0), "x");
    node_set(at(1), "x", VALUE(ANN, 1), 5000);
    ATTACH(2, &token, "x");
    EXPECT(2, HF_ELOST);
    assert_int_equal(count_releases(), 0);
    ADVANCE_MS(5000);
    assert_int_equal(count_releases(), 0);
    assert_true(is_held_at(2)); /* not ours to give back */
    FINISH();
}

/* Half of them is no majority, and the other half says so. */
static void two_of_four_have_lost_it(void **state)
{
    (void)state;
    SETUP(.servers = 4);
    stage_token token = taken(10000);
    node_delete(at(0), "x");
    node_delete(at(3), "x");
    ATTACH(2, &token, "x");
    EXPECT(2, HF_ELOST);
    EXPECT_TEXT(2, "of 4 servers have it");
    FINISH();
}

static void a_lease_that_is_over_is_lost(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    stage_token token = taken(1000);
    ADVANCE_MS(1001);
    ATTACH(2, &token, "x");
    EXPECT(2, HF_ELOST);
    FINISH();
}

static void what_the_missing_decide_is_not_guessed(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    stage_token token = taken(10000);
    node_delete(at(0), "x");
    KILL(1);
    ATTACH(2, &token, "x");
    EXPECT(2, HF_EUNAVAILABLE);
    EXPECT_TEXT(2, "1 of 3 servers have it: node-0:6379 does not have it; node-1:6379: refused");
    assert_int_equal(count_releases(), 0);
    REVIVE(1);
    ATTACH(2, &token, "x");
    ADVANCE_MS(100); /* it is connected to again */
    EXPECT(2, HF_OK);
    FINISH();
}

static void a_silent_majority_is_told_in_time(void **state)
{
    (void)state;
    SETUP(.servers = 3, .call_timeout_ms = 700);
    stage_token token = taken(10000);
    STALL(0);
    STALL(1);
    ATTACH(2, &token, "x");
    ADVANCE_MS(699);
    EXPECT_WAITING(2);
    ADVANCE_MS(1);
    EXPECT(2, HF_EUNKNOWN);
    EXPECT_TEXT(2, "node-0:6379 gave no answer in time; node-1:6379 gave no answer in time");
    REVIVE(0);
    REVIVE(1);
    ADVANCE_MS(1000);
    assert_int_equal(count_held(), 3);
    assert_int_equal(count_releases(), 0);
    FINISH();
}

/* Each server says that it has it, and to the renewal it says that. */
static void say_to_renewals(const stage_token *token, const char *reply)
{
    static char seen[600];
    snprintf(seen, sizeof(seen), "*7\r\n$%zu\r\n%s\r\n:5000\r\n$0\r\n\r\n:0\r\n*0\r\n:0\r\n*0\r\n",
             strlen(token->value), token->value);
    for (int i = 0; i < 3; i++) {
        node_say(at(i), seen);
        node_say(at(i), reply);
    }
}

static void silence_to_the_renewal_is_told_in_time(void **state)
{
    (void)state;
    SETUP(.servers = 3, .call_timeout_ms = 700);
    stage_token token = taken(10000);
    say_to_renewals(&token, "");
    ATTACH(2, &token, "x");
    ADVANCE_MS(699);
    EXPECT_WAITING(2);
    ADVANCE_MS(1);
    EXPECT(2, HF_EUNKNOWN);
    EXPECT_TEXT(2, "0 of 3 servers have it: node-0:6379 gave no answer in time");
    ADVANCE_MS(5000);
    assert_int_equal(count_held(), 3);
    assert_int_equal(count_releases(), 0);
    FINISH();
}

static void a_refusal_is_told_and_the_lock_stays(void **state)
{
    (void)state;
    static const struct {
        const char *reply;
        hf_status status;
    } table[] = {
        {"-LOADING Redis is loading the dataset in memory\r\n", HF_EUNAVAILABLE},
        {"-NOPERM this user has no permissions\r\n", HF_EDENIED},
        {"*1\r\n-WRONGTYPE Operation against a key\r\n", HF_ESERVER},
        {"*1\r\n:0\r\n", HF_ELOST},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        SETUP(.servers = 3);
        stage_token token = taken(10000);
        say_to_renewals(&token, table[i].reply);
        ATTACH(2, &token, "x");
        EXPECT(2, table[i].status);
        ADVANCE_MS(5000);
        assert_int_equal(count_held(), 3);
        assert_int_equal(count_releases(), 0);
        FINISH();
    }
}

static void a_server_without_a_vote_does_not_count(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    stage_token token = taken(10000);
    node_delete(at(0), "x");
    KILL(1);
    at(1)->votes = false; /* restarted, with a copy of what it had */
    snprintf(at(1)->run_id, sizeof(at(1)->run_id), "%040d", 77);
    REVIVE(1);
    ADVANCE_MS(1000);
    ATTACH(2, &token, "x");
    EXPECT(2, HF_EUNAVAILABLE);
    EXPECT_TEXT(2, "node-1:6379 was restarted and has no vote yet");
    FINISH();
}

/* ---- Copies of the acquire that come late ---- */

/* The hold is long over, and others had the lock; then the copies that were on the way bring it
 * back at two servers. */
static void a_late_grant_is_another(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    stage_token token = taken(10000);
    token.late = true;
    for (int i = 0; i < 2; i++)
        put_vote(i, "x", token.value, 5000, token.fence_top + 10000001);
    ATTACH(2, &token, "x");
    EXPECT(2, HF_EUNKNOWN);
    EXPECT_TEXT(2, "1 of 3 servers have it: node-0:6379 may have granted it anew since");
    assert_int_equal(count_releases(), 0);
    FINISH();
}

/* A vote that was asked for last, or had to be waited for, has a later fence than the others. */
static void a_vote_may_have_come_later_than_the_others(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    stage_token token = taken(10000);
    token.late = true;
    put_fence(2, "x", token.fence_top + 10000000);
    node_delete(at(0), "x");
    ATTACH(2, &token, "x");
    EXPECT(2, HF_OK);
    FINISH();
}

/* A server may have a higher fence because others have tried there in vain. */
static void a_higher_fence_at_a_minority_is_none_of_ours(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    stage_token token = taken(10000);
    put_fence(2, "x", token.fence_top + 10000001);
    KILL(0);
    ATTACH(2, &token, "x");
    EXPECT(2, HF_OK); /* no copy can have come late */
    assert_int_equal(FENCE(2), token.fence);
    assert_int_equal(stage_detach(2, &token), HF_OK);
    token.late = true;
    ATTACH(2, &token, "x");
    ADVANCE_MS(100); /* it cannot be connected to */
    EXPECT(2, HF_EUNKNOWN);
    REVIVE(0);
    ATTACH(2, &token, "x");
    ADVANCE_MS(100); /* it is connected to again */
    EXPECT(2, HF_OK);
    RELEASE(2);
    EXPECT(2, HF_OK);
    assert_int_equal(count_held(), 0);
    assert_int_equal(at(2)->last_tombstone_ms, 10000); /* so that none does */
    FINISH();
}

/* Between the question and the renewal. */
static void a_grant_in_between_is_noticed(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    stage_token token = taken(10000);
    S.mute = true;
    ATTACH(2, &token, "x"); /* they have been asked */
    for (int i = 0; i < 2; i++)
        put_vote(i, "x", token.value, 5000, token.fence_top + 10);
    S.mute = false;
    stage_run();
    EXPECT(2, HF_ELOST);
    EXPECT_TEXT(2, "node-0:6379 does not have it any more");
    FINISH();
}

/* Fails that allocation of an attach; false: there are not so many. */
static bool fails_at(long number)
{
    SETUP(.servers = 3);
    stage_token token = taken(10000);
    gate_fail_at(number);
    bool started = stage_start_attach(2, &token, &(stage_acquire){.name = "x"});
    ADVANCE_MS(PATIENCE_MS);
    bool failed = gate_open();
    ADVANCE_MS(3000);
    assert_true(!started || S.calls[2].done);
    assert_int_equal(count_held(), 3);
    assert_int_equal(count_releases(), 0);
    FINISH();
    return failed;
}

/* Whatever is missing costs one server or the attempt, and nothing is given back. */
static void without_memory(void **state)
{
    (void)state;
    long number = 0;
    while (fails_at(number))
        number++;
    assert_true(number > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_copy_that_was_lost_is_made_again),
        cmocka_unit_test(a_dead_minority_delays_nothing),
        cmocka_unit_test(a_silent_minority_is_waited_for_a_little),
        cmocka_unit_test(one_that_comes_in_time_is_in),
        cmocka_unit_test(what_comes_after_the_end_is_nothing),
        cmocka_unit_test(two_of_three_have_lost_it),
        cmocka_unit_test(two_of_four_have_lost_it),
        cmocka_unit_test(a_lease_that_is_over_is_lost),
        cmocka_unit_test(what_the_missing_decide_is_not_guessed),
        cmocka_unit_test(a_silent_majority_is_told_in_time),
        cmocka_unit_test(silence_to_the_renewal_is_told_in_time),
        cmocka_unit_test(a_refusal_is_told_and_the_lock_stays),
        cmocka_unit_test(a_server_without_a_vote_does_not_count),
        cmocka_unit_test(a_late_grant_is_another),
        cmocka_unit_test(a_vote_may_have_come_later_than_the_others),
        cmocka_unit_test(a_higher_fence_at_a_minority_is_none_of_ours),
        cmocka_unit_test(a_grant_in_between_is_noticed),
        cmocka_unit_test(without_memory),
    };
    stage_install_gate();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
