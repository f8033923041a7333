/* SPDX-License-Identifier: MIT */
/* Patterns: what they match is what KEYS and SCAN of a Redis 7.0.15 match, where these cases were
 * tried. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/glob.h"

/* In blocks of exactly their size, so that reading beyond is seen. */
static bool matches(const char *pattern, size_t pattern_length, const char *text, size_t length)
{
    char *p = malloc(pattern_length + 1), *t = malloc(length + 1);
    assert_true(p != NULL && t != NULL);
    memcpy(p + 1, pattern, pattern_length);
    memcpy(t + 1, text, length);
    bool matched = hf__glob_matches(p + 1, pattern_length, t + 1, length);
    free(p);
    free(t);
    return matched;
}

typedef struct glob_case {
    const char *pattern;
    const char *text;
} glob_case;

static void expect(const glob_case *cases, size_t count, bool expected)
{
    for (size_t i = 0; i < count; i++)
        if (matches(cases[i].pattern, strlen(cases[i].pattern), cases[i].text,
                    strlen(cases[i].text)) != expected)
            fail_msg("\"%s\" and \"%s\"", cases[i].pattern, cases[i].text);
}

static void these_match(void **state)
{
    static const glob_case cases[] = {
        {"abc", "abc"},
        {"*", "abc"},
        {"**", "abc"},
        {"a*", "a"},
        {"*c", "abc"},
        {"a*c", "ac"},
        {"a*c", "abcbc"},
        {"*b*", "abc"},
        {"?", "a"},
        {"???", "abc"},
        {"a?c", "abc"},
        {"*?", "a"},
        {"[abc]", "b"},
        {"[a-c]", "b"},
        {"[c-a]", "b"},
        {"[^a-c]", "d"},
        {"[^a]*", "bcd"},
        {"\\*", "*"},
        {"\\?", "?"},
        {"\\[a]", "[a]"},
        {"a\\", "a\\"},
        {"[\\]]", "]"},
        {"[a", "a"},
        {"*.*.*", "a.b.c"},
        {"order:*", "order:"},
        {"a*b*c*d", "aXbXcXd"},
        {"*a*a*a", "aaaa"},
        {"{*}", "{x}"},
    };
    (void)state;
    expect(cases, sizeof(cases) / sizeof(cases[0]), true);
}

static void these_do_not(void **state)
{
    static const glob_case cases[] = {
        {"abc", "ab"},    {"ab", "abc"},        {"abc", "ABC"}, {"?", ""},      {"??", "a"},
        {"a*c", "ab"},    {"*b", "abc"},        {"[abc]", "d"}, {"[a-c]", "d"}, {"[^a-c]", "b"},
        {"[^abc]", "c"},  {"\\*", "a"},         {"\\?", "a"},   {"[a]", ""},    {"a[", "a"},
        {"a*b*c", "acb"}, {"order:*", "order"}, {"[]a", "]a"},  {"*.", "a.b"},  {"", "a"},
    };
    (void)state;
    expect(cases, sizeof(cases) / sizeof(cases[0]), false);
}

static void any_bytes_may_be_in_both(void **state)
{
    (void)state;
    assert_true(matches("a\0b*", 4, "a\0b\0c", 5));
    assert_false(matches("a\0b", 3, "a\0c", 3));
    assert_true(matches("[\x80-\xff]", 5, "\xc3", 1));
    assert_false(matches("[\x80-\xff]", 5, "a", 1));
    assert_true(matches("", 0, "", 0));
    assert_true(matches("*", 1, "", 0));
    assert_false(matches("?", 1, "", 0));
}

/* A hundred stars and a text that almost fits: no more steps than the product of the lengths. */
static void many_stars_take_no_longer(void **state)
{
    (void)state;
    char pattern[203], text[1024];
    for (size_t i = 0; i < 200; i += 2)
        memcpy(pattern + i, "*a", 2);
    memcpy(pattern + 200, "*b", 3);
    memset(text, 'a', sizeof(text));
    assert_false(matches(pattern, 202, text, sizeof(text)));
    text[sizeof(text) - 1] = 'b';
    assert_true(matches(pattern, 202, text, sizeof(text)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(these_match),
        cmocka_unit_test(these_do_not),
        cmocka_unit_test(any_bytes_may_be_in_both),
        cmocka_unit_test(many_stars_take_no_longer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
