/* SPDX-License-Identifier: MIT */
/* Goal: every outcome that holdfast_stock.h names, at a real server, and after each of them four
 * counts that add up. Also what a person may do to the data behind our back: that is noticed.
 *
 * The item is "lock", for side_key(). Time that has to pass at the server is not waited for where a
 * field of the item can say that it has.
 */
#include <stdio.h>
#include <string.h>

#include <holdfast_stock.h>

#include "fixture.h"

static hf_error error;
static int64_t left;

/* ---- Verbs ----------------------------------------------------------------------------------- */

#define SET(units, options) EXPECT(HF_OK, hf_stock_set(alice, "lock", (units), (options), &error))
#define TAKE(wanted, units, options) \
    EXPECT((wanted), hf_stock_take(alice, "lock", (units), (options), &left, &error))
#define PUT(wanted, units, options) \
    EXPECT((wanted), hf_stock_put(alice, "lock", (units), (options), &left, &error))
#define RESERVE(wanted, units, limit_ms, options) \
    EXPECT((wanted),                              \
           hf_stock_reserve(alice, "lock", (units), (limit_ms), (options), NULL, &left, &error))
#define CONFIRM(wanted, request) \
    EXPECT((wanted), hf_stock_confirm(bob, "lock", 0, (request), &error))
#define CANCEL(wanted, request) EXPECT((wanted), hf_stock_cancel(bob, "lock", 0, (request), &error))

static hf_stock_report audit(void)
{
    hf_stock_report report;
    memset(&report, 0xee, sizeof(report));
    EXPECT(HF_OK, hf_stock_audit(bob, "lock", 0, &report, &error));
    return report;
}

/* Both looks agree, and it adds up. */
static void expect_counts(int64_t available, int64_t reserved, int64_t sold)
{
    hf_stock_state state;
    hf_stock_report report = audit();
    memset(&state, 0xee, sizeof(state));
    EXPECT(HF_OK, hf_stock_get(alice, "lock", 0, &state, &error));
    assert_int_equal(state.available, available);
    assert_int_equal(state.reserved, reserved);
    assert_int_equal(state.sold, sold);
    assert_int_equal(state.total, available + reserved + sold);
    assert_memory_equal(&state, &report.state, sizeof(state));
    assert_true(report.adds_up);
}

/* On open reservations, requests and the item, with one argument. */
static void run_script(const char *script, int argument)
{
    char keys[3][64];
    for (int i = 0; i < 3; i++)
        (void)snprintf(keys[i], sizeof(keys[i]), "%s", side_key("trs"[i]));
    assert_string_equal(
        raw(server, "EVAL %s 3 %s %s %s %d", script, keys[0], keys[1], keys[2], argument), "done");
}

/* As if the time of the open reservations, in the order of their ends, had passed. */
static void run_out(void)
{
    static const char script[] = "for _, r in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do "
                                 "redis.call('ZADD', KEYS[1], 1000, r) "
                                 "local was = redis.call('HGET', KEYS[2], r) "
                                 "redis.call('HSET', KEYS[2], r, (string.gsub(was, "
                                 "'^(%S %S %d+ %d+) %d+', '%1 1000'))) end "
                                 "redis.call('HSET', KEYS[3], 'due', 1000) return 'done'";
    run_script(script, 0);
}

static void change(const char *field, const char *value)
{
    assert_string_equal(raw(server, "HSET %s %s %s", side_key('s'), field, value), "0");
}

/* ---- An item --------------------------------------------------------------------------------- */

static void an_item_is_what_was_set(void **state)
{
    (void)state;
    SET(100, NULL);
    hf_stock_report report = audit();
    assert_int_equal(report.state.keep_ms, 24 * 3600 * 1000);
    assert_int_equal(report.state.per_user, 0);
    assert_int_equal(report.state.reservations, 0);
    expect_counts(100, 0, 0);
    SET(0, HF_STOCK(.per_user = 2, .keep_ms = HF_KEEP_MIN_MS));
    report = audit();
    assert_int_equal(report.state.keep_ms, HF_KEEP_MIN_MS);
    assert_int_equal(report.state.per_user, 2);
    SET(HF_UNITS_MAX, NULL); /* what is not said stays */
    report = audit();
    assert_int_equal(report.state.keep_ms, HF_KEEP_MIN_MS);
    assert_int_equal(report.state.per_user, 2);
    expect_counts(HF_UNITS_MAX, 0, 0);
    SET(7, HF_STOCK(.per_user = -1));
    assert_int_equal(audit().state.per_user, 0);
    expect_counts(7, 0, 0);
}

static void a_set_leaves_what_is_sold(void **state)
{
    (void)state;
    SET(10, NULL);
    TAKE(HF_OK, 3, HF_TAKE(.user = "ann"));
    RESERVE(HF_OK, 2, 60000, HF_TAKE(.request = "cart"));
    SET(5, NULL);
    expect_counts(0, 2, 3);
    EXPECT(HF_ESOLDOUT, hf_stock_set(alice, "lock", 4, NULL, &error));
    expect_counts(0, 2, 3);
    run_out(); /* then 3 are enough */
    EXPECT(HF_ESOLDOUT, hf_stock_set(alice, "lock", 2, NULL, &error));
    SET(3, NULL);
    expect_counts(0, 0, 3);
}

static void afresh_forgets_what_was_sold(void **state)
{
    (void)state;
    SET(5, HF_STOCK(.per_user = 1, .afresh = true)); /* also if it is not there */
    TAKE(HF_OK, 1, HF_TAKE(.user = "ann", .request = "one"));
    RESERVE(HF_OK, 1, 60000, HF_TAKE(.user = "ben", .request = "two"));
    SET(4, HF_STOCK(.afresh = true, .per_user = -1));
    expect_counts(4, 0, 0);
    assert_int_equal(audit().state.per_user, 0);
    assert_int_equal(audit().by_users, 0);
    CONFIRM(HF_EMISSING, "two");
    TAKE(HF_OK, 2, HF_TAKE(.user = "ann", .request = "one")); /* which is another one now */
    expect_counts(2, 0, 2);
    SET(1, HF_STOCK(.afresh = true, .per_user = 1));
    expect_counts(1, 0, 0);
}

/* Who begins a sale again has not said that users may have any number from now on. */
static void afresh_leaves_the_rules_as_they_are(void **state)
{
    (void)state;
    SET(5, HF_STOCK(.per_user = 1, .keep_ms = HF_KEEP_MIN_MS));
    SET(4, HF_STOCK(.afresh = true));
    assert_int_equal(audit().state.per_user, 1);
    assert_int_equal(audit().state.keep_ms, HF_KEEP_MIN_MS);
    TAKE(HF_ELIMIT, 2, HF_TAKE(.user = "ann"));
    TAKE(HF_EINVAL, 1, NULL);
}

static void names_and_prefixes_keep_items_apart(void **state)
{
    (void)state;
    static const char name[] = "a\0b \n{x}\xff";
    hf_stock_state seen;
    EXPECT(HF_OK, hf_stock_set(alice, name, 9, HF_STOCK(.name_length = 9), &error));
    EXPECT(HF_EMISSING, hf_stock_get(alice, name, 0, &seen, &error));
    EXPECT(HF_OK,
           hf_stock_take(alice, name, 2, HF_TAKE(.name_length = 9, .user = " \n "), &left, &error));
    EXPECT(HF_OK, hf_stock_get(alice, name, 9, &seen, &error));
    assert_int_equal(seen.sold, 2);
    hf_client *shop;
    EXPECT(HF_OK, hf_open(server->url, HF_CLIENT(.prefix = "shop:"), &shop, &error));
    SET(1, NULL);
    EXPECT(HF_EMISSING, hf_stock_get(shop, "lock", 0, &seen, &error));
    EXPECT(HF_OK, hf_stock_set(shop, "lock", 5, NULL, &error));
    EXPECT(HF_OK, hf_stock_take(shop, "lock", 5, NULL, &left, &error));
    expect_counts(1, 0, 0);
    EXPECT_STATUS(HF_OK, hf_close(shop));
}

/* ---- Selling --------------------------------------------------------------------------------- */

static void a_take_sells_what_is_there_and_no_more(void **state)
{
    (void)state;
    SET(5, NULL);
    TAKE(HF_OK, 3, NULL);
    assert_int_equal(left, 2);
    TAKE(HF_ESOLDOUT, 3, NULL);
    assert_int_equal(left, 2);
    TAKE(HF_ESOLDOUT, HF_UNITS_MAX, HF_TAKE(.user = "ann"));
    assert_int_equal(left, 2);
    TAKE(HF_OK, 2, HF_TAKE(.user = "ann"));
    assert_int_equal(left, 0);
    TAKE(HF_ESOLDOUT, 1, NULL);
    expect_counts(0, 0, 5);
    assert_int_equal(audit().by_users, 2);
    assert_int_equal(audit().by_nobody, 3);
    EXPECT(HF_OK, hf_stock_put(alice, "lock", 1, NULL, NULL, &error)); /* left may be NULL */
    EXPECT(HF_OK, hf_stock_take(alice, "lock", 1, NULL, NULL, NULL));
    expect_counts(0, 0, 5);
}

static void one_user_has_no_more_than_the_limit(void **state)
{
    (void)state;
    SET(100, HF_STOCK(.per_user = 3));
    TAKE(HF_EINVAL, 1, NULL);
    expect_says(error.text, "user");
    TAKE(HF_ELIMIT, 4, HF_TAKE(.user = "ann"));
    TAKE(HF_OK, 2, HF_TAKE(.user = "ann"));
    TAKE(HF_ELIMIT, 2, HF_TAKE(.user = "ann"));
    RESERVE(HF_OK, 1, 60000, HF_TAKE(.user = "ann", .request = "cart"));
    TAKE(HF_ELIMIT, 1, HF_TAKE(.user = "ann")); /* what is reserved counts */
    TAKE(HF_OK, 3, HF_TAKE(.user = "ben"));
    CANCEL(HF_OK, "cart");
    RESERVE(HF_OK, 1, 60000, HF_TAKE(.user = "ann", .request = "cart 2"));
    CONFIRM(HF_OK, "cart 2");
    TAKE(HF_ELIMIT, 1, HF_TAKE(.user = "ann"));
    PUT(HF_OK, 1, HF_TAKE(.user = "ann"));
    TAKE(HF_OK, 1, HF_TAKE(.user = "ann"));
    expect_counts(94, 0, 6);
    SET(100, HF_STOCK(.per_user = 1)); /* who has more keeps it */
    TAKE(HF_ELIMIT, 1, HF_TAKE(.user = "ann"));
    assert_int_equal(audit().most_by_one, 3);
    expect_counts(94, 0, 6);
}

/* With so many that ran out that a take, which has enough, does not look at all of them. */
static void what_ran_out_does_not_count_for_its_user(void **state)
{
    (void)state;
    char text[32];
    SET(1000, HF_STOCK(.per_user = 1));
    for (int i = 0; i < 100; i++) {
        (void)snprintf(text, sizeof(text), "%03d", i);
        RESERVE(HF_OK, 1, 60000, HF_TAKE(.user = text, .request = text));
    }
    run_out();
    TAKE(HF_OK, 1, HF_TAKE(.user = "099"));
    TAKE(HF_ELIMIT, 1, HF_TAKE(.user = "099"));
    expect_counts(999, 0, 1);
}

/* More than one call ends. */
static void many_run_out_at_once(void **state)
{
    (void)state;
    enum { MANY = 5000, IN_ONE_CALL = 4096 };
    static const char script[] =
        "for i = 1, tonumber(ARGV[1]) do redis.call('ZADD', KEYS[1], 1000, i) "
        "redis.call('HSET', KEYS[2], i, 'r o 1 0 1000 ') end "
        "redis.call('HSET', KEYS[3], 'due', 1000, 'available', 0, 'reserved', ARGV[1]) return "
        "'done'";
    hf_stock_state seen;
    SET(MANY, NULL);
    run_script(script, MANY);
    hf_stock_report report = audit();
    assert_true(report.adds_up);
    assert_int_equal(report.state.available, IN_ONE_CALL);
    EXPECT(HF_OK, hf_stock_get(alice, "lock", 0, &seen, &error));
    assert_int_equal(seen.available, MANY);
    expect_counts(MANY, 0, 0);
}

/* ---- Requests -------------------------------------------------------------------------------- */

static void a_request_counts_once(void **state)
{
    (void)state;
    SET(5, HF_STOCK(.per_user = 2));
    for (int i = 0; i < 3; i++) {
        TAKE(HF_OK, 2, HF_TAKE(.user = "ann", .request = "a"));
        assert_int_equal(left, 3);
    }
    for (int i = 0; i < 3; i++)
        TAKE(HF_ELIMIT, 1, HF_TAKE(.user = "ann", .request = "b"));
    TAKE(HF_OK, 2, HF_TAKE(.user = "ben", .request = "c"));
    TAKE(HF_ESOLDOUT, 2, HF_TAKE(.user = "cat", .request = "d"));
    for (int i = 0; i < 3; i++) {
        PUT(HF_OK, 2, HF_TAKE(.user = "ben", .request = "e"));
        assert_int_equal(left, 3);
    }
    TAKE(HF_ESOLDOUT, 2,
         HF_TAKE(.user = "cat", .request = "d")); /* the same answer, though there are */
    TAKE(HF_OK, 2, HF_TAKE(.user = "cat", .request = "f"));
    for (int i = 0; i < 3; i++)
        PUT(HF_OK, 4, HF_TAKE(.restock = true, .request = "g"));
    for (int i = 0; i < 3; i++)
        PUT(HF_EINVAL, 9, HF_TAKE(.user = "ann", .request = "h"));
    expect_counts(5, 0, 4);
}

static void a_request_for_something_else_is_refused(void **state)
{
    (void)state;
    SET(9, NULL);
    TAKE(HF_OK, 2, HF_TAKE(.user = "ann", .request = "a"));
    TAKE(HF_EINVAL, 1, HF_TAKE(.user = "ann", .request = "a"));
    expect_says(error.text, "request");
    TAKE(HF_EINVAL, 2, HF_TAKE(.user = "ben", .request = "a"));
    TAKE(HF_EINVAL, 2, HF_TAKE(.request = "a"));
    RESERVE(HF_EINVAL, 2, 60000, HF_TAKE(.user = "ann", .request = "a"));
    PUT(HF_EINVAL, 2, HF_TAKE(.user = "ann", .request = "a"));
    PUT(HF_EINVAL, 2, HF_TAKE(.restock = true, .request = "a"));
    CONFIRM(HF_EINVAL, "a");
    CANCEL(HF_EINVAL, "a");
    expect_counts(7, 0, 2);
}

/* Two generations: what is remembered gets old, then it is forgotten; open reservations are not. */
static void requests_are_forgotten_in_two_turns(void **state)
{
    (void)state;
    SET(9, HF_STOCK(.keep_ms = HF_KEEP_MIN_MS));
    TAKE(HF_OK, 1, HF_TAKE(.request = "early"));
    RESERVE(HF_OK, 1, 60000, HF_TAKE(.user = "ann", .request = "open"));
    change("turn", "1000");
    TAKE(HF_OK, 1, HF_TAKE(.request = "middle"));
    TAKE(HF_OK, 1, HF_TAKE(.request = "early"));
    expect_counts(6, 1, 2);
    change("turn", "1000");
    TAKE(HF_OK, 1, HF_TAKE(.request = "middle"));
    CANCEL(HF_EMISSING, "early"); /* which remembers it as something else */
    expect_counts(6, 1, 2);
    for (int i = 0; i < 3; i++) {
        change("turn", "1000");
        RESERVE(HF_OK, 1, 60000, HF_TAKE(.user = "ann", .request = "open"));
    }
    expect_counts(6, 1, 2);
    CONFIRM(HF_OK, "open");
    expect_counts(6, 0, 3);
    change("turn", "1000");
    CONFIRM(HF_OK, "open");
    change("turn", "1000");
    CONFIRM(HF_EMISSING, "open");
    expect_counts(6, 0, 3);
    assert_string_equal(raw(server, "HKEYS %s", side_key('r')), "(array of 1)"); /* the empty one */
}

static bool is_remembered(const char *request)
{
    return raw_number(server, "HEXISTS %s %s", side_key('r'), request) +
               raw_number(server, "HEXISTS %s %s", side_key('p'), request) >
           0;
}

/* The same when all that happens is the common case. */
static void buyers_alone_make_requests_old(void **state)
{
    (void)state;
    SET(9, HF_STOCK(.per_user = 5));
    TAKE(HF_OK, 1, HF_TAKE(.user = "ann", .request = "early"));
    change("turn", "1000");
    TAKE(HF_OK, 1, HF_TAKE(.user = "ann", .request = "middle"));
    TAKE(HF_OK, 1, HF_TAKE(.user = "ann", .request = "early"));
    expect_counts(7, 0, 2);
    assert_true(is_remembered("early"));
    change("turn", "1000");
    TAKE(HF_OK, 1, HF_TAKE(.user = "ann", .request = "late"));
    assert_false(is_remembered("early"));
    assert_true(is_remembered("middle"));
    expect_counts(6, 0, 3);
}

/* ---- Giving back ----------------------------------------------------------------------------- */

static void what_was_not_sold_does_not_come_back(void **state)
{
    (void)state;
    SET(9, NULL);
    PUT(HF_EINVAL, 1, NULL);
    TAKE(HF_OK, 2, HF_TAKE(.user = "ann"));
    PUT(HF_EINVAL, 1, NULL); /* nobody has bought any */
    PUT(HF_EINVAL, 1, HF_TAKE(.user = "ben"));
    PUT(HF_EINVAL, 3, HF_TAKE(.user = "ann"));
    expect_counts(7, 0, 2);
    TAKE(HF_OK, 1, NULL);
    PUT(HF_EINVAL, 2, NULL);
    PUT(HF_OK, 1, NULL);
    PUT(HF_OK, 2, HF_TAKE(.user = "ann"));
    assert_int_equal(left, 9);
    expect_counts(9, 0, 0);
}

/* Or she would give away what others have bought, and then buy beyond her limit. */
static void what_is_reserved_is_not_given_back(void **state)
{
    (void)state;
    SET(9, HF_STOCK(.per_user = 1));
    TAKE(HF_OK, 1, HF_TAKE(.user = "ben"));
    RESERVE(HF_OK, 1, 60000, HF_TAKE(.user = "ann", .request = "cart"));
    PUT(HF_EINVAL, 1, HF_TAKE(.user = "ann"));
    CONFIRM(HF_OK, "cart");
    PUT(HF_OK, 1, HF_TAKE(.user = "ann"));
    expect_counts(8, 0, 1);
}

static void new_units_are_added(void **state)
{
    (void)state;
    SET(0, NULL);
    TAKE(HF_ESOLDOUT, 1, NULL);
    PUT(HF_OK, 3, HF_TAKE(.restock = true));
    assert_int_equal(left, 3);
    expect_counts(3, 0, 0);
    PUT(HF_EINVAL, HF_UNITS_MAX, HF_TAKE(.restock = true)); /* more than there may be */
    PUT(HF_EINVAL, 1, HF_TAKE(.restock = true, .user = "ann"));
    TAKE(HF_OK, 3, NULL);
    expect_counts(0, 0, 3);
}

/* ---- Reservations ---------------------------------------------------------------------------- */

static void a_reservation_is_confirmed_once(void **state)
{
    (void)state;
    SET(5, NULL);
    RESERVE(HF_OK, 2, 60000, HF_TAKE(.request = "cart"));
    assert_int_equal(left, 3);
    RESERVE(HF_OK, 2, 60000, HF_TAKE(.request = "cart"));
    assert_int_equal(left, 3);
    assert_int_equal(audit().state.reservations, 1);
    expect_counts(3, 2, 0);
    CONFIRM(HF_OK, "cart");
    CONFIRM(HF_OK, "cart");
    expect_counts(3, 0, 2);
    CANCEL(HF_ESOLDOUT, "cart");
    RESERVE(HF_OK, 2, 60000, HF_TAKE(.request = "cart")); /* the same answer as before */
    expect_counts(3, 0, 2);
    RESERVE(HF_ESOLDOUT, 4, 60000, HF_TAKE(.request = "large"));
    CONFIRM(HF_EMISSING, "large");
    CANCEL(HF_EMISSING, "large");
    CONFIRM(HF_EMISSING, "unheard of");
    PUT(HF_OK, 2, NULL); /* they were sold to nobody by name */
    expect_counts(5, 0, 0);
}

static void a_cancelled_reservation_is_over(void **state)
{
    (void)state;
    SET(5, NULL);
    RESERVE(HF_OK, 2, 60000, HF_TAKE(.user = "ann", .request = "cart"));
    CANCEL(HF_OK, "cart");
    CANCEL(HF_OK, "cart");
    expect_counts(5, 0, 0);
    CONFIRM(HF_EEXPIRED, "cart");
    RESERVE(HF_EEXPIRED, 2, 60000, HF_TAKE(.user = "ann", .request = "cart"));
    expect_counts(5, 0, 0);
}

static void a_cancel_that_comes_first_is_remembered(void **state)
{
    (void)state;
    SET(5, NULL);
    CANCEL(HF_EMISSING, "cart");
    CANCEL(HF_EMISSING, "cart");
    RESERVE(HF_EEXPIRED, 2, 60000, HF_TAKE(.user = "ann", .request = "cart"));
    CONFIRM(HF_EEXPIRED, "cart");
    TAKE(HF_EINVAL, 2, HF_TAKE(.request = "cart"));
    expect_counts(5, 0, 0);
}

static void time_that_is_over_gives_back_once(void **state)
{
    (void)state;
    SET(5, HF_STOCK(.per_user = 2));
    RESERVE(HF_OK, 2, 60000, HF_TAKE(.user = "ann", .request = "a"));
    RESERVE(HF_OK, 2, 60000, HF_TAKE(.user = "ben", .request = "b"));
    RESERVE(HF_OK, 1, 60000, HF_TAKE(.user = "cat", .request = "c"));
    run_out();
    CONFIRM(HF_EEXPIRED, "a"); /* nobody has looked yet */
    RESERVE(HF_EEXPIRED, 2, 60000, HF_TAKE(.user = "ben", .request = "b"));
    CANCEL(HF_OK, "b");
    CANCEL(HF_OK, "b");
    TAKE(HF_OK, 2, HF_TAKE(.user = "dan"));
    expect_counts(3, 0, 2);
    CONFIRM(HF_EEXPIRED, "c");
    TAKE(HF_OK, 2, HF_TAKE(.user = "ann"));
    TAKE(HF_OK, 1, HF_TAKE(.user = "ben"));
    TAKE(HF_ESOLDOUT, 1, HF_TAKE(.user = "cat"));
    expect_counts(0, 0, 5);
}

/* With a real clock, and nobody there. */
static void units_come_back_by_themselves(void **state)
{
    (void)state;
    hf_stock_state seen = {0};
    char request[HF_REQUEST_MAX + 1] = "";
    SET(1, NULL);
    EXPECT(HF_OK, hf_stock_reserve(alice, "lock", 1, 50, NULL, request, &left, &error));
    assert_true(strlen(request) > 32);
    WAIT_UNTIL(hf_stock_get(bob, "lock", 0, &seen, NULL) == HF_OK && seen.available == 1, 5000);
    CONFIRM(HF_EEXPIRED, request);
    EXPECT(HF_OK, hf_stock_reserve(alice, "lock", 1, 60000, NULL, request, &left, &error));
    CONFIRM(HF_OK, request);
    expect_counts(0, 0, 1);
}

static void a_limit_is_no_longer_than_requests_are_kept(void **state)
{
    (void)state;
    SET(5, HF_STOCK(.keep_ms = HF_KEEP_MIN_MS));
    RESERVE(HF_OK, 1, HF_KEEP_MIN_MS, HF_TAKE(.request = "a"));
    RESERVE(HF_EINVAL, 1, HF_KEEP_MIN_MS + 1, HF_TAKE(.request = "b"));
    expect_says(error.text, "keep_ms");
    expect_counts(4, 1, 0);
}

/* ---- What public scripts get wrong ----------------------------------------------------------- */

static void missing_key(void **state)
{
    (void)state;
    hf_stock_state seen;
    hf_stock_report report;
    TAKE(HF_EMISSING, 1, HF_TAKE(.user = "ann", .request = "a"));
    PUT(HF_EMISSING, 1, NULL);
    PUT(HF_EMISSING, 1, HF_TAKE(.restock = true));
    RESERVE(HF_EMISSING, 1, 60000, HF_TAKE(.request = "a"));
    CONFIRM(HF_EMISSING, "a");
    CANCEL(HF_EMISSING, "a");
    EXPECT(HF_EMISSING, hf_stock_get(alice, "lock", 0, &seen, &error));
    EXPECT(HF_EMISSING, hf_stock_audit(alice, "lock", 0, &report, &error));
    assert_string_equal(raw(server, "DBSIZE"), "0");
    SET(1, NULL); /* and the refusals were not remembered of an item that was not there */
    TAKE(HF_OK, 1, HF_TAKE(.user = "ann", .request = "a"));
}

/* SISMEMBER answers 0 or 1, and 0 is true in Lua. */
static void always_true_sismember(void **state)
{
    (void)state;
    SET(3, HF_STOCK(.per_user = 1));
    TAKE(HF_OK, 1, HF_TAKE(.user = "new"));
    TAKE(HF_ELIMIT, 1, HF_TAKE(.user = "new"));
    TAKE(HF_OK, 1, HF_TAKE(.user = "other"));
    expect_counts(1, 0, 2);
}

static void negative_stock(void **state)
{
    (void)state;
    SET(5, NULL);
    TAKE(HF_OK, 1, NULL);
    change("available", "-5");
    TAKE(HF_ESOLDOUT, 1, NULL);
    assert_int_equal(left, 0);
    TAKE(HF_ESOLDOUT, 1, HF_TAKE(.user = "ann"));
    hf_stock_report report = audit();
    assert_false(report.adds_up);
    assert_int_equal(report.state.available, -5);
    SET(5, NULL); /* which counts anew */
    expect_counts(4, 0, 1);
}

static void an_audit_sees_what_was_changed(void **state)
{
    (void)state;
    static const struct {
        const char *field, *value;
    } changes[] = {{"total", "11"}, {"sold", "9"}, {"reserved", "0"},
                   {"=ann", "1"},   {"=ann", "3"}, {"nobody", "0"}};
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        SET(10, HF_STOCK(.afresh = true));
        TAKE(HF_OK, 2, HF_TAKE(.user = "ann"));
        TAKE(HF_OK, 1, NULL);
        RESERVE(HF_OK, 2, 60000, HF_TAKE(.request = "cart"));
        expect_counts(5, 2, 3);
        change(changes[i].field, changes[i].value);
        assert_false(audit().adds_up);
    }
    SET(10, HF_STOCK(.afresh = true));
    RESERVE(HF_OK, 2, 60000, HF_TAKE(.request = "cart"));
    assert_string_equal(raw(server, "ZREM %s cart", side_key('t')), "1");
    assert_false(audit().adds_up);
}

/* A script is not undone: it must be refused before it has written anything. */
static void a_full_server_sells_nothing(void **state)
{
    (void)state;
    SET(5, HF_STOCK(.per_user = 3));
    TAKE(HF_OK, 1, HF_TAKE(.user = "ann"));
    RESERVE(HF_OK, 1, 60000, HF_TAKE(.user = "ann", .request = "a"));
    RESERVE(HF_OK, 1, 60000, HF_TAKE(.user = "ben", .request = "b"));
    run_out();
    assert_string_equal(raw(server, "CONFIG SET maxmemory 1"), "OK");
    hf_status statuses[] = {
        hf_stock_take(alice, "lock", 1, HF_TAKE(.user = "cat", .request = "c"), NULL, NULL),
        hf_stock_take(alice, "lock", 3, HF_TAKE(.user = "cat", .request = "d"), NULL, NULL),
        hf_stock_reserve(alice, "lock", 1, 60000, HF_TAKE(.request = "e"), NULL, NULL, NULL),
        hf_stock_put(alice, "lock", 1, HF_TAKE(.user = "ann", .request = "f"), NULL, NULL),
        hf_stock_confirm(alice, "lock", 0, "a", NULL),
        hf_stock_set(alice, "lock", 9, HF_STOCK(.per_user = 1), NULL)};
    assert_string_equal(raw(server, "CONFIG SET maxmemory 0"), "OK");
    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++)
        assert_true(statuses[i] != HF_OK);
    expect_counts(4, 0, 1);
    assert_int_equal(audit().state.per_user, 3);
    TAKE(HF_OK, 1, HF_TAKE(.user = "cat", .request = "c"));
    expect_counts(3, 0, 2);
}

/* Somebody else's key there is said, not taken for an empty shelf. */
static void a_key_of_another_type_is_an_error(void **state)
{
    (void)state;
    char key[64];
    SET(1, NULL);
    (void)snprintf(key, sizeof(key), "%s", side_key('s'));
    assert_string_equal(raw(server, "SET %s 5", key), "OK");
    TAKE(HF_ESERVER, 1, NULL);
    EXPECT(HF_ESERVER, hf_stock_set(alice, "lock", 1, NULL, &error));
    assert_string_equal(raw(server, "GET %s", key), "5");
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, begin_with_both, close_clients)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_item_is_what_was_set),
        TEST(a_set_leaves_what_is_sold),
        TEST(afresh_forgets_what_was_sold),
        TEST(afresh_leaves_the_rules_as_they_are),
        TEST(names_and_prefixes_keep_items_apart),
        TEST(a_take_sells_what_is_there_and_no_more),
        TEST(one_user_has_no_more_than_the_limit),
        TEST(what_ran_out_does_not_count_for_its_user),
        TEST(many_run_out_at_once),
        TEST(a_request_counts_once),
        TEST(a_request_for_something_else_is_refused),
        TEST(requests_are_forgotten_in_two_turns),
        TEST(buyers_alone_make_requests_old),
        TEST(what_was_not_sold_does_not_come_back),
        TEST(what_is_reserved_is_not_given_back),
        TEST(new_units_are_added),
        TEST(a_reservation_is_confirmed_once),
        TEST(a_cancelled_reservation_is_over),
        TEST(a_cancel_that_comes_first_is_remembered),
        TEST(time_that_is_over_gives_back_once),
        TEST(units_come_back_by_themselves),
        TEST(a_limit_is_no_longer_than_requests_are_kept),
        TEST(missing_key),
        TEST(always_true_sismember),
        TEST(negative_stock),
        TEST(an_audit_sees_what_was_changed),
        TEST(a_full_server_sells_nothing),
        TEST(a_key_of_another_type_is_an_error),
    };
    return cmocka_run_group_tests(tests, start_server, end_server);
}
