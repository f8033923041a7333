/* SPDX-License-Identifier: MIT */
/* What must be true, asked after every step of anybody.
 *
 * In runs within the assumptions a hold that is valid by its own deadline is also there at the
 * server, with its value, at that very moment of true time. That is stronger than "no two at once",
 * and finds a bug long before two holders meet. In all runs: a hold that has once been invalid
 * stays so, no call outlasts its bound, and nobody is called a holder who never was one. */
#include <stdio.h>
#include <string.h>

#include "core/state.h"
#include "sim.h"

/* ---- Values ---- */

static uint64_t hash_of(const char *text)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (; *text != '\0'; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    return hash | 1;
}

/* The place of a value in the table, or a free one. */
static uint64_t *place_of(world *w, const char *value)
{
    uint64_t hash = hash_of(value);
    size_t at = hash % VALUES_MAX;
    while (w->values_seen[at] != 0 && w->values_seen[at] != hash)
        at = (at + 1) % VALUES_MAX;
    return &w->values_seen[at];
}

void check_remember_value(world *w, const char *value)
{
    *place_of(w, value) = hash_of(value);
}

/* ---- Beliefs ---- */

static bool believes(world *w, sim_client *c, sim_actor *a)
{
    hf__instant now = {client_clock_ns(c, w->now_ns)};
    return a->hold != NULL && hf__hold_remaining(a->hold, now).ns > 0;
}

static void check_belief(world *w, int index, int number)
{
    sim_client *c = &w->clients[index];
    sim_actor *a = &c->actors[number];
    if (a->hold == NULL)
        return;
    if (!believes(w, c, a)) {
        a->was_invalid = true;
        return;
    }
    a->last_valid_ns = w->now_ns;
    if (a->was_invalid)
        world_fail(w, "client %d.%d: its hold of %s is valid again", index, number,
                   lock_names[a->lock]);
    if (w->plan.beyond)
        return;
    const char *name = lock_names[a->lock];
    const char *held = sim_server_get(w->server, name, strlen(name));
    if (held == NULL || strcmp(held, a->value) != 0)
        world_fail(w, "client %d.%d believes to hold %s as %s, but the server has %s", index,
                   number, name, a->value, held != NULL ? held : "nothing");
}

void check_beliefs(world *w)
{
    server_set_clock(w);
    for (int i = 0; i < w->plan.clients; i++)
        for (int n = 0; w->clients[i].alive && n < w->plan.actors; n++)
            check_belief(w, i, n);
}

void check_belief_over(world *w, int index, int number)
{
    const sim_actor *a = &w->clients[index].actors[number];
    belief over = {.lock = (uint32_t)a->lock,
                   .client = (uint32_t)index,
                   .hold = w->orders,
                   .from_ns = a->granted_ns,
                   .until_ns = a->last_valid_ns};
    if (!history_add(w->history, &over))
        world_fail(w, "out of memory");
}

static void count_overlaps(world *w, const sim_actor *mine)
{
    for (int i = 0; i < w->plan.clients; i++) {
        for (int n = 0; w->clients[i].alive && n < w->plan.actors; n++) {
            sim_actor *a = &w->clients[i].actors[n];
            if (a != mine && a->lock == mine->lock && believes(w, &w->clients[i], a))
                w->stats.overlaps++;
        }
    }
}

/* ---- Calls ---- */

static void check_bound(world *w, int index, int number)
{
    const sim_client *c = &w->clients[index];
    const sim_actor *a = &c->actors[number];
    if (a->bound_ns == INT64_MAX)
        return;
    int64_t took_ns = w->now_ns - a->call_began_ns - (c->paused_total_ns - a->paused_before_ns);
    int64_t allowed_ns = a->bound_ns + a->bound_ns / 15 + MS(2); /* its clock may be slow */
    if (took_ns > allowed_ns)
        world_fail(w, "client %d.%d: a call took %lld ms instead of %lld", index, number,
                   (long long)(took_ns / 1000000), (long long)(a->bound_ns / 1000000));
}

static void check_refusal(world *w, const sim_actor *a)
{
    static const char start[] = "held by ";
    const char *text = a->call.error.text;
    w->stats.refusals++;
    if (strstr(text, a->value) != NULL)
        world_fail(w, "refused because of itself: %s", text);
    if (strncmp(text, start, sizeof(start) - 1) != 0 || *place_of(w, text + sizeof(start) - 1) == 0)
        world_fail(w, "refused because of a holder that never was: %s", text);
}

static void check_acquire(world *w, const sim_actor *a, hf_status status)
{
    if (status == HF_OK) {
        w->stats.grants++;
        w->stats.contended += a->call.round_trip.ns > 0 && w->now_ns - a->call_began_ns > MS(10);
        if (w->plan.beyond)
            count_overlaps(w, a);
    } else if (status == HF_EBUSY) {
        check_refusal(w, a);
    } else if (status == HF_EUNKNOWN) {
        w->stats.unknowns++;
    }
}

/* Nobody asks for more than the longest lease, so nothing may last longer at the server. */
static void check_extend(world *w, const sim_actor *a)
{
    const char *words[] = {"PTTL", lock_names[a->lock]};
    long long left_ms = 0;
    w->stats.extends++;
    server_set_clock(w);
    sscanf(sim_server_run(w->server, 2, words), "%lld", &left_ms);
    if (!w->plan.beyond && left_ms > w->plan.lease_max_ms)
        world_fail(w, "%s lasts %lld ms, longer than any lease", lock_names[a->lock], left_ms);
}

static void check_release(world *w, int index, int number)
{
    const sim_actor *a = &w->clients[index].actors[number];
    const char *name = lock_names[a->lock];
    const char *held = sim_server_get(w->server, name, strlen(name));
    if (!w->plan.beyond && held != NULL && strcmp(held, a->value) == 0)
        world_fail(w, "client %d.%d: released %s, but the server still has it", index, number,
                   name);
}

void check_call(world *w, int index, int number)
{
    const sim_actor *a = &w->clients[index].actors[number];
    hf_status status = a->call.error.status;
    check_bound(w, index, number);
    if (status == HF_EINTERNAL || status == HF_EINVAL || status == HF_EDENIED)
        world_fail(w, "client %d.%d: %s: %s", index, number, hf_status_name(status),
                   a->call.error.text);
    w->stats.losses += status == HF_ELOST;
    if (a->call.kind == HF__CALL_ACQUIRE)
        check_acquire(w, a, status);
    else if (a->call.kind == HF__CALL_EXTEND && status == HF_OK)
        check_extend(w, a);
    else if (a->call.kind == HF__CALL_RELEASE && status == HF_OK)
        check_release(w, index, number);
}

/* ---- Locks that are held for nobody ---- */

static bool core_knows(const sim_client *c, const char *value)
{
    const hf__list *holds = &c->core->holds;
    for (hf__node *n = hf__list_first(holds); n != NULL; n = hf__list_next(holds, n)) {
        hf__slice own = hf__hold_value(HF__ENTRY(n, hf_hold, node));
        if (own.length == strlen(value) && memcmp(own.bytes, value, own.length) == 0)
            return true;
    }
    return false;
}

/* Whoever has a lock at the server knows of it, or has been killed. A server that stood still for
 * longer than a lease may hear of a hold when its client has long given up releasing it. */
void check_leaks(world *w)
{
    bool excused = w->plan.beyond || w->plan.very_late || w->plan.chance[FAULT_NODE_PAUSE] > 0 ||
                   (w->gave_up_ns > 0 && w->now_ns - w->gave_up_ns < MS(w->plan.lease_min_ms));
    server_set_clock(w);
    for (int lock = 0; lock < LOCKS && !excused; lock++) {
        const char *name = lock_names[lock];
        const char *held = sim_server_get(w->server, name, strlen(name));
        for (int i = 0; held != NULL && i < w->plan.clients; i++) {
            const sim_client *c = &w->clients[i];
            size_t id = strlen(c->config.client_id);
            if (c->alive && strncmp(held, c->config.client_id, id) == 0 && !core_knows(c, held))
                world_fail(w, "%s is held as %s for nobody", name, held);
        }
    }
}

/* ---- The end ---- */

static void see_key(void *arg, const char *key, size_t length, const char *type,
                    int64_t remaining_ms)
{
    world *w = arg;
    (void)type;
    if (remaining_ms < 0)
        world_fail(w, "%.*s is left for ever", (int)length, key);
    if (!w->plan.beyond && strncmp(key, "hf:", 3) != 0)
        world_fail(w, "%.*s is left with %lld ms, and nobody holds it", (int)length, key,
                   (long long)remaining_ms);
}

void check_end(world *w)
{
    server_set_clock(w);
    sim_server_keys(w->server, see_key, w);
    belief first, second;
    if (!w->plan.beyond && history_find_overlap(w->history, &first, &second))
        world_fail(w, "clients %u and %u believed to hold %s at once", first.client, second.client,
                   lock_names[first.lock]);
    for (int i = 0; i < LOCKS; i++)
        w->stats.lost_writes += w->registers[i].acknowledged - w->registers[i].value;
    for (int i = 0; i < w->plan.clients; i++)
        if (w->clients[i].alive && w->clients[i].close_call.error.status != HF_OK)
            world_fail(w, "client %d: closing: %s", i, w->clients[i].close_call.error.text);
}
