/* SPDX-License-Identifier: MIT */
/* The link on which the server sends messages: when it is opened, what keeps it up, what happens
 * while it is down or not allowed. What messages do is in test_message.c. */
#include <string.h>

#include "contest.h"
#include "core/state.h" /* to send a PING by hand */

#define S        the_stage
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* ---- When there is a subscription ---- */

static void nobody_who_need_not_wait_subscribes(void **state)
{
    (void)state;
    contest_begin_held();
    ACQUIRE(1, "free", .wait_ms = 5000, .deaf = true);
    EXPECT(1, HF_OK);
    ACQUIRE(2, "x", .deaf = true); /* one try */
    ACQUIRE(3, "x", .max_retries = 2, .deaf = true);
    ACQUIRE(4, "x", .wait_ms = 500, .retry_interval_ms = 50, .deaf = true);
    ADVANCE_MS(1000);
    for (int i = 2; i <= 4; i++)
        EXPECT(i, HF_EBUSY);
    assert_int_equal(S.node.subscribes, 0);
    assert_int_equal(S.node.last_copy, 0);
    assert_int_equal(S.node.releases, 0);
    assert_int_equal(S.connects, 1);
    contest_end();
}

static void the_first_who_waits_subscribes_for_all(void **state)
{
    (void)state;
    SETUP(.messages = true, .links = 2);
    rival_begin();
    RIVAL_ACQUIRES("x", .number = 1);
    RIVAL_ACQUIRES("foo", .number = 2);
    ACQUIRE(1, "x", .wait_ms = 60000);
    ACQUIRE(2, "x", .wait_ms = 60000);
    ACQUIRE(3, "foo", .wait_ms = 60000); /* on the other link */
    assert_int_equal(S.connects, 3);
    assert_int_equal(S.node.subscribes, 1);
    rival_release("foo", 2);
    EXPECT(3, HF_OK);
    rival_release("x", 1);
    EXPECT(1, HF_OK);
    contest_end();
}

/* To hear when somebody asks for what it has; for as long as it has it. */
static void one_with_a_listener_subscribes(void **state)
{
    (void)state;
    for (int ending = 0; ending < 3; ending++) {
        SETUP(.messages = true);
        ACQUIRE(1, "x", .lease_ms = 9000, .renew_interval_ms = 3000);
        ACQUIRE(2, "y", .lease_ms = 9000, .deaf = true);
        EXPECT(1, HF_OK);
        assert_int_equal(S.node.subscribes, 1);
        stage_cut_link(PUSH);
        ADVANCE_MS(5000);
        assert_int_equal(S.node.subscribes, 2);
        assert_in_range(S.node.pings, 4, 7);
        if (ending == 0)
            RELEASE(1);
        else if (ending == 1)
            assert_int_equal(stage_let_go(1), HF_OK);
        else
            node_delete(&S.node, "x"); /* it will notice with the next renewal */
        ADVANCE_MS(3000);
        int pings = S.node.pings;
        stage_cut_link(PUSH);
        ADVANCE_MS(5000);
        assert_int_equal(S.node.pings, pings);
        assert_int_equal(S.node.subscribes, 2);
        FINISH();
    }
}

static void nobody_queues_before_the_subscription_is_confirmed(void **state)
{
    (void)state;
    contest_begin_held();
    S.muted = 1 << PUSH;
    ACQUIRE(1, "x", .wait_ms = 60000);
    ADVANCE_MS(500);
    assert_int_equal(S.node.last_copy, 0);
    assert_int_equal(S.node.acquires, 6); /* until then it polls */
    assert_null(node_side(&S.node, 'q', "x"));
    S.muted = 0;
    stage_run();
    assert_true(S.node.last_copy > 0);
    assert_int_equal(S.node.acquires, 7); /* and then at once */
    rival_release("x", 1);
    EXPECT(1, HF_OK);
    contest_end();
}

static void without_a_second_connection_it_polls(void **state)
{
    (void)state;
    contest_begin_held();
    ACQUIRE(1, "warm", .deaf = true);
    S.refuses = true;
    ACQUIRE(2, "x", .wait_ms = 60000);
    ADVANCE_MS(10000);
    assert_in_range(S.node.acquires, 95, 105);
    assert_in_range(S.connects, 10, 30); /* with a growing pause */
    rival_release("x", 1);
    ADVANCE_MS(100);
    EXPECT(2, HF_OK);
    contest_end();
}

static void the_subscription_has_the_users_name_and_database(void **state)
{
    (void)state;
    SETUP(.messages = true, .url = "redis://me:pw@node/3");
    S.node.password = "pw";
    rival_begin();
    RIVAL_ACQUIRES("x", .number = 1);
    ACQUIRE(1, "x", .wait_ms = 60000);
    assert_int_equal(S.node.subscribes, 1);
    rival_release("x", 1);
    EXPECT(1, HF_OK);
    contest_end();
}

/* ---- Whether it lives ---- */

static void a_ping_now_and_then(void **state)
{
    (void)state;
    contest_begin_held();
    ACQUIRE(1, "x", .wait_ms = 60000, .deaf = true);
    int before = S.node.pings;
    ADVANCE_MS(10000);
    assert_in_range(S.node.pings, before + 9, before + 11);
    rival_release("x", 1);
    ADVANCE_MS(1000);
    before = S.node.pings;
    ADVANCE_MS(3600000 / 60);
    assert_int_equal(S.node.pings, before); /* nobody waits */
    RELEASE(1);
    RIVAL_ACQUIRES("x", .number = 2);
    ACQUIRE(2, "x", .wait_ms = 60000);
    assert_int_equal(S.node.pings, before + 1); /* again, and at once */
    assert_int_equal(S.node.subscribes, 1);
    contest_end();
}

static void a_subscription_that_is_cut_is_made_anew(void **state)
{
    (void)state;
    contest_begin_held();
    ACQUIRE(1, "x", .wait_ms = 60000, .lease_ms = 60000);
    S.muted = 1 << PUSH;
    rival_release("x", 1); /* which is not heard */
    EXPECT_WAITING(1);
    stage_cut_link(PUSH);
    S.muted = 0;
    ADVANCE_MS(20);
    EXPECT(1, HF_OK); /* all who wait have checked */
    assert_int_equal(S.node.subscribes, 2);
    contest_end();
}

static void silence_is_noticed(void **state)
{
    (void)state;
    contest_begin_held();
    ACQUIRE(1, "x", .wait_ms = 60000, .lease_ms = 60000);
    ADVANCE_MS(500);
    S.muted = 1 << PUSH;
    rival_release("x", 1);
    ADVANCE_MS(1400);
    assert_int_equal(S.connects, 2);
    ADVANCE_MS(150); /* the PING of second 1 is not answered by second 2 */
    assert_int_equal(S.connects, 3);
    assert_non_null(strstr(S.last_log, "no answer"));
    S.muted = 0;
    ADVANCE_MS(1);
    EXPECT(1, HF_OK);
    contest_end();
}

/* An observer sends one when it needs to know, just before the next look at the clock. */
static void a_ping_out_of_turn_has_its_own_time(void **state)
{
    (void)state;
    contest_begin_held();
    ACQUIRE(1, "x", .wait_ms = 60000, .lease_ms = 60000);
    ADVANCE_MS(999);
    S.stalled = 1 << PUSH;
    assert_true(hf__push_ping(&S.core->servers[0]) > 0);
    ADVANCE_MS(500); /* over the end of the first second */
    assert_int_equal(S.connects, 2);
    S.stalled = 0;
    stage_run();
    ADVANCE_MS(2000);
    assert_int_equal(S.connects, 2);
    S.stalled = 1 << PUSH;
    ADVANCE_MS(2100);
    assert_int_equal(S.connects, 3);
    S.stalled = 0;
    rival_release("x", 1);
    ADVANCE_MS(1100);
    EXPECT(1, HF_OK);
    contest_end();
}

static void all_who_wait_check_when_it_is_back(void **state)
{
    (void)state;
    contest_begin_held();
    for (int i = 1; i <= 5; i++)
        ACQUIRE(i, "x", .wait_ms = 60000);
    int before = S.node.acquires;
    stage_cut_link(PUSH);
    ADVANCE_MS(20);
    assert_int_equal(S.node.acquires, before + 5);
    assert_int_equal(S.node.subscribes, 2);
    contest_end();
}

static void a_subscription_that_nobody_needs_is_not_made_anew(void **state)
{
    (void)state;
    contest_begin_held();
    ACQUIRE(1, "x", .wait_ms = 60000, .deaf = true);
    rival_release("x", 1);
    EXPECT(1, HF_OK);
    stage_cut_link(PUSH);
    ADVANCE_MS(2000);
    assert_int_equal(S.connects, 2);
    contest_end();
}

/* ---- Not allowed ---- */

/* They are in the queue all the same, and ask again and again. */
static void without_permission_those_who_wait_poll(void **state)
{
    (void)state;
    static const char *const denied[] = {"SUBSCRIBE", "PUBLISH", "PUBSUB", "PING"};
    for (size_t i = 0; i < COUNT(denied); i++) {
        contest_begin_held();
        S.node.denies = denied[i];
        ACQUIRE(1, "x", .wait_ms = 60000);
        assert_non_null(strstr(S.last_log, "poll"));
        assert_non_null(strstr(S.last_log, "permission"));
        int logged = S.logged;
        ACQUIRE(2, "x", .wait_ms = 60000);
        ADVANCE_MS(1050);
        assert_int_equal(S.logged, logged); /* once */
        assert_in_range(S.connects, 3, 5);  /* it was tried again, after half a second or less */
        assert_int_equal(S.node.last_copy, -1);
        assert_in_range(S.node.acquires, 22, 26);
        stage_cancel(1);
        rival_release("x", 1);
        ADVANCE_MS(100);
        EXPECT(2, HF_OK);
        contest_end();
    }
}

/* What was denied is tried again, ever less often, and when it works, all is as it should be. */
static void a_permission_that_comes_back_is_used(void **state)
{
    (void)state;
    static const char *const denied[] = {"SUBSCRIBE", "PUBLISH", "PUBSUB", "PING"};
    for (size_t i = 0; i < COUNT(denied); i++) {
        contest_begin_held();
        S.node.denies = denied[i];
        ACQUIRE(1, "x", .wait_ms = 600000);
        int connects = S.connects;
        ADVANCE_MS(60000);
        assert_in_range(S.connects - connects, 60 / 8, 60 / 4 + 6);
        S.node.denies = NULL;
        ADVANCE_MS(8000);
        assert_non_null(strstr(S.last_log, "allows messages again"));
        assert_true(S.node.last_copy > 0);
        int acquires = S.node.acquires;
        ADVANCE_MS(3000);
        assert_in_range(S.node.acquires - acquires, 0, 2); /* it checks, as others do */
        rival_release("x", 1);
        EXPECT(1, HF_OK); /* at once, by a message */
        contest_end();
    }
}

static void nobody_waits_and_nothing_is_tried(void **state)
{
    (void)state;
    contest_begin_held();
    S.node.denies = "SUBSCRIBE";
    ACQUIRE(1, "x", .wait_ms = 300, .deaf = true);
    ADVANCE_MS(10000);
    EXPECT(1, HF_EBUSY);
    int connects = S.connects;
    ADVANCE_MS(60000);
    assert_int_equal(S.connects, connects);
    ACQUIRE(1, "x", .wait_ms = 60000, .deaf = true); /* and the first who does tries again */
    assert_int_equal(S.connects, connects + 1);
    contest_end();
}

/* Others queue, with messages, all the time: one without gets its turn. */
static void who_has_no_messages_does_not_starve(void **state)
{
    (void)state;
    contest_begin_held();
    RIVAL_QUEUES("x", .number = 2);
    S.node.denies = "SUBSCRIBE";
    ACQUIRE(1, "x", .wait_ms = 60000);
    int served = 0;
    for (; served < 20 && !S.calls[1].done; served++) {
        RIVAL_QUEUES("x", .number = served + 3);
        rival_release("x", served + 1);
        ADVANCE_MS(110); /* it hears of a grant with its next check */
    }
    EXPECT(1, HF_OK);
    assert_int_equal(served, 2); /* those who were there before it */
    contest_end();
}

/* It leaves the queue when it gives up, as others do. */
static void who_has_no_messages_leaves_the_queue(void **state)
{
    (void)state;
    contest_begin_held();
    S.node.denies = "SUBSCRIBE";
    ACQUIRE(1, "x", .wait_ms = 500);
    ADVANCE_MS(600);
    EXPECT(1, HF_EBUSY);
    rival_release("x", 1);
    EXPECT_NO_KEY("x");
    contest_end();
}

static void other_refusals_of_the_greeting_pass(void **state)
{
    (void)state;
    contest_begin_held();
    ACQUIRE(1, "warm", .deaf = true);
    S.node.greeting_error = "-LOADING Redis is loading the dataset in memory\r\n";
    ACQUIRE(2, "x", .wait_ms = 60000);
    ADVANCE_MS(500);
    assert_int_equal(S.node.last_copy, 0);
    S.node.greeting_error = NULL;
    ADVANCE_MS(2000);
    assert_true(S.node.last_copy > 0);
    rival_release("x", 1);
    EXPECT(2, HF_OK);
    contest_end();
}

/* Whether the lock is still what it was cannot be told from a server that does not say who it is.
 */
static void a_server_without_a_run_id_is_polled(void **state)
{
    (void)state;
    contest_begin_held();
    S.node.run_id[0] = '\0';
    ACQUIRE(1, "x", .wait_ms = 60000);
    ADVANCE_MS(500);
    assert_int_equal(S.node.last_copy, 0);
    rival_release("x", 1);
    ADVANCE_MS(200);
    EXPECT(1, HF_OK);
    contest_end();
}

/* A second copy that finds nothing was released, if it is the same process; here nobody knows. */
static void nor_is_its_second_answer_believed(void **state)
{
    (void)state;
    SETUP();
    S.node.run_id[0] = '\0';
    ACQUIRE(1, "x");
    EXPECT(1, HF_OK);
    S.deaf = true;
    RELEASE(1);
    CUT();
    node_restart(&S.node);
    S.node.run_id[0] = '\0';
    S.deaf = false;
    ADVANCE_MS(20);
    assert_true(S.calls[1].done && S.calls[1].error.status != HF_OK);
    FINISH();
}

static void a_subscription_to_another_channel_is_none(void **state)
{
    (void)state;
    contest_begin_held();
    S.node.confirms = "hf:c:somebody";
    ACQUIRE(1, "x", .wait_ms = 60000);
    ADVANCE_MS(500);
    assert_int_equal(S.node.last_copy, 0);
    S.node.confirms = NULL;
    ADVANCE_MS(2000);
    assert_true(S.node.last_copy > 0);
    rival_release("x", 1);
    EXPECT(1, HF_OK);
    contest_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_who_need_not_wait_subscribes),
        cmocka_unit_test(the_first_who_waits_subscribes_for_all),
        cmocka_unit_test(one_with_a_listener_subscribes),
        cmocka_unit_test(nobody_queues_before_the_subscription_is_confirmed),
        cmocka_unit_test(without_a_second_connection_it_polls),
        cmocka_unit_test(the_subscription_has_the_users_name_and_database),
        cmocka_unit_test(a_ping_now_and_then),
        cmocka_unit_test(a_subscription_that_is_cut_is_made_anew),
        cmocka_unit_test(silence_is_noticed),
        cmocka_unit_test(a_ping_out_of_turn_has_its_own_time),
        cmocka_unit_test(all_who_wait_check_when_it_is_back),
        cmocka_unit_test(a_subscription_that_nobody_needs_is_not_made_anew),
        cmocka_unit_test(without_permission_those_who_wait_poll),
        cmocka_unit_test(a_permission_that_comes_back_is_used),
        cmocka_unit_test(nobody_waits_and_nothing_is_tried),
        cmocka_unit_test(who_has_no_messages_does_not_starve),
        cmocka_unit_test(who_has_no_messages_leaves_the_queue),
        cmocka_unit_test(other_refusals_of_the_greeting_pass),
        cmocka_unit_test(a_server_without_a_run_id_is_polled),
        cmocka_unit_test(nor_is_its_second_answer_believed),
        cmocka_unit_test(a_subscription_to_another_channel_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
