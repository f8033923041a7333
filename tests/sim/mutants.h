/* SPDX-License-Identifier: MIT */
/* Deliberate bugs that the simulator must catch. */
#ifndef HF_SIM_MUTANTS_H
#define HF_SIM_MUTANTS_H

#include <stdbool.h>
#include <stdint.h>

#include "script_edit.h"
#include "server.h"

typedef struct sim_mutant {
    const char *name;
    const char *what;
    int seeds; /* within which it must be caught */
    int core;  /* HF__MUTANT_..., or 0 */
    sim_edit edits[EDITS_MAX];
    bool monotonic;      /* clocks stop while the machine is suspended */
    bool reuses_threads; /* numbers of threads are used again */
} sim_mutant;

extern const sim_mutant mutants[];
extern const int mutant_count;
extern const sim_mutant *active_mutant; /* NULL: the real thing */
sim_change_script mutant_change_script; /* what the active one does to scripts */

#endif
