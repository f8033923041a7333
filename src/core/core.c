/* SPDX-License-Identifier: MIT */
/* The machine itself: events in, actions out, timers in between, and closing down. What an event
 * means is decided in link.c and in the file of each kind of request; nothing here waits, and every
 * step leaves all lists consistent. */
#include <stdarg.h>
#include <string.h>

#include "base/memory.h"
#include "base/mutant.h"
#include "base/random.h"
#include "base/text.h"
#include "core/fail.h"
#include "core/state.h"

/* The careful one is for replicas, with which a quorum has nothing to do. */
static int links_of_server(const hf__core *core)
{
    return core->config.links + (hf__is_quorum(core) ? 1 : HF__LINKS_BESIDES);
}

int hf__core_links(const hf__core *core)
{
    return core->config.server_count * links_of_server(core);
}

int hf__core_server(const hf__core *core, int link)
{
    return link / links_of_server(core);
}

static void init_server(hf__core *core, int index)
{
    hf__server *server = &core->servers[index];
    int links = links_of_server(core);
    server->core = core;
    server->url = &core->config.servers[index];
    server->links = &core->links[index * links];
    hf__list_init(&server->waiters);
    hf__standing_init(server);
    for (int i = 0; i < links; i++)
        hf__link_init(server, i);
}

static void free_parts(hf__core *core)
{
    hf__free(core->servers);
    hf__free(core->links);
    hf__free(core);
}

hf__core *hf__core_new(const hf__config *config)
{
    hf__core *core = hf__alloc(sizeof(*core));
    if (core == NULL)
        return NULL;
    core->config = *config;
    core->servers = hf__alloc((size_t)config->server_count * sizeof(hf__server));
    core->links = hf__alloc((size_t)hf__core_links(core) * sizeof(hf__link));
    if (core->servers == NULL || core->links == NULL) {
        free_parts(core);
        return NULL;
    }
    core->random = config->seed;
    hf__list_init(&core->holds);
    hf__list_init(&core->dead);
    hf__list_init(&core->releasing);
    hf__list_init(&core->done);
    hf__list_init(&core->queries);
    hf__list_init(&core->untold);
    hf__list_init(&core->observers);
    hf__list_init(&core->ended_observers);
    hf__list_init(&core->seen);
    hf__list_init(&core->retired);
    hf__table_init(&core->reentered, hf__reentry_hash);
    hf__table_init(&core->numbers, hf__queue_hash);
    hf__table_init(&core->cohorts, hf__cohort_hash);
    core->copy_secret = hf__random_next(&core->random);
    for (int i = 0; i < config->server_count; i++)
        init_server(core, i);
    return core;
}

void hf__core_free(hf__core *core)
{
    hf__node *node;
    if (core == NULL)
        return;
    while ((node = hf__list_first(&core->holds)) != NULL) {
        hf__list_remove(&core->holds, node);
        hf__hold_detach(HF__ENTRY(node, hf_hold, node));
    }
    while ((node = hf__list_first(&core->queries)) != NULL) {
        hf__list_remove(&core->queries, node);
        hf__query_drop(HF__ENTRY(node, hf__query, node));
    }
    core->telling = NULL;
    hf__observer_detach(core);
    hf__hold_bury(core);
    hf__cohort_bury(core);
    hf__table_free(&core->cohorts, hf__cohort_drop);
    hf__table_free(&core->numbers, NULL);
    hf__table_free(&core->reentered, NULL);
    for (int i = 0; i < hf__core_links(core); i++)
        hf__link_free(&core->links[i]);
    free_parts(core);
}

void hf__log(hf__core *core, hf_log_level level, const char *format, ...)
{
    if (core->log_count == HF__LOG_LINES)
        return; /* nobody fetches them: the newest are dropped, the first causes stay */
    hf__log_line *line = &core->log[(core->log_first + core->log_count++) % HF__LOG_LINES];
    va_list arguments;
    va_start(arguments, format);
    line->level = level;
    hf__vformat(line->text, sizeof(line->text), format, arguments);
    va_end(arguments);
}

/* What was ahead of it is done. */
static void end_behind(hf__core *core, hf__call *call)
{
    if (!call->held_back)
        return;
    call->held_back = false;
    call->done = true;
    hf__list_append(&core->done, &call->node);
}

void hf__call_done(hf__core *core, hf__call *call, hf_status status, const char *text)
{
    assert(!call->done && !hf__node_linked(&call->node));
    size_t length = strnlen(text, sizeof(call->error.text) - 1);
    memmove(call->error.text, text, length); /* which may well be the call's own error */
    call->error.text[length] = '\0';
    call->error.status = status;
    hf__timer_clear(&core->timers, &call->timer);
    call->held_back = call->ahead != NULL && !call->ahead->done;
    if (call->held_back)
        return;
    call->done = true;
    if (call->behind != NULL)
        end_behind(core, call->behind);
    else if (call->vote != NULL)
        hf__vote_called(call);
    else if (call->observer != NULL)
        hf__observer_answered(call->observer, call->query->kind);
    else if (call->taken_up != NULL)
        hf__takeover_answered(call);
    else
        hf__list_append(&core->done, &call->node);
}

/* ---- Closing ---- */

static void end_for_closing(hf_hold *hold)
{
    bool acquires = hold->call != NULL && hold->call->kind == HF__CALL_ACQUIRE;
    if (hold->vote != NULL) {
        return; /* it ends with its hold */
    } else if (hold->attaching) {
        hf__attach_fail(hold, HF_ECLOSED, "the client was closed");
    } else if (acquires) {
        hf__acquire_end(hold, HF_ECLOSED, "the client was closed");
    } else if (hold->stage == HF__HOLD_HELD) {
        hf__renew_end_calls(hold, HF_ECLOSED, "the client was closed");
        hf__reentry_forbid(hold);
        hf__watch_end(hold);
        hf__stats_ended(hold);
        hf__release_in_background(hold);
        hf__cohort_leave(hold);
    }
    hf__hold_settle(hold);
}

static void end_queries(hf__core *core)
{
    hf__node *node = hf__list_first(&core->queries);
    while (node != NULL) {
        hf__query *query = HF__ENTRY(node, hf__query, node);
        node = hf__list_next(&core->queries, node);
        hf__query_end(query, HF_ECLOSED, "the client was closed");
    }
}

static void start_closing(hf__core *core, hf__call *call)
{
    core->closing = true;
    core->close_call = call;
    call->deadline = hf__after(core->now, core->config.call_timeout);
    hf__timer_set(&core->timers, &call->timer, call->deadline);
    /* Ending one may end others (a request for which there is no memory fails its whole link), so
     * no place in the list can be kept: each goes from the front to the back instead. */
    for (size_t left = core->holds.count; left > 0 && core->holds.count > 0; left--) {
        end_for_closing(HF__ENTRY(hf__list_rotate(&core->holds), hf_hold, node));
    }
    end_queries(core);
}

static void end_closing(hf__core *core, hf_status status, const char *text)
{
    hf__call_done(core, core->close_call, status, text);
    core->close_call = NULL;
}

/* Of a quorum, votes at servers that cannot be reached are not waited for: they were not needed. */
static bool awaits_releases(const hf__core *core)
{
    const hf__list *list = &core->releasing;
    for (hf__node *n = hf__list_first(list); n != NULL; n = hf__list_next(list, n)) {
        const hf_hold *hold = HF__ENTRY(n, hf_hold, releasing);
        if (!hf__vote_of_nobody(hold) || hold->link->state == HF__LINK_READY)
            return true;
    }
    return false;
}

static void finish_closing(hf__core *core)
{
    if (core->close_call != NULL && !awaits_releases(core))
        end_closing(core, HF_OK, "");
}

/* ---- Events ---- */

static void start_ahead(hf__core *core, hf__call *call)
{
    hf__call *ahead = call->ahead;
    ahead->taken = true;
    ahead->timer.kind = HF__TIMER_CALL;
    ahead->behind = call;
    hf__query_start(core, ahead);
}

static void start_call(hf__core *core, hf__call *call)
{
    call->taken = true;
    call->timer.kind = HF__TIMER_CALL;
    switch (call->kind) {
    case HF__CALL_ACQUIRE:
        hf__acquire_start(core, call);
        break;
    case HF__CALL_RELEASE:
        if (call->ahead != NULL)
            start_ahead(core, call);
        hf__release_start(call->hold, call);
        break;
    case HF__CALL_EXTEND:
        hf__renew_start(call);
        break;
    case HF__CALL_ATTACH:
        hf__attach_start(core, call);
        break;
    case HF__CALL_QUERY:
        hf__query_start(core, call);
        break;
    case HF__CALL_CLOSE:
        start_closing(core, call);
        break;
    }
}

static void on_tick(hf__core *core, hf__event *event)
{
    (void)core;
    (void)event; /* due timers run in every step but those for bytes */
}

static void on_start(hf__core *core, hf__event *event)
{
    start_call(core, event->call);
}

static void on_cancel(hf__core *core, hf__event *event)
{
    (void)core;
    hf__call *call = event->call;
    call->cancelled = true;
    if (call->done || call->hold->core == NULL)
        return; /* too late, or too early: it will see when it is started */
    hf__acquire_end(call->hold, HF_ECANCELLED, "cancelled");
    hf__hold_settle(call->hold);
}

static void on_let_go(hf__core *core, hf__event *event)
{
    (void)core;
    event->status = hf__release_start(event->hold, NULL);
}

static void on_detach(hf__core *core, hf__event *event)
{
    (void)core;
    event->status = hf__detach(event->hold, &event->late);
}

static void on_observe(hf__core *core, hf__event *event)
{
    hf__observer_start(core, event->observer);
}

static void on_unobserve(hf__core *core, hf__event *event)
{
    hf__observer_end(core, event->observer);
}

static void on_connected(hf__core *core, hf__event *event)
{
    hf__link_connected(&core->links[event->link], event);
}

static void on_bytes(hf__core *core, hf__event *event)
{
    hf__link_bytes(&core->links[event->link], event->bytes, event->count);
}

static void on_disconnected(hf__core *core, hf__event *event)
{
    hf_status status = event->status != HF_OK ? event->status : HF_EUNAVAILABLE;
    hf__link *link = &core->links[event->link];
    const hf__url *server = link->server->url;
    bool mute = link->state == HF__LINK_GREETING && link->greeting_answered == 0;
    bool hint = mute && server->host != NULL && !server->tls; /* it is the likeliest mistake */
    hf__link_fail(link, status, "%s: %s%s", server->display, event->reason,
                  hint ? "; if it expects TLS, its URL begins with rediss://" : "");
}

static void hold_timer_due(hf_hold *hold)
{
    if (hold->stage == HF__HOLD_HELD)
        hf__watch_look(hold);
    else
        hf__release_timer(hold);
}

static void timer_due(hf__core *core, hf__timer *timer)
{
    hf__call *call = HF__ENTRY(timer, hf__call, timer);
    switch (timer->kind) {
    case HF__TIMER_LINK:
        hf__link_timer(HF__ENTRY(timer, hf__link, timer));
        return;
    case HF__TIMER_RENEWALS:
        hf__watch_renewals(HF__ENTRY(timer, hf__link, renew_timer));
        return;
    case HF__TIMER_LOOK:
        hf__watch_look_at_all(HF__ENTRY(timer, hf__link, look_timer));
        return;
    case HF__TIMER_OBSERVER:
        hf__observer_timer(timer);
        return;
    case HF__TIMER_SERVER:
        hf__standing_timer(HF__ENTRY(timer, hf__server, timer));
        return;
    case HF__TIMER_COHORT:
        hf__cohort_timer(HF__ENTRY(timer, hf__cohort, timer));
        return;
    case HF__TIMER_HOLD:
        hold_timer_due(HF__ENTRY(timer, hf_hold, timer));
        return;
    }
    switch (call->kind) {
    case HF__CALL_ACQUIRE:
        hf__acquire_timer(call);
        break;
    case HF__CALL_RELEASE:
        hf__release_call_timer(call);
        break;
    case HF__CALL_EXTEND:
        break; /* it has none */
    case HF__CALL_ATTACH:
        hf__attach_timer(call);
        break;
    case HF__CALL_QUERY:
        hf__query_timer(call);
        break;
    case HF__CALL_CLOSE:
        end_closing(core, HF_EUNKNOWN, "some releases were not answered in time");
        break;
    }
}

/* A process that was stopped for a while must not take a server for silent whose answers are still
 * in a socket. So no timer runs when bytes have come: the driver ticks when it has read them all.
 */
static void run_timers(hf__core *core, const hf__event *event)
{
    hf__timer *timer;
    if (event->kind == HF__EVENT_BYTES)
        return;
    while ((timer = hf__timers_take_due(&core->timers, core->now)) != NULL)
        timer_due(core, timer);
}

void hf__core_step(hf__core *core, hf__event *event)
{
    static void (*const handlers[HF__EVENT_COUNT])(hf__core *, hf__event *) = {
        on_tick,    on_start,     on_cancel,    on_let_go, on_detach,
        on_observe, on_unobserve, on_connected, on_bytes,  on_disconnected};
    core->now = hf__later(core->now, event->now);
    for (int i = 0; HF__MUTANT(SENT_AFTER) && i < hf__core_links(core); i++)
        hf__link_stamp_late(&core->links[i]);
    handlers[event->kind](core, event);
    run_timers(core, event);
    finish_closing(core);
    hf__hold_bury(core);
    hf__cohort_bury(core);
    if (core->queries.count > 0)
        hf__query_bury(core);
    hf__observer_bury(core);
}

/* ---- Actions ---- */

bool hf__core_next(hf__core *core, hf__action *action)
{
    for (int i = 0; i < hf__core_links(core); i++) {
        hf__link *link = &core->links[i];
        if (!link->wants_close && !link->wants_connect)
            continue;
        *action = (hf__action){.kind = link->wants_close ? HF__ACTION_CLOSE : HF__ACTION_CONNECT,
                               .link = i};
        link->wants_connect = link->wants_close && link->wants_connect;
        link->wants_close = false;
        return true;
    }
    hf__node *node = hf__list_first(&core->done);
    if (node != NULL) {
        hf__list_remove(&core->done, node);
        *action = (hf__action){.kind = HF__ACTION_DONE, .call = HF__ENTRY(node, hf__call, node)};
        return true;
    }
    if (core->log_count > 0) {
        const hf__log_line *line = &core->log[core->log_first];
        *action = (hf__action){.kind = HF__ACTION_LOG, .level = line->level, .text = line->text};
        core->log_first = (core->log_first + 1) % HF__LOG_LINES;
        core->log_count--;
        return true;
    }
    return false;
}

size_t hf__core_output(const hf__core *core, int link, const char **bytes)
{
    *bytes = hf__buffer_front(&core->links[link].out);
    return hf__buffer_length(&core->links[link].out);
}

void hf__core_written(hf__core *core, int link, size_t count)
{
    hf__buffer_take(&core->links[link].out, count);
}

hf__instant hf__core_wake(const hf__core *core)
{
    return hf__timers_next(&core->timers);
}

void hf__core_stats(const hf__core *core, hf_stats *stats)
{
    *stats = core->stats;
}

bool hf__core_awaits(const hf__core *core)
{
    for (int i = 0; i < hf__core_links(core); i++)
        if (core->links[i].in_flight.count > 0)
            return true;
    return false;
}

bool hf__core_expects(const hf__core *core, int link)
{
    return hf__link_expects(&core->links[link]);
}
