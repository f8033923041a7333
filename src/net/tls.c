/* SPDX-License-Identifier: MIT */
/* Stub while the interface settles. */
#include "net/tls.h"

#include "core/fail.h"

hf_status hf__tls_new(const hf_tls *options, const hf_transport *inner, const char *host,
                      hf__tls **tls, hf_error *error)
{
    (void)options;
    (void)inner;
    (void)host;
    *tls = NULL;
    return hf__fail(error, HF_EINVAL, "no TLS yet");
}

const hf_transport *hf__tls_transport(const hf__tls *tls)
{
    (void)tls;
    return NULL;
}

void hf__tls_free(hf__tls *tls)
{
    (void)tls;
}
