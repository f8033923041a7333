/* SPDX-License-Identifier: MIT */
/* Goal: the judge of the simulator and of the live runs sees every overlap, and only those.
 *
 * The last test compares it with a checker that is too simple to be wrong: every pair.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../lib/history.h"

static history *told;
static belief first;
static belief second;

static int begin(void **state)
{
    (void)state;
    told = history_new();
    return told == NULL ? -1 : 0;
}

static int end(void **state)
{
    (void)state;
    history_free(told);
    return 0;
}

static void tell(uint32_t lock, uint32_t client, int64_t from_ns, int64_t until_ns)
{
    belief next = {.lock = lock,
                   .client = client,
                   .hold = history_count(told) + 1,
                   .from_ns = from_ns,
                   .until_ns = until_ns};
    assert_true(history_add(told, &next));
}

static void tell_of_party(uint64_t party, int64_t from_ns, int64_t until_ns)
{
    belief next = {.lock = 1,
                   .hold = history_count(told) + 1,
                   .party = party,
                   .from_ns = from_ns,
                   .until_ns = until_ns};
    assert_true(history_add(told, &next));
}

static bool overlap(void)
{
    return history_find_overlap(told, &first, &second);
}

static void expect_pair(uint64_t one_hold, uint64_t other_hold)
{
    assert_true(overlap());
    assert_int_equal(first.hold, one_hold);
    assert_int_equal(second.hold, other_hold);
}

static void nothing_and_one_are_fine(void **state)
{
    (void)state;
    assert_false(overlap());
    tell(1, 1, 10, 20);
    assert_false(overlap());
    assert_int_equal(history_count(told), 1);
    history_free(NULL);
}

static void touching_is_no_overlap(void **state)
{
    (void)state;
    tell(1, 2, 20, 30);
    tell(1, 1, 10, 20);
    tell(1, 3, 30, 31);
    assert_false(overlap());
}

static void one_nanosecond_is_an_overlap(void **state)
{
    (void)state;
    tell(1, 2, 19, 30);
    tell(1, 1, 10, 20);
    expect_pair(2, 1);
}

static void equal_beliefs_overlap(void **state)
{
    (void)state;
    tell(1, 1, 10, 20);
    tell(1, 2, 10, 20);
    expect_pair(1, 2);
}

static void the_same_client_twice_overlaps(void **state)
{
    (void)state;
    tell(1, 1, 10, 20);
    tell(1, 1, 15, 25);
    expect_pair(1, 2);
}

static void a_long_one_covers_a_distant_short_one(void **state)
{
    (void)state;
    tell(1, 1, 0, 5);
    tell(1, 2, 5, 1000);
    tell(1, 3, 900, 901);
    expect_pair(2, 3);
}

static void a_belief_of_no_length_overlaps_with_nothing(void **state)
{
    (void)state;
    tell(1, 1, 10, 20);
    tell(1, 2, 15, 15);
    tell(1, 3, 18, 12);
    tell(1, 4, 10, 10);
    assert_false(overlap());
    tell(1, 5, 19, 25);
    expect_pair(1, 5);
}

static void other_locks_do_not_count(void **state)
{
    (void)state;
    for (uint32_t lock = 0; lock < 1000; lock++)
        tell(lock, lock % 7, 0, 100);
    assert_false(overlap());
    tell(UINT32_MAX, 1, 0, 100);
    assert_false(overlap());
    tell(500, 1, 99, 101);
    expect_pair(501, 1002);
}

static void the_ends_of_time_are_times_too(void **state)
{
    (void)state;
    tell(1, 1, INT64_MIN, 0);
    tell(1, 2, 0, INT64_MAX);
    assert_false(overlap());
    tell(1, 3, INT64_MAX - 1, INT64_MAX);
    expect_pair(2, 3);
}

static void one_party_may_overlap_with_itself(void **state)
{
    (void)state;
    tell_of_party(7, 10, 30);
    tell_of_party(7, 15, 20);
    tell_of_party(7, 29, 50);
    assert_false(overlap());
    tell_of_party(8, 50, 60);
    assert_false(overlap());
    tell_of_party(8, 49, 60);
    expect_pair(3, 5);
}

static void a_party_does_not_hide_the_one_behind_it(void **state)
{
    (void)state;
    tell_of_party(7, 0, 100);
    tell_of_party(8, 10, 20); /* found first */
    expect_pair(1, 2);
}

static void the_other_party_may_reach_less_far(void **state)
{
    (void)state;
    tell_of_party(8, 0, 10);
    tell_of_party(7, 10, 100);
    tell_of_party(7, 11, 90);
    tell_of_party(7, 95, 120);
    assert_false(overlap());
    tell_of_party(8, 119, 130);
    expect_pair(4, 5);
}

static void no_party_shares_with_nobody(void **state)
{
    (void)state;
    tell_of_party(0, 10, 20);
    tell_of_party(0, 19, 30);
    expect_pair(1, 2);
}

static void more_can_be_told_after_a_question(void **state)
{
    (void)state;
    tell(2, 1, 10, 20);
    tell(1, 1, 10, 20);
    assert_false(overlap());
    tell(1, 2, 5, 11);
    expect_pair(3, 2);
    assert_int_equal(history_count(told), 3);
}

/* ---- Random histories against every pair ----------------------------------------------------- */

static uint64_t random_state = 1;

static uint64_t draw(uint64_t below)
{
    random_state = random_state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (random_state >> 33) % below;
}

static bool overlapping(const belief *a, const belief *b)
{
    bool may_share = a->party == b->party && a->party != 0;
    return !may_share && a->lock == b->lock && a->from_ns < a->until_ns &&
           b->from_ns < b->until_ns && a->from_ns < b->until_ns && b->from_ns < a->until_ns;
}

static bool any_pair_overlaps(const belief *beliefs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t j = i + 1; j < count; j++)
            if (overlapping(&beliefs[i], &beliefs[j]))
                return true;
    return false;
}

/* One random history, sparse enough that about half of them are clean. */
static bool judge_random_history(void)
{
    belief beliefs[24];
    size_t count = draw(24);
    uint64_t length = 1 + draw(12);
    uint64_t parties = 1 + draw(4); /* one of them is 0, which is none */
    history_free(told);
    told = history_new();
    assert_non_null(told);
    for (size_t i = 0; i < count; i++) {
        int64_t from = (int64_t)draw(400);
        beliefs[i] = (belief){.lock = (uint32_t)draw(4),
                              .client = (uint32_t)draw(3),
                              .hold = i,
                              .party = draw(parties),
                              .from_ns = from,
                              .until_ns = from - 2 + (int64_t)draw(length + 3)};
        assert_true(history_add(told, &beliefs[i]));
    }
    bool found = overlap();
    assert_int_equal(found, any_pair_overlaps(beliefs, count));
    if (found) {
        assert_true(overlapping(&first, &second));
        assert_true(first.hold != second.hold);
        assert_true(overlapping(&beliefs[first.hold], &beliefs[second.hold]));
    }
    return found;
}

static void random_histories_are_judged_like_every_pair(void **state)
{
    (void)state;
    int found = 0;
    for (int i = 0; i < 20000; i++)
        found += judge_random_history() ? 1 : 0;
    assert_in_range(found, 2000, 18000); /* both answers were tried, often */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nothing_and_one_are_fine, begin, end),
        cmocka_unit_test_setup_teardown(touching_is_no_overlap, begin, end),
        cmocka_unit_test_setup_teardown(one_nanosecond_is_an_overlap, begin, end),
        cmocka_unit_test_setup_teardown(equal_beliefs_overlap, begin, end),
        cmocka_unit_test_setup_teardown(the_same_client_twice_overlaps, begin, end),
        cmocka_unit_test_setup_teardown(a_long_one_covers_a_distant_short_one, begin, end),
        cmocka_unit_test_setup_teardown(a_belief_of_no_length_overlaps_with_nothing, begin, end),
        cmocka_unit_test_setup_teardown(other_locks_do_not_count, begin, end),
        cmocka_unit_test_setup_teardown(the_ends_of_time_are_times_too, begin, end),
        cmocka_unit_test_setup_teardown(one_party_may_overlap_with_itself, begin, end),
        cmocka_unit_test_setup_teardown(a_party_does_not_hide_the_one_behind_it, begin, end),
        cmocka_unit_test_setup_teardown(the_other_party_may_reach_less_far, begin, end),
        cmocka_unit_test_setup_teardown(no_party_shares_with_nobody, begin, end),
        cmocka_unit_test_setup_teardown(more_can_be_told_after_a_question, begin, end),
        cmocka_unit_test_setup_teardown(random_histories_are_judged_like_every_pair, begin, end),
    };
    return cmocka_run_group_tests_name("history", tests, NULL, NULL);
}
