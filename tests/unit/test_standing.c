/* SPDX-License-Identifier: MIT */
/* Which servers of a quorum have a vote: one that was restarted has none until the longest lease is
 * over, and then goes on from the highest fence that anybody may have believed. */
#include "ballots.h"

#define RENEWED .lease_ms = 9000, .renew_interval_ms = 3000

enum { QUARANTINE_MS = 30000 };

static void begin(void)
{
    SETUP(.servers = 3, .messages = true, .max_lease_ms = QUARANTINE_MS);
}

/* Another process, which remembers nothing. */
static void restart(int node)
{
    node_restart(&S.nodes[node]);
    stage_cut_link(REQUESTS(node));
    stage_cut_link(PUSHES(node));
}

static bool all_vote(void)
{
    return S.nodes[0].votes && S.nodes[1].votes && S.nodes[2].votes;
}

/* Held, with node 2 restarted and known to be so since a moment ago. */
static void begin_restarted(void)
{
    begin();
    ACQUIRE(1, "x", RENEWED);
    restart(2);
    ACQUIRE(2, "y", RENEWED);
    EXPECT(2, HF_OK);
    assert_int_equal(S.nodes[2].acquires, 1); /* that of "x", before */
}

/* ---- Without a vote ---- */

static void a_restarted_server_has_no_vote(void **state)
{
    (void)state;
    begin_restarted();
    ADVANCE_MS(QUARANTINE_MS - 100);
    assert_false(S.nodes[2].votes);
    assert_int_equal(S.nodes[2].acquires, 1);
    EXPECT_STATE(1, HF_SAFE); /* by the others */
    EXPECT_STATE(2, HF_SAFE);
    EXPECT_QUIET(1);
    FINISH();
}

static void what_it_granted_is_lost(void **state)
{
    (void)state;
    begin();
    ACQUIRE(1, "x", RENEWED);
    restart(1);
    restart(2);
    ADVANCE_MS(3000);
    EXPECT_TOLD(1, HF_LOST, GONE);
    FINISH();
}

static void also_if_it_seems_to_remember(void **state)
{
    (void)state;
    begin();
    ACQUIRE(1, "x", RENEWED);
    for (int i = 1; i < 3; i++) {
        snprintf(S.nodes[i].run_id, sizeof(S.nodes[i].run_id), "%040d", 7000 + i);
        S.nodes[i].votes = false; /* its key names the process before */
        stage_cut_link(REQUESTS(i));
    }
    assert_true(has_vote(1, "x"));
    ADVANCE_MS(3000);
    EXPECT_TOLD(1, HF_LOST, GONE);
    FINISH();
}

static void with_too_many_of_them_nothing_is_granted(void **state)
{
    (void)state;
    begin();
    ACQUIRE(9, "warm");
    restart(1);
    restart(2);
    ACQUIRE(1, "x");
    EXPECT(1, HF_EUNAVAILABLE);
    EXPECT_TEXT(1, "node-1:6379 was restarted and has no vote yet, for 30001 ms at most");
    EXPECT_TEXT(1, "node-2:6379 was restarted and has no vote yet");
    assert_int_equal(count_votes("x"), 0);
    assert_int_equal(S.nodes[1].acquires + S.nodes[2].acquires, 2); /* those of "warm" */
    FINISH();
}

/* A request that was on its way to the last process does not go to this one. */
static void what_was_meant_for_the_process_before_is_called_back(void **state)
{
    (void)state;
    begin();
    ACQUIRE(9, "warm");
    STALL(2);
    ACQUIRE(1, "x");
    EXPECT(1, HF_OK);
    restart(2);
    REVIVE(2);
    ADVANCE_MS(5000);
    assert_int_equal(S.nodes[2].acquires, 1);
    assert_false(has_vote(2, "x"));
    FINISH();
}

static void the_same_server_twice_is_not_two(void **state)
{
    (void)state;
    begin();
    memcpy(S.nodes[1].run_id, S.nodes[0].run_id, sizeof(S.nodes[1].run_id));
    ACQUIRE(1, "x");
    EXPECT(1, HF_OK); /* with the third */
    assert_int_equal(S.nodes[1].acquires, 0);
    memcpy(S.nodes[2].run_id, S.nodes[0].run_id, sizeof(S.nodes[2].run_id));
    stage_cut_link(REQUESTS(2));
    ACQUIRE(2, "y", .wait_ms = -1);
    ADVANCE_MS(100);
    EXPECT(2, HF_EUNSAFE); /* waiting would not help */
    EXPECT_TEXT(2, "node-1:6379 and node-0:6379 are the same server");
    assert_int_equal(count_votes("y"), 0);
    FINISH();
}

/* A server that does not tell its run_id has no vote: nobody could tell when it was restarted. */
static void a_server_that_hides_its_process_has_no_vote(void **state)
{
    (void)state;
    begin();
    char told[41];
    memcpy(told, S.nodes[1].run_id, sizeof(told));
    S.nodes[1].run_id[0] = '\0';
    ACQUIRE(1, "x", RENEWED);
    EXPECT(1, HF_OK); /* by the others */
    assert_int_equal(S.nodes[1].acquires, 0);
    S.nodes[2].run_id[0] = '\0';
    stage_cut_link(REQUESTS(2));
    ACQUIRE(2, "y", .wait_ms = -1);
    ADVANCE_MS(100);
    EXPECT(2, HF_EUNSAFE); /* waiting would not help */
    EXPECT_TEXT(2, "node-1:6379 does not tell its run_id (INFO server)");
    assert_int_equal(count_votes("y"), 0);
    memcpy(S.nodes[1].run_id, told, sizeof(told));
    ADVANCE_MS(1000);
    ACQUIRE(3, "z");
    EXPECT(3, HF_OK); /* it tells, and has the vote that it had */
    assert_true(has_vote(1, "z"));
    assert_false(has_vote(2, "z"));
    FINISH();
}

/* ---- Having one again ---- */

static void after_the_longest_lease_it_has_a_vote_again(void **state)
{
    (void)state;
    begin_restarted();
    ADVANCE_MS(QUARANTINE_MS + 1);
    assert_true(S.nodes[2].votes);
    ADVANCE_MS(6000);
    assert_true(has_vote(2, "x") && has_vote(2, "y")); /* healed */
    EXPECT_STATE(1, HF_SAFE);
    ACQUIRE(3, "z");
    assert_int_equal(count_votes("z"), 3);
    FINISH();
}

/* Somebody else may have raised the floors up to the last moment. */
static void it_goes_on_from_the_highest_floor_of_the_others(void **state)
{
    (void)state;
    begin_restarted();
    ADVANCE_MS(QUARANTINE_MS - 1);
    S.nodes[0].floor = 400000000;
    S.nodes[1].floor = 500000000;
    ADVANCE_MS(2);
    assert_true(S.nodes[2].votes);
    assert_int_equal(S.nodes[2].base, 500000000);
    assert_true(S.nodes[2].floor >= 500000000);
    ACQUIRE(3, "z");
    EXPECT(3, HF_OK);
    assert_true(FENCE(3) > 500000000);
    FINISH();
}

static void it_waits_for_so_many_others_that_one_must_know(void **state)
{
    (void)state;
    begin_restarted();
    KILL(1);
    ADVANCE_MS(2 * QUARANTINE_MS);
    assert_false(S.nodes[2].votes); /* node 1 may have the only floor that is high enough */
    EXPECT_STATE(1, HF_LOST);
    ACQUIRE(3, "z");
    ADVANCE_MS(1100);
    EXPECT(3, HF_EUNAVAILABLE);
    EXPECT_TEXT(3, "node-2:6379 was restarted and has no vote until more of the others are there");
    REVIVE(1);
    ACQUIRE(3, "z", .wait_ms = -1);
    ADVANCE_MS(3000);
    assert_true(S.nodes[2].votes);
    EXPECT(3, HF_OK);
    FINISH();
}

static void another_client_may_have_told_it(void **state)
{
    (void)state;
    begin();
    S.nodes[1].votes = S.nodes[2].votes = false;
    ACQUIRE(1, "x", .wait_ms = -1);
    ADVANCE_MS(5000);
    EXPECT_WAITING(1);
    S.nodes[2].votes = true;
    S.nodes[2].base = S.nodes[2].floor = 33000000;
    ADVANCE_MS(1000);
    EXPECT(1, HF_OK);
    assert_true(FENCE(1) > 33000000);
    FINISH();
}

static void nobody_asks_for_nobody(void **state)
{
    (void)state;
    begin_restarted();
    RELEASE(1);
    RELEASE(2);
    ADVANCE_MS(1000);
    int joins = S.nodes[2].joins;
    ADVANCE_MS(QUARANTINE_MS);
    assert_int_equal(S.nodes[2].joins, joins);
    ACQUIRE(3, "z"); /* who comes then finds that it is time */
    EXPECT(3, HF_OK);
    assert_true(S.nodes[2].votes);
    assert_int_equal(count_votes("z"), 3);
    FINISH();
}

/* ---- What the server says itself ---- */

static void a_process_that_is_old_enough_joins_at_once(void **state)
{
    (void)state;
    begin();
    ACQUIRE(9, "warm");
    S.nodes[2].info = "uptime_in_seconds:32";
    restart(2);
    ACQUIRE(1, "x");
    assert_true(S.nodes[2].votes);
    assert_int_equal(count_votes("x"), 3);
    FINISH();
}

static void one_that_is_not_does_not(void **state)
{
    (void)state;
    begin();
    ACQUIRE(9, "warm");
    S.nodes[2].info = "uptime_in_seconds:31"; /* it may have been rounded */
    restart(2);
    ACQUIRE(1, "x");
    assert_false(S.nodes[2].votes);
    ADVANCE_MS(1000); /* by now it is */
    ACQUIRE(2, "y");
    assert_true(S.nodes[2].votes);
    FINISH();
}

/* What it says of its age follows its clock, which may have jumped. */
static void its_clock_must_agree_with_a_majority(void **state)
{
    (void)state;
    begin();
    ACQUIRE(9, "warm");
    S.nodes[2].info = "uptime_in_seconds:3700";
    S.nodes[2].now_ms += 3600000;
    restart(2);
    ACQUIRE(1, "x");
    EXPECT(1, HF_OK);
    assert_false(S.nodes[2].votes);
    S.nodes[1].now_ms += 3600000; /* it was that one that was wrong */
    ADVANCE_MS(6000);
    ACQUIRE(2, "y");
    assert_true(S.nodes[2].votes);
    FINISH();
}

static void also_when_it_said_how_old_it_is(void **state)
{
    (void)state;
    begin();
    ACQUIRE(9, "warm");
    S.nodes[2].info = "uptime_in_seconds:3700";
    S.nodes[2].now_ms += 3600000;
    restart(2);
    ACQUIRE(1, "x");
    assert_false(S.nodes[2].votes);
    S.nodes[2].now_ms -= 3600000; /* put right, but what it has said was not */
    ADVANCE_MS(1000);
    ACQUIRE(2, "y");
    ADVANCE_MS(1000);
    assert_false(S.nodes[2].votes);
    FINISH();
}

static void servers_that_never_forget_need_no_quarantine(void **state)
{
    (void)state;
    SETUP(.servers = 3, .messages = true, .max_lease_ms = QUARANTINE_MS, .durable = true);
    ACQUIRE(9, "warm");
    restart(2);
    ACQUIRE(1, "x");
    assert_true(S.nodes[2].votes);
    assert_int_equal(count_votes("x"), 3);
    FINISH();
}

/* ---- The first time ---- */

static void forget_all_votes(void)
{
    for (int i = 0; i < 3; i++)
        S.nodes[i].votes = false;
}

static void new_servers_begin_together(void **state)
{
    (void)state;
    begin();
    forget_all_votes();
    S.nodes[1].floor = 44000000; /* of what was there before */
    for (int i = 0; i < 3; i++)
        S.nodes[i].info = "uptime_in_seconds:100";
    ACQUIRE(1, "x");
    EXPECT(1, HF_OK);
    assert_true(all_vote());
    assert_true(FENCE(1) > 44000000);
    FINISH();
}

static void when_they_have_been_known_for_long_enough(void **state)
{
    (void)state;
    begin();
    forget_all_votes();
    ACQUIRE(1, "x");
    EXPECT(1, HF_EUNAVAILABLE);
    ACQUIRE(2, "x", .wait_ms = -1);
    ADVANCE_MS(QUARANTINE_MS - 100);
    EXPECT_WAITING(2);
    assert_false(S.nodes[0].votes || S.nodes[1].votes || S.nodes[2].votes);
    ADVANCE_MS(1000);
    EXPECT(2, HF_OK);
    assert_true(all_vote());
    FINISH();
}

static void a_majority_can_begin_without_the_rest(void **state)
{
    (void)state;
    begin();
    forget_all_votes();
    for (int i = 0; i < 3; i++)
        S.nodes[i].info = "uptime_in_seconds:100";
    KILL(1);
    ACQUIRE(1, "x", RENEWED);
    EXPECT(1, HF_OK);
    assert_true(S.nodes[0].votes && S.nodes[2].votes);
    REVIVE(1);
    ADVANCE_MS(10000);
    assert_true(S.nodes[1].votes);
    assert_true(has_vote(1, "x"));
    FINISH();
}

/* ---- One after the other ---- */

static void a_hold_outlives_restarts_that_are_far_enough_apart(void **state)
{
    (void)state;
    begin();
    ACQUIRE(1, "x", RENEWED);
    for (int i = 0; i < 6; i++) {
        restart(i % 3);
        ADVANCE_MS(QUARANTINE_MS + 15000);
        assert_int_equal(count_votes("x"), 3);
    }
    EXPECT_STATE(1, HF_SAFE);
    EXPECT_QUIET(1);
    RELEASE(1);
    EXPECT(1, HF_OK);
    FINISH();
}

static void what_a_server_knows_of_itself_is_under_the_side_prefix(void **state)
{
    (void)state;
    SETUP(.servers = 3, .side_prefix = "app:"); /* the double looks at the keys */
    ACQUIRE(1, "x");
    EXPECT(1, HF_OK);
    assert_true(S.nodes[0].joins > 0);
    FINISH();
}

/* ---- Numbers that cannot be ---- */

/* What node 2 says of itself is not taken over by those who ask the others. */
static void expect_sane(void)
{
    ADVANCE_MS(6000);
    ACQUIRE(1, "x");
    EXPECT(1, HF_OK);
    for (int i = 0; i < 2; i++) {
        assert_true(S.nodes[i].last_proposal < INT64_C(1) << 53);
        assert_true(S.nodes[i].floor < INT64_C(1) << 53);
    }
}

static void an_answer_with_numbers_that_are_no_fences_is_none(void **state)
{
    static const char *const answers[] = {
        "*4\r\n:1\r\n:0\r\n:9000000000000000\r\n:9223372036854775807\r\n",
        "*4\r\n:1\r\n:0\r\n:9223372036854775807\r\n:5\r\n",
        "*4\r\n:1\r\n:9223372036854775807\r\n:9000000000000000\r\n:5\r\n",
    };
    (void)state;
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        begin();
        ACQUIRE(9, "warm");
        ADVANCE_MS(6000);
        node_say(&S.nodes[2], answers[i]);
        ACQUIRE(8, "y");
        EXPECT(8, HF_OK);
        expect_sane();
        FINISH();
    }
}

static void nor_is_what_a_new_connection_is_told(void **state)
{
    (void)state;
    begin();
    S.nodes[2].base = INT64_MAX - 1;
    expect_sane();
    FINISH();
    begin();
    S.nodes[2].wall_s = INT64_MAX / 1000000 / 2;
    S.nodes[2].info = "uptime_in_seconds:9223372036854775";
    expect_sane();
    FINISH();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_restarted_server_has_no_vote),
        cmocka_unit_test(what_it_granted_is_lost),
        cmocka_unit_test(also_if_it_seems_to_remember),
        cmocka_unit_test(with_too_many_of_them_nothing_is_granted),
        cmocka_unit_test(what_was_meant_for_the_process_before_is_called_back),
        cmocka_unit_test(the_same_server_twice_is_not_two),
        cmocka_unit_test(a_server_that_hides_its_process_has_no_vote),
        cmocka_unit_test(after_the_longest_lease_it_has_a_vote_again),
        cmocka_unit_test(it_goes_on_from_the_highest_floor_of_the_others),
        cmocka_unit_test(it_waits_for_so_many_others_that_one_must_know),
        cmocka_unit_test(another_client_may_have_told_it),
        cmocka_unit_test(nobody_asks_for_nobody),
        cmocka_unit_test(a_process_that_is_old_enough_joins_at_once),
        cmocka_unit_test(one_that_is_not_does_not),
        cmocka_unit_test(its_clock_must_agree_with_a_majority),
        cmocka_unit_test(also_when_it_said_how_old_it_is),
        cmocka_unit_test(servers_that_never_forget_need_no_quarantine),
        cmocka_unit_test(new_servers_begin_together),
        cmocka_unit_test(when_they_have_been_known_for_long_enough),
        cmocka_unit_test(a_majority_can_begin_without_the_rest),
        cmocka_unit_test(a_hold_outlives_restarts_that_are_far_enough_apart),
        cmocka_unit_test(what_a_server_knows_of_itself_is_under_the_side_prefix),
        cmocka_unit_test(an_answer_with_numbers_that_are_no_fences_is_none),
        cmocka_unit_test(nor_is_what_a_new_connection_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
