/* SPDX-License-Identifier: MIT */
/* What may be in flight on a link, and in which order requests leave.
 *
 * A hold that is not renewed in time is lost; everything else can wait. So renewals leave before
 * all others, and the others are bounded by time: as many as the server, at the pace at which it
 * answers now, works off within SPELL_MS. That is short against every lease, so a renewal never
 * stands behind more than that of our own making, however many acquires an application starts.
 *
 * The pace is measured. An answer to a call that was in flight when the answer before it came has
 * taken, at the server, as long as the two are apart; the way there and back does not count. So a
 * server that is far away gets as many calls as a near one. Answers come in bunches, and the first
 * of a bunch has the time of all; so the pace is that of the last SPELL_MS, not of the last
 * answers.
 *
 * The way there and back is the shortest round trip of the connection. It is no lateness either
 * (hf__watch_lag).
 *
 * A link begins with few calls, and each answer allows one more, until the time is the limit: who
 * holds one lock and then starts hundreds of calls must not find out by losing it that the server
 * is slow.
 *
 * When renewals are late all the same (hf__watch_lag), the server or this process cannot keep up
 * with the holds that there are. Then an acquire that would add another one is held back until they
 * are on time again, or until its call has no more time. Releases, checks of those who wait and
 * copies of what the server may have granted already are not held back: they take no new load. */
#include "base/mutant.h"
#include "core/fail.h"
#include "core/state.h"

enum {
    SPELL_MS = HF_LEASE_MIN_MS / 5,
    WINDOW_MIN = 2, /* with one, no call would be in flight when an answer comes */
    WINDOW_FIRST = 4,
    ANSWERS_MIN = 16 /* of which the pace is an average */
};

void hf__flow_init(hf__link *link)
{
    link->window = HF__MUTANT(WINDOW_WIDE) ? 256 : WINDOW_FIRST;
}

hf__list *hf__flow_list(hf__link *link, const hf__request *request)
{
    if (request->place == HF__HELD_BACK)
        return &link->held_back;
    bool urgent = request->kind == HF__REQUEST_RENEW && !HF__MUTANT(RENEWALS_WAIT);
    return urgent ? &link->urgent : &link->waiting;
}

bool hf__flow_is_waiting(const hf__link *link)
{
    return link->urgent.count + link->waiting.count + link->held_back.count > 0;
}

void hf__flow_let_in(hf__link *link)
{
    hf__node *node;
    if (link->state == HF__LINK_READY && hf__watch_lag(link).ns > 0)
        return;
    while ((node = hf__list_first(&link->held_back)) != NULL) {
        hf__list_remove(&link->held_back, node);
        hf__list_append(&link->waiting, node);
        HF__ENTRY(node, hf__request, node)->place = HF__WAITING;
    }
}

hf__list *hf__flow_next(hf__link *link)
{
    if (link->urgent.count > 0)
        return &link->urgent;
    if (link->held_back.count > 0)
        hf__flow_let_in(link);
    bool has_room = link->calls < link->window || HF__MUTANT(FLIGHT_UNBOUNDED);
    return link->waiting.count > 0 && has_room ? &link->waiting : NULL;
}

static bool adds_a_hold(const hf__request *request)
{
    if (request->kind != HF__REQUEST_ACQUIRE || request->unanswered)
        return false;
    const hf_hold *hold = hf__request_hold(request);
    return hold->place.base == 0 && hold->range > 0;
}

bool hf__flow_holds_back(const hf__request *request)
{
    hf__link *link = hf__request_link(request);
    if (link->state != HF__LINK_READY || !adds_a_hold(request) || hf__watch_lag(link).ns == 0 ||
        HF__MUTANT(NOT_HELD_BACK))
        return false;
    hf__watch_note_lag(link);
    return true;
}

/* The last SPELL_MS count, and at least ANSWERS_MIN answers. */
static void note_pace(hf__pace *pace, hf__span took, size_t answers)
{
    pace->busy.ns += took.ns;
    pace->answers += answers;
    if (pace->answers >= 2 * (size_t)ANSWERS_MIN && pace->busy.ns >= 2 * hf__span_ms(SPELL_MS).ns) {
        pace->busy.ns /= 2;
        pace->answers /= 2;
    }
}

static size_t within(const hf__pace *pace, hf__span time, size_t at_least)
{
    if (pace->busy.ns == 0)
        return SIZE_MAX;
    size_t count = (size_t)((double)time.ns * (double)pace->answers / (double)pace->busy.ns);
    return count < at_least ? at_least : count;
}

size_t hf__flow_renewals_within(const hf__link *link, hf__span time)
{
    return within(&link->renewal_pace, time, HF__BATCH_MAX);
}

/* One more than before, if that many were in flight; and never more than there is time for. */
static void set_window(hf__link *link)
{
    size_t most = within(&link->call_pace, hf__span_ms(SPELL_MS), WINDOW_MIN);
    link->window += link->calls >= link->window;
    if (link->window > most)
        link->window = most;
}

/* Busy servers answer later than that; so it is never longer on the same connection. */
static void note_round_trip(hf__link *link, hf__instant sent)
{
    hf__span took = hf__between(sent, link->core->now);
    if (!hf__is_never(sent) && took.ns < link->round_trip.ns)
        link->round_trip = took;
}

/* A call that took for ever counts as one that took the whole time: more would change nothing now,
 * and be remembered for longer. */
void hf__flow_answered(hf__link *link, const hf__request *request)
{
    note_round_trip(link, request->sent);
    bool queued = hf__before(request->sent, link->unheard);
    hf__span took = hf__between(link->unheard, link->core->now);
    hf__span most = hf__span_ms(SPELL_MS);
    if (queued && request->kind == HF__REQUEST_RENEW)
        note_pace(&link->renewal_pace, took, request->group);
    else if (queued)
        note_pace(&link->call_pace, took.ns < most.ns ? took : most, 1);
    if (request->kind != HF__REQUEST_RENEW)
        set_window(link);
    link->unheard = link->core->now;
}

void hf__flow_trouble(const hf__link *link, hf_error *why)
{
    const char *server = link->server->url->display;
    int64_t late_ms = hf__span_to_ms(hf__watch_lag(link));
    if (link->trouble.text[0] != '\0')
        *why = link->trouble;
    else if (link->state != HF__LINK_READY)
        hf__fail(why, HF_EUNAVAILABLE, "%s: no connection in time", server);
    else if (late_ms > 0)
        hf__fail(why, HF_EUNAVAILABLE,
                 "renewals at %s are %lld ms late; new locks wait, so that none is lost", server,
                 (long long)late_ms);
    else
        hf__fail(why, HF_EUNAVAILABLE, "%s answers too slowly; the request was not sent in time",
                 server);
}

void hf__core_load(const hf__core *core, hf_load *load)
{
    *load = (hf_load){.overloads = core->overloads};
    for (int i = 0; i < hf__core_links(core); i++) {
        const hf__link *link = &core->links[i];
        uint64_t late_ms = (uint64_t)hf__span_to_ms(hf__watch_lag(link));
        load->late_ms = late_ms > load->late_ms ? late_ms : load->late_ms;
        load->held_back += link->held_back.count;
        load->unsent += link->waiting.count;
    }
}
