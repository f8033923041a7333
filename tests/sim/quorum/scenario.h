/* SPDX-License-Identifier: MIT */
/* What stories are told with (scenario.c). Client 0 is called a, the next ones b and c; and servers
 * A, B, C and so on. */
#ifndef HF_SIM_QUORUM_SCENARIO_H
#define HF_SIM_QUORUM_SCENARIO_H

#include "quorum.h"

#define EXPECT(w, condition)                                                                   \
    do {                                                                                       \
        if (!(condition))                                                                      \
            world_fail(w, "%s, line %d: not as expected: %s", __func__, __LINE__, #condition); \
    } while (0)

/* New servers get their votes, and everybody is connected to all of them. */
void story_begin(world *world);
sim_wish story_wish(const world *world, int client);
/* One try, or with patience; NULL: refused. */
handle *story_acquire(world *world, int client, int64_t interval_ms, int64_t wait_ms);
void story_let_go(world *world, int client, handle *handle);
void story_ends(const world *world, const char *how); /* says it once, if it is to be said */

/* give_way.c */
void tell_inquiry(world *world);
void tell_late(world *world);
void tell_split(world *world);
void tell_deaf(world *world);

/* ids_story.c */
void tell_ids(world *world);
void tell_ids_late(world *world);
void tell_ids_repeat(world *world);
void tell_ids_restart(world *world);

#endif
