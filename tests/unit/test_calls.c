/* SPDX-License-Identifier: MIT */
/* The public calls over an injected transport, by one thread and by many: what they say, what they
 * leave at the server, and that threads who share a client hand on the wheel. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "wired.h"

/* ---- The calls ---- */

static void acquire_extend_release(void **state)
{
    (void)state;
    hf_client *client = OPEN();
    hf_error error;
    assert_int_equal(count_opens(), 0); /* no byte before the first call */
    hf_hold *hold = acquire(client, "x", HF_ACQUIRE(.lease_ms = 5000));
    assert_true(wires_has_key("x"));
    assert_true(hf_is_valid(hold));
    assert_in_range(hf_remaining_ms(hold), 1, 5000 - 52);
    expect_status(hf_extend(hold, 30000, &error), HF_OK, &error);
    assert_in_range(hf_remaining_ms(hold), 10000, 30000 - 302);
    release(&hold, HF_OK);
    assert_false(wires_has_key("x"));
    assert_int_equal(hf_close(client), HF_OK);
}

static void expect_endpoint(const char *url, const char *host, int port, const char *path)
{
    hf_client *client = NULL;
    hf_endpoint seen;
    assert_int_equal(hf_open(url, HF_CLIENT(.transport = &wires_transport), &client, NULL), HF_OK);
    hf_hold *hold = acquire(client, "x", NULL);
    WIRES_GET(seen, last_endpoint);
    assert_int_equal(seen.port, port);
    if (host != NULL)
        assert_string_equal(seen.host, host);
    else
        assert_null(seen.host);
    if (path != NULL)
        assert_string_equal(seen.path, path);
    else
        assert_null(seen.path);
    release(&hold, HF_OK);
    assert_int_equal(hf_close(client), HF_OK);
}

static void the_transport_is_told_where_to_go(void **state)
{
    (void)state;
    expect_endpoint("redis://node", "node", 6379, NULL);
    expect_endpoint("redis://[::1]:7", "::1", 7, NULL);
    expect_endpoint("unix:///run/s", NULL, 0, "/run/s");
}

static void a_busy_lock_is_told_at_once(void **state)
{
    (void)state;
    hf_client *client = OPEN(.prefix = "shop:");
    hold_for_somebody("shop:x");
    fail_to_acquire(client, "x", NULL, HF_EBUSY, "somebody");
    assert_int_equal(count_acquires(), 1);
    drop_for_somebody("shop:x");
    hf_hold *hold = acquire(client, "x", NULL);
    assert_true(wires_has_key("shop:x"));
    release(&hold, HF_OK);
    assert_int_equal(hf_close(client), HF_OK);
}

static void a_busy_lock_is_waited_for(void **state)
{
    (void)state;
    hf_client *client = OPEN();
    hf_hold *first = acquire(client, "x", HF_ACQUIRE(.lease_ms = 100, .no_renewal = true));
    hf_hold *second = acquire(client, "x", HF_ACQUIRE(.wait_ms = 10000, .no_reentry = true));
    assert_false(hf_is_valid(first)); /* or both were valid at a time */
    assert_true(hf_is_valid(second));
    release(&first, HF_ELOST);
    assert_true(wires_has_key("x")); /* it was not the first one's to release */
    release(&second, HF_OK);
    assert_int_equal(hf_close(client), HF_OK);
}

static void release_nowait_is_written_before_it_returns(void **state)
{
    (void)state;
    hf_client *client = OPEN();
    for (int round = 0; round < 20; round++) {
        hf_hold *hold = acquire(client, "x", NULL); /* one try: the last release came before */
        assert_int_equal(hf_release_nowait(&hold), HF_OK);
        assert_null(hold);
        assert_false(wires_has_key("x"));
    }
    hf_hold *hold = acquire(client, "x", HF_ACQUIRE(.lease_ms = 100, .no_renewal = true));
    EVENTUALLY(!hf_is_valid(hold));
    assert_int_equal(hf_remaining_ms(hold), 0);
    assert_int_equal(hf_release_nowait(&hold), HF_ELOST);
    assert_int_equal(hf_close(client), HF_OK);
}

static void null_holds_are_fine(void **state)
{
    (void)state;
    hf_hold *none = NULL;
    hf_error error;
    expect_status(hf_release(NULL, &error), HF_OK, &error);
    expect_status(hf_release(&none, &error), HF_OK, &error);
    assert_int_equal(hf_release_nowait(NULL), HF_OK);
    assert_int_equal(hf_release_nowait(&none), HF_OK);
    assert_false(hf_is_valid(NULL));
    assert_int_equal(hf_remaining_ms(NULL), 0);
    expect_status(hf_extend(NULL, 0, &error), HF_EINVAL, &error);
    assert_int_equal(hf_close(NULL), HF_OK);
    hf_cancel_fire(NULL);
    hf_cancel_free(NULL);
}

static void closing_releases_what_is_held(void **state)
{
    (void)state;
    hf_client *client = OPEN(.links = 2);
    hf_error error;
    hf_hold *a = acquire(client, LOCK_A, NULL);
    hf_hold *b = acquire(client, LOCK_B, NULL);
    hf_hold *c = acquire(client, "c", NULL);
    assert_int_equal(hf_close(client), HF_OK);
    assert_false(wires_has_key(LOCK_A));
    assert_false(wires_has_key(LOCK_B));
    assert_false(hf_is_valid(a));
    assert_int_equal(hf_remaining_ms(b), 0);
    expect_status(hf_extend(a, 0, &error), HF_ECLOSED, &error);
    release(&a, HF_ECLOSED);
    release(&b, HF_ECLOSED);
    assert_int_equal(hf_release_nowait(&c), HF_ECLOSED);
}

static void closing_does_not_wait_for_the_silent(void **state)
{
    (void)state;
    hf_client *client = OPEN(.call_timeout_ms = 50);
    hf_hold *hold = acquire(client, "x", NULL);
    WIRES(mute = true);
    int64_t start = now_ms();
    assert_int_equal(hf_close(client), HF_EUNKNOWN);
    assert_in_range(now_ms() - start, 45, 3000);
    release(&hold, HF_ECLOSED);
}

static void *acquire_until_closed(void *arg)
{
    fail_to_acquire(arg, "x", HF_ACQUIRE(.wait_ms = -1, .retry_interval_ms = 10), HF_ECLOSED,
                    "clos");
    return NULL;
}

static void closing_ends_calls_that_wait(void **state)
{
    (void)state;
    hf_client *client = OPEN();
    pthread_t waiters[3];
    hold_for_somebody("x");
    for (size_t i = 0; i < COUNT_OF(waiters); i++)
        assert_int_equal(pthread_create(&waiters[i], NULL, acquire_until_closed, client), 0);
    EVENTUALLY(count_acquires() >= 9);
    assert_int_equal(hf_close(client), HF_OK);
    for (size_t i = 0; i < COUNT_OF(waiters); i++)
        pthread_join(waiters[i], NULL);
}

static void silence_is_unknown_and_given_back(void **state)
{
    (void)state;
    hf_client *client = OPEN(.reply_timeout_ms = 100);
    hf_hold *warm = acquire(client, "warm", NULL); /* connects the link of "x" */
    WIRES(mute = true);
    int64_t start = now_ms();
    fail_to_acquire(client, "x", HF_ACQUIRE(.wait_ms = 50), HF_EUNKNOWN, "");
    assert_in_range(now_ms() - start, 45, 3000);
    wires_unmute();
    EVENTUALLY(!wires_has_key("x")); /* by the library's own thread: nobody calls */
    release(&warm, HF_OK);
    assert_int_equal(hf_close(client), HF_OK);
}

/* ---- Many threads ---- */

enum { THREADS = 8, SHARED_ROUNDS = 15, OWN_ROUNDS = 300 };

typedef struct worker {
    hf_client *client;
    char name[16];
    int rounds;
    pthread_t thread;
} worker;

static int shared_counter; /* guarded by nothing but the lock */

static void *work_on_shared(void *arg)
{
    const worker *self = arg;
    for (int i = 0; i < self->rounds; i++) {
        hf_hold *hold = acquire(self->client, self->name,
                                HF_ACQUIRE(.wait_ms = 30000, .retry_interval_ms = 10));
        shared_counter++;
        if (i % 3 == 0)
            assert_int_equal(hf_release_nowait(&hold), HF_OK);
        else
            release(&hold, HF_OK);
    }
    return NULL;
}

static void *work_on_own(void *arg)
{
    const worker *self = arg;
    hf_error error;
    for (int i = 0; i < self->rounds; i++) {
        hf_hold *hold = acquire(self->client, self->name, NULL);
        expect_status(hf_extend(hold, 20000, &error), HF_OK, &error);
        if (i % 3 == 0)
            assert_int_equal(hf_release_nowait(&hold), HF_OK);
        else
            release(&hold, HF_OK);
    }
    return NULL;
}

static void run_workers(hf_client *client, void *(*work)(void *), bool own_locks, int rounds)
{
    worker workers[THREADS];
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (worker){.client = client, .rounds = rounds};
        snprintf(workers[i].name, sizeof(workers[i].name), "lock%d", own_locks ? i : 0);
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(workers[i].thread, NULL);
}

static void many_threads_on_one_lock(void **state)
{
    (void)state;
    hf_client *client = OPEN(.links = 1);
    shared_counter = 0;
    run_workers(client, work_on_shared, false, SHARED_ROUNDS);
    assert_int_equal(shared_counter, THREADS * SHARED_ROUNDS);
    assert_int_equal(count_opens(), 1);
    assert_int_equal(hf_close(client), HF_OK);
    assert_false(wires_has_key("lock0"));
}

static void many_threads_on_locks_of_their_own(void **state)
{
    (void)state;
    for (int links = 1; links <= 4; links += 3) {
        hf_client *client = OPEN(.links = links);
        run_workers(client, work_on_own, true, OWN_ROUNDS);
        assert_int_equal(hf_close(client), HF_OK);
    }
    int left;
    WIRES_GET(left, node.releases);
    assert_int_equal(left, 2 * THREADS * OWN_ROUNDS);
    assert_false(wires_has_key("lock3"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(acquire_extend_release),
        SEEING(the_transport_is_told_where_to_go),
        BOTH(a_busy_lock_is_told_at_once),
        BOTH(a_busy_lock_is_waited_for),
        BOTH(release_nowait_is_written_before_it_returns),
        SEEING(null_holds_are_fine),
        BOTH(closing_releases_what_is_held),
        BOTH(closing_does_not_wait_for_the_silent),
        BOTH(closing_ends_calls_that_wait),
        BOTH(silence_is_unknown_and_given_back),
        BOTH(many_threads_on_one_lock),
        BOTH(many_threads_on_locks_of_their_own),
    };
    wired_install_gate();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
