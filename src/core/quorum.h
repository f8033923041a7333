/* SPDX-License-Identifier: MIT */
/* The lock on a majority of servers, as the files of this room know it.
 *
 * A hold of a client with several servers has a ballot: a vote at each server. A vote is a hold
 * like any other, with its own value, queue, deadline and renewals at its own server, and the files
 * for those know nothing of ballots; what it adds is here, and whose it is. The application's hold
 * has no requests of its own: it is what its votes come to.
 *
 *   standing.c   whether a server has a vote, its clock and its fences
 *   vote.c       one vote: how it begins, gives way and ends, and what the ballot hears of it
 *   ballot.c     winning: try, queue, decide, give up
 *   handback.c   and giving back
 *   majority.c   keeping: deadline, extensions, copies that were lost
 *   takeover.c   handing on: detach, and attach by a token
 */
#ifndef HF_CORE_QUORUM_H
#define HF_CORE_QUORUM_H

#include "core/agree.h"
#include "core/state.h"

struct hf__vote {
    hf_hold *main;         /* the hold that it counts for; NULL: for none any more */
    hf__call call;         /* by which it is acquired */
    hf__call extend;       /* by which it is extended, */
    bool extending;        /* while it is */
    bool faulty;           /* its last try came to nothing, but not because of who has the lock */
    bool inquired;         /* somebody with a ticket waits for what it has */
    bool healed;           /* in place of one that was lost: counts from its first renewal on */
    bool raising;          /* the server is to know the hold's fence, */
    bool raise_sent;       /* and the copy that is under way says so */
    bool counted_twice;    /* the mutant VOTE_TWICE */
    bool forgets;          /* the mutants LATE_GRANT_KEPT and RELEASE_GRANTERS */
    hf__instant confirmed; /* when the copy left that was last answered with "it is yours" */
    hf__node gate;         /* in server->gated, while it waits for the server to have a vote */
};

/* What a server said to a release. */
typedef enum hf__release_word {
    HF__NO_WORD,
    HF__NEVER_HELD,    /* there was nothing that counted */
    HF__ASKED_FOR,     /* the same, but it may have granted it by now, */
    HF__RELEASED_LATE, /* and had */
    HF__RELEASED,
    HF__UNHEARD,          /* cannot be reached, */
    HF__UNANSWERED,       /* and may have been, by a copy */
    HF__NOT_RELEASED,     /* it did not have it any more, */
    HF__PERHAPS_RELEASED, /* unless by a first copy of the release */
    HF__RELEASE_WORDS
} hf__release_word;

typedef struct hf__takeover hf__takeover;

struct hf__ballot {
    hf_hold *votes[HF_SERVERS_MAX];      /* NULL: none there */
    hf__instant missing[HF_SERVERS_MAX]; /* while it is held: since when there is none */
    unsigned char words[HF_SERVERS_MAX]; /* hf__release_word, when it is given back */
    uint64_t numbers;                    /* how many have been given to votes */
    uint64_t proposal;                   /* for the fence, the same at all servers; 0: none yet */
    uint64_t ticket;                     /* its place in the queues; 0: it does not queue */
    uint64_t seen;                       /* the highest ticket that a server has told of */
    bool under_way;                      /* votes are being collected, */
    bool undecided;                      /* by queueing; counted in core->undecided */
    hf__instant try_ends;                /* of a try that is in a hurry: its end otherwise */
    hf__instant confirmed;               /* while it is held: when its last renewal left */
    bool extending;                      /* for a call; */
    unsigned extended;                   /* bits of the servers that have done so */
    hf__takeover *takeover;              /* while a token is taken up; else NULL */
};

static inline int hf__quorum_size(const hf__core *core)
{
    return hf__majority(core->config.server_count);
}

static inline int hf__servers_of(const hf_hold *main)
{
    return main->core->config.server_count;
}

static inline int hf__vote_server(const hf_hold *vote)
{
    return (int)(vote->link->server - vote->core->servers);
}

/* vote.c */
uint64_t hf__vote_number(hf_hold *main); /* that no vote has had */
/* Begins a vote for `main` at a server; `waits`: it queues there. False: no memory, or no number is
 * left. */
bool hf__vote_start(hf_hold *main, int server, uint64_t number, bool waits);
void hf__vote_drop(hf_hold *vote);   /* it counts for nobody any more; is given back if need be */
void hf__vote_forget(hf_hold *vote); /* the same, but whatever the server has stays */
/* Takes up a vote that a server has, with that number and fence. False: no memory. */
bool hf__vote_attach(hf_hold *main, int server, uint64_t number, uint64_t fence);
bool hf__vote_is_held(const hf_hold *vote); /* false also while it is being taken up */
bool hf__vote_is_value(const hf_hold *main, uint64_t number, hf__slice value); /* of that vote */
void hf__vote_yield(hf_hold *vote);   /* gives it back, and queues for it again */
bool hf__vote_release(hf_hold *vote); /* false: there is nothing to give back */

/* ballot.c: heard from the votes */
void hf__ballot_vote_granted(hf_hold *vote);
void hf__ballot_vote_failed(hf_hold *vote); /* ended without; or, of one that waits, a try did */
void hf__ballot_vote_raised(hf_hold *vote);
void hf__ballot_check(hf_hold *main); /* whether it is decided by now */

/* takeover.c: the same, of a hold that is being taken up */
void hf__takeover_confirmed(hf_hold *vote);
void hf__takeover_refused(hf_hold *vote, const hf_error *why);
void hf__takeover_lost(hf_hold *main, int server);
void hf__takeover_free(hf__takeover *takeover); /* NULL is fine */

/* majority.c: the same, of a hold that is held */
void hf__majority_begin(hf_hold *main);
void hf__majority_granted(hf_hold *vote); /* one more, or a copy */
void hf__majority_confirmed(hf_hold *vote);
void hf__majority_lost(hf_hold *main, int server, hf_reason reason);
void hf__majority_extended(hf_hold *vote, const hf_error *outcome);
/* The q-th largest of what its votes have: deadline, and when the last renewal of a majority left.
 * 0 if there are not so many. */
int64_t hf__majority_deadline(const hf_hold *main);
hf__instant hf__majority_confirmed_at(const hf_hold *main);

#endif
