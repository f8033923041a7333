/* SPDX-License-Identifier: MIT */
/* See server.h. */
#include "server.h"

#include "../lib/redis_server.h"

static struct redis_server *server;

const char *server_start(void)
{
    server = redis_server_start(NULL);
    return server->unix_url;
}

const char *server_ask(const char *command)
{
    return raw(server, command);
}

void server_freeze(void)
{
    redis_server_freeze(server);
}

void server_thaw(void)
{
    redis_server_thaw(server);
}

void server_end(void)
{
    redis_server_end_all();
}
