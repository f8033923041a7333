/* SPDX-License-Identifier: MIT */
/* What a script call of a hold says: its keys and its arguments, as docs/wire.md has them. All of
 * it is taken from the hold at the moment of sending. What has its usual value is left out at the
 * end, because every word costs the server time. */
#include "base/mutant.h"
#include "base/text.h"
#include "core/name.h"
#include "core/state.h"

enum { NUMBER_MAX = 20, KEYS_MAX = 6, ARGUMENTS_MAX = 9 };

/* How long the fence must be remembered: longer than any lease lasts. */
static hf__span fence_keep(const hf_hold *hold)
{
    hf__span keep = hold->core->config.fence_keep;
    hf__span twice = {2 * hold->longest_lease.ns};
    return keep.ns > twice.ns ? keep : twice;
}

/* And under the name of its lock, while the slot's mark has it as well. A hold that nobody renews
 * may be one of many that are left to expire; there, twice the lease is enough. */
static hf__span named_fence_keep(const hf_hold *hold)
{
    bool stays = hold->watch.interval.ns > 0 || hold->vote != NULL || hold->attaching;
    return stays ? fence_keep(hold) : (hf__span){2 * hold->longest_lease.ns};
}

/* The server need not be told to keep the fence with every renewal, if it is told early enough: the
 * next renewal comes within half of that time. */
bool hf__request_is_plain(const hf_hold *hold)
{
    hf__span quarter = {fence_keep(hold).ns / 4};
    return hold->owner_length == 0 && hold->extends.count == 0 && !hold->look_closer &&
           !hf__vote_is_raising(hold) &&
           hf__before(hold->core->now, hf__after(hold->fence_kept, quarter));
}

/* The first `count` of these letters. */
static void put_side_keys(hf__buffer *out, const char *letters, size_t count, const hf_hold *hold)
{
    char side[HF_NAME_MAX + HF__SIDE_KEY_EXTRA];
    hf__slice prefix = hold->core->config.side_prefix;
    size_t length = hf__side_key_tagged(side, prefix, letters[0], hf__hold_key(hold), hold->tag);
    for (size_t i = 0; i < count; i++) {
        hf__side_key_change(side, prefix, letters[i]);
        hf__resp_word(out, (hf__slice){side, length});
    }
}

/* The letters of the side keys that a script takes behind the lock itself: q queue, f fence, w
 * notes, h holders. Renewals and confirmations name the holders only with an owner. */
static const char *const side_letters[HF__REQUEST_KINDS] = {"qfwh", "qfwh", "fwh", "h"};

static size_t side_key_count(const hf__request *request)
{
    static const size_t counts[HF__REQUEST_KINDS] = {4, 4, 2, 0};
    bool owned = hf__request_hold(request)->owner_length > 0;
    return counts[request->kind] + (owned && request->kind >= HF__REQUEST_RENEW);
}

/* A quorum keeps all fences by name. */
static bool names_slot(const hf__request *request)
{
    return request->kind <= HF__REQUEST_RELEASE && hf__request_hold(request)->vote == NULL;
}

static void put_slot_key(hf__buffer *out, const hf_hold *hold)
{
    char key[HF__SIDE_KEY_EXTRA];
    size_t length = hf__slot_key(key, hold->core->config.side_prefix, hold->tag);
    hf__resp_word(out, (hf__slice){key, length});
}

void hf__arguments_put_keys(const hf__request *request, hf__buffer *out)
{
    const hf_hold *hold = hf__request_hold(request);
    hf__resp_word(out, hf__hold_key(hold));
    put_side_keys(out, side_letters[request->kind], side_key_count(request), hold);
    if (names_slot(request))
        put_slot_key(out, hold);
}

static void put_number(hf__buffer *out, uint64_t value)
{
    char number[NUMBER_MAX];
    hf__resp_word(out, (hf__slice){number, hf__digits(number, value)});
}

static void put_ms(hf__buffer *out, hf__span span)
{
    put_number(out, (uint64_t)hf__span_to_ms(span));
}

static bool keeps_as_usual(const hf_hold *hold)
{
    return fence_keep(hold).ns == hf__span_ms(HF__FENCE_KEEP_MS).ns;
}

/* Whether a copy may be queued already is known until this one gets its number. */
static size_t acquire_arguments(const hf_hold *hold)
{
    if (hold->vote != NULL)
        return 9;
    if (hold->owner_length > 0 || hold->place.base > 0)
        return 7;
    if (named_fence_keep(hold).ns < fence_keep(hold).ns)
        return 6;
    if (hold->range > 1 || hf__queue_admits(hold))
        return 5;
    return keeps_as_usual(hold) ? 2 : 3;
}

static void put_named_keep(const hf_hold *hold, hf__buffer *out)
{
    if (named_fence_keep(hold).ns < fence_keep(hold).ns)
        put_ms(out, named_fence_keep(hold));
    else
        hf__resp_word(out, HF__SLICE(""));
}

/* -1: it queues, and no message can tell it of its grant. */
static void put_copy(hf_hold *hold, hf__buffer *out)
{
    uint64_t copy = hf__queue_number_copy(hold);
    if (copy > 0 && hold->link->server->push_denied)
        hf__resp_word(out, HF__SLICE("-1"));
    else
        put_number(out, copy);
}

static void put_acquire(hf_hold *hold, hf__buffer *out)
{
    size_t count = acquire_arguments(hold);
    hf__resp_word(out, hf__hold_value(hold));
    put_ms(out, hold->lease);
    if (count > 2)
        put_ms(out, fence_keep(hold));
    if (count > 3) {
        put_number(out, hold->range);
        put_copy(hold, out);
    }
    if (count > 5)
        put_named_keep(hold, out);
    if (count > 6)
        hf__resp_word(out, hf__hold_owner(hold));
    if (count > 7) {
        put_number(out, hf__vote_proposal(hold));
        put_number(out, hf__vote_ticket(hold));
    }
}

/* Of those that were reserved with its grant; all but the first, if we have not heard of it. */
static uint64_t unused_fences(const hf_hold *hold)
{
    if (HF__MUTANT(RANGE_KEPT))
        return 0;
    if (hold->fence > 0)
        return hold->fence_top - hold->fence;
    return hold->range > 0 ? hold->range - 1u : 0;
}

/* A copy of its acquire may reach the server later than this. */
static bool leaves_tombstone(const hf_hold *hold)
{
    return hold->copy_lost && !HF__MUTANT(NO_TOMBSTONE) &&
           !(HF__MUTANT(TOMB_CANCEL) && hold->fence > 0);
}

/* A lock that was handed on by a client of 0.7 has a fence of which the mark of its slot does not
 * know; so may one that waited, and was granted without our having heard of it. */
static bool may_be_handed(const hf_hold *hold)
{
    return (hold->handed || (hold->fence == 0 && hold->place.base > 0)) &&
           !HF__MUTANT(HANDED_PLAIN);
}

/* Whether the script must look closer than a plain release does. */
static bool names_fence(const hf_hold *hold)
{
    return hold->requests[HF__REQUEST_RELEASE].unanswered || unused_fences(hold) > 0 ||
           may_be_handed(hold);
}

static size_t release_arguments(const hf_hold *hold)
{
    if (hold->vote != NULL)
        return 5;
    if (names_fence(hold))
        return 7;
    if (hold->owner_length > 0)
        return 4;
    if (!keeps_as_usual(hold))
        return 3;
    return leaves_tombstone(hold) ? 2 : 1;
}

static void put_release(hf_hold *hold, hf__buffer *out)
{
    size_t count = release_arguments(hold);
    hf__resp_word(out, hf__hold_value(hold));
    /* Whoever takes up a hold may have asked for less than the acquire did. */
    if (count > 1)
        put_ms(out, leaves_tombstone(hold) ? hold->longest_lease : hf__span_ms(0));
    if (count > 2)
        put_ms(out, fence_keep(hold));
    if (count > 3)
        hf__resp_word(out, hf__hold_owner(hold));
    if (count > 4 && hold->vote != NULL)
        put_number(out, hf__vote_proposal(hold));
    else if (count > 4)
        hf__resp_word(out, HF__SLICE(""));
    if (count > 5) {
        put_number(out, hold->fence > 0 ? hold->fence_top : 0);
        put_number(out, unused_fences(hold));
    }
}

static void put_confirm(hf_hold *hold, hf__buffer *out)
{
    hf__resp_word(out, hf__hold_value(hold));
    put_ms(out, hold->lease);
    if (hold->owner_length > 0)
        hf__resp_word(out, hf__hold_owner(hold));
}

/* Sharers that began at the same time may each raise the fence, and lose nothing by it. */
static void put_known_fence(const hf_hold *hold, bool raising, hf__buffer *out)
{
    char text[NUMBER_MAX + 1] = "-";
    size_t digits = hf__digits(text + 1, hold->fence_top);
    if (raising && !hold->attaching && hold->owner_length > 0 && !HF__MUTANT(RAISED_GONE))
        hf__resp_word(out, (hf__slice){text, digits + 1});
    else if (raising || hold->attaching)
        hf__resp_word(out, (hf__slice){text + 1, digits});
    else
        hf__resp_word(out, HF__SLICE("0"));
}

/* For the first call that waits; what the watchdog wants is asked for along with it. */
static void put_renew(hf_hold *hold, hf__buffer *out)
{
    const hf__node *first = hf__list_first(&hold->extends);
    hold->asked = hold->lease;
    hold->asked_to_keep = true;
    if (first != NULL) {
        hf__span wanted = HF__ENTRY(first, hf__call, node)->lease;
        if (wanted.ns > hold->lease.ns || hold->watch.interval.ns == 0)
            hold->asked = wanted;
    }
    hf__resp_word(out, hf__hold_value(hold));
    put_ms(out, hold->asked);
    put_ms(out, named_fence_keep(hold));
    hf__resp_word(out, hf__hold_owner(hold));
    bool raising = hf__vote_is_raising(hold);
    put_known_fence(hold, raising, out);
    if (raising)
        hf__vote_raise_sent(hold);
}

size_t hf__arguments_count(const hf__request *request)
{
    const hf_hold *hold = hf__request_hold(request);
    if (request->kind == HF__REQUEST_ACQUIRE)
        return acquire_arguments(hold);
    if (request->kind == HF__REQUEST_RELEASE)
        return release_arguments(hold);
    return request->kind == HF__REQUEST_RENEW ? 5 : 2 + (hold->owner_length > 0);
}

size_t hf__arguments_bytes(const hf_hold *hold)
{
    return KEYS_MAX * ((size_t)hold->key_length + HF__SIDE_KEY_EXTRA) + hold->value_length +
           hold->owner_length + ARGUMENTS_MAX * NUMBER_MAX;
}

size_t hf__arguments_key_count(const hf__request *request)
{
    return 1 + side_key_count(request) + names_slot(request);
}

void hf__arguments_put(const hf__request *request, hf__buffer *out)
{
    static void (*const put[])(hf_hold *, hf__buffer *) = {put_acquire, put_release, put_renew,
                                                           put_confirm};
    put[request->kind](hf__request_hold(request), out);
}

/* In columns, so that the script can hand on a column as it is; a lease that all have stands once,
 * since every word is a string that the server must make. */
void hf__arguments_put_refresh(hf_hold *const *holds, unsigned count, bool mixed, hf__buffer *out)
{
    for (unsigned i = 0; i < count; i++) {
        holds[i]->asked = holds[i]->lease;
        holds[i]->asked_to_keep = false;
        hf__resp_word(out, hf__hold_key(holds[i]));
    }
    for (unsigned i = 0; i < count; i++)
        put_side_keys(out, "w", 1, holds[i]);
    for (unsigned i = 0; i < count; i++)
        hf__resp_word(out, hf__hold_value(holds[i]));
    for (unsigned i = 0; i < (mixed ? count : 1); i++)
        put_ms(out, holds[i]->lease);
}
