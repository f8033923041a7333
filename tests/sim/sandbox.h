/* SPDX-License-Identifier: MIT */
/* The world that a script sees: Lua's libraries as Redis offers them, all of it read-only. */
#ifndef HF_SIM_SANDBOX_H
#define HF_SIM_SANDBOX_H

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

/* Makes the state's globals: the libraries, and `redis` with the given functions. Leaves a table on
 * the stack: the one behind the globals, in which KEYS and ARGV are set. */
void sim_sandbox_make(lua_State *lua, const luaL_Reg *redis_functions);

/* math.random goes on from this state, which belongs to a server: in Redis it starts with the
 * process and is not reset by scripts. */
void sim_sandbox_use_random(unsigned short state[3]);
void sim_sandbox_seed(unsigned short state[3]);

#endif
