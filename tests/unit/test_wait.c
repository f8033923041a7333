/* SPDX-License-Identifier: MIT */
/* Waiting through the public calls: threads and clients that want the same lock, over the double of
 * the network with the real driver. Who may have the lock is known by a counter without a lock of
 * its own, and by fences that only grow. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "wired.h"

enum { THREADS = 6, ROUNDS = 40 };

typedef struct worker {
    pthread_t thread;
    hf_client *client;
    hf_acquire_options options;
    hf_status status;
    int rounds;
} worker;

static int counter; /* what the lock guards */
static uint64_t last_fence;
static atomic_int wrong;

static void *work(void *arg)
{
    worker *self = arg;
    for (int i = 0; i < self->rounds; i++) {
        hf_hold *hold = NULL;
        self->status = hf_acquire(self->client, "x", &self->options, &hold, NULL);
        if (self->status != HF_OK)
            return NULL;
        if (hf_fence(hold) <= last_fence || !hf_is_valid(hold))
            atomic_fetch_add(&wrong, 1);
        last_fence = hf_fence(hold);
        counter++;
        if (i % 2 == 0 ? hf_release(&hold, NULL) : hf_release_nowait(&hold))
            atomic_fetch_add(&wrong, 1);
    }
    return NULL;
}

static void start(worker *w, hf_client *client, const hf_acquire_options *options, int rounds)
{
    *w = (worker){.client = client, .options = *options, .rounds = rounds};
    assert_int_equal(pthread_create(&w->thread, NULL, work, w), 0);
}

static hf_status finish(worker *w)
{
    pthread_join(w->thread, NULL);
    return w->status;
}

static void begin_counting(void)
{
    counter = 0;
    last_fence = 0;
    atomic_store(&wrong, 0);
}

static hf_stats stats_of(hf_client *client)
{
    hf_stats stats;
    assert_int_equal(hf_stats_read(client, &stats), HF_OK);
    return stats;
}

static size_t in_queue(void)
{
    const node_key *queue = node_side(&wires_lock()->node, 'q', "x");
    size_t count = queue != NULL ? queue->member_count : 0;
    wires_unlock();
    return count;
}

/* ---- One waits ---- */

static void another_client_hands_it_over(void **state)
{
    (void)state;
    worker waiter;
    hf_client *one = OPEN(.links = 1), *other = OPEN(.links = 1);
    hf_hold *hold = acquire(one, "x", NULL);
    begin_counting();
    start(&waiter, other, HF_ACQUIRE(.wait_ms = -1), 1);
    EVENTUALLY(in_queue() == 1);
    int before = count_acquires();
    release(&hold, HF_OK);
    assert_int_equal(finish(&waiter), HF_OK);
    assert_int_equal(count_acquires(), before); /* by a message, not by asking again */
    assert_int_equal(counter, 1);
    assert_int_equal(hf_close(one), HF_OK);
    assert_int_equal(hf_close(other), HF_OK);
    assert_false(wires_has_key("x"));
}

static void one_whose_time_is_up_has_left(void **state)
{
    (void)state;
    hf_client *one = OPEN(.links = 1), *other = OPEN(.links = 1);
    hf_hold *hold = acquire(one, "x", NULL);
    int64_t began = now_ms();
    fail_to_acquire(other, "x", HF_ACQUIRE(.wait_ms = 60), HF_EBUSY, "held by");
    assert_in_range(now_ms() - began, 55, 1000);
    EVENTUALLY(in_queue() == 0);
    release(&hold, HF_OK);
    assert_false(wires_has_key("x"));
    assert_int_equal(hf_close(one), HF_OK);
    assert_int_equal(hf_close(other), HF_OK);
}

static void cancels_reach_the_queue_and_the_line(void **state)
{
    (void)state;
    worker waiters[3];
    hf_cancel *cancel = hf_cancel_new();
    hf_client *one = OPEN(.links = 1), *other = OPEN(.links = 1);
    hf_hold *hold = acquire(one, "x", NULL);
    for (int i = 0; i < 3; i++)
        start(&waiters[i], other, HF_ACQUIRE(.wait_ms = -1, .cancel = cancel), 1);
    EVENTUALLY(in_queue() == 1);
    hf_cancel_fire(cancel);
    for (int i = 0; i < 3; i++)
        assert_int_equal(finish(&waiters[i]), HF_ECANCELLED);
    EVENTUALLY(in_queue() == 0);
    release(&hold, HF_OK);
    hf_cancel_free(cancel);
    assert_int_equal(hf_close(one), HF_OK);
    assert_int_equal(hf_close(other), HF_OK);
}

static void closing_ends_all_that_wait(void **state)
{
    (void)state;
    worker waiters[THREADS];
    hf_client *one = OPEN(.links = 1), *other = OPEN(.links = 1);
    hf_hold *hold = acquire(one, "x", NULL);
    for (int i = 0; i < THREADS; i++)
        start(&waiters[i], other, HF_ACQUIRE(.wait_ms = -1, .fair = i > 0), 1);
    EVENTUALLY(in_queue() == THREADS); /* so all of them are inside: a line would not show */
    assert_int_equal(hf_close(other), HF_OK);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(finish(&waiters[i]), HF_ECLOSED);
    assert_int_equal(in_queue(), 0);
    release(&hold, HF_OK);
    assert_int_equal(hf_close(one), HF_OK);
}

/* ---- All work ---- */

static void work_all(hf_client *const *clients, int client_count, const hf_acquire_options *options)
{
    worker workers[THREADS];
    begin_counting();
    for (int i = 0; i < THREADS; i++)
        start(&workers[i], clients[i % client_count], options, ROUNDS);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(finish(&workers[i]), HF_OK);
    assert_int_equal(counter, THREADS * ROUNDS);
    assert_int_equal(atomic_load(&wrong), 0);
}

static void threads_take_turns(void **state)
{
    (void)state;
    hf_client *client = OPEN(.links = 1);
    work_all(&client, 1, HF_ACQUIRE(.wait_ms = -1));
    hf_stats stats = stats_of(client);
    assert_int_equal(stats.acquisitions, THREADS * ROUNDS);
    assert_true(stats.turns <= stats.acquisitions);
    assert_int_equal(stats.held, 0);
    assert_int_equal(hf_close(client), HF_OK);
    assert_false(wires_has_key("x"));
}

static void clients_and_their_threads(void **state)
{
    (void)state;
    hf_client *clients[] = {OPEN(.links = 1), OPEN(.links = 1)};
    work_all(clients, 2, HF_ACQUIRE(.wait_ms = -1));
    for (int i = 0; i < 2; i++)
        assert_int_equal(hf_close(clients[i]), HF_OK);
    assert_false(wires_has_key("x"));
    assert_int_equal(in_queue(), 0);
}

static void who_wants_no_turns_has_none(void **state)
{
    (void)state;
    static const struct {
        hf_client_options client;
        bool fair;
    } cases[] = {{{.local_turns = -1}, false}, {{.fair = true}, false}, {{.links = 1}, true}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        hf_client_options options = cases[i].client;
        options.size = sizeof(options);
        options.transport = &wires_transport;
        hf_client *client = open_client(&options);
        work_all(&client, 1, HF_ACQUIRE(.wait_ms = -1, .fair = cases[i].fair));
        assert_int_equal(stats_of(client).turns, 0);
        assert_int_equal(hf_close(client), HF_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(another_client_hands_it_over),
        BOTH(one_whose_time_is_up_has_left),
        BOTH(cancels_reach_the_queue_and_the_line),
        BOTH(closing_ends_all_that_wait),
        BOTH(threads_take_turns),
        BOTH(clients_and_their_threads),
        SEEING(who_wants_no_turns_has_none),
    };
    wired_install_gate();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
