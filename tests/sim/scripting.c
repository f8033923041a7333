/* SPDX-License-Identifier: MIT */
/* The scripts that a model server knows: EVAL, EVALSHA, SCRIPT. A script is known by the SHA-1 of
 * the text that the client sent; what runs may be a mutant of it. The compiled functions belong to
 * the process (script.h), the list of what is known belongs to the server and ends with its run.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lua/scripts.h"
#include "sha1.h"
#include "state.h"

enum { ELDER_ARGUMENTS = 7, ELDER_NO_BRIEF = 5 };

/* Our own scripts are by far the most frequent, and their SHA-1 was computed at build time. */
static const hf__script *embedded(hf__slice body)
{
    for (size_t i = 0; i < HF__SCRIPT_COUNT; i++)
        if (hf__scripts[i].length == body.length &&
            memcmp(hf__scripts[i].body, body.bytes, body.length) == 0)
            return &hf__scripts[i];
    return NULL;
}

static void name_of(hf__slice body, char sha1[41])
{
    const hf__script *own = embedded(body);
    if (own != NULL)
        memcpy(sha1, own->sha1, 41);
    else
        sim_sha1_hex(body, sha1);
}

/* In any case of letters. */
static sim_script *find(const sim_server *server, hf__slice sha1)
{
    for (size_t i = 0; sha1.length == 40 && i < server->script_count; i++)
        if (sim_is(sha1, server->scripts[i].sha1))
            return &server->scripts[i];
    return NULL;
}

static const sim_function *compile(const sim_server *server, hf__slice body, char *error,
                                   size_t capacity)
{
    static const sim_function *ready[HF__SCRIPT_COUNT]; /* our own ones, unchanged */
    const hf__script *own = embedded(body);
    const char *changed =
        own != NULL && server->change != NULL ? server->change(own->name, own->body) : NULL;
    if (changed != NULL)
        return sim_script_compile(hf__slice_text(changed), error, capacity);
    if (own == NULL)
        return sim_script_compile(body, error, capacity);
    if (ready[own - hf__scripts] == NULL)
        ready[own - hf__scripts] = sim_script_compile(body, error, capacity);
    return ready[own - hf__scripts];
}

/* NULL: it does not compile, and that was answered. */
static sim_script *learn(sim_call *call, hf__slice body)
{
    sim_server *server = call->server;
    sim_script script = {.function = NULL};
    char error[512];
    name_of(body, script.sha1);
    sim_script *known = find(server, hf__slice_text(script.sha1));
    if (known != NULL)
        return known;
    script.function = compile(server, body, error, sizeof(error));
    if (script.function == NULL) {
        sim_reply_errorf(call->out, "ERR Error compiling script (new function): %s", error);
        return NULL;
    }
    script.body = sim_bytes_copy(body);
    if (server->script_count == server->script_capacity) {
        server->script_capacity = server->script_capacity * 2 + 8;
        server->scripts =
            sim_resize(server->scripts, server->script_capacity * sizeof(*server->scripts));
    }
    server->scripts[server->script_count] = script;
    return &server->scripts[server->script_count++];
}

void sim_scripts_clear(sim_server *server)
{
    for (size_t i = 0; i < server->script_count; i++)
        sim_bytes_free(&server->scripts[i].body);
    server->script_count = 0;
}

void sim_scripts_changed(sim_server *server)
{
    for (size_t i = 0; i < server->script_count; i++)
        server->scripts[i].function = NULL;
}

/* ---- Clients of 0.7 ---- */

static bool names_slot(const sim_call *call, int key_count)
{
    static const char mark[] = "hf:m:";
    hf__slice last = call->words[3 + key_count - 1];
    return key_count > 0 && last.length >= sizeof(mark) - 1 &&
           memcmp(last.bytes, mark, sizeof(mark) - 1) == 0;
}

/* The mark of the slot, the last key, is left out. An acquire says everything: one that leaves out
 * its owner takes a lock without a fence for one that nobody waits for, and 0.7 does not. Nor does
 * 0.7 keep some fences for a shorter time than others. */
static void make_elder(const sim_call *call, sim_script_call *run)
{
    static const char *const usual[ELDER_ARGUMENTS] = {"", "", "3600000", "1", "0", "", ""};
    static hf__slice arguments[ELDER_ARGUMENTS];
    if (call->connection < 0 || !call->server->connections[call->connection]->elder ||
        !names_slot(call, run->key_count))
        return;
    run->key_count--;
    if (strcmp(run->sha1, hf__scripts[HF__SCRIPT_ACQUIRE].sha1) != 0)
        return;
    for (int i = 0; i < ELDER_ARGUMENTS; i++)
        arguments[i] = i < run->argument_count && i != ELDER_NO_BRIEF ? run->arguments[i]
                                                                      : hf__slice_text(usual[i]);
    run->arguments = arguments;
    run->argument_count = ELDER_ARGUMENTS;
}

/* ---- Running ---- */

/* What a script's redis.call comes to. */
static void run_command(void *arg, const hf__slice *words, int count, sim_buffer *reply)
{
    sim_call call = *(const sim_call *)arg;
    call.words = words;
    call.count = count;
    call.out = reply;
    sim_call_run(&call);
}

static bool count_keys(sim_call *call, int64_t *count)
{
    const char *error = NULL;
    if (!sim_call_integer(call, 2, count))
        return false;
    if (*count > call->count - 3)
        error = "ERR Number of keys can't be greater than number of args";
    else if (*count < 0)
        error = "ERR Number of keys can't be negative";
    if (error != NULL)
        sim_reply_error(call->out, error);
    return error == NULL;
}

static void run_script(sim_call *call, sim_script *script, int key_count)
{
    bool wrote = false;
    char error[512];
    sim_call inner = *call;
    inner.script_wrote = &wrote;
    call->server->full_call = sim_server_is_full(call->server);
    if (script->function == NULL)
        script->function =
            compile(call->server, sim_bytes_slice(&script->body), error, sizeof(error));
    if (script->function == NULL) {
        sim_reply_errorf(call->out, "ERR Error compiling script (new function): %s", error);
        return;
    }
    sim_script_call run = {.function = script->function,
                           .sha1 = script->sha1,
                           .keys = call->words + 3,
                           .key_count = key_count,
                           .arguments = call->words + 3 + key_count,
                           .argument_count = call->count - 3 - key_count,
                           .command = run_command,
                           .arg = &inner,
                           .random = call->server->random};
    make_elder(call, &run);
    sim_script_run(&run, call->out);
    call->server->unnamed_call =
        call->connection >= 0 && call->server->connections[call->connection]->unnamed;
    if (call->server->watch != NULL)
        call->server->watch->ran(call->server->watch->arg, script->sha1, run.arguments,
                                 run.argument_count);
}

/* Redis looks at the keys of a call before it looks at the script. */
static bool is_forbidden(sim_call *call, int64_t key_count)
{
    for (int64_t i = 0; call->connection >= 0 && i < key_count * SIM_FORBIDDEN_MAX; i++) {
        const sim_connection *c = call->server->connections[call->connection];
        const char *key = c->forbidden[i % SIM_FORBIDDEN_MAX];
        hf__slice named = call->words[3 + i / SIM_FORBIDDEN_MAX];
        if (key == NULL || named.length != strlen(key) || memcmp(named.bytes, key, named.length))
            continue;
        sim_reply_error(call->out, "NOPERM this user has no permissions to access one of the keys "
                                   "used as arguments");
        return true;
    }
    return false;
}

static bool in_trouble(sim_call *call)
{
    if (call->server->trouble.bytes != NULL)
        sim_reply_error(call->out, call->server->trouble.bytes);
    return call->server->trouble.bytes != NULL;
}

void sim_run_eval(sim_call *call)
{
    int64_t key_count = 0;
    if (in_trouble(call) || !count_keys(call, &key_count) || is_forbidden(call, key_count))
        return;
    sim_script *script = learn(call, call->words[1]);
    if (script != NULL)
        run_script(call, script, (int)key_count);
}

void sim_run_evalsha(sim_call *call)
{
    int64_t key_count = 0;
    if (in_trouble(call))
        return;
    if (call->words[1].length != 40) {
        sim_reply_error(call->out, "NOSCRIPT No matching script. Please use EVAL.");
        return;
    }
    if (!count_keys(call, &key_count) || is_forbidden(call, key_count))
        return;
    sim_script *script = find(call->server, call->words[1]);
    if (script != NULL)
        run_script(call, script, (int)key_count);
    else
        sim_reply_error(call->out, "NOSCRIPT No matching script. Please use EVAL.");
}

/* ---- SCRIPT ---- */

static void script_load(sim_call *call)
{
    const sim_script *script = learn(call, call->words[2]);
    if (script != NULL)
        sim_reply_text(call->out, script->sha1);
}

static void script_exists(sim_call *call)
{
    sim_reply_array(call->out, (size_t)(call->count - 2));
    for (int i = 2; i < call->count; i++)
        sim_reply_integer(call->out, find(call->server, call->words[i]) != NULL);
}

static void script_flush(sim_call *call)
{
    bool fits =
        call->count == 2 ||
        (call->count == 3 && (sim_is(call->words[2], "SYNC") || sim_is(call->words[2], "ASYNC")));
    if (!fits) {
        sim_reply_error(call->out, "ERR SCRIPT FLUSH only support SYNC|ASYNC option");
        return;
    }
    sim_scripts_clear(call->server);
    sim_reply_ok(call->out);
}

void sim_run_script(sim_call *call)
{
    static const sim_command parts[] = {{"load", 3, 0, script_load},
                                        {"exists", -3, 0, script_exists},
                                        {"flush", -2, 0, script_flush}};
    sim_call_part(call, parts, sizeof(parts) / sizeof(parts[0]));
}
