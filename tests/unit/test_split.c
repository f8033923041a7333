/* SPDX-License-Identifier: MIT */
/* A call of renewals that the server refuses as a whole, for the sake of one of its holds: the
 * others are renewed all the same, at once, and what that costs is bounded. */
#include <string.h>

#include "herd.h"

#define S the_stage

enum { MANY = 70 }; /* as many as share a call */

static void expect_others_safe(int count, int except)
{
    for (int i = 1; i <= count; i++) {
        if (i == except)
            continue;
        EXPECT_STATE(i, HF_SAFE);
        EXPECT_QUIET(i);
    }
}

static void one_that_is_denied_costs_the_others_nothing(void **state)
{
    (void)state;
    static const int culprits[] = {1, 17, 35, 36, MANY};
    for (size_t i = 0; i < sizeof(culprits) / sizeof(culprits[0]); i++) {
        char name[32];
        SETUP();
        acquire_many(MANY);
        snprintf(name, sizeof(name), "lock-%d", culprits[i]);
        S.node.forbidden[0] = name;
        ADVANCE_MS(3000 + 10);
        assert_int_equal(S.node.renewed, MANY - 1);
        assert_in_range(S.node.forbidden_calls, 7, 8); /* halves, until it is alone */
        assert_in_range(S.node.renewals, 5, 8);
        ADVANCE_MS(3 * 9000);
        expect_others_safe(MANY, culprits[i]);
        EXPECT_STATE(culprits[i], HF_LOST);
        FINISH();
    }
}

/* The culprit stays alone, and the others are together again. */
static void the_cost_is_bounded(void **state)
{
    (void)state;
    SETUP();
    acquire_many(MANY);
    S.node.forbidden[0] = "lock-7";
    ADVANCE_MS(3000 + 10);
    int calls = S.node.renewals, refused = S.node.forbidden_calls;
    ADVANCE_MS(3000);
    assert_in_range(S.node.renewals - calls, 1, 3); /* halves that leave together join again */
    assert_in_range(S.node.forbidden_calls - refused, 3, 5); /* four tries in an interval */
    calls = S.node.renewals;
    ADVANCE_MS(3000);
    assert_in_range(S.node.renewals - calls, 1, 2);
    FINISH();
}

static void what_is_allowed_again_goes_with_the_others(void **state)
{
    (void)state;
    SETUP();
    acquire_many(MANY);
    S.node.forbidden[0] = "lock-7";
    ADVANCE_MS(3000 + 10);
    S.node.forbidden[0] = NULL;
    int refused = S.node.forbidden_calls;
    ADVANCE_MS(760);
    assert_int_equal(S.node.renewed, MANY); /* it was tried after a quarter of the interval */
    EXPECT_TOLD(7, HF_JEOPARDY, LATE);
    EXPECT_TOLD(7, HF_SAFE, NONE);
    ADVANCE_MS(9000);
    int calls = S.node.renewals;
    ADVANCE_MS(3000);
    assert_in_range(S.node.renewals - calls, 1, 2); /* it has a rhythm of its own */
    assert_int_equal(S.node.forbidden_calls, refused);
    expect_all_safe(MANY);
    FINISH();
}

/* Two in one call, and those with an owner, for whom there is another script. */
static void two_that_are_denied_are_both_found(void **state)
{
    (void)state;
    for (int owned = 0; owned < 2; owned++) {
        char name[32];
        SETUP();
        for (int i = 1; i <= 20; i++) {
            snprintf(name, sizeof(name), "lock-%d", i);
            ACQUIRE(i, name, RENEWED, .owner = owned ? "o" : NULL);
        }
        S.node.forbidden[0] = "lock-3";
        S.node.forbidden[1] = "lock-4";
        ADVANCE_MS(3000 + 10);
        assert_int_equal(S.node.renewed, 18);
        ADVANCE_MS(20000);
        EXPECT_STATE(3, HF_LOST);
        EXPECT_STATE(4, HF_LOST);
        for (int i = 5; i <= 20; i++)
            EXPECT_STATE(i, HF_SAFE);
        FINISH();
    }
}

/* All of them: each is refused alone, and they do not storm. */
static void all_that_are_denied_do_not_storm(void **state)
{
    (void)state;
    SETUP();
    acquire_many(MANY);
    S.node.always = "-NOPERM this user has no permissions\r\n";
    int written = S.writes;
    ADVANCE_MS(9000);
    assert_true(S.writes - written < 600);
    for (int i = 1; i <= MANY; i++)
        EXPECT_STATE(i, HF_LOST);
    FINISH();
}

/* Those that are refused have a round of their own: who is fine does not wait behind them. */
static void those_that_are_refused_delay_nobody(void **state)
{
    (void)state;
    SETUP();
    acquire_many(MANY);
    node_say(&S.node, "-NOPERM this user has no permissions\r\n");
    ADVANCE_MS(3000 + 10);
    assert_int_equal(S.node.renewed, MANY); /* the halves were allowed */
    expect_all_safe(MANY);
    FINISH();
}

/* Errors that are about the server are heard by all, once. */
static void a_busy_server_is_not_asked_in_halves(void **state)
{
    (void)state;
    SETUP();
    acquire_many(MANY);
    node_say(&S.node, "-BUSY Redis is busy running a script.\r\n");
    ADVANCE_MS(3000 + 10);
    assert_int_equal(S.node.canned_count, 0);
    assert_int_equal(S.node.renewals, 0);
    ADVANCE_MS(750);
    assert_int_equal(S.node.renewals, 1);
    FINISH();
}

/* An extension, and a hold that is taken up, share calls with renewals and must not fail for them.
 */
static void an_extension_does_not_fail_for_another(void **state)
{
    (void)state;
    SETUP();
    acquire_many(2);
    S.node.forbidden[0] = "lock-1";
    S.refuses = true;
    CUT();
    EXTEND(1, 20000);
    EXTEND(2, 20000);
    S.refuses = false;
    ADVANCE_MS(100); /* they leave together, over the next connection */
    EXPECT(1, HF_EDENIED);
    EXPECT(2, HF_OK);
    assert_true(stage_remaining_ms(2) > 19000);
    FINISH();
}

static void a_cut_in_the_middle_loses_nothing(void **state)
{
    (void)state;
    SETUP();
    acquire_many(MANY);
    S.node.forbidden[0] = "lock-7";
    S.mute = true;
    ADVANCE_MS(3000 + 10);
    S.mute = false;
    CUT();
    ADVANCE_MS(100);
    ADVANCE_MS(2 * 9000);
    expect_others_safe(MANY, 7);
    FINISH();
}

/* On a quorum, one server that denies a vote of one lock does not cost the other its vote. */
static void a_vote_that_is_denied_costs_no_other_vote(void **state)
{
    (void)state;
    SETUP(.servers = 3, .messages = true);
    ACQUIRE(1, "lock-1", RENEWED);
    ACQUIRE(2, "lock-2", RENEWED);
    EXPECT(1, HF_OK);
    EXPECT(2, HF_OK);
    S.nodes[0].forbidden[0] = S.nodes[1].forbidden[0] = "lock-1";
    ADVANCE_MS(20000);
    EXPECT_STATE(1, HF_LOST);
    EXPECT_STATE(2, HF_SAFE);
    for (int i = 0; i < 3; i++)
        assert_non_null(node_get(&S.nodes[i], "lock-2"));
    FINISH();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_that_is_denied_costs_the_others_nothing),
        cmocka_unit_test(the_cost_is_bounded),
        cmocka_unit_test(what_is_allowed_again_goes_with_the_others),
        cmocka_unit_test(two_that_are_denied_are_both_found),
        cmocka_unit_test(all_that_are_denied_do_not_storm),
        cmocka_unit_test(those_that_are_refused_delay_nobody),
        cmocka_unit_test(a_busy_server_is_not_asked_in_halves),
        cmocka_unit_test(an_extension_does_not_fail_for_another),
        cmocka_unit_test(a_cut_in_the_middle_loses_nothing),
        cmocka_unit_test(a_vote_that_is_denied_costs_no_other_vote),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
