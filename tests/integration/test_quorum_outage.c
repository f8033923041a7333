/* SPDX-License-Identifier: MIT */
/* Goal: a minority of servers that is gone or says nothing delays nobody; without a majority each
 * call says so within its time, and everything works again as soon as there is one.
 *
 * That nothing waits for the silent is shown by time-outs of a minute: a call that needed one would
 * not be back within the patience of these tests.
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>

#include "quorum.h"
#include "witness.h"

enum { SERVERS = 5, NEVER_MS = 60000, LEASE_MS = 30000, CALL_MS = 500 };

static hf_error error;
static hf_hold *hold, *other;
static struct attempt attempt;
static struct witness witness;

#define ENDLESS \
    .connect_timeout_ms = NEVER_MS, .reply_timeout_ms = NEVER_MS, .call_timeout_ms = NEVER_MS
#define HASTY .durable_servers = true, .call_timeout_ms = CALL_MS

/* ---- Verbs ----------------------------------------------------------------------------------- */

static int begin(void **state)
{
    (void)state;
    quorum_start_durable(SERVERS);
    return 0;
}

typedef void deed(int server_number);

static void do_to(int first, int count, deed *what)
{
    for (int i = first; i < first + count; i++)
        what(i % SERVERS);
}

static void open_two(const hf_client_options *options)
{
    open_client_at(quorum_urls(SERVERS), &alice, options);
    open_client_at(quorum_urls(SERVERS), &bob, options);
}

/* So that connections are there, and it is not their beginning that is tested. */
static void warm_up(hf_client *client)
{
    hold = acquire_with(client, HF_ACQUIRE(.wait_ms = QUORUM_PATIENCE_MS));
    release(&hold);
    WAIT_UNTIL(quorum_held() == 0, QUORUM_PATIENCE_MS);
}

/* Bob waits at each server that runs. */
static void queue_behind(const hf_hold *first)
{
    WAIT_UNTIL(quorum_held_by(first) == quorum_running(), QUORUM_PATIENCE_MS);
    attempt_begin(&attempt, bob, "lock", HF_ACQUIRE(.wait_ms = -1));
    WAIT_UNTIL(quorum_all_queued(1), QUORUM_PATIENCE_MS);
}

/* ---- A minority ------------------------------------------------------------------------------ */

static void expect_full_service(void)
{
    hold = acquire_with(alice, HF_ACQUIRE(.lease_ms = LEASE_MS, .renew_interval_ms = 20));
    expect_refused(bob);
    EXPECT(HF_OK, hf_extend(hold, LEASE_MS + 5000, &error));
    uint64_t renewals = stats_of(alice)->renewals;
    WAIT_UNTIL(stats_of(alice)->renewals > renewals + 2, QUORUM_PATIENCE_MS);
    assert_int_equal(hf_hold_state(hold), HF_SAFE);
    queue_behind(hold);
    release(&hold);
    WAIT_UNTIL(attempt_is_over(&attempt), QUORUM_PATIENCE_MS);
    assert_int_equal(attempt_end(&attempt), HF_OK);
    release(&attempt.hold);
}

static void two_that_stand_still_delay_nothing(void **state)
{
    (void)state;
    open_two(HF_CLIENT(ENDLESS, .durable_servers = true));
    warm_up(alice);
    warm_up(bob);
    for (int first = 0; first < SERVERS; first++) {
        int64_t start = now_ms();
        do_to(first, 2, quorum_freeze);
        expect_full_service();
        do_to(first, 2, quorum_thaw);
        assert_true(now_ms() - start < LEASE_MS);
        WAIT_UNTIL(quorum_held() == 0, QUORUM_PATIENCE_MS);
    }
}

static void two_that_stand_still_from_the_beginning_delay_nothing(void **state)
{
    (void)state;
    int64_t start = now_ms();
    do_to(3, 2, quorum_freeze);
    open_two(HF_CLIENT(ENDLESS, .durable_servers = true));
    expect_full_service();
    assert_int_equal(close_clients(NULL), 0);
    assert_true(now_ms() - start < LEASE_MS);
}

static void two_that_are_gone_delay_nothing(void **state)
{
    (void)state;
    open_two(HF_CLIENT(ENDLESS, .durable_servers = true));
    warm_up(alice);
    for (int first = 0; first < SERVERS; first++) {
        int64_t start = now_ms();
        do_to(first, 2, quorum_kill);
        expect_full_service();
        do_to(first, 2, quorum_restart);
        assert_true(now_ms() - start < LEASE_MS);
    }
}

/* The hold was there before, and the two that do not answer are among those that granted it. A
 * connection that is silent counts as dead after a while, for which closing may wait. */
static void a_hold_survives_two(deed *begin_trouble)
{
    int64_t start = now_ms();
    open_two(HF_CLIENT(.call_timeout_ms = NEVER_MS, .durable_servers = true));
    hold = acquire_with(alice, HF_ACQUIRE(.lease_ms = LEASE_MS, .renew_interval_ms = 20));
    WAIT_UNTIL(quorum_held() == SERVERS, QUORUM_PATIENCE_MS);
    do_to(0, 2, begin_trouble);
    uint64_t renewals = stats_of(alice)->renewals;
    WAIT_UNTIL(stats_of(alice)->renewals > renewals + 5, QUORUM_PATIENCE_MS);
    EXPECT(HF_OK, hf_extend(hold, LEASE_MS + 5000, &error));
    expect_refused(bob);
    EXPECT_STATUS(HF_OK, hf_close(alice)); /* which releases it */
    alice = NULL;
    expect_free(bob);
    EXPECT(HF_ECLOSED, hf_release(&hold, &error));
    EXPECT_STATUS(HF_OK, hf_close(bob));
    bob = NULL;
    assert_true(now_ms() - start < LEASE_MS);
}

static void closing_does_not_wait_for_two_that_stand_still(void **state)
{
    (void)state;
    a_hold_survives_two(quorum_freeze);
}

static void closing_does_not_wait_for_two_that_are_gone(void **state)
{
    (void)state;
    a_hold_survives_two(quorum_kill);
}

/* It runs for a tenth of the time, in small pieces. */
static void slow_down(int line, void *arg)
{
    const pid_t *pid = arg;
    (void)line;
    for (;;) {
        (void)kill(*pid, SIGSTOP);
        sleep_ms(9);
        (void)kill(*pid, SIGCONT);
        sleep_ms(1);
    }
}

static void one_that_is_slow_delays_nothing(void **state)
{
    (void)state;
    struct process *brake = process_start(slow_down, &quorum.servers[0]->pid);
    open_two(HF_CLIENT(ENDLESS, .durable_servers = true));
    for (int i = 0; i < 100; i++) {
        hold = acquire_with(i % 2 == 0 ? alice : bob, HF_ACQUIRE(.wait_ms = LEASE_MS));
        release(&hold);
    }
    process_kill(brake);
    quorum_thaw(0);
    WAIT_UNTIL(quorum_held() == 0, QUORUM_PATIENCE_MS);
}

/* ---- No majority ----------------------------------------------------------------------------- */

static bool is_no_answer(hf_status status)
{
    return status == HF_EUNAVAILABLE || status == HF_EUNKNOWN;
}

static void expect_no_service(hf_client *client)
{
    int64_t start = now_ms();
    hf_status status = hf_acquire(client, "lock", NULL, &other, &error);
    assert_true(is_no_answer(status) && other == NULL);
    EXPECT_TOOK(start, 0, CALL_MS);
    start = now_ms();
    status = hf_acquire(client, "lock", HF_ACQUIRE(.wait_ms = 2 * CALL_MS), &other, &error);
    assert_true(is_no_answer(status) && other == NULL);
    EXPECT_TOOK(start, 0, 2 * CALL_MS);
    for (int i = 0; i < 3; i++)
        expect_says(error.text, quorum_address(i));
}

static void expect_service_again(hf_client *client)
{
    hold = acquire_with(client, HF_ACQUIRE(.lease_ms = LEASE_MS, .wait_ms = QUORUM_PATIENCE_MS));
    release(&hold);
}

static void without_three_there_is_a_clear_answer(void **state)
{
    (void)state;
    open_two(HF_CLIENT(HASTY));
    warm_up(alice);
    do_to(0, 3, quorum_kill);
    expect_no_service(alice);
    do_to(0, 3, quorum_restart);
    expect_service_again(alice);
    expect_service_again(bob);
}

/* What was granted by the two, and by the three when they wake up, is given back long before its
 * lease is over. */
static void three_that_stand_still_are_no_majority(void **state)
{
    (void)state;
    open_two(HF_CLIENT(HASTY));
    warm_up(alice);
    warm_up(bob);
    do_to(0, 3, quorum_freeze);
    expect_no_service(bob);
    do_to(0, 3, quorum_thaw);
    expect_service_again(bob);
    WAIT_UNTIL(quorum_held() == 0, QUORUM_PATIENCE_MS);
}

/* Cancelled, and what the silent ones do with what they were sent is put right when they wake up.
 */
static void a_cancel_does_not_wait_for_anybody(void **state)
{
    (void)state;
    hf_cancel *cancel = hf_cancel_new();
    open_two(HF_CLIENT(ENDLESS, .durable_servers = true));
    warm_up(alice);
    do_to(0, 3, quorum_freeze);
    attempt_begin(&attempt, alice, "lock", HF_ACQUIRE(.wait_ms = -1, .cancel = cancel));
    WAIT_UNTIL(quorum_held() == 2, QUORUM_PATIENCE_MS);
    hf_cancel_fire(cancel);
    WAIT_UNTIL(attempt_is_over(&attempt), QUORUM_PATIENCE_MS);
    assert_int_equal(attempt_end(&attempt), HF_ECANCELLED);
    hf_cancel_free(cancel);
    do_to(0, 3, quorum_thaw);
    WAIT_UNTIL(quorum_held() == 0, QUORUM_PATIENCE_MS);
    expect_service_again(bob);
}

/* The third vote comes when its lease is over by our own clock. */
static void a_majority_that_comes_too_late_leaves_nothing(void **state)
{
    (void)state;
    open_two(HF_CLIENT(ENDLESS, .durable_servers = true));
    warm_up(alice);
    warm_up(bob);
    do_to(0, 3, quorum_freeze);
    attempt_begin(&attempt, alice, "lock", HF_ACQUIRE(.lease_ms = 100, .no_renewal = true));
    WAIT_UNTIL(quorum_held() == 2, QUORUM_PATIENCE_MS);
    sleep_ms(150);
    do_to(0, 3, quorum_thaw);
    expect_service_again(bob);
    WAIT_UNTIL(attempt_is_over(&attempt), QUORUM_PATIENCE_MS);
    if (attempt_end(&attempt) == HF_OK) /* by another try, or not at all */
        (void)hf_release(&attempt.hold, NULL);
    WAIT_UNTIL(quorum_held() == 0, QUORUM_PATIENCE_MS);
}

/* One who waits goes on doing so, and has it when there is a majority again. */
static void who_waits_through_an_outage_is_served(void **state)
{
    (void)state;
    open_two(HF_CLIENT(HASTY));
    hold = acquire_with(alice, HF_ACQUIRE(.lease_ms = LEASE_MS, .wait_ms = QUORUM_PATIENCE_MS));
    queue_behind(hold);
    do_to(1, 3, quorum_kill);
    (void)hf_release(&hold, &error); /* two of five can be told */
    do_to(1, 3, quorum_restart);
    WAIT_UNTIL(attempt_is_over(&attempt), QUORUM_PATIENCE_MS);
    assert_int_equal(attempt_end(&attempt), HF_OK);
    release(&attempt.hold);
}

static void a_hold_ends_without_a_majority(void **state)
{
    (void)state;
    witness_clear(&witness);
    open_two(HF_CLIENT(HASTY));
    hold = acquire_with(alice, HF_ACQUIRE(.lease_ms = 1000, .wait_ms = QUORUM_PATIENCE_MS,
                                          .on_event = witness_event, .arg = &witness));
    do_to(0, 3, quorum_freeze);
    while (hf_extend(hold, 0, &error) == HF_OK)
        continue; /* by an answer that was on its way */
    assert_int_equal(error.status, HF_ELOST);
    assert_false(hf_is_valid(hold));
    WAIT_UNTIL(times_told(&witness, HF_LOST, HF_REASONS) == 1, QUORUM_PATIENCE_MS);
    EXPECT(HF_ELOST, hf_release(&hold, &error));
    do_to(0, 3, quorum_thaw);
    expect_service_again(bob);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, begin, quorum_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(two_that_stand_still_delay_nothing),
        TEST(two_that_stand_still_from_the_beginning_delay_nothing),
        TEST(two_that_are_gone_delay_nothing),
        TEST(closing_does_not_wait_for_two_that_stand_still),
        TEST(closing_does_not_wait_for_two_that_are_gone),
        TEST(one_that_is_slow_delays_nothing),
        TEST(without_three_there_is_a_clear_answer),
        TEST(three_that_stand_still_are_no_majority),
        TEST(a_cancel_does_not_wait_for_anybody),
        TEST(a_majority_that_comes_too_late_leaves_nothing),
        TEST(who_waits_through_an_outage_is_served),
        TEST(a_hold_ends_without_a_majority),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
