/* SPDX-License-Identifier: MIT */
/* Taking up a hold from its token: one has it only if the server says so, with a deadline from
 * before the question was sent, and an attempt that fails releases nothing. */
#include <string.h>

#include "gate.h"
#include "token.h"

#define S the_stage

static void takes_up_the_hold(void **state)
{
    (void)state;
    SETUP();
    stage_token token = taken(10000);
    ADVANCE_MS(4000);
    ATTACH(2, &token, "x");
    EXPECT(2, HF_OK);
    assert_int_equal(FENCE(2), token.fence);
    assert_int_equal(stage_remaining_ms(2), 10000 - 100 - 2);
    assert_int_equal(node_ttl_ms(&S.node, "x"), 10000);
    RELEASE(2);
    EXPECT(2, HF_OK);
    EXPECT_NO_KEY("x");
    FINISH();
}

static void is_renewed_by_itself(void **state)
{
    (void)state;
    SETUP();
    stage_token token = taken(3000);
    ATTACH(2, &token, "x", .renew_interval_ms = 1000);
    ADVANCE_MS(20000);
    EXPECT_STATE(2, HF_SAFE);
    EXPECT_QUIET(2);
    RELEASE(2);
    EXPECT(2, HF_OK);
    FINISH();
}

/* A short lease only looks: it makes nothing shorter, and what is left is what the server says. */
static void a_short_lease_only_looks(void **state)
{
    (void)state;
    SETUP();
    stage_token token = taken(10000);
    ADVANCE_MS(4000);
    ATTACH(2, &token, "x", .lease_ms = HF_LEASE_MIN_MS);
    EXPECT(2, HF_OK);
    assert_int_equal(stage_remaining_ms(2), 6000 - 60 - 2);
    assert_int_equal(node_ttl_ms(&S.node, "x"), 6000);
    assert_int_equal(stage_detach(2, &token), HF_OK);
    expect_held();
    FINISH();
}

static void a_lock_that_is_gone_is_lost(void **state)
{
    (void)state;
    SETUP();
    stage_token token = taken(1000);
    ADVANCE_MS(1001);
    ATTACH(2, &token, "x");
    EXPECT(2, HF_ELOST);
    node_set(&S.node, "x", "another", 5000);
    ATTACH(2, &token, "x");
    EXPECT(2, HF_ELOST);
    EXPECT_TEXT(2, "no longer knows");
    assert_string_equal(node_get(&S.node, "x"), "another");
    assert_int_equal(S.node.releases, 0);
    FINISH();
}

/* A copy of the acquire that comes very late gets the lock anew, for the same value: not by the
 * grant that the token is of. */
static void a_later_grant_to_the_same_value_is_another(void **state)
{
    (void)state;
    SETUP();
    stage_token token = taken(1000);
    ADVANCE_MS(1001);
    ACQUIRE(2, "x");
    EXPECT(2, HF_OK);
    assert_true(FENCE(2) > token.fence);
    RELEASE(2);
    EXPECT(2, HF_OK);
    int releases = S.node.releases;
    node_set(&S.node, "x", token.value, 5000);
    node_set(&S.node, "hf:f:{5300}x", "1800000000000000", 5000);
    ATTACH(3, &token, "x");
    EXPECT(3, HF_ELOST);
    assert_int_equal(S.node.releases, releases);
    FINISH();
}

static void a_token_of_another_lock_is_lost(void **state)
{
    (void)state;
    SETUP();
    stage_token token = taken(10000);
    ATTACH(2, &token, "y");
    EXPECT(2, HF_ELOST);
    expect_held();
    FINISH();
}

static void a_broken_lock_says_so(void **state)
{
    (void)state;
    SETUP();
    stage_token token = taken(10000);
    BREAK(3, "x", token.value, token.fence);
    EXPECT(3, HF_OK);
    ATTACH(2, &token, "x");
    EXPECT(2, HF_ELOST);
    EXPECT_TEXT(2, "broken");
    FINISH();
}

static void a_refusal_is_told_and_the_lock_stays(void **state)
{
    (void)state;
    static const struct {
        const char *reply;
        hf_status status;
    } table[] = {
        {"-LOADING Redis is loading the dataset in memory\r\n", HF_EUNAVAILABLE},
        {"-NOPERM this user has no permissions\r\n", HF_EDENIED},
        {"*1\r\n-WRONGTYPE Operation against a key\r\n", HF_ESERVER},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        SETUP();
        stage_token token = taken(10000);
        node_say(&S.node, table[i].reply);
        ATTACH(2, &token, "x");
        EXPECT(2, table[i].status);
        ADVANCE_MS(5000);
        expect_held();
        FINISH();
    }
}

static void scripts_are_sent_again(void **state)
{
    (void)state;
    SETUP();
    stage_token token = taken(10000);
    S.node.knows_scripts = false;
    ATTACH(2, &token, "x");
    EXPECT(2, HF_OK);
    FINISH();
}

static void no_connection_is_unavailable_at_once(void **state)
{
    (void)state;
    SETUP();
    stage_token token = taken(10000);
    S.refuses = true;
    CUT();
    ATTACH(2, &token, "x");
    ADVANCE_MS(100);
    EXPECT(2, HF_EUNAVAILABLE);
    S.refuses = false;
    ADVANCE_MS(5000);
    expect_held();
    assert_int_equal(S.node.renewals, 0);
    FINISH();
}

static void a_connection_that_takes_too_long_is_unavailable(void **state)
{
    (void)state;
    SETUP(.connect_timeout_ms = 60000, .call_timeout_ms = 2000);
    stage_token token = taken(10000);
    S.swallows = true;
    CUT();
    ATTACH(2, &token, "x");
    ADVANCE_MS(1999);
    EXPECT_WAITING(2);
    ADVANCE_MS(1);
    EXPECT(2, HF_EUNAVAILABLE);
    FINISH();
}

static void no_answer_is_unknown_and_releases_nothing(void **state)
{
    (void)state;
    SETUP(.reply_timeout_ms = 60000, .call_timeout_ms = 2000);
    stage_token token = taken(10000);
    S.mute = true;
    ATTACH(2, &token, "x");
    ADVANCE_MS(1999);
    EXPECT_WAITING(2);
    ADVANCE_MS(1);
    EXPECT(2, HF_EUNKNOWN);
    S.mute = false; /* the answer comes too late for anybody */
    ADVANCE_MS(3000);
    expect_held();
    ATTACH(3, &token, "x");
    EXPECT(3, HF_OK);
    FINISH();
}

static void silence_on_a_dead_connection_is_unknown_too(void **state)
{
    (void)state;
    SETUP(.reply_timeout_ms = 500, .call_timeout_ms = 2000);
    stage_token token = taken(10000);
    S.deaf = true;
    ATTACH(2, &token, "x");
    ADVANCE_MS(2000);
    EXPECT(2, HF_EUNKNOWN);
    S.deaf = false;
    ADVANCE_MS(3000);
    expect_held();
    assert_int_equal(S.node.renewals, 0); /* nobody wants that copy any more */
    FINISH();
}

static void a_cut_connection_is_tried_again(void **state)
{
    (void)state;
    SETUP();
    stage_token token = taken(10000);
    S.mute = true;
    ATTACH(2, &token, "x");
    CUT();
    EXPECT_WAITING(2);
    S.mute = false;
    ADVANCE_MS(20);
    EXPECT(2, HF_OK);
    assert_int_equal(S.node.renewals, 2);
    FINISH();
}

/* At whatever byte the connection breaks, it is had in the end, with the right deadline. */
static void it_may_be_cut_anywhere(void **state)
{
    (void)state;
    for (long bytes = 0; bytes < 400; bytes++) {
        SETUP();
        stage_token token = taken(10000);
        S.cut_after = bytes;
        ATTACH(2, &token, "x");
        ADVANCE_MS(1000);
        EXPECT(2, HF_OK);
        assert_in_range(stage_remaining_ms(2), 10000 - 102 - 1000, 10000 - 102);
        RELEASE(2);
        ADVANCE_MS(1000);
        EXPECT(2, HF_OK);
        EXPECT_NO_KEY("x");
        FINISH();
    }
}

static void a_restarted_server_has_forgotten_it(void **state)
{
    (void)state;
    SETUP();
    stage_token token = taken(10000);
    node_restart(&S.node);
    CUT();
    ATTACH(2, &token, "x");
    ADVANCE_MS(20);
    EXPECT(2, HF_ELOST);
    FINISH();
}

static void counts_from_before_the_sending(void **state)
{
    (void)state;
    SETUP();
    stage_token token = taken(5000);
    S.mute = true;
    ATTACH(2, &token, "x");
    ADVANCE_MS(900);
    S.mute = false;
    stage_run();
    EXPECT(2, HF_OK);
    assert_int_equal(stage_remaining_ms(2), 5000 - 50 - 2 - 900);
    FINISH();
}

/* The server had it when it answered, and perhaps has it still, but nobody here may count on it. It
 * must not be released either: somebody else with the token may have renewed it. */
static void an_answer_after_the_lease_is_lost(void **state)
{
    (void)state;
    SETUP(.reply_timeout_ms = 5000);
    stage_token token = taken(1000);
    S.mute = true;
    ATTACH(2, &token, "x");
    ADVANCE_MS(990);
    S.mute = false;
    stage_run();
    EXPECT(2, HF_ELOST);
    EXPECT_KEY("x");
    CLOSE(3);
    EXPECT(3, HF_OK);
    expect_held();
    FINISH();
}

static void no_more_is_believed_than_was_ever_asked_for(void **state)
{
    (void)state;
    SETUP();
    stage_token token = taken(10000);
    S.node.now_ms -= 100000;
    ATTACH(2, &token, "x", .lease_ms = 1000);
    EXPECT(2, HF_OK);
    assert_in_range(stage_remaining_ms(2), 1, 10000 - 100 - 2);
    FINISH();
}

static void closing_ends_the_attempt_and_releases_nothing(void **state)
{
    (void)state;
    SETUP();
    stage_token token = taken(10000);
    S.mute = true;
    ATTACH(2, &token, "x");
    CLOSE(3);
    EXPECT(2, HF_ECLOSED);
    EXPECT(3, HF_OK);
    S.mute = false;
    stage_run();
    ATTACH(4, &token, "x");
    EXPECT(4, HF_ECLOSED);
    expect_held();
    FINISH();
}

static void closing_releases_what_was_attached(void **state)
{
    (void)state;
    SETUP();
    stage_token token = taken(10000);
    ATTACH(2, &token, "x");
    CLOSE(3);
    EXPECT(3, HF_OK);
    EXPECT_NO_KEY("x");
    FINISH();
}

static void a_request_to_give_up_is_heard(void **state)
{
    (void)state;
    SETUP();
    stage_token token = taken(10000);
    REVOKE(3, "x", "please");
    EXPECT(3, HF_OK);
    ATTACH(2, &token, "x");
    EXPECT(2, HF_OK);
    assert_string_equal(stage_next_told(2)->text, "please");
    EXPECT_TOLD(2, HF_SAFE, REVOKED);
    EXPECT_QUIET(2);
    FINISH();
}

static void a_later_request_is_heard_with_a_renewal(void **state)
{
    (void)state;
    SETUP();
    stage_token token = taken(3000);
    ATTACH(2, &token, "x", .renew_interval_ms = 1000);
    REVOKE(3, "x", "now");
    EXPECT_QUIET(2);
    ADVANCE_MS(1000);
    EXPECT_TOLD(2, HF_SAFE, REVOKED);
    FINISH();
}

static void loss_is_told(void **state)
{
    (void)state;
    SETUP();
    stage_token token = taken(3000);
    ATTACH(2, &token, "x", .renew_interval_ms = 1000);
    node_delete(&S.node, "x");
    ADVANCE_MS(1000);
    EXPECT_TOLD(2, HF_LOST, GONE);
    RELEASE(2);
    EXPECT(2, HF_ELOST);
    FINISH();
}

/* ---- Owners ---- */

static void a_shared_hold_is_taken_up_alone(void **state)
{
    (void)state;
    SETUP();
    stage_token token;
    ACQUIRE(1, "x", .owner = "me", .lease_ms = 2000);
    ACQUIRE(2, "x", .owner = "me", .lease_ms = 8000);
    EXPECT(2, HF_OK);
    assert_int_equal(stage_detach(1, &token), HF_OK);
    assert_string_equal(token.owner, "me");
    ADVANCE_MS(1000);
    ATTACH(3, &token, "x");
    EXPECT(3, HF_OK);
    assert_int_equal(stage_remaining_ms(3), 2000 - 20 - 2);
    RELEASE(3);
    EXPECT(3, HF_OK);
    EXPECT_KEY("x"); /* the other one's */
    RELEASE(2);
    EXPECT(2, HF_OK);
    EXPECT_NO_KEY("x");
    FINISH();
}

static void a_shared_hold_that_has_ended_is_lost(void **state)
{
    (void)state;
    SETUP();
    stage_token token;
    ACQUIRE(1, "x", .owner = "me", .lease_ms = 2000);
    ACQUIRE(2, "x", .owner = "me", .lease_ms = 8000);
    assert_int_equal(stage_detach(1, &token), HF_OK);
    ADVANCE_MS(2001);
    ATTACH(3, &token, "x");
    EXPECT(3, HF_ELOST);
    EXPECT_KEY("x");
    FINISH();
}

/* ---- Memory ---- */

/* Allocation `number` fails while a token is used; false: there were fewer. */
static bool attach_without(long number)
{
    SETUP();
    stage_token token = taken(10000);
    REVOKE(9, "x", "please"); /* so that words must be kept */
    CUT();
    gate_fail_at(number);
    bool started = stage_start_attach(2, &token, &(stage_acquire){.name = "x"});
    for (int i = 0; started && i < 40 && !S.calls[2].done; i++)
        ADVANCE_MS(100);
    bool failed = gate_open();
    if (!started)
        S.calls[2] = (hf__call){.kind = HF__CALL_EXTEND}; /* it is not on its way */
    else if (S.calls[2].error.status != HF_OK)
        assert_true(S.calls[2].error.status == HF_ENOMEM ||
                    S.calls[2].error.status == HF_EUNAVAILABLE ||
                    S.calls[2].error.status == HF_EUNKNOWN);
    expect_held();
    ATTACH(3, &token, "x");
    ADVANCE_MS(100);
    EXPECT(3, HF_OK);
    FINISH();
    return failed;
}

static void every_allocation_fails_once(void **state)
{
    (void)state;
    long number = 0;
    while (attach_without(number))
        assert_true(++number < 1000);
    assert_true(number >= 3); /* the hold, what is sent, the words */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_up_the_hold),
        cmocka_unit_test(is_renewed_by_itself),
        cmocka_unit_test(a_short_lease_only_looks),
        cmocka_unit_test(a_lock_that_is_gone_is_lost),
        cmocka_unit_test(a_later_grant_to_the_same_value_is_another),
        cmocka_unit_test(a_token_of_another_lock_is_lost),
        cmocka_unit_test(a_broken_lock_says_so),
        cmocka_unit_test(a_refusal_is_told_and_the_lock_stays),
        cmocka_unit_test(scripts_are_sent_again),
        cmocka_unit_test(no_connection_is_unavailable_at_once),
        cmocka_unit_test(a_connection_that_takes_too_long_is_unavailable),
        cmocka_unit_test(no_answer_is_unknown_and_releases_nothing),
        cmocka_unit_test(silence_on_a_dead_connection_is_unknown_too),
        cmocka_unit_test(a_cut_connection_is_tried_again),
        cmocka_unit_test(it_may_be_cut_anywhere),
        cmocka_unit_test(a_restarted_server_has_forgotten_it),
        cmocka_unit_test(counts_from_before_the_sending),
        cmocka_unit_test(an_answer_after_the_lease_is_lost),
        cmocka_unit_test(no_more_is_believed_than_was_ever_asked_for),
        cmocka_unit_test(closing_ends_the_attempt_and_releases_nothing),
        cmocka_unit_test(closing_releases_what_was_attached),
        cmocka_unit_test(a_request_to_give_up_is_heard),
        cmocka_unit_test(a_later_request_is_heard_with_a_renewal),
        cmocka_unit_test(loss_is_told),
        cmocka_unit_test(a_shared_hold_is_taken_up_alone),
        cmocka_unit_test(a_shared_hold_that_has_ended_is_lost),
        cmocka_unit_test(every_allocation_fails_once),
    };
    stage_install_gate();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
