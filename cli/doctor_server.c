/* SPDX-License-Identifier: MIT */
/* What a server says about itself, and what that means for locks. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor.h"
#include "text.h"

enum { OLDEST_MAJOR = 6, OLDEST_MINOR = 2, CLOCK_OFFSET_MAX_S = 5 };

static void judge_version(const hf_examination *server, struct findings *findings)
{
    int major = 0, minor = 0;
    if (sscanf(server->version, "%d.%d", &major, &minor) != 2)
        findings_add(findings, FINDING_WARNING, "version",
                     "it does not say which version of Redis it is like; %d.%d is needed",
                     OLDEST_MAJOR, OLDEST_MINOR);
    else if (major < OLDEST_MAJOR || (major == OLDEST_MAJOR && minor < OLDEST_MINOR))
        findings_add(findings, FINDING_BAD, "version",
                     "it is Redis %s; upgrade it to %d.%d or newer", server->version, OLDEST_MAJOR,
                     OLDEST_MINOR);
    else
        findings_add(findings, FINDING_OK, "version", "Redis %s", server->version);
}

static void judge_role(const hf_examination *server, struct findings *findings)
{
    if (server->replica)
        findings_add(findings, FINDING_BAD, "role", "it is a replica; give the URL of its primary");
    else
        findings_add(findings, FINDING_OK, "role", "it is a primary");
}

/* Locks have a time to live, so every policy but noeviction may drop them. */
static void judge_memory(const hf_examination *server, struct findings *findings)
{
    bool evicts = strcmp(server->eviction_policy, "noeviction") != 0;
    if (server->eviction_policy[0] == '\0')
        findings_add(findings, FINDING_WARNING, "eviction",
                     "it does not say what it does when its memory is full");
    else if (evicts && server->memory_limit > 0)
        findings_add(findings, FINDING_BAD, "eviction",
                     "it drops keys, and locks with them, when its memory is full (%s, %" PRIu64
                     " dropped so far); set maxmemory-policy noeviction",
                     server->eviction_policy, server->evicted_keys);
    else if (server->evicted_keys > 0)
        findings_add(findings, FINDING_WARNING, "eviction",
                     "it does not drop keys now, but %" PRIu64 " were dropped since it was "
                     "started; see who changes its settings",
                     server->evicted_keys);
    else if (evicts)
        findings_add(findings, FINDING_OK, "eviction",
                     "no memory limit is set; should there ever be one, set maxmemory-policy "
                     "noeviction too (now %s)",
                     server->eviction_policy);
    else
        findings_add(findings, FINDING_OK, "eviction", "it never drops keys (noeviction)");
}

static void judge_memory_of_locks(const hf_examination *server, struct findings *findings)
{
    char uptime[TEXT_TIME_MAX];
    text_time(uptime, server->uptime_ms);
    if (server->append_only)
        findings_add(findings, FINDING_OK, "persistence", "appendonly is on");
    else
        findings_add(findings, FINDING_WARNING, "persistence",
                     "appendonly is off: a restart forgets all locks, while their holders work "
                     "on; set appendonly yes, and let writes be guarded by the fence");
    if (server->uptime_ms >= SESSION_TTL_MS || server->append_only)
        findings_add(findings, FINDING_OK, "uptime", "it has been running for %s", uptime);
    else
        findings_add(findings, FINDING_WARNING, "uptime",
                     "it was started %s ago, and may have forgotten locks whose holders still "
                     "work; wait until the longest lease is over (30s unless --ttl was given)",
                     uptime);
}

static void judge_others(const hf_examination *server, struct findings *findings)
{
    if (server->run_id[0] == '\0')
        findings_add(findings, FINDING_WARNING, "run-id",
                     "it does not tell its run_id (INFO server), as behind a proxy that hides it: "
                     "those who wait poll, ids are refused, and it has no vote in a quorum");
    if (server->replicas > 0)
        findings_add(findings, FINDING_WARNING, "replicas",
                     "it has %" PRIu64 ", which follow it later: a failover may forget a lock that "
                     "was just granted; let writes be guarded by the fence",
                     server->replicas);
    else
        findings_add(findings, FINDING_OK, "replicas", "none are connected");
    if (server->cluster)
        findings_add(findings, FINDING_WARNING, "cluster",
                     "it is a node of a cluster, which is not supported yet: locks in slots of "
                     "other nodes cannot be taken; use a server of its own for locks");
    else
        findings_add(findings, FINDING_OK, "cluster", "it is none");
}

void doctor_judge(const hf_examination *server, struct findings *findings)
{
    judge_version(server, findings);
    judge_role(server, findings);
    judge_memory(server, findings);
    judge_memory_of_locks(server, findings);
    judge_others(server, findings);
}

/* ---- The clock ---- */

static void judge_offset(const hf_examination *server, struct findings *findings)
{
    double ahead_ms = (double)server->clock_ahead_us / 1000;
    double half_ms = (double)server->round_trip_us / 2000;
    bool far = llabs((long long)server->clock_ahead_us) > CLOCK_OFFSET_MAX_S * 1000000LL;
    const char *side = ahead_ms < 0 ? "behind" : "ahead of";
    findings_add(findings, far ? FINDING_WARNING : FINDING_OK, "clock",
                 "it is %.2f ms %s ours, give or take %.2f ms%s",
                 ahead_ms < 0 ? -ahead_ms : ahead_ms, side, half_ms,
                 far ? "; set both by NTP, now and not while locks are held: a jump ends them early"
                     : "");
}

/* The allowance for clocks that run at different rates is 1 % of a lease. */
void doctor_judge_clock(const hf_examination *first, const hf_examination *last, int64_t apart_ms,
                        struct findings *findings)
{
    double change_us = (double)(last->clock_ahead_us - first->clock_ahead_us);
    double unsure_us = (double)(last->round_trip_us + first->round_trip_us) / 2;
    double percent = (change_us < 0 ? -change_us : change_us) / (double)apart_ms / 10;
    double unsure = unsure_us / (double)apart_ms / 10;
    bool drifts = percent - unsure > 1;
    judge_offset(last, findings);
    findings_add(findings, drifts ? FINDING_WARNING : FINDING_OK, "drift",
                 "%.3f %% over %.1f s, give or take %.3f %%%s", percent, (double)apart_ms / 1000,
                 unsure,
                 drifts ? ": more than the 1 % that is allowed for; one of the clocks was set just "
                          "now, or runs wrong"
                        : "");
}
