/* SPDX-License-Identifier: MIT */
/* See judge.h.
 *
 * Overlaps are found by the judge of the simulator (tests/lib/history.h). A hold that was broken by
 * force works on until it hears of that, which is no fault: its belief is cut where the break
 * began. It is known by its fence, which is smaller than that of the break. If nobody heard what a
 * break did, because the breaker was killed or got no answer, all holds are cut that were asked for
 * before its end.
 *
 * Three rules for fences, for each lock:
 *   told     whoever asks after somebody was told a fence gets a larger one (or joins that hold)
 *   order    of two holds that were valid, the one that ended first has the smaller fence
 *   once     two grants have the same fence only if they are of one owner, or by a token
 * Until a client hears that its hold was broken it may pass the lock on to another of its threads,
 * with the next fence of those that it had reserved: for one lease the first rule does not judge
 * what may have been passed on so.
 * On a quorum the holds of one owner may have different fences (hf_fence()), so the first two do
 * not compare them with each other.
 */
#include "judge.h"

#include <stdio.h>
#include <stdlib.h>

static bool is_grant(const struct record *record)
{
    return record->how != HOW_GAVE_UP && record->how != HOW_BROKE;
}

static void print_record(const char *which, const struct record *record, int64_t origin_ns)
{
    static const char *const hows[] = {
#define HOW_TEXT(name, text) text,
        HOW_MAP(HOW_TEXT)};
    const belief *held = &record->belief;
    printf("  %s: %s side, process %u thread %u hold %llu, %s, lock %u, party %llu, fence %llu\n"
           "         asked %.3f ms, from %.3f to %.3f ms\n",
           which, side_name((enum side)record->side), process_of(held->client), held->client % 16,
           (unsigned long long)held->hold, hows[record->how], held->lock,
           (unsigned long long)held->party, (unsigned long long)record->fence,
           (double)(record->asked_ns - origin_ns) / (double)MS_NS,
           (double)(held->from_ns - origin_ns) / (double)MS_NS,
           (double)(held->until_ns - origin_ns) / (double)MS_NS);
}

static void print_both(const char *finding, const struct record *one, const struct record *other)
{
    printf("\n%s (times since the first one was asked for)\n", finding);
    print_record("one  ", one, one->asked_ns);
    print_record("other", other, one->asked_ns);
}

/* ---- Overlaps -------------------------------------------------------------------------------- */

static void cut(struct record *record, const struct record *broke)
{
    const belief *broken = &broke->belief;
    bool known = broke->fence != 0;
    bool hit = known ? record->fence < broke->fence : record->asked_ns < broken->until_ns;
    int64_t heard_ns = (known ? broken->from_ns : broken->until_ns) + LEASE_MOST_MS * MS_NS;
    if (hit && record->how == HOW_QUEUED && record->asked_ns > broken->from_ns &&
        record->asked_ns < heard_ns)
        record->excused = true;
    if (hit && record->belief.until_ns > broken->from_ns)
        record->belief.until_ns = broken->from_ns;
}

static void cut_what_was_broken(struct record *records, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct record *broke = &records[i];
        if (broke->how != HOW_BROKE || broke->belief.until_ns == broke->belief.from_ns)
            continue;
        for (size_t j = 0; j < count; j++)
            if (is_grant(&records[j]) && records[j].belief.lock == broke->belief.lock)
                cut(&records[j], broke);
    }
}

static const struct record *find(const struct record *records, size_t count, const belief *held)
{
    size_t i = 0;
    while (i + 1 < count &&
           (records[i].belief.client != held->client || records[i].belief.hold != held->hold))
        i++;
    return &records[i];
}

static void find_overlap(const struct record *records, size_t count, struct findings *findings)
{
    belief first;
    belief second;
    history *told = history_new();
    findings->unreadable = told == NULL;
    for (size_t i = 0; i < count && !findings->unreadable; i++)
        if (is_grant(&records[i]))
            findings->unreadable = !history_add(told, &records[i].belief);
    if (!findings->unreadable && history_find_overlap(told, &first, &second)) {
        findings->overlap = true;
        print_both("OVERLAP", find(records, count, &first), find(records, count, &second));
    }
    history_free(told);
}

/* ---- Fences ---------------------------------------------------------------------------------- */

/* A moment at which a fence became known, or from which on smaller ones are wrong. */
struct moment {
    int64_t when_ns;
    bool known;
    const struct record *record;
};

static int by_lock_and_time(const void *left, const void *right)
{
    const struct moment *a = left;
    const struct moment *b = right;
    uint32_t lock = a->record->belief.lock;
    uint32_t other = b->record->belief.lock;
    if (lock != other)
        return lock < other ? -1 : 1;
    if (a->when_ns != b->when_ns)
        return a->when_ns < b->when_ns ? -1 : 1;
    return (int)a->known - (int)b->known; /* at the same time is not before */
}

/* The highest fence that is known, of each party, and of breaks. */
enum { BREAKERS = OWNERS + 1, KINDS };

struct highest {
    const struct record *of[KINDS];
};

static void learn(struct highest *highest, const struct record *record)
{
    bool broke = record->how == HOW_BROKE;
    const struct record **mine = &highest->of[broke ? BREAKERS : record->belief.party];
    if (*mine == NULL || (*mine)->fence < record->fence)
        *mine = record;
}

/* A token may be of a hold that began beside the break, at servers that were broken already. */
static bool may_be_smaller(const struct record *record, uint64_t kind, bool quorum)
{
    if (kind == BREAKERS)
        return record->how == HOW_ATTACHED;
    return quorum && kind != 0 && kind == record->belief.party;
}

/* NULL: there is none that this one would contradict. */
static const struct record *contradicted(const struct highest *highest, const struct record *record,
                                         bool quorum)
{
    for (uint64_t kind = 0; kind < KINDS; kind++) {
        const struct record *other = highest->of[kind];
        if (other != NULL && other->fence > record->fence && !may_be_smaller(record, kind, quorum))
            return other;
    }
    return NULL;
}

static bool walk(struct moment *moments, size_t count, bool quorum, const char *rule)
{
    struct highest highest = {{NULL}};
    qsort(moments, count, sizeof(*moments), by_lock_and_time);
    for (size_t i = 0; i < count; i++) {
        const struct record *record = moments[i].record;
        if (i > 0 && moments[i - 1].record->belief.lock != record->belief.lock)
            highest = (struct highest){{NULL}};
        const struct record *other =
            moments[i].known ? NULL : contradicted(&highest, record, quorum);
        if (other != NULL) {
            print_both(rule, other, record);
            return true;
        }
        if (moments[i].known)
            learn(&highest, record);
    }
    return false;
}

static size_t moments_of_told(const struct record *record, struct moment *place)
{
    size_t count = 0;
    if (record->how == HOW_BROKE && record->fence != 0)
        place[count++] = (struct moment){record->belief.until_ns, true, record};
    if (is_grant(record)) {
        place[count++] = (struct moment){record->belief.from_ns, true, record};
        if (!record->excused)
            place[count++] = (struct moment){record->asked_ns, false, record};
    }
    return count;
}

static size_t moments_of_order(const struct record *record, struct moment *place)
{
    if (!is_grant(record) || record->belief.until_ns <= record->belief.from_ns)
        return 0;
    place[0] = (struct moment){record->belief.until_ns, true, record};
    place[1] = (struct moment){record->belief.from_ns, false, record};
    return 2;
}

typedef size_t moments_function(const struct record *record, struct moment *place);

static void apply(moments_function *moments_of, const char *rule, const struct record *records,
                  size_t count, bool quorum, struct findings *findings)
{
    struct moment *moments = calloc(2 * count + 1, sizeof(*moments));
    size_t used = 0;
    if (moments == NULL) {
        findings->unreadable = true;
        return;
    }
    for (size_t i = 0; i < count; i++)
        used += moments_of(&records[i], moments + used);
    if (walk(moments, used, quorum, rule))
        findings->fences = true;
    free(moments);
}

static int by_lock_and_fence(const void *left, const void *right)
{
    const struct record *a = *(const struct record *const *)left;
    const struct record *b = *(const struct record *const *)right;
    if (a->belief.lock != b->belief.lock)
        return a->belief.lock < b->belief.lock ? -1 : 1;
    return a->fence < b->fence ? -1 : a->fence > b->fence;
}

static bool may_have_the_same(const struct record *a, const struct record *b)
{
    bool same = a->belief.lock == b->belief.lock && a->fence == b->fence;
    return !same || (a->belief.party == b->belief.party && a->belief.party != 0);
}

static void find_twice(const struct record *records, size_t count, struct findings *findings)
{
    const struct record **minted = calloc(count + 1, sizeof(*minted));
    size_t used = 0;
    findings->unreadable = findings->unreadable || minted == NULL;
    for (size_t i = 0; minted != NULL && i < count; i++)
        if (is_grant(&records[i]) && records[i].how != HOW_ATTACHED)
            minted[used++] = &records[i];
    if (minted != NULL)
        qsort(minted, used, sizeof(const struct record *), by_lock_and_fence);
    for (size_t i = 1; i < used; i++) {
        if (!may_have_the_same(minted[i - 1], minted[i])) {
            print_both("FENCE: twice the same", minted[i - 1], minted[i]);
            findings->fences = true;
            break;
        }
    }
    free(minted);
}

struct findings judge(struct record *records, size_t count, bool quorum)
{
    struct findings findings = {false, false, false};
    cut_what_was_broken(records, count);
    find_overlap(records, count, &findings);
    apply(moments_of_told, "FENCE: smaller than one that had been told", records, count, quorum,
          &findings);
    apply(moments_of_order, "FENCE: smaller than that of an earlier holder", records, count, quorum,
          &findings);
    find_twice(records, count, &findings);
    return findings;
}
