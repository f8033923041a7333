/* SPDX-License-Identifier: MIT */
/* Goal: however many processes and threads take ids of one name, whatever happens to them and to
 * the server, no id is handed out twice, and they grow as promised.
 *
 * Sixteen processes with eight threads each take a million ids into shared memory: some threads
 * leased ones, some of a generator by thread, some ordered ones, and some of each in batches.
 * Meanwhile three processes are killed, and the server too; it comes back with nothing. Every
 * thread looks at what was published before it asks: by its process for leased ids, by anybody for
 * ordered ones. What it gets must be larger.
 *
 * integration_ids_storm [TOTAL] takes so many instead.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <holdfast_ids.h>

#include "../lib/redis_server.h"

enum { PROCESSES = 16, THREADS = 8, BATCH = 16, KILLED = 3, BOUND_MS = 600000 };
enum kind { LEASED, BY_THREAD, ORDERED, KINDS };

struct shared {
    atomic_llong taken[KINDS]; /* places that were given to somebody */
    atomic_llong published;    /* the largest id of all */
    atomic_llong in_process[PROCESSES];
    atomic_int disorders;
    atomic_int failures;
};

struct worker {
    int process, number;
    hf_ids *ids[KINDS];
    pthread_t thread;
    int64_t last;
    hf_error error; /* of the first call that failed as none should */
};

static long long total = 1000000;
static long long quota[KINDS];
static struct redis_server *server;
static struct shared *shared;
static int64_t *places; /* quota[LEASED] of them, then the others; 0: nothing came */
static size_t places_size;

static int64_t *place_of(enum kind kind)
{
    int64_t *at = places;
    for (int i = 0; i < (int)kind; i++)
        at += quota[i];
    return at;
}

static void *map(size_t size)
{
    void *place = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(place != MAP_FAILED);
    return place;
}

static int start(void **state)
{
    (void)state;
    quota[ORDERED] = total / 2;
    quota[BY_THREAD] = total / 4;
    quota[LEASED] = total - quota[ORDERED] - quota[BY_THREAD];
    server = redis_server_start(NULL);
    shared = map(sizeof(*shared));
    places_size = (size_t)total * sizeof(*places);
    places = map(places_size);
    return 0;
}

static int end(void **state)
{
    (void)state;
    process_end_all();
    redis_server_end_all();
    (void)munmap(places, places_size);
    (void)munmap(shared, sizeof(*shared));
    return 0;
}

/* ---- In the children ------------------------------------------------------------------------- */

static void publish(atomic_llong *place, long long id)
{
    long long before = atomic_load(place);
    while (before < id && !atomic_compare_exchange_weak(place, &before, id))
        continue;
}

/* What the next id of this kind must be larger than. */
static long long floor_of(const struct worker *worker, enum kind kind)
{
    if (kind == ORDERED)
        return atomic_load(&shared->published);
    return kind == LEASED ? atomic_load(&shared->in_process[worker->process]) : worker->last;
}

static void judge(struct worker *worker, enum kind kind, const int64_t *ids, int count,
                  long long least)
{
    for (int i = 0; i < count; i++) {
        if (ids[i] <= least)
            atomic_fetch_add(&shared->disorders, 1);
        least = ids[i];
    }
    worker->last = least;
    publish(&shared->published, least);
    if (kind == LEASED)
        publish(&shared->in_process[worker->process], least);
}

/* Until there are some: a server that is being restarted is no failure. */
static bool take(struct worker *worker, enum kind kind, int64_t *ids, int count)
{
    hf_status status;
    do
        status = count == 1
                     ? hf_ids_next(worker->ids[kind], ids, &worker->error)
                     : hf_ids_next_batch(worker->ids[kind], ids, (size_t)count, &worker->error);
    while (status == HF_EUNAVAILABLE || status == HF_EUNKNOWN);
    return status == HF_OK && atomic_load(&shared->failures) == 0; /* one is enough */
}

/* Leased ids would all be gone before anything happens: they keep step with the ordered ones. */
static void keep_step(enum kind kind)
{
    while (kind != ORDERED && atomic_load(&shared->failures) == 0 &&
           atomic_load(&shared->taken[ORDERED]) < quota[ORDERED] &&
           atomic_load(&shared->taken[kind]) * quota[ORDERED] >
               (atomic_load(&shared->taken[ORDERED]) + 1000) * quota[kind])
        sleep_ms(1);
}

static void *work(void *arg)
{
    static const enum kind kinds[THREADS] = {LEASED,    LEASED,  LEASED,  BY_THREAD,
                                             BY_THREAD, ORDERED, ORDERED, ORDERED};
    struct worker *worker = arg;
    enum kind kind = kinds[worker->number];
    int64_t ids[BATCH];
    for (;;) {
        int count = worker->number % 3 == 2 ? BATCH : 1; /* some of each kind */
        long long at = atomic_fetch_add(&shared->taken[kind], count);
        if (at >= quota[kind])
            return NULL;
        if (at + count > quota[kind])
            count = (int)(quota[kind] - at);
        long long least = floor_of(worker, kind);
        if (!take(worker, kind, ids, count))
            break;
        judge(worker, kind, ids, count, least);
        memcpy(place_of(kind) + at, ids, (size_t)count * sizeof(*ids));
        keep_step(kind);
    }
    atomic_fetch_add(&shared->failures, 1);
    return NULL;
}

static bool open_all(hf_client **client, hf_ids **ids, hf_error *why)
{
    return hf_open(server->unix_url, NULL, client, why) == HF_OK &&
           hf_ids_open(*client, "storm", NULL, &ids[LEASED], why) == HF_OK &&
           hf_ids_open(*client, "storm", HF_IDS(.by_thread = true), &ids[BY_THREAD], why) ==
               HF_OK &&
           hf_ids_open(*client, "storm", HF_IDS(.ordered = true), &ids[ORDERED], why) == HF_OK;
}

/* Says "done" or what went wrong. */
static void work_in_threads(int line, void *arg)
{
    struct worker workers[THREADS] = {0};
    const int *process = arg;
    hf_client *client;
    hf_ids *ids[KINDS];
    hf_error why = {.text = "done"};
    if (!open_all(&client, ids, &why))
        _exit(1);
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.process = *process, .number = i};
        memcpy(workers[i].ids, ids, sizeof(ids));
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
            _exit(1);
    }
    for (int i = 0; i < THREADS; i++)
        (void)pthread_join(workers[i].thread, NULL);
    for (int i = 0; i < THREADS; i++)
        if (workers[i].error.status != HF_OK)
            why = workers[i].error; /* what is said for somebody else's failure is "done" */
    for (int i = 0; i < KINDS; i++)
        hf_ids_close(ids[i]);
    (void)hf_close(client);
    line_say(line, "%s", atomic_load(&shared->failures) == 0 ? "done" : why.text);
}

/* ---- In the test ----------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* What is missing was taken by those who were killed before they could write it down. */
static void expect_unique(void)
{
    long long missing = 0, twice = 0;
    qsort(places, (size_t)total, sizeof(*places), compare);
    assert_true(places[0] >= 0);
    for (long long i = 0; i < total; i++) {
        missing += places[i] == 0;
        twice += i > 0 && places[i] != 0 && places[i] == places[i - 1];
    }
    assert_int_equal(twice, 0);
    assert_in_range(missing, 0, KILLED * THREADS * BATCH);
}

static void wait_for_part(int tenths)
{
    WAIT_UNTIL(atomic_load(&shared->taken[ORDERED]) * 10 >= quota[ORDERED] * tenths, BOUND_MS);
}

static void no_id_comes_twice_nor_out_of_order(void **state)
{
    (void)state;
    struct process *processes[PROCESSES];
    for (int i = 0; i < PROCESSES; i++)
        processes[i] = process_start(work_in_threads, &i);
    wait_for_part(2);
    process_kill(processes[0]);
    wait_for_part(4);
    process_kill(processes[1]);
    redis_server_restart(server);
    process_kill(processes[2]);
    for (int i = KILLED; i < PROCESSES; i++) {
        char said[LINE_MAX_TEXT] = "(silence)";
        (void)line_hear(processes[i]->line, said, BOUND_MS);
        assert_string_equal(said, "done");
        assert_true(process_finish(processes[i], 20000));
    }
    assert_int_equal(atomic_load(&shared->disorders), 0);
    for (int i = 0; i < KINDS; i++)
        assert_true(atomic_load(&shared->taken[i]) >= quota[i]);
    expect_unique();
}

int main(int count, char **words)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_id_comes_twice_nor_out_of_order),
    };
    if (count > 1)
        total = strtoll(words[1], NULL, 10);
    return cmocka_run_group_tests_name("ids_storm", tests, start, end);
}
