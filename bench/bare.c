/* SPDX-License-Identifier: MIT
 *
 * The loops that the library is measured against: two synchronous round trips on a blocking
 * connection, and nothing else. They are made as cheap as they can honestly be, for a slow baseline
 * would flatter us: arguments and lengths are prepared once, and a new value for each pair (which
 * any correct lock needs) is made by counting up in place.
 *
 * "Same scripts" reads the scripts that the library was built with and runs them with EVALSHA as it
 * does, so that the ratio shows what the client costs and not what the scripts cost. The release
 * answers 1 only if the key held this pair's value, so each step also proves that its acquire was
 * granted.
 *
 * Key names are as long as the subject's name, but different: a release that nobody waits for may
 * still be under way when the other side gets its turn.
 */
#include "bare.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bare_tls.h"

#define KEEP_MS  "3600000"
#define AHEAD_US 10000

#define TEXT_OF_(number) #number
#define TEXT_OF(number)  TEXT_OF_(number)

#define SCRIPT_MAX 65536

static const char compare_and_delete[] =
    "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end\n"
    "return redis.call('DEL', KEYS[1])\n";

static void command_add(struct bare_command *command, const char *argument)
{
    command->argument[command->count] = argument;
    command->length[command->count] = strlen(argument);
    command->count++;
}

static void command_fill(struct bare_command *command, const char *const *arguments)
{
    command->count = 0;
    while (*arguments != NULL)
        command_add(command, *arguments++);
}

static redisReply *command_run(struct bare *bare, const struct bare_command *command)
{
    /* hiredis does not write to the arguments; its type merely lacks a const. */
    const char **arguments = (const char **)command->argument;
    if (bare->ssl != NULL)
        return bare_tls_command(bare->context, bare->ssl, command->count, arguments,
                                command->length);
    return redisCommandArgv(bare->context, command->count, arguments, command->length);
}

/* Counts up the sixteen digits after the colon, like a mileage counter. */
static void value_advance(struct bare *bare)
{
    char *digit = strchr(bare->value, '@');
    while (*--digit == '9')
        *digit = '0';
    ++*digit;
}

/* A fence that no server's clock has reached when it gets there, so that all of them take it. */
static void proposal_advance(struct bare *bare)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    long long now_us = (long long)now.tv_sec * 1000000 + now.tv_nsec / 1000;
    snprintf(bare->proposal, sizeof bare->proposal, "%016lld", now_us + AHEAD_US);
}

static const char *problem_of_reply(struct bare *bare, const char *verb, const redisReply *reply)
{
    const char *why = "unexpected reply: somebody else holds the lock?";
    if (reply == NULL)
        why = bare->context->errstr;
    else if (reply->type == REDIS_REPLY_ERROR)
        why = reply->str;
    snprintf(bare->problem, sizeof bare->problem, "bare %s: %s", verb, why);
    return bare->problem;
}

static const char *check_release(struct bare *bare, redisReply *reply)
{
    const char *problem = NULL;
    if (reply == NULL || reply->type != REDIS_REPLY_INTEGER || reply->integer != 1)
        problem = problem_of_reply(bare, "release", reply);
    freeReplyObject(reply);
    return problem;
}

static const char *check_acquire(struct bare *bare, redisReply *reply, bool *granted)
{
    const char *problem = NULL;
    bool is_table = reply != NULL && reply->type == REDIS_REPLY_ARRAY; /* a first use of a name */
    *granted = reply != NULL && (reply->type == bare->acquire_reply_type || is_table);
    if (!*granted && (reply == NULL || reply->type != REDIS_REPLY_NIL))
        problem = problem_of_reply(bare, "acquire", reply);
    freeReplyObject(reply);
    return problem;
}

const char *bare_try(struct bare *bare, bool *granted)
{
    value_advance(bare);
    return check_acquire(bare, command_run(bare, &bare->acquire), granted);
}

const char *bare_acquire(struct bare *bare)
{
    bool granted;
    const char *problem = bare_try(bare, &granted);
    return problem != NULL || granted ? problem : "bare acquire: refused";
}

const char *bare_release(struct bare *bare)
{
    return check_release(bare, command_run(bare, &bare->release));
}

const char *bare_pair(void *arg)
{
    const char *problem = bare_acquire(arg);
    return problem != NULL ? problem : bare_release(arg);
}

static const struct bare_command *next_command(struct bare *bare, enum bare_verb verb)
{
    if (verb == BARE_ACQUIRE)
        value_advance(bare);
    if (bare->proposal[0] != '\0')
        proposal_advance(bare);
    return verb == BARE_ACQUIRE ? &bare->acquire : &bare->release;
}

/* A failure stays with the connection, and so is seen when the reply is taken. */
void bare_append(struct bare *bare, enum bare_verb verb)
{
    const struct bare_command *command = next_command(bare, verb);
    (void)redisAppendCommandArgv(bare->context, command->count, (const char **)command->argument,
                                 command->length);
}

/* What hiredis makes of the arguments costs as much as all else that it does. */
void bare_append_all(struct bare *bares, int count, enum bare_verb verb)
{
    const struct bare_command *command = next_command(&bares[0], verb);
    char *bytes = NULL;
    int length = redisFormatCommandArgv(&bytes, command->count, (const char **)command->argument,
                                        command->length);
    for (int i = 0; i < count && length > 0; i++)
        (void)redisAppendFormattedCommand(bares[i].context, bytes, (size_t)length);
    redisFreeCommand(bytes);
}

void bare_write(struct bare *bare)
{
    int done = 0;
    while (done == 0 && redisBufferWrite(bare->context, &done) == REDIS_OK)
        continue; /* a failure stays with the connection too */
}

static const char *check_half(struct bare *bare, enum bare_verb verb, redisReply *reply)
{
    bool granted = true;
    const char *problem =
        verb == BARE_RELEASE ? check_release(bare, reply) : check_acquire(bare, reply, &granted);
    return problem != NULL || granted ? problem : "bare acquire: refused";
}

const char *bare_take(struct bare *bare, enum bare_verb verb)
{
    void *reply = NULL;
    (void)redisGetReply(bare->context, &reply);
    return check_half(bare, verb, reply);
}

void bare_read(struct bare *bare)
{
    (void)redisBufferRead(bare->context); /* see bare_append() */
}

const char *bare_take_read(struct bare *bare, enum bare_verb verb, bool *taken)
{
    void *reply = NULL;
    bool broken = redisGetReplyFromReader(bare->context, &reply) != REDIS_OK;
    *taken = reply != NULL;
    return *taken || broken || bare->context->err != 0 ? check_half(bare, verb, reply) : NULL;
}

static bool script_load(struct bare *bare, const char *text, size_t length, char sha[41],
                        struct result *result)
{
    const struct bare_command load = {3, {"SCRIPT", "LOAD", text}, {6, 4, length}};
    redisReply *reply = command_run(bare, &load);
    bool loaded = reply != NULL && reply->type == REDIS_REPLY_STRING && reply->len == 40;
    if (loaded)
        memcpy(sha, reply->str, 41);
    else
        result_fail(result, "%s", problem_of_reply(bare, "SCRIPT LOAD", reply));
    freeReplyObject(reply);
    return loaded;
}

static bool script_load_file(struct bare *bare, const char *path, char sha[41],
                             struct result *result)
{
    char *text = malloc(SCRIPT_MAX);
    FILE *file = fopen(path, "rb");
    size_t length = 0;
    if (text != NULL && file != NULL)
        length = fread(text, 1, SCRIPT_MAX, file);
    bool loaded = false;
    if (length > 0 && length < SCRIPT_MAX)
        loaded = script_load(bare, text, length, sha, result);
    else
        result_fail(result, "cannot read the script %s", path);
    if (file != NULL)
        fclose(file);
    free(text);
    return loaded;
}

static bool connect_to(struct bare *bare, const struct server *server, enum transport transport,
                       const char *lock, struct result *result)
{
    *bare = (struct bare){0};
    snprintf(bare->key, sizeof bare->key, "%s", lock);
    snprintf(bare->queue_key, sizeof bare->queue_key, "hf:q:{0}%s", bare->key);
    snprintf(bare->fence_key, sizeof bare->fence_key, "hf:f:{0}%s", bare->key);
    snprintf(bare->notes_key, sizeof bare->notes_key, "hf:w:{0}%s", bare->key);
    snprintf(bare->holders_key, sizeof bare->holders_key, "hf:h:{0}%s", bare->key);
    snprintf(bare->value, sizeof bare->value, "%s:%016d@%s", "00112233445566778899aabbccddeeff", 0,
             "bench:12345/12345");
    bare->context = transport == OVER_UNIX ? redisConnectUnix(server->socket_path)
                                           : redisConnect("127.0.0.1", server->port);
    if (bare->context == NULL)
        return result_fail(result, "out of memory");
    if (bare->context->err == 0 && transport == OVER_TLS)
        bare->ssl = bare_tls_start(bare->context, server->authority_path);
    if (bare->context->err == 0)
        return true;
    result_fail(result, "bare connection: %s", bare->context->errstr);
    bare_close(bare);
    return false;
}

/* Both scripts take the same keys, with one server the mark of the slot too, and the value before
 * their other arguments. */
static void command_fill_script(struct bare_command *command, const struct bare *bare,
                                const char *sha, bool alone, const char *const *arguments)
{
    const char *const common[] = {"EVALSHA",
                                  sha,
                                  alone ? "6" : "5",
                                  bare->key,
                                  bare->queue_key,
                                  bare->fence_key,
                                  bare->notes_key,
                                  bare->holders_key,
                                  NULL};
    command_fill(command, common);
    if (alone)
        command_add(command, "hf:m:{0}");
    command_add(command, bare->value);
    while (*arguments != NULL)
        command_add(command, *arguments++);
}

static bool connect_with_scripts(struct bare *bare, const struct server *server,
                                 enum transport transport, const char *lock, struct result *result)
{
    if (!connect_to(bare, server, transport, lock, result))
        return false;
    bare->acquire_reply_type = REDIS_REPLY_INTEGER;
    if (script_load_file(bare, HF_SCRIPTS ".acquire.lua", bare->acquire_sha, result) &&
        script_load_file(bare, HF_SCRIPTS ".release.lua", bare->release_sha, result))
        return true;
    bare_close(bare);
    return false;
}

bool bare_open_same_scripts(struct bare *bare, const struct server *server,
                            enum transport transport, const char *lock, struct result *result)
{
    if (!connect_with_scripts(bare, server, transport, lock, result))
        return false;
    const char *const acquire[] = {TEXT_OF(BENCH_LEASE_MS), NULL};
    const char *const release[] = {NULL};
    command_fill_script(&bare->acquire, bare, bare->acquire_sha, true, acquire);
    command_fill_script(&bare->release, bare, bare->release_sha, true, release);
    return true;
}

/* Without an owner and, since it does not queue, without a ticket. */
bool bare_open_vote(struct bare *bare, const struct server *server, enum transport transport,
                    const char *lock, struct result *result)
{
    if (!connect_with_scripts(bare, server, transport, lock, result))
        return false;
    proposal_advance(bare); /* which has its length from now on */
    const char *const acquire[] = {TEXT_OF(BENCH_LEASE_MS), KEEP_MS, "1", "0", "", "",
                                   bare->proposal,          "0",     NULL};
    const char *const release[] = {"0", KEEP_MS, "", bare->proposal, NULL};
    command_fill_script(&bare->acquire, bare, bare->acquire_sha, false, acquire);
    command_fill_script(&bare->release, bare, bare->release_sha, false, release);
    return true;
}

bool bare_open_canonical(struct bare *bare, const struct server *server, enum transport transport,
                         const char *lock, struct result *result)
{
    if (!connect_to(bare, server, transport, lock, result))
        return false;
    if (!script_load(bare, compare_and_delete, sizeof compare_and_delete - 1, bare->release_sha,
                     result)) {
        bare_close(bare);
        return false;
    }
    const char *const acquire[] = {
        "SET", bare->key, bare->value, "NX", "PX", TEXT_OF(BENCH_LEASE_MS), NULL};
    const char *const release[] = {"EVALSHA", bare->release_sha, "1", bare->key, bare->value, NULL};
    command_fill(&bare->acquire, acquire);
    command_fill(&bare->release, release);
    bare->acquire_reply_type = REDIS_REPLY_STATUS;
    return true;
}

void bare_close(struct bare *bare)
{
    bare_tls_end(bare->ssl);
    bare->ssl = NULL;
    redisFree(bare->context);
    bare->context = NULL;
}
