/* SPDX-License-Identifier: MIT */
/* Ids. A clerk reserves a block and tells the highest id that it has seen, as a generator of the
 * library does, which now and then is a new one; what it is answered goes into a book.
 *
 * In all runs: nobody gets a block below what he has seen himself, and nothing is reserved over a
 * connection on which the server did not tell its run_id. Unless the server has
 * forgotten something beyond the assumptions of holdfast_ids.h: no two blocks overlap, and who asks
 * after somebody was answered gets a larger one. Clocks that are set on a running server, and
 * servers that are followed by others with all they knew, are no excuse.
 *
 * What is beyond the assumptions is computed from what happened to the server, not from what it
 * says: it has forgotten, and its clock is behind the highest that servers had by more than the
 * skew; or behind where the clock of another one was when that one began to jump ahead, counting
 * two seconds more for each that did so just before that. (The library promises less: that one's
 * clock cannot have been behind if more time than the skew is over.) When it has passed all that
 * was ever told, the promise holds again for those who ask from then on. */
#include <stdio.h>
#include <string.h>

#include "core/ids.h"
#include "core/name.h"
#include "lua/scripts.h"
#include "sim.h"

enum { EPOCH_S = 1600000000, SLACK_US = 100000 /* they may have reserved some */ };

static const char *const names[IDS_NAMES] = {"order", "x"};

static hf__ids_config config_of(const world *w, int name)
{
    return (hf__ids_config){
        .name = hf__slice_text(names[name]), .epoch_s = EPOCH_S, .skew_s = w->plan.skew_s};
}

void ids_begin(world *w)
{
    for (int i = 0; i < IDS_NAMES; i++) {
        sim_ids *ids = &w->ids[i];
        size_t length = strlen(names[i]);
        ids->key_length = hf__side_key(ids->key, HF__SLICE(""), 'n', hf__slice_text(names[i]),
                                       hf__slot(names[i], length));
    }
    w->lowest_offset_us = w->highest_offset_us = w->server_offset_us;
}

/* ---- At the server ---- */

static const char *kept(world *w, const sim_ids *ids)
{
    const char *text = sim_server_get(w->server, ids->key, ids->key_length);
    return text != NULL ? text : "";
}

static bool is_beyond(const world *w, const sim_ids *ids)
{
    return w->highest_offset_us - w->server_offset_us > w->plan.skew_s * 1000000 ||
           server_now_us(w) - ids->ahead_us <= SLACK_US;
}

/* Whoever is being served may be given anything, and hear of it when the excuse is over. */
static void excuse(world *w, int name)
{
    w->ids[name].excused = true;
    w->stats.ids_excused++;
    for (int i = 0; i < w->plan.clients; i++)
        for (int j = 0; j < w->plan.id_clerks; j++) {
            sim_clerk *k = &w->clients[i].clerks[j];
            k->excused = k->excused || k->name == name;
        }
}

/* The first block by a process, or since the server has forgotten. */
static void note_jump(world *w, int name)
{
    sim_ids *ids = &w->ids[name];
    w->stats.ids_jumps++;
    if (ids->forgot && !ids->excused && is_beyond(w, ids))
        excuse(w, name);
    w->stats.ids_forgot += ids->forgot && !ids->excused;
    ids->forgot = false;
    ids->ahead_us += 2000000;
    if (ids->ahead_us < server_now_us(w))
        ids->ahead_us = server_now_us(w);
}

static int64_t position(const char *text)
{
    long long part = 0, sequence = 0;
    return sscanf(text, "%*s %*s %lld %lld", &part, &sequence) == 2 ? hf__ids_make(part, sequence)
                                                                    : 0;
}

void ids_ran(world *w)
{
    for (int i = 0; i < IDS_NAMES; i++) {
        sim_ids *ids = &w->ids[i];
        const char *text = kept(w, ids);
        if (strcmp(text, ids->kept) == 0)
            continue;
        size_t run = strcspn(text, " ");
        if (sim_server_ran_unnamed(w->server))
            world_fail(w, "ids %s are reserved by one who was told no run_id", names[i]);
        if (ids->forgot || strncmp(text, ids->kept, run) != 0)
            note_jump(w, i);
        else if (ids->excused && position(ids->kept) >= ids->highest)
            ids->excused = false;
        snprintf(ids->kept, sizeof(ids->kept), "%s", text);
        world_log(w, "server: ids %s stand at %s", names[i], text + run);
    }
}

void ids_lost(world *w)
{
    for (int i = 0; i < IDS_NAMES; i++) {
        sim_ids *ids = &w->ids[i];
        const char *text = kept(w, ids);
        if (strcmp(text, ids->kept) != 0)
            ids->forgot = true;
        snprintf(ids->kept, sizeof(ids->kept), "%s", text);
    }
}

/* ---- Asking ---- */

void ids_ask(world *w, int index, int number)
{
    sim_clerk *k = &w->clients[index].clerks[number];
    k->task = TASK_IDS;
    k->name = (int)draw(w, IDS_NAMES);
    k->count = draw_between(w, 1, draw(w, 4) == 0 ? 100000 : 10);
    if (w->plan.many_ids)
        k->count = draw_between(w, 1, INT64_C(1) << 31);
    if (k->count % 4 == 3) /* somebody who has just opened the name has seen nothing */
        k->ids_seen[k->name] = 0;
    k->seen = k->ids_seen[k->name];
    k->told_before = w->ids[k->name].highest;
    k->excused = w->ids[k->name].excused;
    hf__ids_config config = config_of(w, k->name);
    clerk_start(w, index, number, hf__ids_ask(&config, k->seen, k->count));
}

/* ---- What was told ---- */

static void check_overlap(world *w, int index, const sim_ids *ids, sim_block block)
{
    for (int i = ids->count - 1; i >= 0; i--)
        if (block.first < ids->blocks[i].end && ids->blocks[i].first < block.end)
            world_fail(w, "client %d: ids %lld to %lld were handed out before", index,
                       (long long)block.first, (long long)block.end);
}

static void check_block(world *w, int index, const sim_clerk *k, sim_block block)
{
    sim_ids *ids = &w->ids[k->name];
    if (block.first < k->seen)
        world_fail(w, "client %d: ids from %lld, and has seen %lld", index, (long long)block.first,
                   (long long)k->seen);
    if (!k->excused && block.first < ids->highest)
        check_overlap(w, index, ids, block);
    if (!k->excused && block.first < k->told_before)
        world_fail(w, "client %d: ids from %lld, after somebody had %lld", index,
                   (long long)block.first, (long long)k->told_before);
    ids->highest = block.end > ids->highest ? block.end : ids->highest;
    if (ids->count < BLOCKS_MAX)
        ids->blocks[ids->count++] = block;
}

void ids_answered(world *w, int index, int number)
{
    sim_clerk *k = &w->clients[index].clerks[number];
    hf__ids_config config = config_of(w, k->name);
    hf__ids_block got;
    hf_error error;
    if (k->call.error.status != HF_OK)
        return;
    hf_status status = hf__ids_ask_outcome(&config, &k->answer.numbers, k->count, &got, &error);
    w->stats.ids_refused += status == HF_EUNSAFE;
    if (status == HF_EUNSAFE && w->gaps.in_run)
        return;
    if (status != HF_OK) {
        world_fail(w, "client %d: no ids: %s", index, error.text);
        return;
    }
    sim_block block = {got.first, got.first + got.count};
    world_log(w, "client %d: ids %s %lld.%u, %lld of them", index, names[k->name],
              (long long)hf__ids_part(block.first), hf__ids_sequence(block.first),
              (long long)got.count);
    w->stats.ids_blocks++;
    check_block(w, index, k, block);
    if (k->ids_seen[k->name] < block.end)
        k->ids_seen[k->name] = block.end;
}
