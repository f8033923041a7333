/* SPDX-License-Identifier: MIT */
/* What a server says about itself, read from its INFO and TIME: what it does not say is 0 or empty,
 * and what makes no sense is not believed. */
#include <string.h>

#include "stage.h"

#define S the_stage

static void facts_are_read(void **state)
{
    (void)state;
    SETUP();
    S.node.info = "redis_version:7.0.15\r\nmaxmemory:1048576\r\nmaxmemory_policy:allkeys-lru\r\n"
                  "evicted_keys:12\r\nconnected_slaves:2\r\nuptime_in_seconds:90\r\n"
                  "aof_enabled:1\r\ncluster_enabled:1";
    EXAMINE(1);
    EXPECT(1, HF_OK);
    const hf_examination *e = &S.examination;
    assert_string_equal(e->version, "7.0.15");
    assert_string_equal(e->run_id, S.node.run_id);
    assert_string_equal(e->eviction_policy, "allkeys-lru");
    assert_int_equal(e->memory_limit, 1048576);
    assert_int_equal(e->evicted_keys, 12);
    assert_int_equal(e->replicas, 2);
    assert_int_equal(e->uptime_ms, 90000);
    assert_false(e->replica);
    assert_true(e->append_only);
    assert_true(e->cluster);
    FINISH();
}

static void what_is_not_said_is_nothing(void **state)
{
    (void)state;
    SETUP(.checks = HF_CHECK_IGNORE);
    S.node.role = "slave";
    EXAMINE(1);
    EXPECT(1, HF_OK);
    assert_string_equal(S.examination.version, "");
    assert_string_equal(S.examination.eviction_policy, "");
    assert_int_equal(S.examination.memory_limit, 0);
    assert_int_equal(S.examination.uptime_ms, 0);
    assert_true(S.examination.replica);
    assert_false(S.examination.append_only);
    FINISH();
}

static void nonsense_is_cut_or_nothing(void **state)
{
    (void)state;
    SETUP();
    S.node.info = "maxmemory:99999999999999999999999\r\nuptime_in_seconds:9223372036854775807\r\n"
                  "evicted_keys:-1\r\nconnected_slaves:two\r\n"
                  "maxmemory_policy:\x1b[31mred-and-much-longer-than-any-policy-there-is";
    EXAMINE(1);
    EXPECT(1, HF_OK);
    assert_int_equal(S.examination.memory_limit, 0);
    assert_int_equal(S.examination.uptime_ms, 0);
    assert_int_equal(S.examination.evicted_keys, 0);
    assert_int_equal(S.examination.replicas, 0);
    assert_null(strchr(S.examination.eviction_policy, '\x1b'));
    assert_int_equal(strlen(S.examination.eviction_policy),
                     sizeof(S.examination.eviction_policy) - 1);
    FINISH();
}

static void the_time_is_read(void **state)
{
    (void)state;
    SETUP();
    S.node.wall_s = STAGE_WALL_S + 3;
    QUERY(1, HF__QUERY_TIME, "", "", 0);
    EXPECT(1, HF_OK);
    assert_true(ANSWER(1)->wall.us == (STAGE_WALL_S + 3) * 1000000);
    FINISH();
}

static void a_time_that_is_none_is_asked_again(void **state)
{
    (void)state;
    static const char *const nonsense[] = {
        "*2\r\n$1\r\n5\r\n$7\r\n1000000\r\n",
        "*2\r\n$2\r\n-5\r\n$1\r\n0\r\n",
        "*1\r\n$1\r\n5\r\n",
        "*2\r\n:5\r\n:6\r\n",
        "$1\r\n5\r\n",
    };
    for (size_t i = 0; i < sizeof(nonsense) / sizeof(nonsense[0]); i++) {
        SETUP();
        ACQUIRE(2, "x"); /* the connection is there */
        S.deaf = true;
        QUERY(1, HF__QUERY_TIME, "", "", 0);
        stage_say(0, nonsense[i], strlen(nonsense[i]));
        EXPECT_WAITING(1);
        S.deaf = false;
        ADVANCE_MS(100);
        EXPECT(1, HF_OK);
        FINISH();
    }
}

static void silence_ends_with_the_call(void **state)
{
    (void)state;
    SETUP(.call_timeout_ms = 2000, .reply_timeout_ms = 5000);
    ACQUIRE(2, "x");
    S.deaf = true;
    EXAMINE(1);
    ADVANCE_MS(2000);
    EXPECT(1, HF_EUNKNOWN);
    FINISH();
}

static void a_denial_is_told(void **state)
{
    (void)state;
    SETUP();
    ACQUIRE(2, "x");
    S.deaf = true;
    EXAMINE(1);
    stage_say(0, "-NOPERM this user has no permissions to run the 'info' command\r\n", 64);
    EXPECT(1, HF_EDENIED);
    EXPECT_TEXT(1, "info");
    FINISH();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(facts_are_read),
        cmocka_unit_test(what_is_not_said_is_nothing),
        cmocka_unit_test(nonsense_is_cut_or_nothing),
        cmocka_unit_test(the_time_is_read),
        cmocka_unit_test(a_time_that_is_none_is_asked_again),
        cmocka_unit_test(silence_ends_with_the_call),
        cmocka_unit_test(a_denial_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
