/* SPDX-License-Identifier: MIT */
/* SCAN, the query that is no script: page by page, with cursors of any size, and nothing of a reply
 * that broke off. How it travels is in test_ask.c. */
#include <stdio.h>
#include <string.h>

#include "stage.h"

#define S           the_stage
#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

/* How often the key with that end is in what scans have found so far. */
static int count_keys(const hf__buffer *keys, const char *end)
{
    const char *at = hf__buffer_front(keys);
    size_t left = hf__buffer_length(keys);
    int count = 0;
    while (left > 0) {
        uint32_t length;
        assert_true(left >= sizeof(length));
        memcpy(&length, at, sizeof(length));
        at += sizeof(length);
        assert_true(left >= sizeof(length) + length && length >= strlen(end));
        count += memcmp(at + length - strlen(end), end, strlen(end)) == 0;
        at += length;
        left -= sizeof(length) + length;
    }
    return count;
}

static void scan_finds_page_by_page(void **state)
{
    (void)state;
    char name[32];
    int found = 0, pages = 0;
    uint64_t cursor = 0;
    SETUP();
    for (int i = 0; i < 300; i++) {
        snprintf(name, sizeof(name), "hf:f:{0}lock-%d", i);
        node_set(&S.node, name, "1", 10000);
    }
    ACQUIRE(2, "other");
    do {
        SCAN(1, "hf:f:{*}lock-*", cursor);
        EXPECT(1, HF_OK);
        cursor = ANSWER(1)->number;
        found += count_keys(&ANSWER(1)->keys, "");
        assert_int_equal(count_keys(&ANSWER(1)->keys, "other"), 0);
        pages++;
    } while (cursor != 0 && pages < 100);
    assert_int_equal(found, 300);
    assert_true(pages > 1);
    FINISH();
}

static void large_cursors_are_taken_and_given(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(9, "warm");
    node_say(&S.node, "*2\r\n$20\r\n18446744073709551615\r\n*0\r\n");
    SCAN(1, "*", 0);
    EXPECT(1, HF_OK);
    assert_true(ANSWER(1)->number == UINT64_MAX);
    assert_int_equal(hf__buffer_length(&ANSWER(1)->keys), 0);
    SCAN(1, "*", UINT64_MAX);
    EXPECT(1, HF_OK);
    FINISH();
}

static void senseless_scans_are_asked_for_again(void **state)
{
    (void)state;
    static const char *const nonsense[] = {
        "+OK\r\n",
        "*0\r\n",
        "*1\r\n$1\r\n0\r\n",
        "*3\r\n$1\r\n0\r\n*0\r\n*0\r\n",
        "*2\r\n:0\r\n*0\r\n",
        "*2\r\n$1\r\nx\r\n*0\r\n",
        "*2\r\n$0\r\n\r\n*0\r\n",
        "*2\r\n$2\r\n-1\r\n*0\r\n",
        "*2\r\n$20\r\n18446744073709551616\r\n*0\r\n",
        "*2\r\n$1\r\n0\r\n$1\r\nx\r\n",
        "*2\r\n$1\r\n0\r\n*1\r\n:1\r\n",
        "*2\r\n$1\r\n0\r\n*2\r\n$3\r\nxyz\r\n$-1\r\n", /* sense at first */
        "*2\r\n$1\r\n0\r\n*2\r\n$3\r\nxyz\r\n*0\r\n",
    };
    for (size_t i = 0; i < COUNT(nonsense); i++) {
        SETUP();
        ACQUIRE(1, "x");
        node_say(&S.node, nonsense[i]);
        SCAN(2, "hf:f:*x", 0);
        EXPECT_WAITING(2);
        ADVANCE_MS(30);
        EXPECT(2, HF_OK);
        assert_int_equal(count_keys(&ANSWER(2)->keys, "x"), 1);
        assert_int_equal(count_keys(&ANSWER(2)->keys, ""), 1); /* nothing of what broke off */
        FINISH();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scan_finds_page_by_page),
        cmocka_unit_test(large_cursors_are_taken_and_given),
        cmocka_unit_test(senseless_scans_are_asked_for_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
