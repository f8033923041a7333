/* SPDX-License-Identifier: MIT */
/* Goal: answers that are well-formed RESP, or nearly, but not what a script can have answered, are
 * never taken for a lock, a renewal or a release. The connection is given up, the hold keeps the
 * deadline that it had, and when the server makes sense again the next call works.
 *
 * What a server says that lies in the right form is believed: no client can tell.
 */
#include <stdio.h>
#include <string.h>

#include "fixture.h"
#include "impostor.h"

enum { REPLY_MS = 100, CALL_MS = 120, LONG_MS = 60000 };

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define SAYS(text_of_it)                       \
    {                                          \
        .name = text_of_it, .says = text_of_it \
    }
#define TEXT_OF_64_ZEROES "0000000000000000000000000000000000000000000000000000000000000000"

static hf_client *victim;
static hf_error error;
static struct impostor impostor;

static int begin(void **state)
{
    (void)start_server(state);
    impostor = impostor_start(server);
    return 0;
}

static int begin_test(void **state)
{
    (void)state;
    empty_server();
    open_client_at(impostor.url, &victim,
                   HF_CLIENT(.reply_timeout_ms = REPLY_MS, .call_timeout_ms = CALL_MS));
    return 0;
}

static int end(void **state)
{
    impostor_relent(&impostor);
    return close_clients(state);
}

static int end_all(void **state)
{
    process_end_all();
    return end_server(state);
}

/* ---- Verbs ----------------------------------------------------------------------------------- */

/* A release may take longer than the short time-outs here allow: then once more. */
static void expect_works(void)
{
    hf_status status = HF_EUNKNOWN;
    for (int i = 0; i < 10 && status != HF_OK; i++) {
        hf_hold *hold = acquire_with(victim, HF_ACQUIRE(.wait_ms = 10000));
        status = hf_release(&hold, &error);
    }
    EXPECT(HF_OK, status);
}

static void expect_printable(const char *text)
{
    for (; *text != '\0'; text++)
        assert_in_range(*text, ' ', '~');
}

static void expect_no_lock(const struct attack *attack)
{
    hf_hold *hold;
    impostor_attack(&impostor, AT_CALL, attack);
    hf_status status = hf_acquire(victim, "lock", NULL, &hold, &error);
    if (status == HF_OK || hold != NULL)
        fail_msg("believed: %s", attack->name);
    if (status != HF_EUNAVAILABLE && status != HF_EUNKNOWN)
        fail_msg("%s: %s: %s", attack->name, hf_status_name(status), error.text);
    expect_printable(error.text);
    impostor_relent(&impostor);
    expect_works();
}

/* ---- Acquires -------------------------------------------------------------------------------- */

/* {fence, remaining[, 1]}, {0, remaining, holder[, place, foreign]} or {-1} is what it may be. */
static const struct attack senseless_grants[] = {
    SAYS("+OK\r\n"),
    SAYS(":1\r\n"),
    SAYS("$-1\r\n"),
    SAYS("*-1\r\n"),
    SAYS("*0\r\n"),
    SAYS("*1\r\n:0\r\n"),
    SAYS("*1\r\n:1\r\n"),
    SAYS("*1\r\n:-2\r\n"),
    SAYS("*2\r\n:0\r\n:1000\r\n"),
    SAYS("*2\r\n:-1\r\n:1000\r\n"),
    SAYS("*2\r\n:-5\r\n:1000\r\n"),
    SAYS("*2\r\n:9007199254740992\r\n:1000\r\n"), /* 2^53 */
    SAYS("*2\r\n:9223372036854775807\r\n:1000\r\n"),
    SAYS("*2\r\n:-9223372036854775808\r\n:1000\r\n"),
    SAYS("*2\r\n:5\r\n:-1\r\n"), /* a grant has an end */
    SAYS("*2\r\n:5\r\n:-9223372036854775808\r\n"),
    SAYS("*2\r\n$1\r\n5\r\n:1000\r\n"),
    SAYS("*2\r\n:5\r\n$4\r\n1000\r\n"),
    SAYS("*2\r\n:5\r\n*0\r\n"),
    SAYS("*2\r\n*1\r\n:5\r\n:1000\r\n"),
    SAYS("*3\r\n:5\r\n:1000\r\n$1\r\n1\r\n"),
    SAYS("*4\r\n:5\r\n:1000\r\n:1\r\n:1\r\n"),
    SAYS("*3\r\n:0\r\n:1000\r\n:5\r\n"),
    SAYS("*3\r\n:0\r\n:1000\r\n$-1\r\n"),
    SAYS("*4\r\n:0\r\n:1000\r\n$4\r\nthey\r\n:1\r\n"),
    SAYS("*5\r\n:0\r\n:1000\r\n$4\r\nthey\r\n:0\r\n:0\r\n"),
    SAYS("*5\r\n:0\r\n:1000\r\n$4\r\nthey\r\n:-1\r\n:0\r\n"),
    SAYS("*5\r\n:0\r\n:1000\r\n$4\r\nthey\r\n$1\r\n1\r\n:0\r\n"),
    SAYS("*6\r\n:0\r\n:1000\r\n$4\r\nthey\r\n:1\r\n:0\r\n:0\r\n"),
};

static void an_acquire(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(senseless_grants); i++)
        expect_no_lock(&senseless_grants[i]);
}

/* RESP3, which we never ask for, and numbers that are none. */
static const struct attack not_our_protocol[] = {
    SAYS("_\r\n"),
    SAYS("#t\r\n"),
    SAYS(",1.5\r\n"),
    SAYS("(3492890328409238509324850943850943825024385\r\n"),
    SAYS("=15\r\ntxt:Some string\r\n"),
    SAYS("!21\r\nSYNTAX invalid syntax\r\n"),
    SAYS("%1\r\n:5\r\n:1000\r\n"),
    SAYS("~2\r\n:5\r\n:1000\r\n"),
    SAYS(">2\r\n:5\r\n:1000\r\n"),
    SAYS("|1\r\n:5\r\n:1000\r\n*2\r\n:5\r\n:1000\r\n"),
    SAYS("*2\r\n,5\r\n:1000\r\n"),
    SAYS("*2\r\n:5\r\n_\r\n"),
    SAYS("*2\r\n:9223372036854775808\r\n:1000\r\n"),
    SAYS("*2\r\n:-9223372036854775809\r\n:1000\r\n"),
    SAYS("*2\r\n:" TEXT_OF_64_ZEROES "5\r\n:1000\r\n"),
    SAYS("*2\r\n:05\r\n:1000\r\n"),
    SAYS("*2\r\n:+5\r\n:1000\r\n"),
    SAYS("*2\r\n: 5\r\n:1000\r\n"),
    SAYS("*2\r\n:5 \r\n:1000\r\n"),
    SAYS("*2\r\n:5.0\r\n:1000\r\n"),
    SAYS("*2\r\n:0x5\r\n:1000\r\n"),
    SAYS("*2\r\n:\r\n:1000\r\n"),
    SAYS("*2\n:5\n:1000\n"),
};

static void another_protocol(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(not_our_protocol); i++)
        expect_no_lock(&not_our_protocol[i]);
}

/* What there is of a holder's name, and of an error, is shown, and can do nothing to a terminal. */
static void what_is_quoted_is_printable(void **state)
{
    (void)state;
    static const struct attack attacks[] = {
        SAYS("*3\r\n:0\r\n:1000\r\n$9\r\n\x1b[2J\xff\xfe\x07\x80z\r\n"),
        SAYS("-ERR \x1b]0;owned\x07 \xc3\x28 \xf0\x9f\x92\xa9\r\n"),
        SAYS("-LOADING \x1b[31m\r\n"),
        SAYS("-NOPERM \x9b\x01\r\n"),
    };
    hf_hold *hold;
    for (size_t i = 0; i < COUNT(attacks); i++) {
        impostor_attack(&impostor, AT_CALL, &attacks[i]);
        assert_int_not_equal(hf_acquire(victim, "lock", NULL, &hold, &error), HF_OK);
        assert_true(strlen(error.text) > 0);
        expect_printable(error.text);
        impostor_relent(&impostor);
        expect_works();
    }
}

/* ---- Renewals and releases ------------------------------------------------------------------- */

static const struct attack senseless_numbers[] = {
    SAYS("+OK\r\n"),
    SAYS("$-1\r\n"),
    SAYS("$5\r\n10000\r\n"),
    SAYS("*0\r\n"),
    SAYS("*2\r\n:1\r\n:2\r\n"),
    SAYS("*2\r\n:1\r\n:0\r\n"),
    SAYS("*3\r\n:1\r\n:1\r\n:1\r\n"),
    SAYS("*1\r\n:9223372036854775807\r\n"),
    SAYS("*1\r\n$1\r\n1\r\n"),
    SAYS("*1\r\n*1\r\n:1\r\n"),
    SAYS("*1\r\n*2\r\n:1\r\n:1\r\n"),
};

/* They come every 50 ms, and none is answered in a way that makes sense. */
static void renewals(void **state)
{
    (void)state;
    hf_hold *hold = acquire_with(
        victim, HF_ACQUIRE(.lease_ms = LONG_MS, .renew_interval_ms = 50, .wait_ms = 10000));
    for (size_t i = 0; i < COUNT(senseless_numbers); i++) {
        uint64_t renewals = stats_of(victim)->renewals;
        WAIT_UNTIL(stats_of(victim)->renewals > renewals, 10000); /* it is renewed again */
        long long before = impostor_attacked(&impostor);
        impostor_attack(&impostor, AT_CALL, &senseless_numbers[i]);
        WAIT_UNTIL(impostor_attacked(&impostor) > before, 10000);
        renewals = stats_of(victim)->renewals;
        WAIT_UNTIL(impostor_attacked(&impostor) > before + 1, 10000);
        assert_int_equal(stats_of(victim)->renewals, renewals);
        assert_true(hf_is_valid(hold));
        assert_in_range(hf_remaining_ms(hold), LONG_MS / 2, LONG_MS);
        impostor_relent(&impostor);
    }
    WAIT_UNTIL(hf_hold_state(hold) == HF_SAFE, 10000);
    (void)hf_release(&hold, &error);
    expect_works();
}

static void a_release(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(senseless_numbers); i++) {
        hf_hold *hold = acquire_with(victim, HF_ACQUIRE(.wait_ms = 10000));
        impostor_attack(&impostor, AT_CALL, &senseless_numbers[i]);
        hf_status status = hf_release(&hold, &error);
        if (status != HF_EUNKNOWN && status != HF_EUNAVAILABLE)
            fail_msg("%s: %s", senseless_numbers[i].name, hf_status_name(status));
        impostor_relent(&impostor);
    }
    expect_works(); /* all were given back in the end */
    expect_only_fences();
}

static void an_inspection(void **state)
{
    (void)state;
    static const struct attack attacks[] = {
        SAYS(":1\r\n"),
        SAYS("*-1\r\n"),
        SAYS("*6\r\n$-1\r\n:-2\r\n$0\r\n\r\n:0\r\n*0\r\n:0\r\n"),
        SAYS("*7\r\n:1\r\n:-2\r\n$0\r\n\r\n:0\r\n*0\r\n:0\r\n*0\r\n"),
        SAYS("*7\r\n$1\r\no\r\n:9\r\n$0\r\n\r\n:1\r\n*1\r\n$1\r\nv\r\n:0\r\n*0\r\n"),
        SAYS("*7\r\n$1\r\no\r\n:9\r\n$0\r\n\r\n:1\r\n*2\r\n:1\r\n:1\r\n:0\r\n*0\r\n"),
        SAYS("*7\r\n$1\r\no\r\n:9\r\n$0\r\n\r\n:0\r\n*0\r\n:1\r\n*1\r\n$1\r\nv\r\n"),
    };
    static hf_inspection seen;
    expect_works();
    for (size_t i = 0; i < COUNT(attacks); i++) {
        impostor_attack(&impostor, AT_CALL, &attacks[i]);
        hf_status status = hf_inspect(victim, "lock", 0, &seen, &error);
        if (status != HF_EUNAVAILABLE && status != HF_EUNKNOWN)
            fail_msg("%s: %s", attacks[i].name, hf_status_name(status));
        impostor_relent(&impostor);
        expect_works();
    }
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin_test, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_acquire), TEST(another_protocol), TEST(what_is_quoted_is_printable),
        TEST(renewals),   TEST(a_release),        TEST(an_inspection),
    };
    return cmocka_run_group_tests_name("answers that make no sense", tests, begin, end_all);
}
