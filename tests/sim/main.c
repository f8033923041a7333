/* SPDX-License-Identifier: MIT */
/* The simulator's command line.
 *
 *   holdfast-sim --seeds N [--first S]     N runs; ends with the first seed that finds something
 *                --go-on                   or names them all
 *   holdfast-sim --seed S [--trace]        one run, with its trace
 *   holdfast-sim --mutants [--first S]     every mutant must be caught
 *                --kept LIST [--keep]      beginning with seeds that once caught them [keeps them]
 *   holdfast-sim --mutant NAME --seeds N   how soon one is
 *
 * A run is judged by check.c. A batch is judged too: runs that do nothing prove nothing, so the
 * numbers of grants and faults are shown as a distribution and have a minimum; and the register
 * without a fence must lose writes in runs beyond the assumptions, or the checker is blind. */
#include <stdio.h>

#include "base/mutant.h"
#include "mutants.h"
#include "sim.h"
#include "simulator.h"

enum { GRANTS_MIN = 5, CONTROL_SEEDS = 100, UNDER_WAY_MIN = 20 };

static struct {
    sim_stats total;
    int64_t beyond_lost, beyond_overlaps, idle_runs;
} sums;

static world the_world;

/* ---- Runs ---- */

static sim_figures figures(const world *w)
{
    const sim_stats *s = &w->stats;
    sim_figures f = {.steps = s->steps, .grants = s->grants, .contended = s->contended};
    for (int i = 0; i < FAULT_COUNT; i++)
        f.faults += s->faults[i];
    return f;
}

/* clang-format off */
#define SUMS(X)                                                                               \
    X(steps) X(grants) X(extends) X(losses) X(refusals) X(unknowns) X(nested) X(joined)       \
    X(renewals) X(jeopardies) X(told_lost) X(revoked) X(broken) X(inspected) X(fenced_writes) \
    X(fenced_refusals) X(excused) X(queued) X(pushed) X(turns) X(detached) X(attached)        \
    X(unattached) X(dropped) X(ids_blocks) X(ids_jumps) X(ids_forgot) X(ids_excused) X(sold)  \
    X(reserved) X(confirmed) X(ended) X(taken_back) X(refused_orders) X(begun_again) X(deleted) \
    X(forgotten_orders) X(sights) X(sights_missed) X(ids_refused) X(hidden)
/* clang-format on */

static void add(const world *w)
{
    const sim_stats *s = &w->stats;
    sim_stats *t = &sums.total;
    sums.idle_runs += s->grants < GRANTS_MIN || s->contended == 0 || figures(w).faults == 0;
#define ADD(field) t->field += s->field;
    SUMS(ADD)
#undef ADD
    if (s->under_way_max > t->under_way_max)
        t->under_way_max = s->under_way_max;
    for (int i = 0; i < FAULT_COUNT; i++)
        t->faults[i] += s->faults[i];
    if (w->plan.beyond) {
        sums.beyond_lost += s->lost_writes > 0;
        sums.beyond_overlaps += s->overlaps;
    }
}

static void print(sim_batch *batch)
{
    const sim_stats *t = &sums.total;
    printf("%llu seeds, %lld steps: %lld grants, %lld extended, %lld refused, %lld unknown, %lld "
           "lost\n",
           (unsigned long long)batch->runs, (long long)t->steps, (long long)t->grants,
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
    printf("  %lld blocks of ids, %lld by new processes, of which %lld had forgotten; %lld times "
           "beyond the assumptions\n",
           (long long)t->ids_blocks, (long long)t->ids_jumps, (long long)t->ids_forgot,
           (long long)t->ids_excused);
    printf("  servers hid their run_id %lld times, and refused ids %lld times\n",
           (long long)t->hidden, (long long)t->ids_refused);
    printf("  %lld sold, %lld taken back, %lld reserved, %lld confirmed, %lld ended, %lld refused; "
           "%lld items begun, %lld deleted, %lld requests forgotten\n",
           (long long)t->sold, (long long)t->taken_back, (long long)t->reserved,
           (long long)t->confirmed, (long long)t->ended, (long long)t->refused_orders,
           (long long)t->begun_again, (long long)t->deleted, (long long)t->forgotten_orders);
    printf("  observers were told %lld things, %lld times that they missed some; at most %lld "
           "calls of one client at once\n",
           (long long)t->sights, (long long)t->sights_missed, (long long)t->under_way_max);
    printf("  fenced register: %lld writes, %lld refused; %lld locks whose server forgot fence and "
           "time\n",
           (long long)t->fenced_writes, (long long)t->fenced_refusals, (long long)t->excused);
    simulator_print_figures(batch);
    simulator_print_faults(fault_names, t->faults, FAULT_COUNT);
    printf("  beyond the assumptions: %lld overlaps, %lld runs in which the register without a "
           "fence lost a write\n",
           (long long)sums.beyond_overlaps, (long long)sums.beyond_lost);
}

static bool proves_something(const sim_batch *batch)
{
    bool control = batch->runs >= CONTROL_SEEDS;
    bool proves = sums.idle_runs * 100 <= (int64_t)batch->runs;
    printf("  idle runs (fewer than %d grants, none contended, or no fault): %lld\n", GRANTS_MIN,
           (long long)sums.idle_runs);
    if (control && sums.beyond_lost == 0) {
        printf("the control did not fail: no write was lost beyond the assumptions\n");
        proves = false;
    }
    if (control && (sums.total.pushed == 0 || sums.total.turns == 0)) {
        printf("nobody was handed a lock by message, or by another thread\n");
        proves = false;
    }
    if (control && sums.total.under_way_max < UNDER_WAY_MIN) {
        printf("no client had %d calls under way at once\n", UNDER_WAY_MIN);
        proves = false;
    }
    if (control && (sums.total.sights == 0 || sums.total.sights_missed == 0)) {
        printf("no observer was told anything, or none missed anything\n");
        proves = false;
    }
    if (control && (sums.total.attached == 0 || sums.total.dropped == 0)) {
        printf("no hold went from client to client, or none got lost on the way\n");
        proves = false;
    }
    if (control && (sums.total.ids_forgot == 0 || sums.total.confirmed == 0 ||
                    sums.total.ended == 0 || sums.total.refused_orders == 0)) {
        printf("no server forgot ids, or nobody bought, hesitated or was refused\n");
        proves = false;
    }
    return proves;
}

/* ---- Mutants ---- */

static sim_prey mutant(int number)
{
    if (number >= mutant_count)
        return (sim_prey){0};
    const sim_mutant *m = &mutants[number];
    return (sim_prey){.name = m->name, .seeds = m->seeds};
}

static void use_mutant(int number)
{
    active_mutant = number != NO_MUTANT ? &mutants[number] : NULL;
    hf__mutant = active_mutant != NULL ? active_mutant->core : 0;
}

static void print_replay(uint64_t seed)
{
    printf("replay: make sim SEED=%llu%s%s\n", (unsigned long long)seed,
           active_mutant != NULL ? " MUTANT=" : "",
           active_mutant != NULL ? active_mutant->name : "");
}

/* ---- Arguments ---- */

static const simulator sim = {.world = &the_world,
                              .run = world_run,
                              .figures = figures,
                              .print_replay = print_replay,
                              .add = add,
                              .print = print,
                              .proves_something = proves_something,
                              .mutant = mutant,
                              .use_mutant = use_mutant};

static bool read_options(int argc, char **argv, sim_options *o)
{
    *o = (sim_options){.seeds = 100, .jobs = 1};
    for (int i = 1; i < argc; i++)
        if (!simulator_option(o, argc, argv, &i))
            return false;
    return simulator_options_valid(&sim, o);
}

int main(int argc, char **argv)
{
    sim_options o;
    if (!read_options(argc, argv, &o)) {
        fprintf(stderr, "usage: holdfast-sim [--seeds N] [--first S] | --seed S [--trace] | "
                        "--mutants; --mutant NAME with either\n");
        return 2;
    }
    use_mutant(simulator_find_mutant(&sim, o.mutant));
    return simulator_main(&sim, &o);
}
