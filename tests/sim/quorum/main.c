/* SPDX-License-Identifier: MIT */
/* The command line of the quorum's simulator.
 *
 *   holdfast-quorum-sim --seeds N [--first S] [--jobs J]   N runs; ends with the first that finds
 *                       --go-on                            something, or names them all
 *   holdfast-quorum-sim --seed S [--trace]                 one run, with its trace
 *   holdfast-quorum-sim --nodes N ...                      always so many servers
 *   holdfast-quorum-sim --scenario NAME                    a story with a known end (scenario.c)
 *   holdfast-quorum-sim --mutants                          every mutant must be caught
 *                       --kept LIST [--keep]               from seeds that caught them [keeps them]
 *   holdfast-quorum-sim --mutant NAME --seeds N            how soon one is
 *
 * A batch is judged too: runs that do nothing prove nothing, so the numbers of grants and faults
 * are shown and have a minimum; and where clocks jump there must be holds that overlap, or the
 * checker is blind. */
#include <stdio.h>
#include <stdlib.h>

#include "base/mutant.h"
#include "quorum.h"
#include "simulator.h"

const mutant *active_mutant;

enum { GRANTS_MIN = 3, CONTROL_SEEDS = 400 };

static struct {
    stats total;
    int64_t idle_runs;
} sums;

static world the_world;
static int always_nodes; /* 0: as many as the seed says */

/* ---- Runs ---- */

static void run(world *w, uint64_t seed, bool print_trace)
{
    world_run(w, seed, always_nodes, print_trace);
}

static sim_figures figures(const world *w)
{
    const stats *s = &w->stats;
    sim_figures f = {.steps = s->steps, .grants = s->grants, .contended = s->contended};
    for (int i = 0; i < FAULT_COUNT; i++)
        f.faults += s->faults[i];
    return f;
}

/* clang-format off */
#define SUMS(X)                                                                              \
    X(steps) X(grants) X(contended) X(extends) X(losses) X(refusals) X(unknowns) X(overlaps) \
    X(nested) X(joined) X(fenced_writes) X(fenced_refusals) X(forgetting) X(rejoined)        \
    X(served_in_order) X(messages) X(ids_given) X(ids_outdated) X(ids_jumps)                 \
    X(ids_unpromised) X(ids_twice) X(sights) X(sights_missed) X(hidden)
/* clang-format on */

static void add(const world *w)
{
    const stats *s = &w->stats;
    stats *t = &sums.total;
    sums.idle_runs +=
        s->grants < GRANTS_MIN || (w->plan.kind != KIND_QUIET && figures(w).faults == 0);
#define ADD(field) t->field += s->field;
    SUMS(ADD)
#undef ADD
    if (s->messages_max > t->messages_max)
        t->messages_max = s->messages_max;
    for (int i = 0; i < FAULT_COUNT; i++)
        t->faults[i] += s->faults[i];
}

static void print(sim_batch *batch)
{
    const stats *t = &sums.total;
    printf("%llu seeds, %lld steps: %lld grants, %lld extended, %lld refused, %lld unknown, %lld "
           "lost\n",
           (unsigned long long)batch->runs, (long long)t->steps, (long long)t->grants,
           (long long)t->extends, (long long)t->refusals, (long long)t->unknowns,
           (long long)t->losses);
    printf("  %lld re-entered, %lld joined; fenced register: %lld writes, %lld refused\n",
           (long long)t->nested, (long long)t->joined, (long long)t->fenced_writes,
           (long long)t->fenced_refusals);
    printf("  servers forgot %lld times, voted again %lld times and hid their run_id %lld times; "
           "where clocks jump: %lld moments of overlap\n",
           (long long)t->forgetting, (long long)t->rejoined, (long long)t->hidden,
           (long long)t->overlaps);
    printf("  quiet worlds: %lld served in order; at most %lld script calls for an acquire\n",
           (long long)t->served_in_order, (long long)t->messages_max);
    printf(
        "  ids: %lld blocks, %lld refused as outdated, %lld jumps; given where it is not promised "
        "that they are unique: %lld, of which %lld were not\n",
        (long long)t->ids_given, (long long)t->ids_outdated, (long long)t->ids_jumps,
        (long long)t->ids_unpromised, (long long)t->ids_twice);
    printf("  observers were told %lld things, %lld times that they missed some\n",
           (long long)t->sights, (long long)t->sights_missed);
    simulator_print_figures(batch);
    simulator_print_faults(fault_names, t->faults, FAULT_COUNT);
}

static bool proves_something(const sim_batch *batch)
{
    bool proves = sums.idle_runs * 50 <= (int64_t)batch->runs;
    printf("  idle runs (fewer than %d grants, or no fault in a world that has some): %lld\n",
           GRANTS_MIN, (long long)sums.idle_runs);
    if (batch->runs >= CONTROL_SEEDS && always_nodes != 1 &&
        (sums.total.overlaps == 0 || sums.total.fenced_refusals == 0 || sums.total.rejoined == 0 ||
         sums.total.served_in_order == 0 || sums.total.sights == 0 || sums.total.ids_given == 0 ||
         sums.total.ids_outdated == 0 || sums.total.ids_jumps == 0)) {
        printf("the control did not fail: no overlap where clocks jump, no refused write, no "
               "server that voted again, nobody who waited or watched, or no ids that were given, "
               "refused or "
               "ahead of time\n");
        proves = false;
    }
    return proves;
}

/* ---- Mutants ---- */

/* Bodies are kept while the servers are there, each of which asks for them after a restart. */
const char *mutant_change_script(const char *name, const char *body)
{
    static const mutant *made_for;
    static const char *made_of;
    static char *made;
    if (made_for == active_mutant && made_of == body)
        return made;
    char *next = script_edited(active_mutant->edits, name, body);
    if (next == NULL)
        return NULL;
    free(made);
    made = next;
    made_of = body;
    made_for = active_mutant;
    return made;
}

static sim_prey mutant_as_prey(int number)
{
    if (number >= mutant_count)
        return (sim_prey){0};
    const mutant *m = &mutants[number];
    return (sim_prey){.name = m->name, .seeds = m->seeds, .scenario = m->scenario};
}

static void use_mutant(int number)
{
    active_mutant = number != NO_MUTANT ? &mutants[number] : NULL;
    hf__mutant = active_mutant != NULL ? active_mutant->core : 0;
}

static void print_replay(uint64_t seed)
{
    printf("replay: make sim-quorum SEED=%llu", (unsigned long long)seed);
    if (always_nodes > 0)
        printf(" NODES=%d", always_nodes);
    if (active_mutant != NULL)
        printf(" MUTANT=%s", active_mutant->name);
    puts("");
}

static bool scenario_fails_quietly(const char *name, char how[HOW_SIZE])
{
    return scenario_fails(&the_world, name, false, true, how, HOW_SIZE);
}

/* ---- Arguments ---- */

static const simulator quorum = {.world = &the_world,
                                 .run = run,
                                 .figures = figures,
                                 .print_replay = print_replay,
                                 .add = add,
                                 .print = print,
                                 .proves_something = proves_something,
                                 .mutant = mutant_as_prey,
                                 .use_mutant = use_mutant,
                                 .scenario_fails = scenario_fails_quietly};

static bool read_options(int argc, char **argv, sim_options *o, const char **scenario)
{
    *o = (sim_options){.seeds = 100, .jobs = 1};
    uint64_t nodes = 0;
    for (int i = 1; i < argc; i++)
        if (!simulator_option(o, argc, argv, &i) &&
            !simulator_number("--nodes", argc, argv, &i, &nodes) &&
            !simulator_text("--scenario", argc, argv, &i, scenario))
            return false;
    always_nodes = (int)nodes;
    return nodes <= NODES_MAX && simulator_options_valid(&quorum, o);
}

int main(int argc, char **argv)
{
    sim_options o;
    const char *scenario = NULL;
    char how[HOW_SIZE];
    if (!read_options(argc, argv, &o, &scenario)) {
        fprintf(stderr, "usage: holdfast-quorum-sim [--seeds N] [--first S] | --seed S [--trace] | "
                        "--scenario NAME | --mutants; --nodes N, --mutant NAME with either\n");
        return 2;
    }
    use_mutant(simulator_find_mutant(&quorum, o.mutant));
    if (scenario == NULL)
        return simulator_main(&quorum, &o);
    bool failed = scenario_fails(&the_world, scenario, o.trace, false, how, HOW_SIZE);
    if (failed)
        printf("scenario %s: %s\n", scenario, how);
    return failed;
}
