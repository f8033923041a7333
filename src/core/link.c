/* SPDX-License-Identifier: MIT */
/* One connection to the server and the requests that go over it.
 *
 * Requests wait until the link is ready, are then encoded and in flight, and are matched to replies
 * in order. When a connection breaks, what was in flight waits again, ahead of the rest and in the
 * old order, and is sent anew on the next connection with the same identity. A request is encoded
 * (and stamped) only when its bytes can leave, so no deadline is ever counted from a later moment
 * than the sending, and no wait for a connection eats up a lease.
 *
 * A link connects when somebody needs it and is left alone otherwise. After a failed attempt those
 * who wait are told; they decide whether to go on waiting. Attempts are spaced by a back-off with
 * jitter; a new request may shorten it to NUDGE_MS since the last failure, so that a server that
 * is back is found soon, and one that is down is not stormed.
 *
 * Renewals share calls (see request.c): the first of a group knows how many requests the next reply
 * answers. They leave before all others; what else may be in flight is in flow.c.
 *
 * What links of different use do differently is in link_kind.c. */
#include <stdarg.h>
#include <string.h>

#include "base/mutant.h"
#include "base/random.h"
#include "base/text.h"
#include "core/fail.h"
#include "core/state.h"

enum { BACKOFF_FIRST_MS = 10, BACKOFF_MAX_MS = 1000, NUDGE_MS = 50 };

void hf__link_init(hf__server *server, int index)
{
    hf__link *link = &server->links[index];
    link->core = server->core;
    link->server = server;
    link->kind = hf__link_kind_at(server, index);
    link->timer.kind = HF__TIMER_LINK;
    link->renew_timer.kind = HF__TIMER_RENEWALS;
    link->look_timer.kind = HF__TIMER_LOOK;
    hf__wheel_init(&link->renewals);
    hf__list_init(&link->overdue);
    hf__list_init(&link->overdue_alone);
    hf__list_init(&link->under_way);
    hf__list_init(&link->urgent);
    hf__list_init(&link->waiting);
    hf__list_init(&link->held_back);
    hf__list_init(&link->in_flight);
    hf__flow_init(link);
}

void hf__link_free(hf__link *link)
{
    hf__reader_free(link->reader);
    hf__buffer_free(&link->out);
}

static void set_timer(hf__link *link, hf__instant due)
{
    hf__timer_set(&link->core->timers, &link->timer, due);
}

static void connect_link(hf__link *link)
{
    link->state = HF__LINK_CONNECTING;
    link->wants_connect = true;
    set_timer(link, hf__after(link->core->now, link->core->config.connect_timeout));
}

static void start_backoff(hf__link *link)
{
    hf__span pause =
        hf__random_backoff(&link->core->random, link->failures, BACKOFF_FIRST_MS, BACKOFF_MAX_MS);
    link->state = HF__LINK_BACKOFF;
    set_timer(link, hf__after(link->core->now, pause));
}

void hf__link_wake(hf__link *link)
{
    hf__instant now = link->core->now;
    hf__instant nudged = now;
    if (link->failures > 0)
        nudged = hf__later(now, hf__after(link->last_failure, hf__span_ms(NUDGE_MS)));
    if (link->state == HF__LINK_BACKOFF) {
        set_timer(link, hf__earlier(link->timer.due, nudged));
    } else if (link->state == HF__LINK_DOWN && hf__before(now, nudged)) {
        link->state = HF__LINK_BACKOFF;
        set_timer(link, nudged);
    } else if (link->state == HF__LINK_DOWN) {
        connect_link(link);
    }
}

void hf__link_wake_at(hf__link *link, hf__instant when)
{
    if (link->state != HF__LINK_DOWN)
        return;
    link->state = HF__LINK_BACKOFF;
    set_timer(link, when);
}

static bool is_call(const hf__request *request)
{
    return request->kind != HF__REQUEST_RENEW;
}

static void leave_flight(hf__link *link, hf__request *request)
{
    hf__list_remove(&link->in_flight, &request->node);
    link->calls -= is_call(request);
    request->place = HF__IDLE;
}

/* Moves the first `count` of the list, which were encoded as one call, to those in flight. */
static void depart(hf__link *link, hf__list *list, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        hf__node *node = hf__list_first(list);
        hf__request *request = HF__ENTRY(node, hf__request, node);
        hf__list_remove(list, node);
        hf__list_append(&link->in_flight, node);
        link->calls += is_call(request);
        request->place = HF__IN_FLIGHT;
        request->group = (unsigned short)(i == 0 ? count : 0);
        request->sent = HF__MUTANT(SENT_AFTER) ? HF__NEVER : link->core->now;
    }
}

/* The reply timer belongs to the oldest request in flight; it is not moved for every reply but
 * looks for itself when it fires. */
void hf__link_pump(hf__link *link)
{
    hf__list *list;
    if (hf__flow_is_waiting(link))
        hf__link_wake(link);
    while (link->state == HF__LINK_READY && (list = hf__flow_next(link)) != NULL) {
        unsigned count = hf__request_encode(list, &link->out);
        if (count == 0) {
            hf__link_fail(link, HF_ENOMEM, "out of memory");
            return;
        }
        depart(link, list, count);
        if (!link->timer.set)
            set_timer(link, hf__after(link->core->now, link->core->config.reply_timeout));
    }
}

bool hf__link_full(const hf__link *link)
{
    return link->held_back.count + link->waiting.count + link->calls >= HF_PENDING_MAX;
}

void hf__link_enqueue(hf__request *request)
{
    if (request->place != HF__IDLE)
        return;
    hf__link *link = hf__request_link(request);
    request->place = hf__flow_holds_back(request) ? HF__HELD_BACK : HF__WAITING;
    hf__list_append(hf__flow_list(link, request), &request->node);
}

void hf__link_submit(hf__request *request)
{
    hf__link_enqueue(request);
    hf__link_pump(hf__request_link(request));
}

void hf__link_withdraw(hf__request *request)
{
    if (!hf__request_waits(request))
        return;
    hf__list_remove(hf__flow_list(hf__request_link(request), request), &request->node);
    request->place = HF__IDLE;
}

static void copy_lost(hf_hold *hold)
{
    hold->copy_lost = true;
    if (HF__MUTANT(NEW_IDENTITY))
        hold->text[hold->key_length]++;
}

/* What becomes of a request whose copy went down with the connection. One that only asked why it
 * was denied has left no copy at the server, and tries again. */
static void lose_copy(hf__request *request)
{
    if (request->asks_why != HF__WHY_NOT) {
        request->asks_why = HF__WHY_NOT;
        return;
    }
    request->unanswered = true;
    if (request->kind == HF__REQUEST_ACQUIRE)
        copy_lost(hf__request_hold(request));
}

/* Ahead of those that wait; and ahead of it what must be, even if it was answered before. */
static void put_back(hf__link *link, hf__request *request)
{
    hf__request *ahead = hf__request_ahead(request);
    request->place = HF__WAITING;
    hf__list_prepend(hf__flow_list(link, request), &request->node);
    if (ahead != NULL && ahead->place == HF__IDLE)
        put_back(link, ahead);
}

/* Nothing more will come over this connection: what was in flight waits again, or is dropped if
 * nobody wants it any more. */
static void recall_in_flight(hf__link *link)
{
    hf__node *node;
    while ((node = hf__list_last(&link->in_flight)) != NULL) {
        hf__request *request = HF__ENTRY(node, hf__request, node);
        leave_flight(link, request);
        lose_copy(request);
        if (hf__request_wanted(request))
            put_back(link, request);
        else
            hf__request_settle(request);
    }
}

/* Each may end, and take others of the list with it: so nobody's place is kept, and each goes from
 * the front to the back instead. */
static void tell_waiting(hf__link *link, hf__list *list)
{
    for (size_t left = list->count; left > 0 && list->count > 0; left--) {
        hf__request *request = HF__ENTRY(hf__list_rotate(list), hf__request, node);
        hf__request_unreachable(request, &link->trouble);
        hf__request_settle(request);
    }
}

static void note_trouble(hf__link *link, bool attempt)
{
    hf_log_level level = link->failures > 0 ? HF_LOG_DEBUG : HF_LOG_WARNING;
    hf__log(link->core, level, "%s: %s", attempt ? "cannot connect" : "connection lost",
            link->trouble.text);
}

void hf__link_fail(hf__link *link, hf_status status, const char *format, ...)
{
    va_list arguments;
    if (link->state == HF__LINK_DOWN || link->state == HF__LINK_BACKOFF)
        return; /* it has failed already, and the first reason is the good one */
    va_start(arguments, format);
    link->trouble.status = status;
    hf__vformat(link->trouble.text, sizeof(link->trouble.text), format, arguments);
    va_end(arguments);

    bool attempt = link->state != HF__LINK_READY || status == HF_ENOMEM;
    note_trouble(link, attempt);
    link->wants_close = true;
    link->wants_connect = false;
    link->failures++;
    hf__buffer_clear(&link->out);
    link->kind->down(link);
    recall_in_flight(link);
    start_backoff(link); /* before the others hear of it: they may submit something new */
    if (attempt || link->failures > 1) /* no good answer since the last time */
        link->last_failure = link->core->now;
    hf__flow_let_in(link); /* without a connection there is nothing to hold back from */
    if (attempt) {
        tell_waiting(link, &link->urgent);
        tell_waiting(link, &link->waiting);
    }
    if (!link->kind->needed(link)) {
        link->state = HF__LINK_DOWN;
        hf__timer_clear(&link->core->timers, &link->timer);
    }
}

void hf__link_close(hf__link *link)
{
    link->wants_close = link->state > HF__LINK_BACKOFF;
    link->wants_connect = false;
    link->state = HF__LINK_DOWN;
    hf__buffer_clear(&link->out);
    hf__timer_clear(&link->core->timers, &link->timer);
}

void hf__link_connected(hf__link *link, const hf__event *event)
{
    if (link->state != HF__LINK_CONNECTING)
        return;
    link->state = HF__LINK_GREETING;
    hf__reader_free(link->reader);
    link->reader = hf__reader_new();
    hf__format(link->protection, sizeof(link->protection), "%s",
               event->reason != NULL ? event->reason : "");
    link->greeted = link->core->now;
    link->greeted_wall = event->wall;
    if (link->reader == NULL || !hf__greeting_send(link, event->credentials)) {
        hf__link_fail(link, HF_ENOMEM, "out of memory");
        return;
    }
    set_timer(link, hf__after(link->core->now, link->core->config.reply_timeout));
}

void hf__link_ready(hf__link *link)
{
    bool protected = link->protection[0] != '\0';
    hf__log(link->core, link->failures > 0 ? HF_LOG_INFO : HF_LOG_DEBUG, "connected to %s%s%s%s",
            link->server->url->display, protected ? " (" : "", link->protection,
            protected ? ")" : "");
    link->state = HF__LINK_READY;
    link->round_trip = hf__between(link->greeted, link->core->now);
    link->pongs = link->pings; /* those that were lost with the last connection */
    link->trouble = (hf_error){.status = HF_OK};
    hf__timer_clear(&link->core->timers, &link->timer);
    link->kind->ready(link);
}

/* As if the reply had never come: from the first unanswered one on, the requests of its call go
 * back in front, and are sent again. */
static void fail_senseless(hf__link *link, hf__request **group, unsigned first, unsigned count)
{
    for (unsigned i = count; i-- > first;) {
        hf__list_prepend(&link->in_flight, &group[i]->node);
        link->calls += is_call(group[i]);
        group[i]->place = HF__IN_FLIGHT;
    }
    if (link->state != HF__LINK_READY) {
        recall_in_flight(link); /* it has failed over another one of them */
        return;
    }
    hf__link_fail(link, HF_EUNAVAILABLE, "%s sent a reply that makes no sense",
                  link->server->url->display);
}

void hf__link_answer(hf__link *link, const hf__reply *reply)
{
    if (link->in_flight.count == 0) {
        hf__link_fail(link, HF_EUNAVAILABLE, "%s sent a reply that nobody asked for",
                      link->server->url->display);
        return;
    }
    hf__request *group[HF__BATCH_MAX] = {NULL};
    hf__reply parts[HF__BATCH_MAX];
    const hf__request *oldest = HF__ENTRY(hf__list_first(&link->in_flight), hf__request, node);
    unsigned count = oldest->group;
    hf__flow_answered(link, oldest);
    for (unsigned i = 0; i < count; i++) {
        group[i] = HF__ENTRY(hf__list_first(&link->in_flight), hf__request, node);
        hf__request_prefetch(group[i]);
        leave_flight(link, group[i]);
    }
    bool split = hf__split_refused(link, reply, group, count);
    bool fits = split || hf__request_divide(reply, group, count, parts);
    for (unsigned i = 0; i < count && !split; i++) {
        if (!fits || !hf__request_answer(group[i], &parts[i])) {
            fail_senseless(link, group, i, count);
            return;
        }
        hf__request_settle(group[i]);
    }
    if (link->state == HF__LINK_READY) {
        link->failures = 0;
        hf__link_pump(link); /* a script that was not known there goes again */
    }
}

void hf__link_stamp_late(hf__link *link)
{
    hf__list *list = &link->in_flight;
    for (hf__node *node = hf__list_first(list); node != NULL; node = hf__list_next(list, node))
        if (hf__is_never(HF__ENTRY(node, hf__request, node)->sent))
            HF__ENTRY(node, hf__request, node)->sent = link->core->now;
}

void hf__link_bytes(hf__link *link, const char *bytes, size_t count)
{
    const hf__reply *reply = NULL;
    hf__read_result result = HF__READ_REPLY;
    if (link->state != HF__LINK_GREETING && link->state != HF__LINK_READY)
        return;
    hf__reader_feed(link->reader, bytes, count);
    while (link->state == HF__LINK_GREETING || link->state == HF__LINK_READY) {
        result = hf__reader_next(link->reader, &reply);
        if (result != HF__READ_REPLY)
            break;
        if (HF__MUTANT(LARGE_BREAKS) && reply->kind == HF__REPLY_TOO_LARGE)
            hf__link_fail(link, HF_EUNAVAILABLE, "reply too large");
        else if (link->state == HF__LINK_GREETING)
            hf__greeting_reply(link, reply);
        else
            link->kind->reply(link, reply);
    }
    if (result == HF__READ_BROKEN)
        hf__link_fail(link, HF_EUNAVAILABLE, "%s does not speak the Redis protocol: %s",
                      link->server->url->display, hf__reader_reason(link->reader));
    if (result == HF__READ_NO_MEMORY)
        hf__link_fail(link, HF_ENOMEM, "out of memory");
}

void hf__link_fail_silent(hf__link *link)
{
    hf__link_fail(link, HF_EUNAVAILABLE, "%s gave no answer within %lld ms",
                  link->server->url->display,
                  (long long)hf__span_to_ms(link->core->config.reply_timeout));
}

void hf__link_timer(hf__link *link)
{
    const hf__config *config = &link->core->config;
    switch (link->state) {
    case HF__LINK_DOWN:
        break;
    case HF__LINK_BACKOFF:
        if (link->kind->needed(link))
            connect_link(link);
        else
            link->state = HF__LINK_DOWN;
        break;
    case HF__LINK_CONNECTING:
        hf__link_fail(link, HF_EUNAVAILABLE, "%s did not accept a %sconnection within %lld ms",
                      link->server->url->display, link->server->url->tls ? "TLS " : "",
                      (long long)hf__span_to_ms(config->connect_timeout));
        break;
    case HF__LINK_GREETING:
        hf__link_fail_silent(link);
        break;
    case HF__LINK_READY:
        link->kind->timer(link);
        break;
    }
}

bool hf__link_expects(const hf__link *link)
{
    if (link->state == HF__LINK_READY)
        return link->kind->expects(link);
    return link->state == HF__LINK_CONNECTING || link->state == HF__LINK_GREETING;
}
