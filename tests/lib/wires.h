/* SPDX-License-Identifier: MIT */
/* A transport for tests of the public API: connections that end at a node double and are served
 * inside write(), so that an answer is there before the call that asked has gone to sleep. It can
 * be told to be slow, stingy, silent or broken. */
#ifndef HF_TESTS_WIRES_H
#define HF_TESTS_WIRES_H

#include <holdfast.h>

#include "node.h"

enum { WIRES_PLAN = 8, WIRES_UNLIMITED = -1 };

typedef struct wires {
    struct node node;
    bool with_descriptor; /* an eventfd that is readable while there is something to read */
    /* How it behaves. Failures are errno values; 0: none. */
    int open_failure;
    int connected_failure;
    int connected_plan[WIRES_PLAN]; /* HF_WAIT_... for the first asks of each connection, then 0 */
    bool never_connects;
    size_t write_limit; /* bytes that one write takes; 0: all */
    int write_refusals; /* how often each connection says -EAGAIN before it takes bytes again */
    int write_failure;
    size_t read_limit;
    long cut_after; /* so many more bytes in both directions together, then one connection breaks */
    int cut_failure; /* what read and write say then; 0: the end of the stream */
    bool mute;       /* answers are not delivered */
    int lies;        /* so many more times the descriptor says that there is something, in vain */
    /* What was seen. */
    int opens, closes, asks, cuts;
    hf_endpoint last_endpoint;
} wires;

extern const hf_transport wires_transport; /* of the only network, which is set up anew */

void wires_begin(bool with_descriptor);
void wires_end(void);

/* The network is used by the library's threads at the same time: look at it and change it only
 * between these two. */
wires *wires_lock(void);
void wires_unlock(void);

/* `WIRES(write_limit = 1)` changes one thing under the lock. */
#define WIRES(change)         \
    do {                      \
        wires_lock()->change; \
        wires_unlock();       \
    } while (0)

/* `WIRES_GET(count, opens)` looks at one. */
#define WIRES_GET(place, field)        \
    do {                               \
        (place) = wires_lock()->field; \
        wires_unlock();                \
    } while (0)

void wires_unmute(void); /* delivers what was held up */
bool wires_has_key(const char *name);
bool wires_working(void); /* this thread is inside the network: its memory is not the library's */

#endif
