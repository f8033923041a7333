/* SPDX-License-Identifier: MIT */
/* Somebody else's program on the same keys: SET NX PX to take, and a script that compares and
 * deletes to give back, as the Redis manual shows. It knows nothing of the library, goes straight
 * to the server, and counts its lease from before its request, with the library's own allowance, so
 * its beliefs can be judged like all others.
 *
 * Sabotage: it deletes the key in the end whatever became of its SET, like a program with the DEL
 * in its cleanup. Others then overlap, and the judge has to see it.
 */
#include <hiredis/hiredis.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../lib/ledger.h"
#include "../lib/process.h"
#include "chaos.h"

struct foreigner {
    const struct chaos *chaos;
    struct chance chance;
    redisContext *server; /* NULL: not connected */
    int slot;
    int ledger;
    char value[32];
    belief belief;
};

static const char compare_and_delete[] =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";

static bool connected(struct foreigner *foreigner)
{
    const struct timeval limit = {.tv_usec = 500000};
    if (foreigner->server != NULL && foreigner->server->err == 0)
        return true;
    if (foreigner->server != NULL)
        redisFree(foreigner->server);
    foreigner->server = redisConnectUnixWithTimeout(foreigner->chaos->server_socket, limit);
    if (foreigner->server == NULL || foreigner->server->err != 0)
        return false;
    return redisSetTimeout(foreigner->server, limit) == REDIS_OK;
}

static void write_down(struct foreigner *foreigner)
{
    struct board *board = foreigner->chaos->board;
    atomic_store(&board->held_until[foreigner->belief.lock], foreigner->belief.until_ns);
    atomic_store(&board->held_by[foreigner->belief.lock], foreigner->slot);
    if (!ledger_write(foreigner->ledger, &foreigner->belief, sizeof(belief)))
        complain(board, "the ledger cannot be written");
}

static bool take(struct foreigner *foreigner, const char *name, int lease_ms)
{
    belief *held = &foreigner->belief;
    held->hold++;
    (void)snprintf(foreigner->value, sizeof(foreigner->value), "foreign:%u:%llu", held->client,
                   (unsigned long long)held->hold);
    int64_t before = now_ns();
    redisReply *reply = redisCommand(foreigner->server, "SET chaos:%s %s NX PX %d", name,
                                     foreigner->value, lease_ms);
    bool taken = reply != NULL && reply->type == REDIS_REPLY_STATUS;
    freeReplyObject(reply);
    held->from_ns = now_ns();
    held->until_ns = before + lease_ms * MS_NS - lease_ms * MS_NS / 100 - 2 * MS_NS;
    if (taken)
        write_down(foreigner);
    return taken;
}

static void give_back(struct foreigner *foreigner, const char *name)
{
    if (!connected(foreigner))
        return; /* it ends with its lease */
    void *reply = foreigner->chaos->sabotage
                      ? redisCommand(foreigner->server, "DEL chaos:%s", name)
                      : redisCommand(foreigner->server, "EVAL %s 1 chaos:%s %s", compare_and_delete,
                                     name, foreigner->value);
    freeReplyObject(reply);
}

static void end_belief(struct foreigner *foreigner)
{
    int64_t now = now_ns();
    if (now < foreigner->belief.until_ns)
        foreigner->belief.until_ns = now;
    write_down(foreigner);
}

static void once(struct foreigner *foreigner)
{
    struct chance *chance = &foreigner->chance;
    char name[16];
    foreigner->belief.lock = (uint32_t)chance_between(chance, 0, LOCKS - 1);
    lock_name(name, (int)foreigner->belief.lock);
    int lease_ms = chance_between(chance, LEASE_LEAST_MS, LEASE_MOST_MS);
    bool overworks = chance_percent(chance, 5);
    bool taken = connected(foreigner) && take(foreigner, name, lease_ms);
    if (taken) {
        sleep_ms(chance_between(chance, 0, 60) + (overworks ? lease_ms : 0));
        end_belief(foreigner);
    }
    if (taken || foreigner->chaos->sabotage)
        give_back(foreigner, name);
    sleep_ms(chance_between(chance, 1, 20));
}

void foreign_run(const struct chaos *chaos, int slot, uint32_t number)
{
    struct foreigner foreigner = {.chaos = chaos,
                                  .chance = chance_for(chaos->seed, number * 16),
                                  .slot = slot,
                                  .belief = {.client = number * 16}};
    foreigner.ledger = ledger_open(chaos->folder);
    (void)signal(SIGPIPE, SIG_IGN); /* hiredis needs it; the library's processes must not */
    while (!atomic_load(&chaos->board->stop))
        once(&foreigner);
    if (foreigner.server != NULL)
        redisFree(foreigner.server);
    (void)close(foreigner.ledger);
}
