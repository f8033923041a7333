/* SPDX-License-Identifier: MIT */
/* Observers in trouble: messages that mean no good, more news than can be kept, ends in any order,
 * and memory that fails. What they are told otherwise is in test_observe.c. */
#include <stdio.h>
#include <string.h>

#include "gate.h"
#include "watch.h"

#define S the_stage

static void malformed_messages_are_not_seen(void **state)
{
    (void)state;
    static const char *const texts[] = {"",
                                        "granted",
                                        "granted ",
                                        "granted 1",
                                        "granted x 1 v",
                                        "granted -1 1 v",
                                        "granted 1 -1 v",
                                        "granted 99999999999999999999 1 v",
                                        "taken 1 1 v",
                                        "GRANTED 1 1 v",
                                        "\x01\x02"};
    watch_begin();
    watch("x");
    expect_seen(HF_SEEN_FREE, "", 0);
    char channel[NODE_CHANNEL];
    const char *key = node_side(&S.node, 'f', "x")->name.bytes;
    snprintf(channel, sizeof(channel), "hf:e:%s", key);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        node_publish(&S.node, channel, texts[i], strlen(texts[i]));
        stage_run();
        expect_nothing();
    }
    node_publish(&S.node, channel, "granted 5 1000 stranger", 23);
    stage_run();
    hf_sight sight = expect_seen(HF_SEEN_GRANTED, "", 0); /* a program of another kind */
    assert_true(sight.fence == 5);
    watch_end();
}

static void more_than_can_be_kept_is_told(void **state)
{
    (void)state;
    watch_begin();
    watch("x");
    for (int i = 1; i <= 600; i++) {
        RIVAL_ACQUIRES("x", .number = i);
        rival_release("x", i);
    }
    hf_sight sight = {.kind = HF_SEEN_FREE};
    int seen = 0;
    while (next_sight(&sight))
        seen++;
    assert_int_equal(seen, 1001);
    assert_int_equal(sight.kind, HF_SEEN_MISSED);
    RIVAL_ACQUIRES("x", .number = 1000);
    expect_seen(HF_SEEN_GRANTED, RIVAL_CLIENT, 1000);
    watch_end();
}

/* What happens while the gap waits to be told is behind it, though there is room again. */
static void a_gap_is_told_where_it_is(void **state)
{
    (void)state;
    hf_sight sight;
    watch_begin();
    watch("x");
    for (int i = 1; i <= 600; i++) {
        RIVAL_ACQUIRES("x", .number = i);
        rival_release("x", i);
    }
    for (int i = 0; i < 10; i++)
        assert_true(next_sight(&sight));
    RIVAL_ACQUIRES("x", .number = 1000);
    while (next_sight(&sight))
        assert_int_not_equal(sight.who.number, 1000);
    assert_int_equal(sight.kind, HF_SEEN_MISSED);
    rival_release("x", 1000);
    expect_seen(HF_SEEN_RELEASED, RIVAL_CLIENT, 1000);
    watch_end();
}

static void closing_and_ending_in_any_order(void **state)
{
    (void)state;
    for (int order = 0; order < 4; order++) {
        watch_begin();
        S.mute = order == 3; /* its question is under way */
        watch("x");
        if (order >= 2)
            stop_watching();
        CLOSE(1);
        S.mute = false;
        ADVANCE_MS(4000);
        assert_true(S.calls[1].done);
        if (order == 1)
            stop_watching();
        hf_observer *left = observer;
        observer = NULL;
        watch_end();
        if (left != NULL)
            hf__observer_abandon(left);
    }
}

/* As in the child of a fork: nobody closes, and nobody answers. */
static void a_core_that_goes_away(void **state)
{
    (void)state;
    for (int order = 0; order < 3; order++) {
        watch_begin();
        S.mute = true;
        watch("x");
        if (order == 1)
            stop_watching();
        hf_observer *left = observer;
        observer = NULL;
        if (order == 2) {
            hf__observer_abandon(left);
            left = NULL;
        }
        watch_end();
        if (left != NULL)
            hf__observer_abandon(left);
    }
}

static void every_allocation_fails_once(void **state)
{
    (void)state;
    bool failed = true;
    for (long number = 0; failed; number++) {
        hf_sight sight;
        watch_begin();
        gate_fail_at(number);
        observer = hf__observer_new((hf__slice){"", 0}, HF__SLICE("x"), hear, &observer);
        if (observer != NULL) {
            hf__event event = {.kind = HF__EVENT_OBSERVE, .observer = observer, .now = S.now};
            hf__core_step(S.core, &event);
            stage_run();
        }
        RIVAL_ACQUIRES("x", .number = 1);
        ADVANCE_MS(3000);
        rival_release("x", 1);
        ADVANCE_MS(9000);
        failed = gate_open();
        ADVANCE_MS(3000);
        while (next_sight(&sight))
            continue;
        RIVAL_ACQUIRES("x", .number = 2);
        if (observer != NULL)
            expect_seen(HF_SEEN_GRANTED, RIVAL_CLIENT, 2);
        watch_end();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(malformed_messages_are_not_seen),
        cmocka_unit_test(more_than_can_be_kept_is_told),
        cmocka_unit_test(a_gap_is_told_where_it_is),
        cmocka_unit_test(closing_and_ending_in_any_order),
        cmocka_unit_test(a_core_that_goes_away),
        cmocka_unit_test(every_allocation_fails_once),
    };
    stage_install_gate();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
