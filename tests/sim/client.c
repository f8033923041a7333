/* SPDX-License-Identifier: MIT */
/* Clients: the real core and a clock of their own. What the core wants done is done here, as the
 * driver does it: first all actions, then what there is to tell to listeners, one at a time. A
 * callback may take its time; until it returns, nobody else is told and its handle is not released.
 *
 * A paused client does nothing, and its clock goes on; what was meant for it happens when it goes
 * on. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mutant.h"
#include "core/state.h"
#include "mutants.h"
#include "sim.h"

/* ---- Clocks ---- */

int64_t client_clock_ns(const sim_client *c, int64_t true_ns)
{
    int64_t stood_still_ns = 0;
    if (active_mutant != NULL && active_mutant->monotonic) {
        stood_still_ns = c->suspended_total_ns;
        if (c->suspended)
            stood_still_ns += true_ns - c->paused_since_ns;
    }
    return timer_shows_ns(&c->timer, true_ns - stood_still_ns);
}

hf__instant client_now(const world *w, const sim_client *c)
{
    return (hf__instant){client_clock_ns(c, w->run.now_ns)};
}

/* ---- Steps ---- */

static void schedule_wake(world *w, int index)
{
    sim_client *c = &w->clients[index];
    sim_event wake = {.kind = EVENT_WAKE, .index = index, .generation = c->generation};
    timer_set(w, &c->timer, client_now(w, c), hf__core_wake(c->core), wake);
}

static void probed(world *w, int index)
{
    const char *wrong = prober_done(&w->clients[index].prober);
    if (wrong != NULL)
        world_fail(w, "client %d: what others wrote cannot be looked at: %s", index, wrong);
}

static void carry_out(world *w, int index, const hf__action *action)
{
    sim_client *c = &w->clients[index];
    switch (action->kind) {
    case HF__ACTION_CLOSE:
        if (c->links[action->link] > 0)
            load_closes(w, c->core, index, action->link,
                        w->wires[c->links[action->link] - 1].heard_ns);
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
        if (action->call == &c->query.call)
            query_done(w, index);
        if (action->call == &c->prober.call)
            probed(w, index);
        for (int i = 0; i < CLERKS_MAX; i++)
            if (action->call == &c->clerks[i].call)
                clerk_done(w, index, i);
        break;
    }
}

/* The core runs no timer when bytes have come; the driver ticks when it has read all there are, and
 * then the core knows what is true now. So nobody is told anything while a timer is due. */
static bool is_due(const world *w, const sim_client *c)
{
    return !hf__before(client_now(w, c), hf__core_wake(c->core));
}

static void tell(world *w, int index)
{
    sim_client *c = &w->clients[index];
    hf__tell next;
    while (!c->telling && !is_due(w, c) && hf__core_next_tell(c->core, &next)) {
        if (!load_told(w, &c->load, index, &next))
            states_told(w, index, &next);
        if (draw(w, 40) == 0 && !w->finished) {
            sim_event back = {.kind = EVENT_TOLD, .index = index, .generation = c->generation};
            c->telling = true;
            world_schedule(w, back, MS(1) / 10 * draw_between(w, 1, 3000));
        } else {
            hf__core_told(c->core);
        }
    }
}

/* The bytes leave when the step is over, which a pause may delay; the stamps are older. */
static void pump(world *w, int index)
{
    sim_client *c = &w->clients[index];
    hf__action action;
    const char *bytes;
    size_t count;
    while (c->alive && hf__core_next(c->core, &action))
        carry_out(w, index, &action);
    for (int link = 0; c->alive && link < hf__core_links(c->core); link++) {
        while ((count = hf__core_output(c->core, link, &bytes)) > 0) {
            net_send(w, index, link, bytes, count);
            hf__core_written(c->core, link, count);
        }
    }
    if (c->alive)
        tell(w, index);
    if (c->alive)
        observers_tell(w, index);
}

void client_step(world *w, int index, hf__event *event)
{
    sim_client *c = &w->clients[index];
    event->now = (hf__instant){client_clock_ns(c, w->run.now_ns)};
    if (fault_happens(w, FAULT_MEMORY))
        sim_allocation_fails = w->plan.observers > 0 ? (int)draw_between(w, 1, 4) : 1;
    int mutant = hf__mutant;
    if (w->plan.elders >> index & 1 && mutant == 0)
        hf__mutant = HF__MUTANT_RANGE_KEPT; /* which 0.7 does as well */
    hf__core_step(c->core, event);
    hf__mutant = mutant;
    sim_allocation_fails = 0;
    pump(w, index);
    if (!c->alive)
        return;
    schedule_wake(w, index);
    check_beliefs(w);
    quiet_check(w);
}

/* ---- Life ---- */

/* What the library looks at unless it is told otherwise; or everything, with a warning; or nothing
 * that may be left out, since to trust a replica is beyond the assumptions. */
static void choose_checks(const world *w, hf__config *config)
{
    hf_check others[] = {HF_CHECK_WARN, HF_CHECK_WARN, HF_CHECK_IGNORE};
    for (int i = 0; i < HF__CHECK_KINDS; i++)
        config->checks[i] = others[w->plan.checks];
    if (w->plan.checks != 1)
        config->checks[HF__CHECK_REPLICA] = HF_CHECK_REFUSE;
    if (w->plan.checks == 0)
        config->checks[HF__CHECK_VERSION] = HF_CHECK_REFUSE;
}

void client_start(world *w, int index)
{
    sim_client *c = &w->clients[index];
    uint64_t generation = c->generation + 1;
    *c = (sim_client){.alive = true, .generation = generation, .timer.wakes_ns = INT64_MAX};
    bool fast = w->plan.beyond && w->plan.chance[FAULT_CLOCK_RATE] > 0;
    w->stats.faults[FAULT_CLOCK_RATE] += fast;
    c->timer.rate_ppm = fast ? draw_between(w, -50000, 50000) : draw_between(w, -4500, 4500);
    c->timer.base_ns = MS(draw_between(w, 1000, 1000000));
    c->config = (hf__config){.servers = &w->url,
                             .server_count = 1,
                             .connect_timeout = hf__span_ms(w->plan.connect_timeout_ms),
                             .reply_timeout = hf__span_ms(w->plan.reply_timeout_ms),
                             .call_timeout = hf__span_ms(w->plan.call_timeout_ms),
                             .fence_keep = hf__span_ms(w->plan.fence_keep_ms),
                             .drift_ppm = 10000,
                             .drift = hf__span_ms(2),
                             .links = w->plan.links,
                             .local_turns = w->plan.local_turns,
                             .seed = draw(w, UINT64_MAX)};
    choose_checks(w, &c->config);
    snprintf(c->config.client_id, sizeof(c->config.client_id), "%016llx%016llx",
             (unsigned long long)index, (unsigned long long)generation);
    c->core = hf__core_new(&c->config);
    if (w->plan.denies_all || (w->plan.denies_some && index == 0))
        permits_set_messages(&c->permits, draw(w, 2) == 0 ? SIM_NO_CHANNELS : SIM_NO_PUBSUB);
    world_log(w, "client %d: starts", index);
    for (int i = 0; i < w->plan.actors; i++)
        actor_begin(w, index, i);
    clerks_begin(w, index);
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
    sim_event event = {.kind = EVENT_LOAD, .index = index};
    event.generation = w->clients[index].generation;
    if (!w->quiet)
        world_schedule(w, event, delay_ns);
}

void client_free(sim_client *c)
{
    if (c->core == NULL)
        return;
    if (c->telling)
        hf__core_told(c->core);
    hf__core_free(c->core);
    c->core = NULL;
    c->alive = false;
    for (int i = 0; i < HANDLES_MAX; i++)
        if (c->handles[i].hold != NULL)
            hf__hold_abandon(c->handles[i].hold);
    c->held = 0;
    observers_free((observer_site){.observers = c->observers});
    query_free(&c->query);
    load_free(&c->load);
    prober_free(&c->prober);
    clerks_free(c);
}

void client_probe(world *w, int index)
{
    sim_client *c = &w->clients[index];
    if (!prober_begin(&c->prober))
        return;
    world_log(w, "client %d: looks at %s", index, PROBED_KEY);
    client_step(w, index, &(hf__event){.kind = HF__EVENT_START, .call = &c->prober.call});
}

void client_kill(world *w, int index)
{
    sim_client *c = &w->clients[index];
    world_log(w, "client %d: killed", index);
    for (int link = 0; link < hf__core_links(c->core); link++)
        net_close(w, index, link);
    check_beliefs(w);
    for (int i = 0; i < HANDLES_MAX; i++)
        if (c->handles[i].hold != NULL)
            check_belief_over(w, index, &c->handles[i]);
    tokens_client_dies(w, index);
    client_free(c);
    world_schedule(w, (sim_event){.kind = EVENT_START, .index = index, .generation = c->generation},
                   MS(draw_between(w, 1, 500)));
}

void client_pause(world *w, int index, int64_t length_ns, bool suspend)
{
    sim_client *c = &w->clients[index];
    if (c->paused || !c->alive)
        return;
    c->paused = true;
    c->suspended = suspend;
    c->paused_since_ns = w->run.now_ns;
    c->resumes_ns = w->run.now_ns + length_ns;
    world_log(w, "client %d: %s for %lld ms", index, suspend ? "suspended" : "paused",
              (long long)(length_ns / 1000000));
    world_schedule(w,
                   (sim_event){.kind = EVENT_RESUME, .index = index, .generation = c->generation},
                   length_ns);
}

static void resume(world *w, int index)
{
    sim_client *c = &w->clients[index];
    int64_t passed_ns = w->run.now_ns - c->paused_since_ns;
    c->paused_total_ns += passed_ns;
    if (c->suspended)
        c->suspended_total_ns += passed_ns;
    c->paused = c->suspended = false;
    world_log(w, "client %d: goes on", index);
    check_beliefs(w); /* the application may look before the library does */
}

static void wake(world *w, int index)
{
    sim_client *c = &w->clients[index];
    c->timer.wakes_ns = INT64_MAX;
    if (is_due(w, c))
        client_step(w, index, &(hf__event){.kind = HF__EVENT_TICK});
    else
        schedule_wake(w, index); /* its timer has moved, or the clock is a bit behind */
}

static void callback_returns(world *w, int index)
{
    sim_client *c = &w->clients[index];
    c->telling = false;
    hf__core_told(c->core);
    client_step(w, index, &(hf__event){.kind = HF__EVENT_TICK});
}

static void run(world *w, const sim_event *event)
{
    sim_client *c = &w->clients[event->index];
    switch (event->kind) {
    case EVENT_WAKE:
        wake(w, event->index);
        break;
    case EVENT_ACTOR:
        if ((uint32_t)event->generation == (uint32_t)c->actors[event->actor].generation)
            actor_go_on(w, event->index, event->actor);
        break;
    case EVENT_KEEPER:
        actor_give_back_kept(w, event->index, event->actor);
        break;
    case EVENT_LOAD:
        load_go_on(w, &c->load, event->index);
        break;
    case EVENT_CLERK:
        clerk_go_on(w, event->index, event->actor);
        break;
    case EVENT_QUERY:
        query_go_on(w, event->index);
        break;
    case EVENT_SEEN:
        observers_told(w, event->index);
        break;
    default: /* EVENT_TOLD */
        callback_returns(w, event->index);
        break;
    }
}

static bool meant_for(const sim_client *c, const sim_event *event)
{
    uint64_t generation = event->kind == EVENT_ACTOR ? event->generation >> 32 : event->generation;
    if (!c->alive || c->generation != generation)
        return false;
    /* Of two wakes, the earlier one was scheduled later. */
    return event->kind != EVENT_WAKE || event->at_ns == c->timer.wakes_ns;
}

void client_handle(world *w, const sim_event *event)
{
    sim_client *c = &w->clients[event->index];
    if (event->kind == EVENT_START) {
        if (!c->alive && c->generation == event->generation)
            client_start(w, event->index);
    } else if (!meant_for(c, event)) {
        return;
    } else if (event->kind == EVENT_RESUME) {
        if (c->paused && w->run.now_ns >= c->resumes_ns)
            resume(w, event->index);
    } else if (c->paused) {
        sim_event again = *event;
        world_schedule(w, again, c->resumes_ns - w->run.now_ns);
        if (event->kind == EVENT_WAKE)
            c->timer.wakes_ns = c->resumes_ns;
    } else {
        run(w, event);
    }
}

void client_close_all(world *w)
{
    w->finished = true;
    for (int i = 0; i < w->plan.clients; i++) {
        sim_client *c = &w->clients[i];
        if (!c->alive)
            continue;
        c->close_call = (hf__call){.kind = HF__CALL_CLOSE};
        client_step(w, i, &(hf__event){.kind = HF__EVENT_START, .call = &c->close_call});
    }
}
