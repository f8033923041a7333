/* SPDX-License-Identifier: MIT
 *
 * Certificates for one server, good for a day and trusted by nobody who is not told to.
 */
#ifndef BENCH_CERTIFICATE_H
#define BENCH_CERTIFICATE_H

#include "report.h"

#define AUTHORITY_FILE   "authority.crt"
#define CERTIFICATE_FILE "server.crt"
#define KEY_FILE         "server.key"

/* Makes these files in the folder: an authority, and by it a certificate for 127.0.0.1. */
bool certificates_make(const char *folder, struct result *result);

#endif
