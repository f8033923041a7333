/* SPDX-License-Identifier: MIT */
/* Errands because of a hold: one that leaves ahead of its release, and what both come to; and that
 * a lock is not passed on to another thread of the client while one may still be on its way. */
#include <string.h>

#include "crowd.h"

#define S       the_stage
#define VALUE   HF__SCRIPT_VALUE, .name = {"x", 1}, .letters = "v"
#define COPY(n) (&S.node.errand_log[n])

static const hf__errand write_x = {
    .script = HF__SCRIPT_WRITE_HELD, .name = {"x", 1}, .letters = "=hl"};

/* ---- Ahead of a release ---- */

static void it_leaves_with_the_release_in_one_go(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x");
    int writes = S.writes;
    assert_true(stage_start_errand(2, &write_x, 1));
    EXPECT(1, HF_OK);
    EXPECT(2, HF_OK);
    assert_int_equal(S.writes, writes + 1);
    assert_int_equal(S.node.errands, 1);
    assert_true(COPY(0)->whole); /* the server did not know it */
    assert_int_equal(COPY(0)->releases, 0);
    assert_int_equal(S.node.releases, 1);
    EXPECT_NO_KEY("x");
    FINISH();
}

static void the_release_is_done_when_both_are(void **state)
{
    (void)state;
    SETUP(.call_timeout_ms = 5000);
    ACQUIRE(1, "x", .lease_ms = 1000);
    S.mute = true;
    PAUSE_MS(2000); /* lost: that is known at once */
    assert_true(stage_start_errand(2, &write_x, 1));
    EXPECT_WAITING(1);
    EXPECT_WAITING(2);
    S.mute = false;
    SETTLE(1);
    EXPECT(2, HF_OK);
    EXPECT(1, HF_ELOST);
    FINISH();
}

static void both_are_said_again_in_that_order(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x");
    S.deaf = true;
    assert_true(stage_start_errand(2, &write_x, 1));
    CUT();
    S.deaf = false;
    SETTLE(1);
    EXPECT(1, HF_OK);
    EXPECT(2, HF_OK);
    assert_int_equal(S.node.errands, 1);
    assert_string_equal(COPY(0)->again, "1");
    assert_int_equal(COPY(0)->releases, 0);
    assert_int_equal(S.node.releases, 1);
    EXPECT_NO_KEY("x");
    FINISH();
}

static void a_refused_errand_does_not_keep_the_lock(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x");
    node_say(&S.node, "-OOM command not allowed\r\n");
    assert_true(stage_start_errand(2, &write_x, 1));
    EXPECT(1, HF_OK);
    EXPECT(2, HF_EUNAVAILABLE);
    EXPECT_NO_KEY("x");
    FINISH();
}

static void closing_ends_both(void **state)
{
    (void)state;
    SETUP(.call_timeout_ms = 1000);
    ACQUIRE(1, "x");
    S.mute = true;
    assert_true(stage_start_errand(2, &write_x, 1));
    CLOSE(3);
    EXPECT(2, HF_ECLOSED);
    EXPECT_WAITING(1);
    S.mute = false;
    SETTLE(1);
    EXPECT(1, HF_OK);
    SETTLE(3);
    ACQUIRE(4, "y");
    EXPECT(4, HF_ECLOSED);
    FINISH();
}

static void after_closing_neither_is_sent(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x");
    CLOSE(3);
    assert_true(stage_start_errand(2, &write_x, 1));
    EXPECT(2, HF_ECLOSED);
    EXPECT(1, HF_ECLOSED);
    assert_int_equal(S.node.errands, 0);
    FINISH();
}

/* ---- While others wait here ---- */

/* Whoever has it next in this client would have it while the errand is on its way. */
static void what_is_ahead_keeps_a_lock_from_passing_on(void **state)
{
    (void)state;
    crowd_begin(CROWD_TURNS);
    crowd_gather(4);
    int releases = S.node.releases;
    assert_true(stage_start_errand(9, &write_x, 2));
    EXPECT(2, HF_OK);
    EXPECT(9, HF_OK);
    assert_int_equal(S.node.releases, releases + 1);
    EXPECT(3, HF_OK); /* from the server */
    crowd_turn(3, 4); /* the next one passes on as ever */
    crowd_end();
}

/* It may still arrive, and would be taken for that of the next one. */
static void an_errand_of_unknown_fate_does_too(void **state)
{
    (void)state;
    for (int unknown = 0; unknown < 2; unknown++) {
        SETUP(.messages = true, .local_turns = CROWD_TURNS, .call_timeout_ms = 200);
        rival_begin();
        crowd_gather(3);
        ERRAND(9, VALUE);
        S.mute = unknown;
        ERRAND(9, VALUE);
        S.calls[9].hold = stage_hold(2);
        ADVANCE_MS(200);
        EXPECT(9, unknown ? HF_EUNKNOWN : HF_OK);
        S.mute = false;
        ADVANCE_MS(1);
        int releases = S.node.releases;
        RELEASE(2);
        EXPECT(2, HF_OK);
        EXPECT(3, HF_OK);
        assert_int_equal(S.node.releases, releases + unknown);
        crowd_end();
    }
}

/* What is asked at the server is who has it there, whoever has it here. */
static void a_hold_that_was_passed_on_has_the_value_at_the_server(void **state)
{
    (void)state;
    crowd_begin(CROWD_TURNS);
    crowd_gather(3);
    crowd_turn(2, 3);
    hf__slice value = hf__hold_value_text(stage_hold(3));
    assert_memory_equal(value.bytes, node_get(&S.node, "x"), value.length);
    assert_int_equal(value.length, strlen(node_get(&S.node, "x")));
    crowd_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_leaves_with_the_release_in_one_go),
        cmocka_unit_test(the_release_is_done_when_both_are),
        cmocka_unit_test(both_are_said_again_in_that_order),
        cmocka_unit_test(a_refused_errand_does_not_keep_the_lock),
        cmocka_unit_test(closing_ends_both),
        cmocka_unit_test(after_closing_neither_is_sent),
        cmocka_unit_test(what_is_ahead_keeps_a_lock_from_passing_on),
        cmocka_unit_test(an_errand_of_unknown_fate_does_too),
        cmocka_unit_test(a_hold_that_was_passed_on_has_the_value_at_the_server),
    };
    return cmocka_run_group_tests_name("errand_release", tests, NULL, NULL);
}
