/* SPDX-License-Identifier: MIT */
/* A real redis-server of the test's own, in a private folder under TMPDIR or /tmp.
 *
 * It listens on a free TCP port of 127.0.0.1 and on a unix socket in its folder. It dies with the
 * test, by PR_SET_PDEATHSIG, even if the test is killed; its folder is removed by
 * redis_server_end_all(), which belongs into every teardown.
 *
 * Every function here belongs to the test's own thread and fails the test when it cannot do what it
 * says. raw() is the foreign program of the tests: it speaks hiredis over the unix socket, so that
 * what the library did is judged by somebody else's eyes.
 */
#ifndef HOLDFAST_TESTS_REDIS_SERVER_H
#define HOLDFAST_TESTS_REDIS_SERVER_H

#include <hiredis/hiredis.h>

#include "process.h"

/* Files are PEM, and must be there until the server has started. */
struct redis_server_tls {
    const char *certificate; /* NULL: no TLS */
    const char *key;
    const char *authority;           /* whose certificates of clients are good */
    const char *client_certificates; /* "yes", "optional"; NULL: "no" */
    const char *protocols;           /* such as "TLSv1.2"; NULL: the server's default */
};

struct redis_server_options {
    bool ipv6;                   /* listens on ::1 too */
    bool keeps_data;             /* appendonly, fsync always: a restart brings the data back */
    bool may_be_loading;         /* counts as started when it says LOADING */
    const char *password;        /* requirepass */
    struct redis_server_tls tls; /* listens for TLS too, on a port of its own */
    int replica_of;              /* port of its primary on 127.0.0.1; 0: it is one itself */
    const char *const *extra;    /* more arguments, ended by NULL; must outlive the server */
};

struct redis_server {
    struct redis_server_options options;
    pid_t pid; /* 0: not running */
    int port;
    int tls_port; /* 0: none */
    char folder[64];
    char socket[96];
    char url[64];      /* redis://127.0.0.1:PORT */
    char tls_url[64];  /* rediss://localhost:PORT */
    char unix_url[96]; /* unix://SOCKET */
    redisContext *raw;
};

struct redis_server *redis_server_start(const struct redis_server_options *options); /* or NULL */
void redis_server_kill(struct redis_server *server);    /* SIGKILL, and reaped */
void redis_server_restart(struct redis_server *server); /* same addresses; kills it if it runs */
void redis_server_freeze(struct redis_server *server);  /* SIGSTOP; returns when it has stopped */
void redis_server_thaw(struct redis_server *server);
void redis_server_end_all(void);

bool has_ipv6_loopback(void);

/* Runs a command (a hiredis format) and returns the answer as text, valid until the next call:
 * numbers in decimal, "(nil)" for nil, errors as they came, "(no answer: ...)" for none. */
const char *raw(struct redis_server *server, const char *format, ...);
long long raw_number(struct redis_server *server, const char *format, ...);

/* How many scripts the server has been asked to run since it started or CONFIG RESETSTAT. Each try
 * of an acquire is one, which shows that a waiter waits without a guess about time. */
long long scripts_run(struct redis_server *server);

#endif
