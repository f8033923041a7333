/* SPDX-License-Identifier: MIT */
/* Who holds a lock, as the server says. Its answers are other people's bytes, so whatever they are,
 * they are shown as what they are, or asked for again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rival.h"
#include "stage.h"

#define S           the_stage
#define SEEN(call)  ANSWER(call)->inspection
#define ME          .owner = "request 7"
#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static void nobody_holds_it(void **state)
{
    (void)state;
    SETUP();
    INSPECT(1, "x");
    EXPECT(1, HF_OK);
    assert_false(SEEN(1)->held);
    assert_int_equal(SEEN(1)->hold_count, 0);
    assert_true(SEEN(1)->fence == 0);
    ACQUIRE(2, "x");
    RELEASE(2);
    INSPECT(1, "x");
    assert_false(SEEN(1)->held);
    assert_true(SEEN(1)->fence == 0); /* the slot has it now, and others' */
    assert_string_equal(SEEN(1)->owner, "");
    FINISH();
}

static void a_thread_holds_it(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "warm");
    ACQUIRE(2, "x", .label = "nightly/report", .thread = 5);
    ADVANCE_MS(400);
    INSPECT(3, "x");
    EXPECT(3, HF_OK);
    const hf_inspection *seen = SEEN(3);
    assert_true(seen->held && !seen->shared);
    assert_true(seen->fence == FENCE(2));
    assert_int_equal(seen->remaining_ms, 9600);
    assert_int_equal(seen->hold_count, 1);
    assert_int_equal(seen->holder_count, 1);
    const hf_holder *holder = &seen->holders[0];
    assert_string_equal(holder->client_id, STAGE_CLIENT);
    assert_string_equal(holder->host, "host");
    assert_string_equal(holder->label, "nightly/report");
    assert_int_equal(holder->pid, 1);
    assert_int_equal(holder->thread, 5);
    assert_int_equal(holder->number, 2);
    assert_int_equal(holder->remaining_ms, 9600);
    assert_string_equal(seen->owner, node_get(&S.node, "x"));
    FINISH();
}

static void sharers_are_listed_longest_first(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x", ME, .lease_ms = 3000, .thread = 1);
    ACQUIRE(2, "x", ME, .lease_ms = 9000, .thread = 2, .label = "second");
    ACQUIRE(3, "x", ME, .lease_ms = 6000, .thread = 3);
    ACQUIRE(4, "x", ME, .lease_ms = 500, .thread = 4);
    ADVANCE_MS(1000); /* the fourth is over */
    INSPECT(5, "x");
    EXPECT(5, HF_OK);
    const hf_inspection *seen = SEEN(5);
    assert_true(seen->held && seen->shared);
    assert_string_equal(seen->owner, "request 7");
    assert_int_equal(seen->remaining_ms, 8000);
    assert_int_equal(seen->hold_count, 3);
    assert_int_equal(seen->holder_count, 3);
    static const uint64_t threads[] = {2, 3, 1};
    static const int64_t remaining[] = {8000, 5000, 2000};
    for (int i = 0; i < 3; i++) {
        assert_true(seen->holders[i].thread == threads[i]);
        assert_int_equal(seen->holders[i].remaining_ms, remaining[i]);
    }
    assert_string_equal(seen->holders[0].label, "second");
    FINISH();
}

static void more_sharers_than_fit_are_counted(void **state)
{
    (void)state;
    SETUP();
    for (int i = 1; i <= HF_HOLDERS_MAX + 4; i++)
        ACQUIRE(i, "x", ME, .lease_ms = 10000 + i);
    INSPECT(0, "x");
    EXPECT(0, HF_OK);
    assert_int_equal(SEEN(0)->hold_count, HF_HOLDERS_MAX + 4);
    assert_int_equal(SEEN(0)->holder_count, HF_HOLDERS_MAX);
    assert_int_equal(SEEN(0)->holders[0].remaining_ms, 10000 + HF_HOLDERS_MAX + 4);
    FINISH();
}

/* Not one of our values, or almost: shown as it is, and taken for nothing that it is not. */
static void those_who_wait_are_listed_in_order(void **state)
{
    (void)state;
    SETUP(.messages = true);
    rival_begin();
    ACQUIRE(1, "x");
    RIVAL_QUEUES("x", .number = 21);
    ADVANCE_MS(100);
    ACQUIRE(2, "x", .wait_ms = -1, .label = "second");
    ADVANCE_MS(200);
    ACQUIRE(3, "x", .wait_ms = -1, .owner = "third");
    INSPECT(4, "x");
    EXPECT(4, HF_OK);
    const hf_inspection *seen = SEEN(4);
    assert_int_equal(seen->queue_length, 3);
    assert_int_equal(seen->waiter_count, 3);
    assert_string_equal(seen->waiters[0].client_id, RIVAL_CLIENT);
    assert_string_equal(seen->waiters[0].host, "rival");
    assert_int_equal(seen->waiters[0].number, 21);
    assert_int_equal(seen->waiters[0].waited_ms, 300);
    assert_int_equal(seen->waiters[0].remaining_ms, 0);
    assert_string_equal(seen->waiters[1].label, "second");
    assert_int_equal(seen->waiters[1].waited_ms, 200);
    assert_int_equal(seen->waiters[2].number, 3);
    assert_int_equal(seen->waiters[2].waited_ms, 0);
    assert_int_equal(seen->holders[0].waited_ms, 0);
    RELEASE(1);
    rival_release("x", 21);
    RELEASE(2);
    INSPECT(4, "x");
    assert_string_equal(SEEN(4)->owner, "third");
    assert_int_equal(SEEN(4)->queue_length, 0);
    assert_int_equal(SEEN(4)->waiter_count, 0);
    rival_end();
    FINISH();
}

static void more_who_wait_than_fit_are_counted(void **state)
{
    (void)state;
    SETUP(.messages = true);
    ACQUIRE(1, "x");
    for (int i = 2; i < 2 + 2 * HF_WAITERS_MAX; i++)
        ACQUIRE(i, "x", .wait_ms = -1);
    INSPECT(1 + 2 * HF_WAITERS_MAX + 1, "x");
    const hf_inspection *seen = SEEN(1 + 2 * HF_WAITERS_MAX + 1);
    assert_int_equal(seen->queue_length, 2 * HF_WAITERS_MAX);
    assert_int_equal(seen->waiter_count, HF_WAITERS_MAX);
    assert_int_equal(seen->waiters[HF_WAITERS_MAX - 1].number, 1 + HF_WAITERS_MAX);
    FINISH();
}

static void foreign_values_are_shown_and_not_believed(void **state)
{
    (void)state;
    static const char *const values[] = {
        "",
        ":",
        "somebody",
        "a:1@b:2/3",
        STAGE_CLIENT,
        STAGE_CLIENT ":",
        STAGE_CLIENT ":1",
        STAGE_CLIENT ":1@host",
        STAGE_CLIENT ":1@host:2",
        STAGE_CLIENT ":1@host:2/",
        STAGE_CLIENT ":x@host:2/3",
        STAGE_CLIENT ":1@host:y/3",
        STAGE_CLIENT ":1@host:2/z",
        STAGE_CLIENT ":-1@host:2/3",
        STAGE_CLIENT ":99999999999999999999@host:2/3",
        "0000000000000000000000000000000G:1@host:2/3",
        "0" STAGE_CLIENT ":1@host:2/3",
        "{\"owner\": \"somebody\", \"at\": 12}",
    };
    for (size_t i = 0; i < COUNT(values); i++) {
        SETUP();
        node_set(&S.node, "x", values[i], -1);
        INSPECT(1, "x");
        EXPECT(1, HF_OK);
        assert_true(SEEN(1)->held);
        assert_string_equal(SEEN(1)->owner, values[i]);
        assert_int_equal(SEEN(1)->remaining_ms, -1);
        assert_int_equal(SEEN(1)->hold_count, 1);
        assert_int_equal(SEEN(1)->holder_count, 1);
        assert_string_equal(SEEN(1)->holders[0].client_id, "");
        assert_string_equal(SEEN(1)->holders[0].host, "");
        assert_true(SEEN(1)->holders[0].number == 0 && SEEN(1)->holders[0].pid == 0);
        FINISH();
    }
}

static void long_parts_of_a_value_are_cut(void **state)
{
    (void)state;
    char value[1000], host[101], label[201];
    SETUP();
    memset(host, 'h', 100);
    memset(label, 'l', 200);
    host[100] = label[200] = '\0';
    snprintf(value, sizeof(value), STAGE_CLIENT ":18446744073709551615@%s:2/3/%s", host, label);
    node_set(&S.node, "x", value, 5000);
    INSPECT(1, "x");
    EXPECT(1, HF_OK);
    assert_true(SEEN(1)->holders[0].number == UINT64_MAX);
    assert_in_range(strlen(SEEN(1)->holders[0].host), 1, 64);
    assert_in_range(strlen(SEEN(1)->holders[0].label), 1, HF_LABEL_MAX);
    FINISH();
}

static void binary_and_huge_values_are_made_printable_and_cut(void **state)
{
    (void)state;
    enum { HUGE_BYTES = 10240 };
    SETUP();
    node_set(&S.node, "x", "", -1);
    node_key *key = node_find(&S.node, "x", 1);
    key->value.bytes = realloc(key->value.bytes, HUGE_BYTES + 1);
    key->value.length = HUGE_BYTES;
    for (int i = 0; i <= HUGE_BYTES; i++)
        key->value.bytes[i] = (char)(i * 7);
    INSPECT(1, "x");
    EXPECT(1, HF_OK);
    assert_int_equal(strlen(SEEN(1)->owner), HF_OWNER_MAX);
    for (const char *at = SEEN(1)->owner; *at != '\0'; at++)
        assert_in_range(*at, ' ', '~');
    assert_int_equal(hf__buffer_length(&ANSWER(1)->value), 1024 + 3); /* to break it by */
    assert_memory_equal(hf__buffer_front(&ANSWER(1)->value), key->value.bytes, 1024);
    FINISH();
}

static void senseless_inspections_are_asked_for_again(void **state)
{
    (void)state;
    static const char *const nonsense[] = {
        "+OK\r\n",
        ":1\r\n",
        "*0\r\n",
        "$-1\r\n",
        "*4\r\n$1\r\nv\r\n:1\r\n$1\r\n1\r\n:0\r\n",
        "*8\r\n$1\r\nv\r\n:1\r\n$1\r\n1\r\n:0\r\n*0\r\n:0\r\n*0\r\n:1\r\n",
        "*7\r\n:1\r\n:1\r\n$1\r\n1\r\n:0\r\n*0\r\n:0\r\n*0\r\n",
        "*7\r\n$1\r\nv\r\n$1\r\n1\r\n$1\r\n1\r\n:0\r\n*0\r\n:0\r\n*0\r\n",
        "*7\r\n$1\r\nv\r\n:1\r\n:1\r\n:0\r\n*0\r\n:0\r\n*0\r\n",
        "*7\r\n$1\r\nv\r\n:1\r\n$1\r\n1\r\n$1\r\n0\r\n*0\r\n:0\r\n*0\r\n",
        "*7\r\n$1\r\nv\r\n:1\r\n$1\r\n1\r\n:0\r\n:0\r\n:0\r\n*0\r\n",
        "*7\r\n$1\r\nv\r\n:1\r\n$1\r\n1\r\n:1\r\n*1\r\n$1\r\nx\r\n:0\r\n*0\r\n",
        "*7\r\n$1\r\nv\r\n:1\r\n$1\r\n1\r\n:1\r\n*2\r\n$1\r\nx\r\n$1\r\n1\r\n:0\r\n*0\r\n",
        "*7\r\n$1\r\nv\r\n:1\r\n$1\r\n1\r\n:1\r\n*2\r\n:1\r\n:1\r\n:0\r\n*0\r\n",
        "*7\r\n*0\r\n:1\r\n$1\r\n1\r\n:1\r\n*0\r\n:0\r\n*0\r\n",
        /* what an inspection was in 0.2 */
        "*5\r\n$1\r\nv\r\n:1\r\n$1\r\n1\r\n:0\r\n*0\r\n",
        /* the queue */
        "*7\r\n$1\r\nv\r\n:1\r\n$1\r\n1\r\n:0\r\n*0\r\n$1\r\n0\r\n*0\r\n",
        "*7\r\n$1\r\nv\r\n:1\r\n$1\r\n1\r\n:0\r\n*0\r\n:0\r\n$-1\r\n",
        "*7\r\n$1\r\nv\r\n:1\r\n$1\r\n1\r\n:0\r\n*0\r\n:1\r\n*1\r\n$1\r\nx\r\n",
        "*7\r\n$1\r\nv\r\n:1\r\n$1\r\n1\r\n:0\r\n*0\r\n:1\r\n*2\r\n:1\r\n:1\r\n",
        "*7\r\n$-1\r\n:-2\r\n$0\r\n\r\n:0\r\n*0\r\n:1\r\n*2\r\n$1\r\nx\r\n$1\r\n1\r\n",
    };
    for (size_t i = 0; i < COUNT(nonsense); i++) {
        SETUP();
        ACQUIRE(1, "x");
        node_say(&S.node, nonsense[i]);
        INSPECT(2, "x");
        EXPECT_WAITING(2);
        ADVANCE_MS(30);
        EXPECT(2, HF_OK);
        assert_true(SEEN(2)->fence == FENCE(1));
        assert_int_equal(S.node.greetings, 2);
        FINISH();
    }
}

static void absurd_numbers_are_bounded(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "warm");
    node_say(&S.node, "*7\r\n$1\r\nv\r\n:9223372036854775807\r\n$30\r\n"
                      "999999999999999999999999999999\r\n:9223372036854775807\r\n*4\r\n"
                      "$1\r\na\r\n:9223372036854775807\r\n$1\r\nb\r\n:-9223372036854775808\r\n"
                      ":-9223372036854775808\r\n*2\r\n$1\r\nc\r\n:9223372036854775807\r\n");
    INSPECT(2, "x");
    EXPECT(2, HF_OK);
    assert_int_equal(SEEN(2)->remaining_ms, HF_MS_MAX);
    assert_int_equal(SEEN(2)->holder_count, 2);
    assert_int_equal(SEEN(2)->holders[0].remaining_ms, HF_MS_MAX);
    assert_int_equal(SEEN(2)->holders[1].remaining_ms, -1);
    assert_true(SEEN(2)->fence == 0); /* unknown */
    assert_int_equal(SEEN(2)->queue_length, 0);
    assert_int_equal(SEEN(2)->waiter_count, 1);
    assert_int_equal(SEEN(2)->waiters[0].waited_ms, HF_MS_MAX);
    FINISH();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_holds_it),
        cmocka_unit_test(a_thread_holds_it),
        cmocka_unit_test(sharers_are_listed_longest_first),
        cmocka_unit_test(more_sharers_than_fit_are_counted),
        cmocka_unit_test(those_who_wait_are_listed_in_order),
        cmocka_unit_test(more_who_wait_than_fit_are_counted),
        cmocka_unit_test(foreign_values_are_shown_and_not_believed),
        cmocka_unit_test(long_parts_of_a_value_are_cut),
        cmocka_unit_test(binary_and_huge_values_are_made_printable_and_cut),
        cmocka_unit_test(senseless_inspections_are_asked_for_again),
        cmocka_unit_test(absurd_numbers_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
