/* SPDX-License-Identifier: MIT */
/* See pair.h. The model has no clock, so it is given the real server's: every command goes out
 * as TIME, command, TIME in one write, and the model runs it at the first of these times. What is
 * told in times may differ by what lies between them, and by 2 ms for rounding; if the machine
 * stood still in between, both servers are emptied and begin anew, since their expiries have
 * drifted apart. What is published
 * must be heard on both sides, too.
 *
 * Normalised because they must differ: TIME, CLIENT ID, and of INFO everything but role, version
 * and the form of run_id.
 */
#include "pair.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lua/scripts.h"

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

static void count_name(two_servers *pair, const char *name)
{
    size_t at = 0;
    while (at < pair->counter_count && strcmp(pair->counters[at].name, name) != 0)
        at++;
    if (at == COUNTERS_MAX)
        return;
    if (at == pair->counter_count)
        (void)snprintf(pair->counters[pair->counter_count++].name, sizeof(pair->counters[0].name),
                       "%s", name);
    pair->counters[at].count++;
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
    count_name(pair, name);
}

/* By what it tells: a grant, that somebody waits, a break, a request; or to those who look on. */
static void count_message(two_servers *pair, const redisReply *message)
{
    const redisReply *text = message->elements == 3 ? message->element[2] : NULL;
    char name[] = "message ?";
    if (text == NULL || text->str == NULL || text->len < 2)
        return;
    if (strcmp(message->element[1]->str, "hf:e") == 0)
        count_name(pair, "message of a lock");
    if (text->str[1] != ' ')
        return;
    name[sizeof(name) - 2] = text->str[0];
    count_name(pair, name);
}

/* Compares what both have to say on a link; messages of subscriptions come without being asked. */
static void compare_heard(two_servers *pair)
{
    redisReply *model = NULL;
    while ((model = model_reply(pair, LISTENER)) != NULL) {
        redisReply *real = real_reply(pair, LISTENER);
        if (!alike(pair->slack_ms, real, model))
            differ(pair, real, model);
        count_message(pair, real);
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
bool pair_run(two_servers *pair, const hf__slice *words, int count, const char *text)
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

bool pair_run_words(two_servers *pair, const char *a, const char *b, const char *c)
{
    hf__slice words[3];
    const char *texts[] = {a, b, c};
    int count = 0;
    while (count < 3 && texts[count] != NULL) {
        words[count] = hf__slice_text(texts[count]);
        count++;
    }
    return pair_run(pair, words, count, "?");
}

void pair_run_range(two_servers *pair, const char *command, const char *key)
{
    hf__slice words[] = {hf__slice_text(command), hf__slice_text(key), HF__SLICE("0"),
                         HF__SLICE("-1"), HF__SLICE("WITHSCORES")};
    (void)pair_run(pair, words, command[0] == 'Z' ? 5 : 4, "?");
}

void pair_listen(two_servers *pair, const char *command, const char *argument)
{
    hf__slice words[] = {hf__slice_text(command), hf__slice_text(argument)};
    note(pair, words, 2);
    real_send(pair, LISTENER, words, 2);
    model_send(pair, LISTENER, words, 2);
    redisReply *real = real_reply(pair, LISTENER);
    redisReply *model = model_reply(pair, LISTENER);
    if (model == NULL || !alike(pair->slack_ms, real, model))
        differ(pair, real, model);
    count_words(pair, words, 2, real);
    freeReplyObject(real);
    freeReplyObject(model);
    pair->compared++;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const counter *)a)->name, ((const counter *)b)->name);
}

void pair_print(two_servers *pair)
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

void pair_connect(two_servers *pair)
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

void pair_disconnect(two_servers *pair)
{
    for (int i = 0; i < CONNECTIONS; i++) {
        redisFree(pair->real_links[i]);
        redisReaderFree(pair->model_readers[i]);
    }
    sim_server_free(pair->model);
}
