/* SPDX-License-Identifier: MIT */
/* Questions about a lock on a quorum: all servers are asked at once, the answer is there as soon as
 * it is certain, and if it never is, what happened at each server is told. */
#include <string.h>

#include "core/state.h" /* to have connections for messages */
#include "gate.h"
#include "votes.h"
#include "watch.h"

#define S          the_stage
#define SEEN(call) ANSWER(call)->inspection

static void hold_at(int node, const char *value, int64_t ttl_ms, uint64_t fence)
{
    put_vote(node, "x", value, ttl_ms, fence);
}

static int count_inspects(void)
{
    int count = 0;
    for (int i = 0; i < S.server_count; i++)
        count += S.nodes[i].inspects;
    return count;
}

/* ---- The answer ---- */

static void a_majority_holds_it(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    hold_at(0, VALUE(ANN, 1), 5000, 70);
    hold_at(1, VALUE(ANN, 2), 4000, 70);
    put_waiter(1, "x", VALUE(BOB, 1), 1);
    INSPECT(1, "x");
    EXPECT(1, HF_OK);
    assert_true(SEEN(1)->held && !SEEN(1)->shared);
    assert_int_equal(SEEN(1)->fence, 70);
    assert_int_equal(SEEN(1)->remaining_ms, 4000);
    assert_string_equal(SEEN(1)->holders[0].client_id, ANN);
    assert_int_equal(SEEN(1)->queue_length, 1);
    assert_string_equal(SEEN(1)->waiters[0].client_id, BOB);
    assert_int_equal(count_inspects(), 3);
    FINISH();
}

static void nobody_holds_it(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    put_fence(0, "x", 30);
    INSPECT(1, "x");
    EXPECT(1, HF_OK);
    assert_false(SEEN(1)->held);
    hold_at(0, VALUE(ANN, 1), 5000, 70);
    hold_at(1, VALUE(BOB, 1), 5000, 60);
    INSPECT(1, "x");
    EXPECT(1, HF_OK);
    assert_false(SEEN(1)->held); /* a vote each */
    assert_int_equal(SEEN(1)->queue_length, 2);
    FINISH();
}

static void an_owner_holds_it(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    for (int i = 1; i < 3; i++) {
        hold_at(i, "request 7", 5000, 70);
        put_sharer(i, "x", VALUE(ANN, 1), 4000 + i);
    }
    put_sharer(1, "x", VALUE(BOB, 1), 3000); /* at one only */
    INSPECT(1, "x");
    EXPECT(1, HF_OK);
    assert_true(SEEN(1)->held && SEEN(1)->shared);
    assert_string_equal(SEEN(1)->owner, "request 7");
    assert_int_equal(SEEN(1)->hold_count, 1);
    assert_string_equal(SEEN(1)->holders[0].client_id, ANN);
    assert_int_equal(SEEN(1)->holders[0].remaining_ms, 4001);
    FINISH();
}

static void nine_servers_are_asked(void **state)
{
    (void)state;
    SETUP(.servers = HF_SERVERS_MAX, .links = HF_LINKS_MAX);
    for (int i = 0; i < 5; i++)
        hold_at(2 * i, VALUE(ANN, 1), 1000 * (i + 1), 70);
    INSPECT(1, "x");
    EXPECT(1, HF_OK);
    assert_true(SEEN(1)->held);
    assert_int_equal(SEEN(1)->remaining_ms, 1000);
    assert_int_equal(count_inspects(), 9);
    FINISH();
}

/* ---- When it is certain ---- */

static void a_stalled_minority_delays_nothing(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    STALL(1);
    INSPECT(1, "x");
    EXPECT(1, HF_OK);
    assert_false(SEEN(1)->held);
    hold_at(0, VALUE(ANN, 1), 5000, 70);
    hold_at(2, VALUE(ANN, 2), 5000, 70);
    INSPECT(1, "x");
    EXPECT(1, HF_OK);
    assert_true(SEEN(1)->held);
    REVIVE(1); /* its answers come now, and nobody waits for them */
    ADVANCE_MS(5000);
    FINISH();
}

static void a_dead_minority_does_no_harm(void **state)
{
    (void)state;
    SETUP(.servers = 5);
    KILL(0);
    KILL(3);
    for (int i = 0; i < 5; i++)
        hold_at(i, VALUE(ANN, 1), 5000, 70);
    INSPECT(1, "x");
    EXPECT(1, HF_OK);
    assert_true(SEEN(1)->held);
    FINISH();
}

static void the_last_answer_may_decide(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    hold_at(1, VALUE(ANN, 1), 5000, 70);
    STALL(2);
    INSPECT(1, "x");
    EXPECT_WAITING(1); /* the third may be another vote of the same hold */
    hold_at(2, VALUE(ANN, 2), 5000, 70);
    REVIVE(2);
    EXPECT(1, HF_OK);
    assert_true(SEEN(1)->held);
    FINISH();
}

static void what_the_missing_decide_is_not_guessed(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    hold_at(1, VALUE(ANN, 1), 5000, 70);
    KILL(2);
    INSPECT(1, "x");
    EXPECT(1, HF_EUNAVAILABLE);
    EXPECT_TEXT(1, "1 of 3 did not answer, and the others do not agree: node-2:6379: refused");
    FINISH();
}

static void a_server_that_is_awaited_is_waited_for(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    put_fence(0, "x", 30);
    put_fence(2, "x", 30);
    STALL(2);
    hf__call *call = &S.calls[1];
    hf_inspection seen;
    hf__answer answer = {.inspection = &seen, .awaits = 1U << 2};
    *call = (hf__call){.kind = HF__CALL_QUERY, .answer = &answer};
    call->query = hf__query_new(HF__QUERY_INSPECT, HF__SLICE(""), HF__SLICE("x"), HF__SLICE(""), 0);
    hf__event event = {.kind = HF__EVENT_START, .call = call, .now = S.now};
    hf__core_step(S.core, &event);
    stage_run();
    EXPECT_WAITING(1);
    REVIVE(2);
    EXPECT(1, HF_OK);
    assert_int_equal(answer.answered, 7);
    assert_int_equal(answer.knows, 5);
    FINISH();
}

/* ---- When it never is ---- */

static void a_dead_majority_is_told_at_once(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    KILL(0);
    KILL(2);
    INSPECT(1, "x");
    EXPECT(1, HF_EUNAVAILABLE);
    EXPECT_TEXT(1, "2 of 3 did not answer: node-0:6379: refused; node-2:6379: refused");
    FINISH();
}

static void a_stalled_majority_is_told_in_time(void **state)
{
    (void)state;
    SETUP(.servers = 3, .call_timeout_ms = 700);
    INSPECT(1, "x"); /* all are connected now */
    STALL(0);
    STALL(1);
    INSPECT(1, "x");
    ADVANCE_MS(699);
    EXPECT_WAITING(1);
    ADVANCE_MS(1);
    EXPECT(1, HF_EUNKNOWN);
    EXPECT_TEXT(1, "2 of 3 did not answer: node-0:6379 gave no answer in time; node-1:6379 gave");
    REVIVE(0);
    REVIVE(1);
    ADVANCE_MS(5000);
    INSPECT(1, "x");
    EXPECT(1, HF_OK);
    FINISH();
}

static void a_refusal_is_told_with_the_others(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    S.nodes[0].always = "-NOPERM no\r\n";
    S.nodes[1].always = "-NOPERM no\r\n";
    INSPECT(1, "x");
    EXPECT(1, HF_EDENIED);
    EXPECT_TEXT(1, "node-0:6379");
    EXPECT_TEXT(1, "node-1:6379");
    S.nodes[1].always = NULL;
    INSPECT(1, "x");
    EXPECT(1, HF_OK);
    FINISH();
}

static void two_servers_are_both_needed(void **state)
{
    (void)state;
    SETUP(.servers = 2);
    INSPECT(1, "x");
    EXPECT(1, HF_OK);
    KILL(1);
    INSPECT(1, "x");
    EXPECT(1, HF_EUNAVAILABLE);
    FINISH();
}

static void connections_that_break_are_made_again(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    INSPECT(1, "x");
    S.mute = true;
    hold_at(0, VALUE(ANN, 1), 50000, 70);
    hold_at(2, VALUE(ANN, 1), 50000, 70);
    INSPECT(1, "x");
    CUT(); /* with all questions */
    S.mute = false;
    ADVANCE_MS(100);
    EXPECT(1, HF_OK);
    assert_true(SEEN(1)->held);
    FINISH();
}

static void nonsense_of_one_is_asked_for_again(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    INSPECT(1, "x");
    STALL(2);
    node_say(&S.nodes[0], "*1\r\n:1\r\n");
    INSPECT(1, "x");
    EXPECT_WAITING(1);
    ADVANCE_MS(100);
    EXPECT(1, HF_OK);
    FINISH();
}

static void closing_ends_it(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    STALL(0);
    STALL(1);
    INSPECT(1, "x");
    CLOSE(2);
    EXPECT(1, HF_ECLOSED);
    EXPECT(2, HF_OK);
    INSPECT(3, "x");
    EXPECT(3, HF_ECLOSED);
    FINISH();
}

/* ---- What is for one server ---- */

static void facts_and_names_are_of_one_server(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    put_fence(0, "x", 7);
    KILL(1); /* the first is asked, and no other */
    EXAMINE(1);
    EXPECT(1, HF_OK);
    assert_string_equal(S.examination.run_id, S.nodes[0].run_id);
    SCAN(1, "hf:f:*", 0);
    EXPECT(1, HF_OK);
    assert_true(hf__buffer_length(&ANSWER(1)->keys) > 0);
    assert_int_equal(S.nodes[2].scans, 0);
    FINISH();
}

/* ---- Observers ---- */

static void observers_look_once_a_second(void **state)
{
    (void)state;
    SETUP(.servers = 3, .messages = true);
    watch("x");
    expect_seen(HF_SEEN_FREE, "", 0);
    hold_at(0, VALUE(ANN, 1), 60000, 70);
    hold_at(1, VALUE(ANN, 1), 60000, 70);
    ADVANCE_MS(1000);
    hf_sight granted = expect_seen(HF_SEEN_GRANTED, ANN, 1);
    assert_int_equal(granted.fence, 70);
    node_delete(&S.nodes[0], "x");
    ADVANCE_MS(1000);
    expect_seen(HF_SEEN_EXPIRED, ANN, 1);
    expect_nothing();
    for (int i = 0; i < 3; i++) {
        assert_int_equal(S.nodes[i].subscribes, 0);
        assert_int_equal(S.nodes[i].observes, 0);
    }
    stop_watching();
    FINISH();
}

/* Also where there are connections for messages, which others need. */
static void observers_do_not_subscribe(void **state)
{
    (void)state;
    SETUP(.servers = 3, .messages = true);
    S.core->listening++;
    hf__push_want_all(S.core);
    stage_run();
    watch("x");
    ADVANCE_MS(3000);
    stop_watching();
    S.core->listening--;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(S.nodes[i].subscribes, 1); /* the client's own channel */
        assert_int_equal(S.nodes[i].unsubscribes, 0);
    }
    FINISH();
}

/* The three know different fences, and not always the same two answer first. */
static void a_lower_fence_is_no_news(void **state)
{
    (void)state;
    SETUP(.servers = 3);
    hold_at(0, VALUE(ANN, 1), 60000, 70);
    hold_at(1, VALUE(ANN, 2), 60000, 70);
    hold_at(2, VALUE(ANN, 3), 60000, 75);
    STALL(0);
    watch("x");
    assert_int_equal(expect_seen(HF_SEEN_HELD, ANN, 2).fence, 75);
    REVIVE(0);
    STALL(2);
    ADVANCE_MS(3000);
    expect_nothing();
    hold_at(0, VALUE(BOB, 8), 60000, 72); /* the next one has not met the third */
    hold_at(1, VALUE(BOB, 8), 60000, 72);
    ADVANCE_MS(1000);
    expect_seen(HF_SEEN_EXPIRED, ANN, 2);
    assert_int_equal(expect_seen(HF_SEEN_GRANTED, BOB, 8).fence, 72);
    REVIVE(2);
    stop_watching();
    FINISH();
}

/* ---- Without memory ---- */

static bool ask_without(long number)
{
    SETUP(.servers = 3);
    for (int i = 0; i < 3; i++)
        hold_at(i, VALUE(ANN, 1), 600000, 70);
    gate_fail_at(number);
    bool started = stage_start_query(1, HF__QUERY_INSPECT, "x", "", 0);
    for (int i = 0; i < 100 && started && !S.calls[1].done; i++)
        ADVANCE_MS(100);
    bool failed = gate_open();
    hf_status status = S.calls[1].error.status;
    assert_true(!started || status == HF_OK || status == HF_ENOMEM || status == HF_EUNAVAILABLE ||
                status == HF_EUNKNOWN);
    ADVANCE_MS(5000);
    INSPECT(2, "x");
    EXPECT(2, HF_OK);
    assert_true(SEEN(2)->held);
    FINISH();
    return failed;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    long number = 0;
    while (ask_without(number))
        assert_true(++number < 1000);
    assert_true(number > 5); /* query, survey, and for each server a reader and a value */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_majority_holds_it),
        cmocka_unit_test(nobody_holds_it),
        cmocka_unit_test(an_owner_holds_it),
        cmocka_unit_test(nine_servers_are_asked),
        cmocka_unit_test(a_stalled_minority_delays_nothing),
        cmocka_unit_test(a_dead_minority_does_no_harm),
        cmocka_unit_test(the_last_answer_may_decide),
        cmocka_unit_test(what_the_missing_decide_is_not_guessed),
        cmocka_unit_test(a_server_that_is_awaited_is_waited_for),
        cmocka_unit_test(a_dead_majority_is_told_at_once),
        cmocka_unit_test(a_stalled_majority_is_told_in_time),
        cmocka_unit_test(a_refusal_is_told_with_the_others),
        cmocka_unit_test(two_servers_are_both_needed),
        cmocka_unit_test(connections_that_break_are_made_again),
        cmocka_unit_test(nonsense_of_one_is_asked_for_again),
        cmocka_unit_test(closing_ends_it),
        cmocka_unit_test(facts_and_names_are_of_one_server),
        cmocka_unit_test(observers_look_once_a_second),
        cmocka_unit_test(observers_do_not_subscribe),
        cmocka_unit_test(a_lower_fence_is_no_news),
        cmocka_unit_test(every_allocation_may_fail),
    };
    stage_install_gate();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
