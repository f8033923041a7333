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
    {"no-drift", "no allowance for clocks that differ", MUTANT(NO_DRIFT), .seeds = 500},
    {"sent-after", "deadline from after the sending", MUTANT(SENT_AFTER), .seeds = 1,
     .scenario = "pause"},
    {"from-reply", "deadline from the reply", MUTANT(FROM_REPLY), .seeds = 500},
    {"deadline-first", "the deadline of the best vote", MUTANT(DEADLINE_FIRST), .seeds = 500},
    {"vote-twice", "a vote that was asked for twice counts twice", MUTANT(VOTE_TWICE),
     .seeds = 2000},
    {"late-grant-kept", "a late grant is not given back", MUTANT(LATE_GRANT_KEPT), .seeds = 500},
    {"release-granters", "released only where it was granted", MUTANT(RELEASE_GRANTERS),
     .seeds = 500},
    {"healed-counted", "a copy in place of a lost one counts", MUTANT(HEALED_COUNTED),
     .seeds = 4000},
    {"healed-same-round", "and is made without a majority", MUTANT(HEALED_SAME_ROUND),
     .seeds = 500},
    {"restarted-votes", "a restarted server has a vote", MUTANT(RESTARTED_VOTES), .seeds = 2000},
    {"raised-gone", "a sharer is lost where another one has raised the fence", MUTANT(RAISED_GONE),
     .seeds = 2000},
    {"fence-not-raised", "servers may disagree on a fence", MUTANT(FENCE_NOT_RAISED), .seeds = 500},
    {"fence-unheld", "a fence counts where the vote is lost", MUTANT(FENCE_UNHELD), .seeds = 1,
     .scenario = "unheld"},
    {"yield-decided", "who has a majority gives way", MUTANT(YIELD_DECIDED), .seeds = 500},
    {"yield-old-id", "who gives way keeps his value", MUTANT(YIELD_OLD_ID), .seeds = 1,
     .scenario = "late"},
    {"inquire-dropped", "no way is given before the grant", MUTANT(INQUIRE_DROPPED), .seeds = 1,
     .scenario = "inquiry"},
    {"silence-awaited", "who is refused waits for silent servers", MUTANT(SILENCE_AWAITED),
     .seeds = 1, .scenario = "split"},
    {"ticket-zero", "a ticket before everybody else's", MUTANT(TICKET_ZERO), .seeds = 500},
    {"floor-early", "floors are read too early", MUTANT(FLOOR_EARLY), .seeds = 1,
     .scenario = "floor"},
    {"renewals-wait", "renewals wait behind everything", MUTANT(RENEWALS_WAIT), .seeds = 500},
    {"silent-since-sent", "a slow server is taken for dead", MUTANT(SILENT_SINCE_SENT),
     .seeds = 500},
    {"flight-unbounded", "any number of calls are in flight", MUTANT(FLIGHT_UNBOUNDED),
     .seeds = 500},
    {"not-held-back", "acquires go on while renewals are late", MUTANT(NOT_HELD_BACK),
     .seeds = 500},
    {"lag-remembered", "an overload is never over", MUTANT(LAG_REMEMBERED), .seeds = 500},
    {"sight-usurped", "an observer takes another program for the holder before",
     MUTANT(SIGHT_USURPED), .seeds = 500},
    {"look-once", "an observer looks once", MUTANT(LOOK_ONCE), .seeds = 500},
    {"look-storm", "an observer looks all the time", MUTANT(LOOK_STORM), .seeds = 500},
    {"observers-first", "renewals wait until observers have looked", MUTANT(OBSERVERS_FIRST),
     .seeds = 500},
    {"mute-trusted", "a server that hides its run_id is one process", MUTANT(MUTE_TRUSTED),
     .seeds = 500},
    {"ids-no-jump", "servers that have forgotten ids are believed", MUTANT(IDS_NO_JUMP), .seeds = 1,
     .scenario = "ids"},
    {"ids-minority", "ids that one server keeps are given out", MUTANT(IDS_MINORITY), .seeds = 1,
     .scenario = "ids"},
    {"ids-unkept", "ids that no server keeps are given out", MUTANT(IDS_UNKEPT), .seeds = 500},
    {"ids-unasked", "ids are kept by a server whose answer did not count", 0, .seeds = 1,
     .scenario = "ids", .edits = {EDIT("ids_vote", " or not asked then", " then")}},
    {"ids-fence-unchecked", "and by one that has promised something newer", 0, .seeds = 500,
     .edits = {EDIT("ids_vote", "last ~= fence or ", "")}},
    {"ids-no-promise", "a server that was asked for ids promises nothing", 0, .seeds = 1,
     .scenario = "ids",
     .edits = {EDIT("ids_vote", "write(run or '-')\n", ""),
               EDIT("ids_vote", "last ~= fence or ", "last > fence or ")}},
    {"ids-go-down", "a late copy takes ids back", 0, .seeds = 1, .scenario = "ids",
     .edits = {EDIT("ids_vote", "(new_part == part and new_sequence > sequence)", "true")}},
    {"large-whole", "a large value is returned as it is", .seeds = 500,
     .edits = {EDIT("inspect", "held and cut(held)", "held")}},
    {"denied-for-life", "messages that were denied are not tried again", MUTANT(DENIED_FOR_LIFE),
     .seeds = 500},
    {"deaf-keeps", "who hears of no earlier ticket keeps his votes", MUTANT(DEAF_KEEPS), .seeds = 1,
     .scenario = "deaf"},
};

const int mutant_count = sizeof(mutants) / sizeof(mutants[0]);
