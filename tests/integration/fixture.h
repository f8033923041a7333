/* SPDX-License-Identifier: MIT */
/* What most programs here share: a server of their own, clients of it, and the verbs that more than
 * one of them needs.
 *
 * A program either has one server for all its tests (start_server, end_server), which is emptied
 * before each, or starts one in each test, by itself. Whichever it is, `server` is the one that is
 * meant. Clients that were opened with open_client() are closed by the teardown of the test.
 *
 * A verb that fails says so in this file's lines, so where a test calls the library directly, with
 * EXPECT, it stays that way.
 */
#ifndef HOLDFAST_TESTS_FIXTURE_H
#define HOLDFAST_TESTS_FIXTURE_H

#include "../lib/redis_server.h"

extern struct redis_server *server;

/* ---- Set-up and teardown --------------------------------------------------------------------- */

/* Of a group, or of a test: one plain server. */
int start_server(void **state);
int end_server(void **state);

/* Of a test: fail unless every client says HF_OK when it is closed. The second ends all processes,
 * the crowd (crowd.h) and servers as well. */
int close_clients(void **state);
int end_everything(void **state);

void empty_server(void); /* its counts start over too */

/* Opens a client of `server` in a variable of static storage, where the teardown finds it; a test
 * that closes it by itself leaves NULL there. */
void open_client(hf_client **client);
void open_client_with(hf_client **client, const hf_client_options *options);
void open_client_at(const char *url, hf_client **client, const hf_client_options *options);

/* Two clients for tests that need no better names. */
extern hf_client *alice;
extern hf_client *bob;
void open_both(void);
int begin_with_both(void **state); /* set-up of a test: the server is emptied, both are opened */

/* ---- Verbs ----------------------------------------------------------------------------------- */

/* The lock is "lock" in all of them. */
hf_hold *acquire_with(hf_client *client, const hf_acquire_options *options);
hf_hold *acquire_for(hf_client *client, int64_t lease_ms); /* not renewed */
void release(hf_hold **hold);
void expect_refused(hf_client *client); /* one try: somebody holds it */
void expect_free(hf_client *client);    /* one try gets it; it is given back */

/* Asserts that a text has a word in it, in whatever case. */
void expect_says(const char *text, const char *word);

const hf_stats *stats_of(hf_client *client); /* valid until the next call */

/* ---- The server ------------------------------------------------------------------------------ */

/* How many connections it has been offered so far. */
long long connections_seen(void);

/* How many keys match a glob-style pattern. */
long long keys_like(const char *pattern);

/* A key that the library keeps beside the lock "lock": its queue 'q', notes 'w', fence 'f' or
 * holders 'h'. Valid until the next call. */
const char *side_key(char kind);

/* How many wait for "lock" in the queue at the server. */
long long queued(void);

/* Asserts that soon nothing is left but fences and marks of slots: no lock, no queue, no notes. */
void expect_only_fences(void);

/* Makes it run a script without an end. The caller frees the context, answered or not. */
redisContext *begin_endless_script(void);

#endif
