/* SPDX-License-Identifier: MIT */
/* Goal: on_event keeps its promises about when it runs and what may be done inside: calls that wait
 * are refused, hf_release_nowait() works, every handle has its own, and after a release has
 * returned none runs any more, however close they meet.
 */
#include <stdio.h>
#include <string.h>

#include "fixture.h"
#include "witness.h"

static hf_client *client;
static hf_hold *hold;
static hf_error error;

static int begin(void **state)
{
    (void)state;
    hold = NULL;
    empty_server();
    open_client(&client);
    return 0;
}

static void acquire_and_lose(hf_event_function *on_event, void *arg)
{
    EXPECT(HF_OK, hf_acquire(client, "lock",
                             HF_ACQUIRE(.lease_ms = 30000, .renew_interval_ms = 100,
                                        .on_event = on_event, .arg = arg),
                             &hold, &error));
    assert_string_equal(raw(server, "DEL lock"), "1");
}

/* ---- From inside ----------------------------------------------------------------------------- */

struct inside {
    atomic_bool over;
    hf_status acquired, released, extended, inspected, listed, revoked, broken, closed;
    bool kept;
    bool lost;
    uint64_t fence;
};

static bool see(void *arg, const hf_inspection *inspection)
{
    (void)arg;
    return inspection != NULL;
}

static void try_everything(void *arg, const hf_event *event)
{
    static hf_inspection inspection;
    struct inside *inside = arg;
    hf_hold *fresh;
    inside->acquired = hf_acquire(client, "other", NULL, &fresh, NULL);
    inside->extended = hf_extend(hold, 0, NULL);
    inside->released = hf_release(&hold, NULL);
    inside->inspected = hf_inspect(client, "lock", 0, &inspection, NULL);
    inside->listed = hf_list(client, NULL, see, NULL, NULL);
    inside->revoked = hf_revoke(client, "lock", 0, NULL, NULL);
    inside->broken = hf_break(client, "lock", 0, NULL, NULL);
    inside->closed = hf_close(client);
    inside->kept = hold != NULL;
    inside->lost = !hf_is_valid(event->hold) && hf_hold_state(event->hold) == HF_LOST &&
                   hf_remaining_ms(event->hold) == 0;
    inside->fence = hf_fence(event->hold);
    atomic_store(&inside->over, true);
}

static void calls_that_wait_are_refused_inside(void **state)
{
    (void)state;
    static struct inside inside;
    acquire_and_lose(try_everything, &inside);
    WAIT_UNTIL(atomic_load(&inside.over), 10000);
    assert_int_equal(inside.acquired, HF_EDEADLK);
    assert_int_equal(inside.extended, HF_EDEADLK);
    assert_int_equal(inside.released, HF_EDEADLK);
    assert_int_equal(inside.inspected, HF_EDEADLK);
    assert_int_equal(inside.listed, HF_EDEADLK);
    assert_int_equal(inside.revoked, HF_EDEADLK);
    assert_int_equal(inside.broken, HF_EDEADLK);
    assert_int_equal(inside.closed, HF_EDEADLK);
    assert_true(inside.kept);
    assert_true(inside.lost);
    assert_true(inside.fence > 0 && inside.fence == hf_fence(hold));
    EXPECT(HF_ELOST, hf_release(&hold, &error));
}

struct letting_go {
    atomic_int calls;
    atomic_int status;
};

static void let_go(void *arg, const hf_event *event)
{
    struct letting_go *letting_go = arg;
    (void)event;
    atomic_store(&letting_go->status, (int)hf_release_nowait(&hold));
    atomic_fetch_add(&letting_go->calls, 1);
}

static void a_lost_hold_can_be_let_go_inside(void **state)
{
    (void)state;
    static struct letting_go letting_go;
    acquire_and_lose(let_go, &letting_go);
    WAIT_UNTIL(atomic_load(&letting_go.calls) == 1, 10000);
    assert_int_equal(atomic_load(&letting_go.status), HF_ELOST);
    assert_null(hold);
}

/* Asked to give it up, it does so right there, and the lock is free for the next one. */
static void a_valid_hold_can_be_let_go_inside(void **state)
{
    (void)state;
    static struct letting_go letting_go;
    EXPECT(HF_OK, hf_acquire(client, "lock",
                             HF_ACQUIRE(.lease_ms = 30000, .renew_interval_ms = 100,
                                        .on_event = let_go, .arg = &letting_go),
                             &hold, &error));
    EXPECT(HF_OK, hf_revoke(client, "lock", 0, "please", &error));
    WAIT_UNTIL(atomic_load(&letting_go.calls) == 1, 10000);
    assert_int_equal(atomic_load(&letting_go.status), HF_OK);
    assert_null(hold);
    WAIT_UNTIL(raw_number(server, "EXISTS lock") == 0, 10000);
}

/* ---- Who is told ----------------------------------------------------------------------------- */

static void every_handle_has_its_own(void **state)
{
    (void)state;
    static struct witness witnesses[3];
    hf_hold *holds[3];
    for (int i = 0; i < 3; i++) {
        witness_clear(&witnesses[i]);
        EXPECT(HF_OK, hf_acquire(client, "lock",
                                 HF_ACQUIRE(.lease_ms = 30000, .renew_interval_ms = 100,
                                            .on_event = witness_event, .arg = &witnesses[i]),
                                 &holds[i], &error));
    }
    EXPECT(HF_OK, hf_release(&holds[1], &error));
    assert_string_equal(raw(server, "DEL lock"), "1");
    WAIT_UNTIL(times_told(&witnesses[0], HF_LOST, HF_REASON_GONE) == 1, 10000);
    WAIT_UNTIL(times_told(&witnesses[2], HF_LOST, HF_REASON_GONE) == 1, 10000);
    assert_int_equal(atomic_load(&witnesses[1].count), 0);
    /* The first handle that is given back may hear from the last one that it was lost. */
    hf_status first = hf_release(&holds[0], NULL);
    hf_status last = hf_release(&holds[2], NULL);
    assert_true(first == HF_OK || first == HF_ELOST);
    assert_int_equal(last, HF_ELOST);
}

/* ---- A listener that takes its time ---------------------------------------------------------- */

struct slow {
    atomic_bool entered;
    atomic_bool may_leave;
    atomic_bool left;
};

static void take_long(void *arg, const hf_event *event)
{
    struct slow *slow = arg;
    (void)event;
    atomic_store(&slow->entered, true);
    for (int64_t give_up = now_ms() + 20000; !atomic_load(&slow->may_leave) && now_ms() < give_up;)
        sleep_ms(1);
    atomic_store(&slow->left, true);
}

static void *release_the_hold(void *arg)
{
    *(hf_status *)arg = hf_release(&hold, NULL);
    return NULL;
}

/* Calls and renewals of the same client go on, and only the release of that very hold waits. */
static void a_slow_listener_delays_nobody_else(void **state)
{
    (void)state;
    static struct slow slow;
    static hf_status released;
    hf_hold *others[2];
    hf_stats before;
    hf_stats after;
    pthread_t releaser;
    acquire_and_lose(take_long, &slow);
    WAIT_UNTIL(atomic_load(&slow.entered), 10000);
    int64_t begun = now_ms();
    EXPECT(HF_OK,
           hf_acquire(client, "other", HF_ACQUIRE(.lease_ms = 20000, .renew_interval_ms = 20),
                      &others[0], &error));
    EXPECT(HF_OK, hf_acquire(client, "third", NULL, &others[1], &error));
    EXPECT(HF_OK, hf_extend(others[1], 0, &error));
    EXPECT(HF_OK, hf_release(&others[1], &error));
    EXPECT_STATUS(HF_OK, hf_stats_read(client, &before));
    WAIT_UNTIL(hf_stats_read(client, &after) == HF_OK && after.renewals >= before.renewals + 5,
               10000);
    EXPECT(HF_OK, hf_release(&others[0], &error));
    assert_true(now_ms() - begun < 10000);
    assert_false(atomic_load(&slow.left));
    assert_int_equal(pthread_create(&releaser, NULL, release_the_hold, &released), 0);
    sleep_ms(100); /* for the release to be wrong and return */
    assert_non_null(hold);
    atomic_store(&slow.may_leave, true);
    assert_int_equal(pthread_join(releaser, NULL), 0);
    assert_true(atomic_load(&slow.left));
    assert_int_equal(released, HF_ELOST);
}

/* ---- Not after the release ------------------------------------------------------------------- */

enum { HAMMERS = 4, ROUNDS = 40, LEASE_MS = 100, WARN_MS = 60 };

struct round {
    atomic_bool released;
    atomic_int calls;
    atomic_int late;
};

struct hammer {
    int index;
    pthread_t thread;
    int failures;
    struct round rounds[ROUNDS];
};

static struct hammer hammers[HAMMERS];

static void listen_closely(void *arg, const hf_event *event)
{
    struct round *round = arg;
    (void)event;
    atomic_fetch_add(&round->calls, 1);
    for (int i = 0; i < 4; i++) {
        if (atomic_load(&round->released))
            atomic_fetch_add(&round->late, 1);
        sleep_ms(1);
    }
}

/* The warning is due when 40 ms of the lease are over; the releases come around that moment. */
static void *release_at_the_warning(void *arg)
{
    struct hammer *hammer = arg;
    for (int i = 0; i < ROUNDS; i++) {
        struct round *round = &hammer->rounds[i];
        char name[32];
        hf_hold *held;
        (void)snprintf(name, sizeof(name), "lock %d", hammer->index);
        hf_status status =
            hf_acquire(client, name,
                       HF_ACQUIRE(.lease_ms = LEASE_MS, .warn_ms = WARN_MS, .no_renewal = true,
                                  .wait_ms = 5000, .retry_interval_ms = 10,
                                  .on_event = listen_closely, .arg = round),
                       &held, NULL);
        if (status != HF_OK) {
            hammer->failures++;
            continue;
        }
        sleep_ms(34 + i % 10);
        if (i % 2 == 0)
            (void)hf_release(&held, NULL);
        else
            (void)hf_release_nowait(&held);
        atomic_store(&round->released, true);
    }
    return NULL;
}

static void nobody_is_told_after_the_release(void **state)
{
    (void)state;
    int calls = 0;
    for (int i = 0; i < HAMMERS; i++) {
        hammers[i].index = i;
        assert_int_equal(
            pthread_create(&hammers[i].thread, NULL, release_at_the_warning, &hammers[i]), 0);
    }
    for (int i = 0; i < HAMMERS; i++)
        (void)pthread_join(hammers[i].thread, NULL);
    sleep_ms(2 * LEASE_MS); /* for what should not come any more */
    for (int i = 0; i < HAMMERS; i++) {
        assert_int_equal(hammers[i].failures, 0);
        for (int j = 0; j < ROUNDS; j++) {
            assert_int_equal(atomic_load(&hammers[i].rounds[j].late), 0);
            calls += atomic_load(&hammers[i].rounds[j].calls);
        }
    }
    assert_true(calls > ROUNDS / 4); /* else they never met */
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, close_clients)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(calls_that_wait_are_refused_inside), TEST(a_lost_hold_can_be_let_go_inside),
        TEST(a_valid_hold_can_be_let_go_inside),  TEST(every_handle_has_its_own),
        TEST(a_slow_listener_delays_nobody_else), TEST(nobody_is_told_after_the_release),
    };
    return cmocka_run_group_tests_name("telling", tests, start_server, end_server);
}
