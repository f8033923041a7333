/* SPDX-License-Identifier: MIT */
/* What must be true, asked after every step of anybody.
 *
 * In runs within the assumptions a hold that is valid by its own deadline is also there at the
 * server, with its value, at that very moment of true time; if an owner shares it, with a life of
 * its own among the holders that has not ended. That is stronger than "no two at once", and finds a
 * bug long before two holders meet. In all runs: a hold that has once been invalid stays so. At the
 * end: no two parties have believed at once. */
#include <stdio.h>
#include <string.h>

#include "core/state.h"
#include "sim.h"

/* ---- Values ---- */

static uint64_t hash_of(const char *text)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (; *text != '\0'; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    return hash | 1;
}

/* The place of a value in the table, or a free one. */
static uint64_t *place_of(world *w, const char *value)
{
    uint64_t hash = hash_of(value);
    size_t at = hash % VALUES_MAX;
    while (w->values_seen[at] != 0 && w->values_seen[at] != hash)
        at = (at + 1) % VALUES_MAX;
    return &w->values_seen[at];
}

void check_remember_value(world *w, const char *value)
{
    *place_of(w, value) = hash_of(value);
}

bool check_knows_value(world *w, const char *value)
{
    return *place_of(w, value) != 0;
}

static void name_release(char *text, size_t size, const char *value)
{
    snprintf(text, size, "released %s", value);
}

void check_note_release(world *w, const char *value)
{
    char text[160];
    name_release(text, sizeof(text), value);
    check_remember_value(w, text);
}

bool check_was_released(world *w, const char *value)
{
    char text[160];
    name_release(text, sizeof(text), value);
    return check_knows_value(w, text);
}

/* ---- Beliefs ---- */

const char *check_held_as(world *w, int lock)
{
    return sim_server_get(w->server, lock_names[lock], strlen(lock_names[lock]));
}

/* The server's clock in ms. */
static int64_t server_ms(const world *w)
{
    return server_now_us(w) / 1000;
}

static bool is_live_holder(world *w, int lock, const char *value)
{
    const sim_lock *l = &w->locks[lock];
    double until_ms = 0;
    return sim_server_score(w->server, l->side[SIDE_H], l->side_length[SIDE_H], value, &until_ms) &&
           until_ms > (double)server_ms(w);
}

bool check_server_has(world *w, const sim_handle *h)
{
    bool shared = h->wish.owner != NO_OWNER;
    const char *held = check_held_as(w, h->wish.lock);
    return held != NULL && strcmp(held, shared ? owner_names[h->wish.owner] : h->value) == 0 &&
           (!shared || is_live_holder(w, h->wish.lock, h->value));
}

static void check_believed(world *w, int index, sim_handle *h)
{
    const char *name = lock_names[h->wish.lock];
    h->last_valid_ns = w->run.now_ns;
    if (h->lost_ns != 0)
        world_fail(w, "client %d.%d: its hold of %s is valid again", index, h->actor, name);
    if (w->plan.beyond || check_server_has(w, h))
        return;
    const char *held = check_held_as(w, h->wish.lock);
    world_fail(w, "client %d.%d believes to hold %s as %s, but the server has %s%s", index,
               h->actor, name, h->value, held != NULL ? held : "nothing",
               h->wish.owner != NO_OWNER ? ", or has it not among the holders" : "");
}

static void check_handle(world *w, int index, sim_handle *h)
{
    const sim_client *c = &w->clients[index];
    hf__instant now = {client_clock_ns(c, w->run.now_ns)};
    bool valid = hf__hold_remaining(h->hold, now).ns > 0;
    if (valid)
        check_believed(w, index, h);
    else if (h->lost_ns == 0)
        quiet_lost(w, index, h);
    if (!valid && h->lost_ns == 0)
        h->lost_ns = w->run.now_ns;
    states_check(w, index, h, valid);
}

void check_beliefs(world *w)
{
    server_set_clock(w);
    for (int i = 0; i < w->plan.clients; i++) {
        sim_client *c = &w->clients[i];
        for (uint64_t left = c->alive ? c->held : 0; left != 0; left &= left - 1)
            check_handle(w, i, &c->handles[__builtin_ctzll(left)]);
    }
    tokens_check(w);
}

/* ---- What the judge is told ---- */

static void add_belief(world *w, const belief *over)
{
    if (!history_add(w->history, over))
        world_fail(w, "out of memory");
}

void check_belief_over(world *w, int index, const sim_handle *h)
{
    add_belief(w, &(belief){.lock = (uint32_t)h->wish.lock,
                            .client = (uint32_t)index,
                            .hold = w->run.orders,
                            .party = h->wish.party,
                            .from_ns = h->granted_ns,
                            .until_ns = h->last_valid_ns});
}

/* A foreigner is a party of its own, even if it uses an owner's name. */
void check_foreign_over(world *w, int lock)
{
    sim_lock *l = &w->locks[lock];
    if (l->foreign_until_ns == 0)
        return;
    int64_t until_ns = l->foreign_until_ns < w->run.now_ns ? l->foreign_until_ns : w->run.now_ns;
    add_belief(w, &(belief){.lock = (uint32_t)lock,
                            .client = CLIENTS_MAX,
                            .hold = w->run.orders,
                            .from_ns = l->foreign_from_ns,
                            .until_ns = until_ns});
    l->foreign_until_ns = 0;
}

/* ---- The end ---- */

/* Ids, items of stock and their open reservations have no end. */
static bool is_of_store(const char *key, size_t length)
{
    return length > 5 && strncmp(key, "hf:", 3) == 0 && strchr("nst", key[3]) != NULL;
}

static void see_key(void *arg, const char *key, size_t length, const char *type,
                    int64_t remaining_ms)
{
    world *w = arg;
    (void)type;
    if (remaining_ms < 0 && !is_of_store(key, length))
        world_fail(w, "%.*s is left for ever", (int)length, key);
    if (!w->plan.beyond && strncmp(key, "hf:", 3) != 0 && remaining_ms > 1)
        world_fail(w, "%.*s is left with %lld ms, and nobody holds it", (int)length, key,
                   (long long)remaining_ms);
}

void check_end(world *w)
{
    server_set_clock(w);
    sim_server_keys(w->server, see_key, w);
    for (int i = 0; i < LOCKS; i++)
        check_foreign_over(w, i);
    belief first, second;
    if (!w->plan.beyond && history_find_overlap(w->history, &first, &second))
        world_fail(w, "clients %u and %u (parties %llu and %llu) believed to hold %s at once",
                   first.client, second.client, (unsigned long long)first.party,
                   (unsigned long long)second.party, lock_names[first.lock]);
    fences_end(w);
    shop_end(w);
    check_leftovers(w);
    for (int i = 0; i < w->plan.clients; i++)
        if (w->clients[i].alive && w->clients[i].close_call.error.status != HF_OK)
            world_fail(w, "client %d: closing: %s", i, w->clients[i].close_call.error.text);
}
