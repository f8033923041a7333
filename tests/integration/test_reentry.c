/* SPDX-License-Identifier: MIT */
/* Goal: a thread that holds a lock gets it again at once and without any message; nobody else does;
 * and the lock is free when the last handle is given back, by whichever thread, in whatever order.
 *
 * That no message was sent is the server's word: it counts the scripts that it runs, and nothing
 * here is renewed while it counts.
 */
#include <string.h>

#include "fixture.h"

static hf_client *client;
static hf_client *other_client;
static hf_hold *hold;
static hf_hold *inner;
static hf_error error;
static struct attempt elsewhere;

static int begin(void **state)
{
    (void)state;
    hold = NULL;
    inner = NULL;
    empty_server();
    open_client(&client);
    open_client(&other_client);
    return 0;
}

/* ---- Verbs ----------------------------------------------------------------------------------- */

static hf_hold *acquire(void)
{
    return acquire_with(client, HF_ACQUIRE(.lease_ms = 30000));
}

static hf_status acquire_in_another_thread(const hf_acquire_options *options)
{
    attempt_begin(&elsewhere, client, "lock", options);
    return attempt_end(&elsewhere);
}

static void expect_held(bool held)
{
    assert_int_equal(raw_number(server, "EXISTS lock"), held);
}

static void *release_it(void *arg)
{
    hf_hold **held = arg;
    static hf_status status;
    status = hf_release(held, NULL);
    return &status;
}

static void release_in_another_thread(hf_hold **held)
{
    pthread_t thread;
    void *status;
    assert_int_equal(pthread_create(&thread, NULL, release_it, held), 0);
    assert_int_equal(pthread_join(thread, &status), 0);
    assert_int_equal(*(hf_status *)status, HF_OK);
}

/* ---- The same thread ------------------------------------------------------------------------- */

static void it_takes_no_message(void **state)
{
    (void)state;
    enum { TIMES = 1000 };
    static hf_hold *holds[TIMES];
    hold = acquire();
    long long before = scripts_run(server);
    for (int i = 0; i < TIMES; i++) {
        holds[i] = acquire();
        assert_ptr_not_equal(holds[i], hold);
        assert_true(hf_fence(holds[i]) == hf_fence(hold));
        assert_true(hf_is_valid(holds[i]));
    }
    for (int i = 0; i < TIMES; i++)
        release(&holds[i]);
    assert_int_equal(scripts_run(server), before);
    expect_held(true);
    release(&hold);
    expect_held(false);
}

/* The first handle given back first. */
static void any_order_will_do(void **state)
{
    (void)state;
    hf_hold *holds[3] = {acquire(), acquire(), acquire()};
    static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                     {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    for (int i = 0; i < 6; i++) {
        for (int j = 0; j < 3; j++) {
            expect_held(true);
            assert_true(hf_is_valid(holds[orders[i][j]]));
            release(&holds[orders[i][j]]);
        }
        expect_held(false);
        for (int j = 0; j < 3; j++)
            holds[j] = acquire();
    }
    for (int j = 0; j < 3; j++)
        EXPECT_STATUS(HF_OK, hf_release_nowait(&holds[j]));
    WAIT_UNTIL(raw_number(server, "EXISTS lock") == 0, 5000);
}

/* What the first acquire wanted stays; hf_extend() on any handle is for all of them. */
static void handles_share_the_deadline(void **state)
{
    (void)state;
    EXPECT(HF_OK, hf_acquire(client, "lock", HF_ACQUIRE(.lease_ms = 5000, .no_renewal = true),
                             &hold, &error));
    EXPECT(HF_OK, hf_acquire(client, "lock", HF_ACQUIRE(.lease_ms = 50000), &inner, &error));
    assert_true(hf_remaining_ms(inner) <= 5000);
    EXPECT(HF_OK, hf_extend(inner, 40000, &error));
    assert_true(hf_remaining_ms(hold) > 20000);
    release(&inner);
    assert_true(hf_remaining_ms(hold) > 20000);
    release(&hold);
}

static void a_lost_lock_is_not_re_entered(void **state)
{
    (void)state;
    EXPECT(HF_OK, hf_acquire(client, "lock", HF_ACQUIRE(.lease_ms = 150, .no_renewal = true), &hold,
                             &error));
    uint64_t fence = hf_fence(hold);
    sleep_ms(150);
    EXPECT(HF_OK, hf_acquire(client, "lock", HF_ACQUIRE(.wait_ms = 5000, .retry_interval_ms = 10),
                             &inner, &error));
    assert_true(hf_fence(inner) > fence);
    EXPECT(HF_ELOST, hf_release(&hold, &error));
    assert_true(hf_is_valid(inner));
    expect_held(true);
    release(&inner);
    expect_held(false);
}

static void a_released_lock_is_not_re_entered(void **state)
{
    (void)state;
    hold = acquire();
    uint64_t fence = hf_fence(hold);
    EXPECT_STATUS(HF_OK, hf_release_nowait(&hold));
    hold = acquire();
    assert_true(hf_fence(hold) > fence);
    release(&hold);
}

static void it_can_be_forbidden_from_both_sides(void **state)
{
    (void)state;
    hold = acquire();
    EXPECT(HF_EBUSY, hf_acquire(client, "lock", HF_ACQUIRE(.no_reentry = true), &inner, &error));
    release(&hold);
    EXPECT(HF_OK, hf_acquire(client, "lock", HF_ACQUIRE(.no_reentry = true), &hold, &error));
    EXPECT(HF_EBUSY, hf_acquire(client, "lock", NULL, &inner, &error));
    release(&hold);
}

/* ---- Others ---------------------------------------------------------------------------------- */

static void another_thread_is_refused(void **state)
{
    (void)state;
    hold = acquire();
    assert_int_equal(acquire_in_another_thread(HF_ACQUIRE(.lease_ms = 30000)), HF_EBUSY);
    inner = acquire();
    assert_int_equal(acquire_in_another_thread(HF_ACQUIRE(.lease_ms = 30000)), HF_EBUSY);
    release(&inner);
    release(&hold);
    assert_int_equal(acquire_in_another_thread(HF_ACQUIRE(.lease_ms = 30000)), HF_OK);
    release(&elsewhere.hold);
}

static void another_client_of_the_same_thread_is_refused(void **state)
{
    (void)state;
    hold = acquire();
    EXPECT(HF_EBUSY, hf_acquire(other_client, "lock", NULL, &inner, &error));
    release(&hold);
}

static void another_thread_may_release(void **state)
{
    (void)state;
    hold = acquire();
    inner = acquire();
    release_in_another_thread(&hold);
    expect_held(true);
    assert_true(hf_is_valid(inner));
    hf_hold *again = acquire(); /* this thread still has it */
    release_in_another_thread(&inner);
    expect_held(true);
    release_in_another_thread(&again);
    expect_held(false);
}

/* Numbers of threads are not used again: a new thread has no part in what a dead one holds, even
 * if the system gives it the same pthread_t. */
static void a_new_thread_is_not_the_dead_one(void **state)
{
    (void)state;
    assert_int_equal(acquire_in_another_thread(HF_ACQUIRE(.lease_ms = 30000)), HF_OK);
    hold = elsewhere.hold;
    pthread_t dead = elsewhere.thread;
    int same = 0;
    for (int i = 0; i < 20; i++) {
        assert_int_equal(acquire_in_another_thread(HF_ACQUIRE(.lease_ms = 30000)), HF_EBUSY);
        same += pthread_equal(dead, elsewhere.thread) != 0;
    }
    if (same == 0)
        print_message("the system gave no pthread_t twice, so this showed less than it could\n");
    release(&hold);
    expect_held(false);
}

/* Closing counts a lock once, whatever number of handles there are, and leaves them to be freed. */
static void closing_ends_all_handles(void **state)
{
    (void)state;
    hold = acquire();
    inner = acquire();
    EXPECT_STATUS(HF_OK, hf_close(client));
    client = NULL;
    expect_held(false);
    assert_false(hf_is_valid(inner));
    EXPECT(HF_ECLOSED, hf_release(&inner, &error));
    EXPECT(HF_ECLOSED, hf_release(&hold, &error));
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, close_clients)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(it_takes_no_message),
        TEST(any_order_will_do),
        TEST(handles_share_the_deadline),
        TEST(a_lost_lock_is_not_re_entered),
        TEST(a_released_lock_is_not_re_entered),
        TEST(it_can_be_forbidden_from_both_sides),
        TEST(another_thread_is_refused),
        TEST(another_client_of_the_same_thread_is_refused),
        TEST(another_thread_may_release),
        TEST(a_new_thread_is_not_the_dead_one),
        TEST(closing_ends_all_handles),
    };
    return cmocka_run_group_tests_name("re-entry", tests, start_server, end_server);
}
