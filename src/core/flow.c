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
 * server that is far away gets as many calls as a near one.
 *
 * When renewals are late all the same (hf__watch_lag), the server or this process cannot keep up
 * with the holds that there are. Then an acquire that would add another one is held back until they
 * are on time again, or until its call has no more time. Releases, checks of those who wait and
 * copies of what the server may have granted already are not held back: they take no new load. */
#include "core/fail.h"
#include "core/state.h"

enum {
    SPELL_MS = HF_LEASE_MIN_MS / 5,
    WINDOW_MIN = 32,
    WINDOW_FIRST = 256, /* until the pace is known */
    COST_SAMPLES = 16   /* of which the pace is an average */
};

hf__list *hf__flow_list(hf__link *link, const hf__request *request)
{
    if (request->place == HF__HELD_BACK)
        return &link->held_back;
    return request->kind == HF__REQUEST_RENEW ? &link->urgent : &link->waiting;
}

bool hf__flow_is_waiting(const hf__link *link)
{
    return link->urgent.count + link->waiting.count + link->held_back.count > 0;
}

static size_t window(const hf__link *link)
{
    if (link->cost.ns == 0)
        return WINDOW_FIRST;
    size_t calls = (size_t)(hf__span_ms(SPELL_MS).ns / link->cost.ns);
    return calls < WINDOW_MIN ? WINDOW_MIN : calls;
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
    return link->waiting.count > 0 && link->calls < window(link) ? &link->waiting : NULL;
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
    if (link->state != HF__LINK_READY || !adds_a_hold(request) || hf__watch_lag(link).ns == 0)
        return false;
    hf__watch_note_lag(link);
    return true;
}

void hf__flow_answered(hf__link *link, const hf__request *request)
{
    bool queued = hf__before(request->sent, link->unheard);
    if (queued && request->kind != HF__REQUEST_RENEW) {
        hf__span took = hf__between(link->unheard, link->core->now);
        link->cost.ns += (took.ns - link->cost.ns) / COST_SAMPLES;
        if (link->cost.ns == 0)
            link->cost.ns = 1;
    }
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
