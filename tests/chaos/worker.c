/* SPDX-License-Identifier: MIT */
/* What a thread of a client process does: acquires, works while it may, renews, releases, and
 * again, everything by chance. Its work is a counter in a file, one per lock, incremented as
 * naively as can be, and only right after the library has said that the hold is valid; and another
 * one in a store that knows fences (register.h), where no increment may get lost.
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
#include "register.h"

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

static void increment(struct worker *worker, struct tenure *tenure)
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
    if (!call_is_valid(worker, tenure))
        return;
    perhaps_stop(worker);
    if (pwrite(file, &value, sizeof(value), 0) == (ssize_t)sizeof(value))
        (void)atomic_fetch_add(&board->increments[lock], 1);
}

/* The store refuses whoever was followed by another holder. Who is refused and then asks the
 * library must hear that it has lost the lock. */
static void judge(struct worker *worker, struct tenure *tenure, enum register_answer answer)
{
    struct board *board = worker->party->chaos->board;
    if (answer == REGISTER_BROKEN)
        complain(board, "the register cannot be used");
    if (answer != REGISTER_REFUSED)
        return;
    (void)atomic_fetch_add(&board->refused, 1);
    if (hf_is_valid(tenure->hold))
        complain(board, "a valid holder has a smaller fence than another one before it");
}

/* No question of validity here: the fence is what protects it, also when the process stops. */
static void increment_fenced(struct worker *worker, struct tenure *tenure)
{
    const struct chaos *chaos = worker->party->chaos;
    int lock = (int)tenure->belief.lock;
    uint64_t fence = hf_fence(tenure->hold);
    int64_t value = 0;
    enum register_answer answer = register_read(chaos->folder, lock, fence, &value);
    if (answer == REGISTER_DONE) {
        nap(worker, 3);
        perhaps_stop(worker);
        answer = register_write(chaos->folder, lock, fence, value + 1);
        if (answer == REGISTER_DONE)
            (void)atomic_fetch_add(&chaos->board->acknowledged[lock], 1);
    }
    judge(worker, tenure, answer);
}

/* Those who share a lock agree on their work themselves, which is not what is tested here. */
static void step(struct worker *worker, struct tenure *tenure, bool may_extend)
{
    int what = chance_between(&worker->chance, 0, 9);
    if (what < 3 && !tenure->shared)
        increment(worker, tenure);
    else if (what < 6 && !tenure->shared)
        increment_fenced(worker, tenure);
    else if (what < 9 || !may_extend)
        nap(worker, NAP_MOST_MS);
    else
        call_extend(worker, tenure);
}

/* Some work is nothing at all, so that threads of one process pass the lock on; most ends in good
 * time; some goes on until the lease ends, or for two leases if the watchdog keeps it. */
static void work(struct worker *worker, struct tenure *tenure)
{
    bool stays = chance_percent(&worker->chance, 5);
    int64_t stays_until_ns = now_ns() + (stays ? 2 * tenure->longest_lease_ms * MS_NS : 0);
    bool brief = chance_percent(&worker->chance, 40);
    int steps = brief ? 0 : chance_between(&worker->chance, 0, STEPS_MOST);
    while ((steps-- > 0 || now_ns() < stays_until_ns) && call_is_valid(worker, tenure) &&
           !over(worker))
        step(worker, tenure, !stays);
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
            call_look_around(worker);
            continue;
        }
        perhaps_stop(worker);
        call_reenter(worker, &tenure);
        work(worker, &tenure);
        call_leave_again(worker, &tenure);
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
