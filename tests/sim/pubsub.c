/* SPDX-License-Identifier: MIT */
/* Publishing and subscribing of the model server. All subscriptions are in one array, oldest first:
 * a client of ours has one per server, so it is short, and its order is the order of delivery.
 *
 * A connection to a process that a failover has made a replica still hears what is published,
 * because that is replicated; but the new primary neither counts nor knows it.
 */
#include <stdlib.h>
#include <string.h>

#include "state.h"

static bool matches(const sim_subscription *subscription, int connection, hf__slice channel)
{
    return (connection == SIM_NO_CONNECTION || subscription->connection == connection) &&
           sim_equal(sim_bytes_slice(&subscription->channel), channel);
}

static bool is_here(const sim_server *server, const sim_subscription *subscription)
{
    return server->connections[subscription->connection]->run == server->run;
}

static size_t find(const sim_server *server, int connection, hf__slice channel)
{
    for (size_t i = 0; i < server->subscription_count; i++)
        if (matches(&server->subscriptions[i], connection, channel))
            return i;
    return SIM_NOWHERE;
}

static void add(sim_server *server, int connection, hf__slice channel)
{
    if (server->subscription_count == server->subscription_capacity) {
        server->subscription_capacity = server->subscription_capacity * 2 + 8;
        server->subscriptions = sim_resize(
            server->subscriptions, server->subscription_capacity * sizeof(*server->subscriptions));
    }
    server->subscriptions[server->subscription_count++] =
        (sim_subscription){connection, sim_bytes_copy(channel)};
    server->connections[connection]->subscriptions++;
}

static void end(sim_server *server, size_t at)
{
    sim_subscription *gone = &server->subscriptions[at];
    server->connections[gone->connection]->subscriptions--;
    sim_bytes_free(&gone->channel);
    server->subscription_count--;
    memmove(gone, gone + 1, (server->subscription_count - at) * sizeof(*gone));
}

void sim_subscriptions_end(sim_server *server, int connection)
{
    for (size_t i = server->subscription_count; i-- > 0;)
        if (server->subscriptions[i].connection == connection)
            end(server, i);
}

int sim_subscriptions_here(const sim_server *server, hf__slice channel)
{
    int count = 0;
    for (size_t i = 0; i < server->subscription_count; i++)
        count += is_here(server, &server->subscriptions[i]) &&
                 matches(&server->subscriptions[i], SIM_NO_CONNECTION, channel);
    return count;
}

/* ---- Commands ---- */

void sim_run_publish(sim_call *call)
{
    sim_server *server = call->server;
    int64_t receivers = 0;
    for (size_t i = 0; i < server->subscription_count; i++) {
        const sim_subscription *subscription = &server->subscriptions[i];
        if (!matches(subscription, SIM_NO_CONNECTION, call->words[1]))
            continue;
        sim_buffer *out = &server->connections[subscription->connection]->out;
        sim_reply_array(out, 3);
        sim_reply_text(out, "message");
        sim_reply_bulk(out, call->words[1]);
        sim_reply_bulk(out, call->words[2]);
        receivers += is_here(server, subscription);
    }
    if (server->watch != NULL)
        server->watch->published(server->watch->arg, call->words[1].bytes, call->words[1].length,
                                 call->words[2].bytes, call->words[2].length);
    sim_reply_integer(call->out, receivers);
}

static void confirm(sim_call *call, const char *what, const hf__slice *channel)
{
    const sim_connection *connection = call->server->connections[call->connection];
    sim_reply_array(call->out, 3);
    sim_reply_text(call->out, what);
    if (channel != NULL)
        sim_reply_bulk(call->out, *channel);
    else
        sim_reply_nil(call->out);
    sim_reply_integer(call->out, connection->subscriptions);
}

static bool has_connection(sim_call *call)
{
    if (call->connection < 0)
        sim_reply_error(call->out, "ERR only connections can subscribe");
    return call->connection >= 0;
}

void sim_run_subscribe(sim_call *call)
{
    if (!has_connection(call))
        return;
    for (int i = 1; i < call->count; i++) {
        if (find(call->server, call->connection, call->words[i]) == SIM_NOWHERE)
            add(call->server, call->connection, call->words[i]);
        confirm(call, "subscribe", &call->words[i]);
    }
}

static void unsubscribe_all(sim_call *call)
{
    sim_server *server = call->server;
    if (server->connections[call->connection]->subscriptions == 0)
        confirm(call, "unsubscribe", NULL);
    for (size_t i = 0; i < server->subscription_count;) {
        if (server->subscriptions[i].connection != call->connection) {
            i++;
            continue;
        }
        sim_bytes channel = sim_bytes_copy(sim_bytes_slice(&server->subscriptions[i].channel));
        hf__slice slice = sim_bytes_slice(&channel);
        end(server, i);
        confirm(call, "unsubscribe", &slice);
        sim_bytes_free(&channel);
    }
}

void sim_run_unsubscribe(sim_call *call)
{
    if (!has_connection(call))
        return;
    if (call->count == 1)
        unsubscribe_all(call);
    for (int i = 1; i < call->count; i++) {
        size_t at = find(call->server, call->connection, call->words[i]);
        if (at != SIM_NOWHERE)
            end(call->server, at);
        confirm(call, "unsubscribe", &call->words[i]);
    }
}

static void numsub(sim_call *call)
{
    const sim_server *server = call->server;
    if (sim_call_denied(call) == SIM_NO_PUBSUB) {
        sim_reply_error(call->out,
                        call->script_wrote != NULL
                            ? SIM_SCRIPT_DENIED
                            : "NOPERM this user has no permissions to run the 'pubsub|numsub' "
                              "command");
        return;
    }
    sim_reply_array(call->out, (size_t)(call->count - 2) * 2);
    for (int i = 2; i < call->count; i++) {
        sim_reply_bulk(call->out, call->words[i]);
        sim_reply_integer(call->out, sim_subscriptions_here(server, call->words[i]));
    }
}

void sim_run_pubsub(sim_call *call)
{
    static const sim_command parts[] = {{"numsub", -2, 0, numsub}};
    sim_call_part(call, parts, sizeof(parts) / sizeof(parts[0]));
}
