/* SPDX-License-Identifier: MIT */
/* How queries travel: they end in time, survive a broken connection, are told what the server has
 * against them, and leave nothing behind when nobody waits for them any more. */
#include <string.h>

#include "core/state.h" /* only to see that the core has forgotten them */
#include "stage.h"

#define S           the_stage
#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

enum { KINDS = 4 };

/* One query of each kind, in calls 1 to 4. */
static void ask_all(void)
{
    INSPECT(1, "x");
    REVOKE(2, "x", "why");
    BREAK(3, "x", "somebody else", 7);
    SCAN(4, "*", 0);
}

static void expect_all(hf_status status)
{
    for (int i = 1; i <= KINDS; i++)
        EXPECT(i, status);
}

static void expect_forgotten(void)
{
    assert_int_equal(S.core->queries.count, 0);
}

static void one_round_trip_each(void **state)
{
    (void)state;
    SETUP();
    ask_all();
    expect_all(HF_OK);
    expect_forgotten();
    assert_int_equal(S.connects, 1);
    assert_int_equal(S.node.inspects + S.node.revokes + S.node.breaks + S.node.scans, KINDS);
    ADVANCE_MS(5000);
    assert_true(hf__is_never(hf__core_wake(S.core)));
    FINISH();
}

static void silence_is_unknown_in_time(void **state)
{
    (void)state;
    SETUP(.call_timeout_ms = 700, .reply_timeout_ms = 60000);
    ACQUIRE(9, "warm");
    S.deaf = true;
    ask_all();
    ADVANCE_MS(699);
    for (int i = 1; i <= KINDS; i++)
        EXPECT_WAITING(i);
    ADVANCE_MS(1);
    expect_all(HF_EUNKNOWN);
    FINISH(); /* their requests are still in flight */
}

static void an_answer_that_comes_too_late_is_for_nobody(void **state)
{
    (void)state;
    SETUP(.call_timeout_ms = 700, .reply_timeout_ms = 60000);
    ACQUIRE(9, "warm");
    S.mute = true;
    ask_all();
    ADVANCE_MS(700);
    expect_all(HF_EUNKNOWN);
    for (int i = 1; i <= KINDS; i++) { /* the memory of who asked is gone */
        memset(&S.calls[i], 0xee, sizeof(S.calls[i]));
        S.calls[i].kind = HF__CALL_EXTEND;
    }
    S.mute = false;
    stage_run();
    expect_forgotten();
    ACQUIRE(5, "y");
    EXPECT(5, HF_OK);
    assert_int_equal(S.connects, 1);
    FINISH();
}

static void no_connection_is_unavailable(void **state)
{
    (void)state;
    SETUP();
    S.refuses = true;
    ask_all();
    EXPECT(1, HF_EUNAVAILABLE); /* with its attempt; the others wait for the next */
    ADVANCE_MS(200);
    expect_all(HF_EUNAVAILABLE);
    EXPECT_TEXT(1, "refused");
    expect_forgotten();
    FINISH();
}

static void a_connection_that_takes_too_long_is_unavailable(void **state)
{
    (void)state;
    SETUP(.call_timeout_ms = 500, .connect_timeout_ms = 60000);
    S.swallows = true;
    ask_all();
    ADVANCE_MS(500);
    for (int i = 1; i <= KINDS; i++) {
        assert_true(S.calls[i].done);
        assert_true(S.calls[i].error.text[0] != '\0');
        assert_int_equal(S.calls[i].error.status, HF_EUNAVAILABLE); /* nothing was sent */
    }
    expect_forgotten();
    FINISH();
}

static void a_cut_is_survived(void **state)
{
    (void)state;
    for (int heard = 0; heard < 2; heard++) {
        SETUP();
        ACQUIRE(9, "warm");
        S.mute = heard == 1;
        S.deaf = heard == 0;
        ask_all();
        CUT();
        S.mute = S.deaf = false;
        ADVANCE_MS(30);
        expect_all(HF_OK);
        assert_int_equal(S.node.inspects, 1 + heard);
        expect_forgotten();
        FINISH();
    }
}

/* It may have been carried out: that nobody answers now does not make it undone. */
static void a_cut_and_then_no_connection_is_not_the_end(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x");
    uint64_t fence = FENCE(1);
    S.mute = true;
    BREAK(2, "x", node_get(&S.node, "x"), fence);
    S.refuses = true;
    CUT();
    S.mute = false;
    ADVANCE_MS(100);
    EXPECT_WAITING(2);
    S.refuses = false;
    ADVANCE_MS(1100);
    EXPECT(2, HF_OK);
    assert_true(ANSWER(2)->number > fence);
    FINISH();
}

/* A copy is out; that the next one is refused says nothing about the first. */
static void a_cut_and_then_a_refusal_is_unknown(void **state)
{
    (void)state;
    static const struct {
        const char *reply;
        hf_status status;
    } table[] = {{"-LOADING Redis is loading the dataset in memory\r\n", HF_EUNKNOWN},
                 {"-NOPERM this user has no permissions\r\n", HF_EDENIED}};
    for (size_t i = 0; i < COUNT(table); i++) {
        SETUP();
        ACQUIRE(1, "x");
        S.mute = true;
        BREAK(2, "x", node_get(&S.node, "x"), FENCE(1));
        CUT();
        S.mute = false;
        S.node.always = table[i].reply;
        ADVANCE_MS(30);
        EXPECT(2, table[i].status);
        expect_forgotten();
        FINISH();
    }
}

static void trouble_with_the_server_is_told_when_time_is_up(void **state)
{
    (void)state;
    SETUP(.call_timeout_ms = 500, .connect_timeout_ms = 60000);
    S.refuses = true;
    INSPECT(1, "x");
    EXPECT(1, HF_EUNAVAILABLE);
    S.refuses = false;
    S.swallows = true;
    INSPECT(2, "x");
    ADVANCE_MS(500);
    EXPECT(2, HF_EUNAVAILABLE);
    EXPECT_TEXT(2, "refused"); /* what happened last */
    expect_forgotten();
    FINISH();
}

static void closing_ends_them(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(9, "warm");
    S.mute = true;
    ask_all();
    CLOSE(5);
    expect_all(HF_ECLOSED);
    S.mute = false;
    stage_run();
    EXPECT(5, HF_OK);
    expect_forgotten();
    ask_all();
    expect_all(HF_ECLOSED);
    expect_forgotten();
    FINISH();
}

static void closing_ends_those_that_wait_for_a_connection(void **state)
{
    (void)state;
    SETUP();
    S.swallows = true;
    ask_all();
    CLOSE(5);
    expect_all(HF_ECLOSED);
    EXPECT(5, HF_OK);
    expect_forgotten();
    FINISH();
}

static void errors_are_told(void **state)
{
    (void)state;
    static const struct {
        const char *reply;
        hf_status status;
    } table[] = {
        {"-LOADING Redis is loading the dataset in memory\r\n", HF_EUNAVAILABLE},
        {"-BUSY Redis is busy running a script.\r\n", HF_EUNAVAILABLE},
        {"-NOPERM this user has no permissions\r\n", HF_EDENIED},
        {"-WRONGTYPE Operation against a key\r\n", HF_ESERVER},
        {"-ERR unknown\r\n", HF_ESERVER},
    };
    for (size_t i = 0; i < COUNT(table); i++) {
        SETUP();
        ACQUIRE(9, "warm");
        S.node.always = table[i].reply;
        ask_all();
        expect_all(table[i].status);
        expect_forgotten();
        S.node.always = NULL;
        ask_all();
        expect_all(HF_OK);
        FINISH();
    }
}

static void a_key_of_another_type_is_an_error(void **state)
{
    (void)state;
    SETUP();
    node_set(&S.node, "x", "", -1);
    node_find(&S.node, "x", 1)->kind = NODE_HASH;
    INSPECT(1, "x");
    EXPECT(1, HF_ESERVER);
    ACQUIRE(2, "x", .wait_ms = 5000);
    EXPECT(2, HF_ESERVER);
    FINISH();
}

static void forgotten_scripts_are_sent_whole(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(9, "warm");
    S.node.knows_scripts = false;
    ask_all();
    expect_all(HF_OK);
    assert_int_equal(S.node.evals, 3);
    FINISH();
}

/* Which is what a proxy would say that knows no EVAL either. */
static void a_script_that_is_never_known_ends(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(9, "warm");
    S.node.always = "-NOSCRIPT No matching script.\r\n";
    ask_all();
    for (int i = 1; i <= KINDS; i++) {
        assert_true(S.calls[i].done);
        assert_int_not_equal(S.calls[i].error.status, HF_OK);
    }
    FINISH();
}

static void senseless_numbers_are_asked_for_again(void **state)
{
    (void)state;
    static const char *const nonsense[] = {"+OK\r\n", "$1\r\n1\r\n", "*0\r\n",
                                           "$-1\r\n", ":-1\r\n",     ":-9223372036854775808\r\n"};
    for (size_t i = 0; i < COUNT(nonsense); i++) {
        SETUP();
        ACQUIRE(1, "x");
        node_say(&S.node, nonsense[i]);
        REVOKE(2, "x", "why");
        EXPECT_WAITING(2);
        ADVANCE_MS(30);
        EXPECT(2, HF_OK);
        assert_true(ANSWER(2)->number == 1);
        FINISH();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_round_trip_each),
        cmocka_unit_test(silence_is_unknown_in_time),
        cmocka_unit_test(an_answer_that_comes_too_late_is_for_nobody),
        cmocka_unit_test(no_connection_is_unavailable),
        cmocka_unit_test(a_connection_that_takes_too_long_is_unavailable),
        cmocka_unit_test(a_cut_is_survived),
        cmocka_unit_test(a_cut_and_then_no_connection_is_not_the_end),
        cmocka_unit_test(a_cut_and_then_a_refusal_is_unknown),
        cmocka_unit_test(trouble_with_the_server_is_told_when_time_is_up),
        cmocka_unit_test(closing_ends_them),
        cmocka_unit_test(closing_ends_those_that_wait_for_a_connection),
        cmocka_unit_test(errors_are_told),
        cmocka_unit_test(a_key_of_another_type_is_an_error),
        cmocka_unit_test(forgotten_scripts_are_sent_whole),
        cmocka_unit_test(a_script_that_is_never_known_ends),
        cmocka_unit_test(senseless_numbers_are_asked_for_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
