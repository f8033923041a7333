/* SPDX-License-Identifier: MIT */
/* Stories of ids. All have three servers A, B and C, and a, who has chosen a block, stands still
 * before it says so, and wakes up when others have had the lock after it. It never gets its block.
 *
 * ids: b has chosen one meanwhile, and gets it. Then the same with C, which has forgotten b's when
 * a wakes up: a's word comes to A, which b could not reach, and to C, which does not know any more
 * that it has promised b not to listen. Whoever asks A and C next must get beyond b's block, too.
 *
 * ids-late: what a has asked comes to C when C has forgotten what b had it keep, so that C takes a
 * for the newest; but what a has chosen is older than that.
 *
 * ids-repeat: a reserves two blocks under one lock. What it says to C for the first one comes once
 * more, behind the second one, and takes nothing back.
 *
 * ids-restart: nobody is late here. A is restarted with its data; B and C know enough, and the time
 * does not jump. Then B is: it jumps, once, and not again. */
#include "scenario.h"

static const bool only_a[NODES_MAX] = {[0] = true}, only_b[NODES_MAX] = {[1] = true};
static const bool only_c[NODES_MAX] = {[2] = true}, nobody[NODES_MAX] = {false};

static void part(world *w, int index, const bool *nodes)
{
    nemesis_part(w, index, nodes, MS(60000), true);
}

/* Until the step is done in which it is, or all of them. */
static void go_on(world *w, int index, reserver_stage until)
{
    const reserver *r = &w->clients[index].reserver;
    int64_t bound_ns = w->run.now_ns + MS(8000);
    do {
        ids_go_on(w, index);
        while ((r->stage == RESERVER_ACQUIRES || r->stage == RESERVER_ASKS ||
                r->stage == RESERVER_KEEPS) &&
               w->run.now_ns < bound_ns && w->run.failure[0] == '\0')
            world_run_until(w, w->run.now_ns + MS(1) / 10, NULL);
    } while (r->stage != until && w->run.now_ns < bound_ns && w->run.failure[0] == '\0');
    EXPECT(w, r->stage == until);
}

static void sleep_past_lease(world *w)
{
    world_run_until(w, w->run.now_ns + MS(w->plan.lease_max_ms + 500), NULL);
}

/* To the end, with one more block; checked as all are. */
static void reserve(world *w, int index)
{
    const reserver *r = &w->clients[index].reserver;
    int before = r->given;
    go_on(w, index, RESERVER_IDLE);
    EXPECT(w, r->given == before + 1);
}

/* All servers know the name, and have not jumped for long. Ids are ahead of the clocks, so that all
 * blocks are of one second. */
static void begin(world *w)
{
    w->plan.ids_skew_s = 1;
    story_begin(w);
    w->clients[0].reserver.seen =
        hf__ids_make(node_now_us(&w->nodes[0]) / 1000000 - IDS_EPOCH_S + 60, 1);
    for (int i = 0; i < 4; i++)
        reserve(w, i % w->plan.clients);
    world_run_until(w, w->run.now_ns + MS(10000), NULL);
}

static void give_up(world *w, int index)
{
    const reserver *r = &w->clients[index].reserver;
    int before = r->given;
    go_on(w, index, RESERVER_ENDS);
    EXPECT(w, r->given == before);
    go_on(w, index, RESERVER_IDLE);
}

static void repeat(world *w, int index, const hf__ids_choice *choice)
{
    ids_repeat(w, index, choice);
    world_run_until(w, w->run.now_ns + MS(1000), NULL);
    EXPECT(w, w->clients[index].reserver.stage != RESERVER_REPEATS);
}

/* ---- ids ---- */

static void forget_c(world *w)
{
    nemesis_forget(&w->nodes[2], NULL, "nothing");
    world_run_until(w, w->run.now_ns + MS(1000), NULL);
}

/* Until a server votes again, for which somebody must want it. */
static void await_vote(world *w, int server)
{
    for (int64_t until_ns = w->run.now_ns + MS(4 * w->plan.max_lease_ms);
         w->run.now_ns < until_ns && w->run.failure[0] == '\0';) {
        handle *h = story_acquire(w, 0, 0, 3000);
        EXPECT(w, h != NULL);
        if (h != NULL)
            story_let_go(w, 0, h);
        world_run_until(w, w->run.now_ns + MS(300), NULL);
    }
    EXPECT(w, node_votes(&w->nodes[server]));
}

/* Until C does; then a does not reach B. */
static void rest(world *w)
{
    part(w, 0, nobody);
    part(w, 1, nobody);
    await_vote(w, 2);
    part(w, 0, only_b);
}

void tell_ids(world *w)
{
    begin(w);
    go_on(w, 0, RESERVER_CHOSE);
    sleep_past_lease(w);
    go_on(w, 1, RESERVER_CHOSE);
    give_up(w, 0);
    reserve(w, 1);

    go_on(w, 0, RESERVER_CHOSE);
    sleep_past_lease(w);
    part(w, 1, only_a);
    reserve(w, 1);
    forget_c(w);
    part(w, 0, only_b);
    give_up(w, 0);
    rest(w);
    reserve(w, 0);
    part(w, 0, nobody);
    part(w, 1, nobody);
    reserve(w, 1);
    story_ends(w, "ids: who woke up late got no ids, and a server that forgot gave none again");
}

/* ---- ids-late ---- */

void tell_ids_late(world *w)
{
    begin(w);
    w->plan.kind = KIND_WITHIN; /* who is cut off keeps others waiting */
    go_on(w, 0, RESERVER_HOLDS);
    part(w, 0, only_c);
    go_on(w, 0, RESERVER_CHOSE);
    sleep_past_lease(w);
    part(w, 1, only_a);
    reserve(w, 1);
    forget_c(w);
    part(w, 0, only_b);
    repeat(w, 0, NULL);
    give_up(w, 0);
    rest(w);
    reserve(w, 0);
    story_ends(w, "ids-late: a server that was asked too late did not count");
}

/* ---- ids-repeat ---- */

void tell_ids_repeat(world *w)
{
    begin(w);
    go_on(w, 0, RESERVER_CHOSE);
    hf__ids_choice first = w->clients[0].reserver.choice;
    go_on(w, 0, RESERVER_ENDS);
    w->clients[0].reserver.stage = RESERVER_HOLDS;
    go_on(w, 0, RESERVER_CHOSE);
    go_on(w, 0, RESERVER_ENDS);
    repeat(w, 0, &first);
    go_on(w, 0, RESERVER_IDLE);
    reserve(w, 1);
    story_ends(w, "ids-repeat: what came twice took nothing back");
}

/* ---- ids-restart ---- */

/* How often it has jumped when some blocks were reserved after it. */
static int64_t restart(world *w, int server)
{
    sim_image *image = sim_server_copy(w->nodes[server].server);
    int64_t before = w->stats.ids_jumps;
    node_restart(&w->nodes[server], image, "its data");
    sim_image_free(image);
    await_vote(w, server);
    for (int i = 0; i < 6; i++)
        reserve(w, i % 2);
    return w->stats.ids_jumps - before;
}

void tell_ids_restart(world *w)
{
    begin(w);
    EXPECT(w, restart(w, 0) == 0);
    EXPECT(w, restart(w, 1) == 1);
    story_ends(w, "ids-restart: time jumped when no majority knew it all, and only once");
}
