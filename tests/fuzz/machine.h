/* SPDX-License-Identifier: MIT */
/* The other half of the fuzz target of the core: carries out what the core wants and checks what it
 * does. fuzz_core.c decides what happens next. There is one machine at a time, and all of it is
 * open: what happens next depends on what is there. */
#ifndef HF_TESTS_FUZZ_MACHINE_H
#define HF_TESTS_FUZZ_MACHINE_H

#include "core/core.h"
#include "fuzz.h"

enum { CALLS = 64 };

typedef enum port { PORT_CLOSED, PORT_CONNECTING, PORT_OPEN } port;

typedef struct held {
    hf_hold *hold; /* NULL: not in our hands */
    bool over;     /* it was found so once */
} held;

extern struct machine {
    input in;
    hf__url server;
    hf__config config;
    hf__core *core;
    hf__instant now;
    port ports[HF_LINKS_MAX];
    hf__call *calls[CALLS]; /* that the core has */
    hf__instant due[CALLS]; /* when the call in that place must be done */
    held holds[CALLS];
    bool closing;         /* a close was started */
    uint64_t numbers;     /* of acquires, CALLS at most */
    int64_t said_ms;      /* the longest time that the server has said so far */
    int allocations_left; /* before one fails; -1: none does */
    bool ends_silently;   /* without a word to the links */
    bool handles_first;   /* given back before the core is freed, or after */
} m;

void machine_begin(const uint8_t *bytes, size_t count); /* its configuration is in the first ones */
void machine_end(void); /* waits for every call, checks that nothing is left, frees all */
hf_status machine_step(hf__event event); /* now; the status of a HF__EVENT_LET_GO */
void machine_disconnect(int link);
void machine_check(void);
void *machine_allocate(size_t size); /* zeroed, for free() */

#endif
