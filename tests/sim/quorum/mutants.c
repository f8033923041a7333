/* SPDX-License-Identifier: MIT */
/* Deliberate bugs of a client that asks several servers (src/base/mutant.h); a checker that does
 * not catch them proves nothing. */
#include "base/mutant.h"
#include "quorum.h"

int hf__mutant;

#define MUTANT(core) HF__MUTANT_##core

const mutant mutants[] = {
    {"no-drift", "no allowance for clocks that differ", MUTANT(NO_DRIFT), 500, 0},
    {"sent-after", "deadline from after the sending", MUTANT(SENT_AFTER), 500, 0},
    {"from-reply", "deadline from the reply", MUTANT(FROM_REPLY), 500, 0},
};

const int mutant_count = sizeof(mutants) / sizeof(mutants[0]);
