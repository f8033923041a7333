/* SPDX-License-Identifier: MIT */
/* The driver's state, shared by driver.c (who drives) and ports.c (what driving is) and by nobody
 * else. Everything is behind the mutex, except where it says otherwise. */
#ifndef HF_NET_ENGINE_H
#define HF_NET_ENGINE_H

#include <pthread.h>

#include "net/driver.h"
#include "net/fork.h"

enum { HF__READ_SIZE = 16 * 1024 };

typedef struct hf__port { /* a link's connection */
    void *connection;     /* NULL: none */
    bool connected;
    bool held_back; /* the connection took only a part of the output */
    int wait;       /* until connected: HF_WAIT_... */
} hf__port;

struct hf__driver {
    pthread_mutex_t mutex;
    hf__core *core;
    const hf_transport *transport;
    hf_endpoint endpoint;
    hf_log_function *log;
    void *log_arg;
    int link_count;
    hf__port ports[HF_LINKS_MAX];
    hf__fork_guard fork_guard;

    bool driving;                 /* somebody has the wheel */
    const hf__call *drivers_call; /* until it is done; NULL: the background thread drives */
    bool asleep;                  /* and sleeps in ppoll() */
    bool blind;                   /* there is a connection without a descriptor */
    bool ports_changed;           /* since the driver went to sleep: it looks at the wrong things */
    hf__instant sleep_ends;       /* at the latest */
    hf__instant last_turn;
    int kick; /* eventfd that wakes the driver */
    hf__list waiters;

    bool stopped;
    unsigned inside; /* threads within a call */
    pthread_cond_t quiet;

    pthread_t background;
    bool background_ends;
    int park_timer;
    int park_kick;
    hf__instant parked_until;
    char read_space[HF__READ_SIZE];
};

/* ports.c; all are called, and return, with the mutex held. */

/* Reads the clock and steps the core with it. */
void hf__engine_step(hf__driver *driver, hf__event *event);
/* Does what the core wants, until it wants nothing more. May let go of the mutex in between, for a
 * log line. */
void hf__engine_carry_out(hf__driver *driver);
/* Sleeps, without the mutex, until a connection, a timer or a kick has something, and deals with
 * it. */
void hf__engine_turn(hf__driver *driver);
/* Takes what is there on the connections, such as their end, without sleeping. */
void hf__engine_look(hf__driver *driver);
/* Looks at connections that cannot be waited for. */
void hf__engine_serve_blind(hf__driver *driver);
void hf__engine_close_ports(hf__driver *driver);

#endif
