/* SPDX-License-Identifier: MIT */
/* Every allocation of a conversation fails once. The calls may say so, or succeed on a second
 * connection; nothing may crash, leak (AddressSanitizer looks), or be left at the server, and the
 * same core must work when there is memory again. */
#include <string.h>

#include "gate.h"
#include "stage.h"

#define S the_stage

static void expect_honest(hf_status status)
{
    if (status != HF_OK && status != HF_ENOMEM && status != HF_EUNKNOWN)
        assert_int_equal(status, HF_EUNAVAILABLE);
}

/* One conversation in which allocation `number` fails; false if it had fewer. */
static bool converse(long number)
{
    SETUP(.links = 2);
    gate_fail_at(number);
    bool started = stage_start_acquire(1, &(stage_acquire){.name = "x"});
    if (started) {
        SETTLE(1);
        expect_honest(S.calls[1].error.status);
    }
    if (started && S.calls[1].error.status == HF_OK) {
        EXTEND(1, 20000);
        SETTLE(1);
        expect_honest(S.calls[1].error.status);
        RELEASE(1);
        SETTLE(1);
        expect_honest(S.calls[1].error.status);
    }
    bool failed = gate_open();
    ADVANCE_MS(20000); /* whatever is in the background ends */
    EXPECT_NO_KEY("x");
    ACQUIRE(2, "x");
    EXPECT(2, HF_OK);
    RELEASE(2);
    EXPECT(2, HF_OK);
    FINISH();
    return failed;
}

static void every_allocation_fails_once(void **state)
{
    (void)state;
    long number = 0;
    while (converse(number))
        assert_true(++number < 1000);
    assert_true(number >= 4); /* hold, reader with its parts, output buffer */
}

/* ---- Everything else that allocates: handles, batches, notes, queries ---- */

/* Starts an acquire and waits for it; false: it was not granted, for lack of memory. */
static bool get(int call, const stage_acquire *options)
{
    if (!stage_start_acquire(call, options)) {
        S.calls[call] = (hf__call){.kind = HF__CALL_EXTEND}; /* it is not on its way */
        return false;
    }
    SETTLE(call);
    expect_honest(S.calls[call].error.status);
    return S.calls[call].error.status == HF_OK;
}

static void ask(int call, hf__query_kind kind, const char *name, const char *text, uint64_t number)
{
    if (!stage_start_query(call, kind, name, text, number))
        return;
    SETTLE(call);
    expect_honest(S.calls[call].error.status);
}

static void give_back(int call)
{
    RELEASE(call);
    SETTLE(call);
    if (S.calls[call].error.status != HF_ELOST) /* broken by force */
        expect_honest(S.calls[call].error.status);
}

/* Four handles, a request to give up, two rounds of renewal, questions and a break. */
static bool converse_at_length(long number)
{
    static const char *const names[] = {"x", "x", "y", "y"};
    bool got[5] = {false};
    SETUP(.links = 2);
    gate_fail_at(number);
    for (int i = 1; i <= 4; i++)
        got[i] = get(i, &(stage_acquire){.name = names[i - 1],
                                         .lease_ms = 10000,
                                         .renew_interval_ms = 3000,
                                         .reenters = true,
                                         .wait_ms = 20000,
                                         .label = "label",
                                         .owner = i > 2 ? "me" : NULL});
    ask(5, HF__QUERY_INSPECT, "y", "", 0);
    ask(6, HF__QUERY_REVOKE, "x", "please", stage_fence_of("x"));
    ask(7, HF__QUERY_SCAN, "", "hf:f:*", 0);
    ADVANCE_MS(7000);
    for (int i = 1; i <= 4; i++)
        if (got[i])
            EXPECT_STATE(i, HF_SAFE); /* a renewal without memory was tried again */
    if (got[3])
        ask(8, HF__QUERY_BREAK, "y", "me", FENCE(3));
    ADVANCE_MS(4000);
    for (int i = 1; i <= 4; i++)
        if (got[i])
            give_back(i);
    bool failed = gate_open();
    ADVANCE_MS(60000);
    assert_int_equal(node_count(&S.node), 0);
    ACQUIRE(9, "x");
    EXPECT(9, HF_OK);
    FINISH();
    return failed;
}

static void every_other_allocation_fails_once(void **state)
{
    (void)state;
    long number = 0;
    while (converse_at_length(number))
        assert_true(++number < 1000);
    assert_true(number >= 15);
}

/* The words are lost, the request is not. */
static void a_request_without_memory_comes_without_words(void **state)
{
    (void)state;
    bool wordless = false;
    for (long number = 0; number < 20 && !wordless; number++) {
        SETUP();
        ACQUIRE(1, "x", .lease_ms = 10000, .renew_interval_ms = 3000);
        REVOKE(2, "x", "please");
        gate_fail_at(number);
        ADVANCE_MS(4000);
        gate_open();
        assert_non_null(stage_next_told(1));
        wordless = stage_next_told(1)->text[0] == '\0';
        EXPECT_TOLD(1, HF_SAFE, REVOKED);
        EXPECT_QUIET(1);
        FINISH();
    }
    assert_true(wordless);
}

/* So long that the output buffer must grow, and cannot. */
static void a_query_that_cannot_be_written(void **state)
{
    (void)state;
    static char text[120000];
    memset(text, 'z', sizeof(text) - 1);
    SETUP();
    ACQUIRE(1, "warm");
    gate_fail_at(1);
    assert_true(stage_start_query(2, HF__QUERY_BREAK, "x", text, 7));
    assert_true(gate_open());
    SETTLE(2);
    expect_honest(S.calls[2].error.status);
    ADVANCE_MS(100);
    BREAK(3, "x", text, 7);
    SETTLE(3);
    EXPECT(3, HF_OK);
    FINISH();
}

static void a_core_without_memory_is_not_made(void **state)
{
    (void)state;
    SETUP();
    hf__config config = {.servers = &S.server, .server_count = 1, .links = 1};
    gate_fail_at(0);
    assert_null(hf__core_new(&config));
    assert_true(gate_open());
    FINISH();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_fails_once),
        cmocka_unit_test(every_other_allocation_fails_once),
        cmocka_unit_test(a_request_without_memory_comes_without_words),
        cmocka_unit_test(a_query_that_cannot_be_written),
        cmocka_unit_test(a_core_without_memory_is_not_made),
    };
    stage_install_gate();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
