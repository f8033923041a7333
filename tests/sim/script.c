/* SPDX-License-Identifier: MIT */
/* See script.h. The conversions and the texts of errors are those of script_lua.c in Redis 7.0.15:
 *
 *   number -> integer, cut off       nil bulk, nil array -> false
 *   false, nil -> nil bulk           status -> {ok = text}
 *   true -> 1                        error -> raised by redis.call, {err = text} from redis.pcall
 *   {err = text} -> error            integer -> number
 *   {ok = text} -> status            array -> table, whose nil elements are false
 *   other tables -> array up to the first nil
 *
 * An error that leaves the script is told with the place where it was raised.
 *
 * Creating a state costs as much as hundreds of scripts, so there is one for the process. Bodies
 * are compiled once and found by the SHA-1 of what was compiled; a mutant's body is another body.
 * They stay, because there are few; tests that make up scripts make up few.
 */
#include "script.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reply.h"
#include "sandbox.h"
#include "sha1.h"

enum { WORDS_ON_STACK = 32, NUMBER_TEXT = 40 };

struct sim_function {
    struct sim_function *next;
    char sha1[41];
    int reference;
};

static lua_State *the_lua;
static struct sim_function *functions;
static const sim_script_call *running;
static sim_buffer command_reply; /* of the command that the script is running */

/* ---- From replies to Lua ---- */

static void push_error(lua_State *lua, const char *text, size_t length)
{
    lua_createtable(lua, 0, 1);
    if (memchr(text, ' ', length) == NULL) {
        lua_pushliteral(lua, "ERR ");
        lua_pushlstring(lua, text, length);
        lua_concat(lua, 2);
    } else {
        lua_pushlstring(lua, text, length);
    }
    lua_setfield(lua, -2, "err");
}

static void push_plain_error(lua_State *lua, const char *text)
{
    lua_createtable(lua, 0, 1);
    lua_pushfstring(lua, "ERR %s", text);
    lua_setfield(lua, -2, "err");
}

static const char *push_reply(lua_State *lua, const char *reply);

static const char *push_array(lua_State *lua, const char *reply, long long count)
{
    lua_createtable(lua, (int)count, 0);
    for (int i = 1; i <= count; i++) {
        reply = push_reply(lua, reply);
        lua_rawseti(lua, -2, i);
    }
    return reply;
}

/* Pushes one reply and returns what comes after it. */
static const char *push_reply(lua_State *lua, const char *reply)
{
    const char *end = strchr(reply, '\r');
    const char *next = end + 2;
    size_t length = (size_t)(end - reply - 1);
    luaL_checkstack(lua, 4, "reply of a command");
    if (*reply == '+') {
        lua_createtable(lua, 0, 1);
        lua_pushlstring(lua, reply + 1, length);
        lua_setfield(lua, -2, "ok");
        return next;
    }
    if (*reply == '-') {
        push_error(lua, reply + 1, length);
        return next;
    }
    long long number = strtoll(reply + 1, NULL, 10);
    if (*reply == ':')
        lua_pushnumber(lua, (lua_Number)number);
    else if (number < 0)
        lua_pushboolean(lua, 0);
    else if (*reply == '*')
        return push_array(lua, next, number);
    else
        lua_pushlstring(lua, next, (size_t)number);
    return *reply == '$' && number >= 0 ? next + number + 2 : next;
}

/* ---- The functions of `redis` ---- */

/* Numbers keep all their digits, which Lua's own conversion would not do. */
static hf__slice word_at(lua_State *lua, int index, char text[NUMBER_TEXT])
{
    hf__slice word = {NULL, 0};
    if (lua_type(lua, index) == LUA_TNUMBER) {
        lua_pushlstring(lua, text, sim_print_number(text, lua_tonumber(lua, index)));
        lua_replace(lua, index);
    }
    word.bytes = lua_tolstring(lua, index, &word.length);
    return word;
}

/* false: the error is on the stack. */
static bool run_words(lua_State *lua, hf__slice *words, int count)
{
    char text[NUMBER_TEXT];
    for (int i = 0; i < count; i++) {
        words[i] = word_at(lua, i + 1, text);
        if (words[i].bytes == NULL) {
            push_plain_error(lua, "Lua redis lib command arguments must be strings or integers");
            return false;
        }
    }
    sim_buffer_clear(&command_reply);
    running->command(running->arg, words, count, &command_reply);
    sim_buffer_append(&command_reply, "", 1);
    push_reply(lua, command_reply.bytes);
    return command_reply.bytes[0] != '-';
}

static bool run_command(lua_State *lua)
{
    hf__slice few[WORDS_ON_STACK];
    int count = lua_gettop(lua);
    if (count == 0) {
        push_plain_error(lua, "Please specify at least one argument for this redis lib call");
        return false;
    }
    if (count <= WORDS_ON_STACK)
        return run_words(lua, few, count);
    hf__slice *many = lua_newuserdata(lua, (size_t)count * sizeof(*many));
    return run_words(lua, many, count);
}

static int redis_call(lua_State *lua)
{
    return run_command(lua) ? 1 : lua_error(lua);
}

static int redis_pcall(lua_State *lua)
{
    (void)run_command(lua);
    return 1;
}

static bool one_text(lua_State *lua)
{
    if (lua_gettop(lua) == 1 && lua_type(lua, 1) == LUA_TSTRING)
        return true;
    push_plain_error(lua, "wrong number or type of arguments");
    return false;
}

static int redis_error_reply(lua_State *lua)
{
    if (!one_text(lua))
        return 1;
    const char *text = lua_tostring(lua, 1);
    text += *text == '-' ? 1 : 0;
    push_error(lua, text, strcspn(text, "\r\n"));
    return 1;
}

static int redis_status_reply(lua_State *lua)
{
    if (!one_text(lua))
        return 1;
    lua_createtable(lua, 0, 1);
    lua_pushvalue(lua, 1);
    lua_setfield(lua, -2, "ok");
    return 1;
}

static int redis_sha1hex(lua_State *lua)
{
    char hex[41];
    hf__slice text = {NULL, 0};
    if (lua_gettop(lua) != 1) {
        push_plain_error(lua, "wrong number of arguments");
        return lua_error(lua);
    }
    text.bytes = lua_tolstring(lua, 1, &text.length);
    sim_sha1_hex(text, hex);
    lua_pushstring(lua, hex);
    return 1;
}

static int redis_nothing(lua_State *lua)
{
    (void)lua;
    return 0;
}

/* ---- From Lua to replies ---- */

static void reply_value(lua_State *lua, sim_buffer *out);

static void reply_elements(lua_State *lua, sim_buffer *out)
{
    int count = 0;
    for (;; count++) {
        lua_rawgeti(lua, -1, count + 1);
        bool ended = lua_isnil(lua, -1);
        lua_pop(lua, 1);
        if (ended)
            break;
    }
    sim_reply_array(out, (size_t)count);
    for (int i = 1; i <= count; i++) {
        lua_rawgeti(lua, -1, i);
        reply_value(lua, out);
        lua_pop(lua, 1);
    }
}

/* The text of a field of the table on the stack, NULL if it is none; the table keeps it alive. */
static const char *text_field(lua_State *lua, const char *name)
{
    lua_pushstring(lua, name);
    lua_rawget(lua, -2);
    const char *text = lua_type(lua, -1) == LUA_TSTRING ? lua_tostring(lua, -1) : NULL;
    lua_pop(lua, 1);
    return text;
}

static void reply_table(lua_State *lua, sim_buffer *out)
{
    const char *text = text_field(lua, "err");
    if (text != NULL) {
        sim_reply_error(out, text);
        return;
    }
    text = text_field(lua, "ok");
    if (text != NULL)
        sim_reply_status(out, text);
    else
        reply_elements(lua, out);
}

/* Appends the value on top of the stack, and leaves it there. */
static void reply_value(lua_State *lua, sim_buffer *out)
{
    hf__slice text = {NULL, 0};
    if (!lua_checkstack(lua, 4)) {
        sim_reply_error(out, "ERR reached lua stack limit");
        return;
    }
    switch (lua_type(lua, -1)) {
    case LUA_TSTRING:
        text.bytes = lua_tolstring(lua, -1, &text.length);
        sim_reply_bulk(out, text);
        break;
    case LUA_TNUMBER:
        sim_reply_integer(out, (int64_t)lua_tonumber(lua, -1));
        break;
    case LUA_TBOOLEAN:
        if (lua_toboolean(lua, -1))
            sim_reply_integer(out, 1);
        else
            sim_reply_nil(out);
        break;
    case LUA_TTABLE:
        reply_table(lua, out);
        break;
    default:
        sim_reply_nil(out);
    }
}

/* ---- Running ---- */

/* Runs where the error was raised: turns it into a table, and notes the place. */
static int note_place(lua_State *lua)
{
    lua_Debug place;
    if (!lua_istable(lua, 1)) {
        const char *text = lua_tostring(lua, 1);
        push_plain_error(lua, text != NULL ? text : luaL_typename(lua, 1));
        lua_replace(lua, 1);
    }
    bool found = lua_getstack(lua, 1, &place) && lua_getinfo(lua, "Sl", &place);
    if (found && strcmp(place.what, "C") == 0)
        found = lua_getstack(lua, 2, &place) && lua_getinfo(lua, "Sl", &place);
    if (found) {
        lua_pushstring(lua, place.source);
        lua_setfield(lua, 1, "source");
        lua_pushinteger(lua, place.currentline);
        lua_setfield(lua, 1, "line");
    }
    lua_settop(lua, 1);
    return 1;
}

static void reply_failure(lua_State *lua, const char *sha1, sim_buffer *out)
{
    if (!lua_istable(lua, -1)) {
        const char *text = lua_tostring(lua, -1);
        sim_reply_errorf(out, "ERR execution failure: %s", text != NULL ? text : "?");
        return;
    }
    int table = lua_gettop(lua);
    lua_getfield(lua, table, "err");
    lua_getfield(lua, table, "source");
    lua_getfield(lua, table, "line");
    const char *text = lua_tostring(lua, table + 1);
    const char *source = lua_tostring(lua, table + 2);
    const char *line = lua_tostring(lua, table + 3);
    if (source != NULL && line != NULL)
        sim_reply_errorf(out, "%s script: %s, on %s:%s.", text != NULL ? text : "(null)", sha1,
                         source, line);
    else
        sim_reply_error(out, text != NULL ? text : "(null)");
    lua_settop(lua, table);
}

enum { GLOBALS = 1, NOTE_PLACE = 2, KEEPS = 2 }; /* what lies on the stack for ever */

static lua_State *lua_ready(void)
{
    static const luaL_Reg redis_functions[] = {{"call", redis_call},
                                               {"pcall", redis_pcall},
                                               {"error_reply", redis_error_reply},
                                               {"status_reply", redis_status_reply},
                                               {"sha1hex", redis_sha1hex},
                                               {"log", redis_nothing},
                                               {"setresp", redis_nothing},
                                               {"set_repl", redis_nothing},
                                               {NULL, NULL}};
    if (the_lua == NULL) {
        the_lua = luaL_newstate();
        if (the_lua == NULL)
            abort();
        sim_sandbox_make(the_lua, redis_functions);
        lua_pushcfunction(the_lua, note_place);
    }
    return the_lua;
}

const sim_function *sim_script_compile(hf__slice body, char *error, size_t capacity)
{
    char sha1[41];
    lua_State *lua = lua_ready();
    sim_sha1_hex(body, sha1);
    for (const struct sim_function *known = functions; known != NULL; known = known->next)
        if (memcmp(known->sha1, sha1, sizeof(sha1)) == 0)
            return known;
    if (luaL_loadbuffer(lua, body.bytes, body.length, "@user_script") != 0) {
        (void)snprintf(error, capacity, "%s", lua_tostring(lua, -1));
        lua_pop(lua, 1);
        return NULL;
    }
    struct sim_function *function = sim_alloc(sizeof(*function));
    memcpy(function->sha1, sha1, sizeof(sha1));
    function->reference = luaL_ref(lua, LUA_REGISTRYINDEX);
    function->next = functions;
    functions = function;
    return function;
}

static void set_words(lua_State *lua, const char *name, const hf__slice *words, int count)
{
    lua_createtable(lua, count, 0);
    for (int i = 0; i < count; i++) {
        lua_pushlstring(lua, words[i].bytes, words[i].length);
        lua_rawseti(lua, -2, i + 1);
    }
    lua_setfield(lua, GLOBALS, name);
}

void sim_script_run(const sim_script_call *call, sim_buffer *out)
{
    lua_State *lua = lua_ready();
    running = call;
    sim_sandbox_use_random(call->random);
    set_words(lua, "KEYS", call->keys, call->key_count);
    set_words(lua, "ARGV", call->arguments, call->argument_count);
    lua_rawgeti(lua, LUA_REGISTRYINDEX, call->function->reference);
    if (lua_pcall(lua, 0, 1, NOTE_PLACE) == 0)
        reply_value(lua, out);
    else
        reply_failure(lua, call->sha1, out);
    lua_settop(lua, KEEPS);
    running = NULL;
}
