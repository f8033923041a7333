/* SPDX-License-Identifier: MIT */
/* Runs a core: real time, real connections, real threads. */
#ifndef HF_NET_DRIVER_H
#define HF_NET_DRIVER_H

#include "core/core.h"

typedef struct hf__driver hf__driver;

typedef struct hf__driver_config {
    hf__config core;
    const hf_transport *transport;
    hf_log_function *log; /* may be NULL */
    void *log_arg;
} hf__driver_config;

hf__driver *
hf__driver_new(const hf__driver_config *config); /* NULL: memory, threads, descriptors */

/* Starts the call and returns when it is done, with its outcome. HF_ECLOSED or HF_EFORKED and a
 * call that is not done: it was not started, because the driver is stopped or belongs to the parent
 * process; the handle of a hold that was to be released is taken back all the same. */
hf_status hf__driver_call(hf__driver *driver, hf__call *call);
/* Releases without waiting; the outcome as in hf_release_nowait(). Takes the handle in any case. */
hf_status hf__driver_let_go(hf__driver *driver, hf_hold *hold);
/* Makes sure that callbacks of holds can run: HF_OK, HF_ENOMEM, HF_ECLOSED or HF_EFORKED. */
hf_status hf__driver_listen(hf__driver *driver);
/* The descriptor of a handle; -1: there is none. */
int hf__driver_descriptor(hf__driver *driver, hf_hold *hold);
hf_status hf__driver_stats(hf__driver *driver, hf_stats *stats);
/* Asks for the end of a call that another thread has started or is about to start. */
void hf__driver_cancel(hf__driver *driver, hf__call *call);

/* Ends threads and connections and waits until no other thread is inside. Memory stays until
 * hf__driver_free(), so that calls that come late find out. */
void hf__driver_stop(hf__driver *driver);
void hf__driver_free(hf__driver *driver);

bool hf__driver_forked(const hf__driver *driver);
bool hf__driver_in_callback(void); /* this thread is inside a callback of ours */

#endif
