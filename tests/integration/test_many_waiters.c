/* SPDX-License-Identifier: MIT */
/* Goal: many waiters cost no more than their number: a thousand of them and a holder that died, ten
 * thousand locks that one client waits for over one subscription, ten thousand waiters of one lock.
 *
 * Messages to the server are counted by the server. How long a release takes among ten thousand
 * waiters is measured there too, with the scripts themselves, since so many callers do not fit into
 * a test.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crowd.h"
#include "fixture.h"
#include "puppet.h"

enum { LONG_MS = 60000 };

static hf_error error;

/* ---- A thousand waiters, and a holder that died ---------------------------------------------- */

/* The bound: one release for each turn, a few checks of the first eight when the holder's time is
 * up, and each waits for at least check_ms from one check to the next. */
static void a_dead_holder_causes_no_storm(void **state)
{
    (void)state;
    enum { MEMBERS = 4, EACH = 250, WAITERS = MEMBERS * EACH, FIRST_CHECKS = 50 };
    const int64_t check_ms = LONG_MS / 3 * 7 / 8; /* a third of the lease, spread a little */
    struct process *holder = puppet_start(server);
    crowd_start(server, MEMBERS);
    ASK(holder, "lease 3000 0", "HF_OK");
    for (int i = 0; i < MEMBERS; i++)
        crowd_join(i, &(struct crowd_wish){.threads = EACH, .lease_ms = LONG_MS, .fair = true});
    WAIT_UNTIL(queued() == WAITERS, 20000);
    assert_int_equal(raw_number(server, "EXISTS lock"), 1);
    process_kill(holder);
    long long before = scripts_run(server);
    int64_t start = now_ms();
    for (int i = 0; i < WAITERS; i++)
        (void)crowd_hear(i / EACH);
    int64_t took_ms = now_ms() - start;
    long long scripts = scripts_run(server) - before;
    print_message("%d waiters of a dead holder: %lld scripts, %d ms\n", WAITERS, scripts,
                  (int)took_ms);
    int64_t checks = WAITERS * ((took_ms + SLACK_MS) / check_ms);
    assert_true(scripts <= WAITERS + FIRST_CHECKS + checks);
    expect_only_fences();
}

/* ---- Ten thousand contended locks ------------------------------------------------------------ */

enum { THREADS = 200, ROUNDS = 50 };

static atomic_int wrong;

static void lock_of(char name[32], long thread, int round)
{
    (void)snprintf(name, 32, "lock %ld of %d", thread, round);
}

static void *wait_for_many(void *arg)
{
    char name[32];
    hf_hold *hold;
    for (int round = 0; round < ROUNDS; round++) {
        lock_of(name, (long)(intptr_t)arg, round);
        const hf_acquire_options *options = HF_ACQUIRE(.wait_ms = -1, .lease_ms = LONG_MS);
        if (hf_acquire(bob, name, options, &hold, NULL) != HF_OK ||
            hf_release(&hold, NULL) != HF_OK)
            atomic_fetch_add(&wrong, 1);
    }
    return NULL;
}

static void take_a_round(hf_hold **holds, int round)
{
    char name[32];
    for (long i = 0; i < THREADS; i++) {
        lock_of(name, i, round);
        const hf_acquire_options *options = HF_ACQUIRE(.lease_ms = LONG_MS, .no_renewal = true);
        EXPECT(HF_OK, hf_acquire(alice, name, options, &holds[i], &error));
    }
}

/* Alice has the locks of a round, and lets go of them when Bob waits for all; of the next round she
 * has the locks before. */
static void ten_thousand_locks_over_one_subscription(void **state)
{
    (void)state;
    static pthread_t threads[THREADS];
    static hf_hold *holds[2][THREADS];
    open_both();
    atomic_store(&wrong, 0);
    take_a_round(holds[0], 0);
    for (long i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, wait_for_many, (void *)(intptr_t)i), 0);
    for (int round = 0; round < ROUNDS; round++) {
        if (round + 1 < ROUNDS)
            take_a_round(holds[(round + 1) % 2], round + 1);
        WAIT_UNTIL(stats_of(bob)->contentions == (uint64_t)THREADS * (uint64_t)(round + 1), 20000);
        for (int i = 0; i < THREADS; i++)
            EXPECT_STATUS(HF_OK, hf_release_nowait(&holds[round % 2][i]));
    }
    for (int i = 0; i < THREADS; i++)
        (void)pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&wrong), 0);
    assert_int_equal(stats_of(bob)->acquisitions, THREADS * ROUNDS);
    assert_string_equal(raw(server, "PUBSUB CHANNELS hf:c:*"), "(array of 1)");
    assert_true(connections_seen() <= 20); /* not one for each lock or thread */
    expect_only_fences();
}

/* ---- Ten thousand waiters of one lock -------------------------------------------------------- */

#define CLIENT_ID "0123456789abcdef0123456789abcdef"

/* As the library sends it. */
static void load(const char *name, char sha[41])
{
    static char text[64 * 1024];
    char path[512];
    (void)snprintf(path, sizeof(path), HF_SCRIPTS "%s.lua", name);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    size_t length = fread(text, 1, sizeof(text) - 1, file);
    (void)fclose(file);
    (void)snprintf(sha, 41, "%s", raw(server, "SCRIPT LOAD %b", text, length));
    assert_int_equal(strlen(sha), 40);
}

/* Waiter number 0 is the first holder. All are of one client, which has to be subscribed. */
static void queue_numbers(const char *acquire, long count)
{
    for (long i = 0; i < count; i++)
        (void)redisAppendCommand(
            server->raw,
            "EVALSHA %s 5 {k} {k}q {k}f {k}w {k}h %s:%ld@host:1/1/ 60000 3600000 1 %ld", acquire,
            CLIENT_ID, i, i + 1);
    for (long i = 0; i < count; i++) {
        redisReply *reply = NULL;
        assert_int_equal(redisGetReply(server->raw, (void **)&reply), REDIS_OK);
        assert_int_equal(reply->type, i == 0 ? REDIS_REPLY_INTEGER : REDIS_REPLY_ARRAY);
        freeReplyObject(reply);
    }
    assert_int_equal(raw_number(server, "ZCOUNT {k}q 0 +inf"), count - 1);
}

static int by_size(const void *left, const void *right)
{
    long long a = *(const long long *)left;
    long long b = *(const long long *)right;
    return (a > b) - (a < b);
}

/* The server's own time for one call of a script, in microseconds. */
static long long script_us(void)
{
    long long us = -1;
    const char *found = strstr(raw(server, "INFO commandstats"), "cmdstat_evalsha:calls=1,usec=");
    assert_non_null(found);
    assert_int_equal(sscanf(found, "cmdstat_evalsha:calls=1,usec=%lld", &us), 1);
    return us;
}

static long long median_release_us(long waiters)
{
    enum { RELEASES = 101 };
    char acquire[41];
    char release_script[41];
    long long taken[RELEASES];
    assert_string_equal(raw(server, "FLUSHALL"), "OK");
    load("acquire", acquire);
    load("release", release_script);
    queue_numbers(acquire, waiters + RELEASES);
    for (int i = 0; i < RELEASES; i++) {
        assert_string_equal(raw(server, "CONFIG RESETSTAT"), "OK");
        assert_string_equal(raw(server,
                                "EVALSHA %s 5 {k} {k}q {k}f {k}w {k}h %s:%d@host:1/1/ 0 3600000",
                                release_script, CLIENT_ID, i),
                            "1");
        taken[i] = script_us();
    }
    assert_int_equal(raw_number(server, "ZCOUNT {k}q 0 +inf"), waiters - 1);
    qsort(taken, RELEASES, sizeof(taken[0]), by_size);
    return taken[RELEASES / 2];
}

static void a_release_among_ten_thousand_is_as_fast_as_among_ten(void **state)
{
    (void)state;
    redisContext *subscriber = redisConnectUnix(server->socket);
    assert_non_null(subscriber);
    freeReplyObject(redisCommand(subscriber, "SUBSCRIBE hf:c:%s", CLIENT_ID));
    long long few_us = median_release_us(10);
    long long many_us = median_release_us(10000);
    redisFree(subscriber);
    print_message("release: %lld us among 10 waiters, %lld us among 10 000\n", few_us, many_us);
    assert_true(many_us < 1000);
    assert_true(many_us < 5 * few_us + 50);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, start_server, end_everything)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_dead_holder_causes_no_storm),
        TEST(ten_thousand_locks_over_one_subscription),
        TEST(a_release_among_ten_thousand_is_as_fast_as_among_ten),
    };
    return cmocka_run_group_tests_name("many waiters", tests, NULL, NULL);
}
