/* SPDX-License-Identifier: MIT */
/* Makes a unit test run with a deliberate bug: the one that HOLDFAST_MUTANT names, by the names of
 * the simulator's table or its own. It is linked into programs that are built against the library
 * with its mutants (src/base/mutant.h), and does its work before main(), so that the tests need not
 * know. mutants.py runs them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mutant.h"
#include "quorum.h"

/* Those that no world of the simulators is large or long enough to show. */
static const struct {
    const char *name;
    int core;
} others[] = {
    {"pace-constant", HF__MUTANT_PACE_CONSTANT},
    {"turn-replans", HF__MUTANT_TURN_REPLANS},
    {"window-wide", HF__MUTANT_WINDOW_WIDE},
};

static int find(const char *name)
{
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (strcmp(others[i].name, name) == 0)
            return others[i].core;
    for (int i = 0; i < mutant_count; i++)
        if (strcmp(mutants[i].name, name) == 0)
            return mutants[i].core;
    return 0;
}

__attribute__((constructor)) static void mutate(void)
{
    const char *name = getenv("HOLDFAST_MUTANT");
    if (name == NULL)
        return;
    hf__mutant = find(name);
    if (hf__mutant == 0) {
        fprintf(stderr, "there is no mutant %s\n", name);
        _exit(2);
    }
}
