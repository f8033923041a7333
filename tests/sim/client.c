/* SPDX-License-Identifier: MIT */
/* Clients: the real core, a clock of their own, and actors that use locks as an application does:
 * acquire, work in steps while the hold is valid, extend now and then, write the register, release.
 *
 * A paused client does nothing, and its clock goes on; what was meant for it happens when it goes
 * on. Some steps are taken with a time that was read before a pause, because a thread can be
 * stopped between reading the clock and using it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/state.h"
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
    int64_t passed_ns = true_ns - stood_still_ns;
    return c->clock_base_ns + passed_ns + passed_ns * c->rate_ppm / 1000000;
}

/* When, in true time from now, the client's clock shows `local`. */
static int64_t true_delay_ns(const world *w, const sim_client *c, hf__instant local)
{
    int64_t left_ns = local.ns - client_clock_ns(c, w->now_ns);
    return left_ns <= 0 ? 0 : left_ns * 1000 / (1000000 + c->rate_ppm) * 1000 + 1000;
}

/* ---- Steps ---- */

static void actor_call_done(world *w, int index, int number);

static void schedule_wake(world *w, int index)
{
    sim_client *c = &w->clients[index];
    hf__instant wake = hf__core_wake(c->core);
    if (hf__is_never(wake) || c->wakes_ns <= w->now_ns + true_delay_ns(w, c, wake))
        return;
    c->wakes_ns = w->now_ns + true_delay_ns(w, c, wake);
    sim_event event = {.kind = EVENT_WAKE, .index = index, .generation = c->generation};
    world_schedule(w, event, true_delay_ns(w, c, wake));
}

static void carry_out(world *w, int index, const hf__action *action)
{
    sim_client *c = &w->clients[index];
    switch (action->kind) {
    case HF__ACTION_CLOSE:
        net_close(w, index, action->link);
        break;
    case HF__ACTION_CONNECT:
        net_connect(w, index, action->link);
        break;
    case HF__ACTION_LOG:
        world_log(w, "client %d: log: %s", index, action->text);
        if (strstr(action->text, "its lease is over") != NULL)
            w->gave_up_ns = w->now_ns;
        break;
    case HF__ACTION_DONE:
        for (int i = 0; i < w->plan.actors; i++)
            if (action->call == &c->actors[i].call)
                actor_call_done(w, index, i);
        break;
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
    for (int link = 0; c->alive && link < c->config.links; link++) {
        while ((count = hf__core_output(c->core, link, &bytes)) > 0) {
            net_send(w, index, link, bytes, count);
            hf__core_written(c->core, link, count);
        }
    }
}

void client_step(world *w, int index, hf__event *event)
{
    sim_client *c = &w->clients[index];
    event->now = (hf__instant){client_clock_ns(c, w->now_ns)};
    if (fault_happens(w, FAULT_MEMORY))
        sim_allocation_fails = true;
    hf__core_step(c->core, event);
    sim_allocation_fails = false;
    pump(w, index);
    if (!c->alive)
        return;
    schedule_wake(w, index);
    check_beliefs(w);
}

/* ---- Actors ---- */

static void schedule_actor(world *w, int index, int number, int64_t delay_ns)
{
    sim_client *c = &w->clients[index];
    sim_event event = {.kind = EVENT_ACTOR, .index = index, .actor = number};
    event.generation = ++c->actors[number].generation + (c->generation << 32);
    world_schedule(w, event, delay_ns);
}

static void begin_call(world *w, int index, int number, hf__call call, int64_t bound_ns)
{
    sim_client *c = &w->clients[index];
    sim_actor *a = &c->actors[number];
    a->call = call;
    a->bound_ns = bound_ns;
    a->call_began_ns = w->now_ns;
    a->paused_before_ns = c->paused_total_ns;
    client_step(w, index, &(hf__event){.kind = HF__EVENT_START, .call = &a->call});
}

static int64_t acquire_bound_ns(const world *w, const hf__call *call)
{
    if (call->wait_ms < 0)
        return INT64_MAX;
    if (call->wait_ms > 0)
        return MS(call->wait_ms);
    return MS((call->max_retries + 1) * w->plan.call_timeout_ms +
              call->max_retries * hf__span_to_ms(call->retry_interval));
}

static void draw_limits(world *w, sim_actor *a, hf__call *call)
{
    call->retry_interval = hf__span_ms(draw_between(w, 10, 100));
    switch (a->final ? 0 : draw(w, 5)) {
    case 0:
        call->wait_ms = -1;
        break;
    case 1:
        call->max_retries = draw_between(w, 0, 5);
        break;
    default:
        call->wait_ms = draw_between(w, 1, 1500);
        break;
    }
}

static void actor_acquire(world *w, int index, int number)
{
    sim_client *c = &w->clients[index];
    sim_actor *a = &c->actors[number];
    hf__identity who = {.client_id = c->config.client_id,
                        .host = "sim",
                        .pid = (uint64_t)index,
                        .thread = (uint64_t)number,
                        .number = ++c->numbers};
    a->lock = (int)draw(w, LOCKS);
    a->lease_ms = draw_between(w, w->plan.lease_min_ms, w->plan.lease_max_ms);
    a->was_invalid = false;
    hf__call call = {.kind = HF__CALL_ACQUIRE};
    draw_limits(w, a, &call);
    const char *name = lock_names[a->lock];
    call.hold = hf__hold_new(&who, "", 0, name, strlen(name), hf__span_ms(a->lease_ms));
    hf__slice value = hf__hold_value(call.hold);
    snprintf(a->value, sizeof(a->value), "%.*s", (int)value.length, value.bytes);
    check_remember_value(w, a->value);
    a->state = ACTOR_ACQUIRES;
    world_log(w, "client %d.%d: acquire %s lease %lld wait %lld as %s", index, number, name,
              (long long)a->lease_ms, (long long)call.wait_ms, strchr(a->value, ':'));
    begin_call(w, index, number, call, acquire_bound_ns(w, &call));
}

/* Reads the register, and later writes it if the hold is valid then: what a lock is for. */
static void actor_write(world *w, int index, int number)
{
    sim_client *c = &w->clients[index];
    sim_actor *a = &c->actors[number];
    protected_register *reg = &w->registers[a->lock];
    hf__instant now = {client_clock_ns(c, w->now_ns)};
    if (hf__hold_remaining(a->hold, now).ns == 0)
        return;
    reg->value = a->read_value + 1;
    reg->acknowledged++;
}

static void actor_release(world *w, int index, int number)
{
    sim_client *c = &w->clients[index];
    sim_actor *a = &c->actors[number];
    hf_hold *hold = a->hold;
    actor_write(w, index, number);
    check_beliefs(w);
    check_belief_over(w, index, number);
    a->hold = NULL;
    a->state = ACTOR_RELEASES;
    if (draw(w, 3) > 0) {
        begin_call(w, index, number, (hf__call){.kind = HF__CALL_RELEASE, .hold = hold},
                   MS(w->plan.call_timeout_ms));
        return;
    }
    hf__event event = {.kind = HF__EVENT_LET_GO, .hold = hold};
    client_step(w, index, &event);
    world_log(w, "client %d.%d: let go: %s", index, number, hf_status_name(event.status));
    a->state = ACTOR_THINKS;
    schedule_actor(w, index, number, MS(draw_between(w, 0, 60)));
}

static void actor_work(world *w, int index, int number)
{
    sim_client *c = &w->clients[index];
    sim_actor *a = &c->actors[number];
    hf__instant now = {client_clock_ns(c, w->now_ns)};
    hf__span left = hf__hold_remaining(a->hold, now);
    if (a->steps_left-- <= 0 || (left.ns == 0 && draw(w, 2) == 0)) {
        actor_release(w, index, number);
    } else if (draw(w, 4) == 0) {
        int64_t lease_ms = draw_between(w, w->plan.lease_min_ms, w->plan.lease_max_ms);
        a->lease_ms = lease_ms > a->lease_ms ? lease_ms : a->lease_ms;
        a->state = ACTOR_EXTENDS;
        hf__call call = {.kind = HF__CALL_EXTEND, .hold = a->hold, .lease = hf__span_ms(lease_ms)};
        begin_call(w, index, number, call, left.ns);
    } else {
        schedule_actor(w, index, number, MS(draw_between(w, 1, 150)));
    }
}

static void actor_go_on(world *w, int index, int number)
{
    sim_actor *a = &w->clients[index].actors[number];
    if (a->state == ACTOR_THINKS && (!w->healing || a->final) && !w->finished)
        actor_acquire(w, index, number);
    else if (a->state == ACTOR_WORKS)
        actor_work(w, index, number);
    else if (a->state == ACTOR_ACQUIRES && !a->call.done) {
        world_log(w, "client %d.%d: cancel", index, number);
        client_step(w, index, &(hf__event){.kind = HF__EVENT_CANCEL, .call = &a->call});
    }
}

static void acquired(world *w, int index, int number)
{
    sim_actor *a = &w->clients[index].actors[number];
    a->hold = a->call.hold;
    a->granted_ns = a->last_valid_ns = w->now_ns;
    a->read_value = w->registers[a->lock].value;
    a->steps_left = (int)draw_between(w, 0, 4);
    a->state = ACTOR_WORKS;
    schedule_actor(w, index, number, MS(draw_between(w, 0, 80)));
    if (fault_happens(w, FAULT_PAUSE))
        client_pause(w, index, MS(draw_between(w, 1, 2 * w->plan.lease_max_ms)), false);
}

static void actor_call_done(world *w, int index, int number)
{
    sim_actor *a = &w->clients[index].actors[number];
    hf_status status = a->call.error.status;
    static const char *const kinds[] = {"acquire", "release", "extend", "close"};
    world_log(w, "client %d.%d: %s %s %s: %s", index, number, kinds[a->call.kind],
              strchr(a->value, ':'), hf_status_name(status), a->call.error.text);
    check_call(w, index, number);
    if (a->call.kind == HF__CALL_ACQUIRE && status == HF_OK) {
        acquired(w, index, number);
    } else if (a->call.kind == HF__CALL_EXTEND) {
        a->state = ACTOR_WORKS;
        schedule_actor(w, index, number, MS(draw_between(w, 0, 100)));
    } else if (a->final && (a->call.kind == HF__CALL_RELEASE)) {
        a->state = ACTOR_DONE;
    } else {
        a->state = ACTOR_THINKS;
        schedule_actor(w, index, number, MS(draw_between(w, 0, 60)));
    }
}

/* ---- Life ---- */

void client_start(world *w, int index)
{
    sim_client *c = &w->clients[index];
    uint64_t generation = c->generation + 1;
    *c = (sim_client){.alive = true, .generation = generation, .wakes_ns = INT64_MAX};
    bool fast = w->plan.beyond && w->plan.chance[FAULT_CLOCK_RATE] > 0;
    w->stats.faults[FAULT_CLOCK_RATE] += fast;
    c->rate_ppm = fast ? draw_between(w, -50000, 50000) : draw_between(w, -4500, 4500);
    c->clock_base_ns = MS(draw_between(w, 1000, 1000000));
    c->config = (hf__config){.server = &w->url,
                             .connect_timeout = hf__span_ms(w->plan.connect_timeout_ms),
                             .reply_timeout = hf__span_ms(w->plan.reply_timeout_ms),
                             .call_timeout = hf__span_ms(w->plan.call_timeout_ms),
                             .links = w->plan.links,
                             .seed = draw(w, UINT64_MAX)};
    snprintf(c->config.client_id, sizeof(c->config.client_id), "%016llx%016llx",
             (unsigned long long)index, (unsigned long long)generation);
    c->core = hf__core_new(&c->config);
    world_log(w, "client %d: starts", index);
    for (int i = 0; i < w->plan.actors; i++)
        schedule_actor(w, index, i, MS(draw_between(w, 0, 50)));
}

void client_free(sim_client *c)
{
    if (c->core == NULL)
        return;
    hf__core_free(c->core);
    c->core = NULL;
    c->alive = false;
    for (int i = 0; i < ACTORS_MAX; i++)
        if (c->actors[i].hold != NULL)
            hf__hold_abandon(c->actors[i].hold);
}

void client_kill(world *w, int index)
{
    sim_client *c = &w->clients[index];
    world_log(w, "client %d: killed", index);
    for (int link = 0; link < c->config.links; link++)
        net_close(w, index, link);
    check_beliefs(w);
    for (int i = 0; i < w->plan.actors; i++)
        if (c->actors[i].hold != NULL)
            check_belief_over(w, index, i);
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
    c->paused_since_ns = w->now_ns;
    c->resumes_ns = w->now_ns + length_ns;
    world_log(w, "client %d: %s for %lld ms", index, suspend ? "suspended" : "paused",
              (long long)(length_ns / 1000000));
    world_schedule(w,
                   (sim_event){.kind = EVENT_RESUME, .index = index, .generation = c->generation},
                   length_ns);
}

static void resume(world *w, int index)
{
    sim_client *c = &w->clients[index];
    int64_t passed_ns = w->now_ns - c->paused_since_ns;
    c->paused_total_ns += passed_ns;
    if (c->suspended)
        c->suspended_total_ns += passed_ns;
    c->paused = c->suspended = false;
    world_log(w, "client %d: goes on", index);
    check_beliefs(w); /* the application may look before the library does */
}

void client_handle(world *w, const sim_event *event)
{
    sim_client *c = &w->clients[event->index];
    if (event->kind == EVENT_START) {
        if (!c->alive && c->generation == event->generation)
            client_start(w, event->index);
        return;
    }
    uint64_t generation = event->kind == EVENT_ACTOR ? event->generation >> 32 : event->generation;
    if (!c->alive || c->generation != generation)
        return;
    if (event->kind == EVENT_WAKE && event->at_ns != c->wakes_ns)
        return; /* an earlier one was scheduled after it */
    if (event->kind == EVENT_RESUME) {
        if (c->paused && w->now_ns >= c->resumes_ns)
            resume(w, event->index);
    } else if (c->paused) {
        sim_event again = *event;
        world_schedule(w, again, c->resumes_ns - w->now_ns);
        if (event->kind == EVENT_WAKE)
            c->wakes_ns = c->resumes_ns;
    } else if (event->kind == EVENT_WAKE) {
        c->wakes_ns = INT64_MAX;
        hf__instant now = {client_clock_ns(c, w->now_ns)};
        if (!hf__before(now, hf__core_wake(c->core)))
            client_step(w, event->index, &(hf__event){.kind = HF__EVENT_TICK});
        else
            schedule_wake(w, event->index); /* its timer has moved, or the clock is a bit behind */
    } else if ((uint32_t)event->generation == (uint32_t)c->actors[event->actor].generation) {
        actor_go_on(w, event->index, event->actor);
    }
}

void client_finish_round(world *w)
{
    for (int i = 0; i < w->plan.clients; i++) {
        for (int n = 0; w->clients[i].alive && n < w->plan.actors; n++) {
            sim_actor *a = &w->clients[i].actors[n];
            a->final = true;
            if (a->state == ACTOR_THINKS)
                schedule_actor(w, i, n, MS(draw_between(w, 0, 20)));
        }
    }
}

bool client_all_done(const world *w)
{
    for (int i = 0; i < w->plan.clients; i++)
        for (int n = 0; w->clients[i].alive && n < w->plan.actors; n++)
            if (w->clients[i].actors[n].state != ACTOR_DONE)
                return false;
    return true;
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
