/* SPDX-License-Identifier: MIT */
/* See gaps.h. */
#include "gaps.h"

#include <string.h>

#include "base/random.h"

enum { RUNS = 8, CHANGES = 60 };

static const struct {
    unsigned gap;
    const char *field;
} fields[] = {{GAP_RUN_ID, "\nrun_id:"},          {GAP_UPTIME, "\nuptime_in_seconds:"},
              {GAP_VERSION, "\nredis_version:"},  {GAP_ROLE, "\nrole:"},
              {GAP_MEMORY, "\nmaxmemory:"},       {GAP_MEMORY, "\nmaxmemory_policy:"},
              {GAP_APPEND_ONLY, "\naof_enabled:"}};

static bool one_in(sim_gaps *gaps, uint64_t count)
{
    return hf__random_below(&gaps->random, count) == 0;
}

void gaps_begin(sim_gaps *gaps, uint64_t seed)
{
    gaps->random = seed * 0xd1342543de82ef95u + 7;
    gaps->in_run = one_in(gaps, RUNS);
    gaps->for_good = one_in(gaps, 2);
}

/* Mostly the one that matters most. */
unsigned gaps_draw(sim_gaps *gaps)
{
    if (!gaps->in_run || one_in(gaps, 3))
        return 0;
    unsigned others = (unsigned)hf__random_below(&gaps->random, 2 * GAP_APPEND_ONLY);
    return one_in(gaps, 4) ? others : others | GAP_RUN_ID;
}

bool gaps_change(sim_gaps *gaps)
{
    return gaps->in_run && one_in(gaps, CHANGES);
}

void gaps_cut(char *info, unsigned hidden)
{
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        char *line = hidden & fields[i].gap ? strstr(info, fields[i].field) : NULL;
        if (line == NULL)
            continue;
        const char *next = strchr(line + 1, '\n');
        memmove(line, next, strlen(next) + 1);
    }
}
