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
 * must still be matched) and the application has given back the handle. */
#include <string.h>

#include "base/memory.h"
#include "base/mutant.h"
#include "base/text.h"
#include "core/name.h"
#include "core/state.h"

enum { VALUE_MAX = 32 + 1 + 20 + 1 + 64 + 1 + 20 + 1 + 20, DRIFT_DIVISOR = 100 };

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

/* <client id>:<number>@<host>:<pid>/<thread>. Made for every acquire, so without printf. */
static size_t make_value(char *value, const hf__identity *who)
{
    size_t length = put_text(value, who->client_id, 32);
    length += put_number(value + length, ':', who->number);
    value[length++] = '@';
    length += put_text(value + length, who->host, 64);
    length += put_number(value + length, ':', who->pid);
    length += put_number(value + length, '/', who->thread);
    return length;
}

hf_hold *hf__hold_new(const hf__identity *who, const char *prefix, size_t prefix_length,
                      const char *name, size_t name_length, hf__span lease)
{
    char value[VALUE_MAX];
    size_t value_length = make_value(value, who);
    size_t key_length = prefix_length + name_length;
    hf_hold *hold = hf__alloc(sizeof(*hold) + key_length + value_length);
    if (hold == NULL)
        return NULL;
    hold->lease = hold->longest_lease = lease;
    hold->key_length = key_length;
    hold->value_length = value_length;
    memcpy(hold->text, prefix, prefix_length);
    memcpy(hold->text + prefix_length, name, name_length);
    memcpy(hold->text + key_length, value, value_length);
    hold->slot = hf__slot(hold->text, key_length);
    hold->timer.kind = HF__TIMER_HOLD;
    hf__list_init(&hold->extends);
    for (int kind = 0; kind < HF__REQUEST_KINDS; kind++)
        hold->requests[kind] = (hf__request){.kind = (hf__request_kind)kind, .hold = hold};
    return hold;
}

void hf__hold_drop(hf_hold *hold)
{
    hf__free(hold);
}

void hf__hold_abandon(hf_hold *hold)
{
    hold->handed_out = false;
    if (hold->core == NULL)
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

hf__span hf__hold_lease(const hf_hold *hold)
{
    return hold->lease;
}

bool hf__hold_expired(hf_hold *hold)
{
    return hold->lost || hf__hold_remaining(hold, hold->core->now).ns == 0;
}

bool hf__hold_believe(hf_hold *hold, hf__instant sent, int64_t remaining_ms)
{
    hf__span remaining = hf__span_ms(remaining_ms);
    hf__span drift = {remaining.ns / DRIFT_DIVISOR + hf__span_ms(2).ns};
    if (HF__MUTANT(NO_DRIFT))
        drift = hf__span_ms(0);
    if (HF__MUTANT(FROM_REPLY))
        sent = hold->core->now;
    int64_t deadline = hf__after(sent, (hf__span){remaining.ns - drift.ns}).ns;
    int64_t before = atomic_load(&hold->deadline_ns);
    do {
        if (before == 0 && hold->state == HF__HOLD_HELD && !HF__MUTANT(REVIVES))
            return false;
    } while (before < deadline &&
             !atomic_compare_exchange_weak(&hold->deadline_ns, &before, deadline));
    return true;
}

hf__span hf__hold_remaining(hf_hold *hold, hf__instant now)
{
    int64_t deadline = atomic_load(&hold->deadline_ns);
    while (deadline != 0 && deadline <= now.ns)
        if (atomic_compare_exchange_weak(&hold->deadline_ns, &deadline, 0))
            deadline = 0;
    return deadline != 0 ? (hf__span){deadline - now.ns} : (hf__span){0};
}

void hf__hold_lose(hf_hold *hold)
{
    hold->lost = true;
    atomic_store(&hold->deadline_ns, 0);
}

void hf__hold_over(hf_hold *hold)
{
    if (hold->state == HF__HOLD_RELEASING)
        hf__list_remove(&hold->core->releasing, &hold->releasing);
    hold->state = HF__HOLD_OVER;
    atomic_store(&hold->deadline_ns, 0);
    hf__timer_clear(&hold->core->timers, &hold->timer);
    for (int kind = 0; kind < HF__REQUEST_KINDS; kind++)
        hf__link_withdraw(&hold->requests[kind]);
}

void hf__hold_settle(hf_hold *hold)
{
    if (hold->dead || hold->state != HF__HOLD_OVER || hold->handed_out)
        return;
    for (int kind = 0; kind < HF__REQUEST_KINDS; kind++)
        if (hold->requests[kind].place != HF__IDLE)
            return;
    hold->dead = true;
    hf__list_remove(&hold->core->holds, &hold->node);
    hf__list_append(&hold->core->dead, &hold->node);
}

/* Within a step anybody up the call chain may still look at a hold that has just ended. */
void hf__hold_bury(hf__core *core)
{
    hf__node *node;
    while ((node = hf__list_first(&core->dead)) != NULL) {
        hf__list_remove(&core->dead, node);
        hf__hold_drop(HF__ENTRY(node, hf_hold, node));
    }
}
