/* SPDX-License-Identifier: MIT */
/* Where a connection's credentials come from, and getting them. */
#ifndef HF_NET_SECRET_H
#define HF_NET_SECRET_H

#include "core/url.h"

/* For all servers of a client; or else the URL of a server may have a password. */
typedef struct hf__secret {            /* at most one of them is there */
    const char *file;                  /* NULL: none */
    hf_credentials_function *function; /* NULL: none */
    void *arg;
} hf__secret;

const char *hf__secret_environment(const char *name); /* NULL: there is no such variable */

/* The credentials for one more connection to that server; they are the caller's, to be wiped.
 * *given: there are any. HF_OK, or HF_EDENIED and why. Runs code of the application. */
hf_status hf__secret_fetch(const hf__secret *secret, const hf__url *server,
                           hf_credentials *credentials, bool *given, hf_error *error);

#endif
