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
 * caller's hand from a successful acquire until the step that releases it. */
#ifndef HF_CORE_CORE_H
#define HF_CORE_CORE_H

#include <holdfast.h>

#include "base/instant.h"
#include "base/list.h"
#include "base/timers.h"
#include "core/url.h"

typedef struct hf__core hf__core;

typedef struct hf__config {
    const hf__url *server; /* must outlive the core */
    char client_id[33];    /* 128 random bits in hexadecimal */
    hf__span connect_timeout;
    hf__span reply_timeout;
    hf__span call_timeout;
    int links;
    uint64_t seed; /* for jitter */
} hf__config;

/* ---- Calls: what the application asks for ---- */

typedef enum hf__call_kind {
    HF__CALL_ACQUIRE,
    HF__CALL_RELEASE,
    HF__CALL_EXTEND,
    HF__CALL_CLOSE
} hf__call_kind;

typedef struct hf__call {
    hf__call_kind kind;
    hf_hold *hold;   /* acquire: a fresh one, owned by the core from now on */
    hf__span lease;  /* extend */
    int64_t wait_ms; /* acquire, as in hf_acquire_options */
    int64_t max_retries;
    hf__span retry_interval;
    void *waiter; /* the driver's: the condition on which a thread waits for the call */

    bool cancelled; /* acquire: asked to, perhaps before it was started */
    bool done;      /* error.status is the outcome */
    hf_error error;

    /* The core's own, all zero at the start. */
    hf__node node;
    hf__timer timer;
    hf__instant deadline; /* of the whole call */
    hf__instant try_ends; /* acquire: of the current try */
    hf__instant next_try; /* acquire: while pausing, else never */
    hf__span round_trip;  /* acquire: of the last answered try */
    bool retries_limited;
    bool asked_again; /* acquire: in this try, after a grant that came too late */
} hf__call;

/* ---- Events ---- */

typedef enum hf__event_kind {
    HF__EVENT_TICK,         /* time passed */
    HF__EVENT_START,        /* application: call */
    HF__EVENT_CANCEL,       /* application: call, if it is not done yet */
    HF__EVENT_LET_GO,       /* application: release `hold` without waiting; outcome in `status` */
    HF__EVENT_CONNECTED,    /* net: link */
    HF__EVENT_BYTES,        /* net: link, bytes, count */
    HF__EVENT_DISCONNECTED, /* net: link, reason; also when connecting failed */
    HF__EVENT_COUNT
} hf__event_kind;

typedef struct hf__event {
    hf__event_kind kind;
    hf__instant now;
    hf__call *call;
    hf_hold *hold;
    hf_status status; /* out, for HF__EVENT_LET_GO */
    int link;
    const char *bytes;
    size_t count;
    const char *reason;
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
void hf__core_free(hf__core *core); /* handles of holds stay valid; see hf__hold_abandon() */
void hf__core_step(hf__core *core, hf__event *event);
bool hf__core_next(hf__core *core, hf__action *action);
size_t hf__core_output(const hf__core *core, int link, const char **bytes);
void hf__core_written(hf__core *core, int link, size_t count);
hf__instant hf__core_wake(const hf__core *core);
bool hf__core_expects(const hf__core *core, int link); /* an answer is outstanding there */

/* ---- Holds ---- */

typedef struct hf__identity {
    const char *client_id;
    const char *host;
    uint64_t pid;
    uint64_t thread;
    uint64_t number; /* never the same twice in a client */
} hf__identity;

/* A hold for one acquire; NULL: out of memory. */
hf_hold *hf__hold_new(const hf__identity *who, const char *prefix, size_t prefix_length,
                      const char *name, size_t name_length, hf__span lease);
void hf__hold_drop(hf_hold *hold); /* frees a hold that was never started */
/* Takes back the handle of a hold without releasing it, also after its core is gone. */
void hf__hold_abandon(hf_hold *hold);
void hf__hold_set_client(hf_hold *hold, void *client);
void *hf__hold_client(const hf_hold *hold);
hf__span hf__hold_lease(const hf_hold *hold);
/* How long it is valid from then on; 0 for good once it is 0. From any thread. */
hf__span hf__hold_remaining(hf_hold *hold, hf__instant now);

#endif
