/* SPDX-License-Identifier: MIT */
/* What links of different use do differently, as a table of functions for each. A server has as
 * many links for requests as the configuration says, and behind them one for messages from the
 * server (push.c), over which no request goes, and a careful one, for acquires that replicas must
 * acknowledge (replicas.c). Everything that all of them do alike is in link.c. */
#include "base/mutant.h"
#include "core/state.h"

/* ---- Links for requests ---- */

static bool has_in_flight(const hf__link *link)
{
    return link->in_flight.count > 0;
}

static void command_ready(hf__link *link)
{
    hf__standing_link_ready(link);
    hf__link_pump(link);
    hf__push_link_ready(link);
}

/* A server that answers slowly but steadily is not dead: what is late because of those before it
 * has the same time again after each of their answers. */
static void check_oldest(hf__link *link)
{
    hf__node *oldest = hf__list_first(&link->in_flight);
    if (oldest == NULL)
        return;
    hf__instant since = HF__ENTRY(oldest, hf__request, node)->sent;
    if (!HF__MUTANT(SILENT_SINCE_SENT))
        since = hf__later(since, link->unheard);
    hf__instant due = hf__after(since, link->core->config.reply_timeout);
    if (hf__before(link->core->now, due))
        hf__timer_set(&link->core->timers, &link->timer, due);
    else
        hf__link_fail_silent(link);
}

static void command_down(hf__link *link)
{
    (void)link; /* nobody but its requests cares, and they are told */
}

static const hf__link_kind command_kind = {false,         hf__flow_is_waiting, has_in_flight,
                                           command_ready, hf__link_answer,     check_oldest,
                                           command_down};

/* ---- The link for messages ---- */

static bool push_needed(const hf__link *link)
{
    return hf__push_needed(link->server);
}

static bool push_expects(const hf__link *link)
{
    return link->pings > link->pongs || hf__push_needed(link->server) || link->core->stats.held > 0;
}

static void push_ready(hf__link *link)
{
    hf__push_ready(link->server);
}

static void take_message(hf__link *link, const hf__reply *reply)
{
    if (!hf__push_received(link->server, reply))
        hf__link_fail(link, HF_EUNAVAILABLE, "%s sent a message that makes no sense",
                      link->server->url->display);
}

static void push_timer(hf__link *link)
{
    hf__push_timer(link->server);
}

static void push_down(hf__link *link)
{
    hf__observer_link_down(link->core);
}

static const hf__link_kind push_kind = {true,         push_needed, push_expects, push_ready,
                                        take_message, push_timer,  push_down};

/* ---- The careful link ---- */

static const hf__link_kind careful_kind = {false,         hf__flow_is_waiting, has_in_flight,
                                           hf__link_pump, hf__link_answer,     check_oldest,
                                           command_down};

const hf__link_kind *hf__link_kind_at(const hf__server *server, int index)
{
    int links = server->core->config.links;
    return index < links ? &command_kind : index == links ? &push_kind : &careful_kind;
}
