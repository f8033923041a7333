/* SPDX-License-Identifier: MIT */
/* Goal: what an item leaves at the server is bounded, and so is the work of each call. The logs of
 * an item that nobody uses end by themselves, without its reservations; a turn of the logs, and an
 * audit, take as long for a large item as for a small one; an item can be deleted, and what was
 * answered before does not count again. Also what clients of 0.7 leave behind.
 *
 * The item is "lock", for side_key(). Keys that expire are deleted instead of waited for.
 */
#include <stdio.h>
#include <string.h>

#include <holdfast_stock.h>

#include "fixture.h"

enum { MANY = 20000, SOME = 1000, A_CALL = 1500 /* commands in one script, at most */ };

static hf_error error;
static int64_t left;

/* ---- Verbs ----------------------------------------------------------------------------------- */

#define SET(units, options) EXPECT(HF_OK, hf_stock_set(alice, "lock", (units), (options), &error))
#define TAKE(wanted, units, options) \
    EXPECT((wanted), hf_stock_take(alice, "lock", (units), (options), &left, &error))
#define RESERVE(wanted, units, options) \
    EXPECT((wanted),                    \
           hf_stock_reserve(alice, "lock", (units), 60000, (options), NULL, &left, &error))
#define CONFIRM(wanted, request) \
    EXPECT((wanted), hf_stock_confirm(bob, "lock", 0, (request), &error))
#define CANCEL(wanted, request) EXPECT((wanted), hf_stock_cancel(bob, "lock", 0, (request), &error))
#define DELETE(wanted, force)   EXPECT((wanted), hf_stock_delete(bob, "lock", 0, (force), &error))

static hf_stock_state get(void)
{
    hf_stock_state state;
    memset(&state, 0xee, sizeof(state));
    EXPECT(HF_OK, hf_stock_get(alice, "lock", 0, &state, &error));
    return state;
}

static hf_stock_report audit(void)
{
    hf_stock_report report;
    memset(&report, 0xee, sizeof(report));
    EXPECT(HF_OK, hf_stock_audit(bob, "lock", 0, &report, &error));
    return report;
}

static void expect_counts(int64_t available, int64_t reserved, int64_t sold)
{
    hf_stock_report report = audit();
    assert_int_equal(report.state.available, available);
    assert_int_equal(report.state.reserved, reserved);
    assert_int_equal(report.state.sold, sold);
    assert_true(report.adds_up);
}

/* On the item, requests, old requests and open reservations, with a number. */
static void run_script(const char *script, int argument)
{
    char keys[4][64];
    for (int i = 0; i < 4; i++)
        (void)snprintf(keys[i], sizeof(keys[i]), "%s", side_key("srpt"[i]));
    assert_string_equal(raw(server, "EVAL %s 4 %s %s %s %s %d", script, keys[0], keys[1], keys[2],
                            keys[3], argument),
                        "done");
}

static void change(const char *field, const char *value)
{
    assert_string_equal(raw(server, "HSET %s %s %s", side_key('s'), field, value), "0");
}

static void expire_logs(void)
{
    (void)raw(server, "DEL %s", side_key('r'));
    (void)raw(server, "DEL %s", side_key('p'));
}

static long long ttl_ms(char letter)
{
    return raw_number(server, "PTTL %s", side_key(letter));
}

/* How many commands the server has run so far, those of scripts too. */
static long long commands_run(void)
{
    long long sum = 0, calls;
    const char *at = raw(server, "INFO commandstats");
    while ((at = strstr(at, ":calls=")) != NULL) {
        at += strlen(":calls=");
        assert_int_equal(sscanf(at, "%lld", &calls), 1);
        sum += calls;
    }
    return sum;
}

static void expect_bounded_get(void)
{
    long long before = commands_run();
    (void)get();
    assert_in_range(commands_run() - before, 1, A_CALL);
}

/* ---- Logs that end --------------------------------------------------------------------------- */

static void logs_of_an_idle_item_end(void **state)
{
    (void)state;
    SET(9, HF_STOCK(.keep_ms = HF_KEEP_MIN_MS));
    assert_in_range(ttl_ms('r'), HF_KEEP_MIN_MS, 2 * HF_KEEP_MIN_MS);
    for (int i = 0; i < 3; i++) {
        TAKE(HF_OK, 1, HF_TAKE(.user = "ann"));
        TAKE(HF_OK, 1, NULL);
        change("turn", "1000");
        (void)get();
        assert_in_range(ttl_ms('r'), HF_KEEP_MIN_MS, 2 * HF_KEEP_MIN_MS);
        assert_in_range(ttl_ms('p'), HF_KEEP_MIN_MS, 2 * HF_KEEP_MIN_MS);
    }
    TAKE(HF_OK, 1, HF_TAKE(.user = "ann")); /* the common case does not make it last longer */
    assert_in_range(ttl_ms('r'), HF_KEEP_MIN_MS, 2 * HF_KEEP_MIN_MS);
    SET(9, HF_STOCK(.keep_ms = 10 * HF_KEEP_MIN_MS));
    assert_in_range(ttl_ms('r'), 10 * HF_KEEP_MIN_MS, 20 * HF_KEEP_MIN_MS);
    SET(9, HF_STOCK(.afresh = true));
    assert_in_range(ttl_ms('r'), 10 * HF_KEEP_MIN_MS, 20 * HF_KEEP_MIN_MS);
}

static void reservations_outlive_the_logs(void **state)
{
    (void)state;
    SET(9, HF_STOCK(.per_user = 5));
    RESERVE(HF_OK, 2, HF_TAKE(.user = "ann", .request = "a"));
    RESERVE(HF_OK, 1, HF_TAKE(.user = "ben", .request = "b"));
    RESERVE(HF_OK, 3, HF_TAKE(.user = "cat", .request = "c"));
    expire_logs();
    RESERVE(HF_OK, 2, HF_TAKE(.user = "ann", .request = "a")); /* the same one */
    CONFIRM(HF_OK, "a");
    CANCEL(HF_OK, "b");
    expect_counts(4, 3, 2);
    expire_logs();
    run_script("local e = redis.call('HGET', KEYS[1], '~c') "
               "redis.call('HSET', KEYS[1], 'due', 1000, 'turn', 1000, '~c', "
               "(string.gsub(e, '^(%S %S %d+ %d+) %d+', '%1 1000'))) "
               "redis.call('ZADD', KEYS[4], 1000, 'c') return 'done'",
               0);
    TAKE(HF_OK, 1, HF_TAKE(.user = "dan"));
    expect_counts(6, 0, 3);
    assert_int_equal(raw_number(server, "EXISTS %s", side_key('t')), 0);
    assert_int_equal(raw_number(server, "HEXISTS %s ~a", side_key('s')), 0);
    assert_int_equal(raw_number(server, "HEXISTS %s ~c", side_key('s')), 0);
    assert_true(ttl_ms('r') > 0);
}

/* ---- What clients of 0.7 leave --------------------------------------------------------------- */

/* They have reservations in the logs alone. */
static void reservations_of_old_clients_come_back(void **state)
{
    (void)state;
    SET(SOME, NULL);
    run_script("for i = 1, tonumber(ARGV[1]) do redis.call('ZADD', KEYS[4], 1000, i) "
               "redis.call('HSET', KEYS[3], i, 'r o 1 0 1000 ann') end "
               "redis.call('HSET', KEYS[1], 'available', 0, 'reserved', ARGV[1], '=ann', ARGV[1], "
               "'-ann', ARGV[1], 'due', 1000, 'turn', 1000, 'old', 1) return 'done'",
               SOME);
    long long calls = 0;
    for (; raw_number(server, "EXISTS %s", side_key('t')) == 1 && calls < SOME; calls++) {
        long long before = commands_run();
        CONFIRM(HF_EMISSING, "unheard of"); /* sweeps nothing but what a turn does */
        assert_in_range(commands_run() - before, 1, A_CALL);
    }
    assert_in_range(calls, 10, 20);
    expect_counts(SOME, 0, 0);
    assert_true(ttl_ms('r') > 0 && ttl_ms('p') > 0);
}

/* They settle a reservation of ours, and leave its record in the item: it does not count. */
static void what_an_old_client_settled_is_settled(void **state)
{
    (void)state;
    SET(9, NULL);
    RESERVE(HF_OK, 2, HF_TAKE(.request = "a"));
    run_script("redis.call('ZREM', KEYS[4], 'a') redis.call('HSET', KEYS[2], 'a', 'r c 2 7 0 ') "
               "redis.call('HSET', KEYS[1], 'reserved', 0, 'sold', 2, 'nobody', 2) return 'done'",
               0);
    CONFIRM(HF_OK, "a");
    CANCEL(HF_ESOLDOUT, "a");
    expire_logs();
    CONFIRM(HF_EMISSING, "a");
    CANCEL(HF_EMISSING, "a");
    expect_counts(7, 0, 2);
}

/* ---- Work that is bounded -------------------------------------------------------------------- */

static void a_turn_does_not_walk_open_reservations(void **state)
{
    (void)state;
    SET(MANY, NULL);
    run_script("for i = 1, tonumber(ARGV[1]) do redis.call('ZADD', KEYS[4], 9000000000000, i) "
               "redis.call('HSET', KEYS[3], i, 'r o 1 0 9000000000000 ') "
               "redis.call('HSET', KEYS[1], '~' .. i, 'r o 1 0 9000000000000 ') end "
               "redis.call('HSET', KEYS[1], 'available', 0, 'reserved', ARGV[1], 'due', "
               "9000000000000, 'turn', 1000, 'old', 1) return 'done'",
               MANY);
    expect_bounded_get();
    change("turn", "1000");
    expect_bounded_get();
    CONFIRM(HF_OK, "17");
    CANCEL(HF_OK, "18");
    expect_counts(1, MANY - 2, 1);
}

static void an_audit_counts_in_pages(void **state)
{
    (void)state;
    SET(2 * MANY, NULL);
    RESERVE(HF_OK, 1, HF_TAKE(.user = "ann", .request = "a"));
    run_script("for i = 1, tonumber(ARGV[1]) do redis.call('HSET', KEYS[1], '=' .. i, 1) end "
               "redis.call('HSET', KEYS[1], '=7', 3, 'available', ARGV[1] - 3, 'sold', "
               "ARGV[1] + 2) return 'done'",
               MANY);
    long long before = scripts_run(server);
    hf_stock_report report = audit();
    assert_true(report.adds_up);
    assert_int_equal(report.by_users, MANY + 3);
    assert_int_equal(report.most_by_one, 3);
    assert_int_equal(report.in_reservations, 1);
    assert_in_range(scripts_run(server) - before, 3, 20);
    assert_null(strstr(raw(server, "INFO commandstats"), "cmdstat_hgetall"));
    change("=9", "2");
    assert_false(audit().adds_up);
}

/* ---- Deleting -------------------------------------------------------------------------------- */

static void a_deleted_item_is_gone(void **state)
{
    (void)state;
    hf_stock_state seen;
    DELETE(HF_EMISSING, false);
    SET(9, HF_STOCK(.keep_ms = HF_KEEP_MIN_MS, .per_user = 2));
    TAKE(HF_OK, 1, HF_TAKE(.user = "ann", .request = "a"));
    change("turn", "1000");
    TAKE(HF_OK, 1, HF_TAKE(.user = "ann", .request = "b"));
    DELETE(HF_OK, false);
    DELETE(HF_EMISSING, false);
    EXPECT(HF_EMISSING, hf_stock_get(alice, "lock", 0, &seen, &error));
    TAKE(HF_EMISSING, 1, HF_TAKE(.user = "ann"));
    assert_int_equal(raw_number(server, "EXISTS %s", side_key('s')), 0);
    assert_in_range(ttl_ms('r'), 1, HF_KEEP_MIN_MS);
    assert_in_range(ttl_ms('p'), 1, HF_KEEP_MIN_MS);
    SET(5, NULL);
    expect_counts(5, 0, 0);
    assert_int_equal(audit().state.per_user, 0);
    assert_int_equal(audit().by_users, 0);
}

/* A copy of an earlier call that comes late: the same request again. */
static void what_was_answered_does_not_count_again(void **state)
{
    (void)state;
    SET(9, NULL);
    TAKE(HF_OK, 1, HF_TAKE(.user = "ann", .request = "old"));
    change("turn", "1000");
    TAKE(HF_OK, 2, HF_TAKE(.user = "ann", .request = "new"));
    TAKE(HF_ESOLDOUT, 50, HF_TAKE(.user = "ann", .request = "refused"));
    DELETE(HF_OK, false);
    TAKE(HF_EMISSING, 1, HF_TAKE(.user = "ann", .request = "old"));
    SET(99, NULL);
    TAKE(HF_OK, 1, HF_TAKE(.user = "ann", .request = "old"));
    TAKE(HF_OK, 2, HF_TAKE(.user = "ann", .request = "new"));
    TAKE(HF_ESOLDOUT, 50, HF_TAKE(.user = "ann", .request = "refused"));
    expect_counts(99, 0, 0);
    change("turn", "1000");
    TAKE(HF_OK, 2, HF_TAKE(.user = "ann", .request = "new"));
    expect_counts(99, 0, 0);
}

static void open_reservations_keep_an_item(void **state)
{
    (void)state;
    SET(9, NULL);
    RESERVE(HF_OK, 1, HF_TAKE(.user = "ann", .request = "a"));
    RESERVE(HF_OK, 2, HF_TAKE(.request = "b"));
    DELETE(HF_EBUSY, false);
    expect_says(error.text, "reservations");
    CANCEL(HF_OK, "b");
    DELETE(HF_EBUSY, false);
    DELETE(HF_OK, true);
    CONFIRM(HF_EMISSING, "a");
    SET(5, NULL);
    CONFIRM(HF_EEXPIRED, "a");
    CANCEL(HF_OK, "a");
    RESERVE(HF_EEXPIRED, 1, HF_TAKE(.user = "ann", .request = "a"));
    expect_counts(5, 0, 0);
    run_script("redis.call('HSET', KEYS[1], '~e', 'r o 1 4 1000 ', 'available', 4, 'reserved', 1, "
               "'due', 1000) redis.call('ZADD', KEYS[4], 1000, 'e') return 'done'",
               0);
    DELETE(HF_OK, false); /* what has run out is not open */
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, begin_with_both, close_clients)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(logs_of_an_idle_item_end),
        TEST(reservations_outlive_the_logs),
        TEST(reservations_of_old_clients_come_back),
        TEST(what_an_old_client_settled_is_settled),
        TEST(a_turn_does_not_walk_open_reservations),
        TEST(an_audit_counts_in_pages),
        TEST(a_deleted_item_is_gone),
        TEST(what_was_answered_does_not_count_again),
        TEST(open_reservations_keep_an_item),
    };
    return cmocka_run_group_tests(tests, start_server, end_server);
}
