/* SPDX-License-Identifier: MIT */
/* The set of descriptors behind an own loop. This program is built twice, once for each way in
 * which the set is written, and both must look the same from outside.
 *
 * Waits have no limit but the patience of poll(), so a wake-up that is missing fails. */
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "gate.h"
#include "net/watch_set.h"

enum { PATIENCE_MS = 20000, ROUNDS = 2000 };

static hf__watch_set *set;

typedef struct pair { /* two ends of a connection */
    int here, there;
} pair;

/* ---- Verbs ---- */

static int begin(void **state)
{
    (void)state;
    set = hf__watch_set_open();
    return set != NULL ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    hf__watch_set_close(set, false);
    set = NULL;
    return 0;
}

static pair connect_both(void)
{
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    return (pair){ends[0], ends[1]};
}

static void disconnect(pair p)
{
    hf__watch_set_remove(set, p.here);
    assert_int_equal(close(p.here), 0);
    assert_int_equal(close(p.there), 0);
}

static void say(int end)
{
    assert_int_equal(write(end, "x", 1), 1);
}

static void hear(int end)
{
    char byte;
    assert_int_equal(read(end, &byte, 1), 1);
}

static bool is_readable(int within_ms)
{
    struct pollfd entry = {.fd = hf__watch_set_descriptor(set), .events = POLLIN};
    return poll(&entry, 1, within_ms) == 1;
}

static void expect_taken(int wanted, uint32_t tag)
{
    uint32_t tags[HF__WATCH_MAX];
    assert_int_equal(hf__watch_set_take(set, tags), wanted);
    if (wanted == 1)
        assert_int_equal(tags[0], tag);
}

static void expect_silence(void)
{
    hf__watch_set_settle(set);
    assert_false(is_readable(0));
    expect_taken(0, 0);
}

/* ---- Tests ---- */

static void it_is_readable_while_something_is_ready(void **state)
{
    (void)state;
    pair p = connect_both();
    expect_silence();
    assert_true(hf__watch_set_put(set, p.here, HF_WAIT_READ, 7));
    expect_silence();
    say(p.there);
    assert_true(is_readable(PATIENCE_MS));
    for (int i = 0; i < 3; i++) {
        expect_taken(1, 7); /* to take is not to serve */
        hf__watch_set_settle(set);
        assert_true(is_readable(0));
    }
    hear(p.here);
    expect_silence();
    disconnect(p);
}

static void it_is_exact_after_settling(void **state)
{
    (void)state;
    pair p = connect_both();
    assert_true(hf__watch_set_put(set, p.here, HF_WAIT_READ, 7));
    for (int i = 0; i < ROUNDS; i++) {
        say(p.there);
        hf__watch_set_settle(set);
        assert_true(is_readable(0));
        hear(p.here);
        expect_silence();
    }
    disconnect(p);
}

static void what_is_waited_for_can_change(void **state)
{
    (void)state;
    pair p = connect_both();
    assert_true(hf__watch_set_put(set, p.here, HF_WAIT_READ, 1));
    assert_false(is_readable(0));
    assert_true(hf__watch_set_put(set, p.here, HF_WAIT_READ | HF_WAIT_WRITE, 2));
    assert_true(is_readable(PATIENCE_MS));
    expect_taken(1, 2);
    assert_true(hf__watch_set_put(set, p.here, HF_WAIT_READ, 3));
    expect_silence();
    say(p.there);
    assert_true(is_readable(PATIENCE_MS));
    expect_taken(1, 3);
    disconnect(p);
    expect_silence();
}

/* Whether a watcher is asleep by then or not. */
static void what_comes_late_is_seen(void **state)
{
    (void)state;
    for (int pause_ms = 0; pause_ms < 20; pause_ms++) {
        pair p = connect_both();
        say(p.there);
        poll(NULL, 0, pause_ms);
        assert_true(hf__watch_set_put(set, p.here, HF_WAIT_READ, 1));
        assert_true(is_readable(PATIENCE_MS));
        disconnect(p);
        expect_silence();
    }
}

static void the_end_of_a_connection_is_ready(void **state)
{
    (void)state;
    pair p = connect_both();
    assert_true(hf__watch_set_put(set, p.here, HF_WAIT_READ, 5));
    assert_int_equal(close(p.there), 0);
    assert_true(is_readable(PATIENCE_MS));
    expect_taken(1, 5);
    hf__watch_set_remove(set, p.here);
    expect_silence();
    assert_int_equal(close(p.here), 0);
}

static void all_that_are_ready_are_taken(void **state)
{
    (void)state;
    pair pairs[HF__WATCH_MAX];
    uint32_t tags[HF__WATCH_MAX];
    bool seen[HF__WATCH_MAX] = {false};
    for (uint32_t i = 0; i < HF__WATCH_MAX; i++) {
        pairs[i] = connect_both();
        assert_true(hf__watch_set_put(set, pairs[i].here, HF_WAIT_READ, i));
        say(pairs[i].there);
    }
    assert_int_equal(hf__watch_set_take(set, tags), HF__WATCH_MAX);
    for (int i = 0; i < HF__WATCH_MAX; i++)
        seen[tags[i]] = true;
    for (int i = 0; i < HF__WATCH_MAX; i++) {
        assert_true(seen[i]);
        disconnect(pairs[i]);
    }
    expect_silence();
}

static void what_is_no_descriptor_is_refused(void **state)
{
    (void)state;
    pair p = connect_both();
    close(p.here);
    close(p.there);
    assert_false(hf__watch_set_put(set, p.here, HF_WAIT_READ, 1));
    hf__watch_set_remove(set, p.here);
    expect_silence();
}

/* Who still polled it would keep it open: the other end would not hear of it. */
static void what_was_removed_can_be_closed(void **state)
{
    (void)state;
    char byte;
    for (int i = 0; i < ROUNDS; i++) {
        pair p = connect_both();
        assert_true(hf__watch_set_put(set, p.here, HF_WAIT_READ, 1));
        if (i % 2 == 0)
            sched_yield(); /* so that it is now asleep and now on its way */
        hf__watch_set_remove(set, p.here);
        close(p.here);
        assert_int_equal(read(p.there, &byte, 1), 0);
        close(p.there);
    }
    expect_silence();
}

static void *answer_each(void *arg)
{
    struct pollfd entry = {.fd = *(int *)arg, .events = POLLIN};
    char byte;
    for (int i = 0; i < ROUNDS; i++)
        if (poll(&entry, 1, PATIENCE_MS) != 1 || read(entry.fd, &byte, 1) != 1 ||
            write(entry.fd, "y", 1) != 1)
            break;
    return NULL;
}

static void no_answer_from_elsewhere_is_missed(void **state)
{
    (void)state;
    pthread_t thread;
    pair p = connect_both();
    assert_true(hf__watch_set_put(set, p.here, HF_WAIT_READ, 1));
    assert_int_equal(pthread_create(&thread, NULL, answer_each, &p.there), 0);
    for (int i = 0; i < ROUNDS; i++) {
        say(p.here);
        assert_true(is_readable(PATIENCE_MS));
        expect_taken(1, 1);
        hear(p.here);
        hf__watch_set_settle(set);
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    expect_silence();
    disconnect(p);
}

static int64_t cpu_ms(void)
{
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (int64_t)used.tv_sec * 1000 + used.tv_nsec / 1000000;
}

static void what_is_not_taken_costs_no_time(void **state)
{
    (void)state;
    pair p = connect_both();
    assert_true(hf__watch_set_put(set, p.here, HF_WAIT_READ, 1));
    say(p.there);
    assert_true(is_readable(PATIENCE_MS));
    int64_t begun = cpu_ms();
    poll(NULL, 0, 100);
    assert_in_range(cpu_ms() - begun, 0, 40);
    disconnect(p);
}

static void a_child_leaves_it_alone(void **state)
{
    (void)state;
    int status;
    pair p = connect_both();
    assert_true(hf__watch_set_put(set, p.here, HF_WAIT_READ, 1));
    say(p.there);
    assert_true(is_readable(PATIENCE_MS));
    pid_t child = fork();
    if (child == 0) {
        hf__watch_set_close(set, true);
        _exit(0);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(is_readable(0));
    expect_taken(1, 1);
    hear(p.here);
    expect_silence();
    say(p.there);
    assert_true(is_readable(PATIENCE_MS));
    disconnect(p);
}

static void whatever_is_missing_there_is_no_set(void **state)
{
    (void)state;
    long failures = 0;
    for (;; failures++) {
        gate_fail_at(failures);
        hf__watch_set *other = hf__watch_set_open();
        bool refused = gate_open();
        assert_int_equal(other == NULL, refused);
        hf__watch_set_close(other, false);
        if (!refused)
            break;
    }
    assert_true(failures >= 1);
}

/* Nor is there a client, then. */
static void without_a_set_no_client_is_opened(void **state)
{
    (void)state;
    for (long passed = 0;; passed++) {
        hf_client *client;
        hf_error error;
        gate_fail_at(passed);
        hf_status status =
            hf_open("redis://localhost", HF_CLIENT(.own_loop = true), &client, &error);
        bool refused = gate_open();
        assert_int_equal(status, refused ? HF_ENOMEM : HF_OK);
        assert_int_equal(hf_loop_descriptor(client) >= 0, !refused);
        assert_int_equal(hf_close(client), HF_OK);
        if (!refused)
            break;
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(it_is_readable_while_something_is_ready),
        TEST(it_is_exact_after_settling),
        TEST(what_is_waited_for_can_change),
        TEST(what_comes_late_is_seen),
        TEST(the_end_of_a_connection_is_ready),
        TEST(all_that_are_ready_are_taken),
        TEST(what_is_no_descriptor_is_refused),
        TEST(what_was_removed_can_be_closed),
        TEST(no_answer_from_elsewhere_is_missed),
        TEST(what_is_not_taken_costs_no_time),
        TEST(a_child_leaves_it_alone),
        TEST(whatever_is_missing_there_is_no_set),
        TEST(without_a_set_no_client_is_opened),
    };
    gate_install();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
