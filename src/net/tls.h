/* SPDX-License-Identifier: MIT */
/* TLS on top of any transport, as a transport: see hf_tls in the public header. */
#ifndef HF_NET_TLS_H
#define HF_NET_TLS_H

#include <holdfast.h>

typedef struct hf__tls hf__tls;

/* For connections to `host` over `inner`, which must outlive it; options may be NULL. HF_OK, or
 * *tls is NULL: HF_EINVAL with a text that names the option or file, or says why OpenSSL cannot be
 * loaded; HF_ENOMEM. */
hf_status hf__tls_new(const hf_tls *options, const hf_transport *inner, const char *host,
                      hf__tls **tls, hf_error *error);
const hf_transport *hf__tls_transport(const hf__tls *tls);
void hf__tls_free(hf__tls *tls); /* when all its connections are closed; NULL is fine */

#endif
