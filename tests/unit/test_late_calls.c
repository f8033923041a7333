/* SPDX-License-Identifier: MIT */
/* Calls that begin while another thread closes the client. The closing thread is held up where it
 * has the mutex, inside the transport, so that the calls are certain to have begun; then both go
 * on. The calls say HF_ECLOSED, and what they look at is there until the last of them has returned
 * (AddressSanitizer and ThreadSanitizer watch that). */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <holdfast_ids.h>
#include <holdfast_stock.h>
#include <holdfast_store.h>

#include "wired.h"

enum { CALLS = 7 };

static hf_client *client;
static hf_transport tapped;
static atomic_bool closing, may_go_on;
static atomic_long task; /* that makes the call */

static void close_slowly(void *connection)
{
    atomic_store(&closing, true);
    for (int patience = 10000; !atomic_load(&may_go_on) && patience > 0; patience--)
        pause_a_little();
    wires_transport.close(connection);
}

/* ---- The calls ---- */

static hf_status call_acquire(void)
{
    hf_hold *hold;
    return hf_acquire(client, "x", NULL, &hold, NULL);
}

static hf_status call_stats(void)
{
    hf_stats stats;
    return hf_stats_read(client, &stats);
}

static hf_status call_inspect(void)
{
    hf_inspection seen;
    return hf_inspect(client, "x", 0, &seen, NULL);
}

static hf_status call_break(void)
{
    return hf_break(client, "x", 0, NULL, NULL);
}

static hf_status call_ids(void)
{
    hf_ids *ids;
    return hf_ids_open(client, "n", NULL, &ids, NULL);
}

static hf_status call_stock(void)
{
    int64_t left;
    return hf_stock_take(client, "phone", 1, NULL, &left, NULL);
}

static hf_status call_value(void)
{
    uint64_t version;
    return hf_value_write(client, "v", 0, "1", 1, 0, &version, NULL);
}

static hf_status (*const calls[CALLS])(void) = {call_acquire, call_stats, call_inspect, call_break,
                                                call_ids,     call_stock, call_value};

static hf_status said;

static void *run_call(void *call)
{
    atomic_store(&task, syscall(SYS_gettid));
    said = calls[*(int *)call]();
    return NULL;
}

/* Whether the thread sleeps in the kernel: it waits for the mutex, there is nothing else. */
static bool is_asleep(long thread)
{
    char path[64], text[256] = "";
    snprintf(path, sizeof(path), "/proc/self/task/%ld/stat", thread);
    int file = thread > 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0)
        return false;
    ssize_t length = read(file, text, sizeof(text) - 1);
    close(file);
    const char *name_end = length > 0 ? strrchr(text, ')') : NULL;
    return name_end != NULL && name_end[2] == 'S';
}

static void *close_it(void *status)
{
    *(hf_status *)status = hf_close(client);
    return NULL;
}

/* Each alone: one that keeps the memory would keep it for the others. */
static void expect_closed(int call)
{
    pthread_t closer, caller;
    hf_status closed = HF_EINTERNAL;
    client = open_client(HF_CLIENT(.transport = &tapped));
    hf_hold *hold = acquire(client, "y", NULL);
    release(&hold, HF_OK);
    atomic_store(&closing, false);
    atomic_store(&may_go_on, false);
    atomic_store(&task, 0);
    assert_int_equal(pthread_create(&closer, NULL, close_it, &closed), 0);
    EVENTUALLY(atomic_load(&closing));
    assert_int_equal(pthread_create(&caller, NULL, run_call, &call), 0);
    EVENTUALLY(is_asleep(atomic_load(&task)));
    atomic_store(&may_go_on, true);
    pthread_join(caller, NULL);
    pthread_join(closer, NULL);
    assert_int_equal(said, HF_ECLOSED);
    assert_int_equal(closed, HF_OK);
}

static void calls_that_begin_while_the_client_closes(void **state)
{
    (void)state;
    tapped = wires_transport;
    tapped.close = close_slowly;
    for (int i = 0; i < CALLS; i++)
        expect_closed(i);
}

/* ---- Without anybody who holds them up ---- */

enum { ROUNDS = 200, STORM = 3 };

static pthread_barrier_t start;

/* A call may begin after hf_close() has returned, so each thread has a hold, which keeps the memory
 * of the client. */
static void *storm(void *arg)
{
    hf_status status = HF_OK;
    hf_hold *hold = arg;
    pthread_barrier_wait(&start);
    while (status == HF_OK || status == HF_EBUSY) {
        hf_hold *fresh;
        status = hf_acquire(client, "z", NULL, &fresh, NULL);
        if (status == HF_OK)
            (void)hf_release_nowait(&fresh);
    }
    return hf_release(&hold, NULL) == HF_ECLOSED && status == HF_ECLOSED ? NULL : "surprised";
}

static void a_storm_of_calls_ends_with_the_client(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t threads[STORM];
        char name[] = "a";
        client = OPEN();
        pthread_barrier_init(&start, NULL, STORM + 1);
        for (int i = 0; i < STORM; i++, name[0]++)
            assert_int_equal(pthread_create(&threads[i], NULL, storm, acquire(client, name, NULL)),
                             0);
        pthread_barrier_wait(&start);
        for (int i = 0; i < round % 20; i++)
            sched_yield();
        assert_int_equal(hf_close(client), HF_OK);
        for (int i = 0; i < STORM; i++) {
            void *outcome;
            pthread_join(threads[i], &outcome);
            assert_null(outcome);
        }
        pthread_barrier_destroy(&start);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SEEING(calls_that_begin_while_the_client_closes),
        SEEING(a_storm_of_calls_ends_with_the_client),
    };
    wired_install_gate();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
