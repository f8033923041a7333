/* SPDX-License-Identifier: MIT */
/* A double of a Redis server for unit tests: bytes in, bytes out, no socket, time given by the
 * test. It understands what Holdfast says and nothing else, and can be told to misbehave. */
#ifndef HF_TESTS_NODE_H
#define HF_TESTS_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

enum {
    NODE_ERRANDS = 16,
    NODE_CANNED = 48,
    NODE_BATCHES = 64,
    NODE_SUBSCRIBERS = 16,
    NODE_CHANNEL = 64
};

#define NODE_OWN_TIME INT64_MIN

typedef enum node_kind { NODE_STRING, NODE_ZSET, NODE_HASH } node_kind;

typedef struct node_text { /* owned, and with a NUL behind it */
    char *bytes;
    size_t length;
    uint32_t hash; /* of the bytes: there may be thousands to look through */
} node_text;

typedef struct node_member {
    node_text name;
    node_text text; /* of a hash */
    int64_t score;  /* of a sorted set */
} node_member;

typedef struct node_key {
    node_kind kind;
    node_text name;
    node_text value;
    node_member *members;
    size_t member_count, member_room;
    int64_t expires_ms; /* -1: never */
} node_key;

typedef struct node_subscriber { /* a connection that has subscribed to one channel */
    hf__buffer *out;             /* what the node says there; NULL: the place is free */
    char channel[NODE_CHANNEL];
} node_subscriber;

typedef struct node_errand { /* a copy of one, as it came */
    int script;
    bool whole;
    char run_id[64], again[8], first_word[64], last_word[64];
    char first_key[64], last_key[64];
    size_t keys, words;
    int releases; /* that had been served before */
} node_errand;

struct node {
    int64_t now_ms;     /* its clock; a test may set it back */
    node_key **keys;    /* a place is NULL while it is free */
    size_t places;      /* of `keys` */
    bool knows_scripts; /* false after SCRIPT FLUSH, or a restart */
    char run_id[41];
    const char *role; /* "master" or "slave" */
    const char *password;
    const char *canned[NODE_CANNED]; /* replies to the next requests, instead of serving them */
    int canned_count;
    const char *always;         /* reply to every request, instead of serving it; NULL: none */
    const char *confirms;       /* another channel than the one that is asked for; NULL: that one */
    const char *info;           /* further lines of every INFO; may be NULL */
    int64_t wall_s;             /* what TIME says; NODE_OWN_TIME: its clock */
    const char *side_prefix;    /* what side keys begin with; NULL: nothing */
    const char *denied_command; /* what the script permissions names; NULL: nothing */
    const char *denied_key;
    const char *forbidden[2];   /* keys that no script may be called with; NULL: none */
    int forbidden_calls;        /* of scripts that were refused for it */
    const char *greeting_error; /* reply to INFO server, instead of the text */
    int replicas;               /* that have acknowledged everything: what WAIT says */
    const char *wait_error;     /* what it says instead; NULL: that */
    const char *denies;         /* a command that its users may not use; NULL: none */
    const char *errand_says;    /* to every errand; NULL: 1 */
    /* What it knows of itself as one of a quorum; see src/lua/join.lua. */
    bool votes;    /* this process, as its key hf:run says, */
    int64_t base;  /* with fences above that one */
    int64_t floor; /* its key hf:floor; 0: none */
    node_subscriber subscribers[NODE_SUBSCRIBERS];
    /* What was asked and served, for assertions. */
    int acquires, releases, renewals, inspects, revokes, breaks, scans, evals, greetings;
    int renewed;    /* holds in all renewals together */
    int tomb_count; /* releases that asked for a tombstone */
    int subscribes, unsubscribes, observes;
    int joins;
    int errands; /* copies of errands, of which these are the first */
    node_errand errand_log[NODE_ERRANDS];
    size_t asked_keys;      /* about which the script permissions was last asked */
    unsigned errands_known; /* bit n: that script was sent whole */
    int confirms_run, waits;
    int64_t last_wait_ms;
    int pings;          /* on subscriptions */
    int messages;       /* published by scripts or tests */
    int64_t last_copy;  /* number of the last acquire; 0: it did not want to queue */
    int64_t last_range; /* how many fences it asked for */
    int64_t last_proposal, last_ticket; /* of the last acquire of a quorum */
    struct {
        int64_t at_ms;
        int holds;
    } batches[NODE_BATCHES]; /* the first renewals */
    char last_command[64];
    int64_t last_tombstone_ms; /* of the last release; 0: none was asked for */
};

void node_init(struct node *node);
void node_free(struct node *node);
void node_restart(struct node *node); /* forgets everything, also the scripts; without a vote */
/* Reads whole commands from `in` and appends their replies to `out`; keeps what is incomplete. */
void node_work(struct node *node, hf__buffer *in, hf__buffer *out);
void node_forget(struct node *node, const hf__buffer *out); /* that connection is gone */
/* Publishes; how many hear it. */
int node_publish(struct node *node, const char *channel, const char *text, size_t length);
node_key *node_find(struct node *node, const char *name,
                    size_t length);                        /* NULL: none, or expired */
const char *node_get(struct node *node, const char *name); /* its value, or NULL */
int64_t node_ttl_ms(struct node *node, const char *name);  /* -1: never expires, -2: is not there */
void node_set(struct node *node, const char *name, const char *value, int64_t ttl_ms);
void node_delete(struct node *node, const char *name);
int node_count(struct node *node); /* of keys that have not expired and are not side keys */
/* The side key of a lock, by its letter ('f' fence, 'h' holders, 'q' queue, 'w' notes), wherever
 * its number puts it; NULL: there is none. */
node_key *node_side(struct node *node, char letter, const char *name);
/* What a hash or sorted set has under that name; NULL: nothing. */
node_member *node_member_of(node_key *key, const char *name);
/* A canned reply to the next script call or SCAN. */
void node_say(struct node *node, const char *reply);

#endif
