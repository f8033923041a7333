/* SPDX-License-Identifier: MIT */
/* A crowd of threads and a rival on one lock, while every allocation fails once, and while the
 * connections are cut after any byte. Whatever happens: every call ends, at most one of them holds
 * the lock at a time and with a larger fence than the one before, nobody is forgotten, and nothing
 * is left at the server. */
#include "crowd.h"
#include "gate.h"
#include "lua/scripts.h"

#define S the_stage

enum { LAST = 6, STEPS_MAX = 400 };

static bool is_lack_of_memory(hf_status status)
{
    return status == HF_ENOMEM || status == HF_EUNAVAILABLE || status == HF_EUNKNOWN;
}

/* The call that has the lock; 0: none does. */
static int holder(void)
{
    int found = 0;
    for (int i = 1; i <= LAST; i++) {
        if (S.calls[i].kind != HF__CALL_ACQUIRE || !S.calls[i].done ||
            S.calls[i].error.status != HF_OK)
            continue;
        assert_int_equal(found, 0);
        found = i;
    }
    return found;
}

/* Gives back what has been got. Returns whether all calls have ended. */
static bool serve(bool *given_back, uint64_t *fence)
{
    int call;
    while ((call = holder()) != 0) {
        assert_true(FENCE(call) > *fence);
        *fence = FENCE(call);
        given_back[call] = true;
        RELEASE(call);
    }
    for (int i = 1; i <= LAST; i++)
        if (!S.calls[i].done)
            return false;
    return true;
}

/* Six threads want what the rival has; one gives up, one polls, one has an owner. */
static bool begin_crowd(int i)
{
    const stage_acquire options = {.name = "x",
                                   .wait_ms = i == 3 ? 700 : 20000,
                                   .lease_ms = 3000,
                                   .renew_interval_ms = 1000,
                                   .thread = (uint64_t)i,
                                   .reenters = true,
                                   .retry_interval_ms = i == 5 ? 200 : 0,
                                   .owner = i == 6 ? "me" : NULL};
    if (stage_start_acquire(i, &options))
        return true;
    S.calls[i] = (hf__call){.kind = HF__CALL_EXTEND, .done = true};
    S.calls[i].error.status = HF_ENOMEM;
    return false;
}

/* Returns how many of the calls were granted. */
static int live(bool may_fail)
{
    bool given_back[LAST + 1] = {false};
    uint64_t fence = 0;
    int granted = 0;
    for (int i = 1; i <= LAST; i++)
        assert_true(begin_crowd(i) || may_fail);
    ADVANCE_MS(1000);
    rival_release("x", 1);
    for (int step = 0; step < STEPS_MAX && !serve(given_back, &fence); step++)
        ADVANCE_MS(50);
    for (int i = 1; i <= LAST; i++) {
        assert_true(S.calls[i].done);
        granted += given_back[i];
        if (!given_back[i] && i != 3)
            assert_true(may_fail && is_lack_of_memory(S.calls[i].error.status));
    }
    return granted;
}

/* The same core works, and the server knows nothing of us any more. */
static void expect_clean(void)
{
    ADVANCE_MS(20000);
    assert_int_equal(node_count(&S.node), 0);
    ACQUIRE(10, "x", MEMBER(1));
    EXPECT(10, HF_OK);
    RELEASE(10);
    EXPECT(10, HF_OK);
    const node_key *queue = node_side(&S.node, 'q', "x");
    for (size_t i = 0; queue != NULL && i < queue->member_count; i++)
        assert_true(queue->members[i].score < 0); /* tombstones are no waiters */
}

static void begin(void)
{
    crowd_begin(CROWD_TURNS);
    RIVAL_ACQUIRES("x", .number = 1);
}

static void all_of_them_get_it(void **state)
{
    (void)state;
    begin();
    assert_int_equal(live(false), LAST - 1);
    expect_clean();
    crowd_end();
}

static void every_allocation_fails_once(void **state)
{
    (void)state;
    bool failed = true;
    long number = 0;
    for (; failed; number++) {
        begin();
        gate_fail_at(number);
        int granted = live(true);
        failed = gate_open();
        assert_true(granted >= (failed ? 1 : LAST - 1));
        expect_clean();
        crowd_end();
    }
    assert_in_range(number, 15, 1000);
}

/* Also while a client with many in line is closed. */
static void closing_while_memory_fails(void **state)
{
    (void)state;
    bool failed = true;
    for (long number = 0; failed; number++) {
        begin();
        for (int i = 1; i <= LAST; i++)
            assert_true(begin_crowd(i));
        gate_fail_at(number);
        CLOSE(LAST + 1);
        for (int i = 0; i < 40 && !S.calls[LAST + 1].done; i++)
            ADVANCE_MS(100);
        failed = gate_open();
        for (int i = 1; i <= LAST + 1; i++)
            assert_true(S.calls[i].done);
        ADVANCE_MS(20000);
        assert_int_equal(node_count(&S.node), 0);
        crowd_end();
    }
}

/* ---- Cuts ---- */

static long next_cut(long bytes)
{
    long scripts = 0;
    for (int i = 0; i < HF__SCRIPT_COUNT; i++)
        scripts += (long)hf__scripts[i].length;
    return bytes + (bytes > 200 && bytes < scripts ? 4001 : 23);
}

static void cut_after_any_byte(void **state)
{
    (void)state;
    bool was_cut = true;
    long bytes = 1;
    for (; was_cut; bytes = next_cut(bytes)) {
        begin();
        S.cut_after = bytes;
        live(false);
        was_cut = S.cut_after == STAGE_UNLIMITED;
        S.cut_after = STAGE_UNLIMITED;
        expect_clean();
        crowd_end();
    }
    assert_true(bytes > 10000);
}

/* One link after the other, at any time. */
static void cut_at_any_time(void **state)
{
    (void)state;
    for (int at = 0; at < 60; at++) {
        bool given_back[LAST + 1] = {false};
        uint64_t fence = 0;
        bool all = false;
        begin();
        for (int i = 1; i <= LAST; i++)
            assert_true(begin_crowd(i));
        for (int step = 0; step < STEPS_MAX && !all; step++) {
            if (step % 20 == at % 20)
                stage_cut_link(at / 20 < 2 ? at / 20 : step % 2);
            if (step == 15)
                rival_release("x", 1);
            all = serve(given_back, &fence);
            ADVANCE_MS(7);
        }
        for (int i = 1; i <= LAST; i++)
            assert_true(given_back[i] || (i == 3 && S.calls[3].error.status == HF_EBUSY));
        expect_clean();
        crowd_end();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_of_them_get_it),
        cmocka_unit_test(every_allocation_fails_once),
        cmocka_unit_test(closing_while_memory_fails),
        cmocka_unit_test(cut_after_any_byte),
        cmocka_unit_test(cut_at_any_time),
    };
    stage_install_gate();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
