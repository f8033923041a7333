/* SPDX-License-Identifier: MIT */
/* Goal: where the server's administrator forbids messages, waiting still works: by polling, with
 * one line in the log that says so.
 */
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
    assert_int_equal(queued(), 0);
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

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end_everything)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(no_channel), TEST(another_channel), TEST(no_subscribe),
        TEST(no_publish), TEST(no_numsub),       TEST(who_polls_and_who_queues),
    };
    return cmocka_run_group_tests_name("no messages", tests, NULL, NULL);
}
