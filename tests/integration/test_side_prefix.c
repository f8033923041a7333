/* SPDX-License-Identifier: MIT */
/* Goal: with a side prefix, everything that the library keeps at a server is under it, whatever
 * bytes it is made of, and everything that finds locks still finds them. That one pattern of an
 * access list is enough then is in test_acl.c.
 */
#include <stdio.h>
#include <string.h>

#include "fixture.h"

static hf_hold *hold;
static hf_error error;
static struct attempt waiter;

static int begin(void **state)
{
    (void)state;
    empty_server();
    hold = NULL;
    return 0;
}

/* ---- Verbs ----------------------------------------------------------------------------------- */

static void open_pair(const char *prefix, const char *side_prefix)
{
    open_client_with(&alice, HF_CLIENT(.prefix = prefix, .side_prefix = side_prefix));
    open_client_with(&bob, HF_CLIENT(.prefix = prefix, .side_prefix = side_prefix));
}

/* Fails if the server has any key that does not begin like that. */
static void expect_all_begin(const char *start)
{
    static const char script[] = "for _, key in ipairs(redis.call('KEYS', '*')) do "
                                 "if string.sub(key, 1, #ARGV[1]) ~= ARGV[1] then return key end "
                                 "end return 'fine'";
    assert_string_equal(raw(server, "EVAL %s 0 %s", script, start), "fine");
}

struct listed {
    int count;
    char name[64];
    uint64_t queue_length;
};

static bool note(void *arg, const hf_inspection *inspection)
{
    struct listed *listed = arg;
    listed->count++;
    listed->queue_length = inspection->queue_length;
    (void)snprintf(listed->name, sizeof(listed->name), "%.60s", inspection->name);
    return true;
}

static atomic_int granted, broken;

static void see(void *arg, const hf_sight *sight)
{
    (void)arg;
    atomic_fetch_add(&granted, sight->kind == HF_SEEN_GRANTED);
    atomic_fetch_add(&broken, sight->kind == HF_SEEN_BROKEN);
}

/* Waits, watches, lists, asks for it, takes it away. */
static void use_all(const char *prefix, const char *side_prefix)
{
    struct listed listed = {0};
    hf_observer *observer;
    empty_server();
    open_pair(prefix, side_prefix);
    atomic_store(&granted, 0);
    atomic_store(&broken, 0);
    EXPECT(HF_OK, hf_observe(bob, "lock", 0, see, NULL, &observer, &error));
    hold = acquire_with(alice, NULL);
    attempt_begin(&waiter, bob, "lock", HF_ACQUIRE(.wait_ms = 20000));
    do {
        listed = (struct listed){0};
        EXPECT(HF_OK, hf_list(alice, "l?ck", note, &listed, &error));
        assert_int_equal(listed.count, 1);
        assert_string_equal(listed.name, "lock");
    } while (listed.queue_length == 0 && !attempt_is_over(&waiter));
    if (strcmp(prefix, side_prefix) == 0)
        expect_all_begin(prefix);
    EXPECT(HF_OK, hf_revoke(bob, "lock", 0, "please", &error));
    EXPECT(HF_OK, hf_break(bob, "lock", 0, NULL, &error));
    assert_int_equal(attempt_end(&waiter), HF_OK);
    EXPECT(HF_ELOST, hf_release(&hold, &error));
    release(&waiter.hold);
    WAIT_UNTIL(atomic_load(&granted) > 0 && atomic_load(&broken) > 0, 10000);
    hf_observe_end(&observer);
    listed = (struct listed){0};
    EXPECT(HF_OK, hf_list(alice, NULL, note, &listed, &error));
    assert_int_equal(listed.count, 0);
    EXPECT_STATUS(HF_OK, hf_close(alice));
    EXPECT_STATUS(HF_OK, hf_close(bob));
    alice = bob = NULL;
}

/* ---- Prefixes of all kinds ------------------------------------------------------------------- */

static void everything_is_under_the_prefix(void **state)
{
    (void)state;
    use_all("shop:", "shop:");
    assert_true(keys_like("shop:hf:f:*") == 1 && keys_like("hf:*") == 0);
}

static void strange_bytes_stand_for_themselves(void **state)
{
    (void)state;
    static const char *const prefixes[] = {"a}b:", "}", "*", "[a-z]?\\^:", "a b\t", "\xc3\xa9:"};
    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
        use_all(prefixes[i], prefixes[i]);
        use_all("{x}", prefixes[i]);
    }
}

/* What matches as a pattern only is not listed: '*' is a prefix of one character here. */
static void other_prefixes_are_not_listed(void **state)
{
    (void)state;
    struct listed listed = {0};
    open_client_with(&alice, HF_CLIENT(.side_prefix = "ab:"));
    open_client_with(&bob, HF_CLIENT(.side_prefix = "*:"));
    hold = acquire_with(alice, NULL);
    EXPECT(HF_OK, hf_list(bob, NULL, note, &listed, &error));
    assert_int_equal(listed.count, 0);
    EXPECT(HF_OK, hf_list(alice, NULL, note, &listed, &error));
    assert_int_equal(listed.count, 1);
    expect_refused(bob); /* the lock itself is where it always is */
    release(&hold);
}

static void the_longest_prefix(void **state)
{
    (void)state;
    char longest[HF_SIDE_PREFIX_MAX + 2], name[HF_NAME_MAX + 1];
    memset(longest, 's', sizeof(longest));
    memset(name, 'n', sizeof(name));
    longest[HF_SIDE_PREFIX_MAX + 1] = name[HF_NAME_MAX] = '\0';
    EXPECT(HF_EINVAL, hf_open(server->url, HF_CLIENT(.side_prefix = longest), &alice, &error));
    expect_says(error.text, "side_prefix");
    longest[HF_SIDE_PREFIX_MAX] = '\0';
    open_client_with(&alice, HF_CLIENT(.side_prefix = longest));
    hf_observer *observer;
    EXPECT(HF_OK, hf_observe(alice, name, 0, see, NULL, &observer, &error));
    EXPECT(HF_OK, hf_acquire(alice, name, HF_ACQUIRE(.owner = "me"), &hold, &error));
    EXPECT(HF_OK, hf_revoke(alice, name, 0, "please", &error));
    EXPECT(HF_OK, hf_extend(hold, 0, &error));
    release(&hold);
    hf_observe_end(&observer);
}

/* ---- Names ----------------------------------------------------------------------------------- */

static void expect_bad_name(hf_client *client, const char *name)
{
    hf_hold *none;
    EXPECT(HF_EINVAL, hf_acquire(client, name, NULL, &none, &error));
    expect_says(error.text, "side_prefix");
}

/* Wherever the border between prefix and name is. */
static void names_of_side_keys_are_refused(void **state)
{
    (void)state;
    open_client_with(&alice, HF_CLIENT(.prefix = "sho", .side_prefix = "shop:"));
    expect_bad_name(alice, "p:hf:x");
    expect_bad_name(alice, "p:hf:f:{5300}x");
    EXPECT(HF_OK, hf_acquire(alice, "p:hf", NULL, &hold, &error));
    release(&hold);
    open_client_with(&bob, HF_CLIENT(.prefix = "shop:hf:deep:", .side_prefix = "shop:"));
    expect_bad_name(bob, "x");
    EXPECT_STATUS(HF_OK, hf_close(bob));
    open_client_with(&bob, HF_CLIENT(.side_prefix = "shop:"));
    expect_bad_name(bob, "hf:x");
    expect_bad_name(bob, "shop:hf:");
    EXPECT(HF_OK, hf_acquire(bob, "shop:h", NULL, &hold, &error));
    release(&hold);
}

static void a_brace_is_refused(void **state)
{
    (void)state;
    hf_client *none;
    EXPECT(HF_EINVAL, hf_open(server->url, HF_CLIENT(.side_prefix = "a{b"), &none, &error));
    expect_says(error.text, "side_prefix");
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, close_clients)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(everything_is_under_the_prefix), TEST(strange_bytes_stand_for_themselves),
        TEST(other_prefixes_are_not_listed),  TEST(the_longest_prefix),
        TEST(names_of_side_keys_are_refused), TEST(a_brace_is_refused),
    };
    return cmocka_run_group_tests_name("side prefix", tests, start_server, end_server);
}
