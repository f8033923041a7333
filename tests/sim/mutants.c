/* SPDX-License-Identifier: MIT */
/* Deliberate bugs, each of which somebody has shipped. A checker that does not catch them proves
 * nothing. Those of the client are switches in src/core (src/base/mutant.h); those of the scripts
 * are the scripts themselves with a fragment replaced, so that they keep up with them (a fragment
 * that is not there exactly once ends the program); and two are of the simulator's own making: a
 * clock that stops while the machine sleeps, and threads whose numbers are used again. `seeds` is
 * within how many seeds each must be caught, from the one on that prey.txt has for it. */
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
        made[at].body = script_edited(active_mutant->edits, name, body);
    }
    return made[at].body;
}

/* ---- All of them ---- */

/* A fence that is the time itself is kept from now on in any case. */
#define KEPT_FROM_NOW EDIT("hand_on", "'PXAT', math.floor(top / 1000) + lasts", "'PX', lasts")

#define LAST_OR_CLOCK "math.max(clock, math.max(last, slot_last) + 1)"

/* A waiter is told of his grant to see whether he is there. */
#define PUBLISHED                                                                          \
    "{0, tonumber(redis.pcall('PUBLISH', channel, 'g ' .. string.match(waiter, ':(%d+)@')" \
    " .. ' ' .. n .. string.format(' %.0f ', clock) .. lease .. ' 0'))}"

const sim_mutant mutants[] = {
    /* The scripts, without regard to sharing. */
    {"del-always", "release is an unconditional DEL", 500,
     .edits = {EDIT("release", "local released = 0\n",
                    "do call('DEL', KEYS[1]) return 1 end local released = 0\n")}},
    {"release-unchecked", "release deletes whatever is there", 500,
     .edits = {EDIT("release", "elseif found[1] == value then", "elseif found[1] then")}},
    {"renew-unchecked", "renew without owner check", 8000,
     .edits = {EDIT("renew", "elseif call('GET', lock) == value then",
                    "elseif call('EXISTS', lock) == 1 then"),
               EDIT("refresh", "found[i] ~= ARGV[i] or", "not found[i] or")}},
    {"renew-shortens", "a shorter renewal takes back a longer one", 500,
     .edits = {EDIT("renew", "if remaining < lease then", "if true then")}},
    {"refresh-shortens", "a late refresh takes back a longer renewal", 2000,
     .edits = {EDIT("refresh", "lease, 'GT') == 1", "lease) == 1")}},
    {"renew-past-max", "renewals add up past the longest lease", 500,
     .edits = {EDIT("renew", "if remaining < lease then",
                    "lease = remaining + lease if true then")}},
    {"not-idempotent", "acquire refuses its own value", 500,
     .edits = {EDIT("acquire", "if held ~= (owner or value) then", "if true then")}},
    {"grants-anew", "acquire without NX", 500,
     .edits = {EDIT("acquire", "owner or value, 'NX', 'PX'", "owner or value, 'PX'")}},
    {"says-lease", "a repeated grant is answered with the whole lease", 500,
     .edits = {EDIT("acquire", "or mint(nil, range, lease, waiting), remaining, waiting)",
                    "or mint(nil, range, lease, waiting), lease, waiting)")}},
    {"tombstone-ignored", "acquire does not look for a tombstone", 500,
     .edits =
         {EDIT("acquire", "local buried = call('ZSCORE', KEYS[2], '!' .. value)", "local buried"),
          EDIT("acquire", "elseif call('ZSCORE', KEYS[2], '!' .. value) then\nreturn {-1}\nend",
               "elseif false then\nend"),
          EDIT("acquire", "elseif call('ZSCORE', KEYS[2], '!' .. value) then\nreturn {-1}\nelseif",
               "elseif")}},
    {"mark-not-set", "a tombstone is left, but the fence does not say so", 4000,
     .edits = {EDIT("release", "mark_queue(found[2], late)", ""),
               EDIT("release", "marks = life > 0 and '+' or ''", "life = 0")}},
    {"mark-lost", "the next grant wipes away the mark of a tombstone, and its release sets none",
     8000,
     .edits = {EDIT("hand_on", "waiting = call('ZCARD', KEYS[2]) -- of these",
                    "waiting = 0 -- of these"),
               EDIT("release", "marks = life > 0 and '+' or ''", "life = 0")}},

    /* The client. */
    {"sent-after", "deadline from after the sending", 500, .core = HF__MUTANT_SENT_AFTER},
    {"from-reply", "deadline from the reply", 500, .core = HF__MUTANT_FROM_REPLY},
    {"no-drift", "no drift allowance", 500, .core = HF__MUTANT_NO_DRIFT},
    {"monotonic", "monotonic clock across suspend", 500, .monotonic = true},
    {"new-identity", "resend with a new identity", 500, .core = HF__MUTANT_NEW_IDENTITY},
    {"resend-full-lease", "resend, and the whole lease from the resend", 500,
     .core = HF__MUTANT_RESEND_FULL_LEASE},
    {"noscript-refuses", "NOSCRIPT treated as refusal", 500, .core = HF__MUTANT_NOSCRIPT_REFUSES},
    {"unknown-refused", "unknown treated as refused", 500, .core = HF__MUTANT_UNKNOWN_REFUSED},
    {"unknown-granted", "unknown treated as granted", 500, .core = HF__MUTANT_UNKNOWN_GRANTED},
    {"cancel-keeps", "cancel leaves a grant behind", 500, .core = HF__MUTANT_CANCEL_KEEPS},
    {"revives", "renewal after loss", 4000, .core = HF__MUTANT_REVIVES},
    {"lost-kept", "a lost hold is not released", 500, .core = HF__MUTANT_LOST_KEPT},
    {"unknown-released", "a repeated release that finds nothing has succeeded", 2000,
     .core = HF__MUTANT_UNKNOWN_RELEASED},
    {"short-cleanup", "the background gives up too early", 500, .core = HF__MUTANT_SHORT_CLEANUP},
    {"no-tombstone", "a release leaves no tombstone", 500, .core = HF__MUTANT_NO_TOMBSTONE},

    /* Watchdog and loss. */
    {"renew-lost", "a lost hold is renewed", 500, .core = HF__MUTANT_RENEW_LOST},
    {"no-jeopardy", "JEOPARDY is never raised", 500, .core = HF__MUTANT_NO_JEOPARDY},
    {"max-hold-ignored", "renewals do not stop", 500, .core = HF__MUTANT_IGNORE_MAX_HOLD},

    /* Under load. */
    {"heard-late", "a grant that is heard of late is renewed an interval later", 2000,
     .core = HF__MUTANT_HEARD_LATE},
    {"renewals-wait", "renewals wait behind everything", 500, .core = HF__MUTANT_RENEWALS_WAIT},
    {"silent-since-sent", "a slow server is taken for dead", 500,
     .core = HF__MUTANT_SILENT_SINCE_SENT},
    {"flight-unbounded", "any number of calls are in flight", 500,
     .core = HF__MUTANT_FLIGHT_UNBOUNDED},
    {"way-is-late", "the way to the server and back counts as lateness", 500,
     .core = HF__MUTANT_WAY_IS_LATE},
    {"not-held-back", "acquires go on while renewals are late", 500,
     .core = HF__MUTANT_NOT_HELD_BACK},
    {"lag-per-link", "acquires go on over another link", 500, .core = HF__MUTANT_LAG_PER_LINK},
    {"late-flood", "late renewals all leave at once", 1000, .core = HF__MUTANT_LATE_FLOOD},
    {"lag-remembered", "an overload is never over", 500, .core = HF__MUTANT_LAG_REMEMBERED},

    {"revoke-unheard", "renewals do not bring a request to give up", 1000,
     .edits = {EDIT("renew", "remaining > 0 and '#revoked' or '#broken'", "'#broken'")}},
    {"refresh-overlooks", "a refresh does not look for notes", 1000,
     .edits = {EDIT("refresh", " or noted and call('EXISTS', KEYS[count + i]) == 1", "")}},
    {"lost-untold", "nobody is told of a loss", 500, .core = HF__MUTANT_LOST_UNTOLD},
    {"reentry-stale", "a hold that has ended is re-entered", 500, .core = HF__MUTANT_REENTRY_STALE},
    {"release-first", "the first handle given back releases for all", 500,
     .core = HF__MUTANT_RELEASE_FIRST},

    /* Fences. */
    {"fence-counter", "the fence is a bare counter", 500,
     .edits = {EDIT("acquire", "and (ARGV[4] or '1') == '1' and not owner", "and false"),
               EDIT("hand_on", LAST_OR_CLOCK, "math.max(last, slot_last) + 1"), KEPT_FROM_NOW}},
    {"fence-not-refreshed", "the fence runs out under a long hold", 500,
     .edits = {EDIT("renew", "raise(fence, keep)", "")}},
    {"fence-not-joined", "the fence runs out under a chain of sharers", 4000,
     .edits = {EDIT("acquire", "call('PEXPIRE', KEYS[3], brief)", "")}},
    {"fence-from-now", "the fence is kept from now on, not from its own time on", 4000,
     .edits = {KEPT_FROM_NOW}},
    {"fence-forgets-last", "the fence is the time, whatever the last one was", 500,
     .edits = {EDIT("hand_on", LAST_OR_CLOCK, "clock")}},
    {"join-new-fence", "who joins gets a new fence", 500,
     .edits = {EDIT("acquire", "last > 0 and last >= range and last - range + 1 or mint(nil",
                    "mint(call('GET', KEYS[3])")}},
    {"fence-left", "a release keeps the fence under its name", 500,
     .edits = {EDIT("release", "call('DEL', KEYS[1], KEYS[3])", "call('DEL', KEYS[1])")}},
    {"slot-untold", "who is handed the lock leaves no fence when it is released", 2000,
     .core = HF__MUTANT_HANDED_PLAIN,
     .edits = {EDIT("release", "if KEYS[6] and marks == '' and top > told then", "if false then")}},
    {"slot-ignored", "an acquire does not look at the mark of its slot", 8000,
     .edits = {EDIT("acquire", "#marked == #stamp and marked < stamp or not KEYS[6]", "true"),
               EDIT("acquire", "slot_last = number_in(marked)", "slot_last = 0")}},
    {"slot-lowered", "an acquire lowers the mark of its slot", 8000,
     .edits = {EDIT("acquire", "if slot_last > clock then", "if false then")}},
    {"break-keeps-fence", "a break does not raise the fence", 500,
     .edits = {EDIT("break", "local fence = mint(kept, 1, 0, call('ZCOUNT', KEYS[2], '0', '+inf'))",
                    "local fence = last")}},
    {"break-copy-tells-last", "a repeated break is answered with the fence of who came next", 500,
     .edits = {EDIT("break", "return whose == victim and number_in(raised) or 0",
                    "return whose == victim and last or 0")}},

    /* Sharing. */
    {"shared-twice", "a resent join counts twice", 500,
     .edits = {EDIT("acquire", "if own > now then",
                    "if own > now then own = 0 value = value .. '+' end if own > now then")}},
    {"dead-sharer-kept", "a dead sharer keeps the lock of the last live one", 500,
     .edits = {EDIT("release", "call('ZREMRANGEBYSCORE', KEYS[5], '-inf', now)", ""),
               EDIT("release", "call('PEXPIREAT', KEYS[1], latest)", "")}},
    {"join-shortens", "who joins with a shorter lease shortens the lock's", 500,
     .edits = {EDIT("acquire", "local latest = call('ZRANGE', KEYS[5], -1, -1, 'WITHSCORES')[2]",
                    "local latest = now + lease")}},
    {"shared-renew-shortens", "a shorter renewal takes back a longer one of a sharer", 500,
     .edits = {EDIT("renew", "if own < now + lease then", "if true then")}},
    {"key-ttl-told", "who joins is told how long the lock lasts", 500,
     .edits = {EDIT("acquire", "remaining = own - now", "remaining = remaining"),
               EDIT("acquire", "join() then\nremaining = lease",
                    "join() then\nremaining = call('PTTL', KEYS[1])")}},
    {"key-ttl-renewed", "a sharer's renewal is answered with how long the lock lasts", 500,
     .edits = {EDIT("renew", "return own - now", "return call('PTTL', lock)")}},
    {"foreign-joined", "an owner's name without holders is taken for the owner", 500,
     .edits = {EDIT("acquire",
                    "if call('ZCOUNT', KEYS[5], string.format('(%.0f', now), '+inf') == 0 then",
                    "if false then")}},
    {"side-keys-shared", "x and {x} have the same side keys", 500,
     .core = HF__MUTANT_SIDE_KEYS_SHARED},
    {"thread-reused", "a new thread has the number of an old one", 500, .reuses_threads = true},

    /* Queues, in the scripts. */
    {"queue-jumped", "who finds the lock free takes it past those who wait", 500,
     .edits = {EDIT("acquire", "if waiting > 0 then\nlocal stays", "if false then\nlocal stays")}},
    {"kept-queued", "who takes a free lock with a copy that does not queue stays in the queue",
     1000, .edits = {EDIT("acquire", "if waiting > 0 then -- it may", "if score then -- it may")}},
    {"last-first", "who came last is served first", 500,
     .edits = {EDIT("hand_on", "call('ZRANGEBYSCORE', KEYS[2], '0', '+inf', 'LIMIT', '0', '2')",
                    "call('ZREVRANGEBYSCORE', KEYS[2], '+inf', '0', 'LIMIT', '0', '2')")}},
    {"not-handed-on", "a release leaves the lock to whoever comes", 500,
     .edits = {EDIT("release", "if released > 0 and not owner or call('EXISTS', KEYS[1]) == 0 then",
                    "if released > 0 and not owner then call('DEL', KEYS[1]) elseif false then")}},
    {"queue-unmarked", "a queue begins, but the fence does not say so", 500,
     .edits = {EDIT("acquire", "mark_queue(fence, 2 * lease)\n", ""),
               EDIT("acquire", "mark_queue(call('GET', KEYS[3]), 2 * lease)", "")}},
    {"dead-granted", "whoever is in the queue is taken for alive", 500,
     .edits = {EDIT("hand_on", "redis.pcall('PUBSUB', 'NUMSUB', channel)", "{0, 1}")}},
    {"asleep-granted", "who has not been heard from is taken for alive", 1000,
     .edits = {EDIT("hand_on", "tonumber(alive) >= now and", "")}},
    {"publish-counts", "who lives is found out by telling him", 500,
     .edits = {EDIT("hand_on", "redis.pcall('PUBSUB', 'NUMSUB', channel)", PUBLISHED),
               EDIT("hand_on", "redis.pcall('PUBLISH', channel, 'g ' .. (string",
                    "type('g ' .. (string")}},
    {"all-woken", "a release tells everybody who waits", 500,
     .edits = {EDIT("hand_on", "local heir, heir_lease, heir_owner\n",
                    "for _, v in ipairs(call('ZRANGE', KEYS[2], 0, -1)) do redis.pcall('PUBLISH', "
                    "'hf:c:' .. string.sub(v, 1, 32), 'i ' .. (string.match(v, ':(%d+)@') or 0)) "
                    "end local heir, heir_lease, heir_owner\n")}},
    {"skipped-for-good", "who has lost his place gets no other", 500,
     .edits = {EDIT("hand_on", "redis.pcall('HDEL', KEYS[4], heir)\n",
                    "if n then call('HDEL', KEYS[4], heir) end\n"),
               EDIT(
                   "acquire", "local score = enqueue(held)\n",
                   "if call('HEXISTS', KEYS[4], value) == 1 and not call('ZSCORE', KEYS[2], value) "
                   "then return {0, remaining, held} end\nlocal score = enqueue(held)\n")}},
    {"waiter-untold", "a holder is not told that somebody waits", 500,
     .edits = {EDIT("acquire", "inquire(held, 'i %s')", "")}},
    {"alone-invited", "of the waiters of one owner only the first gets the lock", 500,
     .edits = {EDIT("hand_on", "heir_lease = invite(heir_owner, last)",
                    "heir_lease = heir_lease")}},
    {"not-left", "a release does not leave the queue", 500,
     .edits = {EDIT("release", "if owner or found[1] ~= value then", "if owner then")}},

    /* Queues, in the client. */
    {"push-old", "a grant from before an answered check is believed", 500,
     .core = HF__MUTANT_PUSH_OLD},
    {"push-early", "a grant that overtakes its own queueing is dropped", 500,
     .core = HF__MUTANT_PUSH_EARLY},
    {"push-stale", "a grant is taken of whose lease hardly anything is left", 8000,
     .core = HF__MUTANT_PUSH_STALE},
    {"push-from-now", "deadline of a grant from its arrival", 500,
     .core = HF__MUTANT_PUSH_FROM_NOW},
    {"queue-deaf", "queued before the subscription was confirmed", 500,
     .core = HF__MUTANT_QUEUE_DEAF},
    {"no-check", "nobody checks after a link came back", 500, .core = HF__MUTANT_NO_CHECK},
    {"cancel-drops", "one who gives up does not leave the queue", 500,
     .core = HF__MUTANT_CANCEL_DROPS},
    {"tomb-cancel", "tombstones after a cancel only", 500, .core = HF__MUTANT_TOMB_CANCEL},

    /* From thread to thread. */
    {"turn-owner", "holds with an owner are passed on", 500, .core = HF__MUTANT_TURN_OWNER},
    {"turn-late", "a lock is passed on for ever", 500, .core = HF__MUTANT_TURN_LATE},
    {"turn-fence", "a lock is passed on with its fence", 500, .core = HF__MUTANT_TURN_FENCE},
    {"range-kept", "many fences are reserved, and those that nobody had are not given back", 500,
     .core = HF__MUTANT_RANGE_KEPT},
    {"watched-given-back", "fences of which observers know are given back", 500,
     .edits = {EDIT("release", "and not string.find(kept or '', '@', 1, true) then", "then")}},
    {"ahead-deleted", "a fence ahead of the clock is deleted, of which 0.7 knows by name only", 500,
     .edits = {EDIT("hand_on", "if last > clock then", "if false then")}},
    {"ahead-unmarked", "and its release does not look", 500,
     .edits = {EDIT("hand_on", "if waiting > 0 or KEYS[6] and last >= clock then",
                    "if waiting > 0 then")}},
    {"handed-plain", "nor does that of a lock that 0.7 has handed on", 4000,
     .core = HF__MUTANT_HANDED_PLAIN},

    /* From client to client. */
    {"attach-releases", "an attach that fails releases the lock", 500,
     .core = HF__MUTANT_ATTACH_RELEASES},
    {"attach-early", "deadline of an attached hold from the reply", 500,
     .core = HF__MUTANT_ATTACH_EARLY},
    {"detach-forgets-late", "a token does not say that a copy may be late", 4000,
     .core = HF__MUTANT_DETACH_FORGETS},
    {"detach-renews", "a detached hold is renewed as before", 500,
     .core = HF__MUTANT_DETACH_RENEWS},

    /* Asynchronous calls. */
    {"listens-early", "a listener hears of a hold before its acquire is told", 2000,
     .core = HF__MUTANT_LISTENS_EARLY},
    /* Observers. */
    {"sight-unsaid", "a lock that is handed on is not told to observers", 500,
     .edits = {EDIT("release", "announce(kept, 'granted', heir, last, heir_lease)\n", "")}},
    {"sight-old", "an observer is told of grants from before what it knows", 500,
     .core = HF__MUTANT_SIGHT_OLD},
    {"sight-hasty", "what a look finds is told before messages that say more", 500,
     .core = HF__MUTANT_SIGHT_HASTY},
    {"sight-dropped", "an observer is not told that it missed something", 500,
     .core = HF__MUTANT_SIGHT_DROPPED},
    {"look-once", "an observer looks when a lease is over, and never else", 500,
     .core = HF__MUTANT_LOOK_ONCE},
    {"look-never-ends", "an observer does not look when a lease is over", 500,
     .core = HF__MUTANT_LOOK_NEVER_ENDS},
    {"look-storm", "without messages, an observer looks all the time", 500,
     .core = HF__MUTANT_LOOK_STORM},
    {"observers-first", "renewals wait until observers have looked", 500,
     .core = HF__MUTANT_OBSERVERS_FIRST},
    /* Ids. */
    {"ids-not-kept", "a block is not stored", 500,
     .edits = {EDIT("ids", "part, sequence + count))", "part, sequence))")}},
    {"ids-any-process", "what another process knew is believed to be all", 4000,
     .edits = {EDIT("ids", "if seen or run ~= ARGV[1] then", "if seen then")}},
    {"ids-backwards", "the time part is the clock's, whatever was kept", 4000,
     .edits = {EDIT("ids", "elseif now > kept_part then", "elseif now ~= kept_part then")}},
    {"ids-unseen", "what the client has seen is not looked at", 8000,
     .edits = {EDIT("ids", "tonumber(ARGV[6]), tonumber(ARGV[7])", "0, 0")}},
    {"ids-no-jump", "a server that has forgotten goes on from its clock", 4000,
     .edits = {EDIT("ids", "now + jump, time[2] * 2147", "now, 0")}},
    {"ids-jumps-add-up", "each process jumps ahead of the last one", 4000,
     .edits = {EDIT("ids", "now + jump, time[2] * 2147",
                    "math.max(highest, now) + jump, time[2] * 2147")}},
    {"ids-same-second", "two that have forgotten begin the same second", 8000,
     .edits = {EDIT("ids", "time[2] * 2147", "0")}},
    {"ids-short-jump", "it jumps by half of what clocks may be apart", 8000,
     .core = HF__MUTANT_IDS_SHORT_JUMP},
    {"ids-unnamed", "a server that hides its run_id gives out ids", 500,
     .edits = {EDIT("ids", "if ARGV[1] == '' then", "if false then")}},
    {"mute-trusted", "a server that hides its run_id is taken for one process", 500,
     .core = HF__MUTANT_MUTE_TRUSTED},

    /* Stock. */
    {"take-unrecorded", "what was sold is not remembered", 500,
     .edits = {EDIT("stock_take", "call('HSET', KEYS[2], request, 't - '", "type('t - '"),
               EDIT("stock_take", "remember(request, 't', '-', ARGV[4], available, 0, user)", "")}},
    {"take-not-looked-up", "a repeated request is a new one", 500,
     .edits = {EDIT("stock_take", "call('HEXISTS', KEYS[2], request) == 0 and", "true and"),
               EDIT("stock_take", "(item[7] and call('HEXISTS', KEYS[3], request) == 1)", "false"),
               EDIT("stock_take", "if old_verb then", "if false then")}},
    {"take-fast-twice", "the short way does not look for old requests", 8000,
     .edits = {EDIT("stock_take", "(item[7] and call('HEXISTS', KEYS[3], request) == 1)",
                    "false")}},
    {"take-fast-sold-out", "the short way sells what is not there", 500,
     .edits = {EDIT("stock_take", "if left >= 0 and", "if")}},
    {"take-fast-unlimited", "the short way has no limit per user", 500,
     .edits = {EDIT("stock_take", "(limit == 0 or has <= limit) and", "")}},
    {"refusal-forgotten", "a refusal is not remembered for late copies", 8000,
     .edits = {EDIT("stock_take", "if ARGV[2] == '1' or ARGV[6] == '1' then", "if false then")}},
    {"errand-fresh", "no copy says that another one may have come before", 8000,
     .core = HF__MUTANT_ERRAND_FRESH},
    {"oversold", "more is sold than there is", 500,
     .edits = {EDIT("stock_take", "elseif available < units then", "elseif available < 0 then")}},
    {"limit-outside", "the limit is left to the caller, who looked before", 500,
     .edits = {EDIT("stock_take", "elseif limit > 0 and has + units > limit then",
                    "elseif false then")}},
    {"ended-twice", "what ran out stays among the open reservations", 500,
     .edits = {EDIT("stock_item",
                    "remember(wanted, 'r', 'x', units, left, ends, user)\nif call('ZREM', "
                    "KEYS[4], wanted) == 0 then",
                    "remember(wanted, 'r', 'o', units, left, ends, user)\nif false then")}},
    {"cancel-twice", "a cancel gives back what has ended", 500,
     .edits = {EDIT("stock_settle", "elseif state == 'o' then",
                    "elseif state == 'o' or state == 'x' and wanted == 'x' then"),
               EDIT("stock_item", "if call('ZREM', KEYS[4], wanted) == 0 then", "if false then")}},
    {"confirm-twice", "a repeated confirm sells once more", 500,
     .edits = {EDIT("stock_settle", "elseif state == 'o' then",
                    "elseif state == 'o' or state == 'c' and wanted == 'c' then")}},
    {"confirm-late", "what has run out is confirmed", 500,
     .edits = {EDIT("stock_settle", "if wanted == 'x' or ends <= now then",
                    "if wanted == 'x' then")}},
    {"cancel-early", "a cancel that overtakes its reservation is not remembered", 8000,
     .edits = {EDIT("stock_settle", "remember(request, 'r', 'x', 0, 0, 0, '')", "")}},
    {"put-reserved", "a user gives back what is only reserved", 500,
     .edits = {EDIT("stock_put", "(has[1] or 0) - (has[2] or 0)", "(has[1] or 0)")}},
    {"put-unrecorded", "what came back is not remembered", 500,
     .edits = {EDIT("stock_put", "remember(request, verb, '-', units, available, 0, user)", "")}},
    {"turn-drops", "open reservations are forgotten with old requests", 4000,
     .edits = {EDIT("stock_item", "if not record and (wanted ~= request or item[9]) then",
                    "if false then")}},
    {"record-left", "the record of a reservation stays when it is sold", 500,
     .edits = {EDIT("stock_settle", "call('HDEL', KEYS[1], '~' .. request)", "")}},
    {"logs-kept", "requests of an item that nobody uses are remembered for ever", 500,
     .edits = {EDIT("stock_item", "call('PEXPIREAT', KEYS[2], math.max(turn, now) + keep)\nend",
                    "end")}},
    {"set-twice", "a late copy of a set sets once more", 4000,
     .edits = {EDIT("stock_set", "if verb or begun == request then", "if begun == request then")}},
    {"afresh-twice", "a late copy begins an item again", 8000,
     .edits = {EDIT("stock_set", "if verb or begun == request then", "if verb and not again then"),
               EDIT("stock_set", "if again and (begun or '') ~= again then", "if false then")}},
    /* One lock at the cost of others; see permits.h. */
    {"refused-together", "a refused call of renewals is not split", 500,
     .core = HF__MUTANT_REFUSED_TOGETHER},
    {"large-breaks", "a large value at one lock ends the connection of others", 500,
     .core = HF__MUTANT_LARGE_BREAKS, .edits = {EDIT("inspect", "held and cut(held)", "held")}},
    {"large-whole", "a large value is returned as it is", 500,
     .edits = {EDIT("inspect", "held and cut(held)", "held")}},
    {"denied-for-life", "messages that were denied are not tried again", 500,
     .core = HF__MUTANT_DENIED_FOR_LIFE},
    /* A server whose memory is short; see memory.h. */
    {"full-unreleased", "a release begins with a write that needs memory", 500,
     .edits = {EDIT("release",
                    "if late > 0 then\ncall('ZREMRANGEBYSCORE', KEYS[2], "
                    "string.format('(-%.0f', now), '(0')\n",
                    "if late > 0 then\n")}},
    {"full-unrenewed", "a renewal writes the value once more", 500,
     .edits = {EDIT("refresh", "call('PEXPIRE', key, lease, 'GT') == 1",
                    "call('SET', key, call('GET', key), 'PX', lease)")}},
    {"full-unshared", "that of a sharer begins with a write that needs memory", 2000,
     .edits = {EDIT("renew", "call('ZREMRANGEBYSCORE', holders, '-inf', now)\n", "")}},
    {"deleted-reserved", "an item with open reservations is deleted", 500,
     .edits = {EDIT("stock_delete", "if ARGV[4] ~= '1' and", "if false and")}},
    {"delete-twice", "a late copy of a delete deletes what was set since", 8000,
     .edits = {EDIT("stock_delete", "if call('HGET', KEYS[1], 'begun') ~= ARGV[3] then",
                    "if false then")}},
    {"delete-forgets", "a delete forgets requests, and a late copy sells what was set since", 8000,
     .edits = {EDIT("stock_delete", "call('UNLINK', KEYS[1], KEYS[4])",
                    "call('UNLINK', KEYS[1], KEYS[2], KEYS[3], KEYS[4])")}},
    {"set-forgets", "an item that is set again after a delete forgets requests", 8000,
     .edits = {EDIT("stock_set", "if again then\ncall('UNLINK'", "if true then\ncall('UNLINK'")}},
    {"set-forgets-old", "and the short way does not look for old ones", 8000,
     .edits = {EDIT("stock_set", "elseif call('EXISTS', KEYS[3]) == 1 then", "elseif false then")}},
    {"set-revives", "a late copy of a set brings a deleted item back", 8000,
     .edits = {EDIT("stock_set", "if verb or begun == request then",
                    "if exists and (verb or begun == request) then")}},
    {"confirm-deleted", "a reservation of a deleted item is confirmed in the next", 8000,
     .edits = {EDIT("stock_settle", "elseif call('ZREM', KEYS[4], request) == 0 then",
                    "elseif call('ZREM', KEYS[4], request) < 0 then")}},
    {"cancel-deleted", "and cancelled there", 8000,
     .edits = {EDIT("stock_item", "if call('ZREM', KEYS[4], wanted) == 0 then",
                    "if call('ZREM', KEYS[4], wanted) < 0 then")}},
};

const int mutant_count = sizeof(mutants) / sizeof(mutants[0]);
