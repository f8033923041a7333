/* SPDX-License-Identifier: MIT */
/* See honesty.h. The model has no clock, so it is given the real server's: every command goes out
 * as TIME, command, TIME in one write, and the model runs it at the first of these times. What is
 * told in times may differ by what lies between them, and by 2 ms for rounding; if the machine
 * stood still in between, both servers are emptied and begin anew, since their expiries have
 * drifted apart.
 *
 * Expiries are far away, so that none falls between a command and its comparison, except in
 * batches: there, some keys get 5 to 30 ms, each is left alone until all are over, and then all
 * keys are compared with what they are. Sometimes the real server is made a replica of nobody, to
 * compare what a replica refuses.
 *
 * Normalised because they must differ: TIME, CLIENT ID, and of INFO everything but role, version
 * and the form of run_id.
 */
#include "honesty.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alike.h"
#include "base/random.h"
#include "lua/scripts.h"
#include "redis_server.h"
#include "server.h"
#include "stream.h"

enum { MAIN = 0, LISTENER = 1, CONNECTIONS = 2, COUNTERS_MAX = 112, LAST = 12 };

typedef struct counter {
    char name[32];
    int64_t count;
} counter;

typedef struct two_servers {
    struct redis_server *real;
    redisContext *real_links[CONNECTIONS];
    sim_server *model;
    redisReader *model_readers[CONNECTIONS];
    sim_stream stream;
    uint64_t seed;
    bool is_replica;
    int64_t slack_ms; /* what the command at hand may be off */
    int64_t compared;
    int64_t expired; /* keys seen to vanish in batches */
    int64_t restarts;
    counter counters[COUNTERS_MAX];
    size_t counter_count;
    char last[LAST][512]; /* what led to a difference */
    size_t last_count;
} two_servers;

/* ---- Talking to both ---- */

static void note(two_servers *pair, const hf__slice *words, int count)
{
    char *at = pair->last[pair->last_count++ % LAST];
    const char *end = at + sizeof(pair->last[0]) - 16;
    for (int i = 0; i < count; i++) {
        alike_show_bytes(&at, end, words[i].bytes, words[i].length);
        at += snprintf(at, 4, " | ");
    }
}

static void show_last(const two_servers *pair)
{
    size_t first = pair->last_count > LAST ? pair->last_count - LAST : 0;
    for (size_t i = first; i < pair->last_count; i++)
        print_message("  %s\n", pair->last[i % LAST]);
}

/* Frees the replies, since failing does not come back. */
static void differ(const two_servers *pair, redisReply *real, redisReply *model)
{
    char a[ALIKE_TEXT_MAX] = "";
    char b[ALIKE_TEXT_MAX] = "(no answer)";
    alike_show(real, a);
    if (model != NULL)
        alike_show(model, b);
    freeReplyObject(real);
    freeReplyObject(model);
    show_last(pair);
    fail_msg("seed %llu, after %lld comparisons\n  real:  %s\n  model: %s",
             (unsigned long long)pair->seed, (long long)pair->compared, a, b);
}

static redisReply *real_reply(two_servers *pair, int link)
{
    void *reply = NULL;
    if (redisGetReply(pair->real_links[link], &reply) != REDIS_OK) {
        show_last(pair);
        fail_msg("the real server: %s", pair->real_links[link]->errstr);
    }
    return reply;
}

/* NULL: the model has said nothing more. */
static redisReply *model_reply(two_servers *pair, int link)
{
    const char *bytes = NULL;
    void *reply = NULL;
    size_t count = sim_server_output(pair->model, link, &bytes);
    if (count > 0) {
        assert_int_equal(redisReaderFeed(pair->model_readers[link], bytes, count), REDIS_OK);
        sim_server_taken(pair->model, link, count);
    }
    if (redisReaderGetReply(pair->model_readers[link], &reply) != REDIS_OK)
        fail_msg("the model: %s", pair->model_readers[link]->errstr);
    return reply;
}

static void real_send(two_servers *pair, int link, const hf__slice *words, int count)
{
    const char *bytes[STREAM_WORDS_MAX];
    size_t lengths[STREAM_WORDS_MAX];
    for (int i = 0; i < count; i++) {
        bytes[i] = words[i].bytes;
        lengths[i] = words[i].length;
    }
    redisAppendCommandArgv(pair->real_links[link], count, bytes, lengths);
}

static void model_send(two_servers *pair, int link, const hf__slice *words, int count)
{
    sim_buffer request = {NULL, 0, 0, 0};
    char head[32];
    sim_buffer_append(&request, head, (size_t)snprintf(head, sizeof(head), "*%d\r\n", count));
    for (int i = 0; i < count; i++) {
        int length = snprintf(head, sizeof(head), "$%zu\r\n", words[i].length);
        sim_buffer_append(&request, head, (size_t)length);
        sim_buffer_append(&request, words[i].bytes, words[i].length);
        sim_buffer_append(&request, "\r\n", 2);
    }
    size_t half = (request.end - request.start) / 2; /* in two pieces, as the net might */
    sim_server_receive(pair->model, link, request.bytes, half);
    sim_server_receive(pair->model, link, request.bytes + half, request.end - half);
    sim_buffer_free(&request);
}

static int64_t time_reply(two_servers *pair)
{
    redisReply *reply = real_reply(pair, MAIN);
    assert_int_equal(reply->type, REDIS_REPLY_ARRAY);
    int64_t us = strtoll(reply->element[0]->str, NULL, 10) * 1000000 +
                 strtoll(reply->element[1]->str, NULL, 10);
    freeReplyObject(reply);
    return us;
}

static bool begins_with(const redisReply *reply, const char *text)
{
    return reply->str != NULL && strncmp(reply->str, text, strlen(text)) == 0;
}

static void count_words(two_servers *pair, const hf__slice *words, int count,
                        const redisReply *real)
{
    char name[32] = "(unknown)";
    hf__slice first = words[0];
    if (!begins_with(real, "ERR unknown command"))
        (void)snprintf(name, sizeof(name), "%.*s", (int)first.length, first.bytes);
    for (char *at = name; *at != '\0'; at++)
        *at = (char)toupper((unsigned char)*at);
    if (sim_is(first, "EVALSHA") && count > 1)
        for (size_t i = 0; i < HF__SCRIPT_COUNT; i++)
            if (sim_is(words[1], hf__scripts[i].sha1))
                (void)snprintf(name, sizeof(name), "%s.lua", hf__scripts[i].name);
    size_t at = 0;
    while (at < pair->counter_count && strcmp(pair->counters[at].name, name) != 0)
        at++;
    if (at == COUNTERS_MAX)
        return;
    if (at == pair->counter_count)
        memcpy(pair->counters[pair->counter_count++].name, name, sizeof(name));
    pair->counters[at].count++;
}

/* Compares what both have to say on a link; messages of subscriptions come without being asked. */
static void compare_heard(two_servers *pair)
{
    redisReply *model = NULL;
    while ((model = model_reply(pair, LISTENER)) != NULL) {
        redisReply *real = real_reply(pair, LISTENER);
        if (!alike(pair->slack_ms, real, model, 0))
            differ(pair, real, model);
        freeReplyObject(real);
        freeReplyObject(model);
    }
}

static void both_flush(two_servers *pair)
{
    freeReplyObject(redisCommand(pair->real_links[MAIN], "FLUSHALL"));
    const char *words[] = {"FLUSHALL"};
    assert_string_equal(sim_server_run(pair->model, 1, words), "OK");
    pair->restarts++;
}

/* Runs a command on both and compares. Returns whether the real reply began with `text`. */
static bool run_both(two_servers *pair, const hf__slice *words, int count, const char *text)
{
    hf__slice time = HF__SLICE("TIME");
    note(pair, words, count);
    real_send(pair, MAIN, &time, 1);
    real_send(pair, MAIN, words, count);
    real_send(pair, MAIN, &time, 1);
    int64_t before_us = time_reply(pair);
    redisReply *real = real_reply(pair, MAIN);
    int64_t after_us = time_reply(pair);
    pair->slack_ms = (after_us - before_us + 999) / 1000;
    pair->stream.now_ms = after_us / 1000;
    sim_server_set_time(pair->model, before_us);
    model_send(pair, MAIN, words, count);
    redisReply *model = model_reply(pair, MAIN);
    if (model == NULL || !alike_replies(pair->slack_ms, words, count, real, model))
        differ(pair, real, model);
    bool matches = begins_with(real, text);
    count_words(pair, words, count, real);
    freeReplyObject(real);
    freeReplyObject(model);
    compare_heard(pair);
    pair->compared++;
    if (pair->slack_ms > TOLERANCE_MS && !pair->is_replica) /* a replica gives no expiries */
        both_flush(pair);
    return matches;
}

static bool run_words(two_servers *pair, const char *a, const char *b, const char *c)
{
    hf__slice words[3];
    const char *texts[] = {a, b, c};
    int count = 0;
    while (count < 3 && texts[count] != NULL) {
        words[count] = hf__slice_text(texts[count]);
        count++;
    }
    return run_both(pair, words, count, "?");
}

static void run_range(two_servers *pair, const char *command, const char *key)
{
    hf__slice words[] = {hf__slice_text(command), hf__slice_text(key), HF__SLICE("0"),
                         HF__SLICE("-1"), HF__SLICE("WITHSCORES")};
    (void)run_both(pair, words, command[0] == 'Z' ? 5 : 4, "?");
}

/* ---- What is run ---- */

static void load_scripts(two_servers *pair)
{
    for (size_t i = 0; i < HF__SCRIPT_COUNT; i++)
        run_words(pair, "SCRIPT", "LOAD", hf__scripts[i].body);
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
        run_words(pair, command, name, NULL);
    }
}

/* Compares what is in the keys; in queues, the order hangs on times, and notes are too long to have
 * one. */
static void compare_contents(two_servers *pair)
{
    char name[16];
    for (int key = 0; key < STREAM_KEYS; key++) {
        stream_key(key, name);
        const char *question[] = {"TYPE", name};
        const char *type = sim_server_run(pair->model, 2, question);
        if (name[0] == 'Q' || name[0] == 'O')
            run_words(pair, "ZCARD", name, NULL);
        else if (name[0] == 'W')
            run_words(pair, "HLEN", name, NULL);
        else if (strcmp(type, "string") == 0)
            run_words(pair, "GET", name, NULL);
        else if (strcmp(type, "hash") == 0)
            run_words(pair, "HGETALL", name, NULL);
        else if (strcmp(type, "list") == 0)
            run_range(pair, "LRANGE", name);
        else if (strcmp(type, "zset") == 0)
            run_range(pair, "ZRANGE", name);
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
    if (run_both(pair, stream->words, stream->count, "NOSCRIPT") &&
        hf__random_below(&stream->random, 4) == 0)
        load_scripts(pair);
}

static void listen_one(two_servers *pair)
{
    static const char *const commands[][2] = {
        {"SUBSCRIBE", "c0"},   {"SUBSCRIBE", "c1"},   {"SUBSCRIBE", "c2"},
        {"UNSUBSCRIBE", "c1"}, {"UNSUBSCRIBE", "c0"}, {"UNSUBSCRIBE", ""},
        {"PING", "x"},         {"GET", "s0"},         {"DBSIZE", "x"}};
    uint64_t chosen =
        hf__random_below(&pair->stream.random, sizeof(commands) / sizeof(commands[0]));
    hf__slice words[] = {hf__slice_text(commands[chosen][0]), hf__slice_text(commands[chosen][1])};
    note(pair, words, 2);
    real_send(pair, LISTENER, words, 2);
    model_send(pair, LISTENER, words, 2);
    redisReply *real = real_reply(pair, LISTENER);
    redisReply *model = model_reply(pair, LISTENER);
    if (model == NULL || !alike(pair->slack_ms, real, model, 0))
        differ(pair, real, model);
    count_words(pair, words, 2, real);
    freeReplyObject(real);
    freeReplyObject(model);
    pair->compared++;
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
        stream_next_short(stream, (first + i * 3) % STREAM_KEYS); /* 3 and 56 have no divisor */
        (void)run_both(pair, stream->words, stream->count, "?");
    }
    int64_t before = model_key_count(pair);
    sleep_ms(35);
    touch_all(pair, "TYPE");
    touch_all(pair, "PTTL");
    compare_contents(pair);
    pair->expired += before - model_key_count(pair);
    run_words(pair, "DBSIZE", NULL, NULL);
}

static void run_as_replica(two_servers *pair)
{
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
        (void)run_both(pair, pair->stream.words, pair->stream.count, "?");
    }
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const counter *)a)->name, ((const counter *)b)->name);
}

static void print_counters(two_servers *pair)
{
    qsort(pair->counters, pair->counter_count, sizeof(counter), by_name);
    print_message("compared %lld operations with redis-server, seed %llu: no difference; %lld keys "
                  "expired, begun anew %lld times\n",
                  (long long)pair->compared, (unsigned long long)pair->seed,
                  (long long)pair->expired, (long long)pair->restarts);
    for (size_t i = 0; i < pair->counter_count; i++)
        print_message("  %-18s %6lld%s", pair->counters[i].name, (long long)pair->counters[i].count,
                      i % 4 == 3 ? "\n" : "");
    print_message("\n");
}

static void connect_both(two_servers *pair)
{
    pair->real = redis_server_start(&(struct redis_server_options){0});
    assert_non_null(pair->real);
    pair->model = sim_server_new();
    for (int i = 0; i < CONNECTIONS; i++) {
        pair->real_links[i] = redisConnectUnix(pair->real->socket);
        assert_true(pair->real_links[i] != NULL && pair->real_links[i]->err == 0);
        pair->model_readers[i] = redisReaderCreate();
        sim_server_connect(pair->model, i);
    }
}

static void disconnect_both(two_servers *pair)
{
    for (int i = 0; i < CONNECTIONS; i++) {
        redisFree(pair->real_links[i]);
        redisReaderFree(pair->model_readers[i]);
    }
    sim_server_free(pair->model);
}

void honesty_compare(uint64_t seed, int64_t operations)
{
    static two_servers both; /* large */
    two_servers *pair = &both;
    memset(pair, 0, sizeof(*pair));
    pair->seed = seed;
    pair->stream.random = seed;
    connect_both(pair);
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
        else
            run_one(pair);
    }
    print_counters(pair);
    disconnect_both(pair);
}
