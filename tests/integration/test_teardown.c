/* SPDX-License-Identifier: MIT */
/* Goal: everything can be ended in any order, by any thread, with the server well, stalled or gone,
 * within a bound, and nothing is left: no lock, no thread, no descriptor. What stays at the server
 * is the last fence of each lock, for about an hour.
 *
 * Threads and descriptors of this process are counted before and after each test. A thread that has
 * been joined may stay in the system's list for a moment, so the count is waited for.
 */
#include <signal.h>
#include <string.h>

#include "../lib/redis_server.h"

enum { CALL_MS = 300, STALL_MS = 400 };

static struct redis_server *server;
static hf_error error;
static struct attempt waiters[4];
static int descriptors_before;
static int threads_before;

static void *do_nothing(void *arg)
{
    return arg;
}

/* ThreadSanitizer starts a thread of its own, which stays, when the first thread is started. */
static int start_first_thread(void **state)
{
    (void)state;
    pthread_t first;
    assert_int_equal(pthread_create(&first, NULL, do_nothing, NULL), 0);
    assert_int_equal(pthread_join(first, NULL), 0);
    return 0;
}

/* raw() keeps its connection, so it is made (by the start) before anything is counted. */
static int begin(void **state)
{
    (void)state;
    server = redis_server_start(&(struct redis_server_options){.keeps_data = true});
    descriptors_before = open_descriptors();
    threads_before = running_threads();
    return 0;
}

static int end(void **state)
{
    (void)state;
    redis_server_end_all();
    return 0;
}

/* ---- Verbs ----------------------------------------------------------------------------------- */

static hf_client *open_client(void)
{
    hf_client *client;
    EXPECT(HF_OK, hf_open(server->url,
                          HF_CLIENT(.connect_timeout_ms = 200, .reply_timeout_ms = 200,
                                    .call_timeout_ms = CALL_MS),
                          &client, &error));
    return client;
}

static hf_hold *acquire(hf_client *client, const char *name)
{
    hf_hold *hold;
    EXPECT(HF_OK, hf_acquire(client, name, HF_ACQUIRE(.lease_ms = 30000), &hold, &error));
    return hold;
}

static void expect_nothing_left(void)
{
    assert_true(threads_before > 0 && descriptors_before > 0);
    WAIT_UNTIL(running_threads() == threads_before, 2000);
    assert_int_equal(open_descriptors(), descriptors_before);
}

static void expect_only_marks(long long count)
{
    static const char count_marks[] =
        "local count = 0 "
        "for _, key in ipairs(redis.call('KEYS', 'hf:m:{*}*')) do "
        "  local left = redis.call('PTTL', key) "
        "  if left > 0 and left < 2 * 3600 * 1000 then count = count + 1 end "
        "end "
        "return count";
    assert_int_equal(raw_number(server, "EVAL %s 0", count_marks), count);
    assert_int_equal(raw_number(server, "DBSIZE"), count);
}

/* ---- Orders ---------------------------------------------------------------------------------- */

enum thing { THE_CLIENT, THE_HOLD, THE_OTHER_HOLD, THE_CANCEL, THINGS };

/* Ends a client, two holds and a cancel in the given order. */
static void end_in_order(const enum thing order[THINGS])
{
    hf_client *client = open_client();
    hf_cancel *cancel = hf_cancel_new();
    hf_hold *hold;
    hf_hold *other = acquire(client, "other");
    hf_status expected = HF_OK;
    EXPECT(HF_OK, hf_acquire(client, "lock", HF_ACQUIRE(.cancel = cancel), &hold, &error));
    for (int i = 0; i < THINGS; i++) {
        if (order[i] == THE_CLIENT) {
            EXPECT_STATUS(HF_OK, hf_close(client));
            assert_string_equal(raw(server, "EXISTS lock other"), "0");
            expected = HF_ECLOSED;
        } else if (order[i] == THE_HOLD) {
            EXPECT(expected, hf_release(&hold, &error));
        } else if (order[i] == THE_OTHER_HOLD) {
            EXPECT_STATUS(expected, hf_release_nowait(&other));
        } else {
            hf_cancel_free(cancel);
        }
    }
}

static void swap(enum thing *one, enum thing *another)
{
    enum thing kept = *one;
    *one = *another;
    *another = kept;
}

static int end_in_all_orders(enum thing order[THINGS], int settled)
{
    int orders = 0;
    if (settled == THINGS) {
        end_in_order(order);
        return 1;
    }
    for (int i = settled; i < THINGS; i++) {
        swap(&order[settled], &order[i]);
        orders += end_in_all_orders(order, settled + 1);
        swap(&order[settled], &order[i]);
    }
    return orders;
}

static void any_order_will_do(void **state)
{
    (void)state;
    enum thing order[THINGS] = {THE_CLIENT, THE_HOLD, THE_OTHER_HOLD, THE_CANCEL};
    assert_int_equal(end_in_all_orders(order, 0), 24);
    expect_nothing_left();
}

static void a_client_that_was_never_used(void **state)
{
    (void)state;
    EXPECT_STATUS(HF_OK, hf_close(open_client()));
    expect_nothing_left();
}

/* What was written by a release without waiting is not cut off by the close after it. */
static void a_release_without_waiting_survives_the_close(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        hf_client *client = open_client();
        hf_hold *hold = acquire(client, "lock");
        EXPECT_STATUS(HF_OK, hf_release_nowait(&hold));
        EXPECT_STATUS(HF_OK, hf_close(client));
        WAIT_UNTIL(raw_number(server, "EXISTS lock") == 0, 2000);
    }
    expect_nothing_left();
}

static void closing_sends_waiters_home(void **state)
{
    (void)state;
    hf_client *holder = open_client();
    hf_client *client = open_client();
    hf_hold *hold = acquire(holder, "lock");
    long long before = scripts_run(server);
    for (int i = 0; i < 4; i++)
        attempt_begin(&waiters[i], client, "lock",
                      HF_ACQUIRE(.wait_ms = -1, .retry_interval_ms = 20));
    WAIT_UNTIL(scripts_run(server) >= before + 8, 5000);
    int64_t start = now_ms();
    EXPECT_STATUS(HF_OK, hf_close(client));
    for (int i = 0; i < 4; i++) {
        assert_int_equal(attempt_end(&waiters[i]), HF_ECLOSED);
        assert_null(waiters[i].hold);
    }
    EXPECT_TOOK(start, 0, CALL_MS);
    EXPECT(HF_OK, hf_release(&hold, &error));
    assert_string_equal(raw(server, "EXISTS lock"), "0");
    EXPECT_STATUS(HF_OK, hf_close(holder));
    expect_nothing_left();
}

static void many_clients_come_and_go(void **state)
{
    (void)state;
    enum { CLIENTS = 16 };
    hf_client *clients[CLIENTS];
    hf_hold *holds[CLIENTS];
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = open_client();
        holds[i] = acquire(clients[i], (const char[]){(char)('a' + i), '\0'});
    }
    for (int i = 0; i < CLIENTS; i += 2)
        EXPECT_STATUS(HF_OK, hf_close(clients[i]));
    for (int i = CLIENTS - 1; i >= 0; i--)
        EXPECT(i % 2 == 0 ? HF_ECLOSED : HF_OK, hf_release(&holds[i], &error));
    for (int i = 1; i < CLIENTS; i += 2)
        EXPECT_STATUS(HF_OK, hf_close(clients[i]));
    assert_string_equal(raw(server, "EXISTS a b c d e f g h i j k l m n o p"), "0");
    expect_only_marks(CLIENTS);
    expect_nothing_left();
}

/* ---- A stalled server ------------------------------------------------------------------------ */

/* The server takes the requests in while it is stopped and carries them out when it wakes up: the
 * lock that was asked for in vain must be given back then, and the one released in vain be free.
 * The leases are long, so it is the background clean-up that does it. */
static void what_a_stall_leaves_behind_is_cleaned_up(void **state)
{
    (void)state;
    hf_hold *none;
    hf_client *client = open_client();
    hf_hold *hold = acquire(client, "released");
    redis_server_freeze(server);

    int64_t start = now_ms();
    hf_status acquired = hf_acquire(client, "acquired",
                                    HF_ACQUIRE(.wait_ms = 400, .lease_ms = 30000), &none, &error);
    EXPECT_TOOK(start, 200, 400);
    assert_true(acquired == HF_EUNKNOWN || acquired == HF_EUNAVAILABLE);
    assert_null(none);

    start = now_ms();
    EXPECT(HF_EUNKNOWN, hf_release(&hold, &error));
    EXPECT_TOOK(start, 0, CALL_MS);
    assert_null(hold);

    redis_server_thaw(server);
    WAIT_UNTIL(raw_number(server, "EXISTS released acquired") == 0, 5000);
    EXPECT(HF_OK, hf_acquire(client, "acquired", HF_ACQUIRE(.wait_ms = 5000), &hold, &error));
    EXPECT(HF_OK, hf_release(&hold, &error));
    EXPECT_STATUS(HF_OK, hf_close(client));
    assert_string_equal(raw(server, "EXISTS released acquired"), "0");
    expect_nothing_left();
}

/* Here the connection is up and warm, so the acquire certainly is sent, and never answered. */
static void an_unanswered_acquire_is_unknown_and_given_back(void **state)
{
    (void)state;
    hf_hold *hold;
    hf_client *client = open_client();
    hold = acquire(client, "lock");
    EXPECT(HF_OK, hf_release(&hold, &error));
    redis_server_freeze(server);
    EXPECT(HF_EUNKNOWN, hf_acquire(client, "lock", HF_ACQUIRE(.lease_ms = 30000), &hold, &error));
    assert_null(hold);
    redis_server_thaw(server);
    WAIT_UNTIL(raw_number(server, "EXISTS lock") == 0, 5000);
    EXPECT(HF_OK, hf_acquire(client, "lock", HF_ACQUIRE(.wait_ms = 5000), &hold, &error));
    EXPECT(HF_OK, hf_release(&hold, &error));
    EXPECT_STATUS(HF_OK, hf_close(client));
    expect_nothing_left();
}

static void extending_at_a_stalled_server_ends_with_the_lease(void **state)
{
    (void)state;
    hf_hold *hold;
    hf_client *client;
    EXPECT(HF_OK, hf_open(server->url, NULL, &client, &error));
    EXPECT(HF_OK, hf_acquire(client, "lock", HF_ACQUIRE(.lease_ms = 500), &hold, &error));
    redis_server_freeze(server);
    int64_t start = now_ms();
    EXPECT(HF_ELOST, hf_extend(hold, 0, &error));
    EXPECT_TOOK(start, 0, 500);
    assert_false(hf_is_valid(hold));
    redis_server_thaw(server);
    EXPECT(HF_ELOST, hf_release(&hold, &error));
    EXPECT_STATUS(HF_OK, hf_close(client));
    expect_nothing_left();
}

static void *thaw_after_a_stall(void *arg)
{
    const struct redis_server *stalled = arg;
    sleep_ms(STALL_MS);
    (void)kill(stalled->pid, SIGCONT);
    return NULL;
}

/* A stall longer than the reply timeout, so the connection is given up, but shorter than the lease:
 * silence is retried until the deadline. */
static void extending_outlives_a_short_stall(void **state)
{
    (void)state;
    hf_client *client;
    pthread_t thawer;
    EXPECT(HF_OK, hf_open(server->url, HF_CLIENT(.reply_timeout_ms = 150), &client, &error));
    hf_hold *hold = acquire(client, "lock");
    redis_server_freeze(server);
    int64_t start = now_ms();
    assert_int_equal(pthread_create(&thawer, NULL, thaw_after_a_stall, server), 0);
    hf_status extended = hf_extend(hold, 60000, &error);
    int64_t took = now_ms() - start;
    (void)pthread_join(thawer, NULL);
    EXPECT(HF_OK, extended);
    assert_true(took >= STALL_MS);
    assert_true(hf_remaining_ms(hold) > 40000);
    EXPECT(HF_OK, hf_release(&hold, &error));
    EXPECT_STATUS(HF_OK, hf_close(client));
    expect_nothing_left();
}

static void closing_at_a_stalled_server_is_bounded(void **state)
{
    (void)state;
    hf_client *client = open_client();
    hf_hold *holds[3] = {acquire(client, "a"), acquire(client, "b"), acquire(client, "c")};
    redis_server_freeze(server);
    int64_t start = now_ms();
    EXPECT_STATUS(HF_EUNKNOWN, hf_close(client));
    EXPECT_TOOK(start, 0, CALL_MS);
    for (int i = 0; i < 3; i++)
        EXPECT(HF_ECLOSED, hf_release(&holds[i], &error));
    expect_nothing_left();
    redis_server_thaw(server);
}

static void closing_without_a_server_is_bounded(void **state)
{
    (void)state;
    hf_client *client = open_client();
    hf_hold *hold = acquire(client, "lock");
    redis_server_kill(server);
    descriptors_before--; /* raw()'s went with the server */
    int64_t start = now_ms();
    EXPECT_STATUS(HF_EUNKNOWN, hf_close(client));
    EXPECT_TOOK(start, 0, CALL_MS);
    assert_false(hf_is_valid(hold));
    EXPECT_STATUS(HF_ECLOSED, hf_release_nowait(&hold));
    expect_nothing_left();
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(any_order_will_do),
        TEST(a_client_that_was_never_used),
        TEST(a_release_without_waiting_survives_the_close),
        TEST(closing_sends_waiters_home),
        TEST(many_clients_come_and_go),
        TEST(what_a_stall_leaves_behind_is_cleaned_up),
        TEST(an_unanswered_acquire_is_unknown_and_given_back),
        TEST(extending_at_a_stalled_server_ends_with_the_lease),
        TEST(extending_outlives_a_short_stall),
        TEST(closing_at_a_stalled_server_is_bounded),
        TEST(closing_without_a_server_is_bounded),
    };
    return cmocka_run_group_tests_name("teardown", tests, start_first_thread, NULL);
}
