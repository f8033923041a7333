/* SPDX-License-Identifier: MIT */
/* Every allocation of conversations with three servers fails once; see test_memory.c. Whatever the
 * calls say, nothing crashes or leaks, nothing is left at a server, and the same core works when
 * there is memory again. */
#include "ballots.h"
#include "gate.h"

enum { ALLOCATIONS_MAX = 2000 };

static void expect_honest(int call)
{
    hf_status status = S.calls[call].error.status;
    if (status != HF_OK && status != HF_ENOMEM && status != HF_EUNKNOWN)
        assert_int_equal(status, HF_EUNAVAILABLE);
}

/* Whether it was granted. */
static bool get(int call, const stage_acquire *options)
{
    if (!stage_start_acquire(call, options)) {
        S.calls[call] = (hf__call){.kind = HF__CALL_EXTEND}; /* it is not on its way */
        return false;
    }
    SETTLE(call);
    expect_honest(call);
    return S.calls[call].error.status == HF_OK;
}

static void give_back(int call)
{
    RELEASE(call);
    SETTLE(call);
    if (S.calls[call].error.status != HF_ELOST)
        expect_honest(call);
}

/* Nothing is left, and all is well. */
static void finish(void)
{
    ADVANCE_MS(60000);
    for (int i = 0; i < 3; i++)
        assert_int_equal(node_count(&S.nodes[i]), 0);
    ACQUIRE(9, "x");
    EXPECT(9, HF_OK);
    assert_int_equal(count_votes("x"), 3);
    RELEASE(9);
    EXPECT(9, HF_OK);
    FINISH();
}

/* ---- Conversations, in each of which one allocation fails ---- */

static void hold_and_release(void)
{
    if (!get(1, &(stage_acquire){.name = "x"}))
        return;
    EXTEND(1, 20000);
    SETTLE(1);
    expect_honest(1);
    give_back(1);
}

/* Its votes are renewed, and one that is lost is healed. */
static void hold_for_long(void)
{
    if (!get(1, &(stage_acquire){.name = "x", .lease_ms = 9000, .renew_interval_ms = 3000}))
        return;
    ADVANCE_MS(100);
    if (count_votes("x") == 3) /* else there was no memory for one of them */
        node_delete(&S.nodes[1], "x");
    ADVANCE_MS(7000);
    EXPECT_STATE(1, HF_SAFE);
    give_back(1);
}

/* Servers disagree about the fence. */
static void hold_raised(void)
{
    for (int i = 0; i < 3; i++)
        put_fence(i, "x", 8000000 + (uint64_t)i);
    if (get(1, &(stage_acquire){.name = "x"}))
        give_back(1);
}

/* Somebody else has it for a while, and gets a vote in between. */
static void wait_and_give_way(void)
{
    for (int i = 1; i < 3; i++)
        put_vote(i, "x", VALUE(ANN, 1), 3000, 5);
    if (!stage_start_acquire(1, &(stage_acquire){.name = "x", .wait_ms = -1})) {
        S.calls[1] = (hf__call){.kind = HF__CALL_EXTEND};
        return;
    }
    if (has_vote(0, "x")) {
        char text[100];
        snprintf(text, sizeof(text), "i %llu 1 " BOB, vote_number(0, "x"));
        SAY_AT(0, text);
    }
    SETTLE(1);
    expect_honest(1);
    if (S.calls[1].error.status == HF_OK)
        give_back(1);
}

/* A server without a vote joins. */
static void hold_with_a_restarted_server(void)
{
    node_restart(&S.nodes[2]);
    S.nodes[2].info = "uptime_in_seconds:3600";
    if (get(1, &(stage_acquire){.name = "x"}))
        give_back(1);
}

static void fail_each(void (*converse)(void))
{
    long number = -1;
    bool failed = true;
    while (failed) {
        assert_true(++number < ALLOCATIONS_MAX);
        SETUP(.servers = 3, .messages = true);
        gate_fail_at(number);
        converse();
        failed = gate_open();
        finish();
    }
    assert_true(number >= 10); /* three readers with their parts, three buffers, hold and votes */
}

static void every_allocation_fails_once(void **state)
{
    (void)state;
    fail_each(hold_and_release);
}

static void also_of_a_long_hold(void **state)
{
    (void)state;
    fail_each(hold_for_long);
}

static void also_of_a_fence_that_is_raised(void **state)
{
    (void)state;
    fail_each(hold_raised);
}

static void also_of_who_waits(void **state)
{
    (void)state;
    fail_each(wait_and_give_way);
}

static void also_with_a_restarted_server(void **state)
{
    (void)state;
    fail_each(hold_with_a_restarted_server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_fails_once),    cmocka_unit_test(also_of_a_long_hold),
        cmocka_unit_test(also_of_a_fence_that_is_raised), cmocka_unit_test(also_of_who_waits),
        cmocka_unit_test(also_with_a_restarted_server),
    };
    stage_install_gate();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
