/* SPDX-License-Identifier: MIT */
/* Watching a lock: an observer hears what happens to it, by messages on a channel of the lock's
 * own.
 *
 * The scripts publish there only while somebody has asked for it lately, which an observer does
 * again and again (observe.lua), once its subscription is confirmed. Then it looks (inspect.lua):
 * at the start, so that it knows who has the lock; when the time of a hold is over, because nobody
 * publishes that; and whenever messages may have been lost. What a look finds to be different from
 * what was heard is told as if it had been. Without pub/sub it looks every second. What is made of
 * it all is in sight.c.
 *
 * On a quorum the messages of one server say nothing about a majority, and there is no
 * subscription: then it is looked at every second too. */
#include "base/memory.h"
#include "base/mutant.h"
#include "base/text.h"
#include "core/holder.h"
#include "core/name.h"
#include "core/observer.h"

enum {
    OBSERVE_MS = 30000, /* for how long the scripts are asked to publish, */
    REPEAT_MS = 10000,  /* and how often */
    LOOK_MS = 1000      /* after trouble, and where there are no messages */
};

#define CHANNEL_PREFIX "hf:e:" /* and the name of the fence's key */

static hf__slice channel_of(const hf_observer *o)
{
    return (hf__slice){o->text + o->key_length, o->channel_length};
}

static bool is_on(const hf_observer *o, hf__slice channel)
{
    return o->channel_length == channel.length &&
           memcmp(channel_of(o).bytes, channel.bytes, channel.length) == 0;
}

hf_observer *hf__observer_new(hf__slice prefix, hf__slice name, hf_sight_function *function,
                              void *arg)
{
    size_t key_length = prefix.length + name.length;
    size_t channel_max = sizeof(CHANNEL_PREFIX) + key_length + HF__SIDE_KEY_EXTRA;
    hf_observer *o = hf__alloc(sizeof(*o) + key_length + channel_max);
    if (o == NULL)
        return NULL;
    hf__slice_put(hf__slice_put(o->text, prefix), name);
    o->key_length = key_length;
    o->function = function;
    o->arg = arg;
    o->timer.kind = HF__TIMER_OBSERVER;
    hf__list_init(&o->news);
    return o;
}

void hf__observer_drop(hf_observer *o)
{
    hf__sight_drop(o);
    hf__buffer_free(&o->answer.value);
    hf__buffer_free(&o->answer.keys);
    hf__free(o);
}

void hf__observer_set_client(hf_observer *o, void *client)
{
    o->client = client;
}

void *hf__observer_client(const hf_observer *o)
{
    return o->client;
}

/* ---- Asking ---- */

static void set_timer(hf_observer *o)
{
    hf__instant due = o->subscribed ? hf__earlier(o->repeat, o->look) : o->look;
    if (!o->asking && o->pending == 0 && !o->core->closing && !hf__is_never(due))
        hf__timer_set(&o->core->timers, &o->timer, due);
}

static void ask(hf_observer *o, hf__query_kind kind)
{
    hf__slice none = {NULL, 0}, key = {o->text, o->key_length};
    hf__query *query = hf__query_new(kind, none, key, none, OBSERVE_MS);
    if (query == NULL) {
        o->look = hf__after(o->core->now, hf__span_ms(LOOK_MS));
        set_timer(o);
        return;
    }
    hf__buffer_clear(&o->answer.value);
    o->answer.inspection = &o->inspection;
    o->call = (hf__call){.kind = HF__CALL_QUERY,
                         .query = query,
                         .answer = &o->answer,
                         .observer = o,
                         .timer = {.kind = HF__TIMER_CALL}};
    o->asking = true;
    o->asked_free = o->knows && !o->held;
    o->asked_fence = o->fence;
    hf__query_start(o->core, &o->call);
}

/* If it is denied, or the answer is lost, it is tried again. */
static void subscribe(hf_observer *o)
{
    hf__core *core = o->core;
    hf__link *push = hf__push_link(&core->servers[0]);
    hf__slice words[] = {HF__SLICE("SUBSCRIBE"), channel_of(o)};
    if (push->state != HF__LINK_READY || hf__is_quorum(core))
        return;
    o->subscribe_again = hf__after(core->now, hf__deaf_pause(core, ++o->denials));
    if (HF__MUTANT(DENIED_FOR_LIFE))
        o->subscribe_again = HF__NEVER;
    if (!hf__resp_encode(&push->out, words, 2))
        hf__link_fail(push, HF_ENOMEM, "out of memory");
}

void hf__observer_timer(hf__timer *timer)
{
    hf_observer *o = HF__ENTRY(timer, hf_observer, timer);
    hf__instant now = o->core->now;
    if (o->asking || o->pending > 0 || o->core->closing)
        return;
    if (!o->subscribed && !hf__before(now, o->subscribe_again))
        subscribe(o);
    if (o->subscribed && !hf__before(now, o->repeat))
        ask(o, HF__QUERY_OBSERVE);
    else if (!hf__before(now, o->look))
        ask(o, HF__QUERY_INSPECT);
    else
        set_timer(o);
}

void hf__observer_answered(hf_observer *o, hf__query_kind kind)
{
    hf__core *core = o->core;
    o->asking = false;
    if (o->ended)
        return; /* freed at the end of the step */
    if (o->call.error.status != HF_OK) {
        o->look = o->repeat = hf__after(core->now, hf__span_ms(LOOK_MS));
    } else if (kind == HF__QUERY_OBSERVE) {
        o->repeat =
            HF__MUTANT(LOOK_ONCE) ? HF__NEVER : hf__after(core->now, hf__span_ms(REPEAT_MS));
        o->look = core->now; /* what happened before is found out now */
    } else {
        hf__sight_looked(o);
    }
    if (!o->subscribed && !HF__MUTANT(LOOK_ONCE))
        o->look = hf__earlier(
            o->look, hf__after(core->now, hf__span_ms(HF__MUTANT(LOOK_STORM) ? 0 : LOOK_MS)));
    set_timer(o);
}

void hf__observer_bury(hf__core *core)
{
    hf__node *node = hf__list_first(&core->ended_observers);
    while (node != NULL) {
        hf_observer *o = HF__ENTRY(node, hf_observer, node);
        node = hf__list_next(&core->ended_observers, node);
        if (o->asking)
            continue;
        hf__list_remove(&core->ended_observers, &o->node);
        hf__observer_drop(o);
    }
}

/* ---- Beginning and end ---- */

/* They go on looking, once a second. Which of them it is about is not said. */
void hf__observer_deny(hf__core *core, const char *why)
{
    char shown[120];
    hf__printable(shown, sizeof(shown), why, strlen(why));
    if (!core->observing_denied)
        hf__log(core, HF_LOG_WARNING,
                "no messages about locks (channels hf:e:*), so observers look: %s", shown);
    core->observing_denied = true;
}

static void name_channel(hf_observer *o)
{
    hf__slice key = {o->text, o->key_length};
    char *channel = o->text + o->key_length;
    char *end = hf__slice_put(channel, HF__SLICE(CHANNEL_PREFIX));
    end +=
        hf__side_key(end, o->core->config.side_prefix, 'f', key, hf__slot(key.bytes, key.length));
    o->channel_length = (size_t)(end - channel);
}

void hf__observer_start(hf__core *core, hf_observer *o)
{
    o->core = core;
    name_channel(o);
    o->repeat = o->look = core->now;
    hf__list_append(&core->observers, &o->node);
    if (!hf__is_quorum(core))
        hf__push_want(&core->servers[0]);
    subscribe(o);
    set_timer(o);
}

static bool is_alone(const hf_observer *o)
{
    const hf__list *all = &o->core->observers;
    for (hf__node *n = hf__list_first(all); n != NULL; n = hf__list_next(all, n))
        if (HF__ENTRY(n, hf_observer, node) != o &&
            is_on(HF__ENTRY(n, hf_observer, node), channel_of(o)))
            return false;
    return true;
}

void hf__observer_end(hf__core *core, hf_observer *o)
{
    hf__link *push = hf__push_link(&core->servers[0]);
    hf__slice words[] = {HF__SLICE("UNSUBSCRIBE"), channel_of(o)};
    if (push->state == HF__LINK_READY && !hf__is_quorum(core) && is_alone(o) &&
        !hf__resp_encode(&push->out, words, 2))
        hf__link_fail(push, HF_ENOMEM, "out of memory");
    hf__timer_clear(&core->timers, &o->timer);
    if (hf__node_linked(&o->seen))
        hf__list_remove(&core->seen, &o->seen);
    hf__list_remove(&core->observers, &o->node);
    hf__list_append(&core->ended_observers, &o->node);
    o->ended = true;
}

void hf__observer_abandon(hf_observer *o)
{
    if (o->core == NULL)
        hf__observer_drop(o);
    else
        hf__observer_end(o->core, o); /* the memory goes with the core */
}

void hf__observer_detach(hf__core *core)
{
    hf__node *node;
    while ((node = hf__list_first(&core->observers)) != NULL) {
        hf__list_remove(&core->observers, node);
        HF__ENTRY(node, hf_observer, node)->core = NULL;
    }
    for (node = hf__list_first(&core->ended_observers); node != NULL;
         node = hf__list_next(&core->ended_observers, node))
        HF__ENTRY(node, hf_observer, node)->asking = false; /* nobody will answer */
    hf__observer_bury(core);
}

/* ---- The link for messages ---- */

void hf__observer_link_ready(hf__core *core)
{
    for (hf__node *n = hf__list_first(&core->observers); n != NULL;
         n = hf__list_next(&core->observers, n))
        subscribe(HF__ENTRY(n, hf_observer, node));
}

void hf__observer_link_down(hf__core *core)
{
    for (hf__node *n = hf__list_first(&core->observers); n != NULL;
         n = hf__list_next(&core->observers, n)) {
        hf_observer *o = HF__ENTRY(n, hf_observer, node);
        o->subscribed = false;
        o->pending = 0;
        o->look = hf__earlier(o->look, hf__after(core->now, hf__span_ms(LOOK_MS)));
        set_timer(o);
    }
}

void hf__observer_subscribed(hf__core *core, hf__slice channel)
{
    for (hf__node *n = hf__list_first(&core->observers); n != NULL;
         n = hf__list_next(&core->observers, n)) {
        hf_observer *o = HF__ENTRY(n, hf_observer, node);
        if (!is_on(o, channel))
            continue;
        o->subscribed = true;
        o->denials = 0;
        core->observing_denied = false;
        o->repeat = core->now;
        set_timer(o);
    }
}

/* <word> <fence> <lease ms> <value> */
static bool read_message(hf__slice text, hf_sight *sight)
{
    static const struct {
        const char *word;
        hf_sight_kind kind;
    } words[] = {{"granted ", HF_SEEN_GRANTED},
                 {"released ", HF_SEEN_RELEASED},
                 {"waiting ", HF_SEEN_WAITING},
                 {"revoked ", HF_SEEN_REVOKED},
                 {"broken ", HF_SEEN_BROKEN}};
    uint64_t lease_ms;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        size_t length = strlen(words[i].word);
        hf__slice rest = {text.bytes + length, text.length - length};
        if (text.length < length || memcmp(text.bytes, words[i].word, length) != 0)
            continue;
        if (!hf__push_number(&rest, &sight->fence) || !hf__push_number(&rest, &lease_ms))
            return false;
        sight->kind = words[i].kind;
        sight->lease_ms = hf__sane_ms((int64_t)lease_ms);
        sight->who = hf__holder_of(rest);
        return true;
    }
    return false;
}

void hf__observer_message(hf__core *core, hf__slice channel, hf__slice text)
{
    hf_sight sight;
    if (!read_message(text, &sight))
        return;
    for (hf__node *n = hf__list_first(&core->observers); n != NULL;
         n = hf__list_next(&core->observers, n)) {
        hf_observer *o = HF__ENTRY(n, hf_observer, node);
        if (!is_on(o, channel))
            continue;
        hf__sight_heard(o, &sight);
        set_timer(o);
    }
}

void hf__observer_pong(hf__core *core, uint64_t number)
{
    for (hf__node *n = hf__list_first(&core->observers); n != NULL;
         n = hf__list_next(&core->observers, n)) {
        hf_observer *o = HF__ENTRY(n, hf_observer, node);
        if (o->pending == 0 || o->pending > number)
            continue;
        hf__sight_confirmed(o);
        set_timer(o);
    }
}
