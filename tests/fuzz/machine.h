/* SPDX-License-Identifier: MIT */
/* The other half of the fuzz target of the core: carries out what the core wants and checks what it
 * does. fuzz_core.c decides what happens next. There is one machine at a time, and all of it is
 * open: what happens next depends on what is there. */
#ifndef HF_TESTS_FUZZ_MACHINE_H
#define HF_TESTS_FUZZ_MACHINE_H

#include "core/core.h"
#include "fuzz.h"

enum { CALLS = 64, OBSERVERS = 4 };

typedef enum port { PORT_CLOSED, PORT_CONNECTING, PORT_OPEN } port;

typedef struct held {
    hf_hold *hold;       /* a handle; NULL: not in our hands */
    bool over;           /* it was found so once */
    bool told_lost;      /* its on_event was */
    hf_state told_state; /* what that knows */
    hf_reason told_reason;
} held;

typedef struct query_call { /* a call with room for its answer */
    hf__call call;
    hf__answer answer;
    hf_inspection inspection;
} query_call;

/* What acquires ask for besides a name and a lease; bits. */
enum {
    WISH_REENTERS = 1,
    WISH_RENEWED = 2,
    WISH_OWNER = 4,
    WISH_LABEL = 8,
    WISH_WARNED = 16,
    WISH_LIMITED = 32,
    WISH_SECOND_THREAD = 64,
    WISH_DEAF = 128
};

/* How acquires wait; bits. */
enum { PATIENCE_QUEUES = 1, PATIENCE_FAIR = 2 };

extern struct machine {
    input in;
    hf__url server;
    hf__config config;
    hf__core *core;
    hf__instant now;
    port ports[HF_LINKS_MAX + HF__LINKS_BESIDES]; /* the one for messages is behind the others */
    hf__call *calls[CALLS];                       /* that the core has */
    hf__instant due[CALLS];                       /* when the call in that place must be done */
    held holds[CALLS];
    hf_observer *observers[OBSERVERS]; /* in our hands */
    bool closing;                      /* a close was started */
    uint64_t numbers;                  /* of acquires, CALLS at most */
    uint8_t wish;                      /* of the acquires from now on: WISH_... */
    uint8_t patience;                  /* of the acquires from now on: PATIENCE_... */
    int64_t fence;                     /* of the next grant */
    int64_t said_ms;                   /* the longest time that the server has said so far */
    const hf_hold *telling; /* the handle whose on_event has not returned yet; NULL: none */
    bool tells_slowly;      /* on_event does not return by itself */
    int allocations_left;   /* before one fails; -1: none does */
    bool ends_silently;     /* without a word to the links */
    bool handles_first;     /* given back before the core is freed, or after */
} m;

void machine_begin(const uint8_t *bytes, size_t count); /* its configuration is in the first ones */
void machine_end(void); /* waits for every call, checks that nothing is left, frees all */
hf_status machine_step(hf__event event); /* now; the status of a HF__EVENT_LET_GO */
int machine_choose_link(port state);     /* by the input; -1: there is none in that state */
int machine_push_link(port state);       /* the one for messages; -1: it is in another state */
void machine_connect(int link);
void machine_disconnect(int link);
void machine_check(void);
void machine_end_telling(void); /* on_event returns */
void machine_on_event(void *arg, const hf_event *event);
void machine_on_sight(void *arg, const hf_sight *sight);
void machine_end_observer(int place); /* if there is one */
/* What the next reply on that link will be taken for: an hf__request_kind, or -1; and how many
 * requests it answers. */
int machine_expected(int link, unsigned *group);
/* Whether that is an answer of refresh, and so means as much as was asked for. */
bool machine_expects_refresh(int link);
uint64_t machine_copies(void);       /* the last number that was given to a copy of an acquire */
void *machine_allocate(size_t size); /* zeroed, for free() */

#endif
