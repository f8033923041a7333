/* SPDX-License-Identifier: MIT */
/* A model of a Redis server for the simulator: a keyspace, a script engine (Lua 5.1, running the
 * very files of src/lua) and the protocol, bytes in and bytes out. It has no clock, no socket and
 * no thread: the world sets its time and carries its bytes, so a run replays from its seed. The
 * model is kept honest by test_model.c, which compares it with a real redis-server. */
#ifndef HF_SIM_SERVER_H
#define HF_SIM_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "resp/encode.h" /* hf__slice */

typedef struct sim_server sim_server;
typedef struct sim_image sim_image; /* a copy of a keyspace: for snapshots and replicas */

sim_server *sim_server_new(void);
void sim_server_free(sim_server *server);

/* The node's own wall clock, which may jump. Keys expire by it. Time stands still within a command
 * and a script, as it does in Redis. */
void sim_server_set_time(sim_server *server, int64_t wall_us);

/* ---- Connections: small numbers from 0 to SIM_CONNECTIONS_MAX - 1, chosen by the world ---- */

enum { SIM_CONNECTIONS_MAX = 1024 }; /* a server that stands still gets many, and serves none */

void sim_server_connect(sim_server *server, int connection);
void sim_server_disconnect(sim_server *server, int connection); /* forgets what it said and heard */
/* Takes bytes as they arrive, in pieces of any size; runs every command that is complete. */
void sim_server_receive(sim_server *server, int connection, const char *bytes, size_t count);
/* What the server has to say there (replies, and messages of subscriptions); valid until the next
 * call. The world takes it off when it has put it on the wire. */
size_t sim_server_output(const sim_server *server, int connection, const char **bytes);
void sim_server_taken(sim_server *server, int connection, size_t count);

/* What its user may not do: use any channel (so that he can neither publish nor subscribe), or call
 * any of PUBLISH, SUBSCRIBE and PUBSUB. From the next command on, until it is connected anew. */
typedef enum sim_denial { SIM_ALLOWED, SIM_NO_CHANNELS, SIM_NO_PUBSUB } sim_denial;
void sim_server_deny(sim_server *server, int connection, sim_denial what);
/* Keys that its user may not access: a script that names one is refused as a whole. NULL: none. The
 * names are kept by the caller. Until it is connected anew, too. */
enum { SIM_FORBIDDEN_MAX = 16 };
void sim_server_forbid(sim_server *server, int connection,
                       const char *const keys[SIM_FORBIDDEN_MAX]);

/* Its client is of 0.7, where fences were kept by name: scripts do not see the mark of the slot,
 * which it would not have named. Until it is connected anew. */
void sim_server_set_elder(sim_server *server, int connection);

/* What INFO does not tell from now on: GAP_... of gaps.h. Whoever runs a command without a
 * connection is told all. */
void sim_server_hide(sim_server *server, unsigned gaps);
bool sim_server_hides(const sim_server *server, unsigned gaps); /* any of these */
/* Whether the script that has just run came from somebody who was not told the run_id. */
bool sim_server_ran_unnamed(const sim_server *server);

/* ---- What happens to servers ---- */

sim_image *sim_server_copy(const sim_server *server);
void sim_image_free(sim_image *image);
/* The process ends and another one starts, with a new run_id, an empty script cache, no
 * connections, and the data of `image` (NULL: none). */
void sim_server_restart(sim_server *server, const sim_image *image);
/* A replica that has everything becomes the server, with a run_id of its own. Connections end,
 * except those that are subscribed: they stay with the old process, which is a replica now. */
void sim_server_fail_over(sim_server *server);
void sim_server_flush_scripts(sim_server *server);
void sim_server_set_role(sim_server *server, bool replica);
/* Every script call is answered with this error until it is NULL: "LOADING ...", "BUSY ...". */
void sim_server_set_trouble(sim_server *server, const char *error);

/* As maxmemory with noeviction: while more bytes are in use, whatever may need more is refused. 0:
 * no limit. */
void sim_server_limit_memory(sim_server *server, int64_t bytes);
int64_t sim_server_memory(const sim_server *server); /* in use, for keys and what is in them */
/* Whether more was in use when the script began that has just run. */
bool sim_server_ran_full(const sim_server *server);

/* ---- Looking in, and acting as somebody else ---- */

/* Runs one command as a foreign client would; returns the reply as text for assertions: numbers in
 * decimal, "(nil)", bulk strings as they are, errors with their '-'. Valid until the next call. */
const char *sim_server_run(sim_server *server, int count, const char *const *words);
/* Calls `see` for each key that has not expired. remaining_ms is -1 without expiry. */
typedef void sim_see_key(void *arg, const char *key, size_t length, const char *type,
                         int64_t remaining_ms);
void sim_server_keys(sim_server *server, sim_see_key *see, void *arg);
/* The value of a string key; NULL: none. Valid until the next call. */
const char *sim_server_get(sim_server *server, const char *key, size_t length);
/* A field of a hash; NULL: none. Valid until the next call. */
const char *sim_server_field(sim_server *server, const char *key, size_t length, const char *field);
/* The score of a member of a sorted set; false: there is none. */
bool sim_server_score(sim_server *server, const char *key, size_t length, const char *member,
                      double *score);
/* Calls `see` for each member of a sorted set. */
typedef void sim_see_member(void *arg, const char *member, double score);
void sim_server_members(sim_server *server, const char *key, size_t length, sim_see_member *see,
                        void *arg);
void sim_server_evict(sim_server *server, const char *key, size_t length);

/* Mutants: before a script is compiled, `change` may return another body (static, or kept by the
 * caller) for it; the server still knows it by the SHA-1 of the original. NULL: no change. */
typedef const char *sim_change_script(const char *name, const char *body);
void sim_server_set_change(sim_server *server, sim_change_script *change);

/* How many are subscribed to a channel here, as PUBSUB NUMSUB counts; and whether a connection is
 * to anything. */
int sim_server_subscribers(const sim_server *server, const char *channel);
bool sim_server_is_subscribed(const sim_server *server, int connection);

/* Called for everything that is published, and after each script. */
typedef struct sim_watch {
    void (*published)(void *arg, const char *channel, size_t channel_length, const char *message,
                      size_t length);
    void (*ran)(void *arg, const char *sha1, const hf__slice *arguments, int count);
    void *arg;
} sim_watch;
void sim_server_set_watch(sim_server *server, const sim_watch *watch); /* kept by the caller */

/* Script and command counts since the start, for the statistics of a run. */
int64_t sim_server_commands(const sim_server *server);

#endif
