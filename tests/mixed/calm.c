/* SPDX-License-Identifier: MIT */
/* What a thread does in a run without faults. In a rush many threads want one lock, with different
 * leases. Otherwise times are compared: either all queue for one lock, which shows how long it
 * takes to hand over; or each takes free locks of many names, which were last held by somebody of
 * either side. */
#include <stdio.h>

#include "worker.h"

enum { RUSH_MOMENT_MS = 100 };

static void hold_for_a_moment(struct worker *worker, uint32_t lock, int64_t lease_ms, enum how how)
{
    struct tenure tenure = {0};
    hf_error error;
    char name[16];
    lock_name(name, lock);
    int64_t asked_ns = now_ns();
    hf_status status = hf_acquire(
        worker->party->client, name,
        HF_ACQUIRE(.lease_ms = lease_ms, .wait_ms = how == HOW_QUEUED ? WAIT_MOST_MS : 0),
        &tenure.hold, &error);
    note_status(worker->party, "hf_acquire", status, &error);
    if (status != HF_OK)
        return;
    tenure.record = note_begin(worker, lock, how, asked_ns);
    note_granted(worker, &tenure);
    note_release(worker, &tenure);
    status = hf_release(&tenure.hold, &error);
    tenure.record.done_ns = now_ns();
    note(worker, &tenure.record);
    note_status(worker->party, "hf_release", status, &error);
}

/* Only equal leases pass a lock on: here each grant is the server's. In every other moment one
 * thread of each process tries alone, so that the lock is free in between, and its fence may be
 * forgotten.
 */
void *rush_run(void *arg)
{
    struct worker *worker = arg;
    int64_t lease_ms = LEASE_MOST_MS - worker->number % 16;
    while (!is_over(worker)) {
        bool crowded = now_ns() / (RUSH_MOMENT_MS * MS_NS) % 2 == 0;
        if (crowded)
            hold_for_a_moment(worker, CALM_LOCK, lease_ms, HOW_QUEUED);
        else if (worker->number % 16 == 1)
            hold_for_a_moment(worker, CALM_LOCK, lease_ms, HOW_TRIED);
        if (!crowded)
            nap(worker, 5);
    }
    return NULL;
}

void *queue_run(void *arg)
{
    struct worker *worker = arg;
    while (!is_over(worker))
        hold_for_a_moment(worker, CALM_LOCK, LEASE_MOST_MS, HOW_QUEUED);
    return NULL;
}

void *names_run(void *arg)
{
    struct worker *worker = arg;
    while (!is_over(worker)) {
        uint32_t lock = (uint32_t)chance_between(&worker->chance, 0, CALM_NAMES_MOST - 1);
        hold_for_a_moment(worker, CALM_NAMES + lock, LEASE_MOST_MS, HOW_TRIED);
    }
    return NULL;
}
