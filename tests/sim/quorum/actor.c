/* SPDX-License-Identifier: MIT */
/* Actors use locks as an application does, each a thread of its client: acquire, at once or with
 * patience, in the queue or by asking again, for itself or for an owner that others share; work in
 * steps while the hold is valid, extend now and then, sometimes acquire the same lock once more;
 * write the register; release, with or without waiting for it; and sometimes sit on a hold for
 * long, whether it is still theirs or not. */
#include <stdio.h>
#include <string.h>

#include "core/state.h"
#include "quorum.h"

static void schedule(world *w, int index, int number, int64_t delay_ns)
{
    client *c = &w->clients[index];
    sim_event e = {.kind = EVENT_ACTOR, .index = index, .actor = number};
    e.generation = ++c->actors[number].generation + (c->generation << 32);
    world_schedule(w, e, delay_ns);
}

void actor_begin(world *w, int index, int number)
{
    client *c = &w->clients[index];
    actor *a = &c->actors[number];
    a->party = OWNERS + ++w->parties; /* the owners are the first ones */
    a->thread = ++c->threads;
    a->state = ACTOR_THINKS;
    if (!w->plan.scripted)
        schedule(w, index, number, MS(draw_between(w, 0, 50)));
}

handle *actor_handle(client *c, int number)
{
    for (int i = 0; i < HANDLES_MAX; i++)
        if (c->handles[i].hold != NULL && c->handles[i].actor == number)
            return &c->handles[i];
    return NULL;
}

/* One of those that are free, behind so many. */
static handle *free_handle(const world *w, client *c, int spare)
{
    int room = w->plan.swarm ? HANDLES_MAX : USUAL_HANDLES;
    for (int i = 0; i < room; i++)
        if (c->handles[i].hold == NULL && spare-- == 0)
            return &c->handles[i];
    return NULL;
}

/* ---- Wishes ---- */

static sim_wish draw_wish(world *w, const actor *a)
{
    sim_wish wish = {.lock = (int)draw(w, (uint64_t)w->plan.locks), .owner = NO_OWNER};
    wish.party = a->party;
    if (!w->plan.all_fair && draw(w, 5) == 0) {
        wish.owner = (int)draw(w, OWNERS);
        wish.party = (uint64_t)wish.owner + 1;
    }
    wish.reenters = draw(w, 10) > 0 && !w->plan.swarm;
    wish.fair = w->plan.all_fair || draw(w, 4) == 0;
    wish.lease_ms = draw_between(w, w->plan.lease_min_ms, w->plan.lease_max_ms);
    if (draw(w, 4) > 0)
        wish.interval_ms = wish.lease_ms / 3;
    return wish;
}

/* `bounded`: it must not wait for ever, because it may wait for itself. */
static hf__call draw_limits(world *w, const actor *a, bool bounded)
{
    hf__call call = {.retry_interval = hf__span_ms(draw_between(w, 20, 100))};
    uint64_t way = a->final || w->plan.all_fair ? 0 : draw(w, 6);
    if (way == 0 && !bounded)
        call.wait_ms = -1;
    else if (way == 1)
        call.max_retries = draw_between(w, 0, 5); /* 0: once */
    else
        call.wait_ms = draw_between(w, 1, 3000);
    call.polls = call.max_retries > 0 || (!w->plan.all_fair && !a->final && draw(w, 5) == 0);
    return call;
}

static hf_hold *new_hold(client *c, int index, const actor *a, const sim_wish *wish)
{
    hf__wish all = {.who = {.client_id = c->config.client_id,
                            .host = "sim",
                            .pid = (uint64_t)index,
                            .thread = a->thread,
                            .number = c->numbers += HF__NUMBER_STEP},
                    .prefix = {"", 0},
                    .name = hf__slice_text(lock_names[wish->lock]),
                    .owner =
                        hf__slice_text(wish->owner != NO_OWNER ? owner_names[wish->owner] : ""),
                    .label = hf__slice_text(wish->label),
                    .reenters = wish->reenters,
                    .lease = hf__span_ms(wish->lease_ms),
                    .renew_interval = hf__span_ms(wish->interval_ms),
                    .renew_timeout = hf__span_ms(wish->lease_ms / 3)};
    return hf__hold_new(&all);
}

/* ---- Calls ---- */

static void begin_call(world *w, int index, int number, hf__call call, int64_t bound_ns)
{
    client *c = &w->clients[index];
    actor *a = &c->actors[number];
    a->call = call;
    a->bound_ns = bound_ns;
    a->call_began_ns = w->run.now_ns;
    a->paused_before_ns = c->paused_total_ns;
    client_step(w, index, &(hf__event){.kind = HF__EVENT_START, .call = &a->call});
}

/* Its pauses vary, so that those who split the votes do not meet again. */
static int64_t bound_of(const world *w, const hf__call *call)
{
    hf__call slowest = *call;
    slowest.retry_interval.ns += slowest.retry_interval.ns / 2;
    return acquire_bound_ns(&slowest, w->plan.call_timeout_ms);
}

void actor_acquire(world *w, int index, int number, sim_wish wish, hf__call call)
{
    client *c = &w->clients[index];
    actor *a = &c->actors[number];
    snprintf(wish.label, sizeof(wish.label), "w%d.%d.%llu", index, number,
             (unsigned long long)++w->labels);
    call.kind = HF__CALL_ACQUIRE;
    call.fair = wish.fair;
    call.hold = new_hold(c, index, a, &wish);
    a->subject = (handle){.wish = wish, .actor = number};
    a->state = ACTOR_ACQUIRES;
    a->queued = 0;
    a->queued_ns = 0;
    a->messages = 0;
    world_log(w, "client %d.%d: acquire %s%s%s lease %lld/%lld wait %lld retries %lld%s%s as %s",
              index, number, lock_names[wish.lock], wish.owner != NO_OWNER ? " for " : "",
              wish.owner != NO_OWNER ? owner_names[wish.owner] : "", (long long)wish.lease_ms,
              (long long)wish.interval_ms, (long long)call.wait_ms, (long long)call.max_retries,
              call.polls ? " polls" : "", call.fair ? " fair" : "", wish.label);
    fences_call_begins(w, a);
    begin_call(w, index, number, call, bound_of(w, &call));
}

/* An asynchronous acquire belongs to no thread. */
static void be_somebody_else(world *w, int index, actor *a)
{
    a->party = OWNERS + ++w->parties;
    a->thread = ++w->clients[index].threads;
}

static void acquire(world *w, int index, int number, const handle *held)
{
    actor *a = &w->clients[index].actors[number];
    if (w->plan.swarm)
        be_somebody_else(w, index, a);
    sim_wish wish = draw_wish(w, a);
    if (held != NULL) {
        wish.lock = held->wish.lock;
        wish.owner = held->wish.owner;
        wish.party = held->wish.party;
    }
    actor_acquire(w, index, number, wish, draw_limits(w, a, held != NULL));
}

static void goes_on(world *w, int index, int number)
{
    client *c = &w->clients[index];
    actor *a = &c->actors[number];
    a->state = actor_handle(c, number) != NULL ? ACTOR_WORKS : ACTOR_THINKS;
    if (a->final && a->state == ACTOR_THINKS && a->call.kind == HF__CALL_RELEASE)
        a->state = ACTOR_DONE;
    if (!w->plan.scripted)
        schedule(w, index, number, MS(draw_between(w, 0, 60)));
}

static void release(world *w, int index, int number, handle *h)
{
    client *c = &w->clients[index];
    actor *a = &c->actors[number];
    hf_hold *hold = h->hold;
    (void)fences_write(w, index, h);
    check_beliefs(w);
    h->hold = NULL;
    a->subject = *h;
    a->state = ACTOR_RELEASES;
    if (draw(w, 3) > 0 || a->final) {
        begin_call(w, index, number, (hf__call){.kind = HF__CALL_RELEASE, .hold = hold},
                   MS(w->plan.call_timeout_ms));
        return;
    }
    hf__event e = {.kind = HF__EVENT_LET_GO, .hold = hold};
    client_step(w, index, &e);
    world_log(w, "client %d.%d: let go %s: %s", index, number, h->wish.label,
              hf_status_name(e.status));
    goes_on(w, index, number);
}

static void extend(world *w, int index, int number, const handle *h)
{
    actor *a = &w->clients[index].actors[number];
    int64_t lease_ms = draw_between(w, w->plan.lease_min_ms, w->plan.lease_max_ms);
    a->subject = *h;
    a->state = ACTOR_EXTENDS;
    begin_call(w, index, number,
               (hf__call){.kind = HF__CALL_EXTEND, .hold = h->hold, .lease = hf__span_ms(lease_ms)},
               INT64_MAX);
}

/* ---- Work ---- */

static int64_t work_ns(world *w)
{
    return MS(1) / 10 * draw_between(w, 1, 10 * w->plan.work_ms);
}

static void work(world *w, int index, int number)
{
    client *c = &w->clients[index];
    actor *a = &c->actors[number];
    handle *h = actor_handle(c, number);
    bool valid = check_valid(w, c, h);
    bool more = !w->resting && !a->final;
    if (a->steps_left-- <= 0 || !more || (!valid && draw(w, 2) == 0))
        release(w, index, number, h);
    else if (draw(w, 8) == 0 && !w->plan.swarm && free_handle(w, c, USUAL_ACTORS) != NULL)
        acquire(w, index, number, h);
    else if (draw(w, 6) == 0)
        extend(w, index, number, h);
    else if (w->plan.kind != KIND_QUIET && draw(w, 12) == 0)
        schedule(w, index, number, MS(draw_between(w, 500, 6000))); /* sits on it */
    else
        schedule(w, index, number, work_ns(w));
}

void actor_go_on(world *w, int index, int number)
{
    client *c = &w->clients[index];
    actor *a = &c->actors[number];
    if (a->state == ACTOR_THINKS && (!w->resting || a->final) && !w->finished) {
        if (free_handle(w, c, (w->plan.swarm ? ACTORS_MAX : USUAL_ACTORS) - 1) == NULL)
            schedule(w, index, number, MS(draw_between(w, 1, 100)));
        else
            acquire(w, index, number, NULL);
    } else if (a->state == ACTOR_WORKS) {
        work(w, index, number);
    } else if (a->state == ACTOR_ACQUIRES && !a->call.done) {
        world_log(w, "client %d.%d: cancel", index, number);
        client_step(w, index, &(hf__event){.kind = HF__EVENT_CANCEL, .call = &a->call});
    }
}

static void acquired(world *w, int index, int number)
{
    client *c = &w->clients[index];
    actor *a = &c->actors[number];
    handle *h = free_handle(w, c, 0);
    char label[LABEL_SIZE];
    *h = a->subject;
    h->hold = a->call.hold;
    h->nested = h->hold->outer != NULL;
    h->real = h->nested ? h->hold->outer : h->hold;
    h->moved = check_label(h, label) && strcmp(label, h->wish.label) != 0;
    h->granted_ns = w->run.now_ns;
    h->fence = hf__hold_fence(h->hold);
    world_log(w, "client %d.%d: %s has fence %llu and %lld ms", index, number, h->wish.label,
              (unsigned long long)h->fence,
              (long long)hf__span_to_ms(hf__hold_remaining(h->hold, client_now(w, c))));
    heal_granted(h);
    order_granted(w, index, number);
    fences_granted(w, index, a, h);
    sights_granted(w, h);
    a->steps_left = (int)draw_between(w, 0, 4);
    a->state = ACTOR_WORKS;
    if (!w->plan.scripted)
        schedule(w, index, number, work_ns(w));
    if (fault_happens(w, FAULT_PAUSE))
        client_pause(w, index, MS(draw_between(w, 1, 2 * w->plan.lease_max_ms)));
}

void actor_call_done(world *w, int index, int number)
{
    static const char *const kinds[] = {"acquire", "release", "extend"};
    client *c = &w->clients[index];
    actor *a = &c->actors[number];
    hf_status status = a->call.error.status;
    world_log(w, "client %d.%d: %s %s %s: %s", index, number, kinds[a->call.kind],
              a->subject.wish.label, hf_status_name(status), a->call.error.text);
    check_call(w, index, number);
    if (a->call.kind == HF__CALL_ACQUIRE && status == HF_OK)
        acquired(w, index, number);
    else
        goes_on(w, index, number);
}

/* ---- The end ---- */

bool actor_all_rest(const world *w)
{
    for (int i = 0; i < w->plan.clients; i++) {
        for (int n = 0; n < w->plan.actors; n++)
            if (w->clients[i].alive && w->clients[i].actors[n].state != ACTOR_THINKS)
                return false;
        if (!w->clients[i].alive)
            return false; /* it is about to be started */
    }
    return true;
}

void actor_name_late(world *w, actor_state state, const char *when)
{
    static const char *const does[] = {"thinks",     "waits for a lock", "has a lock",
                                       "extends it", "releases it",      "is done"};
    for (int i = 0; i < w->plan.clients && w->run.failure[0] == '\0'; i++)
        for (int n = 0; w->clients[i].alive && n < w->plan.actors; n++)
            if (w->clients[i].actors[n].state != state)
                world_fail(w, "%s, client %d.%d still %s (%s)", when, i, n,
                           does[w->clients[i].actors[n].state],
                           w->clients[i].actors[n].subject.wish.label);
}

void actor_finish_round(world *w)
{
    w->resting = false;
    for (int i = 0; i < w->plan.clients; i++) {
        for (int n = 0; w->clients[i].alive && n < w->plan.actors; n++) {
            w->clients[i].actors[n].final = true;
            schedule(w, i, n, MS(draw_between(w, 0, 20)));
        }
    }
}

bool actor_all_done(const world *w)
{
    for (int i = 0; i < w->plan.clients; i++)
        for (int n = 0; w->clients[i].alive && n < w->plan.actors; n++)
            if (w->clients[i].actors[n].state != ACTOR_DONE)
                return false;
    return true;
}
