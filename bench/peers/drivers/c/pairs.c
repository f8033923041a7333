/* SPDX-License-Identifier: MIT
 *
 * The mode `pairs`: a thread for each task, which acquires, works and releases until it is told to
 * stop, and then ends after its current turn. A thread that waits for the lock when `stop` comes
 * still takes its turn: others end too, so it gets one.
 *
 * The records belong to their threads until these are joined.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "records.h"

#define PAUSE_AFTER_ERROR_US 10000

struct task {
    struct run *run;
    void *place;
    struct records *records;
    pthread_barrier_t *start;
    pthread_t thread;
};

static void take_turn(struct task *task)
{
    struct record record;
    char problem[PROBLEM_SIZE] = "";
    record.asked_ns = now_ns();
    enum outcome outcome = backend.acquire(task->place, problem);
    record.entered_ns = now_ns();
    if (outcome == GOT) {
        sleep_us(task->run->settings->section_us);
        record.leaving_ns = now_ns();
        bool released = backend.release(task->place, problem);
        record.released_ns = now_ns();
        records_add(task->records, &record);
        outcome = released ? GOT : FAILED;
    }
    if (outcome == REFUSED)
        task->records->refused++;
    if (outcome == FAILED) {
        records_error(task->records, problem);
        sleep_us(PAUSE_AFTER_ERROR_US);
    }
}

static void *work(void *arg)
{
    struct task *task = arg;
    pthread_barrier_wait(task->start);
    while (!atomic_load(&task->run->stopped)) {
        take_turn(task);
        sleep_us(task->run->settings->pause_us);
    }
    return NULL;
}

static bool open_places(struct run *run, struct task *tasks, char *problem)
{
    const struct settings *settings = run->settings;
    for (int i = 0; i < settings->tasks; i++) {
        char lock[LOCK_NAME_SIZE];
        if (settings->own_locks)
            snprintf(lock, sizeof lock, "%s-%d", settings->lock, i);
        else
            snprintf(lock, sizeof lock, "%s", settings->lock);
        tasks[i].place = backend.place_open(run->session, lock, problem);
        if (tasks[i].place == NULL)
            return false;
    }
    return true;
}

/* Tasks that cannot be started leave the barrier short, so this is the end of the process. */
static bool start_threads(struct run *run, struct task *tasks, struct records *records,
                          pthread_barrier_t *start, char *problem)
{
    for (int i = 0; i < run->settings->tasks; i++) {
        tasks[i].run = run;
        tasks[i].records = &records[i];
        tasks[i].start = start;
        if (pthread_create(&tasks[i].thread, NULL, work, &tasks[i]) != 0) {
            problem_set(problem, "cannot start a thread");
            return false;
        }
    }
    return true;
}

static int run_threads(struct run *run, struct task *tasks, struct records *records)
{
    const struct settings *settings = run->settings;
    pthread_barrier_t start;
    char problem[PROBLEM_SIZE] = "";
    pthread_barrier_init(&start, NULL, (unsigned)settings->tasks + 1);
    if (!open_places(run, tasks, problem) || !start_threads(run, tasks, records, &start, problem)) {
        fprintf(stderr, "%s\n", problem);
        exit(1);
    }
    atomic_store(&run->stopped, !wait_for_go());
    pthread_barrier_wait(&start);
    if (!atomic_load(&run->stopped))
        wait_for_stop(run);
    for (int i = 0; i < settings->tasks; i++) {
        pthread_join(tasks[i].thread, NULL);
        backend.place_close(tasks[i].place);
    }
    pthread_barrier_destroy(&start);
    if (!records_write(records, settings->tasks, settings->records)) {
        fprintf(stderr, "cannot write %s\n", settings->records);
        return 1;
    }
    records_tell(records, settings->tasks);
    return 0;
}

int run_pairs(struct run *run)
{
    size_t count = (size_t)run->settings->tasks;
    struct task *tasks = calloc(count, sizeof *tasks);
    struct records *records = calloc(count, sizeof *records);
    int code = 1;
    if (tasks != NULL && records != NULL)
        code = run_threads(run, tasks, records);
    if (records != NULL)
        records_free(records, (int)count);
    free(tasks);
    return code;
}
