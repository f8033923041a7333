/* SPDX-License-Identifier: MIT */
/* Locks that are shared by everybody who names the same owner: each has a hold of its own, with its
 * own lease, and the fence of the first; the last release or the end of the last lease frees it.
 * Each acquire asks the server, so holds of one client stand for those of many processes here. */
#include <stdio.h>
#include <string.h>

#include "stage.h"

#define S  the_stage
#define ME .owner = "request 7"

static size_t holders_at_server(const char *name)
{
    node_key *holders = node_side(&S.node, 'h', name);
    return holders != NULL ? holders->member_count : 0;
}

/* ---- Joining ---- */

static void two_share_a_lock(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", ME);
    EXPECT(1, HF_OK);
    assert_string_equal(node_get(&S.node, "x"), "request 7");
    ADVANCE_MS(1000);
    ACQUIRE(2, "x", ME, .thread = 2);
    EXPECT(2, HF_OK);
    assert_int_equal(S.node.acquires, 2); /* both asked */
    assert_true(FENCE(1) == FENCE(2));
    assert_int_equal(holders_at_server("x"), 2);
    FINISH();
}

static void each_has_its_own_time(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", ME, .lease_ms = 10000);
    ADVANCE_MS(1000);
    ACQUIRE(2, "x", ME, .lease_ms = 5000);
    assert_int_equal(stage_remaining_ms(1), 10000 - 100 - 2 - 1000);
    assert_int_equal(stage_remaining_ms(2), 5000 - 50 - 2);
    ADVANCE_MS(5000);
    EXPECT_TOLD(2, HF_LOST, EXPIRED);
    EXPECT_STATE(1, HF_SAFE);
    EXPECT_KEY("x");
    FINISH();
}

static void another_owner_is_busy(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", ME);
    ACQUIRE(2, "x", .owner = "request 8");
    EXPECT(2, HF_EBUSY);
    EXPECT_TEXT(2, "request 7");
    ACQUIRE(3, "x", .reenters = true); /* a thread without an owner, even the same */
    EXPECT(3, HF_EBUSY);
    ACQUIRE(4, "y");
    ACQUIRE(5, "y", ME);
    EXPECT(5, HF_EBUSY);
    FINISH();
}

/* Somebody else's key, which happens to have our owner's name in it. */
static void the_owners_name_without_holders_is_busy(void **state)
{
    (void)state;
    SETUP();
    node_set(&S.node, "x", "request 7", 5000);
    ACQUIRE(1, "x", ME);
    EXPECT(1, HF_EBUSY);
    ACQUIRE(2, "x", ME, .wait_ms = 20000);
    ADVANCE_MS(5100);
    EXPECT(2, HF_OK); /* that was the end of it */
    assert_int_equal(holders_at_server("x"), 1);
    FINISH();
}

static void a_name_whose_holders_have_all_expired_is_busy(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", ME, .lease_ms = 1000);
    node_find(&S.node, "x", 1)->expires_ms = -1; /* somebody has made it last for ever */
    node_side(&S.node, 'h', "x")->expires_ms = -1;
    ADVANCE_MS(2000);
    ACQUIRE(2, "x", ME);
    EXPECT(2, HF_EBUSY);
    FINISH();
}

static void a_lost_answer_does_not_count_twice(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", ME);
    S.mute = true;
    ACQUIRE(2, "x", ME);
    CUT();
    S.mute = false;
    ADVANCE_MS(30);
    EXPECT(2, HF_OK);
    assert_int_equal(S.node.acquires, 3);
    assert_int_equal(holders_at_server("x"), 2);
    RELEASE(1);
    RELEASE(2);
    EXPECT(2, HF_OK);
    EXPECT_NO_KEY("x");
    FINISH();
}

/* ---- Leases ---- */

static void a_shorter_lease_does_not_shorten_the_lock(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", ME, .lease_ms = 10000);
    ACQUIRE(2, "x", ME, .lease_ms = 1000);
    assert_int_equal(node_ttl_ms(&S.node, "x"), 10000);
    EXTEND(2, 2000);
    EXPECT(2, HF_OK);
    assert_int_equal(node_ttl_ms(&S.node, "x"), 10000);
    assert_int_equal(stage_remaining_ms(2), 2000 - 20 - 2);
    assert_int_equal(stage_remaining_ms(1), 10000 - 100 - 2);
    FINISH();
}

static void a_longer_lease_makes_the_lock_last(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", ME, .lease_ms = 1000);
    ACQUIRE(2, "x", ME, .lease_ms = 10000);
    assert_int_equal(node_ttl_ms(&S.node, "x"), 10000);
    assert_int_equal(stage_remaining_ms(1), 1000 - 10 - 2); /* not its own */
    ADVANCE_MS(5000);
    EXPECT_KEY("x");
    EXPECT_STATE(1, HF_LOST);
    FINISH();
}

static void each_is_renewed_for_itself(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", ME, .lease_ms = 3000, .renew_interval_ms = 1000);
    ACQUIRE(2, "x", ME, .lease_ms = 3000);
    ADVANCE_MS(4000);
    EXPECT_STATE(1, HF_SAFE);
    EXPECT_TOLD(2, HF_LOST, EXPIRED);
    ADVANCE_MS(20000);
    EXPECT_STATE(1, HF_SAFE);
    EXPECT_QUIET(1);
    RELEASE(1);
    EXPECT(1, HF_OK);
    EXPECT_NO_KEY("x");
    FINISH();
}

/* Told by the server that this one's hold is over, although the lock is held by its owner. */
static void one_may_be_lost_without_the_other(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", ME, .lease_ms = 10000, .renew_interval_ms = 3000);
    ACQUIRE(2, "x", ME, .lease_ms = 10000, .renew_interval_ms = 3000);
    node_key *holders = node_side(&S.node, 'h', "x");
    for (size_t i = 0; i < holders->member_count; i++)
        if (strstr(holders->members[i].name.bytes, ":2@") != NULL)
            holders->members[i].score = S.node.now_ms;
    ADVANCE_MS(3000);
    EXPECT_TOLD(2, HF_LOST, GONE);
    EXPECT_STATE(1, HF_SAFE);
    RELEASE(2);
    EXPECT(2, HF_ELOST);
    EXPECT_KEY("x");
    FINISH();
}

/* ---- Leaving ---- */

static void the_last_release_frees(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", ME);
    ACQUIRE(2, "x", ME);
    ACQUIRE(3, "x", ME);
    RELEASE(2);
    EXPECT(2, HF_OK);
    EXPECT_KEY("x");
    assert_int_equal(stage_let_go(1), HF_OK);
    EXPECT_KEY("x");
    RELEASE(3);
    EXPECT(3, HF_OK);
    EXPECT_NO_KEY("x");
    assert_int_equal(holders_at_server("x"), 0);
    FINISH();
}

static void a_release_leaves_the_lock_for_as_long_as_the_rest_needs_it(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", ME, .lease_ms = 60000);
    ACQUIRE(2, "x", ME, .lease_ms = 2000);
    RELEASE(1);
    EXPECT(1, HF_OK);
    assert_int_equal(node_ttl_ms(&S.node, "x"), 2000);
    EXTEND(2, 5000);
    EXPECT(2, HF_OK);
    assert_int_equal(node_ttl_ms(&S.node, "x"), 5000);
    FINISH();
}

/* The second process is killed: its hold is never released and never renewed. */
static void a_dead_sharer_keeps_it_for_its_own_lease_only(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", ME, .lease_ms = 60000, .renew_interval_ms = 3000);
    ACQUIRE(2, "x", ME, .lease_ms = 5000); /* dies */
    ADVANCE_MS(1000);
    RELEASE(1);
    EXPECT(1, HF_OK);
    EXPECT_KEY("x");
    ACQUIRE(3, "x", .wait_ms = 20000);
    ADVANCE_MS(3999);
    EXPECT_WAITING(3);
    ADVANCE_MS(20);
    EXPECT(3, HF_OK);
    assert_true(FENCE(3) > FENCE(2));
    FINISH();
}

static void a_sharer_that_died_long_ago_does_not_keep_it(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", ME, .lease_ms = 60000, .renew_interval_ms = 3000);
    ACQUIRE(2, "x", ME, .lease_ms = 5000);
    ADVANCE_MS(10000);
    RELEASE(1);
    EXPECT(1, HF_OK);
    EXPECT_NO_KEY("x");
    FINISH();
}

static void a_second_copy_that_finds_nothing_knows_nothing(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", ME);
    ACQUIRE(2, "x", ME);
    S.mute = true;
    RELEASE(1);
    CUT();
    S.mute = false;
    ADVANCE_MS(30);
    EXPECT(1, HF_EUNKNOWN);
    EXPECT_KEY("x"); /* the other's */
    assert_int_equal(holders_at_server("x"), 1);
    FINISH();
}

static void a_late_copy_joins_nothing(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", ME);
    S.delays = true;
    ACQUIRE(2, "x", ME);
    CUT();
    S.delays = false;
    ADVANCE_MS(30);
    EXPECT(2, HF_OK);
    RELEASE(2);
    EXPECT(2, HF_OK);
    stage_deliver_late();
    assert_int_equal(holders_at_server("x"), 1);
    RELEASE(1);
    EXPECT_NO_KEY("x");
    stage_deliver_late();
    EXPECT_NO_KEY("x");
    FINISH();
}

static void closing_releases_all_of_them(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", ME);
    ACQUIRE(2, "x", ME);
    CLOSE(3);
    EXPECT(3, HF_OK);
    EXPECT_NO_KEY("x");
    assert_int_equal(S.node.releases, 2);
    FINISH();
}

static void our_own_delayed_release_does_not_refuse_another_owner(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", ME);
    node_say(&S.node, "-BUSY Redis is busy running a script.\r\n");
    assert_int_equal(stage_let_go(1), HF_OK);
    ACQUIRE(2, "x", .owner = "request 8");
    EXPECT(2, HF_OK);
    FINISH();
}

/* The release that pauses is of one sharer; the lock stays with the other. */
static void a_delayed_release_of_one_sharer_is_no_storm(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", ME);
    ACQUIRE(2, "x", ME);
    node_say(&S.node, "-BUSY Redis is busy running a script.\r\n");
    assert_int_equal(stage_let_go(1), HF_OK);
    int before = S.node.acquires;
    ACQUIRE(3, "x", .owner = "request 8");
    EXPECT(3, HF_EBUSY);
    assert_in_range(S.node.acquires - before, 1, 3);
    FINISH();
}

static void the_longest_owner_and_label(void **state)
{
    (void)state;
    char owner[HF_OWNER_MAX + 1], label[HF_LABEL_MAX + 1], name[HF_NAME_MAX + 1];
    SETUP();
    memset(owner, 'o', sizeof(owner) - 1);
    memset(label, 'l', sizeof(label) - 1);
    memset(name, 'n', sizeof(name) - 1);
    owner[sizeof(owner) - 1] = label[sizeof(label) - 1] = name[sizeof(name) - 1] = '\0';
    ACQUIRE(1, name, .owner = owner, .label = label, .lease_ms = 3000, .renew_interval_ms = 1000);
    EXPECT(1, HF_OK);
    assert_string_equal(node_get(&S.node, name), owner);
    assert_non_null(strstr(node_side(&S.node, 'h', name)->members[0].name.bytes, label));
    ADVANCE_MS(10000);
    EXPECT_STATE(1, HF_SAFE);
    RELEASE(1);
    EXPECT(1, HF_OK);
    EXPECT_NO_KEY(name);
    FINISH();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_share_a_lock),
        cmocka_unit_test(each_has_its_own_time),
        cmocka_unit_test(another_owner_is_busy),
        cmocka_unit_test(the_owners_name_without_holders_is_busy),
        cmocka_unit_test(a_name_whose_holders_have_all_expired_is_busy),
        cmocka_unit_test(a_lost_answer_does_not_count_twice),
        cmocka_unit_test(a_shorter_lease_does_not_shorten_the_lock),
        cmocka_unit_test(a_longer_lease_makes_the_lock_last),
        cmocka_unit_test(each_is_renewed_for_itself),
        cmocka_unit_test(one_may_be_lost_without_the_other),
        cmocka_unit_test(the_last_release_frees),
        cmocka_unit_test(a_release_leaves_the_lock_for_as_long_as_the_rest_needs_it),
        cmocka_unit_test(a_dead_sharer_keeps_it_for_its_own_lease_only),
        cmocka_unit_test(a_sharer_that_died_long_ago_does_not_keep_it),
        cmocka_unit_test(a_second_copy_that_finds_nothing_knows_nothing),
        cmocka_unit_test(a_late_copy_joins_nothing),
        cmocka_unit_test(closing_releases_all_of_them),
        cmocka_unit_test(our_own_delayed_release_does_not_refuse_another_owner),
        cmocka_unit_test(a_delayed_release_of_one_sharer_is_no_storm),
        cmocka_unit_test(the_longest_owner_and_label),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
