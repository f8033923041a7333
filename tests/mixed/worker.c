/* SPDX-License-Identifier: MIT */
/* holdfast-mixed-old, holdfast-mixed-new: a process of one side of a mixed run. The driver starts
 * it:
 *
 *     holdfast-mixed-<side> MODE URL FOLDER SIDE NUMBER SEED [lie]
 *
 * It opens one client after the other until the board says stop. In a storm each has an observer
 * and a few threads, lives for a few seconds, and is closed in whatever weather there is. In a
 * run without faults there is one client, and one thread unless there is a rush. "lie" is sabotage:
 * some fences are written down smaller than they are. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker.h"

/* ---- The observer ---------------------------------------------------------------------------- */

/* Runs on one thread. The beginnings of labels tell the sides apart. */
static void see(void *arg, const hf_sight *sight)
{
    struct party *party = arg;
    if (sight->kind != HF_SEEN_GRANTED && sight->kind != HF_SEEN_HELD)
        return;
    if (strncmp(sight->who.label, "old ", 4) == 0)
        count_one(party, COUNT_SAW_OLD);
    if (strncmp(sight->who.label, "new ", 4) == 0)
        count_one(party, COUNT_SAW_NEW);
    if (sight->fence < party->seen_fence)
        complain(party->board, "an observer of the %s side saw a fence go back: %llu, then %llu",
                 side_name(party->side), (unsigned long long)party->seen_fence,
                 (unsigned long long)sight->fence);
    party->seen_fence = sight->fence;
}

static hf_observer *begin_to_observe(struct party *party)
{
    hf_observer *observer = NULL;
    hf_error error;
    char name[16];
    lock_name(name, (uint32_t)chance_between(&party->chance, 0, LOCKS - 1));
    party->seen_fence = 0;
    hf_status status = hf_observe(party->client, name, 0, see, party, &observer, &error);
    note_status(party, "hf_observe", status, &error);
    return observer;
}

/* ---- Sessions -------------------------------------------------------------------------------- */

static bool open_client(struct party *party, int turns)
{
    hf_error error;
    hf_status status = hf_open(party->url,
                               HF_CLIENT(.prefix = MIXED_PREFIX, .max_lease_ms = LEASE_MOST_MS,
                                         .call_timeout_ms = CALL_TIMEOUT_MS, .local_turns = turns,
                                         .durable_servers = true),
                               &party->client, &error);
    note_status(party, "hf_open", status, &error);
    return status == HF_OK;
}

static void close_client(struct party *party)
{
    hf_stats stats;
    if (hf_stats_read(party->client, &stats) == HF_OK) {
        atomic_llong *counts = party->board->counts[party->side];
        (void)atomic_fetch_add(&counts[COUNT_TURNS], (long long)stats.turns);
        (void)atomic_fetch_add(&counts[COUNT_RENEWALS], (long long)stats.renewals);
    }
    note_status(party, "hf_close", hf_close(party->client), NULL);
    party->client = NULL;
    count_one(party, COUNT_SESSIONS);
}

static void start(struct worker *worker, void *(*run)(void *))
{
    if (pthread_create(&worker->thread, NULL, run, worker) != 0)
        exit(1);
}

static void join(struct worker *workers, int count)
{
    for (int i = 0; i < count; i++)
        (void)pthread_join(workers[i].thread, NULL);
}

/* The last worker is the one that meddles. */
static void storm(struct party *party, struct worker workers[THREADS + 1])
{
    static const int local_turns[] = {0, 3, HF_LOCAL_TURNS_MAX, -1};
    while (!atomic_load(&party->board->stop) &&
           open_client(party, local_turns[chance_between(&party->chance, 0, 3)])) {
        party->session_until_ns = now_ns() + chance_between(&party->chance, 1000, 6000) * MS_NS;
        party->brisk = chance_percent(&party->chance, 30);
        hf_observer *observer = begin_to_observe(party);
        for (int i = 0; i <= THREADS; i++)
            start(&workers[i], i < THREADS ? storm_run : meddler_run);
        join(workers, THREADS + 1);
        hf_observe_end(&observer);
        close_client(party);
    }
}

static void calm(struct party *party, struct worker *workers, int threads, void *(*run)(void *))
{
    if (!open_client(party, threads > 1 ? HF_LOCAL_TURNS_MAX : 0))
        return;
    party->session_until_ns = INT64_MAX;
    for (int i = 0; i < threads; i++)
        start(&workers[i], run);
    join(workers, threads);
    close_client(party);
}

/* ---- The program ----------------------------------------------------------------------------- */

static struct party read_party(int count, char **words)
{
    struct party party = {.url = words[2],
                          .folder = words[3],
                          .side = strcmp(words[4], side_name(SIDE_OLD)) == 0 ? SIDE_OLD : SIDE_NEW,
                          .number = (uint32_t)strtoul(words[5], NULL, 10),
                          .seed = strtoull(words[6], NULL, 10),
                          .fences_lie = count > 7 && strcmp(words[7], "lie") == 0};
    party.board = board_map(party.folder, false);
    party.ledger = ledger_open(party.folder);
    party.chance = chance_for(party.seed, worker_number(party.number, 0));
    return party;
}

int main(int count, char **words)
{
    static struct party party;
    static struct worker workers[THREADS + 1];
    if (count < 7)
        return 2;
    party = read_party(count, words);
    if (party.board == NULL || party.ledger < 0)
        return 2;
    for (uint32_t i = 0; i <= THREADS; i++) {
        uint32_t number = worker_number(party.number, 1 + i);
        workers[i] = (struct worker){
            .party = &party, .number = number, .chance = chance_for(party.seed, number)};
    }
    if (strcmp(words[1], MODE_QUEUE) == 0)
        calm(&party, workers, 1, queue_run);
    else if (strcmp(words[1], MODE_NAMES) == 0)
        calm(&party, workers, 1, names_run);
    else if (strcmp(words[1], MODE_RUSH) == 0)
        calm(&party, workers, THREADS, rush_run);
    else
        storm(&party, workers);
    return 0;
}
