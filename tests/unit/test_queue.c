/* SPDX-License-Identifier: MIT */
/* Waiting in the queue at the server, against a node double in virtual time: who is given the lock
 * and when those who wait check for themselves. Whoever ends leaves the queue, and nothing else
 * behind. What makes a grant believable is in test_belief.c. */
#include <stdio.h>
#include <string.h>

#include "contest.h"

#define S the_stage

static int64_t score_of(const char *name, int number)
{
    char value[100];
    snprintf(value, sizeof(value), STAGE_CLIENT ":%d@host:1/1", number);
    const node_member *member = node_member_of(node_side(&S.node, 'q', name), value);
    return member != NULL ? member->score : 0;
}

/* ---- Being given the lock ---- */

static void a_release_hands_the_lock_on(void **state)
{
    (void)state;
    contest_begin();
    RIVAL_ACQUIRES("x", .number = 1);
    ACQUIRE(1, "x", .wait_ms = 5000);
    EXPECT_WAITING(1);
    assert_int_equal(S.node.acquires, 2); /* once to find it held, once to queue */
    assert_true(score_of("x", 1) > 0);
    ADVANCE_MS(1000);
    assert_int_equal(S.node.acquires, 2);
    rival_release("x", 1);
    EXPECT(1, HF_OK);
    assert_int_equal(S.node.acquires, 2);
    assert_non_null(strstr(node_get(&S.node, "x"), STAGE_CLIENT));
    assert_true(FENCE(1) == stage_fence_of("x"));
    assert_int_equal(stage_remaining_ms(1), 10000 - 100 - 2 - 1000); /* since it queued */
    RELEASE(1);
    EXPECT(1, HF_OK);
    EXPECT_NO_KEY("x");
    contest_end();
}

static void first_come_first_served(void **state)
{
    (void)state;
    contest_begin();
    RIVAL_ACQUIRES("x", .number = 1);
    ACQUIRE(1, "x", .wait_ms = 5000);
    RIVAL_QUEUES("x", .number = 2);
    ACQUIRE(2, "x", .wait_ms = 5000);
    rival_release("x", 1);
    EXPECT(1, HF_OK);
    EXPECT_WAITING(2);
    uint64_t fence = FENCE(1);
    RELEASE(1);
    EXPECT(1, HF_OK);
    assert_true(rival_heard("g 2 1 "));
    EXPECT_WAITING(2);
    rival_release("x", 2);
    EXPECT(2, HF_OK);
    assert_true(FENCE(2) > fence);
    contest_end();
}

/* Held for that long, and perhaps wanted by others: does the release, or the acquire behind it,
 * leave the processor to somebody who is woken? */
static bool gives_way(bool wanted, int held_ms)
{
    contest_begin();
    ACQUIRE(1, "x");
    EXPECT(1, HF_OK);
    RELEASE(1);
    EXPECT(1, HF_OK);
    RIVAL_ACQUIRES("x", .number = 1);
    ACQUIRE(2, "x", .wait_ms = 5000);
    if (wanted)
        RIVAL_QUEUES("x", .number = 2);
    rival_release("x", 1);
    EXPECT(2, HF_OK);
    if (!wanted) { /* not even by us */
        RELEASE(2);
        ACQUIRE(2, "y");
        EXPECT(2, HF_OK);
    }
    ADVANCE_MS(held_ms);
    RELEASE(2);
    ACQUIRE(1, "z");
    bool release_does = S.calls[2].gives_way;
    assert_true(S.calls[1].gives_way == release_does);
    contest_end();
    return release_does;
}

static void who_wakes_others_with_the_lock_gives_way_to_them(void **state)
{
    (void)state;
    assert_true(gives_way(true, 1));
    assert_false(gives_way(true, 0));
    assert_false(gives_way(false, 1));
}

/* It wants the lock while it is free, but somebody else was first. */
static void a_free_lock_with_a_queue_goes_to_its_head(void **state)
{
    (void)state;
    contest_begin();
    RIVAL_ACQUIRES("x", .number = 1);
    RIVAL_QUEUES("x", .number = 2);
    node_delete(&S.node, "x");
    ACQUIRE(1, "x");
    EXPECT(1, HF_EBUSY);
    assert_true(rival_heard("g 2 "));
    EXPECT_TEXT(1, "rival");
    contest_end();
}

static void a_waiter_whose_client_is_gone_is_skipped(void **state)
{
    (void)state;
    contest_begin();
    RIVAL_ACQUIRES("x", .number = 1);
    RIVAL_QUEUES("x", .number = 2);
    ACQUIRE(1, "x", .wait_ms = 5000);
    rival_hang_up();
    rival_release("x", 1);
    EXPECT(1, HF_OK);
    contest_end();
}

static void a_waiter_that_was_not_heard_of_for_a_lease_is_skipped(void **state)
{
    (void)state;
    contest_begin();
    RIVAL_ACQUIRES("x", .number = 1, .lease = 60000);
    RIVAL_QUEUES("x", .number = 2, .lease = 1000);
    ACQUIRE(1, "x", .wait_ms = 5000);
    ADVANCE_MS(1001);
    rival_release("x", 1);
    EXPECT(1, HF_OK);
    contest_end();
}

static void owners_queue_too(void **state)
{
    (void)state;
    contest_begin();
    RIVAL_ACQUIRES("x", .number = 1);
    ACQUIRE(1, "x", .wait_ms = 5000, .owner = "me");
    rival_release("x", 1);
    EXPECT(1, HF_OK);
    assert_string_equal(node_get(&S.node, "x"), "me");
    ACQUIRE(2, "x", .owner = "me");
    EXPECT(2, HF_OK);
    assert_true(FENCE(2) == FENCE(1));
    RIVAL_QUEUES("x", .number = 2);
    RELEASE(1);
    assert_false(rival_heard("g 2 "));
    RELEASE(2);
    assert_true(rival_heard("g 2 "));
    contest_end();
}

/* ---- Checks ---- */

static void checks_every_third_of_the_lease(void **state)
{
    (void)state;
    contest_begin();
    RIVAL_ACQUIRES("x", .number = 1, .lease = 600000);
    ACQUIRE(1, "x", .wait_ms = 60000, .lease_ms = 3000);
    int before = S.node.acquires;
    ADVANCE_MS(874);
    assert_int_equal(S.node.acquires, before);
    ADVANCE_MS(126);
    assert_int_equal(S.node.acquires, before + 1);
    ADVANCE_MS(29000);
    assert_in_range(S.node.acquires, before + 30, before + 34); /* spread by up to an eighth */
    assert_int_equal(score_of("x", 1), 1);                      /* and it keeps its place */
    contest_end();
}

/* A lost message costs no more than that. */
static void a_check_finds_a_grant_that_was_not_heard_of(void **state)
{
    (void)state;
    contest_begin();
    RIVAL_ACQUIRES("x", .number = 1, .lease = 600000);
    ACQUIRE(1, "x", .wait_ms = 60000, .lease_ms = 3000);
    rival_hang_up();
    S.node.denies = "PUBLISH"; /* from now on */
    rival_release("x", 1);
    EXPECT_WAITING(1);
    ADVANCE_MS(1000);
    EXPECT(1, HF_OK);
    assert_in_range(stage_remaining_ms(1), 1900, 2200); /* of a grant that is a second old */
    contest_end();
}

static void the_head_checks_when_the_holders_time_is_up(void **state)
{
    (void)state;
    contest_begin();
    RIVAL_ACQUIRES("x", .number = 1, .lease = 500);
    ACQUIRE(1, "x", .wait_ms = 5000);
    ADVANCE_MS(500);
    EXPECT_WAITING(1);
    assert_int_equal(S.node.acquires, 2);
    ADVANCE_MS(1);
    EXPECT(1, HF_OK);
    assert_int_equal(S.node.acquires, 3);
    contest_end();
}

static void those_behind_the_head_check_one_after_the_other(void **state)
{
    (void)state;
    contest_begin();
    RIVAL_ACQUIRES("x", .number = 1, .lease = 500);
    RIVAL_QUEUES("x", .number = 2);
    for (int i = 1; i <= 9; i++)
        ACQUIRE(i, "x", .wait_ms = 2000);
    int before = S.node.acquires;
    ADVANCE_MS(520);
    assert_int_equal(S.node.acquires, before);
    ADVANCE_MS(1);
    assert_int_equal(S.node.acquires, before + 1); /* the second, and the first gets it */
    assert_true(rival_heard("g 2 "));
    for (int i = 2; i <= 7; i++) {
        ADVANCE_MS(20);
        assert_int_equal(S.node.acquires, before + i);
    }
    ADVANCE_MS(500);
    assert_int_equal(S.node.acquires, before + 7); /* beyond the eighth nobody does */
    contest_end();
}

static void a_foreign_holder_is_asked_for_again_and_again(void **state)
{
    (void)state;
    contest_begin();
    node_set(&S.node, "x", "somebody", -1);
    ACQUIRE(1, "x", .wait_ms = 5000);
    ADVANCE_MS(1050);
    assert_int_equal(S.node.acquires, 12); /* two, then one every 100 ms */
    node_delete(&S.node, "x");
    ADVANCE_MS(50);
    EXPECT(1, HF_OK);
    contest_end();
}

static void after_a_cut_it_checks_at_once_and_keeps_its_place(void **state)
{
    (void)state;
    contest_begin();
    RIVAL_ACQUIRES("x", .number = 1, .lease = 600000);
    ACQUIRE(1, "x", .wait_ms = 60000);
    RIVAL_QUEUES("x", .number = 2);
    int before = S.node.acquires;
    stage_cut_link(PUSH);
    ADVANCE_MS(20);
    assert_int_equal(S.node.acquires, before + 1);
    stage_cut_link(0);
    ACQUIRE(2, "other"); /* somebody needs that link, else it stays down until the next check */
    EXPECT(2, HF_OK);
    assert_int_equal(S.node.acquires, before + 3);
    assert_int_equal(score_of("x", 1), 1);
    S.muted = 1 << PUSH;
    rival_release("x", 1); /* to us, but that is lost */
    stage_cut_link(PUSH);
    S.muted = 0;
    ADVANCE_MS(20);
    EXPECT(1, HF_OK);
    contest_end();
}

/* ---- Ends ---- */

static void one_whose_time_is_up_leaves_the_queue(void **state)
{
    (void)state;
    contest_begin();
    RIVAL_ACQUIRES("x", .number = 1);
    ACQUIRE(1, "x", .wait_ms = 450);
    ADVANCE_MS(449);
    EXPECT_WAITING(1);
    ADVANCE_MS(1);
    EXPECT(1, HF_EBUSY);
    EXPECT_TEXT(1, "held by " RIVAL_CLIENT);
    assert_int_equal(S.node.releases, 1);
    assert_int_equal(S.node.tomb_count, 0);
    assert_null(node_side(&S.node, 'q', "x"));
    ADVANCE_MS(20000);
    assert_int_equal(S.node.acquires, 2);
    contest_end();
}

static void one_that_is_cancelled_leaves_the_queue(void **state)
{
    (void)state;
    contest_begin();
    RIVAL_ACQUIRES("x", .number = 1);
    ACQUIRE(1, "x", .wait_ms = -1);
    stage_cancel(1);
    EXPECT(1, HF_ECANCELLED);
    assert_int_equal(S.node.releases, 1);
    assert_null(node_side(&S.node, 'q', "x"));
    contest_end();
}

static void closing_leaves_every_queue(void **state)
{
    (void)state;
    contest_begin();
    RIVAL_ACQUIRES("x", .number = 1);
    RIVAL_ACQUIRES("y", .number = 2);
    ACQUIRE(1, "x", .wait_ms = -1);
    ACQUIRE(2, "x", .wait_ms = 5000);
    ACQUIRE(3, "y", .wait_ms = -1, .owner = "me");
    CLOSE(4);
    EXPECT(4, HF_OK);
    for (int i = 1; i <= 3; i++)
        EXPECT(i, HF_ECLOSED);
    assert_null(node_side(&S.node, 'q', "x"));
    assert_null(node_side(&S.node, 'q', "y"));
    contest_end();
}

static void the_end_of_the_wait_does_not_wait_for_an_answer(void **state)
{
    (void)state;
    contest_begin();
    RIVAL_ACQUIRES("x", .number = 1, .lease = 60000);
    ACQUIRE(1, "x", .wait_ms = 700, .lease_ms = 1500);
    S.mute = true; /* the check at 500 ms is not answered */
    ADVANCE_MS(699);
    EXPECT_WAITING(1);
    ADVANCE_MS(1);
    EXPECT(1, HF_EBUSY); /* as far as it was heard of */
    S.mute = false;
    ADVANCE_MS(1);
    assert_null(node_side(&S.node, 'q', "x"));
    contest_end();
}

static void a_grant_that_crosses_with_the_end_is_given_back(void **state)
{
    (void)state;
    for (int cancels = 0; cancels < 2; cancels++) {
        contest_begin();
        RIVAL_ACQUIRES("x", .number = 1);
        ACQUIRE(1, "x", .wait_ms = 450);
        RIVAL_QUEUES("x", .number = 2);
        S.muted = 1 << PUSH;
        ADVANCE_MS(449);
        rival_release("x", 1);
        assert_non_null(strstr(node_get(&S.node, "x"), STAGE_CLIENT));
        if (cancels)
            stage_cancel(1);
        ADVANCE_MS(1);
        EXPECT(1, cancels ? HF_ECANCELLED : HF_EBUSY);
        assert_true(rival_heard("g 2 ")); /* our release has handed it on */
        S.muted = 0;
        stage_run();
        assert_non_null(strstr(node_get(&S.node, "x"), RIVAL_CLIENT));
        ADVANCE_MS(20);
        assert_int_equal(S.node.releases, 1);
        contest_end();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_release_hands_the_lock_on),
        cmocka_unit_test(first_come_first_served),
        cmocka_unit_test(who_wakes_others_with_the_lock_gives_way_to_them),
        cmocka_unit_test(a_free_lock_with_a_queue_goes_to_its_head),
        cmocka_unit_test(a_waiter_whose_client_is_gone_is_skipped),
        cmocka_unit_test(a_waiter_that_was_not_heard_of_for_a_lease_is_skipped),
        cmocka_unit_test(owners_queue_too),
        cmocka_unit_test(checks_every_third_of_the_lease),
        cmocka_unit_test(a_check_finds_a_grant_that_was_not_heard_of),
        cmocka_unit_test(the_head_checks_when_the_holders_time_is_up),
        cmocka_unit_test(those_behind_the_head_check_one_after_the_other),
        cmocka_unit_test(a_foreign_holder_is_asked_for_again_and_again),
        cmocka_unit_test(after_a_cut_it_checks_at_once_and_keeps_its_place),
        cmocka_unit_test(one_whose_time_is_up_leaves_the_queue),
        cmocka_unit_test(one_that_is_cancelled_leaves_the_queue),
        cmocka_unit_test(closing_leaves_every_queue),
        cmocka_unit_test(the_end_of_the_wait_does_not_wait_for_an_answer),
        cmocka_unit_test(a_grant_that_crosses_with_the_end_is_given_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
