/* SPDX-License-Identifier: MIT */
/* Goal: a server that ends connections, because somebody told it to, because they are idle, or
 * because more is sent to us than it wants to keep, costs time and nothing else: holds stay valid,
 * those who wait get the lock, releases are done once, and a count under a lock stays exact.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fixture.h"
#include "witness.h"

enum { LONG_MS = 60000, BRIEF_MS = 1000, SOON_MS = 3000, THREADS = 4, STORM_MS = 3000 };

static hf_error error;
static hf_hold *hold;
static struct attempt waiter;
static struct witness witness;

static int begin(void **state)
{
    witness_clear(&witness);
    hold = waiter.hold = NULL;
    return begin_with_both(state);
}

static int end(void **state)
{
    (void)raw(server, "CLIENT UNPAUSE");
    (void)raw(server, "CONFIG SET timeout 0");
    (void)raw(server, "CONFIG SET client-output-buffer-limit %s",
              "normal 0 0 0 pubsub 32mb 8mb 60");
    hf_release(&hold, NULL);
    int result = close_clients(state);
    hf_release(&waiter.hold, NULL);
    return result;
}

/* ---- Verbs ----------------------------------------------------------------------------------- */

static void kill_connections(const char *type)
{
    (void)raw(server, "CLIENT KILL TYPE %s SKIPME yes", type);
}

static void kill_all(void)
{
    kill_connections("normal");
    kill_connections("pubsub");
}

static void alice_holds_and_bob_waits(void)
{
    hold = acquire_with(alice, HF_ACQUIRE(.lease_ms = LONG_MS));
    attempt_begin(&waiter, bob, "lock", HF_ACQUIRE(.wait_ms = -1, .lease_ms = LONG_MS));
    WAIT_UNTIL(queued() == 1, 10000);
}

static void expect_handed_over(void)
{
    int64_t start = now_ms();
    EXPECT(HF_OK, hf_release(&hold, &error));
    assert_int_equal(attempt_end(&waiter), HF_OK);
    EXPECT_TOOK(start, 0, SOON_MS);
    EXPECT(HF_OK, hf_release(&waiter.hold, &error));
}

static bool has_connections(void)
{
    return strstr(raw(server, "CLIENT LIST"), "name=holdfast:") != NULL;
}

/* ---- Killed by hand -------------------------------------------------------------------------- */

static void a_holder_goes_on(void **state)
{
    (void)state;
    hold = acquire_with(alice, HF_ACQUIRE(.lease_ms = LONG_MS, .renew_interval_ms = 50,
                                          .on_event = witness_event, .arg = &witness));
    for (int i = 0; i < 5; i++) {
        uint64_t renewals = stats_of(alice)->renewals;
        kill_all();
        WAIT_UNTIL(stats_of(alice)->renewals > renewals + 1, 10000);
        assert_true(hf_is_valid(hold));
    }
    assert_int_equal(times_told(&witness, HF_LOST, HF_REASONS), 0);
    kill_all();
    EXPECT(HF_OK, hf_release(&hold, &error));
    expect_free(bob);
}

static void one_who_waits_gets_it(void **state)
{
    (void)state;
    static const char *const types[] = {"normal", "pubsub"};
    for (size_t i = 0; i < 2; i++) {
        alice_holds_and_bob_waits();
        kill_connections(types[i]);
        expect_handed_over();
        alice_holds_and_bob_waits();
        WAIT_UNTIL(queued() == 1, 10000);
        kill_connections(types[i]);
        kill_connections(types[i]); /* perhaps before it is back, perhaps after */
        sleep_ms((int64_t)i * 20);
        kill_connections(types[i]);
        expect_handed_over();
    }
}

/* The request is on its way, or the answer is, or neither. */
static void a_release_is_done_once(void **state)
{
    (void)state;
    for (int i = 0; i < 40; i++) {
        hold = acquire_with(alice, HF_ACQUIRE(.wait_ms = 10000, .lease_ms = BRIEF_MS));
        uint64_t fence = hf_fence(hold);
        EXPECT(HF_OK, hf_release_nowait(&hold));
        kill_connections("normal");
        hf_hold *next = acquire_with(
            bob, HF_ACQUIRE(.wait_ms = SOON_MS, .lease_ms = BRIEF_MS, .retry_interval_ms = 10));
        assert_true(hf_fence(next) > fence);
        EXPECT(HF_OK, hf_release(&next, &error));
    }
    expect_only_fences(); /* tombstones for requests that were cut off last for a lease */
}

/* ---- Killed all the time --------------------------------------------------------------------- */

static struct {
    atomic_bool stop;
    long long count; /* under the lock */
    atomic_llong done;
    atomic_llong lost;
    atomic_llong surprises; /* statuses that this cannot explain */
} storm;

static void add_one(hf_hold *mine)
{
    long long seen = storm.count;
    sleep_ms(1);
    bool valid = hf_is_valid(mine);
    storm.count = seen + 1;
    (void)atomic_fetch_add(valid ? &storm.done : &storm.lost, 1);
}

static void *work(void *arg)
{
    hf_client *client = arg;
    while (!atomic_load(&storm.stop)) {
        hf_hold *mine = NULL;
        if (hf_acquire(client, "lock", HF_ACQUIRE(.wait_ms = 20000), &mine, NULL) != HF_OK) {
            (void)atomic_fetch_add(&storm.surprises, 1);
            continue;
        }
        add_one(mine);
        hf_status status = hf_release(&mine, NULL);
        if (status != HF_OK && status != HF_EUNKNOWN && status != HF_EUNAVAILABLE)
            (void)atomic_fetch_add(&storm.surprises, 1);
    }
    return NULL;
}

static void a_count_stays_exact(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    memset(&storm, 0, sizeof(storm));
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, i % 2 == 0 ? alice : bob), 0);
    for (int64_t stop = now_ms() + STORM_MS; now_ms() < stop; sleep_ms(50))
        kill_all();
    atomic_store(&storm.stop, true);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    print_message("%lld counted\n", storm.count);
    assert_int_equal(atomic_load(&storm.surprises), 0);
    assert_int_equal(atomic_load(&storm.lost), 0);
    assert_int_equal(storm.count, atomic_load(&storm.done));
    assert_true(storm.count > 10);
}

/* ---- More than the server keeps -------------------------------------------------------------- */

static const char *large_text(void)
{
    static char text[900 * 1024];
    memset(text, 'm', sizeof(text) - 1);
    return text;
}

static void flood_channel(void)
{
    static hf_inspection seen;
    EXPECT(HF_OK, hf_inspect(alice, "lock", 0, &seen, &error));
    assert_int_equal(seen.waiter_count, 1);
    for (int i = 0; i < 5; i++)
        (void)raw(server, "PUBLISH hf:c:%s %s", seen.waiters[0].client_id, large_text());
}

static void a_flooded_subscription_is_made_anew(void **state)
{
    (void)state;
    assert_string_equal(raw(server, "CONFIG SET client-output-buffer-limit %s", "pubsub 256kb 0 0"),
                        "OK");
    alice_holds_and_bob_waits();
    long long before = connections_seen();
    flood_channel();
    WAIT_UNTIL(connections_seen() > before, 10000); /* it was cut off, and came again */
    expect_handed_over();

    alice_holds_and_bob_waits(); /* and while it is cut off */
    flood_channel();
    expect_handed_over();
}

/* The largest answer is a page of a listing. */
static bool count_lock(void *arg, const hf_inspection *inspection)
{
    (void)inspection;
    ++*(int *)arg;
    return true;
}

static void a_listing_that_is_cut_off_ends(void **state)
{
    (void)state;
    enum { LOCKS = 60 };
    static hf_hold *holds[LOCKS];
    static hf_client *lister;
    char name[HF_NAME_MAX - 8];
    int count = 0;
    memset(name, 'n', sizeof(name));
    open_client_with(&lister, HF_CLIENT(.call_timeout_ms = 500));
    for (int i = 0; i < LOCKS; i++) {
        name[0] = (char)('0' + i);
        EXPECT(HF_OK,
               hf_acquire(bob, name, HF_ACQUIRE(.name_length = sizeof(name)), &holds[i], &error));
    }
    EXPECT(HF_OK, hf_list(lister, NULL, count_lock, &count, &error));
    assert_int_equal(count, LOCKS);
    (void)raw(server, "CONFIG SET client-output-buffer-limit %s", "normal 16kb 0 0");
    int64_t start = now_ms();
    hf_status status = hf_list(lister, NULL, count_lock, &count, &error);
    assert_true(status == HF_EUNAVAILABLE || status == HF_EUNKNOWN);
    EXPECT_TOOK(start, 0, 500);
    (void)raw(server, "CONFIG SET client-output-buffer-limit %s", "normal 0 0 0");
    count = 0;
    EXPECT(HF_OK, hf_list(lister, NULL, count_lock, &count, &error));
    assert_int_equal(count, LOCKS);
    for (int i = 0; i < LOCKS; i++)
        EXPECT(HF_OK, hf_release(&holds[i], &error));
}

/* ---- Idle, or paused ------------------------------------------------------------------------- */

static void a_connection_that_was_closed_for_idleness_is_made_anew(void **state)
{
    (void)state;
    (void)raw(server, "CONFIG SET timeout 1");
    hold = acquire_with(alice, HF_ACQUIRE(.lease_ms = LONG_MS));
    WAIT_UNTIL(!has_connections(), 10000);
    assert_true(hf_is_valid(hold));
    EXPECT(HF_OK, hf_extend(hold, 0, &error));
    WAIT_UNTIL(!has_connections(), 10000);
    EXPECT(HF_OK, hf_release(&hold, &error));
    expect_free(bob);
}

static void a_pause_is_waited_for(void **state)
{
    (void)state;
    static const char *const kinds[] = {"WRITE", "ALL"};
    for (size_t i = 0; i < 2; i++) {
        hold = acquire_with(
            alice, HF_ACQUIRE(.lease_ms = 3000, .on_event = witness_event, .arg = &witness));
        (void)raw(server, "CLIENT PAUSE 500 %s", kinds[i]);
        int64_t start = now_ms();
        EXPECT(HF_OK, hf_extend(hold, 0, &error));
        EXPECT_TOOK(start, 200, 700);
        assert_true(hf_is_valid(hold));
        attempt_begin(&waiter, bob, "lock", HF_ACQUIRE(.wait_ms = 10000));
        WAIT_UNTIL(queued() == 1, 10000);
        (void)raw(server, "CLIENT PAUSE 500 %s", kinds[i]);
        expect_handed_over();
    }
    assert_int_equal(times_told(&witness, HF_LOST, HF_REASONS), 0);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_holder_goes_on),
        TEST(one_who_waits_gets_it),
        TEST(a_release_is_done_once),
        TEST(a_count_stays_exact),
        TEST(a_flooded_subscription_is_made_anew),
        TEST(a_listing_that_is_cut_off_ends),
        TEST(a_connection_that_was_closed_for_idleness_is_made_anew),
        TEST(a_pause_is_waited_for),
    };
    return cmocka_run_group_tests_name("a server that ends connections", tests, start_server,
                                       end_server);
}
