/* SPDX-License-Identifier: MIT */
/* The public calls while memory runs out: every allocation from hf_open() to hf_close() fails once.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "wired.h"

/* ---- Memory ---- */

static bool is_lack_of_memory(hf_status status)
{
    return status == HF_ENOMEM || status == HF_EUNAVAILABLE || status == HF_EUNKNOWN;
}

static void expect_done_or_starved(hf_status status, const hf_error *error)
{
    if (status != HF_OK && !is_lack_of_memory(status))
        fail_msg("%s: %s", hf_status_name(status), error->text);
    assert_int_equal(error->status, status);
}

static hf_client *open_starved(void)
{
    hf_client *client = NULL;
    hf_error error;
    const hf_client_options *options =
        HF_CLIENT(.transport = &wires_transport, .prefix = "p:", .links = 1);
    hf_status status = hf_open("redis://me:pw@node", options, &client, &error);
    assert_int_equal(error.status, status);
    if (status == HF_OK)
        return client;
    assert_int_equal(status, HF_ENOMEM);
    assert_null(client);
    return open_client(options); /* only one allocation fails: now there is memory */
}

static void hear_nothing(void *arg, const hf_event *event)
{
    (void)arg;
    (void)event;
}

/* A second handle, with somebody to be told and a descriptor. */
static void enter_starved(hf_client *client)
{
    hf_hold *again = NULL;
    hf_error error;
    hf_status status = hf_acquire(
        client, "x", HF_ACQUIRE(.on_event = hear_nothing, .label = "label"), &again, &error);
    expect_done_or_starved(status, &error);
    assert_int_equal(again != NULL, status == HF_OK);
    if (again == NULL)
        return;
    assert_true(hf_descriptor(again) >= -1);
    expect_done_or_starved(hf_release(&again, &error), &error);
}

static void use_starved(hf_client *client)
{
    hf_hold *hold = NULL;
    hf_error error;
    hf_status status = hf_acquire(client, "x", HF_ACQUIRE(.wait_ms = 0), &hold, &error);
    expect_done_or_starved(status, &error);
    assert_int_equal(hold != NULL, status == HF_OK);
    if (hold == NULL)
        return;
    enter_starved(client);
    status = hf_extend(hold, 20000, &error);
    expect_done_or_starved(status, &error);
    assert_true(hf_is_valid(hold));
    status = hf_release(&hold, &error);
    expect_done_or_starved(status, &error);
    assert_null(hold);
}

/* One life of a client with one allocation refused; false once none was. */
static bool live_starved(long refused)
{
    gate_fail_at(refused);
    hf_client *client = open_starved();
    use_starved(client);
    hf_hold *last = NULL;
    hf_error error;
    hf_status status = hf_acquire(client, "y", HF_ACQUIRE(.wait_ms = 10000), &last, &error);
    expect_done_or_starved(status, &error);
    bool starved = gate_open();

    hf_hold *hold = acquire(client, "x", HF_ACQUIRE(.wait_ms = 10000)); /* it still works */
    expect_status(hf_extend(hold, 0, &error), HF_OK, &error);
    release(&hold, HF_OK);
    assert_int_equal(hf_close(client), HF_OK);
    assert_false(wires_has_key("p:x"));
    assert_false(wires_has_key("p:y"));
    if (last != NULL)
        release(&last, HF_ECLOSED);
    return starved;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    long refused = 0;
    WIRES(node.password = "pw");
    while (live_starved(refused))
        refused++;
    assert_in_range(refused, 15, 200);
}

/* Closing with holds in hand writes requests, which needs memory. */
static void closing_may_fail_to_allocate(void **state)
{
    (void)state;
    bool starved = true;
    for (long refused = 0; starved; refused++) {
        hf_client *client = OPEN(.links = 2);
        hf_hold *a = acquire(client, LOCK_A, NULL);
        hf_hold *b = acquire(client, LOCK_B, NULL);
        gate_fail_at(refused);
        assert_int_equal(hf_close(client), HF_OK); /* there is time to try again */
        starved = gate_open();
        assert_false(wires_has_key(LOCK_A));
        assert_false(wires_has_key(LOCK_B));
        release(&a, HF_ECLOSED);
        release(&b, HF_ECLOSED);
    }
}

/* Waiting needs a second connection, a line of threads and messages. */
static void waiting_may_fail_to_allocate(void **state)
{
    (void)state;
    bool starved = true;
    for (long refused = 0; starved; refused++) {
        hf_client *client = OPEN(.links = 1);
        hf_hold *hold = NULL;
        hf_error error;
        hold_for_somebody("x");
        gate_fail_at(refused);
        hf_status status = hf_acquire(client, "x", HF_ACQUIRE(.wait_ms = 30), &hold, &error);
        assert_null(hold);
        if (status != HF_EBUSY && !is_lack_of_memory(status))
            fail_msg("%s: %s", hf_status_name(status), error.text);
        drop_for_somebody("x");
        status = hf_acquire(client, "x", HF_ACQUIRE(.wait_ms = 10000), &hold, &error);
        expect_done_or_starved(status, &error);
        starved = gate_open();
        if (hold != NULL)
            release(&hold, HF_OK);
        assert_int_equal(hf_close(client), HF_OK);
        assert_false(wires_has_key("x"));
    }
}

static void a_cancel_needs_memory(void **state)
{
    (void)state;
    gate_fail_at(0);
    assert_null(hf_cancel_new());
    assert_true(gate_open());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(every_allocation_may_fail),
        BOTH(closing_may_fail_to_allocate),
        BOTH(waiting_may_fail_to_allocate),
        SEEING(a_cancel_needs_memory),
    };
    wired_install_gate();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
