/* SPDX-License-Identifier: MIT */
/* What holds of one server can do, those on a quorum can too: be entered again, be shared by an
 * owner, pass between threads, be counted and be closed. */
#include "ballots.h"
#include "crowd.h"

static void begin(void)
{
    SETUP(.servers = 3, .messages = true, .local_turns = CROWD_TURNS);
    rival_begin();
}

static void end(void)
{
    rival_end();
    FINISH();
}

static int count_acquires(void)
{
    return S.nodes[0].acquires + S.nodes[1].acquires + S.nodes[2].acquires;
}

/* ---- Threads ---- */

static void a_thread_enters_again_without_a_word(void **state)
{
    (void)state;
    begin();
    ACQUIRE(1, "x", MEMBER(1));
    ACQUIRE(2, "x", MEMBER(1));
    EXPECT(2, HF_OK);
    assert_int_equal(count_acquires(), 3);
    assert_true(FENCE(1) == FENCE(2));
    RELEASE(1);
    EXPECT(1, HF_OK);
    assert_int_equal(count_votes("x"), 3);
    RELEASE(2);
    EXPECT(2, HF_OK);
    assert_int_equal(count_votes("x"), 0);
    end();
}

static void the_lock_passes_between_threads(void **state)
{
    (void)state;
    begin();
    crowd_gather(4);
    for (int i = 0; i < 3; i++)
        assert_int_equal(stage_fence_at(i, "x"), FENCE(2) + CROWD_MORE);
    ADVANCE_MS(1);
    crowd_turn(2, 3);
    crowd_turn(3, 4);
    ADVANCE_MS(9000); /* it is renewed as before */
    EXPECT_STATE(4, HF_SAFE);
    uint64_t last = FENCE(4);
    RELEASE(4);
    EXPECT(4, HF_OK);
    assert_int_equal(count_votes("x"), 0);
    ACQUIRE(1, "x");
    assert_true(FENCE(1) > last);
    end();
}

/* The fences for the turns must be above the floor at no time. */
static void fences_for_turns_are_reserved(void **state)
{
    (void)state;
    begin();
    crowd_gather(3);
    int above = 0;
    for (int i = 0; i < 3; i++)
        above += S.nodes[i].floor >= (int64_t)(FENCE(2) + CROWD_TURNS);
    assert_true(above >= 2);
    end();
}

static void who_waits_elsewhere_is_heard_by_all_threads(void **state)
{
    (void)state;
    begin();
    crowd_gather(3);
    for (int i = 0; i < 3; i++) {
        RIVAL_AT(i);
        RIVAL_QUEUES("x", .number = 1, .ticket = 1);
    }
    ADVANCE_MS(100); /* passed over for longer than they may be */
    RELEASE(2);
    EXPECT(2, HF_OK);
    EXPECT_WAITING(3);
    assert_true(rival_has(0, "x") && rival_has(1, "x") && rival_has(2, "x"));
    end();
}

/* ---- Owners ---- */

static bool is_owned(int node, const char *owner)
{
    const char *value = node_get(&S.nodes[node], "x");
    return value != NULL && strcmp(value, owner) == 0;
}

static void holds_of_an_owner_have_the_fence_of_the_first(void **state)
{
    (void)state;
    begin();
    ACQUIRE(1, "x", .owner = "me");
    EXPECT(1, HF_OK);
    ADVANCE_MS(2000);
    ACQUIRE(2, "x", .owner = "me");
    EXPECT(2, HF_OK);
    assert_true(FENCE(1) == FENCE(2));
    ACQUIRE(3, "x", .owner = "you");
    EXPECT(3, HF_EBUSY);
    RELEASE(1);
    EXPECT(1, HF_OK);
    assert_true(is_owned(0, "me") && is_owned(1, "me") && is_owned(2, "me"));
    RELEASE(2);
    EXPECT(2, HF_OK);
    assert_false(is_owned(0, "me") || is_owned(1, "me") || is_owned(2, "me"));
    end();
}

/* Who joins where another fence is known would not have that of the first. */
static void a_vote_with_another_fence_is_given_back(void **state)
{
    (void)state;
    begin();
    ACQUIRE(9, "warm");
    put_fence(2, "x", 9000000);
    STALL(2);
    ACQUIRE(1, "x", .owner = "me", .lease_ms = 9000, .renew_interval_ms = 3000);
    EXPECT(1, HF_OK);
    REVIVE(2);
    assert_false(is_owned(2, "me"));
    ACQUIRE(2, "x", .owner = "me");
    EXPECT(2, HF_OK);
    assert_true(FENCE(2) == FENCE(1));
    end();
}

static void an_owner_gives_way_too(void **state)
{
    (void)state;
    begin();
    take_for_ann("x", 1, 2);
    ACQUIRE(1, "x", .owner = "me", .wait_ms = -1);
    EXPECT_WAITING(1);
    assert_true(is_owned(0, "me"));
    RIVAL_QUEUES("x", .number = 1, .ticket = 1);
    assert_true(rival_has(0, "x"));
    rival_release("x", 1);
    assert_true(is_owned(0, "me"));
    end();
}

/* Another of the same owner, with a later ticket, must not join those who give way. */
static void who_joins_does_not_overtake(void **state)
{
    (void)state;
    begin();
    take_for_ann("x", 1, 2);
    RIVAL_ACQUIRES("x", .number = 1, .owner = "me", .ticket = 50, .lease = 600000);
    RIVAL_QUEUES("x", .number = 2, .ticket = 7);
    ACQUIRE(1, "x", .owner = "me", .wait_ms = -1);
    EXPECT_WAITING(1);
    assert_true(ticket_at(0, "x") > 7);
    end();
}

/* ---- The client ---- */

static void what_happens_to_votes_is_not_counted(void **state)
{
    (void)state;
    hf_stats stats;
    begin();
    ACQUIRE(1, "x", .lease_ms = 9000, .renew_interval_ms = 3000);
    take_for_ann("y", 0, 2);
    ACQUIRE(2, "y", .wait_ms = 5000);
    ADVANCE_MS(6000);
    EXPECT(2, HF_EBUSY);
    RELEASE(1);
    hf__core_stats(S.core, &stats);
    assert_int_equal(stats.acquisitions, 1);
    assert_int_equal(stats.contentions, 1);
    assert_int_equal(stats.failures, 1);
    assert_int_equal(stats.renewals, 2);
    assert_int_equal(stats.releases, 1);
    assert_int_equal(stats.held, 0);
    ACQUIRE(3, "z");
    node_delete(&S.nodes[0], "z");
    node_delete(&S.nodes[1], "z");
    RELEASE(3);
    EXPECT(3, HF_ELOST);
    hf__core_stats(S.core, &stats);
    assert_int_equal(stats.releases, 1);
    assert_int_equal(stats.losses[HF_REASON_GONE], 1);
    end();
}

static void closing_gives_everything_back(void **state)
{
    (void)state;
    begin();
    ACQUIRE(1, "x");
    take_for_ann("y", 1, 2);
    ACQUIRE(2, "y", .wait_ms = -1);
    KILL(2);
    CLOSE(8);
    EXPECT(8, HF_OK); /* a server that is away is not waited for */
    EXPECT(2, HF_ECLOSED);
    assert_false(has_vote(0, "x") || has_vote(1, "x") || has_vote(0, "y"));
    assert_int_equal(ticket_at(1, "y"), 0);
    end();
}

static void a_release_without_waiting_goes_to_all(void **state)
{
    (void)state;
    begin();
    ACQUIRE(1, "x");
    STALL(2);
    assert_int_equal(stage_let_go(1), HF_OK);
    REVIVE(2);
    assert_int_equal(count_votes("x"), 0);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thread_enters_again_without_a_word),
        cmocka_unit_test(the_lock_passes_between_threads),
        cmocka_unit_test(fences_for_turns_are_reserved),
        cmocka_unit_test(who_waits_elsewhere_is_heard_by_all_threads),
        cmocka_unit_test(holds_of_an_owner_have_the_fence_of_the_first),
        cmocka_unit_test(a_vote_with_another_fence_is_given_back),
        cmocka_unit_test(an_owner_gives_way_too),
        cmocka_unit_test(who_joins_does_not_overtake),
        cmocka_unit_test(what_happens_to_votes_is_not_counted),
        cmocka_unit_test(closing_gives_everything_back),
        cmocka_unit_test(a_release_without_waiting_goes_to_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
