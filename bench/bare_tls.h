/* SPDX-License-Identifier: MIT
 *
 * TLS for the baselines: what an expert would write by hand with OpenSSL, on top of a connection
 * that hiredis has opened.
 */
#ifndef BENCH_BARE_TLS_H
#define BENCH_BARE_TLS_H

#include <hiredis/hiredis.h>
#include <openssl/types.h>

/* NULL when it fails; then errstr of the context says why. */
SSL *bare_tls_start(redisContext *context, const char *authority_path);
void bare_tls_end(SSL *ssl); /* before redisFree(); NULL is fine */

/* What redisCommandArgv() is without TLS. */
redisReply *bare_tls_command(redisContext *context, SSL *ssl, int count, const char **arguments,
                             const size_t *lengths);

#endif
