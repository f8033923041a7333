/* SPDX-License-Identifier: MIT */
/* People who look from outside: they inspect a lock, list locks, ask a holder to give up, and break
 * a lock by force. The last two are an inspection first, and then name what was seen. Each client
 * has one of them. */
#include <string.h>

#include "core/state.h"
#include "sim.h"

enum { FOREIGN_LEASE_MAX_MS = 800 };

static void ask(world *w, int index, hf__query_kind kind, hf__slice text, uint64_t number)
{
    sim_client *c = &w->clients[index];
    sim_query *q = &c->query;
    const char *name = kind == HF__QUERY_SCAN ? "" : lock_names[q->lock];
    hf__query *query = hf__query_new(kind, HF__SLICE(""), hf__slice_text(name), text, number);
    q->call = (hf__call){.kind = HF__CALL_QUERY, .query = query, .answer = &q->answer};
    q->asked = kind;
    q->busy = true;
    q->began_ns = w->run.now_ns;
    q->paused_before_ns = c->paused_total_ns;
    client_step(w, index, &(hf__event){.kind = HF__EVENT_START, .call = &q->call});
}

static void clear(sim_query *q)
{
    hf__buffer_free(&q->answer.keys);
    hf__buffer_free(&q->answer.value);
    q->answer = (hf__answer){.inspection = &q->inspection};
}

void query_begin(world *w, int index, hf__query_kind kind)
{
    sim_client *c = &w->clients[index];
    sim_query *q = &c->query;
    if (!c->alive || c->paused || q->busy || w->finished)
        return;
    clear(q);
    q->wanted = kind;
    q->lock = (int)draw(w, (uint64_t)w->plan.locks);
    q->told_before = fences_highest(&w->locks[q->lock]);
    world_log(w, "client %d: somebody asks (%d) about %s", index, (int)kind, lock_names[q->lock]);
    if (kind == HF__QUERY_SCAN) {
        ask(w, index, kind, HF__SLICE("hf:f:*"), 0);
    } else {
        ask(w, index, HF__QUERY_INSPECT, HF__SLICE(""), 0);
    }
}

/* The second part of a request or a break, and the rest of a list. */
void query_go_on(world *w, int index)
{
    sim_query *q = &w->clients[index].query;
    if (q->wanted == HF__QUERY_BREAK) {
        hf__slice value = {hf__buffer_front(&q->answer.value), hf__buffer_length(&q->answer.value)};
        w->locks[q->lock].breaks++;
        world_log(w, "client %d: breaks %s with fence %llu", index, lock_names[q->lock],
                  (unsigned long long)q->inspection.fence);
        ask(w, index, HF__QUERY_BREAK, value, q->inspection.fence);
    } else if (q->wanted == HF__QUERY_REVOKE) {
        w->locks[q->lock].revokes++;
        ask(w, index, HF__QUERY_REVOKE, HF__SLICE("please"), q->inspection.fence);
    } else {
        ask(w, index, HF__QUERY_SCAN, HF__SLICE("hf:f:*"), q->answer.number);
    }
}

static void check_inspection(world *w, int index)
{
    const sim_query *q = &w->clients[index].query;
    const hf_inspection *seen = &q->inspection;
    int64_t longest_ms =
        w->plan.lease_max_ms > FOREIGN_LEASE_MAX_MS ? w->plan.lease_max_ms : FOREIGN_LEASE_MAX_MS;
    w->stats.inspected += seen->held;
    if (!seen->held || w->plan.beyond)
        return;
    if (!check_knows_value(w, seen->owner))
        world_fail(w, "client %d: sees %s held by %s, who never was", index, lock_names[q->lock],
                   seen->owner);
    if (seen->remaining_ms < 0 || seen->remaining_ms > longest_ms)
        world_fail(w, "client %d: sees %s held for %lld ms", index, lock_names[q->lock],
                   (long long)seen->remaining_ms);
    for (size_t i = 0; i < seen->holder_count; i++)
        if (seen->holders[i].remaining_ms > longest_ms)
            world_fail(w, "client %d: sees a holder of %s for %lld ms", index, lock_names[q->lock],
                       (long long)seen->holders[i].remaining_ms);
}

static void check_list(world *w, int index)
{
    const hf__buffer *keys = &w->clients[index].query.answer.keys;
    const char *at = hf__buffer_front(keys), *end = at + hf__buffer_length(keys);
    while (at < end) {
        uint32_t length;
        memcpy(&length, at, sizeof(length));
        if (length < 5 || memcmp(at + sizeof(length), "hf:f:", 5) != 0)
            world_fail(w, "client %d: lists %.*s", index, (int)length, at + sizeof(length));
        at += sizeof(length) + length;
    }
}

static void go_on_later(world *w, int index)
{
    sim_client *c = &w->clients[index];
    sim_event event = {.kind = EVENT_QUERY, .index = index, .generation = c->generation};
    c->query.busy = true;
    world_schedule(w, event, MS(1) / 10 * draw_between(w, 0, 200));
}

static void answered(world *w, int index)
{
    sim_query *q = &w->clients[index].query;
    if (q->asked == HF__QUERY_INSPECT) {
        check_inspection(w, index);
        if (q->wanted != HF__QUERY_INSPECT && q->inspection.held)
            go_on_later(w, index);
    } else if (q->asked == HF__QUERY_REVOKE && q->answer.number == 1) {
        states_revoked(w, q->lock);
    } else if (q->asked == HF__QUERY_BREAK) {
        fences_broken(w, index, q);
    } else if (q->asked == HF__QUERY_SCAN) {
        check_list(w, index);
        if (q->answer.number != 0)
            go_on_later(w, index);
    }
}

void query_done(world *w, int index)
{
    sim_query *q = &w->clients[index].query;
    hf_status status = q->call.error.status;
    world_log(w, "client %d: answer (%d) about %s: %s %llu %s", index, (int)q->asked,
              lock_names[q->lock], hf_status_name(status), (unsigned long long)q->answer.number,
              q->call.error.text);
    q->busy = false;
    check_bound(w, index, q->began_ns, q->paused_before_ns, MS(w->plan.call_timeout_ms));
    bool denied = permits_denied_since(&w->clients[index].permits, q->lock, q->began_ns);
    if (status == HF_EINTERNAL || status == HF_EINVAL || status == HF_ESERVER ||
        (status == HF_EDENIED && !denied))
        world_fail(w, "client %d: a query: %s: %s", index, hf_status_name(status),
                   q->call.error.text);
    if (status == HF_OK)
        answered(w, index);
}

void query_free(sim_query *q)
{
    clear(q);
    q->busy = false;
}
