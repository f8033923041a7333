/* SPDX-License-Identifier: MIT */
/* The calls of the library, each with a watch on it: which status it returned, and by how much it
 * missed the bound that the header gives it, less the time that was taken from the process.
 *
 * Beliefs are taken with care to claim neither more nor less than a user could. A hold begins when
 * hf_acquire() has returned. Its deadline is what hf_remaining_ms() says, counted from before that
 * question. It ends at the deadline, or before the call that releases it.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client.h"
#include "ticker.h"

/* Whoever names it shares; the judge knows them as one party. */
#define SHARED_OWNER "chaos-owner"
enum { SHARED_PARTY = 1 };

struct watch {
    enum call_kind kind;
    int64_t bound_ms;
    int64_t started_ns;
    int64_t lost_ns;
};

static struct watch watch_begin(enum call_kind kind, int64_t bound_ms)
{
    return (struct watch){
        .kind = kind, .bound_ms = bound_ms, .lost_ns = ticker_lost_ns(), .started_ns = now_ns()};
}

/* Everything that faults of servers, networks and processes cannot cause is a finding. Only what
 * was left to hf_close() may be closed. */
static bool is_surprise(enum call_kind kind, hf_status status)
{
    bool release = kind == CALL_RELEASE || kind == CALL_RELEASE_NOWAIT;
    if (status == HF_ENOTHELD)
        return kind != CALL_REVOKE;
    return status < HF_OK || status > HF_ECANCELLED ? status != HF_ECLOSED || !release : false;
}

static bool is_consistent(const hf_error *error, hf_status status)
{
    return error == NULL ||
           (error->status == status && (error->text[0] == '\0') == (status == HF_OK));
}

static void watch_end(struct board *board, const struct watch *watch, hf_status status,
                      const hf_error *error)
{
    const char *text = error != NULL ? error->text : "";
    static const char *const names[] = {
#define CALL_NAME(name, text) text,
        CALL_MAP(CALL_NAME)};
    int64_t took = now_ns() - watch->started_ns;
    int64_t lost = ticker_lost_ns() - watch->lost_ns;
    int64_t excess = took - watch->bound_ms * MS_NS - (lost > 0 ? lost : 0);
    raise_to(&board->worst_excess_ns[watch->kind], excess);
    if (excess > EXCESS_ALLOWED_MS * MS_NS)
        complain(board, "%s took %lld ms, its bound is %lld ms, %lld ms were taken from it: %s %s",
                 names[watch->kind], (long long)(took / MS_NS), (long long)watch->bound_ms,
                 (long long)(lost / MS_NS), hf_status_name(status), text);
    if (is_surprise(watch->kind, status) || !is_consistent(error, status))
        complain(board, "%s returned %s: %s", names[watch->kind], hf_status_name(status), text);
    if (status >= HF_OK && (int)status < STATUSES)
        (void)atomic_fetch_add(&board->statuses[watch->kind][status], 1);
}

/* ---- The client ------------------------------------------------------------------------------ */

bool call_open(struct party *party)
{
    static const int local_turns[] = {0, 3, HF_LOCAL_TURNS_MAX, -1};
    hf_error error;
    struct chance *chance = &party->chance;
    const struct chaos *chaos = party->chaos;
    const char *url = chance_percent(chance, 50) ? chaos->tcp_url : chaos->unix_url;
    party->call_timeout_ms = chance_between(chance, 300, 2000);
    struct watch watch = watch_begin(CALL_OPEN, 0);
    hf_status status = hf_open(url,
                               HF_CLIENT(.prefix = "chaos:", .max_lease_ms = LEASE_MOST_MS,
                                         .connect_timeout_ms = chance_between(chance, 100, 500),
                                         .reply_timeout_ms = chance_between(chance, 50, 800),
                                         .call_timeout_ms = party->call_timeout_ms,
                                         .local_turns = local_turns[chance_between(chance, 0, 3)],
                                         .links = chance_between(chance, 1, 4)),
                               &party->client, &error);
    watch_end(chaos->board, &watch, status, &error);
    return status == HF_OK;
}

void call_close(struct party *party)
{
    hf_stats stats;
    if (hf_stats_read(party->client, &stats) == HF_OK) {
        (void)atomic_fetch_add(&party->chaos->board->renewed, (long long)stats.renewals);
        (void)atomic_fetch_add(&party->chaos->board->turns, (long long)stats.turns);
    }
    struct watch watch = watch_begin(CALL_CLOSE, party->call_timeout_ms);
    hf_status status = hf_close(party->client);
    watch_end(party->chaos->board, &watch, status, NULL);
    party->client = NULL;
}

/* ---- Beliefs --------------------------------------------------------------------------------- */

static void write_down(struct worker *worker, const struct tenure *tenure)
{
    struct board *board = worker->party->chaos->board;
    const belief *held = &tenure->belief;
    atomic_store(&board->held_until[held->lock], held->until_ns);
    atomic_store(&board->held_by[held->lock], worker->party->slot);
    if (!ledger_write(worker->party->ledger, held, sizeof(*held)))
        complain(board, "the ledger cannot be written");
}

/* The deadline only grows. A hold that is already over adds nothing to what was believed. */
static int64_t believe_until_deadline(struct worker *worker, struct tenure *tenure)
{
    int64_t asked_ns = now_ns();
    int64_t remaining_ms = call_remaining(worker, tenure);
    int64_t until_ns = asked_ns + remaining_ms * MS_NS;
    if (remaining_ms > 0 && until_ns > tenure->belief.until_ns)
        tenure->belief.until_ns = until_ns;
    write_down(worker, tenure);
    return remaining_ms;
}

bool call_is_valid(struct worker *worker, struct tenure *tenure)
{
    bool was_lost = atomic_load(&tenure->listener->lost);
    bool valid = believe_until_deadline(worker, tenure) > 0 && hf_is_valid(tenure->hold);
    if (was_lost && valid)
        complain(worker->party->chaos->board, "a hold is valid after LOST was told");
    return valid;
}

int64_t call_remaining(struct worker *worker, const struct tenure *tenure)
{
    struct board *board = worker->party->chaos->board;
    int64_t remaining_ms = hf_remaining_ms(tenure->hold);
    if (remaining_ms > tenure->longest_lease_ms)
        complain(board, "hf_remaining_ms says %lld, the longest lease was %lld",
                 (long long)remaining_ms, (long long)tenure->longest_lease_ms);
    if (!hf_is_valid(tenure->hold) && (hf_is_valid(tenure->hold) || hf_remaining_ms(tenure->hold)))
        complain(board, "a hold that was over is valid again");
    return remaining_ms;
}

void call_give_up(struct worker *worker, struct tenure *tenure)
{
    int64_t now = now_ns();
    if (now < tenure->belief.until_ns)
        tenure->belief.until_ns = now;
    write_down(worker, tenure);
}

/* ---- Acquire --------------------------------------------------------------------------------- */

struct asked {
    hf_acquire_options options;
    int64_t bound_ms;
    int64_t cancel_after_ms; /* -1: no cancel */
};

/* Most are renewed, at whatever interval; some are left to their lease, some to a limit. */
static void wish_renewal(struct chance *chance, hf_acquire_options *options)
{
    int lease_ms = (int)options->lease_ms;
    options->no_renewal = chance_percent(chance, 30);
    if (!options->no_renewal && chance_percent(chance, 60))
        options->renew_interval_ms = chance_between(chance, 20, lease_ms * 9 / 10);
    if (chance_percent(chance, 30))
        options->renew_timeout_ms = chance_between(chance, 10, lease_ms);
    if (chance_percent(chance, 20))
        options->max_hold_ms = chance_between(chance, 50, 2 * lease_ms);
    if (chance_percent(chance, 30))
        options->warn_ms = chance_between(chance, 1, lease_ms - 1);
    options->no_reentry = chance_percent(chance, 30);
    if (chance_percent(chance, 15))
        options->owner = SHARED_OWNER;
}

/* Most wait in the queue, some of them strictly in order, and some poll. */
static void ask_at_random(struct worker *worker, struct asked *asked)
{
    struct chance *chance = &worker->chance;
    hf_acquire_options *options = &asked->options;
    *asked = (struct asked){.options = {.size = sizeof(*options)}, .cancel_after_ms = -1};
    options->lease_ms = chance_percent(chance, 70) /* only equal ones pass a lock on locally */
                            ? LEASE_USUAL_MS
                            : chance_between(chance, LEASE_LEAST_MS, LEASE_MOST_MS);
    if (chance_percent(chance, 25))
        options->retry_interval_ms = chance_between(chance, 1, 50);
    options->fair = chance_percent(chance, 25);
    wish_renewal(chance, options);
    asked->bound_ms = worker->party->call_timeout_ms;
    int kind = chance_between(chance, 0, 9);
    if (kind < 5) { /* waits */
        options->wait_ms = chance_between(chance, 1, 2500);
        asked->bound_ms = options->wait_ms;
    } else if (kind < 7) { /* some tries; the interval is 10 ms at least */
        options->wait_ms = -1;
        options->max_retries = chance_between(chance, 1, 3);
        options->retry_interval_ms = chance_between(chance, 1, 50);
        asked->bound_ms = (options->max_retries + 1) * asked->bound_ms +
                          options->max_retries * (options->retry_interval_ms + 10);
    } else if (kind < 9) { /* waits until it is cancelled */
        options->wait_ms = -1;
        asked->cancel_after_ms = chance_between(chance, 0, 1500);
        asked->bound_ms = asked->cancel_after_ms;
    }
}

static bool plan_cancel(struct worker *worker, struct asked *asked)
{
    struct party *party = worker->party;
    if (asked->cancel_after_ms < 0)
        return true;
    asked->options.cancel = hf_cancel_new();
    if (asked->options.cancel == NULL)
        return false;
    (void)pthread_mutex_lock(&party->mutex);
    party->planned[worker->index] =
        (struct planned_cancel){asked->options.cancel, now_ns() + asked->cancel_after_ms * MS_NS};
    (void)pthread_mutex_unlock(&party->mutex);
    return true;
}

static void forget_cancel(struct worker *worker, struct asked *asked)
{
    struct party *party = worker->party;
    (void)pthread_mutex_lock(&party->mutex);
    party->planned[worker->index].cancel = NULL;
    (void)pthread_mutex_unlock(&party->mutex);
    hf_cancel_free(asked->options.cancel);
}

static void begin_tenure(struct worker *worker, struct tenure *tenure, uint32_t lock)
{
    int64_t now = now_ns();
    tenure->belief = (belief){.lock = lock,
                              .client = worker->number,
                              .hold = ++worker->holds,
                              .party = tenure->shared ? SHARED_PARTY : 0,
                              .from_ns = now,
                              .until_ns = now};
    believe_until_deadline(worker, tenure);
}

static struct listener *new_listener(struct worker *worker)
{
    struct listener *listener = &worker->listeners[worker->holds % LISTENERS_KEPT];
    listener->board = worker->party->chaos->board;
    atomic_store(&listener->released, false);
    atomic_store(&listener->lost, false);
    return listener;
}

bool call_acquire(struct worker *worker, struct tenure *tenure)
{
    struct board *board = worker->party->chaos->board;
    struct asked asked;
    hf_error error;
    char name[16];
    bool usual = chance_percent(&worker->chance, 60); /* threads of a process want the same */
    int lock = usual ? worker->party->slot % LOCKS : chance_between(&worker->chance, 0, LOCKS - 1);
    lock_name(name, lock);
    ask_at_random(worker, &asked);
    if (!plan_cancel(worker, &asked))
        return false;
    tenure->listener = new_listener(worker);
    asked.options.on_event = listen_to;
    asked.options.arg = tenure->listener;
    tenure->again = NULL;
    tenure->shared = asked.options.owner != NULL;
    tenure->reenters = !tenure->shared && !asked.options.no_reentry;
    bool contended = atomic_load(&board->held_until[lock]) > now_ns();
    struct watch watch = watch_begin(CALL_ACQUIRE, asked.bound_ms);
    hf_status status =
        hf_acquire(worker->party->client, name, &asked.options, &tenure->hold, &error);
    tenure->longest_lease_ms = asked.options.lease_ms;
    if (status == HF_OK)
        begin_tenure(worker, tenure, (uint32_t)lock);
    watch_end(board, &watch, status, &error);
    forget_cancel(worker, &asked);
    if (status == HF_OK && contended)
        (void)atomic_fetch_add(&board->contended, 1);
    if ((status == HF_OK) != (tenure->hold != NULL))
        complain(board, "hf_acquire returned %s and a hold: %d", hf_status_name(status),
                 tenure->hold != NULL);
    return status == HF_OK;
}

/* ---- Extend and release ---------------------------------------------------------------------- */

/* A hold that was over before the call can be neither renewed nor released. */
static void expect_no_revival(struct worker *worker, bool was_valid, hf_status status)
{
    if (!was_valid && status == HF_OK)
        complain(worker->party->chaos->board, "HF_OK for a hold that was over");
}

void call_extend(struct worker *worker, struct tenure *tenure)
{
    hf_error error;
    int64_t lease_ms = chance_percent(&worker->chance, 30)
                           ? 0
                           : chance_between(&worker->chance, LEASE_LEAST_MS, LEASE_MOST_MS);
    if (lease_ms > tenure->longest_lease_ms)
        tenure->longest_lease_ms = lease_ms;
    bool was_valid = hf_is_valid(tenure->hold);
    struct watch watch = watch_begin(CALL_EXTEND, call_remaining(worker, tenure));
    hf_status status = hf_extend(tenure->hold, lease_ms, &error);
    if (status == HF_OK)
        believe_until_deadline(worker, tenure);
    watch_end(worker->party->chaos->board, &watch, status, &error);
    expect_no_revival(worker, was_valid, status);
}

static hf_status release(struct worker *worker, hf_hold **hold)
{
    hf_error error;
    bool waits = chance_percent(&worker->chance, 70);
    struct watch watch = watch_begin(waits ? CALL_RELEASE : CALL_RELEASE_NOWAIT,
                                     waits ? worker->party->call_timeout_ms : 0);
    hf_status status = waits ? hf_release(hold, &error) : hf_release_nowait(hold);
    watch_end(worker->party->chaos->board, &watch, status, waits ? &error : NULL);
    if (*hold != NULL)
        complain(worker->party->chaos->board, "a release left its hold: %s",
                 hf_status_name(status));
    return status;
}

void call_release(struct worker *worker, struct tenure *tenure)
{
    call_give_up(worker, tenure);
    bool was_valid = hf_is_valid(tenure->hold);
    expect_no_revival(worker, was_valid, release(worker, &tenure->hold));
    atomic_store(&tenure->listener->released, true);
}

void call_release_left(struct worker *worker)
{
    if (worker->left == NULL)
        return;
    hf_status status = release(worker, &worker->left);
    if (status != HF_ECLOSED)
        complain(worker->party->chaos->board, "a release after hf_close() says %s",
                 hf_status_name(status));
}

/* ---- Again, and others ----------------------------------------------------------------------- */

/* No message is needed, so its bound is no time at all; unless the hold ends meanwhile, and then it
 * is an acquire like any other, of a lock that nothing is believed about. */
void call_reenter(struct worker *worker, struct tenure *tenure)
{
    struct party *party = worker->party;
    hf_error error;
    char name[16];
    if (!tenure->reenters || !chance_percent(&worker->chance, 30))
        return;
    lock_name(name, (int)tenure->belief.lock);
    struct watch watch = watch_begin(CALL_REENTER, party->call_timeout_ms);
    hf_status status = hf_acquire(party->client, name, NULL, &tenure->again, &error);
    bool still_valid = hf_is_valid(tenure->hold);
    watch_end(party->chaos->board, &watch, status, &error);
    if (still_valid && (status != HF_OK || hf_fence(tenure->again) != hf_fence(tenure->hold)))
        complain(party->chaos->board, "a thread did not re-enter its own lock: %s %s",
                 hf_status_name(status), error.text);
}

void call_leave_again(struct worker *worker, struct tenure *tenure)
{
    if (tenure->again != NULL)
        (void)release(worker, &tenure->again);
}

/* Somebody who does not get a lock asks who has it, and sometimes for it. */
void call_look_around(struct worker *worker)
{
    static _Thread_local hf_inspection seen;
    struct party *party = worker->party;
    hf_error error;
    char name[16];
    if (!chance_percent(&worker->chance, 30))
        return;
    lock_name(name, chance_between(&worker->chance, 0, LOCKS - 1));
    bool asks = chance_percent(&worker->chance, 50);
    struct watch watch = watch_begin(asks ? CALL_REVOKE : CALL_INSPECT, party->call_timeout_ms);
    hf_status status = asks ? hf_revoke(party->client, name, 0, "others wait", &error)
                            : hf_inspect(party->client, name, 0, &seen, &error);
    watch_end(party->chaos->board, &watch, status, &error);
    if (!asks && status == HF_OK && seen.held && seen.hold_count == 0)
        complain(party->chaos->board, "a lock is held by nobody");
}
