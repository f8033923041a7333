/* SPDX-License-Identifier: MIT */
/* The driver's state, shared by birth.c, driver.c (calls), steer.c (who drives), ports.c (what
 * driving is), dial.c (connections), callback.c (telling the application), operation.c (calls
 * without a thread) and loop.c (no threads at all), and by nobody else. Everything is behind the
 * mutex, except where it says otherwise. */
#ifndef HF_NET_ENGINE_H
#define HF_NET_ENGINE_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "net/driver.h"
#include "net/fork.h"
#include "net/watch_set.h"

enum { HF__READ_SIZE = 16 * 1024, HF__BLIND_POLL_MS = 2, HF__OPERATION_BUCKETS = 256 };

typedef struct hf__target { /* a server, for those who connect to it */
    const hf__url *url;
    hf_endpoint endpoint;
    hf_transport transport; /* zeros in place of what an older one does not have */
} hf__target;

typedef struct hf__port { /* a link's connection */
    const hf__target *target;
    void *connection; /* NULL: none */
    uint64_t number;  /* never the same for two connections of a driver */
    bool connected;
    bool introducing; /* credentials are being fetched: nobody reads before the greeting is out */
    bool held_back;   /* the connection took only a part of the output */
    bool busy;        /* bytes were written since the last ones came */
    bool unread;      /* the last turn left bytes, which the descriptor may not know of */
    int wait;         /* until connected: HF_WAIT_... */
    bool watched;     /* is in the set of an own loop, */
    int watched_descriptor;
    int watched_wait; /* with these */
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
    hf__target *targets; /* one for each server of the core */
    hf__secret secret;
    uint64_t last_port; /* its number */
    hf_log_function *log;
    void *log_arg;
    int link_count;
    hf__port *ports; /* of all servers, as the core counts them */
    hf__fork_guard fork_guard;

    bool driving;                 /* somebody has the wheel */
    const hf__call *drivers_call; /* until it is done; NULL: the background thread drives */
    bool asleep;                  /* and sleeps in ppoll() */
    bool kicked;                  /* and is about to wake up */
    bool blind;                   /* there is a connection without a descriptor */
    bool ports_changed;           /* since the driver went to sleep: it looks at the wrong things */
    hf__instant sleep_ends;       /* at the latest */
    hf__instant last_turn;        /* when the connections were last looked at */
    int64_t usual_ns;             /* that an answer was waited for, lately */
    bool has_one_processor;
    int kick; /* eventfd that wakes the driver */
    hf__list waiters;
    hf__list woken; /* waiters to be told so when the mutex is given back; empty while it is free */
    bool crowded;   /* some were told since the driver last slept: they may be back soon */

    atomic_uint knocking; /* threads that want to come in; without the mutex */
    uint64_t entries;     /* of threads that did */
    uint64_t entries_seen;
    unsigned deaf_turns; /* of the driver, in a row, in which somebody knocked and nobody came in */

    bool stopped;
    unsigned inside; /* threads within a call */
    pthread_cond_t quiet;

    pthread_t teller; /* runs callbacks */
    bool teller_runs;
    bool teller_ends;
    pthread_cond_t news; /* for the teller */
    pthread_cond_t told; /* it has run one */

    hf__list operations[HF__OPERATION_BUCKETS]; /* that nobody is being told about, by number */
    size_t operation_count;
    uint64_t last_operation; /* its number */
    hf__list finished;       /* operations to be told */
    hf__list being_told;     /* belongs to whoever runs the callbacks, without the mutex */

    bool own_loop;
    bool processing;     /* a thread is in hf_process() */
    bool loop_kicked;    /* park_kick is readable */
    hf__watch_set *loop; /* with what the background thread would be parked on; NULL: none */

    pthread_t background;
    bool background_ends;
    int park_timer;
    int park_kick;
    hf__instant parked_until;
    char read_space[HF__READ_SIZE];
};

/* dial.c; as those of ports.c. */

void hf__port_open(hf__driver *driver, int link);
void hf__port_check(hf__driver *driver, int link); /* how far it is, until it is connected */
void hf__port_lost(hf__driver *driver, int link, int failure); /* an errno, or 0: the end */
void hf__port_close(hf__driver *driver, int link);
/* What is to be said of failures that no further attempt will change; HF_OK: it is not one. */
hf_status hf__port_verdict(int failure);

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
/* The same, but leaves what is for a busy connection in any case. */
void hf__engine_carry_out_patiently(hf__driver *driver);
bool hf__engine_left_bytes(const hf__driver *driver); /* that could be written */
/* Sleeps, without the mutex, until a connection, a timer or a kick has something, and deals with
 * it. */
void hf__engine_turn(hf__driver *driver);
/* Takes what is there on the connections, such as their end, without sleeping. */
void hf__engine_look(hf__driver *driver);
void hf__engine_serve(hf__driver *driver, int link); /* it may be ready */
void hf__engine_tick(hf__driver *driver);            /* if it is time */
int hf__port_wait(const hf__port *port);             /* for what: HF_WAIT_... */
/* Looks at connections that cannot be waited for. */
void hf__engine_serve_blind(hf__driver *driver);
bool hf__engine_expects(const hf__driver *driver); /* an answer, on any connection */
void hf__engine_close_ports(hf__driver *driver);

/* steer.c; the same, unless it says otherwise. */

void hf__engine_drive(hf__driver *driver, const hf__call *call); /* until it is done */
/* Waits until another thread hands over the wheel: true, with the mutex; or finishes the call:
 * false, without the mutex and not inside any more. */
bool hf__engine_wait_for_wheel(hf__driver *driver, hf__call *call);
/* What the background thread must be back for, if nobody calls any more. */
hf__instant hf__engine_next_duty(const hf__driver *driver);
void hf__engine_kick(hf__driver *driver); /* a driver that is asleep */
/* Sees that whoever sleeps learns of what was just done, if that is needed. */
void hf__engine_notify(hf__driver *driver);
/* A connection that ended meanwhile must not be written to. May let go of the mutex, so it comes
 * before anything that is looked up. */
void hf__engine_look_if_idle(hf__driver *driver);
/* A step that a thread takes without the wheel, with all that follows from it at once. */
void hf__engine_step_outside(hf__driver *driver, hf__event *event);
/* The same for an operation: its caller does not wait, and may start a thousand more, so what is
 * for a busy connection leaves in one write, with the next turn of whoever drives. */
void hf__engine_step_operation(hf__driver *driver, hf__event *event);
void *hf__engine_run_background(void *driver); /* a thread; without the mutex */

/* driver.c: one thread is not inside any more; with the mutex held. */
void hf__engine_went_out(hf__driver *driver);

/* callback.c; the same. */

void hf__engine_log(hf__driver *driver, hf_log_level level, const char *line);
/* For one more connection; see secret.h. Everything may have changed when it returns. */
hf_status hf__engine_fetch_credentials(hf__driver *driver, const hf__url *server,
                                       hf_credentials *credentials, bool *given, hf_error *error);
/* Sees that callbacks will be run, by a thread if there is no own loop; false: none is left. */
bool hf__engine_start_teller(hf__driver *driver);
void hf__engine_stop_teller(hf__driver *driver);         /* waits for it */
bool hf__engine_has_callbacks(const hf__driver *driver); /* to run; perhaps */
/* Tells what there is to tell, on this thread. */
void hf__engine_tell_here(hf__driver *driver);
/* Sees that what there is to tell is told. */
void hf__engine_tell(hf__driver *driver);
/* Until no callback about that handle is running any more. */
void hf__engine_wait_told(hf__driver *driver, const hf_hold *hold);
void hf__engine_wait_seen(hf__driver *driver, const hf_observer *observer); /* the same */
/* Made when first asked for; -1: none is left. */
int hf__engine_descriptor(hf__driver *driver, hf_hold *hold);
void hf__engine_close_descriptor(hf_hold *hold);

/* operation.c; the same. */

void hf__operations_init(hf__driver *driver);
hf_status hf__operation_admit(hf__driver *driver, hf__operation *operation);
hf__operation *hf__operation_find(hf__driver *driver, uint64_t number); /* NULL: not there */
void hf__operation_finished(hf__driver *driver, hf__call *call);
bool hf__operations_under_way(const hf__driver *driver);
void hf__operations_tell(hf__driver *driver); /* those that are finished now */
void hf__operations_end(hf__driver *driver);  /* finishes them all */
void hf__operations_drop(hf__driver *driver);

/* loop.c; the same. Without an own loop, what changes something does nothing. */

bool hf__loop_open(hf__driver *driver); /* false: no memory, descriptor or thread is left */
void hf__loop_close(hf__driver *driver);
int hf__loop_descriptor(const hf__driver *driver); /* -1: none */
void hf__loop_watch(hf__driver *driver, int link); /* what its connection waits for, from now on */
/* Its connection may close its descriptor now. */
void hf__loop_forget(hf__driver *driver, int link);
void hf__loop_settle(hf__driver *driver); /* its descriptor is readable if it should be */
bool hf__loop_is_blind(const hf__driver *driver);
void hf__loop_kick(hf__driver *driver); /* there is something for hf_process() */
void hf__loop_process(hf__driver *driver);

#endif
