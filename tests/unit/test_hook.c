/* SPDX-License-Identifier: MIT */
/* The log hook, what may be called inside it, and cancelling, which may run it. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "wired.h"

static void lines_reach_the_hook(void **state)
{
    (void)state;
    hf_client *client = OPEN(LOGGED);
    int before = atomic_load(&lines);
    WIRES(open_failure = ECONNREFUSED);
    fail_to_acquire(client, "x", NULL, HF_EUNAVAILABLE, "refused");
    assert_true(atomic_load(&lines) > before);
    WIRES(open_failure = 0);
    before = atomic_load(&lines);
    hf_hold *hold = acquire(client, "x", HF_ACQUIRE(.wait_ms = 10000));
    assert_true(atomic_load(&lines) > before);
    release(&hold, HF_OK);
    assert_int_equal(hf_close(client), HF_OK);
    assert_int_equal(atomic_load(&bad_lines), 0);
}

static struct {
    hf_client *client;
    hf_hold *hold;
    hf_hold *fresh;
    hf_error error;
    hf_status acquire, extend, release, close, nowait;
    bool valid;
} inside; /* what calls came to inside the hook */

static void call_everything(void)
{
    inside.fresh = inside.hold;
    inside.acquire = hf_acquire(inside.client, "y", NULL, &inside.fresh, &inside.error);
    inside.extend = hf_extend(inside.hold, 0, NULL);
    inside.close = hf_close(inside.client);
    inside.valid = hf_is_valid(inside.hold);
    inside.release = hf_release(&inside.hold, NULL);
}

/* The header leaves open what becomes of the hold; that it stays is the only way not to lose it. */
static void calls_that_wait_are_refused_inside_the_hook(void **state)
{
    (void)state;
    hf_client *client = OPEN(LOGGED, .links = 2);
    inside.client = client;
    inside.hold = acquire(client, LOCK_A, NULL);
    arm(call_everything);
    hf_hold *other = acquire(client, LOCK_B, NULL); /* connects the other link and says so */
    assert_non_null(strstr(last_line, "connected to node:6379"));
    assert_int_equal(inside.acquire, HF_EDEADLK);
    assert_int_equal(inside.error.status, HF_EDEADLK);
    assert_null(inside.fresh);
    assert_int_equal(inside.extend, HF_EDEADLK);
    assert_int_equal(inside.close, HF_EDEADLK);
    assert_int_equal(inside.release, HF_EDEADLK);
    assert_true(inside.valid);
    assert_non_null(inside.hold);
    assert_true(hf_is_valid(inside.hold));
    release(&inside.hold, HF_OK); /* no longer inside */
    release(&other, HF_OK);
    assert_int_equal(hf_close(client), HF_OK);
}

static void let_go(void)
{
    inside.nowait = hf_release_nowait(&inside.hold);
}

static void calls_that_do_not_wait_work_inside_the_hook(void **state)
{
    (void)state;
    hf_client *client = OPEN(LOGGED, .links = 2);
    inside.hold = acquire(client, LOCK_A, NULL);
    arm(let_go);
    hf_hold *other = acquire(client, LOCK_B, NULL);
    assert_int_equal(inside.nowait, HF_OK);
    assert_null(inside.hold);
    assert_false(wires_has_key(LOCK_A));
    release(&other, HF_OK);
    assert_int_equal(hf_close(client), HF_OK);
}

static void let_go_then_acquire(void)
{
    int before = atomic_load(&lines);
    let_go(); /* cannot be written: that is logged, so the hook runs inside the hook */
    inside.valid = atomic_load(&lines) > before;
    inside.acquire = hf_acquire(inside.client, "y", NULL, &inside.fresh, &inside.error);
}

static void a_hook_inside_the_hook_does_not_end_the_outer_one(void **state)
{
    (void)state;
    hf_client *client = OPEN(LOGGED, .links = 2);
    inside.client = client;
    inside.hold = acquire(client, LOCK_A, NULL);
    WIRES(open_failure = ECONNREFUSED);
    WIRES(write_failure = EPIPE);
    arm(let_go_then_acquire);
    fail_to_acquire(client, LOCK_B, NULL, HF_EUNAVAILABLE, "refused");
    WIRES(open_failure = 0);
    WIRES(write_failure = 0);
    assert_int_equal(hf_close(client), HF_OK);
    assert_true(inside.valid);
    assert_int_equal(inside.acquire, HF_EDEADLK);
}

/* ---- Cancelling ---- */

static void a_cancel_that_was_fired_before(void **state)
{
    (void)state;
    hf_client *client = OPEN();
    hf_cancel *cancel = hf_cancel_new();
    hf_cancel_fire(cancel);
    hf_cancel_fire(cancel);
    for (int i = 0; i < 3; i++)
        fail_to_acquire(client, "x", HF_ACQUIRE(.wait_ms = -1, .cancel = cancel), HF_ECANCELLED,
                        "");
    assert_int_equal(count_opens(), 0);
    hf_hold *hold = acquire(client, "x", NULL);
    release(&hold, HF_OK);
    hf_cancel_free(cancel);
    assert_int_equal(hf_close(client), HF_OK);
}

typedef struct cancelled_call {
    hf_client *client;
    hf_cancel *cancel;
    int64_t retry_interval_ms;
} cancelled_call;

static void *acquire_until_cancelled(void *arg)
{
    const cancelled_call *call = arg;
    fail_to_acquire(call->client, "x",
                    HF_ACQUIRE(.wait_ms = -1, .retry_interval_ms = call->retry_interval_ms,
                               .cancel = call->cancel),
                    HF_ECANCELLED, "");
    return NULL;
}

static void a_cancel_that_is_fired_by_another_thread(void **state)
{
    (void)state;
    hf_client *client = OPEN();
    cancelled_call call = {client, hf_cancel_new(), 10};
    pthread_t threads[4];
    hold_for_somebody("x");
    for (size_t i = 0; i < COUNT_OF(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, acquire_until_cancelled, &call), 0);
    EVENTUALLY(count_acquires() >= 8);
    hf_cancel_fire(call.cancel);
    for (size_t i = 0; i < COUNT_OF(threads); i++)
        pthread_join(threads[i], NULL);
    hf_cancel_free(call.cancel);
    assert_int_equal(hf_close(client), HF_OK);
}

/* The thread that is cancelled sleeps in poll() with the wheel in its hands. */
static void a_cancel_wakes_a_long_pause(void **state)
{
    (void)state;
    enum { PAUSE_MS = 6000 };
    hf_client *client = OPEN(.reply_timeout_ms = 60000); /* or its timer would wake it, too */
    cancelled_call call = {client, hf_cancel_new(), PAUSE_MS};
    pthread_t thread;
    hold_for_somebody("x");
    assert_int_equal(pthread_create(&thread, NULL, acquire_until_cancelled, &call), 0);
    EVENTUALLY(count_acquires() >= 1);
    int64_t start = now_ms();
    hf_cancel_fire(call.cancel);
    pthread_join(thread, NULL);
    int64_t took = now_ms() - start;
    hf_cancel_free(call.cancel);
    assert_int_equal(hf_close(client), HF_OK);
    assert_in_range(took, 0, PAUSE_MS / 2);
}

static void a_cancel_while_the_answer_is_under_way(void **state)
{
    (void)state;
    hf_client *client = OPEN();
    cancelled_call call = {client, hf_cancel_new(), 10};
    pthread_t thread;
    hf_hold *warm = acquire(client, "warm", NULL); /* connects the link of "x" */
    WIRES(mute = true);
    assert_int_equal(pthread_create(&thread, NULL, acquire_until_cancelled, &call), 0);
    EVENTUALLY(wires_has_key("x")); /* granted, but the answer is not here yet */
    hf_cancel_fire(call.cancel);
    pthread_join(thread, NULL);
    wires_unmute();
    EVENTUALLY(!wires_has_key("x"));
    hf_cancel_free(call.cancel);
    release(&warm, HF_OK);
    assert_int_equal(hf_close(client), HF_OK);
}

static struct {
    hf_cancel *cancel;
    pthread_t thread;
    atomic_bool done;
    bool done_inside; /* the hook */
} second_fire;

static void *fire_again(void *arg)
{
    (void)arg;
    hf_cancel_fire(second_fire.cancel);
    atomic_store(&second_fire.done, true);
    return NULL;
}

static void let_another_thread_fire(void)
{
    pthread_create(&second_fire.thread, NULL, fire_again, NULL);
    for (int patience = 2000; patience > 0 && !atomic_load(&second_fire.done); patience--)
        pause_a_little();
    second_fire.done_inside = atomic_load(&second_fire.done);
}

static void fire_in_hook(void)
{
    hf_cancel_fire(second_fire.cancel);
    second_fire.done_inside = true;
}

/* Who waits for an answer looks out for it first, and would write what others bring meanwhile. */
static void let_it_fall_asleep(void)
{
    for (int i = 0; i < 100; i++)
        pause_a_little();
}

/* Cancels an acquire so that its release breaks the connection, which is logged while firing. */
static void fire_and_log(void (*act)(void))
{
    hf_client *client = OPEN(LOGGED);
    cancelled_call call = {client, hf_cancel_new(), 10};
    pthread_t thread;
    second_fire.cancel = call.cancel;
    second_fire.done_inside = false;
    atomic_store(&second_fire.done, false);
    hf_hold *warm = acquire(client, "warm", NULL); /* connects the link of "x" */
    WIRES(mute = true);
    assert_int_equal(pthread_create(&thread, NULL, acquire_until_cancelled, &call), 0);
    EVENTUALLY(wires_has_key("x"));
    let_it_fall_asleep();
    WIRES(write_failure = EPIPE);
    arm(act);
    hf_cancel_fire(call.cancel);
    WIRES(write_failure = 0);
    wires_unmute();
    pthread_join(thread, NULL);
    if (act == let_another_thread_fire)
        pthread_join(second_fire.thread, NULL);
    release(&warm, HF_OK);
    assert_int_equal(hf_close(client), HF_OK);
    hf_cancel_free(call.cancel);
    assert_non_null(strstr(last_line, "connection lost"));
}

static void a_hook_may_fire_the_cancel_that_is_being_fired(void **state)
{
    (void)state;
    fire_and_log(fire_in_hook);
    assert_true(second_fire.done_inside);
}

/* Another thread is only kept waiting by a hook if that runs under a lock, and the header says that
 * it does not. */
static void the_hook_runs_with_no_lock_of_the_cancel_held(void **state)
{
    (void)state;
    fire_and_log(let_another_thread_fire);
    assert_true(second_fire.done_inside);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(lines_reach_the_hook),
        BOTH(calls_that_wait_are_refused_inside_the_hook),
        BOTH(calls_that_do_not_wait_work_inside_the_hook),
        SEEING(a_hook_inside_the_hook_does_not_end_the_outer_one),
        BOTH(a_cancel_that_was_fired_before),
        BOTH(a_cancel_that_is_fired_by_another_thread),
        BOTH(a_cancel_wakes_a_long_pause),
        BOTH(a_cancel_while_the_answer_is_under_way),
        SEEING(a_hook_may_fire_the_cancel_that_is_being_fired),
        SEEING(the_hook_runs_with_no_lock_of_the_cancel_held),
    };
    wired_install_gate();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
