/* SPDX-License-Identifier: MIT */
/* The network of a live run: a process between the clients and the server that delays, stalls,
 * cuts, swallows and refuses, as the driver orders. Without an order it passes bytes along. It can
 * tell the connections that messages come on, by the client's request for them. */
#ifndef HOLDFAST_TESTS_PROXY_H
#define HOLDFAST_TESTS_PROXY_H

#include "chaos.h"

enum proxy_trouble {
    TROUBLE_NONE,    /* everything heals: what is delayed or stalled goes on at once */
    TROUBLE_DELAY,   /* every piece by amount ms */
    TROUBLE_JITTER,  /* every piece by up to amount ms; the order stays */
    TROUBLE_STALL,   /* nothing moves and nothing closes for amount ms, then late bytes arrive */
    TROUBLE_CUT,     /* after amount bytes more, in one direction */
    TROUBLE_SWALLOW, /* requests pass, replies do not; up to amount ms later the connection ends */
    TROUBLE_REFUSE   /* new connections are closed at once */
};

/* Applies to each connection that is there with a probability, and to those that come while it
 * lasts. A new order replaces the one before; what that did to a connection stays. */
struct proxy_order {
    enum proxy_trouble trouble;
    int share_percent;
    int amount;
    int lasts_ms;
    bool subscriptions; /* only connections for messages that are there, and all of them */
};

struct proxy {
    pid_t pid;
    int line; /* takes orders */
    int port;
};

/* Fills the URLs of the run. false: it could not be started. */
bool proxy_start(struct proxy *proxy, struct chaos *chaos);
bool proxy_order(const struct proxy *proxy, const struct proxy_order *order);

#endif
