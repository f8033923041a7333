/* SPDX-License-Identifier: MIT */
/* One direction of a connection through the proxy: bytes that were read and are not yet due. */
#ifndef HOLDFAST_TESTS_FLOW_H
#define HOLDFAST_TESTS_FLOW_H

#include "chaos.h"

struct piece;

struct flow {
    int from;
    int to;
    struct piece *first;
    struct piece *last;
    int pieces;
    int64_t last_due_ns;
    int64_t delay_ns;       /* of each piece from now on */
    bool jitter;            /* up to delay_ns */
    int64_t delay_until_ns; /* when delaying ends */
    long cut_after;         /* bytes that may still be read; -1: no limit */
    bool subscribes;        /* has carried a SUBSCRIBE */
    bool swallow;           /* reads and forgets */
    bool swallowed;         /* has done so */
    bool ended;             /* nothing more comes */
    bool closed;            /* ended, delivered, and the receiver was told */
};

void flow_begin(struct flow *flow, int from, int to);
bool flow_wants_bytes(const struct flow *flow);
void flow_read(struct flow *flow, struct chance *chance, struct board *board);
void flow_deliver(struct flow *flow, int64_t now); /* what is due */
void flow_hurry(struct flow *flow);                /* everything is due, nothing limits it */
bool flow_is_cut(const struct flow *flow);         /* its limit is reached, all before delivered */
void flow_end(struct flow *flow);                  /* frees; the descriptors are the caller's */

#endif
