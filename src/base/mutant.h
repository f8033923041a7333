/* SPDX-License-Identifier: MIT */
/* Deliberate bugs, by name, that the simulator must catch (tests/sim/mutants.c). They exist only in
 * a build made for it; everywhere else HF__MUTANT() is false and the compiler drops the branch. */
#ifndef HF_BASE_MUTANT_H
#define HF_BASE_MUTANT_H

#include <stdbool.h>

enum {
    HF__MUTANT_SENT_AFTER = 1,    /* deadline from after the sending */
    HF__MUTANT_FROM_REPLY,        /* deadline from the reply */
    HF__MUTANT_NO_DRIFT,          /* no allowance for clocks that differ */
    HF__MUTANT_NEW_IDENTITY,      /* a resent request has another value */
    HF__MUTANT_RESEND_FULL_LEASE, /* a repeated grant counts as a new one, from the resend */
    HF__MUTANT_NOSCRIPT_REFUSES,  /* NOSCRIPT taken for "no" */
    HF__MUTANT_UNKNOWN_REFUSED,   /* no answer taken for "no", and not cleaned up */
    HF__MUTANT_UNKNOWN_GRANTED,   /* no answer taken for "yes" */
    HF__MUTANT_CANCEL_KEEPS,      /* a cancel leaves the grant behind */
    HF__MUTANT_REVIVES,           /* a renewal after the deadline brings the hold back */
    HF__MUTANT_LOST_KEPT,         /* a lost hold is not released */
    HF__MUTANT_SHORT_CLEANUP,     /* the background gives up after the acquired lease */
    HF__MUTANT_NO_TOMBSTONE,      /* a late copy is not guarded against */
    HF__MUTANT_RENEW_LOST,        /* the watchdog goes on renewing a lost hold */
    HF__MUTANT_NO_JEOPARDY,       /* nobody is warned */
    HF__MUTANT_IGNORE_MAX_HOLD,   /* renewals never stop */
    HF__MUTANT_RENEWALS_WAIT,     /* renewals wait behind everything else of their link */
    HF__MUTANT_SILENT_SINCE_SENT, /* the reply timeout counts from the oldest request */
    HF__MUTANT_FLIGHT_UNBOUNDED,  /* any number of calls may be in flight */
    HF__MUTANT_WINDOW_WIDE,       /* and hundreds before the pace of the server is known */
    HF__MUTANT_NOT_HELD_BACK,     /* new acquires go on while renewals are late */
    HF__MUTANT_LAG_PER_LINK,      /* and over other links of the same server */
    HF__MUTANT_WAY_IS_LATE,       /* the way to the server and back counts as lateness */
    HF__MUTANT_LATE_FLOOD,        /* late renewals wait at the server, not here */
    HF__MUTANT_LAG_REMEMBERED,    /* renewals stay late until there is another one */
    HF__MUTANT_PACE_CONSTANT,     /* so many renewals leave in a second, however many are due */
    HF__MUTANT_SIDE_KEYS_SHARED,  /* "x" and "{x}" have the same side keys */
    HF__MUTANT_REENTRY_STALE,     /* a hold that has ended is re-entered */
    HF__MUTANT_RELEASE_FIRST,     /* the first handle that is given back releases for all */
    HF__MUTANT_LOST_UNTOLD,       /* nobody is told that a hold is lost */
    HF__MUTANT_PUSH_OLD,          /* a grant from before an answered check is believed */
    HF__MUTANT_PUSH_EARLY,        /* a grant that overtakes its own queueing is dropped */
    HF__MUTANT_PUSH_FROM_NOW,     /* deadline of a grant from its arrival */
    HF__MUTANT_PUSH_STALE,        /* a grant is taken of whose lease hardly anything is left */
    HF__MUTANT_QUEUE_DEAF,        /* queued before the subscription was confirmed */
    HF__MUTANT_NO_CHECK,          /* nobody checks after a link came back */
    HF__MUTANT_CANCEL_DROPS,      /* one who gives up does not leave the queue */
    HF__MUTANT_TOMB_CANCEL,       /* tombstones after a cancel only */
    HF__MUTANT_TURN_OWNER,        /* local hand-over from and to holds with an owner */
    HF__MUTANT_TURN_LATE,         /* local hand-over for ever */
    HF__MUTANT_TURN_REPLANS,      /* local hand-over ignores the answer to a renewal */
    HF__MUTANT_TURN_FENCE,        /* local hand-over with the same fence */
    HF__MUTANT_RANGE_KEPT,        /* fences that nobody has had are not given back */
    HF__MUTANT_HEARD_LATE,        /* a grant that is heard of late is renewed an interval later */
    HF__MUTANT_HANDED_PLAIN,      /* a lock that was handed on is released as if by us granted */
    HF__MUTANT_UNKNOWN_RELEASED,  /* a release that found nothing when repeated has succeeded */
    HF__MUTANT_ATTACH_RELEASES,   /* an attach that fails releases the lock */
    HF__MUTANT_ATTACH_EARLY,      /* deadline of an attached hold from the reply */
    HF__MUTANT_DETACH_FORGETS,    /* a token does not say that a copy may be late */
    HF__MUTANT_DETACH_RENEWS,     /* a detached hold is renewed as before */
    HF__MUTANT_IDS_SHORT_JUMP,    /* ids: ahead of what was forgotten by half of the skew */
    HF__MUTANT_ERRAND_FRESH,      /* no copy of an errand knows of an earlier one */
    HF__MUTANT_REFUSED_TOGETHER,  /* a call of renewals that is refused is not split */
    HF__MUTANT_LARGE_BREAKS,      /* an answer that is too large ends its connection */
    HF__MUTANT_DENIED_FOR_LIFE,   /* a subscription that was denied is not tried again */
    HF__MUTANT_SIGHT_OLD,         /* observers: a message with an older fence is told */
    HF__MUTANT_SIGHT_HASTY,       /* a look is believed before the messages from before are in */
    HF__MUTANT_SIGHT_DROPPED,     /* what could not be kept is not told as missed */
    HF__MUTANT_SIGHT_USURPED,     /* a holder without a fence is taken for the one before */
    HF__MUTANT_LOOK_ONCE,         /* an observer looks when a lease is over, and never else */
    HF__MUTANT_LOOK_NEVER_ENDS,   /* an observer does not look when a lease is over */
    HF__MUTANT_LOOK_STORM,        /* who gets no messages looks again at once */
    HF__MUTANT_OBSERVERS_FIRST,   /* renewals wait until an observer has looked */
    HF__MUTANT_LISTENS_EARLY,     /* a listener hears of a hold before its operation is told */
    HF__MUTANT_VOTE_TWICE,        /* quorum: a vote that was asked for twice counts twice */
    HF__MUTANT_LATE_GRANT_KEPT,   /* one that is granted too late is not given back */
    HF__MUTANT_HEALED_COUNTED,    /* a copy in place of a lost one counts at once */
    HF__MUTANT_HEALED_SAME_ROUND, /* and is made before a majority was renewed */
    HF__MUTANT_RESTARTED_VOTES,   /* a server that was restarted has a vote */
    HF__MUTANT_FENCE_NOT_RAISED,  /* the highest fence is believed though servers disagree */
    HF__MUTANT_RAISED_GONE,       /* a sharer is lost where another one has raised the fence */
    HF__MUTANT_FENCE_UNHELD,      /* a fence that was raised counts where the vote is lost */
    HF__MUTANT_RELEASE_GRANTERS,  /* only servers that are known to have granted it are released */
    HF__MUTANT_YIELD_DECIDED,     /* who has a majority gives way */
    HF__MUTANT_YIELD_OLD_ID,      /* who gives way queues again with the same value */
    HF__MUTANT_INQUIRE_DROPPED,   /* who has not heard of his grant does not give way */
    HF__MUTANT_SILENCE_AWAITED,   /* who is refused waits for servers that say nothing */
    HF__MUTANT_TICKET_ZERO,       /* a ticket from before everybody else's */
    HF__MUTANT_FLOOR_EARLY,       /* floors are read before the quarantine is over */
    HF__MUTANT_DEADLINE_FIRST,    /* the deadline of the best vote, not of the q-th */
    HF__MUTANT_IDS_NO_JUMP,       /* ids: servers that have forgotten are believed */
    HF__MUTANT_IDS_MINORITY,      /* a block that one server keeps counts */
    HF__MUTANT_IDS_UNKEPT,        /* and so does one that none does */
    HF__MUTANT_DEAF_KEEPS,        /* who cannot be told of earlier tickets keeps its votes */
    HF__MUTANT_MUTE_TRUSTED       /* a server without run_id is the same process for ever */
};

#ifdef HOLDFAST_MUTANTS
extern int hf__mutant;
#define HF__MUTANT(name) (hf__mutant == HF__MUTANT_##name)
#else
#define HF__MUTANT(name) false
#endif

#endif
