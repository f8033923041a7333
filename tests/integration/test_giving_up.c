/* SPDX-License-Identifier: MIT */
/* Goal: giving up and getting the lock may meet at any moment, and nothing is left behind: no lock
 * that nobody holds, no place in a queue, no notes.
 *
 * Threads of two clients take few locks for moments, with waits that are about as long, and cancels
 * that are fired about when the lock comes. Ten thousand times; HOLDFAST_MANY in the environment
 * says otherwise. Each thread checks what no race may spoil: a hold belongs to a call that returned
 * HF_OK, and to one thread at a time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "fixture.h"

enum { CLIENTS = 2, THREADS = 4, LOCKS = 3, LEASE_MS = 20000 };

struct racer {
    pthread_t thread;
    hf_client *client;
    unsigned seed;
    long times;
    long granted;
    long busy;
    long cancelled;
    char wrong[400]; /* empty: nothing */
};

static hf_client *clients[CLIENTS];
static struct racer racers[CLIENTS * THREADS];
static atomic_int inside[LOCKS];
static long times = 10000;

static int start(void **state)
{
    const char *wanted = getenv("HOLDFAST_MANY");
    if (wanted != NULL)
        times = strtol(wanted, NULL, 10);
    assert_true(times > 0);
    return start_server(state);
}

static int begin(void **state)
{
    (void)state;
    empty_server();
    for (int i = 0; i < LOCKS; i++)
        atomic_store(&inside[i], 0);
    return 0;
}

/* ---- A racer --------------------------------------------------------------------------------- */

static int draw(struct racer *racer, int below)
{
    return rand_r(&racer->seed) % below;
}

static void sleep_us(long duration_us)
{
    (void)nanosleep(&(struct timespec){.tv_nsec = duration_us * 1000}, NULL);
}

/* Works with the lock for a moment, alone. */
static void work(struct racer *racer, int lock)
{
    if (atomic_fetch_add(&inside[lock], 1) != 0)
        (void)snprintf(racer->wrong, sizeof(racer->wrong), "two at once have lock %d", lock);
    sleep_us(draw(racer, 2000));
    atomic_fetch_sub(&inside[lock], 1);
}

struct canceller {
    hf_cancel *cancel;
    long after_us;
};

static void *fire_later(void *arg)
{
    const struct canceller *canceller = arg;
    sleep_us(canceller->after_us);
    hf_cancel_fire(canceller->cancel);
    return NULL;
}

static hf_status acquire(struct racer *racer, int lock, hf_hold **hold, hf_error *error)
{
    char name[16];
    char owner[16];
    pthread_t thread;
    bool cancels = draw(racer, 2) == 0;
    struct canceller canceller = {cancels ? hf_cancel_new() : NULL, draw(racer, 4000)};
    hf_acquire_options options = {.size = sizeof(options),
                                  .lease_ms = LEASE_MS,
                                  .wait_ms = cancels ? -1 : 1 + draw(racer, 5),
                                  .cancel = canceller.cancel,
                                  .fair = draw(racer, 3) == 0,
                                  .owner = draw(racer, 8) == 0 ? owner : NULL,
                                  .no_renewal = draw(racer, 4) == 0};
    (void)snprintf(name, sizeof(name), "lock %d", lock);
    (void)snprintf(owner, sizeof(owner), "racer %d", (int)(racer - racers));
    if (cancels && pthread_create(&thread, NULL, fire_later, &canceller) != 0)
        hf_cancel_fire(canceller.cancel), cancels = false;
    hf_status status = hf_acquire(racer->client, name, &options, hold, error);
    if (cancels)
        (void)pthread_join(thread, NULL);
    hf_cancel_free(canceller.cancel);
    return status;
}

static void race_once(struct racer *racer)
{
    hf_error error;
    hf_hold *hold;
    int lock = draw(racer, LOCKS);
    hf_status status = acquire(racer, lock, &hold, &error);
    racer->granted += status == HF_OK;
    racer->busy += status == HF_EBUSY;
    racer->cancelled += status == HF_ECANCELLED;
    bool expected = status == HF_OK || status == HF_EBUSY || status == HF_ECANCELLED ||
                    status == HF_EUNKNOWN || status == HF_EUNAVAILABLE;
    if (!expected || (status == HF_OK) != (hold != NULL))
        (void)snprintf(racer->wrong, sizeof(racer->wrong), "acquire: %s, %s",
                       hf_status_name(status), error.text);
    if (status != HF_OK)
        return;
    work(racer, lock);
    status = draw(racer, 2) == 0 ? hf_release(&hold, &error) : hf_release_nowait(&hold);
    if (status != HF_OK)
        (void)snprintf(racer->wrong, sizeof(racer->wrong), "release: %s", hf_status_name(status));
}

static void *race(void *arg)
{
    struct racer *racer = arg;
    for (long i = 0; i < racer->times && racer->wrong[0] == '\0'; i++)
        race_once(racer);
    return NULL;
}

/* ---- Races ----------------------------------------------------------------------------------- */

static void race_all(const hf_client_options *options, long all)
{
    enum { RACERS = CLIENTS * THREADS };
    long granted = 0;
    long given_up = 0;
    for (int i = 0; i < CLIENTS; i++)
        open_client_with(&clients[i], options);
    for (int i = 0; i < RACERS; i++) {
        racers[i] = (struct racer){
            .client = clients[i % CLIENTS], .seed = (unsigned)i + 1, .times = all / RACERS};
        assert_int_equal(pthread_create(&racers[i].thread, NULL, race, &racers[i]), 0);
    }
    for (int i = 0; i < RACERS; i++)
        (void)pthread_join(racers[i].thread, NULL);
    for (int i = 0; i < RACERS; i++) {
        if (racers[i].wrong[0] != '\0')
            fail_msg("thread %d: %s", i, racers[i].wrong);
        granted += racers[i].granted;
        given_up += racers[i].busy + racers[i].cancelled;
    }
    print_message("%ld granted, %ld given up\n", granted, given_up);
    assert_true(granted > all / 50 && given_up > all / 50);
    expect_only_fences();
}

static void giving_up_leaves_nothing(void **state)
{
    (void)state;
    race_all(NULL, times / 2);
}

/* Every thread goes to the server by itself. */
static void giving_up_leaves_nothing_without_local_turns(void **state)
{
    (void)state;
    race_all(HF_CLIENT(.local_turns = -1), times / 2);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, close_clients)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(giving_up_leaves_nothing),
        TEST(giving_up_leaves_nothing_without_local_turns),
    };
    return cmocka_run_group_tests_name("giving up", tests, start, end_server);
}
