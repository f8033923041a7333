/* SPDX-License-Identifier: MIT */
/* Worlds from many seeds. A run is judged by its world; a batch of runs is judged too, since runs
 * that do nothing prove nothing: what happened in them is shown as a distribution, and the
 * simulator says whether that is enough. A mutant is caught by a seed that the real thing passes.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "simulator.h"

enum { JOBS_MAX = 64, MUTANTS_MAX = 512 };

/* ---- One run ---- */

static bool run(const simulator *s, uint64_t seed, bool trace)
{
    s->run(s->world, seed, trace);
    return world_clockwork(s->world)->failure[0] == '\0';
}

static void print_failure(const simulator *s, uint64_t seed)
{
    clockwork_print_failure(world_clockwork(s->world));
    s->print_replay(seed);
}

static int run_one(const simulator *s, const sim_options *o)
{
    bool passed = run(s, o->only, o->trace);
    sim_figures figures = s->figures(s->world);
    if (!passed)
        print_failure(s, o->only);
    printf("seed %llu: %lld steps, %lld grants, trace hash %016llx%s\n",
           (unsigned long long)o->only, (long long)figures.steps, (long long)figures.grants,
           (unsigned long long)world_clockwork(s->world)->trace_hash, passed ? "" : ", FAILED");
    world_free(s->world);
    return !passed;
}

/* ---- What happened in many ---- */

static void *numbers(uint64_t count)
{
    void *all = calloc(count, sizeof(int64_t));
    if (all == NULL)
        abort();
    return all;
}

static sim_batch batch_begin(uint64_t runs)
{
    return (sim_batch){.steps = numbers(runs),
                       .grants = numbers(runs),
                       .contended = numbers(runs),
                       .faults = numbers(runs)};
}

static void batch_end(sim_batch *batch)
{
    free(batch->steps);
    free(batch->grants);
    free(batch->contended);
    free(batch->faults);
}

static void batch_add(sim_batch *batch, sim_figures figures)
{
    batch->steps[batch->runs] = figures.steps;
    batch->grants[batch->runs] = figures.grants;
    batch->contended[batch->runs] = figures.contended;
    batch->faults[batch->runs] = figures.faults;
    batch->runs++;
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

void simulator_print_figures(sim_batch *batch)
{
    print_distribution("steps", batch->steps, batch->runs);
    print_distribution("grants", batch->grants, batch->runs);
    print_distribution("contended grants", batch->contended, batch->runs);
    print_distribution("faults", batch->faults, batch->runs);
}

void simulator_print_faults(const char *const *names, const int64_t *fired, int count)
{
    printf("  faults fired:");
    for (int i = 0; i < count; i++)
        printf(" %s %lld", names[i], (long long)fired[i]);
    puts("");
}

/* ---- Many ---- */

static int run_many(const simulator *s, const sim_options *o, uint64_t first, uint64_t seeds)
{
    sim_batch batch = batch_begin(seeds);
    bool failed = false;
    for (uint64_t seed = first; seed < first + seeds && (!failed || o->go_on); seed++) {
        bool passed = run(s, seed, false);
        failed |= !passed;
        if (!passed && o->go_on)
            printf("seed %llu failed: %s\n", (unsigned long long)seed,
                   world_clockwork(s->world)->failure);
        else if (!passed)
            print_failure(s, seed);
        batch_add(&batch, s->figures(s->world));
        s->add(s->world);
        world_free(s->world);
    }
    s->print(&batch);
    failed = failed || !s->proves_something(&batch);
    batch_end(&batch);
    return failed;
}

static bool job_ended_well(pid_t pid)
{
    int status = 1;
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

/* Each job is a process with a range of seeds of its own. */
static int run_jobs(const simulator *s, const sim_options *o)
{
    pid_t pids[JOBS_MAX];
    int failed = 0;
    uint64_t first = o->first > 0 ? o->first : 1;
    if (o->jobs == 1)
        return run_many(s, o, first, o->seeds);
    for (uint64_t i = 0; i < o->jobs; i++) {
        uint64_t from = o->seeds * i / o->jobs, to = o->seeds * (i + 1) / o->jobs;
        fflush(stdout);
        pids[i] = fork();
        if (pids[i] == 0)
            exit(run_many(s, o, first + from, to - from));
    }
    for (uint64_t i = 0; i < o->jobs; i++)
        failed |= !job_ended_well(pids[i]);
    return failed;
}

/* ---- Mutants ---- */

int simulator_find_mutant(const simulator *s, const char *name)
{
    for (int i = 0; name != NULL && s->mutant(i).name != NULL; i++)
        if (strcmp(s->mutant(i).name, name) == 0)
            return i;
    return NO_MUTANT;
}

static bool seed_fails(const simulator *s, uint64_t seed, char how[HOW_SIZE])
{
    bool passed = run(s, seed, false);
    if (!passed)
        snprintf(how, HOW_SIZE, "%.99s", world_clockwork(s->world)->failure);
    world_free(s->world);
    return !passed;
}

/* `mutant`: or NO_MUTANT, in the run that is to catch the prey. */
static bool fails(const simulator *s, int mutant, const sim_prey *prey, uint64_t seed,
                  char how[HOW_SIZE])
{
    s->use_mutant(mutant);
    bool found =
        prey->scenario != NULL ? s->scenario_fails(prey->scenario, how) : seed_fails(s, seed, how);
    s->use_mutant(NO_MUTANT);
    return found;
}

/* The number of seeds until it was caught; 0: it lives. A seed that the real thing fails as well
 * proves nothing. */
static int hunt(const simulator *s, int mutant, uint64_t first, char how[HOW_SIZE])
{
    sim_prey prey = s->mutant(mutant);
    char without[HOW_SIZE];
    for (int i = 0; i < prey.seeds; i++)
        if (fails(s, mutant, &prey, first + (uint64_t)i, how) &&
            !fails(s, NO_MUTANT, &prey, first + (uint64_t)i, without))
            return i + 1;
    snprintf(how, HOW_SIZE, "SURVIVED");
    return 0;
}

/* Where hunts begin, and what came of them. The processes that hunt share it, and take the next
 * mutant that nobody has taken. */
typedef struct mutant_hunts {
    atomic_int taken;
    uint64_t first[MUTANTS_MAX]; /* 1, or where the list of kept seeds says that it is short */
    int caught[MUTANTS_MAX];     /* as hunt() says it */
} mutant_hunts;

static void hunt_all(const simulator *s, mutant_hunts *hunts, int count)
{
    int i;
    while ((i = atomic_fetch_add(&hunts->taken, 1)) < count) {
        char how[HOW_SIZE];
        sim_prey prey = s->mutant(i);
        hunts->caught[i] = hunt(s, i, hunts->first[i], how);
        printf("%-22s %8llu %8d %8d  %s\n", prey.name, (unsigned long long)hunts->first[i],
               hunts->caught[i], prey.seeds, how);
        fflush(stdout);
    }
}

/* A line of the list: a mutant, and a seed that catches it. */
static bool read_kept(const simulator *s, const char *path, mutant_hunts *hunts)
{
    FILE *list = fopen(path, "r");
    char name[64];
    unsigned long long seed;
    while (list != NULL && fscanf(list, "%63s %llu", name, &seed) == 2) {
        int mutant = simulator_find_mutant(s, name);
        if (mutant != NO_MUTANT)
            hunts->first[mutant] = seed;
    }
    return list != NULL && fclose(list) == 0;
}

/* The seed of one that survived stays: it caught it once. */
static bool write_kept(const simulator *s, const char *path, const mutant_hunts *hunts)
{
    FILE *list = fopen(path, "w");
    for (int i = 0; list != NULL && s->mutant(i).name != NULL; i++) {
        uint64_t seed = hunts->first[i];
        if (hunts->caught[i] > 1)
            seed += (uint64_t)hunts->caught[i] - 1;
        if (s->mutant(i).scenario == NULL)
            fprintf(list, "%s %llu\n", s->mutant(i).name, (unsigned long long)seed);
    }
    return list != NULL && fclose(list) == 0;
}

/* Each job hunts in a process of its own. */
static int run_hunts(const simulator *s, const sim_options *o, mutant_hunts *hunts, int count)
{
    pid_t pids[JOBS_MAX];
    int failed = 0, survivors = 0;
    printf("%-22s %8s %8s %8s  %s\n", "mutant", "from", "caught", "allowed", "by");
    fflush(stdout);
    for (uint64_t i = 0; i < o->jobs; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            hunt_all(s, hunts, count);
            exit(0);
        }
    }
    for (uint64_t i = 0; i < o->jobs; i++)
        failed |= !job_ended_well(pids[i]);
    for (int i = 0; i < count; i++)
        survivors += hunts->caught[i] == 0;
    printf("%d passed, %d failed\n", count - survivors, survivors);
    return failed | (survivors > 0);
}

static int run_mutants(const simulator *s, const sim_options *o)
{
    int count = 0;
    while (s->mutant(count).name != NULL)
        count++;
    mutant_hunts *hunts =
        mmap(NULL, sizeof(*hunts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (hunts == MAP_FAILED || count > MUTANTS_MAX)
        abort();
    for (int i = 0; i < count; i++)
        hunts->first[i] = o->first > 0 ? o->first : 1;
    if (o->kept != NULL && !read_kept(s, o->kept, hunts)) {
        fprintf(stderr, "%s cannot be read\n", o->kept);
        return 2;
    }
    int failed = run_hunts(s, o, hunts, count);
    if (o->keep && (o->kept == NULL || !write_kept(s, o->kept, hunts))) {
        fprintf(stderr, "the seeds could not be kept\n");
        return 2;
    }
    munmap(hunts, sizeof(*hunts));
    return failed;
}

/* ---- Arguments ---- */

bool simulator_text(const char *name, int argc, char **argv, int *i, const char **value)
{
    if (strcmp(argv[*i], name) != 0 || *i + 1 >= argc)
        return false;
    *value = argv[++*i];
    return true;
}

bool simulator_number(const char *name, int argc, char **argv, int *i, uint64_t *value)
{
    const char *text;
    if (!simulator_text(name, argc, argv, i, &text))
        return false;
    *value = strtoull(text, NULL, 10);
    return true;
}

static bool read_flag(const char *name, const char *argument, bool *flag)
{
    if (strcmp(argument, name) != 0)
        return false;
    *flag = true;
    return true;
}

bool simulator_option(sim_options *o, int argc, char **argv, int *i)
{
    if (simulator_number("--seed", argc, argv, i, &o->only)) {
        o->one = true;
        return true;
    }
    return simulator_number("--seeds", argc, argv, i, &o->seeds) ||
           simulator_number("--first", argc, argv, i, &o->first) ||
           simulator_number("--jobs", argc, argv, i, &o->jobs) ||
           simulator_text("--mutant", argc, argv, i, &o->mutant) ||
           simulator_text("--kept", argc, argv, i, &o->kept) ||
           read_flag("--keep", argv[*i], &o->keep) ||
           read_flag("--mutants", argv[*i], &o->all_mutants) ||
           read_flag("--trace", argv[*i], &o->trace) || read_flag("--go-on", argv[*i], &o->go_on);
}

bool simulator_options_valid(const simulator *s, const sim_options *o)
{
    return o->jobs > 0 && o->jobs <= JOBS_MAX && o->seeds >= o->jobs &&
           (o->mutant == NULL || simulator_find_mutant(s, o->mutant) != NO_MUTANT);
}

int simulator_main(const simulator *s, const sim_options *o)
{
    if (o->all_mutants)
        return run_mutants(s, o);
    return o->one ? run_one(s, o) : run_jobs(s, o);
}
