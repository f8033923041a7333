/* SPDX-License-Identifier: MIT */
/* Goal: over a protected connection everything works as it does over a plain one: many threads,
 * many requests at once, an own loop, messages, a fork, a server that dies; and a reconnect resumes
 * the session. Not a byte may be lost or left lying in a buffer: then a call would hang until its
 * bound, which is far beyond what these tests take.
 *
 * SIGPIPE has its default action here, so one would end the program.
 */
#include <openssl/err.h>
#include <openssl/sslerr.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "protected.h"
#include "told.h"

enum { THREADS = 8, ROUNDS = 200, CROWD = 2000, PATIENCE_MS = 20000 };

static hf_client *client;
static hf_error error;
static struct attempt waiter;

static int begin(void **state)
{
    (void)state;
    assert_true(signal(SIGPIPE, SIG_DFL) != SIG_ERR);
    told_clear_all();
    forget_log();
    start_showing("server");
    return 0;
}

static void open_protected(hf_client **at)
{
    open_client_at(server->tls_url, at, HF_CLIENT(.tls = trusting(), .log = keep_log));
}

/* ---- Sessions -------------------------------------------------------------------------------- */

static void expect_resumed(const char *protocols)
{
    start_protected("server", &(struct redis_server_tls){.protocols = protocols});
    forget_log();
    open_client_at(server->tls_url, &client,
                   HF_CLIENT(.tls = trusting(), .links = 1, .log = keep_log));
    expect_free(client);
    assert_int_equal(logged("connected to"), 1);
    assert_int_equal(logged("session resumed"), 0);
    for (int i = 1; i <= 3; i++) {
        assert_int_equal(raw_number(server, "CLIENT KILL TYPE normal"), 1);
        hf_hold *hold = acquire_with(client, HF_ACQUIRE(.wait_ms = 5000));
        release(&hold);
        assert_int_equal(logged("session resumed"), i);
    }
    close_client(&client);
}

static void a_reconnect_resumes_the_session(void **state)
{
    (void)state;
    expect_resumed("TLSv1.2");
    expect_resumed("TLSv1.3");
}

/* A server that has started anew does not know it; then a new one is made. */
static void a_session_that_is_forgotten(void **state)
{
    (void)state;
    open_protected(&client);
    expect_free(client);
    redis_server_restart(server);
    for (int i = 0; i < 2; i++) {
        hf_hold *hold = acquire_with(client, HF_ACQUIRE(.wait_ms = 5000));
        release(&hold);
    }
    assert_int_equal(logged("session resumed"), 0);
}

/* ---- Load ------------------------------------------------------------------------------------ */

static void a_lock_is_handed_over_between_clients(void **state)
{
    (void)state;
    open_protected(&alice);
    open_protected(&bob);
    for (int i = 0; i < 20; i++) {
        hf_hold *hold = acquire_with(alice, HF_ACQUIRE(.wait_ms = PATIENCE_MS));
        attempt_begin(&waiter, bob, "lock", HF_ACQUIRE(.wait_ms = PATIENCE_MS));
        WAIT_UNTIL(queued() == 1, 5000);
        release(&hold);
        assert_int_equal(attempt_end(&waiter), HF_OK);
        EXPECT(HF_OK, hf_release(&waiter.hold, &error));
    }
    expect_only_fences();
}

struct worker {
    pthread_t thread;
    int number;
    int good;
    hf_error error;
};

static struct worker workers[THREADS];
static int counter; /* protected by the lock "shared" */

static void *work(void *arg)
{
    struct worker *worker = arg;
    char name[32];
    hf_hold *hold;
    for (int i = 0; i < ROUNDS; i++) {
        (void)snprintf(name, sizeof(name), "own %d %d", worker->number, i);
        bool shared = i % 4 == 0;
        if (hf_acquire(client, shared ? "shared" : name, HF_ACQUIRE(.wait_ms = PATIENCE_MS), &hold,
                       &worker->error) != HF_OK)
            return NULL;
        if (shared)
            counter++;
        if (hf_release(&hold, &worker->error) != HF_OK)
            return NULL;
        worker->good++;
    }
    return NULL;
}

static void many_threads(void **state)
{
    (void)state;
    open_protected(&client);
    counter = 0;
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.number = i};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(workers[i].thread, NULL);
    for (int i = 0; i < THREADS; i++)
        if (workers[i].good != ROUNDS)
            fail_msg("thread %d, round %d: %s", i, workers[i].good, workers[i].error.text);
    assert_int_equal(counter, THREADS * ROUNDS / 4);
    expect_not_logged("connection lost");
}

static struct told many[CROWD];
static struct told many_back[CROWD];

static void give_back(struct told *place)
{
    struct told *back = &many_back[place - many];
    if (place->hold != NULL &&
        hf_release_async(&place->hold, told_released, back, &back->error) != HF_OK)
        back->status = HF_EINTERNAL;
}

static void start_crowd(void)
{
    char name[200];
    told_clear(many, CROWD);
    told_clear(many_back, CROWD);
    for (int i = 0; i < CROWD; i++) {
        (void)snprintf(name, sizeof(name), "a name that fills the records: %0150d", i);
        many[i].act = give_back;
        start_with(client, &many[i], name, HF_ACQUIRE(.wait_ms = PATIENCE_MS));
    }
}

static void expect_crowd_served(void)
{
    for (int i = 0; i < CROWD; i++) {
        expect_status(HF_OK, many[i].status, &many[i].error, "acquire", __FILE__, __LINE__);
        expect_status(HF_OK, many_back[i].status, &many_back[i].error, "release", __FILE__,
                      __LINE__);
    }
    expect_not_logged("connection lost");
    assert_int_equal(keys_like("a name*"), 0);
}

static bool crowd_is_back(void)
{
    return told_once(many_back, CROWD) == CROWD;
}

static void thousands_at_once(void **state)
{
    (void)state;
    open_protected(&client);
    start_crowd();
    WAIT_UNTIL(crowd_is_back(), PATIENCE_MS);
    expect_crowd_served();
}

/* By the descriptor alone: bytes that are left in a buffer would never be seen. */
static void thousands_at_once_in_an_own_loop(void **state)
{
    (void)state;
    open_client_at(server->tls_url, &client,
                   HF_CLIENT(.tls = trusting(), .log = keep_log, .own_loop = true));
    struct pollfd wanted = {.fd = hf_loop_descriptor(client), .events = POLLIN};
    start_crowd();
    while (!crowd_is_back()) {
        assert_int_equal(poll(&wanted, 1, PATIENCE_MS), 1);
        EXPECT(HF_OK, hf_process(client, &error));
    }
    expect_crowd_served();
}

/* ---- Faults ---------------------------------------------------------------------------------- */

static hf_hold *kept;

static void close_copies(int line, void *arg)
{
    (void)arg;
    hf_status released = hf_release(&kept, NULL);
    (void)hf_close(client);
    line_say(line, "%s", hf_status_name(released));
}

static void a_child_leaves_the_session_alone(void **state)
{
    (void)state;
    open_client_at(server->tls_url, &client,
                   HF_CLIENT(.tls = trusting(), .links = 1, .log = keep_log));
    kept = acquire_with(client, HF_ACQUIRE(.lease_ms = 30000));
    long long before = connections_seen();
    for (int i = 0; i < 3; i++) {
        struct process *child = process_start(close_copies, NULL);
        EXPECT_HEARD(child, "HF_EFORKED");
        assert_true(process_finish(child, 5000));
        EXPECT(HF_OK, hf_extend(kept, 0, &error));
    }
    release(&kept);
    expect_free(client);
    assert_int_equal(connections_seen(), before);
    expect_not_logged("connection lost");
}

static void a_server_that_dies(void **state)
{
    (void)state;
    hf_hold *hold;
    open_client_at(server->tls_url, &client,
                   HF_CLIENT(.tls = trusting(), .call_timeout_ms = 500, .log = keep_log));
    for (int i = 0; i < 3; i++) {
        hold = acquire_with(client, HF_ACQUIRE(.wait_ms = PATIENCE_MS, .lease_ms = 2000));
        redis_server_kill(server);
        hf_status released = hf_release(&hold, &error);
        assert_true(released == HF_EUNAVAILABLE || released == HF_EUNKNOWN);
        EXPECT(HF_EUNAVAILABLE, hf_acquire(client, "lock", NULL, &hold, &error));
        redis_server_restart(server);
    }
    hold = acquire_with(client, HF_ACQUIRE(.wait_ms = PATIENCE_MS));
    release(&hold);
}

/* OpenSSL's queue of errors belongs to the thread, and so to the application too. This one, if it
 * came from the server, would mean that trying again is in vain. */
static void an_error_of_the_application_is_not_ours(void **state)
{
    (void)state;
    open_client_at(server->tls_url, &client,
                   HF_CLIENT(.tls = trusting(), .links = 1, .log = keep_log, .own_loop = true));
    struct pollfd wanted = {.fd = hf_loop_descriptor(client), .events = POLLIN};
    hf_hold *hold = acquire_for(client, 30000);
    assert_int_equal(raw_number(server, "CLIENT KILL TYPE normal"), 1);
    while (logged("connection lost") == 0) {
        assert_int_equal(poll(&wanted, 1, PATIENCE_MS), 1);
        ERR_raise(ERR_LIB_SSL, SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED);
        EXPECT(HF_OK, hf_process(client, &error));
    }
    assert_int_equal(logged("certificate"), 0);

    ERR_raise(ERR_LIB_SSL, SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED);
    release(&hold);
    assert_int_equal(ERR_peek_error(), 0);
}

/* With requests on their way in both directions when it dies. */
static void a_server_that_dies_under_load(void **state)
{
    (void)state;
    open_client_at(server->tls_url, &client, HF_CLIENT(.tls = trusting(), .log = keep_log));
    start_crowd();
    WAIT_UNTIL(told_once(many, CROWD) > 100, PATIENCE_MS);
    redis_server_restart(server);
    WAIT_UNTIL(told_once(many, CROWD) == CROWD, PATIENCE_MS);
    for (int i = 0; i < CROWD; i++)
        expect_status(HF_OK, many[i].status, &many[i].error, "acquire", __FILE__, __LINE__);
    expect_free(client);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end_everything)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_reconnect_resumes_the_session),
        TEST(a_session_that_is_forgotten),
        TEST(a_lock_is_handed_over_between_clients),
        TEST(many_threads),
        TEST(thousands_at_once),
        TEST(thousands_at_once_in_an_own_loop),
        TEST(a_child_leaves_the_session_alone),
        TEST(an_error_of_the_application_is_not_ours),
        TEST(a_server_that_dies),
        TEST(a_server_that_dies_under_load),
    };
    return cmocka_run_group_tests_name("traffic over TLS", tests, begin_certificates,
                                       end_certificates);
}
