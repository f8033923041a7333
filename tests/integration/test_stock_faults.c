/* SPDX-License-Identifier: MIT */
/* Goal: whatever is lost on the way, an order counts once: the library repeats what was not
 * answered, and so may the caller. And what public scripts get wrong when they are called, not in
 * what they say: the retry that takes twice, and the key that is built inside the script.
 *
 * The item is "lock", for side_key(). Alice is behind a relay, which loses answers; Bob is not.
 */
#include <stdio.h>
#include <string.h>

#include <holdfast_stock.h>

#include "fixture.h"
#include "relay.h"

enum {
    LOST = 3, /* answers in a row, so that copies of copies are lost too */
    FOR_EVER = 1000000
};

static hf_error error;
static int64_t left;
static struct relay relay;

/* ---- Verbs ----------------------------------------------------------------------------------- */

static void begin_relayed(const hf_client_options *options)
{
    server = redis_server_start(&(struct redis_server_options){.keeps_data = true});
    relay = relay_start(server);
    open_client_at(relay.url, &alice, options);
    open_client(&bob);
}

static void expect_counts(int64_t available, int64_t reserved, int64_t sold)
{
    hf_stock_report report;
    EXPECT(HF_OK, hf_stock_audit(bob, "lock", 0, &report, &error));
    assert_int_equal(report.state.available, available);
    assert_int_equal(report.state.reserved, reserved);
    assert_int_equal(report.state.sold, sold);
    assert_true(report.adds_up);
}

static void lose_answers(void)
{
    relay_cut_answers(&relay, LOST);
}

/* All that were to be lost were. */
static void expect_lost(int times)
{
    assert_int_equal(relay_spoilt(&relay), times * LOST);
}

/* ---- Lost answers ---------------------------------------------------------------------------- */

static void retry_that_takes_twice(void **state)
{
    (void)state;
    begin_relayed(HF_CLIENT(.call_timeout_ms = 20000));
    EXPECT(HF_OK, hf_stock_set(bob, "lock", 9, HF_STOCK(.per_user = 2), &error));
    lose_answers();
    EXPECT(HF_OK, hf_stock_take(alice, "lock", 1, HF_TAKE(.user = "ann"), &left, &error));
    assert_int_equal(left, 8);
    expect_lost(1);
    expect_counts(8, 0, 1);
    lose_answers();
    EXPECT(HF_OK,
           hf_stock_take(alice, "lock", 1, HF_TAKE(.user = "ann", .request = "a"), &left, &error));
    expect_lost(2);
    expect_counts(7, 0, 2);
    lose_answers(); /* a refusal stays one, though an earlier copy was refused too */
    EXPECT(HF_ELIMIT, hf_stock_take(alice, "lock", 1, HF_TAKE(.user = "ann"), &left, &error));
    expect_lost(3);
    expect_counts(7, 0, 2);
}

static void whose_answer_is_lost_counts_once(void **state)
{
    (void)state;
    char request[HF_REQUEST_MAX + 1];
    begin_relayed(HF_CLIENT(.call_timeout_ms = 20000));
    lose_answers();
    EXPECT(HF_OK, hf_stock_set(alice, "lock", 9, NULL, &error));
    expect_lost(1);
    lose_answers();
    EXPECT(HF_OK, hf_stock_reserve(alice, "lock", 2, 60000, NULL, request, &left, &error));
    assert_int_equal(left, 7);
    expect_lost(2);
    lose_answers();
    EXPECT(HF_OK, hf_stock_confirm(alice, "lock", 0, request, &error));
    expect_lost(3);
    expect_counts(7, 0, 2);
    lose_answers();
    EXPECT(HF_OK, hf_stock_put(alice, "lock", 1, NULL, &left, &error));
    expect_lost(4);
    lose_answers();
    EXPECT(HF_OK, hf_stock_put(alice, "lock", 3, HF_TAKE(.restock = true), &left, &error));
    expect_lost(5);
    expect_counts(11, 0, 1);
    EXPECT(HF_OK, hf_stock_reserve(bob, "lock", 5, 60000, NULL, request, &left, &error));
    lose_answers();
    EXPECT(HF_OK, hf_stock_cancel(alice, "lock", 0, request, &error));
    expect_lost(6);
    expect_counts(11, 0, 1);
}

/* What was sold behind a set that begins again must not be forgotten by a copy of it. */
static void a_shelf_is_emptied_once(void **state)
{
    (void)state;
    begin_relayed(HF_CLIENT(.call_timeout_ms = 20000));
    EXPECT(HF_OK, hf_stock_set(bob, "lock", 9, NULL, &error));
    EXPECT(HF_OK, hf_stock_take(bob, "lock", 9, NULL, &left, &error));
    lose_answers();
    EXPECT(HF_OK, hf_stock_set(alice, "lock", 5, HF_STOCK(.afresh = true), &error));
    expect_lost(1);
    expect_counts(5, 0, 0);
}

static void *begin_again(void *arg)
{
    *(hf_status *)arg = hf_stock_set(alice, "lock", 5, HF_STOCK(.afresh = true), NULL);
    return NULL;
}

/* Nor what was sold behind one by somebody else, while copies of ours go on. */
static void nobody_elses_shelf_is_emptied(void **state)
{
    (void)state;
    static hf_status status;
    pthread_t thread;
    begin_relayed(HF_CLIENT(.call_timeout_ms = 60000));
    relay_cut_answers(&relay, FOR_EVER);
    assert_int_equal(pthread_create(&thread, NULL, begin_again, &status), 0);
    WAIT_UNTIL(relay_spoilt(&relay) >= 1, 20000);
    EXPECT(HF_OK, hf_stock_set(bob, "lock", 7, HF_STOCK(.afresh = true), &error));
    EXPECT(HF_OK, hf_stock_take(bob, "lock", 2, NULL, &left, &error));
    long long before = relay_spoilt(&relay);
    WAIT_UNTIL(relay_spoilt(&relay) >= before + 2, 20000);
    expect_counts(5, 0, 2);
    relay_cut_answers(&relay, 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(status, HF_ESTALE);
    expect_counts(5, 0, 2);
}

/* ---- Late copies ----------------------------------------------------------------------------- */

/* The caller gives up, and asks again: with the same request. */
static void the_caller_may_ask_again(void **state)
{
    (void)state;
    hf_stock_state seen;
    begin_relayed(HF_CLIENT(.call_timeout_ms = 1000));
    EXPECT(HF_OK, hf_stock_set(bob, "lock", 9, NULL, &error));
    WAIT_UNTIL(hf_stock_get(alice, "lock", 0, &seen, NULL) == HF_OK, 10000); /* it is connected */
    relay_cut(&relay);
    hf_take_options options = *HF_TAKE(.request = "cart");
    EXPECT(HF_EUNKNOWN, hf_stock_take(alice, "lock", 1, &options, &left, &error));
    relay_heal(&relay);
    WAIT_UNTIL(hf_stock_take(alice, "lock", 1, &options, &left, &error) == HF_OK, 10000);
    expect_counts(8, 0, 1);
    EXPECT(HF_OK, hf_stock_take(bob, "lock", 1, &options, &left, &error));
    expect_counts(8, 0, 1);
}

/* HF_EUNAVAILABLE would mean that nothing was done. */
static void who_may_have_bought_is_told_so(void **state)
{
    (void)state;
    begin_relayed(HF_CLIENT(.call_timeout_ms = 1000));
    EXPECT(HF_OK, hf_stock_set(bob, "lock", 9, NULL, &error));
    relay_cut_answers(&relay, FOR_EVER);
    while (relay_spoilt(&relay) == 0) { /* until it gets so far within its time */
        hf_status status =
            hf_stock_take(alice, "lock", 1, HF_TAKE(.request = "cart"), &left, &error);
        assert_true(status == HF_EUNKNOWN || status == HF_EUNAVAILABLE);
        if (status == HF_EUNAVAILABLE)
            expect_counts(9, 0, 0);
    }
    expect_counts(8, 0, 1);
    relay_cut_answers(&relay, 0);
    WAIT_UNTIL(hf_stock_take(alice, "lock", 1, HF_TAKE(.request = "cart"), &left, NULL) == HF_OK,
               10000);
    expect_counts(8, 0, 1);
}

/* Who was told that nothing is left must not be sold something by the copy that was stuck. */
static void a_copy_that_is_late_sells_nothing(void **state)
{
    (void)state;
    begin_relayed(HF_CLIENT(.call_timeout_ms = 20000, .reply_timeout_ms = 300, .links = 1));
    EXPECT(HF_OK, hf_stock_set(alice, "lock", 0, NULL, &error));
    relay_stall_one(&relay);
    EXPECT(HF_ESOLDOUT, hf_stock_take(alice, "lock", 1, HF_TAKE(.user = "ann"), &left, &error));
    EXPECT(HF_OK, hf_stock_put(bob, "lock", 5, HF_TAKE(.restock = true), &left, &error));
    long long before = scripts_run(server);
    relay_heal(&relay);
    WAIT_UNTIL(scripts_run(server) > before, 5000);
    expect_counts(5, 0, 0);
}

/* The copy of a set that was stuck does not bring it back. */
static void a_deleted_item_does_not_come_back(void **state)
{
    (void)state;
    begin_relayed(HF_CLIENT(.call_timeout_ms = 20000, .reply_timeout_ms = 300, .links = 1));
    EXPECT(HF_OK, hf_stock_set(alice, "warm", 1, NULL, &error)); /* its scripts are known */
    EXPECT(HF_OK, hf_stock_delete(alice, "warm", 0, false, &error));
    relay_stall_one(&relay);
    EXPECT(HF_OK, hf_stock_set(alice, "lock", 9, NULL, &error));
    EXPECT(HF_OK, hf_stock_delete(bob, "lock", 0, false, &error));
    long long before = scripts_run(server);
    relay_heal(&relay);
    WAIT_UNTIL(scripts_run(server) > before, 5000);
    EXPECT(HF_EMISSING, hf_stock_delete(bob, "lock", 0, false, &error));
}

/* ---- The server ------------------------------------------------------------------------------ */

static void a_server_that_keeps_its_data_remembers_orders(void **state)
{
    (void)state;
    begin_relayed(NULL);
    hf_take_options one = *HF_TAKE(.user = "ann", .request = "one");
    hf_take_options two = *HF_TAKE(.user = "ann", .request = "two");
    EXPECT(HF_OK, hf_stock_set(bob, "lock", 9, HF_STOCK(.per_user = 3), &error));
    EXPECT(HF_OK, hf_stock_take(bob, "lock", 1, &one, &left, &error));
    EXPECT(HF_OK, hf_stock_reserve(bob, "lock", 2, 60000, &two, NULL, &left, &error));
    redis_server_restart(server);
    EXPECT(HF_OK, hf_stock_take(bob, "lock", 1, &one, &left, &error));
    assert_int_equal(left, 8);
    EXPECT(HF_ELIMIT, hf_stock_take(bob, "lock", 1, HF_TAKE(.user = "ann"), &left, &error));
    EXPECT(HF_OK, hf_stock_confirm(bob, "lock", 0, "two", &error));
    expect_counts(6, 0, 3);
    assert_string_equal(raw(server, "SCRIPT FLUSH SYNC"), "OK"); /* which loses nothing */
    EXPECT(HF_OK, hf_stock_put(bob, "lock", 3, HF_TAKE(.user = "ann"), &left, &error));
    expect_counts(9, 0, 0);
}

/* Everything that has a script of its own, also when requests are forgotten, and time has run out.
 * Of the first item 3 are sold. */
static void do_everything(hf_client *client)
{
    char request[HF_REQUEST_MAX + 1];
    hf_stock_report report;
    EXPECT(HF_OK, hf_stock_set(client, "lock", 5, HF_STOCK(.per_user = 4), &error));
    EXPECT(HF_OK, hf_stock_set(client, "lock", 9, HF_STOCK(.afresh = true), &error));
    for (int i = 0; i < 3; i++) {
        EXPECT(HF_OK, hf_stock_take(client, "lock", 1, HF_TAKE(.user = "ann"), &left, &error));
        EXPECT(HF_OK, hf_stock_reserve(client, "lock", 1, 60000, HF_TAKE(.user = "ann"), request,
                                       &left, &error));
        EXPECT(HF_OK, hf_stock_confirm(client, "lock", 0, request, &error));
        EXPECT(HF_OK, hf_stock_put(client, "lock", 1, HF_TAKE(.user = "ann"), &left, &error));
        EXPECT(HF_EMISSING, hf_stock_cancel(client, "lock", 0, "unheard of", &error));
        EXPECT(HF_OK, hf_stock_reserve(client, "lock", 1, 1, HF_TAKE(.user = "ben"), request, &left,
                                       &error));
        WAIT_UNTIL(hf_stock_audit(client, "lock", 0, &report, NULL) == HF_OK &&
                       report.state.reserved == 0,
                   5000);
        assert_string_equal(raw(server, "HSET %s turn 1000", side_key('s')), "0");
    }
    assert_int_equal(report.state.sold, 3);
    assert_true(report.adds_up);
    EXPECT(HF_OK, hf_stock_delete(client, "lock", 0, false, &error));
    EXPECT(HF_OK, hf_stock_set(client, "lock", 1, NULL, &error));
}

/* A user who may touch the keys that are handed to the scripts, and no other. */
static void key_built_inside_the_script(void **state)
{
    (void)state;
    char url[128], keys[4][64];
    server = redis_server_start(NULL);
    for (int i = 0; i < 4; i++)
        (void)snprintf(keys[i], sizeof(keys[i]), "~%s", side_key("srpt"[i]));
    assert_string_equal(
        raw(server, "ACL SETUSER clerk on >password resetkeys +@all %s %s %s %s allchannels",
            keys[0], keys[1], keys[2], keys[3]),
        "OK");
    (void)snprintf(url, sizeof(url), "redis://clerk:password@127.0.0.1:%d", server->port);
    open_client_at(url, &alice, NULL);
    do_everything(alice);
    EXPECT(HF_EDENIED, hf_stock_take(alice, "another", 1, NULL, &left, &error));
}

/* A server of a cluster refuses keys of several slots, also those that a script does not declare.
 */
static void keys_of_several_slots(void **state)
{
    (void)state;
    static const char *const extra[] = {"--cluster-enabled", "yes", NULL};
    server = redis_server_start(&(struct redis_server_options){.extra = extra});
    assert_string_equal(raw(server, "CLUSTER ADDSLOTSRANGE 0 16383"), "OK");
    WAIT_UNTIL(strstr(raw(server, "CLUSTER INFO"), "cluster_state:ok") != NULL, 10000);
    open_client(&alice);
    do_everything(alice);
    for (int i = 0; i < 64; i++) {
        char item[32];
        (void)snprintf(item, sizeof(item), "{a%d}b%d", i % 2, i);
        EXPECT(HF_OK, hf_stock_set(alice, item, 1, NULL, &error));
        EXPECT(HF_OK, hf_stock_take(alice, item, 1, HF_TAKE(.user = "ann"), NULL, &error));
    }
}

/* A majority of counters is not a counter. */
static void a_quorum_has_no_stock(void **state)
{
    (void)state;
    hf_stock_report report;
    char request[HF_REQUEST_MAX + 1];
    static const char urls[] = "redis://127.0.0.1:1,redis://127.0.0.1:2,redis://127.0.0.1:3";
    EXPECT(HF_OK, hf_open(urls, NULL, &alice, &error));
    EXPECT(HF_EINVAL, hf_stock_set(alice, "lock", 9, NULL, &error));
    expect_says(error.text, "one server");
    EXPECT(HF_EINVAL, hf_stock_get(alice, "lock", 0, &report.state, &error));
    EXPECT(HF_EINVAL, hf_stock_audit(alice, "lock", 0, &report, &error));
    EXPECT(HF_EINVAL, hf_stock_take(alice, "lock", 1, NULL, &left, &error));
    EXPECT(HF_EINVAL, hf_stock_put(alice, "lock", 1, NULL, &left, &error));
    EXPECT(HF_EINVAL, hf_stock_reserve(alice, "lock", 1, 100, NULL, request, &left, &error));
    EXPECT(HF_EINVAL, hf_stock_confirm(alice, "lock", 0, "a", &error));
    EXPECT(HF_EINVAL, hf_stock_cancel(alice, "lock", 0, "a", &error));
    EXPECT(HF_EINVAL, hf_stock_delete(alice, "lock", 0, true, &error));
    EXPECT_STATUS(HF_OK, hf_close(alice));
    alice = NULL;
}

#define TEST(test) cmocka_unit_test_teardown(test, end_everything)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(retry_that_takes_twice),
        TEST(whose_answer_is_lost_counts_once),
        TEST(a_shelf_is_emptied_once),
        TEST(nobody_elses_shelf_is_emptied),
        TEST(the_caller_may_ask_again),
        TEST(who_may_have_bought_is_told_so),
        TEST(a_copy_that_is_late_sells_nothing),
        TEST(a_deleted_item_does_not_come_back),
        TEST(a_server_that_keeps_its_data_remembers_orders),
        TEST(key_built_inside_the_script),
        TEST(keys_of_several_slots),
        TEST(a_quorum_has_no_stock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
