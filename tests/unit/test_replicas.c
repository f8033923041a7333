/* SPDX-License-Identifier: MIT */
/* Grants that replicas must acknowledge, against a node double in virtual time: nothing is handed
 * out before the answer to the WAIT is in, on whatever way the grant came; what they have not is
 * given back; and nobody else waits for any of it. */
#include <string.h>

#include "contest.h"

#define S the_stage

enum { MUTE_CAREFUL = 1 << CAREFUL };

/* Both links are up, and everything that comes over the careful one is kept back. */
static void begin_mute(int acknowledge)
{
    SETUP();
    S.node.replicas = 1;
    ACQUIRE(9, "other", .replicas = 1);
    EXPECT(9, HF_OK);
    S.node.replicas = acknowledge;
    S.node.waits = S.node.confirms_run = 0;
    S.muted = MUTE_CAREFUL;
}

static void unmute(void)
{
    S.muted = 0;
    stage_run();
}

/* ---- Granted ---- */

static void granted_when_enough_acknowledge(void **state)
{
    (void)state;
    SETUP();
    S.node.replicas = 2;
    ACQUIRE(1, "x", .replicas = 2);
    EXPECT(1, HF_OK);
    ACQUIRE(2, "y", .replicas = 1, .owner = "o");
    EXPECT(2, HF_OK);
    assert_int_equal(S.node.confirms_run, 2);
    assert_int_equal(S.node.waits, 2);
    RELEASE(1);
    EXPECT(1, HF_OK);
    RELEASE(2);
    EXPECT(2, HF_OK);
    assert_int_equal(S.node.waits, 2); /* never with a release */
    EXPECT_NO_KEY("x");
    EXPECT_NO_KEY("y");
    FINISH();
}

static void without_replicas_there_is_no_such_link(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x");
    EXPECT(1, HF_OK);
    RELEASE(1);
    assert_int_equal(S.connects, 1);
    assert_false(S.wires[CAREFUL].open);
    assert_int_equal(S.node.waits + S.node.confirms_run, 0);
    FINISH();
}

/* It takes memory, and a quorum has no use for it. */
static void only_one_server_has_such_a_link(void **state)
{
    (void)state;
    SETUP(.links = 2);
    assert_int_equal(hf__core_links(S.core), 2 + 2);
    FINISH();
    SETUP(.links = 2, .servers = 3);
    assert_int_equal(hf__core_links(S.core), 3 * (2 + 1));
    for (int link = 0; link < 3 * (2 + 1); link++)
        assert_int_equal(hf__core_server(S.core, link), link / 3);
    FINISH();
}

static void not_handed_out_before_the_answer(void **state)
{
    (void)state;
    begin_mute(1);
    ACQUIRE(1, "x", .replicas = 1);
    EXPECT_KEY("x");
    assert_int_equal(S.node.waits, 1);
    ADVANCE_MS(100);
    EXPECT_WAITING(1);
    ACQUIRE(2, "y"); /* whom it does not concern */
    EXPECT(2, HF_OK);
    unmute();
    EXPECT(1, HF_OK);
    assert_int_equal(stage_remaining_ms(1), 10000 - 100 - 2 - 100); /* since the grant */
    FINISH();
}

static void a_grant_by_message_is_confirmed_too(void **state)
{
    (void)state;
    contest_begin_held();
    S.node.replicas = 1;
    ACQUIRE(1, "x", .wait_ms = 5000, .replicas = 1);
    S.muted = MUTE_CAREFUL;
    rival_release("x", 1);
    EXPECT_WAITING(1);
    assert_non_null(strstr(node_get(&S.node, "x"), STAGE_CLIENT));
    unmute();
    EXPECT(1, HF_OK);
    assert_int_equal(S.node.waits, 1);
    contest_end();
}

static void each_thread_asks_the_server(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    SETUP(.messages = true, .local_turns = 64);
    S.node.replicas = 1;
    for (int i = 1; i <= THREADS; i++)
        ACQUIRE(i, "x", .wait_ms = 5000, .renew_interval_ms = 3000, .replicas = 1,
                .thread = (uint64_t)i);
    for (int i = 1; i <= THREADS; i++) {
        EXPECT(i, HF_OK);
        assert_int_equal(S.node.waits, i);
        RELEASE(i);
    }
    FINISH();
}

/* ---- Not granted ---- */

static void expect_counted(uint64_t acquisitions, uint64_t releases, uint64_t failures)
{
    hf_stats stats;
    hf__core_stats(S.core, &stats);
    assert_int_equal(stats.acquisitions, acquisitions);
    assert_int_equal(stats.releases, releases);
    assert_int_equal(stats.failures, failures);
}

static void given_back_when_too_few_acknowledge(void **state)
{
    (void)state;
    begin_mute(1);
    ACQUIRE(1, "x", .replicas = 2);
    ADVANCE_MS(500);
    unmute();
    EXPECT(1, HF_EUNAVAILABLE);
    EXPECT_TEXT(1, "1 of 2 replicas acknowledged within 500 ms; given back");
    EXPECT_NO_KEY("x");
    assert_int_equal(S.node.tomb_count, 0);
    expect_counted(1, 0, 1); /* the other one */
    FINISH();
}

static void one_who_may_wait_tries_again(void **state)
{
    (void)state;
    SETUP();
    S.node.replicas = 1;
    ACQUIRE(1, "x", .wait_ms = 5000, .replicas = 2);
    EXPECT_WAITING(1);
    EXPECT_NO_KEY("x"); /* anybody else may have it meanwhile */
    ADVANCE_MS(99);
    assert_int_equal(S.node.waits, 1);
    ADVANCE_MS(1);
    assert_int_equal(S.node.waits, 2);
    S.node.replicas = 2;
    ADVANCE_MS(100);
    EXPECT(1, HF_OK);
    EXPECT_KEY("x");
    assert_int_equal(S.node.waits, 3);
    FINISH();
}

static void within_its_limits(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", .wait_ms = 1000, .replicas = 2);
    ACQUIRE(2, "y", .max_retries = 2, .retry_interval_ms = 50, .replicas = 1);
    ADVANCE_MS(100);
    EXPECT(2, HF_EUNAVAILABLE);
    EXPECT_TEXT(2, "0 of 1 replicas");
    ADVANCE_MS(880);
    EXPECT_WAITING(1);
    ADVANCE_MS(20);
    EXPECT(1, HF_EUNAVAILABLE);
    EXPECT_TEXT(1, "0 of 2 replicas");
    EXPECT_NO_KEY("x");
    EXPECT_NO_KEY("y");
    FINISH();
}

static void the_wait_ends_before_its_reasons_do(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", .replicas = 1);
    assert_int_equal(S.node.last_wait_ms, 500); /* half of reply_timeout */
    ACQUIRE(2, "y", .replicas = 1, .lease_ms = 400);
    assert_int_equal(S.node.last_wait_ms, 100); /* a quarter of the lease */
    ACQUIRE(3, "z", .replicas = 1, .wait_ms = 60);
    assert_int_equal(S.node.last_wait_ms, 30); /* half of what is left */
    FINISH();
}

static void no_answer_gives_it_back(void **state)
{
    (void)state;
    SETUP(.reply_timeout_ms = 20000);
    S.stalled = MUTE_CAREFUL;
    ACQUIRE(1, "x", .replicas = 1);
    ADVANCE_MS(2999);
    EXPECT_WAITING(1);
    EXPECT_KEY("x");
    ADVANCE_MS(1);
    EXPECT(1, HF_EUNAVAILABLE);
    EXPECT_TEXT(1, "no answer about replicas in time; given back");
    EXPECT_NO_KEY("x");
    FINISH();
}

static void a_silent_link_is_replaced(void **state)
{
    (void)state;
    begin_mute(1);
    ACQUIRE(1, "x", .replicas = 1);
    ADVANCE_MS(999);
    S.muted = 0;
    hf__buffer_clear(&S.wires[CAREFUL].to_client); /* the answers got lost */
    ADVANCE_MS(100);
    EXPECT(1, HF_OK);
    assert_int_equal(S.node.confirms_run, 2);
    FINISH();
}

static void a_lock_that_was_taken_away_is_not_confirmed(void **state)
{
    (void)state;
    begin_mute(1);
    S.stalled = MUTE_CAREFUL;
    ACQUIRE(1, "x", .replicas = 1);
    node_set(&S.node, "x", "somebody else", 1000);
    S.stalled = 0;
    unmute();
    EXPECT(1, HF_EUNAVAILABLE);
    EXPECT_TEXT(1, "gone before replicas had it");
    assert_string_equal(node_get(&S.node, "x"), "somebody else");
    FINISH();
}

static void an_answer_after_the_lease_is_none(void **state)
{
    (void)state;
    begin_mute(1);
    ACQUIRE(1, "x", .replicas = 1, .lease_ms = 400);
    PAUSE_MS(395); /* the process was stopped */
    unmute();
    EXPECT(1, HF_EUNAVAILABLE);
    EXPECT_NO_KEY("x");
    FINISH();
}

static void a_denied_wait_is_final(void **state)
{
    (void)state;
    SETUP();
    S.node.wait_error = "-NOPERM this user has no permissions to run the 'wait' command\r\n";
    ACQUIRE(1, "x", .wait_ms = 5000, .replicas = 1);
    EXPECT(1, HF_EDENIED);
    EXPECT_TEXT(1, "'wait'");
    EXPECT_NO_KEY("x");
    FINISH();
}

static void a_link_that_cannot_be_had_fails_the_try(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "other");
    S.refuses = true;
    ACQUIRE(2, "x", .replicas = 1);
    EXPECT(2, HF_EUNAVAILABLE);
    EXPECT_NO_KEY("x");
    ACQUIRE(3, "y", .wait_ms = 5000, .replicas = 1);
    EXPECT_WAITING(3);
    S.node.replicas = 1;
    S.refuses = false;
    ADVANCE_MS(1000);
    EXPECT(3, HF_OK);
    FINISH();
}

static void nonsense_is_no_acknowledgement(void **state)
{
    (void)state;
    static const char *const nonsense[] = {":-1\r\n", "+OK\r\n", "*0\r\n"};
    for (size_t i = 0; i < sizeof(nonsense) / sizeof(nonsense[0]); i++) {
        SETUP();
        S.node.wait_error = nonsense[i];
        ACQUIRE(1, "x", .replicas = 1);
        EXPECT_WAITING(1); /* the connection was dropped, and both go again */
        S.node.wait_error = NULL;
        S.node.replicas = 1;
        ADVANCE_MS(100);
        EXPECT(1, HF_OK);
        FINISH();
    }
}

/* ---- Connections that break ---- */

/* A WAIT alone, on a connection that has written nothing, would be answered at once. */
static void both_go_again_when_the_second_was_not_answered(void **state)
{
    (void)state;
    begin_mute(1);
    ACQUIRE(1, "x", .replicas = 1);
    assert_int_equal(S.node.confirms_run, 1);
    S.cut_after = (long)strlen(":1\r\n"); /* the first answer */
    unmute();
    EXPECT_WAITING(1);
    ADVANCE_MS(100);
    EXPECT(1, HF_OK);
    assert_int_equal(S.node.confirms_run, 2);
    assert_int_equal(S.node.waits, 2);
    FINISH();
}

static void a_release_that_may_come_late_ends_the_call(void **state)
{
    (void)state;
    begin_mute(1);
    ACQUIRE(1, "x", .wait_ms = 5000, .replicas = 2);
    S.muted = 1 << COMMANDS;
    stage_run();
    EXPECT_NO_KEY("x"); /* and we do not know */
    stage_cut_link(COMMANDS);
    S.node.replicas = 2;
    unmute();
    ADVANCE_MS(100);
    EXPECT(1, HF_EUNAVAILABLE); /* what is granted next could fall victim to the first copy */
    EXPECT_TEXT(1, "1 of 2 replicas");
    FINISH();
}

/* Its answer would be taken for the one to the next try. */
static void the_next_try_waits_for_what_is_on_its_way(void **state)
{
    (void)state;
    static const char refused[] = "-OOM command not allowed\r\n", acknowledged[] = ":1\r\n";
    begin_mute(1);
    S.stalled = MUTE_CAREFUL;
    ACQUIRE(1, "x", .wait_ms = 5000, .replicas = 1);
    node_say(&S.node, refused); /* to confirm */
    S.stalled = 0;
    stage_run();
    hf__buffer_clear(&S.wires[CAREFUL].to_client);
    S.muted = 0;
    stage_say(CAREFUL, refused, strlen(refused));
    EXPECT_NO_KEY("x");
    ADVANCE_MS(200);
    EXPECT_WAITING(1);
    EXPECT_NO_KEY("x");
    stage_say(CAREFUL, acknowledged, strlen(acknowledged));
    EXPECT_WAITING(1);
    ADVANCE_MS(100);
    EXPECT(1, HF_OK);
    assert_int_equal(S.node.confirms_run, 1);
    assert_int_equal(S.node.waits, 2);
    FINISH();
}

static void a_message_about_a_grant_that_was_given_back_is_out_of_date(void **state)
{
    (void)state;
    SETUP(.messages = true, .reply_timeout_ms = 20000);
    rival_begin();
    RIVAL_ACQUIRES("x", .number = 1, .lease = 600000);
    ACQUIRE(1, "x", .wait_ms = 60000, .replicas = 1);
    S.muted = 1 << PUSH;
    rival_release("x", 1);
    EXPECT_WAITING(1);
    while (S.node.waits == 0)
        ADVANCE_MS(10); /* until a check finds that it was granted */
    assert_int_equal(S.node.confirms_run, 1);
    EXPECT_NO_KEY("x");
    unmute();
    EXPECT_WAITING(1);
    assert_int_equal(S.node.confirms_run, 1);
    contest_end();
}

/* Returns whether there was anything to cut. */
static bool cut_after(long bytes)
{
    begin_mute(1);
    S.muted = 0;
    S.cut_after = bytes;
    ACQUIRE(1, "x", .wait_ms = 5000, .replicas = 1);
    ADVANCE_MS(5000);
    EXPECT(1, HF_OK);
    assert_true(S.node.waits > 0);
    assert_true(S.node.confirms_run >= S.node.waits); /* never one alone */
    EXPECT_KEY("x");
    bool was_cut = S.cut_after == STAGE_UNLIMITED;
    S.cut_after = STAGE_UNLIMITED;
    RELEASE(1);
    EXPECT(1, HF_OK);
    EXPECT_NO_KEY("x");
    FINISH();
    return was_cut;
}

static void cut_after_any_byte(void **state)
{
    (void)state;
    long bytes = 0;
    while (cut_after(bytes))
        bytes++;
    assert_true(bytes > 500); /* two scripts at least, one of them whole */
}

/* ---- Calls that end ---- */

static void a_cancel_gives_it_back(void **state)
{
    (void)state;
    begin_mute(1);
    ACQUIRE(1, "x", .replicas = 1);
    stage_cancel(1);
    EXPECT(1, HF_ECANCELLED);
    EXPECT_NO_KEY("x");
    S.muted = 0;
    S.node.replicas = 0;
    ACQUIRE(2, "y", .wait_ms = 5000, .replicas = 1);
    EXPECT_WAITING(2);
    stage_cancel(2); /* between two tries */
    EXPECT(2, HF_ECANCELLED);
    EXPECT_NO_KEY("y");
    expect_counted(1, 0, 2);
    FINISH();
}

static void a_cancel_before_they_were_asked(void **state)
{
    (void)state;
    SETUP();
    S.node.replicas = 1;
    S.stalled = MUTE_CAREFUL; /* while it is being connected */
    ACQUIRE(1, "x", .replicas = 1);
    EXPECT_KEY("x");
    stage_cancel(1);
    EXPECT(1, HF_ECANCELLED);
    EXPECT_NO_KEY("x");
    S.stalled = 0;
    ACQUIRE(2, "x", .replicas = 1);
    EXPECT(2, HF_OK);
    assert_int_equal(S.node.waits, 1);
    FINISH();
}

static void while_it_is_being_given_back(void **state, void (*end)(void), hf_status status)
{
    (void)state;
    begin_mute(1);
    ACQUIRE(1, "x", .wait_ms = 5000, .replicas = 2);
    S.muted = 1 << COMMANDS;
    stage_run();
    EXPECT_WAITING(1);
    end();
    EXPECT(1, status);
    unmute();
    EXPECT_NO_KEY("x");
}

static void cancel(void)
{
    stage_cancel(1);
}

static void close_client(void)
{
    CLOSE(2);
}

static void run_out_of_time(void)
{
    ADVANCE_MS(5000);
}

static void ended_while_it_is_being_given_back(void **state)
{
    while_it_is_being_given_back(state, cancel, HF_ECANCELLED);
    FINISH();
    while_it_is_being_given_back(state, close_client, HF_ECLOSED);
    EXPECT(2, HF_OK);
    FINISH();
    while_it_is_being_given_back(state, run_out_of_time, HF_EUNAVAILABLE);
    FINISH();
}

static void closing_gives_it_back(void **state)
{
    (void)state;
    begin_mute(1);
    ACQUIRE(1, "x", .replicas = 1);
    CLOSE(2);
    EXPECT(1, HF_ECLOSED);
    EXPECT(2, HF_OK);
    EXPECT_NO_KEY("x");
    FINISH();
}

/* ---- Several ---- */

/* Each is answered well within its time, counted from the answer before it. */
static void one_behind_the_other_is_not_silence(void **state)
{
    (void)state;
    begin_mute(1);
    ACQUIRE(1, "x", .replicas = 1);
    ACQUIRE(2, "y", .replicas = 1);
    int connects = S.connects;
    ADVANCE_MS(600);
    hf__buffer *kept = &S.wires[CAREFUL].to_client;
    char answers[32];
    size_t length = hf__buffer_length(kept);
    assert_true(length == 2 * strlen(":1\r\n:1\r\n"));
    memcpy(answers, hf__buffer_front(kept), length);
    hf__buffer_take(kept, length);
    S.muted = 0;
    stage_say(CAREFUL, answers, length / 2);
    EXPECT(1, HF_OK);
    ADVANCE_MS(600);
    EXPECT_WAITING(2);
    stage_say(CAREFUL, answers + length / 2, length / 2);
    EXPECT(2, HF_OK);
    assert_int_equal(S.connects, connects);
    FINISH();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(granted_when_enough_acknowledge),
        cmocka_unit_test(without_replicas_there_is_no_such_link),
        cmocka_unit_test(only_one_server_has_such_a_link),
        cmocka_unit_test(not_handed_out_before_the_answer),
        cmocka_unit_test(a_grant_by_message_is_confirmed_too),
        cmocka_unit_test(each_thread_asks_the_server),
        cmocka_unit_test(given_back_when_too_few_acknowledge),
        cmocka_unit_test(one_who_may_wait_tries_again),
        cmocka_unit_test(within_its_limits),
        cmocka_unit_test(the_wait_ends_before_its_reasons_do),
        cmocka_unit_test(no_answer_gives_it_back),
        cmocka_unit_test(a_silent_link_is_replaced),
        cmocka_unit_test(a_lock_that_was_taken_away_is_not_confirmed),
        cmocka_unit_test(an_answer_after_the_lease_is_none),
        cmocka_unit_test(a_denied_wait_is_final),
        cmocka_unit_test(a_link_that_cannot_be_had_fails_the_try),
        cmocka_unit_test(nonsense_is_no_acknowledgement),
        cmocka_unit_test(both_go_again_when_the_second_was_not_answered),
        cmocka_unit_test(a_release_that_may_come_late_ends_the_call),
        cmocka_unit_test(the_next_try_waits_for_what_is_on_its_way),
        cmocka_unit_test(a_message_about_a_grant_that_was_given_back_is_out_of_date),
        cmocka_unit_test(cut_after_any_byte),
        cmocka_unit_test(a_cancel_gives_it_back),
        cmocka_unit_test(a_cancel_before_they_were_asked),
        cmocka_unit_test(ended_while_it_is_being_given_back),
        cmocka_unit_test(closing_gives_it_back),
        cmocka_unit_test(one_behind_the_other_is_not_silence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
