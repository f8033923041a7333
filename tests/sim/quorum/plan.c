/* SPDX-License-Identifier: MIT */
/* What a seed draws. One world in five is quiet, and shows what waiting looks like when nothing
 * goes wrong; one in five has clocks that jump; the others have every other fault, each in about
 * half of them, because faults hide each other. */
#include "plan.h"

#include <string.h>

#include "base/random.h"
#include "memory.h"
#include "permits.h"

#define MS(n) ((int64_t)(n)*1000000)

const char *const fault_names[FAULT_COUNT] = {
    "delay",        "cut",           "half-open",     "memory",      "pause",      "kill",
    "cancel",       "push-deaf",     "parted",        "stall",       "down",       "slow",
    "script-flush", "restart",       "restart-empty", "restart-old", "clock-back", "clock-jump",
    "deny-lock",    "deny-messages", "probe",         "full"};

/* The highest chance of one occasion. */
static const double highest[FAULT_COUNT] = {
    [FAULT_DELAY] = 0.03,       [FAULT_CUT] = 0.01,        [FAULT_HALF_OPEN] = 0.004,
    [FAULT_MEMORY] = 0.002,     [FAULT_PAUSE] = 0.05,      [FAULT_KILL] = 0.02,
    [FAULT_CANCEL] = 0.15,      [FAULT_PUSH_DEAF] = 0.03,  [FAULT_PARTITION] = 0.03,
    [FAULT_STALL] = 0.03,       [FAULT_DOWN] = 0.02,       [FAULT_SLOW] = 0.03,
    [FAULT_FLUSH] = 0.03,       [FAULT_RESTART] = 0.01,    [FAULT_RESTART_EMPTY] = 0.05,
    [FAULT_RESTART_OLD] = 0.03, [FAULT_CLOCK_BACK] = 0.02, [FAULT_CLOCK_JUMP] = 0.04,
};

static int64_t between(uint64_t *random, int64_t low, int64_t high)
{
    return low + (int64_t)hf__random_below(random, (uint64_t)(high - low + 1));
}

static bool one_in(uint64_t *random, uint64_t count)
{
    return hf__random_below(random, count) == 0;
}

static void draw_faults(plan *p, uint64_t *random)
{
    for (int i = 0; i < FAULT_DRAWN; i++) {
        bool drawn = one_in(random, 2);
        double share = (double)hf__random_below(random, 1000) / 1000.0;
        if (drawn && p->kind != KIND_QUIET)
            p->chance[i] = highest[i] * share;
    }
    if (p->kind != KIND_JUMPY)
        return;
    p->chance[FAULT_CLOCK_JUMP] = highest[FAULT_CLOCK_JUMP];
    if (one_in(random, 2)) /* what fences fear most: clocks that jump, and then forget */
        p->chance[FAULT_RESTART_EMPTY] = highest[FAULT_RESTART_EMPTY];
}

static void draw_times(plan *p, uint64_t *random)
{
    p->delay_ns = MS(1) / 10 * between(random, 1, 60);
    p->lease_min_ms = between(random, 300, 1000);
    p->lease_max_ms = p->lease_min_ms + between(random, 0, 2000);
    p->max_lease_ms = between(random, 3000, 5000);
    if (one_in(random, 3))
        p->lease_max_ms = p->max_lease_ms;
    p->connect_timeout_ms = between(random, 80, 400);
    p->reply_timeout_ms = between(random, 80, 500);
    p->call_timeout_ms = p->reply_timeout_ms + between(random, 0, 800);
    p->fence_keep_ms = between(random, 1000, 20000);
    p->work_ms = one_in(random, 2) ? 150 : between(random, 1, 20);
    p->duration_ns =
        MS(p->kind == KIND_QUIET ? between(random, 2000, 5000) : between(random, 8000, 24000));
}

/* Leases and timeouts that the servers can serve. Where no hold may be lost, nothing happens that
 * would excuse a loss. */
static void fit_to_load(plan *p, uint64_t *random)
{
    p->very_late = true; /* what waits for a busy server may */
    p->observers = 0;
    p->all_fair = false;
    p->kind = p->kind == KIND_JUMPY ? KIND_JUMPY : KIND_WITHIN;
    if (!load_keeps_all(&p->load))
        return;
    memset(p->chance, 0, sizeof(p->chance));
    p->chance[FAULT_CANCEL] = highest[FAULT_CANCEL];
    p->kind = KIND_WITHIN;
    p->dead = 0;
    p->ids = p->fresh = false;
    p->lease_min_ms = p->load.lease_ms;
    p->lease_max_ms = p->load.lease_ms + 500;
    p->max_lease_ms = p->lease_max_ms;
    p->fence_keep_ms = 1000000; /* long, as usual: else every other renewal costs three times */
    p->delay_ns += p->load.away_ns;
    p->connect_timeout_ms += 2 * p->load.away_ns / MS(1);
    p->reply_timeout_ms = between(random, 500, 1500) + 2 * p->load.away_ns / MS(1);
    p->call_timeout_ms = p->reply_timeout_ms + between(random, 0, 2000);
    p->duration_ns = MS(p->load.kind == LOAD_GROWS ? 10 * p->load.lease_ms : 8000);
}

/* Locks whose votes are renewed over one connection to each server, and nothing that would excuse
 * the loss of one. */
static void draw_permissions(plan *p)
{
    double cancels = p->chance[FAULT_CANCEL], flushes = p->chance[FAULT_FLUSH];
    memset(p->chance, 0, sizeof(p->chance));
    p->chance[FAULT_CANCEL] = cancels;
    p->chance[FAULT_FLUSH] = flushes;
    p->chance[FAULT_DENY_LOCK] = 0.15;
    p->chance[FAULT_DENY_MESSAGES] = 0.05;
    p->chance[FAULT_PROBE] = 0.1;
    p->permissions = true;
    p->kind = KIND_WITHIN;
    p->very_late = p->all_fair = p->ids = false;
    p->dead = 0;
    p->observers = 0;
    p->swarm = false;
    p->links = 1;
    p->locks = 2;
    p->work_ms = 150;
    if (p->burst) { /* holds in step, for a long time */
        p->clients = 2;
        p->lease_max_ms = p->lease_min_ms;
    } else { /* many who wait for votes of which there is an even number */
        p->chance[FAULT_DENY_LOCK] = 0;
        p->locks = 1;
        p->clients = 4;
        p->nodes -= p->nodes % 2;
        p->quorum = p->nodes / 2 + 1;
    }
}

/* Two clients with many calls each, which do not work for long, or nobody would be served. */
static void draw_swarm(plan *p, uint64_t *random)
{
    p->swarm = one_in(random, 12);
    if (!p->swarm)
        return;
    p->clients = 2;
    p->actors = (int)between(random, 10, 24);
    p->locks = (int)between(random, 4, 8);
    p->work_ms = between(random, 1, 10);
}

void plan_draw(plan *p, uint64_t seed, int nodes)
{
    static const int usual[] = {2, 3, 3, 3, 3, 4, 5, 5, 5, 3};
    static const int turns[] = {0, 2, 64};
    static const sim_kind kinds[] = {KIND_QUIET, KIND_WITHIN, KIND_WITHIN, KIND_WITHIN, KIND_JUMPY};
    uint64_t random = seed * 0x9e3779b97f4a7c15u + 1;
    *p = (plan){.kind = kinds[hf__random_below(&random, 5)]};
    p->nodes = usual[hf__random_below(&random, 10)];
    p->nodes = nodes > 0 ? nodes : p->nodes;
    p->quorum = p->nodes / 2 + 1;
    p->clients = (int)between(&random, 2, 4);
    p->actors = (int)between(&random, 1, 4);
    p->locks = (int)between(&random, 1, 2);
    p->links = (int)between(&random, 1, 2);
    p->local_turns = turns[hf__random_below(&random, 3)];
    p->burst = one_in(&random, 2);
    p->very_late = one_in(&random, 3);
    p->fresh = one_in(&random, 8);
    p->all_fair = p->kind == KIND_QUIET && !one_in(&random, 4);
    if (p->kind == KIND_QUIET && one_in(&random, 3))
        p->dead = (int)between(&random, 0, p->nodes - p->quorum);
    p->dead_stall = one_in(&random, 2);
    draw_times(p, &random);
    draw_faults(p, &random);
    p->durable = one_in(&random, 8);
    if (p->durable)
        p->chance[FAULT_RESTART_EMPTY] = p->chance[FAULT_RESTART_OLD] = 0;
    p->ids = one_in(&random, 3);
    p->ids_skew_s = p->chance[FAULT_CLOCK_BACK] > 0 ? 6 : between(&random, 1, 3);
    p->observers = one_in(&random, 3) ? 1 : 0;
    draw_swarm(p, &random);
    if (permits_rule(seed))
        draw_permissions(p);
    else
        load_draw(&p->load, seed, p->clients, p->links, p->swarm);
    if (p->load.kind != LOAD_NONE)
        fit_to_load(p, &random);
    else if (memory_rule(seed) && p->kind != KIND_QUIET)
        p->chance[FAULT_FULL] = 0.05;
}
