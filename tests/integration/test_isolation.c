/* SPDX-License-Identifier: MIT */
/* Goal: what happens to one lock costs another one nothing. A user loses the permission for one
 * key, or another program puts something large where a lock belongs: that lock is in trouble, and
 * all other locks of the same client, on the same connection, are renewed as before.
 */
#include <stdio.h>
#include <string.h>

#include "fixture.h"

enum { LEASE_MS = 900, OTHERS = 69 };

static hf_hold *others[OTHERS];
static hf_hold *culprit;
static hf_error error;

static int begin(void **state)
{
    (void)state;
    empty_server();
    return 0;
}

/* ---- Verbs ----------------------------------------------------------------------------------- */

/* One connection for all locks, so that renewals share calls. */
static void open_user(void)
{
    char url[64];
    assert_string_equal(raw(server, "ACL SETUSER user reset on >secret ~* &* +@all"), "OK");
    (void)snprintf(url, sizeof(url), "redis://user:secret@127.0.0.1:%d", server->port);
    open_client_at(url, &alice, HF_CLIENT(.links = 1));
}

static void hold_others(void)
{
    char name[32];
    for (int i = 0; i < OTHERS; i++) {
        (void)snprintf(name, sizeof(name), "other:%d", i);
        EXPECT(HF_OK,
               hf_acquire(alice, name, HF_ACQUIRE(.lease_ms = LEASE_MS), &others[i], &error));
    }
}

static void hold_culprit(int64_t lease_ms)
{
    EXPECT(HF_OK, hf_acquire(alice, "lock", HF_ACQUIRE(.lease_ms = lease_ms), &culprit, &error));
}

static void expect_others_held(void)
{
    for (int i = 0; i < OTHERS; i++) {
        assert_true(hf_is_valid(others[i]));
        assert_int_equal(hf_hold_state(others[i]), HF_SAFE);
    }
}

static void release_others(void)
{
    for (int i = 0; i < OTHERS; i++)
        release(&others[i]);
}

/* ---- Permissions ----------------------------------------------------------------------------- */

static void a_key_that_is_denied(void **state)
{
    (void)state;
    open_user();
    hold_others();
    hold_culprit(LEASE_MS);
    assert_string_equal(raw(server, "ACL SETUSER user resetkeys ~other:* ~hf:*"), "OK");
    WAIT_UNTIL(hf_hold_state(culprit) == HF_LOST, 10000);
    int64_t start = now_ms();
    while (now_ms() - start < 2 * LEASE_MS) {
        expect_others_held();
        sleep_ms(20);
    }
    EXPECT(HF_ELOST, hf_release(&culprit, &error));
    release_others();
}

/* Back in time: the hold is renewed, and nothing was lost. */
static void a_key_that_is_denied_for_a_moment(void **state)
{
    (void)state;
    open_user();
    hold_others();
    hold_culprit(3 * LEASE_MS);
    assert_string_equal(raw(server, "ACL SETUSER user resetkeys ~other:* ~hf:*"), "OK");
    WAIT_UNTIL(stats_of(alice)->renewal_failures > 0, 10000);
    assert_string_equal(raw(server, "ACL SETUSER user ~*"), "OK");
    WAIT_UNTIL(hf_remaining_ms(culprit) > 2 * LEASE_MS, 10000);
    expect_others_held();
    release(&culprit);
    release_others();
}

/* ---- What others have written ---------------------------------------------------------------- */

enum { MEGABYTES = 2 * 1024 * 1024 };

/* A key of that size, with no end, as a program that knows nothing of locks would make it. */
static void put_large(const char *key)
{
    assert_int_equal(raw_number(server, "SETRANGE %s %d x", key, MEGABYTES - 1), MEGABYTES);
}

static void expect_nothing_broke(long long connections)
{
    expect_others_held();
    assert_int_equal(connections_seen(), connections);
}

static void a_large_value_at_one_lock(void **state)
{
    (void)state;
    open_user();
    hold_others();
    put_large("lock");
    long long connections = connections_seen();
    EXPECT(HF_EBUSY, hf_acquire(alice, "lock", NULL, &culprit, &error));
    EXPECT(HF_EBUSY,
           hf_acquire(alice, "lock", HF_ACQUIRE(.wait_ms = 2 * LEASE_MS), &culprit, &error));
    assert_in_range(connections_seen(), connections, connections + 1); /* that for messages */
    expect_others_held();
    release_others();
}

static bool count_lock(void *arg, const hf_inspection *seen)
{
    (void)seen;
    ++*(int *)arg;
    return true;
}

static void it_can_be_looked_at_and_broken(void **state)
{
    (void)state;
    hf_inspection seen;
    uint64_t fence = 0;
    open_user();
    hold_others();
    (void)raw(server, "SET %s 7", side_key('f')); /* so that it is listed */
    put_large("lock");
    long long connections = connections_seen();
    EXPECT(HF_OK, hf_inspect(alice, "lock", 4, &seen, &error));
    assert_true(seen.held);
    assert_int_equal(seen.remaining_ms, -1);
    assert_int_equal(strlen(seen.owner), HF_OWNER_MAX);
    int listed = 0;
    EXPECT(HF_OK, hf_list(alice, NULL, count_lock, &listed, &error));
    assert_int_equal(listed, OTHERS + 1); /* all of them */
    EXPECT(HF_OK, hf_break(alice, "lock", 4, &fence, &error));
    assert_true(fence > 0);
    EXPECT(HF_OK, hf_acquire(alice, "lock", NULL, &culprit, &error));
    assert_true(hf_fence(culprit) > fence);
    expect_nothing_broke(connections);
    release(&culprit);
    release_others();
}

/* Beside a lock that is ours: what asks the holder to let go, the queue, and the holders. */
static void large_notes_of_a_lock_that_is_held(void **state)
{
    (void)state;
    open_user();
    hold_others();
    hold_culprit(LEASE_MS);
    long long connections = connections_seen();
    (void)raw(server, "EVAL %s 1 %s",
              "redis.call('HSET', KEYS[1], '#revoked', string.rep('7', 2097152))", side_key('w'));
    int64_t start = now_ms();
    while (now_ms() - start < 2 * LEASE_MS) {
        expect_nothing_broke(connections);
        assert_true(hf_is_valid(culprit));
        sleep_ms(20);
    }
    release(&culprit);
    release_others();
}

/* A message of two megabytes on the client's own channel is passed over. */
static void large_messages(void **state)
{
    (void)state;
    static struct attempt waiter;
    open_user();
    hold_others();
    open_client(&bob);
    EXPECT(HF_OK, hf_acquire(bob, "lock", NULL, &culprit, &error));
    attempt_begin(&waiter, alice, "lock", HF_ACQUIRE(.wait_ms = 20000));
    WAIT_UNTIL(queued() == 1, 10000);
    long long connections = connections_seen();
    (void)raw(server, "EVAL %s 0",
              "for _, c in ipairs(redis.call('PUBSUB', 'CHANNELS', 'hf:c:*')) do "
              "redis.call('PUBLISH', c, string.rep('g', 2097152)) end");
    int64_t start = now_ms();
    release(&culprit);
    assert_int_equal(attempt_end(&waiter), HF_OK);
    EXPECT_TOOK(start, 0, 1000); /* by the message behind it */
    expect_nothing_broke(connections);
    release(&waiter.hold);
    release_others();
}

/* Numbers that no fence can have, at one lock: it goes on by the clock, and the slot does not get
 * them, which it would pass on to its other locks. */
static void a_number_that_is_no_fence(void **state)
{
    static const char *const numbers[] = {"9007199254740992", "123456789012345678",
                                          "99999999999999999999", "abc"};
    (void)state;
    open_user();
    hold_others();
    hold_culprit(LEASE_MS);
    uint64_t last = hf_fence(culprit);
    long long connections = connections_seen();
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        assert_string_equal(raw(server, "EVAL %s 0 %s",
                                "return redis.call('SET', redis.call('KEYS', "
                                "'hf:f:{*}lock')[1], ARGV[1] .. '+')",
                                numbers[i]),
                            "OK");
        (void)hf_release(&culprit, &error);
        hold_culprit(LEASE_MS);
        assert_in_range(hf_fence(culprit), last + 1, last + 60000000);
        last = hf_fence(culprit);
        hf_hold *neighbour = NULL;
        EXPECT(HF_OK, hf_acquire(alice, "{lock}", NULL, &neighbour, &error));
        assert_in_range(hf_fence(neighbour), last - 60000000, last + 60000000);
        release(&neighbour);
    }
    expect_nothing_broke(connections);
    release(&culprit);
    release_others();
}

/* Whoever joins the lock, waits for it, or has lost it is told such a number by no script. */
static void a_number_that_no_sharer_can_have(void **state)
{
    (void)state;
    hf_hold *second = NULL;
    open_user();
    hold_others();
    EXPECT(HF_OK, hf_acquire(alice, "lock", HF_ACQUIRE(.owner = "o"), &culprit, &error));
    open_client(&bob);
    EXPECT(HF_OK, hf_acquire(bob, "{lock}", HF_ACQUIRE(.owner = "o"), &second, &error));
    release(&second);
    long long connections = connections_seen();
    (void)raw(server, "SET %s 9007199254740992", side_key('f'));
    EXPECT(HF_OK, hf_acquire(bob, "lock", HF_ACQUIRE(.owner = "o"), &second, &error));
    assert_in_range(hf_fence(second), hf_fence(culprit), hf_fence(culprit) + 60000000);
    (void)raw(server, "HSET %s #broken -5", side_key('w'));
    (void)raw(server, "DEL lock");
    EXPECT(HF_ELOST, hf_release(&second, &error));
    EXPECT(HF_ELOST, hf_release(&culprit, &error));
    expect_nothing_broke(connections);
    release_others();
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, close_clients)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_key_that_is_denied),
        TEST(a_key_that_is_denied_for_a_moment),
        TEST(a_large_value_at_one_lock),
        TEST(it_can_be_looked_at_and_broken),
        TEST(large_notes_of_a_lock_that_is_held),
        TEST(large_messages),
        TEST(a_number_that_is_no_fence),
        TEST(a_number_that_no_sharer_can_have),
    };
    return cmocka_run_group_tests_name("isolation", tests, start_server, end_server);
}
