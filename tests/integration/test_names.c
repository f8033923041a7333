/* SPDX-License-Identifier: MIT */
/* Goal: the key at the server is exactly the bytes of prefix and name, whatever they are, and
 * different bytes are different locks.
 *
 * Every name is judged by raw(), which sends the bytes by count: what the library mangles on its
 * way is not found there. Refused names are in test_bad_input.c.
 */
#include <string.h>

#include "fixture.h"

struct name {
    const char *bytes;
    size_t length;
};

#define NAME(literal)                \
    {                                \
        literal, sizeof(literal) - 1 \
    }

static hf_client *client;
static hf_error error;

static int start(void **state)
{
    int result = start_server(state);
    open_client(&client);
    return result;
}

static int begin(void **state)
{
    (void)state;
    empty_server();
    return 0;
}

static bool key_exists(const char *bytes, size_t length)
{
    return raw_number(server, "EXISTS %b", bytes, length) == 1;
}

static void hold_all(const struct name *names, size_t count, hf_hold **holds)
{
    for (size_t i = 0; i < count; i++) {
        EXPECT(HF_OK, hf_acquire(client, names[i].bytes,
                                 HF_ACQUIRE(.name_length = names[i].length, .lease_ms = 30000),
                                 &holds[i], &error));
        assert_true(key_exists(names[i].bytes, names[i].length));
    }
}

/* One after the other: releasing one must free that key and leave those after it. */
static void release_all(const struct name *names, size_t count, hf_hold **holds)
{
    hf_hold *other;
    for (size_t i = 0; i < count; i++)
        EXPECT(HF_EBUSY, hf_acquire(client, names[i].bytes,
                                    HF_ACQUIRE(.name_length = names[i].length, .no_reentry = true),
                                    &other, &error));
    for (size_t i = 0; i < count; i++) {
        EXPECT(HF_OK, hf_release(&holds[i], &error));
        for (size_t j = 0; j < count; j++)
            assert_int_equal(key_exists(names[j].bytes, names[j].length), j > i);
    }
}

static void any_bytes_are_a_name(void **state)
{
    (void)state;
    static const struct name names[] = {
        NAME(" "),
        NAME("two words"),
        NAME("line\nbreak\r\n"),
        NAME("\t\x01\x7f"),
        NAME("\xff\xfe\x80"),
        NAME("Sperre-für-Übung"),
        NAME("锁"),
        NAME("$5\r\nhello\r\n"),
        NAME("%s%n"),
        NAME("hf"),
        NAME("HF:x"),
        NAME("hfx:y"),
        NAME(":"),
        NAME("*"),
    };
    enum { COUNT = sizeof(names) / sizeof(names[0]) };
    hf_hold *holds[COUNT] = {NULL};
    hold_all(names, COUNT, holds);
    release_all(names, COUNT, holds);
}

static void names_with_nul_bytes_are_whole(void **state)
{
    (void)state;
    static const struct name names[] = {
        NAME("a"), NAME("a\0"), NAME("a\0b"), NAME("\0"), NAME("\0a"), NAME("\0\0"),
    };
    enum { COUNT = sizeof(names) / sizeof(names[0]) };
    hf_hold *holds[COUNT] = {NULL};
    hold_all(names, COUNT, holds);
    release_all(names, COUNT, holds);
}

static void braces_make_different_locks(void **state)
{
    (void)state;
    static const struct name names[] = {
        NAME("x"), NAME("{x}"), NAME("a}b"), NAME("{}x"), NAME("}{"),
    };
    enum { COUNT = sizeof(names) / sizeof(names[0]) };
    hf_hold *holds[COUNT] = {NULL};
    hold_all(names, COUNT, holds);
    release_all(names, COUNT, holds);
}

static void name_length_may_cut_a_string(void **state)
{
    (void)state;
    hf_hold *hold;
    EXPECT(HF_OK, hf_acquire(client, "abcdef", HF_ACQUIRE(.name_length = 3), &hold, &error));
    assert_true(key_exists("abc", 3));
    assert_false(key_exists("abcdef", 6));
    EXPECT(HF_OK, hf_release(&hold, &error));
}

static void the_longest_name_is_accepted(void **state)
{
    (void)state;
    hf_hold *hold;
    char name[HF_NAME_MAX + 1];
    memset(name, 'n', HF_NAME_MAX);
    name[HF_NAME_MAX] = '\0';
    EXPECT(HF_OK, hf_acquire(client, name, NULL, &hold, &error));
    assert_true(key_exists(name, HF_NAME_MAX));
    EXPECT(HF_OK, hf_extend(hold, 0, &error));
    EXPECT(HF_OK, hf_release(&hold, &error));
    assert_false(key_exists(name, HF_NAME_MAX));
}

static void the_longest_prefix_and_name_are_accepted(void **state)
{
    (void)state;
    hf_client *prefixed;
    hf_hold *hold;
    char prefix[HF_NAME_MAX];
    char key[HF_NAME_MAX];
    memset(prefix, 'p', sizeof(prefix) - 1);
    prefix[sizeof(prefix) - 1] = '\0';
    memcpy(key, prefix, sizeof(prefix) - 1);
    key[sizeof(key) - 1] = 'n';
    EXPECT(HF_OK, hf_open(server->url, HF_CLIENT(.prefix = prefix), &prefixed, &error));
    EXPECT(HF_OK, hf_acquire(prefixed, "n", NULL, &hold, &error));
    assert_true(key_exists(key, sizeof(key)));
    EXPECT(HF_EINVAL, hf_acquire(prefixed, "no", NULL, &(hf_hold *){NULL}, &error));
    EXPECT(HF_OK, hf_release(&hold, &error));
    EXPECT_STATUS(HF_OK, hf_close(prefixed));
}

/* The caller's strings are copied: what he does with them afterwards is his affair. */
static void strings_are_copied(void **state)
{
    (void)state;
    hf_client *copied;
    hf_hold *hold;
    char url[sizeof(server->url)];
    char prefix[] = "mine:";
    char name[] = "name";
    memcpy(url, server->url, sizeof(url));
    EXPECT(HF_OK, hf_open(url, HF_CLIENT(.prefix = prefix), &copied, &error));
    memset(url, 'u', sizeof(url) - 1);
    memset(prefix, 'p', sizeof(prefix) - 1);
    EXPECT(HF_OK, hf_acquire(copied, name, NULL, &hold, &error));
    memset(name, 'n', sizeof(name) - 1);
    assert_true(key_exists("mine:name", 9));
    EXPECT(HF_OK, hf_extend(hold, 0, &error));
    EXPECT(HF_OK, hf_release(&hold, &error));
    assert_false(key_exists("mine:name", 9));
    EXPECT_STATUS(HF_OK, hf_close(copied));
}

#define TEST(function) cmocka_unit_test_setup(function, begin)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(any_bytes_are_a_name),         TEST(names_with_nul_bytes_are_whole),
        TEST(braces_make_different_locks),  TEST(name_length_may_cut_a_string),
        TEST(the_longest_name_is_accepted), TEST(the_longest_prefix_and_name_are_accepted),
        TEST(strings_are_copied),
    };
    return cmocka_run_group_tests_name("names", tests, start, end_everything);
}
