/* SPDX-License-Identifier: MIT */
/* Waiting at the server, seen from there. Before each piece that arrives and after each script the
 * queues are read off the server, so what lies between two looks is what one script did.
 *
 * Whoever can be served is: he has been heard from within his lease, and somebody is subscribed to
 * his client's channel, or he has said that he cannot hear, because the server denies it. That is
 * what scripts go by, and it is computed here once more. A lock goes to the first in the queue that
 * can be served, never past him. It is never left free by a script while there is one. A grant is
 * told to him who has it and to nobody else; only a holder is told that somebody waits. This holds
 * in all runs, whatever else has happened. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/state.h"
#include "lua/scripts.h"
#include "memory.h"
#include "sim.h"

static sim_waiter scratch[QUEUE_MAX];

/* ---- Reading ---- */

typedef struct reading {
    world *w;
    int lock;
    int count;
} reading;

int queues_client_of(const world *w, const char *value)
{
    for (int i = 0; i < w->plan.clients; i++) {
        const sim_client *c = &w->clients[i];
        if (c->alive && strncmp(value, c->config.client_id, strlen(c->config.client_id)) == 0)
            return i;
    }
    return -1;
}

static const sim_waiter *known(const sim_queue *queue, const char *value)
{
    for (int i = 0; i < queue->count; i++)
        if (strcmp(queue->waiters[i].value, value) == 0)
            return &queue->waiters[i];
    return NULL;
}

/* 'n alive-until lease range since owner'; without one it does not wait. */
static void read_record(sim_waiter *waiter, const char *record)
{
    waiter->alive_until_ms = 0;
    waiter->owner[0] = '\0';
    waiter->deaf = record != NULL && strncmp(record, "0 ", 2) == 0;
    for (int blanks = 0; record != NULL && *record != '\0'; record++) {
        blanks += *record == ' ';
        if (*record == ' ' && blanks == 1)
            waiter->alive_until_ms = strtoll(record + 1, NULL, 10);
        if (blanks == 5) {
            snprintf(waiter->owner, sizeof(waiter->owner), "%.15s", record + 1);
            return;
        }
    }
}

static void see_waiter(void *arg, const char *value, double score)
{
    reading *r = arg;
    if (score < 0)
        return;
    if (r->count == QUEUE_MAX) {
        world_fail(r->w, "the queue of %s grows", lock_names[r->lock]);
        return;
    }
    const sim_lock *lock = &r->w->locks[r->lock];
    const sim_waiter *before = known(&lock->queue, value);
    sim_waiter *waiter = &scratch[r->count++];
    if (before != NULL) {
        *waiter = *before;
    } else {
        *waiter = (sim_waiter){.queued_ns = r->w->run.now_ns};
        snprintf(waiter->value, sizeof(waiter->value), "%s", value);
    }
    waiter->client = queues_client_of(r->w, value);
    read_record(waiter, sim_server_field(r->w->server, lock->side[SIDE_W],
                                         lock->side_length[SIDE_W], value));
    r->w->stats.queued += before == NULL;
}

/* What one lock has now is in `scratch`, and what it had stays in its queue. */
static int read_queue(world *w, int lock)
{
    reading r = {.w = w, .lock = lock};
    const sim_lock *l = &w->locks[lock];
    sim_server_members(w->server, l->side[SIDE_Q], l->side_length[SIDE_Q], see_waiter, &r);
    return r.count;
}

static bool is_marked(world *w, int lock)
{
    const sim_lock *l = &w->locks[lock];
    const char *fence = sim_server_get(w->server, l->side[SIDE_F], l->side_length[SIDE_F]);
    return fence != NULL && strchr(fence, '+') != NULL;
}

static void keep(world *w, int lock, int count)
{
    sim_queue *queue = &w->locks[lock].queue;
    const char *held = check_held_as(w, lock);
    held = held != NULL ? held : "";
    if (strcmp(held, queue->held) != 0)
        queue->held_ns = w->run.now_ns;
    snprintf(queue->held, sizeof(queue->held), "%s", held);
    queue->marked = is_marked(w, lock);
    if (count > 0)
        memcpy(queue->waiters, scratch, (size_t)count * sizeof(scratch[0]));
    queue->count = count;
}

/* ---- What a script may do ---- */

static bool can_be_served(const world *w, const sim_waiter *waiter)
{
    char channel[48];
    snprintf(channel, sizeof(channel), "hf:c:%.32s", waiter->value);
    return waiter->alive_until_ms >= server_now_us(w) / 1000 &&
           (waiter->deaf || sim_server_subscribers(w->server, channel) > 0);
}

typedef struct script_run {
    char value[128]; /* whose acquire or release it was; empty: another script */
    char owner[16];
    bool releases;
} script_run;

/* It may have had a place without a record, and be given a new one just now. */
static bool takes_it(const sim_waiter *waiter, const script_run *run, const char *held)
{
    const char *owner = strcmp(waiter->value, run->value) == 0 ? run->owner : waiter->owner;
    return strcmp(owner[0] != '\0' ? owner : waiter->value, held) == 0;
}

/* `queue`: before the script. Whose release it was may be in it. A fence that was evicted does not
 * say that anybody waits. */
static void check_order(world *w, int lock, const sim_queue *queue, const char *held,
                        const script_run *run)
{
    if (!queue->marked && w->plan.beyond)
        return;
    for (int i = 0; i < queue->count; i++) {
        const sim_waiter *waiter = &queue->waiters[i];
        if (takes_it(waiter, run, held))
            return;
        if (!can_be_served(w, waiter) || (run->releases && strcmp(waiter->value, run->value) == 0))
            continue;
        for (int j = 0; j < queue->count; j++)
            world_log(w, "server: %s waited for %s until %lld", queue->waiters[j].value,
                      queue->waiters[j].owner, (long long)queue->waiters[j].alive_until_ms);
        world_fail(w, "%s goes to %s past %s, who has waited longer", lock_names[lock], held,
                   waiter->value);
    }
}

static void check_left_free(world *w, int lock, int count)
{
    for (int i = 0; i < count; i++)
        if (can_be_served(w, &scratch[i]))
            world_fail(w, "%s is left free, and %s waits for it", lock_names[lock],
                       scratch[i].value);
}

/* An owner has the lock: nobody of its own is left waiting. */
static void check_invited(world *w, int lock, int count, const char *held)
{
    for (int i = 0; i < count; i++)
        if (strcmp(scratch[i].owner, held) == 0 && can_be_served(w, &scratch[i]))
            world_fail(w, "%s goes to %s, and %s of the same owner is left in the queue",
                       lock_names[lock], held, scratch[i].value);
}

/* Its release leaves nothing under the name of a lock but what marks announce. */
static void check_released(world *w, int lock, const char *before, const script_run *run)
{
    const sim_lock *l = &w->locks[lock];
    const char *fence = sim_server_get(w->server, l->side[SIDE_F], l->side_length[SIDE_F]);
    if (!run->releases || strcmp(before, run->value) != 0)
        return;
    check_note_release(w, run->value);
    if (check_held_as(w, lock) == NULL && fence != NULL && fence[0] != '0' &&
        strchr(fence, '-') == NULL && w->plan.elders == 0)
        world_fail(w, "%s was released, and its fence %s is left", lock_names[lock], fence);
}

static void check_change(world *w, int lock, int count, const script_run *run)
{
    const sim_queue *before = &w->locks[lock].queue;
    const char *held = check_held_as(w, lock);
    if (count > 0 && !w->plan.beyond && !is_marked(w, lock))
        world_fail(w, "%s waits for %s, whose fence does not say so", scratch[0].value,
                   lock_names[lock]);
    check_released(w, lock, before->held, run);
    fences_kept(w, lock);
    if (held == NULL && before->held[0] != '\0' && w->may_push &&
        (before->marked || !w->plan.beyond))
        check_left_free(w, lock, count);
    if (held != NULL && strcmp(held, before->held) != 0)
        check_order(w, lock, before, held, run);
    if (held != NULL && strcmp(held, before->held) != 0 && run->value[0] != '\0' && w->may_push)
        check_invited(w, lock, count, held);
}

/* ---- What a script may tell ---- */

static bool is_of(const sim_message *message, const char *value)
{
    char start[64];
    snprintf(start, sizeof(start), "%.32s:%d@", message->channel + 5, atoi(message->text + 2));
    return strncmp(value, start, strlen(start)) == 0;
}

typedef struct search {
    const sim_message *message;
    bool found;
} search;

static void see_holder(void *arg, const char *value, double until_ms)
{
    search *s = arg;
    (void)until_ms;
    s->found |= is_of(s->message, value);
}

/* Whether it is for somebody who has a lock now. */
static bool is_for_holder(world *w, const sim_message *message)
{
    search s = {message, false};
    for (int i = 0; i < w->plan.locks; i++) {
        const sim_lock *l = &w->locks[i];
        const char *held = check_held_as(w, i);
        if (held == NULL)
            continue;
        s.found |= is_of(message, held);
        sim_server_members(w->server, l->side[SIDE_H], l->side_length[SIDE_H], see_holder, &s);
    }
    return s.found;
}

/* Whether it is for somebody who has a lock now, and does not share it. */
static bool is_for_single(world *w, const sim_message *message)
{
    for (int i = 0; i < LOCKS; i++) {
        const char *held = check_held_as(w, i);
        if (held != NULL && is_of(message, held))
            return true;
    }
    return false;
}

/* Its locks are none of the world's. One is busy if the answer to its last release was lost. */
static bool is_of_load(const sim_message *message)
{
    return strtoull(message->text + 2, NULL, 10) >= LOAD_FIRST_NUMBER;
}

/* Several are told only if they share the lock. */
static void check_messages(world *w)
{
    int grants = 0, alone = 0;
    for (int i = 0; i < w->message_count; i++) {
        const sim_message *message = &w->messages[i];
        bool gives = message->text[0] == 'g';
        grants += gives;
        alone += gives && is_for_single(w, message);
        w->stats.pushed += gives;
        if (gives && w->may_push && sim_server_subscribers(w->server, message->channel) == 0)
            world_fail(w, "%s is told \"%s\", and cannot hear", message->channel, message->text);
        if ((gives || message->text[0] == 'i') && !is_for_holder(w, message) &&
            !is_of_load(message))
            world_fail(w, "%s is told \"%s\", and holds nothing", message->channel, message->text);
    }
    if (grants > 1 && alone > 0)
        world_fail(w, "one script told %d of a grant", grants);
    w->message_count = 0;
}

static void published(void *arg, const char *channel, size_t channel_length, const char *text,
                      size_t length)
{
    world *w = arg;
    if (length == 0 || !w->watching || channel_length < 5 || memcmp(channel, "hf:c:", 5) != 0)
        return; /* a client tries whether it may; or it is for whoever looks on */
    if (w->message_count == MESSAGES_MAX) {
        world_fail(w, "one script tells everybody");
        return;
    }
    sim_message *message = &w->messages[w->message_count++];
    snprintf(message->channel, sizeof(message->channel), "%.*s", (int)channel_length, channel);
    snprintf(message->text, sizeof(message->text), "%.*s", (int)length, text);
    world_log(w, "server: tells %s: %s", message->channel, message->text);
}

/* ---- What an acquire must do ---- */

static bool is_script(const char *sha1, hf__script_id which)
{
    return strcmp(sha1, hf__scripts[which].sha1) == 0;
}

static bool is_buried(world *w, const sim_lock *l, const char *value)
{
    char tombstone[130];
    double until = 0;
    snprintf(tombstone, sizeof(tombstone), "!%s", value);
    return sim_server_score(w->server, l->side[SIDE_Q], l->side_length[SIDE_Q], tombstone, &until);
}

/* Who asks to be queued has the lock, or a place, unless he is not to be told or has ended, or
 * there is no memory for it. */
static void check_queued(world *w, int lock, const char *value, bool deaf)
{
    const sim_lock *l = &w->locks[lock];
    const sim_queue *queue = &l->queue;
    char channel[48];
    double until = 0;
    snprintf(channel, sizeof(channel), "hf:c:%.32s", value);
    bool has = strcmp(queue->held, value) == 0 ||
               sim_server_score(w->server, l->side[SIDE_H], l->side_length[SIDE_H], value, &until);
    if (has || known(queue, value) != NULL || is_buried(w, l, value) ||
        sim_server_ran_full(w->server) ||
        (!deaf && sim_server_subscribers(w->server, channel) == 0))
        return;
    world_fail(w, "%s asks for a place in the queue of %s, and gets none", value, lock_names[lock]);
}

/* A client queues when the server that it talks to has confirmed its subscription, not before; or
 * says that it cannot hear, when it was denied one. */
static void check_asker(world *w, const char *value, bool deaf)
{
    int index = queues_client_of(w, value);
    if (index >= 0 && !deaf && w->clients[index].subscribed_run != w->server_runs)
        world_fail(w, "client %d queues before it is subscribed", index);
    if (index >= 0 && deaf && !w->clients[index].permits.was_deaf)
        world_fail(w, "client %d queues as one that was denied messages", index);
}

/* Messages that were denied, and are allowed since the healing, have been asked for again. */
static void check_messages_again(world *w, const char *value, bool deaf)
{
    int index = queues_client_of(w, value);
    sim_permits *permits = index >= 0 ? &w->clients[index].permits : NULL;
    if (permits != NULL && permits->messages == SIM_ALLOWED &&
        !permits_may_queue(permits, deaf, w->run.now_ns))
        world_fail(w, "client %d may have messages again, and does without", index);
}

/* Which lock a script was about is known by its value: a hold is of one lock. -1: it has ended, or
 * perhaps been broken; its tombstone may go with the very script that found it. */
static int lock_asked_for(const world *w, const char *value)
{
    int index = queues_client_of(w, value);
    const hf_hold *hold = index >= 0 ? check_hold_of(&w->clients[index], value) : NULL;
    for (int i = 0; hold != NULL && hold->stage == HF__HOLD_TRYING && i < w->plan.locks; i++)
        if (w->locks[i].breaks == 0 && hold->key_length == strlen(lock_names[i]) &&
            memcmp(hold->text, lock_names[i], hold->key_length) == 0)
            return i;
    return -1;
}

static void check_acquire(world *w, const char *value, hf__slice copy)
{
    int lock = lock_asked_for(w, value);
    bool deaf = copy.length == 2 && memcmp(copy.bytes, "-1", 2) == 0;
    if (copy.length == 1 && copy.bytes[0] == '0')
        return;
    check_asker(w, value, deaf);
    if (lock >= 0)
        check_queued(w, lock, value, deaf);
    if (lock >= 0 && w->quiet && known(&w->locks[lock].queue, value) != NULL)
        check_messages_again(w, value, deaf);
}

static void put_text(char *text, size_t capacity, hf__slice argument)
{
    snprintf(text, capacity, "%.*s", (int)argument.length, argument.bytes);
}

static script_run run_of(const char *sha1, const hf__slice *arguments, int count)
{
    script_run run = {.releases = is_script(sha1, HF__SCRIPT_RELEASE)};
    bool acquires = is_script(sha1, HF__SCRIPT_ACQUIRE);
    if ((acquires || run.releases) && count > 0)
        put_text(run.value, sizeof(run.value), arguments[0]);
    if (acquires && count > 6)
        put_text(run.owner, sizeof(run.owner), arguments[6]);
    return run;
}

static void script_ran(void *arg, const char *sha1, const hf__slice *arguments, int count)
{
    world *w = arg;
    if (!w->watching)
        return;
    script_run run = run_of(sha1, arguments, count);
    for (int lock = 0; lock < w->plan.locks; lock++) {
        int waiting = read_queue(w, lock);
        check_change(w, lock, waiting, &run);
        keep(w, lock, waiting);
        if (!w->plan.beyond &&
            memory_keeps_released(w->server, lock_names[lock], sha1, arguments, count))
            world_fail(w, "%s is held as %s still, after its release", lock_names[lock], run.value);
    }
    if (is_script(sha1, HF__SCRIPT_ACQUIRE) && count >= 5)
        check_acquire(w, run.value, arguments[4]);
    check_messages(w);
    if (is_script(sha1, HF__SCRIPT_IDS))
        ids_ran(w);
    shop_ran(w, sha1, arguments, count);
    observers_ran(w, sha1);
}

/* ---- For others ---- */

void queues_begin(world *w)
{
    for (int i = 0; i < w->plan.locks; i++) {
        w->locks[i].queue.waiters = calloc(QUEUE_MAX, sizeof(sim_waiter));
        if (w->locks[i].queue.waiters == NULL)
            abort();
    }
    w->watch = (sim_watch){.published = published, .ran = script_ran, .arg = w};
    sim_server_set_watch(w->server, &w->watch);
}

void queues_free(world *w)
{
    for (int i = 0; i < LOCKS; i++)
        free(w->locks[i].queue.waiters);
}

void queues_look(world *w)
{
    for (int lock = 0; lock < w->plan.locks; lock++)
        keep(w, lock, read_queue(w, lock));
}

/* One that may not publish cannot tell the holder that it waits. */
static bool can_tell(const world *w, const sim_waiter *waiter)
{
    return waiter->client < 0 || !w->clients[waiter->client].permits.was_deaf;
}

bool queues_others_wait(world *w, int lock, int client, int64_t before_ns)
{
    const sim_queue *queue = &w->locks[lock].queue;
    for (int i = 0; i < queue->count; i++)
        if (queue->waiters[i].client != client && queue->waiters[i].queued_ns < before_ns &&
            can_be_served(w, &queue->waiters[i]) && can_tell(w, &queue->waiters[i]))
            return true;
    return false;
}
