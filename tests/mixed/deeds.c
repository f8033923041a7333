/* SPDX-License-Identifier: MIT */
/* What a thread does in a storm: takes a lock in one of the ways that there are, works, re-enters,
 * gives it back, or lets go of it by a token. One more thread of each process meddles with the
 * locks of others: revokes, breaks, inspects. Everything by chance.
 *
 * A worker sometimes stops its own process at a narrow moment: before it asks, right after a grant,
 * before it releases. The driver finds it stopped, and lets it go on later, often after the lease.
 */
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "worker.h"

enum { STOP_PER_MILLE = 2, STEPS_MOST = 4, NAP_MOST_MS = 10, MEDDLE_PAUSE_MS = 50 };

bool is_over(const struct worker *worker)
{
    const struct party *party = worker->party;
    return atomic_load(&party->board->stop) || now_ns() >= party->session_until_ns;
}

void nap(struct worker *worker, int most_ms)
{
    const struct timespec rest = {.tv_nsec = chance_between(&worker->chance, 0, most_ms) * MS_NS};
    (void)nanosleep(&rest, NULL);
}

void perhaps_stop(struct worker *worker)
{
    bool stopping = atomic_load(&worker->party->board->stop);
    if (!stopping && chance_between(&worker->chance, 1, 1000) <= STOP_PER_MILLE)
        (void)kill(getpid(), SIGSTOP);
}

void lock_name(char name[16], uint32_t lock)
{
    (void)snprintf(name, 16, "lock-%u", lock);
}

static void listen_to(void *arg, const hf_event *event)
{
    struct party *party = arg;
    if (event->reason == HF_REASON_REVOKED)
        count_one(party, COUNT_REVOKED);
    else if (event->state == HF_LOST)
        count_one(party, COUNT_LOST);
}

/* ---- Taking a lock --------------------------------------------------------------------------- */

/* Most queue, some of them strictly in order. Equal leases pass a lock on between threads. */
static enum how wish(struct worker *worker, hf_acquire_options *options)
{
    struct chance *chance = &worker->chance;
    bool brisk = worker->party->brisk;
    int kind = brisk ? 50 : chance_between(chance, 0, 99);
    *options = (hf_acquire_options){.size = sizeof(*options)};
    options->lease_ms = brisk || chance_percent(chance, 75)
                            ? LEASE_USUAL_MS
                            : chance_between(chance, LEASE_LEAST_MS, LEASE_MOST_MS);
    options->no_renewal = !brisk && chance_percent(chance, 15);
    options->arg = worker->party;
    if (chance_percent(chance, 50))
        options->on_event = listen_to;
    if (kind < 15)
        return HOW_TRIED;
    options->wait_ms = WAIT_MOST_MS;
    if (kind < 60)
        return HOW_QUEUED;
    if (kind < 85) {
        options->fair = true;
        return HOW_FAIR;
    }
    options->retry_interval_ms = chance_between(chance, 10, 50);
    options->wait_ms = chance_between(chance, 10, 1000);
    return HOW_POLLED;
}

/* An owner that both sides know; the judge knows its holds as one party. */
static uint64_t wish_owner(struct worker *worker, hf_acquire_options *options)
{
    static const char *const owners[OWNERS] = {"order-1", "order-2"};
    if (worker->party->brisk || !chance_percent(&worker->chance, 20))
        return 0;
    int which = chance_between(&worker->chance, 1, OWNERS);
    options->owner = owners[which - 1];
    return (uint64_t)which;
}

/* No two holds have the same label: on a quorum hf_break() may take a hold of the same thread and
 * label, that follows at once, for the one that it breaks (holdfast.h). */
static void label_hold(const struct worker *worker, char label[HF_LABEL_MAX + 1])
{
    (void)snprintf(label, HF_LABEL_MAX + 1, "%s %u.%llu", side_name(worker->party->side),
                   worker->number, (unsigned long long)worker->holds);
}

static bool take(struct worker *worker, struct tenure *tenure, uint32_t lock)
{
    hf_acquire_options options;
    hf_error error;
    char name[16];
    char label[HF_LABEL_MAX + 1];
    lock_name(name, lock);
    label_hold(worker, label);
    enum how how = wish(worker, &options);
    options.label = label;
    uint64_t owner = wish_owner(worker, &options);
    int64_t asked_ns = now_ns();
    hf_status status = hf_acquire(worker->party->client, name, &options, &tenure->hold, &error);
    note_status(worker->party, "hf_acquire", status, &error);
    if (status != HF_OK) {
        struct record vain = note_begin(worker, lock, HOW_GAVE_UP, asked_ns);
        if (how == HOW_QUEUED || how == HOW_FAIR)
            note(worker, &vain);
        return false;
    }
    tenure->record = note_begin(worker, lock, owner != 0 ? HOW_JOINED : how, asked_ns);
    tenure->record.belief.party = owner;
    tenure->lease_ms = options.lease_ms;
    note_granted(worker, tenure);
    return true;
}

/* ---- Holding it ------------------------------------------------------------------------------ */

/* The thread gets its own lock again, without a message, unless the hold has ended meanwhile. */
static void reenter(struct worker *worker, struct tenure *tenure)
{
    struct party *party = worker->party;
    hf_hold *again = NULL;
    hf_error error;
    char name[16];
    bool own = tenure->record.belief.party == 0 && tenure->record.how != HOW_ATTACHED;
    if (!own || !chance_percent(&worker->chance, 15))
        return;
    lock_name(name, tenure->record.belief.lock);
    hf_status status = hf_acquire(party->client, name, NULL, &again, &error);
    bool still_valid = hf_is_valid(tenure->hold);
    note_status(party, "hf_acquire, again", status, &error);
    if (still_valid && (status != HF_OK || hf_fence(again) != hf_fence(tenure->hold)))
        complain(party->board, "a thread of the %s side did not re-enter its own lock: %s",
                 side_name(party->side), error.text);
    if (status == HF_OK)
        count_one(party, COUNT_REENTRIES);
    (void)hf_release(&again, &error);
}

/* Half of the holds end at once; some go on for two leases. Those of owners wait for company. */
static void work(struct worker *worker, struct tenure *tenure)
{
    struct chance *chance = &worker->chance;
    bool stays = chance_percent(chance, 1);
    int64_t stays_until_ns = now_ns() + (stays ? 2 * tenure->lease_ms * MS_NS : 0);
    bool shared = tenure->record.belief.party != 0;
    bool brief = worker->party->brisk || (!shared && chance_percent(chance, 50));
    int steps = brief ? 0 : chance_between(chance, 1, STEPS_MOST);
    while ((steps-- > 0 || now_ns() < stays_until_ns) && note_deadline(worker, tenure) &&
           !is_over(worker))
        nap(worker, NAP_MOST_MS);
}

static void give_back(struct worker *worker, struct tenure *tenure)
{
    struct party *party = worker->party;
    hf_error error;
    bool waits = chance_percent(&worker->chance, 70);
    note_release(worker, tenure);
    bool was_valid = hf_is_valid(tenure->hold);
    hf_status status = waits ? hf_release(&tenure->hold, &error) : hf_release_nowait(&tenure->hold);
    note_status(party, "hf_release", status, waits ? &error : NULL);
    if (!was_valid && status == HF_OK)
        complain(party->board, "the %s side released a hold that was over, and heard HF_OK",
                 side_name(party->side));
}

/* ---- The locks of others --------------------------------------------------------------------- */

/* What is broken may be the lock of anybody who has asked by then: the judge must know when. */
static void break_it(struct worker *worker, uint32_t lock, const char *name)
{
    struct party *party = worker->party;
    hf_error error;
    struct record broken = note_begin(worker, lock, HOW_BROKE, now_ns());
    broken.belief.until_ns += (CALL_TIMEOUT_MS + LEASE_MOST_MS) * MS_NS;
    note(worker, &broken);
    hf_status status = hf_break(party->client, name, 0, &broken.fence, &error);
    int64_t now = now_ns();
    note_status(party, "hf_break", status, &error);
    if (status == HF_OK)
        count_one(party, COUNT_BREAKS);
    if (status == HF_OK)
        broken.belief.until_ns = now;
    else if (status == HF_ENOTHELD)
        broken.belief.until_ns = broken.belief.from_ns;
    else
        broken.belief.until_ns = now + LEASE_MOST_MS * MS_NS;
    broken.fence = status == HF_OK ? broken.fence : 0;
    note(worker, &broken);
}

static void inspect(struct worker *worker, const char *name)
{
    static _Thread_local hf_inspection seen;
    struct party *party = worker->party;
    hf_error error;
    hf_status status = hf_inspect(party->client, name, 0, &seen, &error);
    note_status(party, "hf_inspect", status, &error);
    if (status == HF_OK && seen.held && seen.fence == 0)
        complain(party->board, "the %s side inspected a lock that is held and has no fence",
                 side_name(party->side));
}

static void ask_for(struct worker *worker, const char *name)
{
    hf_error error;
    hf_status status = hf_revoke(worker->party->client, name, 0, "others wait", &error);
    note_status(worker->party, "hf_revoke", status, &error);
    if (status == HF_OK)
        count_one(worker->party, COUNT_REVOKES);
}

void *meddler_run(void *arg)
{
    struct worker *worker = arg;
    char name[16];
    while (!is_over(worker)) {
        uint32_t lock = (uint32_t)chance_between(&worker->chance, 0, LOCKS - 1);
        int what = chance_between(&worker->chance, 0, 99);
        lock_name(name, lock);
        if (what < 2)
            break_it(worker, lock, name);
        else if (what < 15)
            ask_for(worker, name);
        else if (what < 40)
            inspect(worker, name);
        nap(worker, MEDDLE_PAUSE_MS);
    }
    return NULL;
}

/* ---- All of it ------------------------------------------------------------------------------- */

/* Often all threads of a process want the same lock; a process of the other side wants it, too, as
 * long as neither was replaced. */
static uint32_t choose_lock(struct worker *worker)
{
    bool usual = worker->party->brisk || chance_percent(&worker->chance, 60);
    uint32_t home = worker->party->number / SIDES % LOCKS;
    return usual ? home : (uint32_t)chance_between(&worker->chance, 0, LOCKS - 1);
}

static bool get_some_lock(struct worker *worker, struct tenure *tenure)
{
    uint32_t lock = choose_lock(worker);
    return (chance_percent(&worker->chance, 30) && token_take(worker, tenure, lock)) ||
           take(worker, tenure, lock);
}

void *storm_run(void *arg)
{
    struct worker *worker = arg;
    struct tenure tenure = {0};
    while (!is_over(worker)) {
        perhaps_stop(worker);
        if (get_some_lock(worker, &tenure)) {
            perhaps_stop(worker);
            reenter(worker, &tenure);
            work(worker, &tenure);
            perhaps_stop(worker);
            if (chance_percent(&worker->chance, 5))
                token_leave(worker, &tenure);
            else
                give_back(worker, &tenure);
        }
        if (!worker->party->brisk && chance_percent(&worker->chance, 50))
            nap(worker, NAP_MOST_MS);
    }
    return NULL;
}
