/* SPDX-License-Identifier: MIT */
/* Goal: a real server whose settings are not good enough for locks is ignored, warned of or
 * refused, as the application says; and what is set right helps the next call.
 *
 * Versions and clocks are in the unit tests: there is only one of each here.
 */
#include <stdio.h>
#include <string.h>

#include "protected.h"

static hf_client *client;
static hf_error error;

static int begin(void **state)
{
    (void)state;
    forget_log();
    return 0;
}

/* ---- Verbs ----------------------------------------------------------------------------------- */

static void start(bool keeps_data, const char *const *extra)
{
    server = redis_server_start(
        &(struct redis_server_options){.keeps_data = keeps_data, .extra = extra});
}

static void open_logging(hf_client_options options)
{
    options.size = sizeof(options);
    options.log = keep_log;
    open_client_with(&client, &options);
}

/* Over every connection that the client may make. */
static void use_all_links(void)
{
    char name[32];
    for (int i = 0; i < 40; i++) {
        hf_hold *hold;
        (void)snprintf(name, sizeof(name), "lock %d", i);
        EXPECT(HF_OK, hf_acquire(client, name, HF_ACQUIRE(.wait_ms = 5000), &hold, &error));
        EXPECT(HF_OK, hf_release(&hold, &error));
    }
}

/* However long it would wait, at once; and nothing is done there. */
static void expect_unsafe(const char *words)
{
    hf_hold *hold;
    int64_t start = now_ms();
    EXPECT(HF_EUNSAFE, hf_acquire(client, "lock", HF_ACQUIRE(.wait_ms = 20000), &hold, &error));
    EXPECT_TOOK(start, 0, 500);
    assert_null(hold);
    expect_says(error.text, words);
    assert_string_equal(raw(server, "DBSIZE"), "0");
}

/* ---- Eviction -------------------------------------------------------------------------------- */

static const char *const evicts[] = {"--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru",
                                     NULL};

static void eviction_is_warned_of_once_for_each_process(void **state)
{
    (void)state;
    start(true, evicts);
    open_logging((hf_client_options){.links = 4});
    use_all_links();
    assert_int_equal(logged("maxmemory-policy allkeys-lru"), 1);
    assert_int_equal(logged("noeviction"), 1);
    assert_int_equal(logged("appendonly") + logged("clock") + logged("replica"), 0);
    (void)raw(server, "CLIENT KILL TYPE normal SKIPME yes");
    use_all_links();
    assert_int_equal(logged("allkeys-lru"), 1); /* the same process on new connections */
    redis_server_restart(server);
    use_all_links();
    assert_int_equal(logged("allkeys-lru"), 2);
}

static void eviction_is_refused_until_it_is_set_right(void **state)
{
    (void)state;
    start(true, evicts);
    open_logging((hf_client_options){.check_eviction = HF_CHECK_REFUSE});
    expect_unsafe("set it to noeviction");
    assert_string_equal(raw(server, "CONFIG SET maxmemory-policy volatile-ttl"), "OK");
    expect_unsafe("volatile-ttl");
    assert_string_equal(raw(server, "CONFIG SET maxmemory-policy noeviction"), "OK");
    use_all_links();
    assert_string_equal(raw(server, "CONFIG SET maxmemory-policy allkeys-lru maxmemory 0"), "OK");
    (void)raw(server, "CLIENT KILL TYPE normal SKIPME yes");
    use_all_links();
}

static void eviction_is_ignored(void **state)
{
    (void)state;
    start(true, evicts);
    open_logging((hf_client_options){.check_eviction = HF_CHECK_IGNORE});
    use_all_links();
    assert_int_equal(logged("maxmemory"), 0);
}

/* ---- Persistence ----------------------------------------------------------------------------- */

static void forgetting_is_warned_of_refused_or_ignored(void **state)
{
    (void)state;
    start(false, NULL);
    open_logging((hf_client_options){.links = 4});
    use_all_links();
    assert_int_equal(logged("appendonly is off"), 1);
    EXPECT_STATUS(HF_OK, hf_close(client));
    empty_server();
    open_logging((hf_client_options){.check_persistence = HF_CHECK_REFUSE});
    expect_unsafe("appendonly is off");
    EXPECT_STATUS(HF_OK, hf_close(client));
    open_logging((hf_client_options){.check_persistence = HF_CHECK_IGNORE});
    forget_log();
    use_all_links();
    assert_int_equal(logged("appendonly"), 0);
}

/* The strictest client takes a server that is as it should be, and has nothing to say. */
static void a_good_server_passes_all_checks(void **state)
{
    (void)state;
    start(true, (const char *const[]){"--maxmemory", "100mb", NULL});
    open_logging((hf_client_options){.check_eviction = HF_CHECK_REFUSE,
                                     .check_replica = HF_CHECK_REFUSE,
                                     .check_version = HF_CHECK_REFUSE,
                                     .check_persistence = HF_CHECK_REFUSE,
                                     .check_clock = HF_CHECK_REFUSE});
    use_all_links();
    assert_int_equal(logged("cannot connect"), 0);
}

/* What was taken before the server was found wanting is not kept from being given back by it, as
 * long as the connection lasts. */
static void a_connection_that_is_up_is_not_judged_again(void **state)
{
    (void)state;
    start(true, NULL);
    open_logging((hf_client_options){.check_eviction = HF_CHECK_REFUSE});
    hf_hold *hold = acquire_with(client, NULL);
    assert_string_equal(raw(server, "CONFIG SET maxmemory 100mb maxmemory-policy allkeys-lru"),
                        "OK");
    release(&hold);
}

/* ---- Replicas -------------------------------------------------------------------------------- */

static void start_replica(void)
{
    struct redis_server *primary = redis_server_start(&(struct redis_server_options){
        .extra = (const char *const[]){"--repl-diskless-sync-delay", "0", NULL}});
    start(true, (const char *const[]){"--replica-read-only", "no", NULL});
    assert_string_equal(raw(server, "REPLICAOF 127.0.0.1 %d", primary->port), "OK");
    WAIT_UNTIL(strstr(raw(server, "INFO replication"), "master_link_status:up") != NULL, 10000);
}

static void a_replica_is_refused_by_default_until_it_is_promoted(void **state)
{
    (void)state;
    hf_hold *hold;
    start_replica();
    open_logging((hf_client_options){.links = 4});
    int64_t start_ms = now_ms();
    EXPECT(HF_EUNAVAILABLE, hf_acquire(client, "lock", NULL, &hold, &error));
    EXPECT_TOOK(start_ms, 0, 500);
    expect_says(error.text, "locks need the primary");
    assert_string_equal(raw(server, "REPLICAOF NO ONE"), "OK");
    use_all_links();
}

/* It takes writes, which is the application's affair then. */
static void a_replica_is_warned_of_or_ignored(void **state)
{
    (void)state;
    start_replica();
    open_logging((hf_client_options){.check_replica = HF_CHECK_WARN});
    use_all_links();
    assert_int_equal(logged("is a replica"), 1);
    EXPECT_STATUS(HF_OK, hf_close(client));
    forget_log();
    open_logging((hf_client_options){.check_replica = HF_CHECK_IGNORE});
    use_all_links();
    assert_int_equal(logged("replica"), 0);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end_everything)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(eviction_is_warned_of_once_for_each_process),
        TEST(eviction_is_refused_until_it_is_set_right),
        TEST(eviction_is_ignored),
        TEST(forgetting_is_warned_of_refused_or_ignored),
        TEST(a_good_server_passes_all_checks),
        TEST(a_connection_that_is_up_is_not_judged_again),
        TEST(a_replica_is_refused_by_default_until_it_is_promoted),
        TEST(a_replica_is_warned_of_or_ignored),
    };
    return cmocka_run_group_tests_name("checks", tests, NULL, NULL);
}
