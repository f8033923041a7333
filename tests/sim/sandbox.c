/* SPDX-License-Identifier: MIT */
/* See sandbox.h. Redis' own Lua has tables that can be made read-only; Debian's has not. So what a
 * script gets is an empty table in front of each real one: reading falls through to the real one,
 * writing is an error with Redis' words. rawset and setmetatable, which would go past that, are
 * wrapped. (What is left: pairs() over a library finds nothing, and a script that wants to damage
 * the libraries can, by way of table.insert; ours do not.)
 *
 * What is absent in Redis is absent here, cjson and its like too, which no script of ours uses.
 */
#include "sandbox.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#define MARK      "read-only"
#define READ_ONLY "Attempt to modify a readonly table"

static unsigned short *random_state;

/* Redis' generator is that of drand48, with its first state. */
void sim_sandbox_seed(unsigned short state[3])
{
    state[0] = 0x330e;
    state[1] = 0xabcd;
    state[2] = 0x1234;
}

void sim_sandbox_use_random(unsigned short state[3])
{
    random_state = state;
}

static int random_seed(lua_State *lua)
{
    uint32_t seed = (uint32_t)luaL_checkinteger(lua, 1);
    random_state[0] = 0x330e;
    random_state[1] = (unsigned short)(seed & 0xffff);
    random_state[2] = (unsigned short)(seed >> 16);
    return 0;
}

static int random_number(lua_State *lua)
{
    lua_Number r = (lua_Number)(nrand48(random_state) % INT32_MAX) / (lua_Number)INT32_MAX;
    int count = lua_gettop(lua);
    if (count == 0) {
        lua_pushnumber(lua, r);
        return 1;
    }
    if (count > 2)
        return luaL_error(lua, "wrong number of arguments");
    int low = count == 2 ? luaL_checkint(lua, 1) : 1;
    int high = luaL_checkint(lua, count);
    luaL_argcheck(lua, low <= high, count, "interval is empty");
    lua_pushnumber(lua, floor(r * (high - low + 1)) + low);
    return 1;
}

/* ---- Read-only tables ---- */

static int refuse_write(lua_State *lua)
{
    return luaL_error(lua, READ_ONLY);
}

/* Without the place, because C functions that write to a table in Redis do not tell it. */
static int refuse_raw_write(lua_State *lua)
{
    lua_pushliteral(lua, READ_ONLY);
    return lua_error(lua);
}

static int refuse_unknown(lua_State *lua)
{
    return luaL_error(lua, "Script attempted to access nonexistent global variable '%s'",
                      luaL_checkstring(lua, 2));
}

static bool is_read_only(lua_State *lua, int index)
{
    if (!lua_istable(lua, index) || !lua_getmetatable(lua, index))
        return false;
    lua_pushliteral(lua, MARK);
    lua_rawget(lua, -2);
    bool marked = lua_toboolean(lua, -1);
    lua_pop(lua, 2);
    return marked;
}

static int guarded_rawset(lua_State *lua)
{
    luaL_checktype(lua, 1, LUA_TTABLE);
    luaL_checkany(lua, 2);
    luaL_checkany(lua, 3);
    if (is_read_only(lua, 1))
        return refuse_raw_write(lua);
    lua_settop(lua, 3);
    lua_rawset(lua, 1);
    return 1;
}

/* The real setmetatable is its upvalue. */
static int guarded_setmetatable(lua_State *lua)
{
    if (is_read_only(lua, 1))
        return refuse_raw_write(lua);
    lua_pushvalue(lua, lua_upvalueindex(1));
    lua_insert(lua, 1);
    lua_call(lua, lua_gettop(lua) - 1, LUA_MULTRET);
    return lua_gettop(lua);
}

/* Redis' pcall gives the text of an error of redis.call, not the table that carries it. */
static int redis_style_pcall(lua_State *lua)
{
    int count = lua_gettop(lua);
    luaL_checkany(lua, 1);
    lua_pushboolean(lua, 1);
    lua_insert(lua, 1);
    if (lua_pcall(lua, count - 1, LUA_MULTRET, 0) == 0)
        return lua_gettop(lua);
    if (lua_istable(lua, -1)) {
        lua_getfield(lua, -1, "err");
        if (lua_isstring(lua, -1))
            lua_replace(lua, -2);
        else
            lua_pop(lua, 1);
    }
    lua_pushboolean(lua, 0);
    lua_replace(lua, 1);
    return lua_gettop(lua);
}

/* Replaces the table on the stack by a read-only one in front of it. */
static void protect(lua_State *lua)
{
    lua_newtable(lua);
    lua_newtable(lua);
    lua_pushvalue(lua, -3);
    lua_setfield(lua, -2, "__index");
    lua_pushcfunction(lua, refuse_write);
    lua_setfield(lua, -2, "__newindex");
    lua_pushboolean(lua, 1);
    lua_setfield(lua, -2, MARK);
    lua_pushboolean(lua, 0);
    lua_setfield(lua, -2, "__metatable");
    lua_setmetatable(lua, -2);
    lua_remove(lua, -2);
}

/* ---- Putting it together ---- */

static void open_library(lua_State *lua, const char *name, lua_CFunction open)
{
    lua_pushcfunction(lua, open);
    lua_pushstring(lua, name);
    lua_call(lua, 1, 0);
}

static void take_away(lua_State *lua)
{
    static const char *const absent[] = {"dofile",  "loadfile", "print", "module",
                                         "require", "package",  "debug"};
    for (size_t i = 0; i < sizeof(absent) / sizeof(absent[0]); i++) {
        lua_pushnil(lua);
        lua_setglobal(lua, absent[i]);
    }
}

static void replace_functions(lua_State *lua)
{
    lua_register(lua, "pcall", redis_style_pcall);
    lua_register(lua, "rawset", guarded_rawset);
    lua_getglobal(lua, "setmetatable");
    lua_pushcclosure(lua, guarded_setmetatable, 1);
    lua_setglobal(lua, "setmetatable");
    lua_getglobal(lua, "math");
    lua_pushcfunction(lua, random_number);
    lua_setfield(lua, -2, "random");
    lua_pushcfunction(lua, random_seed);
    lua_setfield(lua, -2, "randomseed");
    lua_pop(lua, 1);
}

static void add_redis(lua_State *lua, const luaL_Reg *functions)
{
    static const struct {
        const char *name;
        int value;
    } numbers[] = {{"LOG_DEBUG", 0},  {"LOG_VERBOSE", 1},
                   {"LOG_NOTICE", 2}, {"LOG_WARNING", 3},
                   {"REPL_NONE", 0},  {"REPL_AOF", 1},
                   {"REPL_SLAVE", 2}, {"REPL_REPLICA", 2},
                   {"REPL_ALL", 3},   {"REDIS_VERSION_NUM", 0x0007000f}};
    lua_newtable(lua);
    for (; functions->name != NULL; functions++) {
        lua_pushcfunction(lua, functions->func);
        lua_setfield(lua, -2, functions->name);
    }
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        lua_pushinteger(lua, numbers[i].value);
        lua_setfield(lua, -2, numbers[i].name);
    }
    lua_pushliteral(lua, "7.0.15");
    lua_setfield(lua, -2, "REDIS_VERSION");
    lua_setglobal(lua, "redis");
}

static void protect_libraries(lua_State *lua)
{
    static const char *const libraries[] = {"string", "table", "math", "coroutine", "redis"};
    for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++) {
        lua_getglobal(lua, libraries[i]);
        protect(lua);
        lua_setglobal(lua, libraries[i]);
    }
    lua_pushliteral(lua, ""); /* all strings share one metatable */
    if (lua_getmetatable(lua, -1)) {
        lua_pushboolean(lua, 0);
        lua_setfield(lua, -2, "__metatable");
        lua_pop(lua, 1);
    }
    lua_pop(lua, 1);
}

void sim_sandbox_make(lua_State *lua, const luaL_Reg *redis_functions)
{
    open_library(lua, "", luaopen_base);
    open_library(lua, LUA_TABLIBNAME, luaopen_table);
    open_library(lua, LUA_STRLIBNAME, luaopen_string);
    open_library(lua, LUA_MATHLIBNAME, luaopen_math);
    take_away(lua);
    replace_functions(lua);
    add_redis(lua, redis_functions);
    protect_libraries(lua);

    lua_pushvalue(lua, LUA_GLOBALSINDEX); /* the real globals stay on the stack */
    lua_newtable(lua);
    lua_pushcfunction(lua, refuse_unknown);
    lua_setfield(lua, -2, "__index");
    lua_setmetatable(lua, -2);
    lua_pushvalue(lua, -1);
    protect(lua);
    lua_pushvalue(lua, -1);
    lua_setfield(lua, -3, "_G");
    lua_replace(lua, LUA_GLOBALSINDEX); /* whatever is compiled from now on sees this */
}
