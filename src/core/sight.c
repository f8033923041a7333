/* SPDX-License-Identifier: MIT */
/* What an observer knows of its lock, and what it is told. Messages and answers to looks come on
 * different links and overtake each other: fences tell which is newer, and a difference that a look
 * finds is believed when messages from before are in. News wait in a list until they are told; if
 * there are too many, or no memory, that is told instead. */
#include "base/memory.h"
#include "base/mutant.h"
#include "core/observer.h"

enum {
    BEHIND_MS = 2,       /* the end of a hold: then it is looked at, */
    FOR_EVER_MS = 10000, /* or so often, if it has none */
    NEWS_MAX = 1000
};

typedef struct news {
    hf__node node; /* in observer->news */
    hf_sight sight;
} news;

void hf__sight_drop(hf_observer *o)
{
    hf__node *node;
    while ((node = hf__list_first(&o->news)) != NULL) {
        hf__list_remove(&o->news, node);
        hf__free(HF__ENTRY(node, news, node));
    }
}

/* ---- News ---- */

/* Behind a gap nothing is kept until the gap has been told: so it is told where it is, and whoever
 * hears a grant without the end of the hold before knows why. */
static void see(hf_observer *o, hf_sight_kind kind, const hf_holder *who, uint64_t fence,
                int64_t lease_ms)
{
    bool room = o->news.count < NEWS_MAX && !o->missed;
    news *fresh = room ? hf__alloc(sizeof(*fresh)) : NULL;
    if (fresh == NULL) {
        o->missed = !HF__MUTANT(SIGHT_DROPPED);
    } else {
        fresh->sight = (hf_sight){.kind = kind, .who = *who, .fence = fence, .lease_ms = lease_ms};
        hf__list_append(&o->news, &fresh->node);
    }
    if (!hf__node_linked(&o->seen))
        hf__list_append(&o->core->seen, &o->seen);
}

bool hf__core_next_sight(hf__core *core, hf__sight *sight)
{
    hf__node *first = hf__list_first(&core->seen);
    if (first == NULL || core->seeing != NULL)
        return false;
    hf_observer *o = HF__ENTRY(first, hf_observer, seen);
    hf__node *node = hf__list_first(&o->news);
    *sight = (hf__sight){.function = o->function, .arg = o->arg};
    if (node != NULL) {
        sight->sight = HF__ENTRY(node, news, node)->sight;
        hf__list_remove(&o->news, node);
        hf__free(HF__ENTRY(node, news, node));
    } else {
        sight->sight.kind = HF_SEEN_MISSED;
        o->missed = false;
    }
    hf__list_remove(&core->seen, first);
    if (o->news.count > 0 || o->missed)
        hf__list_append(&core->seen, first);
    core->seeing = o;
    return true;
}

void hf__core_sight_told(hf__core *core)
{
    core->seeing = NULL;
}

bool hf__core_is_seeing(const hf__core *core, const hf_observer *o)
{
    return core->seeing == o;
}

/* ---- What is known ---- */

static void set_look(hf_observer *o, int64_t remaining_ms)
{
    int64_t ms = remaining_ms < 0 ? FOR_EVER_MS : remaining_ms + BEHIND_MS;
    o->look = HF__MUTANT(LOOK_NEVER_ENDS) ? HF__NEVER : hf__after(o->core->now, hf__span_ms(ms));
}

static void now_held(hf_observer *o, hf_sight_kind kind, const hf_holder *who, uint64_t fence,
                     int64_t remaining_ms)
{
    o->held = true;
    o->suspected = false;
    o->fence = fence;
    o->holder = *who;
    set_look(o, remaining_ms);
    see(o, kind, who, fence, remaining_ms);
}

static void now_free(hf_observer *o, hf_sight_kind kind, const hf_holder *who, uint64_t fence)
{
    o->held = false;
    o->fence = fence;
    o->look = HF__NEVER;
    see(o, kind, who, fence, 0);
}

/* The hold that was known has ended without anybody saying so. */
static void expire(hf_observer *o)
{
    if (o->held)
        now_free(o, HF_SEEN_EXPIRED, &o->holder, o->fence);
}

/* Messages and looks come on different ways, and overtake each other: what has an older fence than
 * what is known is old. */
void hf__sight_heard(hf_observer *o, const hf_sight *sight)
{
    bool ends = sight->kind == HF_SEEN_RELEASED || sight->kind == HF_SEEN_BROKEN;
    if (!o->knows) { /* the first look will tell, and what comes behind it */
        if (sight->kind == HF_SEEN_GRANTED)
            o->granted = *sight;
        if (ends)
            o->ended_last = *sight;
    } else if (sight->kind == HF_SEEN_GRANTED) {
        if (sight->fence <= o->fence && !HF__MUTANT(SIGHT_OLD))
            return;
        expire(o);
        now_held(o, sight->kind, &sight->who, sight->fence, sight->lease_ms);
    } else if (ends) {
        if (sight->fence > o->fence || (sight->fence == o->fence && o->held))
            now_free(o, sight->kind, &sight->who, sight->fence);
    } else {
        see(o, sight->kind, &sight->who, sight->fence, sight->lease_ms);
    }
}

static const hf_holder nobody;

static const hf_holder *holder_in(const hf_inspection *seen)
{
    return seen->holder_count > 0 ? &seen->holders[0] : &nobody;
}

/* Messages that came before it may be newer. */
static void first_look(hf_observer *o)
{
    const hf_inspection *seen = &o->inspection;
    const hf_holder *who = holder_in(seen);
    uint64_t fence = seen->fence, ended = o->ended_last.fence;
    int64_t remaining_ms = seen->remaining_ms;
    bool held = seen->held;
    if (o->granted.fence > fence) {
        who = &o->granted.who;
        fence = o->granted.fence;
        remaining_ms = o->granted.lease_ms;
        held = true;
    }
    o->knows = true;
    if (held && ended < fence)
        now_held(o, HF_SEEN_HELD, who, fence, remaining_ms);
    else
        now_free(o, HF_SEEN_FREE, &nobody, ended > fence ? ended : fence);
}

/* The server does not know of a fence that was heard before it was asked. It has forgotten, or that
 * was the lock of another database, or forged; its word counts, or nothing below would ever be
 * heard again. But it says nothing about a grant that was heard since. */
static void take_back(hf_observer *o)
{
    const hf_inspection *seen = &o->inspection;
    expire(o);
    o->fence = seen->fence;
    if (seen->held)
        now_held(o, HF_SEEN_GRANTED, holder_in(seen), seen->fence, seen->remaining_ms);
}

/* A program that does not use this library has the lock, and another holder is known: its end was
 * not heard, and the fence does not tell, because such a program raises none. */
static bool is_usurped(const hf_observer *o)
{
    const hf_inspection *seen = &o->inspection;
    bool foreign = seen->held && !seen->shared && holder_in(seen)->client_id[0] == '\0';
    return !HF__MUTANT(SIGHT_USURPED) && foreign && o->held && o->holder.client_id[0] != '\0' &&
           seen->fence == o->fence;
}

/* What the last look has found, and no message has told by now, is told. */
void hf__sight_confirmed(hf_observer *o)
{
    const hf_inspection *seen = &o->inspection;
    o->pending = 0;
    if (seen->fence < o->asked_fence && o->fence == o->asked_fence)
        take_back(o);
    if (seen->fence < o->fence)
        return;
    bool usurped = is_usurped(o);
    if (usurped && !o->suspected) {
        /* In the last millisecond of an owner's lock the key is there and its holders have ended,
         * which looks the same: it is believed when it is found again behind that. */
        o->suspected = true;
        set_look(o, 0);
        return;
    }
    o->suspected = false;
    if (o->held && (seen->fence > o->fence || !seen->held || usurped))
        expire(o);
    /* Somebody without a fence of his own has it. If the fence has changed since the question was
     * asked, the look may have seen a grant whose end was heard meanwhile. */
    bool foreign = seen->held && !o->held && o->asked_free && seen->fence == o->asked_fence;
    if (seen->held && (seen->fence > o->fence || foreign || usurped))
        now_held(o, HF_SEEN_GRANTED, holder_in(seen), seen->fence, seen->remaining_ms);
    else if (o->held)
        set_look(o, seen->remaining_ms);
}

static bool is_known_holder(const hf_observer *o)
{
    const hf_holder *a = holder_in(&o->inspection), *b = &o->holder;
    return strcmp(a->client_id, b->client_id) == 0 && strcmp(a->host, b->host) == 0 &&
           strcmp(a->label, b->label) == 0 && a->pid == b->pid && a->thread == b->thread;
}

/* Those of a quorum that have answered need not be those that know the highest fence: if it is
 * lower than it was, and nobody else has the lock now, it is the same. */
static void level_fence(hf_observer *o)
{
    hf_inspection *seen = &o->inspection;
    bool same = seen->held ? o->held && is_known_holder(o) : true;
    if (hf__is_quorum(o->core) && same && seen->fence < o->fence)
        seen->fence = o->fence;
}

/* A difference may be on its way as a message: then it is in before the answer to a PING. */
void hf__sight_looked(hf_observer *o)
{
    const hf_inspection *seen = &o->inspection;
    level_fence(o);
    o->look = HF__NEVER;
    if (!o->knows) {
        first_look(o);
        return;
    }
    bool differs = seen->fence != o->fence || seen->held != o->held || is_usurped(o);
    bool heard = !o->subscribed || HF__MUTANT(SIGHT_HASTY);
    o->pending = differs && !heard ? hf__push_ping(&o->core->servers[0]) : 0;
    if (o->pending == 0)
        hf__sight_confirmed(o);
}
