/* SPDX-License-Identifier: MIT */
/* See node_scripts.c: the scripts for those who look at a lock from outside. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node_scripts.h"

/* ---- Inspect: lock, fence, holders, queue, notes; how many holders, how many waiters ---- */

/* As ZREVRANGEBYSCORE lists them: by score, then by name, backwards. */
static int backwards(const node_member *a, const node_member *b)
{
    if (a->score != b->score)
        return a->score < b->score ? 1 : -1;
    return strcmp(b->name.bytes, a->name.bytes);
}

static const node_member *next_live(const script *s, const node_key *holders,
                                    const node_member *after)
{
    const node_member *next = NULL;
    for (size_t i = 0; i < holders->member_count; i++) {
        const node_member *member = &holders->members[i];
        if (member->score > s->node->now_ms && (after == NULL || backwards(member, after) > 0) &&
            (next == NULL || backwards(member, next) < 0))
            next = member;
    }
    return next;
}

static void say_holders(const script *s, const node_key *holders, size_t limit)
{
    size_t live = script_count_live(s, holders), listed = live < limit ? live : limit;
    const node_member *member = NULL;
    say_number(s->out, (int64_t)live);
    say_array(s->out, 2 * listed);
    for (size_t i = 0; i < listed; i++) {
        member = next_live(s, holders, member);
        say_bulk(s->out, script_cut(store_slice(&member->name)));
        say_number(s->out, member->score - s->node->now_ms);
    }
}

static const node_member *next_waiter(const node_key *queue, const node_member *after)
{
    const node_member *next = NULL;
    for (size_t i = 0; i < queue->member_count; i++) {
        const node_member *member = &queue->members[i];
        if (member->score >= 0 && (after == NULL || backwards(member, after) < 0) &&
            (next == NULL || backwards(member, next) > 0))
            next = member;
    }
    return next;
}

/* The queue is key 3 and the notes are key 4 here. */
static void say_waiters(const script *s, size_t limit)
{
    const node_key *queue = script_find(s, 3);
    size_t waiting = 0;
    int64_t since = 0;
    const node_member *member = NULL;
    for (size_t i = 0; queue != NULL && i < queue->member_count; i++)
        waiting += queue->members[i].score >= 0;
    size_t listed = waiting < limit ? waiting : limit;
    say_number(s->out, (int64_t)waiting);
    say_array(s->out, 2 * listed);
    for (size_t i = 0; i < listed; i++) {
        member = next_waiter(queue, member);
        const node_member *note = store_member(script_find(s, 4), store_slice(&member->name));
        bool known = note != NULL && sscanf(note->text.bytes, "%*d %*d %*d %*d %" SCNd64, &since);
        say_bulk(s->out, script_cut(store_slice(&member->name)));
        say_number(s->out, known ? s->node->now_ms - since : 0);
    }
}

void script_run_inspect(script *s)
{
    char text[32] = "";
    node_expect(s->key_count == 5 && s->argument_count == 2, "inspect takes five keys and two");
    script_expect_keys(s, 0, "fhqw");
    node_key *lock = script_find(s, 0);
    int64_t last = script_read_fence(s, 1).last;
    s->node->inspects++;
    if (lock != NULL && lock->kind != NODE_STRING) {
        say(s->out, script_wrong_type);
        return;
    }
    if (last > 0)
        snprintf(text, sizeof(text), "%lld", (long long)last);
    say_array(s->out, 7);
    if (lock != NULL)
        say_bulk(s->out, script_cut(store_slice(&lock->value)));
    else
        say(s->out, "$-1\r\n");
    say_number(s->out, store_ttl_ms(s->node, lock));
    say_bulk(s->out, hf__slice_text(text));
    say_holders(s, script_find(s, 2), (size_t)script_number_of(s->arguments[0]));
    say_waiters(s, (size_t)script_number_of(s->arguments[1]));
}

/* ---- Revoke: lock, fence, notes, holders; why, fence, keep ---- */

static void write_note(const script *s, size_t key, hf__slice name, hf__slice text)
{
    store_write(&store_add(store_make(s->node, s->keys[key], NODE_HASH), name)->text, text);
}

/* All that share it, and what is in the lock's key. */
static void tell_holders(const script *s, const node_key *holders, hf__slice held, char word,
                         const char *text)
{
    char rest[2060];
    snprintf(rest, sizeof(rest), " %s", text);
    for (size_t i = 0; holders != NULL && i < holders->member_count; i++)
        queue_tell(s, store_slice(&holders->members[i].name), word, rest);
    queue_tell(s, held, word, rest);
}

/* "<fence>:<why>", or "=<value of the lock>:<why>" where there is no fence. */
static void leave_request(const script *s, const node_key *lock, int64_t last)
{
    char text[2048];
    hf__slice why = s->arguments[0];
    if (last > 0)
        snprintf(text, sizeof(text), "%lld:%.*s", (long long)last, (int)why.length, why.bytes);
    else
        snprintf(text, sizeof(text), "=%s:%.*s", script_cut(store_slice(&lock->value)).bytes,
                 (int)why.length, why.bytes);
    write_note(s, 2, HF__SLICE("#revoked"), hf__slice_text(text));
    script_last_at_least(s, script_find(s, 2), script_number_of(s->arguments[2]));
    tell_holders(s, script_find(s, 3), store_slice(&lock->value), 'r', text);
}

/* For revoke and observe the fence is key 1. */
static bool is_watched(const script *s)
{
    const node_key *kept = script_find(s, 1);
    return kept != NULL && strchr(kept->value.bytes, '@') != NULL;
}

static void announce_revoked(const script *s, const node_key *lock, int64_t last)
{
    const hf__slice keys[] = {s->keys[0], s->keys[0], s->keys[1]}; /* where the others have it */
    script as_others = *s;
    as_others.keys = keys;
    queue_announce(&as_others, "revoked", store_slice(&lock->value), last, 0);
}

void script_run_revoke(script *s)
{
    node_expect(s->key_count == 4 && s->argument_count == 3, "revoke takes four keys and three");
    script_expect_keys(s, 0, "fwh");
    const node_key *lock = script_find(s, 0);
    int64_t last = script_read_fence(s, 1).last;
    bool meant = lock != NULL && last == script_number_of(s->arguments[1]);
    s->node->revokes++;
    if (lock != NULL && lock->kind != NODE_STRING) {
        say(s->out, script_wrong_type);
        return;
    }
    if (meant)
        leave_request(s, lock, last);
    if (meant && is_watched(s))
        announce_revoked(s, lock, last);
    say_number(s->out, meant);
}

/* ---- Break: lock, queue, fence, notes, holders; value, fence, keep, least new fence ---- */

/* Says what was made of the same request before: "<new fence>:<fence>:<value>", or 0. */
static void say_raised(const script *s, hf__slice victim)
{
    node_member *raised = store_member(script_find(s, 3), HF__SLICE("#raised"));
    const char *colon = raised != NULL ? strchr(raised->text.bytes, ':') : NULL;
    size_t head = colon != NULL ? (size_t)(colon + 1 - raised->text.bytes) : 0;
    bool same = colon != NULL && slice_is(victim, (hf__slice){raised->text.bytes + head,
                                                              raised->text.length - head});
    say_number(s->out, same ? strtoll(raised->text.bytes, NULL, 10) : 0);
}

/* Behind `before`, both in one block that the caller frees. */
static node_text join_words(int64_t before, hf__slice behind)
{
    char number[32];
    node_text joined = {NULL, 0, 0};
    int length = snprintf(number, sizeof(number), "%lld:", (long long)before);
    joined.length = (size_t)length + behind.length;
    joined.bytes = malloc(joined.length + 1);
    node_expect(joined.bytes != NULL, "no memory");
    memcpy(joined.bytes, number, (size_t)length);
    memcpy(joined.bytes + length, behind.bytes, behind.length);
    return joined;
}

static void break_lock(const script *s, int64_t last, hf__slice victim)
{
    char broken[32];
    node_key *lock = script_find(s, KEY_LOCK), *holders = script_find(s, KEY_HOLDERS);
    int64_t remaining = store_ttl_ms(s->node, lock), late = script_larger(remaining, 1000);
    int64_t keep = script_larger(script_number_of(s->arguments[2]), remaining);
    for (size_t i = 0; holders != NULL && i < holders->member_count; i++)
        queue_bury(s, store_slice(&holders->members[i].name), late);
    queue_bury(s, s->arguments[0], late);
    store_remove(s->node, lock);
    bool watched = queue_is_watched(s);
    int64_t minted = queue_mint(s, (minting){last, 1, 0, queue_count(s), keep, 0});
    node_text raised = join_words(minted, victim);
    snprintf(broken, sizeof(broken), "%" PRId64, last > 0 ? last : minted - 1);
    write_note(s, KEY_NOTES, HF__SLICE("#broken"), hf__slice_text(broken));
    write_note(s, KEY_NOTES, HF__SLICE("#raised"), store_slice(&raised));
    script_last_at_least(s, script_find(s, KEY_NOTES), keep);
    tell_holders(s, holders, s->arguments[0], 'x', broken);
    store_remove(s->node, holders);
    free(raised.bytes);
    if (watched)
        queue_announce(s, "broken", s->arguments[0], minted, 0);
    if (!queue_hand_on(s, minted, keep))
        queue_leave_name(s, minted, keep);
    say_number(s->out, minted);
}

void script_run_break(script *s)
{
    node_expect(s->argument_count == 3 || s->argument_count == 4, "break takes three, or four");
    script_expect_all_keys(s, s->argument_count == 4);
    int64_t last = script_read_fence(s, 2).last;
    node_text victim = join_words(script_number_of(s->arguments[1]), s->arguments[0]);
    s->node->breaks++;
    if (s->argument_count > 3)
        s->clock_us = script_larger(s->clock_us, script_number_of(s->arguments[3]));
    const node_key *lock = script_find(s, 0);
    if (lock != NULL && lock->kind == NODE_STRING &&
        slice_is(script_cut(store_slice(&lock->value)), s->arguments[0]) &&
        last == script_number_of(s->arguments[1]))
        break_lock(s, last, store_slice(&victim));
    else
        say_raised(s, store_slice(&victim));
    free(victim.bytes);
}

/* ---- Observe: lock, fence, notes; for how long ---- */

void script_run_observe(script *s)
{
    char text[32];
    node_expect(s->key_count == 3 && s->argument_count == 1, "observe takes three keys and one");
    script_expect_keys(s, 0, "fw");
    int64_t ms = script_number_of(s->arguments[0]);
    node_key *kept = script_find(s, 1);
    s->node->observes++;
    snprintf(text, sizeof(text), "%" PRId64, s->node->now_ms + ms);
    write_note(s, 2, HF__SLICE("#watched"), hf__slice_text(text));
    script_last_at_least(s, script_find(s, 2), ms);
    if (kept == NULL) {
        store_set(s->node, s->keys[1], HF__SLICE("0@"), s->node->now_ms + ms);
    } else {
        if (!is_watched(s)) {
            snprintf(text, sizeof(text), "%s@", kept->value.bytes);
            store_write(&kept->value, hf__slice_text(text));
        }
        script_last_at_least(s, kept, ms);
    }
    say_number(s->out, 1);
}
