/* SPDX-License-Identifier: MIT */
/* Children that no handler of fork() announces: made by _Fork() or clone(), or forked by a signal
 * handler whose thread is in the middle of a step of the library, with its mutex. Each child tries
 * the calls and tells what they said by its exit code: 0, or the line that was surprised. */
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <holdfast_ids.h>
#include <holdfast_stock.h>

#include "wired.h"

static hf_client *client;
static hf_hold *hold, *second;
static hf_ids *ids;

/* ---- Children ---- */

static pid_t make_clone(void)
{
    return (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
}

#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 34)
#define PLAIN_FORK _Fork
#else
#define PLAIN_FORK make_clone
#endif

#define CHILD_EXPECTS(condition) \
    do {                         \
        if (!(condition))        \
            return __LINE__;     \
    } while (0)

static int use_locks(void)
{
    hf_hold *fresh = hold;
    hf_error error;
    hf_stats stats;
    hf_inspection seen;
    CHILD_EXPECTS(hf_acquire(client, "y", NULL, &fresh, &error) == HF_EFORKED && fresh == NULL);
    CHILD_EXPECTS(hf_extend(hold, 0, &error) == HF_EFORKED);
    CHILD_EXPECTS(!hf_is_valid(hold) && hf_remaining_ms(hold) == 0);
    CHILD_EXPECTS(hf_hold_state(hold) == HF_LOST && hf_descriptor(hold) == -1);
    CHILD_EXPECTS(hf_inspect(client, "x", 0, &seen, &error) == HF_EFORKED);
    CHILD_EXPECTS(hf_revoke(client, "x", 0, "", &error) == HF_EFORKED);
    CHILD_EXPECTS(hf_stats_read(client, &stats) == HF_EFORKED);
    return 0;
}

static int use_the_rest(void)
{
    hf_error error;
    hf_ids *fresh;
    int64_t id, left;
    CHILD_EXPECTS(hf_ids_next(ids, &id, &error) == HF_EFORKED);
    CHILD_EXPECTS(hf_ids_open(client, "n", NULL, &fresh, &error) == HF_EFORKED);
    CHILD_EXPECTS(hf_stock_take(client, "phone", 1, NULL, &left, &error) == HF_EFORKED);
    return 0;
}

static int end_all(void)
{
    CHILD_EXPECTS(hf_release(&hold, NULL) == HF_EFORKED && hold == NULL);
    CHILD_EXPECTS(hf_release_nowait(&second) == HF_EFORKED && second == NULL);
    hf_ids_close(ids);
    CHILD_EXPECTS(hf_close(client) == HF_EFORKED);
    return 0;
}

static int use_everything(void)
{
    int line = use_locks();
    if (line == 0)
        line = use_the_rest();
    return line == 0 ? end_all() : line;
}

/* The line, as far as an exit code has room for it. A child that hangs is ended, and fails. */
static void expect_content(pid_t child)
{
    int status = 0;
    assert_true(child > 0);
    EVENTUALLY(waitpid(child, &status, WNOHANG) == child || (kill(child, 0) != 0));
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void run_child(pid_t (*make)(void))
{
    pid_t child = make();
    if (child == 0)
        _exit(use_everything() & 0xff);
    expect_content(child);
}

/* ---- The parent ---- */

static void begin(const hf_client_options *options)
{
    client = open_client(options);
    hold = acquire(client, "x", NULL);
    second = acquire(client, LOCK_B, NULL);
    assert_int_equal(hf_ids_open(client, "n", NULL, &ids, NULL), HF_OK);
}

static void end(void)
{
    assert_true(hf_is_valid(hold) && wires_has_key("x") && wires_has_key(LOCK_B));
    release(&hold, HF_OK);
    release(&second, HF_OK);
    hf_ids_close(ids);
    assert_int_equal(hf_close(client), HF_OK);
}

static void a_child_without_handlers_is_found(void **state)
{
    (void)state;
    begin(HF_CLIENT(.transport = &wires_transport));
    run_child(make_clone);
    run_child(PLAIN_FORK);
    end();
}

/* Its copy of the mutex stays locked: nobody in the child can give it back. */
static atomic_bool busy, done;

static void *work(void *arg)
{
    hf_stats stats;
    (void)arg;
    atomic_store(&busy, true);
    while (!atomic_load(&done))
        hf_stats_read(client, &stats);
    return NULL;
}

static void whoever_had_the_mutex_is_not_waited_for(void **state)
{
    (void)state;
    pthread_t threads[2];
    begin(HF_CLIENT(.transport = &wires_transport));
    atomic_store(&done, false);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, NULL), 0);
    EVENTUALLY(atomic_load(&busy));
    for (int i = 0; i < 100; i++)
        run_child(i % 2 == 0 ? make_clone : PLAIN_FORK);
    atomic_store(&done, true);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    end();
}

/* ---- Signal handlers ---- */

static hf_transport tapped;
static pid_t (*fork_how)(void);
static volatile sig_atomic_t children;
static volatile pid_t last_child;

static void fork_here(int signal)
{
    (void)signal;
    pid_t child = fork_how();
    if (child == 0)
        _exit(use_everything() & 0xff);
    last_child = child;
    children = children + 1;
}

/* The library has its mutex here. */
static int write_and_raise(void *connection, const void *bytes, size_t count)
{
    if (fork_how != NULL) {
        raise(SIGUSR1);
        fork_how = NULL;
    }
    return wires_transport.write(connection, bytes, count);
}

static void raise_inside(pid_t (*how)(void))
{
    hf_error error;
    int before = children;
    fork_how = how;
    assert_int_equal(hf_extend(hold, 0, &error), HF_OK);
    assert_int_equal(children, before + 1);
    expect_content(last_child);
}

static void a_signal_handler_may_fork_in_the_middle_of_a_call(void **state)
{
    (void)state;
#ifdef __SANITIZE_THREAD__
    print_message("ThreadSanitizer takes the lock that fork() tries for a mistake\n");
    skip();
#endif
    tapped = wires_transport;
    tapped.write = write_and_raise;
    assert_true(signal(SIGUSR1, fork_here) != SIG_ERR);
    begin(HF_CLIENT(.transport = &tapped));
    raise_inside(fork);
    raise_inside(PLAIN_FORK);
    raise_inside(fork);
    end();
    signal(SIGUSR1, SIG_DFL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(a_child_without_handlers_is_found),
        SEEING(whoever_had_the_mutex_is_not_waited_for),
        SEEING(a_signal_handler_may_fork_in_the_middle_of_a_call),
    };
    wired_install_gate();
    alarm(50); /* what hangs is a failure */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
