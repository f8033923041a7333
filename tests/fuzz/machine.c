/* SPDX-License-Identifier: MIT */
/* See machine.h. Checked after every step: nothing is overdue, links that are not open have nothing
 * to write, no call is late, no hold lasts longer than the server ever said, and none comes back
 * after its end. on_event hears of handles in our hands only, of changes only, and of nothing after
 * a loss. A call is freed the moment it is done, so that ASan sees whoever touches it again,
 * and its outcome must be one that the manual names. In the end the server is gone and time jumps:
 * every call must come to its end, and the core must forget all but the holds in our hands. */
#include "machine.h"

#include <string.h>

#include "base/memory.h"
#include "core/state.h" /* only to count what the core ought to have forgotten */

enum { ROUNDS_MAX = 64 };

struct machine m;

/* ---- Memory that fails once ---- */

static bool gate(void)
{
    return m.allocations_left < 0 || m.allocations_left-- != 0;
}

void *machine_allocate(size_t size)
{
    void *block = calloc(1, size);
    REQUIRE(block != NULL);
    return block;
}

/* ---- Checks ---- */

#define BIT(status) (1U << (HF_##status))

static void check_outcome(const hf__call *call)
{
    static const unsigned passing = BIT(OK) | BIT(EUNKNOWN) | BIT(EUNAVAILABLE) | BIT(EDENIED) |
                                    BIT(ESERVER) | BIT(ENOMEM) | BIT(ECLOSED);
    static const unsigned named[] = {
        [HF__CALL_ACQUIRE] = passing | BIT(EBUSY) | BIT(ECANCELLED) | BIT(EINTERNAL),
        [HF__CALL_RELEASE] = passing | BIT(ELOST),
        [HF__CALL_EXTEND] = (passing & ~BIT(EUNKNOWN)) | BIT(ELOST) | BIT(EINVAL),
        [HF__CALL_QUERY] = passing,
        [HF__CALL_CLOSE] = BIT(OK) | BIT(EUNKNOWN),
    };
    REQUIRE(call->done);
    REQUIRE((named[call->kind] >> call->error.status & 1) != 0);
    REQUIRE(memchr(call->error.text, '\0', sizeof(call->error.text)) != NULL);
    REQUIRE((call->error.status == HF_OK) == (call->error.text[0] == '\0'));
}

static void check_hold(held *h)
{
    hf__span left = hf__hold_remaining(h->hold, m.now);
    REQUIRE(left.ns >= 0 && left.ns <= hf__span_ms(m.said_ms).ns);
    REQUIRE(!h->over || left.ns == 0);
    h->over = left.ns == 0;
    REQUIRE((hf__hold_state(h->hold, m.now) == HF_LOST) == h->over);
    REQUIRE(hf__hold_fence(h->hold) > 0);
}

static void check_inspection(const hf_inspection *seen)
{
    REQUIRE(memchr(seen->owner, '\0', sizeof(seen->owner)) != NULL);
    REQUIRE(seen->holder_count <= HF_HOLDERS_MAX);
    REQUIRE(seen->waiter_count <= HF_WAITERS_MAX);
    REQUIRE(seen->held || (seen->holder_count == 0 && seen->hold_count == 0));
    for (size_t i = 0; i < seen->holder_count; i++) {
        const hf_holder *holder = &seen->holders[i];
        REQUIRE(memchr(holder->client_id, '\0', sizeof(holder->client_id)) != NULL);
        REQUIRE(memchr(holder->host, '\0', sizeof(holder->host)) != NULL);
        REQUIRE(memchr(holder->label, '\0', sizeof(holder->label)) != NULL);
        REQUIRE(holder->remaining_ms >= -1 && holder->remaining_ms <= HF_MS_MAX);
    }
}

static void finish_query(query_call *query)
{
    if (query->call.error.status == HF_OK)
        check_inspection(&query->inspection);
    hf__buffer_free(&query->answer.keys);
    hf__buffer_free(&query->answer.value);
}

void machine_check(void)
{
    const char *bytes;
    for (int i = 0; i < hf__core_links(m.core); i++) {
        REQUIRE(m.ports[i] == PORT_OPEN || hf__core_output(m.core, i, &bytes) == 0);
        REQUIRE(m.ports[i] != PORT_CLOSED || !hf__core_expects(m.core, i));
    }
    for (int i = 0; i < CALLS; i++)
        if (m.holds[i].hold != NULL)
            check_hold(&m.holds[i]);
}

static void check_time(void)
{
    REQUIRE(hf__before(m.now, hf__core_wake(m.core)));
    for (int i = 0; i < CALLS; i++)
        REQUIRE(m.calls[i] == NULL || hf__before(m.now, m.due[i]));
}

/* ---- Steps ---- */

static void finish(hf__call *call)
{
    int place = 0;
    while (place < CALLS && m.calls[place] != call)
        place++;
    REQUIRE(place < CALLS); /* not one that was done before */
    m.calls[place] = NULL;
    check_outcome(call);
    if (call->kind == HF__CALL_ACQUIRE && call->error.status == HF_OK) {
        int free_hold = 0;
        while (m.holds[free_hold].hold != NULL)
            free_hold++; /* there is one: numbers are limited */
        m.holds[free_hold] = (held){.hold = call->hold};
        if (call->hold->outer != NULL) { /* who enters again knows what it enters */
            m.holds[free_hold].told_state = (hf_state)call->hold->listener.told_state;
            m.holds[free_hold].told_reason = (hf_reason)call->hold->listener.told_reason;
        }
        REQUIRE(hf__hold_remaining(call->hold, m.now).ns > 0);
    }
    if (call->kind == HF__CALL_QUERY)
        finish_query((query_call *)call);
    free(call);
}

/* ---- Telling ---- */

static held *find_held(const hf_hold *hold)
{
    for (int i = 0; i < CALLS; i++)
        if (m.holds[i].hold == hold)
            return &m.holds[i];
    return NULL;
}

void machine_on_event(void *arg, const hf_event *event)
{
    held *h = find_held(event->hold);
    REQUIRE(arg == &m && h != NULL && !h->told_lost);
    REQUIRE(event->text != NULL && event->remaining_ms >= 0);
    REQUIRE(event->state != HF_LOST || event->remaining_ms == 0);
    if (event->reason != HF_REASON_REVOKED) {
        REQUIRE(event->state != h->told_state || event->reason != h->told_reason);
        h->told_state = event->state;
        h->told_reason = event->reason;
    }
    h->told_lost = event->state == HF_LOST;
}

void machine_end_telling(void)
{
    if (m.telling == NULL)
        return;
    m.telling = NULL;
    hf__core_told(m.core);
}

static void tell_all(void)
{
    hf__tell tell;
    while (m.telling == NULL && hf__core_next_tell(m.core, &tell)) {
        REQUIRE(tell.function == machine_on_event && tell.event.hold == tell.hold);
        tell.function(tell.arg, &tell.event);
        m.telling = tell.hold;
        REQUIRE(hf__core_is_telling(m.core, tell.hold));
        if (!m.tells_slowly)
            machine_end_telling();
    }
}

void machine_on_sight(void *arg, const hf_sight *sight)
{
    hf_observer **place = arg;
    REQUIRE(place >= m.observers && place < m.observers + OBSERVERS && *place != NULL);
    REQUIRE(hf__core_is_seeing(m.core, *place));
    REQUIRE(sight->kind >= HF_SEEN_HELD && sight->kind <= HF_SEEN_MISSED);
    REQUIRE(sight->lease_ms >= -1 && sight->lease_ms <= HF_MS_MAX);
    REQUIRE(memchr(sight->who.client_id, '\0', sizeof(sight->who.client_id)) != NULL);
}

static void tell_sights(void)
{
    hf__sight told;
    while (hf__core_next_sight(m.core, &told)) {
        told.function(told.arg, &told.sight);
        hf__core_sight_told(m.core);
    }
}

void machine_end_observer(int place)
{
    hf_observer *observer = m.observers[place];
    m.observers[place] = NULL;
    if (observer != NULL)
        machine_step((hf__event){.kind = HF__EVENT_UNOBSERVE, .observer = observer});
}

static void carry_out(const hf__action *action)
{
    switch (action->kind) {
    case HF__ACTION_CLOSE:
        m.ports[action->link] = PORT_CLOSED;
        break;
    case HF__ACTION_CONNECT:
        REQUIRE(m.ports[action->link] == PORT_CLOSED);
        m.ports[action->link] = PORT_CONNECTING;
        break;
    case HF__ACTION_DONE:
        finish(action->call);
        break;
    case HF__ACTION_LOG:
        REQUIRE(strlen(action->text) < HF__LOG_TEXT);
        break;
    }
}

hf_status machine_step(hf__event event)
{
    hf__action action;
    event.now = m.now;
    hf__core_step(m.core, &event);
    if (event.kind == HF__EVENT_BYTES) /* drivers tick when they have read */
        hf__core_step(m.core, &(hf__event){.kind = HF__EVENT_TICK, .now = m.now});
    while (hf__core_next(m.core, &action))
        carry_out(&action);
    tell_all();
    tell_sights();
    check_time();
    machine_check();
    return event.status;
}

void machine_connect(int link)
{
    static const hf_credentials credentials = {"me", "secret"};
    m.ports[link] = PORT_OPEN;
    machine_step((hf__event){.kind = HF__EVENT_CONNECTED,
                             .link = link,
                             .wall = {INT64_C(1700000000000000)},
                             .credentials = m.server.password != NULL ? &credentials : NULL});
}

void machine_disconnect(int link)
{
    machine_step((hf__event){.kind = HF__EVENT_DISCONNECTED, .link = link, .reason = "cut"});
    REQUIRE(m.ports[link] == PORT_CLOSED || m.ports[link] == PORT_CONNECTING);
}

int machine_choose_link(port state)
{
    int first = input_byte(&m.in) % m.config.links;
    for (int i = 0; i < m.config.links; i++)
        if (m.ports[(first + i) % m.config.links] == state)
            return (first + i) % m.config.links;
    return -1;
}

int machine_push_link(port state)
{
    int link = m.config.links;
    return m.ports[link] == state ? link : -1;
}

uint64_t machine_copies(void)
{
    return m.core->copies;
}

bool machine_expects_refresh(int link)
{
    unsigned group;
    if (machine_expected(link, &group) != HF__REQUEST_RENEW)
        return false;
    const hf__list *list = &m.core->links[link].in_flight;
    const hf__node *node = hf__list_first(list);
    if (hf__request_hold(HF__ENTRY(node, hf__request, node))->asked_to_keep)
        return false;
    for (unsigned i = 0; i < group; i++, node = hf__list_next(list, node)) {
        int64_t asked_ms =
            hf__span_to_ms(hf__request_hold(HF__ENTRY(node, hf__request, node))->asked);
        if (asked_ms > m.said_ms)
            m.said_ms = asked_ms;
    }
    return true;
}

int machine_expected(int link, unsigned *group)
{
    const hf__link *at = &m.core->links[link];
    const hf__node *first = hf__list_first(&at->in_flight);
    if (at->state != HF__LINK_READY || first == NULL)
        return -1;
    const hf__request *request = HF__ENTRY(first, hf__request, node);
    *group = request->group;
    return request->kind;
}

/* ---- Beginning and end ---- */

void machine_begin(const uint8_t *bytes, size_t count)
{
    hf_error error;
    m = (struct machine){.in = {bytes, count}, .allocations_left = -1};
    hf__memory_set_gate(gate);
    uint8_t choice = input_byte(&m.in);
    const char *url = choice & 1 ? "redis://me:secret@node/3" : "redis://node";
    REQUIRE(hf__url_parse(url, &m.server, &error) == HF_OK);
    m.config = (hf__config){
        .servers = &m.server, .server_count = 1, .seed = choice, .links = choice & 2 ? 2 : 1};
    m.config.connect_timeout = hf__span_ms(1 + input_byte(&m.in) * 10);
    m.config.reply_timeout = hf__span_ms(1 + input_byte(&m.in) * 10);
    m.config.call_timeout = hf__span_ms(1 + input_byte(&m.in) * 20);
    m.config.fence_keep = hf__span_ms(3600000);
    m.config.drift_ppm = 10000;
    m.config.drift = hf__span_ms(2);
    for (int i = 0; i < HF__CHECK_KINDS; i++)
        m.config.checks[i] = i == HF__CHECK_REPLICA ? HF_CHECK_REFUSE : HF_CHECK_WARN;
    snprintf(m.config.client_id, sizeof(m.config.client_id), "client");
    m.now = (hf__instant){1000000000};
    uint8_t ending = input_byte(&m.in);
    m.config.local_turns = ending & 4 ? 2 : ending & 8 ? 64 : 0;
    m.core = hf__core_new(&m.config);
    REQUIRE(m.core != NULL);
    m.ends_silently = (ending & 1) != 0;
    m.handles_first = (ending & 2) != 0;
}

static bool at_rest(void)
{
    for (int i = 0; i < CALLS; i++)
        if (m.calls[i] != NULL)
            return false;
    return hf__is_never(hf__core_wake(m.core));
}

static void cut_all(void)
{
    for (int i = 0; i < hf__core_links(m.core); i++)
        if (m.ports[i] != PORT_CLOSED)
            machine_disconnect(i);
}

/* The server is gone, with or without a word, and time passes beyond every bound. */
static void wind_down(void)
{
    m.allocations_left = -1;
    m.tells_slowly = false;
    machine_end_telling();
    machine_step((hf__event){.kind = HF__EVENT_TICK});
    for (int i = 0; i < OBSERVERS; i++)
        machine_end_observer(i); /* they never come to an end by themselves */
    for (int i = 0; i < CALLS; i++)
        if (m.calls[i] != NULL && m.calls[i]->kind == HF__CALL_ACQUIRE && m.calls[i]->wait_ms == -1)
            machine_step((hf__event){.kind = HF__EVENT_CANCEL, .call = m.calls[i]});
    for (int round = 0; round < ROUNDS_MAX && !at_rest(); round++) {
        if (!m.ends_silently)
            cut_all();
        m.now = hf__after(m.now, hf__span_ms(HF_MS_MAX + 1000));
        machine_step((hf__event){.kind = HF__EVENT_TICK});
    }
    REQUIRE(at_rest());
}

static const hf_hold *real(const hf_hold *handle)
{
    return handle != NULL && handle->outer != NULL ? handle->outer : handle;
}

/* Several handles may be of one hold. */
static size_t count_holds(void)
{
    size_t count = 0;
    for (int i = 0; i < CALLS; i++) {
        const hf_hold *hold = real(m.holds[i].hold);
        int first = 0;
        while (first < i && real(m.holds[first].hold) != hold)
            first++;
        count += hold != NULL && first == i;
    }
    return count;
}

/* Handles may be given back before and after the end of the core. */
void machine_end(void)
{
    wind_down();
    REQUIRE(m.core->holds.count == count_holds() && m.core->releasing.count == 0);
    REQUIRE(m.core->queries.count == 0 && m.core->untold.count == 0);
    REQUIRE(m.core->servers[0].waiters.count == 0 && m.core->retired.count == 0);
    REQUIRE(m.core->observers.count == 0 && m.core->ended_observers.count == 0);
    REQUIRE(m.core->seen.count == 0 && m.core->turning == 0 && m.core->listening == 0);
    REQUIRE(m.core->cohorts.count == 0);
    for (int pass = 0; pass < 2; pass++) {
        if (pass == (m.handles_first ? 1 : 0))
            hf__core_free(m.core);
        for (int i = 0; i < CALLS && pass == (m.handles_first ? 0 : 1); i++)
            if (m.holds[i].hold != NULL)
                hf__hold_abandon(m.holds[i].hold);
    }
    hf__url_free(&m.server);
}
