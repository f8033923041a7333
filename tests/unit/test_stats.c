/* SPDX-License-Identifier: MIT */
/* What is counted: every event once, whatever the way it came about. */
#include <string.h>

#include "core/state.h" /* hf__histogram_add */
#include "stage.h"

#define S       the_stage
#define RENEWED .lease_ms = 10000, .renew_interval_ms = 3000, .renew_timeout_ms = 500

static hf_stats stats(void)
{
    hf_stats seen;
    memset(&seen, 0xee, sizeof(seen));
    hf__core_stats(S.core, &seen);
    return seen;
}

static uint64_t all_losses(const hf_stats *seen)
{
    uint64_t sum = 0;
    for (int i = 0; i < HF_REASONS; i++)
        sum += seen->losses[i];
    return sum;
}

static void nothing_yet(void **state)
{
    (void)state;
    SETUP();
    static const hf_stats nothing;
    hf_stats seen = stats();
    assert_memory_equal(&seen, &nothing, sizeof(seen));
    FINISH();
}

static void an_uneventful_life(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", RENEWED);
    assert_int_equal(stats().acquisitions, 1);
    assert_int_equal(stats().held, 1);
    assert_int_equal(stats().hold.count, 0);
    ADVANCE_MS(7000);
    EXTEND(1, 20000);
    RELEASE(1);
    hf_stats seen = stats();
    assert_int_equal(seen.acquisitions, 1);
    assert_int_equal(seen.releases, 1);
    assert_int_equal(seen.renewals, 3);
    assert_int_equal(seen.held, 0);
    assert_int_equal(seen.wait.count, 1);
    assert_int_equal(seen.hold.count, 1);
    assert_int_equal(seen.hold.total_us, 7000000);
    assert_int_equal(seen.contentions + seen.failures + seen.reentries + seen.jeopardies, 0);
    assert_int_equal(seen.renewal_failures + all_losses(&seen), 0);
    FINISH();
}

static void a_contended_acquire_counts_once_however_it_ends(void **state)
{
    (void)state;
    SETUP();
    node_set(&S.node, "x", "somebody", -1);
    ACQUIRE(1, "x", .wait_ms = 1000);
    ACQUIRE(2, "x", .wait_ms = 60000);
    ADVANCE_MS(1000);
    EXPECT(1, HF_EBUSY);
    assert_int_equal(stats().contentions, 2);
    assert_int_equal(stats().failures, 1);
    node_delete(&S.node, "x");
    ADVANCE_MS(100);
    EXPECT(2, HF_OK);
    hf_stats seen = stats();
    assert_int_equal(seen.contentions, 2);
    assert_int_equal(seen.failures, 1);
    assert_int_equal(seen.acquisitions, 1);
    assert_int_equal(seen.wait.count, 1);
    assert_in_range(seen.wait.total_us, 1000000, 1100000);
    FINISH();
}

static void every_failure_counts(void **state)
{
    (void)state;
    SETUP();
    S.refuses = true;
    ACQUIRE(1, "x");
    EXPECT(1, HF_EUNAVAILABLE);
    assert_int_equal(stats().failures, 1);
    S.refuses = false;
    ACQUIRE(2, "warm", .wait_ms = 1000);
    ADVANCE_MS(100);
    S.mute = true;
    ACQUIRE(3, "x", .wait_ms = 100);
    ADVANCE_MS(100);
    EXPECT(3, HF_EUNKNOWN);
    ACQUIRE(4, "y", .wait_ms = -1);
    stage_cancel(4);
    CLOSE(5);
    ACQUIRE(6, "z");
    EXPECT(6, HF_ECLOSED);
    assert_int_equal(stats().failures, 4);
    assert_int_equal(stats().acquisitions, 1);
    assert_int_equal(stats().held, 0); /* closing has given it back */
    FINISH();
}

static void reentries_are_counted_apart(void **state)
{
    (void)state;
    SETUP();
    for (int i = 1; i <= 3; i++)
        ACQUIRE(i, "x", .reenters = true);
    hf_stats seen = stats();
    assert_int_equal(seen.acquisitions, 1);
    assert_int_equal(seen.reentries, 2);
    assert_int_equal(seen.held, 1);
    for (int i = 1; i <= 3; i++)
        RELEASE(i);
    seen = stats();
    assert_int_equal(seen.releases, 1);
    assert_int_equal(seen.held, 0);
    assert_int_equal(seen.hold.count, 1);
    FINISH();
}

static void losses_are_counted_by_reason(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "expires", .lease_ms = 1000);
    ACQUIRE(2, "gone", RENEWED);
    ACQUIRE(3, "broken", RENEWED);
    ACQUIRE(4, "long", RENEWED, .max_hold_ms = 5000);
    node_delete(&S.node, "gone");
    BREAK(5, "broken", node_get(&S.node, "broken"), FENCE(3));
    ADVANCE_MS(20000);
    hf_stats seen = stats();
    assert_int_equal(seen.losses[HF_REASON_EXPIRED], 1);
    assert_int_equal(seen.losses[HF_REASON_GONE], 1);
    assert_int_equal(seen.losses[HF_REASON_BROKEN], 1);
    assert_int_equal(seen.losses[HF_REASON_MAX_HOLD], 1);
    assert_int_equal(seen.held, 0);
    assert_int_equal(seen.hold.count, 4);
    for (int i = 1; i <= 4; i++)
        RELEASE(i); /* is not counted again */
    seen = stats();
    assert_int_equal(all_losses(&seen), 4);
    assert_int_equal(seen.releases, 0);
    assert_int_equal(seen.hold.count, 4);
    FINISH();
}

static void a_loss_that_the_release_finds_is_one(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", .lease_ms = 1000);
    PAUSE_MS(2000);
    RELEASE(1);
    EXPECT(1, HF_ELOST);
    hf_stats seen = stats();
    assert_int_equal(seen.losses[HF_REASON_EXPIRED], 1);
    assert_int_equal(seen.releases, 0);
    assert_int_equal(seen.held, 0);
    FINISH();
}

/* Valid to our knowledge, and gone to the server's. */
static void a_loss_that_the_server_tells_the_release_is_one(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x");
    ACQUIRE(2, "y");
    node_delete(&S.node, "x");
    BREAK(3, "y", node_get(&S.node, "y"), FENCE(2));
    RELEASE(1);
    EXPECT(1, HF_ELOST);
    assert_int_equal(stage_let_go(2), HF_OK); /* which does not wait to hear it */
    hf_stats seen = stats();
    assert_int_equal(seen.releases, 0);
    assert_int_equal(seen.losses[HF_REASON_GONE], 1);
    assert_int_equal(seen.losses[HF_REASON_BROKEN], 1);
    assert_int_equal(seen.held, 0);
    assert_int_equal(seen.hold.count, 2);
    FINISH();
}

static void jeopardies_are_changes_from_safe(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", RENEWED, .max_hold_ms = 8000);
    S.deaf = true;
    ADVANCE_MS(5000);
    assert_int_equal(stats().jeopardies, 1);
    S.deaf = false;
    ADVANCE_MS(1000); /* safe again */
    EXPECT_STATE(1, HF_SAFE);
    ADVANCE_MS(3000); /* and held for too long */
    EXPECT_STATE(1, HF_JEOPARDY);
    assert_int_equal(stats().jeopardies, 2);
    ADVANCE_MS(20000);
    assert_int_equal(stats().jeopardies, 2);
    FINISH();
}

static void refused_renewals_are_counted(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", RENEWED);
    ACQUIRE(2, "y", RENEWED);
    node_say(&S.node, "-BUSY Redis is busy running a script.\r\n");
    ADVANCE_MS(3000);
    assert_int_equal(stats().renewal_failures, 2);
    assert_int_equal(stats().renewals, 0);
    ADVANCE_MS(1000);
    assert_int_equal(stats().renewals, 2);
    node_say(&S.node, "-NOPERM this user has no permissions\r\n");
    EXTEND(1, 10000);
    EXPECT(1, HF_EDENIED);
    assert_int_equal(stats().renewal_failures, 3);
    FINISH();
}

/* ---- Histograms ---- */

static int bucket_of(int64_t ns)
{
    hf_histogram histogram = {0};
    hf__histogram_add(&histogram, (hf__span){ns});
    assert_int_equal(histogram.count, 1);
    for (int i = 0; i < HF_BUCKETS; i++)
        if (histogram.bucket[i] == 1)
            return i;
    return -1;
}

static void buckets_are_powers_of_two(void **state)
{
    (void)state;
    assert_int_equal(bucket_of(0), 0);
    assert_int_equal(bucket_of(-5), 0);
    assert_int_equal(bucket_of(999), 0);
    assert_int_equal(bucket_of(1000), 1);
    assert_int_equal(bucket_of(1999), 1);
    assert_int_equal(bucket_of(2000), 2);
    assert_int_equal(bucket_of(3999), 2);
    assert_int_equal(bucket_of(4000), 3);
    for (int n = 1; n < HF_BUCKETS - 1; n++) {
        assert_int_equal(bucket_of(((int64_t)1 << (n - 1)) * 1000), n);
        assert_int_equal(bucket_of(((int64_t)1 << n) * 1000 - 1), n);
    }
    assert_int_equal(bucket_of(((int64_t)1 << 30) * 1000), HF_BUCKETS - 1);
    assert_int_equal(bucket_of(INT64_MAX), HF_BUCKETS - 1);
    hf_histogram histogram = {0};
    hf__histogram_add(&histogram, hf__span_ms(2));
    hf__histogram_add(&histogram, hf__span_ms(3));
    assert_int_equal(histogram.total_us, 5000);
    assert_int_equal(histogram.count, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_yet),
        cmocka_unit_test(an_uneventful_life),
        cmocka_unit_test(a_contended_acquire_counts_once_however_it_ends),
        cmocka_unit_test(every_failure_counts),
        cmocka_unit_test(reentries_are_counted_apart),
        cmocka_unit_test(losses_are_counted_by_reason),
        cmocka_unit_test(a_loss_that_the_release_finds_is_one),
        cmocka_unit_test(a_loss_that_the_server_tells_the_release_is_one),
        cmocka_unit_test(jeopardies_are_changes_from_safe),
        cmocka_unit_test(refused_renewals_are_counted),
        cmocka_unit_test(buckets_are_powers_of_two),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
