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

/* ---- Holders: sorted sets by expiry ---- */

size_t script_count_live(const script *s, const node_key *holders);
node_member *script_live_holder(const script *s, node_key *holders, hf__slice value);
void script_add_holder(const script *s, size_t key, hf__slice value, int64_t lease);
void script_drop_scores(const script *s, size_t key, int64_t from, int64_t to);
void script_last_as_the_latest(node_key *lock, node_key *holders);

/* ---- Fences ---- */

typedef struct fence {
    int64_t last; /* 0: none */
    bool plain;   /* there is one, and no mark behind it */
    bool left;    /* a release has left it for those who watch */
} fence;

fence script_read_fence(const script *s, size_t key);

/* ---- The queue: of scripts that take all keys of a lock (node_queue.c) ---- */

enum { KEY_LOCK, KEY_QUEUE, KEY_FENCE, KEY_NOTES, KEY_HOLDERS, KEY_SLOT };

/* All keys of a lock must be there, the slot's mark behind them unless it is one of a quorum. */
void script_expect_all_keys(const script *s, bool of_quorum);

typedef struct waiter { /* copies, for its place in the queue may be gone by then */
    char value[512], owner[512];
    hf__slice in_key; /* what the lock's key holds when it has the lock */
    int64_t copy, lease, range;
} waiter;

const node_member *queue_first(const script *s); /* NULL: nobody waits */
size_t queue_count(const script *s);             /* those who wait, without the tombstones */
typedef struct minting {
    int64_t last, range, lease;
    size_t waiting;
    int64_t keep_ms;
    int64_t brief_ms; /* if it has no marks; 0: as keep_ms */
} minting;

int64_t queue_mint(const script *s, minting wanted);
void queue_mark(const script *s, int64_t life_ms); /* '+' behind the fence: look at it */
void queue_tell_slot(const script *s, int64_t number, int64_t keep_ms);
/* Nobody has the lock, whose last fence was that: only what marks announce stays. */
void queue_leave_name(const script *s, int64_t last, int64_t keep_ms);
/* Others of the owner who wait have the lock too, with that fence. */
void queue_invite(const script *s, hf__slice owner, int64_t last);
void queue_share(const script *s, hf__slice value, int64_t lease);
void queue_leave(const script *s, hf__slice value);
/* The first who lives, or is the one that may stay; false: there is none. */
bool queue_next(const script *s, hf__slice stays, waiter *next);
void queue_grant(const script *s, const waiter *next, int64_t last, int64_t keep_ms);
bool queue_hand_on(const script *s, int64_t last, int64_t keep_ms); /* false: to nobody */
bool queue_is_buried(const script *s, hf__slice value);
void queue_bury(const script *s, hf__slice value, int64_t late_ms);
/* To those who watch the lock, if anybody did so before it was changed. */
bool queue_is_watched(const script *s);
void queue_announce(const script *s, const char *word, hf__slice value, int64_t minted,
                    int64_t lease);
/* "<word> <number><rest>" to the client whose value it is, if it is one of ours. */
void queue_tell(const script *s, hf__slice value, char word, const char *rest);
bool queue_is_ours(hf__slice value, int64_t *number); /* <hexadecimal digits>:<number>@... */

/* As src/lua/cut.lua does. The text is kept until the next call. */
hf__slice script_cut(hf__slice text);

void script_run_acquire(script *s);
void script_run_release(script *s);
void script_run_inspect(script *s);
void script_run_observe(script *s);
void script_run_revoke(script *s);
void script_run_break(script *s);
void script_run_join(script *s);

#endif
