/* SPDX-License-Identifier: MIT */
/* Goal: a holder knows where it stands while its server is silent, busy or forgetful: in jeopardy
 * when a renewal is late, safe again when it came through in time, lost by its own deadline even if
 * nobody ever answers; and what the server forgot is never made again behind everybody's back.
 */
#include <stdio.h>
#include <string.h>

#include "fixture.h"
#include "witness.h"

static hf_client *client;
static hf_hold *hold;
static hf_error error;
static struct witness witness;

static int begin(void **state)
{
    (void)state;
    client = NULL;
    hold = NULL;
    witness_clear(&witness);
    return 0;
}

/* Some releases have no server to go to, which hf_close() may say. */
static int end(void **state)
{
    (void)state;
    hf_status closed = hf_close(client);
    redis_server_end_all();
    return closed == HF_OK || closed == HF_EUNKNOWN ? 0 : -1;
}

/* ---- Verbs ----------------------------------------------------------------------------------- */

static void start(const struct redis_server_options *options)
{
    server = redis_server_start(options);
    EXPECT(HF_OK, hf_open(server->url, HF_CLIENT(.call_timeout_ms = 500), &client, &error));
}

#define ACQUIRE(...)                                                                              \
    EXPECT(HF_OK, hf_acquire(client, "lock",                                                      \
                             HF_ACQUIRE(__VA_ARGS__, .on_event = witness_event, .arg = &witness), \
                             &hold, &error))

/* ---- Silent servers -------------------------------------------------------------------------- */

static void a_silent_server_means_jeopardy_then_loss(void **state)
{
    (void)state;
    enum { LEASE_MS = 2000 };
    start(NULL);
    ACQUIRE(.lease_ms = LEASE_MS, .renew_interval_ms = 100, .renew_timeout_ms = 100);
    redis_server_freeze(server);
    int64_t frozen = now_ms();
    WAIT_UNTIL(times_told(&witness, HF_LOST, HF_REASONS) == 1, 10000);
    EXPECT_TOLD(&witness, 0, HF_JEOPARDY, HF_REASON_LATE);
    EXPECT_TOLD(&witness, 1, HF_LOST, HF_REASON_EXPIRED);
    assert_int_equal(atomic_load(&witness.count), 2);
    assert_true(witness.told[0].remaining_ms > 0);
    assert_true(witness.told[1].at_ms - frozen <= LEASE_MS + SLACK_MS);
    assert_false(hf_is_valid(hold));
    redis_server_thaw(server);
    EXPECT(HF_ELOST, hf_release(&hold, &error));
    assert_int_equal(stats_of(client)->jeopardies, 1);
    assert_int_equal(stats_of(client)->losses[HF_REASON_EXPIRED], 1);
}

/* LOST comes by itself, without any call, and also at exactly the moment that the calls that only
 * look say so: a thread that asks all the time never sees it valid after it was told. */
static void told_and_asked_agree(void **state)
{
    (void)state;
    start(NULL);
    ACQUIRE(.lease_ms = 500);
    redis_server_freeze(server);
    int64_t give_up = now_ms() + 10000;
    bool told = false;
    while (!told && now_ms() < give_up) {
        told = times_told(&witness, HF_LOST, HF_REASONS) > 0;
        if (told)
            assert_false(hf_is_valid(hold));
    }
    assert_true(told);
    assert_int_equal(hf_hold_state(hold), HF_LOST);
    redis_server_thaw(server);
    EXPECT(HF_ELOST, hf_release(&hold, &error));
}

static void a_server_that_comes_back_in_time_costs_nothing(void **state)
{
    (void)state;
    char value[256];
    start(NULL);
    ACQUIRE(.lease_ms = 20000, .renew_interval_ms = 200, .renew_timeout_ms = 200);
    (void)snprintf(value, sizeof(value), "%s", raw(server, "GET lock"));
    redis_server_freeze(server);
    WAIT_UNTIL(times_told(&witness, HF_JEOPARDY, HF_REASON_LATE) == 1, 10000);
    assert_int_equal(hf_hold_state(hold), HF_JEOPARDY);
    assert_true(hf_is_valid(hold));
    redis_server_thaw(server);
    WAIT_UNTIL(times_told(&witness, HF_SAFE, HF_REASON_NONE) > 0, 10000);
    WAIT_UNTIL(hf_hold_state(hold) == HF_SAFE, 10000);
    EXPECT_TOLD(&witness, 0, HF_JEOPARDY, HF_REASON_LATE);
    EXPECT_TOLD(&witness, 1, HF_SAFE, HF_REASON_NONE);
    assert_string_equal(raw(server, "GET lock"), value);
    EXPECT(HF_OK, hf_release(&hold, &error));
}

/* The connection is given up after reply_timeout_ms, and the renewal goes out again on the next
 * one, again and again until an answer comes. */
static void renewals_that_time_out_are_sent_again(void **state)
{
    (void)state;
    server = redis_server_start(NULL);
    EXPECT(HF_OK, hf_open(server->url, HF_CLIENT(.reply_timeout_ms = 100), &client, &error));
    ACQUIRE(.lease_ms = 20000, .renew_interval_ms = 100);
    redis_server_freeze(server);
    WAIT_UNTIL(hf_hold_state(hold) == HF_JEOPARDY, 10000);
    sleep_ms(400); /* some reply timeouts */
    uint64_t before = stats_of(client)->renewals;
    redis_server_thaw(server);
    WAIT_UNTIL(stats_of(client)->renewals >= before + 2, 10000);
    WAIT_UNTIL(hf_hold_state(hold) == HF_SAFE, 10000);
    assert_int_equal(times_told(&witness, HF_LOST, HF_REASONS), 0);
    EXPECT(HF_OK, hf_release(&hold, &error));
}

/* ---- Servers that refuse for a while --------------------------------------------------------- */

static void a_busy_server_costs_nothing(void **state)
{
    (void)state;
    start(&(struct redis_server_options){
        .extra = (const char *const[]){"--busy-reply-threshold", "20", NULL}});
    ACQUIRE(.lease_ms = 20000, .renew_interval_ms = 100, .renew_timeout_ms = 100);
    redisContext *endless = begin_endless_script();
    WAIT_UNTIL(stats_of(client)->renewal_failures >= 2, 10000);
    WAIT_UNTIL(hf_hold_state(hold) == HF_JEOPARDY, 10000);
    WAIT_UNTIL(strcmp(raw(server, "SCRIPT KILL"), "OK") == 0, 10000);
    redisFree(endless);
    WAIT_UNTIL(hf_hold_state(hold) == HF_SAFE, 10000);
    assert_int_equal(times_told(&witness, HF_LOST, HF_REASONS), 0);
    EXPECT(HF_OK, hf_release(&hold, &error));
}

/* Renewals do not grow the data, so a server at its memory limit takes them. */
static void a_full_memory_costs_nothing(void **state)
{
    (void)state;
    start(NULL);
    ACQUIRE(.lease_ms = 20000, .renew_interval_ms = 100);
    assert_string_equal(raw(server, "CONFIG SET maxmemory 1mb maxmemory-policy noeviction"), "OK");
    assert_true(strncmp(raw(server, "SET probe x"), "OOM", 3) == 0);
    uint64_t before = stats_of(client)->renewals;
    WAIT_UNTIL(stats_of(client)->renewals >= before + 3, 10000);
    assert_int_equal(hf_hold_state(hold), HF_SAFE);
    EXPECT(HF_OK, hf_release(&hold, &error));
}

/* The same for holds that share a lock. */
static void a_full_memory_costs_a_sharer_nothing(void **state)
{
    (void)state;
    start(NULL);
    ACQUIRE(.lease_ms = 20000, .renew_interval_ms = 100, .owner = "request 7");
    assert_string_equal(raw(server, "CONFIG SET maxmemory 1mb maxmemory-policy noeviction"), "OK");
    assert_true(strncmp(raw(server, "SET probe x"), "OOM", 3) == 0);
    uint64_t before = stats_of(client)->renewals;
    WAIT_UNTIL(stats_of(client)->renewals >= before + 3, 10000);
    assert_int_equal(hf_hold_state(hold), HF_SAFE);
    EXPECT(HF_OK, hf_release(&hold, &error));
    assert_string_equal(raw(server, "EXISTS lock"), "0");
}

/* Holds are renewed together, but fail alone: a key of another type spoils its own renewal only. */
static void one_that_fails_does_not_spoil_the_others(void **state)
{
    (void)state;
    enum { HOLDS = 6, SPOILT = 2 };
    hf_hold *holds[HOLDS];
    server = redis_server_start(NULL);
    EXPECT(HF_OK,
           hf_open(server->url, HF_CLIENT(.links = 1, .call_timeout_ms = 500), &client, &error));
    for (int i = 0; i < HOLDS; i++) {
        char name[24];
        (void)snprintf(name, sizeof(name), "lock %d", i);
        EXPECT(
            HF_OK,
            hf_acquire(client, name,
                       HF_ACQUIRE(.lease_ms = i == SPOILT ? 2000 : 20000, .renew_interval_ms = 100,
                                  .on_event = i == SPOILT ? witness_event : NULL, .arg = &witness),
                       &holds[i], &error));
    }
    assert_string_equal(raw(server, "DEL %s", "lock 2"), "1");
    assert_string_equal(raw(server, "RPUSH %s a", "lock 2"), "1");
    WAIT_UNTIL(stats_of(client)->renewal_failures > 0 || hf_hold_state(holds[SPOILT]) == HF_LOST,
               10000);
    WAIT_UNTIL(times_told(&witness, HF_LOST, HF_REASONS) == 1, 10000);
    for (int i = 0; i < HOLDS; i++)
        assert_int_equal(hf_hold_state(holds[i]), i == SPOILT ? HF_LOST : HF_SAFE);
    for (int i = 0; i < HOLDS; i++)
        if (i != SPOILT)
            EXPECT(HF_OK, hf_release(&holds[i], &error));
    hf_status spoilt = hf_release(&holds[SPOILT], &error);
    assert_true(spoilt == HF_ELOST || spoilt == HF_ESERVER);
    assert_string_equal(raw(server, "LRANGE %s 0 -1", "lock 2"), "(array of 1)");
}

/* ---- Servers that are gone or forget --------------------------------------------------------- */

static void a_dead_server_means_loss_by_the_deadline(void **state)
{
    (void)state;
    enum { LEASE_MS = 1500 };
    start(NULL);
    ACQUIRE(.lease_ms = LEASE_MS, .renew_interval_ms = 100, .renew_timeout_ms = 100);
    redis_server_kill(server);
    int64_t killed = now_ms();
    WAIT_UNTIL(times_told(&witness, HF_LOST, HF_REASON_EXPIRED) == 1, 10000);
    assert_true(now_ms() - killed <= LEASE_MS + SLACK_MS);
    EXPECT_TOLD(&witness, 0, HF_JEOPARDY, HF_REASON_LATE);
    EXPECT(HF_ELOST, hf_release(&hold, &error));
}

static void a_server_that_forgot_is_told_at_once(void **state)
{
    (void)state;
    enum { HOLDS = 5 };
    static struct witness witnesses[HOLDS];
    hf_hold *holds[HOLDS];
    start(NULL);
    for (int i = 0; i < HOLDS; i++) {
        char name[24];
        witness_clear(&witnesses[i]);
        (void)snprintf(name, sizeof(name), "lock %d", i);
        EXPECT(HF_OK, hf_acquire(client, name,
                                 HF_ACQUIRE(.lease_ms = 30000, .renew_interval_ms = 100,
                                            .on_event = witness_event, .arg = &witnesses[i]),
                                 &holds[i], &error));
    }
    redis_server_restart(server);
    for (int i = 0; i < HOLDS; i++) {
        WAIT_UNTIL(times_told(&witnesses[i], HF_LOST, HF_REASON_GONE) == 1, 10000);
        assert_int_equal(hf_hold_state(holds[i]), HF_LOST);
    }
    /* The server has none of them, and gets none of them again. */
    for (int i = 0; i < HOLDS; i++)
        EXPECT(HF_ELOST, hf_release(&holds[i], &error));
    assert_string_equal(raw(server, "DBSIZE"), "0");
    assert_int_equal(stats_of(client)->losses[HF_REASON_GONE], HOLDS);
}

static void a_server_that_remembers_costs_nothing(void **state)
{
    (void)state;
    start(&(struct redis_server_options){.keeps_data = true});
    ACQUIRE(.lease_ms = 30000, .renew_interval_ms = 100);
    redis_server_restart(server);
    uint64_t before = stats_of(client)->renewals;
    WAIT_UNTIL(stats_of(client)->renewals >= before + 2, 10000);
    assert_int_equal(times_told(&witness, HF_LOST, HF_REASONS), 0);
    assert_string_equal(raw(server, "EXISTS lock"), "1");
    EXPECT(HF_OK, hf_release(&hold, &error));
    assert_string_equal(raw(server, "EXISTS lock"), "0");
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_silent_server_means_jeopardy_then_loss),
        TEST(told_and_asked_agree),
        TEST(a_server_that_comes_back_in_time_costs_nothing),
        TEST(renewals_that_time_out_are_sent_again),
        TEST(a_busy_server_costs_nothing),
        TEST(a_full_memory_costs_nothing),
        TEST(a_full_memory_costs_a_sharer_nothing),
        TEST(one_that_fails_does_not_spoil_the_others),
        TEST(a_dead_server_means_loss_by_the_deadline),
        TEST(a_server_that_forgot_is_told_at_once),
        TEST(a_server_that_remembers_costs_nothing),
    };
    return cmocka_run_group_tests_name("loss by the server", tests, NULL, NULL);
}
