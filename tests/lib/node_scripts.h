/* SPDX-License-Identifier: MIT */
/* Inside the node double: what its scripts share. */
#ifndef HF_TESTS_NODE_SCRIPTS_H
#define HF_TESTS_NODE_SCRIPTS_H

#include "node_store.h"

extern const char script_wrong_type[]; /* the server's words */

int64_t script_number_of(hf__slice said);
int64_t script_larger(int64_t a, int64_t b);
/* The keys from `first` on must be the lock and its side keys of these letters. */
void script_expect_keys(const script *s, size_t first, const char *letters);
node_key *script_find(const script *s, size_t key); /* NULL: none */
bool script_has_value(const node_key *key, hf__slice value);
void script_last_at_least(const script *s, node_key *key, int64_t ms); /* NULL is fine */
size_t script_count_live(const script *s, const node_key *holders);

typedef struct fence {
    int64_t last; /* 0: none */
    bool plain;   /* there is one, and no mark behind it */
} fence;

fence script_read_fence(const script *s, size_t key);
void script_mark_fence(const script *s, size_t key, char mark);
int64_t script_mint(const script *s, size_t key, int64_t last, bool mark, int64_t keep_ms);

/* The name that it has in the queue when the hold with that value was ended. */
hf__slice script_tombstone(hf__slice value, char *place, size_t size);

void script_run_inspect(script *s);
void script_run_revoke(script *s);
void script_run_break(script *s);

#endif
