/* SPDX-License-Identifier: MIT */
/* What a server says about itself when a connection is made: whether it is fit to keep locks, and
 * what comes of it if it is not, as the application has chosen. */
#include <stdio.h>
#include <string.h>

#include "stage.h"

#define S               the_stage
#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define FINE            "redis_version:7.0.15\r\nmaxmemory:0\r\naof_enabled:1"

static void begin(hf_check checks, const char *info)
{
    SETUP(.checks = checks, .links = 4);
    S.node.info = info;
    S.node.wall_s = STAGE_WALL_S;
}

/* On every link there is. */
static void take_many(void)
{
    char name[32];
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof(name), "lock-%d", i);
        ACQUIRE(2, name);
        EXPECT(2, HF_OK);
        RELEASE(2);
        EXPECT(2, HF_OK);
    }
}

/* Whatever is wrong, in the words of a server, and what must be said about it. */
static const struct {
    const char *info, *text;
    hf_status status;
    int64_t ahead_s;
} faults[] = {
    {"redis_version:6.0.16", "is Redis 6.0; locks need 6.2 or newer", HF_EUNSAFE, 0},
    {"redis_version:5.9.9", "is Redis 5.9", HF_EUNSAFE, 0},
    {"redis_version:6.", "is Redis 6.0", HF_EUNSAFE, 0},
    {"maxmemory:1000\r\nmaxmemory_policy:allkeys-lru", "allkeys-lru", HF_EUNSAFE, 0},
    {"maxmemory:1000\r\nmaxmemory_policy:volatile-ttl", "set it to noeviction", HF_EUNSAFE, 0},
    {"maxmemory_policy:volatile-lru", "volatile-lru", HF_EUNSAFE, 0},
    {"maxmemory:1000\r\nmaxmemory_policy:\x1b[31mred", "?[31mred", HF_EUNSAFE, 0},
    {"aof_enabled:0", "appendonly is off", HF_EUNSAFE, 0},
    {"x:1\r\nrole:slave", "is a replica; locks need the primary", HF_EUNAVAILABLE, 0},
    {FINE, "about 6 s ahead of ours", HF_EUNSAFE, 6},
    {FINE, "about 7 s behind ours", HF_EUNSAFE, -7},
    {FINE, "about 3155760000 s ahead", HF_EUNSAFE, INT64_C(3155760000)},
    {FINE, "about 1699999999 s behind", HF_EUNSAFE, 1 - STAGE_WALL_S},
};

static void begin_fault(hf_check checks, size_t i)
{
    begin(checks, faults[i].info);
    S.node.wall_s = STAGE_WALL_S + faults[i].ahead_s;
    if (strstr(faults[i].info, "role:slave") != NULL)
        S.node.role = "slave";
}

static void what_is_wrong_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(faults); i++) {
        begin_fault(HF_CHECK_REFUSE, i);
        ACQUIRE(1, "x");
        EXPECT(1, faults[i].status);
        EXPECT_TEXT(1, faults[i].text);
        EXPECT_TEXT(1, "node:6379");
        EXPECT_NO_KEY("x");
        FINISH();
    }
}

/* Waiting does not help, unless it is a replica, which may be promoted. */
static void a_refusal_is_final_but_for_a_replica(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(faults); i++) {
        begin_fault(HF_CHECK_REFUSE, i);
        ACQUIRE(1, "x", .wait_ms = 20000);
        if (faults[i].status == HF_EUNSAFE) {
            EXPECT(1, HF_EUNSAFE);
        } else {
            EXPECT_WAITING(1);
            S.node.role = "master";
            ADVANCE_MS(2000);
            EXPECT(1, HF_OK);
        }
        FINISH();
    }
}

static void one_that_is_set_right_is_taken(void **state)
{
    (void)state;
    begin(HF_CHECK_REFUSE, "maxmemory:1000\r\nmaxmemory_policy:allkeys-lru");
    ACQUIRE(1, "x", .wait_ms = 20000);
    EXPECT(1, HF_EUNSAFE);
    S.node.info = "maxmemory:1000\r\nmaxmemory_policy:noeviction";
    ADVANCE_MS(1000);
    ACQUIRE(1, "x");
    EXPECT(1, HF_OK);
    FINISH();
}

/* One line for each server process, whatever the number of links and of their connections. */
static void what_is_wrong_is_warned_of_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(faults); i++) {
        begin_fault(HF_CHECK_WARN, i);
        take_many();
        assert_int_equal(S.connects, 4);
        assert_int_equal(S.warnings, 1);
        assert_non_null(strstr(S.last_warning, faults[i].text));
        assert_non_null(strstr(S.last_warning, "node:6379"));
        CUT(); /* which nobody notices before the next call */
        int warnings = S.warnings;
        ADVANCE_MS(1000);
        take_many();
        assert_int_equal(S.warnings, warnings);
        node_restart(&S.node);
        CUT();
        warnings = S.warnings;
        ADVANCE_MS(1000);
        take_many();
        assert_int_equal(S.warnings, warnings + 1);
        assert_non_null(strstr(S.last_warning, faults[i].text));
        FINISH();
    }
}

/* Locks of one server need no run id, and go on. One that is hidden in whatever way is none. */
static void a_hidden_run_id_is_warned_of_once(void **state)
{
    (void)state;
    static const char *const hidden[] = {"", "hidden", "deadbeef",
                                         "0000000000000000000000000000000000000000",
                                         "0123456789abcdef0123456789abcdef0123456x"};
    for (size_t i = 0; i < COUNT_OF(hidden); i++) {
        begin(HF_CHECK_IGNORE, FINE);
        snprintf(S.node.run_id, sizeof(S.node.run_id), "%s", hidden[i]);
        take_many();
        assert_int_equal(S.connects, 4);
        assert_int_equal(S.warnings, 1);
        assert_non_null(strstr(S.last_warning, "node:6379 does not tell its run_id"));
        node_restart(&S.node); /* which tells it */
        CUT();
        ADVANCE_MS(1000);
        take_many();
        S.node.run_id[0] = '\0';
        CUT();
        int warnings = S.warnings;
        ADVANCE_MS(1000);
        take_many();
        assert_int_equal(S.warnings, warnings + 1);
        assert_non_null(strstr(S.last_warning, "does not tell its run_id"));
        FINISH();
    }
}

static void all_at_once_are_warned_of_one_by_one(void **state)
{
    (void)state;
    begin(HF_CHECK_WARN, "redis_version:6.0.0\r\naof_enabled:0\r\nmaxmemory:1\r\n"
                         "maxmemory_policy:allkeys-lfu");
    S.node.role = "slave";
    S.node.wall_s += 100;
    take_many();
    assert_int_equal(S.warnings, HF__CHECK_KINDS);
    FINISH();
}

static void what_is_ignored_is_not_asked(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(faults); i++) {
        begin_fault(HF_CHECK_IGNORE, i);
        take_many();
        assert_int_equal(S.warnings, 0);
        FINISH();
    }
}

static void what_is_fine_is_not_mentioned(void **state)
{
    (void)state;
    static const char *const good[] = {
        FINE,
        "redis_version:6.2.0",
        "redis_version:7.4.1",
        "redis_version:10.0.0",
        "redis_version:255.255.255",
        "redis_version:",
        "redis_version:unstable",
        "redis_version:6",
        "redis_version:99999999999999999999.1",
        "redis_version_of_another:1.0",
        "x_redis_version:1.0",
        "",
        "maxmemory:0\r\nmaxmemory_policy:allkeys-lru",
        "maxmemory:5000\r\nmaxmemory_policy:noeviction",
        "maxmemory:5000\r\nmaxmemory_policy:",
        "maxmemory:5000",
        "aof_enabled:1",
        "aof_enabled:",
    };
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        begin(HF_CHECK_REFUSE, good[i]);
        take_many();
        assert_int_equal(S.warnings, 0);
        FINISH();
    }
}

/* Five seconds, either way. */
static void a_clock_may_be_off_a_little(void **state)
{
    (void)state;
    for (int64_t ahead = -5; ahead <= 5; ahead++) {
        begin(HF_CHECK_REFUSE, FINE);
        S.node.wall_s += ahead;
        take_many();
        FINISH();
    }
}

/* An answer that is late does not make a clock look fast: it was read on the way. */
static void time_that_passes_is_no_fault_of_the_clock(void **state)
{
    (void)state;
    SETUP(.checks = HF_CHECK_REFUSE, .reply_timeout_ms = 60000);
    S.node.info = FINE;
    S.node.wall_s = STAGE_WALL_S + 14;
    S.mute = true;
    ACQUIRE(1, "x", .wait_ms = 60000);
    ADVANCE_MS(10000);
    S.mute = false;
    stage_run();
    EXPECT(1, HF_OK);
    FINISH();
}

/* Whoever answers something else than Redis does is not called unsafe, but not believed either. */
static void answers_of_another_kind(void **state)
{
    (void)state;
    begin(HF_CHECK_REFUSE, FINE);
    S.node.greeting_error = ":1\r\n";
    ACQUIRE(1, "x");
    EXPECT(1, HF_EUNAVAILABLE);
    EXPECT_TEXT(1, "does not answer like a Redis server");
    FINISH();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_wrong_is_refused),
        cmocka_unit_test(a_refusal_is_final_but_for_a_replica),
        cmocka_unit_test(one_that_is_set_right_is_taken),
        cmocka_unit_test(what_is_wrong_is_warned_of_once),
        cmocka_unit_test(a_hidden_run_id_is_warned_of_once),
        cmocka_unit_test(all_at_once_are_warned_of_one_by_one),
        cmocka_unit_test(what_is_ignored_is_not_asked),
        cmocka_unit_test(what_is_fine_is_not_mentioned),
        cmocka_unit_test(a_clock_may_be_off_a_little),
        cmocka_unit_test(time_that_passes_is_no_fault_of_the_clock),
        cmocka_unit_test(answers_of_another_kind),
    };
    return cmocka_run_group_tests_name("checks", tests, NULL, NULL);
}
