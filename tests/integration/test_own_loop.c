/* SPDX-License-Identifier: MIT */
/* Goal: a client that was opened for the application's own loop has no thread (in a build without
 * epoll, one that only waits); its descriptor is readable whenever there is something to do, also
 * because of time or of calls from other threads; and callbacks run in hf_process(), or at last in
 * hf_close(), and nowhere else.
 *
 * Most tests wait for the descriptor without a limit, so that a wake-up that is missing is seen as
 * a test that hangs up to its patience.
 */
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "fixture.h"
#include "told.h"

enum { PATIENCE_MS = 20000 };

#ifdef HF__POLL
enum { THREADS_OF_ITS_OWN = 1 };
#else
enum { THREADS_OF_ITS_OWN = 0 };
#endif

static hf_client *client;
static hf_client *rival; /* with threads */
static hf_error error;

/* ThreadSanitizer starts a thread of its own with the first one, so there must have been one. */
static int begin(void **state)
{
    (void)state;
    told_clear_all();
    empty_server();
    open_client(&rival);
    open_client_with(&client, HF_CLIENT(.own_loop = true));
    return 0;
}

/* ---- Verbs ----------------------------------------------------------------------------------- */

static bool is_readable(int within_ms)
{
    struct pollfd wanted = {.fd = hf_loop_descriptor(client), .events = POLLIN};
    return poll(&wanted, 1, within_ms) == 1;
}

static void process(void)
{
    EXPECT(HF_OK, hf_process(client, &error));
}

/* The loop: by the descriptor alone, or with the timeout that it is given. */
#define LOOP_UNTIL(condition)                  \
    while (!(condition)) {                     \
        assert_true(is_readable(PATIENCE_MS)); \
        process();                             \
    }

static void loop_for(int64_t duration_ms)
{
    int64_t end = now_ms() + duration_ms;
    while (now_ms() < end) {
        int timeout_ms = hf_loop_timeout_ms(client);
        int64_t left_ms = end - now_ms();
        (void)is_readable(timeout_ms < 0 || timeout_ms > left_ms ? (int)left_ms : timeout_ms);
        process();
    }
}

#define EXPECT_TOLD_IN_LOOP(told, wanted)                           \
    do {                                                            \
        LOOP_UNTIL(atomic_load(&(told)->times) > 0);                \
        EXPECT_TOLD(told, wanted);                                  \
        assert_true(pthread_equal((told)->thread, pthread_self())); \
    } while (0)

/* ---- Without a thread that works ------------------------------------------------------------- */

static void nothing_runs_by_itself(void **state)
{
    (void)state;
    EXPECT_STATUS(HF_OK, hf_close(rival));
    rival = NULL;
    EXPECT_STATUS(HF_OK, hf_close(client));
    WAIT_UNTIL(running_threads() <= 2, 2000); /* ThreadSanitizer's */
    int threads = running_threads() + THREADS_OF_ITS_OWN;
    assert_true(threads > THREADS_OF_ITS_OWN);
    open_client_with(&client, HF_CLIENT(.own_loop = true));
    start_with(client, &told[0], "lock", HF_ACQUIRE(.lease_ms = 300));
    EXPECT_TOLD_IN_LOOP(&told[0], HF_OK);
    assert_int_equal(running_threads(), threads);
    loop_for(700);
    assert_true(hf_is_valid(told[0].hold)); /* renewed */
    assert_int_equal(running_threads(), threads);
    EXPECT(HF_OK, hf_release(&told[0].hold, &error));
    assert_int_equal(running_threads(), threads);
}

static void callbacks_run_in_process_only(void **state)
{
    (void)state;
    start_with(client, &told[0], "lock", NULL);
    WAIT_UNTIL(raw_number(server, "EXISTS lock") == 1 || is_readable(0), 5000);
    expect_free(rival); /* some time passes */
    assert_int_equal(atomic_load(&told[0].times), 0);
    EXPECT_TOLD_IN_LOOP(&told[0], HF_OK);
    EXPECT(HF_OK, hf_release_async(&told[0].hold, told_released, &told[1], &error));
    assert_int_equal(atomic_load(&told[1].times), 0);
    EXPECT_TOLD_IN_LOOP(&told[1], HF_OK);
    assert_int_equal(told_once(told, MANY), 2);
}

static void a_thousand_pairs_are_under_way_at_once(void **state)
{
    (void)state;
    for (int i = 0; i < MANY; i++) {
        told[i].act = release_inside;
        start_numbered(client, i);
    }
    LOOP_UNTIL(told_once(told_back, MANY) == MANY);
    assert_int_equal(told_once(told, MANY), MANY);
    for (int i = 0; i < MANY; i++)
        assert_true(told[i].status == HF_OK && told_back[i].status == HF_OK);
    assert_string_equal(raw(server, "KEYS lock*"), "(array of 0)");
}

/* ---- Time ------------------------------------------------------------------------------------ */

static void the_descriptor_knows_the_time(void **state)
{
    (void)state;
    hf_hold *hold = acquire_with(rival, NULL);
    assert_int_equal(hf_loop_timeout_ms(client), -1);
    assert_false(is_readable(0));
    int64_t begun = now_ms();
    start_with(client, &told[0], "lock", HF_ACQUIRE(.wait_ms = 300, .retry_interval_ms = 50));
    assert_in_range(hf_loop_timeout_ms(client), 0, 1000);
    EXPECT_TOLD_IN_LOOP(&told[0], HF_EBUSY);
    EXPECT_TOOK(begun, 250, 300);
    release(&hold);
}

static atomic_int losses;

static void count_losses(void *arg, const hf_event *event)
{
    (void)arg;
    if (event->state == HF_LOST)
        atomic_fetch_add(&losses, 1);
}

static void a_loop_that_comes_late_loses_its_lease(void **state)
{
    (void)state;
    atomic_store(&losses, 0);
    start_with(client, &told[0], "lock", HF_ACQUIRE(.lease_ms = 200, .on_event = count_losses));
    EXPECT_TOLD_IN_LOOP(&told[0], HF_OK);
    WAIT_UNTIL(!hf_is_valid(told[0].hold), 5000);
    assert_int_equal(atomic_load(&losses), 0);
    LOOP_UNTIL(atomic_load(&losses) > 0);
    assert_int_equal(atomic_load(&losses), 1);
    EXPECT(HF_ELOST, hf_release(&told[0].hold, &error));
}

static void the_end_of_a_server_is_told(void **state)
{
    (void)state;
    struct redis_server *usual = server;
    EXPECT_STATUS(HF_OK, hf_close(client));
    server = redis_server_start(NULL);
    open_client_with(&client, HF_CLIENT(.own_loop = true, .call_timeout_ms = 500));
    start_with(client, &told[99], "held", HF_ACQUIRE(.no_renewal = true));
    EXPECT_TOLD_IN_LOOP(&told[99], HF_OK);
    redis_server_freeze(server);
    for (int i = 0; i < 10; i++)
        start_numbered(client, i);
    EXPECT(HF_OK, hf_release_async(&told[99].hold, told_released, &told_back[0], &error));
    LOOP_UNTIL(told_once(told, 10) == 10 && told_once(told_back, 1) == 1);
    assert_int_equal(told[0].status, HF_EUNKNOWN);
    redis_server_kill(server);
    start_numbered(client, 10);
    EXPECT_TOLD_IN_LOOP(&told[10], HF_EUNAVAILABLE);
    redis_server_restart(server);
    start_with(client, &told[11], "lock", HF_ACQUIRE(.wait_ms = 10000));
    EXPECT_TOLD_IN_LOOP(&told[11], HF_OK);
    EXPECT(HF_OK, hf_release(&told[11].hold, &error));
    (void)hf_close(client);
    client = NULL;
    server = usual;
}

/* A host name is looked up on a thread, whose descriptor takes its turn in the loop's. */
static void a_host_name_is_looked_up(void **state)
{
    (void)state;
    char url[64];
    EXPECT_STATUS(HF_OK, hf_close(client));
    (void)snprintf(url, sizeof(url), "redis://localhost:%d", server->port);
    EXPECT(HF_OK, hf_open(url, HF_CLIENT(.own_loop = true), &client, &error));
    start_with(client, &told[0], "lock", HF_ACQUIRE(.wait_ms = 5000));
    EXPECT_TOLD_IN_LOOP(&told[0], HF_OK);
    EXPECT(HF_OK, hf_release(&told[0].hold, &error));
}

/* ---- Together with calls that wait ----------------------------------------------------------- */

static void calls_may_wait_outside_of_callbacks(void **state)
{
    (void)state;
    start_numbered(client, 0);
    expect_free(client);
    start_numbered(client, 1);
    hf_hold *hold = acquire_with(client, HF_ACQUIRE(.lease_ms = 300));
    assert_int_equal(told_once(told, MANY), 0); /* though their answers may be in */
    EXPECT_TOLD_IN_LOOP(&told[0], HF_OK);
    EXPECT_TOLD_IN_LOOP(&told[1], HF_OK);
    loop_for(500);
    EXPECT(HF_OK, hf_extend(hold, 0, &error));
    release(&hold);
    EXPECT(HF_OK, hf_release(&told[0].hold, &error));
    EXPECT_STATUS(HF_OK, hf_release_nowait(&told[1].hold));
}

static void what_a_waiting_call_has_read_is_told(void **state)
{
    (void)state;
    EXPECT_STATUS(HF_OK, hf_close(client));
    open_client_with(&client, HF_CLIENT(.own_loop = true, .links = 1));
    expect_free(client);
    assert_false(is_readable(0));
    start_numbered(client, 0);
    expect_free(client); /* behind it, so its answer is in */
    assert_true(is_readable(0));
    assert_int_equal(hf_loop_timeout_ms(client), 0);
    process();
    EXPECT_TOLD(&told[0], HF_OK);
    assert_false(is_readable(0));
    EXPECT(HF_OK, hf_release(&told[0].hold, &error));
}

static atomic_bool ends;

static void *call_and_wait(void *arg)
{
    atomic_int *pairs = arg;
    hf_status status = HF_OK;
    while (!atomic_load(&ends) && status == HF_OK) {
        hf_hold *hold = NULL;
        status = hf_acquire(client, "theirs", HF_ACQUIRE(.wait_ms = 10000), &hold, NULL);
        if (status == HF_OK)
            status = hf_release(&hold, NULL);
        atomic_fetch_add(pairs, status == HF_OK ? 1 : -1000000);
    }
    return NULL;
}

static void other_threads_call_and_wait(void **state)
{
    (void)state;
    static atomic_int pairs[2];
    pthread_t threads[2];
    atomic_store(&ends, false);
    for (int i = 0; i < 2; i++) {
        atomic_store(&pairs[i], 0);
        assert_int_equal(pthread_create(&threads[i], NULL, call_and_wait, &pairs[i]), 0);
    }
    for (int i = 0; i < MANY; i++) {
        told[i].act = release_inside;
        start_numbered(client, i);
        if (i % 10 == 0)
            process();
    }
    LOOP_UNTIL(told_once(told_back, MANY) == MANY);
    while (atomic_load(&pairs[0]) < 10 || atomic_load(&pairs[1]) < 10)
        loop_for(5); /* their answers may never get as far as to the loop */
    atomic_store(&ends, true);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_true(atomic_load(&pairs[i]) > 0);
    }
}

static void *start_from_elsewhere(void *arg)
{
    (void)arg;
    for (int i = 0; i < 100; i++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "lock %d", i);
        if (hf_acquire_async(client, name, NULL, told_acquired, &told[i], NULL, NULL) != HF_OK)
            atomic_fetch_add(&told[i].times, 100);
    }
    return NULL;
}

static void other_threads_wake_the_loop(void **state)
{
    (void)state;
    pthread_t thread;
    /* The loop shall wait for nothing, with connections open. */
    start_with(client, &told[200], "warm", NULL);
    EXPECT_TOLD_IN_LOOP(&told[200], HF_OK);
    EXPECT(HF_OK, hf_release(&told[200].hold, &error));
    assert_int_equal(pthread_create(&thread, NULL, start_from_elsewhere, NULL), 0);
    LOOP_UNTIL(told_once(told, 100) == 100);
    assert_int_equal(pthread_join(thread, NULL), 0);
    for (int i = 0; i < 100; i++) {
        EXPECT_TOLD_IN_LOOP(&told[i], HF_OK);
        EXPECT(HF_OK, hf_release(&told[i].hold, &error));
    }
}

/* ---- In a callback --------------------------------------------------------------------------- */

static struct inside {
    hf_status acquired, released, closed, processed;
} inside;

static void try_everything(struct told *place)
{
    hf_hold *fresh;
    inside.acquired = hf_acquire(client, "other", NULL, &fresh, NULL);
    inside.released = hf_release(&place->hold, NULL);
    inside.closed = hf_close(client);
    inside.processed = hf_process(client, NULL);
}

static void calls_that_wait_are_refused_inside(void **state)
{
    (void)state;
    told[0].act = try_everything;
    start_with(client, &told[0], "lock", NULL);
    EXPECT_TOLD_IN_LOOP(&told[0], HF_OK);
    assert_int_equal(inside.acquired, HF_EDEADLK);
    assert_int_equal(inside.released, HF_EDEADLK);
    assert_int_equal(inside.closed, HF_EDEADLK);
    assert_int_equal(inside.processed, HF_EDEADLK);
    EXPECT(HF_OK, hf_release(&told[0].hold, &error)); /* out of it, it works */
}

static atomic_bool is_inside, go_on;

static void stay_inside(struct told *place)
{
    (void)place;
    atomic_store(&is_inside, true);
    while (!atomic_load(&go_on))
        sched_yield();
}

static void *loop_elsewhere(void *arg)
{
    (void)arg;
    while (!atomic_load(&is_inside)) {
        is_readable(100);
        if (hf_process(client, NULL) != HF_OK)
            break;
    }
    return NULL;
}

static void only_one_thread_processes(void **state)
{
    (void)state;
    pthread_t thread;
    atomic_store(&is_inside, false);
    atomic_store(&go_on, false);
    told[0].act = stay_inside;
    start_with(client, &told[0], "mine", NULL);
    assert_int_equal(pthread_create(&thread, NULL, loop_elsewhere, NULL), 0);
    WAIT_UNTIL(atomic_load(&is_inside), 10000);
    EXPECT(HF_EINVAL, hf_process(client, &error));
    expect_free(client); /* a call that waits does not wait for a callback */
    atomic_store(&go_on, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    EXPECT_TOLD(&told[0], HF_OK);
    EXPECT(HF_OK, hf_release(&told[0].hold, &error));
}

static void cancel_next(struct told *place)
{
    (void)hf_cancel_operation(client, place[1].operation);
}

static void operations_are_cancelled_from_anywhere(void **state)
{
    (void)state;
    hf_hold *hold = acquire_with(rival, NULL);
    for (int i = 0; i < 3; i++)
        start_with(client, &told[i], "lock", HF_ACQUIRE(.wait_ms = -1));
    told[0].act = cancel_next;
    EXPECT_STATUS(HF_OK, hf_cancel_operation(client, told[0].operation));
    assert_int_equal(told_once(told, MANY), 0);
    EXPECT_TOLD_IN_LOOP(&told[0], HF_ECANCELLED);
    EXPECT_TOLD_IN_LOOP(&told[1], HF_ECANCELLED);
    release(&hold);
    EXPECT_TOLD_IN_LOOP(&told[2], HF_OK);
    EXPECT(HF_OK, hf_release(&told[2].hold, &error));
}

/* ---- The end --------------------------------------------------------------------------------- */

static hf_status started_inside;

static void start_another(struct told *place)
{
    started_inside =
        hf_acquire_async(client, "late", NULL, told_acquired, &told_back[place - told], NULL, NULL);
}

static void closing_tells_all_that_are_under_way(void **state)
{
    (void)state;
    hf_hold *hold = acquire_with(rival, NULL);
    for (int i = 0; i < MANY; i++)
        start_with(client, &told[i], "lock", HF_ACQUIRE(.wait_ms = -1));
    told[7].act = start_another;
    for (int i = 0; i < 3; i++)
        process();
    EXPECT_STATUS(HF_OK, hf_close(client));
    client = NULL;
    assert_int_equal(told_once(told, MANY), MANY);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(told[i].status, HF_ECLOSED);
    assert_int_equal(started_inside, HF_ECLOSED);
    assert_int_equal(told_once(told_back, MANY), 0);
    release(&hold);
}

/* The child's copy of the descriptor is the same set as the parent's: it must leave it alone. */
static void use_in_child(int line, void *arg)
{
    (void)arg;
    hf_status processed = hf_process(client, NULL);
    int descriptor = hf_loop_descriptor(client);
    int timeout_ms = hf_loop_timeout_ms(client);
    hf_status closed = hf_close(client);
    line_say(line, "%s %d %d %s, told %d", hf_status_name(processed), descriptor, timeout_ms,
             hf_status_name(closed), (int)told_once(told, MANY));
}

static void a_child_does_not_spoil_the_loop(void **state)
{
    (void)state;
    start_with(client, &told[200], "warm", NULL);
    EXPECT_TOLD_IN_LOOP(&told[200], HF_OK);
    hf_hold *warm = told[200].hold;
    told_clear(&told[200], 1);
    for (int i = 0; i < 100; i++) { /* so that all connections are there */
        start_numbered(client, i);
        EXPECT_TOLD_IN_LOOP(&told[i], HF_OK);
        EXPECT(HF_OK, hf_release(&told[i].hold, &error));
    }
    told_clear(told, 100);
    long long connections = connections_seen();
    for (int i = 0; i < 100; i++)
        start_numbered(client, i);
    struct process *child = process_start(use_in_child, NULL);
    EXPECT_HEARD(child, "HF_EFORKED -1 -1 HF_EFORKED, told 0");
    assert_true(process_finish(child, 5000));
    LOOP_UNTIL(told_once(told, 100) == 100);
    assert_int_equal(connections_seen(), connections); /* no link was given up in silence */
    for (int i = 0; i < 100; i++)
        EXPECT(HF_OK, hf_release(&told[i].hold, &error));
    release(&warm);
}

static pid_t child_of_callback;

static void fork_inside(struct told *place)
{
    (void)place;
    child_of_callback = fork();
}

/* The child finds itself in the callback, and then in hf_process(), which must not go on. */
static void a_callback_may_fork(void **state)
{
    (void)state;
    int code = 0;
    EXPECT_STATUS(HF_OK, hf_close(client));
    open_client_with(&client, HF_CLIENT(.own_loop = true, .links = 1));
    told[0].act = fork_inside;
    for (int i = 0; i < 3; i++)
        start_numbered(client, i);
    expect_free(client); /* behind them, so their answers are in */
    hf_status status = hf_process(client, NULL);
    if (child_of_callback == 0) {
        bool honest = status == HF_EFORKED && atomic_load(&told[0].times) == 1 &&
                      atomic_load(&told[1].times) == 0 && hf_close(client) == HF_EFORKED;
        _exit(honest ? 0 : 1);
    }
    assert_true(child_of_callback > 0);
    assert_true(reap(child_of_callback, &code, 10000));
    assert_int_equal(code, 0);
    for (int i = 0; i < 3; i++) {
        EXPECT_TOLD_IN_LOOP(&told[i], HF_OK);
        EXPECT(HF_OK, hf_release(&told[i].hold, &error));
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, close_clients)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(nothing_runs_by_itself),
        TEST(callbacks_run_in_process_only),
        TEST(a_thousand_pairs_are_under_way_at_once),
        TEST(the_descriptor_knows_the_time),
        TEST(a_loop_that_comes_late_loses_its_lease),
        TEST(the_end_of_a_server_is_told),
        TEST(a_host_name_is_looked_up),
        TEST(calls_may_wait_outside_of_callbacks),
        TEST(what_a_waiting_call_has_read_is_told),
        TEST(other_threads_call_and_wait),
        TEST(other_threads_wake_the_loop),
        TEST(calls_that_wait_are_refused_inside),
        TEST(only_one_thread_processes),
        TEST(operations_are_cancelled_from_anywhere),
        TEST(closing_tells_all_that_are_under_way),
        TEST(a_child_does_not_spoil_the_loop),
        TEST(a_callback_may_fork),
    };
    return cmocka_run_group_tests(tests, start_server, end_server);
}
