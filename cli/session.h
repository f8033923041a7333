/* SPDX-License-Identifier: MIT */
/* Which server, and how: options that most verbs have, the environment and the configuration file
 * become a client. */
#ifndef CLI_SESSION_H
#define CLI_SESSION_H

#include <holdfast.h>

#include "options.h"

/* The beginning of every verb's options. */
struct session_options {
    struct option_list urls;
    bool local;
    bool json;
    bool quiet;
    bool verbose;
    const char *config;
    const char *prefix;
    const char *side_prefix;
    const char *password_file;
    const char *password_env;
    const char *tls_ca;
    const char *tls_certificate;
    const char *tls_key;
    const char *tls_name;
    bool tls_insecure;
    int64_t timeout_ms;     /* of a call */
    bool strict;            /* refuse servers that are not safe */
    int64_t max_lease_ms;   /* of all who share locks on several servers; 0: not given */
    bool durable;           /* these servers never forget */
    bool password_withheld; /* not an option: there is one, but it is not for these servers */
    /* Not options, but what a verb wants. */
    bool own_loop; /* a client without threads: the verb has a loop */
    bool silent;   /* the client's log is not shown */
};

extern const struct option_table session_table;

enum {
    SESSION_TTL_MS = 30000, /* the lease, unless told otherwise */
    SESSION_ANY_LEASE = -1,
    SESSION_URL_MAX = 4096,
    SESSION_REPLICAS_MAX = 1000 /* that can be asked for */
};

struct session {
    hf_client *client;
    bool local;                /* this machine only */
    bool password_withheld;    /* for the message if the server wants one */
    char url[SESSION_URL_MAX]; /* or several, without passwords: for people */
};

/* Fills in what the environment and the configuration file say and the command line does not.
 * Returns 0 or the exit code; it has been said why. */
int session_complete(struct session_options *options);

/* The same, and opens the client, starting the local server if that is asked for. longest_ms: the
 * longest lease that will be wanted; 0: the usual; SESSION_ANY_LEASE: as long as it may be. */
int session_open(struct session_options *options, int64_t longest_ms, struct session *session);
/* Opens a client for a URL, whatever the server is like, and hands its log to a function; for those
 * who judge by themselves. The options must be complete. */
int session_open_unchecked(const struct session_options *options, const char *url,
                           hf_log_function *log, void *arg, struct session *session);
void session_close(struct session *session);

/* Says what a call came to, with what there is to do about it, and returns the exit code. */
int session_fail(const struct session *session, const char *what, const hf_error *error);

/* The lock's name is the first of the words, and there may be a token behind it. 64: it is missing,
 * or there are more; it has been said. */
int session_take_name(int count, char **words, bool token, const char **name);

#endif
