/* SPDX-License-Identifier: MIT */
/* Shared by tls.c (options, trust and files), tls_stream.c (a connection) and tls_trouble.c (what
 * went wrong, for people), and by nobody else. */
#ifndef HF_NET_TLS_PARTS_H
#define HF_NET_TLS_PARTS_H

#include "base/instant.h"
#include "net/openssl.h"
#include "net/tls.h"

enum { HF__FINGERPRINT = 32 };

struct hf__tls {
    hf_transport transport; /* what we are to the driver */
    hf_transport inner;     /* zeros in place of what an older one does not have */
    SSL_CTX *context;
    BIO_METHOD *method;
    char *name;             /* expected in the certificate */
    bool name_is_address;   /* not to be sent to the server then */
    char *certificate_file; /* NULL: we have none */
    char *key_file;         /* NULL: in certificate_file */
    SSL_SESSION *session;   /* the newest one, for the next connection; NULL: none */
    unsigned char session_owner[HF__FINGERPRINT]; /* our certificate, when it was made */
    hf__instant verified; /* when the server's certificate was last looked at */
};

typedef struct hf__tls_stream {
    hf__tls *tls;
    void *inner;
    SSL *ssl; /* NULL: the inner connection is not there yet */
    bool established;
    bool asked;                           /* the server has asked for a certificate of ours */
    bool ended;                           /* the inner stream has */
    int failure;                          /* of the inner transport; 0: none */
    int verdict;                          /* of the next read; 0: none yet */
    int wait;                             /* after -EAGAIN: HF_WAIT_... */
    char words[250];                      /* for describe(); may be empty */
    unsigned char owner[HF__FINGERPRINT]; /* of our certificate; zeros: none */
} hf__tls_stream;

/* tls.c: gives it our certificate and key as they are in their files now. False, with words. */
bool hf__tls_identify(const hf__tls *tls, SSL *ssl, char *words, size_t capacity);

/* tls_stream.c: what hf__tls_transport() is made of. */
extern const hf_transport hf__tls_stream_transport;
BIO_METHOD *hf__tls_stream_method(void); /* NULL: out of memory */
int hf__tls_stream_keep_session(SSL *ssl, SSL_SESSION *session);

/* tls_trouble.c: what an operation that did not succeed came to. -EAGAIN, and what to wait for; 0:
 * the end of the stream; or a failure, with words if there is more to say than its number. */
int hf__tls_outcome(hf__tls_stream *stream, int result);

#endif
