/* SPDX-License-Identifier: MIT */
/* Goal: what happens to one lock costs another one nothing. A user loses the permission for one
 * key, or another program puts something large where a lock belongs: that lock is in trouble, and
 * all other locks of the same client, on the same connection, are renewed as before.
 */
#include <stdio.h>
#include <string.h>

#include "fixture.h"

enum { LEASE_MS = 900, OTHERS = 69 };

static hf_hold *others[OTHERS];
static hf_hold *culprit;
static hf_error error;

static int begin(void **state)
{
    (void)state;
    empty_server();
    return 0;
}

/* ---- Verbs ----------------------------------------------------------------------------------- */

/* One connection for all locks, so that renewals share calls. */
static void open_user(void)
{
    char url[64];
    assert_string_equal(raw(server, "ACL SETUSER user reset on >secret ~* &* +@all"), "OK");
    (void)snprintf(url, sizeof(url), "redis://user:secret@127.0.0.1:%d", server->port);
    open_client_at(url, &alice, HF_CLIENT(.links = 1));
}

static void hold_others(void)
{
    char name[32];
    for (int i = 0; i < OTHERS; i++) {
        (void)snprintf(name, sizeof(name), "other:%d", i);
        EXPECT(HF_OK,
               hf_acquire(alice, name, HF_ACQUIRE(.lease_ms = LEASE_MS), &others[i], &error));
    }
}

static void hold_culprit(int64_t lease_ms)
{
    EXPECT(HF_OK, hf_acquire(alice, "culprit", HF_ACQUIRE(.lease_ms = lease_ms), &culprit, &error));
}

static void expect_others_held(void)
{
    for (int i = 0; i < OTHERS; i++) {
        assert_true(hf_is_valid(others[i]));
        assert_int_equal(hf_hold_state(others[i]), HF_SAFE);
    }
}

static void release_others(void)
{
    for (int i = 0; i < OTHERS; i++)
        release(&others[i]);
}

/* ---- Permissions ----------------------------------------------------------------------------- */

static void a_key_that_is_denied(void **state)
{
    (void)state;
    open_user();
    hold_others();
    hold_culprit(LEASE_MS);
    assert_string_equal(raw(server, "ACL SETUSER user resetkeys ~other:* ~hf:*"), "OK");
    WAIT_UNTIL(hf_hold_state(culprit) == HF_LOST, 10000);
    int64_t start = now_ms();
    while (now_ms() - start < 2 * LEASE_MS) {
        expect_others_held();
        sleep_ms(20);
    }
    EXPECT(HF_ELOST, hf_release(&culprit, &error));
    release_others();
}

/* Back in time: the hold is renewed, and nothing was lost. */
static void a_key_that_is_denied_for_a_moment(void **state)
{
    (void)state;
    open_user();
    hold_others();
    hold_culprit(3 * LEASE_MS);
    assert_string_equal(raw(server, "ACL SETUSER user resetkeys ~other:* ~hf:*"), "OK");
    WAIT_UNTIL(stats_of(alice)->renewal_failures > 0, 10000);
    assert_string_equal(raw(server, "ACL SETUSER user ~*"), "OK");
    WAIT_UNTIL(hf_remaining_ms(culprit) > 2 * LEASE_MS, 10000);
    expect_others_held();
    release(&culprit);
    release_others();
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, close_clients)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_key_that_is_denied),
        TEST(a_key_that_is_denied_for_a_moment),
    };
    return cmocka_run_group_tests_name("isolation", tests, start_server, end_server);
}
