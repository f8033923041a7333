/* SPDX-License-Identifier: MIT */
/* The shop when everybody has left, and again much later: whoever looks finds everything available
 * that was not sold, and nothing is left of an item but itself. */
#include <string.h>

#include "lua/scripts.h"
#include "sim.h"

enum { ITEM_KEY, LOG_KEY, OLD_LOG_KEY, OPEN_KEY, LOOK_LATER_MS = 100000 };

static void look_later(world *w, int item)
{
    const hf__script *script = &hf__scripts[HF__SCRIPT_STOCK_LOOK];
    char(*keys)[64] = w->shop.keys[item];
    const char *words[] = {"EVAL",  script->body, "4", keys[0], keys[1], keys[2],
                           keys[3], "-",          "0", "count", "0",     "0"};
    w->watching = true;
    const char *said = sim_server_run(w->server, 12, words);
    w->watching = false;
    if (w->shop.now.items[item].exists && strncmp(said, "[1 ", 3) != 0)
        world_fail(w, "%s: a last look says %s", item_names[item], said);
    if (w->shop.now.items[item].reserved != 0 || w->shop.now.items[item].open_count != 0)
        world_fail(w, "%s: something is reserved for ever", item_names[item]);
}

static void check_idle(world *w, int item)
{
    char(*keys)[64] = w->shop.keys[item];
    const char *logs[] = {"EXISTS", keys[LOG_KEY], keys[OLD_LOG_KEY]};
    if (strcmp(sim_server_run(w->server, 3, logs), "0") != 0)
        world_fail(w, "%s: nobody comes, and its requests are remembered", item_names[item]);
}

static void check_settled(world *w, int item)
{
    char(*keys)[64] = w->shop.keys[item];
    const char *fields[] = {"HKEYS", keys[ITEM_KEY]}, *open[] = {"EXISTS", keys[OPEN_KEY]};
    if (strchr(sim_server_run(w->server, 2, fields), '~') != NULL)
        world_fail(w, "%s: the record of a reservation is left", item_names[item]);
    if (strcmp(sim_server_run(w->server, 2, open), "0") != 0)
        world_fail(w, "%s: reservations are left", item_names[item]);
}

void shop_end(world *w)
{
    for (int round = 0; round < 2; round++) {
        w->server_offset_us += (int64_t)LOOK_LATER_MS * 1000;
        server_set_clock(w);
        for (int item = 0; w->plan.stock_clerks > 0 && item < ITEMS; item++) {
            check_idle(w, item);
            look_later(w, item);
            check_settled(w, item);
        }
    }
}
