/* SPDX-License-Identifier: MIT */
/* Goal: the fence grows with every grant of a lock, whoever gets it and whatever happens to the
 * server's memory of the last one, and is one and the same for all who share a grant.
 *
 * That it grows in the order of the grants is checked by the holders themselves, under the lock:
 * each compares its fence with the one that the last holder left in shared memory. A server's clock
 * that is set back cannot be had in a test; the counter that lies ahead of the clock stands for it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fixture.h"

static hf_hold *hold;
static hf_hold *other;
static hf_error error;

/* ---- Verbs ----------------------------------------------------------------------------------- */

static uint64_t fence_of_next_grant(hf_client *client)
{
    EXPECT(HF_OK, hf_acquire(client, "lock", HF_ACQUIRE(.wait_ms = 10000, .retry_interval_ms = 20),
                             &hold, &error));
    uint64_t fence = hf_fence(hold);
    EXPECT(HF_OK, hf_release(&hold, &error));
    return fence;
}

/* The key of the lock's fence, as the server lists it. */
static const char *fence_key(void)
{
    static char key[128];
    (void)snprintf(key, sizeof(key), "%s",
                   raw(server, "EVAL %s 0", "return redis.call('KEYS', 'hf:f:{*}lock')[1]"));
    return key;
}

/* And that of the mark of its slot. */
static const char *slot_key(void)
{
    static char key[128];
    (void)snprintf(key, sizeof(key), "%s",
                   raw(server, "EVAL %s 0", "return redis.call('KEYS', 'hf:m:{*}')[1]"));
    return key;
}

/* ---- Growing --------------------------------------------------------------------------------- */

enum { PROCESSES = 4, GRANTS = 250 };

struct shared {
    uint64_t last; /* written under the lock only */
    atomic_int done;
    atomic_int not_larger;
    atomic_int failed;
};

static struct shared *shared;

static void take_in_turns(int line, void *arg)
{
    hf_client *client;
    (void)arg;
    (void)line;
    if (hf_open(server->url, NULL, &client, NULL) != HF_OK)
        _exit(1);
    for (int i = 0; i < GRANTS; i++) {
        hf_hold *held;
        if (hf_acquire(client, "lock", HF_ACQUIRE(.wait_ms = 60000, .retry_interval_ms = 10), &held,
                       NULL) != HF_OK) {
            atomic_fetch_add(&shared->failed, 1);
            continue;
        }
        if (hf_fence(held) <= shared->last)
            atomic_fetch_add(&shared->not_larger, 1);
        shared->last = hf_fence(held);
        atomic_fetch_add(&shared->done, 1);
        if (hf_release(&held, NULL) != HF_OK)
            atomic_fetch_add(&shared->failed, 1);
        sleep_ms(1); /* so that the others get their turn */
    }
    (void)hf_close(client);
}

/* Meanwhile the server is made to forget its scripts, and now and then the counter. */
static void it_grows_with_every_grant(void **state)
{
    (void)state;
    struct process *processes[PROCESSES];
    char key[128] = "";
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(shared != MAP_FAILED);
    for (int i = 0; i < PROCESSES; i++)
        processes[i] = process_start(take_in_turns, NULL);
    WAIT_UNTIL(atomic_load(&shared->done) > 0, 10000);
    (void)snprintf(key, sizeof(key), "%s", fence_key());
    for (int i = 1; atomic_load(&shared->done) + atomic_load(&shared->failed) < PROCESSES * GRANTS;
         i++) {
        assert_string_equal(raw(server, "SCRIPT FLUSH SYNC"), "OK");
        if (i % 5 == 0)
            assert_true(raw_number(server, "DEL %s", key) >= 0);
        sleep_ms(20);
        assert_true(i < 3000);
    }
    for (int i = 0; i < PROCESSES; i++)
        assert_true(process_finish(processes[i], 10000));
    assert_int_equal(atomic_load(&shared->failed), 0);
    assert_int_equal(atomic_load(&shared->done), PROCESSES * GRANTS);
    assert_int_equal(atomic_load(&shared->not_larger), 0);
    (void)munmap(shared, sizeof(*shared));
}

static void locks_have_fences_of_their_own(void **state)
{
    (void)state;
    open_both();
    EXPECT(HF_OK, hf_acquire(alice, "x", NULL, &hold, &error));
    EXPECT(HF_OK, hf_acquire(alice, "{x}", NULL, &other, &error));
    assert_string_equal(raw(server, "EVAL %s 0", "return #redis.call('KEYS', 'hf:f:*')"), "2");
    EXPECT(HF_OK, hf_release(&hold, &error));
    EXPECT(HF_OK, hf_release(&other, &error));
}

/* ---- Lost counters --------------------------------------------------------------------------- */

static void a_deleted_counter(void **state)
{
    (void)state;
    open_both();
    uint64_t before = fence_of_next_grant(alice);
    assert_string_equal(raw(server, "DEL %s", slot_key()), "1");
    assert_true(fence_of_next_grant(bob) > before);
}

static void a_counter_that_is_no_number(void **state)
{
    (void)state;
    open_both();
    uint64_t before = fence_of_next_grant(alice);
    assert_string_equal(raw(server, "SET %s nonsense", slot_key()), "OK");
    assert_true(fence_of_next_grant(bob) > before);
    assert_string_equal(raw(server, "SET %s nonsense", side_key('f')), "OK");
    assert_true(fence_of_next_grant(bob) > before);
}

static void an_emptied_server(void **state)
{
    (void)state;
    open_both();
    EXPECT(HF_OK, hf_acquire(alice, "lock", NULL, &hold, &error));
    uint64_t before = hf_fence(hold);
    assert_string_equal(raw(server, "FLUSHALL"), "OK");
    EXPECT(HF_OK, hf_acquire(bob, "lock", NULL, &other, &error));
    assert_true(hf_fence(other) > before);
    EXPECT(HF_ELOST, hf_release(&hold, &error));
    EXPECT(HF_OK, hf_release(&other, &error));
}

static void a_restarted_empty_server(void **state)
{
    (void)state;
    open_both();
    uint64_t before = fence_of_next_grant(alice);
    redis_server_restart(server);
    assert_string_equal(raw(server, "DBSIZE"), "0");
    assert_true(fence_of_next_grant(bob) > before);
}

/* The server's memory is made too small for any key, then large enough again. */
static void an_evicted_counter(void **state)
{
    (void)state;
    open_both();
    uint64_t before = fence_of_next_grant(alice);
    assert_string_equal(raw(server, "CONFIG SET maxmemory 1 maxmemory-policy allkeys-random"),
                        "OK");
    WAIT_UNTIL(raw(server, "SET probe x") != NULL && raw_number(server, "DBSIZE") == 0, 10000);
    assert_string_equal(raw(server, "CONFIG SET maxmemory 0"), "OK");
    assert_true(fence_of_next_grant(bob) > before);
}

/* A counter ahead of the clock, as a clock that was set back leaves it. */
static void a_counter_ahead_of_the_clock(void **state)
{
    (void)state;
    open_both();
    uint64_t ahead = fence_of_next_grant(alice) + 600ull * 1000 * 1000;
    assert_string_equal(
        raw(server, "SET %s %llu PX 1000000", slot_key(), (unsigned long long)ahead), "OK");
    assert_true(fence_of_next_grant(bob) == ahead + 1);
    assert_true(fence_of_next_grant(alice) == ahead + 2);
}

/* It must not run out while somebody holds the lock: renewals keep it alive; with an owner every
 * one does, otherwise one in a while, and one that was asked for by hand. */
static void a_counter_lives_as_long_as_the_hold(void **state)
{
    (void)state;
    char key[128];
    open_both();
    EXPECT(HF_OK, hf_acquire(alice, "lock",
                             HF_ACQUIRE(.lease_ms = 30000, .renew_interval_ms = 100, .owner = "me"),
                             &hold, &error));
    (void)snprintf(key, sizeof(key), "%s", fence_key());
    assert_true(raw_number(server, "PTTL %s", key) > 3000 * 1000);
    assert_string_equal(raw(server, "PEXPIRE %s 20000", key), "1");
    WAIT_UNTIL(raw_number(server, "PTTL %s", key) > 3000 * 1000, 10000);
    EXPECT(HF_OK, hf_release(&hold, &error));
    EXPECT(HF_OK, hf_acquire(alice, "lock", NULL, &hold, &error));
    assert_string_equal(raw(server, "PEXPIRE %s 20000", key), "1");
    EXPECT(HF_OK, hf_extend(hold, 0, &error));
    assert_true(raw_number(server, "PTTL %s", key) > 3000 * 1000);
    EXPECT(HF_OK, hf_release(&hold, &error));
}

/* ---- One grant, one fence -------------------------------------------------------------------- */

static void re_entry_keeps_it(void **state)
{
    (void)state;
    open_both();
    EXPECT(HF_OK, hf_acquire(alice, "lock", NULL, &hold, &error));
    assert_string_equal(raw(server, "DEL %s", fence_key()), "1");
    EXPECT(HF_OK, hf_acquire(alice, "lock", NULL, &other, &error));
    assert_true(hf_fence(hold) > 0 && hf_fence(other) == hf_fence(hold));
    uint64_t before = hf_fence(hold);
    EXPECT(HF_OK, hf_release(&hold, &error));
    assert_true(hf_fence(other) == before);
    EXPECT(HF_OK, hf_release(&other, &error));
    assert_true(fence_of_next_grant(bob) > before);
}

static void sharers_have_the_same(void **state)
{
    (void)state;
    hf_hold *third;
    const hf_acquire_options *options = HF_ACQUIRE(.owner = "request 7", .lease_ms = 30000);
    open_both();
    EXPECT(HF_OK, hf_acquire(alice, "lock", options, &hold, &error));
    EXPECT(HF_OK, hf_acquire(bob, "lock", options, &other, &error));
    uint64_t fence = hf_fence(hold);
    assert_true(fence > 0 && hf_fence(other) == fence);
    EXPECT(HF_OK, hf_release(&hold, &error));
    EXPECT(HF_OK, hf_acquire(alice, "lock", options, &third, &error)); /* while Bob still has it */
    assert_true(hf_fence(third) == fence);
    EXPECT(HF_OK, hf_release(&other, &error));
    EXPECT(HF_OK, hf_release(&third, &error));
    EXPECT(HF_OK, hf_acquire(alice, "lock", options, &hold, &error));
    assert_true(hf_fence(hold) > fence);
    EXPECT(HF_OK, hf_release(&hold, &error));
}

/* If the counter was lost meanwhile, nobody knows the first one's any more: then it is larger. */
static void a_sharer_never_has_a_smaller_one(void **state)
{
    (void)state;
    const hf_acquire_options *options = HF_ACQUIRE(.owner = "request 7", .lease_ms = 30000);
    open_both();
    EXPECT(HF_OK, hf_acquire(alice, "lock", options, &hold, &error));
    assert_string_equal(raw(server, "DEL %s", fence_key()), "1");
    EXPECT(HF_OK, hf_acquire(bob, "lock", options, &other, &error));
    assert_true(hf_fence(other) >= hf_fence(hold));
    EXPECT(HF_OK, hf_release(&hold, &error));
    EXPECT(HF_OK, hf_release(&other, &error));
}

/* A renewal and an extension are no grants. */
static void holding_on_keeps_it(void **state)
{
    (void)state;
    hf_stats stats;
    open_both();
    EXPECT(HF_OK, hf_acquire(alice, "lock", HF_ACQUIRE(.lease_ms = 20000, .renew_interval_ms = 50),
                             &hold, &error));
    uint64_t fence = hf_fence(hold);
    do {
        EXPECT_STATUS(HF_OK, hf_stats_read(alice, &stats));
        sleep_ms(10);
    } while (stats.renewals < 3);
    EXPECT(HF_OK, hf_extend(hold, 0, &error));
    assert_true(hf_fence(hold) == fence);
    EXPECT(HF_OK, hf_release(&hold, &error));
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, start_server, end_everything)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(it_grows_with_every_grant),
        TEST(locks_have_fences_of_their_own),
        TEST(a_deleted_counter),
        TEST(a_counter_that_is_no_number),
        TEST(an_emptied_server),
        TEST(a_restarted_empty_server),
        TEST(an_evicted_counter),
        TEST(a_counter_ahead_of_the_clock),
        TEST(a_counter_lives_as_long_as_the_hold),
        TEST(re_entry_keeps_it),
        TEST(sharers_have_the_same),
        TEST(a_sharer_never_has_a_smaller_one),
        TEST(holding_on_keeps_it),
    };
    return cmocka_run_group_tests_name("fence", tests, NULL, NULL);
}
