/* SPDX-License-Identifier: MIT */
/* Goal: what the user's brief asks of taking a lock, one by one: the options of waiting, whose lock
 * it is, and the wrong orders of events that must have no effect. What it asks of holding one
 * (renewal, refresh, loss) is in test_brief_holding.c, waiters that share one wait within a process
 * (singleflight) in test_cohort.c.
 *
 * Tries are counted by the server, as scripts that it runs. A holder that never goes away stands in
 * the way: a foreign key without an expiry, so that nothing but the interval decides when to try.
 */
#include <stdio.h>
#include <string.h>

#include "fixture.h"
#include "puppet.h"

static hf_client *client;
static hf_client *other;
static hf_hold *hold;
static hf_hold *second;
static hf_error error;
static struct attempt waiter;

static int begin(void **state)
{
    hold = NULL;
    second = NULL;
    return start_server(state);
}

/* ---- Verbs ----------------------------------------------------------------------------------- */

/* Both are connected, so that only tries are counted from here on. */
static void open_clients(void)
{
    open_client_with(&client, HF_CLIENT(.links = 1));
    open_client_with(&other, HF_CLIENT(.links = 1));
    EXPECT(HF_OK, hf_acquire(client, "warm up", NULL, &hold, &error));
    EXPECT(HF_OK, hf_release(&hold, &error));
}

static void block_for_ever(void)
{
    assert_string_equal(raw(server, "SET lock foreign"), "OK");
}

static long long tries_of(const hf_acquire_options *options, int64_t *took_ms)
{
    long long before = scripts_run(server);
    int64_t start = now_ms();
    EXPECT(HF_EBUSY, hf_acquire(client, "lock", options, &hold, &error));
    *took_ms = now_ms() - start;
    assert_null(hold);
    return scripts_run(server) - before;
}

/* ---- How often, how long --------------------------------------------------------------------- */

static void without_limits_there_is_one_try(void **state)
{
    (void)state;
    int64_t took;
    open_clients();
    block_for_ever();
    assert_int_equal(tries_of(NULL, &took), 1);
    assert_int_equal(tries_of(HF_ACQUIRE(.retry_interval_ms = 10), &took), 1);
    assert_true(took < SLACK_MS);
}

static void the_interval_is_100_ms_by_default(void **state)
{
    (void)state;
    int64_t took;
    open_clients();
    block_for_ever();
    assert_int_equal(tries_of(HF_ACQUIRE(.max_retries = 5), &took), 6);
    assert_in_range(took, 500, 500 + 2 * SLACK_MS);
}

static void the_interval_is_10_ms_at_least(void **state)
{
    (void)state;
    int64_t took;
    open_clients();
    block_for_ever();
    for (int64_t interval_ms = 1; interval_ms <= 10; interval_ms += 3) {
        assert_int_equal(
            tries_of(HF_ACQUIRE(.max_retries = 20, .retry_interval_ms = interval_ms), &took), 21);
        assert_in_range(took, 20 * 10, 20 * 10 + 2 * SLACK_MS);
    }
}

static void the_interval_can_be_set(void **state)
{
    (void)state;
    int64_t took;
    open_clients();
    block_for_ever();
    assert_int_equal(tries_of(HF_ACQUIRE(.max_retries = 3, .retry_interval_ms = 200), &took), 4);
    assert_in_range(took, 600, 600 + 2 * SLACK_MS);
}

static void the_tries_can_be_limited(void **state)
{
    (void)state;
    int64_t took;
    open_clients();
    block_for_ever();
    for (int retries = 1; retries <= 4; retries++)
        assert_int_equal(
            tries_of(HF_ACQUIRE(.max_retries = retries, .retry_interval_ms = 10), &took),
            retries + 1);
}

static void the_time_can_be_limited(void **state)
{
    (void)state;
    int64_t took;
    open_clients();
    block_for_ever();
    long long tries = tries_of(HF_ACQUIRE(.wait_ms = 450), &took);
    assert_in_range(took, 300, 450 + SLACK_MS);
    assert_in_range(tries, 2, 8); /* the first, the one that queues, one each 100 ms, the leaving */
    assert_int_equal(tries_of(HF_ACQUIRE(.wait_ms = 60000, .max_retries = 1), &took), 2);
    assert_true(took < 60000);
}

static void a_blocked_call_can_be_cancelled(void **state)
{
    (void)state;
    hf_cancel *cancel = hf_cancel_new();
    open_clients();
    block_for_ever();
    long long before = scripts_run(server);
    attempt_begin(&waiter, client, "lock", HF_ACQUIRE(.wait_ms = -1, .cancel = cancel));
    WAIT_UNTIL(scripts_run(server) >= before + 2, 10000);
    hf_cancel_fire(cancel);
    assert_int_equal(attempt_end(&waiter), HF_ECANCELLED);
    assert_null(waiter.hold);
    hf_cancel_free(cancel);
    assert_string_equal(raw(server, "GET lock"), "foreign");
}

static void what_cannot_pass_is_returned_at_once(void **state)
{
    (void)state;
    open_clients();
    assert_string_equal(raw(server, "RPUSH lock a"), "1");
    int64_t start = now_ms();
    EXPECT(HF_ESERVER, hf_acquire(client, "lock", HF_ACQUIRE(.wait_ms = 60000), &hold, &error));
    assert_string_equal(raw(server, "ACL SETUSER default -@scripting"), "OK");
    EXPECT(HF_EDENIED, hf_acquire(client, "lock", HF_ACQUIRE(.wait_ms = 60000), &hold, &error));
    assert_true(now_ms() - start < 10000);
    assert_string_equal(raw(server, "ACL SETUSER default +@all"), "OK");
}

/* A time-out leaves it open whether the lock was taken: it is tried again, and taken once. */
static void an_acquire_that_timed_out_is_tried_again(void **state)
{
    (void)state;
    open_client_with(&client, HF_CLIENT(.reply_timeout_ms = 100));
    EXPECT(HF_OK, hf_acquire(client, "lock", NULL, &hold, &error));
    EXPECT(HF_OK, hf_release(&hold, &error));
    redis_server_freeze(server);
    attempt_begin(&waiter, client, "lock", HF_ACQUIRE(.wait_ms = 20000, .lease_ms = 30000));
    sleep_ms(300); /* some reply timeouts */
    assert_false(attempt_is_over(&waiter));
    redis_server_thaw(server);
    assert_int_equal(attempt_end(&waiter), HF_OK);
    assert_true(hf_is_valid(waiter.hold));
    EXPECT(HF_OK, hf_release(&waiter.hold, &error));
    assert_string_equal(raw(server, "EXISTS lock"), "0");
}

/* ---- Whose it is ----------------------------------------------------------------------------- */

static void the_lock_expires_after_10_s_by_default(void **state)
{
    (void)state;
    open_clients();
    EXPECT(HF_OK, hf_acquire(client, "lock", NULL, &hold, &error));
    assert_in_range(raw_number(server, "PTTL lock"), 8000, 10000);
    EXPECT(HF_OK, hf_release(&hold, &error));
}

static void every_hold_has_a_value_of_its_own(void **state)
{
    (void)state;
    enum { TIMES = 50 };
    static char values[TIMES][256];
    open_clients();
    for (int i = 0; i < TIMES; i++) {
        EXPECT(HF_OK, hf_acquire(i % 2 ? client : other, "lock", NULL, &hold, &error));
        (void)snprintf(values[i], sizeof(values[i]), "%s", raw(server, "GET lock"));
        for (int j = 0; j < i; j++)
            assert_string_not_equal(values[i], values[j]);
        EXPECT(HF_OK, hf_release(&hold, &error));
    }
}

static void an_injected_id_is_the_value(void **state)
{
    (void)state;
    open_clients();
    EXPECT(HF_OK, hf_acquire(client, "lock", HF_ACQUIRE(.owner = "trace-4711"), &hold, &error));
    assert_string_equal(raw(server, "GET lock"), "trace-4711");
    EXPECT(HF_OK, hf_release(&hold, &error));
}

static void local_re_entry_is_counted(void **state)
{
    (void)state;
    hf_hold *holds[3];
    open_clients();
    for (int i = 0; i < 3; i++)
        EXPECT(HF_OK, hf_acquire(client, "lock", NULL, &holds[i], &error));
    for (int i = 0; i < 3; i++) {
        assert_string_equal(raw(server, "EXISTS lock"), "1");
        EXPECT(HF_EBUSY, hf_acquire(other, "lock", NULL, &second, &error));
        EXPECT(HF_OK, hf_release(&holds[i], &error));
    }
    assert_string_equal(raw(server, "EXISTS lock"), "0");
}

/* By its id, in another process, with the count at the server: one release does not free what the
 * other still holds. */
static void distributed_re_entry_is_counted_at_the_server(void **state)
{
    (void)state;
    static hf_inspection seen;
    struct process *elsewhere = puppet_start(server);
    open_clients();
    EXPECT(HF_OK, hf_acquire(client, "lock", HF_ACQUIRE(.owner = "trace-4711"), &hold, &error));
    ASK(elsewhere, "acquire 10000 0 trace-4711", "HF_OK");
    EXPECT(HF_OK, hf_inspect(other, "lock", 0, &seen, &error));
    assert_int_equal(seen.hold_count, 2);
    EXPECT(HF_EBUSY, hf_acquire(other, "lock", HF_ACQUIRE(.owner = "another"), &second, &error));
    EXPECT(HF_OK, hf_release(&hold, &error));
    assert_string_equal(raw(server, "GET lock"), "trace-4711");
    ASK(elsewhere, "release", "HF_OK");
    assert_string_equal(raw(server, "EXISTS lock"), "0");
}

static void a_crashed_holder_leaves_no_deadlock(void **state)
{
    (void)state;
    struct process *dying = puppet_start(server);
    open_clients();
    ASK(dying, "acquire 500 0", "HF_OK");
    process_kill(dying);
    EXPECT(HF_OK, hf_acquire(client, "lock", HF_ACQUIRE(.wait_ms = 20000, .retry_interval_ms = 10),
                             &hold, &error));
    EXPECT(HF_OK, hf_release(&hold, &error));
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end_everything)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(without_limits_there_is_one_try),
        TEST(the_interval_is_100_ms_by_default),
        TEST(the_interval_is_10_ms_at_least),
        TEST(the_interval_can_be_set),
        TEST(the_tries_can_be_limited),
        TEST(the_time_can_be_limited),
        TEST(a_blocked_call_can_be_cancelled),
        TEST(what_cannot_pass_is_returned_at_once),
        TEST(an_acquire_that_timed_out_is_tried_again),
        TEST(the_lock_expires_after_10_s_by_default),
        TEST(every_hold_has_a_value_of_its_own),
        TEST(an_injected_id_is_the_value),
        TEST(local_re_entry_is_counted),
        TEST(distributed_re_entry_is_counted_at_the_server),
        TEST(a_crashed_holder_leaves_no_deadlock),
    };
    return cmocka_run_group_tests_name("brief: taking", tests, NULL, NULL);
}
