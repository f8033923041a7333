/* SPDX-License-Identifier: MIT */
/* Which block of ids comes next on a quorum, by what its servers say, and whether it is ours. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

#include "core/ids.h"

enum { NOW = 1000, SKEW = 2, JUMP = 2 * SKEW + 1 };

static const hf__ids_config config = {.epoch_s = 7, .skew_s = SKEW};
static hf__numbers said[HF_SERVERS_MAX];
static hf__ids_choice choice;
static hf_error error;
static int64_t seen;

/* ---- Verbs ---- */

static int begin(void **state)
{
    (void)state;
    memset(said, 0, sizeof(said));
    seen = 0;
    return 0;
}

/* Its process is 10 + its number. */
static void says(int server, int knows, int64_t now, int64_t part, int64_t sequence)
{
    said[server] = (hf__numbers){5, {knows, now, part, sequence, 10 + server}};
}

static void knows(int server, int64_t part, int64_t sequence)
{
    says(server, 1, NOW, part, sequence);
}

static void forgets(int server)
{
    says(server, 2, NOW, 0, 0);
}

static hf_status choose(int servers, int64_t count)
{
    return hf__ids_choose(&config, said, servers, seen, count, &choice, &error);
}

static void expect(int servers, int64_t count, int64_t part, int64_t sequence)
{
    assert_int_equal(choose(servers, count), HF_OK);
    assert_int_equal(hf__ids_part(choice.block.first), part);
    assert_int_equal(hf__ids_sequence(choice.block.first), sequence);
    assert_int_equal(choice.block.count, count);
}

static void answers(int server, int64_t first, int64_t second)
{
    said[server] = (hf__numbers){first == 1 ? 1 : 2, {first, second}};
}

static hf_status kept(int servers)
{
    return hf__ids_keep_outcome(&config, said, servers, &error);
}

/* ---- What comes next ---- */

static void behind_the_highest_block(void **state)
{
    (void)state;
    knows(0, NOW, 50);
    knows(2, NOW, 70);
    expect(3, 10, NOW, 70);
    seen = hf__ids_make(NOW + 3, 5);
    expect(3, 10, NOW + 3, 5);
}

static void a_new_second_begins_at_0(void **state)
{
    (void)state;
    knows(0, NOW - 1, 50);
    knows(1, NOW - 2, 70);
    expect(3, 10, NOW, 0);
}

static void a_second_that_has_no_room_is_left(void **state)
{
    (void)state;
    knows(0, NOW, (INT64_C(1) << 32) - 5);
    knows(1, 0, 0);
    expect(3, 5, NOW, (INT64_C(1) << 32) - 5);
    expect(3, 6, NOW + 1, 0);
    knows(0, NOW, INT64_C(1) << 32);
    expect(3, 1, NOW + 1, 0);
}

static void one_clock_that_is_ahead_does_not_count(void **state)
{
    (void)state;
    knows(0, 5, 0);
    says(1, 1, NOW * 1000, 5, 0);
    expect(3, 1, NOW, 0);
    says(2, 1, NOW + 1, 5, 0);
    expect(3, 1, NOW + 1, 0);
}

static void the_epoch_has_an_end(void **state)
{
    (void)state;
    knows(0, (INT64_C(1) << 31) - 2, 0);
    knows(1, 0, 0);
    expect(3, 1, (INT64_C(1) << 31) - 2, 0);
    forgets(1);
    assert_int_equal(choose(3, 1), HF_ESERVER);
    says(0, 1, -1, 0, 0);
    says(1, 1, -1, 0, 0);
    assert_int_equal(choose(3, 1), HF_ESERVER);
}

/* ---- Servers that forget ---- */

static void one_that_forgot_makes_it_jump(void **state)
{
    (void)state;
    knows(0, NOW, 50);
    forgets(1);
    expect(3, 10, NOW + JUMP, 0);
    assert_int_equal(choice.asked, 2);
    assert_int_equal(choice.processes[0], 10);
    assert_int_equal(choice.processes[1], 11);
}

static void it_does_not_jump_from_jump_to_jump(void **state)
{
    (void)state;
    knows(0, NOW + JUMP, 50);
    forgets(1);
    expect(3, 10, NOW + JUMP + 1, 0);
    knows(0, NOW + JUMP - 2, 50);
    expect(3, 10, NOW + JUMP, 0);
}

/* The other one may have answered long before. */
static void the_clock_of_one_that_forgot_counts(void **state)
{
    (void)state;
    says(0, 1, NOW - 60, 5, 0);
    says(1, 1, NOW - 60, 5, 0);
    says(2, 2, NOW, 0, 0);
    expect(5, 1, NOW + JUMP, 0);
}

static void those_that_forgot_have_no_say_if_enough_know(void **state)
{
    (void)state;
    knows(0, NOW, 50);
    forgets(1);
    knows(2, NOW, 60);
    expect(3, 10, NOW, 60);
    assert_int_equal(choice.asked, 2);
    assert_int_equal(choice.processes[0], 10);
    assert_int_equal(choice.processes[1], 12);
}

/* ---- Objections ---- */

static void somebody_newer_stops_it(void **state)
{
    (void)state;
    knows(0, NOW, 50);
    knows(1, NOW, 50);
    answers(2, 0, 77);
    assert_int_equal(choose(3, 1), HF_EBUSY);
    answers(2, -1, 8);
    assert_int_equal(choose(3, 1), HF_EINVAL);
    assert_non_null(strstr(error.text, "epoch_s 8, not 7"));
}

static void nonsense_is_not_believed(void **state)
{
    static const hf__numbers nonsense[] = {{5, {3, NOW, 0, 0, 1}},
                                           {5, {1, NOW, -1, 0, 1}},
                                           {5, {1, NOW, INT64_C(1) << 31, 0, 1}},
                                           {5, {1, NOW, 0, -1, 1}},
                                           {5, {1, NOW, 0, (INT64_C(1) << 32) + 1, 1}},
                                           {5, {1, NOW, 0, 0, -1}},
                                           {4, {1, NOW, 0, 0}},
                                           {0, {0}}};
    (void)state;
    for (size_t i = 0; i < sizeof(nonsense) / sizeof(nonsense[0]); i++) {
        knows(0, NOW, 50);
        said[1] = nonsense[i];
        assert_int_equal(choose(3, 1), HF_ESERVER);
    }
}

/* ---- Kept ---- */

static void it_is_ours_if_a_majority_keeps_it(void **state)
{
    (void)state;
    answers(0, 1, 0);
    answers(2, 1, 0);
    assert_int_equal(kept(3), HF_OK);
    answers(1, 0, 77);
    assert_int_equal(kept(3), HF_OK);
    assert_int_equal(kept(5), HF_EBUSY);
}

static void it_is_not_ours_otherwise(void **state)
{
    (void)state;
    answers(0, 1, 0);
    answers(1, 0, 77);
    assert_int_equal(kept(3), HF_EBUSY);
    answers(1, -1, 8);
    assert_int_equal(kept(3), HF_EINVAL);
    answers(0, 0, 77);
    answers(1, 0, 77);
    assert_int_equal(kept(3), HF_EBUSY);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, begin)
    static const struct CMUnitTest tests[] = {
        TEST(behind_the_highest_block),
        TEST(a_new_second_begins_at_0),
        TEST(a_second_that_has_no_room_is_left),
        TEST(one_clock_that_is_ahead_does_not_count),
        TEST(the_epoch_has_an_end),
        TEST(one_that_forgot_makes_it_jump),
        TEST(it_does_not_jump_from_jump_to_jump),
        TEST(the_clock_of_one_that_forgot_counts),
        TEST(those_that_forgot_have_no_say_if_enough_know),
        TEST(somebody_newer_stops_it),
        TEST(nonsense_is_not_believed),
        TEST(it_is_ours_if_a_majority_keeps_it),
        TEST(it_is_not_ours_otherwise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
