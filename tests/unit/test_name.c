/* SPDX-License-Identifier: MIT */
/* Slots and side keys. The slots in the table were asked of a real server (CLUSTER KEYSLOT, Redis
 * 7.0.15), because a test that computes them with our own CRC would only compare us with ourselves.
 * Side keys must be in the slot of their lock and must not collide, for whatever bytes a name is
 * made of; names of braces are the ones that break such schemes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "base/text.h"
#include "core/crc16.h"
#include "core/name.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define NAME(literal)   "" literal, sizeof(literal) - 1

static const struct {
    const char *name;
    size_t length;
    unsigned slot;
} known[] = {
    {NAME("x"), 16287},
    {NAME("a"), 15495},
    {NAME("foo"), 12182},
    {NAME("123456789"), 12739},
    {NAME("order:42"), 8691},
    {NAME(" "), 9314},
    {NAME(""), 0},
    {NAME("{x}"), 16287},
    {NAME("{x}y"), 16287},
    {NAME("a{x}b"), 16287},
    {NAME("{}x"), 10595},
    {NAME("{}"), 15257},
    {NAME("x{}"), 2608},
    {NAME("}{"), 12793},
    {NAME("a}b"), 7866},
    {NAME("{a}b}"), 15495},
    {NAME("{{a}}"), 10276},
    {NAME("foo{{bar}}zap"), 4015},
    {NAME("foo{bar}{zap}"), 5061},
    {NAME("foo{}{bar}"), 8363},
    {NAME("{user1000}.following"), 3443},
    {NAME("{user1000}.followers"), 3443},
    {NAME("{"), 4092},
    {NAME("}"), 12090},
    {NAME("{x"), 11068},
    {NAME("x}"), 11978},
    {NAME("}x{y}"), 12222},
    {NAME("a{b"), 13340},
    {NAME("\0"), 0},
    {NAME("a\0b"), 8383},
    {NAME("{\0}z"), 0},
    {NAME("\xff\xfe\xfd"), 287},
    {NAME("\x80{\xff}\0"), 7920},
    {NAME("hf:q:{0}x"), 13907},
    {NAME("schl\xc3\xbcssel"), 7677},
};

static void slots_are_those_of_a_real_server(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(known); i++) {
        if (hf__slot(known[i].name, known[i].length) != known[i].slot)
            fail_msg("slot of \"%s\" (number %zu in the table)", known[i].name, i);
    }
    char longest[1024];
    memset(longest, 'k', sizeof(longest));
    assert_int_equal(hf__slot(longest, sizeof(longest)), 483);
}

static void the_checksum_is_xmodem(void **state)
{
    (void)state;
    assert_int_equal(hf__crc16("123456789", 9), 0x31c3); /* the check value of CRC-16/XMODEM */
    assert_int_equal(hf__crc16("", 0), 0);
}

/* Every number up to the largest tag either is the tag of its slot or comes after it. */
static void tags_are_the_smallest_numbers_in_their_slots(void **state)
{
    (void)state;
    static bool seen[HF__SLOTS];
    char digits[20];
    uint32_t largest = 0;
    unsigned missing = HF__SLOTS;
    for (unsigned slot = 0; slot < HF__SLOTS; slot++)
        largest = hf__slot_tags[slot] > largest ? hf__slot_tags[slot] : largest;
    for (uint32_t number = 0; number <= largest; number++) {
        unsigned slot = hf__slot(digits, hf__digits(digits, number));
        if (seen[slot])
            continue;
        seen[slot] = true;
        missing--;
        if (hf__slot_tags[slot] != number)
            fail_msg("slot %u has the tag %u, but %u is smaller", slot, hf__slot_tags[slot],
                     number);
    }
    assert_int_equal(missing, 0);
    assert_in_range(largest, 0, 9999999); /* seven digits: far within HF__SIDE_KEY_EXTRA */
}

typedef struct side_key {
    char *bytes; /* of exactly the promised size, so that writing beyond is seen */
    size_t length;
} side_key;

static side_key make_side_key(char letter, const char *name, size_t length)
{
    side_key made;
    made.bytes = malloc(length + HF__SIDE_KEY_EXTRA);
    assert_non_null(made.bytes);
    made.length = hf__side_key(made.bytes, HF__SLICE(""), letter, (hf__slice){name, length},
                               hf__slot(name, length));
    assert_true(made.length <= length + HF__SIDE_KEY_EXTRA);
    return made;
}

static void expect_side_key(const char *name, const char *expected)
{
    side_key made = make_side_key('q', name, strlen(name));
    assert_int_equal(made.length, strlen(expected));
    assert_memory_equal(made.bytes, expected, made.length);
    free(made.bytes);
}

static void expect_side_key_in_slot(const char *name, size_t length)
{
    side_key made = make_side_key('q', name, length);
    assert_int_equal(hf__slot(made.bytes, made.length), hf__slot(name, length));
    assert_memory_equal(made.bytes, "hf:q:{", 6);
    assert_memory_equal(made.bytes + made.length - length, name, length);
    free(made.bytes);
}

static void side_keys_have_these_bytes(void **state)
{
    (void)state;
    expect_side_key("x", "hf:q:{5300}x");
    expect_side_key("{x}", "hf:q:{5300}{x}");
    expect_side_key("a}b", "hf:q:{20658}a}b");
    expect_side_key("{}x", "hf:q:{19354}{}x");
    expect_side_key("}{", "hf:q:{10048}}{");
    side_key made = make_side_key('w', "x", 1);
    assert_memory_equal(made.bytes, "hf:w:{", 6);
    free(made.bytes);
}

static void side_keys_are_in_the_slot_of_their_lock(void **state)
{
    (void)state;
    uint64_t random = 3;
    char name[64];
    for (size_t i = 0; i < COUNT_OF(known); i++)
        expect_side_key_in_slot(known[i].name, known[i].length);
    for (int i = 0; i < 20000; i++) {
        size_t length = 1 + hf__random_below(&random, i % 2 == 0 ? 8 : sizeof(name) - 1);
        bool binary = hf__random_below(&random, 3) == 0;
        for (size_t at = 0; at < length; at++)
            name[at] = binary ? (char)hf__random_below(&random, 256)
                              : "{}ab"[hf__random_below(&random, 4)];
        expect_side_key_in_slot(name, length);
    }
}

/* A prefix has no '{', so the braces stay the first ones. The longest one is within what is
 * promised.
 */
static void side_keys_under_a_prefix_are_in_the_same_slot(void **state)
{
    (void)state;
    char longest[HF_SIDE_PREFIX_MAX + 1];
    memset(longest, '}', HF_SIDE_PREFIX_MAX);
    longest[HF_SIDE_PREFIX_MAX] = '\0';
    const char *prefixes[] = {"shop:", "}", "a}b", "hf:q:", "*", longest};
    for (size_t p = 0; p < COUNT_OF(prefixes); p++) {
        hf__slice prefix = hf__slice_text(prefixes[p]);
        for (size_t i = 0; i < COUNT_OF(known); i++) {
            hf__slice key = {known[i].name, known[i].length};
            char *side = malloc(key.length + HF__SIDE_KEY_EXTRA);
            assert_non_null(side);
            size_t length = hf__side_key(side, prefix, 'q', key, known[i].slot);
            assert_true(length <= key.length + HF__SIDE_KEY_EXTRA);
            assert_int_equal(hf__slot(side, length), known[i].slot);
            assert_memory_equal(side, prefix.bytes, prefix.length);
            assert_memory_equal(side + prefix.length, "hf:q:{", 6);
            free(side);
        }
    }
}

static int compare_side_keys(const void *left, const void *right)
{
    const side_key *a = left, *b = right;
    size_t shorter = a->length < b->length ? a->length : b->length;
    int order = memcmp(a->bytes, b->bytes, shorter);
    return order != 0 ? order : (a->length > b->length) - (a->length < b->length);
}

/* All names of one to six characters over the alphabet that is dangerous: none share a side key. */
static void different_names_have_different_side_keys(void **state)
{
    (void)state;
    enum { LENGTH_MAX = 6, NAMES = 4 + 16 + 64 + 256 + 1024 + 4096 };
    static side_key all[NAMES];
    size_t made = 0;
    char name[LENGTH_MAX];
    for (size_t length = 1; length <= LENGTH_MAX; length++) {
        for (unsigned number = 0; number < 1u << 2 * length; number++) {
            for (size_t at = 0; at < length; at++)
                name[at] = "{}10"[number >> 2 * at & 3];
            all[made++] = make_side_key('q', name, length);
        }
    }
    assert_int_equal(made, NAMES);
    qsort(all, made, sizeof(all[0]), compare_side_keys);
    for (size_t i = 1; i < made; i++)
        assert_int_not_equal(compare_side_keys(&all[i - 1], &all[i]), 0);
    for (size_t i = 0; i < made; i++)
        free(all[i].bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slots_are_those_of_a_real_server),
        cmocka_unit_test(the_checksum_is_xmodem),
        cmocka_unit_test(tags_are_the_smallest_numbers_in_their_slots),
        cmocka_unit_test(side_keys_have_these_bytes),
        cmocka_unit_test(side_keys_are_in_the_slot_of_their_lock),
        cmocka_unit_test(side_keys_under_a_prefix_are_in_the_same_slot),
        cmocka_unit_test(different_names_have_different_side_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
