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

#include "driver.h"

#define POLL_US 1000

static const char release_script[] = "if redis.call('GET', KEYS[1]) == ARGV[1] then "
                                     "return redis.call('DEL', KEYS[1]) end return 0";

struct session {
    const struct settings *settings;
    char host[128];
    int port;
    redisContext *redis; /* of ids */
};

struct place {
    const struct settings *settings;
    redisContext *redis;
    char lock[LOCK_NAME_SIZE];
    char token[64];
    char sha[41];
};

static redisContext *dial(const struct session *session, char *problem)
{
    redisContext *redis = redisConnect(session->host, session->port);
    if (redis != NULL && redis->err == 0)
        return redis;
    problem_set(problem, "redisConnect: %s", redis != NULL ? redis->errstr : "out of memory");
    if (redis != NULL)
        redisFree(redis);
    return NULL;
}

static void session_close(void *arg)
{
    struct session *session = arg;
    if (session->redis != NULL)
        redisFree(session->redis);
    free(session);
}

static void *session_open(const struct settings *settings, char *problem)
{
    struct session *session = calloc(1, sizeof *session);
    if (session == NULL)
        return NULL;
    session->settings = settings;
    bool understood =
        sscanf(settings->url, "redis://%127[^:]:%d", session->host, &session->port) == 2;
    if (!understood)
        problem_set(problem, "one redis://host:port is needed, not %s", settings->url);
    if (understood && (session->redis = dial(session, problem)) != NULL)
        return session;
    session_close(session);
    return NULL;
}

static bool load_script(struct place *place, char *problem)
{
    redisReply *reply = redisCommand(place->redis, "SCRIPT LOAD %s", release_script);
    bool loaded = reply != NULL && reply->type == REDIS_REPLY_STRING && reply->len == 40;
    if (loaded)
        memcpy(place->sha, reply->str, 40);
    else
        problem_set(problem, "SCRIPT LOAD failed");
    freeReplyObject(reply);
    return loaded;
}

static void place_close(void *arg)
{
    struct place *place = arg;
    if (place->redis != NULL)
        redisFree(place->redis);
    free(place);
}

static void *place_open(void *arg, const char *lock, char *problem)
{
    static atomic_int number;
    struct session *session = arg;
    struct place *place = calloc(1, sizeof *place);
    if (place == NULL) {
        problem_set(problem, "out of memory");
        return NULL;
    }
    place->settings = session->settings;
    snprintf(place->lock, sizeof place->lock, "%s", lock);
    snprintf(place->token, sizeof place->token, "%d-%d-%" PRId64, getpid(),
             atomic_fetch_add(&number, 1), now_ns());
    place->redis = dial(session, problem);
    if (place->redis != NULL && load_script(place, problem))
        return place;
    place_close(place);
    return NULL;
}

static enum outcome try_once(struct place *place, char *problem)
{
    redisReply *reply = redisCommand(place->redis, "SET %s %s NX PX %lld", place->lock,
                                     place->token, (long long)place->settings->lease_ms);
    enum outcome outcome = FAILED;
    if (reply != NULL && reply->type == REDIS_REPLY_STATUS)
        outcome = GOT;
    else if (reply != NULL && reply->type == REDIS_REPLY_NIL)
        outcome = REFUSED;
    else
        problem_set(problem, "SET: %s", reply != NULL ? reply->str : place->redis->errstr);
    freeReplyObject(reply);
    return outcome;
}

static enum outcome acquire(void *arg, char *problem)
{
    struct place *place = arg;
    enum outcome outcome = try_once(place, problem);
    while (outcome == REFUSED && place->settings->wait) {
        sleep_us(POLL_US);
        outcome = try_once(place, problem);
    }
    return outcome;
}

static bool release(void *arg, char *problem)
{
    struct place *place = arg;
    redisReply *reply =
        redisCommand(place->redis, "EVALSHA %s 1 %s %s", place->sha, place->lock, place->token);
    bool released = reply != NULL && reply->type == REDIS_REPLY_INTEGER && reply->integer == 1;
    if (!released)
        problem_set(problem, "the lock was not ours any more");
    freeReplyObject(reply);
    return released;
}

static uint64_t take_ids(void *arg, char *problem)
{
    struct session *session = arg;
    redisReply *reply = redisCommand(session->redis, "INCR %s", session->settings->lock);
    bool taken = reply != NULL && reply->type == REDIS_REPLY_INTEGER;
    if (!taken)
        problem_set(problem, "INCR failed");
    freeReplyObject(reply);
    return taken ? 1 : 0;
}

static const char *const peers[] = {"hiredis", NULL};

const struct backend backend = {.peers = peers,
                                .open = session_open,
                                .close = session_close,
                                .place_open = place_open,
                                .place_close = place_close,
                                .acquire = acquire,
                                .release = release,
                                .take_ids = take_ids,
                                .refusal = "nothing renews a lock"};
