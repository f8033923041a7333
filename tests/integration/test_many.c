/* SPDX-License-Identifier: MIT */
/* Goal: thousands of holds of one client are renewed in time, also while one of its connections
 * hangs, and not one is lost.
 *
 * Two thousand with a lease of 2 s; HOLDFAST_MANY=10000 in the environment makes it ten thousand
 * with a lease of 10 s. The client reaches the server through a relay that stalls the oldest of its
 * four connections for half a lease. What is judged is what the holders see; a machine that stood
 * still meanwhile does not count.
 */
#include <stdio.h>
#include <stdlib.h>

#include "relay.h"

enum { HOLDS_MAX = 100000, TRIES = 4 };

static struct redis_server *server;
static struct relay relay;
static hf_client *client;
static hf_error error;
static hf_hold **holds;
static long count = 2000;
static int64_t lease_ms = 2000;

static int start(void **state)
{
    (void)state;
    const char *wanted = getenv("HOLDFAST_MANY");
    if (wanted != NULL) {
        count = strtol(wanted, NULL, 10);
        lease_ms = 10000;
    }
    assert_true(count > 0 && count <= HOLDS_MAX);
    holds = calloc((size_t)count, sizeof(hf_hold *));
    assert_non_null(holds);
    server = redis_server_start(NULL);
    relay = relay_start(server);
    EXPECT(HF_OK, hf_open(relay.url, NULL, &client, &error));
    return 0;
}

static int end(void **state)
{
    (void)state;
    hf_status closed = hf_close(client);
    process_end_all();
    redis_server_end_all();
    free(holds);
    return closed == HF_OK ? 0 : -1;
}

/* ---- Verbs ----------------------------------------------------------------------------------- */

static void acquire_all(void)
{
    for (long i = 0; i < count; i++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "lock %ld", i);
        EXPECT(HF_OK, hf_acquire(client, name,
                                 HF_ACQUIRE(.lease_ms = lease_ms, .wait_ms = 20000,
                                            .retry_interval_ms = 20),
                                 &holds[i], &error));
    }
}

static long lost(void)
{
    long number = 0;
    for (long i = 0; i < count; i++)
        number += !hf_is_valid(holds[i]);
    return number;
}

static int64_t least_remaining_ms(void)
{
    int64_t least = lease_ms;
    for (long i = 0; i < count; i++) {
        int64_t remaining = hf_remaining_ms(holds[i]);
        least = remaining < least ? remaining : least;
    }
    return least;
}

static void release_all(void)
{
    for (long i = 0; i < count; i++)
        (void)hf_release_nowait(&holds[i]);
    WAIT_UNTIL(raw_number(server, "EVAL %s 0", "return #redis.call('KEYS', 'lock *')") == 0, 20000);
}

static int64_t longer(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Three leases, with one link stalled for half a lease in the second of them. */
static int64_t live_through_a_stall(void)
{
    int64_t pause = longest_pause_ms(lease_ms);
    long long connections = relay_connections(&relay);
    relay_stall_one(&relay);
    pause = longer(pause, longest_pause_ms(lease_ms / 2));
    /* It was felt: some hold could not be renewed, or its link was given up and made anew. */
    assert_true(least_remaining_ms() <= lease_ms / 2 || relay_connections(&relay) > connections);
    relay_heal(&relay);
    return longer(pause, longest_pause_ms(3 * lease_ms / 2));
}

/* ---- The test -------------------------------------------------------------------------------- */

static void none_is_lost_while_a_link_stalls(void **state)
{
    (void)state;
    hf_stats before;
    hf_stats after;
    for (int i = 0; i < TRIES; i++) {
        acquire_all();
        EXPECT_STATUS(HF_OK, hf_stats_read(client, &before));
        int64_t pause = live_through_a_stall();
        EXPECT_STATUS(HF_OK, hf_stats_read(client, &after));
        long number_lost = lost();
        release_all();
        if (number_lost > 0 && pause > lease_ms / 8) {
            print_message("the machine was away for %lld ms; once more\n", (long long)pause);
            continue;
        }
        assert_int_equal(number_lost, 0);
        assert_true(relay_connections(&relay) >= 4);
        /* Every third of a lease, or a little earlier; less where the link was stalled. */
        uint64_t renewals = after.renewals - before.renewals;
        assert_in_range(renewals, 6 * (uint64_t)count, 13 * (uint64_t)count);
        return;
    }
    fail_msg("the machine never was calm");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(none_is_lost_while_a_link_stalls),
    };
    return cmocka_run_group_tests_name("many", tests, start, end);
}
