/* SPDX-License-Identifier: MIT */
/* See report.h. Failures: two beliefs that overlap, whatever somebody complained of, keys that
 * outlive the longest lease, and a run in which so little happened that it proves nothing.
 *
 * Lost updates of the counters are shown and do not fail the run: a process that is stopped between
 * the question of validity and its write does the write late, which docs/safety.md says and which
 * the workers provoke. A writer that was killed right after its write makes the number negative.
 * Where the store knows fences (register.h) that is no excuse, and a lost write is a failure.
 */
#include "report.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "../lib/ledger.h"
#include "register.h"

static void print_calls(struct board *board)
{
    static const char *const names[] = {
#define CALL_NAME(name, text) text,
        CALL_MAP(CALL_NAME)};
    printf("\n%-20s %12s  statuses\n", "call", "worst excess");
    for (int kind = 0; kind < CALL_KINDS; kind++) {
        long long excess_ns = atomic_load(&board->worst_excess_ns[kind]);
        printf("%-20s %9lld ms ", names[kind], excess_ns / MS_NS);
        for (int status = 0; status < STATUSES; status++) {
            long long times = atomic_load(&board->statuses[kind][status]);
            if (times > 0)
                printf(" %s %lld", hf_status_name((hf_status)status) + 3, times);
        }
        printf("\n");
    }
}

static void print_faults(struct board *board)
{
    static const char *const names[] = {
#define FAULT_NAME(name, text) text,
        FAULT_MAP(FAULT_NAME)};
    printf("\n%-40s fired\n", "fault");
    for (int fault = 0; fault < FAULT_KINDS; fault++)
        printf("%-40s %5lld\n", names[fault], (long long)atomic_load(&board->faults[fault]));
}

static void print_counters(const struct chaos *chaos)
{
    long long made = 0;
    long long found = 0;
    for (int i = 0; i < LOCKS; i++) {
        char path[128];
        int64_t value = 0;
        (void)snprintf(path, sizeof(path), "%s/counter-%d", chaos->folder, i);
        int file = open(path, O_RDONLY | O_CLOEXEC);
        if (file < 0 || read(file, &value, sizeof(value)) != (ssize_t)sizeof(value))
            printf("%s cannot be read\n", path);
        if (file >= 0)
            (void)close(file);
        made += atomic_load(&chaos->board->increments[i]);
        found += value;
    }
    printf("increments %lld, of these lost by a late write %lld (no failure: docs/safety.md)\n",
           made, made - found);
}

/* Returns how many writes that were acknowledged are gone. */
static long long print_registers(const struct chaos *chaos)
{
    struct board *board = chaos->board;
    long long made = 0;
    long long lost = 0;
    for (int i = 0; i < LOCKS; i++) {
        int64_t value = 0;
        long long acknowledged = atomic_load(&board->acknowledged[i]);
        if (!register_look(chaos->folder, i, &value))
            printf("register %d cannot be read\n", i);
        made += acknowledged;
        lost += acknowledged > value ? acknowledged - value : 0;
    }
    printf("fenced writes %lld, refused for their fence %lld, acknowledged and lost %lld\n", made,
           (long long)atomic_load(&board->refused), lost);
    return lost;
}

static void print_told(struct board *board)
{
    printf("renewals %lld, local turns %lld; told:", (long long)atomic_load(&board->renewed),
           (long long)atomic_load(&board->turns));
    for (int state = 0; state <= HF_LOST; state++)
        for (int reason = 0; reason < HF_REASONS; reason++) {
            long long times = atomic_load(&board->told[state][reason]);
            if (times > 0)
                printf(" %s (%s) %lld;", hf_state_name((hf_state)state),
                       hf_reason_text((hf_reason)reason), times);
        }
    printf("\n");
}

static void print_belief(const char *which, const belief *held, int64_t origin_ns)
{
    printf("  %s: client %u thread %u hold %llu, lock %u, from %.3f to %.3f ms\n", which,
           held->client / 16, held->client % 16, (unsigned long long)held->hold, held->lock,
           (double)(held->from_ns - origin_ns) / (double)MS_NS,
           (double)(held->until_ns - origin_ns) / (double)MS_NS);
}

/* true: there is one, and it is shown. */
static bool show_overlap(history *beliefs)
{
    belief first;
    belief second;
    if (!history_find_overlap(beliefs, &first, &second))
        return false;
    printf("\nOVERLAP (thread 0: the foreign program; times since the first one's grant)\n");
    print_belief("one  ", &first, first.from_ns);
    print_belief("other", &second, first.from_ns);
    return true;
}

static bool little_happened(const struct chaos *chaos, size_t holds)
{
    long long fired = 0;
    for (int fault = 0; fault < FAULT_KINDS; fault++)
        fired += atomic_load(&chaos->board->faults[fault]);
    long long contended = atomic_load(&chaos->board->contended);
    return holds < 2 * (size_t)chaos->seconds || 2 * contended < chaos->seconds ||
           fired < chaos->seconds || atomic_load(&chaos->board->renewed) < chaos->seconds ||
           (chaos->seconds >= 30 && atomic_load(&chaos->board->turns) == 0);
}

static void print_command(const struct chaos *chaos, const char *program, bool passed)
{
    printf("\n%s: seed %llu. Again: %s --seconds %d --seed %llu%s\n", passed ? "PASS" : "FAIL",
           (unsigned long long)chaos->seed, program, chaos->seconds,
           (unsigned long long)chaos->seed, chaos->sabotage ? " --sabotage" : "");
}

struct verdict report(const struct chaos *chaos, const char *program, const char *leftovers)
{
    struct verdict verdict = {.overlap = false, .passed = false};
    struct board *board = chaos->board;
    history *beliefs = ledger_read(chaos->folder);
    size_t holds = beliefs != NULL ? history_count(beliefs) : 0;
    int complaints = atomic_load(&board->complaints);
    bool little = little_happened(chaos, holds);
    printf("%d client processes, %d threads each, and a foreign one; %d locks; %d s\n",
           chaos->clients, THREADS, LOCKS, chaos->seconds);
    printf("holds %zu, contended grants %lld, clients closed %lld\n", holds,
           (long long)atomic_load(&board->contended), (long long)atomic_load(&board->sessions));
    print_counters(chaos);
    long long lost = print_registers(chaos);
    print_told(board);
    printf("the machine stood still %lld times, at most %lld ms; its wall clock stepped by %.3f ms "
           "at most\n",
           (long long)atomic_load(&board->stalls),
           (long long)atomic_load(&board->longest_stall_ns) / MS_NS,
           (double)atomic_load(&board->clock_step_ns) / (double)MS_NS);
    print_calls(board);
    print_faults(board);
    verdict.overlap = beliefs != NULL && show_overlap(beliefs);
    if (verdict.overlap && atomic_load(&board->clock_step_ns) > 2 * MS_NS)
        printf("  but the wall clock stepped, which is beyond the assumptions\n");
    if (beliefs == NULL)
        printf("\nThe ledger is unreadable or torn.\n");
    if (complaints > 0)
        printf("\n%d complaints, the first: %s\n", complaints, board->complaint);
    if (leftovers[0] != '\0')
        printf("\nKeys that outlived the longest lease: %s\n", leftovers);
    if (lost > 0)
        printf("\nThe fence did not protect the registers.\n");
    if (little)
        printf("\nToo little happened to prove anything.\n");
    verdict.passed = beliefs != NULL && !verdict.overlap && complaints == 0 &&
                     leftovers[0] == '\0' && lost == 0 && !little;
    print_command(chaos, program, verdict.passed);
    history_free(beliefs);
    return verdict;
}
