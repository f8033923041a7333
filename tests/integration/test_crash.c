/* SPDX-License-Identifier: MIT */
/* Goal: whoever dies or stops, a holder or the server, nobody is locked out longer than the lease,
 * nobody believes in a hold that has ended, and the client goes on with the next server process.
 *
 * Holders that die are puppets (puppet.h), forked before this process opens a client. Leases that
 * must not be the reason for what is seen are 30 s, far over every bound here.
 */
#include <stdio.h>
#include <string.h>

#include "fixture.h"
#include "puppet.h"

static hf_client *client;
static hf_hold *hold;
static hf_error error;
static struct attempt waiter;

static int begin(void **state)
{
    (void)state;
    hold = NULL;
    return 0;
}

/* ---- Verbs ----------------------------------------------------------------------------------- */

static void acquire(int64_t wait_ms)
{
    hold = acquire_with(client,
                        HF_ACQUIRE(.lease_ms = 30000, .wait_ms = wait_ms, .retry_interval_ms = 20));
}

static void expect_excluded(void)
{
    hf_client *other;
    EXPECT(HF_OK, hf_open(server->unix_url, NULL, &other, &error));
    expect_refused(other);
    EXPECT_STATUS(HF_OK, hf_close(other));
}

static void begin_server(bool keeps_data)
{
    server = redis_server_start(&(struct redis_server_options){.keeps_data = keeps_data});
}

/* ---- Holders --------------------------------------------------------------------------------- */

static void a_killed_holder_costs_at_most_its_lease(void **state)
{
    (void)state;
    enum { LEASE_MS = 800 };
    begin_server(false);
    struct process *holder = puppet_start(server);
    struct process *next = puppet_start(server);
    int64_t asked = now_ms();
    ASK(holder, "acquire 800 0", "HF_OK");
    long long before = scripts_run(server);
    tell(next, "acquire 30000 20000");
    WAIT_UNTIL(scripts_run(server) >= before + 2, 5000);
    process_kill(holder);
    int64_t killed = now_ms();
    EXPECT_HEARD(next, "HF_OK");
    int64_t granted = now_ms();
    assert_in_range(granted - killed, 0, LEASE_MS + SLACK_MS);
    assert_true(granted - asked >= LEASE_MS);
    ASK(next, "release", "HF_OK");
}

/* A waiter that dies leaves nothing behind: the lock is free as soon as its holder lets go. */
static void a_killed_waiter_costs_nothing(void **state)
{
    (void)state;
    begin_server(false);
    struct process *dying = puppet_start(server);
    open_client(&client);
    acquire(0);
    long long before = scripts_run(server);
    tell(dying, "acquire 30000 60000");
    WAIT_UNTIL(scripts_run(server) >= before + 2, 5000);
    process_kill(dying);
    release(&hold);
    int64_t start = now_ms();
    acquire(20000);
    EXPECT_TOOK(start, 0, 500);
    release(&hold);
}

/* The stopped holder wakes up in a world that has moved on; `first` is what it does then. */
static void wake_up_and(const char *first)
{
    char value[256];
    struct process *sleeper = puppet_start(server);
    ASK(sleeper, "acquire 300 0", "HF_OK");
    process_freeze(sleeper);
    open_client(&client);
    acquire(20000);
    (void)snprintf(value, sizeof(value), "%s", raw(server, "GET lock"));
    process_thaw(sleeper);
    ASK(sleeper, first, "HF_ELOST");
    ASK(sleeper, "valid", "no");
    ASK(sleeper, "release", strcmp(first, "extend") == 0 ? "HF_ELOST" : "HF_OK"); /* HF_OK: NULL */
    assert_string_equal(raw(server, "GET lock"), value);
    assert_true(raw_number(server, "PTTL lock") > 20000);
    EXPECT(HF_OK, hf_extend(hold, 0, &error));
    release(&hold);
}

static void a_stopped_holder_cannot_extend(void **state)
{
    (void)state;
    begin_server(false);
    wake_up_and("extend");
}

static void a_stopped_holder_cannot_release(void **state)
{
    (void)state;
    begin_server(false);
    wake_up_and("release");
}

static void a_stopped_holder_cannot_release_without_waiting(void **state)
{
    (void)state;
    begin_server(false);
    wake_up_and("nowait");
}

/* ---- Servers --------------------------------------------------------------------------------- */

static void a_server_that_forgot_is_noticed_by_extend(void **state)
{
    (void)state;
    begin_server(false);
    open_client(&client);
    acquire(0);
    redis_server_restart(server);
    EXPECT(HF_ELOST, hf_extend(hold, 0, &error));
    assert_false(hf_is_valid(hold));
    assert_int_equal(hf_remaining_ms(hold), 0);
    EXPECT(HF_ELOST, hf_release(&hold, &error));
    acquire(5000);
    expect_excluded();
    release(&hold);
}

static void a_server_that_forgot_is_noticed_by_release(void **state)
{
    (void)state;
    begin_server(false);
    open_client(&client);
    acquire(0);
    redis_server_restart(server);
    EXPECT(HF_ELOST, hf_release(&hold, &error));
    acquire(5000);
    release(&hold);
}

/* Nobody may be told that a lock is his because the server's memory of the other one is gone. */
static void a_new_holder_after_a_restart_is_left_alone(void **state)
{
    (void)state;
    begin_server(false);
    open_client(&client);
    acquire(0);
    redis_server_restart(server);
    assert_string_equal(raw(server, "SET lock foreign NX PX 30000"), "OK");
    EXPECT(HF_ELOST, hf_extend(hold, 0, &error));
    EXPECT(HF_ELOST, hf_release(&hold, &error));
    assert_string_equal(raw(server, "GET lock"), "foreign");
}

static void a_server_that_remembers_keeps_the_lock(void **state)
{
    (void)state;
    begin_server(true);
    open_client(&client);
    acquire(0);
    redis_server_restart(server);
    EXPECT(HF_OK, hf_extend(hold, 0, &error));
    assert_true(hf_is_valid(hold));
    expect_excluded();
    release(&hold);
    assert_string_equal(raw(server, "EXISTS lock"), "0");
}

/* Whether the first request goes out on the connection that has just died (unknown) or finds no
 * server at all (unavailable) is a race that nobody can win. */
static void a_waiter_survives_a_restart(void **state)
{
    (void)state;
    hf_hold *none;
    begin_server(false);
    open_client_with(&client, HF_CLIENT(.call_timeout_ms = 300));
    acquire(0);
    release(&hold);
    redis_server_kill(server);
    int64_t start = now_ms();
    hf_status refused = hf_acquire(client, "lock", NULL, &none, &error);
    EXPECT_TOOK(start, 0, 300);
    assert_true(refused == HF_EUNAVAILABLE || refused == HF_EUNKNOWN);
    attempt_begin(&waiter, client, "lock", HF_ACQUIRE(.wait_ms = 20000, .retry_interval_ms = 20));
    redis_server_restart(server);
    assert_int_equal(attempt_end(&waiter), HF_OK);
    EXPECT(HF_OK, hf_release(&waiter.hold, &error));
}

/* The release is refused by nobody and heard by nobody; the client carries it out when it can. */
static void a_release_while_the_server_is_down_comes_later(void **state)
{
    (void)state;
    begin_server(true);
    open_client_with(&client, HF_CLIENT(.call_timeout_ms = 300));
    acquire(0);
    redis_server_kill(server);
    int64_t start = now_ms();
    hf_status released = hf_release(&hold, &error);
    EXPECT_TOOK(start, 0, 300);
    assert_true(released == HF_EUNAVAILABLE || released == HF_EUNKNOWN);
    assert_null(hold);
    redis_server_restart(server);
    WAIT_UNTIL(raw_number(server, "EXISTS lock") == 0, 10000);
}

/* ---- Scripts --------------------------------------------------------------------------------- */

enum { FLUSH_THREADS = 4, FLUSH_ROUNDS = 500 };

struct taker {
    char name[24];
    pthread_t thread;
    int rounds;
    hf_error error;
};

static struct taker takers[FLUSH_THREADS]; /* static for the reason that attempts are */
static atomic_int takers_at_work;

static void *take_and_release(void *arg)
{
    struct taker *taker = arg;
    hf_hold *held;
    while (taker->rounds < FLUSH_ROUNDS) {
        if (hf_acquire(client, taker->name, NULL, &held, &taker->error) != HF_OK ||
            hf_release(&held, &taker->error) != HF_OK)
            break;
        taker->rounds++;
    }
    atomic_fetch_sub(&takers_at_work, 1);
    return NULL;
}

static void forgotten_scripts_are_no_error(void **state)
{
    (void)state;
    int flushes = 0;
    begin_server(false);
    open_client(&client);
    atomic_store(&takers_at_work, FLUSH_THREADS);
    for (int i = 0; i < FLUSH_THREADS; i++) {
        (void)snprintf(takers[i].name, sizeof(takers[i].name), "lock %d", i);
        assert_int_equal(pthread_create(&takers[i].thread, NULL, take_and_release, &takers[i]), 0);
    }
    while (atomic_load(&takers_at_work) > 0) {
        assert_string_equal(raw(server, "SCRIPT FLUSH SYNC"), "OK");
        flushes++;
    }
    for (int i = 0; i < FLUSH_THREADS; i++) {
        (void)pthread_join(takers[i].thread, NULL);
        if (takers[i].rounds != FLUSH_ROUNDS)
            fail_msg("round %d: %s: %s", takers[i].rounds, hf_status_name(takers[i].error.status),
                     takers[i].error.text);
    }
    assert_true(flushes > 10);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end_everything)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_killed_holder_costs_at_most_its_lease),
        TEST(a_killed_waiter_costs_nothing),
        TEST(a_stopped_holder_cannot_extend),
        TEST(a_stopped_holder_cannot_release),
        TEST(a_stopped_holder_cannot_release_without_waiting),
        TEST(a_server_that_forgot_is_noticed_by_extend),
        TEST(a_server_that_forgot_is_noticed_by_release),
        TEST(a_new_holder_after_a_restart_is_left_alone),
        TEST(a_server_that_remembers_keeps_the_lock),
        TEST(a_waiter_survives_a_restart),
        TEST(a_release_while_the_server_is_down_comes_later),
        TEST(forgotten_scripts_are_no_error),
    };
    return cmocka_run_group_tests_name("crash", tests, NULL, NULL);
}
