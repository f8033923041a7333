/* SPDX-License-Identifier: MIT */
/* What the servers of a quorum say about a lock, made into one answer.
 *
 * A hold has the lock if a majority of the servers has it in the lock's key. Each of its votes
 * there has a value of its own: client and place are the same, the number is not, because a vote
 * that was given up and asked for again gets a fresh one. So values are compared without their
 * numbers. Two holds that follow each other in one thread look alike then, which is good enough for
 * looking.
 *
 * Servers that have not answered are never counted for or against anybody: as long as they could
 * make a majority, the answer is open. What lasts, lasts as long as a majority says: the q-th
 * largest of the times that they give. */
#include "core/agree.h"

#include <string.h>

#include "core/holder.h"

/* ---- Who has it ---- */

static bool same_bytes(const char *a, const char *b, size_t length)
{
    return length == 0 || memcmp(a, b, length) == 0;
}

/* <client id>:<number>@<the rest> */
static bool same_but_number(hf__slice a, hf__slice b)
{
    const char *a_colon = memchr(a.bytes, ':', a.length), *a_at = memchr(a.bytes, '@', a.length);
    const char *b_colon = memchr(b.bytes, ':', b.length), *b_at = memchr(b.bytes, '@', b.length);
    size_t id = (size_t)(a_colon - a.bytes), rest = a.length - (size_t)(a_at - a.bytes);
    return id == (size_t)(b_colon - b.bytes) && rest == b.length - (size_t)(b_at - b.bytes) &&
           same_bytes(a.bytes, b.bytes, id) && same_bytes(a_at, b_at, rest);
}

bool hf__agree_is(const hf__opinion *opinion, bool shared, hf__slice value)
{
    hf__slice own = opinion->value;
    if (opinion->seen == NULL || !opinion->seen->held || opinion->seen->shared != shared)
        return false;
    if (!shared && hf__holder_is_value(own) && hf__holder_is_value(value))
        return same_but_number(own, value);
    return own.length == value.length && same_bytes(own.bytes, value.bytes, own.length);
}

static bool agrees(const hf__opinion *opinion, const hf__opinion *leader)
{
    return leader->seen->held && hf__agree_is(opinion, leader->seen->shared, leader->value);
}

hf__agreement hf__agree(const hf__opinion *opinions, int count, int *leader)
{
    int answered = 0, most = 0;
    for (int i = 0; i < count; i++) {
        int same = 0;
        answered += opinions[i].seen != NULL;
        for (int j = 0; opinions[i].seen != NULL && j < count; j++)
            same += agrees(&opinions[j], &opinions[i]);
        if (same > most) {
            most = same;
            *leader = i;
        }
    }
    if (most >= hf__majority(count))
        return HF__AGREE_HELD;
    if (answered >= hf__majority(count) && most + count - answered < hf__majority(count))
        return HF__AGREE_FREE;
    return HF__AGREE_OPEN;
}

/* ---- For how long ---- */

typedef struct tally { /* times that different servers say, the longest first */
    int64_t ms[HF_SERVERS_MAX];
    int count;
} tally;

/* -1, for ever, is the longest. */
static bool is_longer(int64_t a_ms, int64_t b_ms)
{
    return (uint64_t)a_ms > (uint64_t)b_ms;
}

static void tally_add(tally *t, int64_t ms)
{
    int at = t->count++;
    for (; at > 0 && is_longer(ms, t->ms[at - 1]); at--)
        t->ms[at] = t->ms[at - 1];
    t->ms[at] = ms;
}

/* ---- Those who share it ---- */

/* Who it is but for the number; two holds of one thread and label look alike. */
static bool same_person(const hf_holder *a, const hf_holder *b)
{
    return strcmp(a->client_id, b->client_id) == 0 && strcmp(a->host, b->host) == 0 &&
           strcmp(a->label, b->label) == 0 && a->pid == b->pid && a->thread == b->thread;
}

/* The n-th of those that look like `who`; NULL: there are not so many. */
static const hf_holder *find_alike(const hf_inspection *seen, const hf_holder *who, int n)
{
    for (size_t i = 0; i < seen->holder_count; i++)
        if (same_person(&seen->holders[i], who) && n-- == 0)
            return &seen->holders[i];
    return NULL;
}

static int count_alike_before(const hf_inspection *seen, const hf_holder *who)
{
    int count = 0;
    for (const hf_holder *at = seen->holders; at != who; at++)
        count += same_person(at, who);
    return count;
}

/* The longest first; those for which there is no room are only counted. */
static void add_holder(hf_inspection *merged, const hf_holder *who, int64_t remaining_ms)
{
    size_t at = merged->holder_count;
    merged->hold_count++;
    if (at == HF_HOLDERS_MAX && !is_longer(remaining_ms, merged->holders[at - 1].remaining_ms))
        return;
    at -= at == HF_HOLDERS_MAX;
    for (; at > 0 && is_longer(remaining_ms, merged->holders[at - 1].remaining_ms); at--)
        merged->holders[at] = merged->holders[at - 1];
    merged->holders[at] = *who;
    merged->holders[at].remaining_ms = remaining_ms;
    merged->holder_count += merged->holder_count < HF_HOLDERS_MAX;
}

/* One hold of one server: counted with those of the others that look alike, unless that was done
 * when one of these had its turn. */
static void merge_holder(const hf__opinion *opinions, int count, int from, const hf_holder *who,
                         hf_inspection *merged)
{
    tally times = {.count = 0};
    int n = count_alike_before(opinions[from].seen, who);
    for (int i = 0; i < count; i++) {
        const hf_holder *same =
            agrees(&opinions[i], &opinions[from]) ? find_alike(opinions[i].seen, who, n) : NULL;
        if (same != NULL && i < from)
            return;
        if (same != NULL)
            tally_add(&times, same->remaining_ms);
    }
    if (times.count >= hf__majority(count))
        add_holder(merged, who, times.ms[hf__majority(count) - 1]);
}

/* Where a list was cut, its length is what a majority says it is at least. */
static void count_unlisted(const hf__opinion *opinions, int count, int leader,
                           hf_inspection *merged)
{
    tally counts = {.count = 0};
    bool cut = false;
    for (int i = 0; i < count; i++) {
        if (!agrees(&opinions[i], &opinions[leader]))
            continue;
        cut = cut || opinions[i].seen->hold_count > opinions[i].seen->holder_count;
        tally_add(&counts, (int64_t)opinions[i].seen->hold_count);
    }
    uint64_t least = (uint64_t)counts.ms[hf__majority(count) - 1];
    if (cut && least > merged->hold_count)
        merged->hold_count = least;
}

static void merge_holders(const hf__opinion *opinions, int count, int leader, hf_inspection *merged)
{
    if (!merged->shared) {
        add_holder(merged, &opinions[leader].seen->holders[0], merged->remaining_ms);
        return;
    }
    for (int i = 0; i < count; i++)
        for (size_t j = 0;
             agrees(&opinions[i], &opinions[leader]) && j < opinions[i].seen->holder_count; j++)
            merge_holder(opinions, count, i, &opinions[i].seen->holders[j], merged);
    count_unlisted(opinions, count, leader, merged);
}

static void merge_hold(const hf__opinion *opinions, int count, int leader, hf_inspection *merged)
{
    tally times = {.count = 0};
    const hf_inspection *first = opinions[leader].seen;
    for (int i = 0; i < count; i++) {
        if (!agrees(&opinions[i], &opinions[leader]))
            continue;
        tally_add(&times, opinions[i].seen->remaining_ms);
        if (opinions[i].seen->fence > merged->fence)
            merged->fence = opinions[i].seen->fence;
    }
    merged->held = true;
    merged->shared = first->shared;
    memcpy(merged->owner, first->owner, sizeof(merged->owner));
    merged->remaining_ms = times.ms[hf__majority(count) - 1];
    merge_holders(opinions, count, leader, merged);
}

/* ---- Those who wait ---- */

static bool is_among(const hf_holder *list, size_t count, const hf_holder *who)
{
    for (size_t i = 0; i < count; i++)
        if (list[i].client_id[0] != '\0' && same_person(&list[i], who))
            return true;
    return false;
}

static void add_waiter(hf_inspection *merged, const hf_holder *who)
{
    merged->queue_length++;
    if (merged->waiter_count == HF_WAITERS_MAX)
        return;
    merged->waiters[merged->waiter_count] = *who;
    merged->waiters[merged->waiter_count++].remaining_ms = 0;
}

/* Nobody has a majority, but some have votes, and are ahead of all others. */
static void merge_voters(const hf__opinion *opinions, int count, hf_inspection *merged)
{
    for (int i = 0; i < count; i++)
        for (size_t j = 0; opinions[i].seen != NULL && j < opinions[i].seen->holder_count; j++)
            if (!is_among(merged->waiters, merged->waiter_count, &opinions[i].seen->holders[j]))
                add_waiter(merged, &opinions[i].seen->holders[j]);
}

/* Whoever waits is in the queue of each server, but did not get there at the same moment: the
 * longest is the one to look at. If somebody has the lock, of those that say so: in the queues of
 * the others is the holder itself. */
static const hf_inspection *find_longest(const hf__opinion *opinions, int count, int leader)
{
    const hf_inspection *longest = NULL;
    for (int i = 0; i < count; i++) {
        const hf_inspection *seen = opinions[i].seen;
        if (seen == NULL || (leader >= 0 && !agrees(&opinions[i], &opinions[leader])))
            continue;
        if (longest == NULL || seen->queue_length > longest->queue_length)
            longest = seen;
    }
    return longest;
}

static void merge_queue(const hf_inspection *longest, hf_inspection *merged)
{
    size_t voters = merged->waiter_count;
    for (size_t i = 0; i < longest->waiter_count; i++)
        if (!is_among(merged->waiters, voters, &longest->waiters[i]))
            add_waiter(merged, &longest->waiters[i]);
    if (longest->queue_length > longest->waiter_count)
        merged->queue_length += longest->queue_length - longest->waiter_count; /* not listed */
}

static uint64_t highest_fence(const hf__opinion *opinions, int count)
{
    uint64_t highest = 0;
    for (int i = 0; i < count; i++)
        if (opinions[i].seen != NULL && opinions[i].seen->fence > highest)
            highest = opinions[i].seen->fence;
    return highest;
}

void hf__agree_merge(const hf__opinion *opinions, int count, int leader, hf_inspection *inspection)
{
    *inspection = (hf_inspection){.held = false};
    if (leader >= 0) {
        merge_hold(opinions, count, leader, inspection);
    } else {
        inspection->fence = highest_fence(opinions, count);
        merge_voters(opinions, count, inspection);
    }
    const hf_inspection *longest = find_longest(opinions, count, leader);
    if (longest != NULL)
        merge_queue(longest, inspection);
}
