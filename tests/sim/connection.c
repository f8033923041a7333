/* SPDX-License-Identifier: MIT */
/* Commands of the model server that concern the connection or the server itself, and no key. */
#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "gaps.h"
#include "state.h"

void sim_run_ping(sim_call *call)
{
    bool subscribed =
        call->connection >= 0 && call->server->connections[call->connection]->subscriptions > 0;
    hf__slice text = call->count > 1 ? call->words[1] : HF__SLICE("");
    if (call->count > 2) {
        sim_reply_error(call->out, "ERR wrong number of arguments for 'ping' command");
    } else if (subscribed && call->script_wrote == NULL) {
        sim_reply_array(call->out, 2);
        sim_reply_text(call->out, "pong");
        sim_reply_bulk(call->out, text);
    } else if (call->count == 2) {
        sim_reply_bulk(call->out, text);
    } else {
        sim_reply_status(call->out, "PONG");
    }
}

void sim_run_echo(sim_call *call)
{
    sim_reply_bulk(call->out, call->words[1]);
}

void sim_run_time(sim_call *call)
{
    char digits[21];
    int64_t wall_us = call->server->wall_us;
    sim_reply_array(call->out, 2);
    sim_reply_bulk(call->out, (hf__slice){digits, sim_print_integer(digits, wall_us / 1000000)});
    sim_reply_bulk(call->out, (hf__slice){digits, sim_print_integer(digits, wall_us % 1000000)});
}

/* There are no passwords and no users here. */
void sim_run_auth(sim_call *call)
{
    if (call->count > 3)
        sim_reply_error(call->out, SIM_SYNTAX);
    else if (call->count == 2)
        sim_reply_error(call->out,
                        "ERR AUTH <password> called without any password configured for the "
                        "default user. Are you sure your configuration is correct?");
    else if (sim_equal(call->words[1], HF__SLICE("default")))
        sim_reply_ok(call->out);
    else
        sim_reply_error(call->out, "WRONGPASS invalid username-password pair or user is disabled.");
}

/* One keyspace serves all sixteen databases: no client of ours uses two. */
void sim_run_select(sim_call *call)
{
    int64_t number = 0;
    if (!sim_call_integer(call, 1, &number))
        return;
    if (number < INT32_MIN || number > INT32_MAX)
        sim_reply_errorf(call->out, "ERR value is out of range, value must between %d and %d",
                         INT32_MIN, INT32_MAX);
    else if (number < 0 || number > 15)
        sim_reply_error(call->out, "ERR DB index is out of range");
    else
        sim_reply_ok(call->out);
}

/* ---- CLIENT and CONFIG ---- */

static void client_setname(sim_call *call)
{
    hf__slice name = call->words[2];
    for (size_t i = 0; i < name.length; i++) {
        if (name.bytes[i] < '!' || name.bytes[i] > '~') {
            sim_reply_error(call->out,
                            "ERR Client names cannot contain spaces, newlines or special "
                            "characters.");
            return;
        }
    }
    if (call->connection >= 0)
        sim_bytes_set(&call->server->connections[call->connection]->name, name);
    sim_reply_ok(call->out);
}

static void client_id(sim_call *call)
{
    sim_reply_integer(call->out,
                      call->connection >= 0 ? call->server->connections[call->connection]->id : 0);
}

void sim_run_client(sim_call *call)
{
    static const sim_command parts[] = {{"setname", 3, 0, client_setname}, {"id", 2, 0, client_id}};
    sim_call_part(call, parts, sizeof(parts) / sizeof(parts[0]));
}

static void config_get(sim_call *call)
{
    sim_reply_array(call->out, 0);
}

void sim_run_config(sim_call *call)
{
    static const sim_command parts[] = {{"get", -3, 0, config_get}};
    sim_call_part(call, parts, sizeof(parts) / sizeof(parts[0]));
}

/* ---- INFO ---- */

static uint64_t run_of(const sim_call *call)
{
    return call->connection >= 0 ? call->server->connections[call->connection]->run
                                 : call->server->run;
}

/* 40 hexadecimal digits that differ between servers and between their runs. */
static void print_run_id(const sim_server *server, uint64_t run, char run_id[41])
{
    uint64_t state = server->number * 1000003 + run;
    for (size_t i = 0; i < 5; i++)
        (void)snprintf(run_id + 8 * i, 9, "%08x", (unsigned)(hf__random_next(&state) >> 32));
}

static void info_server(const sim_call *call, char *text, size_t capacity)
{
    char run_id[41];
    const sim_server *server = call->server;
    print_run_id(server, run_of(call), run_id);
    (void)snprintf(text, capacity,
                   "# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\nrun_id:%s\r\n"
                   "uptime_in_seconds:%lld\r\n",
                   run_id, (long long)((server->wall_us - server->started_us) / 1000000));
}

static void info_memory(const sim_call *call, char *text, size_t capacity)
{
    const sim_server *server = call->server;
    (void)snprintf(text, capacity,
                   "# Memory\r\nused_memory:%lld\r\nmaxmemory:%lld\r\n"
                   "maxmemory_policy:noeviction\r\n",
                   (long long)sim_server_memory(server), (long long)server->memory_limit);
}

static void info_persistence(const sim_call *call, char *text, size_t capacity)
{
    (void)call;
    (void)snprintf(text, capacity, "# Persistence\r\nloading:0\r\naof_enabled:0\r\n");
}

static void info_replication(const sim_call *call, char *text, size_t capacity)
{
    (void)snprintf(text, capacity, "# Replication\r\nrole:%s\r\nconnected_slaves:0\r\n",
                   call->server->replica ? "slave" : "master");
}

static bool asks_for(const sim_call *call, const char *section)
{
    static const char *const all[] = {"default", "all", "everything"};
    if (call->count == 1)
        return true;
    for (int i = 1; i < call->count; i++) {
        if (sim_is(call->words[i], section))
            return true;
        for (size_t j = 0; j < sizeof(all) / sizeof(all[0]); j++)
            if (sim_is(call->words[i], all[j]))
                return true;
    }
    return false;
}

static void hide_fields(const sim_call *call, char *text)
{
    sim_connection *asking = call->server->connections[call->connection];
    gaps_cut(text, call->server->hides);
    if (asks_for(call, "server"))
        asking->unnamed = strstr(text, "\nrun_id:") == NULL;
}

void sim_run_info(sim_call *call)
{
    static const struct {
        const char *name;
        void (*print)(const sim_call *, char *, size_t);
    } sections[] = {{"server", info_server},
                    {"memory", info_memory},
                    {"persistence", info_persistence},
                    {"replication", info_replication}};
    char text[1024] = "";
    for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
        size_t length = strlen(text);
        if (!asks_for(call, sections[i].name))
            continue;
        if (length > 0)
            length += (size_t)snprintf(text + length, sizeof(text) - length, "\r\n");
        sections[i].print(call, text + length, sizeof(text) - length);
    }
    if (call->connection >= 0)
        hide_fields(call, text);
    sim_reply_text(call->out, text);
}
