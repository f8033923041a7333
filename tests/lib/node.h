/* SPDX-License-Identifier: MIT */
/* A double of a Redis server for unit tests: bytes in, bytes out, no socket, time given by the
 * test. It understands what Holdfast says and nothing else, and can be told to misbehave. */
#ifndef HF_TESTS_NODE_H
#define HF_TESTS_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

enum { NODE_KEYS = 16, NODE_TEXT = 1200, NODE_CANNED = 8 };

typedef struct node_key {
    bool used;
    bool wrong_type;
    char name[NODE_TEXT];
    size_t name_length;
    char value[NODE_TEXT];
    int64_t expires_ms; /* -1: never */
} node_key;

struct node {
    int64_t now_ms;
    node_key keys[NODE_KEYS];
    char tombs[NODE_KEYS][NODE_TEXT];
    int tomb_count;     /* of all ever; the last NODE_KEYS are kept */
    bool knows_scripts; /* false after SCRIPT FLUSH, or a restart */
    char run_id[41];
    const char *role; /* "master" or "slave" */
    const char *password;
    const char *canned[NODE_CANNED]; /* replies to the next script calls, instead of running them */
    int canned_count;
    const char *always;         /* reply to every script call, instead of running it; NULL: none */
    const char *greeting_error; /* reply to INFO server, instead of the text */
    /* What was asked, for assertions. */
    int acquires, releases, renewals, evals, greetings;
    char last_command[64];
    int64_t last_tombstone_ms; /* of the last release; 0: none was asked for */
};

void node_init(struct node *node);
void node_restart(struct node *node); /* forgets everything, also the scripts */
/* Reads whole commands from `in` and appends their replies to `out`; keeps what is incomplete. */
void node_work(struct node *node, hf__buffer *in, hf__buffer *out);
node_key *node_find(struct node *node, const char *name,
                    size_t length);                        /* NULL: none, or expired */
const char *node_get(struct node *node, const char *name); /* its value, or NULL */
void node_set(struct node *node, const char *name, const char *value, int64_t ttl_ms);
void node_delete(struct node *node, const char *name);
int node_count(struct node *node);                   /* of keys that have not expired */
void node_say(struct node *node, const char *reply); /* a canned reply to the next script call */

#endif
