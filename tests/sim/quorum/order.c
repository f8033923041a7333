/* SPDX-License-Identifier: MIT */
/* Who waits is served in order. In quiet worlds in which everybody is fair: an acquire whose
 * requests were in the queues of a majority, or had been granted there, before another one began at
 * all gets the lock before that one. And how many script calls it takes: counted for each acquire,
 * by the label that its requests carry. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/quorum.h"
#include "lua/scripts.h"
#include "memory.h"
#include "quorum.h"

/* The actor that acquires with this label; NULL: none does any more. */
static actor *actor_of(world *w, const char *value, size_t length)
{
    const char *at = value + length;
    char label[LABEL_SIZE];
    int index = 0, number = 0;
    while (at > value && at[-1] != '/')
        at--;
    if (at == value || value + length - at >= (ptrdiff_t)sizeof(label))
        return NULL;
    snprintf(label, sizeof(label), "%.*s", (int)(value + length - at), at);
    if (sscanf(label, "w%d.%d.", &index, &number) != 2 || index >= w->plan.clients ||
        number >= w->plan.actors)
        return NULL;
    actor *a = &w->clients[index].actors[number];
    bool acquires = a->state == ACTOR_ACQUIRES && strcmp(a->subject.wish.label, label) == 0;
    return w->clients[index].alive && acquires ? a : NULL;
}

static void notice(node *n, actor *a)
{
    const world *w = n->world;
    a->queued |= 1u << n->index;
    if (a->queued_ns == 0 && __builtin_popcount(a->queued) >= w->plan.quorum)
        a->queued_ns = w->run.now_ns;
}

static void see_waiter(void *arg, const char *value, double score)
{
    node *n = arg;
    actor *a = actor_of(n->world, value, strlen(value));
    if (score >= 0 && a != NULL)
        notice(n, a);
}

/* A vote of those who wait for others stands for a place in the queue if its server tells whoever
 * asks of a ticket that is not smaller. One that was granted before there was a ticket may not do
 * so until its clock is past that (seed 13988). */
static void see_vote(node *n, int lock, const char *value)
{
    const sim_lock *l = &n->world->locks[lock];
    actor *a = actor_of(n->world, value, strlen(value));
    const hf__ballot *ballot = a != NULL ? a->call.hold->ballot : NULL;
    if (ballot == NULL || ballot->ticket == 0)
        return;
    const char *fence = sim_server_get(n->server, l->side[SIDE_F], l->side_length[SIDE_F]);
    uint64_t told = fence != NULL ? strtoull(fence, NULL, 10) : 0;
    if (told >= ballot->ticket || (uint64_t)node_now_us(n) >= ballot->ticket)
        notice(n, a);
}

void order_look(node *n)
{
    world *w = n->world;
    for (int i = 0; w->plan.kind == KIND_QUIET && i < w->plan.locks; i++) {
        const sim_lock *l = &w->locks[i];
        const char *held = node_held_as(n, i);
        if (held != NULL)
            see_vote(n, i, held);
        sim_server_members(n->server, l->side[SIDE_Q], l->side_length[SIDE_Q], see_waiter, n);
    }
}

static void check_overtaken(world *w, int index, const actor *a)
{
    for (int i = 0; i < w->plan.clients; i++) {
        for (int n = 0; w->clients[i].alive && n < w->plan.actors; n++) {
            const actor *other = &w->clients[i].actors[n];
            if (other == a || other->state != ACTOR_ACQUIRES || other->queued_ns == 0 ||
                other->call.done || other->subject.wish.lock != a->subject.wish.lock)
                continue;
            if (other->queued_ns < a->call_began_ns)
                world_fail(
                    w, "client %d: %s has overtaken %s, which waits at a majority since %lld ms",
                    index, a->subject.wish.label, other->subject.wish.label,
                    (long long)(other->queued_ns / 1000000));
        }
    }
    w->stats.served_in_order += a->queued_ns > 0;
}

/* ---- Nobody waits in vain ---- */

static bool somebody_holds(const world *w, int lock)
{
    for (int i = 0; i < w->plan.clients; i++)
        for (int k = 0; w->clients[i].alive && k < HANDLES_MAX; k++) {
            const handle *h = &w->clients[i].handles[k];
            if (h->hold != NULL && h->wish.lock == lock && check_valid(w, &w->clients[i], h))
                return true;
        }
    return false;
}

static const actor *first_waiter(const world *w, int lock)
{
    for (int i = 0; i < w->plan.clients; i++)
        for (int n = 0; w->clients[i].alive && n < w->plan.actors; n++) {
            const actor *a = &w->clients[i].actors[n];
            if (a->state == ACTOR_ACQUIRES && !a->call.done && a->queued_ns > 0 &&
                a->subject.wish.lock == lock)
                return a;
        }
    return NULL;
}

/* Messages take milliseconds; who is told nothing looks again after a third of his lease, and who
 * was not subscribed yet when it asked, after one pause or two. Where messages are denied, votes
 * are given back now and then, and it takes a few rounds of that. */
static int64_t idle_bound_ns(const world *w)
{
    enum { PAUSE_MS = 200 };
    if (w->plan.permissions)
        return MS(2 * w->plan.lease_max_ms + 10 * PAUSE_MS);
    return MS(PAUSE_MS + w->plan.lease_min_ms / 4 + w->plan.lease_max_ms / 100);
}

/* To anybody, so long that what is left of it is over. */
static bool was_denied(const world *w, int lock)
{
    for (int i = 0; i < w->plan.clients; i++)
        for (int n = 0; n < w->plan.nodes; n++)
            if (permits_denied_since(&w->clients[i].permits[n], lock,
                                     w->run.now_ns - MS(2 * w->plan.lease_max_ms)))
                return true;
    return false;
}

void order_check(world *w)
{
    int64_t bound_ns = idle_bound_ns(w);
    bool quiet = (w->plan.kind == KIND_QUIET || w->plan.permissions) && w->plan.dead == 0;
    for (int i = 0; quiet && i < w->plan.locks; i++) {
        bool excused = somebody_holds(w, i) || was_denied(w, i);
        const actor *waiter = excused ? NULL : first_waiter(w, i);
        if (waiter == NULL)
            w->locks[i].idle_ns = 0;
        else if (w->locks[i].idle_ns == 0)
            w->locks[i].idle_ns = w->run.now_ns;
        else if (w->run.now_ns - w->locks[i].idle_ns > bound_ns)
            world_fail(w, "%s waits for %s since %lld ms, and nobody has it for %lld ms",
                       waiter->subject.wish.label, lock_names[i],
                       (long long)(waiter->queued_ns / 1000000), (long long)(bound_ns / 1000000));
    }
}

void order_granted(world *w, int index, int number)
{
    const client *c = &w->clients[index];
    const actor *a = &c->actors[number];
    bool nested = false;
    for (int i = 0; i < HANDLES_MAX; i++)
        nested |= c->handles[i].hold == a->call.hold && c->handles[i].nested;
    if (w->plan.all_fair && !nested)
        check_overtaken(w, index, a);
    if (nested || w->plan.kind != KIND_QUIET)
        return;
    w->stats.messages += a->messages;
    if (a->messages > w->stats.messages_max)
        w->stats.messages_max = a->messages;
}

/* ---- What servers do ---- */

static const char *script_name(const char *sha1)
{
    for (int i = 0; i < HF__SCRIPT_COUNT; i++)
        if (strcmp(hf__scripts[i].sha1, sha1) == 0)
            return hf__scripts[i].name;
    return "a script";
}

/* Of a value: its number and its label, which is what matters in a trace. */
static int put_short(char *place, size_t capacity, const char *value, size_t length)
{
    const char *number = memchr(value, ':', length), *label = value + length;
    while (label > value && label[-1] != '/')
        label--;
    if (number == NULL || length < 34 || number != value + 32 || label == value)
        return snprintf(place, capacity, " %.*s", (int)length, value);
    return snprintf(place, capacity, " %.*s/%.*s", (int)strcspn(number + 1, "@"), number + 1,
                    (int)(value + length - label), label);
}

static void trace_script(node *n, const char *sha1, const hf__slice *arguments, int count)
{
    char text[TRACE_TEXT];
    int used = snprintf(text, sizeof(text), "server %d: %s", n->index, script_name(sha1));
    for (int i = 0; i < count && used < TRACE_TEXT - 80; i++)
        used += put_short(text + used, sizeof(text) - (size_t)used, arguments[i].bytes,
                          arguments[i].length);
    for (int i = 0; i < n->world->plan.locks && used < TRACE_TEXT - 60; i++) {
        const char *held = node_held_as(n, i);
        used += snprintf(text + used, sizeof(text) - (size_t)used, "%s", i == 0 ? " =>" : ",");
        used += held == NULL
                    ? snprintf(text + used, sizeof(text) - (size_t)used, " free")
                    : put_short(text + used, sizeof(text) - (size_t)used, held, strlen(held));
    }
    world_log(n->world, "%s", text);
}

/* Messages that were denied, and are allowed since the healing, have been asked for again by those
 * who queue. */
static void check_messages_again(node *n, const char *sha1, const hf__slice *arguments, int count)
{
    world *w = n->world;
    char value[160];
    double score = -1;
    bool acquires = strcmp(sha1, hf__scripts[HF__SCRIPT_ACQUIRE].sha1) == 0 && count > 4;
    if (!w->plan.permissions || !w->healing || w->run.now_ns < w->healed_ns + MS(9000) || !acquires)
        return;
    bool deaf = arguments[4].length == 2 && memcmp(arguments[4].bytes, "-1", 2) == 0;
    snprintf(value, sizeof(value), "%.*s", (int)arguments[0].length, arguments[0].bytes);
    for (int i = 0; i < LOCKS && score < 0; i++)
        sim_server_score(n->server, w->locks[i].side[SIDE_Q], w->locks[i].side_length[SIDE_Q],
                         value, &score);
    for (int i = 0; i < w->plan.clients && score >= 0; i++)
        if (w->clients[i].alive && strncmp(value, w->clients[i].config.client_id, 32) == 0 &&
            !permits_may_queue(&w->clients[i].permits[n->index], deaf, w->run.now_ns))
            world_fail(w, "client %d may have messages at %d again, and does without", i, n->index);
}

/* Who was not told the run_id cannot tell when the server is another one. What it asks before it
 * knows is whether it has permission. */
static void check_named(const node *n, const char *sha1)
{
    if (sim_server_ran_unnamed(n->server) &&
        strcmp(sha1, hf__scripts[HF__SCRIPT_PERMISSIONS].sha1) != 0)
        world_fail(n->world, "server %d serves somebody who was told no run_id", n->index);
}

void order_ran(void *arg, const char *sha1, const hf__slice *arguments, int count)
{
    node *n = arg;
    const actor *counted = NULL;
    check_named(n, sha1);
    for (int i = 0; i < count; i++) {
        actor *a = actor_of(n->world, arguments[i].bytes, arguments[i].length);
        heal_ran(n, sha1, arguments[i]);
        if (a == NULL || a == counted)
            continue;
        a->messages++;
        counted = a; /* a call may name it twice */
    }
    trace_script(n, sha1, arguments, count);
    for (int i = 0; i < LOCKS; i++)
        if (memory_keeps_released(n->server, lock_names[i], sha1, arguments, count))
            world_fail(n->world, "server %d has %s still, after its release", n->index,
                       lock_names[i]);
    check_messages_again(n, sha1, arguments, count);
    observers_ran(n->world, sha1);
}

void order_published(void *arg, const char *channel, size_t channel_length, const char *message,
                     size_t length)
{
    const node *n = arg;
    world_log(n->world, "server %d: tells %.*s: %.*s", n->index, (int)channel_length, channel,
              (int)length, message);
}
