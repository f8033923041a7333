/* SPDX-License-Identifier: MIT */
/* One protected connection, as a transport on top of another one.
 *
 * OpenSSL reads and writes through a BIO of ours, which is the inner transport's read and write;
 * so nothing in here knows of sockets, and nothing blocks or raises SIGPIPE that does not there.
 *
 * The driver waits on the inner descriptor, which knows nothing of bytes that OpenSSL has taken
 * from it already. So a read goes on until OpenSSL has nothing left or the caller's space is full,
 * and during the handshake OpenSSL takes no byte more than it needs at that moment.
 *
 * Closing never sends anything. A child after fork() closes its copies of its parent's connections,
 * and a farewell from there would end the parent's stream. Servers see the end of the inner stream
 * instead, which loses nothing: replies say by themselves where they end.
 *
 * The newest session is kept with the client, so that a reconnect costs one signature less on each
 * side. It stands for the certificate that we showed when it was made; if ours has been renewed
 * since, it is not used. Nor is it after a failed handshake, or when the server's certificate has
 * not been looked at for an hour: a chain of sessions must not outlive it. */
#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "net/clock.h"
#include "net/tls_parts.h"

enum { RESUME_MS = 3600 * 1000 };

/* ---- The inner transport as a BIO ---- */

static int bio_write(BIO *bio, const char *bytes, int count)
{
    hf__tls_stream *s = BIO_get_data(bio);
    int written = s->tls->inner.write(s->inner, bytes, (size_t)count);
    BIO_clear_retry_flags(bio);
    if (written > 0)
        return written;
    if (written == 0 || written == -EAGAIN)
        BIO_set_retry_write(bio);
    else
        s->failure = written;
    return -1;
}

static int bio_read(BIO *bio, char *bytes, int capacity)
{
    hf__tls_stream *s = BIO_get_data(bio);
    int count = s->tls->inner.read(s->inner, bytes, (size_t)capacity);
    BIO_clear_retry_flags(bio);
    if (count == 0)
        s->ended = true;
    if (count >= 0)
        return count;
    if (count == -EAGAIN)
        BIO_set_retry_read(bio);
    else
        s->failure = count;
    return -1;
}

static long bio_control(BIO *bio, int command, long number, void *pointer)
{
    const hf__tls_stream *s = BIO_get_data(bio);
    (void)number;
    (void)pointer;
    if (command == BIO_CTRL_EOF)
        return s->ended;
    return command == BIO_CTRL_FLUSH; /* there is nothing to flush, which is success */
}

BIO_METHOD *hf__tls_stream_method(void)
{
    BIO_METHOD *method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "holdfast");
    if (method == NULL)
        return NULL;
    BIO_meth_set_write(method, bio_write);
    BIO_meth_set_read(method, bio_read);
    BIO_meth_set_ctrl(method, bio_control);
    return method;
}

/* ---- Sessions ---- */

int hf__tls_stream_keep_session(SSL *ssl, SSL_SESSION *session)
{
    const hf__tls_stream *s = SSL_get_app_data(ssl);
    SSL_SESSION_free(s->tls->session);
    s->tls->session = session;
    memcpy(s->tls->session_owner, s->owner, sizeof(s->owner));
    return 1; /* it is ours now */
}

static void forget_session(hf__tls *tls)
{
    SSL_SESSION_free(tls->session);
    tls->session = NULL;
}

static void resume_session(hf__tls_stream *s)
{
    const hf__tls *tls = s->tls;
    hf__instant too_old = hf__after(tls->verified, hf__span_ms(RESUME_MS));
    const X509 *ours = SSL_get_certificate(s->ssl);
    if (ours != NULL && X509_digest(ours, EVP_sha256(), s->owner, NULL) != 1)
        return;
    if (tls->session == NULL || memcmp(tls->session_owner, s->owner, sizeof(s->owner)) != 0)
        return;
    if (SSL_SESSION_is_resumable(tls->session) && hf__before(hf__clock_now(), too_old))
        SSL_set_session(s->ssl, tls->session);
}

/* ---- Connecting ---- */

static int note_request(SSL *ssl, void *arg)
{
    hf__tls_stream *s = arg;
    (void)ssl;
    s->asked = true;
    return 1;
}

static int begin_handshake(hf__tls_stream *s)
{
    const hf__tls *tls = s->tls;
    ERR_clear_error();
    s->ssl = SSL_new(tls->context);
    BIO *bio = s->ssl != NULL ? BIO_new(tls->method) : NULL;
    if (bio == NULL)
        return -ENOMEM;
    BIO_set_data(bio, s);
    BIO_set_init(bio, 1);
    SSL_set_bio(s->ssl, bio, bio);
    SSL_set_app_data(s->ssl, s);
    SSL_set_cert_cb(s->ssl, note_request, s);
    if (!tls->name_is_address && SSL_set_tlsext_host_name(s->ssl, tls->name) != 1)
        return -ENOMEM;
    if (!hf__tls_identify(tls, s->ssl, s->words, sizeof(s->words)))
        return HF_PEER_DENIES;
    resume_session(s);
    return 0;
}

/* From now on a record costs one read of the inner transport instead of two. */
static void establish(hf__tls_stream *s)
{
    s->established = true;
    if (!SSL_session_reused(s->ssl))
        s->tls->verified = hf__clock_now();
    SSL_set_read_ahead(s->ssl, 1);
    hf__format(s->words, sizeof(s->words), "%s, %s%s", SSL_get_version(s->ssl),
               SSL_get_cipher_name(s->ssl), SSL_session_reused(s->ssl) ? ", session resumed" : "");
}

static int shake_hands(hf__tls_stream *s)
{
    ERR_clear_error();
    int result = SSL_connect(s->ssl);
    if (result == 1) {
        establish(s);
        return 0;
    }
    int status = hf__tls_outcome(s, result);
    if (status == -EAGAIN)
        return s->wait;
    forget_session(s->tls);
    if (status != 0)
        return status;
    hf__format(s->words, sizeof(s->words), "closed the connection during the TLS handshake");
    return -ECONNRESET;
}

static int is_connected(void *arg)
{
    hf__tls_stream *s = arg;
    if (s->established)
        return 0;
    int status = s->ssl == NULL ? s->tls->inner.connected(s->inner) : 0;
    if (status != 0)
        return status;
    if (s->ssl == NULL)
        status = begin_handshake(s);
    if (status == 0)
        status = shake_hands(s);
    ERR_clear_error();
    return status;
}

static int open_stream(void *arg, const hf_endpoint *endpoint, void **connection)
{
    hf__tls *tls = arg;
    hf__tls_stream *s = hf__alloc(sizeof(*s));
    if (s == NULL)
        return -ENOMEM;
    s->tls = tls;
    int status = tls->inner.open(tls->inner.arg, endpoint, &s->inner);
    if (status < 0)
        hf__free(s);
    else
        *connection = s;
    return status;
}

/* SSL_set_shutdown() only pretends that both sides have said good-bye: otherwise OpenSSL would take
 * the session for spoilt. */
static void close_stream(void *arg)
{
    hf__tls_stream *s = arg;
    if (s->ssl != NULL)
        SSL_set_shutdown(s->ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
    SSL_free(s->ssl);
    ERR_clear_error();
    s->tls->inner.close(s->inner);
    hf__free(s);
}

static int descriptor_of(void *arg)
{
    const hf__tls_stream *s = arg;
    return s->tls->inner.descriptor(s->inner);
}

/* ---- Bytes ---- */

/* ERR_clear_error() goes through all places of the queue, even if there is nothing in it. To look
 * first makes an acquire with its release faster by two in a hundred. */
static void forget_errors(void)
{
    if (ERR_peek_error() != 0)
        ERR_clear_error();
}

/* What follows the first bytes is taken only if OpenSSL has it already, or a part of it. OpenSSL
 * says only once what is wrong behind good bytes, so that is kept for the next read. */
static int read_bytes(void *arg, void *bytes, size_t capacity)
{
    hf__tls_stream *s = arg;
    size_t total = 0;
    int result;
    if (s->verdict != 0)
        return s->verdict;
    do {
        size_t count = 0;
        forget_errors();
        result = SSL_read_ex(s->ssl, (char *)bytes + total, capacity - total, &count);
        total += count;
    } while (result == 1 && total < capacity && SSL_has_pending(s->ssl));
    int status = result == 1 ? 0 : hf__tls_outcome(s, result);
    if (total == 0)
        return status;
    s->verdict = status != -EAGAIN ? status : 0;
    return (int)total;
}

/* One record at a time. If the inner transport takes only a part of it, the caller comes back with
 * the same bytes, perhaps in another place and with more behind them, as OpenSSL demands. */
static int write_bytes(void *arg, const void *bytes, size_t count)
{
    hf__tls_stream *s = arg;
    size_t written = 0;
    forget_errors();
    int result = SSL_write_ex(s->ssl, bytes, count, &written);
    if (result == 1)
        return (int)written;
    int status = hf__tls_outcome(s, result);
    return status != 0 ? status : -EPIPE;
}

static const char *describe(void *arg)
{
    const hf__tls_stream *s = arg;
    if (s->words[0] != '\0')
        return s->words;
    return s->tls->inner.describe != NULL ? s->tls->inner.describe(s->inner) : NULL;
}

const hf_transport hf__tls_stream_transport = {
    .size = sizeof(hf_transport),
    .open = open_stream,
    .connected = is_connected,
    .descriptor = descriptor_of,
    .read = read_bytes,
    .write = write_bytes,
    .close = close_stream,
    .describe = describe,
};
