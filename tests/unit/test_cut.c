/* SPDX-License-Identifier: MIT */
/* The same conversation (acquire, extend, release of one lock while another is held), with the
 * connection cut after its first byte, after its second, and so on to the last; then the same with
 * two cuts, so that reconnecting is cut too. Whatever the byte: every call ends well, since all of
 * it can be repeated, and nothing is left at the server. */
#include <string.h>

#include "lua/scripts.h"
#include "stage.h"

#define S the_stage

enum { BYTES_MAX = 60000, SCRIPT_STEP = 401 };

/* The next byte to cut behind. A greeting is scripts for the most part, and a cut in the middle of
 * them is like any other: these are passed over in larger steps. */
static long next_cut(long bytes, long step)
{
    long scripts = 0;
    for (int i = 0; i < HF__SCRIPT_COUNT; i++)
        scripts += (long)hf__scripts[i].length;
    return bytes + (bytes > 200 && bytes < scripts ? SCRIPT_STEP : step);
}

/* Runs until the call is done; a cut costs some virtual milliseconds. */
static void expect_ok(int call)
{
    for (int i = 0; i < 200 && !S.calls[call].done; i++)
        ADVANCE_MS(10);
    EXPECT(call, HF_OK);
}

/* If the first copy was served, nobody can say what it found. */
static void release_through_cuts(int call)
{
    int before = S.node.releases;
    RELEASE(call);
    for (int i = 0; i < 200 && !S.calls[call].done; i++)
        ADVANCE_MS(10);
    EXPECT(call, S.node.releases > before + 1 ? HF_EUNKNOWN : HF_OK);
}

/* Returns false if the conversation was over before the last cut came. */
static bool converse(long cut_after, long then_after)
{
    SETUP();
    S.cut_after = cut_after;
    ACQUIRE(1, "other", .wait_ms = 5000);
    expect_ok(1);
    if (S.cut_after == STAGE_UNLIMITED && then_after > 0)
        S.cut_after = then_after;
    ACQUIRE(2, "x", .wait_ms = 5000);
    expect_ok(2);
    assert_non_null(strstr(node_get(&S.node, "x"), ":2@"));
    EXTEND(2, 20000);
    expect_ok(2);
    assert_true(stage_remaining_ms(2) > 10000);
    release_through_cuts(2);
    EXPECT_NO_KEY("x");
    EXPECT_KEY("other");
    bool was_cut = S.cut_after == STAGE_UNLIMITED;
    FINISH();
    return was_cut;
}

static void cut_after_every_byte(void **state)
{
    (void)state;
    long bytes = 1;
    while (converse(bytes, 0))
        assert_true((bytes = next_cut(bytes, 1)) < BYTES_MAX);
    assert_true(bytes > 2000); /* the conversation is about that long, or the test proves nothing */
}

static void cut_again_after_every_byte(void **state)
{
    (void)state;
    long bytes = 1;
    while (converse(40, bytes))
        bytes = next_cut(bytes, 7);
    for (bytes = 1; converse(bytes, 0); bytes = next_cut(bytes, 13))
        converse(bytes, 3000);
}

/* The same with holds that renew themselves, and with queries. Nothing is lost, nothing is told
 * that is not so, and what is one grant keeps its fence. */
static bool converse_at_length(long cut_after)
{
    SETUP();
    S.cut_after = cut_after;
    ACQUIRE(1, "x", .wait_ms = 5000, .owner = "me", .lease_ms = 3000, .renew_interval_ms = 300);
    expect_ok(1);
    ACQUIRE(2, "y", .wait_ms = 5000, .reenters = true, .lease_ms = 3000, .renew_interval_ms = 300);
    expect_ok(2);
    uint64_t fence = FENCE(1);
    ADVANCE_MS(700);
    INSPECT(3, "x");
    expect_ok(3);
    assert_true(ANSWER(3)->inspection->fence == fence);
    assert_int_equal(ANSWER(3)->inspection->hold_count, 1);
    REVOKE(4, "y", "please");
    expect_ok(4);
    ADVANCE_MS(700);
    EXPECT_TOLD(2, HF_SAFE, REVOKED);
    EXPECT_QUIET(2);
    EXPECT_QUIET(1);
    release_through_cuts(1);
    release_through_cuts(2);
    assert_int_equal(node_count(&S.node), 0);
    bool was_cut = S.cut_after == STAGE_UNLIMITED;
    FINISH();
    return was_cut;
}

static void cut_while_holds_renew_themselves(void **state)
{
    (void)state;
    long bytes = 1;
    while (converse_at_length(bytes))
        assert_true((bytes = next_cut(bytes, 17)) < BYTES_MAX);
    assert_true(bytes > 10000);
}

static void bytes_one_by_one_and_a_cut(void **state)
{
    (void)state;
    for (long bytes = 1; bytes < BYTES_MAX; bytes = next_cut(bytes, 11 + bytes / 20)) {
        SETUP();
        S.trickles = true;
        S.cut_after = bytes;
        ACQUIRE(1, "x", .wait_ms = 5000);
        expect_ok(1);
        release_through_cuts(1);
        EXPECT_NO_KEY("x");
        FINISH();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cut_after_every_byte),
        cmocka_unit_test(cut_again_after_every_byte),
        cmocka_unit_test(cut_while_holds_renew_themselves),
        cmocka_unit_test(bytes_one_by_one_and_a_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
