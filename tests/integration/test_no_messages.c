/* SPDX-License-Identifier: MIT */
/* Goal: where the server's administrator forbids messages, waiting still works, in the order of the
 * queue: by polling, with one line in the log that says so. When they are allowed again, they are
 * used again.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "fixture.h"

static hf_hold *hold;
static struct attempt waiter;
static atomic_int lines; /* of Bob's log that speak of polling */

static int begin(void **state)
{
    atomic_store(&lines, 0);
    return start_server(state);
}

/* ---- Verbs ----------------------------------------------------------------------------------- */

static void read_log(void *arg, hf_log_level level, const char *text)
{
    (void)arg;
    if (level >= HF_LOG_WARNING && strstr(text, "poll") != NULL)
        atomic_fetch_add(&lines, 1);
}

static void open_bob_without(const char *permission)
{
    char url[64];
    assert_string_equal(raw(server, "ACL SETUSER bob on >secret ~* &* +@all"), "OK");
    char rule[96];
    (void)snprintf(rule, sizeof(rule), "ACL SETUSER bob %s", permission);
    assert_string_equal(raw(server, rule), "OK");
    (void)snprintf(url, sizeof(url), "redis://bob:secret@127.0.0.1:%d", server->port);
    open_client(&alice);
    open_client_at(url, &bob, HF_CLIENT(.log = read_log));
}

/* Twice, and several threads the second time: it is said once. */
static void expect_polls(void)
{
    static struct attempt more[3];
    hold = acquire_for(alice, 30000);
    long long before = scripts_run(server);
    attempt_begin(&waiter, bob, "lock", HF_ACQUIRE(.wait_ms = 20000));
    WAIT_UNTIL(scripts_run(server) >= before + 4, 10000); /* it asks again and again */
    assert_int_equal(queued(), 1);
    release(&hold);
    assert_int_equal(attempt_end(&waiter), HF_OK);
    for (int i = 0; i < 3; i++)
        attempt_begin(&more[i], bob, "lock", HF_ACQUIRE(.wait_ms = 20000, .fair = i == 0));
    sleep_ms(250);
    release(&waiter.hold);
    for (int served = 0; served < 3;)
        for (int i = 0; i < 3; i++)
            if (attempt_is_over(&more[i])) {
                assert_int_equal(attempt_end(&more[i]), HF_OK);
                release(&more[i].hold);
                atomic_store(&more[i].over, false);
                served++;
            }
    assert_int_equal(atomic_load(&lines), 1);
    expect_only_fences();
}

/* ---- Forbidden ------------------------------------------------------------------------------- */

static void no_channel(void **state)
{
    (void)state;
    open_bob_without("resetchannels");
    expect_polls();
}

static void another_channel(void **state)
{
    (void)state;
    open_bob_without("resetchannels &news:*");
    expect_polls();
}

static void no_subscribe(void **state)
{
    (void)state;
    open_bob_without("-subscribe");
    expect_polls();
}

static void no_publish(void **state)
{
    (void)state;
    open_bob_without("-publish");
    expect_polls();
}

static void no_numsub(void **state)
{
    (void)state;
    open_bob_without("-pubsub");
    expect_polls();
}

/* Alice may send messages, and Bob may not: those who queue are served before those who poll, and
 * what Bob releases goes to the queue although he cannot tell. */
static void who_polls_and_who_queues(void **state)
{
    (void)state;
    open_bob_without("-publish -subscribe -pubsub");
    hf_acquire_options short_lease = *HF_ACQUIRE(.wait_ms = 20000, .lease_ms = 1200);
    hold = acquire_with(bob, &short_lease);
    attempt_begin(&waiter, alice, "lock", &short_lease);
    WAIT_UNTIL(queued() == 1, 10000);
    int64_t start = now_ms();
    release(&hold);
    assert_int_equal(attempt_end(&waiter), HF_OK);
    EXPECT_TOOK(start, 0, 400); /* a check of hers, since nobody told her */
    release(&waiter.hold);
    expect_only_fences();
}

/* ---- Allowed again --------------------------------------------------------------------------- */

static void allow_bob(void)
{
    assert_string_equal(raw(server, "ACL SETUSER bob &* +@all"), "OK");
}

static bool someone_is_subscribed(const char *pattern)
{
    return strcmp(raw(server, "PUBSUB CHANNELS %s", pattern), "(array of 1)") == 0;
}

static void a_permission_that_comes_back(void **state)
{
    (void)state;
    open_bob_without("-subscribe");
    hold = acquire_for(alice, 30000);
    attempt_begin(&waiter, bob, "lock", HF_ACQUIRE(.wait_ms = 25000, .lease_ms = 30000));
    WAIT_UNTIL(atomic_load(&lines) == 1, 10000);
    allow_bob();
    WAIT_UNTIL(someone_is_subscribed("hf:c:*"), 10000);
    sleep_ms(100); /* for its check */
    long long before = scripts_run(server);
    sleep_ms(500);
    assert_in_range(scripts_run(server) - before, 0, 2); /* it does not ask again and again */
    int64_t start = now_ms();
    release(&hold);
    assert_int_equal(attempt_end(&waiter), HF_OK);
    EXPECT_TOOK(start, 0, 80); /* a message */
    release(&waiter.hold);
    assert_int_equal(atomic_load(&lines), 1);
    expect_only_fences();
}

/* Two others have the lock all the time, and queue. */
static atomic_bool busy;
static atomic_int turns;

static void *contend(void *client)
{
    while (atomic_load(&busy)) {
        hf_hold *mine = NULL;
        if (hf_acquire(client, "lock", HF_ACQUIRE(.wait_ms = 5000, .fair = true), &mine, NULL) ==
            HF_OK) {
            atomic_fetch_add(&turns, 1);
            hf_release(&mine, NULL);
        }
    }
    return NULL;
}

static hf_client *carol;

static void it_does_not_starve(void **state)
{
    (void)state;
    pthread_t threads[2];
    open_bob_without("-subscribe");
    open_client(&carol);
    atomic_store(&busy, true);
    assert_int_equal(pthread_create(&threads[0], NULL, contend, alice), 0);
    assert_int_equal(pthread_create(&threads[1], NULL, contend, carol), 0);
    WAIT_UNTIL(atomic_load(&turns) > 20, 10000);
    for (int i = 0; i < 3; i++) {
        attempt_begin(&waiter, bob, "lock", HF_ACQUIRE(.wait_ms = 8000));
        assert_int_equal(attempt_end(&waiter), HF_OK);
        assert_in_range(waiter.took_ms, 0, 2000);
        release(&waiter.hold);
    }
    atomic_store(&busy, false);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    expect_only_fences();
}

/* ---- Observers ------------------------------------------------------------------------------- */

static atomic_int seen;

static void see(void *arg, const hf_sight *sight)
{
    (void)arg;
    (void)sight;
    atomic_fetch_add(&seen, 1);
}

static void an_observer_hears_again(void **state)
{
    (void)state;
    hf_observer *observer;
    hf_error why;
    atomic_store(&seen, 0);
    open_bob_without("resetchannels &hf:c:*");
    assert_int_equal(hf_observe(bob, "lock", 4, see, NULL, &observer, &why), HF_OK);
    WAIT_UNTIL(atomic_load(&seen) == 1, 10000); /* it is free */
    assert_false(someone_is_subscribed("hf:e:*"));
    allow_bob();
    WAIT_UNTIL(someone_is_subscribed("hf:e:*"), 10000);
    sleep_ms(200);
    int before = atomic_load(&seen);
    hold = acquire_for(alice, 30000);
    WAIT_UNTIL(atomic_load(&seen) > before, 300); /* a look would take up to a second */
    release(&hold);
    hf_observe_end(&observer);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end_everything)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(no_channel),
        TEST(another_channel),
        TEST(no_subscribe),
        TEST(no_publish),
        TEST(no_numsub),
        TEST(who_polls_and_who_queues),
        TEST(a_permission_that_comes_back),
        TEST(it_does_not_starve),
        TEST(an_observer_hears_again),
    };
    return cmocka_run_group_tests_name("no messages", tests, NULL, NULL);
}
