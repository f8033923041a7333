/* SPDX-License-Identifier: MIT
 *
 * A private redis-server for one workload: TCP on a free port of the loopback interface and a unix
 * socket in a folder of its own. The port is for TLS if that is asked for.
 */
#ifndef BENCH_SERVER_H
#define BENCH_SERVER_H

#include <sched.h>
#include <stdbool.h>
#include <sys/types.h>

#include "report.h"

struct server {
    pid_t pid;
    int port;
    char folder[64];
    char socket_path[80];
    char authority_path[80]; /* of the certificate to trust; empty: without TLS */
};

/* Starts a server whose threads all run on `cpus`, and returns when it answers. On failure nothing
 * is left behind. */
bool server_start(struct server *server, const cpu_set_t *cpus, struct result *result);
bool server_start_with_tls(struct server *server, const cpu_set_t *cpus, struct result *result);
void server_stop(struct server *server);

#endif
