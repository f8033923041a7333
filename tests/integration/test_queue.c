/* SPDX-License-Identifier: MIT */
/* Goal: waiting in the queue costs next to nothing, and ends at once when it is one's turn: the
 * release gives the lock to the first who waits, and tells only that one.
 *
 * Leases are long, so that no check is due within a test: what arrives has come as a message. That
 * nothing is asked meanwhile is seen by the number of scripts that the server runs.
 */
#include <stdio.h>

#include "fixture.h"

enum { LONG_MS = 60000, AT_ONCE_MS = 3000 };

static hf_hold *hold;
static hf_hold *other;
static hf_error error;
static hf_inspection seen;
static struct attempt waiter;
static struct attempt second;

/* ---- Verbs ----------------------------------------------------------------------------------- */

static void queue_up(struct attempt *attempt, hf_client *client, const hf_acquire_options *options)
{
    long long before = queued();
    attempt_begin(attempt, client, "lock", options);
    WAIT_UNTIL(queued() == before + 1, 10000);
}

static void expect_granted(struct attempt *attempt)
{
    int64_t start = now_ms();
    assert_int_equal(attempt_end(attempt), HF_OK);
    assert_true(now_ms() - start < AT_ONCE_MS);
    assert_true(hf_is_valid(attempt->hold));
}

static long long subscribers(void)
{
    long long count = -1;
    assert_int_equal(sscanf(raw(server, "PUBSUB CHANNELS hf:c:*"), "(array of %lld)", &count), 1);
    return count;
}

/* ---- Handing on ------------------------------------------------------------------------------ */

static void a_release_hands_on_with_one_script(void **state)
{
    (void)state;
    hold = acquire_for(alice, LONG_MS);
    queue_up(&waiter, bob, HF_ACQUIRE(.wait_ms = -1, .lease_ms = LONG_MS));
    long long before = scripts_run(server);
    release(&hold);
    expect_granted(&waiter);
    assert_int_equal(scripts_run(server) - before, 1);
    assert_in_range(hf_remaining_ms(waiter.hold), LONG_MS / 2, LONG_MS);
    release(&waiter.hold);
    assert_int_equal(scripts_run(server) - before, 2);
    expect_only_fences();
}

static void the_fence_grows_with_every_hand_over(void **state)
{
    (void)state;
    uint64_t before = 0;
    hold = acquire_for(alice, LONG_MS);
    for (int i = 0; i < 20; i++) {
        queue_up(&waiter, i % 2 ? alice : bob, HF_ACQUIRE(.wait_ms = -1, .lease_ms = LONG_MS));
        assert_true(hf_fence(hold) > before);
        before = hf_fence(hold);
        release(&hold);
        expect_granted(&waiter);
        hold = waiter.hold;
    }
    release(&hold);
    expect_only_fences();
}

static void who_waits_asks_nothing(void **state)
{
    (void)state;
    hold = acquire_for(alice, LONG_MS);
    queue_up(&waiter, bob, HF_ACQUIRE(.wait_ms = -1, .lease_ms = LONG_MS));
    long long before = scripts_run(server);
    sleep_ms(1000);
    assert_int_equal(scripts_run(server), before);
    release(&hold);
    expect_granted(&waiter);
    release(&waiter.hold);
}

static void the_subscription_is_opened_when_first_needed_and_kept(void **state)
{
    (void)state;
    expect_free(bob);
    hold = acquire_for(alice, LONG_MS);
    expect_refused(bob);
    assert_int_equal(subscribers(), 0);
    for (int i = 0; i < 3; i++) {
        queue_up(&waiter, bob, HF_ACQUIRE(.wait_ms = -1, .lease_ms = LONG_MS));
        assert_int_equal(subscribers(), 1);
        release(&hold);
        expect_granted(&waiter);
        release(&waiter.hold);
        hold = acquire_for(alice, LONG_MS);
    }
    assert_int_equal(subscribers(), 1);
    release(&hold);
}

/* A waiter that is renewed once it has the lock, and one that leaves it to its lease. */
static void a_grant_by_message_is_renewed_like_any_other(void **state)
{
    (void)state;
    hold = acquire_for(alice, LONG_MS);
    queue_up(&waiter, bob, HF_ACQUIRE(.wait_ms = -1, .lease_ms = 900));
    release(&hold);
    expect_granted(&waiter);
    uint64_t before = stats_of(bob)->renewals;
    WAIT_UNTIL(stats_of(bob)->renewals >= before + 4, 10000);
    assert_true(hf_is_valid(waiter.hold));
    release(&waiter.hold);
}

/* It waits for longer than its lease; what it is granted is whole all the same. */
static void the_lease_begins_with_the_grant(void **state)
{
    (void)state;
    hold = acquire_for(alice, LONG_MS);
    queue_up(&waiter, bob, HF_ACQUIRE(.wait_ms = -1, .lease_ms = 600, .no_renewal = true));
    sleep_ms(1500);
    assert_int_equal(queued(), 1);
    release(&hold);
    expect_granted(&waiter);
    assert_in_range(raw_number(server, "PTTL lock"), 1, 600);
    EXPECT_STATUS(HF_OK, hf_release_nowait(&waiter.hold));
}

/* ---- Leaving --------------------------------------------------------------------------------- */

static void who_gives_up_leaves_the_queue(void **state)
{
    (void)state;
    hf_cancel *cancel = hf_cancel_new();
    hold = acquire_for(alice, LONG_MS);
    queue_up(&waiter, bob, HF_ACQUIRE(.wait_ms = -1, .cancel = cancel));
    hf_cancel_fire(cancel);
    assert_int_equal(attempt_end(&waiter), HF_ECANCELLED);
    WAIT_UNTIL(queued() == 0, 5000);
    EXPECT(HF_EBUSY, hf_acquire(bob, "lock", HF_ACQUIRE(.wait_ms = 200), &other, &error));
    expect_says(error.text, "held by");
    WAIT_UNTIL(queued() == 0, 5000);
    release(&hold);
    hf_cancel_free(cancel);
    expect_only_fences();
}

static void closing_the_client_leaves_the_queue(void **state)
{
    (void)state;
    hold = acquire_for(alice, LONG_MS);
    queue_up(&waiter, bob, HF_ACQUIRE(.wait_ms = -1, .lease_ms = LONG_MS));
    queue_up(&second, alice, HF_ACQUIRE(.wait_ms = -1, .lease_ms = LONG_MS, .fair = true));
    EXPECT_STATUS(HF_OK, hf_close(bob));
    bob = NULL;
    assert_int_equal(attempt_end(&waiter), HF_ECLOSED);
    release(&hold);
    expect_granted(&second);
    release(&second.hold);
    expect_only_fences();
}

/* ---- Owners ---------------------------------------------------------------------------------- */

static void an_owner_queues_like_anybody(void **state)
{
    (void)state;
    hold = acquire_for(alice, LONG_MS);
    queue_up(&waiter, bob, HF_ACQUIRE(.wait_ms = -1, .lease_ms = LONG_MS, .owner = "order 7"));
    release(&hold);
    expect_granted(&waiter);
    assert_string_equal(raw(server, "GET lock"), "order 7");
    release(&waiter.hold);
    expect_only_fences();
}

/* Two of one owner wait: when the first gets it, the second may join, and finds out by a check. */
static void a_waiter_joins_when_its_owner_holds(void **state)
{
    (void)state;
    hold = acquire_for(alice, LONG_MS);
    queue_up(&waiter, bob, HF_ACQUIRE(.wait_ms = -1, .lease_ms = 900, .owner = "order 7"));
    queue_up(&second, alice, HF_ACQUIRE(.wait_ms = -1, .lease_ms = 900, .owner = "order 7"));
    int64_t start = now_ms();
    release(&hold);
    expect_granted(&waiter);
    assert_int_equal(attempt_end(&second), HF_OK);
    EXPECT_TOOK(start, 0, 300);
    assert_true(hf_fence(waiter.hold) == hf_fence(second.hold));
    EXPECT(HF_OK, hf_inspect(alice, "lock", 0, &seen, &error));
    assert_true(seen.shared);
    assert_int_equal(seen.hold_count, 2);
    assert_int_equal(seen.queue_length, 0);
    release(&waiter.hold);
    assert_string_equal(raw(server, "GET lock"), "order 7");
    release(&second.hold);
    expect_only_fences();
}

static void the_last_of_an_owner_hands_on(void **state)
{
    (void)state;
    hold = acquire_with(alice, HF_ACQUIRE(.lease_ms = LONG_MS, .owner = "order 7"));
    other = acquire_with(bob, HF_ACQUIRE(.lease_ms = LONG_MS, .owner = "order 7"));
    queue_up(&waiter, bob, HF_ACQUIRE(.wait_ms = -1, .lease_ms = LONG_MS));
    release(&hold);
    assert_int_equal(queued(), 1);
    assert_false(attempt_is_over(&waiter));
    release(&other);
    expect_granted(&waiter);
    release(&waiter.hold);
    expect_only_fences();
}

static void fair_and_other_waits_and_owners_take_turns(void **state)
{
    (void)state;
    enum { WAITERS = 12 };
    static const char *const owners[WAITERS] = {
        [2] = "order 2", [5] = "order 5", [8] = "order 8", [11] = "order 11"};
    static struct attempt waiters[WAITERS];
    uint64_t before = 0;
    hold = acquire_for(alice, LONG_MS);
    for (int i = 0; i < WAITERS; i++)
        queue_up(
            &waiters[i], i % 2 ? alice : bob,
            HF_ACQUIRE(.wait_ms = -1, .lease_ms = LONG_MS, .fair = i % 3 < 2, .owner = owners[i]));
    release(&hold);
    for (int i = 0; i < WAITERS; i++) {
        expect_granted(&waiters[i]);
        assert_true(hf_fence(waiters[i].hold) > before);
        before = hf_fence(waiters[i].hold);
        release(&waiters[i].hold);
    }
    expect_only_fences();
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin_with_both, close_clients)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_release_hands_on_with_one_script),
        TEST(the_fence_grows_with_every_hand_over),
        TEST(who_waits_asks_nothing),
        TEST(the_subscription_is_opened_when_first_needed_and_kept),
        TEST(a_grant_by_message_is_renewed_like_any_other),
        TEST(the_lease_begins_with_the_grant),
        TEST(who_gives_up_leaves_the_queue),
        TEST(closing_the_client_leaves_the_queue),
        TEST(an_owner_queues_like_anybody),
        TEST(a_waiter_joins_when_its_owner_holds),
        TEST(the_last_of_an_owner_hands_on),
        TEST(fair_and_other_waits_and_owners_take_turns),
    };
    return cmocka_run_group_tests_name("queue", tests, start_server, end_server);
}
