/* SPDX-License-Identifier: MIT */
/* The other parties of an integration test, and its watch.
 *
 * cmocka's assertions jump out of the test, so they belong to the test's own thread only. Whatever
 * happens elsewhere is reported: a child process talks over its line, one short text per message,
 * and a call on another thread leaves its outcome in a struct attempt. The test asserts on those.
 *
 * Nothing here sleeps to hope for an order. WAIT_UNTIL polls a condition up to a bound, and
 * sleep_ms() is for leases that have to run out.
 *
 * Children are forked while the parent has no client open, unless the test is about exactly that:
 * a child that starts threads after a fork of a threaded parent is what ThreadSanitizer refuses.
 */
#ifndef HOLDFAST_TESTS_PROCESS_H
#define HOLDFAST_TESTS_PROCESS_H

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <cmocka.h>

#include <holdfast.h>

/* What a loaded machine with two cores and sanitizers, or a virtual one that stands still for a
 * second, may add to a bound. A bound that is broken in the library is broken by a time-out, which
 * is longer than this. */
#define SLACK_MS 1200

/* ---- Time ------------------------------------------------------------------------------------ */

int64_t now_ms(void); /* on CLOCK_BOOTTIME, so that parent and children agree */
void sleep_ms(int64_t duration_ms);

/* Sleeps in small steps and returns the longest moment for which this thread was not there. A
 * machine that stands still for longer than a lease ends it rightly, so a test that has to see a
 * hold survive starts over when that happens. */
int64_t longest_pause_ms(int64_t duration_ms);

#define WAIT_UNTIL(condition, bound_ms)                                        \
    do {                                                                       \
        int64_t give_up_ = now_ms() + (bound_ms);                              \
        while (!(condition)) {                                                 \
            if (now_ms() > give_up_)                                           \
                fail_msg("not within %d ms: %s", (int)(bound_ms), #condition); \
            sleep_ms(2);                                                       \
        }                                                                      \
    } while (0)

/* Asserts that the time since `start` is in a range, the upper end with slack. */
#define EXPECT_TOOK(start, least_ms, most_ms) \
    assert_in_range(now_ms() - (start), (least_ms), (most_ms) + SLACK_MS)

/* ---- Statuses -------------------------------------------------------------------------------- */

/* For calls that fill the test's `error`: asserts the status, and that `error` says the same. A
 * surprise is shown with the library's own words. */
#define EXPECT(wanted, call) expect_status((wanted), (call), &error, #call, __FILE__, __LINE__)

/* For calls without an hf_error. */
#define EXPECT_STATUS(wanted, call) expect_status((wanted), (call), NULL, #call, __FILE__, __LINE__)

/* `got` is evaluated before `error` is read, because the error is passed by address. */
void expect_status(hf_status wanted, hf_status got, const hf_error *error, const char *call,
                   const char *file, int line);

/* ---- Child processes ------------------------------------------------------------------------- */

struct process {
    pid_t pid; /* 0: ended and reaped */
    int line;
};

/* Runs in the child, which exits when it returns. */
typedef void process_body(int line, void *arg);

/* Forks. Fails the test when that is impossible. The struct is valid until process_end_all(). */
struct process *process_start(process_body *body, void *arg);

void process_kill(struct process *process);   /* SIGKILL, and reaped */
void process_freeze(struct process *process); /* SIGSTOP; returns when it has stopped */
void process_thaw(struct process *process);

/* Waits for the child to end by itself; false if it did not, or not with exit status 0. */
bool process_finish(struct process *process, int64_t bound_ms);

/* Kills whatever is left. For teardown: it runs after a failed assertion too. */
void process_end_all(void);

/* Makes the calling process die with its parent; for the start of any child. */
void die_with_parent(pid_t parent);

/* Reaps a child within a bound; false when it lives on. */
bool reap(pid_t pid, int *status, int64_t bound_ms);

/* One message each way, from either end of a line. */
#define LINE_MAX_TEXT 256
void line_say(int line, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool line_hear(int line, char text[LINE_MAX_TEXT], int64_t bound_ms); /* false: nothing came */

/* Asserts that the next message of the child, within 20 s, is `wanted`. */
#define EXPECT_HEARD(process, wanted)                    \
    do {                                                 \
        char heard_[LINE_MAX_TEXT] = "(silence)";        \
        (void)line_hear((process)->line, heard_, 20000); \
        assert_string_equal(heard_, (wanted));           \
    } while (0)

/* ---- Calls on another thread ----------------------------------------------------------------- */

/* In static storage: a failed assertion leaves the test's stack while the thread still runs. */
struct attempt {
    hf_client *client;
    const char *name;
    hf_acquire_options options;
    pthread_t thread;
    atomic_bool over;
    hf_hold *hold;
    hf_status status;
    hf_error error;
    int64_t took_ms;
};

void attempt_begin(struct attempt *attempt, hf_client *client, const char *name,
                   const hf_acquire_options *options);
bool attempt_is_over(const struct attempt *attempt);
hf_status attempt_end(struct attempt *attempt); /* waits for it and returns its status */

/* ---- What the system says about this process ------------------------------------------------- */

int open_descriptors(void); /* -1: unknown; in a child too */
int running_threads(void);  /* the same */
int64_t resident_kib(void);

#endif
