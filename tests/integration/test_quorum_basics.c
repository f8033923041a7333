/* SPDX-License-Identifier: MIT */
/* Goal: every call does on one to nine real servers what it does on one: acquire, release, extend,
 * re-entry, owners, waiting in turn, operations, cancelling, and limits of time.
 *
 * Nine servers are started once, and each test runs on the first one of them, on the first two, and
 * so on. The tests see with a foreign eye that it is not one server that did it all.
 */
#include <stdatomic.h>
#include <string.h>

#include "quorum.h"

enum { LEASE_MS = 30000 };

static hf_error error;
static int n; /* how many servers there are now */

/* ---- Verbs ----------------------------------------------------------------------------------- */

static int start_nine(void **state)
{
    (void)state;
    quorum_start(HF_SERVERS_MAX);
    return 0;
}

static int end_nine(void **state)
{
    return quorum_end(state);
}

/* Also after a test that has failed in the middle. */
static int end_test(void **state)
{
    int result = close_clients(state);
    process_end_all();
    quorum.count = HF_SERVERS_MAX;
    quorum_forget_lock();
    return result;
}

static void open_pair(void)
{
    quorum.count = n;
    open_client_at(quorum_urls(n), &alice, HF_CLIENT(PATIENT));
    open_client_at(quorum_urls(n), &bob, HF_CLIENT(PATIENT));
}

static void close_pair(void)
{
    WAIT_UNTIL(quorum_held() == 0, QUORUM_PATIENCE_MS);
    assert_int_equal(close_clients(NULL), 0);
    quorum.count = HF_SERVERS_MAX;
}

static struct process *new_puppet(void)
{
    return puppet_start_at(quorum_urls(n), HF_CLIENT(PATIENT));
}

#define FOR_ALL_COUNTS for (n = 1; n <= HF_SERVERS_MAX; n++)

/* ---- Holding --------------------------------------------------------------------------------- */

static void one_has_it_and_the_other_not(void **state)
{
    (void)state;
    uint64_t last = 0;
    FOR_ALL_COUNTS
    {
        open_pair();
        hf_hold *hold = acquire_with(alice, NULL);
        assert_true(hf_is_valid(hold));
        assert_in_range(hf_remaining_ms(hold), 1, 10000);
        assert_true(hf_fence(hold) > last);
        last = hf_fence(hold);
        WAIT_UNTIL(quorum_held() == n, QUORUM_PATIENCE_MS); /* also those that were not needed */
        expect_refused(bob);
        release(&hold);
        expect_free(bob);
        close_pair();
    }
}

static int lasting_longer_than(long long ms)
{
    int longer = 0;
    for (int i = 0; i < n; i++)
        longer += raw_number(quorum.servers[i], "PTTL lock") > ms;
    return longer;
}

static void a_lease_is_made_longer(void **state)
{
    (void)state;
    FOR_ALL_COUNTS
    {
        open_pair();
        hf_hold *hold = acquire_for(alice, LEASE_MS);
        EXPECT(HF_OK, hf_extend(hold, 2 * LEASE_MS - 1000, &error));
        assert_in_range(hf_remaining_ms(hold), LEASE_MS + 1, 2 * LEASE_MS);
        assert_true(lasting_longer_than(LEASE_MS) > n / 2);
        release(&hold);
        EXPECT(HF_OK, hf_acquire(alice, "lock", NULL, &hold, &error));
        release(&hold);
        close_pair();
    }
}

static void a_thread_re_enters(void **state)
{
    (void)state;
    FOR_ALL_COUNTS
    {
        open_pair();
        hf_hold *outer = acquire_with(alice, NULL);
        hf_hold *inner = acquire_with(alice, NULL);
        assert_int_equal(hf_fence(outer), hf_fence(inner));
        assert_int_equal(stats_of(alice)->reentries, 1);
        release(&outer);
        expect_refused(bob);
        assert_true(hf_is_valid(inner));
        release(&inner);
        expect_free(bob);
        close_pair();
    }
}

/* ---- Owners ---------------------------------------------------------------------------------- */

/* Whether that is so at a majority; the others follow with a renewal. */
static bool has_holds(long long wanted)
{
    int servers = 0;
    for (int i = 0; i < n; i++)
        servers += raw_number(quorum.servers[i], "ZCARD %s", side_key('h')) == wanted;
    return servers > n / 2;
}

static void an_owner_re_enters_from_another_process(void **state)
{
    (void)state;
    FOR_ALL_COUNTS
    {
        struct process *first = new_puppet(), *second = new_puppet(), *stranger = new_puppet();
        ASK(first, "queue 30000 20000 request", "HF_OK");
        ASK(second, "queue 30000 20000 request", "HF_OK");
        assert_int_equal(ask_number(first, "fence"), ask_number(second, "fence"));
        WAIT_UNTIL(has_holds(2), QUORUM_PATIENCE_MS);
        ASK(stranger, "queue 30000 0 other", "HF_EBUSY");
        ASK(first, "release", "HF_OK");
        ASK(stranger, "queue 30000 0", "HF_EBUSY");
        ASK(second, "valid", "yes");
        WAIT_UNTIL(has_holds(1), QUORUM_PATIENCE_MS);
        long long fence = ask_number(second, "fence");
        ASK(second, "release", "HF_OK");
        ASK(stranger, "queue 30000 20000", "HF_OK");
        assert_true(ask_number(stranger, "fence") > fence);
        ASK(stranger, "release", "HF_OK");
        process_end_all();
    }
}

/* ---- Waiting --------------------------------------------------------------------------------- */

static void those_who_wait_are_served_in_turn(void **state)
{
    enum { WAITERS = 3 };
    (void)state;
    FOR_ALL_COUNTS
    {
        struct process *waiters[WAITERS], *holder = new_puppet();
        quorum.count = n;
        ASK(holder, "queue 30000 0", "HF_OK");
        WAIT_UNTIL(quorum_held() == n, QUORUM_PATIENCE_MS);
        long long last = ask_number(holder, "fence");
        for (int i = 0; i < WAITERS; i++) {
            waiters[i] = new_puppet();
            tell(waiters[i], "queue 30000 -1");
            WAIT_UNTIL(quorum_all_queued(i + 1), QUORUM_PATIENCE_MS);
        }
        ASK(holder, "release", "HF_OK");
        for (int i = 0; i < WAITERS; i++) { /* nobody else can have it until this one releases */
            EXPECT_HEARD(waiters[i], "HF_OK");
            long long fence = ask_number(waiters[i], "fence");
            assert_true(fence > last);
            last = fence;
            ASK(waiters[i], "release", "HF_OK");
        }
        WAIT_UNTIL(quorum_held() == 0, QUORUM_PATIENCE_MS);
        process_end_all();
        quorum.count = HF_SERVERS_MAX;
    }
}

static void waiting_ends_with_its_time(void **state)
{
    hf_hold *none;
    (void)state;
    FOR_ALL_COUNTS
    {
        open_pair();
        hf_hold *hold = acquire_with(alice, NULL);
        WAIT_UNTIL(quorum_held() == n, QUORUM_PATIENCE_MS);
        int64_t start = now_ms();
        EXPECT(HF_EBUSY, hf_acquire(bob, "lock", HF_ACQUIRE(.wait_ms = 150), &none, &error));
        EXPECT_TOOK(start, 150, 150);
        WAIT_UNTIL(quorum_all_queued(0), QUORUM_PATIENCE_MS); /* it has left its places */
        EXPECT(HF_EBUSY,
               hf_acquire(bob, "lock", HF_ACQUIRE(.max_retries = 2, .retry_interval_ms = 10), &none,
                          &error));
        release(&hold);
        expect_free(bob);
        close_pair();
    }
}

static void a_cancel_ends_the_waiting(void **state)
{
    static struct attempt attempt;
    (void)state;
    FOR_ALL_COUNTS
    {
        open_pair();
        hf_cancel *cancel = hf_cancel_new();
        hf_hold *hold = acquire_with(alice, NULL);
        WAIT_UNTIL(quorum_held() == n, QUORUM_PATIENCE_MS);
        attempt_begin(&attempt, bob, "lock", HF_ACQUIRE(.wait_ms = -1, .cancel = cancel));
        WAIT_UNTIL(quorum_all_queued(1), QUORUM_PATIENCE_MS);
        hf_cancel_fire(cancel);
        assert_int_equal(attempt_end(&attempt), HF_ECANCELLED);
        WAIT_UNTIL(quorum_all_queued(0), QUORUM_PATIENCE_MS);
        hf_cancel_free(cancel);
        release(&hold);
        expect_free(bob);
        close_pair();
    }
}

/* ---- Operations ------------------------------------------------------------------------------ */

static _Atomic(hf_hold *) given;
static atomic_int outcome;

static void note_grant(void *arg, hf_hold *hold, const hf_error *why)
{
    (void)arg;
    atomic_store(&given, hold);
    atomic_store(&outcome, (int)why->status);
}

static void note_release(void *arg, const hf_error *why)
{
    (void)arg;
    atomic_store(&outcome, (int)why->status);
}

static void expect_outcome(hf_status wanted)
{
    WAIT_UNTIL(atomic_load(&outcome) >= 0, QUORUM_PATIENCE_MS);
    assert_int_equal(atomic_exchange(&outcome, -1), wanted);
}

static void operations_come_to_an_end(void **state)
{
    hf_operation operation;
    (void)state;
    atomic_store(&outcome, -1);
    FOR_ALL_COUNTS
    {
        open_pair();
        EXPECT(HF_OK, hf_acquire_async(alice, "lock", NULL, note_grant, NULL, NULL, &error));
        expect_outcome(HF_OK);
        hf_hold *hold = atomic_load(&given);
        WAIT_UNTIL(quorum_held() == n, QUORUM_PATIENCE_MS);
        EXPECT(HF_OK, hf_acquire_async(bob, "lock", HF_ACQUIRE(.wait_ms = -1), note_grant, NULL,
                                       &operation, &error));
        WAIT_UNTIL(quorum_all_queued(1), QUORUM_PATIENCE_MS);
        EXPECT_STATUS(HF_OK, hf_cancel_operation(bob, operation));
        expect_outcome(HF_ECANCELLED);
        EXPECT(HF_OK, hf_acquire_async(bob, "lock", HF_ACQUIRE(.wait_ms = -1), note_grant, NULL,
                                       NULL, &error));
        WAIT_UNTIL(quorum_all_queued(1), QUORUM_PATIENCE_MS);
        EXPECT_STATUS(HF_OK, hf_release_nowait(&hold));
        expect_outcome(HF_OK);
        hold = atomic_load(&given);
        EXPECT(HF_OK, hf_release_async(&hold, note_release, NULL, &error));
        expect_outcome(HF_OK);
        close_pair();
    }
}

#define TEST(test) cmocka_unit_test_teardown(test, end_test)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(one_has_it_and_the_other_not),
        TEST(a_lease_is_made_longer),
        TEST(a_thread_re_enters),
        TEST(an_owner_re_enters_from_another_process),
        TEST(those_who_wait_are_served_in_turn),
        TEST(waiting_ends_with_its_time),
        TEST(a_cancel_ends_the_waiting),
        TEST(operations_come_to_an_end),
    };
    return cmocka_run_group_tests(tests, start_nine, end_nine);
}
