/* SPDX-License-Identifier: MIT */
/* Makes a unit test run with a deliberate bug: the one that HOLDFAST_MUTANT names, by the names of
 * the simulator's table. It is linked into programs that are built against the library with its
 * mutants (src/base/mutant.h), and does its work before main(), so that the tests need not know.
 * mutants.py runs them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mutant.h"
#include "quorum.h"

static int find(const char *name)
{
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
