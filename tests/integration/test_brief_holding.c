/* SPDX-License-Identifier: MIT */
/* Goal: what the user's brief asks of holding a lock, one by one: automatic renewal with an
 * interval and a time-out of the user's, refresh by hand, errors that are told, the end of renewal
 * with the release, and orders of events in which an old hold must have no effect on a new one.
 */
#include <stdio.h>
#include <string.h>

#include "fixture.h"
#include "witness.h"

static hf_client *first;  /* A1 of the brief */
static hf_client *second; /* A2 */
static hf_hold *hold;
static hf_hold *next;
static hf_error error;
static struct witness witness;
static char value[256];

static int begin(void **state)
{
    (void)state;
    hold = NULL;
    next = NULL;
    witness_clear(&witness);
    server = redis_server_start(NULL);
    open_client_with(&first, HF_CLIENT(.reply_timeout_ms = 150));
    open_client(&second);
    return 0;
}

/* ---- Verbs ----------------------------------------------------------------------------------- */

#define FIRST_ACQUIRES(...)                                                                       \
    EXPECT(HF_OK, hf_acquire(first, "lock",                                                       \
                             HF_ACQUIRE(__VA_ARGS__, .on_event = witness_event, .arg = &witness), \
                             &hold, &error))

static void second_acquires(void)
{
    EXPECT(HF_OK, hf_acquire(second, "lock",
                             HF_ACQUIRE(.lease_ms = 30000, .no_renewal = true, .wait_ms = 20000,
                                        .retry_interval_ms = 10),
                             &next, &error));
    (void)snprintf(value, sizeof(value), "%s", raw(server, "GET lock"));
}

/* Nothing that the first one did has touched it. */
static void expect_second_undisturbed(void)
{
    assert_string_equal(raw(server, "GET lock"), value);
    assert_in_range(raw_number(server, "PTTL lock"), 1, 30000);
    assert_true(hf_is_valid(next));
    EXPECT(HF_OK, hf_release(&next, &error));
}

enum { SCRIPT_MAX = 8192 };

static void read_script(const char *path, char script[SCRIPT_MAX])
{
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    size_t length = fread(script, 1, SCRIPT_MAX, file);
    (void)fclose(file);
    assert_in_range(length, 1, SCRIPT_MAX - 1);
    script[length] = '\0';
}

/* What the library sends for a renewal (docs/wire.md), sent by somebody who kept the value. */
static void renew_by_hand(const char *of_hold, int64_t lease_ms)
{
    char script[SCRIPT_MAX];
    read_script(HF_LUA_DIR "/renew.lua", script);
    assert_string_equal(raw(server, "EVAL %s 3 lock fence notes %s %lld 3600000 %s 0", script,
                            of_hold, (long long)lease_ms, ""),
                        "(array of 1)");
}

/* The other script for that. False: it leaves the hold to the first one. */
static bool run_refresh(bool old_server, const char *of_hold, int64_t lease_ms)
{
    char script[SCRIPT_MAX];
    char whole[SCRIPT_MAX + 64];
    read_script(HF_LUA_DIR "/refresh.lua", script);
    (void)snprintf(whole, sizeof(whole), "%s%s",
                   old_server ? "local redis = {call = redis.call} " : "", script);
    const char *said =
        raw(server, "EVAL %s 2 lock notes %s %lld", whole, of_hold, (long long)lease_ms);
    assert_true(strcmp(said, "(array of 1)") == 0 || strcmp(said, "(array of 2)") == 0);
    return strcmp(said, "(array of 1)") == 0;
}

/* ---- Wrong orders ---------------------------------------------------------------------------- */

/* A1 locks, A1 unlocks, A2 locks; a renewal of A1 comes late. The hold is gone with its release, so
 * the late message is sent by hand. */
static void a_late_renewal_has_no_effect(void **state)
{
    (void)state;
    char old[256];
    FIRST_ACQUIRES(.lease_ms = 30000, .renew_interval_ms = 50);
    (void)snprintf(old, sizeof(old), "%s", raw(server, "GET lock"));
    WAIT_UNTIL(stats_of(first)->renewals >= 2, 10000);
    EXPECT(HF_OK, hf_release(&hold, &error));
    second_acquires();
    renew_by_hand(old, 60000);
    assert_true(raw_number(server, "PTTL lock") <= 30000);
    uint64_t before = stats_of(first)->renewals;
    sleep_ms(200); /* several intervals */
    assert_int_equal(stats_of(first)->renewals, before);
    expect_second_undisturbed();

    second_acquires(); /* the same message, in time and in the right hands, is a renewal */
    renew_by_hand(value, 60000);
    assert_true(raw_number(server, "PTTL lock") > 30000);
    EXPECT(HF_OK, hf_release(&next, &error));
}

/* The watchdog's own script does it in one of two ways: servers before 7.0, which do not tell their
 * version, cannot compare by themselves. */
static void a_refresh_touches_only_what_is_its_own_and_ends_sooner(void **state)
{
    (void)state;
    for (int old = 0; old < 2; old++) {
        assert_string_equal(raw(server, "SET lock me PX 10000"), "OK");
        assert_true(run_refresh(old == 1, "me", 60000));
        assert_in_range(raw_number(server, "PTTL lock"), 30000, 60000);
        assert_false(run_refresh(old == 1, "me", 20000));
        assert_in_range(raw_number(server, "PTTL lock"), 30000, 60000);
        assert_false(run_refresh(old == 1, "other", 90000));
        assert_string_equal(raw(server, "HSET notes #revoked 1:please"), "1");
        assert_false(run_refresh(old == 1, "me", 90000));
        assert_in_range(raw_number(server, "PTTL lock"), 30000, 60000);
        assert_string_equal(raw(server, "DEL lock notes"), "2");
        assert_false(run_refresh(old == 1, "me", 90000));
        assert_string_equal(raw(server, "EXISTS lock"), "0");
    }
}

/* A1 locks, A1 expires, A2 locks, A1 unlocks. */
static void a_late_unlock_has_no_effect(void **state)
{
    (void)state;
    FIRST_ACQUIRES(.lease_ms = 150, .no_renewal = true);
    second_acquires();
    EXPECT(HF_ELOST, hf_release(&hold, &error));
    expect_second_undisturbed();
}

/* The same with a refresh by hand. */
static void a_late_refresh_has_no_effect(void **state)
{
    (void)state;
    FIRST_ACQUIRES(.lease_ms = 150, .no_renewal = true);
    second_acquires();
    EXPECT(HF_ELOST, hf_extend(hold, 60000, &error));
    EXPECT(HF_ELOST, hf_release(&hold, &error));
    expect_second_undisturbed();
}

/* There is nothing to unlock: neither before a lock was had, nor a second time. */
static void unlocking_without_holding_does_nothing(void **state)
{
    (void)state;
    second_acquires();
    EXPECT(HF_OK, hf_release(&hold, &error));
    EXPECT_STATUS(HF_OK, hf_release_nowait(&hold));
    EXPECT(HF_EINVAL, hf_extend(hold, 0, &error));
    EXPECT(HF_EBUSY, hf_acquire(first, "lock", NULL, &hold, &error));
    EXPECT(HF_OK, hf_release(&hold, &error));
    expect_second_undisturbed();
    FIRST_ACQUIRES(.lease_ms = 30000);
    EXPECT(HF_OK, hf_release(&hold, &error));
    assert_null(hold);
    second_acquires();
    EXPECT(HF_OK, hf_release(&hold, &error));
    expect_second_undisturbed();
}

/* ---- Renewal --------------------------------------------------------------------------------- */

static void renewal_is_on_by_default(void **state)
{
    (void)state;
    EXPECT(HF_OK, hf_acquire(first, "lock", HF_ACQUIRE(.lease_ms = 1800), &hold, &error));
    WAIT_UNTIL(stats_of(first)->renewals >= 2, 10000);
    EXPECT(HF_OK, hf_release(&hold, &error));
}

/* Each renewal gives the lease that was asked for, after the interval that was asked for. */
static void interval_and_timeout_are_the_user_s(void **state)
{
    (void)state;
    FIRST_ACQUIRES(.lease_ms = 20000, .renew_interval_ms = 300, .renew_timeout_ms = 400);
    int64_t start = now_ms();
    WAIT_UNTIL(stats_of(first)->renewals >= 4, 20000);
    assert_true(now_ms() - start >= 4 * 300 - 300 / 4);
    assert_in_range(raw_number(server, "PTTL lock"), 19000, 20000);
    redis_server_freeze(server);
    int64_t frozen = now_ms();
    WAIT_UNTIL(times_told(&witness, HF_JEOPARDY, HF_REASON_LATE) == 1, 10000);
    assert_true(witness.told[0].at_ms - frozen >= 400 - 300 / 4);
    assert_true(witness.told[0].at_ms - frozen <= 300 + 400 + SLACK_MS);
    redis_server_thaw(server);
    WAIT_UNTIL(hf_hold_state(hold) == HF_SAFE, 10000);
    EXPECT(HF_OK, hf_release(&hold, &error));
}

/* reply_timeout_ms of this client is 150: several connections are given up in this time. */
static void renewals_that_time_out_are_tried_again(void **state)
{
    (void)state;
    FIRST_ACQUIRES(.lease_ms = 20000, .renew_interval_ms = 100);
    redis_server_freeze(server);
    sleep_ms(700);
    redis_server_thaw(server);
    uint64_t before = stats_of(first)->renewals;
    WAIT_UNTIL(stats_of(first)->renewals >= before + 2, 10000);
    assert_int_equal(times_told(&witness, HF_LOST, HF_REASONS), 0);
    EXPECT(HF_OK, hf_release(&hold, &error));
}

/* Somebody else has it: the user is told, and renewal ends. */
static void a_renewal_that_cannot_succeed_is_told(void **state)
{
    (void)state;
    FIRST_ACQUIRES(.lease_ms = 30000, .renew_interval_ms = 50);
    assert_string_equal(raw(server, "SET lock foreign PX 30000"), "OK");
    WAIT_UNTIL(times_told(&witness, HF_LOST, HF_REASON_GONE) == 1, 10000);
    uint64_t before = stats_of(first)->renewals;
    long long scripts = scripts_run(server);
    sleep_ms(300); /* several intervals */
    assert_int_equal(stats_of(first)->renewals, before);
    assert_int_equal(scripts_run(server), scripts);
    EXPECT(HF_ELOST, hf_release(&hold, &error));
    assert_string_equal(raw(server, "GET lock"), "foreign");
}

static void renewal_ends_with_the_release(void **state)
{
    (void)state;
    FIRST_ACQUIRES(.lease_ms = 30000, .renew_interval_ms = 50);
    WAIT_UNTIL(stats_of(first)->renewals >= 2, 10000);
    EXPECT(HF_OK, hf_release(&hold, &error));
    long long scripts = scripts_run(server);
    sleep_ms(300); /* several intervals */
    assert_int_equal(scripts_run(server), scripts);
    assert_string_equal(raw(server, "EXISTS lock"), "0");
}

/* The same lock again, by the same thread: the renewal of the new hold is a new one. */
static void renewal_begins_anew_with_the_next_hold(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        FIRST_ACQUIRES(.lease_ms = 30000, .renew_interval_ms = 30);
        uint64_t before = stats_of(first)->renewals;
        WAIT_UNTIL(stats_of(first)->renewals >= before + 2, 10000);
        EXPECT(HF_OK, hf_release(&hold, &error));
    }
}

/* A limit of the whole time is there for those who want one. */
static void there_is_no_limit_unless_wanted(void **state)
{
    (void)state;
    FIRST_ACQUIRES(.lease_ms = 1500, .renew_interval_ms = 50, .max_hold_ms = 200);
    WAIT_UNTIL(times_told(&witness, HF_LOST, HF_REASON_MAX_HOLD) == 1, 10000);
    EXPECT(HF_ELOST, hf_release(&hold, &error));
}

/* ---- By hand --------------------------------------------------------------------------------- */

static void refresh_by_hand(void **state)
{
    (void)state;
    FIRST_ACQUIRES(.lease_ms = 3000, .no_renewal = true);
    WAIT_UNTIL(raw_number(server, "PTTL lock") < 2800, 10000);
    EXPECT(HF_OK, hf_extend(hold, 0, &error));
    assert_in_range(raw_number(server, "PTTL lock"), 2000, 3000);
    EXPECT(HF_OK, hf_extend(hold, 30000, &error));
    assert_in_range(raw_number(server, "PTTL lock"), 20000, 30000);
    EXPECT(HF_OK, hf_release(&hold, &error));
}

/* Time-outs are retried; every other error comes back, and the hold stands as it was. */
static void a_refresh_returns_final_errors(void **state)
{
    (void)state;
    FIRST_ACQUIRES(.lease_ms = 30000, .no_renewal = true);
    assert_string_equal(raw(server, "ACL SETUSER default -pexpire"), "OK");
    assert_int_equal(hf_extend(hold, 60000, &error), HF_EDENIED);
    assert_true(hf_is_valid(hold));
    assert_string_equal(raw(server, "ACL SETUSER default +pexpire"), "OK");
    EXPECT(HF_OK, hf_extend(hold, 60000, &error));
    EXPECT(HF_OK, hf_release(&hold, &error));
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end_everything)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_late_renewal_has_no_effect),
        TEST(a_late_unlock_has_no_effect),
        TEST(a_late_refresh_has_no_effect),
        TEST(a_refresh_touches_only_what_is_its_own_and_ends_sooner),
        TEST(unlocking_without_holding_does_nothing),
        TEST(renewal_is_on_by_default),
        TEST(interval_and_timeout_are_the_user_s),
        TEST(renewals_that_time_out_are_tried_again),
        TEST(a_renewal_that_cannot_succeed_is_told),
        TEST(renewal_ends_with_the_release),
        TEST(renewal_begins_anew_with_the_next_hold),
        TEST(there_is_no_limit_unless_wanted),
        TEST(refresh_by_hand),
        TEST(a_refresh_returns_final_errors),
    };
    return cmocka_run_group_tests_name("brief: holding", tests, NULL, NULL);
}
