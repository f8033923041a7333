/* SPDX-License-Identifier: MIT */
/* What a thread of a client process does: acquires, works while it may, renews, releases, and
 * again, everything by chance. Its work is a counter in a file, one per lock, incremented as
 * naively as can be, and only right after the library has said that the hold is valid.
 *
 * The narrow moments are where faults hurt, and a stop by the driver rarely hits them. So a worker
 * sometimes stops its own process at one of them: before asking, right after the grant, between the
 * question of validity and the write, before the release. The driver finds the process stopped and
 * lets it go on later, often after the lease.
 */
#include <signal.h>
#include <unistd.h>

#include "../lib/process.h"
#include "client.h"

enum { STOP_PER_MILLE = 4, STEPS_MOST = 8, NAP_MOST_MS = 15 };

static bool over(const struct worker *worker)
{
    return atomic_load(&worker->party->chaos->board->stop) ||
           now_ns() >= worker->party->session_until_ns;
}

static void perhaps_stop(struct worker *worker)
{
    bool storm_is_over = atomic_load(&worker->party->chaos->board->stop);
    if (!storm_is_over && chance_between(&worker->chance, 0, 999) < STOP_PER_MILLE)
        (void)kill(getpid(), SIGSTOP);
}

static void nap(struct worker *worker, int most_ms)
{
    sleep_ms(chance_between(&worker->chance, 0, most_ms));
}

static void increment(struct worker *worker, const struct tenure *tenure)
{
    struct board *board = worker->party->chaos->board;
    uint32_t lock = tenure->belief.lock;
    int file = worker->party->counters[lock];
    int64_t value = 0;
    if (pread(file, &value, sizeof(value), 0) != (ssize_t)sizeof(value)) {
        complain(board, "the counter cannot be read");
        return;
    }
    nap(worker, 3);
    value++;
    if (!hf_is_valid(tenure->hold))
        return;
    perhaps_stop(worker);
    if (pwrite(file, &value, sizeof(value), 0) == (ssize_t)sizeof(value))
        (void)atomic_fetch_add(&board->increments[lock], 1);
}

static void step(struct worker *worker, struct tenure *tenure, bool may_extend)
{
    int what = chance_between(&worker->chance, 0, 9);
    if (what < 6)
        increment(worker, tenure);
    else if (what < 9 || !may_extend)
        nap(worker, NAP_MOST_MS);
    else
        call_extend(worker, tenure);
}

/* Most work ends in good time; some goes on until the lease ends. */
static void work(struct worker *worker, struct tenure *tenure)
{
    bool to_the_end = chance_percent(&worker->chance, 2);
    int steps = chance_between(&worker->chance, 0, STEPS_MOST);
    while ((steps-- > 0 || to_the_end) && hf_is_valid(tenure->hold) && !over(worker))
        step(worker, tenure, !to_the_end);
    (void)call_remaining(worker, tenure);
}

void *worker_run(void *arg)
{
    struct worker *worker = arg;
    struct tenure tenure = {0};
    while (!over(worker)) {
        perhaps_stop(worker);
        if (!call_acquire(worker, &tenure)) {
            nap(worker, NAP_MOST_MS);
            continue;
        }
        perhaps_stop(worker);
        work(worker, &tenure);
        if (over(worker) && chance_percent(&worker->chance, 50)) {
            call_give_up(worker, &tenure);
            worker->left = tenure.hold;
            break;
        }
        perhaps_stop(worker);
        call_release(worker, &tenure);
    }
    return NULL;
}
