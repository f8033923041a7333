/* SPDX-License-Identifier: MIT */
/* Goal: what a lock leaves behind does not grow. A released name leaves no key at the server,
 * fences stay at the server's clock however a lock passes between threads, a release says no more
 * than it knows, and all waiters of one owner get the lock together. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crowd.h"
#include "fixture.h"
#include "relay.h"

static hf_hold *hold;
static hf_error error;

/* The mark of the slot of "lock". */
static const char *slot_key(void)
{
    static char key[48];
    (void)snprintf(key, sizeof(key), "%s", side_key('m'));
    *(strchr(key, '}') + 1) = '\0';
    return key;
}

/* ---- Names ----------------------------------------------------------------------------------- */

enum { NAMES = 25000, SLOTS_AND_MORE = 3 * 1024 * 1024 };

static void take_and_release(int number)
{
    char name[32];
    (void)snprintf(name, sizeof(name), "order:%d", number);
    EXPECT(HF_OK, hf_acquire(alice, name, NULL, &hold, &error));
    EXPECT(HF_OK, hf_release(&hold, &error));
}

/* One key for each slot is left, of which there are 16384, however many names there were. */
static void released_names_fit_into_little_memory(void **state)
{
    (void)state;
    long long used = 0;
    empty_server();
    open_client(&alice);
    take_and_release(0);
    assert_int_equal(
        sscanf(strstr(raw(server, "INFO memory"), "used_memory:"), "used_memory:%lld", &used), 1);
    assert_string_equal(
        raw(server, "CONFIG SET maxmemory %lld maxmemory-policy noeviction", used + SLOTS_AND_MORE),
        "OK");
    for (int i = 1; i < NAMES; i++)
        take_and_release(i);
    assert_int_equal(keys_like("hf:m:*"), raw_number(server, "DBSIZE"));
    assert_string_equal(raw(server, "CONFIG SET maxmemory 0"), "OK");
}

/* Also of a lock for which others have waited, and that was passed on. */
static void a_contended_name_leaves_nothing(void **state)
{
    (void)state;
    struct attempt waiter;
    empty_server();
    open_both();
    hold = acquire_for(alice, 30000);
    attempt_begin(&waiter, bob, "lock", HF_ACQUIRE(.wait_ms = -1));
    WAIT_UNTIL(queued() == 1, 10000);
    release(&hold);
    assert_int_equal(attempt_end(&waiter), HF_OK);
    uint64_t fence = hf_fence(waiter.hold);
    release(&waiter.hold);
    assert_int_equal(keys_like("hf:m:*"), raw_number(server, "DBSIZE"));
    hold = acquire_for(alice, 30000);
    assert_true(hf_fence(hold) > fence);
    release(&hold);
}

/* ---- The clock ------------------------------------------------------------------------------- */

enum { THREADS = 6, HAMMERED_MS = 1500 };

static atomic_bool stop;

static void *hammer(void *arg)
{
    hf_hold *mine;
    while (!atomic_load(&stop))
        if (hf_acquire(arg, "lock", HF_ACQUIRE(.wait_ms = 5000), &mine, NULL) == HF_OK)
            (void)hf_release(&mine, NULL);
    return NULL;
}

/* Two clients whose threads pass a lock on among themselves, and take it from each other. */
static void fences_do_not_run_away_from_the_clock(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    empty_server();
    open_client_with(&alice, HF_CLIENT(.local_turns = 1000));
    open_client_with(&bob, HF_CLIENT(.local_turns = 1000));
    atomic_store(&stop, false);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, hammer, i < THREADS / 2 ? alice : bob),
                         0);
    sleep_ms(HAMMERED_MS);
    atomic_store(&stop, true);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    hold = acquire_for(alice, 30000);
    long long clock_us = raw_number(server, "EVAL %s 0",
                                    "local t = redis.call('TIME') return t[1] * 1000000 + t[2]");
    assert_true(hf_fence(hold) <= (uint64_t)clock_us);
    release(&hold);
}

/* Threads of alice stand behind each other, so the one that gets the lock reserves fences for the
 * next. Nobody uses them, since the other does not fit: it has another lease. */
static void few_fences_are_reserved_and_given_back(void **state)
{
    (void)state;
    struct attempt first, second;
    empty_server();
    open_client_with(&alice, HF_CLIENT(.local_turns = 1000));
    open_client(&bob);
    hold = acquire_for(bob, 30000);
    attempt_begin(&second, alice, "lock", HF_ACQUIRE(.wait_ms = -1, .lease_ms = 7000));
    WAIT_UNTIL(queued() == 1, 10000);
    release(&hold);
    assert_int_equal(attempt_end(&second), HF_OK);
    attempt_begin(&first, alice, "lock", HF_ACQUIRE(.wait_ms = -1, .lease_ms = 5000));
    WAIT_UNTIL(queued() == 1, 10000);
    release(&second.hold);
    assert_int_equal(attempt_end(&first), HF_OK);
    uint64_t fence = hf_fence(first.hold);
    uint64_t reserved = (uint64_t)strtoull(raw(server, "GET %s", side_key('f')), NULL, 10);
    assert_in_range(reserved - fence, 1, 10);
    release(&first.hold);
    assert_true((uint64_t)strtoull(raw(server, "GET %s", slot_key()), NULL, 10) == fence);
}

/* ---- Releases -------------------------------------------------------------------------------- */

static struct relay relay;

/* Its release does not arrive, until it is sent again; meanwhile somebody deletes the key. */
static void begin_lost_release(hf_hold **mine)
{
    empty_server();
    relay = relay_start(server);
    open_client_at(relay.url, &alice, HF_CLIENT(.links = 1, .reply_timeout_ms = 1000));
    open_client(&bob);
    *mine = acquire_for(alice, 30000);
    relay_stall_one(&relay);
    assert_string_equal(raw(server, "DEL lock"), "1");
}

static void a_lock_that_was_deleted_is_lost(void **state)
{
    (void)state;
    begin_lost_release(&hold);
    EXPECT(HF_ELOST, hf_release(&hold, &error));
}

static void nobody_knows_what_a_repeated_release_did(void **state)
{
    (void)state;
    begin_lost_release(&hold);
    hf_hold *other = acquire_for(bob, 30000);
    release(&other);
    EXPECT(HF_EUNKNOWN, hf_release(&hold, &error));
    expect_says(error.text, "gone when it was sent again");
}

/* ---- Owners ---------------------------------------------------------------------------------- */

enum { SHARERS = 5, LONG_LEASE_MS = 30000 };

/* Without a message they would find out with their next checks, up to ten seconds later. */
static void all_waiters_of_an_owner_get_it_at_once(void **state)
{
    (void)state;
    struct attempt sharers[SHARERS];
    empty_server();
    open_both();
    hold = acquire_for(alice, LONG_LEASE_MS);
    for (int i = 0; i < SHARERS; i++) {
        attempt_begin(&sharers[i], bob, "lock",
                      HF_ACQUIRE(.wait_ms = -1, .lease_ms = LONG_LEASE_MS, .owner = "import"));
        WAIT_UNTIL(queued() == i + 1, 10000);
    }
    int64_t start = now_ms();
    release(&hold);
    for (int i = 0; i < SHARERS; i++) {
        assert_int_equal(attempt_end(&sharers[i]), HF_OK);
        assert_true(hf_fence(sharers[i].hold) == hf_fence(sharers[0].hold));
    }
    EXPECT_TOOK(start, 0, 1000);
    for (int i = 0; i < SHARERS; i++)
        release(&sharers[i].hold);
    assert_string_equal(raw(server, "EXISTS lock"), "0");
}

static void see_nothing(void *arg, const hf_sight *sight)
{
    (void)arg;
    (void)sight;
}

/* The key of the fence ends with a hold that nobody renews; the mark of those who watch does not.
 */
static void who_watches_a_short_hold_hears_of_the_next(void **state)
{
    (void)state;
    hf_observer *observer;
    open_client(&alice);
    EXPECT(HF_OK, hf_acquire(alice, "lock", HF_ACQUIRE(.lease_ms = 2000, .no_renewal = true), &hold,
                             &error));
    EXPECT(HF_OK, hf_observe(alice, "lock", 4, see_nothing, NULL, &observer, &error));
    WAIT_UNTIL(raw_number(server, "PTTL %s", side_key('f')) > 10000, 5000);
    hf_observe_end(&observer);
    release(&hold);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, start_server, end_everything)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(released_names_fit_into_little_memory),
        TEST(a_contended_name_leaves_nothing),
        TEST(fences_do_not_run_away_from_the_clock),
        TEST(few_fences_are_reserved_and_given_back),
        TEST(a_lock_that_was_deleted_is_lost),
        TEST(nobody_knows_what_a_repeated_release_did),
        TEST(all_waiters_of_an_owner_get_it_at_once),
        TEST(who_watches_a_short_hold_hears_of_the_next),
    };
    return cmocka_run_group_tests_name("leftovers", tests, NULL, NULL);
}
