/* SPDX-License-Identifier: MIT */
/* Goal: of those who have read the same version of a value one can write it, and versions are never
 * used again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast_store.h>

#include "fixture.h"

static char place[HF_VALUE_MAX + 1];
static size_t length;
static uint64_t version;
static uint64_t found;
static hf_hold *hold;
static hf_error error;

static hf_status read_value(hf_client *client, const char *name)
{
    memset(place, 0, sizeof(place));
    return hf_value_read(client, name, 0, place, sizeof(place) - 1, &length, &version, &error);
}

static hf_status write_value(hf_client *client, const char *text, uint64_t expected)
{
    return hf_value_write(client, "v", 0, text, text != NULL ? strlen(text) : 0, expected, &found,
                          &error);
}

/* ---- Versions -------------------------------------------------------------------------------- */

static void of_two_writers_one_succeeds(void **state)
{
    (void)state;
    EXPECT(HF_EMISSING, read_value(alice, "v"));
    assert_true(version == 0 && length == 0);
    EXPECT(HF_OK, write_value(alice, "first", 0));
    uint64_t first = found;
    EXPECT(HF_ESTALE, write_value(bob, "me too", 0));
    assert_true(found == first);
    EXPECT(HF_OK, read_value(bob, "v"));
    assert_true(version == first);
    assert_string_equal(place, "first");
    EXPECT(HF_OK, write_value(bob, "second", first));
    assert_true(found > first);
    EXPECT(HF_ESTALE, write_value(alice, "late", first));
    EXPECT(HF_OK, read_value(alice, "v"));
    assert_string_equal(place, "second");
    assert_true(version > first);
}

static void versions_grow_also_after_a_deletion(void **state)
{
    (void)state;
    EXPECT(HF_OK, write_value(alice, "x", 0));
    uint64_t first = found;
    EXPECT(HF_ESTALE, write_value(bob, NULL, first + 1));
    EXPECT(HF_OK, write_value(alice, NULL, first));
    uint64_t deleted = found;
    assert_true(deleted > first);
    EXPECT(HF_EMISSING, read_value(alice, "v"));
    EXPECT(HF_ESTALE, write_value(bob, "y", first));
    assert_int_equal(found, 0);
    assert_true(raw_number(server, "PTTL %s", raw(server, "RANDOMKEY")) > 0); /* it is forgotten */
    EXPECT(HF_OK, write_value(bob, "y", 0));
    assert_true(found > deleted);
    assert_int_equal(raw_number(server, "PTTL %s", raw(server, "RANDOMKEY")), -1);
    (void)raw(server, "FLUSHALL"); /* forgotten for good */
    uint64_t last = found;
    EXPECT(HF_OK, write_value(bob, "z", 0));
    assert_true(found > last);
}

/* A server whose clock is behind what it has kept. */
static void versions_do_not_follow_a_clock_back(void **state)
{
    (void)state;
    static char key[256];
    const char *future = "4000000000000000";
    EXPECT(HF_OK, write_value(alice, "x", 0));
    (void)snprintf(key, sizeof(key), "%s", raw(server, "RANDOMKEY"));
    (void)raw(server, "HSET %s version %s", key, future);
    EXPECT(HF_OK, write_value(alice, "y", strtoull(future, NULL, 10)));
    assert_true(found == strtoull(future, NULL, 10) + 1);
    EXPECT(HF_OK, write_value(alice, NULL, found));
    EXPECT(HF_OK, write_value(alice, "z", 0));
    assert_true(found == strtoull(future, NULL, 10) + 3);
}

/* ---- Bytes ----------------------------------------------------------------------------------- */

static void any_bytes_are_kept(void **state)
{
    (void)state;
    static char bytes[HF_VALUE_MAX + 1];
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (char)(i * 7);
    EXPECT(HF_OK, hf_value_write(alice, "v", 0, bytes, HF_VALUE_MAX, 0, &found, &error));
    EXPECT(HF_OK, read_value(bob, "v"));
    assert_int_equal(length, HF_VALUE_MAX);
    assert_memory_equal(place, bytes, HF_VALUE_MAX);
    EXPECT(HF_EINVAL, hf_value_write(alice, "v", 0, bytes, HF_VALUE_MAX + 1, found, NULL, &error));
    EXPECT(HF_OK, hf_value_write(alice, "v", 0, "", 0, found, NULL, &error)); /* empty, but there */
    EXPECT(HF_OK, read_value(bob, "v"));
    assert_int_equal(length, 0);
    assert_true(version > found);
}

static void what_does_not_fit_is_left_out(void **state)
{
    (void)state;
    char small[4] = "...";
    EXPECT(HF_OK, write_value(alice, "abcdef", 0));
    EXPECT(HF_OK, hf_value_read(bob, "v", 0, small, 2, &length, &version, &error));
    assert_string_equal(small, "ab.");
    assert_int_equal(length, 6);
    EXPECT(HF_OK, hf_value_read(bob, "v", 0, NULL, 0, &length, &version, &error));
    assert_int_equal(length, 6);
    assert_true(version == found);
}

static void names_are_apart_from_all_others(void **state)
{
    (void)state;
    (void)raw(server, "LPUSH lock 1");
    EXPECT(HF_OK, hf_value_write(alice, "lock", 0, "1", 1, 0, NULL, &error));
    EXPECT(HF_OK, hf_value_write(alice, "hf:x", 0, "2", 1, 0, NULL, &error));
    EXPECT(HF_OK, hf_value_write(alice, "a \n\0}{", 6, "3", 1, 0, NULL, &error));
    EXPECT(HF_EMISSING, hf_value_read(bob, "a \n", 0, NULL, 0, &length, &version, &error));
    EXPECT(HF_OK, hf_value_read(bob, "a \n\0}{", 6, place, 1, &length, &version, &error));
    assert_int_equal(place[0], '3');
    EXPECT(HF_OK, read_value(bob, "lock"));
    assert_string_equal(place, "1");
    EXPECT(HF_OK, read_value(bob, "hf:x"));
    assert_string_equal(place, "2");
}

static void what_cannot_be_is_refused(void **state)
{
    (void)state;
    static char name[HF_VALUE_NAME_MAX + 2];
    memset(name, 'n', HF_VALUE_NAME_MAX + 1);
    EXPECT(HF_EINVAL, read_value(NULL, "v"));
    EXPECT(HF_EINVAL, read_value(alice, NULL));
    EXPECT(HF_EINVAL, read_value(alice, ""));
    EXPECT(HF_EINVAL, read_value(alice, name));
    EXPECT(HF_EINVAL, hf_value_read(alice, "v", 0, NULL, 1, &length, &version, &error));
    EXPECT(HF_EINVAL, hf_value_read(alice, "v", 0, place, 1, NULL, &version, &error));
    EXPECT(HF_EINVAL, hf_value_read(alice, "v", 0, place, 1, &length, NULL, &error));
    EXPECT(HF_EINVAL, hf_value_write(NULL, "v", 0, "1", 1, 0, NULL, &error));
    EXPECT(HF_EINVAL, hf_value_write(alice, "v", 10 << 20, "1", 1, 0, NULL, &error));
    EXPECT(HF_EINVAL, hf_value_write(alice, "v", 0, NULL, 1, 0, NULL, &error));
    EXPECT(HF_EINVAL, hf_value_write(alice, "v", 0, "1", 1, UINT64_MAX, NULL, &error));
    assert_int_equal(raw_number(server, "DBSIZE"), 0);
    name[HF_VALUE_NAME_MAX] = '\0';
    EXPECT(HF_OK, hf_value_write(alice, name, 0, "1", 1, 0, NULL, &error));
}

static void a_full_server_deletes_and_does_not_write(void **state)
{
    (void)state;
    EXPECT(HF_OK, write_value(alice, "x", 0));
    uint64_t first = found;
    (void)raw(server, "CONFIG SET maxmemory 1");
    EXPECT(HF_EUNAVAILABLE, write_value(alice, "y", first));
    EXPECT(HF_EUNAVAILABLE, hf_value_write(alice, "another", 0, "y", 1, 0, NULL, &error));
    EXPECT(HF_OK, read_value(bob, "v"));
    assert_string_equal(place, "x");
    EXPECT(HF_OK, write_value(alice, NULL, first));
    (void)raw(server, "CONFIG SET maxmemory 0");
    EXPECT(HF_EMISSING, read_value(bob, "v"));
    EXPECT(HF_EMISSING, read_value(bob, "another"));
}

/* ---- Optimistic counting --------------------------------------------------------------------- */

enum { THREADS = 8, INCREMENTS = 200 };

static atomic_int failures;

/* False: somebody else was faster. */
static bool increment(hf_client *client)
{
    char text[24] = "";
    size_t count = 0;
    uint64_t seen = 0;
    hf_status status =
        hf_value_read(client, "count", 0, text, sizeof(text) - 1, &count, &seen, NULL);
    if (status == HF_OK) {
        (void)snprintf(text, sizeof(text), "%ld", strtol(text, NULL, 10) + 1);
        status = hf_value_write(client, "count", 0, text, strlen(text), seen, NULL, NULL);
    }
    if (status != HF_OK && status != HF_ESTALE)
        atomic_fetch_add(&failures, 1);
    return status == HF_OK;
}

static void *count_up(void *arg)
{
    for (int i = 0; i < INCREMENTS && atomic_load(&failures) == 0;)
        i += increment(arg);
    return NULL;
}

static void no_increment_is_lost(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    atomic_store(&failures, 0);
    EXPECT(HF_OK, hf_value_write(alice, "count", 0, "0", 1, 0, NULL, &error));
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, count_up, i % 2 == 0 ? alice : bob), 0);
    for (int i = 0; i < THREADS; i++)
        (void)pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&failures), 0);
    EXPECT(HF_OK, read_value(alice, "count"));
    assert_int_equal(strtol(place, NULL, 10), THREADS * INCREMENTS);
}

/* ---- Where it may not be called ---------------------------------------------------------------
 */

static atomic_int told_status;

static void call_back(void *arg, const hf_event *event)
{
    (void)event;
    hf_write write = {.key = "a", .value = "1", .value_length = 1};
    hf_status statuses[] = {
        hf_value_write(arg, "v", 0, "1", 1, 0, NULL, NULL),
        hf_write_fenced(arg, "g", 0, 1, &write, 1, NULL, NULL),
        hf_write_held(hold, &write, 1, NULL),
        hf_write_held_and_release(&hold, &write, 1, NULL),
    };
    int wrong = 0;
    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++)
        wrong += statuses[i] != HF_EDEADLK;
    atomic_store(&told_status, wrong == 0 && hold != NULL ? 1 : -1);
}

static void not_in_a_callback(void **state)
{
    (void)state;
    atomic_store(&told_status, 0);
    hold = acquire_with(alice, HF_ACQUIRE(.lease_ms = 30000, .renew_interval_ms = 100,
                                          .on_event = call_back, .arg = alice));
    EXPECT(HF_OK, hf_revoke(bob, "lock", 0, "now", &error));
    WAIT_UNTIL(atomic_load(&told_status) != 0, 10000);
    assert_int_equal(atomic_load(&told_status), 1);
    release(&hold);
    assert_int_equal(raw_number(server, "EXISTS a"), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin_with_both, close_clients)
    const struct CMUnitTest tests[] = {
        TEST(of_two_writers_one_succeeds),
        TEST(versions_grow_also_after_a_deletion),
        TEST(versions_do_not_follow_a_clock_back),
        TEST(any_bytes_are_kept),
        TEST(what_does_not_fit_is_left_out),
        TEST(names_are_apart_from_all_others),
        TEST(what_cannot_be_is_refused),
        TEST(a_full_server_deletes_and_does_not_write),
        TEST(no_increment_is_lost),
        TEST(not_in_a_callback),
    };
    return cmocka_run_group_tests_name("value", tests, start_server, end_server);
}
