/* SPDX-License-Identifier: MIT */
/* The driver's state, shared by driver.c (who drives), ports.c (what driving is) and callback.c
 * (telling the application) and by nobody else. Everything is behind the mutex, except where it
 * says otherwise. */
#ifndef HF_NET_ENGINE_H
#define HF_NET_ENGINE_H

#include <pthread.h>
#include <semaphore.h>

#include "net/driver.h"
#include "net/fork.h"

enum { HF__READ_SIZE = 16 * 1024 };

typedef struct hf__port { /* a link's connection */
    void *connection;     /* NULL: none */
    bool connected;
    bool held_back; /* the connection took only a part of the output */
    bool busy;      /* bytes were written since the last ones came */
    int wait;       /* until connected: HF_WAIT_... */
} hf__port;

typedef struct hf__waiter { /* a thread that waits while another one drives */
    hf__node node;          /* in waiters, at last in woken */
    hf__call *call;
    bool takes_wheel; /* is why it is woken; otherwise because its call is done */
    sem_t wake;
} hf__waiter;

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
    hf__list woken; /* waiters to be told so when the mutex is given back; empty while it is free */
    bool crowded;   /* some were told since the driver last slept: they may be back soon */

    bool stopped;
    unsigned inside; /* threads within a call */
    pthread_cond_t quiet;

    pthread_t teller; /* runs callbacks */
    bool teller_runs;
    bool teller_ends;
    pthread_cond_t news; /* for the teller */
    pthread_cond_t told; /* it has run one */

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
/* Gives back the mutex and then wakes those who are to be woken: earlier, they would only have run
 * into the mutex. */
void hf__engine_unlock(hf__driver *driver);
/* Does what the core wants, until it wants nothing more; but if a driver is awake, what is for a
 * busy connection is left to its next flush. May let go of the mutex in between, for callbacks. */
void hf__engine_carry_out(hf__driver *driver);
void hf__engine_flush(hf__driver *driver); /* the same, and leaves nothing */
/* Sleeps, without the mutex, until a connection, a timer or a kick has something, and deals with
 * it. */
void hf__engine_turn(hf__driver *driver);
/* Takes what is there on the connections, such as their end, without sleeping. */
void hf__engine_look(hf__driver *driver);
/* Looks at connections that cannot be waited for. */
void hf__engine_serve_blind(hf__driver *driver);
bool hf__engine_expects(const hf__driver *driver); /* an answer, on any connection */
void hf__engine_close_ports(hf__driver *driver);

/* driver.c: one thread is not inside any more; with the mutex held. */
void hf__engine_went_out(hf__driver *driver);

/* callback.c; the same. */

void hf__engine_log(hf__driver *driver, hf_log_level level, const char *line);
bool hf__engine_start_teller(hf__driver *driver); /* if it does not run; false: no thread is left */
void hf__engine_stop_teller(hf__driver *driver);  /* waits for it */
/* Sees that what there is to tell is told. */
void hf__engine_tell(hf__driver *driver);
/* Until no callback about that handle is running any more. */
void hf__engine_wait_told(hf__driver *driver, const hf_hold *hold);
/* Made when first asked for; -1: none is left. */
int hf__engine_descriptor(hf__driver *driver, hf_hold *hold);
void hf__engine_close_descriptor(hf_hold *hold);

#endif
