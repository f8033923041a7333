/* SPDX-License-Identifier: MIT
 *
 * What the server says about itself, over a connection that takes no part in what is measured.
 */
#ifndef BENCH_INFO_H
#define BENCH_INFO_H

#include <hiredis/hiredis.h>
#include <stdbool.h>

#include "server.h"

bool info_open(redisContext **context, const struct server *server, struct result *result);
/* A command whose answer does not matter, as long as it is not an error. */
bool info_order(redisContext *context, const char *command, struct result *result);
/* Calls of a command from outside of scripts, and the time that they took in the server, since
 * CONFIG RESETSTAT. Both are 0 if there was none. */
bool info_command(redisContext *context, const char *command, double *calls, double *total_us,
                  struct result *result);
/* All commands that clients sent, since CONFIG RESETSTAT, but for those of such connections. */
bool info_sent(redisContext *context, double *commands, struct result *result);
/* Memory that the server has allocated. */
bool info_memory(redisContext *context, double *bytes, struct result *result);
/* The server process, as it names itself. */
bool info_run_id(redisContext *context, char run_id[41], struct result *result);
/* The longest time in the slow log; 0: it is empty. */
bool info_slowest_us(redisContext *context, double *slowest_us, struct result *result);

#endif
