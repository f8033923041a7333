/* SPDX-License-Identifier: MIT */
/* Which permission is missing: what is asked, when, what is made of the answer, and what becomes of
 * the question if the connection or the call ends in between. */
#include <stdio.h>
#include <string.h>

#include "stage.h"

#define S the_stage
#define KEY_DENIED \
    "-NOPERM this user has no permissions to access one of the keys used as arguments\r\n"
#define COMMAND_DENIED \
    "-ERR The user executing the script can't run this command or subcommand script: x\r\n"

/* ---- In the greeting ---- */

static void a_command_that_is_missing_is_named_before_anything_is_done(void **state)
{
    (void)state;
    SETUP(.links = 4);
    S.node.denied_command = "DEL";
    ACQUIRE(1, "x", .wait_ms = 20000);
    EXPECT(1, HF_EDENIED);
    EXPECT_TEXT(1, "node:6379 denies us the commands DEL (docs/wire.md, Permissions)");
    assert_int_equal(S.node.acquires, 0);
    S.node.denied_command = NULL;
    ADVANCE_MS(1000);
    ACQUIRE(1, "x");
    EXPECT(1, HF_OK);
    FINISH();
}

static void every_kind_of_call_is_told(void **state)
{
    (void)state;
    SETUP();
    S.node.denied_command = "HSET";
    INSPECT(1, "x");
    EXPECT(1, HF_EDENIED);
    EXPECT_TEXT(1, "HSET");
    ADVANCE_MS(1000);
    SCAN(2, "hf:f:*", 0);
    EXPECT(2, HF_EDENIED);
    EXPECT_TEXT(2, "HSET");
    FINISH();
}

/* ---- Afterwards ---- */

static void a_key_that_is_denied_is_named(void **state)
{
    (void)state;
    SETUP();
    S.node.denied_key = "hf:q:{5300}x";
    node_say(&S.node, KEY_DENIED);
    ACQUIRE(1, "x", .wait_ms = 20000);
    EXPECT(1, HF_EDENIED);
    EXPECT_TEXT(1, "node:6379 denies us access to hf:q:{5300}x (");
    node_say(&S.node, KEY_DENIED);
    INSPECT(2, "x");
    EXPECT(2, HF_EDENIED);
    EXPECT_TEXT(2, "access to hf:q:{5300}x");
    FINISH();
}

static void a_command_that_is_withdrawn_is_named(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x");
    EXPECT(1, HF_OK);
    S.node.denied_command = "DEL";
    node_say(&S.node, COMMAND_DENIED);
    RELEASE(1);
    EXPECT(1, HF_EDENIED);
    EXPECT_TEXT(1, "denies us the commands DEL (");
    S.node.denied_command = NULL;
    ADVANCE_MS(10000); /* it is made up for */
    EXPECT_NO_KEY("x");
    FINISH();
}

/* Given back meanwhile, or a server that cannot tell: then no name, but the kind of thing. */
static void an_empty_answer_names_nothing(void **state)
{
    (void)state;
    SETUP();
    node_say(&S.node, KEY_DENIED);
    ACQUIRE(1, "x");
    EXPECT(1, HF_EDENIED);
    EXPECT_TEXT(1, "one of the keys");
    node_say(&S.node, COMMAND_DENIED);
    ACQUIRE(1, "x");
    EXPECT(1, HF_EDENIED);
    EXPECT_TEXT(1, "a command");
    FINISH();
}

static void long_and_strange_names_are_cut_and_made_printable(void **state)
{
    (void)state;
    char name[HF_NAME_MAX];
    SETUP();
    memset(name, 'n', sizeof(name));
    name[sizeof(name) - 1] = '\0';
    name[3] = '\n';
    S.node.denied_key = name;
    node_say(&S.node, KEY_DENIED);
    ACQUIRE(1, "x");
    EXPECT(1, HF_EDENIED);
    EXPECT_TEXT(1, "access to nnn?nnn");
    EXPECT_TEXT(1, "(docs/wire.md, Permissions)");
    FINISH();
}

static void renewals_do_not_ask(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(1, "x");
    S.node.denied_key = "x";
    node_say(&S.node, KEY_DENIED);
    EXTEND(1, 20000);
    EXPECT(1, HF_EDENIED);
    EXPECT_STATE(1, HF_SAFE);
    FINISH();
}

/* ---- Something comes in between ---- */

/* The refusal arrives and the answer to the question does not. */
static void begin_question(const char *refusal, int64_t wait_ms)
{
    SETUP(.reply_timeout_ms = 60000, .call_timeout_ms = 2000);
    ACQUIRE(9, "warm"); /* the connection is up */
    S.mute = true;
    node_say(&S.node, refusal);
    ACQUIRE(1, "x", .wait_ms = wait_ms);
    size_t length = strlen(refusal);
    assert_int_equal(hf__buffer_length(&S.wires[0].to_client), length);
    S.mute = false;
    S.stalled = 0;
    S.cut_after = (long)length; /* from here on: the refusal, and not a byte of the question */
    stage_run();
}

static void the_connection_breaks(void **state)
{
    (void)state;
    begin_question(KEY_DENIED, 20000);
    ADVANCE_MS(1000);
    EXPECT(1, HF_OK); /* it was tried again, and is allowed now */
    int tombs = S.node.tomb_count;
    RELEASE(1);
    EXPECT(1, HF_OK);
    assert_int_equal(S.node.tomb_count, tombs); /* no copy of it was out */
    FINISH();
}

/* A question is no copy of a release: one that finds nothing has lost the lock. */
static void the_connection_of_a_release_breaks(void **state)
{
    (void)state;
    SETUP(.reply_timeout_ms = 60000);
    ACQUIRE(1, "x");
    S.mute = true;
    node_say(&S.node, KEY_DENIED);
    RELEASE(1);
    S.mute = false;
    S.cut_after = (long)hf__buffer_length(&S.wires[0].to_client);
    node_delete(&S.node, "x");
    stage_run();
    ADVANCE_MS(1000);
    EXPECT(1, HF_ELOST);
    FINISH();
}

static void begin_silent_question(void)
{
    SETUP(.reply_timeout_ms = 60000, .call_timeout_ms = 2000);
    ACQUIRE(9, "warm");
    S.node.denied_key = "x";
    S.mute = true;
    node_say(&S.node, KEY_DENIED);
    ACQUIRE(1, "x", .wait_ms = 5000);
    char refusal[sizeof(KEY_DENIED)];
    size_t length = hf__buffer_length(&S.wires[0].to_client);
    assert_int_equal(length, sizeof(refusal) - 1);
    memcpy(refusal, hf__buffer_front(&S.wires[0].to_client), length);
    hf__buffer_take(&S.wires[0].to_client, length);
    S.mute = false;
    S.deaf = true; /* the question gets lost */
    stage_say(0, refusal, length);
    EXPECT_WAITING(1);
}

static void the_call_times_out(void **state)
{
    (void)state;
    begin_silent_question();
    ADVANCE_MS(5000);
    assert_true(S.calls[1].done);
    assert_true(S.calls[1].error.status == HF_EUNKNOWN ||
                S.calls[1].error.status == HF_EUNAVAILABLE);
    S.deaf = false;
    CUT();
    ADVANCE_MS(2000);
    EXPECT_NO_KEY("x");
    S.node.denied_key = NULL;
    ACQUIRE(1, "x");
    EXPECT(1, HF_OK);
    FINISH();
}

static void the_call_is_cancelled(void **state)
{
    (void)state;
    begin_silent_question();
    stage_cancel(1);
    EXPECT(1, HF_ECANCELLED);
    S.deaf = false;
    CUT();
    ADVANCE_MS(2000);
    EXPECT_NO_KEY("x");
    FINISH();
}

/* ---- Side keys under a prefix ---- */

static void a_side_prefix_is_used_throughout(void **state)
{
    (void)state;
    SETUP(.side_prefix = "shop:", .messages = true);
    ACQUIRE(1, "x", .owner = "me");
    EXPECT(1, HF_OK);
    assert_non_null(node_find(&S.node, "shop:hf:f:{5300}x", 17));
    assert_non_null(node_find(&S.node, "shop:hf:h:{5300}x", 17));
    ACQUIRE(2, "x", .wait_ms = 20000);
    EXPECT_WAITING(2);
    assert_non_null(node_find(&S.node, "shop:hf:q:{5300}x", 17));
    assert_non_null(node_find(&S.node, "shop:hf:w:{5300}x", 17));
    RELEASE(1);
    EXPECT(1, HF_OK);
    EXPECT(2, HF_OK);
    RELEASE(2);
    EXPECT_NO_KEY("x");
    assert_null(node_find(&S.node, "hf:f:{5300}x", 12));
    FINISH();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_command_that_is_missing_is_named_before_anything_is_done),
        cmocka_unit_test(every_kind_of_call_is_told),
        cmocka_unit_test(a_key_that_is_denied_is_named),
        cmocka_unit_test(a_command_that_is_withdrawn_is_named),
        cmocka_unit_test(an_empty_answer_names_nothing),
        cmocka_unit_test(long_and_strange_names_are_cut_and_made_printable),
        cmocka_unit_test(renewals_do_not_ask),
        cmocka_unit_test(the_connection_breaks),
        cmocka_unit_test(the_connection_of_a_release_breaks),
        cmocka_unit_test(the_call_times_out),
        cmocka_unit_test(the_call_is_cancelled),
        cmocka_unit_test(a_side_prefix_is_used_throughout),
    };
    return cmocka_run_group_tests_name("permissions", tests, NULL, NULL);
}
