/* SPDX-License-Identifier: MIT */
/* The faults of a storm, from a table with weights; which one comes, whom it hits and for how long
 * is drawn from the seed. A process that is killed is replaced at once by a fresh one of the same
 * side. At most one server of a quorum stands still at a time; a single server never does, nor is
 * a server restarted, because the runs of tests/chaos have that. So everything stays within the
 * assumptions of docs/safety.md, and an overlap is a bug. Sabotage is not: with
 * each fault somebody deletes the keys of all locks.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "run.h"

static int somebody(struct crew *crew)
{
    return chance_between(&crew->run->chance, 0, crew->count - 1);
}

static void stop_somebody(struct crew *crew)
{
    struct child *child = &crew->children[somebody(crew)];
    if (child->pid != 0 && child->thaw_at_ns == 0)
        (void)kill(child->pid, SIGSTOP);
}

static void kill_somebody(struct crew *crew)
{
    int slot = somebody(crew);
    if (crew->children[slot].pid == 0)
        return;
    crew->killed++;
    child_kill(crew, slot);
    child_start(crew, slot, crew->children[slot].side);
}

static void freeze_server(struct crew *crew)
{
    struct run *run = crew->run;
    if (run->server_count == 1 || crew->frozen >= 0)
        return;
    crew->frozen = chance_between(&run->chance, 0, run->server_count - 1);
    crew->server_thaw_at_ns = now_ns() + chance_between(&run->chance, 20, LEASE_MOST_MS) * MS_NS;
    crew->servers_frozen++;
    redis_server_freeze(run->servers[crew->frozen]);
}

void server_thaw(struct crew *crew)
{
    redis_server_thaw(crew->run->servers[crew->frozen]);
    crew->frozen = -1;
}

static void delete_locks(const struct crew *crew)
{
    for (int i = 0; i < crew->run->server_count; i++)
        for (int lock = 0; lock < LOCKS && i != crew->frozen; lock++)
            (void)raw(crew->run->servers[i], "DEL " MIXED_PREFIX "lock-%d", lock);
}

static const struct {
    int weight;
    void (*fire)(struct crew *crew);
} faults[] = {{45, stop_somebody}, {30, kill_somebody}, {10, freeze_server}};

void fault_fire(struct crew *crew)
{
    int sum = 0;
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
        sum += faults[i].weight;
    int drawn = chance_between(&crew->run->chance, 0, sum - 1);
    size_t i = 0;
    while (drawn >= faults[i].weight)
        drawn -= faults[i++].weight;
    faults[i].fire(crew);
    if (crew->run->sabotage == SABOTAGE_DELETE)
        delete_locks(crew);
}
