/* SPDX-License-Identifier: MIT */
/* Stories of votes that are given back for an earlier ticket. Two begin alike: a has B and C; c
 * waits for them, and then b, who has got A, where c comes too late. c asks for it.
 *
 * inquiry: b has not heard yet that A is its own. It gives way all the same, so that c, who cannot
 * reach C, has A and B as soon as a is done.
 *
 * late: what b says to A then is late by seconds. b says it again on another connection, asks for A
 * again, and has A and B in the end. What comes late is about the vote that b had at first: c, who
 * has got C meanwhile, does not get A by it.
 *
 * split: A falls silent when it has been asked; a has B, and b has C. Both are patient, and yet
 * neither waits for A: one gives way.
 *
 * deaf: the same, where all servers deny messages: nobody is told of an earlier ticket, and yet
 * neither keeps what he has for ever. */
#include "scenario.h"

/* a has B and C. c takes the earlier ticket, but what it says to A comes there when b has A. */
static handle *contend(world *w)
{
    static const bool only_a[NODES_MAX] = {[0] = true};
    sim_wish renewed = story_wish(w, 1);
    renewed.interval_ms = renewed.lease_ms / 3;
    nemesis_part(w, 0, only_a, MS(60000), true);
    handle *a = story_acquire(w, 0, 0, 0);
    net_hold_back(w, 2, 0, true, MS(100));
    actor_acquire(w, 2, 0, story_wish(w, 2), (hf__call){.wait_ms = -1});
    world_run_until(w, w->run.now_ns + MS(20), NULL);
    actor_acquire(w, 1, 0, renewed, (hf__call){.wait_ms = -1});
    world_run_until(w, w->run.now_ns + MS(20), NULL);
    const sim_wish *wish = &w->clients[1].actors[0].subject.wish;
    EXPECT(w, a != NULL && node_has(&w->nodes[0], wish, wish->label));
    return a;
}

/* ---- inquiry ---- */

void tell_inquiry(world *w)
{
    static const bool only_c[NODES_MAX] = {[2] = true};
    story_begin(w);
    net_hold_back(w, 1, 0, false, MS(150));
    handle *a = contend(w);
    nemesis_part(w, 2, only_c, MS(60000), true);
    world_run_until(w, w->run.now_ns + MS(80), NULL);
    if (w->run.failure[0] != '\0')
        return;
    story_let_go(w, 0, a);
    handle *c = actor_handle(&w->clients[2], 0);
    EXPECT(w, c != NULL); /* and has not had to ask again */
    EXPECT(w, actor_handle(&w->clients[1], 0) == NULL);
    if (c == NULL)
        return;
    story_let_go(w, 2, c);
    EXPECT(w, actor_handle(&w->clients[1], 0) != NULL);
    story_ends(w, "inquiry: a grant that was not heard of yet was given back");
}

/* ---- late ---- */

/* b gives A back for c, and asks for it again: by a copy that is late, and by one that is not. */
static handle *give_way(world *w)
{
    static const bool only_c[NODES_MAX] = {[2] = true};
    story_begin(w);
    handle *a = contend(w);
    net_hold_back(w, 1, 0, true, MS(6000));
    world_run_until(w, w->run.now_ns + MS(80), NULL);
    nemesis_part(w, 1, only_c, MS(60000), true);
    if (w->run.failure[0] != '\0')
        return NULL;
    story_let_go(w, 0, a);
    world_run_until(w, w->run.now_ns + MS(1000), NULL);
    handle *c = actor_handle(&w->clients[2], 0);
    EXPECT(w, c != NULL);
    if (c != NULL)
        story_let_go(w, 2, c);
    return actor_handle(&w->clients[1], 0);
}

void tell_late(world *w)
{
    handle *b = give_way(w);
    EXPECT(w, b != NULL);
    if (b == NULL)
        return;
    actor_acquire(w, 2, 0, story_wish(w, 2), (hf__call){.wait_ms = -1});
    world_run_until(w, w->run.now_ns + MS(6000), NULL);
    EXPECT(w, actor_handle(&w->clients[2], 0) == NULL);
    EXPECT(w, check_valid(w, &w->clients[1], b));
    if (w->run.failure[0] != '\0')
        return;
    story_let_go(w, 1, b);
    EXPECT(w, actor_handle(&w->clients[2], 0) != NULL);
    story_ends(w, "late: what gave a vote back came late, and did not give back the next one");
}

/* ---- split ---- */

static void deny_messages(world *w, int index)
{
    for (int i = 0; i < w->plan.nodes; i++) {
        int wire = net_subscription(w, index, i);
        permits_set_messages(&w->clients[index].permits[i], SIM_NO_CHANNELS);
        if (wire >= 0)
            net_break(&w->nodes[i], wire);
    }
}

/* Whether one of two who have a vote each has got the lock by then; and when he lets go, the other
 * one. */
static void split_votes(world *w, int64_t within_ms)
{
    w->nodes[0].stalled_until_ns = w->run.now_ns + MS(60000);
    net_hold_back(w, 0, 2, true, MS(20));
    net_hold_back(w, 1, 1, true, MS(20));
    for (int i = 0; i < 2; i++)
        actor_acquire(w, i, 0, story_wish(w, i),
                      (hf__call){.wait_ms = -1, .retry_interval = hf__span_ms(100)});
    world_run_until(w, w->run.now_ns + MS(15), NULL);
    for (int i = 0; i < 2; i++) {
        const sim_wish *wish = &w->clients[i].actors[0].subject.wish;
        EXPECT(w, node_has(&w->nodes[1 + i], wish, wish->label));
    }
    world_run_until(w, w->run.now_ns + MS(within_ms), NULL);
    int first = actor_handle(&w->clients[0], 0) != NULL ? 0 : 1;
    handle *h = actor_handle(&w->clients[first], 0);
    EXPECT(w, h != NULL);
    if (h == NULL)
        return;
    story_let_go(w, first, h);
    world_run_until(w, w->run.now_ns + MS(within_ms), NULL);
    EXPECT(w, actor_handle(&w->clients[1 - first], 0) != NULL);
}

void tell_split(world *w)
{
    w->plan.reply_timeout_ms = w->plan.call_timeout_ms = 60000;
    story_begin(w);
    split_votes(w, 200);
    story_ends(w, "split: of two who had a vote each, one gave way, and the silent server mattered "
                  "to neither");
}

/* ---- deaf ---- */

void tell_deaf(world *w)
{
    w->plan.reply_timeout_ms = w->plan.call_timeout_ms = 60000;
    w->plan.permissions = true;
    story_begin(w);
    for (int i = 0; i < 2; i++)
        deny_messages(w, i);
    world_run_until(w, w->run.now_ns + MS(500), NULL);
    split_votes(w, 3000);
    story_ends(w, "deaf: of two who had a vote each, and could not be told of the other, one gave "
                  "way");
}
