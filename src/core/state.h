/* SPDX-License-Identifier: MIT */
/* The core's state, shared by the files of this room and by nobody else.
 *
 * A core has links (connections to the server) and holds. A hold has up to five requests, one of
 * each kind; a request is idle, waits for its link to be ready, or is in flight on it. Every link
 * keeps its requests in order, and a lock always uses the same link, so the server sees one lock's
 * requests in the order in which they were made. */
#ifndef HF_CORE_STATE_H
#define HF_CORE_STATE_H

#include <stdatomic.h>
#include <string.h>

#include "base/buffer.h"
#include "base/table.h"
#include "base/wheel.h"
#include "core/core.h"
#include "lua/scripts.h"
#include "resp/encode.h"
#include "resp/reader.h"

typedef struct hf__server hf__server;
typedef struct hf__link hf__link;
typedef struct hf__cohort hf__cohort;
typedef struct hf__vote hf__vote;
typedef struct hf__ballot hf__ballot;
typedef struct hf__replicas hf__replicas;

/* ---- Requests ---- */

typedef enum hf__request_kind {
    HF__REQUEST_ACQUIRE,
    HF__REQUEST_RELEASE,
    HF__REQUEST_RENEW, /* the last of its array: beside what else a renewal touches */
    HF__OWN_REQUESTS,  /* those that every hold has; */
    HF__REQUEST_CONFIRM = HF__OWN_REQUESTS, /* the others are for replicas.c */
    HF__REQUEST_WAIT,
    HF__REQUEST_KINDS,
    HF__REQUEST_QUERY = HF__REQUEST_KINDS, /* not of a hold, */
    HF__REQUEST_SERVER                     /* but of a query or a server */
} hf__request_kind;

typedef enum hf__request_place {
    HF__IDLE,
    HF__HELD_BACK, /* in link->held_back: would wait, but renewals are late; see flow.c */
    HF__WAITING,   /* in link->urgent, if it is a renewal, or link->waiting */
    HF__IN_FLIGHT
} hf__request_place;

enum {
    /* Renewals in one script call, which must not keep the server for 500 us. */
    HF__BATCH_MAX = 70,  /* of refresh, */
    HF__BATCH_SLOW = 24, /* and of renew, which takes more than twice the time for each */
    HF__LOOK_CLOSER = -1 /* instead of the remaining ms: refresh leaves this one to renew */
};

typedef enum hf__why { HF__WHY_NOT, HF__WHY_KEY, HF__WHY_COMMAND } hf__why;

typedef struct hf__request { /* of a hold or of a part of a query, which its kind tells */
    hf__node node;
    hf__instant sent;     /* of the copy in flight: before its first byte could leave */
    unsigned short group; /* in flight: how many, from this one on, the next reply answers */
    unsigned char kind;
    unsigned char place;
    bool unanswered;        /* a copy went down with its connection */
    bool refused;           /* release: for a reason that will not pass */
    bool whole;             /* send the script itself: the server did not know its SHA-1 */
    unsigned char asks_why; /* hf__why: was denied; its next copy only asks what it is about */
} hf__request;

static inline bool hf__request_waits(const hf__request *request)
{
    return request->place == HF__WAITING || request->place == HF__HELD_BACK;
}

enum { HF__FENCE_BITS = 53 }; /* Lua counts so far, and centuries do not get there */

/* What a release has come to, at one server. */
typedef enum hf__outcome { HF__RELEASE_DONE, HF__RELEASE_LOST, HF__RELEASE_UNKNOWN } hf__outcome;

/* ---- Holds ---- */

typedef enum hf__hold_stage {
    HF__HOLD_TRYING,     /* an acquire call works on it */
    HF__HOLD_CONFIRMING, /* granted; the call waits until replicas have it too */
    HF__HOLD_HELD,       /* granted; the application has a handle */
    HF__HOLD_RELEASING,  /* being given back, with or without a call that waits for it */
    HF__HOLD_OVER        /* nothing left to do at the server */
} hf__hold_stage;

typedef struct hf__listener { /* of a handle: whom to tell, and what they know */
    hf_event_function *function;
    void *arg;
    int descriptor;
    unsigned char told_state;
    unsigned char told_reason;
    bool told_revoked;
    bool marked;        /* its descriptor, for what is queued */
    bool listens_later; /* the application does not have the handle yet */
    hf__node node;      /* in core->untold, while there may be news */
} hf__listener;

/* Where the next renewal of a hold is: nowhere, or in link->renewals, overdue, overdue_alone or
 * under_way. */
typedef enum hf__renewal {
    HF__RENEWAL_NONE,
    HF__PLANNED,
    HF__OVERDUE,
    HF__OVERDUE_ALONE,
    HF__UNDER_WAY
} hf__renewal;

typedef struct hf__watch { /* what the watchdog knows about a hold */
    hf__spoke plan;        /* planned: when it is to leave; overdue and under way: its node */
    hf__span interval;     /* 0: no renewal by itself */
    hf__span timeout;
    hf__span warn;
    hf__span max_hold; /* 0: no limit */
    hf__instant due;   /* when the renewal that is to come or under way should have been sent */
} hf__watch;

typedef struct hf__place { /* of a hold in the queue at the server; see queue.c */
    hf__node node;         /* in core->waiters, while it wants to queue */
    uint64_t copy;         /* number of the last copy that was sent */
    uint64_t base;         /* grants by copies from this one on are believed; 0: never queued */
    hf__instant base_sent; /* S of that copy */
    uint64_t base_run;     /* and to which server process */
    bool passed;           /* somebody waits behind the grant that we have not heard of yet */
    bool set_aside;        /* a stale grant came while a check was in flight: ask once more */
    int64_t number;        /* in the queue, as last heard; 0: it has not been heard yet */
} hf__place;

/* What a renewal touches stands together at the end: ten thousand holds are more than a cache has
 * room for. */
struct hf_hold {
    void *client;           /* of the api room */
    hf__node node;          /* in core->holds, at last in core->dead; a handle in outer->inners */
    hf__node releasing;     /* in core->releasing, while in that stage */
    hf__node reentered;     /* in core->reentered, while held by a thread that may re-enter */
    uint64_t hash;          /* of its key */
    hf__list inners;        /* re-entrant handles */
    hf__replicas *replicas; /* that must have acknowledged its grant; NULL: none */
    hf__node numbered;      /* in core->numbers, from the first request on */
    hf__place place;
    hf__cohort *cohort; /* of threads that want the same lock; NULL: alone */
    hf__node lined_up;  /* in cohort->waiting */
    hf__listener listener;
    hf__call *call; /* that acquires or releases; NULL: none waits */
    char *revoked_text;
    uint64_t thread;
    uint64_t number;     /* within its client */
    uint64_t fence_top;  /* the last of those that were reserved with its grant */
    uint64_t run;        /* the server process that granted it */
    hf__instant granted; /* when the application got it */
    hf__instant give_up; /* the lease is over then, whatever we do; releasing, and attached */
    hf__request requests[HF__OWN_REQUESTS];

    hf__core *core;
    hf_hold *outer; /* a re-entrant handle: the hold it belongs to; nothing else but `node`,
                       `listener` and `core` is used then */
    hf__link *link;
    hf__ballot *ballot; /* on several servers: its votes; see quorum.h */
    hf__vote *vote;     /* it is one of those itself */
    unsigned char stage;
    unsigned char reason;  /* of the state: hf_reason */
    unsigned char renewal; /* where the next one is: hf__renewal */
    bool watched_alone;    /* its renewal is late: `timer` is set, beside the link's look_timer */
    bool handed;       /* granted by another's script, perhaps: by a message, a token, a check */
    bool attaching;    /* held by a token that somebody here wants to take up; see attach.c */
    bool granted_late; /* too late to be believed, but the server may have it */
    bool dead;         /* settled; freed at the end of the step */
    bool in_doubt;     /* something that was asked because of it may still reach the server */
    bool copy_lost;    /* an acquire went unanswered on a broken link and may still arrive */
    bool revoked;      /* somebody has asked for it */
    bool contended;    /* others wanted it when it was granted, or since */
    bool counted;      /* among those that are held, in the statistics */
    bool reenters;
    bool listening;            /* counted in core->listening */
    bool asked_to_keep;        /* its fence, by the last copy of a renewal */
    bool look_closer;          /* something is the matter with it: not one for refresh */
    unsigned char shares_call; /* with at most so many, itself counted; 0: no limit. See split.c */
    unsigned users;            /* handles in the application's hands: the memory must stay */
    _Atomic int state;         /* hf_state */
    _Atomic int64_t deadline_ns; /* valid before it; 0: not valid. Read by other threads */
    uint64_t fence;
    hf__instant fence_kept; /* when the server was last told to keep it */
    hf__span lease;         /* as acquired */
    hf__span longest_lease; /* ever asked for: the server may keep it that long */
    hf__span asked;         /* for, by the last copy of a renewal */
    hf__timer timer;        /* held: look at its state; releasing: next try, or give_up */
    hf__watch watch;
    hf__list extends; /* calls, the first one is being served */
    uint32_t tag;     /* of its slot; see name.h */
    unsigned short slot;
    unsigned short key_length;
    unsigned short value_length;
    unsigned short owner_length;
    unsigned short range; /* how many fences it asks for; once sent, it stays */
    char text[];          /* key, value, owner */
};

/* Asks for the memory that a renewal touches, from its request to the value: of ten thousand holds
 * none is in a cache, and to wait for line after line is most of the work. */
static inline void hf__request_prefetch(const hf__request *request)
{
    enum { LINE = 64, LINES = 6 };
    for (int i = 0; i < LINES; i++)
        __builtin_prefetch((const char *)request + i * LINE, 1);
}

struct hf__replicas { /* of a hold; few have it */
    hf_hold *hold;
    int count;           /* how many must have it */
    uint64_t fence;      /* of the grant that they are asked about */
    hf__request confirm; /* these two on a link of their own */
    hf__request wait;
};

/* ---- Links ---- */

typedef enum hf__link_state {
    HF__LINK_DOWN,       /* nobody needs it */
    HF__LINK_BACKOFF,    /* waits before it connects again */
    HF__LINK_CONNECTING, /* the driver connects */
    HF__LINK_GREETING,   /* connected; introducing ourselves */
    HF__LINK_READY
} hf__link_state;

enum { HF__GREETING_MAX = 24 };

typedef struct hf__link_kind { /* what links of different use do differently; see link_kind.c */
    bool subscribes;           /* its greeting ends with a subscription, not with the scripts */
    bool (*needed)(const hf__link *link);  /* it should be up */
    bool (*expects)(const hf__link *link); /* ready: something is to come over it */
    void (*ready)(hf__link *link);
    void (*reply)(hf__link *link, const hf__reply *reply);
    void (*timer)(hf__link *link); /* ready: it has fired */
    void (*down)(hf__link *link);
} hf__link_kind;

typedef struct hf__pace { /* of a server, as measured */
    hf__span busy;        /* it took so long */
    size_t answers;       /* for so many, lately */
} hf__pace;

struct hf__link {
    hf__core *core;
    hf__server *server;
    const hf__link_kind *kind;
    hf__link_state state;
    bool wants_close;
    bool wants_connect;
    hf__buffer out;
    hf__reader *reader;
    hf__list urgent;    /* renewals that wait: they leave before all others, */
    hf__list waiting;   /* and then these, as far as the window allows; see flow.c */
    hf__list held_back; /* new acquires, while renewals are late */
    hf__list in_flight;
    size_t calls;  /* of those in flight, how many are no renewals, */
    size_t window; /* and how many may be; see flow.c */
    hf__pace call_pace;
    hf__pace renewal_pace;
    hf__span round_trip; /* the shortest of this connection */
    hf__timer timer;
    hf__timer renew_timer;                    /* to look at the renewals */
    hf__wheel renewals;                       /* those that are planned */
    hf__list overdue;                         /* those whose time has come, until they are sent */
    hf__list overdue_alone;                   /* the same of holds that were refused alone */
    hf__instant next_round;                   /* of renewals: not before */
    hf__list under_way;                       /* holds whose renewal was sent by the watchdog */
    hf__timer look_timer;                     /* to look at the state of all these */
    bool refuses_renewals;                    /* the last one was; it has been logged */
    unsigned failures;                        /* in a row */
    hf__instant last_failure;                 /* of an attempt to connect */
    hf_error trouble;                         /* why the last connection or attempt failed */
    char protection[64];                      /* of the connection, for people; may be empty */
    unsigned char greeting[HF__GREETING_MAX]; /* what was asked, in order */
    unsigned greeting_length;
    unsigned greeting_answered;
    hf__instant greeted; /* when the questions left, */
    hf__wall greeted_wall;
    char run_id[41];     /* of the server process behind it; empty: it does not tell */
    uint64_t run;        /* counts the changes of run_id */
    uint64_t pings;      /* the one for messages: how often it was sent */
    uint64_t pongs;      /* and answered */
    hf__instant unheard; /* while one is not: since when; others: since the last answer */
};

/* ---- Servers ---- */

struct hf__server {
    hf__core *core;
    const hf__url *url;
    hf__list waiters;             /* holds that queue there, or would if they could */
    bool warned[HF__CHECK_KINDS]; /* of this server process, */
    char warned_run_id[41];
    bool mute;              /* it does not tell its run_id, which has been logged */
    bool push_denied;       /* it does not let us subscribe, as far as we know; see deaf.c */
    unsigned push_denials;  /* in a row, */
    hf__instant push_again; /* and when to try again */
    hf__instant next_round; /* of renewals, over whichever link: not before */
    bool behind;            /* renewals are late, or were just now; it has been logged */
    hf__instant calm_at;    /* until then */

    /* Of a quorum; see standing.c. */
    char run_id[41];         /* of the process that it is now, as far as we know */
    hf__instant known_since; /* when that was first seen, */
    hf__span uptime;         /* which said that it had been there for so long, */
    hf__wall uptime_wall;    /* when its clock was at most this; 0: it did not say */
    hf__wall wall;           /* and had a clock that was at most this, */
    hf__instant wall_at;     /* then */
    bool votes;              /* it has a vote */
    bool is_due;             /* it might have, */
    hf__instant due_since;   /* since then */
    uint64_t base;           /* its fences go on from there */
    uint64_t floor;          /* as it last said, */
    hf__instant floor_at;    /* to a question that left then */
    uint64_t wanted_floor;   /* is to be raised to that */
    uint64_t joins_from;     /* it is to vote, from that base on; 0: no */
    hf__request request;     /* the question */
    hf__timer timer;         /* to look again whether it has a vote */
    hf__list gated;          /* votes that wait for that */

    hf__link *links; /* behind those for requests, the one for messages, and of an only server the
                        careful one */
};

/* ---- Cohorts ---- */

/* Threads of this client that want the same lock: one has it, one stands for the others at the
 * server, the others wait here. */
struct hf__cohort {
    hf__node node;      /* in core->cohorts */
    uint64_t hash;      /* of its lock's key */
    hf_hold *front;     /* held; its lock may pass on to those who wait here */
    hf_hold *contender; /* works on it, or waits, at the server */
    hf__list waiting;   /* holds, first come, first served */
    bool retired;       /* nobody is left: in core->retired instead */
    unsigned turns;     /* how often the front's lock has been passed on */
    hf__instant began;  /* when the server granted it */
    hf__timer timer;    /* when it may no longer be passed on: who waits goes to the server */
    hf__instant passed; /* since when somebody elsewhere has been passed over; never: nobody */
};

/* ---- Queries ---- */

typedef struct hf__survey hf__survey; /* of the servers of a quorum; see survey.c */

typedef struct hf__part { /* of a query: what one server is asked */
    hf__request request;
    hf__query *query;
    hf__link *link;
    hf__query_kind kind;
    hf__slice text;
    uint64_t number;
    uint64_t proposal; /* break: the new fence is to be at least that; 0: as it comes */
} hf__part;

struct hf__query {
    hf__query_kind kind;
    hf__core *core;
    hf__node node;      /* in core->queries */
    hf__call *call;     /* NULL: it has ended; the query stays until its requests are idle */
    hf__part part;      /* if one server is asked */
    hf__survey *survey; /* if all are; else NULL */
    int server;         /* that is asked, */
    bool alone;         /* also with what would be for all */
    uint64_t number;
    hf__script_id script; /* these four of an errand; its text is `words` times length and bytes */
    const char *letters;
    size_t words; /* further keys and arguments, */
    size_t keys;  /* of which so many are keys */
    unsigned short slot;
    unsigned short key_length;
    size_t text_length;
    char bytes[]; /* key, text */
};

/* ---- Core ---- */

enum { HF__LOG_LINES = 8, HF__LOG_TEXT = 300 };

typedef struct hf__log_line {
    hf_log_level level;
    char text[HF__LOG_TEXT];
} hf__log_line;

struct hf__core {
    hf__config config;
    hf__instant now;
    uint64_t random;
    hf__timers timers;
    hf__list holds;
    hf__list dead; /* holds to be freed at the end of the step */
    hf__list done; /* calls */
    hf__list queries;
    bool closing;            /* for good */
    bool gives_way;          /* the last lock that was released has gone to somebody who slept */
    hf__call *close_call;    /* until it is done */
    hf__list releasing;      /* holds in that stage, by their second node */
    hf__list untold;         /* listeners for whom there may be news */
    bool untold_descriptors; /* some of them may have one that is to be made readable */
    hf_hold *telling;        /* the handle whose callback is running; NULL: none */
    hf_stats stats;
    hf__log_line log[HF__LOG_LINES];
    size_t log_first;
    size_t log_count;
    uint64_t last_ticket; /* on a quorum: that was given out */
    uint64_t copies;      /* the last number that was given to a copy */
    uint64_t copy_secret; /* from which the first ones of holds are made; see queue.c */
    hf__list observers;
    hf__list ended_observers; /* freed when their calls are done */
    hf__list seen;            /* observers with news */
    hf_observer *seeing;      /* the one whose callback is running; NULL: none */
    unsigned turning;         /* fronts whose lock may be passed on here */
    unsigned listening;       /* holds that want to hear when they are asked for */
    unsigned undecided;       /* ballots that queue, and must hear of earlier tickets */
    uint64_t overloads;       /* how often renewals of a link began to be late */
    bool observing_denied;    /* it has been logged that an observer may not subscribe */
    hf__server *servers;
    hf__link *links;     /* of all servers, in order */
    hf__table reentered; /* holds that a thread may re-enter, by key */
    hf__table numbers;   /* holds that the server may have heard of, by number */
    hf__table cohorts;   /* by key */
    hf__list retired;    /* cohorts to be freed at the end of the step */
};

enum {
    HF__TIMER_LINK,
    HF__TIMER_CALL,
    HF__TIMER_HOLD,
    HF__TIMER_RENEWALS,
    HF__TIMER_LOOK,
    HF__TIMER_COHORT,
    HF__TIMER_OBSERVER,
    HF__TIMER_SERVER
};

/* The lock is to be had from a majority of several servers. */
static inline bool hf__is_quorum(const hf__core *core)
{
    return core->config.server_count > 1;
}

/* The one over which everything about locks of that slot goes. */
static inline hf__link *hf__server_link(hf__server *server, unsigned slot)
{
    return &server->links[slot % (unsigned)server->core->config.links];
}

static inline hf__slice hf__hold_key(const hf_hold *hold)
{
    return (hf__slice){hold->text, hold->key_length};
}

static inline hf__slice hf__hold_value(const hf_hold *hold)
{
    return (hf__slice){hold->text + hold->key_length, hold->value_length};
}

static inline hf__slice hf__hold_owner(const hf_hold *hold)
{
    return (hf__slice){hold->text + hold->key_length + hold->value_length, hold->owner_length};
}

static inline bool hf__same_key(const hf_hold *a, const hf_hold *b)
{
    return a->key_length == b->key_length && memcmp(a->text, b->text, a->key_length) == 0;
}

/* What its lock's key holds at the server. */
static inline hf__slice hf__hold_in_key(const hf_hold *hold)
{
    return hold->owner_length > 0 ? hf__hold_owner(hold) : hf__hold_value(hold);
}

/* The hold that a handle belongs to: itself, unless it is a re-entrant one. */
static inline hf_hold *hf__hold_of(const hf_hold *handle)
{
    return handle->outer != NULL ? handle->outer : (hf_hold *)handle;
}

static inline hf_hold *hf__request_hold(const hf__request *request)
{
    if (request->kind == HF__REQUEST_CONFIRM)
        return HF__ENTRY(request, hf__replicas, confirm)->hold;
    if (request->kind == HF__REQUEST_WAIT)
        return HF__ENTRY(request, hf__replicas, wait)->hold;
    return HF__ENTRY(request - request->kind, hf_hold, requests);
}

static inline hf__part *hf__request_part(const hf__request *request)
{
    return HF__ENTRY(request, hf__part, request);
}

static inline hf__query *hf__request_query(const hf__request *request)
{
    return hf__request_part(request)->query;
}

static inline hf__slice hf__query_text(const hf__query *query)
{
    return (hf__slice){query->bytes + query->key_length, query->text_length};
}

static inline hf__server *hf__request_server(const hf__request *request)
{
    return HF__ENTRY(request, hf__server, request);
}

/* ---- What the files of this room offer each other ---- */

/* core.c */
void hf__log(hf__core *core, hf_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void hf__call_done(hf__core *core, hf__call *call, hf_status status, const char *text);

/* link.c */
void hf__link_init(hf__server *server, int index);
void hf__link_free(hf__link *link);
bool hf__link_full(const hf__link *link);
void hf__link_enqueue(hf__request *request);  /* idle -> waiting */
void hf__link_pump(hf__link *link);           /* sends what waits, or sees that it can be sent */
void hf__link_submit(hf__request *request);   /* both */
void hf__link_withdraw(hf__request *request); /* waiting -> idle; otherwise nothing */
void hf__link_wake(hf__link *link);           /* somebody needs it: sees that it comes up */
void hf__link_wake_at(hf__link *link, hf__instant when); /* the same, not before */
void hf__link_close(hf__link *link);                     /* nobody does any more */
void hf__link_ready(hf__link *link);
void hf__link_fail(hf__link *link, hf_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void hf__link_fail_silent(hf__link *link); /* it has not answered in time */
void hf__link_connected(hf__link *link, const hf__event *event);
void hf__link_bytes(hf__link *link, const char *bytes, size_t count);
void hf__link_timer(hf__link *link);
bool hf__link_expects(const hf__link *link); /* an answer or message is to come over it */
void hf__link_stamp_late(hf__link *link);    /* what the mutant SENT_AFTER left unstamped */

/* flow.c: what may be in flight, and in which order requests leave */
void hf__flow_init(hf__link *link);
hf__list *hf__flow_list(hf__link *link, const hf__request *request); /* where it is to wait */
/* The list of which the first is to leave now; NULL: none is. */
hf__list *hf__flow_next(hf__link *link);
bool hf__flow_is_waiting(const hf__link *link);
bool hf__flow_holds_back(const hf__request *request); /* it must wait for late renewals */
void hf__flow_let_in(hf__link *link);                 /* what was held back, as it may be */
/* An answer to that request has come; it is still counted as in flight. */
void hf__flow_answered(hf__link *link, const hf__request *request);
/* How many renewals the server answers within that time, or at least a call of them; SIZE_MAX: that
 * is not known. */
size_t hf__flow_renewals_within(const hf__link *link, hf__span time);
void hf__flow_trouble(const hf__link *link, hf_error *why); /* why a request was not sent in time */

void hf__link_answer(hf__link *link, const hf__reply *reply); /* the oldest in flight */

/* link_kind.c */
const hf__link_kind *hf__link_kind_at(const hf__server *server, int index);

/* greeting.c */
bool hf__greeting_send(hf__link *link, const hf_credentials *credentials); /* false: no memory */
void hf__greeting_reply(hf__link *link, const hf__reply *reply);

/* arguments.c: what a script call of a hold says */
bool hf__request_is_plain(const hf_hold *hold); /* its next renewal is one for refresh.lua */
size_t hf__arguments_key_count(const hf__request *request);
size_t hf__arguments_count(const hf__request *request);
size_t hf__arguments_bytes(const hf_hold *hold); /* at most, of its keys and arguments */
void hf__arguments_put_keys(const hf__request *request, hf__buffer *out);
void hf__arguments_put(const hf__request *request, hf__buffer *out);
/* Keys and arguments of one refresh for all of these; mixed: their leases differ. */
void hf__arguments_put_refresh(hf_hold *const *holds, unsigned count, bool mixed, hf__buffer *out);

/* request.c */
hf__link *hf__request_link(const hf__request *request);
bool hf__request_wanted(const hf__request *request);
void hf__request_settle(hf__request *request); /* if nobody needs its hold, frees that */
/* The one that must be sent ahead of it on the same connection; NULL: none. */
hf__request *hf__request_ahead(hf__request *request);
/* Encodes the first of those that wait, and with a renewal the renewals that follow it. Returns how
 * many; 0: out of memory. */
unsigned hf__request_encode(const hf__list *waiting, hf__buffer *out);
/* Which part of a reply is for which request of the call that it answers; false: malformed. */
bool hf__request_divide(const hf__reply *reply, hf__request *const *group, unsigned count,
                        hf__reply *parts);
bool hf__request_answer(hf__request *request, const hf__reply *reply); /* false: malformed */
void hf__request_unreachable(hf__request *request, const hf_error *why);

/* split.c: a call of renewals was refused; true: it goes again in halves. The requests must be
 * idle.
 */
bool hf__split_refused(const hf__link *link, const hf__reply *reply, hf__request *const *group,
                       unsigned count);

/* permit.c: which permissions are missing; answered with an array of what is denied */
/* On a new connection, for a request that waits for it. False: no memory. */
bool hf__permit_ask_commands(const hf__request *request, hf__buffer *out);
/* For a request that asks_why. The same. */
bool hf__permit_ask_why(const hf__request *request, hf__buffer *out);
/* False: nothing is denied, or the server cannot tell. */
bool hf__permit_read(const hf__reply *reply, const char *server, const char *what, hf_error *error);

/* push.c: the link on which the server sends messages to this client */
hf__link *hf__push_link(hf__server *server);
bool hf__push_needed(const hf__server *server);
bool hf__push_works(const hf__link *link); /* for locks of that command link */
void hf__push_want(hf__server *server);
void hf__push_want_all(hf__core *core); /* of all servers */
void hf__push_listen(hf_hold *hold);    /* it is held from now on */
void hf__push_unlisten(hf_hold *hold);
void hf__push_ready(hf__server *server);
/* Sends a PING; when the answer with that number is in, all messages from before are. 0: cannot. */
uint64_t hf__push_ping(hf__server *server);
void hf__push_watch(hf__server *server); /* sends a PING when there has been none for a while */
void hf__push_timer(hf__server *server);
bool hf__push_received(hf__server *server, const hf__reply *reply); /* false: malformed */
bool hf__push_number(hf__slice *rest, uint64_t *number); /* takes it and a blank off the front */
void hf__push_link_ready(hf__link *link);                /* a command link is */

/* deaf.c: a server denies us messages */
void hf__deaf_begin(hf__server *server, const char *what, const char *why);
void hf__deaf_end(hf__server *server);                     /* there is a subscription */
hf__span hf__deaf_pause(hf__core *core, unsigned denials); /* before the next try */
void hf__deaf_plan(hf_hold *main);     /* its ballot queues: when to give way where it is so */
void hf__deaf_give_way(hf_hold *main); /* now, and plans the next time */

/* observe.c: watching locks */
void hf__observer_start(hf__core *core, hf_observer *observer);
void hf__observer_end(hf__core *core, hf_observer *observer);
void hf__observer_answered(hf_observer *observer, hf__query_kind kind); /* its call is done */
void hf__observer_timer(hf__timer *timer);
void hf__observer_bury(hf__core *core);
void hf__observer_deny(hf__core *core, const char *why); /* the server does not allow it */
void hf__observer_detach(hf__core *core);                /* all; the core is going away */
void hf__observer_link_ready(hf__core *core);
void hf__observer_link_down(hf__core *core);
void hf__observer_subscribed(hf__core *core, hf__slice channel);
void hf__observer_pong(hf__core *core, uint64_t number);
void hf__observer_message(hf__core *core, hf__slice channel, hf__slice text);

/* queue.c: waiting at the server */
hf__table_hash hf__queue_hash;
void hf__queue_enlist(hf_hold *hold); /* the server may hear of it from now on */
void hf__queue_strike(hf_hold *hold);
hf_hold *hf__queue_find(hf__server *server, uint64_t number);
void hf__queue_want(hf_hold *hold);         /* it has found the lock busy, and may wait */
void hf__queue_leave(hf_hold *hold);        /* it does not wait any more */
bool hf__queue_admits(const hf_hold *hold); /* its next copy may queue */
/* Of a copy that is about to leave; 0: not to queue. */
uint64_t hf__queue_number_copy(hf_hold *hold);
/* The server says that it is queued; returns when to check. */
hf__instant hf__queue_joined(hf_hold *hold, int64_t number, int64_t remaining_ms, bool foreign);
bool hf__queue_believes(hf_hold *hold, uint64_t copy);              /* a grant by that copy */
void hf__queue_check_all(hf__server *server, const hf__link *link); /* of that link; NULL: of all */

/* cohort.c: waiting in this process */
bool hf__cohort_line_up(hf_hold *hold); /* false: it has to go to the server itself */
void hf__cohort_granted(hf_hold *hold, bool others_wait);
void hf__cohort_passed_over(hf_hold *hold); /* somebody elsewhere has begun to wait for it */
/* It is given back, by a call or without: passes it on to the next one here, if that may be. */
bool hf__cohort_hand_over(hf_hold *hold, hf__call *call);
/* The hold stops to stand for others; the next one does. Behind the last request of this one. */
void hf__cohort_leave(hf_hold *hold);
/* The call of a contender ends: lets another one continue in its place, and returns the hold that
 * ends with the call instead. */
hf_hold *hf__cohort_substitute(hf_hold *hold);
void hf__cohort_timer(hf__cohort *cohort);
hf__table_hash hf__cohort_hash;
hf__table_drop hf__cohort_drop;
void hf__cohort_bury(hf__core *core); /* frees those that are retired */

/* hold.c */
void hf__hold_over(hf_hold *hold);   /* nothing is left to do at the server */
void hf__hold_settle(hf_hold *hold); /* if nobody needs it any more, frees it after this step */
void hf__hold_bury(hf__core *core);
void hf__hold_detach(hf_hold *hold);                                   /* its core is going away */
void hf__hold_lose(hf_hold *hold, hf_reason reason, const char *text); /* tells everybody */
void hf__hold_expire(hf_hold *hold, const char *text); /* the same: its deadline has passed */
bool hf__hold_expired(hf_hold *hold);
/* The deadline is that now, later or earlier than before; false as below. */
bool hf__hold_move_deadline(hf_hold *hold, int64_t deadline_ns);
/* Takes the server's word, given to a copy sent then: false if the hold has been found expired
 * before, by any thread, which is final. */
bool hf__hold_believe(hf_hold *hold, hf__instant sent, int64_t remaining_ms);
/* When its lease began, as its deadline tells: a grant that was heard of late is to be renewed as
 * early as if it had been heard of at once. Not earlier than its renewal would be late. */
hf__instant hf__hold_began(const hf_hold *hold);

/* reentry.c: several handles on one hold */
bool hf__reentry_try(hf_hold *fresh); /* makes it a handle on what its thread holds already */
hf__table_hash hf__reentry_hash;
void hf__reentry_allow(hf_hold *hold);
void hf__reentry_forbid(hf_hold *hold);
/* The application gives back a handle. Returns the hold to be released now; NULL: others stay. */
hf_hold *hf__reentry_leave(hf_hold *handle);

/* tell.c */
void hf__tell_all(hf_hold *hold);
void hf__tell_silence(hf_hold *handle);
bool hf__tell_needs(const hf__core *core, const hf_hold *hold); /* a hold, or a handle on one */

/* stats.c */
void hf__histogram_add(hf_histogram *histogram, hf__span span);
void hf__stats_granted(hf_hold *hold, const hf__call *call);
void hf__stats_ended(hf_hold *hold); /* released, or lost; once */
void hf__stats_released(hf_hold *hold, bool released, hf_reason otherwise); /* the server's word */

/* watch.c: the watchdog */
void hf__watch_renewed(hf_hold *hold, hf__instant sent); /* or granted */
void hf__watch_replan(hf_hold *hold);  /* for another interval; what is under way stays so */
void hf__watch_refused(hf_hold *hold); /* try again soon */
void hf__watch_end(hf_hold *hold);
void hf__watch_look(hf_hold *hold);         /* what its state is now */
void hf__watch_look_at_all(hf__link *link); /* whose renewals are overdue or under way */
void hf__watch_renewals(hf__link *link);    /* the time of some has come */
/* How late the latest renewal of the link is; 0: none is so late that new holds must wait. */
hf__span hf__watch_lag(const hf__link *link);
/* Logs when renewals begin to be late, and when they have been on time for a while. */
void hf__watch_note_lag(hf__link *link);

/* replicas.c: grants that replicas must have too */
hf__link *hf__careful_link(hf__server *server); /* on which nothing waits behind a WAIT but WAITs */
bool hf__replicas_new(hf_hold *hold, int count);      /* false: no memory */
void hf__replicas_ask(hf_hold *hold, uint64_t fence); /* it has just been granted, with that */
void hf__replicas_withdraw(hf_hold *hold);   /* what waits to be asked; nothing, if they need not */
bool hf__replicas_idle(const hf_hold *hold); /* no request to them is on its way */
void hf__replicas_given_back(hf_hold *hold); /* for certain; its call goes on, or ends */
void hf__replicas_late(hf_hold *hold);       /* they have not answered in time */
bool hf__replicas_encode_wait(const hf_hold *hold, hf__buffer *out); /* false: no memory */

/* acquire.c, release.c, renew.c, replicas.c: one file for each kind of request.
 * answered: the server's word, false if malformed. refused: it answered with an error.
 * unreachable: an attempt to connect failed while the request waited; it goes on waiting unless
 * withdrawn. `why->status` of a refusal or failure that cannot pass is final for the call. */
void hf__acquire_start(hf__core *core, hf__call *call);
void hf__acquire_go(hf_hold *hold); /* begins, or goes on, at the server */
void hf__acquire_set_timer(hf__call *call);
void hf__acquire_hand_out(hf_hold *handle, hf__call *call);
/* It is held from now on; whoever says so has seen to the deadline. `sent`: when what was granted
 * had been asked for. */
void hf__acquire_take(hf_hold *hold, uint64_t fence, hf__instant sent, bool others_wait);
/* A try has ended without a grant; remaining: of the holder's time, -1: unknown. */
void hf__acquire_try_over(hf_hold *hold, const hf_error *why, int64_t remaining_ms);
/* The server has told us of a grant without being asked. */
void hf__acquire_pushed(hf_hold *hold, uint64_t fence, int64_t lease_ms, bool others_wait);
/* When the next try begins; never, if none fits in before the deadline. */
hf__instant hf__acquire_plan(const hf__call *call, int64_t holder_remaining_ms);
void hf__acquire_end(hf_hold *hold, hf_status status, const char *text);
void hf__acquire_timer(hf__call *call);
bool hf__acquire_answered(hf_hold *hold, const hf__reply *reply);
void hf__acquire_refused(hf_hold *hold, const hf_error *why);
void hf__acquire_unreachable(hf_hold *hold, const hf_error *why);

hf_status hf__release_start(hf_hold *handle, hf__call *call); /* call may be NULL */
void hf__release_in_background(hf_hold *hold);
void hf__release_end_call(hf_hold *hold, hf_status status, const char *text);
/* The hold of the same lock that is being released, and will be, and has this value at the server;
 * NULL: none. */
hf_hold *hf__release_find(const hf_hold *wanting, hf__slice value);
void hf__release_hurry(hf_hold *hold); /* if it pauses between two tries, ends the pause */
void hf__release_timer(hf_hold *hold);
void hf__release_call_timer(hf__call *call);
bool hf__release_answered(hf_hold *hold, const hf__reply *reply);
void hf__release_refused(hf_hold *hold, const hf_error *why);
void hf__release_unreachable(hf_hold *hold, const hf_error *why);

void hf__renew_note(hf_hold *hold, hf__slice note); /* somebody asks for it */
void hf__renew_broken(hf_hold *hold, hf__slice note);
void hf__renew_start(hf__call *call);
bool hf__renew_first(const hf_hold *hold,
                     hf__span *lease); /* what the first call wants; false: none */
void hf__renew_end_first(hf_hold *hold, hf_status status, const char *text);
void hf__renew_end_calls(hf_hold *hold, hf_status status, const char *text);
bool hf__renew_answered(hf_hold *hold, const hf__reply *reply);
void hf__renew_refused(hf_hold *hold, const hf_error *why);
void hf__renew_unreachable(hf_hold *hold, const hf_error *why);

bool hf__confirm_answered(hf_hold *hold, const hf__reply *reply);
bool hf__wait_answered(hf_hold *hold, const hf__reply *reply);
void hf__replicas_failed(hf_hold *hold, const hf_error *why); /* refused or unreachable */

/* attach.c */
bool hf__detach_is_late(const hf_hold *hold); /* a copy of its acquire may come after its release */
hf_status hf__detach(hf_hold *handle, bool *late);
void hf__attach_start(hf__core *core, hf__call *call);
/* The server has it; false: the attempt has failed all the same. */
bool hf__attach_confirm(hf_hold *hold, hf__instant sent, int64_t remaining_ms);
void hf__attach_fail(hf_hold *hold, hf_status status, const char *text);
void hf__attach_timer(hf__call *call);

/* takeover.c: the same for a hold that has votes */
bool hf__takeover_detach(hf_hold *main); /* returns whether a copy may be late */
void hf__takeover_start(hf_hold *main);
void hf__takeover_answered(hf__call *call); /* a question of its own */
void hf__takeover_timer(hf_hold *main);
void hf__takeover_stop(hf_hold *main); /* asks no more */
void hf__takeover_end(hf_hold *main);  /* and lets go of what it has; it has come to nothing */

/* standing.c: servers of a quorum. Of a client with one server, all have a vote. */
void hf__standing_init(hf__server *server);
/* INFO server was read; false: the connection has failed over it. */
bool hf__standing_greeted(hf__link *link, uint64_t uptime_s);
/* Of what the server keeps about itself; the place has room for the prefix and 20 bytes. */
hf__slice hf__standing_key(const hf__core *core, char *place);
void hf__standing_clock(hf__link *link, hf__wall wall); /* as the greeting says */
/* "<run id> <base>", or empty: as the server keeps it. */
void hf__standing_told(hf__link *link, hf__slice text);
void hf__standing_link_ready(hf__link *link);
bool hf__standing_has_vote(const hf__link *link); /* the process behind it */
bool hf__standing_admits(hf_hold *hold); /* false: its acquire waits until the server has a vote */
hf_hold *hf__standing_first_gated(const hf__server *server); /* NULL: none */
void hf__standing_leave_gate(hf_hold *vote);
uint64_t hf__standing_propose(const hf__core *core); /* a fence that all servers should accept */
/* That fence may be believed soon: sees that the server keeps it in mind. */
void hf__standing_reserve(hf__server *server, uint64_t fence);
void hf__standing_timer(hf__server *server);
bool hf__standing_encode(const hf__server *server, hf__buffer *out);
bool hf__standing_answered(hf__server *server, const hf__reply *reply);
void hf__standing_refused(hf__server *server, const hf_error *why);

/* vote.c: what happens to votes, as the files for holds tell it */
void hf__vote_called(hf__call *call);                    /* a call of a vote is done */
void hf__vote_tried(hf_hold *vote, const hf_error *why); /* in vain, and it goes on */
void hf__vote_granted(hf_hold *vote, hf__instant sent, bool others_wait); /* is about to be held */
void hf__vote_confirmed(hf_hold *vote, hf__instant sent);                 /* renewed */
void hf__vote_lost(hf_hold *vote, hf_reason reason);
void hf__vote_released(hf_hold *vote, hf__outcome outcome);
void hf__vote_unreachable(hf_hold *vote); /* the server to which its release is to go */
void hf__vote_inquired(hf_hold *vote, hf__slice rest);
void hf__vote_seen(hf_hold *vote, uint64_t ticket); /* tickets up to that one may be given out */
uint64_t hf__vote_proposal(const hf_hold *vote);    /* for the next fence */
uint64_t hf__vote_ticket(const hf_hold *vote);      /* 0: it does not queue */
bool hf__vote_is_raising(const hf_hold *hold);
void hf__vote_raise_sent(hf_hold *vote);
void hf__vote_check_server(hf__server *server); /* it may have told of others in vain */
bool hf__vote_forgets(const hf_hold *hold);
bool hf__vote_of_nobody(const hf_hold *hold);
hf_hold *hf__vote_main(const hf_hold *vote); /* NULL: it counts for none any more */

/* ballot.c: what is done with a hold that has votes */
bool hf__ballot_new(hf_hold *main);       /* false: no memory */
void hf__ballot_free(hf__ballot *ballot); /* NULL is fine */
void hf__ballot_go(hf_hold *main);        /* begins a try, or goes on */
void hf__ballot_give_up(hf_hold *main, const hf_error *last);
void hf__ballot_try_ends(hf_hold *main); /* its time is up */
void hf__ballot_end(hf_hold *main);      /* all is given back, and asked for no more */

/* handback.c */
void hf__handback_start(hf_hold *main);
void hf__handback_released(hf_hold *main, int server, hf__outcome outcome);
void hf__handback_unheard(hf_hold *main, int server, bool was_asked);
void hf__handback_late(const hf_hold *main, hf_error *error); /* to be told to its caller */
void hf__handback_over(hf_hold *main);                        /* nothing can be left of it */
void hf__ballot_check_all(hf__core *core);

/* majority.c */
void hf__majority_extend(hf_hold *main); /* for the first call that waits */
void hf__majority_stop_renewals(hf_hold *main);
void hf__majority_replan(hf_hold *main);
void hf__majority_over(hf_hold *main); /* it was lost: what is left of it is given back */

/* query.c */
/* With the key, and room for a text of so many bytes; NULL: out of memory. */
hf__query *hf__query_new_sized(hf__query_kind kind, hf__slice prefix, hf__slice name,
                               size_t text_length);
void hf__query_start(hf__core *core, hf__call *call);
void hf__query_end(hf__query *query, hf_status status, const char *text);
void hf__query_timer(hf__call *call);
bool hf__query_answered(hf__part *part, const hf__reply *reply);
void hf__query_refused(hf__part *part, const hf_error *why);
void hf__query_unreachable(hf__part *part, const hf_error *why);
bool hf__query_wants(const hf__part *part); /* an answer */
void hf__query_bury(hf__core *core);        /* those that nobody needs any more */
/* How a part stands that has to end now without an answer. */
void hf__query_part_trouble(const hf__part *part, hf_error *why);

/* question.c: what a part of a query looks like on the wire, and its answer */
typedef enum hf__read_answer {
    HF__ANSWER_READ,
    HF__ANSWER_MALFORMED,
    HF__ANSWER_NO_MEMORY
} hf__read_answer;

bool hf__question_encode(const hf__part *part, hf__buffer *out); /* false: no memory */
hf__read_answer hf__question_read(const hf__part *part, const hf__reply *reply, hf__answer *answer);

/* errand.c */
bool hf__errand_encode(const hf__part *part, hf__buffer *out); /* false: no memory */
size_t hf__errand_key_count(const hf__query *query);
size_t hf__errand_bytes(const hf__query *query); /* at most, of its keys and arguments */
/* There must be room for them; returns where its arguments begin. */
const char *hf__errand_put_keys(const hf__query *query, hf__buffer *out);
hf__read_answer hf__errand_read(const hf__reply *reply, hf__answer *answer);

/* survey.c: a query that all servers of a quorum are asked */
void hf__survey_start(hf__query *query);
bool hf__survey_answered(hf__part *part, const hf__reply *reply); /* false: malformed */
void hf__survey_failed(hf__part *part, const hf_error *why);
void hf__survey_timer(hf__query *query); /* the time of the call is over */
void hf__survey_withdraw(hf__survey *survey);
bool hf__survey_lingers(const hf__survey *survey); /* it goes on without its call */
bool hf__survey_idle(const hf__survey *survey);
void hf__survey_free(hf__survey *survey); /* NULL is fine */

/* verdict.c */
typedef enum hf__verdict {
    HF__VERDICT_RELOAD,  /* the script is not known there: send it whole */
    HF__VERDICT_PASSING, /* may be served later */
    HF__VERDICT_MOVED,   /* may be served by a new connection, perhaps to another server */
    HF__VERDICT_KEY,     /* final: access to one of its keys is denied */
    HF__VERDICT_COMMAND, /* final: a command inside of the script is denied */
    HF__VERDICT_FINAL
} hf__verdict;

hf__verdict hf__judge(const hf__reply *reply, const char *server, hf_error *error);
bool hf__may_pass(hf_status status);

static inline bool hf__is_fence(uint64_t number)
{
    return number > 0 && number < UINT64_C(1) << HF__FENCE_BITS;
}

/* Milliseconds as the server says them, within what our arithmetic can hold. */
static inline int64_t hf__sane_ms(int64_t ms)
{
    return ms < -1 ? -1 : ms > HF_MS_MAX ? HF_MS_MAX : ms;
}

#endif
