/* SPDX-License-Identifier: MIT */
/* What a seed draws: not every run has every fault, because faults hide each other (a server that
 * restarts all the time never shows what a long pause does). Each kind is in about half of the
 * runs, with a chance of its own. A third of the runs goes beyond the documented assumptions. */
#include <string.h>

#include "base/random.h"
#include "memory.h"
#include "permits.h"
#include "sim.h"

const char *const fault_names[FAULT_COUNT] = {
    "delay",      "cut",        "half-open",    "pause",         "suspend",     "kill",
    "node-pause", "restart",    "script-flush", "trouble",       "memory",      "cancel",
    "foreign",    "lull",       "look",         "revoke",        "thread-end",  "push-cut",
    "push-deaf",  "push-stall", "failover",     "restart-empty", "restart-old", "evict",
    "clock-step", "clock-rate", "foreign-del",  "break",         "deny-lock",   "deny-messages",
    "probe",      "full"};

/* The first two differ in their braces only, and must not share anything but their slot. */
const char *const lock_names[LOCKS] = {"x", "{x}", "}stock{", "3", "4",  "5",
                                       "6", "7",   "8",       "9", "10", "11"};
const char *const owner_names[OWNERS] = {"trace:1", "order 2"};
const char side_letters[SIDES + 1] = "qfwh";

/* The highest chance of one occasion. Network faults have one for every message, the others one for
 * every visit of the nemesis (about every 50 ms). */
static const double highest[FAULT_COUNT] = {
    [FAULT_DELAY] = 0.05,       [FAULT_CUT] = 0.03,           [FAULT_HALF_OPEN] = 0.01,
    [FAULT_PAUSE] = 0.10,       [FAULT_SUSPEND] = 0.02,       [FAULT_KILL] = 0.02,
    [FAULT_NODE_PAUSE] = 0.02,  [FAULT_RESTART_DATA] = 0.02,  [FAULT_FLUSH] = 0.05,
    [FAULT_TROUBLE] = 0.02,     [FAULT_MEMORY] = 0.01,        [FAULT_CANCEL] = 0.20,
    [FAULT_FOREIGN] = 0.20,     [FAULT_RESTART_EMPTY] = 0.02, [FAULT_RESTART_OLD] = 0.02,
    [FAULT_EVICT] = 0.05,       [FAULT_CLOCK_STEP] = 0.02,    [FAULT_CLOCK_RATE] = 1.0,
    [FAULT_FOREIGN_DEL] = 0.10, [FAULT_BREAK] = 0.04,         [FAULT_LULL] = 0.006,
    [FAULT_LOOK] = 0.05,        [FAULT_REVOKE] = 0.05,        [FAULT_THREAD_END] = 0.10,
    [FAULT_PUSH_CUT] = 0.05,    [FAULT_PUSH_DEAF] = 0.03,     [FAULT_PUSH_STALL] = 0.10,
    [FAULT_FAILOVER] = 0.01,
};

static int64_t between(uint64_t *random, int64_t low, int64_t high)
{
    return low + (int64_t)hf__random_below(random, (uint64_t)(high - low + 1));
}

/* Those who use no locks are in every third run, so that they do not crowd out those who do. */
static void draw_clerks(sim_plan *plan, uint64_t *random)
{
    if (hf__random_below(random, 3) > 0)
        return;
    uint64_t which = hf__random_below(random, 3);
    plan->id_clerks = which != 1 ? (int)between(random, 1, 2) : 0;
    plan->stock_clerks = which != 0 ? (int)between(random, 1, 2) : 0;
    plan->clerk_ms = hf__random_below(random, 2) == 0 ? 80 : 250;
    plan->skew_s = between(random, 1, 3);
    plan->small_steps = hf__random_below(random, 2) == 0;
    plan->many_ids = !plan->beyond && hf__random_below(random, 4) == 0;
    plan->items = (int)between(random, 1, ITEMS);
    plan->per_user = hf__random_below(random, 2) == 0 ? between(random, 1, 6) : 0;
    plan->units = between(random, 3, 40);
    plan->begins_again = hf__random_below(random, 2) == 0;
}

/* Leases and timeouts that the server can serve. Where no hold may be lost, nothing happens that
 * would excuse a loss. */
static void fit_to_load(sim_plan *plan, uint64_t *random)
{
    static const sim_fault kept[] = {FAULT_CANCEL, FAULT_LOOK, FAULT_REVOKE, FAULT_THREAD_END};
    double chances[FAULT_COUNT] = {0};
    plan->very_late = true; /* what waits for a busy server may */
    plan->observers = 0;
    if (!load_keeps_all(&plan->load))
        return;
    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
        chances[kept[i]] = highest[kept[i]];
    memcpy(plan->chance, chances, sizeof(chances));
    plan->beyond = plan->tokens = false;
    plan->id_clerks = plan->stock_clerks = 0;
    plan->lease_min_ms = plan->lease_usual_ms = plan->load.lease_ms;
    plan->lease_max_ms = plan->load.lease_ms + 500;
    plan->fence_keep_ms = 1000000; /* long, as usual: else every other renewal costs three times */
    plan->delay_ns += plan->load.away_ns;
    plan->connect_timeout_ms += 2 * plan->load.away_ns / MS(1);
    plan->reply_timeout_ms = between(random, 500, 1500) + 2 * plan->load.away_ns / MS(1);
    plan->call_timeout_ms = plan->reply_timeout_ms + between(random, 0, 2000);
    if (plan->load.kind == LOAD_GROWS)
        plan->duration_ns = MS(10 * plan->load.lease_ms);
}

/* Several locks over one connection, whose renewals share calls, and nothing that would excuse the
 * loss of one. */
static void draw_permissions(sim_plan *plan)
{
    static const sim_fault kept[] = {FAULT_FLUSH, FAULT_CANCEL, FAULT_FOREIGN, FAULT_LULL,
                                     FAULT_LOOK};
    double chances[FAULT_COUNT] = {0};
    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
        chances[kept[i]] = plan->chance[kept[i]];
    memcpy(plan->chance, chances, sizeof(chances));
    plan->chance[FAULT_DENY_LOCK] = 0.15;
    plan->chance[FAULT_DENY_MESSAGES] = 0.05;
    plan->chance[FAULT_PROBE] = 0.1;
    plan->permissions = true;
    plan->beyond = plan->very_late = plan->crowd = plan->tokens = false;
    plan->denies_all = plan->denies_some = false;
    plan->id_clerks = plan->stock_clerks = 0;
    plan->observers = 0;
    plan->swarm = false;
    plan->links = 1;
    plan->locks = USUAL_LOCKS;
    plan->work_ms = 150;
}

/* Observers ask every 10 s, and the library keeps a fence much longer than that: so must these
 * worlds, or the mark that somebody watches would go with it. */
static void draw_observers(sim_plan *plan, uint64_t *random)
{
    if (hf__random_below(random, 3) > 0)
        return;
    plan->observers = (int)between(random, 1, OBSERVERS_MAX);
    plan->fence_keep_ms += 30000;
}

/* Two clients are enough: what is new is how many calls one of them has under way. */
static void draw_swarm(sim_plan *plan, uint64_t *random)
{
    plan->swarm = hf__random_below(random, 8) == 0;
    if (!plan->swarm)
        return;
    plan->clients = 2;
    plan->actors = (int)between(random, 15, ACTORS_MAX);
    plan->handles = HANDLES_MAX;
    plan->spare = ACTORS_MAX;
    if (!plan->crowd)
        plan->locks = (int)between(random, 2, LOCKS);
}

/* Clients of 0.7 and of today together. Who waits for a lock of another program without a fence is
 * overtaken by newer ones. What 0.7 has reserved stays reserved, and many are far ahead of the
 * clock.
 */
static void draw_elders(sim_plan *plan, uint64_t *random)
{
    plan->elders = (unsigned)between(random, 1, (1 << plan->clients) - 2);
    plan->chance[FAULT_FOREIGN] = 0;
}

void plan_draw(sim_plan *plan, uint64_t seed)
{
    uint64_t random = seed * 0x9e3779b97f4a7c15u + 1;
    *plan = (sim_plan){.beyond = hf__random_below(&random, 3) == 0};
    plan->very_late = hf__random_below(&random, 3) == 0;
    plan->clients = (int)between(&random, 2, CLIENTS_MAX);
    plan->actors = (int)between(&random, 1, USUAL_ACTORS);
    plan->links = (int)between(&random, 1, 4);
    plan->locks = (int)between(&random, 1, USUAL_LOCKS);
    static const int turns[] = {0, 1, 2, 5, 64};
    plan->local_turns = turns[hf__random_below(&random, 5)];
    plan->denies_all = hf__random_below(&random, 16) == 0;
    plan->denies_some = hf__random_below(&random, 8) == 0;
    plan->crowd = hf__random_below(&random, 3) == 0;
    plan->work_ms = hf__random_below(&random, 2) == 0 ? 150 : between(&random, 1, 10);
    if (plan->crowd) {
        plan->locks = 1;
        plan->actors = (int)between(&random, 3, USUAL_ACTORS);
        plan->work_ms = between(&random, 1, 5);
    }
    plan->delay_ns = MS(1) / 10 * between(&random, 1, 60);
    plan->lease_min_ms = between(&random, 100, 400);
    plan->lease_max_ms = plan->lease_min_ms + between(&random, 0, 1500);
    plan->lease_usual_ms = between(&random, plan->lease_min_ms, plan->lease_max_ms);
    plan->fence_keep_ms = between(&random, 1000, 4000);
    if (plan->fence_keep_ms < 2 * plan->lease_max_ms) /* as an hour is more than two leases */
        plan->fence_keep_ms = 2 * plan->lease_max_ms;
    plan->connect_timeout_ms = between(&random, 50, 400);
    plan->reply_timeout_ms = between(&random, 50, 500);
    plan->call_timeout_ms = plan->reply_timeout_ms + between(&random, 0, 800);
    plan->duration_ns = MS(between(&random, 5000, 15000));
    for (int i = 0; i < FAULT_DRAWN; i++) {
        bool drawn = hf__random_below(&random, 2) == 0;
        double share = (double)hf__random_below(&random, 1000) / 1000.0;
        if (drawn && (plan->beyond || i < FAULT_RESTART_EMPTY))
            plan->chance[i] = highest[i] * share;
    }
    plan->checks = (int)hf__random_below(&random, 3);
    plan->tokens = hf__random_below(&random, 2) == 0;
    draw_clerks(plan, &random);
    draw_observers(plan, &random);
    plan->handles = USUAL_HANDLES;
    plan->spare = USUAL_ACTORS;
    draw_swarm(plan, &random);
    if (permits_rule(seed))
        draw_permissions(plan);
    else
        load_draw(&plan->load, seed, plan->clients, plan->links, plan->swarm);
    if (plan->load.kind != LOAD_NONE)
        fit_to_load(plan, &random);
    if (memory_rule(seed) && plan->load.kind == LOAD_NONE)
        plan->chance[FAULT_FULL] = 0.05;
    if (!plan->beyond && hf__random_below(&random, 6) == 0)
        draw_elders(plan, &random);
}
