/* SPDX-License-Identifier: MIT */
/* Server addresses as people write them. */
#ifndef HF_CORE_URL_H
#define HF_CORE_URL_H

#include <holdfast.h>

typedef struct hf__url {
    char *host; /* NULL for a unix socket */
    int port;
    char *path; /* NULL for TCP */
    char *user; /* NULL: none */
    char *password;
    int database;
    bool tls;
    char display[160]; /* for messages: address without credentials */
} hf__url;

/* One URL or several, and each of them with one host or several: what hf_open() takes. Fills in
 * *count servers, at most `most`. HF_OK, HF_EINVAL with the position in the text, or HF_ENOMEM. */
hf_status hf__urls_parse(const char *text, hf__url *urls, int most, int *count, hf_error *error);
/* The same for one server. */
hf_status hf__url_parse(const char *text, hf__url *url, hf_error *error);
void hf__url_free(hf__url *url); /* wipes the password */

#endif
