/* SPDX-License-Identifier: MIT */
/* Runs a core: real time, real connections, real threads. */
#ifndef HF_NET_DRIVER_H
#define HF_NET_DRIVER_H

#include "core/core.h"
#include "net/secret.h"

typedef struct hf__driver hf__driver;

typedef struct hf__driver_config {
    hf__config core;
    const hf_transport *transports[HF_SERVERS_MAX]; /* to each of its servers */
    hf__secret secret;
    hf_log_function *log; /* may be NULL */
    void *log_arg;
    bool own_loop; /* no threads: the application calls hf__driver_process() */
} hf__driver_config;

typedef struct hf__operation hf__operation;

struct hf__operation { /* a call for which no thread waits; the beginning of a larger struct */
    hf__call call;     /* acquire or release */
    /* Once it is done, without any lock: tells the application, and frees it. */
    void (*tell)(hf__operation *operation);
    /* Instead, in a forked child, when the core is gone: frees it. */
    void (*drop)(hf__operation *operation);

    /* The driver's own. */
    uint64_t number;
    hf__node node;     /* in driver->operations */
    hf__node finished; /* in driver->finished, then in driver->being_told */
};

hf__driver *
hf__driver_new(const hf__driver_config *config); /* NULL: memory, threads, descriptors */

/* Starts the call and returns when it is done, with its outcome. HF_ECLOSED or HF_EFORKED and a
 * call that is not taken: it was not started, because the driver is stopped or belongs to the
 * parent process; the handle of a hold that was to be released is taken back all the same.
 * HF_EFORKED and one that is taken but not done: a callback has forked, and this is the child. */
hf_status hf__driver_call(hf__driver *driver, hf__call *call);
/* Releases without waiting; the outcome as in hf_release_nowait(). Takes the handle in any case. */
hf_status hf__driver_let_go(hf__driver *driver, hf_hold *hold);
/* Lets go of a hold, not of its lock: HF_OK, HF_ELOST, HF_EINVAL (then the handle stays),
 * HF_ECLOSED or HF_EFORKED. *late: a copy of its acquire may still reach the server. */
hf_status hf__driver_detach(hf__driver *driver, hf_hold *hold, bool *late);
/* Makes sure that callbacks of holds can run: HF_OK, HF_ENOMEM, HF_ECLOSED or HF_EFORKED. */
hf_status hf__driver_listen(hf__driver *driver);
/* The descriptor of a handle; -1: there is none. */
int hf__driver_descriptor(hf__driver *driver, hf_hold *hold);
hf_status hf__driver_stats(hf__driver *driver, hf_stats *stats);
hf_status hf__driver_load(hf__driver *driver, hf_load *load);
/* Asks for the end of a call that another thread has started or is about to start. */
void hf__driver_cancel(hf__driver *driver, hf__call *call);

/* Starts the call of an operation, which belongs to the driver from then on; *number (which may be
 * NULL) is for hf__driver_cancel_operation(). Unless HF_OK, nothing has happened: HF_EUNAVAILABLE
 * (too many), HF_ENOMEM, HF_ECLOSED, HF_EFORKED. */
hf_status hf__driver_start(hf__driver *driver, hf__operation *operation, uint64_t *number);
/* HF_OK also if it has ended already; HF_EINVAL: there was none with that number. */
hf_status hf__driver_cancel_operation(hf__driver *driver, uint64_t number);

/* For a loop of the application; see hf_loop_descriptor() and so on. HF_EINVAL and -1 if the driver
 * has threads. */
int hf__driver_loop_descriptor(hf__driver *driver);
int hf__driver_loop_timeout_ms(hf__driver *driver);
hf_status hf__driver_process(hf__driver *driver);

/* Begins to tell the observer, which belongs to the core from then on: HF_OK, HF_ENOMEM, HF_ECLOSED
 * or HF_EFORKED, then it does not. */
hf_status hf__driver_observe(hf__driver *driver, hf_observer *observer);
/* Frees it, once its callback is not running any more. */
void hf__driver_unobserve(hf__driver *driver, hf_observer *observer);

/* Ends threads and connections and waits until no other thread is inside. Memory stays until
 * hf__driver_free(), so that calls that come late find out. */
void hf__driver_stop(hf__driver *driver);
void hf__driver_free(hf__driver *driver);

bool hf__driver_forked(const hf__driver *driver);
/* The same, and the child of _Fork(), clone() or a signal handler: nothing may be freed there. */
bool hf__driver_is_torn(const hf__driver *driver);
bool hf__driver_in_callback(void); /* this thread is inside a callback of ours */

#endif
