/* SPDX-License-Identifier: MIT */
/* Operations over wires: on a client with threads and on one in a loop, over connections with a
 * descriptor and without one. The loop below waits for the client's descriptor and for nothing
 * else, so whatever does not make it readable is found. */
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "wired.h"

enum { MANY = 100, PATIENCE_MS = 10000 };

typedef struct told {
    atomic_int times;
    hf_status status;
    hf_hold *hold;
    hf_operation operation;
    bool passes_on; /* releases in the callback, and counts the answer in `back` */
    atomic_int back;
} told;

static told all[MANY + 1];
static bool own_loop; /* what the next client is opened as */

static void on_released(void *arg, const hf_error *error)
{
    told *t = arg;
    t->status = error->status;
    atomic_fetch_add(&t->back, 1);
}

static void on_acquired(void *arg, hf_hold *hold, const hf_error *error)
{
    told *t = arg;
    t->status = error->status;
    t->hold = hold;
    if (t->passes_on && hold != NULL && hf_release_async(&t->hold, on_released, t, NULL) != HF_OK)
        atomic_fetch_add(&t->back, 100);
    atomic_fetch_add(&t->times, 1);
}

/* ---- Verbs ---- */

static hf_client *open_any(const hf_client_options *options)
{
    hf_client_options chosen = *options;
    chosen.own_loop = own_loop;
    for (int i = 0; i <= MANY; i++)
        all[i] = (told){0};
    return open_client(&chosen);
}

#define OPEN_ANY(...) open_any(HF_CLIENT(.transport = &wires_transport, __VA_ARGS__))

static void start(hf_client *client, told *t, const char *name, const hf_acquire_options *options)
{
    hf_error error;
    hf_status status =
        hf_acquire_async(client, name, options, on_acquired, t, &t->operation, &error);
    expect_status(status, HF_OK, &error);
}

/* One turn of the application's loop; on a client with threads, a pause. */
static void go_round(hf_client *client)
{
    if (!own_loop) {
        pause_a_little();
        return;
    }
    struct pollfd wanted = {.fd = hf_loop_descriptor(client), .events = POLLIN};
    assert_int_equal(poll(&wanted, 1, PATIENCE_MS), 1);
    assert_int_equal(hf_process(client, NULL), HF_OK);
}

static void wait_until_told(hf_client *client, atomic_int *times)
{
    int64_t give_up = now_ms() + PATIENCE_MS;
    while (atomic_load(times) == 0 && now_ms() < give_up)
        go_round(client);
    assert_int_equal(atomic_load(times), 1);
}

static void expect_told(hf_client *client, told *t, hf_status expected)
{
    wait_until_told(client, &t->times);
    assert_int_equal(t->status, expected);
    assert_int_equal(t->hold != NULL, expected == HF_OK);
}

static void expect_given_back(hf_client *client, told *t, hf_status expected)
{
    hf_error error;
    expect_status(hf_release_async(&t->hold, on_released, t, &error), HF_OK, &error);
    assert_null(t->hold);
    wait_until_told(client, &t->back);
    assert_int_equal(t->status, expected);
}

static void close_any(hf_client *client)
{
    assert_int_equal(hf_close(client), HF_OK);
    for (int i = 0; i <= MANY; i++)
        assert_in_range(atomic_load(&all[i].times), 0, 1);
}

/* Each test is for both kinds of client. */
static void for_both(void (*test)(void))
{
    for (int i = 0; i < 2; i++) {
        own_loop = i == 1;
        test();
    }
    own_loop = false;
}

#define FOR_BOTH_KINDS(name)       \
    static void name##_any(void);  \
    static void name(void **state) \
    {                              \
        (void)state;               \
        for_both(name##_any);      \
    }                              \
    static void name##_any(void)

/* ---- How they end ---- */

FOR_BOTH_KINDS(grants_and_refusals_are_told)
{
    hf_client *client = OPEN_ANY();
    start(client, &all[0], "x", NULL);
    expect_told(client, &all[0], HF_OK);
    start(client, &all[1], "x", NULL);
    expect_told(client, &all[1], HF_EBUSY);
    expect_given_back(client, &all[0], HF_OK);
    start(client, &all[2], "x", HF_ACQUIRE(.lease_ms = 100, .no_renewal = true));
    expect_told(client, &all[2], HF_OK);
    EVENTUALLY(!hf_is_valid(all[2].hold));
    expect_given_back(client, &all[2], HF_ELOST);
    close_any(client);
}

FOR_BOTH_KINDS(time_cancel_and_close_end_them)
{
    hf_client *client = OPEN_ANY();
    hold_for_somebody("x");
    start(client, &all[0], "x", HF_ACQUIRE(.wait_ms = 50, .retry_interval_ms = 10));
    start(client, &all[1], "x", HF_ACQUIRE(.wait_ms = -1));
    start(client, &all[2], "x", HF_ACQUIRE(.wait_ms = -1));
    expect_told(client, &all[0], HF_EBUSY);
    assert_int_equal(hf_cancel_operation(client, all[1].operation), HF_OK);
    expect_told(client, &all[1], HF_ECANCELLED);
    assert_int_equal(atomic_load(&all[2].times), 0);
    close_any(client);
    assert_int_equal(atomic_load(&all[2].times), 1);
    assert_int_equal(all[2].status, HF_ECLOSED);
    drop_for_somebody("x");
}

FOR_BOTH_KINDS(silence_is_told)
{
    hf_client *client = OPEN_ANY(.call_timeout_ms = 100, .reply_timeout_ms = 60);
    WIRES(mute = true);
    start(client, &all[0], "x", NULL);
    expect_told(client, &all[0], HF_EUNAVAILABLE); /* it could not even introduce itself */
    wires_unmute();
    start(client, &all[1], "x", HF_ACQUIRE(.wait_ms = 5000));
    expect_told(client, &all[1], HF_OK);
    WIRES(mute = true);
    start(client, &all[2], "y", NULL);
    start(client, &all[3], "x", NULL);
    expect_told(client, &all[3], HF_EUNKNOWN);
    wires_unmute();
    expect_given_back(client, &all[1], HF_OK);
    close_any(client);
    assert_false(wires_has_key("x"));
    assert_false(wires_has_key("y"));
}

FOR_BOTH_KINDS(a_stubborn_connection_is_waited_for)
{
    WIRES(connected_plan[0] = HF_WAIT_READ);
    WIRES(connected_plan[1] = HF_WAIT_WRITE);
    WIRES(connected_plan[2] = HF_WAIT_READ | HF_WAIT_WRITE);
    WIRES(write_refusals = 2);
    WIRES(write_limit = 60);
    WIRES(read_limit = 7);
    WIRES(lies = 3);
    hf_client *client = OPEN_ANY(.links = 2);
    for (int i = 0; i < 20; i++) {
        char name[32];
        snprintf(name, sizeof(name), "lock %d", i);
        all[i].passes_on = true;
        start(client, &all[i], name, HF_ACQUIRE(.wait_ms = 5000));
    }
    for (int i = 0; i < 20; i++) {
        wait_until_told(client, &all[i].back);
        assert_int_equal(all[i].status, HF_OK);
    }
    close_any(client);
    wires *network = wires_lock();
    memset(network->connected_plan, 0, sizeof(network->connected_plan));
    network->write_refusals = network->lies = 0;
    network->write_limit = network->read_limit = 0;
    wires_unlock();
}

FOR_BOTH_KINDS(cut_connections_are_replaced)
{
    hf_client *client = OPEN_ANY(.links = 1);
    for (int i = 0; i < MANY; i++) {
        char name[32];
        snprintf(name, sizeof(name), "lock %d", i);
        all[i].passes_on = true;
        WIRES(cut_after = 50 + i * 13);
        start(client, &all[i], name, HF_ACQUIRE(.wait_ms = 10000));
        if (i % 3 == 0)
            wait_until_told(client, &all[i].back);
    }
    for (int i = 0; i < MANY; i++)
        wait_until_told(client, &all[i].back);
    WIRES(cut_after = WIRES_UNLIMITED);
    close_any(client);
    for (int i = 0; i < MANY; i++) /* or the answer to its release was cut off */
        assert_true(all[i].status == HF_OK || all[i].status == HF_EUNKNOWN);
}

/* ---- What happens to the hold ---- */

static char order[8];     /* g: granted, l: lost */
static atomic_int losses; /* that were told */

static void note_grant(void *arg, hf_hold *hold, const hf_error *error)
{
    strcat(order, "g");
    on_acquired(arg, hold, error);
}

static void note_loss(void *arg, const hf_event *event)
{
    (void)arg;
    if (event->state == HF_LOST) {
        strcat(order, "l");
        atomic_fetch_add(&losses, 1);
    }
}

/* The answer is taken by a call that waits, and so is the loss; the loop comes late. */
static void a_loss_is_told_after_the_grant(void **state)
{
    (void)state;
    hf_error error;
    own_loop = true;
    order[0] = '\0';
    hf_client *client = OPEN_ANY(.links = 1);
    hf_status status = hf_acquire_async(
        client, "x", HF_ACQUIRE(.lease_ms = 100, .no_renewal = true, .on_event = note_loss),
        note_grant, &all[0], NULL, &error);
    expect_status(status, HF_OK, &error);
    hf_stats stats = {0};
    for (int i = 0; i < 1000 && stats.losses[HF_REASON_EXPIRED] == 0; i++) {
        hf_hold *other = acquire(client, "y", NULL);
        release(&other, HF_OK);
        pause_a_little();
        assert_int_equal(hf_stats_read(client, &stats), HF_OK);
    }
    assert_string_equal(order, "");
    expect_told(client, &all[0], HF_OK);
    assert_false(hf_is_valid(all[0].hold));
    while (strlen(order) < 2)
        go_round(client);
    assert_string_equal(order, "gl");
    release(&all[0].hold, HF_ELOST);
    close_any(client);
    own_loop = false;
}

static hf_client *endless_client;
static hf_cancel *fired;
static atomic_bool chain_ends;

/* It is over before it has begun, so there is always another one to be told. */
static void start_next(void *arg, hf_hold *hold, const hf_error *error)
{
    told *t = arg;
    (void)hold;
    (void)error;
    if (atomic_load(&chain_ends) ||
        hf_acquire_async(endless_client, "y", HF_ACQUIRE(.cancel = fired), start_next, t, NULL,
                         NULL) != HF_OK)
        atomic_fetch_add(&t->times, 1);
}

FOR_BOTH_KINDS(a_loss_is_told_between_endless_operations)
{
    endless_client = OPEN_ANY();
    fired = hf_cancel_new();
    hf_cancel_fire(fired);
    order[0] = '\0';
    atomic_store(&losses, 0);
    atomic_store(&chain_ends, false);
    hf_hold *hold = acquire(
        endless_client, "x",
        HF_ACQUIRE(.lease_ms = 100, .no_renewal = true, .on_event = note_loss, .arg = NULL));
    start_next(&all[0], NULL, NULL);
    int64_t give_up = now_ms() + PATIENCE_MS;
    while (hf_is_valid(hold) && now_ms() < give_up)
        go_round(endless_client);
    while (atomic_load(&losses) == 0 && now_ms() < give_up)
        go_round(endless_client);
    release(&hold, HF_ELOST); /* no listener runs any more */
    assert_string_equal(order, "l");
    atomic_store(&chain_ends, true);
    wait_until_told(endless_client, &all[0].times);
    close_any(endless_client);
    hf_cancel_free(fired);
}

/* ---- Writing ---- */

static atomic_int writes;

static int count_write(void *connection, const void *bytes, size_t count)
{
    atomic_fetch_add(&writes, 1);
    return wires_transport.write(connection, bytes, count);
}

static void requests_pile_up_for_one_write(void **state)
{
    (void)state;
    hf_transport counting = wires_transport;
    counting.write = count_write;
    own_loop = true;
    hf_client *client = open_any(HF_CLIENT(.links = 1, .transport = &counting));
    start(client, &all[MANY], "warm", NULL);
    expect_told(client, &all[MANY], HF_OK);
    atomic_store(&writes, 0);
    for (int i = 0; i < MANY; i++) {
        char name[32];
        snprintf(name, sizeof(name), "lock %d", i);
        all[i].passes_on = true;
        start(client, &all[i], name, NULL);
    }
    assert_int_equal(atomic_load(&writes), 1); /* the first one, over an idle connection */
    for (int i = 0; i < MANY; i++)
        wait_until_told(client, &all[i].back);
    assert_in_range(atomic_load(&writes), 3, 8); /* and the other acquires, and the releases */
    release(&all[MANY].hold, HF_OK);
    close_any(client);
    own_loop = false;
}

/* ---- Limits ---- */

static atomic_int ended;

static void count_end(void *arg, hf_hold *hold, const hf_error *error)
{
    (void)arg;
    (void)error;
    if (hold == NULL)
        atomic_fetch_add(&ended, 1);
}

/* None is told before the loop is run, so all are outstanding. */
static void there_is_a_limit(void **state)
{
    (void)state;
    hf_error error;
    own_loop = true;
    atomic_store(&ended, 0);
    WIRES(never_connects = true);
    hf_client *client = OPEN_ANY(.links = 1);
    for (int i = 0; i < HF_OPERATIONS_MAX; i++)
        if (hf_acquire_async(client, "x", NULL, count_end, NULL, NULL, &error) != HF_OK)
            fail_msg("number %d: %s", i, error.text);
    hf_operation none = 7;
    hf_status status = hf_acquire_async(client, "x", NULL, on_acquired, &all[0], &none, &error);
    expect_status(status, HF_EUNAVAILABLE, &error);
    assert_true(none == 0);
    assert_int_equal(hf_close(client), HF_OK);
    assert_int_equal(atomic_load(&ended), HF_OPERATIONS_MAX);
    assert_int_equal(atomic_load(&all[0].times), 0);
    WIRES(never_connects = false);
    own_loop = false;
}

/* ---- Memory ---- */

static bool is_honest(hf_status status)
{
    return status == HF_OK || status == HF_ENOMEM || status == HF_EUNAVAILABLE ||
           status == HF_EUNKNOWN;
}

static hf_client *open_starved(void)
{
    hf_client *client = NULL;
    const hf_client_options *options =
        HF_CLIENT(.transport = &wires_transport, .links = 1, .own_loop = own_loop);
    hf_status status = hf_open("redis://node", options, &client, NULL);
    if (status == HF_OK)
        return client;
    assert_int_equal(status, HF_ENOMEM);
    return open_client(options); /* only one allocation fails: now there is memory */
}

/* One life of a client with one allocation refused; false once none was. */
static bool live_starved(long refused)
{
    told *t = &all[0];
    *t = (told){0};
    gate_fail_at(refused);
    hf_client *client = open_starved();
    hf_status status =
        hf_acquire_async(client, "x", HF_ACQUIRE(.wait_ms = 3000), on_acquired, t, NULL, NULL);
    assert_true(status == HF_OK || status == HF_ENOMEM);
    if (status == HF_OK)
        wait_until_told(client, &t->times);
    assert_true(is_honest(t->status));
    if (t->hold != NULL) {
        status = hf_release_async(&t->hold, on_released, t, NULL);
        assert_true(status == HF_OK || status == HF_ENOMEM);
        assert_null(t->hold);
        if (status == HF_OK)
            wait_until_told(client, &t->back);
        assert_true(is_honest(t->status));
    }
    bool starved = gate_open();
    hf_hold *hold = acquire(client, "x", HF_ACQUIRE(.wait_ms = 10000)); /* it still works */
    release(&hold, HF_OK);
    assert_int_equal(hf_close(client), HF_OK);
    assert_in_range(atomic_load(&t->times), 0, 1);
    assert_in_range(atomic_load(&t->back), 0, 1);
    assert_false(wires_has_key("x"));
    return starved;
}

FOR_BOTH_KINDS(every_allocation_may_fail)
{
    long refused = 0;
    while (live_starved(refused))
        refused++;
    assert_in_range(refused, 10, 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(grants_and_refusals_are_told),
        BOTH(time_cancel_and_close_end_them),
        BOTH(silence_is_told),
        BOTH(a_stubborn_connection_is_waited_for),
        BOTH(cut_connections_are_replaced),
        BOTH(a_loss_is_told_after_the_grant),
        BOTH(a_loss_is_told_between_endless_operations),
        SEEING(requests_pile_up_for_one_write),
        SEEING(there_is_a_limit),
        BOTH(every_allocation_may_fail),
    };
    wired_install_gate();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
