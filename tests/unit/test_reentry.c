/* SPDX-License-Identifier: MIT */
/* A thread that takes a lock it has already: another handle on the same hold, without any message.
 * Whoever else asks for it asks the server. The last handle that is given back releases the lock.
 */
#include <string.h>

#include "core/state.h" /* only to see whether a handle is a hold of its own */
#include "stage.h"

#define S       the_stage
#define ENTERED .reenters = true
#define RENEWED .lease_ms = 10000, .renew_interval_ms = 3000

/* Handles 1 to `count` on one hold of "x". */
static void enter(int count)
{
    for (int i = 1; i <= count; i++) {
        ACQUIRE(i, "x", ENTERED, RENEWED);
        EXPECT(i, HF_OK);
    }
}

/* ---- Entering ---- */

static void needs_no_message(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", ENTERED);
    ADVANCE_MS(500);
    S.refuses = true;
    CUT(); /* there is nobody to ask */
    int writes = S.writes, connects = S.connects;
    ACQUIRE(2, "x", ENTERED);
    EXPECT(2, HF_OK);
    assert_int_equal(S.writes, writes);
    assert_int_equal(S.connects, connects);
    assert_true(FENCE(1) == FENCE(2));
    assert_int_equal(stage_remaining_ms(1), stage_remaining_ms(2));
    EXPECT_STATE(2, HF_SAFE);
    FINISH();
}

static void does_not_make_the_lease_longer(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", ENTERED, .lease_ms = 5000);
    ACQUIRE(2, "x", ENTERED, .lease_ms = 60000);
    assert_int_equal(stage_remaining_ms(2), 5000 - 50 - 2);
    EXTEND(2, 30000); /* that does, for both */
    EXPECT(2, HF_OK);
    assert_int_equal(stage_remaining_ms(1), 30000 - 300 - 2);
    FINISH();
}

static void keeps_the_watchdog_of_the_first(void **state)
{
    (void)state;
    SETUP();
    enter(1);
    ACQUIRE(2, "x", ENTERED); /* wants no renewal */
    ADVANCE_MS(30000);
    assert_int_equal(S.node.renewals, 10);
    EXPECT_STATE(2, HF_SAFE);
    FINISH();
}

/* Everything but the same thread, the same name and a valid hold goes to the server. */
static void others_ask_the_server(void **state)
{
    (void)state;
    SETUP();
    enter(1);
    ACQUIRE(2, "x", ENTERED, .thread = 2);
    EXPECT(2, HF_EBUSY);
    ACQUIRE(3, "x"); /* without re-entry */
    EXPECT(3, HF_EBUSY);
    ACQUIRE(4, "x", ENTERED, .owner = "me");
    EXPECT(4, HF_EBUSY);
    assert_int_equal(S.node.acquires, 4);
    ACQUIRE(5, "y", ENTERED);
    EXPECT(5, HF_OK);
    ACQUIRE(6, "{x}", ENTERED);
    EXPECT(6, HF_OK);
    ACQUIRE(7, "xx", ENTERED);
    EXPECT(7, HF_OK);
    assert_int_equal(S.node.acquires, 7);
    FINISH();
}

static void a_first_one_without_reentry_is_not_entered(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x");
    ACQUIRE(2, "x", ENTERED);
    EXPECT(2, HF_EBUSY);
    ACQUIRE(3, "y", .owner = "me", ENTERED);
    ACQUIRE(4, "y", ENTERED);
    EXPECT(4, HF_EBUSY);
    FINISH();
}

static void what_has_expired_is_not_entered(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", ENTERED, .lease_ms = 1000);
    uint64_t fence = FENCE(1);
    PAUSE_MS(2000); /* nobody has noticed yet */
    ACQUIRE(2, "x", ENTERED);
    EXPECT(2, HF_OK);
    assert_true(FENCE(2) > fence);
    EXPECT_STATE(1, HF_LOST);
    RELEASE(1);
    EXPECT(1, HF_ELOST);
    EXPECT_KEY("x");
    RELEASE(2);
    EXPECT(2, HF_OK);
    FINISH();
}

static void what_is_lost_is_not_entered(void **state)
{
    (void)state;
    SETUP();
    enter(2);
    node_delete(&S.node, "x");
    ADVANCE_MS(3000);
    EXPECT_TOLD(1, HF_LOST, GONE);
    ACQUIRE(3, "x", ENTERED);
    EXPECT(3, HF_OK);
    assert_true(FENCE(3) > FENCE(1));
    ACQUIRE(4, "x", ENTERED); /* the new one */
    EXPECT(4, HF_OK);
    assert_true(FENCE(4) == FENCE(3));
    assert_int_equal(S.node.acquires, 2);
    FINISH();
}

static void what_is_not_granted_yet_is_not_entered(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "warm");
    S.mute = true;
    ACQUIRE(2, "x", ENTERED, .wait_ms = 5000);
    ACQUIRE(3, "x", ENTERED);
    EXPECT_WAITING(3);
    S.mute = false;
    stage_run();
    EXPECT(2, HF_OK);
    EXPECT(3, HF_EBUSY);
    FINISH();
}

static void what_is_being_released_is_not_entered(void **state)
{
    (void)state;
    SETUP();
    enter(1);
    uint64_t fence = FENCE(1);
    S.mute = true;
    assert_int_equal(stage_let_go(1), HF_OK);
    ACQUIRE(2, "x", ENTERED);
    EXPECT_WAITING(2);
    S.mute = false;
    stage_run();
    EXPECT(2, HF_OK);
    assert_true(FENCE(2) > fence);
    FINISH();
}

static void a_cancelled_or_closed_call_does_not_enter(void **state)
{
    (void)state;
    SETUP();
    enter(1);
    S.deaf = true;
    CLOSE(2);
    ACQUIRE(3, "x", ENTERED);
    EXPECT(3, HF_ECLOSED);
    FINISH();
}

/* ---- Leaving ---- */

static void only_the_last_release_is_sent(void **state)
{
    (void)state;
    static const int orders[][3] = {{1, 2, 3}, {1, 3, 2}, {2, 1, 3},
                                    {2, 3, 1}, {3, 1, 2}, {3, 2, 1}};
    for (size_t i = 0; i < 2 * sizeof(orders) / sizeof(orders[0]); i++) {
        const int *order = orders[i / 2];
        SETUP();
        enter(3);
        for (int n = 0; n < 3; n++) {
            EXPECT_KEY("x");
            assert_int_equal(S.node.releases, 0);
            EXPECT_STATE(order[n], HF_SAFE);
            if (i % 2 == 0) {
                RELEASE(order[n]);
                EXPECT(order[n], HF_OK);
            } else {
                assert_int_equal(stage_let_go(order[n]), HF_OK);
            }
        }
        assert_int_equal(S.node.releases, 1);
        EXPECT_NO_KEY("x");
        assert_int_equal(S.core->holds.count, 0);
        FINISH();
    }
}

static void may_be_entered_again_after_the_first_left(void **state)
{
    (void)state;
    SETUP();
    enter(2);
    uint64_t fence = FENCE(1);
    RELEASE(1);
    ACQUIRE(1, "x", ENTERED);
    EXPECT(1, HF_OK);
    assert_true(FENCE(1) == fence);
    RELEASE(2);
    EXTEND(1, 20000);
    EXPECT(1, HF_OK);
    RELEASE(1);
    EXPECT(1, HF_OK);
    assert_int_equal(S.node.acquires, 1);
    EXPECT_NO_KEY("x");
    FINISH();
}

static void renewals_go_on_until_the_last_release(void **state)
{
    (void)state;
    SETUP();
    enter(3);
    RELEASE(1);
    ADVANCE_MS(6000);
    assert_int_equal(S.node.renewed, 2);
    RELEASE(3);
    ADVANCE_MS(6000);
    assert_int_equal(S.node.renewed, 4);
    RELEASE(2);
    ADVANCE_MS(6000);
    assert_int_equal(S.node.renewed, 4);
    FINISH();
}

static void every_handle_of_a_lost_hold_says_so(void **state)
{
    (void)state;
    SETUP();
    enter(3);
    node_set(&S.node, "x", "another", 60000);
    ADVANCE_MS(3000);
    assert_int_equal(stage_let_go(2), HF_ELOST);
    RELEASE(1);
    EXPECT(1, HF_ELOST);
    RELEASE(3);
    EXPECT(3, HF_ELOST);
    assert_int_equal(S.node.releases, 1);
    assert_string_equal(node_get(&S.node, "x"), "another");
    FINISH();
}

static void an_extend_goes_on_when_another_handle_leaves(void **state)
{
    (void)state;
    SETUP();
    enter(3);
    S.mute = true;
    EXTEND(2, 20000);
    RELEASE(1);
    EXPECT(1, HF_OK);
    assert_int_equal(stage_let_go(3), HF_OK);
    EXPECT_WAITING(2);
    S.mute = false;
    stage_run();
    EXPECT(2, HF_OK);
    assert_int_equal(stage_remaining_ms(2), 20000 - 200 - 2);
    RELEASE(2);
    EXPECT(2, HF_OK);
    FINISH();
}

/* ---- Being told ---- */

static void every_handle_is_told_once(void **state)
{
    (void)state;
    SETUP();
    enter(3);
    S.deaf = true;
    ADVANCE_MS(3500);
    for (int i = 1; i <= 3; i++)
        EXPECT_TOLD(i, HF_JEOPARDY, LATE);
    RELEASE(2);
    EXPECT(2, HF_OK);
    ACQUIRE(4, "x", ENTERED); /* comes into the middle of it: nothing changes for this one yet */
    EXPECT_QUIET(4);
    EXPECT_STATE(4, HF_JEOPARDY);
    S.deaf = false;
    ADVANCE_MS(1000);
    EXPECT_TOLD(1, HF_SAFE, NONE);
    EXPECT_TOLD(3, HF_SAFE, NONE);
    EXPECT_TOLD(4, HF_SAFE, NONE);
    for (int i = 1; i <= 4; i++)
        EXPECT_QUIET(i);
    FINISH();
}

static void the_hold_lives_on_when_its_own_handle_is_gone(void **state)
{
    (void)state;
    SETUP();
    enter(2);
    RELEASE(1);
    node_delete(&S.node, "x");
    ADVANCE_MS(3000);
    EXPECT_TOLD(2, HF_LOST, GONE);
    EXPECT_QUIET(1);
    RELEASE(2);
    EXPECT(2, HF_ELOST);
    FINISH();
}

/* ---- The end of the client ---- */

static void closing_with_handles_open(void **state)
{
    (void)state;
    SETUP();
    enter(3);
    RELEASE(1); /* the first of them, before */
    CLOSE(4);
    EXPECT(4, HF_OK);
    EXPECT_NO_KEY("x");
    EXPECT_STATE(2, HF_LOST);
    RELEASE(3);
    EXPECT(3, HF_ECLOSED);
    assert_int_equal(stage_let_go(2), HF_ECLOSED);
    assert_int_equal(S.node.releases, 1);
    FINISH();
}

static void abandon(int call)
{
    hf__hold_abandon(stage_hold(call));
    S.holds[call] = NULL;
    S.calls[call] = (hf__call){.kind = HF__CALL_EXTEND};
}

/* Handles are given up in every order, with the end of the core in between. */
static void abandoned_in_any_order(void **state)
{
    (void)state;
    static const int orders[][3] = {{1, 2, 3}, {1, 3, 2}, {2, 1, 3},
                                    {2, 3, 1}, {3, 1, 2}, {3, 2, 1}};
    for (int i = 0; i < 6; i++) {
        for (int before = 0; before <= 3; before++) {
            for (int closed = 0; closed < 2; closed++) {
                SETUP();
                enter(3);
                if (closed)
                    CLOSE(4);
                for (int n = 0; n < before; n++)
                    abandon(orders[i][n]);
                hf__core_free(S.core);
                S.core = NULL;
                for (int n = before; n < 3; n++) {
                    assert_int_equal(stage_remaining_ms(orders[i][n]), 0);
                    EXPECT_STATE(orders[i][n], HF_LOST);
                    abandon(orders[i][n]);
                }
                FINISH();
            }
        }
    }
}

/* The core goes on for a while after that, and must not look at what is gone. */
static void abandoned_handles_are_forgotten(void **state)
{
    (void)state;
    for (int first = 1; first <= 3; first++) {
        SETUP();
        enter(3);
        abandon(first);
        S.deaf = true;
        ADVANCE_MS(3500);
        for (int i = 1; i <= 3; i++)
            if (i != first)
                EXPECT_TOLD(i, HF_JEOPARDY, LATE);
        ADVANCE_MS(10000);
        CLOSE(4);
        ADVANCE_MS(5000);
        FINISH();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(needs_no_message),
        cmocka_unit_test(does_not_make_the_lease_longer),
        cmocka_unit_test(keeps_the_watchdog_of_the_first),
        cmocka_unit_test(others_ask_the_server),
        cmocka_unit_test(a_first_one_without_reentry_is_not_entered),
        cmocka_unit_test(what_has_expired_is_not_entered),
        cmocka_unit_test(what_is_lost_is_not_entered),
        cmocka_unit_test(what_is_not_granted_yet_is_not_entered),
        cmocka_unit_test(what_is_being_released_is_not_entered),
        cmocka_unit_test(a_cancelled_or_closed_call_does_not_enter),
        cmocka_unit_test(only_the_last_release_is_sent),
        cmocka_unit_test(may_be_entered_again_after_the_first_left),
        cmocka_unit_test(renewals_go_on_until_the_last_release),
        cmocka_unit_test(every_handle_of_a_lost_hold_says_so),
        cmocka_unit_test(an_extend_goes_on_when_another_handle_leaves),
        cmocka_unit_test(every_handle_is_told_once),
        cmocka_unit_test(the_hold_lives_on_when_its_own_handle_is_gone),
        cmocka_unit_test(closing_with_handles_open),
        cmocka_unit_test(abandoned_in_any_order),
        cmocka_unit_test(abandoned_handles_are_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
