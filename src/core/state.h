/* SPDX-License-Identifier: MIT */
/* The core's state, shared by the files of this room and by nobody else.
 *
 * A core has links (connections to the server) and holds. A hold has up to three requests, one of
 * each kind; a request is idle, waits for its link to be ready, or is in flight on it. Every link
 * keeps its requests in order, and a lock always uses the same link, so the server sees one lock's
 * requests in the order in which they were made. */
#ifndef HF_CORE_STATE_H
#define HF_CORE_STATE_H

#include <stdatomic.h>

#include "base/buffer.h"
#include "core/core.h"
#include "lua/scripts.h"
#include "resp/encode.h"
#include "resp/reader.h"

typedef struct hf__link hf__link;

/* ---- Requests ---- */

typedef enum hf__request_kind {
    HF__REQUEST_ACQUIRE,
    HF__REQUEST_RELEASE,
    HF__REQUEST_RENEW,
    HF__REQUEST_KINDS
} hf__request_kind;

typedef enum hf__request_place { HF__IDLE, HF__WAITING, HF__IN_FLIGHT } hf__request_place;

typedef struct hf__request {
    hf__request_kind kind;
    hf__request_place place;
    hf_hold *hold;
    hf__node node;
    hf__instant sent;    /* of the copy in flight: before its first byte could leave */
    unsigned unanswered; /* copies that went down with their connection */
    bool refused;        /* release: for a reason that will not pass */
    bool whole;          /* send the script itself: the server did not know its SHA-1 */
} hf__request;

/* ---- Holds ---- */

typedef enum hf__hold_state {
    HF__HOLD_TRYING,    /* an acquire call works on it */
    HF__HOLD_HELD,      /* granted; the application has the handle */
    HF__HOLD_RELEASING, /* being given back, with or without a call that waits for it */
    HF__HOLD_OVER       /* nothing left to do at the server */
} hf__hold_state;

struct hf_hold {
    void *client; /* of the api room */
    hf__core *core;
    hf__link *link;
    hf__node node;      /* in core->holds, at last in core->dead */
    hf__node releasing; /* in core->releasing, while in that state */
    hf__hold_state state;
    bool handed_out;   /* the application has the handle: the memory must stay */
    bool lost;         /* for good: the deadline passed, or the server said so */
    bool granted_late; /* too late to be believed, but the server may have it */
    bool dead;         /* settled; freed at the end of the step */
    bool copy_lost;    /* an acquire went unanswered on a broken link and may still arrive */
    _Atomic int64_t deadline_ns; /* valid before it; 0: not valid. Read by other threads */
    uint64_t run;                /* the server process that granted it */
    hf__span lease;              /* as acquired */
    hf__span longest_lease;      /* ever asked for: the server may keep it that long */
    hf__instant give_up;         /* releasing: the lease is over then, whatever we do */
    hf__timer timer;             /* releasing: next try, or give_up */
    hf__call *call;              /* that acquires or releases; NULL: none waits */
    hf__list extends;            /* calls, the first one is being served */
    hf__request requests[HF__REQUEST_KINDS];
    unsigned slot;
    size_t key_length;
    size_t value_length;
    char text[]; /* key, then value */
};

/* ---- Links ---- */

typedef enum hf__link_state {
    HF__LINK_DOWN,       /* nobody needs it */
    HF__LINK_BACKOFF,    /* waits before it connects again */
    HF__LINK_CONNECTING, /* the driver connects */
    HF__LINK_GREETING,   /* connected; introducing ourselves */
    HF__LINK_READY
} hf__link_state;

enum { HF__GREETING_MAX = 16 };

struct hf__link {
    hf__core *core;
    int index;
    hf__link_state state;
    bool wants_close;
    bool wants_connect;
    hf__buffer out;
    hf__reader *reader;
    hf__list waiting;
    hf__list in_flight;
    hf__timer timer;
    unsigned failures;                        /* in a row */
    hf__instant last_failure;                 /* of an attempt to connect */
    hf_error trouble;                         /* why the last connection or attempt failed */
    unsigned char greeting[HF__GREETING_MAX]; /* what was asked, in order */
    unsigned greeting_length;
    unsigned greeting_answered;
    char run_id[41]; /* of the server process behind it */
    uint64_t run;    /* counts the changes of run_id */
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
    hf__list dead;        /* holds to be freed at the end of the step */
    hf__list done;        /* calls */
    bool closing;         /* for good */
    hf__call *close_call; /* until it is done */
    hf__list releasing;   /* holds in that state, by their second node */
    hf__log_line log[HF__LOG_LINES];
    size_t log_first;
    size_t log_count;
    hf__link links[HF_LINKS_MAX];
};

enum { HF__TIMER_LINK, HF__TIMER_CALL, HF__TIMER_HOLD };

static inline hf__slice hf__hold_key(const hf_hold *hold)
{
    return (hf__slice){hold->text, hold->key_length};
}

static inline hf__slice hf__hold_value(const hf_hold *hold)
{
    return (hf__slice){hold->text + hold->key_length, hold->value_length};
}

/* ---- What the files of this room offer each other ---- */

/* core.c */
void hf__log(hf__core *core, hf_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void hf__call_done(hf__core *core, hf__call *call, hf_status status, const char *text);

/* link.c */
void hf__link_init(hf__core *core, int index);
void hf__link_free(hf__link *link);
bool hf__link_full(const hf__link *link);
void hf__link_submit(hf__request *request);   /* idle -> waiting or in flight */
void hf__link_withdraw(hf__request *request); /* waiting -> idle; otherwise nothing */
void hf__link_ready(hf__link *link);
void hf__link_fail(hf__link *link, hf_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void hf__link_connected(hf__link *link);
void hf__link_bytes(hf__link *link, const char *bytes, size_t count);
void hf__link_timer(hf__link *link);
void hf__link_stamp_late(hf__link *link); /* what the mutant SENT_AFTER left unstamped */

/* greeting.c */
bool hf__greeting_send(hf__link *link); /* false: out of memory */
void hf__greeting_reply(hf__link *link, const hf__reply *reply);

/* request.c */
bool hf__request_wanted(const hf__request *request);
bool hf__request_encode(const hf__request *request, hf__buffer *out);
bool hf__request_answer(hf__request *request, const hf__reply *reply); /* false: malformed */
void hf__request_unreachable(hf__request *request, const hf_error *why);

/* hold.c */
void hf__hold_over(hf_hold *hold);   /* nothing is left to do at the server */
void hf__hold_settle(hf_hold *hold); /* if nobody needs it any more, frees it after this step */
void hf__hold_bury(hf__core *core);
void hf__hold_lose(hf_hold *hold);
bool hf__hold_expired(hf_hold *hold);
/* Takes the server's word, given to a copy sent then: false if the hold has been found expired
 * before, by any thread, which is final. */
bool hf__hold_believe(hf_hold *hold, hf__instant sent, int64_t remaining_ms);

/* acquire.c, release.c, extend.c: one file for each kind of request.
 * answered: the server's word, false if malformed. refused: it answered with an error.
 * unreachable: an attempt to connect failed while the request waited; it goes on waiting unless
 * withdrawn. `why->status` of a refusal or failure that cannot pass is final for the call. */
void hf__acquire_start(hf__core *core, hf__call *call);
void hf__acquire_end(hf_hold *hold, hf_status status, const char *text);
void hf__acquire_timer(hf__call *call);
bool hf__acquire_answered(hf_hold *hold, const hf__reply *reply);
void hf__acquire_refused(hf_hold *hold, const hf_error *why);
void hf__acquire_unreachable(hf_hold *hold, const hf_error *why);

hf_status hf__release_start(hf_hold *hold, hf__call *call); /* call may be NULL */
void hf__release_in_background(hf_hold *hold);
/* The hold with this value that is being released, and will be; NULL: there is none. */
hf_hold *hf__release_find(hf__core *core, hf__slice value);
void hf__release_hurry(hf_hold *hold); /* if it pauses between two tries, ends the pause */
void hf__release_timer(hf_hold *hold);
void hf__release_call_timer(hf__call *call);
bool hf__release_answered(hf_hold *hold, const hf__reply *reply);
void hf__release_refused(hf_hold *hold, const hf_error *why);
void hf__release_unreachable(hf_hold *hold, const hf_error *why);

void hf__extend_start(hf__call *call);
void hf__extend_end_all(hf_hold *hold, hf_status status, const char *text);
void hf__extend_timer(hf__call *call);
bool hf__extend_answered(hf_hold *hold, const hf__reply *reply);
void hf__extend_refused(hf_hold *hold, const hf_error *why);
void hf__extend_unreachable(hf_hold *hold, const hf_error *why);

/* verdict.c */
typedef enum hf__verdict {
    HF__VERDICT_RELOAD,  /* the script is not known there: send it whole */
    HF__VERDICT_PASSING, /* may be served later */
    HF__VERDICT_MOVED,   /* may be served by a new connection, perhaps to another server */
    HF__VERDICT_FINAL
} hf__verdict;

hf__verdict hf__judge(const hf__reply *reply, const char *server, hf_error *error);
bool hf__may_pass(hf_status status);

/* Milliseconds as the server says them, within what our arithmetic can hold. */
static inline int64_t hf__sane_ms(int64_t ms)
{
    return ms < -1 ? -1 : ms > HF_MS_MAX ? HF_MS_MAX : ms;
}

#endif
