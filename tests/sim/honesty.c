/* SPDX-License-Identifier: MIT */
/* See honesty.h; how both servers are told the same is in pair.c.
 *
 * Expiries are far away, so that none falls between a command and its comparison, except in
 * batches: there, some keys get 5 to 30 ms, each is left alone until all are over, and then all
 * keys are compared with what they are. Sometimes the real server is made a replica of nobody, to
 * compare what a replica refuses; and sometimes its user loses what publishing and subscribing
 * need.
 */
#include "honesty.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "lua/scripts.h"
#include "pair.h"

/* ---- What is run ---- */

static void load_scripts(two_servers *pair)
{
    for (size_t i = 0; i < HF__SCRIPT_COUNT; i++)
        pair_run_words(pair, "SCRIPT", "LOAD", hf__scripts[i].body);
}

/* Whether a longer expiry is longer must not hang on the moment between the two clocks. */
static bool is_too_close(two_servers *pair)
{
    const sim_stream *stream = &pair->stream;
    int64_t wanted_ms = 0;
    bool in_seconds = sim_is(stream->words[0], "EXPIRE");
    if (stream->count < 4 || (!in_seconds && !sim_is(stream->words[0], "PEXPIRE")) ||
        !sim_parse_integer(stream->words[2], &wanted_ms) || wanted_ms <= 0 || wanted_ms > INT32_MAX)
        return false;
    wanted_ms *= in_seconds ? 1000 : 1;
    char key[32];
    (void)snprintf(key, sizeof(key), "%.*s", (int)stream->words[1].length, stream->words[1].bytes);
    const char *words[] = {"PTTL", key};
    int64_t left_ms = strtoll(sim_server_run(pair->model, 2, words), NULL, 10);
    return left_ms > wanted_ms - 10 && left_ms - 10 < wanted_ms;
}

static void touch_all(two_servers *pair, const char *command)
{
    char name[16];
    for (int key = 0; key < STREAM_KEYS; key++) {
        stream_key(key, name);
        pair_run_words(pair, command, name, NULL);
    }
}

/* Compares what is in the keys; in queues, the order hangs on times, and notes are too long to have
 * one; requests move in the order of what they reserve, and ids
 * go on from where a clock was. */
static void compare_contents(two_servers *pair)
{
    char name[16];
    for (int key = 0; key < STREAM_KEYS; key++) {
        stream_key(key, name);
        const char *question[] = {"TYPE", name};
        const char *type = sim_server_run(pair->model, 2, question);
        if (name[0] == 'Q' || name[0] == 'O' || name[0] == 'Z')
            pair_run_words(pair, "ZCARD", name, NULL);
        else if (name[0] == 'D')
            pair_run_words(pair, "EXISTS", name, NULL);
        else if (name[0] == 'W' || name[0] == 'R' || name[0] == 'J')
            pair_run_words(pair, "HLEN", name, NULL);
        else if (strcmp(type, "string") == 0)
            pair_run_words(pair, "GET", name, NULL);
        else if (strcmp(type, "hash") == 0)
            pair_run_words(pair, "HGETALL", name, NULL);
        else if (strcmp(type, "list") == 0)
            pair_run_range(pair, "LRANGE", name);
        else if (strcmp(type, "zset") == 0)
            pair_run_range(pair, "ZRANGE", name);
    }
}

/* Expired keys count until somebody looks; so somebody looks at all of them. */
static void run_one(two_servers *pair)
{
    sim_stream *stream = &pair->stream;
    stream_next(stream);
    while (is_too_close(pair))
        stream_next(stream);
    if (sim_is(stream->words[0], "DBSIZE"))
        touch_all(pair, "EXISTS");
    if (pair_run(pair, stream->words, stream->count, "NOSCRIPT") &&
        hf__random_below(&stream->random, 4) == 0)
        load_scripts(pair);
}

static void listen_one(two_servers *pair)
{
    static const char *const commands[][2] = {
        {"SUBSCRIBE", "c0"},   {"SUBSCRIBE", "c1"},   {"SUBSCRIBE", "c2"},  {"UNSUBSCRIBE", "c1"},
        {"UNSUBSCRIBE", "c0"}, {"UNSUBSCRIBE", ""},   {"PING", "x"},        {"GET", "s0"},
        {"DBSIZE", "x"},       {"SUBSCRIBE", NULL},   {"SUBSCRIBE", NULL},  {"SUBSCRIBE", NULL},
        {"SUBSCRIBE", NULL},   {"UNSUBSCRIBE", NULL}, {"SUBSCRIBE", "hf:e"}};
    char channel[48];
    uint64_t *random = &pair->stream.random;
    stream_channel((int)hf__random_below(random, STREAM_CLIENTS), channel);
    uint64_t chosen = hf__random_below(random, sizeof(commands) / sizeof(commands[0]));
    const char *argument = commands[chosen][1] != NULL ? commands[chosen][1] : channel;
    pair_listen(pair, commands[chosen][0], argument);
}

/* The user of both connections loses what it needs to publish and subscribe, and gets it back. The
 * real server ends connections that are subscribed to what is forbidden. */
static void run_denied(two_servers *pair)
{
    bool channels = hf__random_below(&pair->stream.random, 2) == 0;
    const char *take = channels ? "ACL SETUSER default resetchannels"
                                : "ACL SETUSER default -publish -subscribe -pubsub";
    const char *give = "ACL SETUSER default allchannels +publish +subscribe +pubsub";
    static const char *const others[] = {"c0", "c1", "c2", "hf:e"};
    for (int i = 0; i < STREAM_CLIENTS + 4; i++) {
        char channel[48];
        stream_channel(i, channel);
        if (i >= STREAM_CLIENTS)
            (void)snprintf(channel, sizeof(channel), "%s", others[i - STREAM_CLIENTS]);
        pair_listen(pair, "UNSUBSCRIBE", channel);
    }
    freeReplyObject(redisCommand(pair->real_links[MAIN], take));
    for (int i = 0; i < CONNECTIONS; i++)
        sim_server_deny(pair->model, i, channels ? SIM_NO_CHANNELS : SIM_NO_PUBSUB);
    for (int i = 0; i < 60; i++) {
        run_one(pair);
        if (i % 5 == 0)
            pair_listen(pair, "SUBSCRIBE", "c1");
    }
    freeReplyObject(redisCommand(pair->real_links[MAIN], give));
    for (int i = 0; i < CONNECTIONS; i++)
        sim_server_deny(pair->model, i, SIM_ALLOWED);
}

/* More memory is in use than both may have. A model without any key has none in use. */
static void run_full(two_servers *pair)
{
    pair_run_words(pair, "SET", "full", "1");
    freeReplyObject(redisCommand(pair->real_links[MAIN], "CONFIG SET maxmemory 1"));
    sim_server_limit_memory(pair->model, 1);
    for (int i = 0; i < 60; i++)
        run_one(pair);
    freeReplyObject(redisCommand(pair->real_links[MAIN], "CONFIG SET maxmemory 0"));
    sim_server_limit_memory(pair->model, 0);
    pair_run_words(pair, "DEL", "full", NULL);
}

static int64_t model_key_count(two_servers *pair)
{
    const char *words[] = {"DBSIZE"};
    return strtoll(sim_server_run(pair->model, 1, words), NULL, 10);
}

/* Some keys, each once, get a short life; when it is over, all keys are compared. */
static void run_short_lives(two_servers *pair)
{
    sim_stream *stream = &pair->stream;
    int first = (int)hf__random_below(&stream->random, STREAM_KEYS);
    for (int i = 0; i < 10; i++) {
        stream_next_short(stream, (first + i * 5) % STREAM_KEYS); /* 5 and 92 have no divisor */
        (void)pair_run(pair, stream->words, stream->count, "?");
    }
    int64_t before = model_key_count(pair);
    sleep_ms(35);
    touch_all(pair, "TYPE");
    touch_all(pair, "PTTL");
    compare_contents(pair);
    pair->expired += before - model_key_count(pair);
    pair_run_words(pair, "DBSIZE", NULL, NULL);
}

/* A replica keeps what has expired; before, both get rid of it. */
static void run_as_replica(two_servers *pair)
{
    touch_all(pair, "EXISTS");
    freeReplyObject(redisCommand(pair->real_links[MAIN], "REPLICAOF 127.0.0.1 1"));
    sim_server_set_role(pair->model, true);
    pair->is_replica = true;
    for (int i = 0; i < 60; i++)
        run_one(pair);
    freeReplyObject(redisCommand(pair->real_links[MAIN], "REPLICAOF NO ONE"));
    sim_server_set_role(pair->model, false);
    pair->is_replica = false;
}

static void run_all_scripts(two_servers *pair)
{
    for (size_t i = 0; i < stream_script_count; i++) {
        stream_next_script(&pair->stream, stream_scripts[i]);
        (void)pair_run(pair, pair->stream.words, pair->stream.count, "?");
    }
}

void honesty_compare(uint64_t seed, int64_t operations)
{
    static two_servers both; /* large */
    two_servers *pair = &both;
    memset(pair, 0, sizeof(*pair));
    pair->seed = seed;
    pair->stream.random = seed;
    pair_connect(pair);
    load_scripts(pair);
    run_all_scripts(pair);
    while (pair->compared < operations) {
        uint64_t dice = hf__random_below(&pair->stream.random, 2000);
        if (dice < 80)
            listen_one(pair);
        else if (dice < 84)
            run_short_lives(pair);
        else if (dice < 85)
            run_as_replica(pair);
        else if (dice < 86)
            run_denied(pair);
        else if (dice < 87)
            run_full(pair);
        else
            run_one(pair);
    }
    pair_print(pair);
    pair_disconnect(pair);
}
