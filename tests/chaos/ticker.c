/* SPDX-License-Identifier: MIT */
/* See ticker.h. A thread sleeps a little again and again; what a sleep lasts too long, beyond what
 * a busy machine does to every sleep, was taken from it.
 *
 * A call that ends right after a stop may look before the thread has woken. So the time since the
 * last tick counts too. Between the two stores of a tick a reader may count a stall twice, which
 * only excuses more than it should, for a moment.
 */
#include "ticker.h"

#include <pthread.h>
#include <stdlib.h>

enum { TICK_MS = 10, ORDINARY_MS = 20 };

static atomic_llong lost_ns;
static atomic_llong last_tick_ns;

static int64_t overshoot_ns(int64_t since, int64_t now)
{
    int64_t overshoot = now - since - TICK_MS * MS_NS;
    return overshoot > ORDINARY_MS * MS_NS ? overshoot : 0;
}

static void tick_sleep(void)
{
    const struct timespec tick = {.tv_nsec = TICK_MS * MS_NS};
    (void)nanosleep(&tick, NULL);
}

static void *tick(void *arg)
{
    (void)arg;
    for (;;) {
        int64_t before = atomic_load(&last_tick_ns);
        tick_sleep();
        int64_t now = now_ns();
        (void)atomic_fetch_add(&lost_ns, overshoot_ns(before, now));
        atomic_store(&last_tick_ns, now);
    }
    return NULL;
}

bool ticker_start(void)
{
    pthread_t thread;
    atomic_store(&last_tick_ns, now_ns());
    return pthread_create(&thread, NULL, tick, NULL) == 0 && pthread_detach(thread) == 0;
}

int64_t ticker_lost_ns(void)
{
    int64_t lost = atomic_load(&lost_ns);
    return lost + overshoot_ns(atomic_load(&last_tick_ns), now_ns());
}

/* Wall clock minus ours. The wall clock is read between two readings of ours; a pause in between
 * would look like a step, so such a reading is taken again. */
static int64_t wall_offset_ns(void)
{
    for (;;) {
        struct timespec wall;
        int64_t before = now_ns();
        (void)clock_gettime(CLOCK_REALTIME, &wall);
        int64_t after = now_ns();
        if (after - before < MS_NS / 10)
            return (int64_t)wall.tv_sec * 1000000000 + wall.tv_nsec - before;
    }
}

void ticker_watch(struct board *board)
{
    int64_t offset = wall_offset_ns();
    for (;;) {
        int64_t before = now_ns();
        tick_sleep();
        int64_t stall = overshoot_ns(before, now_ns());
        if (stall > 0)
            (void)atomic_fetch_add(&board->stalls, 1);
        raise_to(&board->longest_stall_ns, stall);
        int64_t next_offset = wall_offset_ns();
        raise_to(&board->clock_step_ns, llabs(next_offset - offset));
        offset = next_offset;
    }
}
