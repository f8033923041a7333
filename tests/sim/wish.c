/* SPDX-License-Identifier: MIT */
/* What actors ask for when they acquire: a thread's lock or an owner's, renewed by the watchdog or
 * not, with or without a limit and a warning, and for how long they are willing to wait. */
#include "core/core.h"
#include "sim.h"

/* One in so many asks for something that is not the usual. */
static uint64_t oddity(const world *w)
{
    return w->plan.crowd ? 16 : 4;
}

/* `bounded`: it must not wait for ever, because it may wait for itself. */
void wish_draw_limits(world *w, const sim_actor *a, bool bounded, hf__call *call)
{
    call->retry_interval = hf__span_ms(draw_between(w, 10, 100));
    uint64_t kind = a->final ? 0 : draw(w, oddity(w));
    if (kind == 0 && !bounded)
        call->wait_ms = -1;
    else if (kind == 1)
        call->max_retries = draw_between(w, 0, 5);
    else
        call->wait_ms = draw_between(w, 1, 1500);
    call->polls = call->max_retries > 0 || draw(w, oddity(w)) == 0;
    call->fair = draw(w, oddity(w)) == 0;
}

static void draw_watchdog(world *w, sim_wish *wish)
{
    if (draw(w, oddity(w)) == 0)
        return; /* renewed by hand, or not */
    int64_t shortest_ms = wish->lease_ms / (w->plan.load.away_ns > 0 ? 3 : 8); /* see load.c */
    wish->interval_ms = draw(w, oddity(w)) > 1
                            ? wish->lease_ms / 3
                            : draw_between(w, shortest_ms, wish->lease_ms - 10);
    int64_t left_ms = wish->lease_ms - wish->interval_ms;
    wish->timeout_ms = draw(w, 2) == 0 ? left_ms / 2 : draw_between(w, 1, left_ms);
    if (draw(w, oddity(w)) == 0)
        wish->max_hold_ms = draw_between(w, 100, 1500);
}

sim_wish wish_draw(world *w, const sim_actor *a)
{
    sim_wish wish = {
        .lock = (int)draw(w, (uint64_t)w->plan.locks), .owner = NO_OWNER, .party = a->party};
    if (draw(w, oddity(w)) == 0) {
        wish.owner = (int)draw(w, OWNERS);
        wish.party = (uint64_t)wish.owner + 1;
    }
    wish.reenters = draw(w, 10) > 0 && !w->plan.swarm;
    wish.lease_ms = draw(w, oddity(w)) > 0
                        ? w->plan.lease_usual_ms
                        : draw_between(w, w->plan.lease_min_ms, w->plan.lease_max_ms);
    draw_watchdog(w, &wish);
    if (draw(w, 5) == 0)
        wish.warn_ms = draw_between(w, 1, wish.lease_ms);
    return wish;
}

/* Never called by the core; the world looks at what there is to tell. */
static void listener(void *arg, const hf_event *event)
{
    (void)arg;
    (void)event;
}

/* As hf_attach() does it: the lease is that of the token, or another one, or as short as can be, by
 * those who only look. */
sim_wish wish_draw_attach(world *w, const sim_actor *a, const sim_token *token)
{
    sim_wish wish = wish_draw(w, a);
    wish.lock = token->wish.lock;
    wish.owner = token->wish.owner;
    wish.party = token->wish.party;
    wish.reenters = false;
    wish.lease_ms = draw(w, 3) > 0 ? token->lease_ms
                                   : draw_between(w, w->plan.lease_min_ms, w->plan.lease_max_ms);
    wish.interval_ms = wish.timeout_ms = wish.max_hold_ms = wish.warn_ms = 0;
    if (draw(w, 4) == 0)
        wish.lease_ms = HF_LEASE_MIN_MS;
    else
        draw_watchdog(w, &wish);
    return wish;
}

static hf__wish whole_wish(sim_client *c, int index, uint64_t thread, const sim_wish *wish)
{
    const char *owner = wish->owner != NO_OWNER ? owner_names[wish->owner] : "";
    return (hf__wish){.who = {.client_id = c->config.client_id,
                              .host = "sim",
                              .pid = (uint64_t)index,
                              .thread = thread,
                              .number = ++c->numbers},
                      .prefix = {"", 0},
                      .name = hf__slice_text(lock_names[wish->lock]),
                      .owner = hf__slice_text(owner),
                      .label = {"", 0},
                      .reenters = wish->reenters,
                      .lease = hf__span_ms(wish->lease_ms),
                      .renew_interval = hf__span_ms(wish->interval_ms),
                      .renew_timeout = hf__span_ms(wish->timeout_ms),
                      .max_hold = hf__span_ms(wish->max_hold_ms),
                      .warn = hf__span_ms(wish->warn_ms),
                      .on_event = listener};
}

hf_hold *wish_new_hold(world *w, int index, const sim_actor *a, const sim_wish *wish)
{
    hf__wish all = whole_wish(&w->clients[index], index, a->thread, wish);
    all.listens_later = w->plan.swarm;
    return hf__hold_new(&all);
}

/* What a token says, and no more: see src/api/token.c. */
hf_hold *wish_attach_hold(sim_client *c, int index, const sim_wish *wish, const sim_token *token)
{
    hf__wish all = whole_wish(c, index, ++c->threads, wish);
    all.value = hf__slice_text(token->value);
    all.late = token->late;
    all.fence = token->fence;
    all.fence_top = token->fence_top;
    all.lease_before = hf__span_ms(token->lease_ms);
    return hf__hold_new(&all);
}
