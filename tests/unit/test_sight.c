/* SPDX-License-Identifier: MIT */
/* Watching locks through the public calls, over the double of the network: where the callback runs
 * and what it may do, and that nothing is told after the end. What is told is in test_observe.c. */
#include <pthread.h>
#include <string.h>

#include "wired.h"

enum { SIGHTS_MAX = 64 };

typedef struct eye {
    pthread_mutex_t mutex;
    int count;
    hf_sight sights[SIGHTS_MAX];
    void (*act)(struct eye *);
    hf_client *client;
    hf_observer *observer;
    hf_status status;   /* of what it did */
    atomic_bool inside; /* it is running */
    atomic_bool go_on;  /* if it waits to be let out */
} eye;

static eye make_eye(void)
{
    return (eye){.mutex = PTHREAD_MUTEX_INITIALIZER};
}

static void look(void *arg, const hf_sight *sight)
{
    eye *e = arg;
    atomic_store(&e->inside, true);
    pthread_mutex_lock(&e->mutex);
    if (e->count < SIGHTS_MAX)
        e->sights[e->count++] = *sight;
    pthread_mutex_unlock(&e->mutex);
    if (e->act != NULL)
        e->act(e);
    atomic_store(&e->inside, false);
}

static int seen(eye *e)
{
    pthread_mutex_lock(&e->mutex);
    int count = e->count;
    pthread_mutex_unlock(&e->mutex);
    return count;
}

static hf_sight_kind kind_of(eye *e, int index)
{
    pthread_mutex_lock(&e->mutex);
    hf_sight_kind kind = e->sights[index].kind;
    pthread_mutex_unlock(&e->mutex);
    return kind;
}

static void observe(eye *e, hf_client *client, const char *name)
{
    hf_error error;
    hf_status status = hf_observe(client, name, 0, look, e, &e->observer, &error);
    expect_status(status, HF_OK, &error);
    assert_non_null(e->observer);
}

/* The scripts publish, so what happens is heard of by message. */
static void await_subscription(void)
{
    int observes = 0;
    for (int patience = 0; observes == 0 && patience < 10000; patience++) {
        WIRES_GET(observes, node.observes);
        if (observes == 0)
            pause_a_little();
    }
    assert_true(observes > 0);
}

static void what_happens_is_told(void **state)
{
    (void)state;
    eye e = make_eye();
    hf_client *one = OPEN(.links = 1), *other = OPEN(.links = 1, .prefix = "");
    observe(&e, one, "x");
    EVENTUALLY(seen(&e) == 1);
    assert_int_equal(kind_of(&e, 0), HF_SEEN_FREE);
    await_subscription();
    hf_hold *hold = acquire(other, "x", HF_ACQUIRE(.label = "night"));
    EVENTUALLY(seen(&e) == 2);
    assert_int_equal(kind_of(&e, 1), HF_SEEN_GRANTED);
    assert_string_equal(e.sights[1].who.label, "night");
    assert_true(e.sights[1].fence == hf_fence(hold));
    release(&hold, HF_OK);
    EVENTUALLY(seen(&e) == 3);
    assert_int_equal(kind_of(&e, 2), HF_SEEN_RELEASED);
    hf_observe_end(&e.observer);
    assert_null(e.observer);
    hold = acquire(other, "x", NULL);
    release(&hold, HF_OK);
    assert_int_equal(hf_close(one), HF_OK);
    assert_int_equal(hf_close(other), HF_OK);
    assert_int_equal(seen(&e), 3);
}

static void the_end_may_come_after_the_close(void **state)
{
    (void)state;
    eye e = make_eye();
    hf_client *client = OPEN(.links = 1);
    observe(&e, client, "x");
    EVENTUALLY(seen(&e) == 1);
    assert_int_equal(hf_close(client), HF_OK);
    hf_observe_end(&e.observer);
    assert_null(e.observer);
    hf_observe_end(&e.observer);
    hf_observe_end(NULL);
}

/* ---- In the callback ---- */

static void try_to_wait(eye *e)
{
    hf_hold *hold = NULL;
    e->status = hf_acquire(e->client, "y", NULL, &hold, NULL);
}

static void a_callback_must_not_wait(void **state)
{
    (void)state;
    eye e = make_eye();
    hf_client *client = OPEN(.links = 1);
    e.client = client;
    e.act = try_to_wait;
    observe(&e, client, "x");
    EVENTUALLY(seen(&e) == 1 && !atomic_load(&e.inside));
    assert_int_equal(e.status, HF_EDEADLK);
    hf_observe_end(&e.observer);
    assert_int_equal(hf_close(client), HF_OK);
}

static void end_it(eye *e)
{
    hf_observe_end(&e->observer);
}

static void a_callback_may_end_it(void **state)
{
    (void)state;
    eye e = make_eye();
    hf_client *client = OPEN(.links = 1);
    e.act = end_it;
    hf_error error;
    pthread_mutex_lock(&e.mutex); /* so that `observer` is there before the callback needs it */
    hf_status status = hf_observe(client, "x", 0, look, &e, &e.observer, &error);
    pthread_mutex_unlock(&e.mutex);
    expect_status(status, HF_OK, &error);
    EVENTUALLY(seen(&e) == 1 && !atomic_load(&e.inside));
    assert_null(e.observer);
    assert_int_equal(hf_close(client), HF_OK);
    assert_int_equal(seen(&e), 1);
}

static void stay(eye *e)
{
    while (!atomic_load(&e->go_on))
        pause_a_little();
}

static void *let_go_soon(void *arg)
{
    eye *e = arg;
    for (int i = 0; i < 20; i++)
        pause_a_little();
    atomic_store(&e->go_on, true);
    return NULL;
}

static void the_end_waits_for_the_callback(void **state)
{
    (void)state;
    pthread_t thread;
    eye e = make_eye();
    hf_client *client = OPEN(.links = 1);
    e.act = stay;
    observe(&e, client, "x");
    EVENTUALLY(atomic_load(&e.inside));
    assert_int_equal(pthread_create(&thread, NULL, let_go_soon, &e), 0);
    hf_observe_end(&e.observer);
    assert_true(atomic_load(&e.go_on) && !atomic_load(&e.inside));
    pthread_join(thread, NULL);
    assert_int_equal(hf_close(client), HF_OK);
}

/* ---- Arguments and memory ---- */

static void bad_arguments_are_refused(void **state)
{
    (void)state;
    eye e = make_eye();
    hf_client *client = OPEN(.links = 1);
    hf_error error;
    hf_observer **place = &e.observer;
    assert_int_equal(hf_observe(NULL, "x", 0, look, &e, place, &error), HF_EINVAL);
    assert_int_equal(hf_observe(client, NULL, 0, look, &e, place, &error), HF_EINVAL);
    assert_int_equal(hf_observe(client, "", 0, look, &e, place, &error), HF_EINVAL);
    assert_int_equal(hf_observe(client, "hf:x", 0, look, &e, place, &error), HF_EINVAL);
    assert_int_equal(hf_observe(client, "x", 0, NULL, &e, place, &error), HF_EINVAL);
    assert_int_equal(hf_observe(client, "x", 0, look, &e, NULL, &error), HF_EINVAL);
    assert_null(e.observer);
    assert_int_equal(hf_close(client), HF_OK);
}

static void memory_may_fail(void **state)
{
    (void)state;
    bool starved = true;
    for (long refused = 0; starved; refused++) {
        eye e = make_eye();
        hf_client *client = OPEN(.links = 1);
        hf_error error;
        gate_fail_at(refused);
        hf_status status = hf_observe(client, "x", 0, look, &e, &e.observer, &error);
        assert_int_equal(e.observer != NULL, status == HF_OK);
        if (status == HF_OK)
            EVENTUALLY(seen(&e) >= 1);
        else
            assert_int_equal(status, HF_ENOMEM);
        starved = gate_open();
        hf_observe_end(&e.observer);
        assert_int_equal(hf_close(client), HF_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(what_happens_is_told),
        BOTH(the_end_may_come_after_the_close),
        BOTH(a_callback_must_not_wait),
        BOTH(a_callback_may_end_it),
        BOTH(the_end_waits_for_the_callback),
        SEEING(bad_arguments_are_refused),
        BOTH(memory_may_fail),
    };
    wired_install_gate();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
