/* SPDX-License-Identifier: MIT */
/* Goal: threads of one client that want the same lock share one place in the queue, pass the lock
 * on among themselves, and neither forget one of their own nor keep others waiting for long.
 *
 * What the server is asked is counted by the server. The order of turns is written down by the
 * threads while they hold the lock, which is also what shows that only one does at a time.
 */
#include <stdio.h>
#include <string.h>

#include "crowd.h"
#include "fixture.h"

enum { CROWD = 1000, STACK = 256 * 1024, LONG_MS = 60000 };

static hf_hold *hold;
static hf_error error;
static struct attempt waiters[8];

/* ---- A crowd of threads ---------------------------------------------------------------------- */

struct book { /* written by whoever holds the lock, but for the first */
    atomic_int came;
    atomic_int inside;
    atomic_int turns;
    atomic_int failures;
    uint64_t fences[CROWD];
};

static struct book book;
static pthread_t threads[CROWD];

static void *take_a_turn(void *arg)
{
    (void)arg;
    hf_hold *held;
    atomic_fetch_add(&book.came, 1);
    if (hf_acquire(alice, "lock", HF_ACQUIRE(.wait_ms = -1, .lease_ms = LONG_MS), &held, NULL) !=
        HF_OK) {
        atomic_fetch_add(&book.failures, 1);
        return NULL;
    }
    if (atomic_fetch_add(&book.inside, 1) != 0)
        atomic_fetch_add(&book.failures, 1);
    book.fences[atomic_fetch_add(&book.turns, 1)] = hf_fence(held);
    atomic_fetch_sub(&book.inside, 1);
    if (hf_release(&held, NULL) != HF_OK)
        atomic_fetch_add(&book.failures, 1);
    return NULL;
}

static void crowd_of_threads_waits(int count)
{
    pthread_attr_t small;
    memset(&book, 0, sizeof(book));
    (void)pthread_attr_init(&small);
    (void)pthread_attr_setstacksize(&small, STACK);
    for (int i = 0; i < count; i++)
        assert_int_equal(pthread_create(&threads[i], &small, take_a_turn, NULL), 0);
    (void)pthread_attr_destroy(&small);
}

static void expect_all_had_it(int count)
{
    for (int i = 0; i < count; i++)
        (void)pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&book.failures), 0);
    assert_int_equal(atomic_load(&book.turns), count);
    for (int i = 1; i < count; i++)
        assert_true(book.fences[i] > book.fences[i - 1]);
}

/* ---- One place for all ----------------------------------------------------------------------- */

/* 64 turns, then the next one comes with the server's grant: a thousand threads are 16 grants, each
 * an acquire and a release; and those that came before the others had to be waited for. */
static void a_thousand_threads_are_one_waiter(void **state)
{
    (void)state;
    open_both();
    hold = acquire_for(bob, LONG_MS);
    long long before = scripts_run(server);
    crowd_of_threads_waits(CROWD);
    WAIT_UNTIL(queued() == 1 && atomic_load(&book.came) == CROWD, 10000);
    sleep_ms(300); /* so that most wait; one place is all they need, whenever they come */
    assert_int_equal(queued(), 1);
    release(&hold);
    while (atomic_load(&book.turns) < CROWD && atomic_load(&book.failures) == 0)
        assert_true(queued() <= 1);
    expect_all_had_it(CROWD);
    long long scripts = scripts_run(server) - before;
    print_message("%d threads: %lld scripts, %llu local turns\n", CROWD, scripts,
                  (unsigned long long)stats_of(alice)->turns);
    assert_true(scripts <= 100);
    assert_true(stats_of(alice)->turns > CROWD * 9 / 10);
    assert_int_equal(stats_of(alice)->acquisitions, CROWD);
    assert_int_equal(stats_of(alice)->releases, CROWD);
    assert_int_equal(stats_of(alice)->held, 0);
    expect_only_fences();
}

/* -1: each thread stands in the queue by itself. */
static void local_turns_can_be_switched_off(void **state)
{
    (void)state;
    enum { FEW = 40 };
    open_client_with(&alice, HF_CLIENT(.local_turns = -1));
    open_client(&bob);
    hold = acquire_for(bob, LONG_MS);
    crowd_of_threads_waits(FEW);
    WAIT_UNTIL(queued() == FEW, 10000);
    release(&hold);
    expect_all_had_it(FEW);
    assert_int_equal(stats_of(alice)->turns, 0);
    expect_only_fences();
}

/* local_turns = n: after n of them the server decides, who has others in its queue. */
static void turns_are_counted(void **state)
{
    (void)state;
    enum { FEW = 30 };
    open_client_with(&alice, HF_CLIENT(.local_turns = 2));
    open_client(&bob);
    hold = acquire_for(bob, LONG_MS);
    crowd_of_threads_waits(FEW);
    WAIT_UNTIL(queued() == 1, 10000);
    sleep_ms(100);
    release(&hold);
    expect_all_had_it(FEW);
    assert_in_range(stats_of(alice)->turns, 1, FEW * 2 / 3);
    expect_only_fences();
}

/* ---- Others ---------------------------------------------------------------------------------- */

/* Two processes of many threads each: both get on, and each waits for the other's turns only. */
static void others_are_not_kept_waiting(void **state)
{
    (void)state;
    enum { MEMBERS = 4, EACH = 100 };
    crowd_start(server, MEMBERS);
    open_both();
    hold = acquire_for(bob, LONG_MS);
    for (int i = 0; i < MEMBERS; i++)
        crowd_join(i, &(struct crowd_wish){.threads = EACH, .lease_ms = LONG_MS});
    WAIT_UNTIL(queued() == MEMBERS, 10000);
    attempt_begin(&waiters[0], alice, "lock", HF_ACQUIRE(.wait_ms = -1, .lease_ms = LONG_MS));
    WAIT_UNTIL(queued() == MEMBERS + 1, 10000);
    int64_t start = now_ms();
    release(&hold);
    assert_int_equal(attempt_end(&waiters[0]), HF_OK);
    EXPECT_TOOK(start, 0, 1000);
    int64_t alices_ms = now_ms();
    release(&waiters[0].hold);
    int before = 0;
    for (int i = 0; i < MEMBERS; i++)
        for (int j = 0; j < EACH; j++)
            before += crowd_hear(i).granted_ms <= alices_ms;
    print_message("%d of %d had it before the one behind them\n", before, MEMBERS * EACH);
    assert_true(before <= MEMBERS * (1 + 64));
    expect_only_fences();
}

/* ---- Coming and going ------------------------------------------------------------------------ */

static void line_up(int index, const hf_acquire_options *options)
{
    attempt_begin(&waiters[index], alice, "lock", options);
    WAIT_UNTIL(stats_of(alice)->contentions > 0 || index > 0, 10000);
    sleep_ms(20); /* a place in the line of this process cannot be seen from outside */
}

/* Whoever stands for the others gives up, and the next takes over the place, not a new one. */
static void the_place_stays_when_its_first_gives_up(void **state)
{
    (void)state;
    hf_cancel *cancel = hf_cancel_new();
    open_both();
    hold = acquire_for(bob, LONG_MS);
    line_up(0, HF_ACQUIRE(.wait_ms = -1, .lease_ms = LONG_MS, .cancel = cancel));
    WAIT_UNTIL(queued() == 1, 10000);
    line_up(1, HF_ACQUIRE(.wait_ms = -1, .lease_ms = LONG_MS));
    attempt_begin(&waiters[2], bob, "lock",
                  HF_ACQUIRE(.wait_ms = -1, .lease_ms = LONG_MS, .fair = true));
    WAIT_UNTIL(queued() == 2, 10000);
    hf_cancel_fire(cancel);
    assert_int_equal(attempt_end(&waiters[0]), HF_ECANCELLED);
    release(&hold);
    assert_int_equal(attempt_end(&waiters[1]), HF_OK);
    assert_int_equal(queued(), 1);
    release(&waiters[1].hold);
    assert_int_equal(attempt_end(&waiters[2]), HF_OK);
    release(&waiters[2].hold);
    hf_cancel_free(cancel);
    expect_only_fences();
}

/* In the line of the process, a wait is bounded as anywhere else. */
static void a_wait_behind_another_thread_is_bounded(void **state)
{
    (void)state;
    open_client(&alice);
    hold = acquire_with(alice, HF_ACQUIRE(.wait_ms = -1, .lease_ms = LONG_MS));
    hf_cancel *cancel = hf_cancel_new();
    attempt_begin(&waiters[0], alice, "lock", HF_ACQUIRE(.wait_ms = 200));
    attempt_begin(&waiters[1], alice, "lock", HF_ACQUIRE(.wait_ms = -1, .cancel = cancel));
    assert_int_equal(attempt_end(&waiters[0]), HF_EBUSY);
    assert_in_range(waiters[0].took_ms, 150, 200 + SLACK_MS);
    hf_cancel_fire(cancel);
    assert_int_equal(attempt_end(&waiters[1]), HF_ECANCELLED);
    assert_true(hf_is_valid(hold));
    release(&hold);
    hf_cancel_free(cancel);
    expect_only_fences();
}

/* Each has its own wishes: a lease that differs is not taken over, but asked for. */
static void each_thread_gets_the_lease_it_asked_for(void **state)
{
    (void)state;
    static const int64_t leases[] = {LONG_MS, 20000, 20000, 5000};
    open_client(&alice);
    hold = acquire_with(alice, HF_ACQUIRE(.wait_ms = -1, .lease_ms = 40000));
    for (int i = 0; i < 4; i++) {
        attempt_begin(&waiters[i], alice, "lock",
                      HF_ACQUIRE(.wait_ms = -1, .lease_ms = leases[i], .no_renewal = i == 2));
        sleep_ms(20);
    }
    release(&hold);
    for (int left = 4; left > 0; left--) {
        int next = -1;
        WAIT_UNTIL((next = attempt_is_over(&waiters[0])   ? 0
                           : attempt_is_over(&waiters[1]) ? 1
                           : attempt_is_over(&waiters[2]) ? 2
                           : attempt_is_over(&waiters[3]) ? 3
                                                          : -1) >= 0,
                   10000);
        assert_int_equal(attempt_end(&waiters[next]), HF_OK);
        assert_in_range(hf_remaining_ms(waiters[next].hold), leases[next] / 2, leases[next]);
        release(&waiters[next].hold);
        atomic_store(&waiters[next].over, false);
    }
    expect_only_fences();
}

/* What the server does not have any more is not passed on. */
static void a_lost_lock_is_not_passed_on(void **state)
{
    (void)state;
    open_both();
    hold = acquire_with(alice, HF_ACQUIRE(.wait_ms = -1, .lease_ms = 900));
    attempt_begin(&waiters[0], alice, "lock", HF_ACQUIRE(.wait_ms = -1, .lease_ms = 900));
    sleep_ms(50);
    EXPECT(HF_OK, hf_break(bob, "lock", 0, NULL, &error));
    assert_int_equal(attempt_end(&waiters[0]), HF_OK);
    assert_true(hf_fence(waiters[0].hold) > hf_fence(hold));
    EXPECT(HF_ELOST, hf_release(&hold, &error));
    assert_true(hf_is_valid(waiters[0].hold));
    release(&waiters[0].hold);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, start_server, end_everything)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_thousand_threads_are_one_waiter),
        TEST(local_turns_can_be_switched_off),
        TEST(turns_are_counted),
        TEST(others_are_not_kept_waiting),
        TEST(the_place_stays_when_its_first_gives_up),
        TEST(a_wait_behind_another_thread_is_bounded),
        TEST(each_thread_gets_the_lease_it_asked_for),
        TEST(a_lost_lock_is_not_passed_on),
    };
    return cmocka_run_group_tests_name("cohorts", tests, NULL, NULL);
}
