/* SPDX-License-Identifier: MIT */
/* Goal: a real server that begins to refuse while it is being used: what is held there stays held
 * or is told to be lost in time, what waits gets its turn when the trouble is over, each refusal is
 * named in the text, and the client is as good as new afterwards.
 *
 * Single refusals of an acquire are in test_unwilling.c, those of permissions in test_acl.c.
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fixture.h"
#include "witness.h"

static hf_client *client;
static hf_hold *hold;
static hf_error error;
static struct attempt waiter;
static struct witness witness;

static int begin(void **state)
{
    (void)state;
    hold = NULL;
    witness_clear(&witness);
    return 0;
}

/* ---- Verbs ----------------------------------------------------------------------------------- */

static void start_with(const char *const *extra)
{
    server = redis_server_start(&(struct redis_server_options){.extra = extra});
}

/* One try says so, at once. */
static void expect_one_try(hf_status status, const char *word)
{
    hf_hold *none;
    int64_t start = now_ms();
    EXPECT(status, hf_acquire(client, "other", NULL, &none, &error));
    EXPECT_TOOK(start, 0, 1000);
    assert_null(none);
    expect_says(error.text, word);
}

/* One that would wait does, as long as it may, or is told at once. */
static void expect_wait(hf_status status, const char *word)
{
    hf_hold *none;
    bool passes = status == HF_EUNAVAILABLE;
    int64_t start = now_ms();
    EXPECT(status,
           hf_acquire(client, "other", HF_ACQUIRE(.wait_ms = passes ? 300 : 20000), &none, &error));
    EXPECT_TOOK(start, passes ? 150 : 0, 500);
    assert_null(none);
    expect_says(error.text, word);
}

static void expect_usable(void)
{
    hf_hold *again;
    EXPECT(HF_OK, hf_acquire(client, "other", HF_ACQUIRE(.wait_ms = 10000), &again, &error));
    EXPECT(HF_OK, hf_release(&again, &error));
    assert_string_equal(raw(server, "EXISTS other"), "0");
}

static void hold_with_witness(int64_t lease_ms)
{
    hold = acquire_with(client, HF_ACQUIRE(.lease_ms = lease_ms, .renew_interval_ms = 50,
                                           .on_event = witness_event, .arg = &witness));
}

static void expect_renewed_again(void)
{
    uint64_t before = stats_of(client)->renewals;
    WAIT_UNTIL(stats_of(client)->renewals >= before + 2, 10000);
}

/* ---- Out of memory --------------------------------------------------------------------------- */

static void run_out_of_memory(void)
{
    assert_string_equal(raw(server, "CONFIG SET maxmemory 1mb maxmemory-policy noeviction"), "OK");
    assert_true(strncmp(raw(server, "SET probe x"), "OOM", 3) == 0);
}

static void renewals_need_no_memory(void **state)
{
    (void)state;
    start_with(NULL);
    open_client(&client);
    hold_with_witness(5000);
    run_out_of_memory();
    expect_renewed_again();
    assert_int_equal(hf_hold_state(hold), HF_SAFE);
    release(&hold);
    assert_string_equal(raw(server, "EXISTS lock"), "0");
}

/* A release frees memory before the lock is handed on, and what a script has begun Redis lets it
 * finish: so the next one has it, and can give it back. */
static void a_lock_is_handed_on_without_memory(void **state)
{
    (void)state;
    start_with(NULL);
    open_client(&client);
    open_client(&bob);
    hold = acquire_with(client, NULL);
    attempt_begin(&waiter, bob, "lock", HF_ACQUIRE(.wait_ms = 20000));
    WAIT_UNTIL(queued() == 1, 10000);
    run_out_of_memory();
    int64_t start = now_ms();
    release(&hold);
    assert_int_equal(attempt_end(&waiter), HF_OK);
    EXPECT_TOOK(start, 0, 500);
    assert_true(hf_is_valid(waiter.hold));
    release(&waiter.hold);
    assert_int_equal(queued(), 0);
    assert_string_equal(raw(server, "EXISTS lock"), "0");
    expect_wait(HF_EUNAVAILABLE, "OOM");
    assert_string_equal(raw(server, "CONFIG SET maxmemory 0"), "OK");
    expect_usable();
}

/* ---- Replicas -------------------------------------------------------------------------------- */

/* Its new primary does not send its data for a minute, so nothing is forgotten in this test. */
static void a_hold_is_lost_in_time_at_a_replica(void **state)
{
    (void)state;
    struct redis_server *primary = redis_server_start(&(struct redis_server_options){
        .extra = (const char *const[]){"--repl-diskless-sync-delay", "60", NULL}});
    start_with(NULL);
    open_client(&client);
    hold_with_witness(1500);
    expect_renewed_again();
    assert_string_equal(raw(server, "REPLICAOF 127.0.0.1 %d", primary->port), "OK");
    int64_t start = now_ms();
    WAIT_UNTIL(hf_hold_state(hold) == HF_LOST, 10000);
    EXPECT_TOOK(start, 0, 1500);
    WAIT_UNTIL(times_told(&witness, HF_LOST, HF_REASONS) == 1, 10000);
    assert_true(times_told(&witness, HF_JEOPARDY, HF_REASONS) >= 1);
    assert_string_equal(raw(server, "REPLICAOF NO ONE"), "OK");
    EXPECT(HF_ELOST, hf_release(&hold, &error));
    expect_usable();
}

static void a_short_demotion_is_survived(void **state)
{
    (void)state;
    struct redis_server *primary = redis_server_start(&(struct redis_server_options){
        .extra = (const char *const[]){"--repl-diskless-sync-delay", "60", NULL}});
    start_with(NULL);
    open_client(&client);
    hold_with_witness(20000);
    expect_renewed_again();
    assert_string_equal(raw(server, "REPLICAOF 127.0.0.1 %d", primary->port), "OK");
    expect_one_try(HF_EUNAVAILABLE, "replica");
    assert_string_equal(raw(server, "REPLICAOF NO ONE"), "OK");
    expect_renewed_again();
    WAIT_UNTIL(hf_hold_state(hold) == HF_SAFE, 10000);
    release(&hold);
    expect_usable();
}

/* A replica that has lost its primary and may not say anything about its data. The check of
 * replicas would refuse it before. */
static void a_replica_without_its_primary(void **state)
{
    (void)state;
    start_with((const char *const[]){"--replica-serve-stale-data", "no", NULL});
    struct redis_server *replica = server;
    struct redis_server *primary = redis_server_start(NULL);
    redis_server_kill(primary);
    server = replica;
    assert_string_equal(raw(server, "REPLICAOF 127.0.0.1 %d", primary->port), "OK");
    open_client_with(&client, HF_CLIENT(.check_replica = HF_CHECK_IGNORE));
    expect_one_try(HF_EUNAVAILABLE, "MASTERDOWN");
    expect_wait(HF_EUNAVAILABLE, "without its primary");
    assert_string_equal(raw(server, "REPLICAOF NO ONE"), "OK");
    expect_usable();
}

/* ---- Refusals of writes ---------------------------------------------------------------------- */

/* A folder where the snapshot should be written makes it fail, for root too. */
static void a_server_that_cannot_save(void **state)
{
    (void)state;
    char path[128];
    start_with(NULL);
    open_client(&client);
    hold_with_witness(20000);
    (void)snprintf(path, sizeof(path), "%s/dump.rdb", server->folder);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_string_equal(raw(server, "CONFIG SET save %s", "3600 1000000"), "OK");
    (void)raw(server, "BGSAVE");
    WAIT_UNTIL(strncmp(raw(server, "SET probe x"), "MISCONF", 7) == 0, 10000);
    expect_one_try(HF_EUNAVAILABLE, "MISCONF");
    expect_wait(HF_EUNAVAILABLE, "refuses writes");
    assert_true(hf_is_valid(hold));
    assert_string_equal(raw(server, "CONFIG SET stop-writes-on-bgsave-error no"), "OK");
    expect_renewed_again();
    release(&hold);
    expect_usable();
    assert_int_equal(rmdir(path), 0);
}

static void a_server_with_too_few_replicas(void **state)
{
    (void)state;
    start_with(NULL);
    open_client(&client);
    hold_with_witness(20000);
    assert_string_equal(raw(server, "CONFIG SET min-replicas-to-write 1"), "OK");
    expect_one_try(HF_EUNAVAILABLE, "NOREPLICAS");
    expect_wait(HF_EUNAVAILABLE, "too few replicas");
    assert_true(hf_is_valid(hold));
    assert_string_equal(raw(server, "CONFIG SET min-replicas-to-write 0"), "OK");
    expect_renewed_again();
    release(&hold);
    expect_usable();
}

/* ---- A password that comes later ------------------------------------------------------------- */

static void a_password_is_set_at_run_time(void **state)
{
    (void)state;
    start_with(NULL);
    open_client(&client);
    hold_with_witness(20000);
    assert_string_equal(raw(server, "CONFIG SET requirepass secret"), "OK");
    assert_true(raw_number(server, "CLIENT KILL TYPE normal SKIPME yes") > 0);
    expect_one_try(HF_EDENIED, "NOAUTH");
    expect_wait(HF_EDENIED, "asks for a password");
    assert_true(hf_is_valid(hold));
    assert_string_equal(raw(server, "CONFIG SET requirepass %s", ""), "OK");
    expect_renewed_again();
    WAIT_UNTIL(hf_hold_state(hold) == HF_SAFE, 10000);
    release(&hold);
    expect_usable();
}

/* ---- Cluster nodes --------------------------------------------------------------------------- */

static const char *const in_cluster[] = {"--cluster-enabled", "yes", NULL};

static void a_cluster_node_without_slots(void **state)
{
    (void)state;
    start_with(in_cluster);
    open_client(&client);
    expect_one_try(HF_EUNAVAILABLE, "CLUSTERDOWN");
    expect_wait(HF_EUNAVAILABLE, "CLUSTERDOWN");
    assert_string_equal(raw(server, "CLUSTER ADDSLOTSRANGE 0 16383"), "OK");
    expect_usable(); /* one node that has all slots is like any server */
}

/* Its locks are kept by another node, and asking again does not change that. */
static void a_cluster_node_with_other_slots(void **state)
{
    (void)state;
    start_with(in_cluster);
    struct redis_server *has_none = server;
    start_with(in_cluster);
    assert_string_equal(raw(server, "CLUSTER ADDSLOTSRANGE 0 16383"), "OK");
    assert_string_equal(raw(server, "CLUSTER MEET 127.0.0.1 %d", has_none->port), "OK");
    server = has_none;
    WAIT_UNTIL(strncmp(raw(server, "GET other"), "MOVED", 5) == 0, 20000);
    open_client(&client);
    expect_one_try(HF_ESERVER, "is a cluster node, which is not supported");
    expect_wait(HF_ESERVER, "MOVED");
}

/* ---- Full ------------------------------------------------------------------------------------ */

/* What is connected stays so; a hold lives on while no further connection can be made. */
static void a_full_server_keeps_what_is_there(void **state)
{
    (void)state;
    start_with(NULL);
    open_client_with(&client, HF_CLIENT(.links = 1));
    hold = acquire_with(client, HF_ACQUIRE(.lease_ms = 5000, .renew_interval_ms = 50));
    expect_renewed_again();
    assert_string_equal(raw(server, "CONFIG SET maxclients 1"), "OK");
    open_client(&bob);
    hf_hold *none;
    EXPECT(HF_EUNAVAILABLE, hf_acquire(bob, "lock", HF_ACQUIRE(.wait_ms = 300), &none, &error));
    expect_renewed_again();
    assert_string_equal(raw(server, "CONFIG SET maxclients 100"), "OK");
    EXPECT(HF_EBUSY, hf_acquire(bob, "lock", NULL, &none, &error));
    release(&hold);
    expect_usable();
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end_everything)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(renewals_need_no_memory),
        TEST(a_lock_is_handed_on_without_memory),
        TEST(a_hold_is_lost_in_time_at_a_replica),
        TEST(a_short_demotion_is_survived),
        TEST(a_replica_without_its_primary),
        TEST(a_server_that_cannot_save),
        TEST(a_server_with_too_few_replicas),
        TEST(a_password_is_set_at_run_time),
        TEST(a_cluster_node_without_slots),
        TEST(a_cluster_node_with_other_slots),
        TEST(a_full_server_keeps_what_is_there),
    };
    return cmocka_run_group_tests_name("refusals", tests, NULL, NULL);
}
