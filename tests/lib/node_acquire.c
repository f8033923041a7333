/* SPDX-License-Identifier: MIT */
/* See node_scripts.c: acquire and release, the scripts that queue and hand on. Both take the lock,
 * its queue, fence, notes and holders. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node_scripts.h"

static const char ended[] = "*1\r\n:-1\r\n"; /* a tombstone says so */

/* ---- Acquire: value, lease [, keep [, range, copy [, brief keep [, owner [, proposal, ticket]]]]]
 */

typedef struct asked {
    hf__slice value, in_key;
    int64_t lease, keep, brief, range, copy, ticket;
    bool owned;
    bool fresh; /* no copy of it can be in the queue */
    bool of_quorum;
    bool far; /* what is proposed: some clock is ahead */
} asked;

enum { HOUR_MS = 3600 * 1000 };

static void read_proposal(script *s, asked *a)
{
    enum { FAR_US = 1000000 };
    int64_t proposed = script_number_of(s->arguments[7]);
    a->of_quorum = true;
    a->ticket = script_number_of(s->arguments[8]);
    a->far = proposed > s->clock_us + FAR_US;
    if (proposed > s->clock_us || a->range == 0)
        s->clock_us = proposed;
    s->node->last_proposal = proposed;
    s->node->last_ticket = a->ticket;
}

static int64_t number_or(const script *s, size_t argument, int64_t otherwise)
{
    bool given = argument < s->argument_count && s->arguments[argument].length > 0;
    return given ? script_number_of(s->arguments[argument]) : otherwise;
}

static asked read_acquire(script *s)
{
    size_t count = s->argument_count;
    bool owned = count > 6 && s->arguments[6].length > 0;
    node_expect(count > 1 && count < 10 && count != 4 && count != 8, "a strange acquire");
    script_expect_all_keys(s, count == 9);
    asked a = {.value = s->arguments[0],
               .in_key = s->arguments[owned ? 6 : 0],
               .lease = script_number_of(s->arguments[1]),
               .keep = number_or(s, 2, HOUR_MS),
               .range = number_or(s, 3, 1),
               .copy = number_or(s, 4, 0),
               .owned = owned,
               .fresh = count < 7};
    a.brief = number_or(s, 5, a.keep);
    if (count == 9)
        read_proposal(s, &a);
    node_expect(a.range >= (a.of_quorum ? 0 : 1) && a.copy >= -1, "a strange acquire");
    node_expect(a.copy == 0 || a.ticket > 0 || !a.of_quorum, "a place without a ticket");
    s->node->last_copy = a.copy;
    s->node->last_range = a.range;
    return a;
}

static void say_taken(const script *s, int64_t granted, int64_t remaining, bool others)
{
    say_array(s->out, others ? 3 : 2);
    say_number(s->out, granted);
    say_number(s->out, remaining);
    if (others)
        say_number(s->out, 1);
}

static void say_grant(const script *s, int64_t granted, int64_t remaining)
{
    say_taken(s, granted, remaining, queue_count(s) > 0);
}

static int64_t place_of(const script *s, hf__slice value)
{
    node_key *queue = script_find(s, KEY_QUEUE);
    const node_member *mine = store_member(queue, value);
    int64_t place = 0;
    for (size_t i = 0; mine != NULL && i < queue->member_count; i++)
        place += queue->members[i].score >= 0 && queue->members[i].score <= mine->score;
    return place;
}

static void say_busy(const script *s, const asked *a, int64_t remaining, hf__slice held,
                     bool foreign)
{
    int64_t place = a->copy != 0 ? place_of(s, a->value) : 0;
    say_array(s->out, place > 0 ? 5 : 3);
    say_number(s->out, 0);
    say_number(s->out, remaining);
    say_bulk(s->out, script_cut(held));
    if (place > 0) {
        say_number(s->out, place);
        say_number(s->out, foreign);
    }
}

/* The first one in a new queue. */
static void begin_queue(const script *s, const asked *a, hf__slice held)
{
    const node_key *counter = script_find(s, KEY_FENCE);
    queue_mark(s, 2 * a->lease);
    if (a->ticket == 0 && counter != NULL && strchr(counter->value.bytes, '*') != NULL)
        queue_tell(s, held, 'i', "");
    node_key *notes = script_find(s, KEY_NOTES);
    for (size_t i = notes != NULL ? notes->member_count : 0; i-- > 0;)
        if (notes->members[i].name.bytes[0] != '#')
            store_drop(s->node, notes, &notes->members[i]);
}

static int64_t highest_score(const node_key *queue)
{
    int64_t highest = -1;
    for (size_t i = 0; queue != NULL && i < queue->member_count; i++)
        highest = script_larger(highest, queue->members[i].score);
    return highest;
}

/* On a quorum, all who hold it hear each time that somebody waits, with which ticket. */
static void inquire_all(const script *s, const asked *a, hf__slice held)
{
    char rest[128];
    const node_key *holders = script_find(s, KEY_HOLDERS);
    size_t length = a->value.length < 32 ? a->value.length : 32;
    snprintf(rest, sizeof(rest), " %" PRId64 " %.*s", a->ticket, (int)length, a->value.bytes);
    for (size_t i = 0; holders != NULL && i < holders->member_count; i++)
        queue_tell(s, store_slice(&holders->members[i].name), 'i', rest);
    queue_tell(s, held, 'i', rest);
}

static void enqueue(const script *s, const asked *a, hf__slice held)
{
    char note[1024];
    int64_t last = highest_score(script_find(s, KEY_QUEUE));
    int64_t since = s->node->now_ms, highest = script_larger(a->copy, 0), before, began, unused[3];
    if (store_member(script_find(s, KEY_QUEUE), a->value) != NULL) {
        const node_member *old = store_member(script_find(s, KEY_NOTES), a->value);
        if (old != NULL &&
            sscanf(old->text.bytes, "%" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64,
                   &before, &unused[0], &unused[1], &unused[2], &began) == 5) {
            since = began;
            highest = a->copy < 0 ? 0 : script_larger(highest, before);
        }
    } else {
        node_key *queue = store_make(s->node, s->keys[KEY_QUEUE], NODE_ZSET);
        store_add(queue, a->value)->score = a->ticket > 0 ? a->ticket : script_larger(last, 0) + 1;
        if (last < 0)
            begin_queue(s, a, held);
        if (script_find(s, KEY_LOCK) != NULL && queue_is_watched(s)) /* else who gets it is told */
            queue_announce(s, "waiting", a->value, script_read_fence(s, KEY_FENCE).last, a->lease);
    }
    if (a->ticket > 0 && !slice_is(held, a->value))
        inquire_all(s, a, held);
    int length = snprintf(note, sizeof(note),
                          "%" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %.*s",
                          highest, s->node->now_ms + a->lease, a->lease, a->range, since,
                          a->owned ? (int)a->in_key.length : 0, a->in_key.bytes);
    store_write(&store_add(store_make(s->node, s->keys[KEY_NOTES], NODE_HASH), a->value)->text,
                (hf__slice){note, (size_t)length});
    for (size_t key = KEY_QUEUE; key <= KEY_NOTES; key += KEY_NOTES - KEY_QUEUE)
        if (store_ttl_ms(s->node, script_find(s, key)) < a->lease) {
            script_find(s, key)->expires_ms = s->node->now_ms + 2 * a->lease;
            if (key == KEY_QUEUE)
                queue_mark(s, 2 * a->lease);
        }
}

/* The lock is free, but others were there first; false: nobody who lives. */
static bool yield(const script *s, const asked *a, int64_t last)
{
    waiter next;
    if (a->copy != 0)
        enqueue(s, a, a->value);
    if (!queue_next(s, a->value, &next) || slice_is(hf__slice_text(next.value), a->value)) {
        queue_leave(s, a->value);
        return false;
    }
    queue_grant(s, &next, last, a->keep);
    return true;
}

static void keep_fence(const script *s, int64_t keep_ms)
{
    script_last_at_least(s, script_find(s, KEY_FENCE), keep_ms);
}

/* Joins those who share the lock; false: nobody does. */
static bool join(const script *s, const asked *a)
{
    if (script_count_live(s, script_find(s, KEY_HOLDERS)) == 0)
        return false;
    script_drop_scores(s, KEY_HOLDERS, INT64_MIN, s->node->now_ms);
    script_add_holder(s, KEY_HOLDERS, a->value, a->lease);
    script_last_as_the_latest(script_find(s, KEY_LOCK), script_find(s, KEY_HOLDERS));
    keep_fence(s, a->brief);
    queue_leave(s, a->value);
    return true;
}

static void say_own(const script *s, const asked *a, int64_t remaining)
{
    int64_t last = script_read_fence(s, KEY_FENCE).last;
    if (last > 0)
        say_grant(s, last - a->range + 1, remaining);
    else
        say_grant(s, queue_mint(s, (minting){0, a->range, a->lease, queue_count(s), a->keep, 0}),
                  remaining);
}

static void say_last_ticket(const script *s, int64_t remaining, hf__slice held)
{
    say_array(s->out, 4);
    say_number(s->out, 0);
    say_number(s->out, remaining);
    say_bulk(s->out, script_cut(held));
    int64_t last = script_larger(highest_score(script_find(s, KEY_QUEUE)), s->clock_us);
    say_number(s->out, script_larger(last, script_read_fence(s, KEY_FENCE).last));
}

static void refuse(const script *s, const asked *a)
{
    const node_key *lock = script_find(s, KEY_LOCK);
    hf__slice held = store_slice(&lock->value);
    int64_t number;
    if (a->copy != 0 && queue_is_buried(s, a->value)) {
        say(s->out, ended);
        return;
    }
    if (a->of_quorum && a->copy == 0) {
        say_last_ticket(s, store_ttl_ms(s->node, lock), held);
        return;
    }
    if (a->copy != 0)
        enqueue(s, a, held);
    say_busy(s, a, store_ttl_ms(s->node, lock), held,
             !queue_is_ours(held, &number) && script_find(s, KEY_HOLDERS) == NULL);
}

/* Somebody with an earlier ticket waits: whoever gave way to that does not join again. */
static bool is_later(const script *s, const asked *a)
{
    const node_member *first = queue_first(s);
    if (a->ticket == 0 || first == NULL)
        return false;
    if (first->score != a->ticket)
        return first->score < a->ticket;
    size_t length = a->value.length < first->name.length ? a->value.length : first->name.length;
    int order = memcmp(first->name.bytes, a->value.bytes, length);
    return order != 0 ? order < 0 : first->name.length < a->value.length;
}

/* The lock has the owner's name on it. */
static void enter_shared(const script *s, const asked *a)
{
    const node_member *own = script_live_holder(s, script_find(s, KEY_HOLDERS), a->value);
    if (own != NULL)
        say_own(s, a, own->score - s->node->now_ms);
    else if (queue_is_buried(s, a->value))
        say(s->out, ended);
    else if (!is_later(s, a) && join(s, a))
        say_own(s, a, a->lease);
    else
        refuse(s, a);
}

/* A copy of something that has ended finds the lock free. */
static void turn_away(const script *s, const asked *a, int64_t last, int64_t named)
{
    bool handed_on = queue_count(s) > 0 && queue_hand_on(s, last, a->keep);
    if (!handed_on && a->of_quorum)
        queue_mint(s, (minting){last, 1, a->lease, queue_count(s), a->keep, 0});
    else if (!handed_on)
        queue_leave_name(s, named, a->keep);
    say(s->out, ended);
}

/* The lock was free. What is behind the fence decides whether there is more to do than to take it.
 */
static void take_free(const script *s, const asked *a)
{
    const node_key *counter = script_find(s, KEY_FENCE);
    fence kept = script_read_fence(s, KEY_FENCE);
    int64_t clock = s->clock_us, slot = a->of_quorum ? 0 : script_read_fence(s, KEY_SLOT).last;
    if (counter != NULL && counter->kind != NODE_STRING) {
        say(s->out, script_wrong_type);
        return;
    }
    bool unused = counter == NULL && a->fresh;
    bool plain = (unused || (kept.plain && kept.last < clock)) &&
                 (a->of_quorum || (slot > 0 && slot < clock)) && a->range == 1 && !a->owned &&
                 !a->far;
    int64_t named = kept.last;
    kept.last = script_larger(kept.last, slot);
    if (!plain && queue_is_buried(s, a->value)) {
        turn_away(s, a, kept.last, named);
        return;
    }
    if (!plain && queue_count(s) > 0 && yield(s, a, kept.last)) {
        const node_key *lock = script_find(s, KEY_LOCK);
        if (a->owned && script_has_value(lock, a->in_key))
            enter_shared(s, a);
        else
            say_busy(s, a, store_ttl_ms(s->node, lock), store_slice(&lock->value), false);
        return;
    }
    store_set(s->node, s->keys[KEY_LOCK], a->in_key, s->node->now_ms + a->lease);
    if (a->owned)
        queue_share(s, a->value, a->lease);
    if (plain) {
        char text[32];
        snprintf(text, sizeof(text), "%" PRId64, clock);
        store_set(s->node, s->keys[KEY_FENCE], hf__slice_text(text), s->node->now_ms + a->brief);
        bool short_answer = clock >= INT64_C(1000000000000000); /* of 16 digits */
        if (!short_answer)
            say(s->out, "*2\r\n");
        say_number(s->out, clock);
        if (!short_answer)
            say_number(s->out, a->lease);
        return;
    }
    bool watched = queue_is_watched(s);
    size_t waiting = queue_count(s);
    int64_t minted =
        queue_mint(s, (minting){kept.last, a->range, a->lease, waiting, a->keep, a->brief});
    if (watched)
        queue_announce(s, "granted", a->value, minted + a->range - 1, a->lease);
    if (a->owned && waiting > 0)
        queue_invite(s, a->in_key, minted + a->range - 1);
    say_taken(s, minted, a->lease, waiting > 0);
}

/* The slot hears of this moment, whatever becomes of it. */
static void take(const script *s, const asked *a)
{
    take_free(s, a);
    if (!a->of_quorum)
        queue_tell_slot(s, s->clock_us, a->keep);
}

void script_run_acquire(script *s)
{
    asked a = read_acquire(s);
    node_key *lock = script_find(s, KEY_LOCK);
    s->node->acquires++;
    if (lock == NULL) {
        take(s, &a);
    } else if (lock->kind != NODE_STRING) {
        say(s->out, script_wrong_type);
    } else if (!script_has_value(lock, a.in_key)) {
        refuse(s, &a);
    } else if (a.owned) {
        enter_shared(s, &a);
    } else {
        if (lock->expires_ms < 0)
            lock->expires_ms = s->node->now_ms + a.lease;
        say_own(s, &a, store_ttl_ms(s->node, lock));
    }
}

/* ---- Release: value [, late [, keep [, owner [, proposed fence [, fence, unused]]]]] ---- */

static bool leave(const script *s, hf__slice value, hf__slice owner)
{
    node_key *holders = script_find(s, KEY_HOLDERS);
    bool alive = script_live_holder(s, holders, value) != NULL;
    queue_leave(s, value);
    if (store_member(holders, value) == NULL)
        return false;
    script_drop_scores(s, KEY_HOLDERS, INT64_MIN, s->node->now_ms);
    holders = script_find(s, KEY_HOLDERS);
    if (alive)
        store_drop(s->node, holders, store_member(holders, value));
    if (!alive || !script_has_value(script_find(s, KEY_LOCK), owner))
        return false;
    holders = script_find(s, KEY_HOLDERS);
    if (holders == NULL)
        store_remove(s->node, script_find(s, KEY_LOCK));
    else
        script_last_as_the_latest(script_find(s, KEY_LOCK), holders);
    return true;
}

static bool give_back(const script *s, hf__slice value)
{
    if (!script_has_value(script_find(s, KEY_LOCK), value)) {
        queue_leave(s, value);
        return false;
    }
    store_remove(s->node, script_find(s, KEY_LOCK));
    return true;
}

typedef struct released {
    hf__slice value, owner;
    int64_t late, keep, top, unused;
    bool of_quorum;
} released;

static released read_release(script *s)
{
    size_t count = s->argument_count;
    hf__slice none = {"", 0};
    released r = {.value = s->arguments[0],
                  .owner = count > 3 ? s->arguments[3] : none,
                  .late = number_or(s, 1, 0),
                  .keep = number_or(s, 2, HOUR_MS),
                  .top = number_or(s, 5, 0),
                  .unused = number_or(s, 6, 0),
                  .of_quorum = count == 5};
    node_expect(count > 0 && count != 6 && count < 8, "a strange release");
    script_expect_all_keys(s, r.of_quorum);
    if (r.of_quorum)
        s->clock_us = script_larger(s->clock_us, script_number_of(s->arguments[4]));
    s->node->releases++;
    s->node->tomb_count += r.late > 0;
    s->node->last_tombstone_ms = r.late;
    return r;
}

/* It is free: goes to the next one, or nothing is left under its name. */
static void pass_on(const script *s, const released *r, int64_t last)
{
    if (!queue_hand_on(s, last, r->keep))
        queue_leave_name(s, last, r->keep);
}

static void say_gone(const script *s, const released *r, fence kept)
{
    node_member *broken = store_member(script_find(s, KEY_NOTES), HF__SLICE("#broken"));
    bool untouched = !r->of_quorum && r->owner.length == 0 && kept.last > 0 &&
                     kept.last == r->top && r->unused == 0 && !kept.left;
    if (broken != NULL)
        say_number(s->out, -script_number_of(store_slice(&broken->text)));
    else
        say_number(s->out, untouched ? 2 : 0);
}

void script_run_release(script *s)
{
    released r = read_release(s);
    bool owned = r.owner.length > 0;
    fence kept = script_read_fence(s, KEY_FENCE);
    int64_t last = kept.last;
    bool ours = script_has_value(script_find(s, KEY_LOCK), r.value);
    bool done = owned ? leave(s, r.value, r.owner) : give_back(s, r.value);
    bool plain = ours && r.late == 0 && kept.plain && s->argument_count < 6;
    if (ours && !plain && !r.of_quorum && (r.top == 0 || r.top == last) && !queue_is_watched(s))
        last = script_larger(0, last - r.unused);
    if (r.late > 0) {
        script_drop_scores(s, KEY_QUEUE, -s->node->now_ms + 1, -1);
        queue_bury(s, r.value, r.late);
        queue_mark(s, r.late);
    }
    if (plain && !r.of_quorum)
        store_remove(s->node, script_find(s, KEY_FENCE));
    if (script_find(s, KEY_LOCK) == NULL && !plain) {
        if (done && queue_is_watched(s))
            queue_announce(s, "released", r.value, kept.last, 0);
        pass_on(s, &r, last);
    }
    if (done)
        say_number(s->out, 1);
    else
        say_gone(s, &r, kept);
}
