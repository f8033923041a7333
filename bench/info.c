/* SPDX-License-Identifier: MIT */
/* See info.h. */
#include "info.h"

#include <stdio.h>
#include <string.h>

bool info_open(redisContext **context, const struct server *server, struct result *result)
{
    *context = redisConnectUnix(server->socket_path);
    if (*context != NULL && (*context)->err == 0)
        return true;
    redisFree(*context);
    *context = NULL;
    return result_fail(result, "no connection for INFO");
}

static redisReply *ask(redisContext *context, const char *command, struct result *result)
{
    redisReply *reply = redisCommand(context, command);
    if (reply != NULL && reply->type != REDIS_REPLY_ERROR)
        return reply;
    result_fail(result, "%s: %s", command, reply != NULL ? reply->str : context->errstr);
    freeReplyObject(reply);
    return NULL;
}

bool info_order(redisContext *context, const char *command, struct result *result)
{
    redisReply *reply = ask(context, command, result);
    freeReplyObject(reply);
    return reply != NULL;
}

bool info_command(redisContext *context, const char *command, double *calls, double *total_us,
                  struct result *result)
{
    char start[64];
    redisReply *reply = ask(context, "INFO commandstats", result);
    if (reply == NULL)
        return false;
    snprintf(start, sizeof start, "cmdstat_%s:", command);
    *calls = *total_us = 0;
    const char *line = strstr(reply->str, start);
    bool understood =
        line == NULL || sscanf(line + strlen(start), "calls=%lf,usec=%lf", calls, total_us) == 2;
    freeReplyObject(reply);
    return understood || result_fail(result, "INFO commandstats is not as expected");
}

bool info_slowest_us(redisContext *context, double *slowest_us, struct result *result)
{
    redisReply *reply = ask(context, "SLOWLOG GET 128", result);
    if (reply == NULL)
        return false;
    *slowest_us = 0;
    for (size_t i = 0; reply->type == REDIS_REPLY_ARRAY && i < reply->elements; i++) {
        const redisReply *entry = reply->element[i];
        if (entry->elements > 2 && (double)entry->element[2]->integer > *slowest_us)
            *slowest_us = (double)entry->element[2]->integer;
    }
    freeReplyObject(reply);
    return true;
}
