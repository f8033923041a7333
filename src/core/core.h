/* SPDX-License-Identifier: MIT */
/* What the room `core` shows to the rooms above it: a pure machine.
 *
 *     hf__core_step(core, &event)         something happened; the event carries the time
 *     hf__core_next(core, &action)        what to do about it, until it returns false
 *     hf__core_output(core, link, ...)    bytes to write on a link
 *     hf__core_wake(core)                 step with HF__EVENT_TICK then, at the latest
 *
 * Nothing in here reads a clock, opens a socket or starts a thread, so that the same code runs in
 * the driver (src/net) and, in virtual time, in the tests. Not thread-safe: one at a time.
 *
 * Who owns what. The caller owns calls: a call belongs to the core from the step that starts it
 * until HF__ACTION_DONE hands it back. A hold belongs to the core as well; its handle is in the
 * caller's hand from a successful acquire until the step that releases it. A thread that re-enters
 * a lock has several handles on one hold; to the rooms above they are all alike. */
#ifndef HF_CORE_CORE_H
#define HF_CORE_CORE_H

#include <holdfast.h>

#include "base/buffer.h"
#include "base/instant.h"
#include "base/list.h"
#include "base/timers.h"
#include "core/url.h"
#include "lua/scripts.h"
#include "resp/encode.h"

typedef struct hf__core hf__core;
typedef struct hf__query hf__query;

typedef enum hf__check_kind {
    HF__CHECK_EVICTION,
    HF__CHECK_REPLICA,
    HF__CHECK_VERSION,
    HF__CHECK_PERSISTENCE,
    HF__CHECK_CLOCK,
    HF__CHECK_KINDS
} hf__check_kind;

enum { HF__FENCE_KEEP_MS = 3600 * 1000 }; /* as src/lua has it where nobody says another time */

typedef struct hf__config {
    const hf__url *servers; /* one, or those of a quorum; must outlive the core */
    int server_count;
    char client_id[33]; /* 128 random bits in hexadecimal */
    hf__span connect_timeout;
    hf__span reply_timeout;
    hf__span call_timeout;
    hf__slice side_prefix; /* of side keys; must outlive the core */
    hf__span fence_keep;   /* how long a fence is remembered at least; see docs/wire.md */
    hf__span max_lease;    /* that anybody may ask for: how long a server that forgot has no vote */
    int64_t drift_ppm;     /* of a lease, and */
    hf__span drift;        /* are taken off for clocks that run at different rates */
    bool durable_servers;  /* they never forget: one that was restarted may vote at once */
    int links;
    int local_turns; /* how often in a row a lock may pass between the threads of this client */
    hf_check checks[HF__CHECK_KINDS]; /* what to do about the server; default is to ignore it */
    uint64_t seed;                    /* for jitter and the numbers of copies */
} hf__config;

/* ---- Calls: what the application asks for ---- */

enum { HF__NUMBERS_MAX = 16 };

typedef struct hf__numbers { /* what a script of an errand says */
    int count;               /* 0: nothing */
    int64_t number[HF__NUMBERS_MAX];
} hf__numbers;

typedef struct hf__answer {    /* to a query; what it does not ask for stays zero */
    hf_inspection *inspection; /* inspect: to be filled, but for the name; given by the caller */
    hf__buffer value;          /* inspect, of one server: the lock's value; errand: the text behind
                                  its numbers, if any; the caller frees it */
    hf__numbers numbers;       /* errand, of one server */
    hf__numbers *by_server;    /* errand, of all servers of a quorum: at least a majority of them
                                  is filled if it succeeds; given by the caller */
    hf_examination *examination; /* info: to be filled; given by the caller */
    hf__wall wall;               /* time */
    uint64_t number; /* revoke: 1 or 0; break: the new fence or 0; scan: the next cursor */
    hf__buffer keys; /* scan: each as 4 bytes of length and its bytes; the caller frees it */
    /* Inspect, on a quorum, also if it fails; bit n stands for server n. */
    unsigned awaits;   /* must answer, or fail to, before it is decided; given by the caller */
    unsigned answered; /* has answered, */
    unsigned knows;    /* and has a fence of the lock */
} hf__answer;

typedef enum hf__call_kind {
    HF__CALL_ACQUIRE,
    HF__CALL_RELEASE,
    HF__CALL_EXTEND,
    HF__CALL_ATTACH,
    HF__CALL_QUERY,
    HF__CALL_CLOSE
} hf__call_kind;

typedef struct hf__call {
    hf__call_kind kind;
    hf_hold *hold;      /* acquire: a fresh one, owned by the core from now on; query: the handle of
                           whoever makes it because of a hold, else NULL */
    hf__query *query;   /* query: a fresh one, owned by the core from now on */
    hf__answer *answer; /* query: where the answer goes */
    hf__instant ends;   /* query: at the latest, if call_timeout would be later; 0: that alone */
    hf__span lease;     /* extend, attach */
    int64_t wait_ms;    /* acquire, as in hf_acquire_options */
    int64_t max_retries;
    hf__span retry_interval;
    bool polls;             /* acquire: does not queue */
    bool fair;              /* acquire: does not line up behind another thread */
    hf_observer *observer;  /* query: asks by itself; the core's own */
    hf_hold *vote;          /* acquire, extend, attach: of a vote; the core's own */
    hf_hold *taken_up;      /* query: for this one, on a quorum; the core's own */
    struct hf__call *ahead; /* release: a query that leaves ahead of it, in the same step and over
                               the same link; it has what that takes, and nobody else waits for it.
                               The release is done when both are */
    void *waiter;           /* the driver's: the condition on which a thread waits for the call */
    bool is_operation;      /* the driver's: part of an hf__operation, no thread waits for it */

    bool cancelled; /* acquire: asked to, perhaps before it was started */
    bool taken;     /* started: it has, or had, what belongs to the call */
    bool done;      /* error.status is the outcome */
    bool gives_way; /* others need the processor more than its caller, to get the lock */
    hf_error error;

    /* The core's own, all zero at the start. */
    hf__node node;
    hf__timer timer;
    hf__instant started;
    hf__instant deadline; /* of the whole call */
    hf__instant try_ends; /* acquire: of the current try */
    hf__instant next_try; /* acquire: while pausing, else never */
    hf__span round_trip;  /* acquire: of the last answered try */
    bool retries_limited;
    bool contended;          /* acquire: it was found held */
    bool asked_again;        /* acquire: in this try, after a grant that came too late */
    struct hf__call *behind; /* query: the release that it is ahead of */
    bool held_back;          /* release: it would be done, but for what is ahead of it */
} hf__call;

/* ---- Events ---- */

typedef enum hf__event_kind {
    HF__EVENT_TICK,      /* time passed */
    HF__EVENT_START,     /* application: call */
    HF__EVENT_CANCEL,    /* application: call, if it is not done yet */
    HF__EVENT_LET_GO,    /* application: release `hold` without waiting; outcome in `status` */
    HF__EVENT_DETACH,    /* application: let go of `hold`, not of the lock; outcome in `status` */
    HF__EVENT_OBSERVE,   /* application: observer, which belongs to the core from now on */
    HF__EVENT_UNOBSERVE, /* application: observer; it is freed */
    HF__EVENT_CONNECTED, /* net: link, wall, credentials, reason (how it is protected) */
    HF__EVENT_BYTES,     /* net: link, bytes, count */
    HF__EVENT_DISCONNECTED, /* net: link, reason, status; also when connecting failed */
    HF__EVENT_COUNT
} hf__event_kind;

typedef struct hf__event {
    hf__event_kind kind;
    hf__instant now;
    hf__call *call;
    hf_hold *hold;
    hf_observer *observer;
    hf_status
        status; /* LET_GO, DETACH: out. DISCONNECTED: what to tell those who wait; 0: unavailable */
    bool late;  /* DETACH: out. A copy of the acquire may still reach the server */
    int link;
    const char *bytes;
    size_t count;
    const char *reason;                /* for people; may be NULL */
    hf__wall wall;                     /* what time it is; 0: unknown */
    const hf_credentials *credentials; /* NULL: none */
} hf__event;

/* ---- Actions ---- */

typedef enum hf__action_kind {
    HF__ACTION_CLOSE,   /* link: drop the connection; no event is expected */
    HF__ACTION_CONNECT, /* link: begin to connect */
    HF__ACTION_DONE,    /* call is finished */
    HF__ACTION_LOG      /* level, text (valid until the next step) */
} hf__action_kind;

typedef struct hf__action {
    hf__action_kind kind;
    int link;
    hf__call *call;
    hf_log_level level;
    const char *text;
} hf__action;

hf__core *hf__core_new(const hf__config *config); /* NULL: out of memory */
/* How many links there are: for each server those of the configuration, and behind them one for
 * messages; if there is one server, also one for acquires that replicas must acknowledge. */
enum { HF__LINKS_BESIDES = 2 }; /* at most */
int hf__core_links(const hf__core *core);
int hf__core_server(const hf__core *core, int link); /* to which a link leads */
void hf__core_free(hf__core *core); /* handles of holds stay valid; see hf__hold_abandon() */
void hf__core_step(hf__core *core, hf__event *event);
bool hf__core_next(hf__core *core, hf__action *action);
size_t hf__core_output(const hf__core *core, int link, const char **bytes);
void hf__core_written(hf__core *core, int link, size_t count);
hf__instant hf__core_wake(const hf__core *core);
bool hf__core_awaits(const hf__core *core);            /* the answer to a request: it is not far */
bool hf__core_expects(const hf__core *core, int link); /* an answer or message is to come there */

/* ---- What applications are told about their holds ---- */

typedef struct hf__tell {
    hf_hold *hold;               /* a handle */
    hf_event_function *function; /* may be NULL */
    void *arg;
    hf_event event; /* its text is valid until hf__core_told() */
} hf__tell;

/* The next thing to tell; false: there is none, or the last one has not been told yet, which is to
 * be said with hf__core_told(). */
bool hf__core_next_tell(hf__core *core, hf__tell *tell);
void hf__core_told(hf__core *core);
/* The descriptor of somebody who is still to be told something, each once; -1: there is none. */
int hf__core_next_descriptor(hf__core *core);
bool hf__core_has_news(const hf__core *core); /* perhaps */
/* Whether the listener of this handle is being told something. */
bool hf__core_is_telling(const hf__core *core, const hf_hold *handle);

/* ---- What observers are told ---- */

typedef struct hf__sight {
    hf_sight_function *function;
    void *arg;
    hf_sight sight;
} hf__sight;

hf_observer *hf__observer_new(hf__slice prefix, hf__slice name, hf_sight_function *function,
                              void *arg);         /* NULL: out of memory */
void hf__observer_drop(hf_observer *observer);    /* one that was never started */
void hf__observer_abandon(hf_observer *observer); /* without a step, also after its core is gone */
void hf__observer_set_client(hf_observer *observer, void *client);
void *hf__observer_client(const hf_observer *observer);
/* As hf__core_next_tell() and hf__core_told(). */
bool hf__core_next_sight(hf__core *core, hf__sight *sight);
void hf__core_sight_told(hf__core *core);
bool hf__core_is_seeing(const hf__core *core, const hf_observer *observer);

void hf__core_stats(const hf__core *core, hf_stats *stats);
void hf__core_load(const hf__core *core, hf_load *load);

/* ---- Holds ---- */

typedef struct hf__identity {
    const char *client_id;
    const char *host;
    uint64_t pid;
    uint64_t thread; /* never the same for two threads of a process */
    uint64_t number; /* never the same twice in a client */
} hf__identity;

/* Holds of a client with several servers are numbered in steps of this: a hold has many numbers
 * there, for each of its votes must have one that was never used. */
#define HF__NUMBER_STEP (UINT64_C(1) << 24)

typedef struct hf__wish { /* what an acquire asks for; everything is copied */
    hf__identity who;
    hf__slice prefix, name;
    hf__slice owner; /* length 0: the thread */
    hf__slice label;
    hf__slice value;           /* length 0: one is made of who it is for */
    uint64_t fence, fence_top; /* attach: that it has, and that were reserved */
    hf__span lease_before;     /* attach: that it had */
    bool late;                 /* attach: a copy of its acquire may still reach the server */
    bool reenters;             /* the thread may have it already */
    hf__span lease;
    hf__span renew_interval; /* 0: no renewal by itself */
    hf__span renew_timeout;
    hf__span max_hold; /* 0: no limit */
    hf__span warn;
    hf_event_function *on_event;
    void *arg;
    bool listens_later; /* on_event hears nothing before hf__hold_listen() */
    int replicas;       /* acquire: that must have acknowledged the grant */
} hf__wish;

/* A hold for one acquire; NULL: out of memory. */
hf_hold *hf__hold_new(const hf__wish *wish);
void hf__hold_drop(hf_hold *hold); /* frees a hold that was never started */
/* Takes back the handle of a hold without releasing it, also after its core is gone. */
void hf__hold_abandon(hf_hold *hold);
void hf__hold_set_client(hf_hold *hold, void *client);
void *hf__hold_client(const hf_hold *hold);
/* What happened before is told from now on. */
void hf__hold_listen(hf_hold *hold);
hf__span hf__hold_lease(const hf_hold *hold);
hf__span hf__hold_longest_lease(const hf_hold *hold); /* that it has ever asked for */
uint64_t hf__hold_fence(const hf_hold *hold);
uint64_t hf__hold_fence_top(const hf_hold *hold);
hf__slice hf__hold_key_text(const hf_hold *hold);
hf__slice hf__hold_value_text(const hf_hold *hold); /* of the hold it belongs to */
hf__slice hf__hold_owner_text(const hf_hold *hold); /* the same; empty: none */
/* The descriptor that is made readable when there is something to tell, also of what happened
 * before it was set; -1: none. */
void hf__hold_set_descriptor(hf_hold *hold, int descriptor);
int hf__hold_descriptor(const hf_hold *hold);

/* From any thread: how long it is valid from then on; 0 for good once it is 0. And its state. */
hf__span hf__hold_remaining(hf_hold *hold, hf__instant now);
hf_state hf__hold_state(hf_hold *hold, hf__instant now);

/* ---- Queries: questions and orders about locks that one does not hold ---- */

/* On a quorum, inspect, revoke and break are for all servers, the others for one. There each server
 * has its own value and fence of a lock, and is asked for them first: the orders take none. */
typedef enum hf__query_kind {
    HF__QUERY_INSPECT, /* key */
    HF__QUERY_REVOKE,  /* key; text: why; number: its fence */
    HF__QUERY_BREAK,   /* key; text: the lock's value; number: its fence */
    HF__QUERY_OBSERVE, /* key; number: ms */
    HF__QUERY_SCAN,    /* text: pattern; number: cursor */
    HF__QUERY_INFO,
    HF__QUERY_TIME,
    HF__QUERY_ERRAND /* see below */
} hf__query_kind;

/* NULL: out of memory. Owned by the core from the step that starts its call. */
hf__query *hf__query_new(hf__query_kind kind, hf__slice prefix, hf__slice name, hf__slice text,
                         uint64_t number);
void hf__query_drop(hf__query *query); /* one that was never started */

/* An errand is a call of one of our scripts that has nothing to do with locks: ids, stock, values.
 * It says all that the script is given, but for the first two arguments, which every copy has of
 * its own: the run id of the server process that it is sent to, and 1 if an earlier copy may have
 * come there, else 0. The answer is one number, or a few of them with perhaps one text behind. On a
 * quorum all servers are asked, until a majority has said 1 as its first number, or all have said
 * something; of those that take much longer than a majority did nothing is heard. */
typedef struct hf__errand {
    hf__script_id script;
    hf__slice prefix, name;
    const char *letters;   /* its keys: side keys of the name, in this order ('=': the name itself);
                              must outlive the query */
    const hf__slice *keys; /* and behind them these, as they are */
    size_t key_count;
    const hf__slice *words; /* further arguments */
    size_t word_count;
} hf__errand;

hf__query *hf__query_new_errand(const hf__errand *errand); /* NULL: out of memory */
void hf__query_ask(hf__query *query, int server); /* this one, and no other; before it is started */

#endif
