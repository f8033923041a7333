/* SPDX-License-Identifier: MIT */
/* Acquiring, against a node double in virtual time: limits of waiting, belief in grants, and every
 * way in which an answer can fail to come. The rule behind most of it: a call never says "refused"
 * when it may have been granted, never says "granted" when that may be over, and never leaves
 * anything behind at the server. */
#include <stdio.h>
#include <string.h>

#include "stage.h"

#define S the_stage

static void grants_a_free_lock_in_one_round_trip(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x");
    EXPECT(1, HF_OK);
    EXPECT_KEY("x");
    assert_int_equal(S.node.acquires, 1);
    assert_int_equal(S.node.evals, 0);
    assert_int_equal(stage_remaining_ms(1), 10000 - 100 - 2); /* lease - 1 % - 2 ms */
    FINISH();
}

static void tries_once_by_default(void **state)
{
    (void)state;
    SETUP();
    node_set(&S.node, "x", "somebody", 5000);
    ACQUIRE(1, "x");
    EXPECT(1, HF_EBUSY);
    EXPECT_TEXT(1, "somebody");
    assert_int_equal(S.node.acquires, 1);
    FINISH();
}

static void waits_until_the_lock_is_free(void **state)
{
    (void)state;
    SETUP();
    node_set(&S.node, "x", "somebody", -1);
    ACQUIRE(1, "x", .wait_ms = 5000);
    ADVANCE_MS(1050);
    EXPECT_WAITING(1);
    assert_int_equal(S.node.acquires, 11); /* one, then one every 100 ms */
    node_delete(&S.node, "x");
    ADVANCE_MS(50);
    EXPECT(1, HF_OK);
    FINISH();
}

static void tries_when_the_holders_lease_runs_out(void **state)
{
    (void)state;
    SETUP();
    node_set(&S.node, "x", "dead", 30);
    ACQUIRE(1, "x", .wait_ms = 5000, .retry_interval_ms = 1000);
    ADVANCE_MS(32);
    EXPECT(1, HF_OK);
    FINISH();
}

static void keeps_ten_ms_between_tries(void **state)
{
    (void)state;
    SETUP();
    node_set(&S.node, "x", "somebody", 1);
    node_find(&S.node, "x", 1)->expires_ms = INT64_MAX; /* says so little, and never goes */
    ACQUIRE(1, "x", .wait_ms = 1000, .retry_interval_ms = 10);
    ADVANCE_MS(1000);
    EXPECT(1, HF_EBUSY);
    assert_in_range(S.node.acquires, 90, 101);
    FINISH();
}

static void gives_up_when_the_wait_is_over(void **state)
{
    (void)state;
    SETUP();
    node_set(&S.node, "x", "somebody", -1);
    ACQUIRE(1, "x", .wait_ms = 450);
    ADVANCE_MS(440);
    assert_int_equal(S.node.acquires, 6); /* at 0, 100, 200, 300, 400, and a last one at 440 */
    ADVANCE_MS(10);
    EXPECT(1, HF_EBUSY);
    ADVANCE_MS(1000);
    assert_int_equal(S.node.acquires, 6);
    assert_int_equal(S.node.releases, 0);
    FINISH();
}

static void gives_up_after_max_retries(void **state)
{
    (void)state;
    SETUP();
    node_set(&S.node, "x", "somebody", -1);
    ACQUIRE(1, "x", .max_retries = 3);
    ADVANCE_MS(299);
    EXPECT_WAITING(1);
    ADVANCE_MS(1);
    EXPECT(1, HF_EBUSY);
    assert_int_equal(S.node.acquires, 4);
    FINISH();
}

static void the_first_limit_counts(void **state)
{
    (void)state;
    SETUP();
    node_set(&S.node, "x", "somebody", -1);
    ACQUIRE(1, "x", .max_retries = 3, .wait_ms = 5000);
    ACQUIRE(2, "x", .max_retries = 30, .wait_ms = 500);
    ADVANCE_MS(300);
    EXPECT(1, HF_EBUSY);
    EXPECT_WAITING(2);
    ADVANCE_MS(200);
    EXPECT(2, HF_EBUSY);
    FINISH();
}

static void waits_for_ever_if_asked(void **state)
{
    (void)state;
    SETUP();
    node_set(&S.node, "x", "somebody", -1);
    ACQUIRE(1, "x", .wait_ms = -1);
    ADVANCE_MS(3600 * 1000);
    EXPECT_WAITING(1);
    node_delete(&S.node, "x");
    ADVANCE_MS(100);
    EXPECT(1, HF_OK);
    FINISH();
}

/* ---- Answers that do not come ---- */

static void request_lost_is_sent_again(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "warm");
    S.deaf = true;
    ACQUIRE(2, "x");
    EXPECT_WAITING(2);
    CUT();
    S.deaf = false;
    ADVANCE_MS(20);
    EXPECT(2, HF_OK);
    EXPECT_KEY("x");
    FINISH();
}

static void reply_lost_is_granted_again_with_the_same_value(void **state)
{
    (void)state;
    char value[200];
    SETUP();
    ACQUIRE(1, "warm");
    S.mute = true;
    ACQUIRE(2, "x");
    snprintf(value, sizeof(value), "%s", node_get(&S.node, "x"));
    ADVANCE_MS(500); /* half a second of the lease is gone when the link breaks */
    CUT();
    S.mute = false;
    ADVANCE_MS(20);
    EXPECT(2, HF_OK);
    assert_string_equal(node_get(&S.node, "x"), value);
    assert_int_equal(S.node.acquires, 3);
    /* The grant is 510 ms or so old; nothing of that may be claimed. */
    assert_in_range(stage_remaining_ms(2), 9000, 10000 - 500 - 2);
    FINISH();
}

static void the_deadline_counts_from_before_the_sending(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "warm");
    S.mute = true;
    ACQUIRE(2, "x", .lease_ms = 2000);
    ADVANCE_MS(600);
    S.mute = false;
    stage_run();
    EXPECT(2, HF_OK);
    assert_int_equal(stage_remaining_ms(2), 2000 - 20 - 2 - 600);
    FINISH();
}

static void a_grant_that_comes_too_late_is_asked_for_again(void **state)
{
    (void)state;
    SETUP(.reply_timeout_ms = 10000);
    ACQUIRE(1, "warm");
    S.mute = true;
    ACQUIRE(2, "x", .lease_ms = 500, .wait_ms = 5000);
    ADVANCE_MS(600);
    S.mute = false;
    stage_run();
    EXPECT(2, HF_OK);
    assert_int_equal(stage_remaining_ms(2), 500 - 5 - 2);
    FINISH();
}

static void silence_ends_as_unknown_and_is_cleaned_up(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "warm");
    S.mute = true;
    ACQUIRE(2, "x", .wait_ms = 400);
    ADVANCE_MS(399);
    EXPECT_WAITING(2);
    ADVANCE_MS(1);
    EXPECT(2, HF_EUNKNOWN);
    EXPECT_NO_KEY("x"); /* the release went out behind it, on the same connection */
    S.mute = false;
    stage_run();
    ADVANCE_MS(2000);
    assert_int_equal(S.node.tomb_count, 0);
    FINISH();
}

static void a_late_copy_takes_nothing(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "warm");
    S.delays = true;
    ACQUIRE(2, "x", .wait_ms = 400);
    CUT(); /* the copy is still somewhere in the network */
    S.delays = false;
    S.refuses = true;
    ADVANCE_MS(400);
    EXPECT(2, HF_EUNKNOWN);
    S.refuses = false;
    ADVANCE_MS(1100);
    assert_int_equal(S.node.tomb_count, 1);
    stage_deliver_late();
    EXPECT_NO_KEY("x");
    FINISH();
}

static void a_late_copy_after_a_refusal_takes_nothing(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "warm");
    node_set(&S.node, "x", "somebody", -1);
    S.delays = true;
    ACQUIRE(2, "x");
    CUT();
    S.delays = false;
    ADVANCE_MS(20);
    EXPECT(2, HF_EBUSY);
    node_delete(&S.node, "x");
    stage_deliver_late();
    EXPECT_NO_KEY("x");
    FINISH();
}

static void a_late_copy_after_the_release_takes_nothing(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "warm");
    S.delays = true;
    ACQUIRE(2, "x");
    CUT();
    S.delays = false;
    ADVANCE_MS(20);
    EXPECT(2, HF_OK);
    RELEASE(2);
    EXPECT(2, HF_OK);
    assert_int_equal(S.node.last_tombstone_ms, 10000); /* a tombstone for one lease */
    stage_deliver_late();
    EXPECT_NO_KEY("x");
    FINISH();
}

static void a_reply_that_comes_twice_breaks_the_link_only(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x");
    node_say(&S.node, "*2\r\n:7\r\n:10000\r\n*2\r\n:7\r\n:10000\r\n");
    ACQUIRE(2, "y");
    EXPECT(2, HF_OK);
    assert_non_null(strstr(S.last_log, "nobody asked for"));
    RELEASE(1);
    ADVANCE_MS(20);
    EXPECT(1, HF_OK);
    FINISH();
}

/* Granted, but before we heard of it somebody broke it by force: it is not taken a second time. */
static void a_hold_that_was_broken_before_it_was_heard_of(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "warm");
    S.mute = true;
    ACQUIRE(2, "x", .wait_ms = 5000);
    BREAK(3, "x", node_get(&S.node, "x"), stage_fence_of("x"));
    EXPECT_NO_KEY("x");
    CUT();
    S.mute = false;
    ADVANCE_MS(30);
    EXPECT(2, HF_EBUSY);
    EXPECT_TEXT(2, "force");
    EXPECT(3, HF_OK);
    EXPECT_NO_KEY("x");
    ACQUIRE(4, "x"); /* another one may have it */
    EXPECT(4, HF_OK);
    FINISH();
}

static void a_holder_with_an_absurd_expiry_is_waited_for(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "warm");
    node_say(&S.node, "*3\r\n:0\r\n:9223372036854775807\r\n$1\r\ny\r\n");
    ACQUIRE(2, "x", .wait_ms = 5000);
    ADVANCE_MS(100);
    EXPECT(2, HF_OK);
    FINISH();
}

/* ---- Cancel ---- */

static void cancel_while_pausing(void **state)
{
    (void)state;
    SETUP();
    node_set(&S.node, "x", "somebody", -1);
    ACQUIRE(1, "x", .wait_ms = -1);
    ADVANCE_MS(50);
    stage_cancel(1);
    EXPECT(1, HF_ECANCELLED);
    assert_int_equal(S.node.releases, 0);
    ADVANCE_MS(1000);
    assert_int_equal(S.node.acquires, 1);
    FINISH();
}

static void cancel_gives_back_a_grant_under_way(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "warm");
    S.mute = true;
    ACQUIRE(2, "x", .wait_ms = -1);
    EXPECT_KEY("x");
    stage_cancel(2);
    EXPECT(2, HF_ECANCELLED);
    EXPECT_NO_KEY("x");
    S.mute = false;
    ADVANCE_MS(1000);
    FINISH();
}

static void cancel_after_the_grant_changes_nothing(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x");
    stage_cancel(1);
    EXPECT(1, HF_OK);
    EXPECT_KEY("x");
    FINISH();
}

/* ---- What the server says instead ---- */

static void scripts_that_were_forgotten_are_sent_whole(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x");
    S.node.knows_scripts = false;
    ACQUIRE(2, "y");
    EXPECT(2, HF_OK);
    assert_int_equal(S.node.evals, 1);
    RELEASE(2);
    EXPECT(2, HF_OK);
    assert_int_equal(S.node.evals, 2);
    FINISH();
}

static void our_own_delayed_release_does_not_refuse_us(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x");
    S.mute = true;
    node_say(&S.node, "-NOSCRIPT No matching script.\r\n");
    assert_int_equal(stage_let_go(1), HF_OK);
    ACQUIRE(2, "x"); /* reaches the server before the release is repeated */
    EXPECT_WAITING(2);
    S.mute = false;
    stage_run();
    EXPECT(2, HF_OK);
    assert_int_equal(S.node.acquires, 3);
    FINISH();
}

static const char *const passing[] = {
    "-LOADING Redis is loading the dataset in memory\r\n",
    "-BUSY Redis is busy running a script.\r\n",
    "-OOM command not allowed when used memory > 'maxmemory'.\r\n",
    "-MISCONF Redis is configured to save RDB snapshots\r\n",
    "-READONLY You can't write against a read only replica.\r\n",
    "-MASTERDOWN Link with MASTER is down\r\n",
};

static void errors_that_may_pass(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(passing) / sizeof(passing[0]); i++) {
        SETUP();
        ACQUIRE(1, "warm");
        node_say(&S.node, passing[i]);
        ACQUIRE(2, "x");
        EXPECT(2, HF_EUNAVAILABLE);
        node_say(&S.node, passing[i]);
        ACQUIRE(3, "y", .wait_ms = 1000);
        EXPECT_WAITING(3);
        ADVANCE_MS(200);
        EXPECT(3, HF_OK);
        FINISH();
    }
}

static void errors_that_cannot_pass(void **state)
{
    (void)state;
    static const struct {
        const char *reply;
        hf_status status;
    } table[] = {
        {"-WRONGTYPE Operation against a key\r\n", HF_ESERVER},
        {"-NOPERM this user has no permissions\r\n", HF_EDENIED},
        {"-NOAUTH Authentication required.\r\n", HF_EDENIED},
        {"-ERR Error running script\r\n", HF_ESERVER},
        {"-MOVED 1 127.0.0.1:7000\r\n", HF_ESERVER},
        {"-WHATEVER\r\n", HF_ESERVER},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        SETUP();
        ACQUIRE(1, "warm");
        node_say(&S.node, table[i].reply);
        ACQUIRE(2, "x", .wait_ms = 60000);
        EXPECT(2, table[i].status);
        FINISH();
    }
}

static void answers_that_make_no_sense_are_not_believed(void **state)
{
    (void)state;
    static const char *const nonsense[] = {
        ":-2\r\n",
        ":-1\r\n",
        ":0\r\n",
        ":9007199254740992\r\n", /* a fence that Lua could not count */
        ":-9223372036854775808\r\n",
        "+OK\r\n",
        "$5\r\n10000\r\n",
        "$-1\r\n",
        "*0\r\n",
        "*1\r\n:1\r\n",
        "*1\r\n:0\r\n",
        "*1\r\n:-2\r\n",
        "*1\r\n$2\r\n-1\r\n",
        "*2\r\n:0\r\n:1\r\n",      /* a grant without a fence */
        "*2\r\n:-5\r\n:10000\r\n", /* with a negative one */
        "*2\r\n:-9223372036854775808\r\n:1\r\n",
        "*2\r\n:5\r\n:-1\r\n", /* for ever */
        "*2\r\n:5\r\n:-9223372036854775808\r\n",
        "*2\r\n:1\r\n$1\r\nx\r\n", /* what busy was in 0.1 */
        "*2\r\n$1\r\n1\r\n$1\r\nx\r\n",
        "*2\r\n$1\r\n1\r\n:10000\r\n",
        "*2\r\n*1\r\n:1\r\n:10000\r\n",
        "*3\r\n:1\r\n:1\r\n$1\r\nx\r\n", /* granted and busy */
        "*3\r\n:0\r\n:1\r\n:1\r\n",
        "*3\r\n:0\r\n:1\r\n$-1\r\n",
        "*3\r\n:0\r\n$1\r\n1\r\n$1\r\nx\r\n",
        "*3\r\n:-1\r\n:1\r\n$1\r\nx\r\n",
        "*4\r\n:0\r\n:1\r\n$1\r\nx\r\n:1\r\n",
        "*4\r\n:5\r\n:1\r\n:1\r\n:1\r\n",
        "*5\r\n:0\r\n:1\r\n$1\r\nx\r\n:0\r\n:0\r\n", /* queued at no place */
        "*5\r\n:0\r\n:1\r\n$1\r\nx\r\n:-1\r\n:0\r\n",
        "*5\r\n:0\r\n:1\r\n$1\r\nx\r\n$1\r\n1\r\n:0\r\n",
        "*5\r\n:0\r\n:1\r\n$1\r\nx\r\n:1\r\n$1\r\n0\r\n",
        "*5\r\n:7\r\n:1\r\n$1\r\nx\r\n:1\r\n:0\r\n", /* granted and queued */
        "*3\r\n:1\r\n:1\r\n$-1\r\n",
        "*2\r\n:9007199254740992\r\n:10000\r\n", /* a fence that Lua could not count */
        "*2\r\n:1\r\n*0\r\n",
        "HTTP/1.1 200 OK\r\n\r\n",
        "*2147483648\r\n",
        "$-7\r\n",
        "\r\n",
    };
    for (size_t i = 0; i < sizeof(nonsense) / sizeof(nonsense[0]); i++) {
        SETUP();
        ACQUIRE(1, "warm");
        node_say(&S.node, nonsense[i]);
        ACQUIRE(2, "x");
        EXPECT_WAITING(2);
        assert_int_equal(S.node.greetings, 1);
        ADVANCE_MS(20);
        EXPECT(2, HF_OK); /* asked again on a new connection */
        assert_int_equal(S.node.greetings, 2);
        FINISH();
    }
}

static void too_many_at_once_are_turned_away(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "warm");
    S.deaf = true;
    static hf__call flood[HF_PENDING_MAX];
    for (int i = 0; i < HF_PENDING_MAX; i++) {
        hf__wish wish = {.who = {.client_id = "c", .host = "h", .number = (uint64_t)i},
                         .name = HF__SLICE("x"),
                         .lease = hf__span_ms(1000)};
        flood[i] = (hf__call){.kind = HF__CALL_ACQUIRE, .wait_ms = 100};
        flood[i].hold = hf__hold_new(&wish);
        hf__event event = {.kind = HF__EVENT_START, .call = &flood[i], .now = S.now};
        hf__core_step(S.core, &event);
    }
    ACQUIRE(2, "x", .wait_ms = 100);
    EXPECT(2, HF_EUNAVAILABLE);
    EXPECT_TEXT(2, "too many");
    INSPECT(3, "x");
    EXPECT(3, HF_EUNAVAILABLE);
    EXPECT_TEXT(3, "too many");
    ADVANCE_MS(100); /* some have been sent; the others have waited for these to be answered */
    assert_int_equal(flood[0].error.status, HF_EUNKNOWN);
    for (int i = 1; i < HF_PENDING_MAX; i++)
        assert_true(flood[i].error.status == HF_EUNAVAILABLE ||
                    flood[i].error.status == flood[i - 1].error.status);
    assert_int_equal(flood[HF_PENDING_MAX - 1].error.status, HF_EUNAVAILABLE);
    ADVANCE_MS(3000); /* the leases are over: nobody needs to be asked to give anything back */
    S.deaf = false;
    ACQUIRE(3, "x");
    EXPECT(3, HF_OK);
    FINISH();
}

/* ---- Found by review ---- */

static void our_own_release_that_pauses_does_not_refuse_us(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x");
    node_say(&S.node, "-BUSY Redis is busy running a script.\r\n");
    assert_int_equal(stage_let_go(1), HF_OK);
    ACQUIRE(2, "x");
    EXPECT(2, HF_OK);
    FINISH();
}

/* Only the release of the very hold that is in the way is waited for. */
static void a_strangers_lock_is_busy_whatever_we_release(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "warm");
    node_set(&S.node, "x", "stranger", -1);
    S.mute = true;
    ACQUIRE(2, "x", .wait_ms = 20);
    ADVANCE_MS(20);
    EXPECT(2, HF_EUNKNOWN); /* its release is unanswered now */
    ACQUIRE(3, "x");
    int before = S.node.acquires;
    S.mute = false;
    stage_run();
    EXPECT(3, HF_EBUSY);
    assert_int_equal(S.node.acquires, before);
    FINISH();
}

static void a_release_that_is_refused_for_good_is_not_waited_for(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x");
    node_say(&S.node, "-NOPERM this user has no permissions\r\n");
    assert_int_equal(stage_let_go(1), HF_OK);
    ACQUIRE(2, "x");
    EXPECT(2, HF_EBUSY);
    FINISH();
}

static void grants_that_always_come_too_late_are_no_storm(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "warm");
    for (int i = 0; i < NODE_CANNED; i++)
        node_say(&S.node, "*2\r\n:7\r\n:0\r\n");
    ACQUIRE(2, "x", .wait_ms = 250);
    EXPECT_WAITING(2);
    assert_int_equal(S.node.canned_count, NODE_CANNED - 2);
    ADVANCE_MS(250);
    EXPECT(2, HF_EUNKNOWN);
    FINISH();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grants_a_free_lock_in_one_round_trip),
        cmocka_unit_test(tries_once_by_default),
        cmocka_unit_test(waits_until_the_lock_is_free),
        cmocka_unit_test(tries_when_the_holders_lease_runs_out),
        cmocka_unit_test(keeps_ten_ms_between_tries),
        cmocka_unit_test(gives_up_when_the_wait_is_over),
        cmocka_unit_test(gives_up_after_max_retries),
        cmocka_unit_test(the_first_limit_counts),
        cmocka_unit_test(waits_for_ever_if_asked),
        cmocka_unit_test(request_lost_is_sent_again),
        cmocka_unit_test(reply_lost_is_granted_again_with_the_same_value),
        cmocka_unit_test(the_deadline_counts_from_before_the_sending),
        cmocka_unit_test(a_grant_that_comes_too_late_is_asked_for_again),
        cmocka_unit_test(silence_ends_as_unknown_and_is_cleaned_up),
        cmocka_unit_test(a_late_copy_takes_nothing),
        cmocka_unit_test(a_late_copy_after_a_refusal_takes_nothing),
        cmocka_unit_test(a_late_copy_after_the_release_takes_nothing),
        cmocka_unit_test(a_reply_that_comes_twice_breaks_the_link_only),
        cmocka_unit_test(a_hold_that_was_broken_before_it_was_heard_of),
        cmocka_unit_test(a_holder_with_an_absurd_expiry_is_waited_for),
        cmocka_unit_test(cancel_while_pausing),
        cmocka_unit_test(cancel_gives_back_a_grant_under_way),
        cmocka_unit_test(cancel_after_the_grant_changes_nothing),
        cmocka_unit_test(scripts_that_were_forgotten_are_sent_whole),
        cmocka_unit_test(our_own_delayed_release_does_not_refuse_us),
        cmocka_unit_test(errors_that_may_pass),
        cmocka_unit_test(errors_that_cannot_pass),
        cmocka_unit_test(answers_that_make_no_sense_are_not_believed),
        cmocka_unit_test(too_many_at_once_are_turned_away),
        cmocka_unit_test(our_own_release_that_pauses_does_not_refuse_us),
        cmocka_unit_test(a_strangers_lock_is_busy_whatever_we_release),
        cmocka_unit_test(a_release_that_is_refused_for_good_is_not_waited_for),
        cmocka_unit_test(grants_that_always_come_too_late_are_no_storm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
