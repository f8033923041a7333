/* SPDX-License-Identifier: MIT */
/* See node.h. The meaning of the scripts, written a second time and in C. Each function follows the
 * contract at the top of its src/lua file, which is where to read why. It also looks at the keys:
 * the side keys must be those of the lock, each with its letter, in this order. Here are those of
 * holders; node_queries.c has the others. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lua/scripts.h"
#include "node_scripts.h"

const char script_wrong_type[] =
    "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n";

int64_t script_number_of(hf__slice said)
{
    char text[32] = "";
    char *end;
    node_expect(said.length > 0 && said.length < sizeof(text), "not a number");
    memcpy(text, said.bytes, said.length);
    int64_t number = strtoll(text, &end, 10);
    node_expect(*end == '\0', "not a number");
    return number;
}

int64_t script_larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

void script_expect_keys(const script *s, size_t first, const char *letters)
{
    size_t count = strlen(letters) + 1;
    node_expect(s->key_count >= first + count, "too few keys");
    hf__slice lock = s->keys[first];
    for (size_t i = 1; i < count; i++) {
        hf__slice side = s->keys[first + i];
        const char *brace = memchr(side.bytes, '}', side.length);
        node_expect(side.length > 6 && memcmp(side.bytes, "hf:", 3) == 0, "not a side key");
        node_expect(side.bytes[3] == letters[i - 1], "side keys in the wrong order");
        node_expect(memcmp(side.bytes + 4, ":{", 2) == 0 && brace != NULL, "not a side key");
        size_t head = (size_t)(brace + 1 - side.bytes);
        node_expect(slice_is((hf__slice){side.bytes + head, side.length - head}, lock),
                    "side key of another lock");
    }
}

node_key *script_find(const script *s, size_t key)
{
    return store_find(s->node, s->keys[key]);
}

bool script_has_value(const node_key *key, hf__slice value)
{
    return key != NULL && key->kind == NODE_STRING && slice_is(store_slice(&key->value), value);
}

void script_last_at_least(const script *s, node_key *key, int64_t ms)
{
    if (key != NULL && store_ttl_ms(s->node, key) < ms)
        key->expires_ms = s->node->now_ms + ms;
}

/* ---- Fences ---- */

fence script_read_fence(const script *s, size_t key)
{
    node_key *kept = script_find(s, key);
    if (kept == NULL)
        return (fence){0, false};
    size_t digits = strspn(kept->value.bytes, "0123456789");
    return (fence){digits > 0 ? strtoll(kept->value.bytes, NULL, 10) : 0,
                   digits > 0 && digits == kept->value.length};
}

int64_t script_mint(const script *s, size_t key, int64_t last, bool mark, int64_t keep_ms)
{
    char text[32];
    int64_t minted = script_larger(last + 1, s->node->now_ms * 1000);
    snprintf(text, sizeof(text), "%lld%s", (long long)minted, mark ? "+" : "");
    store_set(s->node, s->keys[key], hf__slice_text(text), minted / 1000 + keep_ms);
    return minted;
}

void script_mark_fence(const script *s, size_t key, char mark)
{
    char text[64];
    node_key *kept = script_find(s, key);
    if (kept == NULL || strchr(kept->value.bytes, mark) != NULL)
        return;
    snprintf(text, sizeof(text), "%s%c", kept->value.bytes, mark);
    store_write(&kept->value, hf__slice_text(text));
}

hf__slice script_tombstone(hf__slice value, char *place, size_t size)
{
    node_expect(value.length + 1 < size, "value too long");
    place[0] = '!';
    memcpy(place + 1, value.bytes, value.length);
    return (hf__slice){place, value.length + 1};
}

/* ---- Holders ---- */

static node_member *live_holder(const script *s, node_key *holders, hf__slice value)
{
    node_member *member = store_member(holders, value);
    return member != NULL && member->score > s->node->now_ms ? member : NULL;
}

size_t script_count_live(const script *s, const node_key *holders)
{
    size_t live = 0;
    for (size_t i = 0; holders != NULL && i < holders->member_count; i++)
        live += holders->members[i].score > s->node->now_ms;
    return live;
}

static void drop_scores_up_to(const script *s, size_t key, int64_t from, int64_t to)
{
    node_key *set = script_find(s, key);
    for (size_t i = set != NULL ? set->member_count : 0; i-- > 0;)
        if (set->members[i].score >= from && set->members[i].score <= to)
            store_drop(s->node, set, &set->members[i]);
}

/* The lock lasts as long as the hold that lasts longest. */
static void last_as_the_latest(node_key *lock, node_key *holders)
{
    int64_t latest = 0;
    for (size_t i = 0; i < holders->member_count; i++)
        latest = script_larger(latest, holders->members[i].score);
    lock->expires_ms = holders->expires_ms = latest;
}

static void add_holder(const script *s, size_t key, hf__slice value, int64_t lease)
{
    store_add(store_make(s->node, s->keys[key], NODE_ZSET), value)->score = s->node->now_ms + lease;
}

/* ---- Acquire: lock, queue, fence [, holders]; value, lease, keep [, owner] ---- */

static void say_grant(const script *s, int64_t granted, int64_t remaining)
{
    say_array(s->out, 2);
    say_number(s->out, granted);
    say_number(s->out, remaining);
}

static void say_busy(const script *s, const node_key *lock)
{
    say_array(s->out, 3);
    say_number(s->out, 0);
    say_number(s->out, store_ttl_ms(s->node, lock));
    say_bulk(s->out, store_slice(&lock->value));
}

/* The hold was ended before; a copy of its acquire has come late. */
static bool is_ended(const script *s)
{
    char place[2048];
    hf__slice tombstone = script_tombstone(s->arguments[0], place, sizeof(place));
    return store_member(script_find(s, 1), tombstone) != NULL;
}

static void keep_fence(const script *s, size_t key, int64_t keep_ms)
{
    node_key *kept = script_find(s, key);
    if (kept != NULL && store_ttl_ms(s->node, kept) < keep_ms)
        kept->expires_ms = s->node->now_ms + keep_ms;
}

/* The lock is free. The queue is looked at if the fence says so, or is not what it should be. */
static void take(const script *s, bool owned, int64_t lease, int64_t keep_ms)
{
    node_key *counter = script_find(s, 2);
    fence kept = script_read_fence(s, 2);
    bool looks = !kept.plain || kept.last >= s->node->now_ms * 1000;
    if (counter != NULL && counter->kind != NODE_STRING) {
        say(s->out, script_wrong_type);
        return;
    }
    int64_t minted = script_mint(s, 2, kept.last, looks && script_find(s, 1) != NULL, keep_ms);
    if (looks && is_ended(s)) {
        say(s->out, "*1\r\n:-1\r\n");
        return;
    }
    store_set(s->node, s->keys[0], s->arguments[owned ? 3 : 0], s->node->now_ms + lease);
    if (owned) {
        store_remove(s->node, script_find(s, 3));
        add_holder(s, 3, s->arguments[0], lease);
        script_find(s, 3)->expires_ms = s->node->now_ms + lease;
    }
    say_grant(s, minted, lease);
}

/* Joins those who share the lock; false: nobody does. */
static bool join(const script *s, node_key *lock, int64_t lease, int64_t keep_ms)
{
    if (script_count_live(s, script_find(s, 3)) == 0)
        return false;
    drop_scores_up_to(s, 3, INT64_MIN, s->node->now_ms);
    add_holder(s, 3, s->arguments[0], lease);
    last_as_the_latest(lock, script_find(s, 3));
    keep_fence(s, 2, keep_ms);
    return true;
}

static void say_own(const script *s, int64_t remaining, int64_t keep_ms)
{
    int64_t last = script_read_fence(s, 2).last;
    if (last == 0)
        last = script_mint(s, 2, 0, script_find(s, 1) != NULL, keep_ms);
    say_grant(s, last, remaining);
}

/* The lock has the owner's name on it. */
static void enter_shared(const script *s, node_key *lock, int64_t lease, int64_t keep_ms)
{
    node_member *own = live_holder(s, script_find(s, 3), s->arguments[0]);
    if (own != NULL)
        say_own(s, own->score - s->node->now_ms, keep_ms);
    else if (is_ended(s))
        say(s->out, "*1\r\n:-1\r\n");
    else if (join(s, lock, lease, keep_ms))
        say_own(s, lease, keep_ms);
    else
        say_busy(s, lock);
}

static void run_acquire(script *s)
{
    bool owned = s->argument_count == 4;
    node_expect(owned || s->argument_count == 3, "acquire takes three arguments or four");
    node_expect(s->key_count == (owned ? 4U : 3U), "acquire takes three keys, or four");
    script_expect_keys(s, 0, owned ? "qfh" : "qf");
    int64_t lease = script_number_of(s->arguments[1]), keep = script_number_of(s->arguments[2]);
    node_key *lock = script_find(s, 0);
    s->node->acquires++;
    if (lock == NULL) {
        take(s, owned, lease, keep);
    } else if (lock->kind != NODE_STRING) {
        say(s->out, script_wrong_type);
    } else if (!script_has_value(lock, s->arguments[owned ? 3 : 0])) {
        say_busy(s, lock);
    } else if (owned) {
        enter_shared(s, lock, lease, keep);
    } else {
        if (lock->expires_ms < 0)
            lock->expires_ms = s->node->now_ms + lease;
        say_own(s, store_ttl_ms(s->node, lock), keep);
    }
}

/* ---- Release: lock, queue, fence, notes [, holders]; value, tombstone [, owner] ---- */

static bool leave(const script *s, hf__slice value, hf__slice owner)
{
    bool alive = live_holder(s, script_find(s, 4), value) != NULL;
    if (store_member(script_find(s, 4), value) == NULL)
        return false;
    drop_scores_up_to(s, 4, INT64_MIN, s->node->now_ms);
    if (alive)
        store_drop(s->node, script_find(s, 4), store_member(script_find(s, 4), value));
    if (!alive || !script_has_value(script_find(s, 0), owner))
        return false;
    node_key *holders = script_find(s, 4);
    if (holders == NULL) {
        store_remove(s->node, script_find(s, 0));
        return true;
    }
    last_as_the_latest(script_find(s, 0), holders);
    return true;
}

static void bury(const script *s, hf__slice value, int64_t late)
{
    char place[2048];
    drop_scores_up_to(s, 1, -s->node->now_ms + 1, -1);
    node_key *queue = store_make(s->node, s->keys[1], NODE_ZSET);
    store_add(queue, script_tombstone(value, place, sizeof(place)))->score =
        -(s->node->now_ms + late);
    script_last_at_least(s, queue, late);
    script_mark_fence(s, 2, '+');
}

static void run_release(script *s)
{
    bool owned = s->argument_count == 3;
    node_expect(owned || s->argument_count == 2, "release takes two arguments or three");
    node_expect(s->key_count == (owned ? 5U : 4U), "release takes four keys, or five");
    script_expect_keys(s, 0, owned ? "qfwh" : "qfw");
    hf__slice value = s->arguments[0];
    int64_t late = script_number_of(s->arguments[1]);
    bool released =
        owned ? leave(s, value, s->arguments[2]) : script_has_value(script_find(s, 0), value);
    if (released && !owned)
        store_remove(s->node, script_find(s, 0));
    s->node->releases++;
    s->node->tomb_count += late > 0;
    s->node->last_tombstone_ms = late;
    if (late > 0)
        bury(s, value, late);
    node_member *broken = store_member(script_find(s, 3), HF__SLICE("#broken"));
    if (released)
        say_number(s->out, 1);
    else
        say_number(s->out, broken != NULL ? -script_number_of(store_slice(&broken->text)) : 0);
}

/* ---- Renew: for each lock, fence, notes [, holders]; value, lease, keep, owner or '' ---- */

enum { WRONG_TYPE = -1 };

static int64_t renew_own(const script *s, node_key *lock, hf__slice value, int64_t lease)
{
    if (lock != NULL && lock->kind != NODE_STRING)
        return WRONG_TYPE;
    if (!script_has_value(lock, value))
        return 0;
    script_last_at_least(s, lock, lease);
    return store_ttl_ms(s->node, lock);
}

static int64_t renew_shared(const script *s, size_t first, const hf__slice *arguments)
{
    node_key *lock = script_find(s, first);
    node_member *own = live_holder(s, script_find(s, first + 3), arguments[0]);
    int64_t lease = script_number_of(arguments[1]);
    if (own == NULL)
        return 0;
    if (lock != NULL && lock->kind != NODE_STRING)
        return WRONG_TYPE;
    if (!script_has_value(lock, arguments[3]))
        return 0;
    if (own->score >= s->node->now_ms + lease)
        return own->score - s->node->now_ms;
    drop_scores_up_to(s, first + 3, INT64_MIN, s->node->now_ms);
    add_holder(s, first + 3, arguments[0], lease);
    last_as_the_latest(lock, script_find(s, first + 3));
    return lease;
}

static void say_renewed(const script *s, int64_t remaining, size_t notes)
{
    hf__slice name = remaining > 0 ? HF__SLICE("#revoked") : HF__SLICE("#broken");
    node_member *note = store_member(script_find(s, notes), name);
    if (remaining == WRONG_TYPE) {
        say(s->out, script_wrong_type);
        return;
    }
    if (note != NULL)
        say_array(s->out, 2);
    say_number(s->out, remaining);
    if (note != NULL)
        say_bulk(s->out, store_slice(&note->text));
}

static void begin_batch(script *s, size_t holds)
{
    struct node *node = s->node;
    if (node->renewals < NODE_BATCHES) {
        node->batches[node->renewals].at_ms = node->now_ms;
        node->batches[node->renewals].holds = (int)holds;
    }
    node->renewals++;
    node->renewed += (int)holds;
    say_array(s->out, holds);
}

static void run_renew(script *s)
{
    size_t holds = s->argument_count / 4, at = 0;
    node_expect(holds >= 1 && s->argument_count % 4 == 0, "renew takes four arguments for each");
    begin_batch(s, holds);
    for (size_t i = 0; i < holds; i++) {
        const hf__slice *arguments = s->arguments + 4 * i;
        bool owned = arguments[3].length > 0;
        int64_t lease = script_number_of(arguments[1]), keep = script_number_of(arguments[2]);
        script_expect_keys(s, at, owned ? "fwh" : "fw");
        int64_t remaining = owned ? renew_shared(s, at, arguments)
                                  : renew_own(s, script_find(s, at), arguments[0], lease);
        say_renewed(s, remaining, at + 2);
        if (remaining > 0)
            keep_fence(s, at + 1, keep);
        at += owned ? 4 : 3;
    }
    node_expect(at == s->key_count, "keys left over");
}

/* ---- Refresh: for each lock, fence; value, lease ---- */

static void run_refresh(script *s)
{
    size_t holds = s->argument_count / 2;
    node_expect(holds >= 1 && s->key_count == 2 * holds && s->argument_count == 2 * holds,
                "refresh takes two keys and two arguments for each");
    begin_batch(s, holds);
    for (size_t i = 0; i < 2 * holds; i += 2) {
        script_expect_keys(s, i, "f");
        node_key *lock = script_find(s, i);
        bool plain = script_read_fence(s, i + 1).plain;
        int64_t lease = script_number_of(s->arguments[i + 1]);
        bool ours =
            lock != NULL && lock->kind == NODE_STRING && script_has_value(lock, s->arguments[i]);
        if (ours && plain)
            script_last_at_least(s, lock, lease);
        say_number(s->out, ours && plain ? store_ttl_ms(s->node, lock) : -1);
    }
}

void node_run_script(int id, script *s)
{
    static void (*const scripts[HF__SCRIPT_COUNT])(script *) = {
        [HF__SCRIPT_ACQUIRE] = run_acquire,       [HF__SCRIPT_RELEASE] = run_release,
        [HF__SCRIPT_REFRESH] = run_refresh,       [HF__SCRIPT_RENEW] = run_renew,
        [HF__SCRIPT_REVOKE] = script_run_revoke,  [HF__SCRIPT_BREAK] = script_run_break,
        [HF__SCRIPT_INSPECT] = script_run_inspect};
    scripts[id](s);
}
