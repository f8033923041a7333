/* SPDX-License-Identifier: MIT */
/* A client process: one session after the other until the run is over. A session opens a client,
 * lets its threads share it for a while, and closes it, sometimes with holds that are still live,
 * in whatever weather there is. Every session must give back its descriptors.
 *
 * The process's first thread fires the cancels that the workers planned. It holds the mutex while
 * it does, because the worker frees its cancel as soon as its call has returned.
 */
#include "client.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "../lib/process.h"
#include "ticker.h"

static void fire_due_cancels(struct party *party)
{
    int64_t now = now_ns();
    (void)pthread_mutex_lock(&party->mutex);
    for (int i = 0; i < THREADS; i++) {
        struct planned_cancel *planned = &party->planned[i];
        if (planned->cancel != NULL && now >= planned->fire_at_ns) {
            hf_cancel_fire(planned->cancel);
            planned->cancel = NULL;
        }
    }
    (void)pthread_mutex_unlock(&party->mutex);
}

static void serve_cancels(struct party *party, atomic_int *running)
{
    while (atomic_load(running) > 0) {
        fire_due_cancels(party);
        sleep_ms(2);
    }
}

struct running_worker {
    struct worker worker;
    atomic_int *running;
};

static void *run_worker(void *arg)
{
    struct running_worker *running = arg;
    (void)worker_run(&running->worker);
    (void)atomic_fetch_sub(running->running, 1);
    return NULL;
}

static void session(struct party *party, struct running_worker workers[THREADS])
{
    atomic_int running = THREADS;
    party->session_until_ns = now_ns() + chance_between(&party->chance, 500, 4000) * MS_NS;
    for (int i = 0; i < THREADS; i++) {
        workers[i].running = &running;
        workers[i].worker.left = NULL;
        if (pthread_create(&workers[i].worker.thread, NULL, run_worker, &workers[i]) != 0)
            _exit(1);
    }
    serve_cancels(party, &running);
    for (int i = 0; i < THREADS; i++)
        (void)pthread_join(workers[i].worker.thread, NULL);
}

static void sessions(struct party *party, struct running_worker workers[THREADS])
{
    struct board *board = party->chaos->board;
    while (!atomic_load(&board->stop)) {
        int descriptors = open_descriptors();
        if (!call_open(party))
            return;
        session(party, workers);
        call_close(party);
        for (int i = 0; i < THREADS; i++)
            call_release_left(&workers[i].worker);
        int left_open = open_descriptors() - descriptors;
        if (left_open != 0)
            complain(board, "a closed client left %d descriptors", left_open);
        (void)atomic_fetch_add(&board->sessions, 1);
    }
}

static bool open_files(struct party *party)
{
    party->ledger = ledger_open(party->chaos->folder);
    bool all = party->ledger >= 0;
    for (int i = 0; i < LOCKS; i++) {
        char path[128];
        (void)snprintf(path, sizeof(path), "%s/counter-%d", party->chaos->folder, i);
        party->counters[i] = open(path, O_RDWR | O_CLOEXEC);
        all = all && party->counters[i] >= 0;
    }
    return all;
}

void client_run(const struct chaos *chaos, int slot, uint32_t number)
{
    static struct party party;
    static struct running_worker workers[THREADS];
    party = (struct party){
        .chaos = chaos, .slot = slot, .chance = chance_for(chaos->seed, number * 16)};
    (void)pthread_mutex_init(&party.mutex, NULL);
    for (int i = 0; i < THREADS; i++) {
        uint32_t worker_number = number * 16 + 1 + (uint32_t)i;
        workers[i].worker = (struct worker){.party = &party,
                                            .index = i,
                                            .number = worker_number,
                                            .chance = chance_for(chaos->seed, worker_number)};
    }
    if (!open_files(&party) || !ticker_start())
        complain(chaos->board, "a client process cannot start");
    else
        sessions(&party, workers);
}
