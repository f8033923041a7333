/* SPDX-License-Identifier: MIT */
/* Ids on a quorum. Some clients reserve blocks of them beside their locks, as the library does:
 * take the lock of the name, ask all servers with its fence what they know, choose, tell them to
 * keep it, and give the lock back. Between any two steps the client may be paused, cut off or
 * killed, and it never looks whether its lock is still its own.
 *
 * No two blocks that were given out have an id in common, and who begins after another one was
 * given his gets larger ids. This holds in all worlds, whatever clocks do and though two may have
 * the lock, for as long as no server forgets. Once one does, it holds as long as what
 * holdfast_ids.h takes for granted:
 *   - clocks were never more than max_skew_s apart, at no two moments
 *   - a server that forgets does so more than max_skew_s + 1 seconds after the last jump
 * In a run that breaks this nothing is checked from there on, but counted. */
#include "core/ids.h"

#include <stdio.h>
#include <string.h>

#include "quorum.h"

static const hf__slice ids_name = {"order", 5};

static hf__ids_config configuration(const world *w)
{
    return (hf__ids_config){.name = ids_name, .epoch_s = IDS_EPOCH_S, .skew_s = w->plan.ids_skew_s};
}

static void schedule(world *w, int index, int64_t delay_ns)
{
    const client *c = &w->clients[index];
    if (!w->plan.scripted)
        world_schedule(
            w, (sim_event){.kind = EVENT_RESERVER, .index = index, .generation = c->generation},
            delay_ns);
}

static void enter(world *w, int index, reserver_stage stage, int64_t delay_ns)
{
    w->clients[index].reserver.stage = stage;
    schedule(w, index, delay_ns);
}

void ids_begin(world *w, int index)
{
    if (w->plan.ids)
        enter(w, index, RESERVER_IDLE, MS(draw_between(w, 0, 300)));
}

/* ---- What is taken for granted ---- */

static void note_clock(world *w, int64_t error_us)
{
    sim_ids *ids = &w->ids;
    ids->clock_low_us = error_us < ids->clock_low_us ? error_us : ids->clock_low_us;
    ids->clock_high_us = error_us > ids->clock_high_us ? error_us : ids->clock_high_us;
}

static void note_clocks(world *w)
{
    for (int i = 0; i < w->plan.nodes; i++)
        note_clock(w, node_error_us(&w->nodes[i]));
}

void ids_clock_moved(node *n)
{
    note_clock(n->world, node_error_us(n));
}

void ids_forgotten(node *n)
{
    sim_ids *ids = &n->world->ids;
    int64_t since_ns = n->world->run.now_ns - ids->jumped_ns;
    ids->forgot = true;
    ids->hasty |= ids->jumps > 0 && since_ns <= MS(1000 * (n->world->plan.ids_skew_s + 1));
}

static bool is_promised(world *w)
{
    const sim_ids *ids = &w->ids;
    note_clocks(w);
    bool apart = ids->clock_high_us - ids->clock_low_us > 1000000 * w->plan.ids_skew_s;
    return !ids->forgot || (!apart && !ids->hasty);
}

/* ---- What is checked ---- */

static void check(world *w, const sim_reservation *mine)
{
    bool promised = is_promised(w);
    w->stats.ids_unpromised += !promised;
    for (int i = 0; i < w->ids.count; i++) {
        const sim_reservation *other = &w->ids.given[i];
        int64_t end = other->block.first + other->block.count;
        bool common =
            mine->block.first < end && other->block.first < mine->block.first + mine->block.count;
        bool backwards = other->given_ns < mine->began_ns && end > mine->block.first;
        w->stats.ids_twice += common;
        if (promised && (common || backwards))
            world_fail(w, "ids: client %d gets %lld+%lld with fence %llu, %s client %d's %lld+%lld",
                       mine->client, (long long)mine->block.first, (long long)mine->block.count,
                       (unsigned long long)mine->fence, common ? "in common with" : "behind",
                       other->client, (long long)other->block.first, (long long)other->block.count);
    }
}

static void give(world *w, int index)
{
    reserver *r = &w->clients[index].reserver;
    sim_reservation mine = {.client = index,
                            .fence = r->fence,
                            .block = r->choice.block,
                            .began_ns = r->began_ns,
                            .given_ns = w->run.now_ns};
    world_log(w, "client %d: ids %lld.%u, %lld of them", index,
              (long long)hf__ids_part(mine.block.first), hf__ids_sequence(mine.block.first),
              (long long)mine.block.count);
    check(w, &mine);
    r->seen = mine.block.first + mine.block.count;
    r->given++;
    w->stats.ids_given++;
    if (w->ids.count < IDS_GIVEN_MAX)
        w->ids.given[w->ids.count++] = mine;
}

/* ---- Steps ---- */

static void start(world *w, int index, hf__call call, reserver_stage stage)
{
    reserver *r = &w->clients[index].reserver;
    r->stage = stage;
    r->call = call;
    client_step(w, index, &(hf__event){.kind = HF__EVENT_START, .call = &r->call});
}

static hf_hold *new_hold(world *w, int index)
{
    client *c = &w->clients[index];
    char name[64], label[LABEL_SIZE];
    size_t length = hf__ids_lock_name(name, ids_name);
    snprintf(label, sizeof(label), "ids%d.%llu", index, (unsigned long long)++w->labels);
    int64_t lease_ms = draw_between(w, w->plan.lease_min_ms, w->plan.lease_max_ms);
    bool renewed = !w->plan.scripted && draw(w, 2) == 0;
    hf__wish wish = {.who = {.client_id = c->config.client_id,
                             .host = "sim",
                             .pid = (uint64_t)index,
                             .thread = ++c->threads,
                             .number = c->numbers += HF__NUMBER_STEP},
                     .name = {name, length},
                     .label = hf__slice_text(label),
                     .lease = hf__span_ms(lease_ms),
                     .renew_interval = hf__span_ms(renewed ? lease_ms / 3 : 0),
                     .renew_timeout = hf__span_ms(lease_ms / 3)};
    return hf__hold_new(&wish);
}

static void acquire(world *w, int index)
{
    reserver *r = &w->clients[index].reserver;
    r->began_ns = w->run.now_ns;
    start(w, index,
          (hf__call){.kind = HF__CALL_ACQUIRE,
                     .hold = new_hold(w, index),
                     .wait_ms = w->plan.scripted ? 3000 : draw_between(w, 0, 1000),
                     .fair = draw(w, 2) == 0},
          RESERVER_ACQUIRES);
}

static void ask(world *w, int index, hf__query *query, reserver_stage stage)
{
    reserver *r = &w->clients[index].reserver;
    memset(r->said, 0, sizeof(r->said));
    r->answer = (hf__answer){.by_server = r->said};
    start(w, index, (hf__call){.kind = HF__CALL_QUERY, .query = query, .answer = &r->answer},
          stage);
}

static void let_go(world *w, int index)
{
    reserver *r = &w->clients[index].reserver;
    hf__event e = {.kind = HF__EVENT_LET_GO, .hold = r->hold};
    r->hold = NULL;
    client_step(w, index, &e);
    enter(w, index, RESERVER_IDLE, MS(draw_between(w, 1, 1000)));
}

void ids_go_on(world *w, int index)
{
    reserver *r = &w->clients[index].reserver;
    hf__ids_config config = configuration(w);
    if (r->stage == RESERVER_IDLE && !w->resting && !w->finished)
        acquire(w, index);
    else if (r->stage == RESERVER_HOLDS)
        ask(w, index, hf__ids_ask_votes(&config, r->fence), RESERVER_ASKS);
    else if (r->stage == RESERVER_CHOSE)
        ask(w, index, hf__ids_keep(&config, r->fence, &r->choice), RESERVER_KEEPS);
    else if (r->stage == RESERVER_ENDS)
        let_go(w, index);
}

/* In stories: what was asked, or said about a block, is asked or said once more. */
void ids_repeat(world *w, int index, const hf__ids_choice *choice)
{
    reserver *r = &w->clients[index].reserver;
    hf__ids_config config = configuration(w);
    r->repeats = r->stage;
    ask(w, index,
        choice != NULL ? hf__ids_keep(&config, r->fence, choice)
                       : hf__ids_ask_votes(&config, r->fence),
        RESERVER_REPEATS);
}

/* ---- Answers ---- */

/* How many ids: seldom so many that a second has no room for two such blocks, and then only where
 * nobody forgets, for ids must not run ahead of time by themselves. */
static int64_t draw_count(world *w)
{
    bool forgets = w->plan.scripted || w->plan.chance[FAULT_RESTART_EMPTY] > 0 ||
                   w->plan.chance[FAULT_RESTART_OLD] > 0;
    return draw(w, 8) == 0 && !forgets ? INT64_C(3000000000) : draw_between(w, 1, 100);
}

static void note_jump(world *w, const hf__numbers *said)
{
    int knowing = 0;
    for (int i = 0; i < w->plan.nodes; i++)
        knowing += said[i].count > 0 && said[i].number[0] == 1;
    if (knowing >= w->plan.quorum)
        return;
    w->stats.ids_jumps++;
    w->ids.jumps++;
    w->ids.jumped_ns = w->run.now_ns;
}

static hf_status take_answers(world *w, int index, hf_error *error)
{
    reserver *r = &w->clients[index].reserver;
    hf__ids_config config = configuration(w);
    if (r->stage == RESERVER_KEEPS)
        return hf__ids_keep_outcome(&config, r->said, w->plan.nodes, error);
    hf_status status =
        hf__ids_choose(&config, r->said, w->plan.nodes, r->seen, draw_count(w), &r->choice, error);
    if (status == HF_OK)
        note_jump(w, r->said);
    return status;
}

static reserver_stage next_stage(world *w, int index, hf_status status)
{
    reserver *r = &w->clients[index].reserver;
    if (r->stage == RESERVER_ACQUIRES)
        return status == HF_OK ? RESERVER_HOLDS : RESERVER_IDLE;
    if (status != HF_OK || r->stage == RESERVER_KEEPS)
        return RESERVER_ENDS;
    return RESERVER_CHOSE;
}

/* A minority hides its run_id; it decides when another server has failed for good as well. */
static bool may_be(const world *w, hf_status status)
{
    return (status == HF_EUNSAFE && w->gaps.in_run) || status == HF_OK || status == HF_EBUSY ||
           status == HF_EUNKNOWN || status == HF_EUNAVAILABLE || status == HF_ENOMEM ||
           status == HF_ECLOSED;
}

void ids_call_done(world *w, int index)
{
    static const char *const did[] = {"", "acquire", "", "ask", "", "keep", ""};
    reserver *r = &w->clients[index].reserver;
    hf_error error = r->call.error;
    hf_status status = error.status;
    if (r->stage == RESERVER_REPEATS) {
        r->stage = r->repeats;
        return;
    }
    if (r->stage == RESERVER_ACQUIRES && status == HF_OK) {
        r->hold = r->call.hold;
        r->fence = hf__hold_fence(r->hold);
    } else if (status == HF_OK) {
        status = take_answers(w, index, &error);
    }
    world_log(w, "client %d: ids: %s with fence %llu: %s: %s", index, did[r->stage],
              (unsigned long long)r->fence, hf_status_name(status), error.text);
    if (!may_be(w, status))
        world_fail(w, "client %d: ids: %s: %s", index, hf_status_name(status), error.text);
    if (r->stage == RESERVER_KEEPS && status == HF_OK)
        give(w, index);
    w->stats.ids_outdated += r->stage != RESERVER_ACQUIRES && status == HF_EBUSY;
    enter(w, index, next_stage(w, index, status), MS(1) / 10 * draw_between(w, 0, 30));
    if (r->stage != RESERVER_IDLE && fault_happens(w, FAULT_PAUSE))
        client_pause(w, index, MS(draw_between(w, 1, 2 * w->plan.lease_max_ms)));
}

bool ids_all_rest(const world *w)
{
    for (int i = 0; i < w->plan.clients; i++)
        if (w->clients[i].alive && w->clients[i].reserver.stage != RESERVER_IDLE)
            return false;
    return true;
}
