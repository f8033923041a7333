/* SPDX-License-Identifier: MIT */
/* Questions and orders about locks that one does not hold: inspect, revoke, break, scan. Each is
 * one request, which is sent again if its connection breaks: all of them can be repeated (a break
 * names the very hold that it is meant for). A query belongs to the core; its call may end before
 * its request has come back, and then the memory waits for that.
 *
 * What concerns a lock on a quorum is asked of all its servers, which is a survey: then a query has
 * a part for each of them. What follows knows parts, and what to do with the only one. */
#include <string.h>

#include "base/memory.h"
#include "core/fail.h"
#include "core/name.h"
#include "core/state.h"

hf__query *hf__query_new_sized(hf__query_kind kind, hf__slice prefix, hf__slice name,
                               size_t text_length)
{
    size_t key_length = prefix.length + name.length;
    hf__query *query = hf__alloc(sizeof(*query) + key_length + text_length);
    if (query == NULL)
        return NULL;
    query->kind = kind;
    query->key_length = (unsigned short)key_length;
    query->text_length = text_length;
    hf__slice_put(hf__slice_put(query->bytes, prefix), name);
    query->slot = (unsigned short)hf__slot(query->bytes, key_length);
    return query;
}

hf__query *hf__query_new(hf__query_kind kind, hf__slice prefix, hf__slice name, hf__slice text,
                         uint64_t number)
{
    hf__query *query = hf__query_new_sized(kind, prefix, name, text.length);
    if (query == NULL)
        return NULL;
    query->number = number;
    hf__slice_put(query->bytes + query->key_length, text);
    return query;
}

void hf__query_drop(hf__query *query)
{
    hf__survey_free(query->survey);
    hf__free(query);
}

void hf__query_ask(hf__query *query, int server)
{
    query->server = server;
    query->alone = true;
}

/* ---- The call ---- */

void hf__query_end(hf__query *query, hf_status status, const char *text)
{
    hf__call *call = query->call;
    if (query->survey == NULL)
        hf__link_withdraw(&query->part.request);
    else if (call == NULL || !hf__survey_lingers(query->survey))
        hf__survey_withdraw(query->survey);
    query->call = NULL;
    if (call != NULL && call->hold != NULL && status == HF_EUNKNOWN)
        hf__hold_of(call->hold)->in_doubt = true;
    if (call != NULL)
        hf__call_done(query->core, call, status, text);
}

bool hf__query_wants(const hf__part *part)
{
    const hf__query *query = part->query;
    bool lingers = query->survey != NULL && hf__survey_lingers(query->survey);
    return query->call != NULL || (lingers && !part->request.unanswered);
}

static bool is_idle(const hf__query *query)
{
    return query->survey != NULL ? hf__survey_idle(query->survey)
                                 : query->part.request.place == HF__IDLE;
}

/* Within a step anybody up the call chain may still look at a query that has just ended. */
void hf__query_bury(hf__core *core)
{
    hf__node *node = hf__list_first(&core->queries);
    while (node != NULL) {
        hf__query *query = HF__ENTRY(node, hf__query, node);
        node = hf__list_next(&core->queries, node);
        if (query->call == NULL && is_idle(query)) {
            hf__list_remove(&core->queries, &query->node);
            hf__query_drop(query);
        }
    }
}

static bool is_for_all(const hf__query *query)
{
    return hf__is_quorum(query->core) && !query->alone &&
           (query->kind == HF__QUERY_INSPECT || query->kind == HF__QUERY_REVOKE ||
            query->kind == HF__QUERY_BREAK || query->kind == HF__QUERY_ERRAND);
}

static void ask_one(hf__query *query)
{
    hf__server *server = &query->core->servers[query->server];
    /* A script that is not known there would come once more, and then behind what it is ahead of.
     */
    bool whole = query->call->behind != NULL;
    query->part = (hf__part){.request = {.kind = HF__REQUEST_QUERY, .whole = whole},
                             .query = query,
                             .link = hf__server_link(server, query->slot),
                             .kind = query->kind,
                             .text = hf__query_text(query),
                             .number = query->number};
    if (hf__link_full(query->part.link))
        hf__query_end(query, HF_EUNAVAILABLE, "too many requests wait for this server");
    else
        hf__link_submit(&query->part.request);
}

void hf__query_start(hf__core *core, hf__call *call)
{
    hf__query *query = call->query;
    query->core = core;
    query->call = call;
    hf__list_append(&core->queries, &query->node);
    if (core->closing) {
        hf__query_end(query, HF_ECLOSED, "the client is being closed");
        return;
    }
    call->deadline = hf__after(core->now, core->config.call_timeout);
    if (call->ends.ns != 0)
        call->deadline = hf__earlier(call->deadline, call->ends);
    hf__timer_set(&core->timers, &call->timer, call->deadline);
    if (is_for_all(query))
        hf__survey_start(query);
    else
        ask_one(query);
}

static void say_unknown(const hf__part *part, hf_error *why)
{
    hf__fail(why, HF_EUNKNOWN, "%s gave no answer in time", part->link->server->url->display);
}

void hf__query_part_trouble(const hf__part *part, hf_error *why)
{
    if (part->request.place == HF__IN_FLIGHT || part->request.unanswered)
        say_unknown(part, why);
    else
        hf__flow_trouble(part->link, why);
}

void hf__query_timer(hf__call *call)
{
    hf__query *query = call->query;
    hf_error why;
    if (query->survey != NULL) {
        hf__survey_timer(query);
        return;
    }
    hf__query_part_trouble(&query->part, &why);
    hf__query_end(query, why.status, why.text);
}

/* ---- What came of a part ---- */

static void fail(hf__part *part, const hf_error *why)
{
    if (part->query->survey != NULL)
        hf__survey_failed(part, why);
    else
        hf__query_end(part->query, why->status, why->text);
}

/* The server would refuse it again, but a copy of this errand is out, and may have been served. */
static bool hides_a_copy(const hf__part *part, const hf_error *why)
{
    return part->request.unanswered && !hf__may_pass(why->status) &&
           part->kind == HF__QUERY_ERRAND && part->query->survey == NULL;
}

/* If a copy is out, what became of it is not known, whatever a later one is told. */
void hf__query_refused(hf__part *part, const hf_error *why)
{
    hf_error unknown = *why;
    if (hides_a_copy(part, why))
        hf__fail(&unknown, HF_EUNKNOWN, "no answer to a first message, and to the next: %s",
                 why->text);
    else if (part->request.unanswered && hf__may_pass(why->status))
        say_unknown(part, &unknown);
    fail(part, &unknown);
}

void hf__query_unreachable(hf__part *part, const hf_error *why)
{
    if (!part->request.unanswered || !hf__may_pass(why->status))
        hf__query_refused(part, why);
}

bool hf__query_answered(hf__part *part, const hf__reply *reply)
{
    hf__query *query = part->query;
    if (query->survey != NULL)
        return hf__survey_answered(part, reply);
    hf__read_answer result = hf__question_read(part, reply, query->call->answer);
    if (result == HF__ANSWER_READ)
        hf__query_end(query, HF_OK, "");
    else if (result == HF__ANSWER_NO_MEMORY)
        hf__query_end(query, HF_ENOMEM, "out of memory");
    return result != HF__ANSWER_MALFORMED;
}
