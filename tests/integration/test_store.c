/* SPDX-License-Identifier: MIT */
/* Goal: what is written because of a lock is written while that lock is held, or not at all, and
 * all of it or nothing: with a hold at the server that has the lock, and with a fence elsewhere. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast_store.h>

#include "quorum.h"

#define SET(name, text)                                              \
    {                                                                \
        .key = (name), .value = (text), .value_length = strlen(text) \
    }
#define DELETE(name)  \
    {                 \
        .key = (name) \
    }
#define WRITES(...)    \
    (const hf_write[]) \
    {                  \
        __VA_ARGS__    \
    }
#define ONE(name, text)        WRITES(SET(name, text)), 1
#define NO_RENEWAL_SOON        .lease_ms = 30000, .renew_interval_ms = 9000
#define EXPECT_KEY(name, text) assert_string_equal(raw(server, "GET %s", name), text)
#define EXPECT_NO_KEY(name)    assert_int_equal(raw_number(server, "EXISTS %s", name), 0)

static hf_client *third;
static hf_hold *hold;
static hf_hold *other;
static hf_error error;
static struct attempt waiter;

static int begin(void **state)
{
    hold = other = NULL;
    return begin_with_both(state);
}

static hf_hold *hold_long(hf_client *client)
{
    return acquire_with(client, HF_ACQUIRE(NO_RENEWAL_SOON));
}

/* ---- While it is held ------------------------------------------------------------------------ */

static void a_holder_writes(void **state)
{
    (void)state;
    hold = hold_long(alice);
    (void)raw(server, "SET old 1");
    EXPECT(HF_OK,
           hf_write_held(hold,
                         WRITES(SET("a", "1"), DELETE("old"),
                                {.key = "b", .value = "2", .value_length = 1, .expire_ms = 60000},
                                {.key = "c\0d", .key_length = 3, .value = "\0", .value_length = 1},
                                {.key = "empty", .value = "", .value_length = 0}),
                         5, &error));
    EXPECT_KEY("a", "1");
    EXPECT_NO_KEY("old");
    EXPECT_KEY("b", "2");
    assert_in_range(raw_number(server, "PTTL b"), 1, 60000);
    assert_int_equal(raw_number(server, "PTTL a"), -1);
    assert_int_equal(raw_number(server, "STRLEN %b", "c\0d", (size_t)3), 1);
    assert_int_equal(raw_number(server, "EXISTS empty"), 1);
    EXPECT(HF_OK, hf_write_held(hold, ONE("a", "2"), &error));
    EXPECT_KEY("a", "2");
    release(&hold);
}

static void expect_not_written(hf_status status, const char *word)
{
    EXPECT(status, hf_write_held(hold, ONE("a", "stale"), &error));
    expect_says(error.text, word);
    EXPECT_NO_KEY("a");
}

static void a_holder_whose_lease_is_over_is_refused_here(void **state)
{
    (void)state;
    long long before;
    hold = acquire_for(alice, 150);
    WAIT_UNTIL(!hf_is_valid(hold), 10000);
    before = scripts_run(server);
    expect_not_written(HF_ELOST, "ended");
    assert_int_equal(scripts_run(server), before); /* nobody was asked */
    (void)hf_release(&hold, NULL);
}

static void a_holder_that_does_not_know_yet_is_refused_by_the_server(void **state)
{
    (void)state;
    hold = hold_long(alice);
    (void)raw(server, "DEL lock"); /* as if it had expired there */
    assert_true(hf_is_valid(hold));
    expect_not_written(HF_ELOST, "at the server");
    other = hold_long(bob); /* taken over */
    expect_not_written(HF_ELOST, "at the server");
    EXPECT(HF_OK, hf_write_held(other, ONE("a", "new"), &error));
    EXPECT(HF_ELOST, hf_write_held(hold, WRITES(DELETE("a")), 1, &error));
    EXPECT_KEY("a", "new");
    release(&other);
    (void)hf_release(&hold, NULL);
}

static void a_holder_whose_lock_was_broken_is_refused(void **state)
{
    (void)state;
    hold = hold_long(alice);
    EXPECT(HF_OK, hf_break(bob, "lock", 0, NULL, &error));
    expect_not_written(HF_ELOST, "ended");
    (void)hf_release(&hold, NULL);
}

static void those_who_share_a_lock_write_each(void **state)
{
    (void)state;
    hold = acquire_with(alice, HF_ACQUIRE(NO_RENEWAL_SOON, .owner = "order 7"));
    other = acquire_with(bob, HF_ACQUIRE(NO_RENEWAL_SOON, .owner = "order 7"));
    EXPECT(HF_OK, hf_write_held(hold, ONE("a", "alice"), &error));
    EXPECT(HF_OK, hf_write_held(other, ONE("a", "bob"), &error));
    EXPECT_KEY("a", "bob");
    /* One of them has ended, the other has not. */
    assert_int_equal(raw_number(server, "ZCARD %s", side_key('h')), 2);
    EXPECT(HF_OK, hf_write_held_and_release(&other, ONE("a", "last"), &error));
    assert_int_equal(raw_number(server, "ZCARD %s", side_key('h')), 1);
    (void)raw(server, "DEL a");
    (void)raw(server, "ZREMRANGEBYRANK %s 0 -1", side_key('h'));
    expect_not_written(HF_ELOST, "ended"); /* the owner's name is still there, its time is over */
    (void)hf_release(&hold, NULL);
}

static void every_handle_of_a_hold_writes(void **state)
{
    (void)state;
    hold = hold_long(alice);
    other = hold_long(alice); /* the same thread: entered again */
    EXPECT(HF_OK, hf_write_held(other, ONE("a", "inner"), &error));
    EXPECT(HF_OK, hf_write_held_and_release(&other, ONE("a", "inner last"), &error));
    assert_null(other);
    EXPECT_KEY("a", "inner last");
    expect_refused(bob); /* the outer one has it */
    EXPECT(HF_OK, hf_write_held(hold, ONE("a", "outer"), &error));
    EXPECT_KEY("a", "outer");
    release(&hold);
}

static void a_hold_that_was_taken_up_writes(void **state)
{
    (void)state;
    char token[HF_TOKEN_MAX];
    hold = hold_long(alice);
    EXPECT(HF_OK, hf_detach(&hold, token, &error));
    EXPECT(HF_OK, hf_attach(bob, "lock", token, HF_ACQUIRE(NO_RENEWAL_SOON), &hold, &error));
    EXPECT(HF_OK, hf_write_held(hold, ONE("a", "1"), &error));
    EXPECT_KEY("a", "1");
    release(&hold);
}

/* ---- And released ---------------------------------------------------------------------------- */

static long long reads(void)
{
    const char *text = strstr(raw(server, "INFO stats"), "total_reads_processed:");
    long long count = 0;
    assert_non_null(text);
    assert_int_equal(sscanf(text, "total_reads_processed:%lld", &count), 1);
    return count;
}

/* How often the server read something, besides our own question: the least of a few rounds, for
 * there may be a ping of the messages' connection in one. */
static long long reads_of_a_round(bool together)
{
    long long least = 1000;
    for (int i = 0; i < 5; i++) {
        hold = hold_long(alice);
        long long before = reads();
        if (together) {
            EXPECT(HF_OK, hf_write_held_and_release(&hold, ONE("a", "1"), &error));
        } else {
            EXPECT(HF_OK, hf_write_held(hold, ONE("a", "1"), &error));
            release(&hold);
        }
        long long count = reads() - before - 1;
        least = count < least ? count : least;
    }
    return least;
}

static void write_and_release_are_one_message(void **state)
{
    (void)state;
    assert_int_equal(reads_of_a_round(false), 2);
    assert_int_equal(reads_of_a_round(true), 1);
    expect_free(bob);
}

static void it_is_written_when_the_next_one_has_it(void **state)
{
    (void)state;
    hold = hold_long(alice);
    attempt_begin(&waiter, bob, "lock", HF_ACQUIRE(NO_RENEWAL_SOON, .wait_ms = 20000));
    WAIT_UNTIL(queued() == 1, 10000);
    EXPECT(HF_OK, hf_write_held_and_release(&hold, ONE("a", "1"), &error));
    assert_null(hold);
    EXPECT_STATUS(HF_OK, attempt_end(&waiter));
    EXPECT_KEY("a", "1");
    release(&waiter.hold);
}

/* ---- Threads of two clients count, and read what the one before them has written --------------
 */

enum { THREADS = 8, ROUNDS = 100 };

static atomic_int failures;

static long read_count(redisContext *reader)
{
    long count = -1;
    redisReply *reply = redisCommand(reader, "GET count");
    if (reply != NULL && reply->type == REDIS_REPLY_STRING)
        count = strtol(reply->str, NULL, 10);
    freeReplyObject(reply);
    return count;
}

static void *count_up(void *arg)
{
    hf_client *client = arg;
    char text[24];
    redisContext *reader = redisConnectUnix(server->socket);
    for (int i = 0; i < ROUNDS && atomic_load(&failures) == 0; i++) {
        hf_hold *mine = NULL;
        hf_status status =
            hf_acquire(client, "lock", HF_ACQUIRE(.wait_ms = -1, .lease_ms = 30000), &mine, NULL);
        if (status == HF_OK) {
            (void)snprintf(text, sizeof(text), "%ld", read_count(reader) + 1);
            status = hf_write_held_and_release(&mine, ONE("count", text), NULL);
        }
        if (status != HF_OK)
            atomic_fetch_add(&failures, 1);
    }
    redisFree(reader);
    return NULL;
}

static void no_increment_is_lost(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    atomic_store(&failures, 0);
    (void)raw(server, "SET count 0");
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, count_up, i % 2 == 0 ? alice : bob), 0);
    for (int i = 0; i < THREADS; i++)
        (void)pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&failures), 0);
    assert_int_equal(strtol(raw(server, "GET count"), NULL, 10), THREADS * ROUNDS);
    expect_free(bob);
}

static void what_is_refused_is_released_all_the_same(void **state)
{
    (void)state;
    hold = hold_long(alice);
    (void)raw(server, "DEL lock");
    EXPECT(HF_ELOST, hf_write_held_and_release(&hold, ONE("a", "1"), &error));
    assert_null(hold);
    hold = acquire_for(alice, 150);
    WAIT_UNTIL(!hf_is_valid(hold), 10000);
    EXPECT(HF_ELOST, hf_write_held_and_release(&hold, ONE("a", "1"), &error));
    assert_null(hold);
    hold = hold_long(alice);
    (void)raw(server, "CONFIG SET maxmemory 1");
    EXPECT(HF_EUNAVAILABLE, hf_write_held_and_release(&hold, ONE("a", "1"), &error));
    (void)raw(server, "CONFIG SET maxmemory 0");
    assert_null(hold);
    EXPECT_NO_KEY("a");
    expect_free(bob);
}

static void in_an_own_loop_the_caller_waits(void **state)
{
    (void)state;
    open_client_with(&third, HF_CLIENT(.own_loop = true));
    hold = hold_long(third);
    EXPECT(HF_OK, hf_write_held(hold, ONE("a", "1"), &error));
    EXPECT(HF_OK, hf_write_held_and_release(&hold, ONE("a", "2"), &error));
    EXPECT_KEY("a", "2");
    expect_free(bob);
}

static void write_in_child(int line, void *arg)
{
    (void)arg;
    hf_status held = hf_write_held(hold, ONE("a", "1"), NULL);
    hf_status released = hf_write_held_and_release(&hold, ONE("a", "1"), NULL);
    line_say(line, "%s %s %s", hf_status_name(held), hf_status_name(released),
             hold == NULL ? "gone" : "there");
}

static void a_forked_child_does_not_write(void **state)
{
    (void)state;
    hold = hold_long(alice);
    struct process *child = process_start(write_in_child, NULL);
    EXPECT_HEARD(child, "HF_EFORKED HF_EFORKED gone");
    assert_true(process_finish(child, 10000));
    EXPECT_NO_KEY("a");
    release(&hold);
}

/* ---- All or nothing -------------------------------------------------------------------------- */

static void many_keys_at_once(void **state)
{
    (void)state;
    static char keys[HF_WRITES_MAX][16], value[HF_VALUE_MAX];
    hf_write writes[HF_WRITES_MAX + 1];
    memset(value, 'x', sizeof(value));
    for (int i = 0; i < HF_WRITES_MAX; i++) {
        (void)snprintf(keys[i], sizeof(keys[i]), "k%d", i);
        writes[i] = (hf_write){
            .key = keys[i], .value = value, .value_length = sizeof(value) / HF_WRITES_MAX};
    }
    hold = hold_long(alice);
    EXPECT(HF_OK, hf_write_held(hold, writes, HF_WRITES_MAX, &error));
    assert_int_equal(keys_like("k*"), HF_WRITES_MAX);
    assert_int_equal(raw_number(server, "STRLEN k63"), sizeof(value) / HF_WRITES_MAX);
    writes[HF_WRITES_MAX] = writes[0];
    EXPECT(HF_EINVAL, hf_write_held(hold, writes, HF_WRITES_MAX + 1, &error));
    writes[0].value_length++;
    EXPECT(HF_EINVAL, hf_write_held(hold, writes, HF_WRITES_MAX, &error));
    expect_says(error.text, "write 64 of 64");
    EXPECT(HF_OK, hf_write_held(
                      hold, &(hf_write){.key = "big", .value = value, .value_length = HF_VALUE_MAX},
                      1, &error));
    assert_int_equal(raw_number(server, "STRLEN big"), HF_VALUE_MAX);
    release(&hold);
}

static void a_full_server_writes_nothing(void **state)
{
    (void)state;
    hold = hold_long(alice);
    (void)raw(server, "SET b 0");
    (void)raw(server, "CONFIG SET maxmemory 1");
    EXPECT(HF_EUNAVAILABLE,
           hf_write_held(hold, WRITES(SET("a", "1"), SET("b", "1"), DELETE("b")), 3, &error));
    expect_says(error.text, "memory");
    EXPECT(HF_EUNAVAILABLE, hf_write_fenced(bob, "guard", 0, 5, ONE("a", "1"), NULL, &error));
    assert_int_equal(keys_like("hf:g:*"), 0);
    EXPECT_NO_KEY("a");
    EXPECT_KEY("b", "0");
    EXPECT(HF_OK, hf_write_held(hold, WRITES(DELETE("b")), 1, &error)); /* makes room */
    (void)raw(server, "CONFIG SET maxmemory 0");
    EXPECT_NO_KEY("b");
    release(&hold);
}

static void keys_of_any_type_are_written_over(void **state)
{
    (void)state;
    hold = hold_long(alice);
    (void)raw(server, "LPUSH a 1");
    EXPECT(HF_OK, hf_write_held(hold, WRITES(SET("x", "1"), SET("a", "2")), 2, &error));
    EXPECT_KEY("a", "2");
    release(&hold);
}

/* ---- With a fence ---------------------------------------------------------------------------- */

static void a_smaller_fence_comes_too_late(void **state)
{
    (void)state;
    uint64_t newest = 7;
    EXPECT(HF_OK, hf_write_fenced(alice, "guard", 0, 10, ONE("a", "old"), &newest, &error));
    assert_int_equal(newest, 10);
    EXPECT(HF_OK, hf_write_fenced(bob, "guard", 0, 11, ONE("a", "new"), NULL, &error));
    EXPECT(HF_ESTALE, hf_write_fenced(alice, "guard", 0, 10, ONE("a", "old"), &newest, &error));
    assert_int_equal(newest, 11);
    EXPECT_KEY("a", "new");
    EXPECT(HF_OK, hf_write_fenced(bob, "guard", 0, 11, ONE("a", "newer"), NULL, &error));
    EXPECT_KEY("a", "newer");
    EXPECT(HF_OK, hf_write_fenced(alice, "another", 0, 10, ONE("b", "1"), NULL, &error));
}

static void the_largest_fence_is_the_last(void **state)
{
    (void)state;
    uint64_t newest, top = (UINT64_C(1) << 53) - 1;
    EXPECT(HF_OK, hf_write_fenced(alice, "guard", 0, top, ONE("a", "1"), NULL, &error));
    EXPECT(HF_ESTALE, hf_write_fenced(bob, "guard", 0, top - 1, ONE("a", "2"), &newest, &error));
    assert_true(newest == top);
    EXPECT(HF_EINVAL, hf_write_fenced(bob, "guard", 0, top + 1, ONE("a", "2"), &newest, &error));
    EXPECT(HF_EINVAL, hf_write_fenced(bob, "guard", 0, 0, ONE("a", "2"), &newest, &error));
    EXPECT_KEY("a", "1");
}

static void fences_of_holders_in_turn(void **state)
{
    (void)state;
    hold = hold_long(alice);
    uint64_t first = hf_fence(hold);
    EXPECT(HF_OK, hf_write_fenced(alice, "lock", 0, first, ONE("a", "1"), NULL, &error));
    (void)raw(server, "DEL lock");
    other = hold_long(bob);
    EXPECT(HF_OK, hf_write_fenced(bob, "lock", 0, hf_fence(other), ONE("a", "2"), NULL, &error));
    EXPECT(HF_ESTALE, hf_write_fenced(alice, "lock", 0, first, ONE("a", "1"), NULL, &error));
    EXPECT_KEY("a", "2");
    release(&other);
    (void)hf_release(&hold, NULL);
}

/* ---- What must not be ------------------------------------------------------------------------ */

static void expect_invalid(const hf_write *writes, size_t count, const char *word)
{
    EXPECT(HF_EINVAL, hf_write_held(hold, writes, count, &error));
    expect_says(error.text, word);
    EXPECT(HF_EINVAL, hf_write_held_and_release(&hold, writes, count, &error));
    assert_non_null(hold);
}

static void bad_writes_are_refused(void **state)
{
    (void)state;
    static char name[HF_NAME_MAX + 2];
    memset(name, 'n', HF_NAME_MAX + 1);
    hold = hold_long(alice);
    expect_invalid(NULL, 1, "writes is NULL");
    expect_invalid(WRITES(SET("a", "1")), 0, "0 writes");
    expect_invalid(WRITES({.value = "1", .value_length = 1}), 1, "NULL");
    expect_invalid(WRITES(SET("", "1")), 1, "empty");
    expect_invalid(WRITES(SET(name, "1")), 1, "too long");
    expect_invalid(WRITES({.key = "a", .key_length = HF_NAME_MAX + 1, .value = "1"}), 1,
                   "too long");
    expect_invalid(WRITES(SET("hf:f:{1}x", "1")), 1, "belong to the library");
    expect_invalid(WRITES(SET("a", "1"), SET("lock", "1")), 2, "write 2 of 2");
    expect_invalid(WRITES({.key = "a", .value_length = 1}), 1, "has a length");
    expect_invalid(WRITES({.key = "a", .expire_ms = 1}), 1, "deletes");
    expect_invalid(WRITES({.key = "a", .value = "1", .expire_ms = -1}), 1, "expire_ms");
    expect_invalid(WRITES({.key = "a", .value = "1", .expire_ms = INT64_MAX}), 1, "expire_ms");
    expect_invalid(WRITES({.key = "a", .value = "1", .value_length = SIZE_MAX}), 1, "too large");
    EXPECT(HF_EINVAL, hf_write_held(NULL, ONE("a", "1"), &error));
    EXPECT(HF_EINVAL, hf_write_held_and_release(NULL, ONE("a", "1"), &error));
    EXPECT(HF_EINVAL, hf_write_held_and_release(&other, ONE("a", "1"), &error));
    EXPECT_NO_KEY("a");
    name[HF_NAME_MAX] = '\0';
    EXPECT(HF_OK,
           hf_write_held_and_release(
               &hold, WRITES({.key = name, .value = "1", .expire_ms = (INT64_C(1) << 53) - 1}), 1,
               &error));
}

static void bad_guards_are_refused(void **state)
{
    (void)state;
    static char name[HF_VALUE_NAME_MAX + 2];
    memset(name, 'n', HF_VALUE_NAME_MAX + 1);
    EXPECT(HF_EINVAL, hf_write_fenced(NULL, "g", 0, 1, ONE("a", "1"), NULL, &error));
    EXPECT(HF_EINVAL, hf_write_fenced(alice, NULL, 0, 1, ONE("a", "1"), NULL, &error));
    EXPECT(HF_EINVAL, hf_write_fenced(alice, "", 0, 1, ONE("a", "1"), NULL, &error));
    EXPECT(HF_EINVAL, hf_write_fenced(alice, name, 0, 1, ONE("a", "1"), NULL, &error));
    EXPECT(HF_EINVAL, hf_write_fenced(alice, "g", SIZE_MAX, 1, ONE("a", "1"), NULL, &error));
    EXPECT(HF_EINVAL, hf_write_fenced(alice, "g", 0, 1, ONE("hf:x", "1"), NULL, &error));
    EXPECT(HF_EINVAL, hf_write_fenced(alice, "g", 0, 1, NULL, 0, NULL, &error));
    EXPECT_NO_KEY("a");
    EXPECT(HF_OK, hf_write_fenced(alice, name, HF_VALUE_NAME_MAX, 1, ONE("g", "1"), NULL, &error));
    EXPECT(HF_OK, hf_write_fenced(alice, "\n \0}", 4, 1, ONE("lock", "1"), NULL, &error));
}

static void side_keys_under_a_prefix_are_not_written(void **state)
{
    (void)state;
    open_client_with(&third, HF_CLIENT(.prefix = "shop:", .side_prefix = "shop:"));
    hold = hold_long(third);
    expect_invalid(WRITES(SET("shop:hf:f:{1}x", "1")), 1, "belong to the library");
    expect_invalid(WRITES(SET("shop:lock", "1")), 1, "lock itself");
    EXPECT(HF_OK, hf_write_held(hold, ONE("lock", "1"), &error)); /* as it is, without the prefix */
    EXPECT_KEY("lock", "1");
    EXPECT(HF_OK, hf_write_fenced(third, "g", 0, 1, ONE("shop:a", "1"), NULL, &error));
    assert_int_equal(keys_like("shop:hf:g:*"), 1);
    release(&hold);
}

/* ---- Permissions ----------------------------------------------------------------------------- */

static void a_key_that_is_denied_is_named(void **state)
{
    (void)state;
    char url[128];
    (void)raw(server, "ACL SETUSER writer on >secret ~lock ~hf:* ~open:* &* +@all");
    (void)snprintf(url, sizeof(url), "redis://writer:secret@127.0.0.1:%d", server->port);
    open_client_at(url, &third, NULL);
    hold = hold_long(third);
    EXPECT(HF_OK, hf_write_held(hold, ONE("open:a", "1"), &error));
    EXPECT(HF_EDENIED,
           hf_write_held(hold, WRITES(SET("open:a", "2"), SET("closed:a", "2")), 2, &error));
    expect_says(error.text, "access to closed:a (");
    EXPECT_KEY("open:a", "1");
    EXPECT(HF_EDENIED, hf_write_held_and_release(&hold, ONE("closed:b", "2"), &error));
    expect_says(error.text, "access to closed:b (");
    assert_null(hold);
    expect_free(bob);
    (void)raw(server, "ACL SETUSER writer resetkeys ~lock ~open:* ~hf:f:*");
    EXPECT(HF_EDENIED, hf_write_fenced(third, "g", 0, 1, ONE("open:a", "2"), NULL, &error));
    expect_says(error.text, "access to hf:g:");
    expect_says(error.text, "hf:l:");
    (void)raw(server, "ACL DELUSER writer");
}

/* ---- Several servers ------------------------------------------------------------------------- */

/* The lock is at a majority, the data would be at one: only a fence helps there. */
static void a_hold_of_a_quorum_writes_with_its_fence(void **state)
{
    (void)state;
    quorum_start(3);
    server = quorum.servers[0];
    open_client_at(quorum_urls(3), &third, HF_CLIENT(PATIENT));
    open_client(&bob);
    hold = acquire_with(third, HF_ACQUIRE(NO_RENEWAL_SOON));
    expect_invalid(WRITES(SET("a", "1")), 1, "quorum");
    EXPECT(HF_EINVAL,
           hf_write_fenced(third, "lock", 0, hf_fence(hold), ONE("a", "1"), NULL, &error));
    EXPECT(HF_OK, hf_write_fenced(bob, "lock", 0, hf_fence(hold), ONE("a", "1"), NULL, &error));
    EXPECT_KEY("a", "1");
    release(&hold);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, close_clients)
    const struct CMUnitTest tests[] = {
        TEST(a_holder_writes),
        TEST(a_holder_whose_lease_is_over_is_refused_here),
        TEST(a_holder_that_does_not_know_yet_is_refused_by_the_server),
        TEST(a_holder_whose_lock_was_broken_is_refused),
        TEST(those_who_share_a_lock_write_each),
        TEST(every_handle_of_a_hold_writes),
        TEST(a_hold_that_was_taken_up_writes),
        TEST(write_and_release_are_one_message),
        TEST(it_is_written_when_the_next_one_has_it),
        TEST(no_increment_is_lost),
        TEST(what_is_refused_is_released_all_the_same),
        TEST(in_an_own_loop_the_caller_waits),
        TEST(a_forked_child_does_not_write),
        TEST(many_keys_at_once),
        TEST(a_full_server_writes_nothing),
        TEST(keys_of_any_type_are_written_over),
        TEST(a_smaller_fence_comes_too_late),
        TEST(the_largest_fence_is_the_last),
        TEST(fences_of_holders_in_turn),
        TEST(bad_writes_are_refused),
        TEST(bad_guards_are_refused),
        TEST(side_keys_under_a_prefix_are_not_written),
        TEST(a_key_that_is_denied_is_named),
    };
    const struct CMUnitTest several[] = {
        cmocka_unit_test_teardown(a_hold_of_a_quorum_writes_with_its_fence, quorum_end),
    };
    int failed = cmocka_run_group_tests_name("store", tests, start_server, end_server);
    return failed + cmocka_run_group_tests_name("store, several servers", several, NULL, NULL);
}
