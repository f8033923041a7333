/* SPDX-License-Identifier: MIT */
/* Goal: many threads use one client, one hold or one owner at the same time, with the watchdog and
 * the listeners in between, and everything stays as the header says.
 *
 * Threads report in their structs; the test's own thread asserts.
 */
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "fixture.h"
#include "witness.h"

enum { THREADS = 4 };

static hf_client *client;
static hf_hold *hold;
static hf_error error;

static int begin(void **state)
{
    (void)state;
    empty_server();
    open_client(&client);
    return 0;
}

/* ---- Verbs ----------------------------------------------------------------------------------- */

struct helper {
    int index;
    pthread_t thread;
    hf_error error; /* of the first call that failed */
    int done;
};

static struct helper helpers[THREADS];

static void run_all(void *(*body)(void *))
{
    for (int i = 0; i < THREADS; i++) {
        helpers[i] = (struct helper){.index = i};
        assert_int_equal(pthread_create(&helpers[i].thread, NULL, body, &helpers[i]), 0);
    }
}

static void join_all(void)
{
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(helpers[i].thread, NULL), 0);
}

static void expect_all_done(int each)
{
    for (int i = 0; i < THREADS; i++) {
        if (helpers[i].error.status != HF_OK)
            fail_msg("thread %d: %s: %s", i, hf_status_name(helpers[i].error.status),
                     helpers[i].error.text);
        assert_int_equal(helpers[i].done, each);
    }
}

/* ---- One hold -------------------------------------------------------------------------------- */

enum { EXTENSIONS = 200 };

static void *extend_and_ask(void *arg)
{
    struct helper *helper = arg;
    uint64_t fence = hf_fence(hold);
    while (helper->done < EXTENSIONS && hf_extend(hold, 20000, &helper->error) == HF_OK &&
           hf_is_valid(hold) && hf_remaining_ms(hold) > 0 && hf_hold_state(hold) == HF_SAFE &&
           hf_fence(hold) == fence && hf_descriptor(hold) >= 0)
        helper->done++;
    return NULL;
}

static void everybody_extends_one_hold(void **state)
{
    (void)state;
    EXPECT(HF_OK, hf_acquire(client, "lock", HF_ACQUIRE(.lease_ms = 20000, .renew_interval_ms = 10),
                             &hold, &error));
    run_all(extend_and_ask);
    join_all();
    expect_all_done(EXTENSIONS);
    EXPECT(HF_OK, hf_release(&hold, &error));
}

/* ---- One owner ------------------------------------------------------------------------------- */

enum { SHARED_ROUNDS = 150, OWNERS = 2 };

static atomic_int inside[OWNERS];
static atomic_int meetings;
static atomic_int together; /* two of one owner at once, which is what sharing is for */

static bool share_once(struct helper *helper)
{
    int owner = helper->index % OWNERS;
    hf_hold *held;
    if (hf_acquire(client, "lock",
                   HF_ACQUIRE(.owner = owner == 0 ? "even" : "odd", .lease_ms = 20000,
                              .wait_ms = 30000, .retry_interval_ms = 10),
                   &held, &helper->error) != HF_OK)
        return false;
    if (atomic_fetch_add(&inside[owner], 1) > 0)
        atomic_fetch_add(&together, 1);
    if (atomic_load(&inside[1 - owner]) > 0)
        atomic_fetch_add(&meetings, 1);
    (void)sched_yield();
    atomic_fetch_sub(&inside[owner], 1);
    return hf_release(&held, &helper->error) == HF_OK;
}

static void *share_often(void *arg)
{
    struct helper *helper = arg;
    while (helper->done < SHARED_ROUNDS && share_once(helper)) {
        helper->done++;
        if (helper->done % 10 == 0)
            sleep_ms(helper->index % 3); /* or one owner would never let the other in */
    }
    return NULL;
}

static void owners_exclude_each_other(void **state)
{
    (void)state;
    run_all(share_often);
    join_all();
    expect_all_done(SHARED_ROUNDS);
    assert_int_equal(atomic_load(&meetings), 0);
    assert_true(atomic_load(&together) > 0);
    assert_string_equal(raw(server, "EXISTS lock"), "0");
}

/* ---- One lock, re-entered -------------------------------------------------------------------- */

enum { DEPTH = 5, REENTRY_ROUNDS = 60 };

static atomic_int owners_inside;

static void *go_deep(void *arg)
{
    struct helper *helper = arg;
    for (int round = 0; round < REENTRY_ROUNDS; round++) {
        hf_hold *holds[DEPTH] = {NULL};
        bool good = true;
        for (int i = 0; i < DEPTH && good; i++)
            good = hf_acquire(client, "lock", HF_ACQUIRE(.wait_ms = 30000, .retry_interval_ms = 10),
                              &holds[i], &helper->error) == HF_OK;
        if (atomic_fetch_add(&owners_inside, 1) != 0)
            atomic_fetch_add(&meetings, 1);
        (void)sched_yield();
        atomic_fetch_sub(&owners_inside, 1);
        for (int i = 0; i < DEPTH; i++)
            good = hf_release(&holds[(i + round) % DEPTH], &helper->error) == HF_OK && good;
        if (!good)
            break;
        helper->done++;
        sleep_ms(1);
    }
    return NULL;
}

static void threads_re_enter_in_turns(void **state)
{
    (void)state;
    hf_stats stats;
    atomic_store(&meetings, 0);
    run_all(go_deep);
    join_all();
    expect_all_done(REENTRY_ROUNDS);
    assert_int_equal(atomic_load(&meetings), 0);
    EXPECT_STATUS(HF_OK, hf_stats_read(client, &stats));
    assert_int_equal(stats.acquisitions, THREADS * REENTRY_ROUNDS);
    assert_int_equal(stats.reentries, THREADS * REENTRY_ROUNDS * (DEPTH - 1));
    assert_int_equal(stats.releases, THREADS * REENTRY_ROUNDS);
    assert_int_equal(stats.held, 0);
}

/* ---- Listeners and the end ------------------------------------------------------------------- */

static struct letter {
    hf_hold *outer;
    hf_hold *inner;
    atomic_int done;
} letter;

/* The inner handle's listener lets go of both, its own and the outer one. */
static void let_go_of_both(void *arg, const hf_event *event)
{
    struct letter *both = arg;
    (void)event;
    (void)hf_release_nowait(&both->outer);
    (void)hf_release_nowait(&both->inner);
    atomic_fetch_add(&both->done, 1);
}

static void a_listener_lets_go_of_all_handles(void **state)
{
    (void)state;
    static struct witness witness;
    for (int i = 0; i < 20; i++) {
        int before = atomic_load(&letter.done);
        witness_clear(&witness);
        EXPECT(HF_OK, hf_acquire(client, "lock",
                                 HF_ACQUIRE(.lease_ms = 20000, .renew_interval_ms = 10,
                                            .on_event = witness_event, .arg = &witness),
                                 &letter.outer, &error));
        EXPECT(HF_OK,
               hf_acquire(client, "lock", HF_ACQUIRE(.on_event = let_go_of_both, .arg = &letter),
                          &letter.inner, &error));
        EXPECT(HF_OK, hf_revoke(client, "lock", 0, "please", &error));
        WAIT_UNTIL(atomic_load(&letter.done) == before + 1, 10000);
        assert_true(letter.outer == NULL && letter.inner == NULL);
        WAIT_UNTIL(raw_number(server, "EXISTS lock") == 0, 10000);
    }
}

static atomic_bool closed;
static atomic_int told_after_close;
static atomic_int told_before_close;

static void notice_the_close(void *arg, const hf_event *event)
{
    (void)arg;
    (void)event;
    if (atomic_load(&closed))
        atomic_fetch_add(&told_after_close, 1);
    sleep_ms(1);
    if (atomic_load(&closed))
        atomic_fetch_add(&told_after_close, 1);
    atomic_fetch_add(&told_before_close, 1);
}

/* Events are due at the very moment of the close; whatever was told was told before it returned. */
static void nobody_is_told_after_the_close(void **state)
{
    (void)state;
    enum { ROUNDS = 20, HOLDS = 8 };
    for (int i = 0; i < ROUNDS; i++) {
        hf_client *brief;
        hf_hold *holds[HOLDS];
        atomic_store(&closed, false);
        EXPECT(HF_OK, hf_open(server->url, NULL, &brief, &error));
        for (int j = 0; j < HOLDS; j++) {
            char name[32];
            (void)snprintf(name, sizeof(name), "lock %d %d", i, j);
            EXPECT(HF_OK, hf_acquire(brief, name,
                                     HF_ACQUIRE(.lease_ms = 200, .warn_ms = 180, .no_renewal = true,
                                                .on_event = notice_the_close),
                                     &holds[j], &error));
        }
        sleep_ms(14 + i % 10);
        (void)hf_close(brief);
        atomic_store(&closed, true);
        sleep_ms(5);
        for (int j = 0; j < HOLDS; j++)
            EXPECT(HF_ECLOSED, hf_release(&holds[j], &error));
    }
    assert_int_equal(atomic_load(&told_after_close), 0);
    assert_true(atomic_load(&told_before_close) > 0);
}

/* A descriptor lives until the release, also if the client was closed before. */
static void descriptors_are_given_back(void **state)
{
    (void)state;
    hf_client *brief;
    hf_hold *holds[3];
    int before = open_descriptors();
    EXPECT(HF_OK, hf_open(server->url, NULL, &brief, &error));
    for (int i = 0; i < 3; i++) {
        EXPECT(HF_OK, hf_acquire(brief, "lock", NULL, &holds[i], &error));
        assert_true(hf_descriptor(holds[i]) >= 0);
    }
    assert_int_not_equal(hf_descriptor(holds[0]), hf_descriptor(holds[1]));
    EXPECT(HF_OK, hf_release(&holds[1], &error));
    EXPECT_STATUS(HF_OK, hf_close(brief));
    assert_int_equal(hf_descriptor(holds[0]), -1);
    EXPECT(HF_ECLOSED, hf_release(&holds[0], &error));
    EXPECT_STATUS(HF_ECLOSED, hf_release_nowait(&holds[2]));
    assert_int_equal(open_descriptors(), before);
}

/* A request to give up is news for the descriptor too, of every handle. */
static void a_request_makes_descriptors_readable(void **state)
{
    (void)state;
    hf_hold *inner;
    EXPECT(HF_OK, hf_acquire(client, "lock", HF_ACQUIRE(.lease_ms = 20000, .renew_interval_ms = 20),
                             &hold, &error));
    EXPECT(HF_OK, hf_acquire(client, "lock", NULL, &inner, &error));
    struct pollfd asked[2] = {{.fd = hf_descriptor(hold), .events = POLLIN},
                              {.fd = hf_descriptor(inner), .events = POLLIN}};
    EXPECT(HF_OK, hf_revoke(client, "lock", 0, "please", &error));
    WAIT_UNTIL(poll(asked, 2, 0) == 2, 10000);
    assert_int_equal(hf_hold_state(hold), HF_SAFE);
    EXPECT(HF_OK, hf_release(&inner, &error));
    EXPECT(HF_OK, hf_release(&hold, &error));
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, close_clients)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(everybody_extends_one_hold),
        TEST(owners_exclude_each_other),
        TEST(threads_re_enter_in_turns),
        TEST(a_listener_lets_go_of_all_handles),
        TEST(nobody_is_told_after_the_close),
        TEST(descriptors_are_given_back),
        TEST(a_request_makes_descriptors_readable),
    };
    return cmocka_run_group_tests_name("threads", tests, start_server, end_server);
}
