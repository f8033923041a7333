/* SPDX-License-Identifier: MIT */
/* Messages: those that mean no good, for whoever may publish may say anything, and those that tell
 * a holder that somebody wants the lock or has taken it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "contest.h"

#define S        the_stage
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Not understood: nothing happens, and the connection stays. */
static void malformed_messages_are_nobodys_business(void **state)
{
    (void)state;
    static const char *const texts[] = {"",
                                        "g",
                                        "g ",
                                        "g 1",
                                        "g 1 ",
                                        "g 1 %c",
                                        "g 1 %c ",
                                        "g 1 %c 7",
                                        "g 1 %c 7 ",
                                        "g 1 %c 7 10000",
                                        "g 1 %c 7 10000 ",
                                        "g 1 %c 0 10000 0",
                                        "g 1 %c -7 10000 0",
                                        "g 1 %c 9223372036854775808 10000 0",
                                        "g 1 %c 9007199254740992 10000 0",
                                        "g 1 %c 7 -1 0",
                                        "g 1 %c 7 99999999999999999999 0",
                                        "g 1 -%c 7 10000 0",
                                        "g 1 %c 7 10000 -1",
                                        "g 1 %c 7 10000 x",
                                        "g -1 %c 7 10000 0",
                                        "g 2 %c 7 10000 0",
                                        "g 18446744073709551617 %c 7 10000 0",
                                        "g 99999999999999999999999999 %c 7 10000 0",
                                        "g 1  %c 7 10000 0",
                                        "g  1 %c 7 10000 0",
                                        " g 1 %c 7 10000 0",
                                        "gg 1 %c 7 10000 0",
                                        "G 1 %c 7 10000 0",
                                        "g\t1 %c 7 10000 0",
                                        "g 1,%c 7 10000 0",
                                        "g 0x1 %c 7 10000 0",
                                        "g 1 %c 7e3 10000 0",
                                        "q 1 %c 7 10000 0",
                                        "g +1 %c 7 10000 0",
                                        "i",
                                        "i ",
                                        "i x",
                                        "r 1",
                                        "r 1 ",
                                        "r 1 :",
                                        "r 1 =",
                                        "r 1 1:",
                                        "x 1",
                                        "x 1 ",
                                        "x 1 -1",
                                        "x 1 x",
                                        "i 1",
                                        "r 1 7:words",
                                        "x 1 99999999999999999999"};
    contest_begin_held();
    ACQUIRE(1, "x", .wait_ms = 60000, .lease_ms = 60000);
    for (size_t i = 0; i < COUNT(texts); i++) {
        char text[200], copy[32];
        const char *mark = strstr(texts[i], "%c");
        snprintf(copy, sizeof(copy), "%" PRId64, S.node.last_copy);
        snprintf(text, sizeof(text), "%.*s%s%s",
                 mark != NULL ? (int)(mark - texts[i]) : (int)strlen(texts[i]), texts[i],
                 mark != NULL ? copy : "", mark != NULL ? mark + 2 : "");
        SAY(text);
        EXPECT_WAITING(1);
    }
    stage_publish("g 1\0 2 3 4", 11);
    stage_publish("\0\0\0\0\0", 5);
    stage_publish("i \0", 3);
    EXPECT_WAITING(1);
    assert_int_equal(S.connects, 2);
    rival_release("x", 1);
    EXPECT(1, HF_OK);
    contest_end();
}

static void a_huge_message_is_bounded(void **state)
{
    (void)state;
    static char text[1 << 20];
    contest_begin_held();
    ACQUIRE(1, "x", .wait_ms = 60000);
    memset(text, '9', sizeof(text));
    memcpy(text, "g 1 ", 4);
    stage_publish(text, sizeof(text));
    ADVANCE_MS(20);
    EXPECT_WAITING(1);
    rival_release("x", 1);
    EXPECT(1, HF_OK);
    contest_end();
}

/* Not what a server says: the connection is given up. */
static void senseless_bytes_break_the_subscription_only(void **state)
{
    (void)state;
    static const char *const bytes[] = {"+PONG\r\n",
                                        ":1\r\n",
                                        "$-1\r\n",
                                        "*0\r\n",
                                        "*1\r\n$4\r\npong\r\n",
                                        "*2\r\n$4\r\npong\r\n$0\r\n\r\n", /* not asked for */
                                        "*3\r\n$11\r\nunsubscribe\r\n$37\r\n" STAGE_CHANNEL
                                        "\r\n:0\r\n",
                                        "*2\r\n:1\r\n$0\r\n\r\n",
                                        "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n:1\r\n",
                                        "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$-1\r\n",
                                        "*2\r\n$7\r\nmessage\r\n$1\r\nc\r\n",
                                        "*4\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nm\r\n$1\r\nm\r\n",
                                        "HTTP/1.1 400 Bad Request\r\n",
                                        "*3\r\n*0\r\n*0\r\n*0\r\n",
                                        "*2147483648\r\n"};
    for (size_t i = 0; i < COUNT(bytes); i++) {
        contest_begin_held();
        ACQUIRE(1, "x", .wait_ms = 60000);
        stage_say(PUSH, bytes[i], strlen(bytes[i]));
        ADVANCE_MS(30);
        assert_int_equal(S.connects, 3);
        assert_int_equal(S.node.subscribes, 2);
        rival_release("x", 1);
        EXPECT(1, HF_OK);
        contest_end();
    }
}

static void answers_to_the_greeting_that_make_no_sense(void **state)
{
    (void)state;
    contest_begin_held();
    S.node.greeting_error = ":1\r\n";
    ACQUIRE(1, "x", .wait_ms = 5000);
    ADVANCE_MS(200);
    EXPECT_WAITING(1);
    assert_int_equal(S.node.last_copy, 0);
    S.node.greeting_error = NULL;
    ADVANCE_MS(2000);
    assert_true(S.node.last_copy > 0);
    contest_end();
}

static void a_hostile_place_in_the_queue(void **state)
{
    (void)state;
    static const char *const places[] = {"9223372036854775807", "461168601842738791", "8", "9"};
    for (size_t i = 0; i < 2 * sizeof(places) / sizeof(places[0]); i++) {
        char reply[200];
        contest_begin_held();
        ACQUIRE(9, "x", .wait_ms = -1); /* so there is a subscription */
        snprintf(reply, sizeof(reply),
                 "*5\r\n:0\r\n:9223372036854775807\r\n$1\r\nh\r\n:%s\r\n:%zu\r\n", places[i / 2],
                 i % 2);
        node_say(&S.node, reply);
        ACQUIRE(1, "y", .wait_ms = -1);
        EXPECT_WAITING(1);
        ADVANCE_MS(4000);
        EXPECT(1, HF_OK);
        contest_end();
    }
}

/* ---- Other words ---- */

static void a_request_to_give_up_comes_as_a_message(void **state)
{
    (void)state;
    SETUP(.messages = true);
    rival_begin();
    ACQUIRE(1, "x"); /* without renewals */
    ACQUIRE(2, "y", .owner = "me");
    rival_revoke("x", "please");
    EXPECT_TOLD(1, HF_SAFE, REVOKED);
    assert_string_equal(stage_told_log[0].text, "please");
    rival_revoke("x", "again");
    EXPECT_QUIET(1);
    rival_revoke("y", "");
    EXPECT_TOLD(2, HF_SAFE, REVOKED);
    SAY("r 1 1:not for this grant");
    EXPECT_QUIET(1);
    assert_int_equal(S.node.renewals, 0);
    contest_end();
}

static void a_break_comes_as_a_message(void **state)
{
    (void)state;
    SETUP(.messages = true);
    rival_begin();
    ACQUIRE(1, "x");
    ACQUIRE(2, "y", .owner = "me");
    ACQUIRE(3, "y", .owner = "me");
    SAY("x 1 1"); /* an older grant */
    EXPECT_STATE(1, HF_SAFE);
    rival_break("x");
    EXPECT_TOLD(1, HF_LOST, BROKEN);
    rival_break("y");
    EXPECT_TOLD(2, HF_LOST, BROKEN);
    EXPECT_TOLD(3, HF_LOST, BROKEN);
    for (int i = 1; i <= 3; i++) {
        RELEASE(i);
        EXPECT(i, HF_ELOST);
    }
    contest_end();
}

/* Its lease counts from a check that is long ago, so the grant is set aside; the check in flight was
 * served before the grant, and its answer knows nothing of it. */
static void a_stale_grant_is_looked_at_behind_a_check_in_flight(void **state)
{
    (void)state;
    contest_begin_held();
    ACQUIRE(1, "x", .wait_ms = 60000, .lease_ms = 600);
    S.muted = 1;
    ADVANCE_MS(350);
    assert_int_equal(S.node.acquires, 3); /* the last one is the check */
    rival_release("x", 1);
    EXPECT_WAITING(1);
    S.muted = 0;
    stage_run();
    EXPECT(1, HF_OK);
    contest_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(malformed_messages_are_nobodys_business),
        cmocka_unit_test(a_stale_grant_is_looked_at_behind_a_check_in_flight),
        cmocka_unit_test(a_huge_message_is_bounded),
        cmocka_unit_test(senseless_bytes_break_the_subscription_only),
        cmocka_unit_test(answers_to_the_greeting_that_make_no_sense),
        cmocka_unit_test(a_hostile_place_in_the_queue),
        cmocka_unit_test(a_request_to_give_up_comes_as_a_message),
        cmocka_unit_test(a_break_comes_as_a_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
