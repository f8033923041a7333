/* SPDX-License-Identifier: MIT */
/* The wheel against what it must do: whatever is set, cleared and taken in whatever order, a take
 * gives all that are due and nothing else, and `next` is the earliest that is left. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/random.h"
#include "base/wheel.h"

enum { SPOKES = 300, STEPS = 30000 };

#define MS(n) ((int64_t)(n)*1000000)

static hf__wheel wheel;
static hf__spoke spokes[SPOKES];
static uint64_t dice = 20261115;

static int64_t below(int64_t limit)
{
    return (int64_t)hf__random_below(&dice, (uint64_t)limit);
}

static void set_or_clear(hf__spoke *spoke, int64_t now_ns)
{
    int64_t ahead_ns = below(3) > 0 ? below(MS(200)) : below(MS(40000)); /* two turns and more */
    if (!hf__node_linked(&spoke->node))
        hf__wheel_set(&wheel, spoke, (hf__instant){now_ns + ahead_ns - MS(5)});
    else if (below(4) == 0)
        hf__wheel_clear(&wheel, spoke);
}

static void take_all(int64_t by_ns)
{
    hf__spoke *spoke;
    while ((spoke = hf__wheel_take(&wheel, (hf__instant){by_ns})) != NULL)
        assert_true(spoke->due.ns <= by_ns && !hf__node_linked(&spoke->node));
}

static void expect_only_later(int64_t by_ns)
{
    hf__instant first = HF__NEVER;
    for (int i = 0; i < SPOKES; i++) {
        if (!hf__node_linked(&spokes[i].node))
            continue;
        assert_true(spokes[i].due.ns > by_ns);
        first = hf__earlier(first, spokes[i].due);
    }
    assert_true(hf__wheel_next(&wheel).ns == first.ns);
    assert_true(hf__wheel_peek(&wheel) == NULL || hf__wheel_peek(&wheel)->due.ns > by_ns);
}

static void takes_what_is_due_and_nothing_else(void **state)
{
    (void)state;
    int64_t now_ns = MS(1000000);
    hf__wheel_init(&wheel);
    for (int step = 0; step < STEPS; step++) {
        set_or_clear(&spokes[below(SPOKES)], now_ns);
        now_ns += below(200) == 0 ? below(MS(60000)) : below(MS(2));
        if (below(3) == 0) {
            int64_t by_ns = now_ns + below(MS(30));
            take_all(by_ns);
            expect_only_later(by_ns);
        }
    }
}

static void is_empty_at_first(void **state)
{
    (void)state;
    hf__wheel_init(&wheel);
    assert_null(hf__wheel_take(&wheel, (hf__instant){MS(5000)}));
    assert_true(hf__is_never(hf__wheel_next(&wheel)));
}

static void keeps_what_is_due_in_a_year(void **state)
{
    (void)state;
    hf__spoke far = {.due = {0}};
    hf__instant year = {INT64_C(31536000) * 1000000000};
    hf__wheel_init(&wheel);
    hf__wheel_set(&wheel, &far, year);
    assert_null(hf__wheel_take(&wheel, (hf__instant){year.ns - 1}));
    assert_true(hf__wheel_next(&wheel).ns == year.ns);
    assert_ptr_equal(hf__wheel_take(&wheel, year), &far);
    assert_true(hf__is_never(hf__wheel_next(&wheel)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_empty_at_first),
        cmocka_unit_test(takes_what_is_due_and_nothing_else),
        cmocka_unit_test(keeps_what_is_due_in_a_year),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
