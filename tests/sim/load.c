/* SPDX-License-Identifier: MIT */
/* See load.h. A client acquires locks that nobody else wants, many at once, keeps each for a while
 * with the watchdog renewing it, and gives it back. */
#include "load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "client_time.h"
#include "core/state.h"

enum {
    GROWS_MAX = 6000,       /* holds of a client that does not stop */
    GROWS_RENEWABLE = 1500, /* of which the server can renew so many in time */
    WORDS_OF_HOLD = 3,      /* in a call that renews many */
    ROUNDS_MAX = 20,        /* of renewals over one link within an interval, with reserve */
    TICK_MS = 20,
    REPLY_SLACK_DIVISOR = 8 /* of the timeout: clocks differ */
};

/* ---- What a seed draws ---- */

static int64_t between(uint64_t *random, int64_t low, int64_t high)
{
    return low + (int64_t)hf__random_below(random, (uint64_t)(high - low + 1));
}

/* From 0.2 to 20 ms, small ones as often as large ones; and renewals take half of the server's time
 * at most, also when it is slow. */
static void draw_waves(load_plan *p, uint64_t *random, int clients, int links)
{
    sim_capacity *c = &p->capacity;
    int64_t interval_ns = MS(p->lease_ms) / 3;
    c->slow = (int)between(random, 0, 3);
    c->phase_ns = MS(between(random, 200, 4000));
    int64_t most_ns = interval_ns / (ROUNDS_MAX * clients * links * (c->slow > 0 ? c->slow : 1));
    c->call_ns = MS(1) / 5 << hf__random_below(random, 7);
    c->call_ns += (int64_t)hf__random_below(random, (uint64_t)c->call_ns);
    c->call_ns = c->call_ns < most_ns ? c->call_ns : most_ns;
    p->wave = (int)between(random, 8, 300);
    p->calls = p->wave + (int)between(random, 0, 100);
    int64_t words = (int64_t)WORDS_OF_HOLD * p->calls * clients * (c->slow > 0 ? c->slow : 1);
    c->word_ns = (int64_t)hf__random_below(random, (uint64_t)(interval_ns / 4 / words));
}

/* A third of what the server can renew is added in each interval. */
static void draw_growth(load_plan *p, uint64_t *random)
{
    int64_t interval_ns = MS(p->lease_ms) / 3;
    p->capacity.call_ns = MS(1) / 10;
    p->capacity.word_ns = interval_ns / (WORDS_OF_HOLD * GROWS_RENEWABLE);
    p->calls = GROWS_MAX;
    p->wave = 1 + (int)(MS(TICK_MS) * GROWS_RENEWABLE / 3 / interval_ns);
    p->pause_ms = TICK_MS;
    p->wait_ms = between(random, 500, 4000);
    p->keep_ms = INT32_MAX;
}

/* The way there and back, twice, takes up to half of the interval; further away counts as slow. */
static void draw_distance(load_plan *p, uint64_t *random)
{
    p->away_ns = MS(p->lease_ms) / 3 * between(random, 5, 12) / 100;
    p->capacity.call_ns = MS(1) / 100;
    p->wave = (int)between(random, 8, 100);
    p->calls = p->wave + (int)between(random, 0, 100);
}

void load_draw(load_plan *p, uint64_t seed, int clients, int links, bool swarm)
{
    static const load_kind kinds[] = {LOAD_WAVES, LOAD_WAVES, LOAD_ROUGH};
    uint64_t random = seed * 0xa0761d6478bd642fu + 1;
    uint64_t which = hf__random_below(&random, 24);
    *p = (load_plan){.kind = which < 3 ? kinds[which] : LOAD_NONE};
    if (which == 3 && hf__random_below(&random, 2) == 0)
        p->kind = LOAD_GROWS;
    if (which == 4 && !swarm)
        p->kind = LOAD_FAR;
    if (p->kind == LOAD_NONE)
        return;
    p->lease_ms = between(&random, 1500, 5000);
    p->pause_ms = between(&random, 100, 3000);
    p->keep_ms = between(&random, 1, 4000);
    p->wait_ms = between(&random, 50, 4000);
    p->capacity.limited = true;
    if (p->kind == LOAD_GROWS)
        draw_growth(p, &random);
    else if (p->kind == LOAD_FAR)
        draw_distance(p, &random);
    else
        draw_waves(p, &random, clients, links);
}

bool load_keeps_all(const load_plan *p)
{
    return p->kind == LOAD_WAVES || p->kind == LOAD_GROWS || p->kind == LOAD_FAR;
}

bool load_keeps(const load_plan *p, const hf_hold *hold)
{
    const hf__watch *watch = &hold->watch;
    return load_keeps_all(p) && watch->max_hold.ns == 0 && watch->interval.ns > 0 &&
           watch->interval.ns <= hold->lease.ns / 3;
}

/* ---- Calls ---- */

typedef enum call_stage { CALL_FREE, CALL_ACQUIRES, CALL_HOLDS, CALL_RELEASES } call_stage;

struct load_call {
    call_stage stage;
    hf__call call;
    hf_hold *hold; /* in the hands of the application; NULL: none */
    int64_t began_ns, bound_ns, until_ns;
};

/* Never called by the core; it says whose a hold is. */
static void listener(void *arg, const hf_event *event)
{
    (void)arg;
    (void)event;
}

static hf_hold *new_hold(sim_load *l, int client, load_call *c)
{
    char name[48];
    int64_t lease_ms = l->plan->lease_ms;
    snprintf(name, sizeof(name), "load-%d-%llu", client, (unsigned long long)l->made);
    hf__wish wish = {.who = {.client_id = l->client_id,
                             .host = "sim",
                             .pid = (uint64_t)client,
                             .thread = LOAD_FIRST_NUMBER + l->made,
                             .number = LOAD_FIRST_NUMBER + HF__NUMBER_STEP * l->made},
                     .prefix = {"", 0},
                     .name = hf__slice_text(name),
                     .owner = {"", 0},
                     .label = {"", 0},
                     .lease = hf__span_ms(lease_ms),
                     .renew_interval = hf__span_ms(lease_ms / 3),
                     .renew_timeout = hf__span_ms(lease_ms / 3),
                     .on_event = listener,
                     .arg = c};
    l->made++;
    return hf__hold_new(&wish);
}

static void start(world *w, load_call *c, int client, hf__call call, int64_t bound_ns)
{
    c->call = call;
    c->began_ns = world_clockwork(w)->now_ns;
    c->bound_ns = bound_ns;
    client_step(w, client, &(hf__event){.kind = HF__EVENT_START, .call = &c->call});
}

static void acquire(world *w, sim_load *l, int client, load_call *c)
{
    hf__call call = {.kind = HF__CALL_ACQUIRE,
                     .hold = new_hold(l, client, c),
                     .retry_interval = hf__span_ms(50),
                     .wait_ms = draw_between(w, 0, l->plan->wait_ms)};
    int64_t call_timeout_ms = hf__span_to_ms(l->core->config.call_timeout);
    c->stage = CALL_ACQUIRES;
    start(w, c, client, call, acquire_bound_ns(&call, call_timeout_ms));
}

static void give_back(world *w, sim_load *l, int client, load_call *c)
{
    hf_hold *hold = c->hold;
    c->hold = NULL;
    l->held--;
    if (draw(w, 2) == 0) {
        c->stage = CALL_FREE;
        client_step(w, client, &(hf__event){.kind = HF__EVENT_LET_GO, .hold = hold});
    } else {
        c->stage = CALL_RELEASES;
        start(w, c, client, (hf__call){.kind = HF__CALL_RELEASE, .hold = hold},
              l->core->config.call_timeout.ns);
    }
}

static void check_bound(world *w, int client, const load_call *c)
{
    int64_t took_ns = world_clockwork(w)->now_ns - c->began_ns;
    if (took_ns > c->bound_ns + c->bound_ns / 15 + MS(2))
        world_fail(w, "client %d: under load, a call took %lld ms instead of %lld", client,
                   (long long)(took_ns / 1000000), (long long)(c->bound_ns / 1000000));
}

bool load_done(world *w, sim_load *l, int client, const hf__call *call)
{
    load_call *c = (load_call *)((char *)call - offsetof(load_call, call));
    if (l->calls == NULL || c < l->calls || c >= l->calls + l->plan->calls)
        return false;
    hf_status status = call->error.status;
    bool got = c->stage == CALL_ACQUIRES && status == HF_OK;
    if (status == HF_EINTERNAL || status == HF_EINVAL || status == HF_EDENIED ||
        status == HF_ESERVER || (status != HF_OK && call->error.text[0] == '\0'))
        world_fail(w, "client %d: under load, %s: %s", client, hf_status_name(status),
                   call->error.text);
    if (load_keeps_all(l->plan))
        check_bound(w, client, c);
    if (l->plan->kind == LOAD_FAR && strstr(call->error.text, "new locks wait") != NULL)
        world_fail(w, "client %d: far away, but idle: %s", client, call->error.text);
    c->stage = got ? CALL_HOLDS : CALL_FREE;
    c->hold = got ? call->hold : NULL;
    l->held += got;
    if (l->held > l->most_held)
        l->most_held = l->held;
    c->until_ns = world_clockwork(w)->now_ns + MS(draw_between(w, 0, l->plan->keep_ms));
    return true;
}

/* ---- Waves ---- */

static void go_on(world *w, sim_load *l, int client, load_call *c, int *begins)
{
    bool over = !world_takes_load(w);
    if (c->stage == CALL_HOLDS && (over || c->until_ns <= world_clockwork(w)->now_ns)) {
        if (!hf__core_is_telling(l->core, c->hold))
            give_back(w, l, client, c);
    } else if (c->stage == CALL_FREE && !over && *begins > 0) {
        acquire(w, l, client, c);
        --*begins;
    }
}

void load_go_on(world *w, sim_load *l, int client)
{
    bool begins =
        l->plan->pause_ms <= TICK_MS || draw(w, (uint64_t)(l->plan->pause_ms / TICK_MS)) == 0;
    int count = begins ? (int)draw_between(w, 1, l->plan->wave) : 0;
    if (count > TICK_MS)
        world_log(w, "client %d: a wave of %d calls", client, count);
    for (int i = 0; i < l->plan->calls; i++)
        go_on(w, l, client, &l->calls[i], &count);
    world_schedule_load(w, client, MS(TICK_MS));
}

/* A client that wants more and more is alone. */
void load_begin(world *w, sim_load *l, int client)
{
    const load_plan *p = l->plan;
    if (p->kind == LOAD_NONE || (p->kind == LOAD_GROWS && client > 0))
        return;
    world_log(w, "client %d: load of kind %d, waves of %d, calls of %lld us and %lld us a word",
              client, (int)p->kind, p->wave, (long long)(p->capacity.call_ns / 1000),
              (long long)(p->capacity.word_ns / 1000));
    l->calls = calloc((size_t)l->plan->calls, sizeof(load_call));
    if (l->calls == NULL)
        abort();
    world_schedule_load(w, client, MS(draw_between(w, 1, 500)));
}

void load_free(sim_load *l)
{
    for (int i = 0; l->calls != NULL && i < l->plan->calls; i++)
        if (l->calls[i].hold != NULL)
            hf__hold_abandon(l->calls[i].hold);
    free(l->calls);
    l->calls = NULL;
}

/* ---- Rules ---- */

bool load_told(world *w, sim_load *l, int client, const hf__tell *tell)
{
    if (tell->function != listener)
        return false;
    if (tell->event.state == HF_LOST && load_keeps_all(l->plan))
        world_fail(w, "client %d: under load, lost %.*s: %s", client,
                   (int)hf__hold_key(tell->hold).length, hf__hold_key(tell->hold).bytes,
                   tell->event.text);
    return true;
}

bool load_answered(const hf__core *core, int link)
{
    return core->links[link].unheard.ns == core->now.ns;
}

void load_closes(world *w, hf__core *core, int client, int link, int64_t heard_ns)
{
    int64_t timeout_ns = core->config.reply_timeout.ns;
    int64_t silent_ns = world_clockwork(w)->now_ns - heard_ns;
    if (!core->closing && !core->links[link].kind->subscribes &&
        strstr(core->links[link].trouble.text, "gave no answer") != NULL &&
        silent_ns < timeout_ns - timeout_ns / REPLY_SLACK_DIVISOR)
        world_fail(w, "client %d: link %d was given up after %lld ms of silence, not %lld", client,
                   link, (long long)(silent_ns / 1000000), (long long)(timeout_ns / 1000000));
}

static void check_link(world *w, const hf__link *link, int client)
{
    if (link->held_back.count > 0)
        world_fail(w, "client %d: after the load, %zu requests are held back", client,
                   link->held_back.count);
    if (hf__watch_lag(link).ns > 0 || link->server->behind)
        world_fail(w, "client %d: after the load, renewals are late", client);
}

void load_check_rest(world *w, const sim_load *l, int client, bool idle)
{
    int left = 0;
    if (l->calls == NULL)
        return;
    for (int i = 0; i < l->plan->calls; i++)
        left += l->calls[i].stage != CALL_FREE;
    world_log(w, "client %d: began %llu calls, and held at most %d locks", client,
              (unsigned long long)l->made, l->most_held);
    if (left > 0)
        world_fail(w, "client %d: after the load, %d calls have not ended", client, left);
    for (int i = 0; i < hf__core_links(l->core) && idle; i++)
        check_link(w, &l->core->links[i], client);
}
