/* SPDX-License-Identifier: MIT
 *
 * One contending process of the demo. Its turn is the classic lost update, on purpose: read the
 * counter, take some time, write what was read plus one. Under the lock that is safe; without it,
 * two turns that overlap count as one.
 *
 * Just before it writes, the worker asks whether its hold is still valid. That question costs no
 * message, and it is what saves the counter when the process was stopped past its lease. (A process
 * may still be stopped between the question and the write. A store that must survive that has to
 * refuse late writers itself, by the fence of their holds; this demo halts its workers only before
 * the question.)
 *
 * Everything the worker does is reported, and a write is reported after it was made. The story
 * kills workers only where they halt, so that the reports always add up to the writes.
 */
#include "demo.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TURN_MS  25 /* between reading and writing */
#define THINK_MS 20 /* at most, between two turns */
#define TRY_MS   1000
#define RETRY_MS 10
#define BEAT_MS  100 /* between two signs of life while halted */

struct worker {
    const struct worker_setup *setup;
    hf_client *client;
    unsigned random_state;
    bool halt_ordered;
    bool go_ordered;
    bool quit_ordered;
};

int64_t demo_now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

long counter_read(const char *path)
{
    char text[16] = "";
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return -1;
    ssize_t length = pread(file, text, sizeof text - 1, 0);
    close(file);
    return length > 0 ? strtol(text, NULL, 10) : -1;
}

bool counter_write(const char *path, long number)
{
    char text[16];
    int length = snprintf(text, sizeof text, "%012ld\n", number);
    int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0)
        return false;
    bool written = pwrite(file, text, (size_t)length, 0) == length;
    return close(file) == 0 && written;
}

static void work_ms(int64_t duration_ms)
{
    struct timespec rest = {.tv_sec = duration_ms / 1000, .tv_nsec = duration_ms % 1000 * 1000000};
    while (nanosleep(&rest, &rest) != 0 && errno == EINTR)
        ;
}

static void tell(const struct worker *worker, struct event event)
{
    event.worker = worker->setup->worker;
    event.at_us = demo_now_us();
    /* When nobody listens any more, the demo is over. */
    if (write(worker->setup->event_fd, &event, sizeof event) != (ssize_t)sizeof event)
        _exit(1);
}

static _Noreturn void give_up(const struct worker *worker, hf_status status, const char *text)
{
    struct event event = {.kind = EVENT_FAILED, .status = status};
    snprintf(event.text, sizeof event.text, "%s", text);
    tell(worker, event);
    _exit(1);
}

/* Takes in the orders that are there; waits so long for the first one. */
static void orders_take(struct worker *worker, int wait_ms)
{
    struct pollfd orders = {.fd = worker->setup->order_fd, .events = POLLIN};
    while (poll(&orders, 1, wait_ms) > 0) {
        char order;
        if (read(orders.fd, &order, 1) != 1)
            _exit(1);
        worker->halt_ordered |= order == ORDER_HALT;
        worker->go_ordered |= order == ORDER_GO;
        worker->quit_ordered |= order == ORDER_QUIT;
        wait_ms = 0;
    }
}

static void halt_if_ordered(struct worker *worker, const hf_hold *hold)
{
    orders_take(worker, 0);
    if (!worker->halt_ordered)
        return;
    worker->halt_ordered = false;
    while (!worker->go_ordered) {
        tell(worker, (struct event){.kind = EVENT_HALTED, .remaining_ms = hf_remaining_ms(hold)});
        orders_take(worker, BEAT_MS);
    }
    worker->go_ordered = false;
}

/* hold is NULL when there is no lock. */
static void turn(struct worker *worker, const hf_hold *hold)
{
    const char *path = worker->setup->counter_path;
    tell(worker, (struct event){.kind = EVENT_ENTERED,
                                .remaining_ms = hf_remaining_ms(hold),
                                .fence = hf_fence(hold)});
    long number = counter_read(path);
    if (number < 0)
        give_up(worker, HF_EINTERNAL, "the counter file cannot be read");
    work_ms(TURN_MS);
    halt_if_ordered(worker, hold);
    if (hold != NULL && !hf_is_valid(hold)) {
        tell(worker, (struct event){.kind = EVENT_SKIPPED});
        return;
    }
    if (!counter_write(path, number + 1))
        give_up(worker, HF_EINTERNAL, "the counter file cannot be written");
    tell(worker, (struct event){.kind = EVENT_WROTE});
}

/* False when told to quit while waiting. */
static bool acquire(struct worker *worker, hf_hold **hold)
{
    hf_error error;
    while (!worker->quit_ordered) {
        hf_status status = hf_acquire(
            worker->client, "demo:counter",
            HF_ACQUIRE(.lease_ms = DEMO_LEASE_MS, .wait_ms = TRY_MS, .retry_interval_ms = RETRY_MS),
            hold, &error);
        if (status == HF_OK)
            return true;
        /* Busy, or a machine that stood still for longer than we allowed: ask again. */
        if (status != HF_EBUSY && status != HF_EUNKNOWN)
            give_up(worker, status, error.text);
        orders_take(worker, 0);
    }
    return false;
}

static void turn_locked(struct worker *worker)
{
    hf_hold *hold;
    hf_error error;
    tell(worker, (struct event){.kind = EVENT_WAITS});
    if (!acquire(worker, &hold))
        return;
    turn(worker, hold);
    hf_status status = hf_release(&hold, &error);
    if (status != HF_OK && status != HF_ELOST)
        give_up(worker, status, error.text);
    tell(worker, (struct event){.kind = EVENT_LEFT, .status = status});
}

static void turn_unlocked(struct worker *worker)
{
    turn(worker, NULL);
    tell(worker, (struct event){.kind = EVENT_LEFT, .status = HF_OK});
}

static void think(struct worker *worker)
{
    worker->random_state = worker->random_state * 1103515245u + 12345u;
    work_ms(1 + (worker->random_state >> 16) % THINK_MS);
}

_Noreturn void worker_run(const struct worker_setup *setup)
{
    struct worker worker = {.setup = setup, .random_state = (unsigned)getpid()};
    hf_error error;
    if (setup->url != NULL) {
        hf_status status = hf_open(setup->url, NULL, &worker.client, &error);
        if (status != HF_OK)
            give_up(&worker, status, error.text);
    }
    for (orders_take(&worker, 0); !worker.quit_ordered; orders_take(&worker, 0)) {
        if (setup->url != NULL)
            turn_locked(&worker);
        else
            turn_unlocked(&worker);
        think(&worker);
    }
    hf_close(worker.client);
    _exit(0);
}
