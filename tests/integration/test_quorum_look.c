/* SPDX-License-Identifier: MIT */
/* Goal: an operator of three real servers sees who holds what on a majority of them, each lock
 * once, and can ask for it and take it away, while one of the servers is down or says nothing.
 *
 * The locks are written into the servers by hand, as another client's votes would stand there: so
 * it is known what there is to see. Their names have the tag {0}, which makes T, the number in
 * their side keys' names, 0 too (docs/wire.md).
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fixture.h"

enum { SERVERS = 3, LEASE_MS = 600000, PATIENCE_MS = 20000, NAMES = 500 };

#define ANN     "00000000000000000000000000000aaa"
#define BOB     "00000000000000000000000000000bbb"
#define REST    "@there:5/1/report"
#define LOCK    "x{0}"
#define SIDE(c) "hf:" c ":{0}" LOCK
#define FENCE   1800000000000000LL
#define NEITHER (-1)

static struct redis_server *all[SERVERS];
static hf_client *client;
static hf_error error;
static hf_inspection seen;

/* ---- Verbs ----------------------------------------------------------------------------------- */

static int begin(void **state)
{
    (void)state;
    for (int i = 0; i < SERVERS; i++)
        assert_non_null(all[i] = redis_server_start(NULL));
    char urls[256];
    (void)snprintf(urls, sizeof(urls), "%s,%s,%s", all[0]->url, all[1]->url, all[2]->url);
    open_client_at(urls, &client,
                   HF_CLIENT(.connect_timeout_ms = PATIENCE_MS, .reply_timeout_ms = PATIENCE_MS,
                             .call_timeout_ms = PATIENCE_MS));
    return 0;
}

/* The number of a vote is its own, everything else is the hold's. */
static void put_vote(int server_number, const char *name, const char *who, long long fence)
{
    static int number;
    struct redis_server *at = all[server_number];
    assert_string_equal(raw(at, "SET %s %s:%d%s PX %d", name, who, ++number, REST, LEASE_MS), "OK");
    assert_string_equal(raw(at, "SET hf:f:{0}%s %lld PX %d", name, fence, LEASE_MS), "OK");
}

/* ANN has it at all servers but one. */
static void hold_without(int server_number, const char *name)
{
    for (int i = 0; i < SERVERS; i++)
        if (i != server_number)
            put_vote(i, name, ANN, FENCE);
}

static void look(void)
{
    memset(&seen, 0xee, sizeof(seen)); /* everything has to be filled */
    EXPECT(HF_OK, hf_inspect(client, LOCK, 0, &seen, &error));
    assert_string_equal(seen.name, LOCK);
}

static bool is_held_at(int server_number)
{
    return raw_number(all[server_number], "EXISTS " LOCK) == 1;
}

/* Behind the number are marks. */
static long long fence_at(int server_number)
{
    return strtoll(raw(all[server_number], "GET " SIDE("f")), NULL, 10);
}

/* ---- Inspect --------------------------------------------------------------------------------- */

static void a_majority_is_seen(void **state)
{
    (void)state;
    look();
    assert_false(seen.held);
    hold_without(1, LOCK);
    look();
    assert_true(seen.held && !seen.shared);
    assert_int_equal(seen.fence, FENCE);
    assert_int_equal(seen.hold_count, 1);
    assert_string_equal(seen.holders[0].client_id, ANN);
    assert_string_equal(seen.holders[0].host, "there");
    assert_string_equal(seen.holders[0].label, "report");
    assert_in_range(seen.remaining_ms, 1, LEASE_MS);
    put_vote(0, LOCK, BOB, FENCE + 5);
    look();
    assert_false(seen.held); /* one each, and the third has none */
    assert_int_equal(seen.fence, FENCE + 5);
    assert_int_equal(seen.queue_length, 2);
    assert_string_equal(seen.waiters[0].client_id, BOB);
    assert_string_equal(seen.waiters[1].client_id, ANN);
}

static void any_one_server_may_be_missing(void **state)
{
    (void)state;
    hold_without(NEITHER, LOCK);
    for (int i = 0; i < SERVERS; i++) {
        redis_server_freeze(all[i]);
        look();
        assert_true(seen.held);
        redis_server_thaw(all[i]);
    }
    redis_server_kill(all[2]);
    look();
    assert_true(seen.held);
    redis_server_restart(all[2]); /* and has forgotten it */
    look();
    assert_true(seen.held);
}

static void two_that_are_missing_are_named(void **state)
{
    (void)state;
    char both[2][40];
    hold_without(NEITHER, LOCK);
    for (int i = 0; i < 2; i++) {
        redis_server_kill(all[i]);
        (void)snprintf(both[i], sizeof(both[i]), "127.0.0.1:%d", all[i]->port);
    }
    EXPECT(HF_EUNAVAILABLE, hf_inspect(client, LOCK, 0, &seen, &error));
    expect_says(error.text, "2 of 3");
    expect_says(error.text, both[0]);
    expect_says(error.text, both[1]);
    EXPECT(HF_EUNAVAILABLE, hf_break(client, LOCK, 0, NULL, &error));
    EXPECT(HF_EUNAVAILABLE, hf_revoke(client, LOCK, 0, NULL, &error));
    assert_true(is_held_at(2));
}

static void silence_ends_in_time(void **state)
{
    (void)state;
    char urls[256];
    hf_client *hasty = NULL;
    (void)snprintf(urls, sizeof(urls), "%s,%s,%s", all[0]->url, all[1]->url, all[2]->url);
    EXPECT(HF_OK, hf_open(urls, HF_CLIENT(.call_timeout_ms = 200), &hasty, &error));
    redis_server_freeze(all[0]);
    redis_server_freeze(all[2]);
    hf_status status = hf_inspect(hasty, LOCK, 0, &seen, &error);
    assert_true(status == HF_EUNKNOWN || status == HF_EUNAVAILABLE);
    expect_says(error.text, "2 of 3 did not answer");
    redis_server_thaw(all[0]);
    redis_server_thaw(all[2]);
    (void)hf_close(hasty);
}

/* ---- List ------------------------------------------------------------------------------------ */

static int times_seen[NAMES];
static int strangers;

static bool count_name(void *arg, const hf_inspection *inspection)
{
    int number = -1, end = 0;
    (void)arg;
    if (sscanf(inspection->name, "many:{0}%d%n", &number, &end) == 1 && number < NAMES &&
        (size_t)end == inspection->name_length)
        times_seen[number]++;
    else
        strangers++;
    return true;
}

/* Every lock is at two servers or at all; those at one are held by nobody. */
static void put_many(void)
{
    char name[40];
    for (int i = 0; i < NAMES; i++) {
        (void)snprintf(name, sizeof(name), "many:{0}%d", i);
        hold_without(i % 4 < 3 ? i % 4 : NEITHER, name);
        (void)snprintf(name, sizeof(name), "few:{0}%d", i);
        put_vote(i % 3, name, BOB, FENCE);
    }
}

static void expect_all_once(void)
{
    memset(times_seen, 0, sizeof(times_seen));
    strangers = 0;
    EXPECT(HF_OK, hf_list(client, "*", count_name, NULL, &error));
    for (int i = 0; i < NAMES; i++)
        if (times_seen[i] != 1) /* SCAN itself may tell a key twice only while the table grows */
            fail_msg("lock %d was seen %d times", i, times_seen[i]);
    assert_int_equal(strangers, 0);
}

static void each_lock_is_listed_once(void **state)
{
    (void)state;
    put_many();
    expect_all_once();
}

static void a_lock_of_two_servers_is_listed_without_the_third(void **state)
{
    char name[40];
    (void)state;
    for (int i = 0; i < NAMES; i++) {
        (void)snprintf(name, sizeof(name), "many:{0}%d", i);
        hold_without(NEITHER, name);
    }
    put_vote(1, LOCK, BOB, FENCE); /* the first could be another vote of it */
    redis_server_kill(all[0]);
    EXPECT(HF_EUNAVAILABLE, hf_inspect(client, LOCK, 0, &seen, &error));
    expect_says(error.text, "1 of 3 did not answer, and the others do not agree");
    expect_all_once();
    redis_server_kill(all[1]);
    EXPECT(HF_EUNAVAILABLE, hf_list(client, "*", count_name, NULL, &error));
    expect_says(error.text, "2 of 3 did not answer");
}

enum { SOME = 20 };

static bool freeze_first(void *arg, const hf_inspection *inspection)
{
    bool *frozen = arg;
    bool second = strncmp(inspection->name, "second", 6) == 0;
    if (second && !*frozen) {
        redis_server_freeze(all[0]);
        *frozen = true;
    }
    times_seen[second]++;
    return true;
}

/* The first has told all that it has, and is then asked whether it had the next ones. It is waited
 * for once, and what it has may be seen twice. */
static void a_server_that_falls_silent_meanwhile_hides_nothing(void **state)
{
    (void)state;
    char urls[256], name[40];
    hf_client *hasty = NULL;
    bool frozen = false;
    memset(times_seen, 0, sizeof(times_seen));
    for (int i = 0; i < SOME; i++) {
        (void)snprintf(name, sizeof(name), "first:{0}%d", i);
        hold_without(NEITHER, name);
        (void)snprintf(name, sizeof(name), "second:{0}%d", i);
        hold_without(0, name);
    }
    (void)snprintf(urls, sizeof(urls), "%s,%s,%s", all[0]->url, all[1]->url, all[2]->url);
    EXPECT(HF_OK, hf_open(urls, HF_CLIENT(.call_timeout_ms = 2000), &hasty, &error));
    EXPECT(HF_OK, hf_list(hasty, "*", freeze_first, &frozen, &error));
    assert_true(frozen);
    assert_in_range(times_seen[0], SOME, 2 * SOME);
    assert_int_equal(times_seen[1], SOME);
    redis_server_thaw(all[0]);
    (void)hf_close(hasty);
}

static bool stop_at_once(void *arg, const hf_inspection *inspection)
{
    int *count = arg;
    assert_true(inspection->held);
    ++*count;
    return false;
}

static void a_list_ends_when_it_is_told_to(void **state)
{
    int count = 0;
    (void)state;
    hold_without(NEITHER, LOCK);
    hold_without(NEITHER, "y{0}");
    EXPECT(HF_OK, hf_list(client, NULL, stop_at_once, &count, &error));
    assert_int_equal(count, 1);
}

/* ---- Revoke and break ------------------------------------------------------------------------ */

static void the_request_is_left_at_all_that_have_it(void **state)
{
    (void)state;
    EXPECT(HF_ENOTHELD, hf_revoke(client, LOCK, 0, "please", &error));
    put_vote(0, LOCK, ANN, FENCE);
    EXPECT(HF_ENOTHELD, hf_revoke(client, LOCK, 0, "please", &error)); /* one is no majority */
    put_vote(1, LOCK, ANN, FENCE);
    put_vote(2, LOCK, BOB, FENCE + 1);
    EXPECT(HF_OK, hf_revoke(client, LOCK, 0, "please", &error));
    for (int i = 0; i < 2; i++)
        assert_string_equal(raw(all[i], "HGET " SIDE("w") " #revoked"), "1800000000000000:please");
    assert_string_equal(raw(all[2], "HGET " SIDE("w") " #revoked"), "(nil)");
}

static void the_lock_is_taken_from_whoever_has_a_majority(void **state)
{
    uint64_t fence = 0;
    (void)state;
    EXPECT(HF_ENOTHELD, hf_break(client, LOCK, 0, &fence, &error));
    put_vote(0, LOCK, ANN, FENCE);
    put_vote(1, LOCK, ANN, FENCE);
    put_vote(2, LOCK, BOB, 7);
    EXPECT(HF_OK, hf_break(client, LOCK, 0, &fence, &error));
    assert_true(fence > FENCE);
    assert_false(is_held_at(0) || is_held_at(1));
    assert_true(is_held_at(2)); /* another one's vote */
    for (int i = 0; i < 2; i++)
        assert_true(fence_at(i) > FENCE);
    EXPECT(HF_ENOTHELD, hf_break(client, LOCK, 0, &fence, &error));
}

/* The clocks of real servers are below this fence, and the first knows of no such thing. */
static void the_new_fence_is_above_what_others_know(void **state)
{
    static const long long high = 4000000000000000LL;
    uint64_t fence = 0;
    (void)state;
    put_vote(0, LOCK, ANN, 5);
    put_vote(1, LOCK, ANN, high);
    put_vote(2, LOCK, ANN, high);
    EXPECT(HF_OK, hf_break(client, LOCK, 0, &fence, &error));
    assert_true(fence > high);
    for (int i = 0; i < SERVERS; i++)
        WAIT_UNTIL(fence_at(i) > high, PATIENCE_MS);
}

static void one_server_may_be_silent_meanwhile(void **state)
{
    uint64_t fence = 0;
    (void)state;
    hold_without(NEITHER, LOCK);
    redis_server_freeze(all[1]);
    EXPECT(HF_OK, hf_revoke(client, LOCK, 0, "please", &error));
    EXPECT(HF_OK, hf_break(client, LOCK, 0, &fence, &error));
    assert_true(fence > FENCE);
    assert_false(is_held_at(0) || is_held_at(2));
    redis_server_thaw(all[1]);
}

static void all_who_share_it_lose_it(void **state)
{
    uint64_t fence = 0;
    (void)state;
    for (int i = 0; i < SERVERS; i++) {
        raw(all[i], "SET " LOCK " %s PX %d", "request 7", LEASE_MS);
        raw(all[i], "SET " SIDE("f") " %lld PX %d", FENCE, LEASE_MS);
        raw(all[i], "ZADD " SIDE("h") " 9999999999999 %s:%d%s", ANN, i + 1, REST);
        raw(all[i], "ZADD " SIDE("h") " 9999999999999 %s:%d%s", BOB, i + 7, REST);
    }
    look();
    assert_true(seen.held && seen.shared);
    assert_string_equal(seen.owner, "request 7");
    assert_int_equal(seen.hold_count, 2);
    EXPECT(HF_OK, hf_break(client, LOCK, 0, &fence, &error));
    look();
    assert_false(seen.held);
}

/* ---- Observe and examine --------------------------------------------------------------------- */

static atomic_int found_free, granted_to_ann, ended;

static void hear(void *arg, const hf_sight *sight)
{
    (void)arg;
    if (sight->kind == HF_SEEN_FREE)
        atomic_fetch_add(&found_free, 1);
    if (sight->kind == HF_SEEN_GRANTED && strcmp(sight->who.client_id, ANN) == 0)
        atomic_fetch_add(&granted_to_ann, 1);
    if (sight->kind == HF_SEEN_EXPIRED)
        atomic_fetch_add(&ended, 1);
}

static void an_observer_finds_out_by_looking(void **state)
{
    hf_observer *observer;
    (void)state;
    EXPECT(HF_OK, hf_observe(client, LOCK, 0, hear, NULL, &observer, &error));
    WAIT_UNTIL(atomic_load(&found_free) == 1, PATIENCE_MS);
    put_vote(0, LOCK, BOB, FENCE); /* a vote, and not the lock */
    hold_without(0, LOCK);
    WAIT_UNTIL(atomic_load(&granted_to_ann) == 1, PATIENCE_MS);
    EXPECT(HF_OK, hf_break(client, LOCK, 0, NULL, &error));
    WAIT_UNTIL(atomic_load(&ended) == 1, PATIENCE_MS);
    hf_observe_end(&observer);
    for (int i = 0; i < SERVERS; i++)
        assert_null(strstr(raw(all[i], "CLIENT LIST TYPE pubsub"), "id="));
}

static void each_server_is_examined(void **state)
{
    hf_examination first, other;
    (void)state;
    assert_int_equal(hf_server_count(client), SERVERS);
    assert_int_equal(hf_server_count(NULL), 0);
    EXPECT(HF_OK, hf_examine(client, &first, &error));
    EXPECT(HF_OK, hf_examine_server(client, 0, &other, &error));
    assert_string_equal(first.run_id, other.run_id);
    for (int i = 1; i < SERVERS; i++) {
        EXPECT(HF_OK, hf_examine_server(client, i, &other, &error));
        assert_non_null(strstr(raw(all[i], "INFO server"), other.run_id));
        assert_string_not_equal(first.run_id, other.run_id);
    }
    EXPECT(HF_EINVAL, hf_examine_server(client, SERVERS, &other, &error));
    EXPECT(HF_EINVAL, hf_examine_server(client, -1, &other, &error));
    EXPECT(HF_EINVAL, hf_examine_server(NULL, 0, &other, &error));
    EXPECT(HF_EINVAL, hf_examine_server(client, 0, NULL, &error));
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, begin, end_everything)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_majority_is_seen),
        TEST(any_one_server_may_be_missing),
        TEST(two_that_are_missing_are_named),
        TEST(silence_ends_in_time),
        TEST(each_lock_is_listed_once),
        TEST(a_lock_of_two_servers_is_listed_without_the_third),
        TEST(a_server_that_falls_silent_meanwhile_hides_nothing),
        TEST(a_list_ends_when_it_is_told_to),
        TEST(the_request_is_left_at_all_that_have_it),
        TEST(the_lock_is_taken_from_whoever_has_a_majority),
        TEST(the_new_fence_is_above_what_others_know),
        TEST(one_server_may_be_silent_meanwhile),
        TEST(all_who_share_it_lose_it),
        TEST(an_observer_finds_out_by_looking),
        TEST(each_server_is_examined),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
