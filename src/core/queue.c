/* SPDX-License-Identifier: MIT */
/* Waiting at the server. An acquire that finds the lock busy is put into a queue there, by the same
 * script call; whoever releases the lock hands it to the first of the queue and sends a message to
 * its client, which thereby holds it. Nobody asks again and again.
 *
 * Which message to believe. Every copy of an acquire has a number. A grant names the copy that
 * queued: the server made it after that copy had left here, so the lease has lasted at most since
 * then. A grant by an older copy than one that was answered with "you wait" is out of date: that
 * grant had ended by then. A message may overtake the answer to the very copy that queued; that is
 * normal, and it counts.
 *
 * Messages get lost with connections, and servers forget. So one who waits checks now and then, by
 * sending its acquire once more: every third of its lease; when the holder's time is up, if it is
 * near the head, one behind the other; soon and again if the holder does not use this library and
 * will hand on to nobody, or if the server denies us messages (deaf.c); and after each link has
 * come back. */
#include "base/mutant.h"
#include "base/random.h"
#include "core/state.h"

enum {
    CHECKS_IN_A_LEASE = 3,
    SPREAD_DIVISOR = 8, /* of the interval: by how much checks are spread */
    NEAR_HEAD = 8,      /* so many check when the holder's time is up, */
    STAGGER_MS = 20,    /* one so long behind the other */
    CHECK_MIN_MS = 5,
    PLACE_MAX = 1000000
};

/* Lua counts to 2^53, and this is hard to guess and leaves enough. */
#define COPIES_BEGIN_BELOW (UINT64_C(1) << 51)

/* ---- By number ---- */

uint64_t hf__queue_hash(const hf__node *node)
{
    return HF__ENTRY(node, hf_hold, numbered)->number;
}

void hf__queue_enlist(hf_hold *hold)
{
    if (!hf__node_linked(&hold->numbered))
        hf__table_add(&hold->core->numbers, &hold->numbered);
}

void hf__queue_strike(hf_hold *hold)
{
    if (hf__node_linked(&hold->numbered))
        hf__table_remove(&hold->core->numbers, &hold->numbered);
}

static bool is_known_as(const hf_hold *hold, const hf__server *server, uint64_t number)
{
    return hold->number == number && hold->link->server == server;
}

hf_hold *hf__queue_find(hf__server *server, uint64_t number)
{
    const hf__table *table = &server->core->numbers;
    for (hf__node *n = hf__table_first(table, number); n != NULL; n = hf__table_next(table, n))
        if (is_known_as(HF__ENTRY(n, hf_hold, numbered), server, number))
            return HF__ENTRY(n, hf_hold, numbered);
    return NULL;
}

/* ---- Waiting ---- */

static bool queues(const hf__call *call)
{
    return call->wait_ms != 0 && !call->polls;
}

void hf__queue_want(hf_hold *hold)
{
    if (!queues(hold->call))
        return;
    if (!hf__node_linked(&hold->place.node))
        hf__list_append(&hold->link->server->waiters, &hold->place.node);
    hf__push_want(hold->link->server);
}

void hf__queue_leave(hf_hold *hold)
{
    if (hf__node_linked(&hold->place.node))
        hf__list_remove(&hold->link->server->waiters, &hold->place.node);
}

/* Only with a subscription that is confirmed, at the same server process: otherwise it would be
 * taken for dead, and skipped. Or where there can be none: then it says so. */
bool hf__queue_admits(const hf_hold *hold)
{
    if (hold->call == NULL || !queues(hold->call))
        return false;
    return hf__push_works(hold->link) || hold->link->server->push_denied || HF__MUTANT(QUEUE_DEAF);
}

/* From the last copy on, which left then, grants are believed. */
static void set_base(hf_hold *hold, hf__instant sent)
{
    hold->place.base = hold->place.copy;
    hold->place.base_sent = sent;
    hold->place.base_run = hold->link->run;
}

/* Each hold counts from a number of its own, so that whoever has seen those of one hold, as
 * everybody does who listens on the channel, cannot tell those of the next. The secret goes in
 * twice because hf__random_next() alone can be turned back. */
static uint64_t first_copy(const hf_hold *hold)
{
    uint64_t state = hold->core->copy_secret + hold->number;
    state = hf__random_next(&state) ^ (hold->core->copy_secret * UINT64_C(0xd1342543de82ef95));
    return 1 + hf__random_below(&state, COPIES_BEGIN_BELOW);
}

uint64_t hf__queue_number_copy(hf_hold *hold)
{
    hf__place *place = &hold->place;
    if (!hf__queue_admits(hold))
        return 0;
    place->copy = place->copy > 0 ? place->copy + 1 : first_copy(hold);
    hold->core->copies = place->copy;
    if (place->base == 0 || place->base_run != hold->link->run)
        set_base(hold, hold->core->now);
    return place->copy;
}

static hf__instant next_check(hf_hold *hold, int64_t remaining_ms, bool foreign)
{
    hf__core *core = hold->core;
    hf__span interval = {hold->lease.ns / CHECKS_IN_A_LEASE};
    uint64_t spread = (uint64_t)(interval.ns / SPREAD_DIVISOR);
    interval.ns -= (int64_t)hf__random_below(&core->random, spread + 1);
    hf__instant next = hf__after(core->now, interval);
    int64_t behind_ms = (hold->place.number - 1) * STAGGER_MS;
    bool untold = foreign || hold->link->server->push_denied; /* of the grant, by anybody */
    if (untold)
        next = hf__earlier(next, hf__after(core->now, hold->call->retry_interval));
    if (remaining_ms >= 0 && (untold || hold->place.number <= NEAR_HEAD))
        next = hf__earlier(next, hf__after(core->now, hf__span_ms(remaining_ms + 1 + behind_ms)));
    return hf__later(next, hf__after(core->now, hf__span_ms(CHECK_MIN_MS)));
}

hf__instant hf__queue_joined(hf_hold *hold, int64_t number, int64_t remaining_ms, bool foreign)
{
    set_base(hold, hold->requests[HF__REQUEST_ACQUIRE].sent);
    hold->place.number = number < PLACE_MAX ? number : PLACE_MAX;
    hf__queue_want(hold);
    hf__push_watch(hold->link->server);
    return next_check(hold, remaining_ms, foreign);
}

bool hf__queue_believes(hf_hold *hold, uint64_t copy)
{
    const hf__place *place = &hold->place;
    if (HF__MUTANT(PUSH_EARLY) && place->number == 0)
        return false;
    return hold->stage == HF__HOLD_TRYING && place->base > 0 &&
           (copy >= place->base || HF__MUTANT(PUSH_OLD)) && copy <= place->copy &&
           place->base_run == hold->link->run && hf__push_works(hold->link);
}

void hf__queue_check_all(hf__server *server, const hf__link *link)
{
    hf__list *waiters = &server->waiters;
    for (size_t left = waiters->count; left > 0 && waiters->count > 0; left--) {
        hf_hold *hold = HF__ENTRY(hf__list_rotate(waiters), hf_hold, place.node);
        if ((link == NULL || hold->link == link) && !HF__MUTANT(NO_CHECK))
            hf__acquire_go(hold);
    }
}
