/* SPDX-License-Identifier: MIT */
/* Answers that are too large: each fails its own request, with words that say why, and costs
 * neither the connection nor what else goes over it. */
#include <stdlib.h>
#include <string.h>

#include "herd.h"
#include "rival.h"

#define S the_stage

enum { LARGE = 2 * 1024 * 1024 };

static char large[LARGE + 64]; /* an answer */

static void say_large(void)
{
    int header = snprintf(large, sizeof(large), "*3\r\n:0\r\n:-1\r\n$%d\r\n", LARGE);
    memset(large + header, 'v', LARGE);
    memcpy(large + header + LARGE, "\r\n", 3);
    node_say(&S.node, large);
}

static void begin(void)
{
    SETUP();
    ACQUIRE(1, "other", RENEWED);
    EXPECT(1, HF_OK);
}

static void end(void)
{
    assert_int_equal(S.connects, 1);
    EXPECT_STATE(1, HF_SAFE);
    EXPECT_QUIET(1);
    FINISH();
}

static void an_acquire_fails_alone(void **state)
{
    (void)state;
    begin();
    say_large();
    ACQUIRE(2, "x", .wait_ms = 5000);
    EXPECT(2, HF_ESERVER);
    EXPECT_TEXT(2, "too much");
    ACQUIRE(2, "x");
    EXPECT(2, HF_OK);
    end();
}

static void a_question_fails_alone(void **state)
{
    (void)state;
    begin();
    say_large();
    INSPECT(2, "x");
    EXPECT(2, HF_ESERVER);
    say_large();
    SCAN(2, "*", 0);
    EXPECT(2, HF_ESERVER);
    INSPECT(2, "other");
    EXPECT(2, HF_OK);
    end();
}

static void a_release_is_refused_and_tried_again(void **state)
{
    (void)state;
    begin();
    ACQUIRE(2, "x", .lease_ms = 9000);
    say_large();
    RELEASE(2);
    ADVANCE_MS(2000);
    EXPECT(2, HF_ESERVER);
    end();
}

static void a_call_of_renewals_is_split(void **state)
{
    (void)state;
    SETUP();
    acquire_many(40);
    say_large();
    ADVANCE_MS(3000 + 10);
    assert_int_equal(S.node.renewed, 40);
    assert_int_equal(S.node.renewals, 2); /* halves */
    assert_int_equal(S.connects, 1);
    expect_all_safe(40);
    FINISH();
}

/* Somebody publishes a large thing on the client's channel. */
static void a_message_is_passed_over(void **state)
{
    (void)state;
    SETUP(.messages = true);
    rival_begin();
    RIVAL_ACQUIRES("x", .number = 1, .lease = 60000);
    ACQUIRE(1, "x", .wait_ms = 50000);
    EXPECT_WAITING(1);
    int connects = S.connects;
    memset(large, 'v', LARGE);
    stage_publish(large, LARGE);
    ADVANCE_MS(10);
    assert_int_equal(S.connects, connects);
    rival_release("x", 1);
    ADVANCE_MS(1);
    EXPECT(1, HF_OK);
    rival_end();
    FINISH();
}

/* A value of another program is told up to a bound, and can be broken by what was told. */
static void a_large_value_is_cut(void **state)
{
    (void)state;
    begin();
    char *value = malloc(LARGE + 1);
    memset(value, 'v', LARGE);
    value[LARGE] = '\0';
    node_set(&S.node, "x", value, -1);
    ACQUIRE(2, "x");
    EXPECT(2, HF_EBUSY);
    INSPECT(2, "x");
    EXPECT(2, HF_OK);
    hf__buffer *told = &ANSWER(2)->value;
    assert_int_equal(hf__buffer_length(told), 1024 + 3);
    char shown[1024 + 4] = "";
    memcpy(shown, hf__buffer_front(told), 1024 + 3);
    BREAK(2, "x", shown, 0);
    EXPECT(2, HF_OK);
    EXPECT_NO_KEY("x");
    free(value);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_acquire_fails_alone),
        cmocka_unit_test(a_question_fails_alone),
        cmocka_unit_test(a_release_is_refused_and_tried_again),
        cmocka_unit_test(a_call_of_renewals_is_split),
        cmocka_unit_test(a_message_is_passed_over),
        cmocka_unit_test(a_large_value_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
