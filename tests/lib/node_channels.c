/* SPDX-License-Identifier: MIT */
/* See node.h: the double's messages. A connection that has subscribed gets them between its
 * replies, at once, and may say nothing but PING, SUBSCRIBE and UNSUBSCRIBE from then on. */
#include <stdio.h>
#include <string.h>

#include "node_store.h"

static bool is(hf__slice said, const char *text)
{
    return slice_is(said, hf__slice_text(text));
}

bool node_denies(const struct node *node, const char *command)
{
    return node->denies != NULL && strcmp(node->denies, command) == 0;
}

int node_listeners(const struct node *node, hf__slice channel)
{
    int count = 0;
    for (int i = 0; i < NODE_SUBSCRIBERS; i++)
        count += node->subscribers[i].out != NULL && is(channel, node->subscribers[i].channel);
    return count;
}

/* How many channels that connection hears. */
static int count_channels(const struct node *node, const hf__buffer *out)
{
    int count = 0;
    for (int i = 0; i < NODE_SUBSCRIBERS; i++)
        count += node->subscribers[i].out == out;
    return count;
}

bool node_is_subscribed(const struct node *node, const hf__buffer *out)
{
    return count_channels(node, out) > 0;
}

void node_forget(struct node *node, const hf__buffer *out)
{
    for (int i = 0; i < NODE_SUBSCRIBERS; i++)
        if (node->subscribers[i].out == out)
            node->subscribers[i].out = NULL;
}

int node_publish(struct node *node, const char *channel, const char *text, size_t length)
{
    int heard = 0;
    for (int i = 0; i < NODE_SUBSCRIBERS; i++) {
        const node_subscriber *subscriber = &node->subscribers[i];
        if (subscriber->out == NULL || strcmp(subscriber->channel, channel) != 0)
            continue;
        say_array(subscriber->out, 3);
        say_bulk(subscriber->out, HF__SLICE("message"));
        say_bulk(subscriber->out, hf__slice_text(channel));
        say_bulk(subscriber->out, (hf__slice){text, length});
        heard++;
    }
    node->messages++;
    return heard;
}

/* ---- Commands ---- */

static void run_publish(struct node *node, const hf__slice *words, size_t count, hf__buffer *out)
{
    node_expect(count == 3 && words[2].length == 0, "only a try of PUBLISH is expected");
    say_number(out, node_listeners(node, words[1]));
}

static void run_pubsub(struct node *node, const hf__slice *words, size_t count, hf__buffer *out)
{
    node_expect(count == 3 && is(words[1], "NUMSUB"), "a strange PUBSUB");
    say_array(out, 2);
    say_bulk(out, words[2]);
    say_number(out, node_listeners(node, words[2]));
}

static void run_subscribe(struct node *node, const hf__slice *words, size_t count, hf__buffer *out)
{
    int place = 0;
    node_expect(count == 2 && words[1].length < NODE_CHANNEL, "a strange SUBSCRIBE");
    while (place < NODE_SUBSCRIBERS && node->subscribers[place].out != NULL &&
           !(node->subscribers[place].out == out && is(words[1], node->subscribers[place].channel)))
        place++; /* twice is once */
    node_expect(place < NODE_SUBSCRIBERS, "connections are not forgotten");
    node->subscribers[place].out = out;
    snprintf(node->subscribers[place].channel, NODE_CHANNEL, "%.*s", (int)words[1].length,
             words[1].bytes);
    node->subscribes++;
    say_array(out, 3);
    say_bulk(out, HF__SLICE("subscribe"));
    say_bulk(out, node->confirms != NULL ? hf__slice_text(node->confirms) : words[1]);
    say_number(out, count_channels(node, out));
}

static void run_unsubscribe(struct node *node, const hf__slice *words, size_t count,
                            hf__buffer *out)
{
    node_expect(count == 2, "a strange UNSUBSCRIBE");
    for (int i = 0; i < NODE_SUBSCRIBERS; i++)
        if (node->subscribers[i].out == out && is(words[1], node->subscribers[i].channel))
            node->subscribers[i].out = NULL;
    node->unsubscribes++;
    say_array(out, 3);
    say_bulk(out, HF__SLICE("unsubscribe"));
    say_bulk(out, words[1]);
    say_number(out, count_channels(node, out));
}

static void run_ping(struct node *node, const hf__slice *words, size_t count, hf__buffer *out)
{
    node_expect(count == 1 && words[0].length == 4, "a strange PING");
    if (!node_is_subscribed(node, out)) {
        say(out, "+PONG\r\n");
        return;
    }
    node->pings++;
    say_array(out, 2);
    say_bulk(out, HF__SLICE("pong"));
    say_bulk(out, HF__SLICE(""));
}

static const struct {
    const char *name;
    void (*run)(struct node *, const hf__slice *, size_t, hf__buffer *);
} commands[] = {{"PUBLISH", run_publish},
                {"PUBSUB", run_pubsub},
                {"SUBSCRIBE", run_subscribe},
                {"UNSUBSCRIBE", run_unsubscribe},
                {"PING", run_ping}};

bool node_run_channel_command(struct node *node, const hf__slice *words, size_t count,
                              hf__buffer *out)
{
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (!is(words[0], commands[i].name))
            continue;
        if (node_denies(node, commands[i].name))
            say(out, "-NOPERM this user has no permissions to run the command\r\n");
        else
            commands[i].run(node, words, count, out);
        return true;
    }
    node_expect(!node_is_subscribed(node, out), "a command on a subscription");
    return false;
}
