/* SPDX-License-Identifier: MIT */
/* A hold from its birth before the first request to its end.
 *
 * The deadline is the heart of it. It is computed from the moment before the request was sent, so
 * it is earlier than the server's expiry whatever the network did; an allowance is taken off for a
 * server clock that runs faster than ours. Deadlines only grow, and once one has passed the hold is
 * lost for good, even if a late answer would say otherwise: code that was told "lost" must never
 * hear "valid" again. So whoever finds it expired, on whatever thread, puts 0 in its place, and
 * nothing replaces a 0 in a hold that is held.
 *
 * The memory belongs to the core until the hold is over, no request of it is in flight (its answer
 * must still be matched), nobody is being told about it and the application has given back its
 * handles. A hold that its thread has re-entered has several (see reentry.c): what is asked of any
 * of them is asked of the hold. */
#include <string.h>

#include "base/memory.h"
#include "base/mutant.h"
#include "base/text.h"
#include "core/name.h"
#include "core/state.h"

enum { VALUE_MAX = 32 + 1 + 20 + 1 + 64 + 1 + 20 + 1 + 20 + 1 + HF_LABEL_MAX, PPM = 1000000 };

static size_t put_text(char *place, const char *text, size_t max)
{
    size_t length = strnlen(text, max);
    memcpy(place, text, length);
    return length;
}

static size_t put_number(char *place, char before, uint64_t number)
{
    place[0] = before;
    return 1 + hf__digits(place + 1, number);
}

/* <client id>:<number>@<host>:<pid>/<thread>[/<label>]. Made for every acquire, so without printf.
 */
static size_t make_value(char *value, const hf__wish *wish)
{
    const hf__identity *who = &wish->who;
    size_t length = put_text(value, who->client_id, 32);
    length += put_number(value + length, ':', who->number);
    value[length++] = '@';
    length += put_text(value + length, who->host, 64);
    length += put_number(value + length, ':', who->pid);
    length += put_number(value + length, '/', who->thread);
    if (wish->label.length > 0) {
        value[length++] = '/';
        memcpy(value + length, wish->label.bytes, wish->label.length);
        length += wish->label.length;
    }
    return length;
}

static void put_texts(hf_hold *hold, const hf__wish *wish, hf__slice value)
{
    char *end = hold->text;
    end = hf__slice_put(end, wish->prefix);
    end = hf__slice_put(end, wish->name);
    hold->key_length = (unsigned short)(end - hold->text);
    end = hf__slice_put(end, value);
    hold->value_length = (unsigned short)value.length;
    hf__slice_put(end, wish->owner);
    hold->owner_length = (unsigned short)wish->owner.length;
    hold->slot = (unsigned short)hf__slot(hold->text, hold->key_length);
    hold->tag = hf__slot_tags[hold->slot];
    hold->hash = hf__hash(hold->text, hold->key_length);
}

hf_hold *hf__hold_new(const hf__wish *wish)
{
    char made[VALUE_MAX];
    hf__slice value = wish->value;
    if (value.length == 0)
        value = (hf__slice){made, make_value(made, wish)};
    hf_hold *hold = hf__alloc(sizeof(*hold) + wish->prefix.length + wish->name.length +
                              value.length + wish->owner.length);
    if (hold == NULL)
        return NULL;
    put_texts(hold, wish, value);
    hold->fence = wish->fence;
    hold->fence_top = wish->fence_top;
    hold->lease = hold->longest_lease = wish->lease;
    if (hold->longest_lease.ns < wish->lease_before.ns)
        hold->longest_lease = wish->lease_before;
    hold->copy_lost = wish->late;
    hold->number = wish->who.number;
    hold->range = 1;
    hold->thread = wish->who.thread;
    hold->reenters = wish->reenters && wish->owner.length == 0;
    hold->watch = (hf__watch){.interval = wish->renew_interval,
                              .timeout = wish->renew_timeout,
                              .warn = wish->warn,
                              .max_hold = wish->max_hold};
    hold->listener = (hf__listener){.function = wish->on_event,
                                    .arg = wish->arg,
                                    .descriptor = -1,
                                    .listens_later = wish->listens_later};
    hold->timer.kind = HF__TIMER_HOLD;
    hf__list_init(&hold->extends);
    hf__list_init(&hold->inners);
    for (unsigned char kind = 0; kind < HF__OWN_REQUESTS; kind++)
        hold->requests[kind].kind = kind;
    if (wish->replicas > 0 && !hf__replicas_new(hold, wish->replicas)) {
        hf__hold_drop(hold);
        return NULL;
    }
    return hold;
}

void hf__hold_drop(hf_hold *hold)
{
    hf__free(hold->vote);
    hf__ballot_free(hold->ballot);
    hf__free(hold->replicas);
    hf__free(hold->revoked_text);
    hf__free(hold);
}

void hf__hold_abandon(hf_hold *handle)
{
    hf_hold *hold = hf__hold_of(handle);
    if (hold->core != NULL) {
        hf__reentry_leave(handle); /* the memory goes with the core */
        return;
    }
    if (handle != hold)
        hf__hold_drop(handle);
    if (--hold->users == 0)
        hf__hold_drop(hold);
}

void hf__hold_detach(hf_hold *hold)
{
    atomic_store(&hold->deadline_ns, 0);
    hold->core = NULL;
    hold->link = NULL;
    if (hold->users == 0 || hold->vote != NULL)
        hf__hold_drop(hold);
}

void hf__hold_set_client(hf_hold *hold, void *client)
{
    hold->client = client;
}

void *hf__hold_client(const hf_hold *hold)
{
    return hold->client;
}

void hf__hold_listen(hf_hold *hold)
{
    hold->listener.listens_later = false;
    hf__tell_all(hf__hold_of(hold));
}

hf__span hf__hold_lease(const hf_hold *hold)
{
    return hf__hold_of(hold)->lease;
}

hf__span hf__hold_longest_lease(const hf_hold *hold)
{
    return hf__hold_of(hold)->longest_lease;
}

uint64_t hf__hold_fence(const hf_hold *hold)
{
    return hf__hold_of(hold)->fence;
}

uint64_t hf__hold_fence_top(const hf_hold *hold)
{
    return hf__hold_of(hold)->fence_top;
}

hf__slice hf__hold_key_text(const hf_hold *hold)
{
    return hf__hold_key(hf__hold_of(hold));
}

hf__slice hf__hold_value_text(const hf_hold *hold)
{
    return hf__hold_value(hf__hold_of(hold));
}

hf__slice hf__hold_owner_text(const hf_hold *hold)
{
    return hf__hold_owner(hf__hold_of(hold));
}

void hf__hold_set_descriptor(hf_hold *hold, int descriptor)
{
    hold->listener.descriptor = descriptor;
    if (descriptor >= 0)
        hf__tell_all(hf__hold_of(hold)); /* what happened before may be news */
}

int hf__hold_descriptor(const hf_hold *hold)
{
    return hold->listener.descriptor;
}

bool hf__hold_expired(hf_hold *hold)
{
    return hf__hold_remaining(hold, hold->core->now).ns == 0;
}

bool hf__hold_move_deadline(hf_hold *hold, int64_t deadline_ns)
{
    int64_t before = atomic_load(&hold->deadline_ns);
    do {
        if (before == 0 && hold->stage == HF__HOLD_HELD)
            return false;
    } while (!atomic_compare_exchange_weak(&hold->deadline_ns, &before, deadline_ns));
    return true;
}

/* What clocks that run at different rates may take off. */
static hf__span drift_of(const hf_hold *hold, hf__span lease)
{
    const hf__config *config = &hold->core->config;
    if (HF__MUTANT(NO_DRIFT))
        return hf__span_ms(0);
    return (hf__span){lease.ns / PPM * config->drift_ppm + config->drift.ns};
}

hf__instant hf__hold_began(const hf_hold *hold)
{
    int64_t deadline = atomic_load(&hold->deadline_ns);
    hf__instant began = {deadline - hold->lease.ns + drift_of(hold, hold->lease).ns};
    return hf__later(began, (hf__instant){hold->core->now.ns - hold->watch.interval.ns});
}

bool hf__hold_believe(hf_hold *hold, hf__instant sent, int64_t remaining_ms)
{
    hf__span remaining = hf__span_ms(remaining_ms);
    if (remaining.ns >
        hold->longest_lease.ns) /* a clock was set back there, and may be put right */
        remaining = hold->longest_lease;
    if (HF__MUTANT(FROM_REPLY))
        sent = hold->core->now;
    hf__span valid = {remaining.ns - drift_of(hold, remaining).ns};
    int64_t deadline = hf__after(sent, valid).ns;
    int64_t before = atomic_load(&hold->deadline_ns);
    do {
        if (before == 0 && hold->stage == HF__HOLD_HELD && !HF__MUTANT(REVIVES))
            return false;
    } while (before < deadline &&
             !atomic_compare_exchange_weak(&hold->deadline_ns, &before, deadline));
    return true;
}

hf__span hf__hold_remaining(hf_hold *handle, hf__instant now)
{
    hf_hold *hold = hf__hold_of(handle);
    int64_t deadline = atomic_load(&hold->deadline_ns);
    while (deadline != 0 && deadline <= now.ns)
        if (atomic_compare_exchange_weak(&hold->deadline_ns, &deadline, 0))
            deadline = 0;
    return deadline != 0 ? (hf__span){deadline - now.ns} : (hf__span){0};
}

hf_state hf__hold_state(hf_hold *handle, hf__instant now)
{
    if (hf__hold_remaining(handle, now).ns == 0)
        return HF_LOST;
    return (hf_state)atomic_load(&hf__hold_of(handle)->state);
}

void hf__hold_lose(hf_hold *hold, hf_reason reason, const char *text)
{
    if (hold->attaching) {
        hf__attach_fail(hold, HF_ELOST, text);
        return;
    }
    atomic_store(&hold->deadline_ns, 0);
    if (atomic_load(&hold->state) != HF_LOST) {
        atomic_store(&hold->state, HF_LOST);
        hold->reason = (unsigned char)reason;
        hold->core->stats.losses[reason] += hold->vote == NULL;
        hf__stats_ended(hold);
        if (!HF__MUTANT(LOST_UNTOLD))
            hf__tell_all(hold);
    }
    hf__reentry_forbid(hold);
    hf__watch_end(hold);
    hf__renew_end_calls(hold, HF_ELOST, text);
    hf__cohort_leave(hold);
    if (hold->ballot != NULL)
        hf__majority_over(hold);
    if (hold->vote != NULL)
        hf__vote_lost(hold, reason);
}

void hf__hold_expire(hf_hold *hold, const char *text)
{
    bool planned = hold->reason == HF_REASON_MAX_HOLD;
    hf__hold_lose(hold, planned ? HF_REASON_MAX_HOLD : HF_REASON_EXPIRED, text);
}

void hf__hold_over(hf_hold *hold)
{
    if (hold->stage == HF__HOLD_RELEASING)
        hf__list_remove(&hold->core->releasing, &hold->releasing);
    hold->stage = HF__HOLD_OVER;
    atomic_store(&hold->deadline_ns, 0);
    hf__timer_clear(&hold->core->timers, &hold->timer);
    for (int kind = 0; kind < HF__OWN_REQUESTS; kind++)
        hf__link_withdraw(&hold->requests[kind]);
    hf__replicas_withdraw(hold);
}

static bool is_idle(const hf_hold *hold)
{
    for (int kind = 0; kind < HF__OWN_REQUESTS; kind++)
        if (hold->requests[kind].place != HF__IDLE)
            return false;
    return hf__replicas_idle(hold);
}

void hf__hold_settle(hf_hold *hold)
{
    if (hold->dead || hold->stage != HF__HOLD_OVER || hold->users > 0 ||
        hf__tell_needs(hold->core, hold) || !is_idle(hold))
        return;
    if (hold->replicas != NULL && hold->call != NULL) { /* which had to give it back */
        hf__replicas_given_back(hold);
        return;
    }
    hold->dead = true;
    hf__queue_strike(hold);
    hf__list_remove(&hold->core->holds, &hold->node);
    hf__list_append(&hold->core->dead, &hold->node);
}

/* Within a step anybody up the call chain may still look at a hold that has just ended. */
void hf__hold_bury(hf__core *core)
{
    hf__node *node = hf__list_first(&core->dead);
    while (node != NULL) {
        hf__node *next = hf__list_next(&core->dead, node);
        hf_hold *hold = HF__ENTRY(node, hf_hold, node);
        if (!hf__tell_needs(core, hold)) {
            hf__list_remove(&core->dead, node);
            hf__hold_drop(hold);
        }
        node = next;
    }
}
