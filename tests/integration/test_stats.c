/* SPDX-License-Identifier: MIT */
/* Goal: hf_stats_read() says what was done, number for number.
 *
 * Each test does a few things of one kind and compares every field with what they should have
 * changed, so that nothing is counted twice or in the wrong place either.
 */
#include <string.h>

#include "fixture.h"

static hf_client *client;
static hf_client *other;
static hf_hold *hold;
static hf_error error;
static hf_stats expected;
static hf_stats seen;

static int begin(void **state)
{
    (void)state;
    expected = (hf_stats){0};
    empty_server();
    open_client(&client);
    open_client(&other);
    return 0;
}

/* ---- Verbs ----------------------------------------------------------------------------------- */

#define ACQUIRES(result, ...) \
    EXPECT((result), hf_acquire(client, "lock", HF_ACQUIRE(__VA_ARGS__), &hold, &error))

static void expect_histogram(const hf_histogram *histogram, uint64_t count)
{
    uint64_t sum = 0;
    for (int i = 0; i < HF_BUCKETS; i++)
        sum += histogram->bucket[i];
    assert_int_equal(histogram->count, count);
    assert_int_equal(sum, count);
}

/* `expected` against what the client says. Every grant has waited, every ended hold was held. */
static void expect_all(void)
{
    uint64_t lost = 0;
    EXPECT_STATUS(HF_OK, hf_stats_read(client, &seen));
    assert_int_equal(seen.acquisitions, expected.acquisitions);
    assert_int_equal(seen.reentries, expected.reentries);
    assert_int_equal(seen.contentions, expected.contentions);
    assert_int_equal(seen.failures, expected.failures);
    assert_int_equal(seen.releases, expected.releases);
    assert_int_equal(seen.renewals, expected.renewals);
    assert_int_equal(seen.renewal_failures, expected.renewal_failures);
    assert_int_equal(seen.jeopardies, expected.jeopardies);
    for (int i = 0; i < HF_REASONS; i++) {
        assert_int_equal(seen.losses[i], expected.losses[i]);
        lost += seen.losses[i];
    }
    assert_int_equal(seen.held, expected.acquisitions - expected.releases - lost);
    expect_histogram(&seen.wait, expected.acquisitions);
    expect_histogram(&seen.hold, expected.releases + lost);
}

/* ---- Tests ----------------------------------------------------------------------------------- */

static void nothing_was_done(void **state)
{
    (void)state;
    memset(&seen, 0xee, sizeof(seen));
    expect_all();
    EXPECT_STATUS(HF_EINVAL, hf_stats_read(client, NULL));
    EXPECT_STATUS(HF_EINVAL, hf_stats_read(NULL, &seen));
}

static void grants_and_releases(void **state)
{
    (void)state;
    for (int i = 0; i < 10; i++) {
        ACQUIRES(HF_OK, .lease_ms = 30000);
        if (i % 2 == 0)
            EXPECT(HF_OK, hf_release(&hold, &error));
        else
            EXPECT_STATUS(HF_OK, hf_release_nowait(&hold));
    }
    ACQUIRES(HF_OK, .lease_ms = 30000);
    expected.acquisitions = 11;
    expected.releases = 10;
    expect_all();
    assert_int_equal(seen.held, 1);
    EXPECT(HF_OK, hf_release(&hold, &error));
    expected.releases = 11;
    expect_all();
}

static void re_entries(void **state)
{
    (void)state;
    hf_hold *inner[3];
    ACQUIRES(HF_OK, .lease_ms = 30000);
    for (int i = 0; i < 3; i++)
        EXPECT(HF_OK, hf_acquire(client, "lock", NULL, &inner[i], &error));
    expected.acquisitions = 1;
    expected.reentries = 3;
    expect_all();
    for (int i = 0; i < 3; i++)
        EXPECT(HF_OK, hf_release(&inner[i], &error));
    expect_all();
    EXPECT(HF_OK, hf_release(&hold, &error));
    expected.releases = 1;
    expect_all();
}

/* However many tries it takes, and however it ends, an acquire that met a holder counts once. */
static void contentions_and_failures(void **state)
{
    (void)state;
    hf_hold *foreign;
    EXPECT(HF_OK, hf_acquire(other, "lock", HF_ACQUIRE(.lease_ms = 2000, .no_renewal = true),
                             &foreign, &error));
    ACQUIRES(HF_EBUSY, .lease_ms = 30000);
    ACQUIRES(HF_EBUSY, .max_retries = 3, .retry_interval_ms = 10);
    ACQUIRES(HF_OK, .wait_ms = 20000, .retry_interval_ms = 10);
    expected.contentions = 3;
    expected.failures = 2;
    expected.acquisitions = 1;
    expect_all();
    assert_true(seen.wait.total_us > 1000); /* it waited for some of those 2 s */
    EXPECT(HF_OK, hf_release(&hold, &error));
    EXPECT(HF_ELOST, hf_release(&foreign, &error));
}

static void cancelled_and_refused_acquires_are_failures(void **state)
{
    (void)state;
    hf_cancel *cancel = hf_cancel_new();
    hf_cancel_fire(cancel);
    ACQUIRES(HF_ECANCELLED, .wait_ms = 1000, .cancel = cancel);
    hf_cancel_free(cancel);
    assert_string_equal(raw(server, "RPUSH lock a"), "1");
    ACQUIRES(HF_ESERVER, .wait_ms = 1000);
    expected.failures = 2;
    expect_all();
}

/* What is turned away before it begins is no failure of a lock. */
static void bad_arguments_are_not_counted(void **state)
{
    (void)state;
    ACQUIRES(HF_EINVAL, .lease_ms = 1);
    expect_all();
}

static void renewals_by_hand(void **state)
{
    (void)state;
    ACQUIRES(HF_OK, .lease_ms = 30000, .no_renewal = true);
    for (int i = 0; i < 5; i++)
        EXPECT(HF_OK, hf_extend(hold, 0, &error));
    expected.acquisitions = 1;
    expected.renewals = 5;
    expect_all();
    EXPECT(HF_OK, hf_release(&hold, &error));
}

/* The server's word about the number of renewals: each runs one script, with one hold in it. */
static void automatic_renewals(void **state)
{
    (void)state;
    ACQUIRES(HF_OK, .lease_ms = 30000, .renew_interval_ms = 20);
    long long before = scripts_run(server);
    WAIT_UNTIL(hf_stats_read(client, &seen) == HF_OK && seen.renewals >= 20, 20000);
    EXPECT(HF_OK, hf_release(&hold, &error));
    long long scripts = scripts_run(server) - before - 1; /* without the release */
    EXPECT_STATUS(HF_OK, hf_stats_read(client, &seen));
    assert_in_range(scripts, 15, (long long)seen.renewals + 1);
    expected.acquisitions = 1;
    expected.releases = 1;
    expected.renewals = seen.renewals;
    expect_all();
}

static void losses_by_reason(void **state)
{
    (void)state;
    ACQUIRES(HF_OK, .lease_ms = 100, .no_renewal = true);
    sleep_ms(120);
    EXPECT(HF_ELOST, hf_release(&hold, &error));
    expected.acquisitions = 1;
    expected.losses[HF_REASON_EXPIRED] = 1;
    expect_all();

    ACQUIRES(HF_OK, .lease_ms = 30000, .no_renewal = true);
    assert_string_equal(raw(server, "DEL lock"), "1");
    EXPECT(HF_ELOST, hf_extend(hold, 0, &error));
    EXPECT(HF_ELOST, hf_release(&hold, &error));
    expected.acquisitions = 2;
    expected.losses[HF_REASON_GONE] = 1;
    expect_all();

    ACQUIRES(HF_OK, .lease_ms = 30000, .no_renewal = true);
    EXPECT(HF_OK, hf_break(other, "lock", 0, NULL, &error));
    EXPECT(HF_ELOST, hf_extend(hold, 0, &error));
    EXPECT(HF_ELOST, hf_release(&hold, &error));
    expected.acquisitions = 3;
    expected.losses[HF_REASON_BROKEN] = 1;
    expect_all();

    ACQUIRES(HF_OK, .lease_ms = 1200, .max_hold_ms = 20);
    WAIT_UNTIL(hf_hold_state(hold) == HF_LOST, 10000);
    EXPECT(HF_ELOST, hf_release(&hold, &error));
    EXPECT_STATUS(HF_OK, hf_stats_read(client, &seen));
    expected.acquisitions = 4;
    expected.losses[HF_REASON_MAX_HOLD] = 1;
    expected.jeopardies = 1;
    expect_all();
}

static void the_times_are_plausible(void **state)
{
    (void)state;
    int64_t begin = now_ms();
    ACQUIRES(HF_OK, .lease_ms = 30000);
    sleep_ms(50);
    EXPECT(HF_OK, hf_release(&hold, &error));
    int64_t most_ms = now_ms() - begin + 1;
    expected.acquisitions = 1;
    expected.releases = 1;
    expect_all();
    assert_in_range(seen.hold.total_us, 50 * 1000, (uint64_t)most_ms * 1000);
    assert_in_range(seen.wait.total_us, 1, (uint64_t)most_ms * 1000);
    int bucket = 0;
    while (bucket < HF_BUCKETS - 1 && (1ull << bucket) <= seen.hold.total_us)
        bucket++;
    assert_int_equal(seen.hold.bucket[bucket], 1);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, close_clients)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(nothing_was_done),
        TEST(grants_and_releases),
        TEST(re_entries),
        TEST(contentions_and_failures),
        TEST(cancelled_and_refused_acquires_are_failures),
        TEST(bad_arguments_are_not_counted),
        TEST(renewals_by_hand),
        TEST(automatic_renewals),
        TEST(losses_by_reason),
        TEST(the_times_are_plausible),
    };
    return cmocka_run_group_tests_name("statistics", tests, start_server, end_server);
}
