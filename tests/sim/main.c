/* SPDX-License-Identifier: MIT */
/* The simulator's command line.
 *
 *   holdfast-sim --seeds N [--first S]     N runs; ends with the first seed that finds something
 *                --go-on                   or names them all
 *   holdfast-sim --seed S [--trace]        one run, with its trace
 *   holdfast-sim --mutants [--first S]     every mutant must be caught
 *   holdfast-sim --mutant NAME --seeds N   how soon one is
 *
 * A run is judged by check.c. A batch is judged too: runs that do nothing prove nothing, so the
 * numbers of grants and faults are shown as a distribution and have a minimum; and the register
 * without a fence must lose writes in runs beyond the assumptions, or the checker is blind. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mutant.h"
#include "mutants.h"
#include "sim.h"

enum { JOBS_MAX = 64, GRANTS_MIN = 5, CONTROL_SEEDS = 100 };

typedef struct options {
    uint64_t first, seeds, only;
    uint64_t jobs;
    bool one, trace, all_mutants, go_on;
    const char *mutant;
} options;

typedef struct batch {
    uint64_t runs;
    sim_stats total;
    int64_t beyond_lost, beyond_overlaps, idle_runs;
    int64_t *grants, *contended, *faults, *steps; /* of each run */
} batch;

static world the_world;

/* ---- One run ---- */

static void print_failure(const world *w)
{
    clockwork_print_failure(&w->run);
    printf("replay: make sim SEED=%llu%s%s\n", (unsigned long long)w->run.seed,
           active_mutant != NULL ? " MUTANT=" : "",
           active_mutant != NULL ? active_mutant->name : "");
}

static void use_mutant(const sim_mutant *mutant)
{
    active_mutant = mutant;
    hf__mutant = mutant != NULL ? mutant->core : 0;
}

static int run_one(uint64_t seed, bool trace)
{
    world_run(&the_world, seed, trace);
    bool failed = the_world.run.failure[0] != '\0';
    if (failed)
        print_failure(&the_world);
    printf("seed %llu: %lld steps, %lld grants, trace hash %016llx%s\n", (unsigned long long)seed,
           (long long)the_world.stats.steps, (long long)the_world.stats.grants,
           (unsigned long long)the_world.run.trace_hash, failed ? ", FAILED" : "");
    world_free(&the_world);
    return failed;
}

/* ---- Many ---- */

static int64_t faults_of(const sim_stats *stats)
{
    int64_t sum = 0;
    for (int i = 0; i < FAULT_COUNT; i++)
        sum += stats->faults[i];
    return sum;
}

/* clang-format off */
#define SUMS(X)                                                                               \
    X(steps) X(grants) X(extends) X(losses) X(refusals) X(unknowns) X(nested) X(joined)       \
    X(renewals) X(jeopardies) X(told_lost) X(revoked) X(broken) X(inspected) X(fenced_writes) \
    X(fenced_refusals) X(excused) X(queued) X(pushed) X(turns) X(detached) X(attached)        \
    X(unattached) X(dropped)
/* clang-format on */

static void add(batch *b, const world *w)
{
    const sim_stats *s = &w->stats;
    sim_stats *t = &b->total;
    b->grants[b->runs] = s->grants;
    b->contended[b->runs] = s->contended;
    b->faults[b->runs] = faults_of(s);
    b->steps[b->runs] = s->steps;
    b->runs++;
    b->idle_runs += s->grants < GRANTS_MIN || s->contended == 0 || faults_of(s) == 0;
#define ADD(field) t->field += s->field;
    SUMS(ADD)
#undef ADD
    for (int i = 0; i < FAULT_COUNT; i++)
        t->faults[i] += s->faults[i];
    if (w->plan.beyond) {
        b->beyond_lost += s->lost_writes > 0;
        b->beyond_overlaps += s->overlaps;
    }
}

static int compare(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

static void print_distribution(const char *name, int64_t *values, uint64_t count)
{
    qsort(values, count, sizeof(*values), compare);
    printf("  %-18s min %6lld   p10 %6lld   median %6lld   p90 %6lld   max %6lld\n", name,
           (long long)values[0], (long long)values[count / 10], (long long)values[count / 2],
           (long long)values[count * 9 / 10], (long long)values[count - 1]);
}

static void print_batch(batch *b)
{
    const sim_stats *t = &b->total;
    printf("%llu seeds, %lld steps: %lld grants, %lld extended, %lld refused, %lld unknown, %lld "
           "lost\n",
           (unsigned long long)b->runs, (long long)t->steps, (long long)t->grants,
           (long long)t->extends, (long long)t->refusals, (long long)t->unknowns,
           (long long)t->losses);
    printf("  %lld re-entered, %lld joined; renewed %lld times; told: %lld in jeopardy, %lld lost, "
           "%lld revoked; %lld seen held, %lld broken\n",
           (long long)t->nested, (long long)t->joined, (long long)t->renewals,
           (long long)t->jeopardies, (long long)t->told_lost, (long long)t->revoked,
           (long long)t->inspected, (long long)t->broken);
    printf("  queued %lld times, %lld grants by message, %lld from thread to thread\n",
           (long long)t->queued, (long long)t->pushed, (long long)t->turns);
    printf("  %lld detached: %lld attached, %lld attempts failed, %lld dropped\n",
           (long long)t->detached, (long long)t->attached, (long long)t->unattached,
           (long long)t->dropped);
    printf("  fenced register: %lld writes, %lld refused; %lld locks whose server forgot fence and "
           "time\n",
           (long long)t->fenced_writes, (long long)t->fenced_refusals, (long long)t->excused);
    print_distribution("steps", b->steps, b->runs);
    print_distribution("grants", b->grants, b->runs);
    print_distribution("contended grants", b->contended, b->runs);
    print_distribution("faults", b->faults, b->runs);
    printf("  faults fired:");
    for (int i = 0; i < FAULT_COUNT; i++)
        printf(" %s %lld", fault_names[i], (long long)t->faults[i]);
    printf("\n  beyond the assumptions: %lld overlaps, %lld runs in which the register without a "
           "fence lost a write\n",
           (long long)b->beyond_overlaps, (long long)b->beyond_lost);
}

static bool batch_begin(batch *b, uint64_t seeds)
{
    *b = (batch){0};
    int64_t **all[] = {&b->grants, &b->contended, &b->faults, &b->steps};
    for (int i = 0; i < 4; i++) {
        *all[i] = calloc(seeds, sizeof(int64_t));
        if (*all[i] == NULL)
            return false;
    }
    return true;
}

static void batch_end(batch *b)
{
    free(b->grants);
    free(b->contended);
    free(b->faults);
    free(b->steps);
}

static int judge_batch(const batch *b)
{
    int failed = 0;
    printf("  idle runs (fewer than %d grants, none contended, or no fault): %lld\n", GRANTS_MIN,
           (long long)b->idle_runs);
    failed = b->idle_runs * 100 > (int64_t)b->runs;
    if (b->runs >= CONTROL_SEEDS && b->beyond_lost == 0) {
        printf("the control did not fail: no write was lost beyond the assumptions\n");
        failed = 1;
    }
    if (b->runs >= CONTROL_SEEDS && (b->total.pushed == 0 || b->total.turns == 0)) {
        printf("nobody was handed a lock by message, or by another thread\n");
        failed = 1;
    }
    if (b->runs >= CONTROL_SEEDS && (b->total.attached == 0 || b->total.dropped == 0)) {
        printf("no hold went from client to client, or none got lost on the way\n");
        failed = 1;
    }
    return failed;
}

static int run_many(uint64_t first, uint64_t seeds, bool go_on)
{
    batch b;
    if (!batch_begin(&b, seeds))
        return 2;
    bool failed = false;
    for (uint64_t seed = first; seed < first + seeds && (!failed || go_on); seed++) {
        world_run(&the_world, seed, false);
        bool this_one = the_world.run.failure[0] != '\0';
        failed |= this_one;
        if (this_one && go_on)
            printf("seed %llu failed: %s\n", (unsigned long long)seed, the_world.run.failure);
        else if (this_one)
            print_failure(&the_world);
        add(&b, &the_world);
        world_free(&the_world);
    }
    print_batch(&b);
    int result = failed ? 1 : judge_batch(&b);
    batch_end(&b);
    return result;
}

/* Each job is a process with a range of seeds of its own. */
static int run_jobs(const options *o)
{
    pid_t pids[JOBS_MAX];
    int failed = 0;
    uint64_t first = o->first > 0 ? o->first : 1;
    if (o->jobs == 1)
        return run_many(first, o->seeds, o->go_on);
    for (uint64_t i = 0; i < o->jobs; i++) {
        uint64_t from = o->seeds * i / o->jobs, to = o->seeds * (i + 1) / o->jobs;
        fflush(stdout);
        pids[i] = fork();
        if (pids[i] == 0)
            exit(run_many(first + from, to - from, o->go_on));
        failed |= pids[i] < 0;
    }
    for (uint64_t i = 0; i < o->jobs; i++) {
        int status = 1;
        if (pids[i] > 0)
            waitpid(pids[i], &status, 0);
        failed |= status != 0;
    }
    return failed;
}

/* ---- Mutants ---- */

static bool run_fails(const sim_mutant *mutant, uint64_t seed, char *how, size_t capacity)
{
    use_mutant(mutant);
    world_run(&the_world, seed, false);
    bool fails = the_world.run.failure[0] != '\0';
    if (fails)
        snprintf(how, capacity, "%.99s", the_world.run.failure);
    world_free(&the_world);
    use_mutant(NULL);
    return fails;
}

/* The number of seeds until it was caught; 0: it lives. A seed that the real thing fails as well
 * proves nothing. */
static int hunt(const sim_mutant *mutant, uint64_t first, char *how, size_t capacity)
{
    char without[100];
    for (int i = 0; i < mutant->seeds; i++)
        if (run_fails(mutant, first + (uint64_t)i, how, capacity) &&
            !run_fails(NULL, first + (uint64_t)i, without, sizeof(without)))
            return i + 1;
    snprintf(how, capacity, "SURVIVED");
    return 0;
}

/* A hunt begins where it is known to be short, unless told where. */
static int run_mutants(const options *o)
{
    int survivors = 0;
    printf("%-22s %8s %8s %8s  %s\n", "mutant", "from", "caught", "allowed", "by");
    for (int i = 0; i < mutant_count; i++) {
        char how[100];
        uint64_t first = o->first > 0 ? o->first : mutants[i].first > 0 ? mutants[i].first : 1;
        int caught = hunt(&mutants[i], first, how, sizeof(how));
        printf("%-22s %8llu %8d %8d  %s\n", mutants[i].name, (unsigned long long)first, caught,
               mutants[i].seeds, how);
        fflush(stdout);
        survivors += caught == 0;
    }
    printf("%d passed, %d failed\n", mutant_count - survivors, survivors);
    return survivors > 0;
}

static const sim_mutant *find_mutant(const char *name)
{
    for (int i = 0; i < mutant_count; i++)
        if (strcmp(mutants[i].name, name) == 0)
            return &mutants[i];
    return NULL;
}

/* ---- Arguments ---- */

static bool read_options(int argc, char **argv, options *o)
{
    *o = (options){.seeds = 100, .jobs = 1};
    for (int i = 1; i < argc; i++) {
        bool more = i + 1 < argc;
        if (strcmp(argv[i], "--seeds") == 0 && more)
            o->seeds = strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--first") == 0 && more)
            o->first = strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--jobs") == 0 && more)
            o->jobs = strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--mutant") == 0 && more)
            o->mutant = argv[++i];
        else if (strcmp(argv[i], "--seed") == 0 && more)
            o->one = true, o->only = strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--trace") == 0)
            o->trace = true;
        else if (strcmp(argv[i], "--go-on") == 0)
            o->go_on = true;
        else if (strcmp(argv[i], "--mutants") == 0)
            o->all_mutants = true;
        else
            return false;
    }
    return o->jobs > 0 && o->jobs <= JOBS_MAX && o->seeds >= o->jobs &&
           (o->mutant == NULL || find_mutant(o->mutant) != NULL);
}

int main(int argc, char **argv)
{
    options o;
    if (!read_options(argc, argv, &o)) {
        fprintf(stderr, "usage: holdfast-sim [--seeds N] [--first S] | --seed S [--trace] | "
                        "--mutants; --mutant NAME with either\n");
        return 2;
    }
    if (o.mutant != NULL)
        use_mutant(find_mutant(o.mutant));
    if (o.all_mutants)
        return run_mutants(&o);
    return o.one ? run_one(o.only, o.trace) : run_jobs(&o);
}
