/* SPDX-License-Identifier: MIT */
/* Errands: what a copy says, what is made of the answer, and what becomes of an errand that gets
 * none; on one server, and on those of a quorum. */
#include <string.h>

#include "gate.h"
#include "stage.h"

#define S         the_stage
#define VALUE     HF__SCRIPT_VALUE, .name = {"x", 1}, .letters = "v"
#define COPY(n)   (&S.node.errand_log[n])
#define FIRST_RUN "0000000000000000000000000000000000000001"
#define NEXT_RUN  "0000000000000000000000000000000000000002"

static const hf__slice words[] = {{"one", 3}, {"two", 3}};
static const hf__slice keys[] = {{"a", 1}, {"b", 1}};

static const hf__errand write_x = {.script = HF__SCRIPT_WRITE_HELD,
                                   .name = {"x", 1},
                                   .letters = "=hl",
                                   .keys = keys,
                                   .key_count = 2,
                                   .words = words,
                                   .word_count = 2};

/* ---- What is sent ---- */

static void it_says_what_it_was_given_and_of_which_copy(void **state)
{
    (void)state;
    SETUP();
    assert_true(stage_start_errand(1, &write_x, 0));
    EXPECT(1, HF_OK);
    assert_int_equal(S.node.errands, 2); /* by its SHA-1, then whole */
    for (int i = 0; i < 2; i++) {
        assert_int_equal(COPY(i)->script, HF__SCRIPT_WRITE_HELD);
        assert_int_equal(COPY(i)->whole, i == 1);
        assert_string_equal(COPY(i)->run_id, FIRST_RUN);
        assert_string_equal(COPY(i)->again, "0"); /* the first has done nothing */
        assert_int_equal(COPY(i)->keys, 5);
        assert_string_equal(COPY(i)->first_key, "x");
        assert_string_equal(COPY(i)->last_key, "b");
        assert_int_equal(COPY(i)->words, 2);
        assert_string_equal(COPY(i)->last_word, "two");
    }
    FINISH();
}

static void a_script_is_sent_whole_once(void **state)
{
    (void)state;
    SETUP();
    for (int i = 0; i < 3; i++) {
        ERRAND(1, VALUE);
        EXPECT(1, HF_OK);
    }
    assert_int_equal(S.node.errands, 4);
    ERRAND(1, HF__SCRIPT_STOCK_LOOK, .name = {"x", 1}, .letters = "srput");
    EXPECT(1, HF_OK);
    assert_int_equal(S.node.errands, 6);
    assert_int_equal(COPY(5)->keys, 5);
    assert_int_equal(COPY(5)->words, 0);
    FINISH();
}

static void side_keys_have_the_side_prefix(void **state)
{
    (void)state;
    SETUP(.side_prefix = "shop:");
    ERRAND(1, HF__SCRIPT_WRITE_FENCED, .prefix = {"p:", 2}, .name = {"x", 1}, .letters = "gl");
    EXPECT(1, HF_OK);
    assert_int_equal(strncmp(COPY(0)->first_key, "shop:hf:g:{", 11), 0);
    assert_int_equal(strncmp(COPY(0)->last_key, "shop:hf:l:{", 11), 0);
    assert_non_null(strstr(COPY(0)->last_key, "}p:x"));
    FINISH();
}

/* ---- Again ---- */

static void a_copy_after_a_cut_says_so(void **state)
{
    (void)state;
    SETUP();
    ERRAND(1, VALUE);
    EXPECT(1, HF_OK);
    S.mute = true;
    ERRAND(1, VALUE, .words = words, .word_count = 1);
    EXPECT_WAITING(1);
    assert_int_equal(S.node.errands, 3);
    CUT();
    S.mute = false;
    ADVANCE_MS(100);
    EXPECT(1, HF_OK);
    assert_int_equal(S.node.errands, 4);
    assert_string_equal(COPY(2)->again, "0");
    assert_string_equal(COPY(3)->again, "1");
    assert_string_equal(COPY(3)->run_id, FIRST_RUN);
    assert_string_equal(COPY(3)->last_word, "one");
    ERRAND(1, VALUE); /* another one has nothing to do with that */
    EXPECT(1, HF_OK);
    assert_string_equal(COPY(4)->again, "0");
    FINISH();
}

static void a_copy_to_another_process_has_its_run_id(void **state)
{
    (void)state;
    SETUP();
    ERRAND(1, VALUE);
    S.mute = true;
    ERRAND(1, VALUE);
    CUT();
    node_restart(&S.node);
    S.mute = false;
    ADVANCE_MS(100);
    EXPECT(1, HF_OK);
    assert_int_equal(S.node.errands, 5); /* it does not know the script any more */
    assert_string_equal(COPY(3)->run_id, NEXT_RUN);
    assert_string_equal(COPY(3)->again, "1");
    assert_true(COPY(4)->whole);
    assert_string_equal(COPY(4)->run_id, NEXT_RUN);
    assert_string_equal(COPY(4)->again, "1");
    FINISH();
}

static void one_that_never_left_is_not_a_second_copy(void **state)
{
    (void)state;
    SETUP();
    S.stalled = 1;
    ERRAND(1, VALUE);
    EXPECT_WAITING(1); /* for the connection */
    S.stalled = 0;
    ADVANCE_MS(1);
    EXPECT(1, HF_OK);
    assert_string_equal(COPY(0)->again, "0");
    FINISH();
}

/* ---- Answers ---- */

static void numbers_and_a_text_are_read(void **state)
{
    (void)state;
    SETUP();
    S.node.errand_says = ":-7\r\n";
    ERRAND(1, VALUE);
    EXPECT(1, HF_OK);
    assert_int_equal(ANSWER(1)->numbers.count, 1);
    assert_int_equal(ANSWER(1)->numbers.number[0], -7);
    S.node.errand_says = "*3\r\n:1\r\n:2\r\n$4\r\nabcd\r\n";
    ERRAND(1, VALUE);
    EXPECT(1, HF_OK);
    assert_int_equal(ANSWER(1)->numbers.count, 2);
    assert_int_equal(ANSWER(1)->numbers.number[1], 2);
    assert_int_equal(hf__buffer_length(&ANSWER(1)->value), 4);
    assert_memory_equal(hf__buffer_front(&ANSWER(1)->value), "abcd", 4);
    S.node.errand_says = "*2\r\n:1\r\n$0\r\n\r\n";
    ERRAND(1, VALUE);
    EXPECT(1, HF_OK);
    assert_int_equal(hf__buffer_length(&ANSWER(1)->value), 0);
    S.node.errand_says =
        "*16\r\n:1\r\n:2\r\n:3\r\n:4\r\n:5\r\n:6\r\n:7\r\n:8\r\n:9\r\n:10\r\n:11\r\n:12\r\n"
        ":13\r\n:14\r\n:15\r\n:16\r\n";
    ERRAND(1, VALUE);
    EXPECT(1, HF_OK);
    assert_int_equal(ANSWER(1)->numbers.count, HF__NUMBERS_MAX);
    assert_int_equal(ANSWER(1)->numbers.number[15], 16);
    FINISH();
}

static void what_makes_no_sense_ends_the_connection(void **state)
{
    (void)state;
    static const char *const replies[] = {
        "$1\r\nx\r\n",
        "$-1\r\n",
        "+OK\r\n",
        "*0\r\n",
        "*1\r\n$1\r\nx\r\n",
        "*2\r\n$1\r\nx\r\n:1\r\n",
        "*3\r\n:1\r\n$1\r\nx\r\n:1\r\n",
        "*2\r\n:1\r\n$-1\r\n",
        "*1\r\n*1\r\n:1\r\n",
        "*17\r\n:1\r\n:2\r\n:3\r\n:4\r\n:5\r\n:6\r\n:7\r\n:8\r\n:9\r\n:10\r\n:11\r\n:12\r\n:13\r\n"
        ":14\r\n:15\r\n:16\r\n:17\r\n",
    };
    for (size_t i = 0; i < sizeof(replies) / sizeof(replies[0]); i++) {
        SETUP();
        ERRAND(1, VALUE);
        int connects = S.connects;
        node_say(&S.node, replies[i]);
        ERRAND(1, VALUE);
        SETTLE(1);
        EXPECT(1, HF_OK); /* by the next copy, over the next connection */
        assert_int_equal(S.connects, connects + 1);
        assert_string_equal(COPY(3)->again, "1");
        FINISH();
    }
}

static void an_error_is_told(void **state)
{
    (void)state;
    SETUP();
    ERRAND(1, VALUE);
    node_say(&S.node, "-OOM command not allowed\r\n");
    ERRAND(1, VALUE);
    EXPECT(1, HF_EUNAVAILABLE);
    EXPECT_TEXT(1, "out of memory");
    node_say(&S.node, "-ERR something else\r\n");
    ERRAND(1, VALUE);
    EXPECT(1, HF_ESERVER);
    FINISH();
}

/* What the first copy has done, nobody can tell; perhaps it has sold something. */
static void an_error_does_not_hide_that_a_copy_was_lost(void **state)
{
    (void)state;
    SETUP();
    ERRAND(1, VALUE);
    S.mute = true;
    ERRAND(1, VALUE);
    CUT();
    S.mute = false;
    S.node.errand_says = "-ERR something else\r\n";
    ADVANCE_MS(100);
    EXPECT(1, HF_EUNKNOWN);
    EXPECT_TEXT(1, "something else");
    ERRAND(1, VALUE);
    EXPECT(1, HF_ESERVER);
    FINISH();
}

static void nor_does_a_server_that_lets_nobody_in(void **state)
{
    (void)state;
    SETUP();
    ERRAND(1, VALUE);
    S.mute = true;
    ERRAND(1, VALUE);
    CUT();
    S.mute = false;
    node_say(&S.node, "-NOAUTH Authentication required.\r\n");
    ADVANCE_MS(100);
    EXPECT(1, HF_EUNKNOWN);
    EXPECT_TEXT(1, "NOAUTH");
    FINISH();
}

/* ---- Without an answer ---- */

static void what_was_sent_is_unknown(void **state)
{
    (void)state;
    SETUP(.call_timeout_ms = 1000, .reply_timeout_ms = 5000);
    ERRAND(1, VALUE);
    S.mute = true;
    ERRAND(1, VALUE);
    ADVANCE_MS(999);
    EXPECT_WAITING(1);
    ADVANCE_MS(1);
    EXPECT(1, HF_EUNKNOWN);
    EXPECT_TEXT(1, "node:6379 gave no answer in time");
    S.mute = false;
    ADVANCE_MS(10000); /* its answer finds nobody */
    ERRAND(1, VALUE);
    EXPECT(1, HF_OK);
    FINISH();
}

static void what_was_not_sent_was_not_done(void **state)
{
    (void)state;
    SETUP(.call_timeout_ms = 1000);
    S.refuses = true;
    ERRAND(1, VALUE);
    SETTLE(1);
    EXPECT(1, HF_EUNAVAILABLE);
    assert_int_equal(S.node.errands, 0);
    S.refuses = false;
    S.swallows = true;
    ADVANCE_MS(1000);
    ERRAND(1, VALUE);
    SETTLE(1);
    EXPECT(1, HF_EUNAVAILABLE);
    FINISH();
}

/* A copy is out: that no connection is to be had now does not make it undone. */
static void what_was_sent_once_stays_unknown(void **state)
{
    (void)state;
    SETUP(.call_timeout_ms = 1000);
    ERRAND(1, VALUE);
    S.mute = true;
    ERRAND(1, VALUE);
    S.refuses = true;
    CUT();
    SETTLE(1);
    EXPECT(1, HF_EUNKNOWN);
    S.mute = S.refuses = false;
    ADVANCE_MS(2000);
    ERRAND(1, VALUE);
    EXPECT(1, HF_OK);
    S.mute = true;
    ERRAND(1, VALUE);
    CUT();
    S.mute = false;
    node_say(&S.node, "-OOM command not allowed\r\n");
    SETTLE(1);
    EXPECT(1, HF_EUNKNOWN); /* the first copy may have been served */
    FINISH();
}

static void closing_ends_it(void **state)
{
    (void)state;
    SETUP();
    ERRAND(1, VALUE);
    S.mute = true;
    ERRAND(1, VALUE);
    CLOSE(2);
    EXPECT(1, HF_ECLOSED);
    EXPECT(2, HF_OK);
    ERRAND(3, VALUE);
    EXPECT(3, HF_ECLOSED);
    FINISH();
}

static bool run_without(long number, int servers)
{
    bool done = false;
    SETUP(.servers = servers);
    for (int i = 0; i < S.server_count; i++)
        S.nodes[i].errand_says = "*2\r\n:1\r\n$4\r\nabcd\r\n";
    gate_fail_at(number);
    if (stage_start_errand(1, &write_x, 0)) {
        SETTLE(1);
        hf_status status = S.calls[1].error.status;
        if (status != HF_OK && status != HF_ENOMEM && status != HF_EUNKNOWN)
            assert_int_equal(status, HF_EUNAVAILABLE);
    }
    done = gate_open();
    ADVANCE_MS(5000);
    assert_true(stage_start_errand(2, &write_x, 0));
    SETTLE(2);
    EXPECT(2, HF_OK);
    FINISH();
    return done;
}

static void every_allocation_fails_once(void **state)
{
    (void)state;
    for (int servers = 0; servers <= 3; servers += 3) {
        long number = 0;
        while (run_without(number, servers))
            assert_true(++number < 1000);
        assert_true(number >= 4);
    }
}

/* ---- Denied ---- */

#define KEY_DENIED \
    "-NOPERM this user has no permissions to access one of the keys used as arguments\r\n"

static void a_denied_key_is_asked_about(void **state)
{
    (void)state;
    SETUP();
    hf__errand errand = write_x;
    S.node.denied_key = "b";
    for (size_t i = 0; i <= errand.key_count; i++) {
        errand.key_count = i;
        node_say(&S.node, KEY_DENIED);
        assert_true(stage_start_errand(1, &errand, 0));
        EXPECT(1, HF_EDENIED);
        EXPECT_TEXT(1, "node:6379 denies us access to b (");
        assert_int_equal(S.node.asked_keys, 3 + i); /* its own */
        errand.key_count = write_x.key_count;
    }
    FINISH();
}

/* ---- All servers of a quorum ---- */

static void expect_said(int heard)
{
    int count = 0;
    for (int i = 0; i < S.server_count; i++)
        count += S.by_server[i].count > 0;
    assert_int_equal(count, heard);
}

static void a_majority_of_answers_ends_it(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    S.nodes[0].errand_says = ":1\r\n";
    S.nodes[2].errand_says = "*2\r\n:1\r\n:31\r\n";
    STALL(1);
    ERRAND(1, VALUE);
    EXPECT(1, HF_OK);
    expect_said(2);
    assert_int_equal(S.by_server[0].number[0], 1);
    assert_int_equal(S.by_server[1].count, 0);
    assert_int_equal(S.by_server[2].number[1], 31);
    REVIVE(1);
    ADVANCE_MS(5000); /* nobody waits for that one */
    expect_said(2);
    FINISH();
}

static void a_minority_that_is_down_does_no_harm(void **state)
{
    (void)state;
    SETUP(.servers = 5);
    KILL(0);
    KILL(4);
    ERRAND(1, VALUE);
    SETTLE(1);
    EXPECT(1, HF_OK);
    expect_said(3);
    FINISH();
}

static void without_a_majority_each_server_is_named(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    for (int i = 0; i < 3; i++)
        KILL(i);
    ERRAND(1, VALUE);
    SETTLE(1);
    EXPECT(1, HF_EUNAVAILABLE);
    EXPECT_TEXT(1, "3 of 3 did not answer");
    EXPECT_TEXT(1, "refused");
    FINISH();
}

/* One has done it, so it is not undone. */
static void what_a_minority_did_is_unknown(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    KILL(0);
    KILL(1);
    ERRAND(1, VALUE);
    SETTLE(1);
    EXPECT(1, HF_EUNKNOWN);
    EXPECT_TEXT(1, "2 of 3 did not answer");
    FINISH();
}

static void a_silent_majority_is_unknown(void **state)
{
    (void)state;
    SETUP(.servers = 3, .call_timeout_ms = 1000);
    ERRAND(1, VALUE);
    EXPECT(1, HF_OK);
    ADVANCE_MS(1000);
    STALL(0);
    STALL(1);
    ERRAND(1, VALUE);
    SETTLE(1);
    EXPECT(1, HF_EUNKNOWN);
    EXPECT_TEXT(1, "gave no answer in time");
    FINISH();
}

static void one_server_of_them_can_be_asked(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    hf__call *call = &S.calls[1];
    KILL(0);
    KILL(1);
    *call = (hf__call){.kind = HF__CALL_QUERY, .answer = ANSWER(1)};
    call->query = hf__query_new_errand(&(hf__errand){.script = VALUE});
    hf__query_ask(call->query, 2);
    hf__core_step(S.core, &(hf__event){.kind = HF__EVENT_START, .now = S.now, .call = call});
    stage_run();
    SETTLE(1);
    EXPECT(1, HF_OK);
    assert_int_equal(S.nodes[2].errands, 2);
    assert_int_equal(ANSWER(1)->numbers.number[0], 1);
    FINISH();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_says_what_it_was_given_and_of_which_copy),
        cmocka_unit_test(a_script_is_sent_whole_once),
        cmocka_unit_test(side_keys_have_the_side_prefix),
        cmocka_unit_test(a_copy_after_a_cut_says_so),
        cmocka_unit_test(a_copy_to_another_process_has_its_run_id),
        cmocka_unit_test(one_that_never_left_is_not_a_second_copy),
        cmocka_unit_test(numbers_and_a_text_are_read),
        cmocka_unit_test(what_makes_no_sense_ends_the_connection),
        cmocka_unit_test(an_error_is_told),
        cmocka_unit_test(an_error_does_not_hide_that_a_copy_was_lost),
        cmocka_unit_test(nor_does_a_server_that_lets_nobody_in),
        cmocka_unit_test(what_was_sent_is_unknown),
        cmocka_unit_test(what_was_not_sent_was_not_done),
        cmocka_unit_test(what_was_sent_once_stays_unknown),
        cmocka_unit_test(closing_ends_it),
        cmocka_unit_test(every_allocation_fails_once),
        cmocka_unit_test(a_denied_key_is_asked_about),
        cmocka_unit_test(a_majority_of_answers_ends_it),
        cmocka_unit_test(a_minority_that_is_down_does_no_harm),
        cmocka_unit_test(without_a_majority_each_server_is_named),
        cmocka_unit_test(what_a_minority_did_is_unknown),
        cmocka_unit_test(a_silent_majority_is_unknown),
        cmocka_unit_test(one_server_of_them_can_be_asked),
    };
    stage_install_gate();
    return cmocka_run_group_tests_name("errand", tests, NULL, NULL);
}
