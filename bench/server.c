/* SPDX-License-Identifier: MIT
 *
 * Starts and stops the servers that we measure against. Never a server that was already there:
 * its load, its data and its settings would be part of the result.
 *
 * Invariant: whatever happens to us, no server survives us (process.h). Ctrl-C reaches us alone,
 * and we take the server down in order. It has no data worth a clean shutdown: it is killed by its
 * pid, and its folder is removed by us.
 *
 * A port is free when the kernel has just given it to us, but somebody may take it between our
 * close and the server's bind; then the server exits and the next port is tried.
 */
#include "server.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "certificate.h"
#include "process.h"

#define PORT_TRIES       5
#define READY_POLL_MS    5
#define READY_LIMIT_MS   5000
#define EXIT_CANNOT_EXEC 127

static int free_port(void)
{
    int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (descriptor < 0)
        return -1;
    struct sockaddr_in address = {.sin_family = AF_INET};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    int port = -1;
    if (bind(descriptor, (struct sockaddr *)&address, sizeof address) == 0 &&
        getsockname(descriptor, (struct sockaddr *)&address, &length) == 0)
        port = ntohs(address.sin_port);
    close(descriptor);
    return port;
}

/* A unix socket's path is short by law, so a TMPDIR that is too long gives way to /tmp. */
static bool folder_make(struct server *server, struct result *result)
{
    const char *parent = getenv("TMPDIR");
    if (parent == NULL || parent[0] != '/' || strlen(parent) > 32)
        parent = "/tmp";
    snprintf(server->folder, sizeof server->folder, "%s/holdfast-bench-XXXXXX", parent);
    if (mkdtemp(server->folder) == NULL)
        return result_fail(result, "no folder %s: %s", server->folder, strerror(errno));
    snprintf(server->socket_path, sizeof server->socket_path, "%s/redis.sock", server->folder);
    return true;
}

/* The server writes no folders, so one level is all there is. */
static void folder_remove(const struct server *server)
{
    DIR *folder = opendir(server->folder);
    if (folder != NULL) {
        const struct dirent *entry;
        while ((entry = readdir(folder)) != NULL)
            unlinkat(dirfd(folder), entry->d_name, 0);
        closedir(folder);
    }
    rmdir(server->folder);
}

/* For a server without TLS the list of arguments ends before those for TLS. */
static void child_become_server(const struct server *server)
{
    bool tls = server->authority_path[0] != '\0';
    char port[16];
    snprintf(port, sizeof port, "%d", server->port);
    execlp("redis-server", "redis-server", "--bind", "127.0.0.1", "--unixsocket",
           server->socket_path, "--dir", server->folder, "--logfile", "log", "--save", "",
           "--appendonly", "no", "--daemonize", "no", "--port", tls ? "0" : port,
           tls ? "--tls-port" : (char *)NULL, port, "--tls-cert-file", CERTIFICATE_FILE,
           "--tls-key-file", KEY_FILE, "--tls-ca-cert-file", AUTHORITY_FILE, "--tls-auth-clients",
           "no", (char *)NULL);
}

static void child_run(const struct server *server, const cpu_set_t *cpus)
{
    if (sched_setaffinity(0, sizeof *cpus, cpus) != 0)
        _exit(1);
    int null = open("/dev/null", O_RDWR);
    if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0)
        _exit(1);
    child_become_server(server);
    _exit(EXIT_CANNOT_EXEC);
}

static bool answers(const struct server *server)
{
    redisContext *context = redisConnectUnix(server->socket_path);
    redisReply *reply = NULL;
    if (context != NULL && context->err == 0)
        reply = redisCommand(context, "PING");
    bool pong = reply != NULL && reply->type == REDIS_REPLY_STATUS;
    freeReplyObject(reply);
    if (context != NULL)
        redisFree(context);
    return pong;
}

/* Only a server that has bound its TCP port opens its unix socket, so one answer there proves
 * both. */
static bool wait_until_ready(struct server *server, struct result *result)
{
    const struct timespec pause = {.tv_nsec = READY_POLL_MS * 1000000L};
    for (int waited_ms = 0; waited_ms < READY_LIMIT_MS; waited_ms += READY_POLL_MS) {
        int status;
        if (process_ended(server->pid, &status)) {
            server->pid = 0;
            if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_CANNOT_EXEC)
                return result_fail(result, "redis-server cannot be run; is it installed?");
            return result_fail(result, "redis-server ended at start (port %d)", server->port);
        }
        if (answers(server))
            return true;
        nanosleep(&pause, NULL);
    }
    return result_fail(result, "redis-server is silent after %d ms", READY_LIMIT_MS);
}

static void process_stop(struct server *server)
{
    process_kill(server->pid);
    server->pid = 0;
}

static bool process_start(struct server *server, const cpu_set_t *cpus, struct result *result)
{
    server->port = free_port();
    if (server->port < 0)
        return result_fail(result, "no free port: %s", strerror(errno));
    server->pid = process_fork();
    if (server->pid < 0)
        return result_fail(result, "fork: %s", strerror(errno));
    if (server->pid == 0)
        child_run(server, cpus);
    if (wait_until_ready(server, result))
        return true;
    process_stop(server);
    return false;
}

/* In the folder that is there already, which is gone if this fails. */
static bool start_in_folder(struct server *server, const cpu_set_t *cpus, struct result *result)
{
    for (int attempt = 0; attempt < PORT_TRIES; attempt++) {
        if (process_start(server, cpus, result)) {
            result->problem[0] = '\0';
            return true;
        }
    }
    folder_remove(server);
    return false;
}

bool server_start(struct server *server, const cpu_set_t *cpus, struct result *result)
{
    *server = (struct server){0};
    return folder_make(server, result) && start_in_folder(server, cpus, result);
}

bool server_start_with_tls(struct server *server, const cpu_set_t *cpus, struct result *result)
{
    *server = (struct server){0};
    if (!folder_make(server, result))
        return false;
    snprintf(server->authority_path, sizeof server->authority_path, "%s/%s", server->folder,
             AUTHORITY_FILE);
    if (certificates_make(server->folder, result))
        return start_in_folder(server, cpus, result);
    folder_remove(server);
    return false;
}

void server_stop(struct server *server)
{
    process_stop(server);
    folder_remove(server);
}
