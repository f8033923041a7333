/* SPDX-License-Identifier: MIT */
/* The command line of the quorum's simulator.
 *
 *   holdfast-quorum-sim --seeds N [--first S] [--jobs J]   N runs; ends with the first that finds
 *                       --go-on                            something, or names them all
 *   holdfast-quorum-sim --seed S [--trace]                 one run, with its trace
 *   holdfast-quorum-sim --nodes N ...                      always so many servers
 *   holdfast-quorum-sim --scenario NAME                    a story with a known end (scenario.c)
 *   holdfast-quorum-sim --mutants                          every mutant must be caught
 *   holdfast-quorum-sim --mutant NAME --seeds N            how soon one is
 *
 * A batch is judged too: runs that do nothing prove nothing, so the numbers of grants and faults
 * are shown and have a minimum; and where clocks jump there must be holds that overlap, or the
 * checker is blind. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mutant.h"
#include "quorum.h"

enum { JOBS_MAX = 64, GRANTS_MIN = 3, CONTROL_SEEDS = 400 };

typedef struct options {
    uint64_t first, seeds, only, jobs;
    int nodes;
    bool one, trace, all_mutants, go_on;
    const char *mutant, *scenario;
} options;

typedef struct batch {
    uint64_t runs;
    stats total;
    int64_t messages_max, idle_runs;
    int64_t *grants, *contended, *faults, *steps; /* of each run */
} batch;

static world the_world;

/* ---- One run ---- */

static const mutant *find_mutant(const char *name)
{
    for (int i = 0; i < mutant_count; i++)
        if (strcmp(mutants[i].name, name) == 0)
            return &mutants[i];
    return NULL;
}

static const char *mutant_name(void)
{
    for (int i = 0; i < mutant_count; i++)
        if (hf__mutant != 0 && mutants[i].core == hf__mutant)
            return mutants[i].name;
    return NULL;
}

static void print_failure(const world *w, const options *o)
{
    clockwork_print_failure(&w->run);
    printf("replay: make sim-quorum SEED=%llu", (unsigned long long)w->run.seed);
    if (o->nodes > 0)
        printf(" NODES=%d", o->nodes);
    if (mutant_name() != NULL)
        printf(" MUTANT=%s", mutant_name());
    puts("");
}

static int run_one(const options *o)
{
    world *w = &the_world;
    world_run(w, o->only, o->nodes, o->trace);
    bool failed = w->run.failure[0] != '\0';
    if (failed)
        print_failure(w, o);
    printf("seed %llu: %lld steps, %lld grants, trace hash %016llx%s\n",
           (unsigned long long)o->only, (long long)w->stats.steps, (long long)w->stats.grants,
           (unsigned long long)w->run.trace_hash, failed ? ", FAILED" : "");
    world_free(w);
    return failed;
}

/* ---- Many ---- */

static int64_t faults_of(const stats *s)
{
    int64_t sum = 0;
    for (int i = 0; i < FAULT_COUNT; i++)
        sum += s->faults[i];
    return sum;
}

/* clang-format off */
#define SUMS(X)                                                                              \
    X(steps) X(grants) X(contended) X(extends) X(losses) X(refusals) X(unknowns) X(overlaps) \
    X(nested) X(joined) X(fenced_writes) X(fenced_refusals) X(forgetting) X(rejoined)        \
    X(served_in_order) X(messages)
/* clang-format on */

static void add(batch *b, const world *w)
{
    const stats *s = &w->stats;
    stats *t = &b->total;
    bool idle = s->grants < GRANTS_MIN || (w->plan.kind != KIND_QUIET && faults_of(s) == 0);
    b->grants[b->runs] = s->grants;
    b->contended[b->runs] = s->contended;
    b->faults[b->runs] = faults_of(s);
    b->steps[b->runs] = s->steps;
    b->runs++;
    b->idle_runs += idle;
#define ADD(field) t->field += s->field;
    SUMS(ADD)
#undef ADD
    if (s->messages_max > t->messages_max)
        t->messages_max = s->messages_max;
    for (int i = 0; i < FAULT_COUNT; i++)
        t->faults[i] += s->faults[i];
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
    const stats *t = &b->total;
    printf("%llu seeds, %lld steps: %lld grants, %lld extended, %lld refused, %lld unknown, %lld "
           "lost\n",
           (unsigned long long)b->runs, (long long)t->steps, (long long)t->grants,
           (long long)t->extends, (long long)t->refusals, (long long)t->unknowns,
           (long long)t->losses);
    printf("  %lld re-entered, %lld joined; fenced register: %lld writes, %lld refused\n",
           (long long)t->nested, (long long)t->joined, (long long)t->fenced_writes,
           (long long)t->fenced_refusals);
    printf("  servers forgot %lld times and voted again %lld times; where clocks jump: %lld "
           "moments of overlap\n",
           (long long)t->forgetting, (long long)t->rejoined, (long long)t->overlaps);
    printf("  quiet worlds: %lld served in order; at most %lld script calls for an acquire\n",
           (long long)t->served_in_order, (long long)t->messages_max);
    print_distribution("steps", b->steps, b->runs);
    print_distribution("grants", b->grants, b->runs);
    print_distribution("contended grants", b->contended, b->runs);
    print_distribution("faults", b->faults, b->runs);
    printf("  faults fired:");
    for (int i = 0; i < FAULT_COUNT; i++)
        printf(" %s %lld", fault_names[i], (long long)t->faults[i]);
    puts("");
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

static int judge_batch(const batch *b, const options *o)
{
    int failed = b->idle_runs * 50 > (int64_t)b->runs;
    printf("  idle runs (fewer than %d grants, or no fault in a world that has some): %lld\n",
           GRANTS_MIN, (long long)b->idle_runs);
    if (b->runs >= CONTROL_SEEDS && o->nodes != 1 &&
        (b->total.overlaps == 0 || b->total.fenced_refusals == 0 || b->total.rejoined == 0 ||
         b->total.served_in_order == 0)) {
        printf("the control did not fail: no overlap where clocks jump, no refused write, no "
               "server that voted again, or nobody who waited\n");
        failed = 1;
    }
    return failed;
}

static int run_many(const options *o, uint64_t first, uint64_t seeds)
{
    batch b;
    if (!batch_begin(&b, seeds))
        return 2;
    bool failed = false;
    for (uint64_t seed = first; seed < first + seeds && (!failed || o->go_on); seed++) {
        world_run(&the_world, seed, o->nodes, false);
        bool this_one = the_world.run.failure[0] != '\0';
        failed |= this_one;
        if (this_one && o->go_on)
            printf("seed %llu failed: %s\n", (unsigned long long)seed, the_world.run.failure);
        else if (this_one)
            print_failure(&the_world, o);
        add(&b, &the_world);
        world_free(&the_world);
    }
    print_batch(&b);
    int result = failed ? 1 : judge_batch(&b, o);
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
        return run_many(o, first, o->seeds);
    for (uint64_t i = 0; i < o->jobs; i++) {
        uint64_t from = o->seeds * i / o->jobs, to = o->seeds * (i + 1) / o->jobs;
        fflush(stdout);
        pids[i] = fork();
        if (pids[i] == 0)
            exit(run_many(o, first + from, to - from));
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

static bool run_fails(const mutant *m, bool active, uint64_t seed, int nodes, char how[100])
{
    hf__mutant = active ? m->core : 0;
    bool fails;
    if (m->scenario != NULL) {
        fails = scenario_fails(&the_world, m->scenario, false, true, how, 100);
    } else {
        world_run(&the_world, seed, nodes, false);
        fails = the_world.run.failure[0] != '\0';
        if (fails)
            snprintf(how, 100, "%.99s", the_world.run.failure);
        world_free(&the_world);
    }
    hf__mutant = 0;
    return fails;
}

/* The number of seeds until it was caught; 0: it lives. A seed that the real thing fails as well
 * proves nothing. */
static int hunt(const mutant *m, uint64_t first, int nodes, char how[100])
{
    char without[100];
    for (int i = 0; i < m->seeds; i++)
        if (run_fails(m, true, first + (uint64_t)i, nodes, how) &&
            !run_fails(m, false, first + (uint64_t)i, nodes, without))
            return i + 1;
    snprintf(how, 100, "SURVIVED");
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
        int caught = hunt(&mutants[i], first, o->nodes, how);
        printf("%-22s %8llu %8d %8d  %s\n", mutants[i].name, (unsigned long long)first, caught,
               mutants[i].seeds, how);
        fflush(stdout);
        survivors += caught == 0;
    }
    printf("%d passed, %d failed\n", mutant_count - survivors, survivors);
    return survivors > 0;
}

/* ---- Arguments ---- */

static bool read_number(const char *name, int argc, char **argv, int *i, uint64_t *value)
{
    if (strcmp(argv[*i], name) != 0 || *i + 1 >= argc)
        return false;
    *value = strtoull(argv[++*i], NULL, 10);
    return true;
}

static bool read_options(int argc, char **argv, options *o)
{
    *o = (options){.seeds = 100, .jobs = 1};
    for (int i = 1; i < argc; i++) {
        uint64_t nodes = 0;
        bool more = i + 1 < argc;
        if (read_number("--seeds", argc, argv, &i, &o->seeds) ||
            read_number("--first", argc, argv, &i, &o->first) ||
            read_number("--jobs", argc, argv, &i, &o->jobs))
            continue;
        if (read_number("--nodes", argc, argv, &i, &nodes))
            o->nodes = (int)nodes;
        else if (read_number("--seed", argc, argv, &i, &o->only))
            o->one = true;
        else if (strcmp(argv[i], "--mutant") == 0 && more)
            o->mutant = argv[++i];
        else if (strcmp(argv[i], "--scenario") == 0 && more)
            o->scenario = argv[++i];
        else if (strcmp(argv[i], "--trace") == 0)
            o->trace = true;
        else if (strcmp(argv[i], "--go-on") == 0)
            o->go_on = true;
        else if (strcmp(argv[i], "--mutants") == 0)
            o->all_mutants = true;
        else
            return false;
    }
    return o->jobs > 0 && o->jobs <= JOBS_MAX && o->seeds >= o->jobs && o->nodes >= 0 &&
           o->nodes <= NODES_MAX && (o->mutant == NULL || find_mutant(o->mutant) != NULL);
}

int main(int argc, char **argv)
{
    options o;
    if (!read_options(argc, argv, &o)) {
        fprintf(stderr, "usage: holdfast-quorum-sim [--seeds N] [--first S] | --seed S [--trace] | "
                        "--scenario NAME | --mutants; --nodes N, --mutant NAME with either\n");
        return 2;
    }
    if (o.mutant != NULL)
        hf__mutant = find_mutant(o.mutant)->core;
    char how[100];
    if (o.scenario != NULL && scenario_fails(&the_world, o.scenario, o.trace, false, how, 100)) {
        printf("scenario %s: %s\n", o.scenario, how);
        return 1;
    }
    if (o.scenario != NULL)
        return 0;
    if (o.all_mutants)
        return run_mutants(&o);
    return o.one ? run_one(&o) : run_jobs(&o);
}
