/* SPDX-License-Identifier: MIT */
/* What a thread does in a calm run, in which nobody is killed and times are compared: either all
 * queue for one lock, which shows how long it takes to hand over; or each takes free locks of many
 * names, which were last held by somebody of either side. */
#include <stdio.h>

#include "worker.h"

static void hold_for_a_moment(struct worker *worker, uint32_t lock, enum how how)
{
    struct tenure tenure = {0};
    hf_error error;
    char name[16];
    lock_name(name, lock);
    int64_t asked_ns = now_ns();
    hf_status status = hf_acquire(
        worker->party->client, name,
        HF_ACQUIRE(.lease_ms = LEASE_MOST_MS, .wait_ms = how == HOW_QUEUED ? WAIT_MOST_MS : 0),
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

void *queue_run(void *arg)
{
    struct worker *worker = arg;
    while (!is_over(worker))
        hold_for_a_moment(worker, CALM_LOCK, HOW_QUEUED);
    return NULL;
}

void *names_run(void *arg)
{
    struct worker *worker = arg;
    while (!is_over(worker)) {
        uint32_t lock = (uint32_t)chance_between(&worker->chance, 0, CALM_NAMES_MOST - 1);
        hold_for_a_moment(worker, CALM_NAMES + lock, HOW_TRIED);
    }
    return NULL;
}
