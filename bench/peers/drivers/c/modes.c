/* SPDX-License-Identifier: MIT
 *
 * The modes that are no loop of pairs.
 *
 *   hold    takes --tasks locks, one after the other, says `held`, and counts at the end which of
 *           them are lost
 *   die     takes the lock, says `held`, and is there to be killed
 *   queue   waits for the lock once, says `granted` and when, and releases it; with several tasks
 *           each waits for itself
 *   ids     takes ids until it is stopped
 *
 * These processes are killed or end soon: what they hold is closed with them.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "driver.h"

static int fail(const char *problem)
{
    fprintf(stderr, "%s\n", problem);
    return 1;
}

static void say(const char *word)
{
    puts(word);
    fflush(stdout);
}

static bool hold_all(struct run *run, void **places, char *problem)
{
    for (int i = 0; i < run->settings->tasks; i++) {
        char lock[LOCK_NAME_SIZE];
        snprintf(lock, sizeof lock, "%s-%d", run->settings->lock, i);
        places[i] = backend.place_open(run->session, lock, problem);
        if (places[i] == NULL || backend.acquire(places[i], problem) != GOT)
            return false;
    }
    return true;
}

int run_hold(struct run *run)
{
    char problem[PROBLEM_SIZE] = "a lock is not free";
    int count = run->settings->tasks, lost = 0;
    void **places = calloc((size_t)count, sizeof *places);
    if (places == NULL || !wait_for_go())
        return 1;
    if (!hold_all(run, places, problem))
        return fail(problem);
    say("held");
    wait_for_stop(run);
    for (int i = 0; i < count; i++) {
        lost += !backend.release(places[i], problem);
        backend.place_close(places[i]);
    }
    printf("{\"held\": %d, \"lost\": %d}\n", count, lost);
    free(places);
    return 0;
}

int run_die(struct run *run)
{
    char problem[PROBLEM_SIZE] = "the lock is not free";
    void *place = backend.place_open(run->session, run->settings->lock, problem);
    if (place == NULL)
        return fail(problem);
    if (!wait_for_go() || backend.acquire(place, problem) != GOT)
        return fail(problem);
    say("held");
    wait_for_stop(run);
    backend.release(place, problem);
    backend.place_close(place);
    return 0;
}

static void *queue_once(void *arg)
{
    char problem[PROBLEM_SIZE] = "refused";
    if (backend.acquire(arg, problem) == GOT) {
        printf("granted %" PRId64 "\n", now_ns());
        fflush(stdout);
        backend.release(arg, problem);
    } else {
        fprintf(stderr, "%s\n", problem);
    }
    return NULL;
}

static bool start_queue(struct run *run, void **places, pthread_t *threads)
{
    for (int i = 0; i < run->settings->tasks; i++)
        if (pthread_create(&threads[i], NULL, queue_once, places[i]) != 0)
            return false;
    return true;
}

int run_queue(struct run *run)
{
    char problem[PROBLEM_SIZE] = "cannot start";
    size_t count = (size_t)run->settings->tasks;
    void **places = calloc(count, sizeof *places);
    pthread_t *threads = calloc(count, sizeof *threads);
    if (places == NULL || threads == NULL)
        return fail(problem);
    for (size_t i = 0; i < count; i++)
        if ((places[i] = backend.place_open(run->session, run->settings->lock, problem)) == NULL)
            return fail(problem);
    if (!wait_for_go() || !start_queue(run, places, threads))
        return fail(problem);
    for (size_t i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
        backend.place_close(places[i]);
    }
    free(places);
    free(threads);
    return 0;
}

static void *listen_for_stop(void *arg)
{
    wait_for_stop(arg);
    return NULL;
}

int run_ids(struct run *run)
{
    char problem[PROBLEM_SIZE] = "";
    pthread_t listener;
    uint64_t ids = 0, taken = 1;
    if (!wait_for_go() || pthread_create(&listener, NULL, listen_for_stop, run) != 0)
        return 1;
    int64_t start_ns = now_ns();
    while (taken > 0 && !atomic_load(&run->stopped)) {
        taken = backend.take_ids(run->session, problem);
        ids += taken;
    }
    double seconds = (double)(now_ns() - start_ns) / 1e9;
    if (taken == 0)
        return fail(problem);
    pthread_join(listener, NULL);
    printf("{\"ids\": %" PRIu64 ", \"seconds\": %.6f}\n", ids, seconds);
    return 0;
}
