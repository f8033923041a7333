/* SPDX-License-Identifier: MIT */
/* Every allocation of a conversation fails once. The calls may say so, or succeed on a second
 * connection; nothing may crash, leak (AddressSanitizer looks), or be left at the server, and the
 * same core must work when there is memory again. */
#include <string.h>

#include "gate.h"
#include "stage.h"

#define S the_stage

static bool stage_works(void)
{
    return S.own_memory;
}

static void settle(int call)
{
    for (int i = 0; i < 300 && !S.calls[call].done; i++)
        ADVANCE_MS(100);
    assert_true(S.calls[call].done);
}

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
        settle(1);
        expect_honest(S.calls[1].error.status);
    }
    if (started && S.calls[1].error.status == HF_OK) {
        EXTEND(1, 20000);
        settle(1);
        expect_honest(S.calls[1].error.status);
        RELEASE(1);
        settle(1);
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

static void a_core_without_memory_is_not_made(void **state)
{
    (void)state;
    SETUP();
    hf__config config = {.server = &S.server, .links = 1};
    gate_fail_at(0);
    assert_null(hf__core_new(&config));
    assert_true(gate_open());
    FINISH();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_fails_once),
        cmocka_unit_test(a_core_without_memory_is_not_made),
    };
    gate_exempt = stage_works;
    gate_install();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
