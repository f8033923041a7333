/* SPDX-License-Identifier: MIT */
/* Goal: an operation that was started is told exactly once, whatever ends it: a grant, a refusal,
 * its time, a cancel, the end of the client or of the server; on the client's own thread, where
 * calls that wait are refused; and nothing stays held that nobody was told about.
 */
#include <stdio.h>
#include <time.h>

#include "fixture.h"
#include "told.h"

enum { RACES = 3000 };

static hf_client *client;
static hf_client *rival;
static hf_error error;

static int begin(void **state)
{
    (void)state;
    told_clear_all();
    empty_server();
    open_client(&client);
    open_client(&rival);
    return 0;
}

/* ---- Verbs ----------------------------------------------------------------------------------- */

static void start(struct told *place)
{
    start_with(client, place, "lock", NULL);
}

static void start_waiting(struct told *place)
{
    start_with(client, place, "lock", HF_ACQUIRE(.wait_ms = -1, .retry_interval_ms = 20));
}

/* Takes what the callback was given. */
static void release_told(struct told *place)
{
    EXPECT(HF_OK, hf_release(&place->hold, &error));
}

static void start_release(struct told *place, hf_hold **hold)
{
    EXPECT(HF_OK, hf_release_async(hold, told_released, place, &error));
    assert_null(*hold);
}

/* ---- How it can end -------------------------------------------------------------------------- */

static void a_grant_is_told_once(void **state)
{
    (void)state;
    start(&told[0]);
    EXPECT_TOLD(&told[0], HF_OK);
    assert_false(pthread_equal(told[0].thread, pthread_self()));
    assert_true(hf_is_valid(told[0].hold) && hf_fence(told[0].hold) > 0);
    expect_refused(rival);
    start_release(&told[1], &told[0].hold);
    EXPECT_TOLD(&told[1], HF_OK);
    expect_free(rival);
    assert_int_equal(told_once(told, MANY), 2);
}

static void a_refusal_is_told_once(void **state)
{
    (void)state;
    hf_hold *hold = acquire_with(rival, NULL);
    start(&told[0]);
    EXPECT_TOLD(&told[0], HF_EBUSY);
    expect_says(told[0].error.text, "held by");
    release(&hold);
    assert_int_equal(told_once(told, MANY), 1);
}

static void waiting_ends_with_a_grant_or_its_time(void **state)
{
    (void)state;
    hf_hold *hold = acquire_with(rival, NULL);
    int64_t begun = now_ms();
    start_with(client, &told[0], "lock", HF_ACQUIRE(.wait_ms = 200, .retry_interval_ms = 20));
    EXPECT_TOLD(&told[0], HF_EBUSY);
    EXPECT_TOOK(begun, 150, 200);
    start_waiting(&told[1]);
    WAIT_UNTIL(stats_of(client)->contentions == 2, 5000);
    assert_int_equal(atomic_load(&told[1].times), 0);
    release(&hold);
    EXPECT_TOLD(&told[1], HF_OK);
    release_told(&told[1]);
}

static void the_end_of_a_server_is_told(void **state)
{
    (void)state;
    struct redis_server *usual = server;
    server = redis_server_start(NULL);
    static hf_client *doomed;
    open_client_with(&doomed, HF_CLIENT(.call_timeout_ms = 500));
    hf_hold *hold = NULL;
    EXPECT(HF_OK, hf_acquire(doomed, "held", HF_ACQUIRE(.no_renewal = true), &hold, &error));
    redis_server_freeze(server);
    for (int i = 0; i < 10; i++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "lock %d", i);
        EXPECT(HF_OK, hf_acquire_async(doomed, name, NULL, told_acquired, &told[i], NULL, &error));
    }
    EXPECT(HF_OK, hf_release_async(&hold, told_released, &told[10], &error));
    redis_server_kill(server);
    WAIT_UNTIL(told_once(told, 11) == 11, 5000);
    for (int i = 0; i < 11; i++)
        assert_true(told[i].status == HF_EUNKNOWN || told[i].status == HF_EUNAVAILABLE);
    EXPECT_STATUS(HF_EUNKNOWN, hf_close(doomed));
    doomed = NULL;
    server = usual;
}

static void closing_tells_all_that_are_under_way(void **state)
{
    (void)state;
    hf_hold *hold = acquire_with(rival, NULL);
    for (int i = 0; i < MANY / 2; i++)
        start_waiting(&told[i]);
    for (int i = MANY / 2; i < MANY; i++)
        start_numbered(client, i);
    EXPECT_STATUS(HF_OK, hf_close(client));
    assert_int_equal(told_once(told, MANY), MANY);
    for (int i = 0; i < MANY; i++) {
        if (i < MANY / 2 || told[i].hold == NULL)
            assert_int_equal(told[i].status, HF_ECLOSED);
        else
            EXPECT(HF_ECLOSED, hf_release(&told[i].hold, &error));
    }
    client = NULL;
    release(&hold);
    assert_string_equal(raw(server, "KEYS lock*"), "(array of 0)");
}

static hf_status closed_inside;

static void close_inside(struct told *place)
{
    (void)place;
    closed_inside = hf_close(client);
}

static void closing_in_a_callback_is_refused(void **state)
{
    (void)state;
    told[0].act = close_inside;
    start(&told[0]);
    EXPECT_TOLD(&told[0], HF_OK);
    assert_int_equal(closed_inside, HF_EDEADLK);
    hf_hold *hold = told[0].hold;
    EXPECT_STATUS(HF_OK, hf_close(client));
    client = NULL;
    EXPECT(HF_ECLOSED, hf_release_async(&hold, told_released, &told[1], &error));
    assert_null(hold);
    assert_int_equal(told_once(told, MANY), 1);
}

/* ---- Cancelling ------------------------------------------------------------------------------ */

static void an_operation_is_cancelled_by_its_number(void **state)
{
    (void)state;
    hf_hold *hold = acquire_with(rival, NULL);
    start_waiting(&told[0]);
    start_waiting(&told[1]);
    assert_true(told[0].operation != told[1].operation);
    EXPECT_STATUS(HF_OK, hf_cancel_operation(client, told[0].operation));
    EXPECT_TOLD(&told[0], HF_ECANCELLED);
    EXPECT_STATUS(HF_OK, hf_cancel_operation(client, told[0].operation)); /* again, in vain */
    release(&hold);
    EXPECT_TOLD(&told[1], HF_OK);
    EXPECT_STATUS(HF_OK, hf_cancel_operation(client, told[1].operation)); /* too late */
    assert_true(hf_is_valid(told[1].hold));
    release_told(&told[1]);
    EXPECT_STATUS(HF_EINVAL, hf_cancel_operation(client, 0));
    EXPECT_STATUS(HF_EINVAL, hf_cancel_operation(client, told[1].operation + 1000));
    EXPECT_STATUS(HF_EINVAL, hf_cancel_operation(NULL, 1));
    assert_int_equal(told_once(told, MANY), 2);
}

static void one_cancel_ends_many(void **state)
{
    (void)state;
    hf_hold *hold = acquire_with(rival, NULL);
    hf_cancel *cancel = hf_cancel_new();
    for (int i = 0; i < 100; i++)
        start_with(client, &told[i], "lock", HF_ACQUIRE(.wait_ms = -1, .cancel = cancel));
    hf_cancel_fire(cancel);
    start_with(client, &told[100], "lock", HF_ACQUIRE(.wait_ms = -1, .cancel = cancel));
    for (int i = 0; i <= 100; i++)
        EXPECT_TOLD(&told[i], HF_ECANCELLED);
    hf_cancel_free(cancel);
    release(&hold);
}

static void spin_ns(int64_t duration_ns)
{
    struct timespec begun, now;
    clock_gettime(CLOCK_MONOTONIC, &begun);
    do {
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - begun.tv_sec) * 1000000000 + now.tv_nsec - begun.tv_nsec < duration_ns);
}

/* Whoever wins, it is told once, and what was granted is in somebody's hand or given back. The
 * cancel comes a little later after each race that it has won, and sooner after each it has lost.
 */
static void a_cancel_races_with_a_grant(void **state)
{
    (void)state;
    int granted = 0, cancelled = 0;
    int64_t pause_ns = 0;
    for (int i = 0; i < RACES; i++) {
        told_clear(told, 1);
        start(&told[0]);
        spin_ns(pause_ns);
        EXPECT_STATUS(HF_OK, hf_cancel_operation(client, told[0].operation));
        while (atomic_load(&told[0].times) == 0)
            sched_yield();
        if (told[0].status == HF_OK) {
            granted++;
            pause_ns -= pause_ns / 8;
            EXPECT_STATUS(HF_OK, hf_release_nowait(&told[0].hold));
        } else {
            EXPECT_TOLD(&told[0], HF_ECANCELLED);
            cancelled++;
            pause_ns += 1000;
        }
        assert_int_equal(atomic_load(&told[0].times), 1);
    }
    assert_true(granted > RACES / 100 && cancelled > RACES / 100);
    EXPECT_STATUS(HF_OK, hf_close(client));
    client = NULL;
    expect_free(rival);
}

/* ---- Owners ---------------------------------------------------------------------------------- */

static void nobody_re_enters_an_operation(void **state)
{
    (void)state;
    start(&told[0]);
    EXPECT_TOLD(&told[0], HF_OK);
    start(&told[1]);
    EXPECT_TOLD(&told[1], HF_EBUSY);
    expect_refused(client);
    release_told(&told[0]);
    hf_hold *hold = acquire_with(client, NULL);
    start(&told[2]);
    EXPECT_TOLD(&told[2], HF_EBUSY);
    release(&hold);
}

static void operations_share_by_a_named_owner(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        start_with(client, &told[i], "lock", HF_ACQUIRE(.owner = "request 7"));
        EXPECT_TOLD(&told[i], HF_OK);
        assert_true(hf_fence(told[i].hold) == hf_fence(told[0].hold));
    }
    for (int i = 0; i < 3; i++) {
        expect_refused(rival);
        release_told(&told[i]);
    }
    expect_free(rival);
}

/* ---- In a callback --------------------------------------------------------------------------- */

static struct inside {
    hf_status acquired, released, extended, inspected, closed, processed;
    bool kept;
} inside;

static void try_everything(struct told *place)
{
    static hf_inspection inspection;
    hf_hold *fresh;
    inside.acquired = hf_acquire(client, "other", NULL, &fresh, NULL);
    inside.extended = hf_extend(place->hold, 0, NULL);
    inside.released = hf_release(&place->hold, NULL);
    inside.inspected = hf_inspect(client, "lock", 0, &inspection, NULL);
    inside.closed = hf_close(client);
    inside.processed = hf_process(client, NULL);
    inside.kept = place->hold != NULL && hf_is_valid(place->hold);
}

static void calls_that_wait_are_refused_inside(void **state)
{
    (void)state;
    told[0].act = try_everything;
    start(&told[0]);
    EXPECT_TOLD(&told[0], HF_OK);
    assert_int_equal(inside.acquired, HF_EDEADLK);
    assert_int_equal(inside.extended, HF_EDEADLK);
    assert_int_equal(inside.released, HF_EDEADLK);
    assert_int_equal(inside.inspected, HF_EDEADLK);
    assert_int_equal(inside.closed, HF_EDEADLK);
    assert_int_equal(inside.processed, HF_EDEADLK);
    assert_true(inside.kept);
    release_told(&told[0]);
}

static void release_inside_without_asking(struct told *place)
{
    if (hf_release_nowait(&place->hold) != HF_OK)
        atomic_fetch_add(&place->times, 100);
}

static void holds_are_released_inside(void **state)
{
    (void)state;
    told[0].act = release_inside;
    start(&told[0]);
    EXPECT_TOLD(&told_back[0], HF_OK);
    told[1].act = release_inside_without_asking;
    start(&told[1]);
    EXPECT_TOLD(&told[1], HF_OK);
    start_waiting(&told[2]);
    EXPECT_TOLD(&told[2], HF_OK);
    release_told(&told[2]);
    assert_int_equal(told_once(told, MANY), 3);
    assert_int_equal(told_once(told_back, MANY), 1);
}

static void a_thousand_pairs_are_under_way_at_once(void **state)
{
    (void)state;
    for (int i = 0; i < MANY; i++) {
        told[i].act = release_inside;
        start_numbered(client, i);
    }
    WAIT_UNTIL(told_once(told_back, MANY) == MANY, 20000);
    assert_int_equal(told_once(told, MANY), MANY);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(told_back[i].status, HF_OK);
    assert_true(stats_of(client)->acquisitions == MANY && stats_of(client)->releases == MANY);
}

/* ---- Together with the rest ------------------------------------------------------------------ */

static struct told *grant;
static atomic_int losses, losses_before_grant;

static void count_losses(void *arg, const hf_event *event)
{
    (void)arg;
    if (event->state != HF_LOST)
        return;
    if (atomic_load(&grant->times) == 0)
        atomic_fetch_add(&losses_before_grant, 1);
    atomic_fetch_add(&losses, 1);
}

static void a_loss_is_told_after_the_grant(void **state)
{
    (void)state;
    grant = &told[0];
    atomic_store(&losses, 0);
    start_with(client, &told[0], "lock",
               HF_ACQUIRE(.lease_ms = 30000, .renew_interval_ms = 50, .on_event = count_losses));
    EXPECT_TOLD(&told[0], HF_OK);
    assert_string_equal(raw(server, "DEL lock"), "1");
    WAIT_UNTIL(atomic_load(&losses) == 1, 10000);
    assert_int_equal(atomic_load(&losses_before_grant), 0);
    start_release(&told[1], &told[0].hold);
    EXPECT_TOLD(&told[1], HF_ELOST);
}

static atomic_bool go_on, is_listening, listened_too_late;

static void listen_slowly(void *arg, const hf_event *event)
{
    (void)arg;
    (void)event;
    atomic_store(&is_listening, true);
    while (!atomic_load(&go_on))
        sched_yield();
    atomic_store(&listened_too_late, atomic_load(&told[1].times) > 0);
    atomic_store(&is_listening, false);
}

static void a_release_does_not_wait_for_its_listener(void **state)
{
    (void)state;
    atomic_store(&go_on, false);
    start_with(client, &told[0], "lock",
               HF_ACQUIRE(.lease_ms = 30000, .renew_interval_ms = 50, .on_event = listen_slowly));
    EXPECT_TOLD(&told[0], HF_OK);
    assert_string_equal(raw(server, "DEL lock"), "1");
    WAIT_UNTIL(atomic_load(&is_listening), 10000);
    start_release(&told[1], &told[0].hold);
    expect_free(client); /* calls go on */
    assert_int_equal(atomic_load(&told[1].times), 0);
    atomic_store(&go_on, true);
    EXPECT_TOLD(&told[1], HF_ELOST);
    assert_false(atomic_load(&listened_too_late));
    assert_false(atomic_load(&is_listening));
}

static void threads_and_operations_share_a_client(void **state)
{
    (void)state;
    for (int i = 0; i < MANY; i++) {
        told[i].act = release_inside;
        start_numbered(client, i);
        if (i % 10 == 0)
            expect_free(client);
    }
    WAIT_UNTIL(told_once(told_back, MANY) == MANY, 20000);
}

/* ---- Bad calls, and the child of a fork ------------------------------------------------------ */

static void bad_calls_are_refused_and_not_told(void **state)
{
    (void)state;
    hf_operation operation = 77;
    EXPECT(HF_EINVAL,
           hf_acquire_async(NULL, "lock", NULL, told_acquired, &told[0], &operation, &error));
    assert_true(operation == 0);
    EXPECT(HF_EINVAL, hf_acquire_async(client, "lock", NULL, NULL, &told[0], NULL, &error));
    expect_says(error.text, "function");
    EXPECT(HF_EINVAL, hf_acquire_async(client, NULL, NULL, told_acquired, &told[0], NULL, &error));
    EXPECT(HF_EINVAL, hf_acquire_async(client, "", NULL, told_acquired, &told[0], NULL, &error));
    EXPECT(HF_EINVAL, hf_acquire_async(client, "lock", HF_ACQUIRE(.lease_ms = 1), told_acquired,
                                       &told[0], NULL, &error));
    hf_hold *none = NULL;
    EXPECT(HF_EINVAL, hf_release_async(NULL, told_released, &told[0], &error));
    EXPECT(HF_EINVAL, hf_release_async(&none, told_released, &told[0], &error));
    EXPECT(HF_EINVAL, hf_process(client, &error));
    EXPECT(HF_EINVAL, hf_process(NULL, &error));
    assert_int_equal(hf_loop_descriptor(client), -1);
    assert_int_equal(hf_loop_timeout_ms(client), -1);
    assert_int_equal(told_once(told, MANY), 0);
}

static void a_release_needs_no_function(void **state)
{
    (void)state;
    hf_hold *hold = acquire_with(client, NULL);
    EXPECT(HF_OK, hf_release_async(&hold, NULL, NULL, &error));
    assert_null(hold);
    expect_free(client);
}

static void use_in_child(int line, void *arg)
{
    hf_hold *hold = arg;
    hf_operation operation = told[0].operation;
    hf_status acquired =
        hf_acquire_async(client, "other", NULL, told_acquired, &told[2], NULL, NULL);
    hf_status cancelled = hf_cancel_operation(client, operation);
    hf_status released = hf_release_async(&hold, told_released, &told[3], NULL);
    hf_status closed = hf_close(client);
    line_say(line, "%s %s %s %s, told %d", hf_status_name(acquired), hf_status_name(cancelled),
             hf_status_name(released), hf_status_name(closed), (int)told_once(told, 4));
}

static void a_child_is_told_nothing(void **state)
{
    (void)state;
    hf_hold *hold = acquire_with(rival, NULL);
    start_waiting(&told[0]);
    hf_hold *mine = NULL;
    EXPECT(HF_OK, hf_acquire(client, "mine", NULL, &mine, &error));
    struct process *child = process_start(use_in_child, mine);
    EXPECT_HEARD(child, "HF_EFORKED HF_EFORKED HF_EFORKED HF_EFORKED, told 0");
    assert_true(process_finish(child, 5000));
    release(&hold);
    EXPECT_TOLD(&told[0], HF_OK);
    release_told(&told[0]);
    assert_true(hf_is_valid(mine));
    release(&mine);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, close_clients)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_grant_is_told_once),
        TEST(a_refusal_is_told_once),
        TEST(waiting_ends_with_a_grant_or_its_time),
        TEST(the_end_of_a_server_is_told),
        TEST(closing_tells_all_that_are_under_way),
        TEST(closing_in_a_callback_is_refused),
        TEST(an_operation_is_cancelled_by_its_number),
        TEST(one_cancel_ends_many),
        TEST(a_cancel_races_with_a_grant),
        TEST(nobody_re_enters_an_operation),
        TEST(operations_share_by_a_named_owner),
        TEST(calls_that_wait_are_refused_inside),
        TEST(holds_are_released_inside),
        TEST(a_thousand_pairs_are_under_way_at_once),
        TEST(a_loss_is_told_after_the_grant),
        TEST(a_release_does_not_wait_for_its_listener),
        TEST(threads_and_operations_share_a_client),
        TEST(bad_calls_are_refused_and_not_told),
        TEST(a_release_needs_no_function),
        TEST(a_child_is_told_nothing),
    };
    return cmocka_run_group_tests(tests, start_server, end_server);
}
