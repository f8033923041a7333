/* SPDX-License-Identifier: MIT */
/* Passing a lock on between threads of one client without a word to the server: what goes along and
 * what does not, and when it must not be. */
#include <stdlib.h>
#include <string.h>

#include "crowd.h"

#define S the_stage

/* ---- What goes along ---- */

static void a_lock_passes_on_without_a_message(void **state)
{
    (void)state;
    hf_stats stats;
    crowd_begin(CROWD_TURNS);
    crowd_gather(5);
    int releases = S.node.releases, acquires = S.node.acquires;
    assert_int_equal(S.node.last_range, 1 + CROWD_MORE);
    ADVANCE_MS(1);
    crowd_turn(2, 3);
    crowd_turn(3, 4); /* first come, first served */
    crowd_turn(4, 5);
    RELEASE(5);
    EXPECT(5, HF_OK);
    assert_int_equal(S.node.releases, releases + 1);
    assert_int_equal(S.node.acquires, acquires);
    EXPECT_NO_KEY("x");
    hf__core_stats(S.core, &stats);
    assert_int_equal(stats.turns, 3);
    assert_int_equal(stats.acquisitions, 5);
    assert_int_equal(stats.releases, 5);
    assert_int_equal(stats.held, 0);
    crowd_end();
}

/* The next fence at the server is above all that were given out here. */
static void fences_grow_across_turns(void **state)
{
    (void)state;
    crowd_begin(CROWD_TURNS);
    crowd_gather(4);
    assert_true(stage_fence_of("x") == FENCE(2) + CROWD_MORE);
    ADVANCE_MS(1);
    crowd_turn(2, 3);
    crowd_turn(3, 4);
    uint64_t last = FENCE(4);
    RIVAL_QUEUES("x", .number = 1);
    RELEASE(4);
    assert_true(rival_heard("g 1 "));
    assert_true(stage_fence_of("x") > last);
    crowd_end();
}

/* Or else fences would run away from the clock. */
static void fences_that_nobody_had_are_given_back(void **state)
{
    (void)state;
    crowd_begin(CROWD_TURNS);
    crowd_gather(3);
    assert_true(stage_fence_of("x") == FENCE(2) + CROWD_MORE);
    crowd_turn(2, 3);
    uint64_t last = FENCE(3);
    ADVANCE_MS(1);
    RELEASE(3);
    EXPECT(3, HF_OK);
    assert_null(node_side(&S.node, 'f', "x"));
    assert_int_equal(strtoull(node_side(&S.node, 'm', "")->value.bytes, NULL, 10), last);
    crowd_end();
}

/* So does the one who was never told of its grant. */
static void a_grant_that_nobody_heard_of_is_given_back(void **state)
{
    (void)state;
    crowd_begin(CROWD_TURNS);
    ACQUIRE(1, "x", MEMBER(1));
    ACQUIRE(2, "x", MEMBER_FOR(2, 500));
    S.mute = true;
    RELEASE(1); /* 2 has it */
    uint64_t top = stage_fence_of("x");
    ADVANCE_MS(500);
    assert_true(S.calls[2].done);
    S.mute = false;
    ADVANCE_MS(100);
    EXPECT_NO_KEY("x");
    assert_int_equal(strtoull(node_side(&S.node, 'm', "")->value.bytes, NULL, 10),
                     top - CROWD_MORE);
    crowd_end();
}

/* A contender asks for a few more than were used here last. */
static void what_is_used_is_asked_for_again(void **state)
{
    (void)state;
    crowd_begin(CROWD_TURNS);
    crowd_gather(4 + CROWD_MORE);
    for (int i = 0; i < CROWD_MORE; i++) {
        ADVANCE_MS(1);
        crowd_turn(2 + i, 3 + i);
    }
    RELEASE(2 + CROWD_MORE);
    EXPECT(3 + CROWD_MORE, HF_OK);
    assert_int_equal(S.node.last_range, 1 + 2 * CROWD_MORE);
    crowd_end();
}

/* Each fence is a microsecond of the server's clock, which has not moved. */
static void turns_do_not_overtake_the_clock(void **state)
{
    (void)state;
    crowd_begin(CROWD_TURNS);
    crowd_gather(5);
    crowd_turn(2, 3);
    int releases = S.node.releases;
    RELEASE(3);
    EXPECT(4, HF_OK);
    assert_int_equal(S.node.releases, releases + 1);
    ADVANCE_MS(1);
    crowd_turn(4, 5);
    crowd_end();
}

static void the_deadline_goes_along(void **state)
{
    (void)state;
    crowd_begin(CROWD_TURNS);
    crowd_gather(3);
    assert_int_equal(stage_remaining_ms(2), CROWD_FULL_MS);
    ADVANCE_MS(1000);
    crowd_turn(2, 3);
    assert_int_equal(stage_remaining_ms(3), CROWD_FULL_MS - 1000);
    EXPECT_STATE(3, HF_SAFE);
    ADVANCE_MS(2000); /* it is renewed as planned */
    assert_int_equal(stage_remaining_ms(3), CROWD_FULL_MS);
    ADVANCE_MS(60000);
    EXPECT_STATE(3, HF_SAFE);
    crowd_end();
}

static void everybody_renews_as_they_wish(void **state)
{
    (void)state;
    crowd_begin(CROWD_TURNS);
    ACQUIRE(1, "x", MEMBER(1));
    ACQUIRE(2, "x", MEMBER(2));
    ACQUIRE(3, "x", .wait_ms = 60000, .lease_ms = CROWD_LEASE_MS, .renew_interval_ms = 500,
            .thread = 3);
    RELEASE(1);
    ADVANCE_MS(400);
    crowd_turn(2, 3);
    int before = S.node.renewals;
    ADVANCE_MS(100);
    assert_true(S.node.renewals > before);
    ADVANCE_MS(5000);
    assert_true(S.node.renewals >= before + 10);
    crowd_end();
}

/* Its answer counts, though the next one wants its renewals at other times. */
static void a_renewal_under_way_goes_along(void **state)
{
    (void)state;
    crowd_begin(CROWD_TURNS);
    ACQUIRE(1, "x", MEMBER(1));
    ACQUIRE(2, "x", .wait_ms = 60000, .lease_ms = CROWD_LEASE_MS, .renew_interval_ms = 500,
            .thread = 2);
    ACQUIRE(3, "x", MEMBER(3));
    RELEASE(1);
    ADVANCE_MS(499);
    S.mute = true;
    ADVANCE_MS(2);
    crowd_turn(2, 3);
    S.mute = false;
    stage_run();
    assert_int_equal(stage_remaining_ms(3), CROWD_FULL_MS - 1);
    crowd_end();
}

static void max_hold_counts_from_ones_own_turn(void **state)
{
    (void)state;
    crowd_begin(CROWD_TURNS);
    ACQUIRE(1, "x", MEMBER(1));
    ACQUIRE(2, "x", MEMBER(2));
    ACQUIRE(3, "x", MEMBER(3), .max_hold_ms = 2000);
    RELEASE(1);
    ADVANCE_MS(1500);
    crowd_turn(2, 3);
    ADVANCE_MS(1999);
    EXPECT_STATE(3, HF_SAFE);
    ADVANCE_MS(1);
    EXPECT_TOLD(3, HF_JEOPARDY, MAX_HOLD);
    crowd_end();
}

static void everybody_has_a_listener_of_their_own(void **state)
{
    (void)state;
    crowd_begin(CROWD_TURNS);
    crowd_gather(4);
    crowd_turn(2, 3);
    rival_revoke("x", "please");
    EXPECT_TOLD(3, HF_SAFE, REVOKED);
    rival_break("x");
    EXPECT_TOLD(3, HF_LOST, BROKEN);
    for (int i = 1; i <= 4; i++)
        EXPECT_QUIET(i);
    RELEASE(3);
    EXPECT(3, HF_ELOST);
    EXPECT(4, HF_OK); /* from the server */
    crowd_end();
}

static void everybody_re_enters_for_themselves(void **state)
{
    (void)state;
    crowd_begin(CROWD_TURNS);
    crowd_gather(3);
    ACQUIRE(12, "x", MEMBER(2)); /* thread 2 again */
    EXPECT(12, HF_OK);
    RELEASE(2);
    EXPECT(2, HF_OK);
    EXPECT_WAITING(3); /* the other handle keeps it */
    ADVANCE_MS(1);
    crowd_turn(12, 3);
    ACQUIRE(13, "x", MEMBER(3));
    EXPECT(13, HF_OK);
    assert_true(FENCE(13) == FENCE(3));
    ACQUIRE(22, "x", MEMBER(2)); /* that thread has it no more */
    EXPECT_WAITING(22);
    RELEASE(13);
    EXPECT_WAITING(22);
    crowd_turn(3, 22);
    crowd_end();
}

static void an_extension_ends_with_the_turn(void **state)
{
    (void)state;
    crowd_begin(CROWD_TURNS);
    crowd_gather(3);
    S.mute = true;
    hf_hold *hold = stage_hold(2);
    S.calls[9] = (hf__call){.kind = HF__CALL_EXTEND, .hold = hold};
    S.calls[9].lease = hf__span_ms(CROWD_LEASE_MS);
    hf__core_step(S.core, &(hf__event){.kind = HF__EVENT_START, .call = &S.calls[9], .now = S.now});
    RELEASE(2);
    EXPECT(9, HF_EINVAL);
    EXPECT(3, HF_OK);
    S.mute = false;
    ADVANCE_MS(10000); /* the answer to it harms nobody */
    EXPECT_STATE(3, HF_SAFE);
    crowd_end();
}

/* ---- How long ---- */

static void the_budget_is_kept(void **state)
{
    (void)state;
    crowd_begin(3);
    crowd_gather(7);
    ADVANCE_MS(1);
    crowd_turn(2, 3);
    crowd_turn(3, 4);
    crowd_turn(4, 5);
    int releases = S.node.releases;
    uint64_t fence = FENCE(5);
    ADVANCE_MS(1);
    RELEASE(5);
    EXPECT(5, HF_OK);
    EXPECT(6, HF_OK);
    assert_int_equal(S.node.releases, releases + 1);
    assert_true(FENCE(6) > fence);
    assert_int_equal(stage_remaining_ms(6), CROWD_FULL_MS); /* a grant of its own */
    crowd_turn(6, 7);
    crowd_end();
}

/* Then the next one queues for itself, and not only when it is given back. */
static void a_third_of_the_lease(void **state)
{
    (void)state;
    crowd_begin(CROWD_TURNS);
    crowd_gather(5);
    ADVANCE_MS(2999);
    crowd_turn(2, 3);
    int acquires = S.node.acquires, releases = S.node.releases;
    ADVANCE_MS(1);
    assert_int_equal(S.node.acquires, acquires + 1);
    RELEASE(3);
    EXPECT(3, HF_OK);
    EXPECT(4, HF_OK); /* by the server */
    assert_int_equal(S.node.releases, releases + 1);
    crowd_turn(4, 5);
    crowd_end();
}

static void the_patience_of_those_elsewhere(void **state)
{
    (void)state;
    crowd_begin(CROWD_TURNS);
    crowd_gather(5);
    ADVANCE_MS(100);
    RIVAL_QUEUES("x", .number = 1);
    ADVANCE_MS(19);
    crowd_turn(2, 3);
    int acquires = S.node.acquires;
    ADVANCE_MS(1);
    assert_int_equal(S.node.acquires, acquires + 1); /* the next queues, behind the rival */
    RELEASE(3);
    assert_true(rival_heard("g 1 "));
    EXPECT_WAITING(4);
    rival_release("x", 1);
    EXPECT(4, HF_OK);
    crowd_turn(4, 5);
    crowd_end();
}

/* Others wait already when the lock is granted. */
static void patience_counts_from_the_grant(void **state)
{
    (void)state;
    crowd_begin(CROWD_TURNS);
    for (int i = 1; i <= 4; i++)
        ACQUIRE(i, "x", MEMBER((uint64_t)i));
    RIVAL_QUEUES("x", .number = 1);
    RELEASE(1);
    EXPECT(2, HF_OK);
    ADVANCE_MS(19);
    crowd_turn(2, 3);
    ADVANCE_MS(1);
    RELEASE(3);
    assert_true(rival_heard("g 1 "));
    EXPECT_WAITING(4);
    crowd_end();
}

/* ---- Not ---- */

/* Call 3 does not get what call 2 gives back, but what the server gives it. */
static void expect_no_turn(int before)
{
    RELEASE(2);
    assert_int_equal(S.node.releases, before + 1);
}

static void nobody_whose_lease_or_renewal_differs(void **state)
{
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        crowd_begin(CROWD_TURNS);
        ACQUIRE(1, "x", MEMBER(1));
        ACQUIRE(2, "x", .wait_ms = 60000, .lease_ms = CROWD_LEASE_MS,
                .renew_interval_ms = kind == 2 ? 0 : 3000, .thread = 2);
        ACQUIRE(3, "x", .wait_ms = 60000, .lease_ms = kind == 0 ? 8000 : CROWD_LEASE_MS,
                .renew_interval_ms = kind == 1 ? 0 : 2000, .thread = 3);
        RELEASE(1);
        expect_no_turn(S.node.releases);
        EXPECT(3, HF_OK);
        assert_int_equal(stage_remaining_ms(3), kind == 0 ? 8000 - 80 - 2 : CROWD_FULL_MS);
        crowd_end();
    }
}

static void not_what_was_extended(void **state)
{
    (void)state;
    crowd_begin(CROWD_TURNS);
    crowd_gather(3);
    EXTEND(2, 20000);
    EXPECT(2, HF_OK);
    expect_no_turn(S.node.releases);
    EXPECT(3, HF_OK);
    crowd_end();
}

static void not_what_somebody_asks_for(void **state)
{
    (void)state;
    crowd_begin(CROWD_TURNS);
    crowd_gather(3);
    rival_revoke("x", "please");
    expect_no_turn(S.node.releases);
    EXPECT(3, HF_OK);
    crowd_end();
}

static void not_in_jeopardy(void **state)
{
    (void)state;
    crowd_begin(CROWD_TURNS);
    ACQUIRE(1, "x", MEMBER(1));
    ACQUIRE(2, "x", MEMBER(2), .warn_ms = 8000);
    ACQUIRE(3, "x", MEMBER(3));
    RELEASE(1);
    ADVANCE_MS(1000); /* the deadline is nearer than it likes, but there is time for turns */
    EXPECT_TOLD(2, HF_JEOPARDY, NEAR);
    expect_no_turn(S.node.releases);
    EXPECT(3, HF_OK);
    crowd_end();
}

static void not_what_is_lost(void **state)
{
    (void)state;
    crowd_begin(CROWD_TURNS);
    crowd_gather(3);
    node_delete(&S.node, "x");
    PAUSE_MS(CROWD_LEASE_MS); /* nobody has noticed */
    RELEASE(2);
    EXPECT(2, HF_ELOST);
    EXPECT(3, HF_OK);
    assert_int_equal(stage_remaining_ms(3), CROWD_FULL_MS);
    crowd_end();
}

static void not_while_somebody_is_told(void **state)
{
    (void)state;
    hf__tell tell;
    crowd_begin(CROWD_TURNS);
    ACQUIRE(1, "x", MEMBER(1));
    ACQUIRE(2, "x", MEMBER(2), .warn_ms = 8000);
    ACQUIRE(3, "x", MEMBER(3));
    RELEASE(1);
    S.listens_by_hand = true;
    ADVANCE_MS(2999); /* in jeopardy for two seconds, and safe again by the renewal */
    assert_true(hf__core_next_tell(S.core, &tell));
    ADVANCE_MS(1);
    int releases = S.node.releases;
    RELEASE(2);
    assert_int_equal(S.node.releases, releases + 1);
    hf__core_told(S.core);
    stage_run();
    EXPECT(3, HF_OK);
    crowd_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lock_passes_on_without_a_message),
        cmocka_unit_test(fences_grow_across_turns),
        cmocka_unit_test(fences_that_nobody_had_are_given_back),
        cmocka_unit_test(a_grant_that_nobody_heard_of_is_given_back),
        cmocka_unit_test(what_is_used_is_asked_for_again),
        cmocka_unit_test(turns_do_not_overtake_the_clock),
        cmocka_unit_test(the_deadline_goes_along),
        cmocka_unit_test(everybody_renews_as_they_wish),
        cmocka_unit_test(a_renewal_under_way_goes_along),
        cmocka_unit_test(max_hold_counts_from_ones_own_turn),
        cmocka_unit_test(everybody_has_a_listener_of_their_own),
        cmocka_unit_test(everybody_re_enters_for_themselves),
        cmocka_unit_test(an_extension_ends_with_the_turn),
        cmocka_unit_test(the_budget_is_kept),
        cmocka_unit_test(a_third_of_the_lease),
        cmocka_unit_test(the_patience_of_those_elsewhere),
        cmocka_unit_test(patience_counts_from_the_grant),
        cmocka_unit_test(nobody_whose_lease_or_renewal_differs),
        cmocka_unit_test(not_what_was_extended),
        cmocka_unit_test(not_what_somebody_asks_for),
        cmocka_unit_test(not_in_jeopardy),
        cmocka_unit_test(not_what_is_lost),
        cmocka_unit_test(not_while_somebody_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
