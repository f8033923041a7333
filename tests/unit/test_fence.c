/* SPDX-License-Identifier: MIT */
/* Fences: every grant of a lock has a larger one than the grant before, whatever became of the
 * counter or the clock at the server (but not both); and what is one grant has one fence, however
 * often it was asked for. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/name.h"
#include "stage.h"

#define S       the_stage
#define RENEWED .lease_ms = 10000, .renew_interval_ms = 3000

enum { HOUR_MS = 3600000 };

static bool is_marked(const char *name)
{
    return strchr(node_side(&S.node, 'f', name)->value.bytes, '+') != NULL;
}

/* Releases the hold of call 1 and acquires the lock again; the fence must have grown. */
static void expect_growth(const char *name, uint64_t than)
{
    RELEASE(1);
    EXPECT(1, HF_OK);
    ACQUIRE(1, name);
    EXPECT(1, HF_OK);
    assert_true(FENCE(1) > than);
    assert_true(FENCE(1) == stage_fence_of(name));
}

/* ---- It grows ---- */

static void every_grant_has_a_larger_one(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x");
    assert_true(FENCE(1) > 0);
    for (int i = 0; i < 20; i++) {
        expect_growth("x", FENCE(1)); /* in the same millisecond */
        if (i % 5 == 0)
            ADVANCE_MS(3);
    }
    FINISH();
}

static void after_an_expiry_it_is_larger(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", .lease_ms = 1000);
    ADVANCE_MS(2000);
    ACQUIRE(2, "x");
    EXPECT(2, HF_OK);
    assert_true(FENCE(2) > FENCE(1));
    FINISH();
}

static void after_a_lost_counter_it_is_larger(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x");
    uint64_t before = FENCE(1);
    ADVANCE_MS(1);
    node_delete(&S.node, node_side(&S.node, 'f', "x")->name.bytes);
    expect_growth("x", before);
    FINISH();
}

static void after_a_restart_it_is_larger(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x");
    ADVANCE_MS(1);
    node_restart(&S.node);
    CUT();
    ACQUIRE(2, "x");
    EXPECT(2, HF_OK);
    assert_true(FENCE(2) > FENCE(1));
    FINISH();
}

static void after_the_clock_was_set_back_it_is_larger(void **state)
{
    (void)state;
    SETUP();
    S.node.now_ms += 100 * HOUR_MS;
    ACQUIRE(1, "x");
    uint64_t before = FENCE(1);
    S.node.now_ms -= 50 * HOUR_MS;
    expect_growth("x", before);
    FINISH();
}

/* The counter's time counts from the fence, which is ahead of the clock now: else it would be gone
 * before the clock has caught up. */
static void a_counter_ahead_of_the_clock_outlasts_the_difference(void **state)
{
    (void)state;
    SETUP();
    S.node.now_ms += 100 * HOUR_MS;
    ACQUIRE(1, "x");
    S.node.now_ms -= 5 * HOUR_MS;
    expect_growth("x", FENCE(1));
    uint64_t before = FENCE(1);
    RELEASE(1);
    for (int hour = 0; hour < 5; hour++) {
        ADVANCE_MS(HOUR_MS);
        assert_null(node_side(&S.node, 'f', "x"));
        assert_non_null(node_side(&S.node, 'm', "")); /* the slot knows it */
    }
    ACQUIRE(2, "x");
    EXPECT(2, HF_OK);
    assert_true(FENCE(2) > before);
    FINISH();
}

/* Clients of 0.7 reserve fences ahead of the clock, and know them by the name of the lock only. */
static void what_0_7_has_reserved_stays_under_the_name(void **state)
{
    (void)state;
    SETUP();
    char side[64], text[32];
    uint64_t ahead = (uint64_t)(S.node.now_ms + 1000) * 1000;
    hf__slice name = {"x", 1};
    hf__side_key(side, HF__SLICE(""), 'f', name, hf__slot(name.bytes, name.length));
    snprintf(text, sizeof(text), "%llu", (unsigned long long)ahead);
    node_set(&S.node, side, text, HOUR_MS);
    ACQUIRE(1, "x");
    assert_true(FENCE(1) == ahead + 1);
    RELEASE(1);
    EXPECT(1, HF_OK);
    assert_true(stage_fence_of("x") == ahead + 1);
    ADVANCE_MS(1002); /* the clock has passed it */
    assert_null(node_side(&S.node, 'f', "x"));
    FINISH();
}

static void a_long_hold_keeps_its_counter_alive(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", RENEWED);
    ACQUIRE(2, "y", RENEWED, .owner = "me");
    uint64_t before = FENCE(1);
    for (int hour = 0; hour < 3; hour++) {
        ADVANCE_MS(HOUR_MS);
        assert_true(node_side(&S.node, 'f', "x")->expires_ms > S.node.now_ms + HOUR_MS / 4);
        assert_true(node_side(&S.node, 'f', "y")->expires_ms > S.node.now_ms + HOUR_MS / 4);
    }
    assert_true(FENCE(1) == before);
    RELEASE(1);
    S.node.now_ms -= 3 * HOUR_MS + 1000; /* to before the grant */
    ACQUIRE(3, "x");
    EXPECT(3, HF_OK);
    assert_true(FENCE(3) > before);
    FINISH();
}

static void the_counter_is_kept_for_an_hour_and_for_two_leases(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", RENEWED);
    ACQUIRE(2, "y", .lease_ms = 5 * HOUR_MS);
    int64_t now = S.node.now_ms;
    assert_int_equal(node_side(&S.node, 'f', "x")->expires_ms, now + HOUR_MS);
    assert_int_equal(node_side(&S.node, 'f', "y")->expires_ms, now + 10 * HOUR_MS);
    EXTEND(1, 3 * HOUR_MS);
    assert_int_equal(node_side(&S.node, 'f', "x")->expires_ms, now + 6 * HOUR_MS);
    FINISH();
}

/* Many such locks may be left to expire; the slot knows their fences for an hour. */
static void without_renewals_the_name_is_kept_for_two_leases_only(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", .lease_ms = 10000);
    int64_t now = S.node.now_ms;
    assert_int_equal(node_side(&S.node, 'f', "x")->expires_ms, now + 20000);
    assert_int_equal(node_side(&S.node, 'm', "")->expires_ms, now + HOUR_MS);
    EXTEND(1, 30000);
    assert_int_equal(node_side(&S.node, 'f', "x")->expires_ms, now + 60000);
    FINISH();
}

/* Nothing is left under the name of a lock that was released, and its next fence is larger all the
 * same, also if the clock was set back. */
static void a_released_lock_leaves_its_fence_to_the_slot(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x");
    uint64_t before = FENCE(1);
    RELEASE(1);
    EXPECT(1, HF_OK);
    assert_null(node_side(&S.node, 'f', "x"));
    assert_int_equal(strtoull(node_side(&S.node, 'm', "")->value.bytes, NULL, 10), before);
    S.node.now_ms -= HOUR_MS;
    ACQUIRE(2, "x");
    assert_true(FENCE(2) > before);
    FINISH();
}

static void names_in_braces_share_the_mark_of_their_slot_alone(void **state)
{
    (void)state;
    SETUP();
    S.node.now_ms += HOUR_MS;
    ACQUIRE(1, "x");
    S.node.now_ms -= HOUR_MS;
    ACQUIRE(2, "{x}");
    EXPECT(2, HF_OK);
    assert_true(FENCE(2) == FENCE(1) + 1);
    assert_int_equal(stage_fence_at(0, "x"), FENCE(1));
    assert_int_equal(stage_fence_at(0, "{x}"), FENCE(2));
    FINISH();
}

static void a_foreign_key_in_between_does_not_matter(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x");
    uint64_t before = FENCE(1);
    RELEASE(1);
    node_set(&S.node, "x", "somebody", 1000);
    ACQUIRE(1, "x", .wait_ms = 5000);
    EXPECT_WAITING(1);
    ADVANCE_MS(1100);
    EXPECT(1, HF_OK);
    assert_true(FENCE(1) > before);
    FINISH();
}

/* ---- It is the same ---- */

static void a_repeated_request_has_the_same_one(void **state)
{
    (void)state;
    static const char *const owners[] = {NULL, "me"};
    for (int i = 0; i < 2; i++) {
        SETUP();
        ACQUIRE(1, "warm");
        S.mute = true;
        ACQUIRE(2, "x", .owner = owners[i]);
        uint64_t minted = stage_fence_of("x");
        ADVANCE_MS(100);
        CUT();
        S.mute = false;
        ADVANCE_MS(30);
        EXPECT(2, HF_OK);
        assert_int_equal(S.node.acquires, 3);
        assert_true(FENCE(2) == minted);
        assert_true(stage_fence_of("x") == minted);
        FINISH();
    }
}

/* Its key survived the loss of the counter; what it gets then is new, and larger than the first. */
static void a_repeated_request_without_a_counter_gets_a_new_one(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "warm");
    S.mute = true;
    ACQUIRE(2, "x");
    uint64_t minted = stage_fence_of("x");
    node_delete(&S.node, node_side(&S.node, 'f', "x")->name.bytes);
    ADVANCE_MS(100);
    CUT();
    S.mute = false;
    ADVANCE_MS(30);
    EXPECT(2, HF_OK);
    assert_true(FENCE(2) > minted);
    assert_true(FENCE(2) == stage_fence_of("x"));
    FINISH();
}

static void renewals_do_not_change_it(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", RENEWED);
    uint64_t before = FENCE(1);
    ADVANCE_MS(60000);
    EXTEND(1, 60000);
    EXPECT(1, HF_OK);
    assert_true(FENCE(1) == before && stage_fence_of("x") == before);
    FINISH();
}

static void it_can_be_asked_after_a_loss(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x");
    uint64_t before = FENCE(1);
    ADVANCE_MS(20000);
    EXPECT_STATE(1, HF_LOST);
    assert_true(FENCE(1) == before);
    FINISH();
}

static void the_largest_number_is_a_fence(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "warm");
    node_say(&S.node, "*2\r\n:9007199254740991\r\n:10000\r\n"); /* Lua counts to 2^53 */
    ACQUIRE(2, "x");
    EXPECT(2, HF_OK);
    assert_true(FENCE(2) == (UINT64_C(1) << 53) - 1);
    RELEASE(2);
    EXPECT(2, HF_ELOST); /* the server does not have it */
    FINISH();
}

/* ---- The mark of a tombstone ---- */

/* Leaves one: a copy of an acquire is still in the network when its hold is given back. */
static void leave_a_tombstone(const char *name)
{
    S.delays = true;
    ACQUIRE(2, name);
    CUT();
    S.delays = false;
    ADVANCE_MS(20);
    EXPECT(2, HF_OK);
    RELEASE(2);
    EXPECT(2, HF_OK);
    assert_int_equal(S.node.last_tombstone_ms, 10000);
}

static void a_marked_fence_grows_too(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "warm");
    leave_a_tombstone("x");
    uint64_t before = stage_fence_of("x");
    assert_true(is_marked("x"));
    ACQUIRE(3, "x", RENEWED);
    EXPECT(3, HF_OK);
    assert_true(FENCE(3) > before);
    assert_true(is_marked("x")); /* as long as there are tombstones */
    stage_deliver_late();
    assert_true(FENCE(3) == stage_fence_of("x"));
    ADVANCE_MS(11000); /* the tombstone is over */
    EXPECT_STATE(3, HF_SAFE);
    before = FENCE(3);
    RELEASE(3);
    EXPECT(3, HF_OK);
    ACQUIRE(3, "x");
    assert_true(FENCE(3) > before);
    assert_false(is_marked("x"));
    FINISH();
}

static void a_marked_fence_is_repeated_without_its_mark(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "warm");
    leave_a_tombstone("x");
    S.mute = true;
    ACQUIRE(3, "x");
    uint64_t minted = stage_fence_of("x");
    CUT();
    S.mute = false;
    ADVANCE_MS(30);
    EXPECT(3, HF_OK);
    assert_true(FENCE(3) == minted);
    BREAK(4, "x", node_get(&S.node, "x"), minted);
    EXPECT(4, HF_OK);
    assert_true(ANSWER(4)->number > minted);
    assert_true(is_marked("x"));
    stage_deliver_late(); /* the copy of the hold that was released first */
    EXPECT_NO_KEY("x");
    FINISH();
}

/* A plain renewal does not keep it, whatever one before it was to do and could not. */
static void a_refused_renewal_keeps_nothing(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", .lease_ms = 9000, .renew_interval_ms = 3000);
    int64_t first_ms = node_side(&the_stage.node, 'f', "x")->expires_ms;
    ADVANCE_MS(890 * 1000);
    assert_int_equal(node_side(&the_stage.node, 'f', "x")->expires_ms, first_ms);
    node_say(&the_stage.node, "-BUSY Redis is busy running a script.\r\n");
    EXTEND(1, 9000);
    EXPECT(1, HF_EUNAVAILABLE);
    ADVANCE_MS(20 * 1000); /* a quarter of an hour is over */
    assert_true(node_side(&the_stage.node, 'f', "x")->expires_ms >= first_ms + 900 * 1000);
    FINISH();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_grant_has_a_larger_one),
        cmocka_unit_test(after_an_expiry_it_is_larger),
        cmocka_unit_test(after_a_lost_counter_it_is_larger),
        cmocka_unit_test(after_a_restart_it_is_larger),
        cmocka_unit_test(after_the_clock_was_set_back_it_is_larger),
        cmocka_unit_test(a_counter_ahead_of_the_clock_outlasts_the_difference),
        cmocka_unit_test(what_0_7_has_reserved_stays_under_the_name),
        cmocka_unit_test(a_long_hold_keeps_its_counter_alive),
        cmocka_unit_test(the_counter_is_kept_for_an_hour_and_for_two_leases),
        cmocka_unit_test(names_in_braces_share_the_mark_of_their_slot_alone),
        cmocka_unit_test(without_renewals_the_name_is_kept_for_two_leases_only),
        cmocka_unit_test(a_released_lock_leaves_its_fence_to_the_slot),
        cmocka_unit_test(a_foreign_key_in_between_does_not_matter),
        cmocka_unit_test(a_repeated_request_has_the_same_one),
        cmocka_unit_test(a_repeated_request_without_a_counter_gets_a_new_one),
        cmocka_unit_test(renewals_do_not_change_it),
        cmocka_unit_test(it_can_be_asked_after_a_loss),
        cmocka_unit_test(the_largest_number_is_a_fence),
        cmocka_unit_test(a_marked_fence_grows_too),
        cmocka_unit_test(a_marked_fence_is_repeated_without_its_mark),
        cmocka_unit_test(a_refused_renewal_keeps_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
