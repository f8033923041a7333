/* SPDX-License-Identifier: MIT */
/* Transports that are hard to work with: they fail, take their time, take a byte at a time, or lie.
 * The calls are bounded and honest over all of them. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "wired.h"

/* ---- Transports that are hard to work with ---- */

static void a_transport_that_cannot_open(void **state)
{
    static const struct {
        int failure;
        const char *part;
    } cases[] = {{ECONNREFUSED, "node:6379: Connection refused"},
                 {ENXIO, "cannot be resolved"},
                 {EMFILE, "Too many open files"}};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        hf_client *client = OPEN();
        WIRES(open_failure = cases[i].failure);
        fail_to_acquire(client, "x", NULL, HF_EUNAVAILABLE, cases[i].part);
        fail_to_acquire(client, "x", HF_ACQUIRE(.wait_ms = 100), HF_EUNAVAILABLE, cases[i].part);
        WIRES(open_failure = 0);
        hf_hold *hold = acquire(client, "x", HF_ACQUIRE(.wait_ms = 10000));
        release(&hold, HF_OK);
        assert_int_equal(hf_close(client), HF_OK);
    }
}

static void a_transport_that_takes_several_asks_to_connect(void **state)
{
    (void)state;
    hf_client *client = OPEN();
    int asks;
    wires *n = wires_lock();
    n->connected_plan[0] = HF_WAIT_WRITE;
    n->connected_plan[1] = HF_WAIT_READ;
    n->connected_plan[2] = HF_WAIT_READ | HF_WAIT_WRITE;
    wires_unlock();
    hf_hold *hold = acquire(client, "x", NULL);
    WIRES_GET(asks, asks);
    assert_int_equal(asks, 4);
    release(&hold, HF_OK);
    assert_int_equal(hf_close(client), HF_OK);
}

static void a_transport_that_fails_while_connecting(void **state)
{
    (void)state;
    hf_client *client = OPEN();
    WIRES(connected_failure = ETIMEDOUT);
    fail_to_acquire(client, "x", NULL, HF_EUNAVAILABLE, "timed out");
    WIRES(connected_failure = 0);
    hf_hold *hold = acquire(client, "x", HF_ACQUIRE(.wait_ms = 10000));
    release(&hold, HF_OK);
    assert_int_equal(hf_close(client), HF_OK);
}

static void a_transport_that_never_connects(void **state)
{
    (void)state;
    hf_client *client = OPEN(.connect_timeout_ms = 30);
    WIRES(never_connects = true);
    fail_to_acquire(client, "x", NULL, HF_EUNAVAILABLE, "within 30 ms");
    WIRES(never_connects = false);
    hf_hold *hold = acquire(client, "x", HF_ACQUIRE(.wait_ms = 10000));
    release(&hold, HF_OK);
    assert_int_equal(hf_close(client), HF_OK);
}

/* Time goes on although the descriptor never lets the driver sleep. Should it not, the lies come to
 * an end, so that the test fails instead of hanging. */
static void expect_lies_left(void)
{
    int lies;
    WIRES_GET(lies, lies);
    WIRES(lies = 0);
    assert_true(lies > 0);
}

static void a_transport_whose_descriptor_lies(void **state)
{
    (void)state;
    enum { LIES = 1000000 };
    hf_client *client = OPEN(.connect_timeout_ms = 50);
    WIRES(never_connects = true);
    WIRES(lies = LIES);
    fail_to_acquire(client, "x", NULL, HF_EUNAVAILABLE, "within 50 ms");
    expect_lies_left();
    WIRES(never_connects = false);
    hf_hold *hold = acquire(client, "warm", HF_ACQUIRE(.wait_ms = 10000)); /* the link of "x" */
    WIRES(mute = true);
    WIRES(lies = LIES);
    fail_to_acquire(client, "x", HF_ACQUIRE(.wait_ms = 50), HF_EUNKNOWN, "");
    expect_lies_left();
    wires_unmute();
    release(&hold, HF_OK);
    assert_int_equal(hf_close(client), HF_OK);
}

/* All calls, over one connection that does not break. */
static void work_through(int64_t reply_timeout_ms)
{
    hf_client *client = OPEN(.links = 1, .reply_timeout_ms = reply_timeout_ms);
    hf_error error;
    hf_hold *hold = acquire(client, "x", NULL);
    expect_status(hf_extend(hold, 20000, &error), HF_OK, &error);
    release(&hold, HF_OK);
    hold = acquire(client, "x", NULL);
    assert_int_equal(hf_release_nowait(&hold), HF_OK);
    hold = acquire(client, "y", NULL);
    assert_int_equal(hf_close(client), HF_OK);
    release(&hold, HF_ECLOSED);
    assert_false(wires_has_key("x"));
    assert_false(wires_has_key("y"));
    assert_int_equal(count_opens(), 1);
}

static void a_transport_that_writes_byte_by_byte(void **state)
{
    (void)state;
    WIRES(write_limit = 1);
    work_through(1000);
}

static void a_transport_that_is_not_ready_to_write(void **state)
{
    (void)state;
    WIRES(write_refusals = 3);
    work_through(1000);
}

static void a_transport_that_writes_in_small_parts_now_and_then(void **state)
{
    (void)state;
    WIRES(write_limit = 200);
    WIRES(write_refusals = 1);
    work_through(1000);
}

static void a_transport_that_reads_byte_by_byte(void **state)
{
    (void)state;
    WIRES(read_limit = 1);
    work_through(10000); /* without a descriptor, every look may take a few milliseconds */
}

/* Breaks at one point after the other: in the greeting, in the requests, in their answers. */
static void break_everywhere(int failure)
{
    int cuts = 0, seen = 1;
    for (long after = 1; seen > 0; after += 1723) {
        hf_client *client = OPEN(.links = 1);
        wires *n = wires_lock();
        n->cut_after = after;
        n->cut_failure = failure;
        n->cuts = 0;
        wires_unlock();
        hf_hold *hold = acquire(client, "x", HF_ACQUIRE(.wait_ms = 10000, .retry_interval_ms = 10));
        assert_true(wires_has_key("x"));
        release(&hold, HF_OK);
        assert_false(wires_has_key("x"));
        assert_int_equal(hf_close(client), HF_OK);
        WIRES_GET(seen, cuts);
        cuts += seen;
    }
    assert_true(cuts > 10);
}

static void a_transport_that_fails_in_the_middle(void **state)
{
    (void)state;
    break_everywhere(ECONNRESET);
}

static void a_transport_that_ends_in_the_middle(void **state)
{
    (void)state;
    break_everywhere(0);
}

static void bad_transports_are_refused(void **state)
{
    (void)state;
    hf_transport bad[8];
    hf_client *client;
    hf_error error;
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        bad[i] = wires_transport;
    bad[0].size = 0;
    bad[1].size = sizeof(hf_transport) + 8;
    bad[2].open = NULL;
    bad[3].connected = NULL;
    bad[4].descriptor = NULL;
    bad[5].read = NULL;
    bad[6].write = NULL;
    bad[7].close = NULL;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        client = (hf_client *)&bad[i];
        hf_status status =
            hf_open("redis://node", HF_CLIENT(.transport = &bad[i]), &client, &error);
        expect_status(status, HF_EINVAL, &error);
        assert_non_null(strstr(error.text, "transport"));
        assert_null(client);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(a_transport_that_cannot_open),
        BOTH(a_transport_that_takes_several_asks_to_connect),
        BOTH(a_transport_that_fails_while_connecting),
        BOTH(a_transport_that_never_connects),
        SEEING(a_transport_whose_descriptor_lies),
        BOTH(a_transport_that_writes_byte_by_byte),
        BOTH(a_transport_that_is_not_ready_to_write),
        BOTH(a_transport_that_writes_in_small_parts_now_and_then),
        BOTH(a_transport_that_reads_byte_by_byte),
        BOTH(a_transport_that_fails_in_the_middle),
        BOTH(a_transport_that_ends_in_the_middle),
        SEEING(bad_transports_are_refused),
    };
    wired_install_gate();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
