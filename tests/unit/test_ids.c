/* SPDX-License-Identifier: MIT */
/* What answers about ids come to at one server (test_ids_quorum.c: at several); and ids that look
 * like any other number, and back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/shuffle.h"
#include "core/ids.h"

enum { EPOCH = 1000, SKEW = 2, PART_MAX = 0x7fffffff };

#define SEQUENCES (INT64_C(1) << 32)

static const hf__ids_config config = {
    .prefix = {"p:", 2}, .name = {"n", 1}, .epoch_s = EPOCH, .skew_s = SKEW};
static hf__ids_block block;
static hf_error error;

static int begin(void **state)
{
    (void)state;
    block = (hf__ids_block){0};
    return 0;
}

static hf__numbers *numbers(hf__numbers *place, int count, int64_t a, int64_t b, int64_t c,
                            int64_t d)
{
    *place = (hf__numbers){count, {a, b, c, d}};
    return place;
}

static void expect_block(int64_t part, int64_t sequence, int64_t count)
{
    assert_int_equal(hf__ids_part(block.first), part);
    assert_int_equal(hf__ids_sequence(block.first), sequence);
    assert_int_equal(block.count, count);
}

/* ---- Numbers ---- */

static void the_time_part_is_above_the_sequence(void **state)
{
    (void)state;
    assert_int_equal(hf__ids_make(1, 0), SEQUENCES);
    assert_int_equal(hf__ids_make(PART_MAX, SEQUENCES - 1), INT64_MAX);
    assert_int_equal(hf__ids_part(INT64_MAX), PART_MAX);
    assert_int_equal(hf__ids_sequence(INT64_MAX), UINT32_MAX);
    assert_int_equal(hf__ids_make(7, SEQUENCES), hf__ids_make(8, 0));
}

static void the_lock_has_a_name_that_nobody_can_give(void **state)
{
    (void)state;
    char place[1 + HF__IDS_LOCK_EXTRA];
    size_t length = hf__ids_lock_name(place, config.name);
    assert_true(length <= sizeof(place));
    assert_memory_equal(place, "hf:ids:n", 8);
    assert_int_equal(length, 8);
}

/* ---- One server ---- */

static hf_status read_one(int count, int64_t a, int64_t b, int64_t wanted)
{
    hf__numbers one;
    return hf__ids_ask_outcome(&config, numbers(&one, count, a, b, 0, 0), wanted, &block, &error);
}

static void a_server_that_hides_its_process_has_none(void **state)
{
    (void)state;
    assert_int_equal(read_one(1, -3, 0, 10), HF_EUNSAFE);
    assert_non_null(strstr(error.text, "does not tell its run_id"));
    assert_int_equal(block.count, 0);
}

static void a_block_of_one_server(void **state)
{
    (void)state;
    assert_int_equal(read_one(2, 100, 7, 10), HF_OK);
    expect_block(100, 7, 10);
    assert_int_equal(read_one(2, PART_MAX - 1, SEQUENCES - 10, 10), HF_OK);
    assert_int_equal(block.first + block.count, hf__ids_make(PART_MAX, 0));
}

static void nonsense_of_one_server(void **state)
{
    (void)state;
    static const struct {
        int count;
        int64_t a, b;
    } wrong[] = {{0, 0, 0},
                 {1, 100, 0},
                 {3, 100, 7},
                 {2, -3, 7},
                 {2, 100, -1},
                 {2, 100, SEQUENCES - 9},
                 {2, INT64_C(1) << 31, 0},
                 {1, -1, 0},
                 {2, -2, 0},
                 {2, INT64_MIN, 0},
                 {2, INT64_MAX, 0}};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_int_equal(read_one(wrong[i].count, wrong[i].a, wrong[i].b, 10), HF_ESERVER);
        assert_int_equal(error.status, HF_ESERVER);
    }
}

static void refusals_of_one_server(void **state)
{
    (void)state;
    assert_int_equal(read_one(2, -1, 999, 10), HF_EINVAL);
    assert_non_null(strstr(error.text, "999"));
    assert_int_equal(read_one(1, -2, 0, 10), HF_ESERVER);
    assert_non_null(strstr(error.text, "used up"));
    assert_int_equal(read_one(2, PART_MAX, 0, 10), HF_ESERVER);
    assert_non_null(strstr(error.text, "used up"));
}

/* ---- Shuffled ---- */

enum { SAMPLES = 20000 };

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void every_number_has_its_own_and_comes_back(void **state)
{
    (void)state;
    static int64_t results[SAMPLES];
    hf__shuffle shuffle;
    hf__shuffle_init(&shuffle, "0123456789abcdef", 16);
    for (int64_t i = 0; i < SAMPLES; i++) {
        int64_t number = i % 2 == 0 ? hf__ids_make(12345, i) : INT64_MAX - i * i * i;
        results[i] = hf__shuffle_do(&shuffle, number);
        assert_true(results[i] > 0);
        assert_int_equal(hf__shuffle_undo(&shuffle, results[i]), number);
    }
    qsort(results, SAMPLES, sizeof(results[0]), compare);
    for (int i = 1; i < SAMPLES; i++)
        assert_true(results[i] > results[i - 1]);
}

/* The one that zero would take the place of, from both sides. */
static void zero_is_never_one(void **state)
{
    (void)state;
    hf__shuffle shuffle;
    hf__shuffle_init(&shuffle, "fedcba9876543210", 16);
    int64_t from = hf__shuffle_undo(&shuffle, 0), to = hf__shuffle_do(&shuffle, 0);
    assert_true(from > 0 && to > 0);
    assert_int_equal(hf__shuffle_do(&shuffle, from), to);
    assert_int_equal(hf__shuffle_undo(&shuffle, to), from);
}

static int bits_of(int64_t number)
{
    int bits = 0;
    for (; number != 0; number &= number - 1)
        bits++;
    return bits;
}

/* Neighbours, and keys that differ in one bit or in a zero at the end, have nothing in common. */
static void what_is_alike_does_not_look_alike(void **state)
{
    (void)state;
    char key[64] = "a key that is long enough";
    hf__shuffle shuffle, other;
    int by_number = 0, by_key = 0;
    hf__shuffle_init(&shuffle, key, 32);
    for (int i = 0; i < 32 * 8; i++) {
        key[i / 8] = (char)(key[i / 8] ^ 1 << i % 8);
        hf__shuffle_init(&other, key, 32);
        key[i / 8] = (char)(key[i / 8] ^ 1 << i % 8);
        int64_t number = hf__ids_make(777, i), result = hf__shuffle_do(&shuffle, number);
        by_number += bits_of(result ^ hf__shuffle_do(&shuffle, number + 1));
        by_key += bits_of(result ^ hf__shuffle_do(&other, number));
    }
    /* Of 63 bits about the half, 256 times: 8064, give or take 64 if by chance alone. */
    assert_in_range(by_number, 8064 - 8 * 64, 8064 + 8 * 64);
    assert_in_range(by_key, 8064 - 8 * 64, 8064 + 8 * 64);
    hf__shuffle_init(&other, key, 33);
    assert_int_not_equal(hf__shuffle_do(&shuffle, 1), hf__shuffle_do(&other, 1));
}

/* They are in databases: the same key must mean the same for ever. */
static void what_was_published_stays(void **state)
{
    (void)state;
    hf__shuffle shuffle;
    hf__shuffle_init(&shuffle, "0123456789abcdef", 16);
    assert_int_equal(hf__shuffle_do(&shuffle, 1), INT64_C(8376280123618173973));
    assert_int_equal(hf__shuffle_do(&shuffle, INT64_MAX), INT64_C(7218573908099109632));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_time_part_is_above_the_sequence),
        cmocka_unit_test(the_lock_has_a_name_that_nobody_can_give),
        cmocka_unit_test_setup(a_server_that_hides_its_process_has_none, begin),
        cmocka_unit_test_setup(a_block_of_one_server, begin),
        cmocka_unit_test_setup(nonsense_of_one_server, begin),
        cmocka_unit_test_setup(refusals_of_one_server, begin),
        cmocka_unit_test(every_number_has_its_own_and_comes_back),
        cmocka_unit_test(zero_is_never_one),
        cmocka_unit_test(what_is_alike_does_not_look_alike),
        cmocka_unit_test(what_was_published_stays),
    };
    return cmocka_run_group_tests_name("ids", tests, NULL, NULL);
}
