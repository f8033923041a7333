/* SPDX-License-Identifier: MIT */
/* Which servers of a quorum have a vote, and what they know of fences.
 *
 * A server that was restarted may have forgotten what it granted, and must not grant it again while
 * the first grant may last. So a server process has a vote only if it has been told so, in a key
 * that names it by its run id; nobody tells it so until the longest lease that there can be is over
 * since it was started: because this client has known that process for so long, or because it says
 * so itself and its clock agrees with that of a majority (what it says follows its clock).
 *
 * It may have forgotten fences too. Each server keeps a floor, above which no fence is believed: a
 * client raises it, well ahead of need, before it believes one. Whoever tells a server that it has
 * a vote reads the floors of so many others that one of them knows of every fence that was ever
 * believed, once the quarantine is over and not before, and the fences of that server go on from
 * the highest: its base. If a majority has no vote, there is nobody who would know: the servers are
 * new, or more was lost than a quorum can stand; then the floors that are there have to do.
 *
 * An acquire does not go to a server without a vote: it waits at the gate, here, until the server
 * has one or it is certain that it will not have one soon. */
#include <string.h>

#include "base/mutant.h"
#include "base/text.h"
#include "core/fail.h"
#include "core/quorum.h"

enum {
    LOOK_MS = 500, /* how often a server without a vote is asked whether it has one now */
    UPTIME_MARGIN_MS = 1000,
    CLOCKS_AGREE_US = 500000,
    SLACK_US = 10000,         /* how far a proposed fence is ahead of the clocks, */
    FLOOR_AHEAD_US = 2000000, /* and a floor of the fences; */
    FLOOR_NEAR_US = 1000000   /* raised when less than that is left */
};

static const char run_key[] = "hf:run", floor_key[] = "hf:floor";

void hf__standing_init(hf__server *server)
{
    server->request.kind = HF__REQUEST_SERVER;
    server->timer.kind = HF__TIMER_SERVER;
    hf__list_init(&server->gated);
}

bool hf__standing_has_vote(const hf__link *link)
{
    const hf__server *server = link->server;
    if (!hf__is_quorum(link->core) || HF__MUTANT(RESTARTED_VOTES))
        return true;
    return server->votes && strcmp(server->run_id, link->run_id) == 0;
}

/* ---- Asking ---- */

static void ask(hf__server *server)
{
    hf__link_submit(&server->request);
}

static hf__slice key_word(const hf__core *core, const char *name, char *place)
{
    char *end = hf__slice_put(place, core->config.side_prefix);
    end = hf__slice_put(end, hf__slice_text(name));
    return (hf__slice){place, (size_t)(end - place)};
}

static uint64_t floor_wanted(const hf__server *server)
{
    uint64_t usual = hf__standing_propose(server->core) + FLOOR_AHEAD_US;
    if (!server->votes || server->wanted_floor > usual)
        return server->wanted_floor;
    return usual;
}

hf__slice hf__standing_key(const hf__core *core, char *place)
{
    return key_word(core, run_key, place);
}

bool hf__standing_encode(const hf__server *server, hf__buffer *out)
{
    enum { KEY_MAX = HF_SIDE_PREFIX_MAX + sizeof(floor_key), NUMBER_MAX = 20 };
    const hf__script *script = &hf__scripts[HF__SCRIPT_JOIN];
    char run[KEY_MAX], floor[KEY_MAX], wanted[NUMBER_MAX], base[NUMBER_MAX];
    hf__slice words[] = {HF__SLICE("EVAL"),
                         {script->body, script->length},
                         HF__SLICE("2"),
                         key_word(server->core, run_key, run),
                         key_word(server->core, floor_key, floor),
                         hf__slice_text(server->links[0].run_id),
                         {wanted, hf__digits(wanted, floor_wanted(server))},
                         {base, hf__digits(base, server->joins_from)}};
    if (server->joins_from == 0)
        words[7] = HF__SLICE("");
    return hf__resp_encode(out, words, sizeof(words) / sizeof(words[0]));
}

/* ---- Fences ---- */

/* How far a server's clock can be by now, if it goes like ours. */
static int64_t clock_now(const hf__server *server)
{
    return server->wall.us + hf__between(server->wall_at, server->core->now).ns / 1000;
}

uint64_t hf__standing_propose(const hf__core *core)
{
    uint64_t highest = 0;
    for (int i = 0; i < core->config.server_count; i++) {
        const hf__server *server = &core->servers[i];
        uint64_t clock = server->wall.us > 0 ? (uint64_t)clock_now(server) + SLACK_US : 0;
        highest = clock > highest ? clock : highest;
        highest = server->base >= highest ? server->base + 1 : highest;
    }
    return highest;
}

void hf__standing_reserve(hf__server *server, uint64_t fence)
{
    if (server->floor >= fence + FLOOR_NEAR_US)
        return;
    if (server->wanted_floor < fence + FLOOR_AHEAD_US)
        server->wanted_floor = fence + FLOOR_AHEAD_US;
    ask(server);
}

/* ---- The gate ---- */

static void say_why_not(const hf__server *server, hf_error *error)
{
    hf__instant over = hf__after(server->known_since, server->core->config.max_lease);
    int64_t left_ms = hf__span_to_ms(hf__between(server->core->now, over)) + 1;
    const char *name = server->url->display;
    if (!server->is_due)
        hf__fail(error, HF_EUNAVAILABLE,
                 "%s was restarted and has no vote yet, for %lld ms at most", name,
                 (long long)(left_ms > 0 ? left_ms : 0));
    else
        hf__fail(error, HF_EUNAVAILABLE,
                 "%s was restarted and has no vote until more of the others are there", name);
}

void hf__standing_leave_gate(hf_hold *vote)
{
    if (hf__node_linked(&vote->vote->gate))
        hf__list_remove(&vote->link->server->gated, &vote->vote->gate);
}

hf_hold *hf__standing_first_gated(const hf__server *server)
{
    hf__node *node = hf__list_first(&server->gated);
    hf__vote *vote = node != NULL ? HF__ENTRY(node, hf__vote, gate) : NULL;
    return vote != NULL ? vote->call.hold : NULL;
}

/* Each of those who wait is told once: whoever comes meanwhile is not meant. */
static void open_gate(hf__server *server)
{
    for (size_t left = server->gated.count; left > 0 && server->gated.count > 0; left--) {
        hf_hold *vote = hf__standing_first_gated(server);
        hf__standing_leave_gate(vote);
        hf__link_submit(&vote->requests[HF__REQUEST_ACQUIRE]);
    }
}

static void turn_away(hf__server *server, const hf_error *why)
{
    for (size_t left = server->gated.count; left > 0 && server->gated.count > 0; left--) {
        hf_hold *vote = hf__standing_first_gated(server);
        hf__standing_leave_gate(vote);
        hf__acquire_unreachable(vote, why);
        hf__hold_settle(vote);
    }
}

bool hf__standing_admits(hf_hold *hold)
{
    if (hold->vote == NULL)
        return true;
    hf__server *server = hold->link->server;
    if (hold->link->state == HF__LINK_READY && hf__standing_has_vote(hold->link)) {
        hf__standing_reserve(server, hf__standing_propose(hold->core));
        return true;
    }
    if (!hf__node_linked(&hold->vote->gate))
        hf__list_append(&server->gated, &hold->vote->gate);
    hf__link_wake(hold->link);
    ask(server);
    return false;
}

/* ---- Quarantine ---- */

/* How many of the clocks agree with its own, counting those that are not known yet or not. */
static int count_agreeing(const hf__server *server, bool with_unknown)
{
    const hf__core *core = server->core;
    int agree = 0;
    for (int i = 0; i < core->config.server_count; i++) {
        const hf__server *other = &core->servers[i];
        int64_t apart = clock_now(other) - clock_now(server);
        if (other->wall.us == 0)
            agree += with_unknown;
        else
            agree += apart <= CLOCKS_AGREE_US && apart >= -CLOCKS_AGREE_US;
    }
    return agree;
}

/* Whether its clock has gone like ours since it said for how long it has been there: otherwise that
 * was said by another clock than the one that agrees with the others now. */
static bool has_told_by_this_clock(const hf__server *server)
{
    int64_t passed_us = hf__between(server->known_since, server->core->now).ns / 1000;
    int64_t apart = clock_now(server) - server->uptime_wall.us - passed_us;
    return server->uptime_wall.us > 0 && apart <= CLOCKS_AGREE_US && apart >= -CLOCKS_AGREE_US;
}

static bool is_up_for_long(const hf__server *server)
{
    hf__span up = {server->uptime.ns + hf__between(server->known_since, server->core->now).ns};
    return up.ns > server->core->config.max_lease.ns + hf__span_ms(UPTIME_MARGIN_MS).ns &&
           has_told_by_this_clock(server);
}

/* Whether nothing that the process may have forgotten can still be believed by anybody. */
static bool quarantine_is_over(const hf__server *server)
{
    const hf__core *core = server->core;
    hf__span known = hf__between(server->known_since, core->now);
    if (core->config.durable_servers || known.ns > core->config.max_lease.ns)
        return true;
    return is_up_for_long(server) && count_agreeing(server, false) >= hf__quorum_size(core);
}

/* Whether that may turn out any moment, when more servers have told their time. */
static bool may_be_over(const hf__server *server)
{
    return is_up_for_long(server) && count_agreeing(server, true) >= hf__quorum_size(server->core);
}

static bool is_known(const hf__server *server)
{
    return server->run_id[0] != '\0';
}

/* All that have no vote get one together: the first alone would be no majority, and the others
 * would wait for one. */
static void join_all(hf__core *core, uint64_t base)
{
    for (int i = 0; i < core->config.server_count; i++) {
        hf__server *server = &core->servers[i];
        if (server->votes || !server->is_due || server->joins_from > 0)
            continue;
        server->joins_from = base;
        ask(server);
    }
}

/* The highest of the floors that were read since then, if they are enough to know. */
static void find_base(hf__server *joining)
{
    hf__core *core = joining->core;
    int with_vote = 0, without = 0, quorum = hf__quorum_size(core);
    uint64_t highest = 1;
    for (int i = 0; i < core->config.server_count; i++) {
        const hf__server *server = &core->servers[i];
        bool fresh = !hf__before(server->floor_at, joining->due_since) || HF__MUTANT(FLOOR_EARLY);
        if (server->floor_at.ns == 0 || !fresh)
            continue;
        with_vote += server->votes;
        without += !server->votes && server->is_due; /* so many get one together, or none */
        highest = server->floor > highest ? server->floor : highest;
    }
    bool knows_itself = core->config.durable_servers && /* having forgotten nothing */
                        !hf__before(joining->floor_at, joining->due_since);
    if (knows_itself || with_vote >= core->config.server_count - quorum + 1)
        joining->joins_from = highest;
    else if (without >= quorum)
        join_all(core, highest);
}

static void set_timer(hf__server *server)
{
    hf__instant next = hf__after(server->core->now, hf__span_ms(LOOK_MS));
    if (!server->is_due)
        next = hf__earlier(next, hf__after(server->known_since,
                                           (hf__span){server->core->config.max_lease.ns + 1}));
    hf__timer_set(&server->core->timers, &server->timer, next);
}

static void ask_others(const hf__server *joining)
{
    for (int i = 0; i < joining->core->config.server_count; i++) {
        hf__server *server = &joining->core->servers[i];
        if (hf__before(server->floor_at, joining->due_since))
            ask(server);
    }
}

/* Sees that a server that has no vote gets one when it may. */
static void look(hf__server *server)
{
    hf_error why;
    if (server->votes || !is_known(server) || server->links[0].state != HF__LINK_READY)
        return;
    if (!server->is_due && quarantine_is_over(server)) {
        server->is_due = true;
        server->due_since = server->core->now;
    }
    if (server->is_due && server->joins_from == 0)
        find_base(server);
    if (server->joins_from > 0)
        ask(server);
    else if (server->is_due)
        ask_others(server);
    if (!server->is_due && !may_be_over(server)) {
        say_why_not(server, &why);
        turn_away(server, &why);
    }
    set_timer(server);
}

void hf__standing_timer(hf__server *server)
{
    hf_error why;
    if (server->core->holds.count == 0 || server->votes)
        return;  /* nobody needs it */
    ask(server); /* others may have told it */
    look(server);
    say_why_not(server, &why);
    if (!server->votes)
        turn_away(server, &why);
}

/* ---- What is learnt ---- */

/* False: a server stands twice in the list, and the connection has failed. */
static bool is_alone(hf__link *link)
{
    hf__core *core = link->core;
    for (int i = 0; i < core->config.server_count; i++) {
        const hf__server *other = &core->servers[i];
        if (other == link->server || !is_known(other) || strcmp(other->run_id, link->run_id) != 0)
            continue;
        hf__link_fail(link, HF_EUNSAFE, "%s and %s are the same server", link->server->url->display,
                      other->url->display);
        return false;
    }
    return true;
}

bool hf__standing_greeted(hf__link *link, uint64_t uptime_s)
{
    hf__server *server = link->server;
    if (!hf__is_quorum(link->core) || link->kind->subscribes)
        return true;
    if (!is_alone(link))
        return false;
    if (strcmp(server->run_id, link->run_id) == 0)
        return true;
    memcpy(server->run_id, link->run_id, sizeof(server->run_id));
    server->known_since = link->core->now;
    server->uptime = hf__span_ms(hf__sane_ms((int64_t)uptime_s * 1000));
    server->uptime_wall = (hf__wall){0};
    server->votes = server->is_due = false;
    server->base = server->floor = server->joins_from = 0;
    server->floor_at = (hf__instant){0};
    return true;
}

/* Clocks, bases and floors become proposals to all the other servers, and would spoil their fences
 * for good. */
static bool is_sane(int64_t number)
{
    return number == 0 || hf__is_fence((uint64_t)number);
}

void hf__standing_clock(hf__link *link, hf__wall wall)
{
    hf__server *server = link->server;
    if (!is_sane(wall.us))
        return;
    server->wall = wall;
    server->wall_at = link->greeted;
    if (server->uptime_wall.us == 0) /* the same greeting has told the uptime */
        server->uptime_wall.us =
            wall.us + hf__between(link->greeted, server->known_since).ns / 1000;
}

void hf__standing_told(hf__link *link, hf__slice text)
{
    hf__server *server = link->server;
    size_t length = strlen(link->run_id);
    uint64_t base;
    if (length == 0 || text.length < length + 2 || memcmp(text.bytes, link->run_id, length) != 0 ||
        !hf__parse_decimal(text.bytes + length + 1, text.length - length - 1, INT64_MAX, &base) ||
        !is_sane((int64_t)base) || strcmp(server->run_id, link->run_id) != 0)
        return; /* or another connection has met a later process since */
    server->votes = true;
    server->base = base;
}

/* What was on its way to the last process does not go to this one before it has a vote. */
static void call_back(hf__link *link)
{
    hf__list *holds = &link->core->holds;
    for (hf__node *node = hf__list_first(holds); node != NULL; node = hf__list_next(holds, node)) {
        hf_hold *vote = HF__ENTRY(node, hf_hold, node);
        hf__request *acquire = &vote->requests[HF__REQUEST_ACQUIRE];
        if (vote->link != link || vote->vote == NULL || !hf__request_waits(acquire))
            continue;
        hf__link_withdraw(acquire);
        if (!hf__node_linked(&vote->vote->gate))
            hf__list_append(&link->server->gated, &vote->vote->gate);
    }
}

/* What it granted is gone, as far as we can tell. Whoever is told so may send something at once. */
static void distrust(hf__link *link)
{
    hf__list *holds = &link->core->holds;
    call_back(link);
    for (size_t left = holds->count; left > 0 && holds->count > 0; left--) {
        hf_hold *vote = HF__ENTRY(hf__list_rotate(holds), hf_hold, node);
        if (vote->link != link || vote->vote == NULL || vote->stage != HF__HOLD_HELD)
            continue;
        hf__hold_lose(vote, HF_REASON_GONE, "the server was restarted");
        hf__hold_settle(vote);
    }
}

void hf__standing_link_ready(hf__link *link)
{
    if (!hf__is_quorum(link->core))
        return;
    if (hf__standing_has_vote(link)) {
        open_gate(link->server);
    } else {
        distrust(link);
        look(link->server);
    }
}

/* {1 or 0, base, floor, clock} */
bool hf__standing_answered(hf__server *server, const hf__reply *reply)
{
    const hf__reply *words = reply->elements;
    if (reply->kind != HF__REPLY_ARRAY || reply->count != 4)
        return false;
    for (int i = 0; i < 4; i++)
        if (words[i].kind != HF__REPLY_INTEGER || !is_sane(words[i].integer))
            return false;
    bool before = server->votes;
    server->votes = words[0].integer == 1 && strcmp(server->run_id, server->links[0].run_id) == 0;
    server->base = (uint64_t)words[1].integer;
    server->floor = (uint64_t)words[2].integer;
    server->floor_at = server->wall_at = server->request.sent;
    server->wall = (hf__wall){words[3].integer};
    if (server->floor < server->wanted_floor)
        ask(server); /* it was asked for less */
    if (server->votes && !before)
        hf__log(server->core, HF_LOG_INFO, "%s has a vote", server->url->display);
    if (server->votes)
        open_gate(server);
    for (int i = 0; i < server->core->config.server_count; i++)
        look(&server->core->servers[i]);
    hf__ballot_check_all(server->core);
    return true;
}

/* Who waits at the gate is told; the question is asked again when somebody comes. */
void hf__standing_refused(hf__server *server, const hf_error *why)
{
    hf__link_withdraw(&server->request);
    turn_away(server, why);
}
