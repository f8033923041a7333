/* SPDX-License-Identifier: MIT */
/* Inside the node double: its keys, and the replies that its commands and scripts make. */
#ifndef HF_TESTS_NODE_STORE_H
#define HF_TESTS_NODE_STORE_H

#include "node.h"
#include "resp/encode.h"

/* Anything unexpected stops the test at once. */
void node_expect(bool condition, const char *what);

/* ---- Keys ---- */

node_key *store_find(struct node *node, hf__slice name);
node_key *store_make(struct node *node, hf__slice name, node_kind kind); /* or finds it */
void store_remove(struct node *node, node_key *key);                     /* NULL is fine */
void store_set(struct node *node, hf__slice name, hf__slice value, int64_t expires_ms);
node_member *store_member(node_key *key, hf__slice name); /* NULL: none; also for no key */
node_member *store_add(node_key *key, hf__slice name);    /* or finds it */
void store_drop(struct node *node, node_key *key, node_member *member); /* the last: the key too */
void store_write(node_text *place, hf__slice text);
int64_t store_ttl_ms(const struct node *node, const node_key *key); /* -2: no key, -1: never */
hf__slice store_slice(const node_text *text);
bool slice_is(hf__slice a, hf__slice b);

/* ---- Replies ---- */

void say(hf__buffer *out, const char *text);
void say_array(hf__buffer *out, size_t count);
void say_number(hf__buffer *out, int64_t number);
void say_bulk(hf__buffer *out, hf__slice text);

/* ---- Messages (node_channels.c) ---- */

bool node_denies(const struct node *node, const char *command);
int node_listeners(const struct node *node, hf__slice channel);
bool node_is_subscribed(const struct node *node, const hf__buffer *out);
/* PUBLISH, PUBSUB, SUBSCRIBE and PING; false: another command. */
bool node_run_channel_command(struct node *node, const hf__slice *words, size_t count,
                              hf__buffer *out);

/* ---- One of a quorum (node_standing.c) ---- */

void node_run_mget(struct node *node, const hf__slice *words, size_t count, hf__buffer *out);

/* ---- Scripts (node_scripts.c) ---- */

typedef struct script {
    struct node *node;
    const hf__slice *keys;
    size_t key_count;
    const hf__slice *arguments;
    size_t argument_count;
    hf__buffer *out;
    int64_t clock_us; /* from which fences are minted: its own, or what was proposed */
} script;

void node_run_script(int id, script *script);

#endif
