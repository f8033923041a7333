/* SPDX-License-Identifier: MIT */
/* Goal: overload degrades and recovers. A server whose time is taken by others answers slowly but
 * steadily; a client that starts thousands of acquires there at once loses no hold, gives up no
 * connection, and gets them all; and what it is told about its load is true.
 *
 * The other one is a process that runs one script of some milliseconds after the other, so the
 * server gets to a few calls of ours in between. With reply_timeout_ms far below the time that all
 * of the burst takes, 0.7 gave up its connections again and again and sent everything anew.
 */
#include <stdio.h>
#include <stdlib.h>

#include "../lib/process.h"
#include "fixture.h"

enum { HELD = 50, BURST = 12000, REPLY_TIMEOUT_MS = 700 };

static hf_client *client;
static hf_error error;
static hf_hold *held[HELD];
static atomic_int granted, failed, lost;

static int begin(void **state)
{
    server = redis_server_start(NULL);
    (void)state;
    return 0;
}

/* ---- Verbs ----------------------------------------------------------------------------------- */

/* In the child: until it is ended. */
static void hog(int line, void *arg)
{
    (void)line;
    redisContext *context = redisConnectUnix(arg);
    if (context == NULL || context->err != 0)
        return;
    for (;;) {
        redisReply *reply = redisCommand(
            context, "EVAL %s 0", "local n = 0 for i = 1, 2000000 do n = n + i % 7 end return n");
        if (reply == NULL)
            return;
        freeReplyObject(reply);
    }
}

static void count_losses(void *arg, const hf_event *event)
{
    (void)arg;
    if (event->state == HF_LOST) /* jeopardy is for others to judge: renewals may be late here */
        atomic_fetch_add(&lost, 1);
}

static void hold_some(void)
{
    for (int i = 0; i < HELD; i++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "held %d", i);
        EXPECT(HF_OK,
               hf_acquire(client, name, HF_ACQUIRE(.lease_ms = 9000, .on_event = count_losses),
                          &held[i], &error));
    }
}

static void count_grant(void *arg, hf_hold *hold, const hf_error *why)
{
    (void)arg;
    if (hold == NULL)
        atomic_fetch_add(&failed, 1);
    else
        hf_release_nowait(&hold);
    if (hold == NULL && atomic_load(&failed) == 1)
        print_message("the first failure: %s\n", why->text);
    atomic_fetch_add(&granted, 1);
}

static void start_burst(void)
{
    for (int i = 0; i < BURST; i++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "burst %d", i);
        EXPECT(HF_OK,
               hf_acquire_async(client, name, HF_ACQUIRE(.lease_ms = 60000, .wait_ms = 90000),
                                count_grant, NULL, NULL, &error));
    }
}

static hf_load load_of(hf_client *of)
{
    hf_load load = {.size = sizeof(load)};
    assert_int_equal(hf_load_read(of, &load), HF_OK);
    return load;
}

/* ---- Tests ----------------------------------------------------------------------------------- */

static void a_burst_at_a_busy_server_costs_nothing_else(void **state)
{
    (void)state;
    process_start(hog, server->socket);
    open_client_with(&client, HF_CLIENT(.reply_timeout_ms = REPLY_TIMEOUT_MS));
    hold_some();
    long long connections = connections_seen();
    start_burst();
    WAIT_UNTIL(atomic_load(&granted) == BURST && load_of(client).unsent == 0, 100000);
    assert_int_equal(atomic_load(&failed), 0);
    assert_int_equal(atomic_load(&lost), 0);
    assert_in_range(connections_seen(), connections, connections + 3); /* links that are new */
    for (int i = 0; i < HELD; i++) {
        assert_true(hf_is_valid(held[i]));
        EXPECT(HF_OK, hf_release(&held[i], &error));
    }
    hf_load load = load_of(client);
    assert_true(load.late_ms == 0 && load.held_back == 0 && load.unsent == 0);
}

static void the_load_is_asked_for_with_a_size(void **state)
{
    (void)state;
    open_client(&client);
    hf_load load = {.size = 0, .overloads = 77};
    assert_int_equal(hf_load_read(client, &load), HF_EINVAL);
    assert_int_equal(hf_load_read(client, NULL), HF_EINVAL);
    load.size = sizeof(load.size);
    assert_int_equal(hf_load_read(client, &load), HF_OK);
    assert_true(load.overloads == 77 && load.size == sizeof(load.size));
    load.size = sizeof(load);
    assert_int_equal(hf_load_read(client, &load), HF_OK);
    assert_true(load.overloads == 0 && load.size == sizeof(load));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_burst_at_a_busy_server_costs_nothing_else, begin,
                                        end_everything),
        cmocka_unit_test_setup_teardown(the_load_is_asked_for_with_a_size, begin, end_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
