/* SPDX-License-Identifier: MIT */
/* Watching a lock, in virtual time: what is heard by message, what is found by looking, and that an
 * observer is told of everything once and in order, also where messages are lost or not allowed. */
#include <string.h>

#include "watch.h"

#define S the_stage

enum { PUSH = 1 }; /* the link of messages */

/* ---- By message ---- */

static void a_life_of_a_lock(void **state)
{
    (void)state;
    watch_begin();
    watch("x");
    expect_seen(HF_SEEN_FREE, "", 0);
    RIVAL_ACQUIRES("x", .number = 7);
    hf_sight granted = expect_seen(HF_SEEN_GRANTED, RIVAL_CLIENT, 7);
    assert_true(granted.fence == stage_fence_of("x"));
    assert_int_equal(granted.lease_ms, 10000);
    assert_string_equal(granted.who.host, "rival");
    ACQUIRE(1, "x", .wait_ms = 60000);
    expect_seen(HF_SEEN_WAITING, STAGE_CLIENT, 1);
    rival_revoke("x", "please");
    expect_seen(HF_SEEN_REVOKED, RIVAL_CLIENT, 7);
    rival_release("x", 7);
    expect_seen(HF_SEEN_RELEASED, RIVAL_CLIENT, 7);
    expect_seen(HF_SEEN_GRANTED, STAGE_CLIENT, 1);
    rival_break("x");
    expect_seen(HF_SEEN_BROKEN, STAGE_CLIENT, 1);
    expect_nothing();
    ADVANCE_MS(60000);
    expect_nothing();
    watch_end();
}

static void who_has_it_at_the_start(void **state)
{
    (void)state;
    watch_begin();
    ACQUIRE(1, "x", .lease_ms = 5000);
    ADVANCE_MS(1000);
    watch("x");
    hf_sight held = expect_seen(HF_SEEN_HELD, STAGE_CLIENT, 1);
    assert_int_equal(held.lease_ms, 4000);
    assert_true(held.fence == FENCE(1));
    RELEASE(1);
    expect_seen(HF_SEEN_RELEASED, STAGE_CLIENT, 1);
    expect_nothing();
    watch_end();
}

static void it_is_asked_for_again_and_again(void **state)
{
    (void)state;
    watch_begin();
    watch("x");
    int before = S.node.observes;
    assert_true(before >= 1);
    ADVANCE_MS(60000);
    assert_in_range(S.node.observes, before + 5, before + 6); /* every ten seconds */
    RIVAL_ACQUIRES("x", .number = 1);
    expect_seen(HF_SEEN_FREE, "", 0);
    expect_seen(HF_SEEN_GRANTED, RIVAL_CLIENT, 1);
    watch_end();
}

/* Anybody may publish there. A fence that nobody has must not make it deaf for all that are real.
 */
static void a_forged_message_is_found_out_by_looking(void **state)
{
    (void)state;
    static const char forged[] = "*3\r\n$7\r\nmessage\r\n$17\r\nhf:e:hf:f:{5300}x\r\n$39\r\n"
                                 "granted 9223372036854775807 604800000 0\r\n";
    watch_begin();
    watch("x");
    expect_seen(HF_SEEN_FREE, "", 0);
    RIVAL_ACQUIRES("x", .number = 7, .lease = 60000);
    expect_seen(HF_SEEN_GRANTED, RIVAL_CLIENT, 7);
    stage_say(PUSH, forged, sizeof(forged) - 1);
    expect_seen(HF_SEEN_EXPIRED, RIVAL_CLIENT, 7);
    expect_seen(HF_SEEN_GRANTED, "", 0);
    ADVANCE_MS(10100);
    expect_seen(HF_SEEN_EXPIRED, "", 0);
    hf_sight found = expect_seen(HF_SEEN_GRANTED, RIVAL_CLIENT, 7);
    assert_true(found.fence == stage_fence_of("x"));
    rival_release("x", 7);
    expect_seen(HF_SEEN_RELEASED, RIVAL_CLIENT, 7);
    RIVAL_ACQUIRES("x", .number = 8);
    expect_seen(HF_SEEN_GRANTED, RIVAL_CLIENT, 8);
    expect_nothing();
    watch_end();
}

static void nobody_is_told_when_nobody_watches(void **state)
{
    (void)state;
    watch_begin();
    watch("x");
    expect_seen(HF_SEEN_FREE, "", 0);
    stop_watching();
    assert_int_equal(S.node.unsubscribes, 1);
    int messages = S.node.messages;
    ADVANCE_MS(31000);
    RIVAL_ACQUIRES("x", .number = 1);
    rival_release("x", 1);
    RIVAL_ACQUIRES("x", .number = 2);
    assert_in_range(S.node.messages, messages, messages + 1); /* the mark goes with a grant */
    expect_nothing();
    watch_end();
}

static void several_watch_the_same_lock(void **state)
{
    (void)state;
    watch_begin();
    watch("x");
    hf_observer *first = observer;
    watch("x");
    hf__sight sight;
    for (int i = 0; i < 2; i++) {
        assert_true(hf__core_next_sight(S.core, &sight));
        assert_int_equal(sight.sight.kind, HF_SEEN_FREE);
        hf__core_sight_told(S.core);
    }
    stop_watching();
    assert_int_equal(S.node.unsubscribes, 0);
    observer = first;
    RIVAL_ACQUIRES("x", .number = 1);
    expect_seen(HF_SEEN_GRANTED, RIVAL_CLIENT, 1);
    expect_nothing();
    watch_end();
}

/* One of several who share it has left: the lock is not free for that. */
static void a_shared_lock_is_seen_to_its_end(void **state)
{
    (void)state;
    hf_sight sight;
    int granted = 0;
    watch_begin();
    watch("x");
    expect_seen(HF_SEEN_FREE, "", 0);
    ACQUIRE(1, "x", .owner = "me", .lease_ms = 30000);
    ACQUIRE(2, "x", .owner = "me", .lease_ms = 30000);
    expect_seen(HF_SEEN_GRANTED, STAGE_CLIENT, 1);
    RELEASE(1);
    ADVANCE_MS(25000);
    while (next_sight(&sight))
        granted += sight.kind == HF_SEEN_GRANTED;
    assert_int_equal(granted, 0); /* it was not granted to anybody else */
    RELEASE(2);
    expect_seen(HF_SEEN_RELEASED, STAGE_CLIENT, 2);
    expect_nothing();
    watch_end();
}

/* ---- By looking ---- */

static void the_end_of_a_lease_is_seen(void **state)
{
    (void)state;
    watch_begin();
    watch("x");
    expect_seen(HF_SEEN_FREE, "", 0);
    RIVAL_ACQUIRES("x", .number = 1, .lease = 3000);
    expect_seen(HF_SEEN_GRANTED, RIVAL_CLIENT, 1);
    ADVANCE_MS(2999);
    expect_nothing();
    ADVANCE_MS(10);
    expect_seen(HF_SEEN_EXPIRED, RIVAL_CLIENT, 1);
    expect_nothing();
    watch_end();
}

static void a_hold_that_is_renewed_has_not_ended(void **state)
{
    (void)state;
    watch_begin();
    watch("x");
    expect_seen(HF_SEEN_FREE, "", 0);
    ACQUIRE(1, "x", .lease_ms = 3000, .renew_interval_ms = 1000);
    expect_seen(HF_SEEN_GRANTED, STAGE_CLIENT, 1);
    ADVANCE_MS(60000);
    expect_nothing();
    RELEASE(1);
    expect_seen(HF_SEEN_RELEASED, STAGE_CLIENT, 1);
    watch_end();
}

static void what_was_missed_while_cut_off(void **state)
{
    (void)state;
    watch_begin();
    watch("x");
    expect_seen(HF_SEEN_FREE, "", 0);
    RIVAL_ACQUIRES("x", .number = 1);
    expect_seen(HF_SEEN_GRANTED, RIVAL_CLIENT, 1);
    S.refuses = true;
    CUT();
    rival_release("x", 1);
    RIVAL_ACQUIRES("x", .number = 2);
    ADVANCE_MS(3000);
    expect_nothing();
    S.refuses = false;
    ADVANCE_MS(2500);
    expect_seen(HF_SEEN_EXPIRED, RIVAL_CLIENT, 1); /* how, nobody has said */
    expect_seen(HF_SEEN_GRANTED, RIVAL_CLIENT, 2);
    rival_release("x", 2);
    expect_seen(HF_SEEN_RELEASED, RIVAL_CLIENT, 2); /* by message again */
    expect_nothing();
    watch_end();
}

/* A look that began when the lock was free sees a grant, and its answer comes when messages have
 * told of the grant and of the release: that is no other grant. (Simulator, seed 74.) */
static void a_late_answer_grants_nothing_again(void **state)
{
    (void)state;
    watch_begin();
    watch("x");
    expect_seen(HF_SEEN_FREE, "", 0);
    S.refuses = true;
    stage_cut_link(PUSH);
    ADVANCE_MS(990);
    S.stalled = 1; /* the question, */
    ADVANCE_MS(20);
    S.refuses = false;
    ADVANCE_MS(900); /* while messages come again */
    RIVAL_ACQUIRES("x", .number = 1);
    expect_seen(HF_SEEN_GRANTED, RIVAL_CLIENT, 1);
    S.stalled = 0;
    S.muted = 1; /* and the answer */
    stage_run();
    rival_release("x", 1);
    expect_seen(HF_SEEN_RELEASED, RIVAL_CLIENT, 1);
    S.muted = 0;
    ADVANCE_MS(10);
    expect_nothing();
    watch_end();
}

static void without_messages_it_looks_every_second(void **state)
{
    (void)state;
    for (int later = 0; later < 2; later++) {
        watch_begin();
        if (later) { /* other subscriptions are allowed */
            ACQUIRE(9, "warm");
            ADVANCE_MS(1);
        }
        S.node.denies = "SUBSCRIBE";
        watch("x");
        expect_seen(HF_SEEN_FREE, "", 0);
        assert_non_null(strstr(S.last_log, "messages"));
        int before = S.node.inspects;
        ADVANCE_MS(10000);
        assert_in_range(S.node.inspects, before + 9, before + 11);
        RIVAL_ACQUIRES("x", .number = 1);
        ADVANCE_MS(1000);
        expect_seen(HF_SEEN_GRANTED, RIVAL_CLIENT, 1);
        rival_release("x", 1);
        ADVANCE_MS(1000);
        expect_seen(HF_SEEN_EXPIRED, RIVAL_CLIENT, 1);
        expect_nothing();
        watch_end();
    }
}

static void a_permission_that_comes_back_is_used(void **state)
{
    (void)state;
    for (int later = 0; later < 2; later++) {
        watch_begin();
        if (later) {
            ACQUIRE(9, "warm");
            ADVANCE_MS(1);
        }
        S.node.denies = "SUBSCRIBE";
        watch("x");
        expect_seen(HF_SEEN_FREE, "", 0);
        int subscribes = S.node.subscribes;
        ADVANCE_MS(60000);
        assert_int_equal(S.node.subscribes, subscribes);
        S.node.denies = NULL;
        ADVANCE_MS(9000);
        assert_true(S.node.subscribes > subscribes);
        int inspects = S.node.inspects;
        ADVANCE_MS(8000);
        assert_in_range(S.node.inspects - inspects, 0, 2); /* it does not look every second */
        RIVAL_ACQUIRES("x", .number = 1);
        expect_seen(HF_SEEN_GRANTED, RIVAL_CLIENT, 1); /* at once, by a message */
        watch_end();
    }
}

/* The other program raises no fence, and nobody has heard of the release. (Quorum simulator,
 * seed 32.) */
static void another_program_takes_it_between_two_looks(void **state)
{
    (void)state;
    watch_begin();
    S.node.denies = "SUBSCRIBE";
    watch("x");
    expect_seen(HF_SEEN_FREE, "", 0);
    RIVAL_ACQUIRES("x", .number = 1);
    ADVANCE_MS(1000);
    expect_seen(HF_SEEN_GRANTED, RIVAL_CLIENT, 1);
    rival_release("x", 1);
    node_set(&S.node, "x", "somebody", 5000);
    ADVANCE_MS(1010);
    expect_seen(HF_SEEN_EXPIRED, RIVAL_CLIENT, 1);
    expect_seen(HF_SEEN_GRANTED, "", 0);
    ADVANCE_MS(3000);
    expect_nothing();
    ADVANCE_MS(2000);
    expect_seen(HF_SEEN_EXPIRED, "", 0);
    expect_nothing();
    watch_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_life_of_a_lock),
        cmocka_unit_test(who_has_it_at_the_start),
        cmocka_unit_test(it_is_asked_for_again_and_again),
        cmocka_unit_test(a_forged_message_is_found_out_by_looking),
        cmocka_unit_test(nobody_is_told_when_nobody_watches),
        cmocka_unit_test(several_watch_the_same_lock),
        cmocka_unit_test(a_shared_lock_is_seen_to_its_end),
        cmocka_unit_test(the_end_of_a_lease_is_seen),
        cmocka_unit_test(a_hold_that_is_renewed_has_not_ended),
        cmocka_unit_test(what_was_missed_while_cut_off),
        cmocka_unit_test(a_late_answer_grants_nothing_again),
        cmocka_unit_test(without_messages_it_looks_every_second),
        cmocka_unit_test(a_permission_that_comes_back_is_used),
        cmocka_unit_test(another_program_takes_it_between_two_looks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
