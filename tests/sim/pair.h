/* SPDX-License-Identifier: MIT */
/* A real server and a model of one that are told the same and must answer the same. Everything here
 * fails the cmocka test at the first difference, with what led to it. */
#ifndef HF_SIM_PAIR_H
#define HF_SIM_PAIR_H

#include "alike.h"
#include "redis_server.h"
#include "server.h"
#include "stream.h"

enum { MAIN = 0, LISTENER = 1, CONNECTIONS = 2, COUNTERS_MAX = 112, LAST = 12 };

typedef struct counter {
    char name[32];
    int64_t count;
} counter;

typedef struct two_servers {
    struct redis_server *real;
    redisContext *real_links[CONNECTIONS];
    sim_server *model;
    redisReader *model_readers[CONNECTIONS];
    sim_stream stream;
    uint64_t seed;
    bool is_replica;
    int64_t slack_ms; /* what the command at hand may be off */
    int64_t compared;
    int64_t expired; /* keys seen to vanish in batches */
    int64_t restarts;
    counter counters[COUNTERS_MAX];
    size_t counter_count;
    char last[LAST][512]; /* what led to a difference */
    size_t last_count;
} two_servers;

void pair_connect(two_servers *pair);
void pair_disconnect(two_servers *pair);
void pair_print(two_servers *pair); /* how much of what was compared */

/* Runs a command on both and compares. Returns whether the real reply began with `text`. */
bool pair_run(two_servers *pair, const hf__slice *words, int count, const char *text);
bool pair_run_words(two_servers *pair, const char *a, const char *b, const char *c);
void pair_run_range(two_servers *pair, const char *command, const char *key);
/* The same on the second connection, which may be subscribed. */
void pair_listen(two_servers *pair, const char *command, const char *argument);

#endif
