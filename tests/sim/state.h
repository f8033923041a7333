/* SPDX-License-Identifier: MIT */
/* The inside of a model server, for the files that make it up. */
#ifndef HF_SIM_STATE_H
#define HF_SIM_STATE_H

#include "keyspace.h"
#include "reply.h"
#include "script.h"
#include "server.h"

enum { SIM_NO_CONNECTION = -1, SIM_WORDS_MAX = 1024 * 1024 };

typedef struct sim_connection {
    bool open;
    bool broken; /* it spoke no RESP: whatever it says from now on is not heard */
    int64_t id;
    sim_bytes name;
    int subscriptions;
    sim_denial denied;
    const char *forbidden[SIM_FORBIDDEN_MAX];
    bool elder;   /* its client does not name the mark of a slot */
    bool unnamed; /* it has asked who the server is, and was not told the run_id */
    uint64_t run; /* the process that it talks to: after a failover, one that is a replica now */
    sim_buffer in;
    sim_buffer out;
} sim_connection;

typedef struct sim_subscription {
    int connection;
    sim_bytes channel;
} sim_subscription;

typedef struct sim_script {
    char sha1[41];
    sim_bytes body;
    const sim_function *function; /* NULL: to be compiled, because what changes it was changed */
} sim_script;

struct sim_server {
    sim_keyspace keys;
    int64_t wall_us;
    int64_t started_us;
    uint64_t number; /* of the server, and of its process: the run_id is made of them */
    uint64_t run;
    unsigned short random[3]; /* of scripts */
    bool replica;
    unsigned hides;    /* GAP_... */
    bool unnamed_call; /* the last script came over a connection that was not told the run_id */
    sim_bytes trouble;
    int64_t memory_limit; /* 0: none */
    bool full_call;       /* more was in use when the last script began */
    sim_change_script *change;
    const sim_watch *watch;
    sim_connection *connections[SIM_CONNECTIONS_MAX];
    int64_t last_connection_id;
    sim_subscription *subscriptions; /* oldest first */
    size_t subscription_count;
    size_t subscription_capacity;
    sim_script *scripts;
    size_t script_count;
    size_t script_capacity;
    hf__slice *words; /* of the command that is being read */
    size_t word_capacity;
    sim_buffer reply; /* of a command that no connection asked for */
    sim_buffer shown;
    int64_t commands;
};

struct sim_image {
    sim_keyspace keys;
};

/* ---- Commands ---- */

typedef struct sim_call {
    sim_server *server;
    sim_keyspace *keys;
    int connection;     /* or SIM_NO_CONNECTION */
    bool *script_wrote; /* NULL: not from a script */
    const hf__slice *words;
    int count;
    sim_buffer *out;
} sim_call;

void sim_call_run(sim_call *call);
bool sim_server_is_full(const sim_server *server);

typedef void sim_command_run(sim_call *call);

enum {
    SIM_WRITES = 1,
    SIM_NO_SCRIPT = 2,
    SIM_WHILE_SUBSCRIBED = 4,
    SIM_CHANNELS = 8,
    SIM_GROWS = 16 /* writes, and may need memory */
};

typedef struct sim_command {
    const char *name;
    int arity; /* with the name; negative: at least so many */
    int flags;
    sim_command_run *run;
} sim_command;

/* Commands with parts, as SCRIPT LOAD: finds the part and runs it. */
void sim_call_part(sim_call *call, const sim_command *parts, size_t count);

/* The key of a word, if it has the type; `*key` is NULL when there is none. false: it has another
 * type, and that was answered. */
bool sim_call_key(sim_call *call, int word, sim_type type, sim_key **key);
sim_key *sim_call_make_key(sim_call *call, int word, sim_type type, sim_key *key);
bool sim_call_integer(sim_call *call, int word, int64_t *number); /* false: answered */
void sim_call_drop_if_empty(sim_call *call, sim_key *key);
/* HDEL and ZREM: removes the items named from word 2 on, and answers how many there were. */
void sim_call_remove_items(sim_call *call, sim_type type);

typedef struct sim_range {
    size_t first;
    size_t count;
} sim_range;

/* Ranks as in LRANGE: from 0, or from the end if negative, both ends belong to it. */
sim_range sim_range_of_ranks(const sim_key *key, int64_t first, int64_t last);

/* ---- Scripts and subscriptions of a server ---- */

void sim_scripts_clear(sim_server *server);
void sim_scripts_changed(sim_server *server); /* to be compiled again when they are run */
void sim_subscriptions_end(sim_server *server, int connection);
/* Of the process that is the server now. */
int sim_subscriptions_here(const sim_server *server, hf__slice channel);

/* What the one who calls may not do. */
sim_denial sim_call_denied(const sim_call *call);

/* Each of these is in the table of commands.c. */
/* clang-format off */
#define SIM_COMMANDS(X)                                                                       \
    X(append) X(auth) X(client) X(config) X(dbsize) X(del) X(echo) X(eval) X(evalsha)         \
    X(exists) X(expire) X(flushall) X(get) X(hdel) X(hexists) X(hget) X(hgetall) X(hincrby)   \
    X(hkeys) X(hlen) X(hmget) X(hscan) X(hset) X(hvals) X(incr) X(incrby) X(info) X(llen) X(lpop) X(lpush) X(lrange)     \
    X(lrem) X(mget) X(persist) X(pexpire) X(pexpireat) X(ping) X(pttl) X(publish) X(pubsub) X(rename) X(rpop)   \
    X(rpush) X(scan) X(script) X(select) X(set) X(strlen) X(subscribe) X(time) X(ttl) X(type) \
    X(unsubscribe) X(zadd) X(zcard) X(zcount) X(zpopmin) X(zrange) X(zrangebyscore) X(zrank)  \
    X(zrem) X(zremrangebyrank) X(zremrangebyscore) X(zrevrange)          \
    X(zrevrangebyscore) X(zscore)
/* clang-format on */
#define SIM_DECLARE(name) sim_command_run sim_run_##name;
SIM_COMMANDS(SIM_DECLARE)

#endif
