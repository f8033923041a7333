/* SPDX-License-Identifier: MIT */
/* Automatic renewal: when it is sent, in what company, and how it gets along with calls. A hold is
 * renewed in time; many are renewed in few calls of bounded size; and nobody's trouble is anybody
 * else's. What goes wrong with it is in test_mishap.c. */
#include <stdio.h>
#include <string.h>

#include "core/state.h"
#include "herd.h"

#define S the_stage

/* ---- When ---- */

static void renews_at_a_third_of_the_lease(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", RENEWED);
    ADVANCE_MS(2999);
    assert_int_equal(S.node.renewals, 0);
    ADVANCE_MS(1);
    assert_int_equal(S.node.renewals, 1);
    assert_int_equal(stage_remaining_ms(1), FULL_MS);
    ADVANCE_MS(57000);
    assert_int_equal(S.node.renewals, 20);
    EXPECT_KEY("x");
    expect_all_safe(1);
    RELEASE(1);
    EXPECT(1, HF_OK);
    FINISH();
}

static void renews_after_eight_of_ten_seconds(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", .lease_ms = 10000, .renew_interval_ms = 8000);
    ADVANCE_MS(7999);
    assert_int_equal(S.node.renewals, 0);
    ADVANCE_MS(1);
    assert_int_equal(S.node.renewals, 1);
    ADVANCE_MS(52000);
    assert_int_equal(S.node.renewals, 7);
    expect_all_safe(1);
    FINISH();
}

static void does_not_renew_if_not_asked_to(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x");
    ADVANCE_MS(20000);
    assert_int_equal(S.node.renewals, 0);
    EXPECT_NO_KEY("x");
    EXPECT_TOLD(1, HF_LOST, EXPIRED);
    EXPECT_QUIET(1);
    FINISH();
}

/* The interval counts from when the last one was sent, not from its answer. */
static void slow_answers_do_not_shift_it(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", RENEWED, .renew_timeout_ms = 900);
    S.mute = true;
    ADVANCE_MS(3000 + 800);
    S.mute = false;
    stage_run();
    assert_int_equal(stage_remaining_ms(1), FULL_MS - 800);
    ADVANCE_MS(2199);
    assert_int_equal(S.node.renewals, 1);
    ADVANCE_MS(1);
    assert_int_equal(S.node.renewals, 2);
    expect_all_safe(1);
    FINISH();
}

/* ---- In what company ---- */

enum { FIRST = 24, ROUND = FIRST + 7 * HF__BATCH_MAX, HERD = 700 };

static void a_callful_is_renewed_in_one(void **state)
{
    (void)state;
    SETUP();
    acquire_many(HF__BATCH_MAX);
    ADVANCE_MS(3000);
    assert_int_equal(S.node.renewals, 1);
    assert_int_equal(S.node.batches[0].holds, HF__BATCH_MAX);
    FINISH();
}

static void many_are_renewed_in_few_calls(void **state)
{
    (void)state;
    SETUP();
    acquire_many(250);
    ADVANCE_MS(3000);
    assert_int_equal(S.node.renewals, 5);
    assert_int_equal(S.node.batches[0].holds, FIRST);
    for (int i = 1; i < 4; i++)
        assert_int_equal(S.node.batches[i].holds, HF__BATCH_MAX);
    assert_int_equal(S.node.batches[4].holds, 250 - FIRST - 3 * HF__BATCH_MAX);
    ADVANCE_MS(27000);
    assert_int_equal(S.node.renewals, 5 * 10);
    assert_int_equal(S.node.renewed, 250 * 10);
    expect_all_safe(250);
    assert_int_equal(node_count(&S.node), 250);
    FINISH();
}

static void those_that_are_due_soon_go_along(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", RENEWED);
    ADVANCE_MS(370); /* an eighth of the interval is 375 */
    ACQUIRE(2, "y", RENEWED);
    ADVANCE_MS(10);
    ACQUIRE(3, "z", RENEWED);
    ADVANCE_MS(3000 - 380);
    assert_int_equal(S.node.renewals, 1);
    assert_int_equal(S.node.batches[0].holds, 2);
    ADVANCE_MS(379);
    assert_int_equal(S.node.renewals, 1);
    ADVANCE_MS(1);
    assert_int_equal(S.node.renewals, 2);
    assert_int_equal(S.node.batches[1].holds, 1);
    expect_all_safe(3);
    FINISH();
}

/* Of all of them, so many go with the first eight calls; the others wait for the next round. */
static void expect_two_rounds(int first, int all)
{
    ADVANCE_MS(3000);
    assert_int_equal(S.node.renewals, 8);
    assert_int_equal(S.node.renewed, first);
    ADVANCE_MS(8 * 4 - 1);
    assert_int_equal(S.node.renewals, 8);
    ADVANCE_MS(1);
    assert_int_equal(S.node.renewed, all);
    expect_all_safe(all);
}

static void eight_calls_are_a_round_and_the_next_has_a_distance(void **state)
{
    (void)state;
    SETUP();
    acquire_many(HERD);
    expect_two_rounds(ROUND, HERD);
    FINISH();
}

static void rounds_of_different_links_keep_apart(void **state)
{
    (void)state;
    SETUP(.links = 2);
    acquire_many(200); /* about half of them over each: two calls, and a short one before them */
    ADVANCE_MS(3000);
    assert_int_equal(S.node.renewals, 3);
    ADVANCE_MS(1);
    assert_int_equal(S.node.renewals, 3);
    ADVANCE_MS(1);
    assert_int_equal(S.node.renewals, 6);
    assert_int_equal(S.node.renewed, 200);
    expect_all_safe(200);
    FINISH();
}

/* A server that does not answer gets no more once a whole round has been late for an eighth of the
 * interval. */
static void a_late_round_is_waited_for(void **state)
{
    (void)state;
    SETUP();
    acquire_many(ROUND);
    ADVANCE_MS(400);
    acquire_from(ROUND + 1, HERD);
    S.mute = true;
    ADVANCE_MS(3000 + 50);
    assert_int_equal(S.node.renewed, ROUND);
    S.mute = false;
    stage_run();
    ADVANCE_MS(40);
    assert_int_equal(S.node.renewed, HERD);
    expect_all_safe(HERD);
    FINISH();
}

/* However many are due, all of them leave within a sixteenth of the interval. */
static void the_pace_follows_what_is_due(void **state)
{
    (void)state;
    SETUP();
    char name[32];
    for (int i = 1; i <= HERD; i++) {
        snprintf(name, sizeof(name), "lock-%d", i);
        ACQUIRE(i, name, .lease_ms = 480, .renew_interval_ms = 160);
        EXPECT(i, HF_OK);
    }
    ADVANCE_MS(160 + 160 / 16);
    assert_int_equal(S.node.renewed, HERD);
    expect_all_safe(HERD);
    FINISH();
}

static void a_release_is_not_behind_all_of_them(void **state)
{
    (void)state;
    SETUP();
    acquire_many(HERD);
    ADVANCE_MS(3000);
    RELEASE(1); /* between two rounds of the watchdog */
    EXPECT(1, HF_OK);
    assert_true(S.node.renewed < HERD);
    EXPECT_NO_KEY("lock-1");
    FINISH();
}

static void owners_are_renewed_along_with_threads(void **state)
{
    (void)state;
    char name[32];
    SETUP();
    for (int i = 1; i <= 120; i++) {
        snprintf(name, sizeof(name), "lock-%d", i);
        ACQUIRE(i, name, RENEWED, .owner = i % 3 != 0 ? "order 66" : NULL);
    }
    ADVANCE_MS(30000);
    assert_int_equal(S.node.renewed, 120 * 10);
    assert_int_equal(S.node.renewals, 6 * 10); /* two for plain ones, four for owners */
    assert_int_equal(S.node.batches[0].holds, FIRST);
    assert_int_equal(S.node.batches[1].holds, 40 - FIRST);
    assert_int_equal(S.node.batches[2].holds, HF__BATCH_SLOW);
    expect_all_safe(120);
    FINISH();
}

static void owners_have_shorter_rounds(void **state)
{
    (void)state;
    char name[32];
    SETUP();
    for (int i = 1; i <= 300; i++) {
        snprintf(name, sizeof(name), "lock-%d", i);
        ACQUIRE(i, name, RENEWED, .owner = "order 66");
    }
    expect_two_rounds(8 * HF__BATCH_SLOW, 300);
    FINISH();
}

static void calls_that_waited_for_a_connection_share_calls_too(void **state)
{
    (void)state;
    SETUP();
    char name[32];
    for (int i = 1; i <= 150; i++) {
        snprintf(name, sizeof(name), "lock-%d", i);
        ACQUIRE(i, name);
    }
    S.swallows = true;
    CUT();
    for (int i = 1; i <= 150; i++)
        EXTEND(i, 20000);
    S.swallows = false;
    ADVANCE_MS(1100);
    for (int i = 1; i <= 150; i++)
        EXPECT(i, HF_OK);
    assert_int_equal(S.node.renewals, 7);
    assert_int_equal(S.node.batches[0].holds, HF__BATCH_SLOW);
    FINISH();
}

static void a_stalled_link_delays_nobody_else(void **state)
{
    (void)state;
    SETUP(.links = 2);
    ACQUIRE(1, "x", RENEWED);
    S.stalled = S.wires[0].open ? 1 : 2; /* from now on */
    ACQUIRE(2, "foo", RENEWED);
    EXPECT(2, HF_OK);
    ADVANCE_MS(3000 + 1); /* as far as links keep apart */
    assert_int_equal(S.node.renewals, 1);
    ADVANCE_MS(5000);
    assert_int_equal(S.node.renewals, 2);
    EXPECT_QUIET(2);
    EXPECT_TOLD(1, HF_JEOPARDY, LATE);
    S.stalled = 0;
    ADVANCE_MS(800);
    EXPECT_TOLD(1, HF_SAFE, NONE);
    ADVANCE_MS(20000);
    expect_all_safe(2);
    FINISH();
}

/* ---- Together with calls ---- */

static void extend_during_a_renewal_gets_what_it_asked_for(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", RENEWED);
    S.mute = true;
    ADVANCE_MS(3000);
    EXTEND(1, 30000);
    EXPECT_WAITING(1);
    S.mute = false;
    stage_run();
    EXPECT(1, HF_OK);
    assert_int_equal(node_ttl_ms(&S.node, "x"), 30000);
    assert_int_equal(stage_remaining_ms(1), 30000 - 300 - 2);
    FINISH();
}

static void a_shorter_extend_does_not_shorten_what_the_watchdog_gives(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", RENEWED);
    ADVANCE_MS(2000);
    EXTEND(1, 100);
    EXPECT(1, HF_OK);
    ADVANCE_MS(30000);
    expect_all_safe(1);
    EXPECT_KEY("x");
    FINISH();
}

static void a_released_hold_is_not_renewed(void **state)
{
    (void)state;
    SETUP();
    acquire_many(3);
    RELEASE(2);
    S.mute = true;
    ADVANCE_MS(3000);
    assert_int_equal(S.node.batches[0].holds, 2);
    RELEASE(1); /* its renewal is under way */
    S.mute = false;
    stage_run();
    EXPECT(1, HF_OK);
    EXPECT_QUIET(1);
    ADVANCE_MS(3000);
    assert_int_equal(S.node.batches[1].holds, 1);
    FINISH();
}

static void a_renewal_that_waits_ends_with_the_release(void **state)
{
    (void)state;
    SETUP();
    acquire_many(3);
    S.swallows = true;
    CUT();
    ADVANCE_MS(3100);
    assert_int_equal(stage_let_go(1), HF_OK);
    RELEASE(2);
    S.swallows = false;
    ADVANCE_MS(1500);
    EXPECT(2, HF_OK);
    assert_int_equal(S.node.renewed, 1);
    EXPECT_NO_KEY("lock-1");
    EXPECT_NO_KEY("lock-2");
    EXPECT_KEY("lock-3");
    FINISH();
}

static void closing_ends_the_watchdog(void **state)
{
    (void)state;
    SETUP();
    acquire_many(3);
    CLOSE(4);
    EXPECT(4, HF_OK);
    ADVANCE_MS(30000);
    assert_int_equal(S.node.renewals, 0);
    for (int i = 1; i <= 3; i++)
        EXPECT_QUIET(i);
    assert_true(hf__is_never(hf__core_wake(S.core)));
    FINISH();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(renews_at_a_third_of_the_lease),
        cmocka_unit_test(renews_after_eight_of_ten_seconds),
        cmocka_unit_test(does_not_renew_if_not_asked_to),
        cmocka_unit_test(slow_answers_do_not_shift_it),
        cmocka_unit_test(a_callful_is_renewed_in_one),
        cmocka_unit_test(many_are_renewed_in_few_calls),
        cmocka_unit_test(those_that_are_due_soon_go_along),
        cmocka_unit_test(eight_calls_are_a_round_and_the_next_has_a_distance),
        cmocka_unit_test(rounds_of_different_links_keep_apart),
        cmocka_unit_test(a_late_round_is_waited_for),
        cmocka_unit_test(the_pace_follows_what_is_due),
        cmocka_unit_test(a_release_is_not_behind_all_of_them),
        cmocka_unit_test(owners_are_renewed_along_with_threads),
        cmocka_unit_test(owners_have_shorter_rounds),
        cmocka_unit_test(calls_that_waited_for_a_connection_share_calls_too),
        cmocka_unit_test(a_stalled_link_delays_nobody_else),
        cmocka_unit_test(extend_during_a_renewal_gets_what_it_asked_for),
        cmocka_unit_test(a_shorter_extend_does_not_shorten_what_the_watchdog_gives),
        cmocka_unit_test(a_released_hold_is_not_renewed),
        cmocka_unit_test(a_renewal_that_waits_ends_with_the_release),
        cmocka_unit_test(closing_ends_the_watchdog),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
