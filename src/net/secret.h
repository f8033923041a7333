/* SPDX-License-Identifier: MIT */
/* Where a connection's credentials come from, and getting them. */
#ifndef HF_NET_SECRET_H
#define HF_NET_SECRET_H

#include "core/url.h"

typedef struct hf__secret {            /* of the sources of a password, at most one is there */
    const hf__url *server;             /* whose URL may have a user and a password */
    const char *file;                  /* NULL: none */
    hf_credentials_function *function; /* NULL: none */
    void *arg;
} hf__secret;

const char *hf__secret_environment(const char *name); /* NULL: there is no such variable */

/* The credentials for one more connection; they are the caller's, to be wiped. *given: there are
 * any. HF_OK, or HF_EDENIED and why. Runs code of the application. */
hf_status hf__secret_fetch(const hf__secret *secret, hf_credentials *credentials, bool *given,
                           hf_error *error);

#endif
