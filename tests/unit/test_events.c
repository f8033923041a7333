/* SPDX-License-Identifier: MIT */
/* Holds that look after themselves, through the public API: renewed by the library's own thread,
 * lost with or without a server, and told to callbacks and descriptors. Leases are short here, so
 * that real time is too; what must happen is waited for, and what must not is asked about last. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "wired.h"

enum { EVENTS_MAX = 64 };

typedef struct ear {
    pthread_mutex_t mutex;
    int count;
    hf_event events[EVENTS_MAX];
    char text[200]; /* of the last one */
    void (*act)(struct ear *);
    hf_client *client;
    hf_hold *hold;
    atomic_int inside; /* callbacks that are running */
    atomic_bool go_on;
    bool crowded; /* two were running at once */
} ear;

static ear make_ear(void)
{
    return (ear){.mutex = PTHREAD_MUTEX_INITIALIZER};
}

static void listen(void *arg, const hf_event *event)
{
    ear *e = arg;
    int others = atomic_fetch_add(&e->inside, 1);
    pthread_mutex_lock(&e->mutex);
    e->crowded = e->crowded || others > 0;
    if (e->count < EVENTS_MAX)
        e->events[e->count] = *event;
    e->count++;
    snprintf(e->text, sizeof(e->text), "%s", event->text);
    pthread_mutex_unlock(&e->mutex);
    if (e->act != NULL)
        e->act(e);
    atomic_fetch_sub(&e->inside, 1);
}

static int heard(ear *e)
{
    pthread_mutex_lock(&e->mutex);
    int count = e->count;
    pthread_mutex_unlock(&e->mutex);
    return count;
}

static hf_event last_heard(ear *e)
{
    pthread_mutex_lock(&e->mutex);
    assert_in_range(e->count, 1, EVENTS_MAX);
    hf_event event = e->events[e->count - 1];
    pthread_mutex_unlock(&e->mutex);
    return event;
}

static bool heard_state(ear *e, hf_state state)
{
    return heard(e) > 0 && last_heard(e).state == state;
}

static bool is_readable(int descriptor)
{
    struct pollfd wanted = {.fd = descriptor, .events = POLLIN};
    return poll(&wanted, 1, 0) == 1 && (wanted.revents & POLLIN) != 0;
}

static int count_renewals(void)
{
    int count;
    WIRES_GET(count, node.renewals);
    return count;
}

/* ---- Renewed ---- */

static void a_hold_outlives_its_lease(void **state)
{
    (void)state;
    hf_client *client = OPEN();
    ear e = make_ear();
    hf_hold *hold =
        acquire(client, "x", HF_ACQUIRE(.lease_ms = 300, .on_event = listen, .arg = &e));
    uint64_t fence = hf_fence(hold);
    assert_true(fence > 0);
    EVENTUALLY(count_renewals() >= 6); /* nobody calls: the library's own thread does it */
    assert_true(hf_is_valid(hold));
    assert_true(hf_fence(hold) == fence);
    release(&hold, HF_OK);
    assert_false(wires_has_key("x"));
    int after = count_renewals();
    hold = acquire(client, "y", HF_ACQUIRE(.lease_ms = 300, .no_renewal = true));
    EVENTUALLY(!hf_is_valid(hold));
    assert_int_equal(count_renewals(), after);
    release(&hold, HF_ELOST);
    assert_int_equal(hf_close(client), HF_OK);
}

/* ---- Lost ---- */

static void silence_is_told_as_jeopardy_and_loss(void **state)
{
    (void)state;
    hf_client *client = OPEN();
    ear e = make_ear();
    hf_hold *hold = acquire(client, "x",
                            HF_ACQUIRE(.lease_ms = 600, .renew_interval_ms = 100,
                                       .renew_timeout_ms = 50, .on_event = listen, .arg = &e));
    WIRES(mute = true);
    EVENTUALLY(heard_state(&e, HF_JEOPARDY));
    EVENTUALLY(heard_state(&e, HF_LOST));
    assert_int_equal(hf_hold_state(hold), HF_LOST);
    assert_false(hf_is_valid(hold));
    assert_int_equal(last_heard(&e).reason, HF_REASON_EXPIRED);
    assert_int_equal(last_heard(&e).remaining_ms, 0);
    int count = heard(&e);
    wires_unmute();
    release(&hold, HF_ELOST);
    assert_int_equal(hf_close(client), HF_OK);
    assert_int_equal(heard(&e), count);
}

static void a_deleted_lock_is_told_as_a_loss(void **state)
{
    (void)state;
    hf_client *client = OPEN();
    ear e = make_ear();
    hf_hold *hold =
        acquire(client, "x", HF_ACQUIRE(.lease_ms = 600, .on_event = listen, .arg = &e));
    drop_for_somebody("x");
    EVENTUALLY(heard_state(&e, HF_LOST));
    assert_int_equal(last_heard(&e).reason, HF_REASON_GONE);
    assert_int_equal(hf_remaining_ms(hold), 0);
    assert_false(wires_has_key("x"));
    hf_hold *next = acquire(client, "x", NULL); /* what is lost is not entered again */
    assert_true(hf_fence(next) > hf_fence(hold));
    release(&hold, HF_ELOST);
    assert_true(wires_has_key("x"));
    release(&next, HF_OK);
    assert_int_equal(heard(&e), 1);
    assert_int_equal(hf_close(client), HF_OK);
}

static void what_is_held_too_long_ends(void **state)
{
    (void)state;
    hf_client *client = OPEN();
    ear e = make_ear();
    hf_hold *hold =
        acquire(client, "x",
                HF_ACQUIRE(.lease_ms = 200, .max_hold_ms = 150, .on_event = listen, .arg = &e));
    EVENTUALLY(heard_state(&e, HF_LOST));
    assert_int_equal(last_heard(&e).reason, HF_REASON_MAX_HOLD);
    assert_int_equal(heard(&e), 2);
    assert_int_equal(e.events[0].state, HF_JEOPARDY);
    release(&hold, HF_ELOST);
    assert_int_equal(hf_close(client), HF_OK);
}

/* ---- Callbacks ---- */

/* In jeopardy from the start: told when there is a handle to be told about. */
static void what_is_in_jeopardy_from_the_start_is_told(void **state)
{
    (void)state;
    hf_client *client = OPEN();
    for (int i = 0; i < 20; i++) {
        ear e = make_ear();
        hf_hold *hold = acquire(client, "x",
                                HF_ACQUIRE(.lease_ms = 1000, .warn_ms = 999, .no_renewal = true,
                                           .on_event = listen, .arg = &e));
        EVENTUALLY(heard(&e) == 1);
        assert_int_equal(last_heard(&e).reason, HF_REASON_NEAR);
        assert_ptr_equal(last_heard(&e).hold, hold);
        release(&hold, HF_OK);
    }
    assert_int_equal(hf_close(client), HF_OK);
}

static struct {
    hf_status acquire, extend, release, close, inspect, list, revoke, break_, nowait;
    hf_hold *fresh;
    bool valid;
} inside;

static bool see_nothing(void *arg, const hf_inspection *inspection)
{
    (void)arg;
    (void)inspection;
    return true;
}

static void call_everything(ear *e)
{
    static hf_inspection inspection;
    uint64_t fence;
    inside.acquire = hf_acquire(e->client, "y", NULL, &inside.fresh, NULL);
    inside.extend = hf_extend(e->hold, 0, NULL);
    inside.close = hf_close(e->client);
    inside.inspect = hf_inspect(e->client, "x", 0, &inspection, NULL);
    inside.list = hf_list(e->client, NULL, see_nothing, NULL, NULL);
    inside.revoke = hf_revoke(e->client, "x", 0, NULL, NULL);
    inside.break_ = hf_break(e->client, "x", 0, &fence, NULL);
    inside.valid = hf_is_valid(e->hold) || hf_hold_state(e->hold) != HF_LOST;
    inside.release = hf_release(&e->hold, NULL);
    inside.nowait = hf_release_nowait(&e->hold);
    atomic_store(&e->go_on, true);
}

static void what_may_be_called_inside_a_callback(void **state)
{
    (void)state;
    hf_client *client = OPEN();
    ear e = make_ear();
    memset(&inside, 0, sizeof(inside));
    e.client = client;
    e.act = call_everything;
    e.hold = acquire(client, "x", HF_ACQUIRE(.lease_ms = 600, .on_event = listen, .arg = &e));
    drop_for_somebody("x");
    EVENTUALLY(atomic_load(&e.go_on));
    EVENTUALLY(atomic_load(&e.inside) == 0);
    assert_int_equal(inside.acquire, HF_EDEADLK);
    assert_null(inside.fresh);
    assert_int_equal(inside.extend, HF_EDEADLK);
    assert_int_equal(inside.close, HF_EDEADLK);
    assert_int_equal(inside.inspect, HF_EDEADLK);
    assert_int_equal(inside.list, HF_EDEADLK);
    assert_int_equal(inside.revoke, HF_EDEADLK);
    assert_int_equal(inside.break_, HF_EDEADLK);
    assert_int_equal(inside.release, HF_EDEADLK);
    assert_false(inside.valid);
    assert_int_equal(inside.nowait, HF_ELOST); /* which does not wait */
    assert_null(e.hold);
    assert_int_equal(hf_close(client), HF_OK);
    assert_int_equal(e.count, 1);
}

static void wait_for_go(ear *e)
{
    while (!atomic_load(&e->go_on))
        pause_a_little();
    for (int i = 0; i < 20; i++)
        pause_a_little();
}

typedef struct releasing {
    hf_hold *hold;
    ear *e;
    bool nowait;
    atomic_bool done;
    bool still_inside;
} releasing;

static void *release_it(void *arg)
{
    releasing *r = arg;
    if (r->nowait)
        hf_release_nowait(&r->hold);
    else
        hf_release(&r->hold, NULL);
    r->still_inside = atomic_load(&r->e->inside) != 0;
    atomic_store(&r->done, true);
    return NULL;
}

/* Whoever frees what the callback uses right after the release must be safe. */
static void a_release_waits_for_the_callback(void **state)
{
    (void)state;
    for (int nowait = 0; nowait < 2; nowait++) {
        hf_client *client = OPEN();
        ear e = make_ear();
        pthread_t thread;
        e.act = wait_for_go;
        releasing r = {.e = &e, .nowait = nowait != 0};
        r.hold = acquire(client, "x", HF_ACQUIRE(.lease_ms = 300, .on_event = listen, .arg = &e));
        drop_for_somebody("x");
        EVENTUALLY(atomic_load(&e.inside) == 1);
        assert_int_equal(pthread_create(&thread, NULL, release_it, &r), 0);
        for (int i = 0; i < 20; i++)
            pause_a_little();
        assert_false(atomic_load(&r.done));
        atomic_store(&e.go_on, true);
        pthread_join(thread, NULL);
        assert_false(r.still_inside);
        assert_int_equal(heard(&e), 1);
        assert_int_equal(hf_close(client), HF_OK);
    }
}

static void dawdle(ear *e)
{
    (void)e;
    for (int i = 0; i < 5; i++)
        pause_a_little();
}

static void callbacks_of_a_client_run_one_at_a_time(void **state)
{
    (void)state;
    enum { HOLDS = 6 };
    hf_client *client = OPEN(.links = 4);
    hf_hold *holds[HOLDS];
    ear e = make_ear();
    char name[16];
    e.act = dawdle;
    for (int i = 0; i < HOLDS; i++) {
        snprintf(name, sizeof(name), "lock%d", i);
        holds[i] =
            acquire(client, name,
                    HF_ACQUIRE(.lease_ms = 300, .no_renewal = true, .on_event = listen, .arg = &e));
    }
    hf_hold *busy = acquire(client, "busy", NULL);
    for (int i = 0; heard(&e) < HOLDS && i < 10000; i++) { /* while this thread drives, too */
        hf_extend(busy, 0, NULL);
        pause_a_little();
    }
    EVENTUALLY(atomic_load(&e.inside) == 0);
    assert_false(e.crowded);
    for (int i = 0; i < HOLDS; i++)
        release(&holds[i], HF_ELOST);
    release(&busy, HF_OK);
    assert_int_equal(heard(&e), HOLDS);
    assert_int_equal(hf_close(client), HF_OK);
}

/* Holds a callback of the client up until told to go on. */
static hf_hold *acquire_and_lose(hf_client *client, ear *slow)
{
    slow->act = wait_for_go;
    hf_hold *lost =
        acquire(client, "x", HF_ACQUIRE(.lease_ms = 300, .on_event = listen, .arg = slow));
    drop_for_somebody("x");
    EVENTUALLY(atomic_load(&slow->inside) == 1);
    return lost;
}

static void a_slow_callback_delays_no_call_and_no_renewal(void **state)
{
    (void)state;
    hf_client *client = OPEN(.links = 1);
    ear slow = make_ear();
    hf_hold *renewed = acquire(client, "y", HF_ACQUIRE(.lease_ms = 600));
    hf_hold *lost = acquire_and_lose(client, &slow);
    int before = count_renewals();
    EVENTUALLY(count_renewals() >= before + 4);
    hf_hold *fresh = acquire(client, "fresh", NULL);
    release(&fresh, HF_OK);
    bool valid = hf_is_valid(renewed);
    atomic_store(&slow.go_on, true);
    assert_true(valid);
    release(&lost, HF_ELOST);
    release(&renewed, HF_OK);
    assert_int_equal(hf_close(client), HF_OK);
}

/* Those who poll do not wait for those who are called. */
static void a_slow_callback_delays_no_descriptor(void **state)
{
    (void)state;
    hf_client *client = OPEN();
    ear slow = make_ear();
    hf_hold *watched = acquire(client, "z", HF_ACQUIRE(.lease_ms = 1000, .no_renewal = true));
    int descriptor = hf_descriptor(watched);
    hf_hold *lost = acquire_and_lose(client, &slow);
    for (int patience = 3000; patience > 0 && !is_readable(descriptor); patience--)
        pause_a_little();
    bool readable = is_readable(descriptor);
    atomic_store(&slow.go_on, true);
    release(&lost, HF_ELOST);
    release(&watched, HF_ELOST);
    assert_int_equal(hf_close(client), HF_OK);
    assert_true(readable);
}

static void closing_while_somebody_is_told(void **state)
{
    (void)state;
    hf_client *client = OPEN();
    ear e = make_ear();
    e.act = dawdle;
    hf_hold *hold =
        acquire(client, "x", HF_ACQUIRE(.lease_ms = 300, .on_event = listen, .arg = &e));
    drop_for_somebody("x");
    EVENTUALLY(heard(&e) == 1);
    assert_int_equal(hf_close(client), HF_OK);
    release(&hold, HF_ECLOSED);
    assert_int_equal(atomic_load(&e.inside), 0);
    assert_int_equal(heard(&e), 1);
}

/* ---- Descriptors ---- */

static void a_descriptor_tells_of_a_loss(void **state)
{
    (void)state;
    uint64_t eight;
    hf_client *client = OPEN();
    hf_hold *hold = acquire(client, "x", HF_ACQUIRE(.lease_ms = 600));
    int descriptor = hf_descriptor(hold);
    assert_true(descriptor >= 0);
    assert_int_equal(hf_descriptor(hold), descriptor);
    assert_true((fcntl(descriptor, F_GETFD) & FD_CLOEXEC) != 0);
    assert_false(is_readable(descriptor));
    drop_for_somebody("x");
    EVENTUALLY(is_readable(descriptor));
    assert_int_equal(read(descriptor, &eight, sizeof(eight)), sizeof(eight));
    assert_int_equal(hf_hold_state(hold), HF_LOST);
    assert_false(is_readable(descriptor));
    release(&hold, HF_ELOST);
    assert_int_equal(fcntl(descriptor, F_GETFD), -1); /* closed with the release */
    assert_int_equal(hf_close(client), HF_OK);
}

static void a_descriptor_of_a_lost_hold_is_readable_at_once(void **state)
{
    (void)state;
    hf_client *client = OPEN();
    ear e = make_ear();
    hf_hold *hold =
        acquire(client, "x",
                HF_ACQUIRE(.lease_ms = 100, .no_renewal = true, .on_event = listen, .arg = &e));
    EVENTUALLY(heard_state(&e, HF_LOST));
    int descriptor = hf_descriptor(hold);
    assert_true(is_readable(descriptor));
    assert_int_equal(heard(&e), 1); /* the callback is not told again */
    assert_int_equal(hf_release_nowait(&hold), HF_ELOST);
    assert_int_equal(hf_close(client), HF_OK);
}

static void descriptors_that_there_are_not(void **state)
{
    (void)state;
    assert_int_equal(hf_descriptor(NULL), -1);
    hf_client *client = OPEN();
    hf_hold *with = acquire(client, "x", NULL), *without = acquire(client, "y", NULL);
    int descriptor = hf_descriptor(with);
    assert_true(descriptor >= 0);
    assert_int_equal(hf_close(client), HF_OK);
    assert_int_equal(hf_descriptor(without), -1);
    release(&without, HF_ECLOSED);
    release(&with, HF_ECLOSED);
    assert_int_equal(fcntl(descriptor, F_GETFD), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(a_hold_outlives_its_lease),
        BOTH(silence_is_told_as_jeopardy_and_loss),
        BOTH(a_deleted_lock_is_told_as_a_loss),
        BOTH(what_is_held_too_long_ends),
        BOTH(what_is_in_jeopardy_from_the_start_is_told),
        BOTH(what_may_be_called_inside_a_callback),
        BOTH(a_release_waits_for_the_callback),
        BOTH(callbacks_of_a_client_run_one_at_a_time),
        BOTH(a_slow_callback_delays_no_call_and_no_renewal),
        SEEING(a_slow_callback_delays_no_descriptor),
        BOTH(closing_while_somebody_is_told),
        BOTH(a_descriptor_tells_of_a_loss),
        BOTH(a_descriptor_of_a_lost_hold_is_readable_at_once),
        SEEING(descriptors_that_there_are_not),
    };
    wired_install_gate();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
