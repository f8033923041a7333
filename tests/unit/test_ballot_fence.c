/* SPDX-License-Identifier: MIT */
/* The fence of a hold on a quorum: one that a majority knows of, keeps in mind and has confirmed
 * for votes that are held. Normally they take what is proposed, and nothing more is said. */
#include "ballots.h"

static void begin(int servers)
{
    stage_begin(&(stage_setup){.servers = servers});
    ACQUIRE(9, "warm", .deaf = true);
    EXPECT(9, HF_OK);
}

static int count_joins(void)
{
    int count = 0;
    for (int i = 0; i < S.server_count; i++)
        count += S.nodes[i].joins;
    return count;
}

static int count_renewals(void)
{
    int count = 0;
    for (int i = 0; i < S.server_count; i++)
        count += S.nodes[i].renewals;
    return count;
}

/* ---- Agreement ---- */

static void servers_that_agree_are_asked_once(void **state)
{
    (void)state;
    begin(5);
    int joins = count_joins();
    ACQUIRE(1, "x");
    EXPECT(1, HF_OK);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(stage_fence_at(i, "x"), FENCE(1));
        assert_int_equal(S.nodes[i].acquires, 2); /* with the one for the connection */
    }
    assert_int_equal(count_renewals(), 0);
    assert_int_equal(count_joins(), joins); /* the floors are high enough for a while */
    FINISH();
}

static void clocks_that_differ_cost_nothing_either(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    S.nodes[0].now_ms += 3600000; /* an hour ahead */
    S.nodes[1].now_ms += 700;
    ACQUIRE(9, "warm", .deaf = true);
    EXPECT(9, HF_OK);
    int renewals = count_renewals(), joins = count_joins();
    ACQUIRE(1, "x");
    EXPECT(1, HF_OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(stage_fence_at(i, "x"), FENCE(1));
    assert_int_equal(count_renewals(), renewals);
    assert_int_equal(count_joins(), joins);
    FINISH();
}

static void a_majority_that_agrees_is_enough(void **state)
{
    (void)state;
    begin(3);
    put_fence(2, "x", 9000000);
    STALL(2);
    ACQUIRE(1, "x");
    EXPECT(1, HF_OK);
    REVIVE(2); /* knows a higher one, of somebody who did not get a majority */
    assert_true(stage_fence_at(2, "x") > FENCE(1));
    assert_int_equal(count_renewals(), 0);
    FINISH();
}

static void fences_grow_whichever_majority_grants(void **state)
{
    (void)state;
    uint64_t last = 0;
    begin(5);
    for (int round = 0; round < 10; round++) {
        int away[2] = {round % 5, (round + 2) % 5};
        KILL(away[0]);
        KILL(away[1]);
        ACQUIRE(1, "x", .wait_ms = 5000);
        ADVANCE_MS(200);
        EXPECT(1, HF_OK);
        assert_true(FENCE(1) > last);
        last = FENCE(1);
        RELEASE(1);
        EXPECT(1, HF_OK);
        REVIVE(away[0]);
        REVIVE(away[1]);
        ADVANCE_MS(1500);
    }
    FINISH();
}

/* ---- Disagreement ---- */

/* Node 1 knows a higher fence than node 0, whose vote comes first. */
static void begin_in_disagreement(void)
{
    begin(3);
    put_fence(0, "x", 8000000);
    put_fence(1, "x", 9000000);
    STALL(1);
    STALL(2);
    ACQUIRE(1, "x");
    assert_int_equal(stage_fence_at(0, "x"), 8000001);
}

static void the_highest_is_made_known_to_the_others(void **state)
{
    (void)state;
    begin_in_disagreement();
    mute(REQUESTS(0));
    REVIVE(1);
    assert_int_equal(stage_fence_at(0, "x"), 9000001);
    EXPECT_WAITING(1); /* it has not said so yet */
    unmute(REQUESTS(0));
    EXPECT(1, HF_OK);
    assert_int_equal(FENCE(1), 9000001);
    assert_int_equal(S.nodes[0].renewals, 1);
    assert_int_equal(S.nodes[1].renewals, 0); /* it knows that already */
    FINISH();
}

static void a_vote_that_is_lost_meanwhile_does_not_count(void **state)
{
    (void)state;
    begin_in_disagreement();
    node_delete(&S.nodes[0], "x");
    REVIVE(1);
    EXPECT_WAITING(1);
    assert_int_equal(stage_fence_at(0, "x"), 8000001); /* not raised for who does not hold it */
    REVIVE(2);
    EXPECT(1, HF_OK);
    assert_int_equal(FENCE(1), 9000001);
    assert_int_equal(stage_fence_at(2, "x"), 9000001);
    FINISH();
}

/* A third vote may agree with the second before the first has confirmed. */
static void another_majority_may_agree_first(void **state)
{
    (void)state;
    begin_in_disagreement();
    mute(REQUESTS(0));
    put_fence(2, "x", 9000000);
    REVIVE(1);
    EXPECT_WAITING(1);
    REVIVE(2);
    EXPECT(1, HF_OK);
    assert_int_equal(FENCE(1), 9000001);
    unmute(REQUESTS(0));
    assert_int_equal(stage_fence_at(0, "x"), 9000001);
    FINISH();
}

static void a_copy_that_is_lost_while_it_raises_goes_again(void **state)
{
    (void)state;
    begin_in_disagreement();
    mute(REQUESTS(0));
    REVIVE(1);
    stage_cut_link(REQUESTS(0));
    unmute(REQUESTS(0));
    EXPECT_WAITING(1);
    ADVANCE_MS(100);
    EXPECT(1, HF_OK);
    assert_int_equal(FENCE(1), 9000001);
    FINISH();
}

/* A server that granted it to others since, with a higher fence, has no vote for us. */
static void a_vote_that_was_granted_anew_is_not_raised(void **state)
{
    (void)state;
    begin_in_disagreement();
    mute(REQUESTS(0));
    put_fence(0, "x", 9500000); /* as a late copy of another acquire would leave it */
    REVIVE(1);
    unmute(REQUESTS(0));
    EXPECT_WAITING(1);
    assert_int_equal(stage_fence_at(0, "x"), 9500000);
    FINISH();
}

/* But another one of the same owner may have raised it: then it stays, and nobody is lost. */
static void what_a_sharer_has_raised_is_no_loss(void **state)
{
    (void)state;
    begin(3);
    put_fence(0, "x", 8000000);
    put_fence(1, "x", 9000000);
    take_for_ann("x", 2, 2);
    STALL(1);
    ACQUIRE(1, "x", .owner = "us");
    put_fence(0, "x", 9500000);
    REVIVE(1);
    EXPECT(1, HF_OK);
    assert_int_equal(FENCE(1), 9000001);
    assert_int_equal(stage_fence_at(0, "x"), 9500000);
    FINISH();
}

/* Nor is anybody waited for who has refused it, though it could not be queued there: without
 * messages, it is asked again and again, and would be silent for ever. */
static void who_refuses_a_sharer_is_not_silent(void **state)
{
    (void)state;
    SETUP(.servers = 3, .messages = true);
    ACQUIRE(9, "warm", .deaf = true);
    S.stalled |= 1U << PUSHES(2);
    put_fence(0, "x", 9000000);
    take_for_ann("x", 1, 2);
    ACQUIRE(1, "x", .owner = "us", .wait_ms = -1);
    EXPECT_WAITING(1);
    assert_int_equal(ticket_at(2, "x"), 0);
    node_delete(&S.nodes[1], "x");
    ADVANCE_MS(4000);
    EXPECT(1, HF_OK);
    assert_int_equal(stage_fence_at(0, "x"), FENCE(1));
    assert_int_equal(stage_fence_at(1, "x"), FENCE(1));
    FINISH();
}

/* ---- The floor ---- */

/* All agree on a fence, but would not know of it after a restart. */
static void no_fence_above_the_floor_is_believed(void **state)
{
    (void)state;
    begin(3);
    for (int i = 0; i < 3; i++)
        put_fence(i, "x", 50000000);
    STALL(1);
    STALL(2);
    ACQUIRE(1, "x");
    mute(REQUESTS(0));
    REVIVE(1);
    assert_true(S.nodes[0].floor > 50000001 && S.nodes[1].floor > 50000001);
    EXPECT_WAITING(1); /* only one of them has said so */
    unmute(REQUESTS(0));
    EXPECT(1, HF_OK);
    assert_int_equal(FENCE(1), 50000001);
    assert_int_equal(count_renewals(), 0); /* there is nothing to raise */
    FINISH();
}

static void floors_are_raised_ahead_of_need(void **state)
{
    (void)state;
    begin(3);
    int joins = count_joins();
    ADVANCE_MS(6000);
    ACQUIRE(1, "x");
    EXPECT(1, HF_OK);
    assert_int_equal(count_joins(), joins + 3); /* beside the acquires */
    for (int i = 0; i < 3; i++)
        assert_true(S.nodes[i].floor > (int64_t)FENCE(1) + 1000000);
    FINISH();
}

/* Of a server that went on from a base, fences begin above it, and so do those of the others. */
static void fences_begin_above_the_bases(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    S.nodes[0].base = S.nodes[0].floor = 77000000;
    ACQUIRE(9, "warm", .deaf = true);
    ACQUIRE(1, "x");
    EXPECT(1, HF_OK);
    assert_int_equal(FENCE(1), 77000001);
    FINISH();
}

/* A ticket becomes a proposal to all servers. */
static void a_ticket_that_is_no_fence_is_not_believed(void **state)
{
    (void)state;
    SETUP(.servers = 3, .messages = true);
    ACQUIRE(9, "warm");
    take_for_ann("x", 0, 2);
    node_say(&S.nodes[2], "*4\r\n:0\r\n:1000\r\n$3\r\nann\r\n:9223372036854775807\r\n");
    STALL(1); /* so that it is one of the two that are heard */
    ACQUIRE(1, "x", .wait_ms = -1);
    REVIVE(1);
    ADVANCE_MS(1000);
    for (int i = 0; i < 3; i++) {
        assert_true(S.nodes[i].last_ticket > 0 && S.nodes[i].last_ticket < INT64_C(1) << 53);
        assert_true(S.nodes[i].last_proposal < INT64_C(1) << 53);
    }
    FINISH();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(servers_that_agree_are_asked_once),
        cmocka_unit_test(clocks_that_differ_cost_nothing_either),
        cmocka_unit_test(a_majority_that_agrees_is_enough),
        cmocka_unit_test(fences_grow_whichever_majority_grants),
        cmocka_unit_test(the_highest_is_made_known_to_the_others),
        cmocka_unit_test(a_vote_that_is_lost_meanwhile_does_not_count),
        cmocka_unit_test(another_majority_may_agree_first),
        cmocka_unit_test(a_copy_that_is_lost_while_it_raises_goes_again),
        cmocka_unit_test(a_vote_that_was_granted_anew_is_not_raised),
        cmocka_unit_test(what_a_sharer_has_raised_is_no_loss),
        cmocka_unit_test(who_refuses_a_sharer_is_not_silent),
        cmocka_unit_test(no_fence_above_the_floor_is_believed),
        cmocka_unit_test(floors_are_raised_ahead_of_need),
        cmocka_unit_test(fences_begin_above_the_bases),
        cmocka_unit_test(a_ticket_that_is_no_fence_is_not_believed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
