/* SPDX-License-Identifier: MIT */
/* What the tests of TLS share: servers that show one certificate or another, clients of them, and a
 * log to look things up in. The clients are closed by the teardown of fixture.h. */
#ifndef HOLDFAST_TESTS_PROTECTED_H
#define HOLDFAST_TESTS_PROTECTED_H

#include "../lib/certificates.h"
#include "fixture.h"

int begin_certificates(void **state); /* set-up of a group: the usual ones */
int end_certificates(void **state);

/* The server shows STEM.crt and asks for no certificate. */
struct redis_server *start_showing(const char *stem);
/* The same with more, of which what is NULL is filled in. */
struct redis_server *start_protected(const char *stem, const struct redis_server_tls *tls);

/* Options for clients that trust "authority". Valid until the next call. */
const hf_tls *trusting(void);
const hf_tls *showing(const char *stem); /* and show STEM.crt with STEM.key */

/* One acquire and release of "lock", over the URL of the server that is meant. */
void expect_serves(const char *url, const hf_tls *tls);

/* An acquire that would wait for 20 s fails at once, and says these words. */
void expect_final(const char *url, const hf_tls *tls, hf_status status, const char *words);

void close_client(hf_client **client); /* before the teardown does, with HF_OK */

/* The URL of the server's TLS port under another name; valid until the next call. */
const char *tls_url_of(const struct redis_server *at, const char *host);

/* A log that keeps everything, from all threads. */
hf_log_function keep_log;
void forget_log(void);
int logged(const char *words); /* how many lines have them */
void expect_not_logged(const char *words);

#endif
