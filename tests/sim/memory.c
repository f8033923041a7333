/* SPDX-License-Identifier: MIT */
/* See memory.h. */
#include "memory.h"

#include <string.h>

#include "lua/scripts.h"

bool memory_rule(uint64_t seed)
{
    return (seed * 0xaf251af3b0f025b5u >> 33) % 5 == 0;
}

void memory_press(sim_server *server, uint64_t random)
{
    int64_t limit = sim_server_memory(server) * (int64_t)(70 + random % 35) / 100;
    sim_server_limit_memory(server, limit > 0 ? limit : 1);
}

void memory_lift(sim_server *server)
{
    sim_server_limit_memory(server, 0);
}

bool memory_keeps_released(sim_server *server, const char *lock, const char *sha1,
                           const hf__slice *arguments, int count)
{
    if (count == 0 || strcmp(sha1, hf__scripts[HF__SCRIPT_RELEASE].sha1) != 0)
        return false;
    const char *held = sim_server_get(server, lock, strlen(lock));
    return held != NULL && strlen(held) == arguments[0].length &&
           memcmp(held, arguments[0].bytes, arguments[0].length) == 0;
}
