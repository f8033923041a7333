/* SPDX-License-Identifier: MIT */
/* See redis_server.h. Two things are less simple than they look.
 *
 * A free port: one is found by binding port 0, but it is free again until redis-server binds it, so
 * another program may come first. redis-server then exits, and we try the next one. That a server
 * is up is asked over its unix socket, which nobody else can own.
 *
 * A frozen or busy server: raw() has a time limit, and a connection that missed an answer is
 * dropped, so that no later command reads the answer of an earlier one.
 */
#include "redis_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SERVERS_MAX = 12, ARGUMENTS_MAX = 48, PORT_TRIES = 20, START_BOUND_MS = 10000 };

static struct redis_server servers[SERVERS_MAX];
static size_t server_count;

/* ---- Folder and port ------------------------------------------------------------------------- */

static void folder_make(struct redis_server *server)
{
    const char *parent = getenv("TMPDIR");
    if (parent == NULL || strlen(parent) > 32) /* a unix socket's path has room for 107 bytes */
        parent = "/tmp";
    char folder[64]; /* printed from here, since a struct must not be printed into itself */
    (void)snprintf(folder, sizeof(folder), "%s/holdfast-XXXXXX", parent);
    assert_non_null(mkdtemp(folder));
    (void)snprintf(server->folder, sizeof(server->folder), "%s", folder);
    (void)snprintf(server->socket, sizeof(server->socket), "%s/redis.sock", folder);
    (void)snprintf(server->unix_url, sizeof(server->unix_url), "unix://%s/redis.sock", folder);
}

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)status;
    (void)kind;
    (void)place;
    return remove(path);
}

static void folder_remove(const struct redis_server *server)
{
    (void)nftw(server->folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

static int free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(descriptor >= 0);
    assert_int_equal(bind(descriptor, (struct sockaddr *)&address, size), 0);
    assert_int_equal(getsockname(descriptor, (struct sockaddr *)&address, &size), 0);
    (void)close(descriptor);
    return ntohs(address.sin_port);
}

bool has_ipv6_loopback(void)
{
    struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int descriptor = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (descriptor < 0)
        return false;
    bool bound = bind(descriptor, (struct sockaddr *)&address, sizeof(address)) == 0;
    (void)close(descriptor);
    return bound;
}

/* ---- The server's process -------------------------------------------------------------------- */

struct arguments {
    const char *list[ARGUMENTS_MAX];
    size_t count;
};

static void add(struct arguments *arguments, const char *name, const char *value)
{
    assert_true(arguments->count + 3 <= ARGUMENTS_MAX); /* two, and the NULL at the end */
    arguments->list[arguments->count++] = name;
    arguments->list[arguments->count++] = value;
}

static void add_tls(struct arguments *arguments, const struct redis_server_tls *tls,
                    const char *port)
{
    if (tls->certificate == NULL)
        return;
    add(arguments, "--tls-port", port);
    add(arguments, "--tls-cert-file", tls->certificate);
    add(arguments, "--tls-key-file", tls->key);
    add(arguments, "--tls-ca-cert-file", tls->authority);
    add(arguments, "--tls-auth-clients",
        tls->client_certificates != NULL ? tls->client_certificates : "no");
    if (tls->protocols != NULL)
        add(arguments, "--tls-protocols", tls->protocols);
}

static void run_server(const struct redis_server *server)
{
    const struct redis_server_options *options = &server->options;
    struct arguments arguments = {.list = {"redis-server"}, .count = 1};
    char port[8];
    char tls_port[8];
    char primary[20];
    (void)snprintf(port, sizeof(port), "%d", server->port);
    (void)snprintf(primary, sizeof(primary), "127.0.0.1 %d", options->replica_of);
    (void)snprintf(tls_port, sizeof(tls_port), "%d", server->tls_port);
    add(&arguments, "--port", port);
    add(&arguments, "--bind", options->ipv6 ? "127.0.0.1 ::1" : "127.0.0.1");
    add(&arguments, "--unixsocket", server->socket);
    add(&arguments, "--dir", server->folder);
    add(&arguments, "--logfile", "log");
    add(&arguments, "--save", "");
    add(&arguments, "--appendonly", options->keeps_data ? "yes" : "no");
    add(&arguments, "--appendfsync", "always");
    if (options->password != NULL)
        add(&arguments, "--requirepass", options->password);
    if (options->replica_of != 0)
        add(&arguments, "--replicaof", primary);
    add_tls(&arguments, &options->tls, tls_port);
    for (size_t i = 0; options->extra != NULL && options->extra[i] != NULL; i += 2)
        add(&arguments, options->extra[i], options->extra[i + 1]);
    arguments.list[arguments.count] = NULL;
    (void)execvp("redis-server", (char *const *)arguments.list);
}

static bool answers(struct redis_server *server)
{
    const char *answer = raw(server, "PING");
    return strcmp(answer, "PONG") == 0 ||
           (server->options.may_be_loading && strncmp(answer, "LOADING", 7) == 0);
}

/* One launch on the port that was chosen; false when the server exited instead of answering. */
static bool launch(struct redis_server *server)
{
    int status;
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0) {
        die_with_parent(parent);
        run_server(server);
        _exit(127);
    }
    assert_true(pid > 0);
    server->pid = pid;
    int64_t give_up = now_ms() + START_BOUND_MS;
    while (!answers(server)) {
        if (waitpid(pid, &status, WNOHANG) == pid) {
            server->pid = 0;
            return false;
        }
        if (now_ms() > give_up)
            fail_msg("redis-server in %s does not answer", server->folder);
        sleep_ms(2);
    }
    return true;
}

static void show_log(const struct redis_server *server)
{
    char path[96];
    char line[256];
    (void)snprintf(path, sizeof(path), "%s/log", server->folder);
    FILE *log = fopen(path, "re");
    while (log != NULL && fgets(line, sizeof(line), log) != NULL)
        print_error("redis-server: %s", line);
    if (log != NULL)
        (void)fclose(log);
}

struct redis_server *redis_server_start(const struct redis_server_options *options)
{
    assert_true(server_count < SERVERS_MAX);
    struct redis_server *server = &servers[server_count++];
    *server = (struct redis_server){0};
    if (options != NULL)
        server->options = *options;
    folder_make(server);
    for (int i = 0; i < PORT_TRIES; i++) {
        server->port = free_port();
        server->tls_port = server->options.tls.certificate != NULL ? free_port() : 0;
        (void)snprintf(server->url, sizeof(server->url), "redis://127.0.0.1:%d", server->port);
        (void)snprintf(server->tls_url, sizeof(server->tls_url), "rediss://localhost:%d",
                       server->tls_port);
        if (launch(server))
            return server;
    }
    show_log(server);
    fail_msg("redis-server does not start (is it installed?)");
    return NULL;
}

void redis_server_kill(struct redis_server *server)
{
    if (server->raw != NULL)
        redisFree(server->raw);
    server->raw = NULL;
    if (server->pid == 0)
        return;
    int status;
    (void)kill(server->pid, SIGKILL);
    (void)waitpid(server->pid, &status, 0);
    server->pid = 0;
}

void redis_server_restart(struct redis_server *server)
{
    redis_server_kill(server);
    /* The port may be lent to an outgoing connection of another program for a moment. */
    for (int i = 0; i < PORT_TRIES; i++) {
        if (launch(server))
            return;
        sleep_ms(50);
    }
    show_log(server);
    fail_msg("redis-server does not start again on port %d", server->port);
}

void redis_server_freeze(struct redis_server *server)
{
    int status = 0;
    assert_int_equal(kill(server->pid, SIGSTOP), 0);
    assert_int_equal(waitpid(server->pid, &status, WUNTRACED), server->pid);
    if (!WIFSTOPPED(status))
        server->pid = 0;
    assert_true(WIFSTOPPED(status));
}

void redis_server_thaw(struct redis_server *server)
{
    assert_int_equal(kill(server->pid, SIGCONT), 0);
}

void redis_server_end_all(void)
{
    for (size_t i = 0; i < server_count; i++) {
        redis_server_kill(&servers[i]);
        folder_remove(&servers[i]);
    }
    server_count = 0;
}

/* ---- Raw commands ---------------------------------------------------------------------------- */

static char answer_text[64 * 1024];

static void drop_raw(struct redis_server *server)
{
    (void)snprintf(answer_text, sizeof(answer_text), "(no answer: %s)",
                   server->raw != NULL ? server->raw->errstr : "no connection");
    if (server->raw != NULL)
        redisFree(server->raw);
    server->raw = NULL;
}

static bool connect_raw(struct redis_server *server)
{
    const struct timeval limit = {.tv_sec = 2};
    if (server->raw != NULL)
        return true;
    server->raw = redisConnectUnixWithTimeout(server->socket, limit);
    if (server->raw == NULL || server->raw->err != 0)
        return false;
    (void)fcntl(server->raw->fd, F_SETFD, FD_CLOEXEC);
    (void)redisSetTimeout(server->raw, limit);
    if (server->options.password == NULL)
        return true;
    redisReply *reply = redisCommand(server->raw, "AUTH %s", server->options.password);
    bool authenticated = reply != NULL && reply->type == REDIS_REPLY_STATUS;
    freeReplyObject(reply);
    return authenticated;
}

static void describe(const redisReply *reply)
{
    switch (reply->type) {
    case REDIS_REPLY_INTEGER:
        (void)snprintf(answer_text, sizeof(answer_text), "%lld", reply->integer);
        break;
    case REDIS_REPLY_NIL:
        (void)snprintf(answer_text, sizeof(answer_text), "(nil)");
        break;
    case REDIS_REPLY_ARRAY:
        (void)snprintf(answer_text, sizeof(answer_text), "(array of %zu)", reply->elements);
        break;
    default: /* status, error and string */
        (void)snprintf(answer_text, sizeof(answer_text), "%.*s", (int)reply->len, reply->str);
    }
}

static const char *raw_arguments(struct redis_server *server, const char *format, va_list arguments)
{
    redisReply *reply = connect_raw(server) ? redisvCommand(server->raw, format, arguments) : NULL;
    if (reply == NULL) {
        drop_raw(server);
        return answer_text;
    }
    describe(reply);
    freeReplyObject(reply);
    return answer_text;
}

const char *raw(struct redis_server *server, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const char *text = raw_arguments(server, format, arguments);
    va_end(arguments);
    return text;
}

long long raw_number(struct redis_server *server, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const char *text = raw_arguments(server, format, arguments);
    va_end(arguments);
    char *end;
    long long number = strtoll(text, &end, 10);
    if (end == text || *end != '\0')
        fail_msg("%s: not a number: %s", format, text);
    return number;
}

static long long calls_of(const char *commandstats, const char *field)
{
    const char *found = strstr(commandstats, field);
    return found != NULL ? strtoll(found + strlen(field), NULL, 10) : 0;
}

long long scripts_run(struct redis_server *server)
{
    const char *commandstats = raw(server, "INFO commandstats");
    return calls_of(commandstats, "cmdstat_evalsha:calls=") +
           calls_of(commandstats, "cmdstat_eval:calls=");
}
