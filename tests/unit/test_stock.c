/* SPDX-License-Identifier: MIT */
/* Stock without a server: what answers come to, also those that no script of ours gives; which
 * arguments are refused, without a message; and every allocation fails once. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/stock.h"
#include "wired.h"

#define NUMBERS(...)                                                          \
    (&(hf__numbers){.count = (int)COUNT_OF(((const int64_t[]){__VA_ARGS__})), \
                    .number = {__VA_ARGS__}})

/* ---- Answers ---- */

static void each_code_has_its_status(void **state)
{
    (void)state;
    static const hf_status statuses[] = {HF_ESERVER,  HF_EMISSING, HF_ESOLDOUT, HF_ELIMIT,
                                         HF_EINVAL,   HF_EEXPIRED, HF_EINVAL,   HF_EINVAL,
                                         HF_EMISSING, HF_EINVAL,   HF_ESTALE,   HF_EBUSY};
    hf_error error;
    for (size_t i = 1; i < COUNT_OF(statuses); i++) {
        int64_t left = -1;
        expect_status(hf__stock_outcome(NUMBERS(-(int64_t)i, 7), &left, &error), statuses[i],
                      &error);
        assert_int_equal(left, 7);
        assert_true(strlen(error.text) > 0);
    }
    int64_t left = -1;
    expect_status(hf__stock_outcome(NUMBERS(1, 3), &left, &error), HF_OK, &error);
    assert_int_equal(left, 3);
    assert_int_equal(hf__stock_outcome(NUMBERS(1, 3), NULL, NULL), HF_OK);
    expect_status(hf__stock_outcome(NUMBERS(-2, -5), &left, &error), HF_ESOLDOUT, &error);
    assert_int_equal(left, 0); /* what is less than nothing is nothing */
    expect_status(hf__stock_outcome(NUMBERS(7), &left, &error), HF_OK, &error);
    assert_int_equal(left, 7);
    expect_status(hf__stock_outcome(NUMBERS(0), NULL, &error), HF_OK, &error);
}

static void answers_that_make_no_sense(void **state)
{
    (void)state;
    const hf__numbers *const cases[] = {
        NUMBERS(-1),     NUMBERS(1, 2, 3),      NUMBERS(0, 5),         NUMBERS(2, 5),
        NUMBERS(-12, 5), NUMBERS(INT64_MIN, 5), NUMBERS(INT64_MAX, 5), &(hf__numbers){0}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        hf_error error;
        int64_t left = 42;
        expect_status(hf__stock_outcome(cases[i], &left, &error), HF_ESERVER, &error);
        assert_int_equal(left, 42);
    }
}

/* Numbers of the whole item and of a page, which is the last. */
#define REPORT(...) NUMBERS(__VA_ARGS__, -1, -1, 9, 4)

static void reports_that_make_no_sense(void **state)
{
    (void)state;
    const hf__numbers *const cases[] = {
        &(hf__numbers){0},
        NUMBERS(1),
        NUMBERS(0),
        NUMBERS(-2),
        REPORT(-1, 10, 5, 2, 3, 0, 60000, 1, 2, 3, 2, 2), /* two answers in one */
        REPORT(1, 10, 5, 2, 3, 0, 60000, 1, 2, 3, 2),
        REPORT(1, INT64_MAX, INT64_MAX, 2, 3, 0, 1, 1, 2, 3, 2, 2),
        REPORT(1, 10, 5, 2, 3, 0, 1, 1, 2, INT64_MIN, 2, -1)};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        hf_error error;
        hf__stock_count count = {0};
        expect_status(hf__stock_look_outcome(cases[i], &count, &error), HF_ESERVER, &error);
        assert_false(count.begun);
    }
    assert_int_equal(hf__stock_look_outcome(NUMBERS(-1), &(hf__stock_count){0}, NULL), HF_EMISSING);
}

static void reports_add_up_or_do_not(void **state)
{
    (void)state;
    const struct {
        const hf__numbers *said;
        bool adds_up;
    } cases[] = {
        {REPORT(1, 10, 5, 2, 3, 1, 60000, 1, 2, 3, 2, 2), true},
        {REPORT(1, 0, 0, 0, 0, 0, 60000, 0, 0, 0, 0, 0), true},
        {REPORT(1, 11, 5, 2, 3, 1, 60000, 1, 2, 3, 2, 2), false},  /* one is gone */
        {REPORT(1, 9, 5, 2, 3, 1, 60000, 1, 2, 3, 2, 2), false},   /* one too many */
        {REPORT(1, 0, -5, 2, 3, 0, 60000, 1, 2, 3, 2, 2), false},  /* less than nothing */
        {REPORT(1, 6, 5, -2, 3, 0, 60000, 1, -2, 1, 0, 0), false}, /* the same */
        {REPORT(1, 4, 5, 2, -3, 0, 60000, 1, 2, -1, 0, 0), false}, /* the same */
        {REPORT(1, 10, 5, 2, 3, 0, 60000, 1, 1, 3, 2, 2), false},  /* a reservation is missing */
        {REPORT(1, 10, 5, 2, 3, 0, 60000, 1, 2, 4, 2, 2), false},  /* a user has too many */
        {REPORT(1, 10, 5, 2, 3, 0, 60000, 1, 2, 3, 2, 1), false},  /* one is nobody's at all */
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        hf__stock_count count = {0};
        hf_error error;
        expect_status(hf__stock_look_outcome(cases[i].said, &count, &error), HF_OK, &error);
        assert_true(hf__stock_is_counted(&count));
        assert_int_equal(count.report.adds_up, cases[i].adds_up);
    }
    hf__stock_count count = {0};
    assert_int_equal(hf__stock_look_outcome(cases[0].said, &count, NULL), HF_OK);
    hf_stock_report r = count.report;
    assert_true(r.state.total == 10 && r.state.available == 5 && r.state.reserved == 2);
    assert_true(r.state.sold == 3 && r.state.per_user == 1 && r.state.keep_ms == 60000);
    assert_true(r.state.reservations == 1 && r.in_reservations == 2 && r.by_users == 3);
    assert_true(r.most_by_one == 2 && r.by_nobody == 2);
}

#define PAGE(in_open, by_users, most, by_nobody, ...) \
    NUMBERS(1, 20, 5, 5, 10, 0, 60000, 3, in_open, by_users, most, by_nobody, __VA_ARGS__)

static void pages_are_added(void **state)
{
    (void)state;
    hf__stock_count count = {0};
    assert_int_equal(hf__stock_look_outcome(PAGE(3, 4, 2, 2, 1024, 77, 9, 4), &count, NULL), HF_OK);
    assert_false(hf__stock_is_counted(&count));
    assert_true(count.place == 1024 && count.cursor == 77);
    assert_int_equal(hf__stock_look_outcome(PAGE(2, 5, 3, 1, -1, 78, 9, 4), &count, NULL), HF_OK);
    assert_false(hf__stock_is_counted(&count));
    assert_int_equal(hf__stock_look_outcome(PAGE(0, 3, 1, 0, -1, -1, 9, 4), &count, NULL), HF_OK);
    assert_true(hf__stock_is_counted(&count) && count.report.adds_up);
    assert_true(count.report.in_reservations == 5 && count.report.by_users == 12);
    assert_true(count.report.by_nobody == 3 && count.report.most_by_one == 3);
}

static void pages_of_two_moments_are_not_added(void **state)
{
    (void)state;
    const hf__numbers *const others[] = {
        PAGE(2, 5, 3, 1, -1, -1, 10, 4), /* requests were turned over */
        PAGE(2, 5, 3, 1, -1, -1, 9, 5),  /* one more */
        NUMBERS(1, 20, 6, 4, 10, 0, 60000, 2, 2, 5, 3, 1, -1, -1, 9, 4), /* one is back */
        NUMBERS(1, 21, 6, 5, 10, 0, 60000, 3, 2, 5, 3, 1, -1, -1, 9, 4),
        NUMBERS(1, 20, 4, 5, 11, 0, 60000, 3, 2, 5, 3, 1, -1, -1, 9, 4)};
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        hf__stock_count count = {0};
        assert_int_equal(hf__stock_look_outcome(PAGE(3, 4, 2, 2, 1024, 7, 9, 4), &count, NULL),
                         HF_OK);
        assert_int_equal(hf__stock_look_outcome(others[i], &count, NULL), HF_OK);
        assert_memory_equal(&count, &(hf__stock_count){0}, sizeof(count));
    }
}

/* ---- Calls ---- */

/* Of an item that "abc" has begun: the look, and pages of a count. */
#define SEEN_PAGE(next, requests)                                                         \
    "*17\r\n:1\r\n:1\r\n:1\r\n:0\r\n:0\r\n:0\r\n:60000\r\n:0\r\n:0\r\n:0\r\n:0\r\n:0\r\n" \
    ":-1\r\n:" next "\r\n:9\r\n:" requests "\r\n$3\r\nabc\r\n"
#define SEEN SEEN_PAGE("-1", "0")

static void say(const char *reply)
{
    wires *n = wires_lock();
    node_say(&n->node, reply);
    wires_unlock();
}

static void calls_say_what_the_server_says(void **state)
{
    (void)state;
    hf_client *client = OPEN();
    hf_error error;
    hf_stock_state seen;
    int64_t left = 0;
    char first[HF_REQUEST_MAX + 1] = "", second[HF_REQUEST_MAX + 1] = "";
    say("*2\r\n:1\r\n:5\r\n");
    expect_status(hf_stock_take(client, "x", 1, NULL, &left, &error), HF_OK, &error);
    assert_int_equal(left, 5);
    say("*2\r\n:-3\r\n:4\r\n");
    expect_status(hf_stock_take(client, "x", 1, NULL, &left, &error), HF_ELIMIT, &error);
    assert_int_equal(left, 4);
    for (int i = 0; i < 2; i++) {
        char *place = i == 0 ? first : second;
        say("*2\r\n:1\r\n:3\r\n");
        assert_int_equal(hf_stock_reserve(client, "x", 1, 1, NULL, place, NULL, NULL), HF_OK);
    }
    assert_true(strlen(first) > 32 && strcmp(first, second) != 0); /* that there never was */
    say("*2\r\n:1\r\n:3\r\n");
    const hf_take_options *named = HF_TAKE(.request = first); /* which may be the same place */
    assert_int_equal(hf_stock_reserve(client, "x", 1, 1, named, first, NULL, NULL), HF_OK);
    assert_true(strlen(first) > 32);
    say("*1\r\n:-1\r\n");
    expect_status(hf_stock_get(client, "x", 0, &seen, &error), HF_EMISSING, &error);
    say("*2\r\n:-1\r\n$1\r\nx\r\n");
    expect_status(hf_stock_confirm(client, "x", 0, "r", &error), HF_ESERVER, &error);
    say(":-7\r\n");
    expect_status(hf_stock_confirm(client, "x", 0, "r", &error), HF_ESERVER, &error);
    say("*3\r\n:1\r\n:2\r\n:3\r\n");
    expect_status(hf_stock_cancel(client, "x", 0, "r", &error), HF_ESERVER, &error);
    assert_int_equal(hf_close(client), HF_OK);
}

/* Beginning again is two steps: what is there, and only that is replaced. */
static void afresh_looks_first(void **state)
{
    (void)state;
    hf_client *client = OPEN();
    hf_error error;
    const hf_stock_options *afresh = HF_STOCK(.afresh = true);
    say(SEEN);
    say("*2\r\n:1\r\n:5\r\n");
    expect_status(hf_stock_set(client, "x", 5, afresh, &error), HF_OK, &error);
    say("*1\r\n:-1\r\n");
    say("*2\r\n:-10\r\n:5\r\n");
    expect_status(hf_stock_set(client, "x", 5, afresh, &error), HF_ESTALE, &error);
    say("-ERR no\r\n"); /* then nothing is replaced */
    expect_status(hf_stock_set(client, "x", 5, afresh, &error), HF_ESERVER, &error);
    assert_int_equal(hf_close(client), HF_OK);
}

/* So is deleting. */
static void a_delete_looks_first(void **state)
{
    (void)state;
    hf_client *client = OPEN();
    hf_error error;
    say(SEEN);
    say("*2\r\n:1\r\n:0\r\n");
    expect_status(hf_stock_delete(client, "x", 0, false, &error), HF_OK, &error);
    say(SEEN);
    say("*2\r\n:-11\r\n:5\r\n");
    expect_status(hf_stock_delete(client, "x", 0, false, &error), HF_EBUSY, &error);
    say(SEEN);
    say("*2\r\n:-10\r\n:5\r\n");
    expect_status(hf_stock_delete(client, "x", 0, true, &error), HF_ESTALE, &error);
    say("*1\r\n:-1\r\n"); /* then nothing is deleted */
    expect_status(hf_stock_delete(client, "x", 0, true, &error), HF_EMISSING, &error);
    assert_int_equal(hf_close(client), HF_OK);
}

static void an_audit_of_what_changes_ends(void **state)
{
    (void)state;
    hf_client *client = OPEN(.links = 1);
    hf_error error;
    hf_stock_report report;
    say(SEEN_PAGE("5", "1"));
    say(SEEN_PAGE("6", "2")); /* something has happened: from the beginning */
    say(SEEN_PAGE("5", "2"));
    say(SEEN_PAGE("-1", "2"));
    expect_status(hf_stock_audit(client, "x", 0, &report, &error), HF_OK, &error);
    for (int i = 0; i < 20; i++) {
        say(SEEN_PAGE("5", "1"));
        say(SEEN_PAGE("5", "2"));
    }
    expect_status(hf_stock_audit(client, "x", 0, &report, &error), HF_EBUSY, &error);
    assert_int_equal(hf_close(client), HF_OK);
}

/* ---- Arguments ---- */

static char long_text[HF_NAME_MAX + 2];

static void bad_arguments(void **state)
{
    (void)state;
    hf_client *client = OPEN();
    hf_stock_state seen;
    hf_stock_report report;
    char place[HF_REQUEST_MAX + 1];
    memset(long_text, 'x', sizeof(long_text) - 1);
    const char *beyond_item = long_text + sizeof(long_text) - 2 - HF_ITEM_MAX;
    const char *beyond_user = long_text + sizeof(long_text) - 2 - HF_BUYER_MAX;
    const char *beyond_request = long_text + sizeof(long_text) - 2 - HF_REQUEST_MAX;
    const struct {
        hf_status status;
        int line;
    } results[] = {
#define REFUSED(call) {(call), __LINE__}
        REFUSED(hf_stock_set(NULL, "x", 1, NULL, NULL)),
        REFUSED(hf_stock_set(client, NULL, 1, NULL, NULL)),
        REFUSED(hf_stock_set(client, "", 1, NULL, NULL)),
        REFUSED(hf_stock_set(client, "hf:x", 1, NULL, NULL)),
        REFUSED(hf_stock_set(client, beyond_item, 1, NULL, NULL)),
        REFUSED(hf_stock_set(client, long_text, 1, NULL, NULL)),
        REFUSED(hf_stock_set(client, "x", 1, HF_STOCK(.name_length = SIZE_MAX), NULL)),
        REFUSED(hf_stock_set(client, "x", -1, NULL, NULL)),
        REFUSED(hf_stock_set(client, "x", HF_UNITS_MAX + 1, NULL, NULL)),
        REFUSED(hf_stock_set(client, "x", 1, HF_STOCK(.per_user = -2), NULL)),
        REFUSED(hf_stock_set(client, "x", 1, HF_STOCK(.per_user = HF_UNITS_MAX + 1), NULL)),
        REFUSED(hf_stock_set(client, "x", 1, HF_STOCK(.keep_ms = HF_KEEP_MIN_MS - 1), NULL)),
        REFUSED(hf_stock_set(client, "x", 1, HF_STOCK(.keep_ms = HF_MS_MAX + 1), NULL)),
        REFUSED(hf_stock_set(client, "x", 1, &(hf_stock_options){.size = 0}, NULL)),
        REFUSED(hf_stock_get(NULL, "x", 0, &seen, NULL)),
        REFUSED(hf_stock_get(client, "x", 0, NULL, NULL)),
        REFUSED(hf_stock_get(client, NULL, 0, &seen, NULL)),
        REFUSED(hf_stock_audit(NULL, "x", 0, &report, NULL)),
        REFUSED(hf_stock_audit(client, "x", 0, NULL, NULL)),
        REFUSED(hf_stock_delete(NULL, "x", 0, true, NULL)),
        REFUSED(hf_stock_delete(client, NULL, 0, true, NULL)),
        REFUSED(hf_stock_delete(client, "", 0, true, NULL)),
        REFUSED(hf_stock_take(NULL, "x", 1, NULL, NULL, NULL)),
        REFUSED(hf_stock_take(client, NULL, 1, NULL, NULL, NULL)),
        REFUSED(hf_stock_take(client, "x", 0, NULL, NULL, NULL)),
        REFUSED(hf_stock_take(client, "x", -1, NULL, NULL, NULL)),
        REFUSED(hf_stock_take(client, "x", INT64_MIN, NULL, NULL, NULL)),
        REFUSED(hf_stock_take(client, "x", HF_UNITS_MAX + 1, NULL, NULL, NULL)),
        REFUSED(hf_stock_take(client, "x", 1, &(hf_take_options){.size = 3}, NULL, NULL)),
        REFUSED(hf_stock_take(client, "x", 1, HF_TAKE(.user = ""), NULL, NULL)),
        REFUSED(hf_stock_take(client, "x", 1, HF_TAKE(.user = beyond_user), NULL, NULL)),
        REFUSED(hf_stock_take(client, "x", 1, HF_TAKE(.request = ""), NULL, NULL)),
        REFUSED(hf_stock_take(client, "x", 1, HF_TAKE(.request = beyond_request), NULL, NULL)),
        REFUSED(hf_stock_put(NULL, "x", 1, NULL, NULL, NULL)),
        REFUSED(hf_stock_put(client, "x", 0, NULL, NULL, NULL)),
        REFUSED(hf_stock_put(client, "x", 1, HF_TAKE(.restock = true, .user = "u"), NULL, NULL)),
        REFUSED(hf_stock_reserve(NULL, "x", 1, 1, NULL, place, NULL, NULL)),
        REFUSED(hf_stock_reserve(client, "x", 0, 1, NULL, place, NULL, NULL)),
        REFUSED(hf_stock_reserve(client, "x", 1, 0, NULL, place, NULL, NULL)),
        REFUSED(hf_stock_reserve(client, "x", 1, HF_MS_MAX + 1, NULL, place, NULL, NULL)),
        REFUSED(hf_stock_reserve(client, "x", 1, 1, NULL, NULL, NULL, NULL)),
        REFUSED(hf_stock_confirm(NULL, "x", 0, "r", NULL)),
        REFUSED(hf_stock_confirm(client, NULL, 0, "r", NULL)),
        REFUSED(hf_stock_confirm(client, "x", 0, NULL, NULL)),
        REFUSED(hf_stock_confirm(client, "x", 0, "", NULL)),
        REFUSED(hf_stock_confirm(client, "x", 0, beyond_request, NULL)),
        REFUSED(hf_stock_cancel(NULL, "x", 0, "r", NULL)),
        REFUSED(hf_stock_cancel(client, "x", 0, NULL, NULL)),
        REFUSED(hf_stock_cancel(client, "x", 0, "", NULL)),
    };
    for (size_t i = 0; i < COUNT_OF(results); i++)
        if (results[i].status != HF_EINVAL)
            fail_msg("line %d: %s", results[i].line, hf_status_name(results[i].status));
    assert_int_equal(count_opens(), 0);
    assert_int_equal(hf_close(client), HF_OK);
}

static void refusals_name_what_is_wrong(void **state)
{
    (void)state;
    hf_client *client = OPEN(.prefix = "shop:");
    hf_error error;
    struct {
        hf_take_options known;
        size_t unknown;
    } newer = {.known = {.size = sizeof(newer)}, .unknown = 1};
    expect_status(hf_stock_take(client, "x", 0, NULL, NULL, &error), HF_EINVAL, &error);
    assert_string_equal(error.text, "units must be 1 to 1000000000000");
    expect_status(hf_stock_take(client, "x", 1, &newer.known, NULL, &error), HF_EINVAL, &error);
    assert_non_null(strstr(error.text, "newer"));
    expect_status(hf_stock_confirm(client, "x", 0, "", &error), HF_EINVAL, &error);
    assert_string_equal(error.text, "request is empty");
    memset(long_text, 'x', sizeof(long_text) - 1);
    const char *too_long_with_prefix = long_text + sizeof(long_text) - 1 - (HF_ITEM_MAX - 4);
    expect_status(hf_stock_confirm(client, too_long_with_prefix, 0, "r", &error), HF_EINVAL,
                  &error);
    assert_string_equal(error.text, "prefix and item have more than 512 bytes");
    assert_int_equal(count_opens(), 0);
    newer.unknown = 0; /* as a newer caller passes it who wants nothing new */
    say("*2\r\n:1\r\n:5\r\n");
    expect_status(hf_stock_take(client, too_long_with_prefix + 1, 1, &newer.known, NULL, &error),
                  HF_OK, &error);
    assert_int_equal(hf_close(client), HF_OK);
}

/* ---- Memory ---- */

static void expect_done_or_starved(hf_status status)
{
    if (status != HF_OK && status != HF_EUNAVAILABLE && status != HF_EUNKNOWN)
        assert_int_equal(status, HF_ENOMEM);
}

/* A call whose answer could not be read asks again. */
static void answer_always(const char *reply)
{
    WIRES(node.canned_count = 0); /* what is left from the last call */
    for (int i = 0; i < NODE_CANNED; i++)
        say(reply);
}

static void call_all(hf_client *client)
{
    static const char done[] = "*2\r\n:1\r\n:5\r\n";
    static const char seen[] = SEEN;
    hf_stock_report report;
    char place[HF_REQUEST_MAX + 1];
    answer_always(done);
    expect_done_or_starved(hf_stock_set(client, "x", 5, HF_STOCK(.per_user = 2), NULL));
    answer_always(done);
    expect_done_or_starved(hf_stock_take(client, "x", 1, HF_TAKE(.user = "ann"), NULL, NULL));
    answer_always(done);
    expect_done_or_starved(hf_stock_put(client, "x", 1, NULL, NULL, NULL));
    answer_always(done);
    expect_done_or_starved(hf_stock_reserve(client, "x", 1, 1, NULL, place, NULL, NULL));
    answer_always(done);
    expect_done_or_starved(hf_stock_confirm(client, "x", 0, place, NULL));
    answer_always(seen);
    expect_done_or_starved(hf_stock_audit(client, "x", 0, &report, NULL));
    answer_always(seen);
    assert_true(hf_stock_delete(client, "x", 0, true, NULL) != HF_OK); /* the second step fails */
    answer_always(seen); /* and with what it says, the second step fails: nothing leaks */
    hf_status status = hf_stock_set(client, "x", 5, HF_STOCK(.afresh = true), NULL);
    assert_true(status != HF_OK);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    bool starved = true;
    long refused = 0;
    for (; starved; refused++) {
        hf_client *client = OPEN(.links = 1);
        gate_fail_at(refused);
        call_all(client);
        starved = gate_open();
        WIRES(node.canned_count = 0);
        say("*2\r\n:1\r\n:5\r\n");
        assert_int_equal(hf_stock_take(client, "x", 1, NULL, NULL, NULL), HF_OK);
        assert_int_equal(hf_close(client), HF_OK);
    }
    assert_in_range(refused, 6, 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_code_has_its_status),
        cmocka_unit_test(answers_that_make_no_sense),
        cmocka_unit_test(reports_that_make_no_sense),
        cmocka_unit_test(reports_add_up_or_do_not),
        cmocka_unit_test(pages_are_added),
        cmocka_unit_test(pages_of_two_moments_are_not_added),
        BOTH(calls_say_what_the_server_says),
        SEEING(afresh_looks_first),
        SEEING(a_delete_looks_first),
        SEEING(an_audit_of_what_changes_ends),
        SEEING(bad_arguments),
        SEEING(refusals_name_what_is_wrong),
        BOTH(every_allocation_may_fail),
    };
    wired_install_gate();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
