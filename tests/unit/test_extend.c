/* SPDX-License-Identifier: MIT */
/* Manual renewal: the deadline moves only by what the server has confirmed, never backwards, and
 * never back from the dead. */
#include <string.h>

#include "stage.h"

#define S the_stage

static void moves_the_deadline(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", .lease_ms = 2000);
    ADVANCE_MS(1000);
    EXTEND(1, 5000);
    EXPECT(1, HF_OK);
    assert_int_equal(stage_remaining_ms(1), 5000 - 50 - 2);
    ADVANCE_MS(4000);
    EXPECT_KEY("x");
    FINISH();
}

static void never_shortens(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", .lease_ms = 20000);
    int64_t before = stage_remaining_ms(1);
    EXTEND(1, 1000);
    EXPECT(1, HF_OK);
    assert_int_equal(stage_remaining_ms(1), before);
    ADVANCE_MS(5000);
    EXPECT_KEY("x");
    FINISH();
}

static void counts_from_before_the_sending(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", .lease_ms = 5000);
    S.mute = true;
    EXTEND(1, 5000);
    ADVANCE_MS(900);
    S.mute = false;
    stage_run();
    EXPECT(1, HF_OK);
    assert_int_equal(stage_remaining_ms(1), 5000 - 50 - 2 - 900);
    FINISH();
}

static void a_lock_that_is_gone_is_lost_at_once(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x");
    node_set(&S.node, "x", "another", 5000);
    EXTEND(1, 10000);
    EXPECT(1, HF_ELOST);
    assert_int_equal(stage_remaining_ms(1), 0);
    assert_string_equal(node_get(&S.node, "x"), "another");
    RELEASE(1);
    EXPECT(1, HF_ELOST);
    assert_string_equal(node_get(&S.node, "x"), "another");
    assert_int_equal(S.node.releases, 1); /* harmless, and needed after other kinds of loss */
    FINISH();
}

static void after_the_deadline_it_is_too_late(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", .lease_ms = 1000);
    ADVANCE_MS(989); /* the server would still renew it */
    EXTEND(1, 1000);
    EXPECT(1, HF_ELOST);
    assert_int_equal(S.node.renewals, 0);
    FINISH();
}

/* The server renewed in time, but we hear of it too late: somebody may have asked hf_is_valid() in
 * between and been told no. */
static void an_answer_after_the_deadline_does_not_bring_it_back(void **state)
{
    (void)state;
    SETUP(.reply_timeout_ms = 5000);
    ACQUIRE(1, "x", .lease_ms = 1000);
    S.mute = true;
    ADVANCE_MS(900);
    EXTEND(1, 1000);
    EXPECT_WAITING(1);
    ADVANCE_MS(88);
    EXPECT(1, HF_ELOST);
    S.mute = false;
    stage_run();
    assert_int_equal(stage_remaining_ms(1), 0);
    RELEASE(1);
    EXPECT(1, HF_ELOST);
    FINISH();
}

static void silence_is_retried_until_the_deadline(void **state)
{
    (void)state;
    SETUP(.reply_timeout_ms = 500);
    ACQUIRE(1, "x", .lease_ms = 10000);
    S.deaf = true;
    EXTEND(1, 10000);
    ADVANCE_MS(5000);
    EXPECT_WAITING(1);
    S.deaf = false;
    ADVANCE_MS(1600);
    EXPECT(1, HF_OK);
    assert_true(stage_remaining_ms(1) > 8000);
    FINISH();
}

static void a_lost_answer_is_asked_for_again(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", .lease_ms = 2000);
    S.mute = true;
    EXTEND(1, 2000);
    CUT();
    S.mute = false;
    ADVANCE_MS(20);
    EXPECT(1, HF_OK);
    assert_int_equal(S.node.renewals, 2);
    FINISH();
}

static void other_errors_are_told_and_the_old_deadline_stands(void **state)
{
    (void)state;
    static const struct {
        const char *reply;
        hf_status status;
    } table[] = {
        {"-LOADING Redis is loading the dataset in memory\r\n", HF_EUNAVAILABLE},
        {"-NOPERM this user has no permissions\r\n", HF_EDENIED},
        {"-WRONGTYPE Operation against a key\r\n", HF_ESERVER},
        {"*1\r\n-WRONGTYPE Operation against a key\r\n", HF_ESERVER}, /* of this hold alone */
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        SETUP();
        ACQUIRE(1, "x", .lease_ms = 2000);
        int64_t before = stage_remaining_ms(1);
        node_say(&S.node, table[i].reply);
        EXTEND(1, 5000);
        EXPECT(1, table[i].status);
        assert_int_equal(stage_remaining_ms(1), before);
        EXTEND(1, 5000);
        EXPECT(1, HF_OK);
        FINISH();
    }
}

static void two_calls_are_served_one_after_the_other(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", .lease_ms = 2000);
    S.mute = true;
    EXTEND(1, 5000);
    S.calls[2] =
        (hf__call){.kind = HF__CALL_EXTEND, .hold = S.holds[1], .lease = hf__span_ms(9000)};
    hf__event event = {.kind = HF__EVENT_START, .call = &S.calls[2], .now = S.now};
    hf__core_step(S.core, &event);
    assert_int_equal(S.node.renewals, 1);
    S.mute = false;
    stage_run();
    EXPECT(1, HF_OK);
    EXPECT(2, HF_OK);
    assert_int_equal(S.node.renewals, 2);
    assert_int_equal(stage_remaining_ms(1), 9000 - 90 - 2);
    FINISH();
}

static void nonsense_is_asked_again(void **state)
{
    (void)state;
    static const char *const nonsense[] = {
        "$2\r\n99\r\n",
        ":5000\r\n", /* what the answer was in 0.1 */
        "*0\r\n",
        "*2\r\n:5000\r\n:5000\r\n", /* for two holds */
        "*1\r\n$4\r\n5000\r\n",
        "*1\r\n*0\r\n",
        "*1\r\n*1\r\n:5000\r\n",
        "*1\r\n*2\r\n:5000\r\n:7\r\n",
        "*1\r\n*2\r\n$1\r\n5\r\n$1\r\n7\r\n",
        "*1\r\n*3\r\n:5000\r\n$1\r\n7\r\n$1\r\n7\r\n",
        "*1\r\n$-1\r\n",
    };
    for (size_t i = 0; i < sizeof(nonsense) / sizeof(nonsense[0]); i++) {
        SETUP();
        ACQUIRE(1, "x");
        node_say(&S.node, nonsense[i]);
        EXTEND(1, 5000);
        EXPECT_WAITING(1);
        ADVANCE_MS(20);
        EXPECT(1, HF_OK);
        FINISH();
    }
}

/* A lease of centuries, from a confused or hostile server, must not overflow our arithmetic. */
static void absurd_times_are_bounded(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x");
    node_say(&S.node, "*1\r\n:9223372036854775807\r\n");
    EXTEND(1, 5000);
    EXPECT(1, HF_OK);
    assert_true(stage_remaining_ms(1) <= HF_MS_MAX);
    node_say(&S.node, "*1\r\n:-9223372036854775808\r\n");
    EXTEND(1, 5000);
    EXPECT_WAITING(1); /* that makes no sense: it is asked again */
    ADVANCE_MS(20);
    EXPECT(1, HF_OK);
    FINISH();
}

/* The server's clock was set back, so it says that the lock lasts for long; when that is put right
 * it will not. */
static void no_more_is_believed_than_was_asked_for(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", .lease_ms = 10000);
    S.node.now_ms -= 100000;
    EXTEND(1, 5000);
    EXPECT(1, HF_OK);
    assert_in_range(stage_remaining_ms(1), 1, 10000 - 100 - 2);
    EXTEND(1, 20000);
    EXPECT(1, HF_OK);
    assert_in_range(stage_remaining_ms(1), 1, 20000 - 200 - 2);
    FINISH();
}

static void a_restarted_server_has_forgotten_it(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x");
    node_restart(&S.node);
    CUT();
    EXTEND(1, 5000);
    EXPECT(1, HF_ELOST);
    EXPECT_NO_KEY("x"); /* never silently made anew */
    FINISH();
}

/* Another thread, whose clock reading was later than ours, has found the hold expired and told its
 * caller so while our answer was being read. */
static void what_one_thread_found_expired_is_not_revived_by_another(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", .lease_ms = 1000);
    S.mute = true;
    EXTEND(1, 5000);
    hf__instant later = hf__after(S.now, hf__span_ms(2000));
    assert_int_equal(hf__hold_remaining(S.holds[1], later).ns, 0);
    S.mute = false;
    stage_run();
    EXPECT(1, HF_ELOST);
    assert_int_equal(stage_remaining_ms(1), 0);
    FINISH();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(moves_the_deadline),
        cmocka_unit_test(never_shortens),
        cmocka_unit_test(counts_from_before_the_sending),
        cmocka_unit_test(a_lock_that_is_gone_is_lost_at_once),
        cmocka_unit_test(after_the_deadline_it_is_too_late),
        cmocka_unit_test(an_answer_after_the_deadline_does_not_bring_it_back),
        cmocka_unit_test(silence_is_retried_until_the_deadline),
        cmocka_unit_test(a_lost_answer_is_asked_for_again),
        cmocka_unit_test(other_errors_are_told_and_the_old_deadline_stands),
        cmocka_unit_test(two_calls_are_served_one_after_the_other),
        cmocka_unit_test(nonsense_is_asked_again),
        cmocka_unit_test(absurd_times_are_bounded),
        cmocka_unit_test(no_more_is_believed_than_was_asked_for),
        cmocka_unit_test(a_restarted_server_has_forgotten_it),
        cmocka_unit_test(what_one_thread_found_expired_is_not_revived_by_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
