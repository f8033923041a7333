/* SPDX-License-Identifier: MIT */
/* Clients that watch locks (hf_observe), and the rules for what they are told:
 *
 * - order, in all worlds: the first thing is how the lock stands; then a grant only where the lock
 *   was free, an end only of what was held, and fences grow: that of a grant is larger than all
 *   that holders who were told before it have; what could not be kept is told as missed, and only
 *   after that may anything be out of order
 * - agreement, when no fault is felt any more: how the lock stands by what was told is how it
 *   really stood at most so long ago; and at last also where others use the key (observers_agree)
 * - completeness, where messages come: each grant is told, in order, and within the time that a
 *   message takes; what was released is told as released, and nothing else is
 * - cost: an observer asks the server about once a second, and for each change of its lock, at most
 *
 * A script changes a lock between two looks (observers_look before it, observers_ran after it);
 * what changes otherwise has expired. */
#include "observers.h"

#include <stdlib.h>
#include <string.h>

#include "core/state.h"
#include "lua/scripts.h"

static bool is_between_clients(const hf_sight *s)
{
    return s->kind == HF_SEEN_WAITING || s->kind == HF_SEEN_REVOKED;
}

/* ---- How locks stand ---- */

static bool is_same(uint64_t real, uint64_t told)
{
    return real == told || (real == STANDS_SHARED && told != STANDS_FREE);
}

static bool stands_now(const sim_observed *lock, uint64_t who)
{
    for (int i = 0; i < lock->current_count; i++)
        if (is_same(lock->current[i], who))
            return true;
    return false;
}

static sim_standing *standing_back(sim_observed *lock, uint64_t back)
{
    return &lock->standings[(lock->standing_count - back) % STANDINGS_MAX];
}

/* The last ones are at hand; what is older than those is not held against anybody. */
static bool has_stood(sim_observed *lock, uint64_t who, int64_t since_ns)
{
    for (uint64_t back = 1; back <= STANDINGS_MAX && back <= lock->standing_count; back++) {
        const sim_standing *s = standing_back(lock, back);
        if (s->last_ns < since_ns)
            return false;
        if (is_same(s->who, who))
            return true;
    }
    return lock->standing_count > STANDINGS_MAX;
}

/* What stood until now has done so up to this moment, and is noted with what stands now. */
static void note_standings(sim_observed *lock, const uint64_t *now, int count, int64_t now_ns)
{
    for (int i = 0; i < lock->current_count; i++)
        standing_back(lock, (uint64_t)i + 1)->last_ns = now_ns;
    if (count == lock->current_count &&
        memcmp(now, lock->current, (size_t)count * sizeof(*now)) == 0)
        return;
    for (int i = 0; i < count; i++)
        lock->standings[lock->standing_count++ % STANDINGS_MAX] = (sim_standing){now[i], now_ns};
    memcpy(lock->current, now, (size_t)count * sizeof(*now));
    lock->current_count = count;
}

static void look_at(world *w, int index)
{
    sim_sights *all = world_sights(w);
    sim_observed *lock = &all->observed[index];
    uint64_t now[AT_ONCE_MAX], before = lock->standing_count;
    note_standings(lock, now, world_standings(w, index, now), world_clockwork(w)->now_ns);
    all->changes += lock->standing_count != before;
}

void observers_look(world *w)
{
    const sim_sights *all = world_sights(w);
    for (int i = 0; all->count > 0 && i < all->locks; i++)
        look_at(w, i);
}

/* A script has granted it: of `lock`, before and after. */
static void note_change(world *w, sim_observed *lock, uint64_t before)
{
    uint64_t after = lock->current[0];
    sim_seen_grant *last = &lock->grants[(lock->grant_count - 1) % SEEN_GRANTS_MAX];
    if (before == after)
        return;
    if (before != STANDS_FREE && lock->grant_count > 0 && last->fence == before)
        last->released = true;
    if (after != STANDS_FREE)
        lock->grants[lock->grant_count++ % SEEN_GRANTS_MAX] =
            (sim_seen_grant){.fence = after, .at_ns = world_clockwork(w)->now_ns};
}

void observers_ran(world *w, const char *sha1)
{
    sim_sights *all = world_sights(w);
    all->asked += strcmp(sha1, hf__scripts[HF__SCRIPT_INSPECT].sha1) == 0 ||
                  strcmp(sha1, hf__scripts[HF__SCRIPT_OBSERVE].sha1) == 0;
    for (int i = 0; all->count > 0 && i < all->locks; i++) {
        uint64_t before = all->observed[i].current[0];
        look_at(w, i);
        note_change(w, &all->observed[i], before);
    }
}

/* ---- Life ---- */

/* Never called by the core; the world looks at what there is to tell. */
static void function(void *arg, const hf_sight *sight)
{
    (void)arg;
    (void)sight;
}

static void begin(world *w, int client, sim_observer *o)
{
    int lock = (int)draw(w, (uint64_t)world_sights(w)->locks);
    hf__slice name = hf__slice_text(world_lock_name(lock));
    *o = (sim_observer){.lock = lock,
                        .began_ns = world_clockwork(w)->now_ns,
                        .observer = hf__observer_new(HF__SLICE(""), name, function, o)};
    world_log(w, "client %d: watches %s", client, world_lock_name(lock));
    client_step(w, client, &(hf__event){.kind = HF__EVENT_OBSERVE, .observer = o->observer});
}

void observers_begin(world *w, int client)
{
    observer_site site = world_observers(w, client);
    for (int i = 0; i < world_sights(w)->count; i++)
        begin(w, client, &site.observers[i]);
}

/* As hf_observe_end(), which waits for a callback that runs. */
void observers_change(world *w, int client)
{
    observer_site site = world_observers(w, client);
    int count = world_sights(w)->count;
    if (count == 0 || site.core == NULL || draw(w, 20) > 0)
        return;
    sim_observer *o = &site.observers[draw(w, (uint64_t)count)];
    if (hf__core_is_seeing(site.core, o->observer))
        return;
    hf_observer *ended = o->observer;
    o->observer = NULL;
    world_log(w, "client %d: does not watch %s any more", client, world_lock_name(o->lock));
    client_step(w, client, &(hf__event){.kind = HF__EVENT_UNOBSERVE, .observer = ended});
    if (world_observers(w, client).core != NULL)
        begin(w, client, o);
}

void observers_free(observer_site site)
{
    for (int i = 0; i < OBSERVERS_MAX; i++)
        if (site.observers[i].observer != NULL)
            hf__observer_abandon(site.observers[i].observer);
    memset(site.observers, 0, OBSERVERS_MAX * sizeof(*site.observers));
}

/* ---- What is told ---- */

static const char *kind_name(hf_sight_kind kind)
{
    static const char *const names[] = {"held",    "free",    "granted", "released", "expired",
                                        "waiting", "revoked", "broken",  "missed"};
    return names[kind];
}

/* `what`: went wrong; with what was told before. */
static void complain(world *w, int client, const sim_observer *o, const hf_sight *s,
                     const char *what)
{
    world_fail(w, "client %d: told that %s is %s with fence %llu (%s): %s; before: %s, fence %llu",
               client, world_lock_name(o->lock), kind_name(s->kind), (unsigned long long)s->fence,
               s->who.client_id, what, o->standing == STANDS_FREE ? "free" : "held",
               (unsigned long long)o->fence);
}

static void check_order(world *w, int client, const sim_observer *o, const hf_sight *s)
{
    bool first = s->kind == HF_SEEN_HELD || s->kind == HF_SEEN_FREE;
    bool held = o->standing != STANDS_FREE;
    bool grows = world_fences_grow(w, o->lock);
    if (first != !o->told)
        complain(w, client, o, s, "it is not told first how the lock stands, and once");
    if (!o->knows)
        return;
    if (s->kind == HF_SEEN_GRANTED && held)
        complain(w, client, o, s, "granted before it has ended");
    if (s->kind == HF_SEEN_EXPIRED && (!held || s->fence != o->fence))
        complain(w, client, o, s, "an end of what was not held");
    if (s->kind == HF_SEEN_GRANTED && grows && s->who.client_id[0] != '\0' &&
        s->fence <= o->highest)
        complain(w, client, o, s, "fences do not grow");
    if ((s->kind == HF_SEEN_RELEASED || s->kind == HF_SEEN_BROKEN) && grows && s->fence < o->fence)
        complain(w, client, o, s, "an end of long ago");
}

static const sim_seen_grant *find_grant(const sim_observed *lock, uint64_t fence)
{
    for (int i = 0; i < SEEN_GRANTS_MAX; i++)
        if (lock->grants[i].fence == fence)
            return &lock->grants[i];
    return NULL;
}

/* Of one that hears every message. */
static void check_complete(world *w, int client, sim_observer *o, const hf_sight *s)
{
    const sim_observed *lock = &world_sights(w)->observed[o->lock];
    const sim_seen_grant *ended = find_grant(lock, s->fence);
    if (s->kind == HF_SEEN_GRANTED) {
        const sim_seen_grant *next = &lock->grants[o->next % SEEN_GRANTS_MAX];
        if (o->next == lock->grant_count || next->fence != s->fence)
            complain(w, client, o, s, "it is not the next grant");
        o->next++;
    }
    if (s->kind == HF_SEEN_EXPIRED && ended != NULL && ended->released)
        complain(w, client, o, s, "it was released");
    if (s->kind == HF_SEEN_RELEASED && ended != NULL && !ended->released)
        complain(w, client, o, s, "it was not released");
}

/* With its end too: an observer may see a hold before its client knows that it has it. */
static void note_own_fence(const world *w, sim_observer *o, const hf_sight *s)
{
    uint64_t own = s->who.client_id[0] != '\0' ? world_own_fence(w, o->lock, s) : 0;
    if (own > o->highest)
        o->highest = own;
}

static void take_in(const world *w, sim_observer *o, const hf_sight *s)
{
    bool held = s->kind == HF_SEEN_HELD || s->kind == HF_SEEN_GRANTED;
    o->told = true;
    if (is_between_clients(s))
        return;
    o->knows = s->kind != HF_SEEN_MISSED;
    o->hears &= o->knows;
    if (!o->knows)
        return;
    o->standing = held ? world_standing_in(s) : STANDS_FREE;
    o->fence = s->fence;
    if (held || s->kind == HF_SEEN_EXPIRED)
        note_own_fence(w, o, s);
}

static void is_told(world *w, int client, sim_observer *o, const hf_sight *s)
{
    sim_sights *all = world_sights(w);
    world_log(w, "client %d: sees %s %s %llu %s %s", client, world_lock_name(o->lock),
              kind_name(s->kind), (unsigned long long)s->fence, s->who.client_id, s->who.label);
    all->told++;
    all->missed += s->kind == HF_SEEN_MISSED;
    if (s->kind != HF_SEEN_MISSED)
        check_order(w, client, o, s);
    if (o->hears)
        check_complete(w, client, o, s);
    take_in(w, o, s);
}

void observers_tell(world *w, int client)
{
    observer_site site = world_observers(w, client);
    hf__sight next;
    while (world_sights(w)->count > 0 && !*site.seeing && hf__core_next_sight(site.core, &next)) {
        is_told(w, client, next.arg, &next.sight);
        if (draw(w, 40) == 0 && !world_sights(w)->settled) {
            *site.seeing = true;
            world_returns_later(w, client, MS(1) / 10 * draw_between(w, 1, 3000));
        } else {
            hf__core_sight_told(site.core);
        }
    }
}

void observers_told(world *w, int client)
{
    observer_site site = world_observers(w, client);
    *site.seeing = false;
    hf__core_sight_told(site.core);
    client_step(w, client, &(hf__event){.kind = HF__EVENT_TICK});
}

/* ---- When no fault is felt any more ---- */

void observers_settle(world *w, bool hear)
{
    sim_sights *all = world_sights(w);
    all->settled = true;
    all->settled_ns = world_clockwork(w)->now_ns;
    all->asked = all->changes = all->deaf = 0;
    for (int i = 0; i < world_client_count(w) && all->count > 0; i++) {
        observer_site site = world_observers(w, i);
        for (int k = 0; site.core != NULL && k < all->count; k++) {
            sim_observer *o = &site.observers[k];
            o->hears = hear && o->knows;
            o->next = all->observed[o->lock].grant_count;
        }
    }
}

void observers_deaf(world *w, int client)
{
    observer_site site = world_observers(w, client);
    for (int k = 0; k < world_sights(w)->count; k++)
        site.observers[k].hears = false;
    world_sights(w)->deaf++;
}

static void check_one(world *w, int client, const sim_observer *o)
{
    sim_observed *lock = &world_sights(w)->observed[o->lock];
    int64_t now_ns = world_clockwork(w)->now_ns, agree_ns = world_agree_ns(w, client, o->lock);
    if (agree_ns < 0 || o->observer == NULL)
        return;
    if (!o->told && now_ns - o->began_ns > agree_ns &&
        now_ns - world_sights(w)->settled_ns > agree_ns)
        world_fail(w, "client %d watches %s, and is told nothing", client,
                   world_lock_name(o->lock));
    if (o->told && o->knows && !has_stood(lock, o->standing, now_ns - agree_ns))
        world_fail(w,
                   "client %d: %s is %s with fence %llu as it was told, and was not so for "
                   "%lld ms",
                   client, world_lock_name(o->lock), o->standing == STANDS_FREE ? "free" : "held",
                   (unsigned long long)o->fence, (long long)(agree_ns / 1000000));
    if (o->hears && o->next < lock->grant_count &&
        now_ns - lock->grants[o->next % SEEN_GRANTS_MAX].at_ns > agree_ns)
        world_fail(w, "client %d: is not told that %s was granted with fence %llu", client,
                   world_lock_name(o->lock),
                   (unsigned long long)lock->grants[o->next % SEEN_GRANTS_MAX].fence);
}

void observers_check(world *w)
{
    const sim_sights *all = world_sights(w);
    if (all->count == 0 || !all->settled)
        return;
    observers_look(w);
    for (int i = 0; i < world_client_count(w); i++) {
        observer_site site = world_observers(w, i);
        for (int k = 0; site.core != NULL && k < all->count; k++)
            check_one(w, i, &site.observers[k]);
    }
}

/* About once a second, after a change, when a lease ends, and when a client can hear again; with
 * room for what gets lost. */
static void check_cost(world *w)
{
    const sim_sights *all = world_sights(w);
    int64_t seconds = (world_clockwork(w)->now_ns - all->settled_ns) / MS(1000) + 1;
    int64_t watched = (int64_t)all->count * world_client_count(w) * world_servers(w);
    int64_t allowed = watched * (3 * seconds + 10 + 2 * all->changes) + 2 * all->count * all->deaf;
    if (all->asked > allowed)
        world_fail(w, "observers have asked %lld times in %lld s, more than %lld",
                   (long long)all->asked, (long long)seconds, (long long)allowed);
}

void observers_agree(world *w)
{
    const sim_sights *all = world_sights(w);
    observers_look(w);
    for (int i = 0; i < world_client_count(w) && all->count > 0; i++) {
        observer_site site = world_observers(w, i);
        for (int k = 0; site.core != NULL && k < all->count; k++) {
            const sim_observer *o = &site.observers[k];
            if (!o->told || (o->knows && !stands_now(&all->observed[o->lock], o->standing)))
                world_fail(w, "client %d has not found out how %s stands", i,
                           world_lock_name(o->lock));
        }
    }
    if (all->count > 0)
        check_cost(w);
}
