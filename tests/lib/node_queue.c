/* SPDX-License-Identifier: MIT */
/* See node_scripts.c: src/lua/hand_on.lua in C. A waiter is a member of the queue with its order as
 * score, and a note "n alive-until lease range since owner"; a tombstone is a member "!value" with
 * -(expiry) as score. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node_scripts.h"

enum { NEXT_MAX = 1000, CLIENT_ID = 32 };

/* ---- Fences ---- */

/* Tombstones whose time is over need no mark. */
static void prune(const script *s)
{
    script_drop_scores(s, KEY_QUEUE, -s->node->now_ms + 1, -1);
}

/* The mark stays while its time is not over. */
static bool stays_watched(const script *s)
{
    const node_member *until = store_member(script_find(s, KEY_NOTES), HF__SLICE("#watched"));
    return queue_is_watched(s) && until != NULL &&
           script_number_of(store_slice(&until->text)) > s->node->now_ms;
}

static bool has_slot(const script *s)
{
    return s->key_count > KEY_SLOT;
}

static int64_t slot_mark(const script *s)
{
    return has_slot(s) ? script_read_fence(s, KEY_SLOT).last : 0;
}

void queue_tell_slot(const script *s, int64_t number, int64_t keep_ms)
{
    char text[32];
    int64_t told = script_larger(number, slot_mark(s));
    snprintf(text, sizeof(text), "%" PRId64, told);
    store_set(s->node, s->keys[KEY_SLOT], hf__slice_text(text),
              script_larger(s->node->now_ms, told / 1000) + keep_ms);
}

void queue_mark(const script *s, int64_t life_ms)
{
    char text[64];
    node_key *kept = script_find(s, KEY_FENCE);
    if (kept == NULL && has_slot(s))
        store_set(s->node, s->keys[KEY_FENCE], HF__SLICE("0+"), s->node->now_ms + life_ms);
    if (kept == NULL)
        return;
    script_last_at_least(s, kept, life_ms);
    if (strchr(kept->value.bytes, '+') != NULL)
        return;
    size_t head = strspn(kept->value.bytes, "0123456789");
    snprintf(text, sizeof(text), "%.*s+%s", (int)head, kept->value.bytes, kept->value.bytes + head);
    store_write(&kept->value, hf__slice_text(text));
}

int64_t queue_mint(const script *s, minting wanted)
{
    char text[64], marks[8];
    int64_t last = script_larger(wanted.last, wanted.last == 0 ? slot_mark(s) : 0);
    int64_t first = script_larger(last + 1, s->clock_us), range = wanted.range;
    first += range == 0 && first > s->clock_us; /* a copy, and somebody has a larger one */
    int64_t top = first + range - 1, keep_ms = wanted.keep_ms;
    if (wanted.waiting == 0) {
        prune(s);
        wanted.waiting = script_find(s, KEY_QUEUE) != NULL;
    }
    bool ahead = has_slot(s) && wanted.last >= s->clock_us && /* by the name's own fence */
                 script_read_fence(s, KEY_FENCE).last >= s->clock_us;
    snprintf(marks, sizeof(marks), "%s%s%s", wanted.waiting > 0 || ahead ? "+" : "",
             range > 1 ? "*" : "", stays_watched(s) ? "@" : "");
    if (marks[0] == '\0' && wanted.brief_ms > 0)
        keep_ms = wanted.brief_ms;
    snprintf(text, sizeof(text), "%" PRId64 "%s", top, marks);
    store_set(s->node, s->keys[KEY_FENCE], hf__slice_text(text),
              top / 1000 + script_larger(keep_ms, 2 * wanted.lease));
    if (marks[0] == '\0' && has_slot(s))
        queue_tell_slot(s, top, wanted.keep_ms);
    return first;
}

void queue_leave_name(const script *s, int64_t last, int64_t keep_ms)
{
    int64_t life_ms = -1;
    const char *marks = "";
    if (!has_slot(s))
        return;
    prune(s);
    if (script_find(s, KEY_QUEUE) != NULL) {
        marks = "+";
        life_ms = store_ttl_ms(s->node, script_find(s, KEY_QUEUE));
    }
    if (stays_watched(s)) {
        const node_member *until = store_member(script_find(s, KEY_NOTES), HF__SLICE("#watched"));
        int64_t watched_ms = script_number_of(store_slice(&until->text)) - s->node->now_ms;
        marks = *marks == '+' ? "+@" : "@";
        life_ms = script_larger(life_ms, watched_ms);
    }
    if (last > 0)
        queue_tell_slot(s, last, keep_ms);
    bool ahead = last > s->clock_us;
    if (ahead) {
        int64_t ahead_ms = last / 1000 + 1 - s->node->now_ms;
        life_ms = script_larger(life_ms, ahead_ms < keep_ms ? ahead_ms : keep_ms);
    }
    char text[32];
    if (ahead || strchr(marks, '@') != NULL)
        snprintf(text, sizeof(text), "%" PRId64 "-%s", last, marks);
    else
        snprintf(text, sizeof(text), "0%s", marks);
    if (life_ms > 0)
        store_set(s->node, s->keys[KEY_FENCE], hf__slice_text(text), s->node->now_ms + life_ms);
    else
        store_remove(s->node, script_find(s, KEY_FENCE));
}

/* ---- Who waits ---- */

size_t queue_count(const script *s)
{
    const node_key *queue = script_find(s, KEY_QUEUE);
    size_t count = 0;
    for (size_t i = 0; queue != NULL && i < queue->member_count; i++)
        count += queue->members[i].score >= 0;
    return count;
}

static void drop(const script *s, size_t key, hf__slice name)
{
    node_key *from = script_find(s, key);
    node_member *member = store_member(from, name);
    if (member != NULL)
        store_drop(s->node, from, member);
}

void queue_leave(const script *s, hf__slice value)
{
    drop(s, KEY_QUEUE, value);
    drop(s, KEY_NOTES, value);
}

static hf__slice tombstone(hf__slice value, char *place, size_t size)
{
    node_expect(value.length + 1 < size, "value too long");
    place[0] = '!';
    memcpy(place + 1, value.bytes, value.length);
    return (hf__slice){place, value.length + 1};
}

bool queue_is_buried(const script *s, hf__slice value)
{
    char place[16384];
    return store_member(script_find(s, KEY_QUEUE), tombstone(value, place, sizeof(place))) != NULL;
}

void queue_bury(const script *s, hf__slice value, int64_t late_ms)
{
    char place[16384];
    node_key *queue = store_make(s->node, s->keys[KEY_QUEUE], NODE_ZSET);
    store_add(queue, tombstone(value, place, sizeof(place)))->score = -(s->node->now_ms + late_ms);
    script_last_at_least(s, queue, late_ms);
}

/* ---- Messages ---- */

bool queue_is_ours(hf__slice value, int64_t *number)
{
    size_t at = 0, digits = 0;
    while (at < value.length && isxdigit((unsigned char)value.bytes[at]))
        at++;
    if (at == 0 || at == value.length || value.bytes[at] != ':')
        return false;
    at++;
    while (at + digits < value.length && isdigit((unsigned char)value.bytes[at + digits]))
        digits++;
    if (digits == 0 || at + digits == value.length || value.bytes[at + digits] != '@')
        return false;
    *number = strtoll(value.bytes + at, NULL, 10);
    return true;
}

static void channel_of(hf__slice value, char *channel)
{
    size_t length = value.length < CLIENT_ID ? value.length : CLIENT_ID;
    snprintf(channel, NODE_CHANNEL, "hf:c:%.*s", (int)length, value.bytes);
}

void queue_tell(const script *s, hf__slice value, char word, const char *rest)
{
    char channel[NODE_CHANNEL], text[2048];
    int64_t number;
    if (!queue_is_ours(value, &number) || node_denies(s->node, "PUBLISH"))
        return;
    channel_of(value, channel);
    int length = snprintf(text, sizeof(text), "%c %" PRId64 "%s", word, number, rest);
    node_publish(s->node, channel, text, (size_t)length);
}

bool queue_is_watched(const script *s)
{
    const node_key *kept = script_find(s, KEY_FENCE);
    return kept != NULL && strchr(kept->value.bytes, '@') != NULL;
}

void queue_announce(const script *s, const char *word, hf__slice value, int64_t minted,
                    int64_t lease)
{
    char channel[NODE_CHANNEL], text[1024];
    hf__slice key = s->keys[KEY_FENCE];
    snprintf(channel, sizeof(channel), "hf:e:%.*s", (int)key.length, key.bytes);
    int length = snprintf(text, sizeof(text), "%s %" PRId64 " %" PRId64 " %.*s", word, minted,
                          lease, (int)value.length, value.bytes);
    if (!node_denies(s->node, "PUBLISH"))
        node_publish(s->node, channel, text, (size_t)length);
}

static bool is_subscribed(const script *s, hf__slice value)
{
    char channel[NODE_CHANNEL];
    channel_of(value, channel);
    return node_denies(s->node, "PUBSUB") || node_listeners(s->node, hf__slice_text(channel)) > 0;
}

/* ---- Handing on ---- */

void queue_share(const script *s, hf__slice value, int64_t lease)
{
    store_remove(s->node, script_find(s, KEY_HOLDERS));
    script_add_holder(s, KEY_HOLDERS, value, lease);
    script_find(s, KEY_HOLDERS)->expires_ms = s->node->now_ms + lease;
}

static bool comes_before(const node_member *a, const node_member *b)
{
    return a->score != b->score ? a->score < b->score : strcmp(a->name.bytes, b->name.bytes) < 0;
}

const node_member *queue_first(const script *s)
{
    const node_key *queue = script_find(s, KEY_QUEUE);
    const node_member *first = NULL;
    for (size_t i = 0; queue != NULL && i < queue->member_count; i++) {
        const node_member *member = &queue->members[i];
        if (member->score >= 0 && (first == NULL || comes_before(member, first)))
            first = member;
    }
    return first;
}

/* Whether it lives: was heard from lately, and could hear us. */
static bool read_waiter(const script *s, hf__slice value, waiter *next)
{
    const node_member *note = store_member(script_find(s, KEY_NOTES), value);
    int64_t alive, since;
    int owner = 0;
    node_expect(value.length < sizeof(next->value), "value too long");
    *next = (waiter){.copy = 0};
    memcpy(next->value, value.bytes, value.length);
    if (note == NULL ||
        sscanf(note->text.bytes, "%" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 "%n",
               &next->copy, &alive, &next->lease, &next->range, &since, &owner) != 5)
        return false;
    snprintf(next->owner, sizeof(next->owner), "%s", note->text.bytes + owner + 1);
    next->in_key = hf__slice_text(next->owner[0] != '\0' ? next->owner : next->value);
    return alive >= s->node->now_ms && (next->copy == 0 || is_subscribed(s, value));
}

bool queue_next(const script *s, hf__slice stays, waiter *next)
{
    for (int i = 0; i < NEXT_MAX; i++) {
        const node_member *first = queue_first(s);
        if (first == NULL)
            return false;
        bool lives = read_waiter(s, store_slice(&first->name), next);
        if (lives || slice_is(hf__slice_text(next->value), stays))
            return true;
        queue_leave(s, hf__slice_text(next->value));
    }
    return false;
}

static void tell_granted(const script *s, const waiter *next, int64_t number, size_t waiting)
{
    char rest[128];
    snprintf(rest, sizeof(rest), " %" PRId64 " %" PRId64 " %" PRId64 " %d", next->copy, number,
             next->lease, waiting > 0);
    queue_tell(s, hf__slice_text(next->value), 'g', rest);
}

void queue_grant(const script *s, const waiter *next, int64_t last, int64_t keep_ms)
{
    hf__slice value = hf__slice_text(next->value);
    const node_member *place = store_member(script_find(s, KEY_QUEUE), value);
    script minting_as = *s; /* never below a ticket */
    if (place != NULL)
        minting_as.clock_us = script_larger(s->clock_us, place->score);
    queue_leave(s, value);
    store_set(s->node, s->keys[KEY_LOCK], next->in_key, s->node->now_ms + next->lease);
    if (next->owner[0] != '\0')
        queue_share(s, value, next->lease);
    size_t waiting = queue_count(s);
    bool watched = queue_is_watched(s);
    bool copy = next->range == 0;
    int64_t minted = queue_mint(&minting_as, (minting){last, next->range + copy, next->lease,
                                                       waiting, keep_ms, 0}) +
                     copy;
    tell_granted(s, next, minted, waiting);
    if (watched)
        queue_announce(s, "granted", value, minted + next->range - 1, next->lease);
    if (next->owner[0] != '\0' && waiting > 0)
        queue_invite(s, next->in_key, minted + next->range - 1);
}

bool queue_hand_on(const script *s, int64_t last, int64_t keep_ms)
{
    waiter next;
    bool found = queue_next(s, HF__SLICE(""), &next);
    if (found)
        queue_grant(s, &next, last, keep_ms);
    return found;
}

/* ---- Others of the same owner ---- */

enum { INVITED_MAX = 100 };

/* Who comes behind that one; NULL: nobody. */
static const node_member *queue_behind(const script *s, const node_member *before)
{
    const node_key *queue = script_find(s, KEY_QUEUE);
    const node_member *next = NULL;
    for (size_t i = 0; queue != NULL && i < queue->member_count; i++) {
        const node_member *member = &queue->members[i];
        if (member->score >= 0 && (before == NULL || comes_before(before, member)) &&
            (next == NULL || comes_before(member, next)))
            next = member;
    }
    return next;
}

/* Those who wait, in order; returns how many. */
static size_t list_waiters(const script *s, waiter *all, bool *live)
{
    size_t count = 0;
    const node_member *at = NULL;
    while (count < INVITED_MAX && (at = queue_behind(s, at)) != NULL) {
        live[count] = read_waiter(s, store_slice(&at->name), &all[count]);
        all[count].in_key = (hf__slice){NULL, 0}; /* would point into a copy */
        count++;
    }
    return count;
}

void queue_invite(const script *s, hf__slice owner, int64_t last)
{
    static waiter all[INVITED_MAX];
    bool live[INVITED_MAX], invited[INVITED_MAX];
    size_t others[INVITED_MAX], count = list_waiters(s, all, live);
    bool of_quorum = !has_slot(s);
    for (size_t i = 0; i < count; i++) {
        invited[i] = live[i] && slice_is(hf__slice_text(all[i].owner), owner);
        if (!invited[i] && of_quorum)
            count = i;
        if (i >= count || !invited[i])
            continue;
        queue_leave(s, hf__slice_text(all[i].value));
        script_add_holder(s, KEY_HOLDERS, hf__slice_text(all[i].value), all[i].lease);
        others[i] = queue_count(s);
    }
    script_last_as_the_latest(script_find(s, KEY_LOCK), script_find(s, KEY_HOLDERS));
    for (size_t i = 0; i < count; i++)
        if (invited[i])
            tell_granted(s, &all[i], last - all[i].range + 1, others[i]);
}
