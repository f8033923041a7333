/* SPDX-License-Identifier: MIT */
/* Clients: the real core and a clock of their own. What the core wants done is done here, as the
 * driver does it. A paused client does nothing, and its clock goes on; what was meant for it
 * happens when it goes on. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/state.h"
#include "quorum.h"

hf__instant client_now(const world *w, const client *c)
{
    return (hf__instant){timer_shows_ns(&c->timer, w->run.now_ns)};
}

/* ---- Steps ---- */

static void schedule_wake(world *w, int index)
{
    client *c = &w->clients[index];
    sim_event wake = {.kind = EVENT_WAKE, .index = index, .generation = c->generation};
    timer_set(w, &c->timer, client_now(w, c), hf__core_wake(c->core), wake);
}

static void check_silence(world *w, int index, int link)
{
    const client *c = &w->clients[index];
    const node *n = &w->nodes[hf__core_server(c->core, link)];
    if (c->links[link] > 0)
        load_closes(w, c->core, index, link, n->wires[c->links[link] - 1].heard_ns);
}

void client_probe(world *w, int index)
{
    client *c = &w->clients[index];
    if (!prober_begin(&c->prober))
        return;
    world_log(w, "client %d: looks at %s", index, PROBED_KEY);
    client_step(w, index, &(hf__event){.kind = HF__EVENT_START, .call = &c->prober.call});
}

static void probed(world *w, int index)
{
    const char *wrong = prober_done(&w->clients[index].prober);
    if (wrong != NULL)
        world_fail(w, "client %d: what others wrote cannot be looked at: %s", index, wrong);
}

static void carry_out(world *w, int index, const hf__action *action)
{
    client *c = &w->clients[index];
    switch (action->kind) {
    case HF__ACTION_CLOSE:
        check_silence(w, index, action->link);
        net_close(w, index, action->link);
        break;
    case HF__ACTION_CONNECT:
        net_connect(w, index, action->link);
        break;
    case HF__ACTION_LOG:
        world_log(w, "client %d: log: %s", index, action->text);
        if (strstr(action->text, "its lease is over") != NULL)
            w->gave_up_ns = w->run.now_ns;
        break;
    case HF__ACTION_DONE:
        for (int i = 0; i < w->plan.actors; i++)
            if (action->call == &c->actors[i].call)
                actor_call_done(w, index, i);
        (void)load_done(w, &c->load, index, action->call);
        if (action->call == &c->reserver.call)
            ids_call_done(w, index);
        if (action->call == &c->prober.call)
            probed(w, index);
        break;
    }
}

static bool is_due(const world *w, const client *c)
{
    return !hf__before(client_now(w, c), hf__core_wake(c->core));
}

/* Everything is told at once, when no timer is due that may change it, and nobody listens. */
static void pump(world *w, int index)
{
    client *c = &w->clients[index];
    hf__action action;
    hf__tell next;
    const char *bytes;
    size_t count;
    while (hf__core_next(c->core, &action))
        carry_out(w, index, &action);
    for (int link = 0; link < hf__core_links(c->core); link++) {
        while ((count = hf__core_output(c->core, link, &bytes)) > 0) {
            net_send(w, index, link, bytes, count);
            hf__core_written(c->core, link, count);
        }
    }
    while (!is_due(w, c) && hf__core_next_tell(c->core, &next)) {
        (void)load_told(w, &c->load, index, &next);
        hf__core_told(c->core);
    }
    observers_tell(w, index);
}

void client_step(world *w, int index, hf__event *e)
{
    client *c = &w->clients[index];
    e->now = client_now(w, c);
    leaks_step(w, index);
    if (fault_happens(w, FAULT_MEMORY))
        sim_allocation_fails = w->plan.observers > 0 ? (int)draw_between(w, 1, 4) : 1;
    hf__core_step(c->core, e);
    sim_allocation_fails = 0;
    pump(w, index);
    schedule_wake(w, index);
    check_beliefs(w);
    order_check(w);
    observers_check(w);
}

/* ---- Life ---- */

static hf__config configuration(world *w, int index, uint64_t generation)
{
    const plan *p = &w->plan;
    hf__config config = {.servers = w->urls,
                         .server_count = p->nodes,
                         .connect_timeout = hf__span_ms(p->connect_timeout_ms),
                         .reply_timeout = hf__span_ms(p->reply_timeout_ms),
                         .call_timeout = hf__span_ms(p->call_timeout_ms),
                         .fence_keep = hf__span_ms(p->fence_keep_ms),
                         .max_lease = hf__span_ms(p->max_lease_ms),
                         .drift_ppm = 10000,
                         .drift = hf__span_ms(2),
                         .durable_servers = p->durable,
                         .links = p->links,
                         .local_turns = p->all_fair ? 0 : p->local_turns,
                         .seed = draw(w, UINT64_MAX)};
    snprintf(config.client_id, sizeof(config.client_id), "%016llx%016llx",
             (unsigned long long)index, (unsigned long long)generation);
    return config;
}

void client_start(world *w, int index)
{
    client *c = &w->clients[index];
    client before = *c;
    *c = (client){.alive = true, .generation = before.generation + 1, .timer.wakes_ns = INT64_MAX};
    memcpy(c->parted, before.parted, sizeof(c->parted)); /* the network does not know who it is */
    c->parted_until_ns = before.parted_until_ns;
    c->parted_drops = before.parted_drops;
    c->timer.rate_ppm = draw_between(w, -4500, 4500);
    c->timer.base_ns = MS(draw_between(w, 1000, 1000000));
    c->config = configuration(w, index, c->generation);
    c->core = hf__core_new(&c->config);
    world_log(w, "client %d: starts", index);
    for (int i = 0; i < w->plan.actors; i++)
        actor_begin(w, index, i);
    ids_begin(w, index);
    observers_begin(w, index);
    c->load = (sim_load){.plan = &w->plan.load, .core = c->core, .client_id = c->config.client_id};
    load_begin(w, &c->load, index);
}

bool world_takes_load(const world *w)
{
    return !w->healing;
}

void world_schedule_load(world *w, int index, int64_t delay_ns)
{
    sim_event e = {.kind = EVENT_LOAD, .index = index, .generation = w->clients[index].generation};
    if (!w->unloaded)
        world_schedule(w, e, delay_ns);
}

void client_free(client *c)
{
    if (c->core == NULL)
        return;
    hf__core_free(c->core);
    c->core = NULL;
    c->alive = false;
    for (int i = 0; i < HANDLES_MAX; i++)
        if (c->handles[i].hold != NULL)
            hf__hold_abandon(c->handles[i].hold);
    if (c->reserver.hold != NULL)
        hf__hold_abandon(c->reserver.hold);
    load_free(&c->load);
    prober_free(&c->prober);
    observers_free((observer_site){.observers = c->observers});
}

void client_kill(world *w, int index)
{
    client *c = &w->clients[index];
    world_log(w, "client %d: killed", index);
    for (int link = 0; link < hf__core_links(c->core); link++)
        net_close(w, index, link);
    client_free(c);
    world_schedule(w, (sim_event){.kind = EVENT_START, .index = index, .generation = c->generation},
                   MS(draw_between(w, 1, 500)));
}

void client_pause(world *w, int index, int64_t length_ns)
{
    client *c = &w->clients[index];
    if (c->paused || !c->alive)
        return;
    c->paused = true;
    c->paused_since_ns = w->run.now_ns;
    c->resumes_ns = w->run.now_ns + length_ns;
    world_log(w, "client %d: paused for %lld ms", index, (long long)(length_ns / 1000000));
    world_schedule(w,
                   (sim_event){.kind = EVENT_RESUME, .index = index, .generation = c->generation},
                   length_ns);
}

static void resume(world *w, int index)
{
    client *c = &w->clients[index];
    c->paused_total_ns += w->run.now_ns - c->paused_since_ns;
    c->paused = false;
    world_log(w, "client %d: goes on", index);
    check_beliefs(w); /* the application may look before the library does */
}

static void wake(world *w, int index)
{
    client *c = &w->clients[index];
    c->timer.wakes_ns = INT64_MAX;
    if (is_due(w, c))
        client_step(w, index, &(hf__event){.kind = HF__EVENT_TICK});
    else
        schedule_wake(w, index); /* its timer has moved, or the clock is a bit behind */
}

static bool meant_for(const client *c, const sim_event *e)
{
    uint64_t generation = e->kind == EVENT_ACTOR ? e->generation >> 32 : e->generation;
    if (!c->alive || c->generation != generation)
        return false;
    /* Of two wakes, the earlier one was scheduled later. */
    return e->kind != EVENT_WAKE || e->at_ns == c->timer.wakes_ns;
}

void client_handle(world *w, const sim_event *e)
{
    client *c = &w->clients[e->index];
    if (e->kind == EVENT_START) {
        if (!c->alive && c->generation == e->generation)
            client_start(w, e->index);
    } else if (!meant_for(c, e)) {
        return;
    } else if (e->kind == EVENT_RESUME) {
        resume(w, e->index);
    } else if (c->paused) {
        world_schedule(w, *e, c->resumes_ns - w->run.now_ns);
        if (e->kind == EVENT_WAKE)
            c->timer.wakes_ns = c->resumes_ns;
    } else if (e->kind == EVENT_WAKE) {
        wake(w, e->index);
    } else if (e->kind == EVENT_LOAD) {
        load_go_on(w, &c->load, e->index);
    } else if (e->kind == EVENT_SEEN) {
        observers_told(w, e->index);
    } else if (e->kind == EVENT_RESERVER) {
        ids_go_on(w, e->index);
    } else if ((uint32_t)e->generation == (uint32_t)c->actors[e->actor].generation) {
        actor_go_on(w, e->index, e->actor);
    }
}

void client_close_all(world *w)
{
    w->finished = true;
    for (int i = 0; i < w->plan.clients; i++) {
        client *c = &w->clients[i];
        if (!c->alive)
            continue;
        c->close_call = (hf__call){.kind = HF__CALL_CLOSE};
        client_step(w, i, &(hf__event){.kind = HF__EVENT_START, .call = &c->close_call});
    }
}

bool client_all_closed(const world *w)
{
    for (int i = 0; i < w->plan.clients; i++)
        if (w->clients[i].alive && !w->clients[i].close_call.done)
            return false;
    return true;
}
