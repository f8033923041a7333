/* SPDX-License-Identifier: MIT */
/* See node.h. The meaning of the scripts, written a second time and in C. Each function follows the
 * contract at the top of its src/lua file, which is where to read why. It also looks at the keys:
 * the side keys must be those of the lock, each with its letter, in this order. Here are renewals
 * and what all scripts share; node_acquire.c, node_queue.c and node_queries.c have the others. */
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

static void script_expect_side_key(const script *s, size_t lock, size_t key, char letter)
{
    hf__slice side = s->keys[key], prefix = hf__slice_text("");
    if (s->node->side_prefix != NULL)
        prefix = hf__slice_text(s->node->side_prefix);
    node_expect(side.length > prefix.length && memcmp(side.bytes, prefix.bytes, prefix.length) == 0,
                "not under the side prefix");
    side.bytes += prefix.length;
    side.length -= prefix.length;
    const char *brace = memchr(side.bytes, '}', side.length);
    node_expect(side.length > 6 && memcmp(side.bytes, "hf:", 3) == 0, "not a side key");
    node_expect(side.bytes[3] == letter, "side keys in the wrong order");
    node_expect(memcmp(side.bytes + 4, ":{", 2) == 0 && brace != NULL, "not a side key");
    size_t head = (size_t)(brace + 1 - side.bytes);
    node_expect(slice_is((hf__slice){side.bytes + head, side.length - head}, s->keys[lock]),
                "side key of another lock");
}

void script_expect_keys(const script *s, size_t first, const char *letters)
{
    size_t count = strlen(letters) + 1;
    node_expect(s->key_count >= first + count, "too few keys");
    for (size_t i = 1; i < count; i++)
        script_expect_side_key(s, first, first + i, letters[i - 1]);
}

void script_expect_all_keys(const script *s, bool of_quorum)
{
    hf__slice fence_key = s->keys[KEY_FENCE], slot = s->keys[KEY_SLOT];
    node_expect(s->key_count == KEY_SLOT + (of_quorum ? 0 : 1), "a strange number of keys");
    script_expect_keys(s, 0, "qfwh");
    if (of_quorum)
        return;
    size_t head = fence_key.length - s->keys[KEY_LOCK].length;
    size_t letter =
        head - strcspn(fence_key.bytes, "{") > 0 ? strcspn(fence_key.bytes, "{") - 2 : 0;
    node_expect(
        slot.length == head && slot.bytes[letter] == 'm' &&
            memcmp(slot.bytes, fence_key.bytes, letter) == 0 &&
            memcmp(slot.bytes + letter + 1, fence_key.bytes + letter + 1, head - letter - 1) == 0,
        "not the mark of its slot");
}

node_key *script_find(const script *s, size_t key)
{
    return key < s->key_count ? store_find(s->node, s->keys[key]) : NULL;
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

hf__slice script_cut(hf__slice text)
{
    enum { MOST = 1024 };
    static char kept[MOST + 4];
    if (text.length <= MOST)
        return text;
    memcpy(kept, text.bytes, MOST);
    memcpy(kept + MOST, "...", 4);
    return (hf__slice){kept, MOST + 3};
}

/* ---- Fences ---- */

fence script_read_fence(const script *s, size_t key)
{
    node_key *kept = script_find(s, key);
    if (kept == NULL)
        return (fence){0, false, false};
    size_t digits = strspn(kept->value.bytes, "0123456789");
    return (fence){digits > 0 ? strtoll(kept->value.bytes, NULL, 10) : 0,
                   digits > 0 && digits == kept->value.length,
                   kept->value.length > 0 && memchr(kept->value.bytes, '-', kept->value.length)};
}

/* ---- Holders ---- */

node_member *script_live_holder(const script *s, node_key *holders, hf__slice value)
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

void script_drop_scores(const script *s, size_t key, int64_t from, int64_t to)
{
    node_key *set = script_find(s, key);
    for (size_t i = set != NULL ? set->member_count : 0; i-- > 0;)
        if (set->members[i].score >= from && set->members[i].score <= to)
            store_drop(s->node, set, &set->members[i]);
}

/* The lock lasts as long as the hold that lasts longest. */
void script_last_as_the_latest(node_key *lock, node_key *holders)
{
    int64_t latest = 0;
    for (size_t i = 0; i < holders->member_count; i++)
        latest = script_larger(latest, holders->members[i].score);
    lock->expires_ms = holders->expires_ms = latest;
}

void script_add_holder(const script *s, size_t key, hf__slice value, int64_t lease)
{
    store_add(store_make(s->node, s->keys[key], NODE_ZSET), value)->score = s->node->now_ms + lease;
}

/* ---- Renew: for each lock, fence, notes [, holders]; value, lease, keep, owner or '', fence or 0
 */

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
    node_member *own = script_live_holder(s, script_find(s, first + 3), arguments[0]);
    int64_t lease = script_number_of(arguments[1]);
    if (own == NULL)
        return 0;
    if (lock != NULL && lock->kind != NODE_STRING)
        return WRONG_TYPE;
    if (!script_has_value(lock, arguments[3]))
        return 0;
    if (own->score >= s->node->now_ms + lease)
        return own->score - s->node->now_ms;
    script_drop_scores(s, first + 3, INT64_MIN, s->node->now_ms);
    script_add_holder(s, first + 3, arguments[0], lease);
    script_last_as_the_latest(lock, script_find(s, first + 3));
    return lease;
}

/* The hold is renewed: so is its fence, or becomes the one that is known, with the same marks. */
static void renew_fence(const script *s, size_t place, int64_t keep, int64_t known)
{
    char text[64];
    const node_key *kept = script_find(s, place);
    const char *marks = kept != NULL ? kept->value.bytes : "";
    if (known <= script_read_fence(s, place).last) {
        script_last_at_least(s, script_find(s, place), keep);
        return;
    }
    marks += strspn(marks, "0123456789");
    marks += *marks == '+'; /* which it gets: somebody may wait, and the slot must be told */
    snprintf(text, sizeof(text), "%lld+%s", (long long)known, marks);
    int64_t ahead = script_larger(0, known / 1000 - s->node->now_ms);
    store_set(s->node, s->keys[place], hf__slice_text(text), s->node->now_ms + keep + ahead);
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
    if (note != NULL) {
        hf__slice text = store_slice(&note->text);
        say_bulk(s->out, (hf__slice){text.bytes, text.length < 1024 ? text.length : 1024});
    }
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
}

enum { REFRESH_MAX = 70, RENEW_MAX = 24 }; /* as docs/wire.md says */

static void run_renew(script *s)
{
    size_t holds = s->argument_count / 5, at = 0;
    node_expect(holds >= 1 && holds <= RENEW_MAX && s->argument_count % 5 == 0,
                "renew takes five arguments for each of a few");
    begin_batch(s, holds);
    say_array(s->out, holds);
    for (size_t i = 0; i < holds; i++) {
        const hf__slice *arguments = s->arguments + 5 * i;
        bool owned = arguments[3].length > 0;
        int64_t lease = script_number_of(arguments[1]), keep = script_number_of(arguments[2]);
        script_expect_keys(s, at, owned ? "fwh" : "fw");
        int64_t remaining = 0, known = script_number_of(arguments[4]);
        bool shared = known < 0;
        known = shared ? -known : known;
        if (known == 0 || shared ||
            script_read_fence(s, at + 1).last <= known) /* else granted since */
            remaining = owned ? renew_shared(s, at, arguments)
                              : renew_own(s, script_find(s, at), arguments[0], lease);
        say_renewed(s, remaining, at + 2);
        if (remaining > 0)
            renew_fence(s, at + 1, keep, known);
        at += owned ? 4 : 3;
    }
    node_expect(at == s->key_count, "keys left over");
}

/* ---- Confirm: lock [, holders]; value, lease [, owner] ---- */

static void run_confirm(script *s)
{
    bool owned = s->argument_count == 3;
    node_key *lock = script_find(s, 0);
    node_expect(owned || s->argument_count == 2, "confirm takes two arguments, or three");
    script_expect_keys(s, 0, owned ? "h" : "");
    s->node->confirms_run++;
    bool lives = !owned || script_live_holder(s, script_find(s, 1), s->arguments[0]) != NULL;
    bool ours = lives && script_has_value(lock, s->arguments[owned ? 2 : 0]);
    if (ours && !owned)
        script_last_at_least(s, lock, script_number_of(s->arguments[1]));
    say_number(s->out, ours);
}

/* ---- Refresh: locks, notes; values, leases or one for all ---- */

static bool refresh(script *s, size_t index, size_t holds)
{
    bool one = s->argument_count == holds + 1;
    int64_t lease = script_number_of(s->arguments[one ? holds : holds + index]);
    node_key *lock = script_find(s, index);
    bool ours =
        lock != NULL && lock->kind == NODE_STRING && script_has_value(lock, s->arguments[index]);
    if (!ours || script_find(s, holds + index) != NULL || store_ttl_ms(s->node, lock) >= lease)
        return false;
    script_last_at_least(s, lock, lease);
    return true;
}

static void run_refresh(script *s)
{
    size_t holds = s->key_count / 2, left = 0;
    size_t positions[REFRESH_MAX];
    node_expect(holds >= 1 && holds <= REFRESH_MAX && s->key_count % 2 == 0 &&
                    (s->argument_count == holds + 1 || s->argument_count == 2 * holds),
                "refresh takes two keys and a value for each, and one lease or as many");
    begin_batch(s, holds);
    for (size_t i = 0; i < holds; i++) {
        script_expect_side_key(s, i, holds + i, 'w');
        if (!refresh(s, i, holds))
            positions[left++] = i + 1;
    }
    say_array(s->out, 1 + left);
    say_number(s->out, (int64_t)holds);
    for (size_t i = 0; i < left; i++)
        say_number(s->out, (int64_t)positions[i]);
}

void node_run_script(int id, script *s)
{
    static void (*const scripts[HF__SCRIPT_COUNT])(script *) = {
        [HF__SCRIPT_ACQUIRE] = script_run_acquire, [HF__SCRIPT_RELEASE] = script_run_release,
        [HF__SCRIPT_REFRESH] = run_refresh,        [HF__SCRIPT_RENEW] = run_renew,
        [HF__SCRIPT_REVOKE] = script_run_revoke,   [HF__SCRIPT_BREAK] = script_run_break,
        [HF__SCRIPT_INSPECT] = script_run_inspect, [HF__SCRIPT_OBSERVE] = script_run_observe,
        [HF__SCRIPT_JOIN] = script_run_join,       [HF__SCRIPT_CONFIRM] = run_confirm};
    node_expect(scripts[id] != NULL, "a script that no test needs");
    scripts[id](s);
}
