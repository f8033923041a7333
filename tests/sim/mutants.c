/* SPDX-License-Identifier: MIT */
/* Deliberate bugs, each of which somebody has shipped. A checker that does not catch them proves
 * nothing. Those of the client are switches in src/core (src/base/mutant.h); those of the scripts
 * are the scripts themselves with a fragment replaced, so that they keep up with them (a fragment
 * that is not there exactly once ends the program); and two are of the simulator's own making: a
 * clock that stops while the machine sleeps, and threads whose numbers are used again. `seeds` is
 * within how many seeds each must be caught, `first` where a hunt begins that would take a while.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mutant.h"
#include "lua/scripts.h"
#include "mutants.h"
#include "sim.h"

int hf__mutant;
const sim_mutant *active_mutant;

/* ---- Scripts ---- */

/* The text with a fragment replaced, newly allocated. */
static char *edited(const char *text, const sim_edit *edit)
{
    const char *at = strstr(text, edit->fragment);
    if (at == NULL || strstr(at + 1, edit->fragment) != NULL) {
        fprintf(stderr, "mutant %s: not exactly once in %s.lua: %s\n", active_mutant->name,
                edit->script, edit->fragment);
        exit(2);
    }
    size_t before = (size_t)(at - text), cut = strlen(edit->fragment);
    size_t put = strlen(edit->instead), after = strlen(at + cut);
    char *whole = malloc(before + put + after + 1);
    if (whole == NULL)
        abort();
    memcpy(whole, text, before);
    memcpy(whole + before, edit->instead, put);
    memcpy(whole + before + put, at + cut, after + 1);
    return whole;
}

static char *make_body(const char *name, const char *body)
{
    char *made = NULL;
    for (int i = 0; i < EDITS_MAX && active_mutant->edits[i].script != NULL; i++) {
        if (strcmp(active_mutant->edits[i].script, name) != 0)
            continue;
        char *next = edited(made != NULL ? made : body, &active_mutant->edits[i]);
        free(made);
        made = next;
    }
    return made;
}

/* Bodies are kept, because the server may ask for one after each restart. */
const char *mutant_change_script(const char *name, const char *body)
{
    static const sim_mutant *made_for;
    static struct {
        const char *name;
        char *body;
    } made[HF__SCRIPT_COUNT];
    if (made_for != active_mutant)
        for (int i = 0; i < HF__SCRIPT_COUNT; i++) {
            free(made[i].body);
            made[i].name = NULL;
            made[i].body = NULL;
        }
    made_for = active_mutant;
    int at = 0;
    while (made[at].name != NULL && strcmp(made[at].name, name) != 0)
        at++;
    if (made[at].name == NULL) {
        made[at].name = name;
        made[at].body = make_body(name, body);
    }
    return made[at].body;
}

/* ---- All of them ---- */

#define EDIT(script, fragment, instead) \
    {                                   \
        script, fragment, instead       \
    }

/* A fence is set twice: at once, and again if something was found to be put right. */
#define KEPT_FROM_NOW                                                                             \
    EDIT("acquire", "'PXAT', math.floor(fence / 1000) + ARGV[3], 'GET'", "'PX', ARGV[3], 'GET'"), \
        EDIT("acquire", "'PXAT', math.floor(fence / 1000) + ARGV[3])", "'PX', ARGV[3])")

const sim_mutant mutants[] = {
    /* The scripts, without regard to sharing. */
    {"del-always", "release is an unconditional DEL", 500,
     .edits = {EDIT("release", "local released = 0\n",
                    "do call('DEL', KEYS[1]) return 1 end local released = 0\n")}},
    {"release-unchecked", "release deletes whatever is there", 500,
     .edits = {EDIT("release", "elseif call('GET', KEYS[1]) == value then",
                    "elseif call('EXISTS', KEYS[1]) == 1 then")}},
    {"renew-unchecked", "renew without owner check", 1000, .first = 26,
     .edits = {EDIT("renew", "elseif call('GET', lock) == value then",
                    "elseif call('EXISTS', lock) == 1 then"),
               EDIT("refresh", "if found[i] == ARGV[i] and", "if found[i] and")}},
    {"renew-shortens", "a shorter renewal takes back a longer one", 500,
     .edits = {EDIT("renew", "if remaining < lease then", "if true then")}},
    {"refresh-shortens", "a late refresh takes back a longer renewal", 4000, .first = 10,
     .edits = {EDIT("refresh", "if remaining < lease then", "if true then")}},
    {"renew-past-max", "renewals add up past the longest lease", 500,
     .edits = {EDIT("renew", "if remaining < lease then",
                    "lease = remaining + lease if true then")}},
    {"not-idempotent", "acquire refuses its own value", 500,
     .edits = {EDIT("acquire", "if held ~= (owner or value) then", "if true then")}},
    {"grants-anew", "acquire without NX", 500,
     .edits = {EDIT("acquire", "owner or value, 'NX', 'PX'", "owner or value, 'PX'")}},
    {"says-lease", "a repeated grant is answered with the whole lease", 500,
     .edits = {EDIT("acquire", "return {last > 0 and last or mint(last), remaining}",
                    "return {last > 0 and last or mint(last), lease}")}},
    {"tombstone-ignored", "acquire does not look for a tombstone", 2000, .first = 24,
     .edits = {EDIT("acquire", " if call('ZSCORE', KEYS[2], '!' .. value)", " if false"),
               EDIT("acquire", "elseif call('ZSCORE', KEYS[2], '!' .. value)", "elseif false")}},
    {"mark-not-set", "a tombstone is left, but the fence does not say so", 2000, .first = 24,
     .edits = {EDIT("release", "call('SET', KEYS[3], kept .. '+', 'KEEPTTL')", "")}},
    {"mark-lost", "the next grant wipes away the mark of a tombstone", 8000, .first = 4549,
     .edits = {EDIT("acquire", "call('ZCARD', KEYS[2]) > 0 and '+' or ''", "''")}},

    /* The client. */
    {"sent-after", "deadline from after the sending", 500, .core = HF__MUTANT_SENT_AFTER},
    {"from-reply", "deadline from the reply", 500, .core = HF__MUTANT_FROM_REPLY},
    {"no-drift", "no drift allowance", 500, .core = HF__MUTANT_NO_DRIFT},
    {"monotonic", "monotonic clock across suspend", 500, .first = 8, .monotonic = true},
    {"new-identity", "resend with a new identity", 500, .core = HF__MUTANT_NEW_IDENTITY},
    {"resend-full-lease", "resend, and the whole lease from the resend", 500,
     .core = HF__MUTANT_RESEND_FULL_LEASE},
    {"noscript-refuses", "NOSCRIPT treated as refusal", 500, .core = HF__MUTANT_NOSCRIPT_REFUSES},
    {"unknown-refused", "unknown treated as refused", 1000, .first = 25,
     .core = HF__MUTANT_UNKNOWN_REFUSED},
    {"unknown-granted", "unknown treated as granted", 500, .core = HF__MUTANT_UNKNOWN_GRANTED},
    {"cancel-keeps", "cancel leaves a grant behind", 500, .first = 10,
     .core = HF__MUTANT_CANCEL_KEEPS},
    {"revives", "renewal after loss", 2000, .first = 138, .core = HF__MUTANT_REVIVES},
    {"lost-kept", "a lost hold is not released", 500, .first = 31, .core = HF__MUTANT_LOST_KEPT},
    {"short-cleanup", "the background gives up too early", 2000, .first = 491,
     .core = HF__MUTANT_SHORT_CLEANUP},
    {"no-tombstone", "a release leaves no tombstone", 2000, .first = 24,
     .core = HF__MUTANT_NO_TOMBSTONE},

    /* Watchdog and loss. */
    {"renew-lost", "a lost hold is renewed", 500, .first = 37, .core = HF__MUTANT_RENEW_LOST},
    {"no-jeopardy", "JEOPARDY is never raised", 500, .core = HF__MUTANT_NO_JEOPARDY},
    {"max-hold-ignored", "renewals do not stop", 500, .core = HF__MUTANT_IGNORE_MAX_HOLD},

    {"revoke-unheard", "renewals do not bring a request to give up", 1000, .first = 16,
     .edits = {EDIT("renew", "remaining > 0 and '#revoked' or '#broken'", "'#broken'")}},
    {"revoke-unmarked", "a request is left, but the fence does not say so", 1000, .first = 16,
     .edits = {EDIT("revoke", "call('SET', KEYS[2], kept .. '!', 'KEEPTTL')", "")}},
    {"refresh-overlooks", "a refresh does not look at the fence", 1000, .first = 16,
     .edits = {EDIT("refresh", " and tonumber(found[i + 1]) then", " then")}},
    {"lost-untold", "nobody is told of a loss", 500, .core = HF__MUTANT_LOST_UNTOLD},
    {"reentry-stale", "a hold that has ended is re-entered", 4000,
     .core = HF__MUTANT_REENTRY_STALE},
    {"release-first", "the first handle given back releases for all", 500,
     .core = HF__MUTANT_RELEASE_FIRST},

    /* Fences. */
    {"fence-counter", "the fence is a bare counter", 500,
     .edits = {EDIT("acquire", "local fence = time[1] * 1000000 + time[2]", "local fence = 0"),
               KEPT_FROM_NOW}},
    {"fence-not-refreshed", "the fence runs out under a long hold", 1000, .first = 14,
     .edits = {EDIT("renew", "raise(fence, keep)", "")}},
    {"fence-not-joined", "the fence runs out under a chain of sharers", 16000, .first = 10449,
     .edits = {EDIT("acquire", "call('PEXPIRE', KEYS[3], ARGV[3])", "")}},
    {"fence-from-now", "the fence is kept from now on, not from its own time on", 2000,
     .first = 357, .edits = {KEPT_FROM_NOW}},
    {"fence-forgets-last", "the fence is the time, whatever the last one was", 500,
     .edits = {EDIT("acquire", "fence = math.max(fence, last + 1)", "")}},
    {"join-new-fence", "who joins gets a new fence", 500,
     .edits = {EDIT("acquire", "return {last > 0 and last or mint(last), remaining}",
                    "return {mint(last), remaining}")}},
    {"break-keeps-fence", "a break does not raise the fence", 500,
     .edits = {EDIT("break", "local fence = math.max(last + 1, time[1] * 1000000 + time[2])",
                    "local fence = last")}},
    {"break-copy-tells-last", "a repeated break is answered with the fence of who came next", 2000,
     .first = 174,
     .edits = {EDIT("break", "return whose == victim and tonumber(raised) or 0",
                    "return whose == victim and last or 0")}},

    /* Sharing. */
    {"shared-twice", "a resent join counts twice", 1000, .first = 12,
     .edits = {EDIT("acquire", "if own > now then",
                    "if own > now then own = 0 value = value .. '+' end if own > now then")}},
    {"dead-sharer-kept", "a dead sharer keeps the lock of the last live one", 500,
     .edits = {EDIT("release", "call('ZREMRANGEBYSCORE', KEYS[5], '-inf', now)", ""),
               EDIT("release", "call('PEXPIREAT', KEYS[1], latest)", "")}},
    {"join-shortens", "who joins with a shorter lease shortens the lock's", 500, .first = 71,
     .edits = {EDIT("acquire", "local latest = call('ZRANGE', KEYS[4], -1, -1, 'WITHSCORES')[2]",
                    "local latest = now + lease")}},
    {"shared-renew-shortens", "a shorter renewal takes back a longer one of a sharer", 500,
     .first = 12, .edits = {EDIT("renew", "if own < now + lease then", "if true then")}},
    {"key-ttl-told", "who joins is told how long the lock lasts", 500, .first = 12,
     .edits = {EDIT("acquire", "remaining = own - now", "remaining = remaining"),
               EDIT("acquire", "join() then\n        remaining = lease",
                    "join() then\n        remaining = call('PTTL', KEYS[1])")}},
    {"key-ttl-renewed", "a sharer's renewal is answered with how long the lock lasts", 500,
     .first = 196, .edits = {EDIT("renew", "return own - now", "return call('PTTL', lock)")}},
    {"foreign-joined", "an owner's name without holders is taken for the owner", 500, .first = 27,
     .edits = {EDIT("acquire",
                    "if call('ZCOUNT', KEYS[4], string.format('(%.0f', now), '+inf') == 0 then",
                    "if false then")}},
    {"side-keys-shared", "x and {x} have the same side keys", 500,
     .core = HF__MUTANT_SIDE_KEYS_SHARED},
    {"thread-reused", "a new thread has the number of an old one", 500, .reuses_threads = true},
};

const int mutant_count = sizeof(mutants) / sizeof(mutants[0]);
