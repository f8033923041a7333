/* SPDX-License-Identifier: MIT */
/* The link on which the server sends messages: one subscription for all locks of the client, on a
 * channel of its own. It is opened when the first acquire finds its lock busy and wants to wait, or
 * when one is granted that has a listener or may be passed on to another thread; and it is kept up
 * while somebody waits, or may have to be told that others do. While messages are expected, a PING
 * now and then tells whether they could come.
 *
 *     g <number> <copy> <fence> <lease ms> <1: others wait>   the hold is granted; see queue.c
 *     i <number>                  somebody has begun to wait for what this hold has
 *     i <number> <ticket> <client>   the same on a quorum, each time; see vote.c
 *     r <number> <note>           somebody asks for it: the note that renewals bring too
 *     x <number> <fence>          it was taken away by force, up to that fence
 *
 * Whoever may publish on the channel can forge these. A forged grant must guess the number of a
 * copy, which begins at random; docs/safety.md says what that is worth. */
#include "base/mutant.h"
#include "base/text.h"
#include "core/state.h"

hf__link *hf__push_link(hf__server *server)
{
    return &server->links[server->core->config.links];
}

bool hf__push_needed(const hf__server *server)
{
    const hf__core *core = server->core;
    return server->waiters.count > 0 || core->turning > 0 || core->listening > 0 ||
           core->undecided > 0 || (core->observers.count > 0 && !hf__is_quorum(core));
}

bool hf__push_works(const hf__link *link)
{
    const hf__link *push = hf__push_link(link->server);
    return push->state == HF__LINK_READY && push->run_id[0] != '\0' &&
           strcmp(push->run_id, link->run_id) == 0;
}

void hf__push_want(hf__server *server)
{
    hf__link *push = hf__push_link(server);
    if (push->state != HF__LINK_DOWN || server->core->closing)
        return; /* after a failure it comes again by itself, in its time */
    if (server->push_denied && HF__MUTANT(DENIED_FOR_LIFE))
        return;
    if (server->push_denied && hf__before(server->core->now, server->push_again))
        hf__link_wake_at(push, server->push_again);
    else
        hf__link_wake(push);
}

void hf__push_want_all(hf__core *core)
{
    for (int i = 0; i < core->config.server_count; i++)
        hf__push_want(&core->servers[i]);
}

/* Somebody wants to hear when the lock is asked for. */
void hf__push_listen(hf_hold *hold)
{
    if (hold->listener.function == NULL || hold->listening)
        return;
    hold->listening = true;
    hold->core->listening++;
    hf__push_want_all(hold->core);
}

void hf__push_unlisten(hf_hold *hold)
{
    hold->core->listening -= hold->listening;
    hold->listening = false;
}

void hf__push_ready(hf__server *server)
{
    hf__deaf_end(server);
    hf__observer_link_ready(server->core);
    hf__push_watch(server);
    hf__queue_check_all(server, NULL);
    if (hf__is_quorum(server->core))
        hf__vote_check_server(server);
}

/* A subscription at another server process is worth nothing to the locks of this link: whichever
 * of the two connected later is right. */
void hf__push_link_ready(hf__link *link)
{
    hf__link *push = hf__push_link(link->server);
    if (push->state == HF__LINK_READY && !hf__push_works(link))
        hf__link_fail(push, HF_EUNAVAILABLE, "%s is another process now",
                      link->server->url->display);
    hf__queue_check_all(link->server, link);
}

/* ---- PING ---- */

static void set_timer(hf__link *push)
{
    hf__core *core = push->core;
    hf__instant from = push->pings > push->pongs ? push->unheard : core->now;
    hf__timer_set(&core->timers, &push->timer, hf__after(from, core->config.reply_timeout));
}

uint64_t hf__push_ping(hf__server *server)
{
    hf__link *push = hf__push_link(server);
    hf__slice word = HF__SLICE("PING");
    if (push->state != HF__LINK_READY)
        return 0;
    if (!hf__resp_encode(&push->out, &word, 1)) {
        hf__link_fail(push, HF_ENOMEM, "out of memory");
        return 0;
    }
    if (push->pings == push->pongs)
        push->unheard = server->core->now;
    if (!push->timer.set)
        set_timer(push);
    return ++push->pings;
}

void hf__push_watch(hf__server *server)
{
    if (!hf__push_link(server)->timer.set)
        hf__push_ping(server);
}

/* A PING may have left a moment ago: an observer sends some out of turn. */
void hf__push_timer(hf__server *server)
{
    hf__core *core = server->core;
    hf__link *push = hf__push_link(server);
    bool owed = push->pings > push->pongs;
    if (owed && hf__before(core->now, hf__after(push->unheard, core->config.reply_timeout)))
        set_timer(push);
    else if (owed)
        hf__link_fail_silent(push);
    else if (hf__push_needed(server))
        hf__push_watch(server);
}

/* False: nobody has asked. If they counted, a peer could say them ahead, and fall silent. */
static bool take_pong(hf__server *server)
{
    hf__link *push = hf__push_link(server);
    if (push->pongs == push->pings)
        return false;
    push->pongs++;
    push->unheard = server->core->now;
    push->failures = 0;
    hf__observer_pong(server->core, push->pongs);
    return true;
}

/* ---- Messages ---- */

bool hf__push_number(hf__slice *rest, uint64_t *number)
{
    size_t digits = hf__parse_leading(rest->bytes, rest->length, INT64_MAX, number);
    bool more = digits < rest->length;
    if (digits == 0 || (more && rest->bytes[digits] != ' '))
        return false;
    rest->bytes += digits + more;
    rest->length -= digits + more;
    return true;
}

static void granted(hf_hold *hold, hf__slice rest)
{
    uint64_t copy, fence, lease, others;
    if (hf__push_number(&rest, &copy) && hf__push_number(&rest, &fence) &&
        hf__push_number(&rest, &lease) && hf__push_number(&rest, &others) && hf__is_fence(fence) &&
        hf__queue_believes(hold, copy))
        hf__acquire_pushed(hold, fence, hf__sane_ms((int64_t)lease), others > 0);
}

/* What cannot be understood is nobody's business: anybody may publish. */
static void take_message(hf__server *server, const hf__reply *text)
{
    hf__slice rest = {text->text, text->length};
    uint64_t number;
    if (rest.length < 3 || rest.bytes[1] != ' ')
        return;
    char word = rest.bytes[0];
    rest.bytes += 2;
    rest.length -= 2;
    hf_hold *hold = hf__push_number(&rest, &number) ? hf__queue_find(server, number) : NULL;
    if (hold == NULL)
        return;
    if (word == 'g')
        granted(hold, rest);
    else if (word == 'i' && hold->vote != NULL)
        hf__vote_inquired(hold, rest);
    else if (word == 'i')
        hf__cohort_passed_over(hold);
    else if (word == 'r')
        hf__renew_note(hold, rest);
    else if (word == 'x')
        hf__renew_broken(hold, rest);
    hf__hold_settle(hold);
}

static bool is_word(const hf__reply *reply, const char *word)
{
    return reply->kind == HF__REPLY_TEXT && strcmp(reply->text, word) == 0;
}

/* "hf:e:..." and not "hf:c:..." */
static bool is_for_observers(hf__slice channel)
{
    return channel.length > 3 && channel.bytes[3] == 'e';
}

bool hf__push_received(hf__server *server, const hf__reply *reply)
{
    hf__core *core = server->core;
    if (reply->kind == HF__REPLY_ERROR) { /* to a SUBSCRIBE: nothing else is asked here */
        hf__observer_deny(core, reply->text);
        return true;
    }
    if (reply->kind == HF__REPLY_TOO_LARGE) /* a message, and none of ours: anybody may publish */
        return true;
    if (reply->kind != HF__REPLY_ARRAY || reply->count < 2)
        return false;
    if (is_word(&reply->elements[0], "pong"))
        return take_pong(server);
    const hf__reply *channel = &reply->elements[1], *text = &reply->elements[2];
    hf__slice where = {channel->text, channel->length};
    if (reply->count != 3 || channel->kind != HF__REPLY_TEXT)
        return false;
    if (is_word(&reply->elements[0], "unsubscribe"))
        return is_for_observers(where); /* without our own channel, nothing would come any more */
    if (is_word(&reply->elements[0], "subscribe")) {
        hf__observer_subscribed(core, where);
        return true;
    }
    if (!is_word(&reply->elements[0], "message") || text->kind != HF__REPLY_TEXT)
        return false;
    if (is_for_observers(where))
        hf__observer_message(core, where, (hf__slice){text->text, text->length});
    else
        take_message(server, text);
    return true;
}
