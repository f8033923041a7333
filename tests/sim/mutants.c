/* SPDX-License-Identifier: MIT */
/* Deliberate bugs, each of which somebody has shipped. A checker that does not catch them proves
 * nothing. Those of the client are switches in src/core (src/base/mutant.h), those of the scripts
 * are other scripts, and one is a clock that stops while the machine sleeps. `seeds` is within how
 * many seeds each must be caught. */
#include <string.h>

#include "base/mutant.h"
#include "sim.h"

int hf__mutant;
const sim_mutant *active_mutant;

static const char *change(const char *name, const char *wanted, const char *body)
{
    return strcmp(name, wanted) == 0 ? body : NULL;
}

static const char *del_always(const char *name, const char *body)
{
    (void)body;
    return change(name, "release", "redis.call('DEL', KEYS[1]) return 1");
}

static const char *release_unchecked(const char *name, const char *body)
{
    (void)body;
    return change(
        name, "release",
        "if redis.call('EXISTS', KEYS[1]) == 1 then return redis.call('DEL', KEYS[1]) end "
        "return 0");
}

static const char *renew_unchecked(const char *name, const char *body)
{
    (void)body;
    return change(name, "renew",
                  "if redis.call('PEXPIRE', KEYS[1], ARGV[2]) == 1 then return tonumber(ARGV[2]) "
                  "end return 0");
}

static const char *renew_shortens(const char *name, const char *body)
{
    (void)body;
    return change(name, "renew",
                  "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end "
                  "redis.call('PEXPIRE', KEYS[1], ARGV[2]) return tonumber(ARGV[2])");
}

static const char *renew_adds_up(const char *name, const char *body)
{
    (void)body;
    return change(name, "renew",
                  "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end "
                  "local t = redis.call('PTTL', KEYS[1]) + tonumber(ARGV[2]) "
                  "redis.call('PEXPIRE', KEYS[1], t) return t");
}

static const char *not_idempotent(const char *name, const char *body)
{
    (void)body;
    return change(name, "acquire",
                  "if redis.call('ZSCORE', KEYS[2], '!' .. ARGV[1]) then return -1 end "
                  "if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then "
                  "return tonumber(ARGV[2]) end "
                  "return {redis.call('PTTL', KEYS[1]), redis.call('GET', KEYS[1])}");
}

static const char *grants_anew(const char *name, const char *body)
{
    (void)body;
    return change(name, "acquire",
                  "redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) "
                  "return tonumber(ARGV[2])");
}

static const char *no_tombstone_check(const char *name, const char *body)
{
    (void)body;
    return change(name, "acquire",
                  "if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then "
                  "return tonumber(ARGV[2]) end "
                  "local held = redis.call('GET', KEYS[1]) "
                  "if held == ARGV[1] then return redis.call('PTTL', KEYS[1]) end "
                  "return {redis.call('PTTL', KEYS[1]), held}");
}

static const char *says_lease(const char *name, const char *body)
{
    (void)body;
    return change(name, "acquire",
                  "if redis.call('ZSCORE', KEYS[2], '!' .. ARGV[1]) then return -1 end "
                  "if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then "
                  "return tonumber(ARGV[2]) end "
                  "local held = redis.call('GET', KEYS[1]) "
                  "if held == ARGV[1] then return tonumber(ARGV[2]) end "
                  "return {redis.call('PTTL', KEYS[1]), held}");
}

const sim_mutant mutants[] = {
    {"del-always", "release is an unconditional DEL", 0, del_always, false, 500},
    {"release-unchecked", "release deletes whatever is there", 0, release_unchecked, false, 500},
    {"renew-unchecked", "renew without owner check", 0, renew_unchecked, false, 500},
    {"renew-shortens", "a shorter renewal takes back a longer one", 0, renew_shortens, false, 500},
    {"renew-past-max", "renewals add up past the longest lease", 0, renew_adds_up, false, 500},
    {"not-idempotent", "acquire refuses its own value", 0, not_idempotent, false, 500},
    {"grants-anew", "acquire without NX", 0, grants_anew, false, 500},
    {"says-lease", "a repeated grant is answered with the whole lease", 0, says_lease, false, 500},
    {"tombstone-ignored", "acquire does not look for a tombstone", 0, no_tombstone_check, false,
     2000},
    {"sent-after", "deadline from after the sending", HF__MUTANT_SENT_AFTER, NULL, false, 500},
    {"from-reply", "deadline from the reply", HF__MUTANT_FROM_REPLY, NULL, false, 500},
    {"no-drift", "no drift allowance", HF__MUTANT_NO_DRIFT, NULL, false, 500},
    {"monotonic", "monotonic clock across suspend", 0, NULL, true, 500},
    {"new-identity", "resend with a new identity", HF__MUTANT_NEW_IDENTITY, NULL, false, 500},
    {"resend-full-lease", "resend, and the whole lease from the resend",
     HF__MUTANT_RESEND_FULL_LEASE, NULL, false, 500},
    {"noscript-refuses", "NOSCRIPT treated as refusal", HF__MUTANT_NOSCRIPT_REFUSES, NULL, false,
     500},
    {"unknown-refused", "unknown treated as refused", HF__MUTANT_UNKNOWN_REFUSED, NULL, false,
     1000},
    {"unknown-granted", "unknown treated as granted", HF__MUTANT_UNKNOWN_GRANTED, NULL, false, 500},
    {"cancel-keeps", "cancel leaves a grant behind", HF__MUTANT_CANCEL_KEEPS, NULL, false, 500},
    {"revives", "renewal after loss", HF__MUTANT_REVIVES, NULL, false, 500},
    {"lost-kept", "a lost hold is not released", HF__MUTANT_LOST_KEPT, NULL, false, 500},
    {"short-cleanup", "the background gives up too early", HF__MUTANT_SHORT_CLEANUP, NULL, false,
     500},
    {"no-tombstone", "a release leaves no tombstone", HF__MUTANT_NO_TOMBSTONE, NULL, false, 2000},
};

const int mutant_count = sizeof(mutants) / sizeof(mutants[0]);
