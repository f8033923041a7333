/* SPDX-License-Identifier: MIT */
/* A server that denies us messages: SUBSCRIBE, PUBLISH, PUBSUB or PING is not allowed, or not on
 * our channel. That may change at any time, so it is remembered no longer than it lasts: while
 * somebody needs messages, the subscription is tried again, less and less often, and every eight
 * seconds at least.
 *
 * Meanwhile those who wait there queue all the same, but the server knows that no message can tell
 * them of a grant (queue.c, hand_on.lua): each asks again and again, every retry interval, and so
 * hears of it a little later than others would. What others would have to tell us is:
 *
 * - that somebody waits for a lock which threads of this client pass on among themselves: they stop
 *   when their time is up, as always;
 * - on a quorum, that somebody with an earlier ticket waits for a vote that we have. If we kept it
 *   while we wait for other votes, both would wait for ever. So it is given back every now and
 *   then, as if we had been told, and queued for again. */
#include "base/mutant.h"
#include "base/random.h"
#include "core/quorum.h"

enum { RETRY_FIRST_MS = 500, RETRY_MAX_MS = 8000, GIVE_WAY_MIN_MS = 20 };

hf__span hf__deaf_pause(hf__core *core, unsigned denials)
{
    return hf__random_backoff(&core->random, denials, RETRY_FIRST_MS, RETRY_MAX_MS);
}

/* ---- On a quorum ---- */

static bool is_anywhere(const hf__core *core)
{
    for (int i = 0; i < core->config.server_count; i++)
        if (core->servers[i].push_denied)
            return true;
    return false;
}

void hf__deaf_plan(hf_hold *main)
{
    hf__call *call = main->call;
    uint64_t interval = (uint64_t)hf__span_ms(GIVE_WAY_MIN_MS).ns;
    if (interval < (uint64_t)call->retry_interval.ns)
        interval = (uint64_t)call->retry_interval.ns;
    if (!is_anywhere(main->core) || HF__MUTANT(DEAF_KEEPS))
        return;
    uint64_t spread = hf__random_below(&main->core->random, interval + 1);
    call->next_try = hf__after(main->core->now, (hf__span){(int64_t)(interval + spread)});
    hf__acquire_set_timer(call);
}

void hf__deaf_give_way(hf_hold *main)
{
    for (int i = 0; i < hf__servers_of(main); i++) {
        hf_hold *vote = main->ballot->votes[i];
        if (main->core->servers[i].push_denied && hf__vote_is_held(vote))
            hf__vote_yield(vote);
    }
    hf__deaf_plan(main);
}

static void plan_all(hf__core *core)
{
    for (hf__node *n = hf__list_first(&core->holds); n != NULL;
         n = hf__list_next(&core->holds, n)) {
        hf_hold *hold = HF__ENTRY(n, hf_hold, node);
        if (hold->ballot != NULL && hold->ballot->undecided)
            hf__deaf_plan(hold);
    }
}

/* ---- Denied, and allowed again ---- */

void hf__deaf_begin(hf__server *server, const char *what, const char *why)
{
    hf__core *core = server->core;
    bool is_news = !server->push_denied;
    server->push_denied = true;
    server->push_again = hf__after(core->now, hf__deaf_pause(core, ++server->push_denials));
    hf__link_close(hf__push_link(server));
    hf__observer_link_down(core);
    if (hf__push_needed(server))
        hf__push_want(server);
    if (!is_news)
        return;
    hf__log(core, HF_LOG_WARNING, "no messages from the server, so those who wait poll: %s%s", what,
            why);
    hf__queue_check_all(server, NULL);
    plan_all(core);
}

void hf__deaf_end(hf__server *server)
{
    if (server->push_denied)
        hf__log(server->core, HF_LOG_INFO, "%s allows messages again", server->url->display);
    server->push_denied = false;
    server->push_denials = 0;
}
