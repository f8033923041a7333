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

int64_t queue_mint(const script *s, int64_t last, int64_t range, int64_t lease, size_t waiting,
                   int64_t keep_ms)
{
    char text[64];
    int64_t first = script_larger(last + 1, s->clock_us);
    first += range == 0 && first > s->clock_us; /* a copy, and somebody has a larger one */
    int64_t top = first + range - 1;
    if (waiting == 0) {
        prune(s);
        waiting = script_find(s, KEY_QUEUE) != NULL;
    }
    snprintf(text, sizeof(text), "%" PRId64 "%s%s%s", top, waiting > 0 ? "+" : "",
             range > 1 ? "*" : "", stays_watched(s) ? "@" : "");
    store_set(s->node, s->keys[KEY_FENCE], hf__slice_text(text),
              top / 1000 + script_larger(keep_ms, 2 * lease));
    return first;
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

void queue_grant(const script *s, const waiter *next, int64_t last, int64_t keep_ms)
{
    char rest[128];
    hf__slice value = hf__slice_text(next->value);
    const node_member *place = store_member(script_find(s, KEY_QUEUE), value);
    script minting = *s; /* never below a ticket */
    if (place != NULL)
        minting.clock_us = script_larger(s->clock_us, place->score);
    queue_leave(s, value);
    store_set(s->node, s->keys[KEY_LOCK], next->in_key, s->node->now_ms + next->lease);
    if (next->owner[0] != '\0')
        queue_share(s, value, next->lease);
    size_t waiting = queue_count(s);
    bool watched = queue_is_watched(s);
    bool copy = next->range == 0;
    int64_t minted =
        queue_mint(&minting, last, next->range + copy, next->lease, waiting, keep_ms) + copy;
    snprintf(rest, sizeof(rest), " %" PRId64 " %" PRId64 " %" PRId64 " %d", next->copy, minted,
             next->lease, waiting > 0);
    queue_tell(s, value, 'g', rest);
    if (watched)
        queue_announce(s, "granted", value, minted + next->range - 1, next->lease);
}

void queue_hand_on(const script *s, int64_t last, int64_t keep_ms)
{
    waiter next;
    if (queue_next(s, HF__SLICE(""), &next))
        queue_grant(s, &next, last, keep_ms);
}
