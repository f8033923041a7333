/* SPDX-License-Identifier: MIT */
/* The commands of the model server, and what happens before one of them runs: it is looked up, its
 * words are counted, and it is refused where Redis would refuse it (writes on a replica, commands
 * that scripts or subscribers may not use). The texts are those of Redis 7.0.15. The commands
 * themselves are in the files by type.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "state.h"

enum {
    W = SIM_WRITES,
    G = SIM_WRITES | SIM_GROWS,
    NS = SIM_NO_SCRIPT,
    SUB = SIM_WHILE_SUBSCRIBED,
    CH = SIM_CHANNELS
};

static const sim_command commands[] = {
    /* sorted */
    {"append", 3, G, sim_run_append},
    {"auth", -2, NS, sim_run_auth},
    {"client", -2, NS, sim_run_client},
    {"config", -2, NS, sim_run_config},
    {"dbsize", 1, 0, sim_run_dbsize},
    {"del", -2, W, sim_run_del},
    {"echo", 2, 0, sim_run_echo},
    {"eval", -3, NS, sim_run_eval},
    {"evalsha", -3, NS, sim_run_evalsha},
    {"exists", -2, 0, sim_run_exists},
    {"expire", -3, W, sim_run_expire},
    {"flushall", -1, W, sim_run_flushall},
    {"get", 2, 0, sim_run_get},
    {"hdel", -3, W, sim_run_hdel},
    {"hexists", 3, 0, sim_run_hexists},
    {"hget", 3, 0, sim_run_hget},
    {"hgetall", 2, 0, sim_run_hgetall},
    {"hincrby", 4, G, sim_run_hincrby},
    {"hkeys", 2, 0, sim_run_hkeys},
    {"hlen", 2, 0, sim_run_hlen},
    {"hmget", -3, 0, sim_run_hmget},
    {"hscan", -3, 0, sim_run_hscan},
    {"hset", -4, G, sim_run_hset},
    {"hvals", 2, 0, sim_run_hvals},
    {"incr", 2, G, sim_run_incr},
    {"incrby", 3, G, sim_run_incrby},
    {"info", -1, 0, sim_run_info},
    {"llen", 2, 0, sim_run_llen},
    {"lpop", -2, W, sim_run_lpop},
    {"lpush", -3, G, sim_run_lpush},
    {"lrange", 4, 0, sim_run_lrange},
    {"lrem", 4, W, sim_run_lrem},
    {"mget", -2, 0, sim_run_mget},
    {"persist", 2, W, sim_run_persist},
    {"pexpire", -3, W, sim_run_pexpire},
    {"pexpireat", -3, W, sim_run_pexpireat},
    {"ping", -1, SUB, sim_run_ping},
    {"pttl", 2, 0, sim_run_pttl},
    {"publish", 3, CH, sim_run_publish},
    {"pubsub", -2, 0, sim_run_pubsub},
    {"rename", 3, W, sim_run_rename},
    {"rpop", -2, W, sim_run_rpop},
    {"rpush", -3, G, sim_run_rpush},
    {"scan", -2, 0, sim_run_scan},
    {"script", -2, NS, sim_run_script},
    {"select", 2, 0, sim_run_select},
    {"set", -3, G, sim_run_set},
    {"strlen", 2, 0, sim_run_strlen},
    {"subscribe", -2, NS | SUB | CH, sim_run_subscribe},
    {"time", 1, 0, sim_run_time},
    {"ttl", 2, 0, sim_run_ttl},
    {"type", 2, 0, sim_run_type},
    {"unlink", -2, W, sim_run_del}, /* which differs in who frees the memory */
    {"unsubscribe", -1, NS | SUB, sim_run_unsubscribe},
    {"zadd", -4, G, sim_run_zadd},
    {"zcard", 2, 0, sim_run_zcard},
    {"zcount", 4, 0, sim_run_zcount},
    {"zpopmin", -2, W, sim_run_zpopmin},
    {"zrange", -4, 0, sim_run_zrange},
    {"zrangebyscore", -4, 0, sim_run_zrangebyscore},
    {"zrank", 3, 0, sim_run_zrank},
    {"zrem", -3, W, sim_run_zrem},
    {"zremrangebyrank", 4, W, sim_run_zremrangebyrank},
    {"zremrangebyscore", 4, W, sim_run_zremrangebyscore},
    {"zrevrange", -4, 0, sim_run_zrevrange},
    {"zrevrangebyscore", -4, 0, sim_run_zrevrangebyscore},
    {"zscore", 3, 0, sim_run_zscore},
};

static int order_of(hf__slice word, const char *name)
{
    size_t length = strlen(name);
    int order = strncasecmp(word.bytes, name, word.length < length ? word.length : length);
    return order != 0 ? order : (word.length > length) - (word.length < length);
}

static const sim_command *find(hf__slice word)
{
    size_t low = 0;
    size_t high = sizeof(commands) / sizeof(commands[0]);
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = order_of(word, commands[middle].name);
        if (order == 0)
            return &commands[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

static bool count_fits(const sim_command *command, int count)
{
    return command->arity > 0 ? count == command->arity : count >= -command->arity;
}

/* Shows the first words, about 128 bytes of them, as Redis does. */
static void reply_unknown(const sim_call *call)
{
    char shown[512] = "";
    int length = 0;
    for (int i = 1; i < call->count && length < 128; i++) {
        int room = 128 - length;
        int part = call->words[i].length < (size_t)room ? (int)call->words[i].length : room;
        length += snprintf(shown + length, sizeof(shown) - (size_t)length, "'%.*s' ", part,
                           call->words[i].bytes);
    }
    int name_length = call->words[0].length < 128 ? (int)call->words[0].length : 128;
    sim_reply_errorf(call->out, "ERR unknown command '%.*s', with args beginning with: %s",
                     name_length, call->words[0].bytes, shown);
}

/* A script's first write decides, here and below: what has begun is not stopped half way. */
static bool has_written(const sim_call *call)
{
    return call->script_wrote != NULL && *call->script_wrote;
}

static bool needs_memory(const sim_call *call, const sim_command *command)
{
    bool full =
        call->script_wrote != NULL ? call->server->full_call : sim_server_is_full(call->server);
    return (command->flags & SIM_GROWS) && full && !has_written(call);
}

static bool may_write(sim_call *call)
{
    if (call->server->replica && !has_written(call))
        return false;
    if (call->script_wrote != NULL)
        *call->script_wrote = true;
    return true;
}

static bool is_subscriber(const sim_call *call)
{
    return call->connection >= 0 && call->server->connections[call->connection]->subscriptions > 0;
}

sim_denial sim_call_denied(const sim_call *call)
{
    return call->connection >= 0 ? call->server->connections[call->connection]->denied
                                 : SIM_ALLOWED;
}

static void reply_denied(sim_call *call, const sim_command *command)
{
    bool scripted = call->script_wrote != NULL;
    if (sim_call_denied(call) == SIM_NO_PUBSUB && scripted)
        sim_reply_error(call->out, SIM_SCRIPT_DENIED);
    else if (sim_call_denied(call) == SIM_NO_PUBSUB)
        sim_reply_errorf(call->out, "NOPERM this user has no permissions to run the '%s' command",
                         command->name);
    else if (scripted)
        sim_reply_error(call->out, "ERR The user executing the script can't publish to the channel "
                                   "mentioned in the command");
    else
        sim_reply_error(call->out, "NOPERM this user has no permissions to access one of the "
                                   "channels used as arguments");
}

/* true: the command may run. Otherwise the refusal has been answered. */
static bool admit(sim_call *call, const sim_command *command)
{
    bool scripted = call->script_wrote != NULL;
    if (command == NULL && scripted)
        sim_reply_error(call->out, "ERR Unknown Redis command called from script");
    else if (command == NULL)
        reply_unknown(call);
    else if (!count_fits(command, call->count) && scripted)
        sim_reply_error(call->out, "ERR Wrong number of args calling Redis command from script");
    else if (!count_fits(command, call->count))
        sim_reply_errorf(call->out, "ERR wrong number of arguments for '%s' command",
                         command->name);
    else if (scripted && (command->flags & SIM_NO_SCRIPT))
        sim_reply_error(call->out, "ERR This Redis command is not allowed from script");
    else if ((command->flags & SIM_CHANNELS) && sim_call_denied(call) != SIM_ALLOWED)
        reply_denied(call, command);
    else if (needs_memory(call, command))
        sim_reply_error(call->out, "OOM command not allowed when used memory > 'maxmemory'.");
    else if ((command->flags & SIM_WRITES) && !may_write(call))
        sim_reply_error(call->out, "READONLY You can't write against a read only replica.");
    else if (!scripted && is_subscriber(call) && !(command->flags & SIM_WHILE_SUBSCRIBED))
        sim_reply_errorf(call->out,
                         "ERR Can't execute '%s': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / "
                         "QUIT / RESET are allowed in this context",
                         command->name);
    else
        return true;
    return false;
}

void sim_call_run(sim_call *call)
{
    const sim_command *command = find(call->words[0]);
    if (admit(call, command))
        command->run(call);
}

/* ---- What commands have in common ---- */

void sim_call_part(sim_call *call, const sim_command *parts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!sim_is(call->words[1], parts[i].name))
            continue;
        if (count_fits(&parts[i], call->count))
            parts[i].run(call);
        else
            sim_reply_errorf(call->out, "ERR wrong number of arguments for '%s|%s' command",
                             find(call->words[0])->name, parts[i].name);
        return;
    }
    char upper[32] = "";
    const char *name = find(call->words[0])->name;
    for (size_t i = 0; name[i] != '\0' && i + 1 < sizeof(upper); i++)
        upper[i] = (char)(name[i] - 'a' + 'A');
    sim_reply_errorf(call->out, "ERR unknown subcommand '%.*s'. Try %s HELP.",
                     (int)(call->words[1].length < 128 ? call->words[1].length : 128),
                     call->words[1].bytes, upper);
}

bool sim_call_key(sim_call *call, int word, sim_type type, sim_key **key)
{
    *key = sim_key_find(call->keys, call->words[word]);
    if (*key == NULL || (*key)->type == type)
        return true;
    sim_reply_error(call->out, SIM_WRONG_TYPE);
    return false;
}

sim_key *sim_call_make_key(sim_call *call, int word, sim_type type, sim_key *key)
{
    return key != NULL ? key : sim_key_add(call->keys, call->words[word], type);
}

bool sim_call_integer(sim_call *call, int word, int64_t *number)
{
    if (sim_parse_integer(call->words[word], number))
        return true;
    sim_reply_error(call->out, SIM_NOT_INTEGER);
    return false;
}

void sim_call_drop_if_empty(sim_call *call, sim_key *key)
{
    if (key->count == 0)
        sim_key_remove(call->keys, key);
}

void sim_call_remove_items(sim_call *call, sim_type type)
{
    sim_key *key = NULL;
    int64_t removed = 0;
    if (!sim_call_key(call, 1, type, &key))
        return;
    for (int i = 2; key != NULL && i < call->count; i++) {
        size_t at = sim_item_find(key, call->words[i]);
        if (at == SIM_NOWHERE)
            continue;
        sim_item_remove(key, at, 1);
        removed++;
    }
    if (key != NULL)
        sim_call_drop_if_empty(call, key);
    sim_reply_integer(call->out, removed);
}
