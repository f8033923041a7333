/* SPDX-License-Identifier: MIT */
/* Deliberate bugs of a client that asks several servers (src/base/mutant.h); a checker that does
 * not catch them proves nothing. Most are caught by some seed within the number that is allowed; a
 * few need an order of events that chance hardly ever brings, and have a story (scenario.c)
 * instead. Those that a quorum alone has fail a unit test too (tests/unit/mutants.py). */
#include "base/mutant.h"
#include "quorum.h"

int hf__mutant;

#define MUTANT(core) HF__MUTANT_##core

const mutant mutants[] = {
    {"no-drift", "no allowance for clocks that differ", MUTANT(NO_DRIFT), 500, 0, NULL},
    {"sent-after", "deadline from after the sending", MUTANT(SENT_AFTER), 1, 0, "pause"},
    {"from-reply", "deadline from the reply", MUTANT(FROM_REPLY), 500, 0, NULL},
    {"deadline-first", "the deadline of the best vote", MUTANT(DEADLINE_FIRST), 500, 0, NULL},
    {"vote-twice", "a vote that was asked for twice counts twice", MUTANT(VOTE_TWICE), 2000, 160,
     NULL},
    {"late-grant-kept", "a late grant is not given back", MUTANT(LATE_GRANT_KEPT), 500, 0, NULL},
    {"release-granters", "released only where it was granted", MUTANT(RELEASE_GRANTERS), 500, 0,
     NULL},
    {"healed-counted", "a copy in place of a lost one counts", MUTANT(HEALED_COUNTED), 4000, 470,
     NULL},
    {"healed-same-round", "and is made without a majority", MUTANT(HEALED_SAME_ROUND), 500, 0,
     NULL},
    {"restarted-votes", "a restarted server has a vote", MUTANT(RESTARTED_VOTES), 2000, 210, NULL},
    {"fence-not-raised", "servers may disagree on a fence", MUTANT(FENCE_NOT_RAISED), 500, 0, NULL},
    {"fence-unheld", "a fence counts where the vote is lost", MUTANT(FENCE_UNHELD), 1, 0, "unheld"},
    {"yield-decided", "who has a majority gives way", MUTANT(YIELD_DECIDED), 500, 0, NULL},
    {"yield-old-id", "who gives way keeps his value", MUTANT(YIELD_OLD_ID), 1, 0, "late"},
    {"inquire-dropped", "no way is given before the grant", MUTANT(INQUIRE_DROPPED), 1, 0,
     "inquiry"},
    {"ticket-zero", "a ticket before everybody else's", MUTANT(TICKET_ZERO), 500, 0, NULL},
    {"floor-early", "floors are read too early", MUTANT(FLOOR_EARLY), 1, 0, "floor"},
};

const int mutant_count = sizeof(mutants) / sizeof(mutants[0]);
