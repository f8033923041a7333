/* SPDX-License-Identifier: MIT */
/* Certificates of the test's own, in a private folder under TMPDIR or /tmp.
 *
 * They are made when a test asks for them, with fresh keys (on a curve, so that it takes no time),
 * and are gone with certificates_end(), which belongs into every teardown. Every function here
 * fails the test when it cannot do what it says.
 */
#ifndef HOLDFAST_TESTS_CERTIFICATES_H
#define HOLDFAST_TESTS_CERTIFICATES_H

#include "process.h"

/* For whom servers of the tests are known. */
#define LOCAL_NAMES "DNS:localhost,IP:127.0.0.1,IP:::1"

struct certificate_wish {
    const char *signer;   /* the stem of who signs; NULL: itself */
    const char *names;    /* subjectAltName, such as LOCAL_NAMES; NULL: none */
    const char *password; /* the key is encrypted with it; NULL: it is not */
    bool rsa;             /* not on a curve */
    bool signs;           /* may sign others */
    bool expired;         /* since yesterday */
};

/* Makes STEM.crt, STEM.key, and STEM.pem with both in it. What was there is replaced. */
void certificate_make(const char *stem, const struct certificate_wish *wish);

/* The usual ones, each made when the folder is: "authority" and "stranger" sign; by the first,
 * "server" for LOCAL_NAMES, and "client". */
void certificates_begin(void);
void certificates_end(void);

/* The path of a file in the folder; valid for the next seven calls. */
const char *certificate_path(const char *file);

/* Writes a file into the folder. */
void certificate_write(const char *file, const char *text);
void certificate_copy(const char *from, const char *to);

#endif
