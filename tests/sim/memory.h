/* SPDX-License-Identifier: MIT */
/* A server whose memory is short, as with maxmemory and noeviction: it refuses whatever may need
 * more, until locks that end, or somebody else, have made room. For both worlds. What follows from
 * it: renewals and releases succeed all the same. */
#ifndef HF_SIM_MEMORY_H
#define HF_SIM_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "server.h"

/* One in five worlds has such times. */
bool memory_rule(uint64_t seed);
/* Other data fills the server: so much is left of what is in use now, from 70 to 104 %. */
void memory_press(sim_server *server, uint64_t random);
void memory_lift(sim_server *server);
/* After a script: whether it was a release of that lock, and has left it to its holder. */
bool memory_keeps_released(sim_server *server, const char *lock, const char *sha1,
                           const hf__slice *arguments, int count);

#endif
