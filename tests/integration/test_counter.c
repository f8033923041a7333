/* SPDX-License-Identifier: MIT */
/* Goal: many processes with many threads work on one thing under one lock, and nothing is lost.
 *
 * Eight processes with four threads each share a counter in a file, and one client per process.
 * The increment is as naive as can be: read, parse, add, write, with a yield in the middle that
 * invites everybody else in. A second witness is stricter: a number in shared memory says how many
 * are inside, and whoever finds somebody there reports it, even if no update happened to get lost.
 */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../lib/redis_server.h"

enum { PROCESSES = 8, THREADS = 4, INCREMENTS = 5000, BOUND_MS = 60000 };

struct shared {
    atomic_int inside;
    atomic_int meetings;
};

struct worker {
    hf_client *client;
    int file;
    pthread_t thread;
    int quota;
    int increments;
    hf_error error; /* of the first call that failed */
};

static struct redis_server *server;
static struct shared *shared;
static char counter_path[96];

static int start(void **state)
{
    (void)state;
    server = redis_server_start(NULL);
    (void)snprintf(counter_path, sizeof(counter_path), "%s/counter", server->folder);
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(shared != MAP_FAILED);
    return 0;
}

static int end(void **state)
{
    (void)state;
    process_end_all();
    redis_server_end_all();
    (void)munmap(shared, sizeof(*shared));
    return 0;
}

/* ---- In the children ------------------------------------------------------------------------- */

static bool increment(int file)
{
    char text[16] = "";
    if (pread(file, text, sizeof(text) - 1, 0) <= 0)
        return false;
    long value = strtol(text, NULL, 10);
    (void)sched_yield();
    int length = snprintf(text, sizeof(text), "%ld\n", value + 1);
    return pwrite(file, text, (size_t)length, 0) == length;
}

static bool increment_under_lock(struct worker *worker)
{
    hf_hold *hold;
    if (hf_acquire(worker->client, "counter", HF_ACQUIRE(.wait_ms = -1, .retry_interval_ms = 10),
                   &hold, &worker->error) != HF_OK)
        return false;
    if (atomic_fetch_add(&shared->inside, 1) != 0)
        atomic_fetch_add(&shared->meetings, 1);
    bool written = increment(worker->file);
    atomic_fetch_sub(&shared->inside, 1);
    return hf_release(&hold, &worker->error) == HF_OK && written;
}

static void *work(void *arg)
{
    struct worker *worker = arg;
    while (worker->increments < worker->quota && increment_under_lock(worker))
        worker->increments++;
    return NULL;
}

/* Everybody has the same share, so that nobody does it all while the others wait. */
static int quota_of(int process, int thread)
{
    int workers = PROCESSES * THREADS;
    int number = process * THREADS + thread;
    return INCREMENTS / workers + (number < INCREMENTS % workers ? 1 : 0);
}

/* Says "N done" or what went wrong. */
static void work_in_threads(int line, void *arg)
{
    struct worker workers[THREADS] = {0};
    int increments = 0;
    hf_client *client;
    hf_error why;
    const int *process = arg;
    int file = open(counter_path, O_RDWR | O_CLOEXEC);
    if (hf_open(server->url, NULL, &client, &why) != HF_OK)
        line_say(line, "%s", why.text);
    for (int i = 0; i < THREADS; i++) {
        workers[i].client = client;
        workers[i].file = file;
        workers[i].quota = quota_of(*process, i);
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
            _exit(1);
    }
    for (int i = 0; i < THREADS; i++) {
        (void)pthread_join(workers[i].thread, NULL);
        increments += workers[i].increments;
        if (workers[i].error.status != HF_OK)
            line_say(line, "%s", workers[i].error.text);
    }
    hf_status closed = hf_close(client);
    line_say(line, "%s: %d done", hf_status_name(closed), increments);
}

/* ---- In the test ----------------------------------------------------------------------------- */

static void write_zero(void)
{
    int file = open(counter_path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(file >= 0);
    assert_int_equal(write(file, "0\n", 2), 2);
    (void)close(file);
}

static long counted(void)
{
    char text[16] = "";
    int file = open(counter_path, O_RDONLY | O_CLOEXEC);
    assert_true(file >= 0);
    assert_true(read(file, text, sizeof(text) - 1) > 0);
    (void)close(file);
    return strtol(text, NULL, 10);
}

static void no_increment_is_lost(void **state)
{
    (void)state;
    struct process *processes[PROCESSES];
    int done = 0;
    int64_t give_up = now_ms() + BOUND_MS;
    write_zero();
    for (int i = 0; i < PROCESSES; i++)
        processes[i] = process_start(work_in_threads, &i);
    for (int i = 0; i < PROCESSES; i++) {
        char said[LINE_MAX_TEXT] = "(silence)";
        int increments = 0;
        (void)line_hear(processes[i]->line, said, give_up - now_ms());
        if (sscanf(said, "HF_OK: %d done", &increments) != 1)
            fail_msg("process %d: %s", i, said);
        assert_true(process_finish(processes[i], 5000));
        done += increments;
    }
    assert_int_equal(done, INCREMENTS);
    assert_int_equal(counted(), INCREMENTS);
    assert_int_equal(atomic_load(&shared->meetings), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_increment_is_lost),
    };
    return cmocka_run_group_tests_name("counter", tests, start, end);
}
