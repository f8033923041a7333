/* SPDX-License-Identifier: MIT */
/* Goal: first come, first served. Processes that queue in a known order get the lock in that order,
 * whether they ask to be fair or not; those of them that died are passed over at once; and nobody
 * who comes without queueing gets in front.
 *
 * The order of grants is the order of their fences, so no clock has to tell. An arrival is known
 * when the server's queue has grown.
 */
#include <string.h>

#include "crowd.h"
#include "fixture.h"

enum { PROCESSES = 50, DYING = 50, THREADS_OF_THE_DYING = 4, RUNS = 5, AT_ONCE_MS = 50 };

static hf_client *carol;
static hf_hold *hold;
static hf_error error;
static struct attempt waiter;

/* ---- Verbs ----------------------------------------------------------------------------------- */

static void join_and_wait_for_it(int member, const struct crowd_wish *wish)
{
    long long before = queued();
    crowd_join(member, wish);
    WAIT_UNTIL(queued() == before + wish->threads, 20000);
}

static void arrive_in_order(bool alternating, bool fair)
{
    for (int i = 0; i < PROCESSES; i++)
        join_and_wait_for_it(i, &(struct crowd_wish){.threads = 1,
                                                     .lease_ms = 30000,
                                                     .fair = alternating ? i % 2 == 0 : fair});
}

static void expect_served_in_order(void)
{
    uint64_t before = 0;
    for (int i = 0; i < PROCESSES; i++) {
        uint64_t fence = crowd_hear(i).fence;
        if (fence <= before)
            fail_msg("number %d was overtaken", i - 1);
        before = fence;
    }
}

static void queue_in_order(bool alternating, bool fair)
{
    crowd_start(server, PROCESSES);
    open_client(&alice);
    hold = acquire_for(alice, 30000);
    arrive_in_order(alternating, fair);
    release(&hold);
    expect_served_in_order();
    expect_only_fences();
}

/* ---- In order -------------------------------------------------------------------------------- */

static void fair_ones_are_served_in_the_order_of_arrival(void **state)
{
    (void)state;
    queue_in_order(false, true);
}

static void all_processes_are_served_in_the_order_of_arrival(void **state)
{
    (void)state;
    queue_in_order(false, false);
}

static void fair_and_other_ones_share_one_queue(void **state)
{
    (void)state;
    queue_in_order(true, false);
}

/* Threads of one process too, if they ask for it. */
static void fair_threads_do_not_overtake_each_other(void **state)
{
    (void)state;
    enum { THREADS = 30 };
    static struct attempt threads[THREADS];
    uint64_t before = 0;
    open_client(&alice);
    open_client_with(&bob, HF_CLIENT(.fair = true));
    hold = acquire_for(alice, 30000);
    for (int i = 0; i < THREADS; i++) {
        attempt_begin(&threads[i], bob, "lock", HF_ACQUIRE(.wait_ms = -1, .lease_ms = 30000));
        WAIT_UNTIL(queued() == i + 1, 10000);
    }
    release(&hold);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(attempt_end(&threads[i]), HF_OK);
        assert_true(hf_fence(threads[i].hold) > before);
        before = hf_fence(threads[i].hold);
        release(&threads[i].hold);
    }
    assert_int_equal(stats_of(bob)->turns, 0);
}

/* ---- The dead -------------------------------------------------------------------------------- */

static void queue_and_die(void)
{
    const struct crowd_wish wish = {
        .threads = THREADS_OF_THE_DYING, .lease_ms = 30000, .fair = true};
    for (int i = 0; i < DYING; i++)
        crowd_join(i, &wish);
    WAIT_UNTIL(queued() == (long long)DYING * THREADS_OF_THE_DYING, 30000);
    join_and_wait_for_it(DYING, &(struct crowd_wish){.threads = 1, .lease_ms = 30000});
    for (int i = 0; i < DYING; i++)
        crowd_kill(i);
    /* Until the server has seen it too. */
    WAIT_UNTIL(strcmp(raw(server, "PUBSUB CHANNELS hf:c:*"), "(array of 1)") == 0, 10000);
}

/* Two hundred of them, and the lock goes past all of them within the script that releases it. A
 * machine that is busy with something else may be late once, but not always. */
static void the_dead_are_passed_over_at_once(void **state)
{
    (void)state;
    int64_t best_ms = INT64_MAX;
    for (int run = 0; run < RUNS && best_ms >= AT_ONCE_MS; run++) {
        crowd_start(server, DYING + 1);
        open_client(&alice);
        hold = acquire_for(alice, 30000);
        queue_and_die();
        int64_t released_ms = now_ms();
        release(&hold);
        int64_t took_ms = crowd_hear(DYING).granted_ms - released_ms;
        best_ms = took_ms < best_ms ? took_ms : best_ms;
        crowd_end();
        expect_only_fences();
        EXPECT_STATUS(HF_OK, hf_close(alice));
        alice = NULL;
    }
    print_message("past %d dead waiters in %d ms\n", DYING * THREADS_OF_THE_DYING, (int)best_ms);
    assert_true(best_ms < AT_ONCE_MS);
}

/* ---- Getting in front ------------------------------------------------------------------------ */

/* The lock becomes free without anybody who could hand it on, while Bob waits for it, and will not
 * ask for another ten seconds. */
static void free_it_while_bob_waits(void)
{
    open_both();
    hold = acquire_for(alice, 40000);
    attempt_begin(&waiter, bob, "lock", HF_ACQUIRE(.wait_ms = -1, .lease_ms = 30000));
    WAIT_UNTIL(queued() == 1, 10000);
    assert_string_equal(raw(server, "DEL lock"), "1");
}

static void expect_bob_has_it(void)
{
    assert_int_equal(attempt_end(&waiter), HF_OK);
    assert_true(waiter.took_ms < 8000);
    release(&waiter.hold);
    EXPECT(HF_ELOST, hf_release(&hold, &error));
    expect_only_fences();
}

static void one_try_does_not_overtake(void **state)
{
    (void)state;
    free_it_while_bob_waits();
    hf_hold *none;
    EXPECT(HF_EBUSY, hf_acquire(alice, "lock", HF_ACQUIRE(.no_reentry = true), &none, &error));
    expect_bob_has_it();
}

static void polling_does_not_overtake(void **state)
{
    (void)state;
    hf_hold *second;
    free_it_while_bob_waits();
    open_client(&carol);
    EXPECT(HF_EBUSY,
           hf_acquire(carol, "lock", HF_ACQUIRE(.max_retries = 2, .retry_interval_ms = 10), &second,
                      &error));
    assert_int_equal(attempt_end(&waiter), HF_OK);
    release(&waiter.hold);
    EXPECT(HF_OK, hf_acquire(carol, "lock", HF_ACQUIRE(.max_retries = 2), &second, &error));
    EXPECT(HF_OK, hf_release(&second, &error));
    EXPECT(HF_ELOST, hf_release(&hold, &error));
}

/* Whoever comes to wait finds Bob in front, and the lock goes to him. */
static void a_later_waiter_does_not_overtake(void **state)
{
    (void)state;
    static struct attempt later;
    free_it_while_bob_waits();
    open_client(&carol);
    attempt_begin(&later, carol, "lock", HF_ACQUIRE(.wait_ms = -1));
    assert_int_equal(attempt_end(&waiter), HF_OK);
    assert_true(waiter.took_ms < 8000);
    WAIT_UNTIL(queued() == 1, 10000);
    release(&waiter.hold);
    assert_int_equal(attempt_end(&later), HF_OK);
    release(&later.hold);
    EXPECT(HF_ELOST, hf_release(&hold, &error));
}

/* A program that knows nothing of queues may come between; and Bob comes after it. */
static void a_foreign_program_may_barge(void **state)
{
    (void)state;
    open_both();
    hold = acquire_for(alice, 40000);
    attempt_begin(&waiter, bob, "lock", HF_ACQUIRE(.wait_ms = -1, .lease_ms = 900));
    WAIT_UNTIL(queued() == 1, 10000);
    assert_string_equal(raw(server, "DEL lock"), "1");
    assert_string_equal(raw(server, "SET lock barger NX PX 500"), "OK");
    assert_int_equal(attempt_end(&waiter), HF_OK);
    assert_true(waiter.took_ms >= 450 && waiter.took_ms < 900 + SLACK_MS);
    release(&waiter.hold);
    EXPECT(HF_ELOST, hf_release(&hold, &error));
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, start_server, end_everything)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(fair_ones_are_served_in_the_order_of_arrival),
        TEST(all_processes_are_served_in_the_order_of_arrival),
        TEST(fair_and_other_ones_share_one_queue),
        TEST(fair_threads_do_not_overtake_each_other),
        TEST(the_dead_are_passed_over_at_once),
        TEST(one_try_does_not_overtake),
        TEST(polling_does_not_overtake),
        TEST(a_later_waiter_does_not_overtake),
        TEST(a_foreign_program_may_barge),
    };
    return cmocka_run_group_tests_name("fair", tests, NULL, NULL);
}
