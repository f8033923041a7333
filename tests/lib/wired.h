/* SPDX-License-Identifier: MIT */
/* Verbs for tests of the public API over wires (wires.h): no network, but the real driver with its
 * threads, its wheel and its clock. Tests run over connections with a descriptor, without one, or
 * over both. What moves between threads is waited for, never slept for. */
#ifndef HF_TESTS_WIRED_H
#define HF_TESTS_WIRED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>

#include <cmocka.h>

#include "gate.h"
#include "wires.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* In a client with two links these locks are on different ones. */
#define LOCK_A "x"
#define LOCK_B "foo"

#define OPEN(...) open_client(HF_CLIENT(.transport = &wires_transport, __VA_ARGS__))

hf_client *open_client(const hf_client_options *options);
void expect_status(hf_status given, hf_status expected, const hf_error *error);
hf_hold *acquire(hf_client *client, const char *name, const hf_acquire_options *options);
void fail_to_acquire(hf_client *client, const char *name, const hf_acquire_options *options,
                     hf_status expected, const char *part);
void release(hf_hold **hold, hf_status expected);
int64_t now_ms(void);
int count_acquires(void);
int count_opens(void);
void hold_for_somebody(const char *name);
void drop_for_somebody(const char *name);
void pause_a_little(void);

/* Waits for something that must become true; gives up after ten seconds. */
#define EVENTUALLY(condition)                  \
    do {                                       \
        int patience = 10000;                  \
        while (!(condition) && patience-- > 0) \
            pause_a_little();                  \
        assert_true(condition);                \
    } while (0)

/* A log hook that counts what it gets. The next line that is logged by the thread that called arm()
 * runs `act` inside the hook. */
#define LOGGED .log = hook, .log_arg = &lines
extern atomic_int lines;
extern atomic_int bad_lines;
extern char last_line[300];
void hook(void *arg, hf_log_level level, const char *text);
void arm(void (*act)(void));

/* ---- The frame of a test program ---- */

int wired_begin(void **state);
int wired_end(void **state); /* fails unless every connection that was opened has been closed */
extern bool wired_seeing, wired_blind;

#define SEEING(test)                                       \
    {                                                      \
#test, test, wired_begin, wired_end, &wired_seeing \
    }
#define BLIND(test)                                                          \
    {                                                                        \
#test " (no descriptor)", test, wired_begin, wired_end, &wired_blind \
    }
#define BOTH(test) SEEING(test), BLIND(test)

/* Before the tests are run: allocations of the doubles are not what is tested. */
void wired_install_gate(void);

#endif
