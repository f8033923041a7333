/* SPDX-License-Identifier: MIT
 *
 * A blocking connection with OpenSSL on it, as cheap as it can honestly be: reading ahead, so that
 * a reply costs one system call; nothing between OpenSSL and the socket; requests and replies made
 * and parsed by hiredis, as in the loops without TLS. Versions and ciphers are OpenSSL's choice, as
 * they are for the library; so both sides end up with the same.
 *
 * The connection is hiredis' own: it has opened the socket (with TCP_NODELAY) and will close it,
 * and failures are noted where its own are. Nobody else uses OpenSSL in our thread while a command
 * runs, and a failure ends the run: so the queue of errors is empty, and need not be emptied each
 * time.
 */
#include "bare_tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdbool.h>
#include <stdio.h>

#define READ_SIZE (16 * 1024)

static void note_failure(redisContext *context, const char *doing)
{
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());
    context->err = REDIS_ERR_OTHER;
    snprintf(context->errstr, sizeof context->errstr, "%s: %s", doing,
             reason != NULL ? reason : "the connection broke");
    ERR_clear_error();
}

static SSL *fail_start(redisContext *context, SSL *ssl)
{
    note_failure(context, "TLS handshake");
    SSL_free(ssl);
    return NULL;
}

SSL *bare_tls_start(redisContext *context, const char *authority_path)
{
    ERR_clear_error();
    SSL_CTX *settings = SSL_CTX_new(TLS_client_method());
    if (settings == NULL)
        return fail_start(context, NULL);
    SSL_CTX_set_min_proto_version(settings, TLS1_2_VERSION);
    SSL_CTX_set_verify(settings, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_read_ahead(settings, 1);
    SSL *ssl = NULL;
    if (SSL_CTX_load_verify_file(settings, authority_path) == 1)
        ssl = SSL_new(settings);
    SSL_CTX_free(settings); /* it lives on with the connection */
    if (ssl == NULL || SSL_set_fd(ssl, context->fd) != 1 || SSL_connect(ssl) != 1)
        return fail_start(context, ssl);
    return ssl;
}

void bare_tls_end(SSL *ssl)
{
    if (ssl != NULL)
        SSL_shutdown(ssl);
    SSL_free(ssl);
    ERR_clear_error();
}

static bool send_command(redisContext *context, SSL *ssl, int count, const char **arguments,
                         const size_t *lengths)
{
    char *bytes = NULL;
    int length = redisFormatCommandArgv(&bytes, count, arguments, lengths);
    bool sent = length > 0 && SSL_write(ssl, bytes, length) == length;
    redisFreeCommand(bytes);
    if (!sent)
        note_failure(context, "SSL_write");
    return sent;
}

static bool read_more(redisContext *context, SSL *ssl)
{
    char bytes[READ_SIZE];
    int count = SSL_read(ssl, bytes, sizeof bytes);
    if (count > 0 && redisReaderFeed(context->reader, bytes, (size_t)count) == REDIS_OK)
        return true;
    note_failure(context, "SSL_read");
    return false;
}

redisReply *bare_tls_command(redisContext *context, SSL *ssl, int count, const char **arguments,
                             const size_t *lengths)
{
    void *reply = NULL;
    if (!send_command(context, ssl, count, arguments, lengths))
        return NULL;
    while (reply == NULL) {
        if (!read_more(context, ssl))
            return NULL;
        if (redisReaderGetReply(context->reader, &reply) != REDIS_OK) {
            note_failure(context, "reply");
            return NULL;
        }
    }
    return reply;
}
