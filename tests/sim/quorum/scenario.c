/* SPDX-License-Identifier: MIT */
/* Stories with a known end; those of give_way.c and ids_story.c are among them.
 *
 * jump: the counter-example to locks on a majority. Five servers A to E; a gets A, B and C while D
 * and E are out of its reach. As long as clocks are right, b, who reaches C, D and E, is refused.
 * Then C's clock jumps, its copy expires, and b gets C, D and E while a still believes in A, B and
 * C: exactly there two holds overlap. But b's fence is larger, and the register that has seen it
 * refuses a's late write.
 *
 * rolling: every server in turn is restarted without its memory, each when the one before has a
 * vote again, while a holds the lock: it never loses it, and b never gets it.
 *
 * floor: C's clock is an hour ahead, and a gets B and C with a fence from there, of which A does
 * not know. B forgets it. b, who cannot reach C, must not let B vote again by what it had read of C
 * before: with A and B it would get a smaller fence. When it reaches C again, all is well.
 *
 * unheld: B's clock is ahead, and a must make its fence known at A. A's copy has expired when that
 * comes: what A says to it is not a vote, and what a gets at last is what b, who reaches A and C,
 * does not get.
 *
 * pause: a stands still from the moment in which it has asked for the lock until the lease is over.
 * The answers, which it finds then, are worth nothing: b has it.
 *
 * contenders: ten clients that want one lock at the same moment get it one after the other, and how
 * many script calls that takes is shown. */
#include <stdio.h>
#include <string.h>

#include "scenario.h"

static bool silent;

static plan calm_plan(int nodes, int clients)
{
    return (plan){.kind = KIND_QUIET,
                  .nodes = nodes,
                  .quorum = nodes / 2 + 1,
                  .clients = clients,
                  .actors = 1,
                  .locks = 1,
                  .all_fair = true,
                  .scripted = true,
                  .links = 1,
                  .delay_ns = MS(1),
                  .lease_min_ms = 3000,
                  .lease_max_ms = 3000,
                  .max_lease_ms = 5000,
                  .connect_timeout_ms = 200,
                  .reply_timeout_ms = 200,
                  .call_timeout_ms = 400,
                  .fence_keep_ms = 3600000,
                  .work_ms = 10};
}

sim_wish story_wish(const world *w, int client_index)
{
    return (sim_wish){.owner = NO_OWNER,
                      .party = w->clients[client_index].actors[0].party,
                      .fair = true,
                      .lease_ms = w->plan.lease_max_ms};
}

static bool nobody_acquires(const world *w)
{
    for (int i = 0; i < w->plan.clients; i++)
        if (w->clients[i].actors[0].state == ACTOR_ACQUIRES)
            return false;
    return true;
}

handle *story_acquire(world *w, int index, int64_t interval_ms, int64_t wait_ms)
{
    sim_wish wanted = story_wish(w, index);
    wanted.interval_ms = interval_ms;
    actor_acquire(w, index, 0, wanted, (hf__call){.wait_ms = wait_ms});
    world_run_until(w, w->run.now_ns + MS(1000 + wait_ms), nobody_acquires);
    return actor_handle(&w->clients[index], 0);
}

void story_let_go(world *w, int index, handle *h)
{
    hf__event e = {.kind = HF__EVENT_LET_GO, .hold = h->hold};
    h->hold = NULL;
    client_step(w, index, &e);
    world_run_until(w, w->run.now_ns + MS(100), NULL);
}

void story_begin(world *w)
{
    for (int i = 0; i < w->plan.clients; i++) {
        client_start(w, i);
        handle *h = story_acquire(w, i, 0, 3000);
        EXPECT(w, h != NULL);
        if (h != NULL)
            story_let_go(w, i, h);
    }
}

void story_ends(const world *w, const char *how)
{
    if (!silent && w->run.seed == 1 && w->run.failure[0] == '\0')
        puts(how);
}

/* ---- jump ---- */

static void tell_jump(world *w, bool jumps)
{
    static const bool d_and_e[NODES_MAX] = {[3] = true, [4] = true};
    static const bool a_and_b[NODES_MAX] = {[0] = true, [1] = true};
    story_begin(w);
    nemesis_part(w, 0, d_and_e, MS(60000), true);
    nemesis_part(w, 1, a_and_b, MS(60000), true);
    handle *a = story_acquire(w, 0, 0, 0);
    EXPECT(w, a != NULL);
    EXPECT(w, story_acquire(w, 1, 0, 0) == NULL);
    if (a == NULL)
        return;
    if (jumps) {
        w->plan.kind = KIND_JUMPY; /* from here on only fences are promised */
        nemesis_jump(&w->nodes[2], 10000000);
    }
    handle *b = story_acquire(w, 1, 0, 0);
    EXPECT(w, check_valid(w, &w->clients[0], a));
    EXPECT(w, (b != NULL) == jumps);
    if (b == NULL)
        return;
    EXPECT(w, check_valid(w, &w->clients[1], b));
    EXPECT(w, w->stats.overlaps > 0);
    EXPECT(w, b->fence > a->fence);
    EXPECT(w, fences_write(w, 1, b));
    EXPECT(w, !fences_write(w, 0, a));
    fences_end(w);
    if (!silent)
        printf("jump: a and b overlap, with fences %llu and %llu; a's late write is refused\n",
               (unsigned long long)a->fence, (unsigned long long)b->fence);
}

/* ---- rolling ---- */

static void restart_one(world *w, int index, const handle *a)
{
    node *n = &w->nodes[index];
    nemesis_forget(n, NULL, "nothing");
    for (int64_t until_ns = w->run.now_ns + MS(2 * w->plan.max_lease_ms + 2000);
         w->run.now_ns < until_ns;) {
        world_run_until(w, w->run.now_ns + MS(300), NULL);
        nemesis_notice_votes(w);
        EXPECT(w, check_valid(w, &w->clients[0], a));
        EXPECT(w, story_acquire(w, 1, 0, 0) == NULL);
        if (w->run.failure[0] != '\0')
            return;
    }
    EXPECT(w, !n->forgot);
    EXPECT(w, node_has(n, &a->wish, a->wish.label)); /* it has been given a copy */
}

static void tell_rolling(world *w)
{
    story_begin(w);
    const handle *a = story_acquire(w, 0, w->plan.lease_max_ms / 3, 0);
    EXPECT(w, a != NULL);
    for (int i = 0; i < w->plan.nodes && w->run.failure[0] == '\0'; i++)
        restart_one(w, i, a);
    if (w->run.failure[0] != '\0')
        return;
    EXPECT(w, hf__hold_fence(a->hold) == a->fence);
    EXPECT(w, fences_write(w, 0, a));
    if (!silent)
        printf("rolling: %d servers were restarted, and the lock was held throughout\n",
               w->plan.nodes);
}

/* ---- floor ---- */

static void tell_floor(world *w)
{
    static const bool only_a[NODES_MAX] = {[0] = true}, only_c[NODES_MAX] = {[2] = true};
    story_begin(w);
    nemesis_part(w, 0, only_a, MS(60000), true);
    nemesis_part(w, 1, only_c, MS(60000), true);
    w->plan.kind = KIND_JUMPY;
    nemesis_jump(&w->nodes[2], 3600000000);
    handle *a = story_acquire(w, 0, 0, 2000);
    EXPECT(w, a != NULL);
    if (a == NULL)
        return;
    uint64_t fence = a->fence;
    story_let_go(w, 0, a);
    nemesis_forget(&w->nodes[1], NULL, "nothing");
    for (int64_t until_ns = w->run.now_ns + MS(3 * w->plan.max_lease_ms);
         w->run.now_ns < until_ns;) {
        world_run_until(w, w->run.now_ns + MS(300), NULL);
        EXPECT(w, story_acquire(w, 1, 0, 0) == NULL);
        if (w->run.failure[0] != '\0')
            return;
    }
    w->clients[0].parted_until_ns = w->clients[1].parted_until_ns = w->run.now_ns;
    const handle *b = story_acquire(w, 1, 0, 5000);
    EXPECT(w, b != NULL && b->fence > fence);
    if (!silent)
        printf("floor: a server that forgot a fence voted again when others knew it\n");
}

/* ---- unheld ---- */

/* Until A and B have granted it, which the client does not know yet. */
static void run_until_granted(world *w, const sim_wish *wish)
{
    int64_t until_ns = w->run.now_ns + MS(1000);
    while (w->run.now_ns < until_ns && !(node_has(&w->nodes[0], wish, wish->label) &&
                                         node_has(&w->nodes[1], wish, wish->label)))
        world_run_until(w, w->run.now_ns + 1000, NULL);
    EXPECT(w, w->run.now_ns < until_ns);
}

static void tell_unheld(world *w)
{
    static const bool only_b[NODES_MAX] = {[1] = true}, only_c[NODES_MAX] = {[2] = true};
    story_begin(w);
    nemesis_part(w, 0, only_c, MS(60000), true);
    nemesis_part(w, 1, only_b, MS(60000), true);
    w->plan.kind = KIND_JUMPY;
    nemesis_jump(&w->nodes[1], 60000000);
    actor_acquire(w, 0, 0, story_wish(w, 0), (hf__call){.wait_ms = 3000});
    run_until_granted(w, &w->clients[0].actors[0].subject.wish);
    nemesis_jump(&w->nodes[0], 10000000);
    world_run_until(w, w->run.now_ns + MS(3000), nobody_acquires);
    handle *a = actor_handle(&w->clients[0], 0);
    EXPECT(w, a != NULL);
    EXPECT(w, story_acquire(w, 1, 0, 0) == NULL);
    if (w->run.failure[0] != '\0')
        return;
    uint64_t fence = a->fence;
    story_let_go(w, 0, a);
    const handle *b = story_acquire(w, 1, 0, 2000);
    EXPECT(w, b != NULL && b->fence > fence);
    story_ends(w, "unheld: a copy that was lost did not count when a fence was made known to it");
}

/* ---- pause ---- */

static void tell_pause(world *w)
{
    w->plan.reply_timeout_ms = w->plan.call_timeout_ms = 3 * w->plan.lease_max_ms; /* patient */
    story_begin(w);
    w->plan.kind = KIND_WITHIN; /* who is paused keeps others waiting */
    actor_acquire(w, 0, 0, story_wish(w, 0), (hf__call){.wait_ms = 0});
    client_pause(w, 0, MS(w->plan.lease_max_ms + 500));
    world_run_until(w, w->run.now_ns + MS(w->plan.lease_max_ms + 100), NULL);
    EXPECT(w, story_acquire(w, 1, 0, 0) != NULL);
    world_run_until(w, w->run.now_ns + MS(1000), nobody_acquires);
    EXPECT(w, !w->clients[0].paused && actor_handle(&w->clients[0], 0) == NULL);
    story_ends(w, "pause: what was granted long ago was not believed");
}

/* ---- contenders ---- */

enum { CONTENDERS = 10, CONTENDER_RUNS = 40 };

static bool nobody_is_left(const world *w)
{
    return w->stats.grants == CONTENDERS;
}

static void tell_contenders(world *w)
{
    for (int i = 0; i < CONTENDERS; i++)
        client_start(w, i);
    for (int i = 0; i < CONTENDERS; i++)
        actor_acquire(w, i, 0, story_wish(w, i), (hf__call){.wait_ms = -1});
    w->plan.scripted = false; /* who has got it works, and releases */
    w->resting = true;        /* and does nothing more */
    world_run_until(w, MS(60000), nobody_is_left);
    EXPECT(w, w->stats.grants == CONTENDERS);
    EXPECT(w, w->run.now_ns < MS(w->plan.lease_max_ms / 3)); /* nobody had to look again */
}

/* ---- All ---- */

static void tell_no_jump(world *w)
{
    tell_jump(w, false);
}

static void tell_real_jump(world *w)
{
    tell_jump(w, true);
}

static const struct story {
    const char *name;
    int nodes, clients, runs;
    void (*tell)(world *w);
} stories[] = {
    {"jump", 5, 2, 1, tell_no_jump},
    {"jump", 5, 2, 1, tell_real_jump},
    {"rolling", 3, 2, 1, tell_rolling},
    {"rolling", 5, 2, 1, tell_rolling},
    {"floor", 3, 2, 1, tell_floor},
    {"inquiry", 3, 3, 20, tell_inquiry},
    {"late", 3, 3, 20, tell_late},
    {"split", 3, 2, 20, tell_split},
    {"deaf", 3, 2, 20, tell_deaf},
    {"unheld", 3, 2, 20, tell_unheld},
    {"pause", 3, 2, 20, tell_pause},
    {"ids", 3, 2, 20, tell_ids},
    {"ids", 3, 2, 20, tell_ids_late},
    {"ids", 3, 2, 20, tell_ids_repeat},
    {"ids", 3, 2, 5, tell_ids_restart},
    {"contenders", 3, CONTENDERS, CONTENDER_RUNS, tell_contenders},
    {"contenders", 5, CONTENDERS, CONTENDER_RUNS, tell_contenders},
};

static bool run_story(world *w, const struct story *story, bool print_trace, char *how, size_t size)
{
    bool failed = false;
    int64_t most = 0, sum = 0;
    plan p = calm_plan(story->nodes, story->clients);
    for (uint64_t seed = 1; seed <= (uint64_t)story->runs && !failed; seed++) {
        world_begin(w, seed, &p, print_trace);
        story->tell(w);
        failed = w->run.failure[0] != '\0';
        if (failed)
            snprintf(how, size, "%.99s", w->run.failure);
        sum += w->stats.messages;
        most = w->stats.messages_max > most ? w->stats.messages_max : most;
        world_free(w);
    }
    if (story->tell == tell_contenders && !failed && !silent)
        printf("contenders: %d clients, %d servers: %.1f script calls for an acquire, at most "
               "%lld\n",
               CONTENDERS, story->nodes, (double)sum / (CONTENDER_RUNS * CONTENDERS),
               (long long)most);
    return failed;
}

bool scenario_fails(world *w, const char *name, bool print_trace, bool quietly, char *how,
                    size_t size)
{
    bool known = false, failed = false;
    silent = quietly;
    for (size_t i = 0; i < sizeof(stories) / sizeof(stories[0]) && !failed; i++) {
        bool meant = strcmp(stories[i].name, name) == 0;
        known |= meant;
        failed = meant && run_story(w, &stories[i], print_trace, how, size);
    }
    if (!known)
        snprintf(how, size, "there is no scenario %.60s", name);
    return failed || !known;
}
