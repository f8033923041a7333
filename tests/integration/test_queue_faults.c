/* SPDX-License-Identifier: MIT */
/* Goal: nobody who waits in the queue is ever stuck, whatever gets lost: the message of a grant,
 * the connection that it comes on, the server, the holder, any of the keys.
 *
 * The waiter's lease is what the bounds are made of: it checks every third of it. The holder's
 * lease is longer than any test, except where its end is what is tested. Bob's client goes through
 * a relay where a message has to get lost.
 */
#include <string.h>

#include "fixture.h"
#include "puppet.h"
#include "relay.h"

enum { LEASE_MS = 2400, CHECK_MS = LEASE_MS / 3, LONG_MS = 60000 };

static struct relay relay;
static hf_hold *hold;
static hf_error error;
static struct attempt waiter;

/* ---- Verbs ----------------------------------------------------------------------------------- */

static void alice_holds(void)
{
    open_client(&alice);
    hold = acquire_for(alice, LONG_MS);
}

static void bob_queues_for(int64_t lease_ms)
{
    attempt_begin(&waiter, bob, "lock", HF_ACQUIRE(.wait_ms = -1, .lease_ms = lease_ms));
    WAIT_UNTIL(queued() == 1, 10000);
}

static void alice_holds_and_bob_queues(void)
{
    alice_holds();
    open_client(&bob);
    bob_queues_for(LEASE_MS);
}

static void bob_comes_through_a_relay(int64_t lease_ms)
{
    relay = relay_start(server);
    alice_holds();
    open_client_at(relay.url, &bob, NULL);
    bob_queues_for(lease_ms);
}

static void expect_bob_has_it_within(int64_t start, int64_t bound_ms)
{
    assert_int_equal(attempt_end(&waiter), HF_OK);
    EXPECT_TOOK(start, 0, bound_ms);
    assert_true(hf_is_valid(waiter.hold));
    release(&waiter.hold);
}

/* ---- Messages -------------------------------------------------------------------------------- */

static void a_lost_message_costs_a_third_of_a_lease(void **state)
{
    (void)state;
    bob_comes_through_a_relay(LEASE_MS);
    relay_lose_grant(&relay);
    int64_t start = now_ms();
    release(&hold);
    expect_bob_has_it_within(start, CHECK_MS);
    assert_int_equal(relay_spoilt(&relay), 1);
    expect_only_fences();
}

/* It connects again, subscribes again, and asks: no check would be due for a long time. */
static void a_subscription_that_is_cut_at_the_grant_costs_a_reconnect(void **state)
{
    (void)state;
    bob_comes_through_a_relay(LONG_MS);
    relay_cut_grant(&relay);
    long long connections = relay_connections(&relay);
    int64_t start = now_ms();
    release(&hold);
    expect_bob_has_it_within(start, 500);
    assert_int_equal(relay_spoilt(&relay), 1);
    assert_true(relay_connections(&relay) <= connections + 1);
    expect_only_fences();
}

/* The same, again and again: the places of others do not suffer. */
static void every_message_may_be_lost(void **state)
{
    (void)state;
    enum { WAITERS = 3 };
    static struct attempt others[WAITERS];
    bob_comes_through_a_relay(LEASE_MS);
    for (int i = 0; i < WAITERS; i++) {
        attempt_begin(&others[i], bob, "lock",
                      HF_ACQUIRE(.wait_ms = -1, .lease_ms = LEASE_MS, .fair = true));
        WAIT_UNTIL(queued() == i + 2, 10000);
    }
    int64_t start = now_ms();
    relay_lose_grant(&relay);
    release(&hold);
    for (int i = 0; i <= WAITERS; i++) {
        struct attempt *next = i == 0 ? &waiter : &others[i - 1];
        assert_int_equal(attempt_end(next), HF_OK);
        /* Who is not subscribed is passed over. Behind the last one nobody waits or subscribes. */
        WAIT_UNTIL(i == WAITERS ||
                       (strcmp(raw(server, "PUBSUB CHANNELS hf:c:*"), "(array of 1)") == 0 &&
                        queued() == WAITERS - i),
                   10000);
        if (i % 2 == 0)
            relay_cut_grant(&relay);
        else
            relay_lose_grant(&relay);
        release(&next->hold);
    }
    EXPECT_TOOK(start, 0, (WAITERS + 1) * (int64_t)CHECK_MS);
    assert_int_equal(relay_spoilt(&relay), WAITERS + 1);
    expect_only_fences();
}

/* ---- Servers and holders --------------------------------------------------------------------- */

static void a_server_that_comes_back_empty(void **state)
{
    (void)state;
    alice_holds_and_bob_queues();
    redis_server_kill(server);
    redis_server_restart(server);
    expect_bob_has_it_within(now_ms(), 2000); /* the longest pause between two connections is 1 s */
    EXPECT(HF_ELOST, hf_release(&hold, &error));
}

static void a_server_that_comes_back_with_its_data(void **state)
{
    (void)state;
    redis_server_end_all();
    server = redis_server_start(&(struct redis_server_options){.keeps_data = true});
    alice_holds_and_bob_queues();
    redis_server_restart(server);
    WAIT_UNTIL(queued() == 1, 10000);
    int64_t start = now_ms();
    release(&hold);
    expect_bob_has_it_within(start, CHECK_MS + 2000);
    expect_only_fences();
}

static void a_killed_holder_costs_its_lease(void **state)
{
    (void)state;
    struct process *holder = puppet_start(server);
    open_client(&bob);
    ASK(holder, "acquire 1500 0", "HF_OK");
    bob_queues_for(LONG_MS);
    process_kill(holder);
    int64_t start = now_ms();
    expect_bob_has_it_within(start, 1500);
    expect_only_fences();
}

/* Granted while it stands still, it costs what it asked for: one lease. Then it gets another turn,
 * because its call has no limit. */
static void a_stopped_waiter_costs_one_lease(void **state)
{
    (void)state;
    struct process *stopped = puppet_start(server);
    alice_holds();
    open_client(&bob);
    tell(stopped, "queue 900 -1");
    WAIT_UNTIL(queued() == 1, 10000);
    process_freeze(stopped);
    attempt_begin(&waiter, bob, "lock", HF_ACQUIRE(.wait_ms = -1, .lease_ms = 900));
    WAIT_UNTIL(queued() == 2, 10000);
    int64_t start = now_ms();
    release(&hold);
    assert_int_equal(attempt_end(&waiter), HF_OK);
    EXPECT_TOOK(start, 0, 900);
    process_thaw(stopped);
    release(&waiter.hold);
    EXPECT_HEARD(stopped, "HF_OK");
    ASK(stopped, "valid", "yes");
    ASK(stopped, "release", "HF_OK");
    expect_only_fences();
}

/* Who has not been heard of for a lease is taken for dead, and costs nothing. */
static void a_waiter_that_is_stopped_for_long_is_passed_over(void **state)
{
    (void)state;
    struct process *stopped = puppet_start(server);
    alice_holds();
    open_client(&bob);
    tell(stopped, "queue 500 -1");
    WAIT_UNTIL(queued() == 1, 10000);
    process_freeze(stopped);
    attempt_begin(&waiter, bob, "lock", HF_ACQUIRE(.wait_ms = -1, .lease_ms = LONG_MS));
    WAIT_UNTIL(queued() == 2, 10000);
    sleep_ms(600); /* its lease */
    long long before = scripts_run(server);
    release(&hold);
    assert_int_equal(attempt_end(&waiter), HF_OK);
    assert_int_equal(scripts_run(server) - before, 1); /* by message, at once */
    process_thaw(stopped);
    WAIT_UNTIL(queued() == 1, 10000);
    release(&waiter.hold);
    EXPECT_HEARD(stopped, "HF_OK");
    ASK(stopped, "release", "HF_OK");
    expect_only_fences();
}

/* ---- Keys ------------------------------------------------------------------------------------ */

static void deleted(char kind)
{
    alice_holds_and_bob_queues();
    assert_string_equal(raw(server, "DEL %s", side_key(kind)), "1");
    int64_t start = now_ms();
    release(&hold);
    expect_bob_has_it_within(start, CHECK_MS);
    expect_only_fences();
}

static void a_deleted_queue(void **state)
{
    (void)state;
    deleted('q');
}

static void deleted_notes(void **state)
{
    (void)state;
    deleted('w');
}

static void a_deleted_fence(void **state)
{
    (void)state;
    deleted('f');
}

static void a_deleted_lock(void **state)
{
    (void)state;
    alice_holds_and_bob_queues();
    int64_t start = now_ms();
    assert_string_equal(raw(server, "DEL lock"), "1");
    expect_bob_has_it_within(start, CHECK_MS);
    EXPECT(HF_ELOST, hf_release(&hold, &error));
}

static void everything_is_deleted(void **state)
{
    (void)state;
    alice_holds_and_bob_queues();
    int64_t start = now_ms();
    assert_string_equal(raw(server, "FLUSHALL"), "OK");
    expect_bob_has_it_within(start, CHECK_MS);
    EXPECT(HF_ELOST, hf_release(&hold, &error));
}

/* It will not hand on to anybody, so it is asked for every 100 ms. */
static void a_foreign_holder_deletes_its_key(void **state)
{
    (void)state;
    assert_string_equal(raw(server, "SET lock foreign NX PX 60000"), "OK");
    open_client(&bob);
    bob_queues_for(LONG_MS);
    int64_t start = now_ms();
    assert_string_equal(raw(server, "DEL lock"), "1");
    expect_bob_has_it_within(start, 100);
    expect_only_fences();
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, start_server, end_everything)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_lost_message_costs_a_third_of_a_lease),
        TEST(a_subscription_that_is_cut_at_the_grant_costs_a_reconnect),
        TEST(every_message_may_be_lost),
        TEST(a_server_that_comes_back_empty),
        TEST(a_server_that_comes_back_with_its_data),
        TEST(a_killed_holder_costs_its_lease),
        TEST(a_stopped_waiter_costs_one_lease),
        TEST(a_waiter_that_is_stopped_for_long_is_passed_over),
        TEST(a_deleted_queue),
        TEST(deleted_notes),
        TEST(a_deleted_fence),
        TEST(a_deleted_lock),
        TEST(everything_is_deleted),
        TEST(a_foreign_holder_deletes_its_key),
    };
    return cmocka_run_group_tests_name("queue faults", tests, NULL, NULL);
}
