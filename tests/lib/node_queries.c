/* SPDX-License-Identifier: MIT */
/* See node_scripts.c: the scripts for those who look at a lock from outside. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node_scripts.h"

/* ---- Inspect: lock, fence, holders; how many ---- */

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
        say_bulk(s->out, store_slice(&member->name));
        say_number(s->out, member->score - s->node->now_ms);
    }
}

void script_run_inspect(script *s)
{
    char text[32] = "";
    node_expect(s->key_count == 3 && s->argument_count == 1, "inspect takes three keys and one");
    script_expect_keys(s, 0, "fh");
    node_key *lock = script_find(s, 0);
    int64_t last = script_read_fence(s, 1).last;
    s->node->inspects++;
    if (lock != NULL && lock->kind != NODE_STRING) {
        say(s->out, script_wrong_type);
        return;
    }
    if (last > 0)
        snprintf(text, sizeof(text), "%lld", (long long)last);
    say_array(s->out, 5);
    if (lock != NULL)
        say_bulk(s->out, store_slice(&lock->value));
    else
        say(s->out, "$-1\r\n");
    say_number(s->out, store_ttl_ms(s->node, lock));
    say_bulk(s->out, hf__slice_text(text));
    say_holders(s, script_find(s, 2), (size_t)script_number_of(s->arguments[0]));
}

/* ---- Revoke: lock, fence, notes; why, fence, keep ---- */

static void write_note(const script *s, size_t key, hf__slice name, hf__slice text)
{
    store_write(&store_add(store_make(s->node, s->keys[key], NODE_HASH), name)->text, text);
}

static void write_number(const script *s, size_t key, hf__slice name, int64_t number)
{
    char text[32];
    snprintf(text, sizeof(text), "%lld", (long long)number);
    write_note(s, key, name, hf__slice_text(text));
}

/* "<fence>:<why>", or "=<value of the lock>:<why>" where there is no fence. */
static void leave_request(const script *s, const node_key *lock, int64_t last)
{
    char text[2048];
    hf__slice why = s->arguments[0];
    if (last > 0)
        snprintf(text, sizeof(text), "%lld:%.*s", (long long)last, (int)why.length, why.bytes);
    else
        snprintf(text, sizeof(text), "=%s:%.*s", lock->value.bytes, (int)why.length, why.bytes);
    write_note(s, 2, HF__SLICE("#revoked"), hf__slice_text(text));
    if (last > 0)
        script_mark_fence(s, 1, '!');
    script_last_at_least(s, script_find(s, 2), script_number_of(s->arguments[2]));
}

void script_run_revoke(script *s)
{
    node_expect(s->key_count == 3 && s->argument_count == 3, "revoke takes three keys and three");
    script_expect_keys(s, 0, "fw");
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
    say_number(s->out, meant);
}

/* ---- Break: lock, queue, fence, notes, holders; value, fence, keep ---- */

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

static void bury(const script *s, hf__slice value, int64_t late_ms)
{
    char place[16384];
    node_key *queue = store_make(s->node, s->keys[1], NODE_ZSET);
    store_add(queue, script_tombstone(value, place, sizeof(place)))->score =
        -(s->node->now_ms + late_ms);
    script_last_at_least(s, queue, late_ms);
}

static void break_lock(const script *s, int64_t last, hf__slice victim)
{
    node_key *lock = script_find(s, 0), *holders = script_find(s, 4);
    int64_t remaining = store_ttl_ms(s->node, lock), late = script_larger(remaining, 1000);
    int64_t keep = script_larger(script_number_of(s->arguments[2]), remaining);
    int64_t minted = script_mint(s, 2, last, true, keep);
    node_text raised = join_words(minted, victim);
    for (size_t i = 0; holders != NULL && i < holders->member_count; i++)
        bury(s, store_slice(&holders->members[i].name), late);
    bury(s, s->arguments[0], late);
    store_remove(s->node, lock);
    store_remove(s->node, holders);
    write_number(s, 3, HF__SLICE("#broken"), last > 0 ? last : minted - 1);
    write_note(s, 3, HF__SLICE("#raised"), store_slice(&raised));
    script_last_at_least(s, script_find(s, 3), keep);
    free(raised.bytes);
    say_number(s->out, minted);
}

void script_run_break(script *s)
{
    node_expect(s->key_count == 5 && s->argument_count == 3, "break takes five keys and three");
    script_expect_keys(s, 0, "qfwh");
    int64_t last = script_read_fence(s, 2).last;
    node_text victim = join_words(script_number_of(s->arguments[1]), s->arguments[0]);
    s->node->breaks++;
    if (script_has_value(script_find(s, 0), s->arguments[0]) &&
        last == script_number_of(s->arguments[1]))
        break_lock(s, last, store_slice(&victim));
    else
        say_raised(s, store_slice(&victim));
    free(victim.bytes);
}
