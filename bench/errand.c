/* SPDX-License-Identifier: MIT
 *
 * The baselines of ids and stock: as cheap as they can honestly be, with all arguments at hand. A
 * step with a script counts its request up in place, for a second order by the same request would
 * not be one.
 */
#include "errand.h"

#include <stdio.h>
#include <string.h>

bool errand_open(struct errand *errand, const struct server *server, enum transport transport,
                 struct result *result)
{
    *errand = (struct errand){.depth = 1, .request = "bare:00000000000000"};
    errand->context = transport == OVER_UNIX ? redisConnectUnix(server->socket_path)
                                             : redisConnect("127.0.0.1", server->port);
    if (errand->context != NULL && errand->context->err == 0)
        return true;
    result_fail(result, "cannot connect");
    errand_close(errand);
    return false;
}

void errand_close(struct errand *errand)
{
    if (errand->context != NULL)
        redisFree(errand->context);
}

bool errand_load(struct errand *errand, const char *script, struct result *result)
{
    redisReply *reply = redisCommand(errand->context, "SCRIPT LOAD %s", script);
    bool loaded = reply != NULL && reply->type == REDIS_REPLY_STRING;
    if (loaded)
        snprintf(errand->sha1, sizeof errand->sha1, "%s", reply->str);
    else
        result_fail(result, "SCRIPT LOAD: %s", reply != NULL ? reply->str : "no reply");
    freeReplyObject(reply);
    return loaded;
}

void errand_fill(struct errand *errand, const char *const *arguments)
{
    for (errand->count = 0; arguments[errand->count] != NULL; errand->count++)
        errand->argument[errand->count] = arguments[errand->count];
}

static void request_advance(struct errand *errand)
{
    char *digit = errand->request + strlen(errand->request);
    while (*--digit == '9')
        *digit = '0';
    ++*digit;
}

static const char *check(struct errand *errand, redisReply *reply)
{
    const char *problem = NULL;
    if (reply == NULL || reply->type != REDIS_REPLY_INTEGER || reply->integer <= 0) {
        snprintf(errand->problem, sizeof errand->problem, "bare: %s",
                 reply != NULL && reply->str != NULL ? reply->str : "no good answer");
        problem = errand->problem;
    }
    freeReplyObject(reply);
    return problem;
}

const char *errand_step(void *arg)
{
    struct errand *errand = arg;
    const char *problem = NULL;
    request_advance(errand);
    for (int i = 0; i < errand->depth; i++)
        redisAppendCommandArgv(errand->context, errand->count, (const char **)errand->argument,
                               NULL);
    for (int i = 0; i < errand->depth && problem == NULL; i++) {
        redisReply *reply = NULL;
        redisGetReply(errand->context, (void **)&reply);
        problem = check(errand, reply);
    }
    return problem;
}
