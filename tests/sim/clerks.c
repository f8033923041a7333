/* SPDX-License-Identifier: MIT */
/* Clerks: threads of an application that have no locks, but fetch ids (ids.c) or buy and sell
 * (shop.c). One does one thing after the other, each a call of its client; it dies with it. */
#include "sim.h"

static void schedule(world *w, int index, int number, int64_t delay_ns)
{
    sim_client *c = &w->clients[index];
    sim_event event = {.kind = EVENT_CLERK, .index = index, .actor = number};
    event.generation = c->generation;
    world_schedule(w, event, delay_ns);
}

void clerks_begin(world *w, int index)
{
    for (int i = 0; i < w->plan.id_clerks + w->plan.stock_clerks; i++) {
        w->clients[index].clerks[i].sells = i >= w->plan.id_clerks;
        schedule(w, index, i, MS(draw_between(w, 0, 50)));
    }
}

void clerk_go_on(world *w, int index, int number)
{
    if (w->finished)
        return;
    if (w->resting || w->lull_until_ns > w->run.now_ns)
        schedule(w, index, number, MS(draw_between(w, 50, 150)));
    else if (w->clients[index].clerks[number].sells)
        shop_act(w, index, number);
    else
        ids_ask(w, index, number);
}

void clerk_start(world *w, int index, int number, hf__query *query)
{
    sim_client *c = &w->clients[index];
    sim_clerk *k = &c->clerks[number];
    k->call = (hf__call){.kind = HF__CALL_QUERY, .query = query, .answer = &k->answer};
    k->busy = true;
    k->began_ns = w->run.now_ns;
    k->paused_before_ns = c->paused_total_ns;
    client_step(w, index, &(hf__event){.kind = HF__EVENT_START, .call = &k->call});
}

static void pause(world *w, int index, int number)
{
    schedule(w, index, number, MS(1) / 10 * draw_between(w, 10, 10 * w->plan.clerk_ms));
}

void clerk_done(world *w, int index, int number)
{
    sim_clerk *k = &w->clients[index].clerks[number];
    hf_status status = k->call.error.status;
    k->busy = false;
    check_bound(w, index, k->began_ns, k->paused_before_ns, MS(w->plan.call_timeout_ms));
    if (status == HF_EINTERNAL || status == HF_EINVAL || status == HF_EDENIED ||
        status == HF_ESERVER)
        world_fail(w, "client %d, clerk %d: %s: %s", index, number, hf_status_name(status),
                   k->call.error.text);
    if (k->sells)
        shop_answered(w, index, number);
    else
        ids_answered(w, index, number);
    if (!k->busy)
        pause(w, index, number);
}

void clerks_free(sim_client *c)
{
    for (int i = 0; i < CLERKS_MAX; i++) {
        hf__buffer_free(&c->clerks[i].answer.value);
        c->clerks[i].busy = false;
    }
}
