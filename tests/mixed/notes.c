/* SPDX-License-Identifier: MIT */
/* What a worker writes down. Beliefs claim neither more nor less than a user could: a hold begins
 * when the call that granted it has returned; its deadline is what hf_remaining_ms() says, counted
 * from before that question; it ends at the deadline, or before the call that releases it. */
#include <string.h>

#include "worker.h"

enum { LIE_PER_MILLE = 5, LIE_US = 3000000 };

void count_one(struct party *party, enum count_kind kind)
{
    (void)atomic_fetch_add(&party->board->counts[party->side][kind], 1);
}

/* Everything that kills and pauses of processes and silent servers cannot cause is a finding. */
void note_status(struct party *party, const char *call, hf_status status, const hf_error *error)
{
    bool ordinary = (status >= HF_OK && status <= HF_EUNAVAILABLE) || status == HF_ENOTHELD;
    if (!ordinary)
        complain(party->board, "%s of the %s side returned %s: %s", call, side_name(party->side),
                 hf_status_name(status), error != NULL ? error->text : "");
}

struct record note_begin(struct worker *worker, uint32_t lock, enum how how, int64_t asked_ns)
{
    int64_t now = now_ns();
    return (struct record){.belief = {.lock = lock,
                                      .client = worker->number,
                                      .hold = ++worker->holds,
                                      .from_ns = now,
                                      .until_ns = now},
                           .asked_ns = asked_ns,
                           .side = worker->party->side,
                           .how = how};
}

void note(struct worker *worker, const struct record *record)
{
    if (!ledger_write(worker->party->ledger, record, sizeof(*record)))
        complain(worker->party->board, "the ledger cannot be written");
}

static uint64_t lie_about(struct worker *worker, uint64_t fence)
{
    bool lies =
        worker->party->fences_lie && chance_between(&worker->chance, 1, 1000) <= LIE_PER_MILLE;
    return lies ? fence - LIE_US : fence;
}

void note_granted(struct worker *worker, struct tenure *tenure)
{
    tenure->record.fence = lie_about(worker, hf_fence(tenure->hold));
    if (tenure->record.fence == 0)
        complain(worker->party->board, "a grant has no fence");
    (void)note_deadline(worker, tenure);
}

bool note_deadline(struct worker *worker, struct tenure *tenure)
{
    struct record *record = &tenure->record;
    int64_t asked_ns = now_ns();
    int64_t remaining_ms = hf_remaining_ms(tenure->hold);
    int64_t until_ns = asked_ns + remaining_ms * MS_NS;
    if (remaining_ms > 0 && until_ns > record->belief.until_ns)
        record->belief.until_ns = until_ns;
    note(worker, record);
    return remaining_ms > 0;
}

void note_release(struct worker *worker, struct tenure *tenure)
{
    struct record *record = &tenure->record;
    record->released_ns = now_ns();
    if (record->released_ns < record->belief.until_ns)
        record->belief.until_ns = record->released_ns;
    note(worker, record);
}
