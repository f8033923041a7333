/* SPDX-License-Identifier: MIT
 *
 * The floor: what a careful person writes by hand. SET NX PX, a script that deletes the key if it
 * still has our value, a connection for each task, and a pause of a millisecond between two looks.
 * No renewal, no queue, no second thought about a lost answer. Ids are INCR, one at a time.
 */
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "wire.h"

#define POLL_US 1000

static const char release_script[] = "if redis.call('GET', KEYS[1]) == ARGV[1] then "
                                     "return redis.call('DEL', KEYS[1]) end return 0";

struct connection {
    redisContext *redis;
    char token[64]; /* a connection holds one lock at a time */
    char sha[41];
};

void wire_hang_up(void *arg)
{
    struct connection *connection = arg;
    if (connection->redis != NULL)
        redisFree(connection->redis);
    free(connection);
}

static redisContext *connect_to(const char *url, char *problem)
{
    char host[128];
    int port;
    if (sscanf(url, "redis://%127[^:]:%d", host, &port) != 2) {
        problem_set(problem, "not redis://host:port: %s", url);
        return NULL;
    }
    redisContext *redis = redisConnect(host, port);
    if (redis == NULL || redis->err != 0)
        problem_set(problem, "redisConnect: %s", redis != NULL ? redis->errstr : "out of memory");
    return redis;
}

static bool load_script(struct connection *connection, char *problem)
{
    redisReply *reply = redisCommand(connection->redis, "SCRIPT LOAD %s", release_script);
    bool loaded = reply != NULL && reply->type == REDIS_REPLY_STRING && reply->len == 40;
    if (loaded)
        memcpy(connection->sha, reply->str, 40);
    else
        problem_set(problem, "SCRIPT LOAD failed");
    freeReplyObject(reply);
    return loaded;
}

void *wire_dial(const struct settings *settings, char *problem)
{
    static atomic_int number;
    struct connection *connection = calloc(1, sizeof *connection);
    if (connection == NULL)
        return NULL;
    snprintf(connection->token, sizeof connection->token, "%d-%d-%" PRId64, getpid(),
             atomic_fetch_add(&number, 1), now_ns());
    connection->redis = connect_to(settings->url, problem);
    if (connection->redis != NULL && connection->redis->err == 0 &&
        load_script(connection, problem))
        return connection;
    wire_hang_up(connection);
    return NULL;
}

static enum outcome try_once(const struct wire_place *place, char *problem)
{
    const struct connection *connection = place->connection;
    redisReply *reply = redisCommand(connection->redis, "SET %s %s NX PX %lld", place->lock,
                                     connection->token, (long long)place->settings->lease_ms);
    enum outcome outcome = FAILED;
    if (reply != NULL && reply->type == REDIS_REPLY_STATUS)
        outcome = GOT;
    else if (reply != NULL && reply->type == REDIS_REPLY_NIL)
        outcome = REFUSED;
    else
        problem_set(problem, "SET: %s", reply != NULL ? reply->str : connection->redis->errstr);
    freeReplyObject(reply);
    return outcome;
}

static enum outcome acquire(void *arg, char *problem)
{
    const struct wire_place *place = arg;
    enum outcome outcome = try_once(place, problem);
    while (outcome == REFUSED && place->settings->wait) {
        sleep_us(POLL_US);
        outcome = try_once(place, problem);
    }
    return outcome;
}

/* Whether a command was answered with a number, and that this one is at least 1. */
static bool counted(redisReply *reply, char *problem, const char *otherwise)
{
    bool positive = reply != NULL && reply->type == REDIS_REPLY_INTEGER && reply->integer >= 1;
    if (!positive)
        problem_set(problem, "%s", otherwise);
    freeReplyObject(reply);
    return positive;
}

static bool release(void *arg, char *problem)
{
    const struct wire_place *place = arg;
    const struct connection *connection = place->connection;
    return counted(redisCommand(connection->redis, "EVALSHA %s 1 %s %s", connection->sha,
                                place->lock, connection->token),
                   problem, "the lock was not ours any more");
}

static uint64_t take_ids(void *arg, char *problem)
{
    const struct wire_session *session = arg;
    const struct connection *connection = session->shared;
    return counted(redisCommand(connection->redis, "INCR %s", session->settings->lock), problem,
                   "INCR failed");
}

static const char *const peers[] = {"hiredis", NULL};

const struct backend backend = {.peers = peers,
                                WIRE_PLACES,
                                .acquire = acquire,
                                .release = release,
                                .take_ids = take_ids,
                                .refusal = "nothing renews a lock"};
