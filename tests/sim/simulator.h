/* SPDX-License-Identifier: MIT */
/* What the command lines of the two simulators have in common: worlds from many seeds, in several
 * processes, with tables of what happened in them; and the hunt for mutants. A simulator says what
 * its world is, what it counts there and what a batch must show. */
#ifndef HF_SIM_SIMULATOR_H
#define HF_SIM_SIMULATOR_H

#include "clockwork.h"

enum { NO_MUTANT = -1, HOW_SIZE = 100 };

typedef struct sim_options {
    uint64_t first, seeds, only, jobs;
    bool one, trace, all_mutants, go_on;
    bool keep;        /* write where mutants were caught to `kept` */
    const char *kept; /* the list that says where the hunt for a mutant is short, or NULL */
    const char *mutant;
} sim_options;

typedef struct sim_figures { /* of one run */
    int64_t steps, grants, contended, faults;
} sim_figures;

typedef struct sim_batch {
    uint64_t runs;
    int64_t *steps, *grants, *contended, *faults; /* of each run */
} sim_batch;

typedef struct sim_prey { /* a mutant, as those see it who hunt it */
    const char *name;
    int seeds;            /* within which it must be caught */
    const char *scenario; /* in which it must be caught instead; NULL: none */
} sim_prey;

typedef struct simulator {
    world *world;
    void (*run)(world *world, uint64_t seed, bool print_trace);
    sim_figures (*figures)(const world *world);
    void (*print_replay)(uint64_t seed); /* how to see it again */
    void (*add)(const world *world);     /* to the sums */
    void (*print)(sim_batch *batch);     /* with the sums */
    bool (*proves_something)(const sim_batch *batch);
    sim_prey (*mutant)(int number); /* 0 and so on; without a name: there are no more */
    void (*use_mutant)(int number); /* NO_MUTANT: the real thing */
    bool (*scenario_fails)(const char *name, char how[HOW_SIZE]);
} simulator;

/* Reads argv[*i], and the value behind it, if it is one of the options that both have. */
bool simulator_option(sim_options *options, int argc, char **argv, int *i);
bool simulator_number(const char *name, int argc, char **argv, int *i, uint64_t *value);
bool simulator_text(const char *name, int argc, char **argv, int *i, const char **value);
bool simulator_options_valid(const simulator *simulator, const sim_options *options);

int simulator_main(const simulator *simulator, const sim_options *options);
int simulator_find_mutant(const simulator *simulator, const char *name); /* or NO_MUTANT */

void simulator_print_figures(sim_batch *batch);
void simulator_print_faults(const char *const *names, const int64_t *fired, int count);

#endif
