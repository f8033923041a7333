/* SPDX-License-Identifier: MIT */
/* Servers: each a model of a Redis server with a clock of its own, which may be wrong, run a little
 * too fast, and jump; and what it has of a lock, seen from inside. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "quorum.h"

const char *const lock_names[LOCKS] = {"x", "{x}", "2", "3", "4", "5", "6", "7"};
const char *const owner_names[OWNERS] = {"trace:1"};

#define EPOCH_US INT64_C(1700000000000000)

int64_t node_error_us(const node *n)
{
    return n->offset_us + n->jumped_us + n->world->run.now_ns / 1000 * n->rate_ppm / 1000000;
}

int64_t node_now_us(const node *n)
{
    return EPOCH_US + n->world->run.now_ns / 1000 + node_error_us(n);
}

void node_set_clock(node *n)
{
    sim_server_set_time(n->server, node_now_us(n));
}

/* A server is long up when the world begins, unless all are new. */
void node_begin(world *w, int index)
{
    node *n = &w->nodes[index];
    *n = (node){.world = w, .index = index, .server = sim_server_new()};
    n->watch = (sim_watch){.published = order_published, .ran = order_ran, .arg = n};
    sim_server_set_watch(n->server, &n->watch);
    sim_server_set_change(n->server, active_mutant != NULL ? mutant_change_script : NULL);
    n->rate_ppm = draw_between(w, -4500, 4500);
    n->offset_us = draw_between(w, -200000, 200000);
    if (!w->plan.fresh)
        sim_server_set_time(n->server, node_now_us(n) - 1000 * (w->plan.max_lease_ms + 5000));
    node_set_clock(n);
}

void node_free(node *n)
{
    sim_image_free(n->old_copy);
    sim_server_free(n->server);
}

void node_restart(node *n, const sim_image *image, const char *with)
{
    world *w = n->world;
    world_log(w, "server %d: restarts with %s", n->index, with);
    net_break_all(n, draw(w, 5) > 0);
    node_set_clock(n);
    sim_server_restart(n->server, image);
    n->down = true;
    world_schedule(w, (sim_event){.kind = EVENT_NODE_UP, .node = n->index},
                   MS(draw_between(w, 1, 400)));
}

/* ---- What it has ---- */

/* The key says '<run id> <base>'. */
bool node_votes(node *n)
{
    node_set_clock(n);
    const char *voter = sim_server_get(n->server, "hf:run", 6);
    char kept[64];
    if (voter == NULL)
        return false;
    snprintf(kept, sizeof(kept), "run_id:%.*s\r\n", (int)strcspn(voter, " "), voter);
    const char *words[] = {"INFO", "server"};
    return strstr(sim_server_run(n->server, 2, words), kept) != NULL;
}

const char *node_held_as(node *n, int lock)
{
    return sim_server_get(n->server, lock_names[lock], strlen(lock_names[lock]));
}

bool has_label(const char *value, const char *label)
{
    const char *found = strrchr(value, '/');
    return found != NULL && strcmp(found + 1, label) == 0;
}

typedef struct search {
    const char *label;
    double now_ms;
    bool found;
} search;

static void see_holder(void *arg, const char *value, double until_ms)
{
    search *s = arg;
    s->found |= until_ms > s->now_ms && has_label(value, s->label);
}

bool node_has(node *n, const sim_wish *of, const char *label)
{
    const sim_lock *l = &n->world->locks[of->lock];
    node_set_clock(n);
    const char *held = node_held_as(n, of->lock);
    if (held == NULL || of->owner == NO_OWNER)
        return held != NULL && has_label(held, label);
    if (strcmp(held, owner_names[of->owner]) != 0)
        return false;
    search s = {.label = label, .now_ms = (double)(node_now_us(n) / 1000)};
    sim_server_members(n->server, l->side[SIDE_H], l->side_length[SIDE_H], see_holder, &s);
    return s.found;
}
