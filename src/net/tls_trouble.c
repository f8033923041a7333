/* SPDX-License-Identifier: MIT */
/* What went wrong, in words for people, and whether trying again can help.
 *
 * It cannot if the server's certificate was refused (HF_PEER_UNSAFE), or if the server has told us
 * that it does not want us (HF_PEER_DENIES): it does so with an alert, and there are many that
 * come down to our certificate. With TLS 1.3 such an alert comes only after the handshake, with the
 * first read. Everything else is an errno as from a socket, and passes or not. */
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "base/text.h"
#include "net/tls_parts.h"

static int say(hf__tls_stream *s, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static int say(hf__tls_stream *s, int status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    hf__vformat(s->words, sizeof(s->words), format, arguments);
    va_end(arguments);
    return status;
}

/* ---- The server's certificate ---- */

static bool is_unknown_signer(long why)
{
    return why == X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT ||
           why == X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN ||
           why == X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT ||
           why == X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY ||
           why == X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE || why == X509_V_ERR_CERT_UNTRUSTED;
}

static int refuse_server(hf__tls_stream *s)
{
    static const char refused[] = "the server's certificate was refused";
    long why = SSL_get_verify_result(s->ssl);
    const char *text = X509_verify_cert_error_string(why);
    char name[100];
    hf__printable(name, sizeof(name), s->tls->name, strlen(s->tls->name));
    if (why == X509_V_ERR_HOSTNAME_MISMATCH)
        return say(s, HF_PEER_UNSAFE, "%s: it is for another host name than %s", refused, name);
    if (why == X509_V_ERR_IP_ADDRESS_MISMATCH)
        return say(s, HF_PEER_UNSAFE, "%s: it is not for the address %s", refused, name);
    if (is_unknown_signer(why))
        return say(s, HF_PEER_UNSAFE, "%s: it is signed by somebody unknown (%s)", refused, text);
    return say(s, HF_PEER_UNSAFE, "%s: %s", refused, text);
}

/* ---- Alerts ---- */

/* OpenSSL's "tlsv1 alert unknown ca" without what says nothing. */
static const char *alert_words(unsigned long error)
{
    const char *text = ERR_reason_error_string(error);
    const char *words = text != NULL ? strstr(text, " alert ") : NULL;
    if (words != NULL)
        return words + strlen(" alert ");
    return text != NULL ? text : "unknown alert";
}

static bool is_about_certificates(int alert)
{
    return alert == SSL_AD_HANDSHAKE_FAILURE || alert == SSL_AD_NO_CERTIFICATE ||
           alert == SSL_AD_BAD_CERTIFICATE || alert == SSL_AD_UNSUPPORTED_CERTIFICATE ||
           alert == SSL_AD_CERTIFICATE_REVOKED || alert == SSL_AD_CERTIFICATE_EXPIRED ||
           alert == SSL_AD_CERTIFICATE_UNKNOWN || alert == SSL_AD_UNKNOWN_CA ||
           alert == SSL_AD_ACCESS_DENIED || alert == SSL_AD_DECRYPT_ERROR ||
           alert == SSL_AD_CERTIFICATE_REQUIRED;
}

static int heed_alert(hf__tls_stream *s, unsigned long error)
{
    int alert = ERR_GET_REASON(error) - SSL_AD_REASON_OFFSET;
    const char *words = alert_words(error);
    if (alert == SSL_AD_PROTOCOL_VERSION)
        return say(s, HF_PEER_UNSAFE, "the server speaks no version of TLS that is new enough (%s)",
                   words);
    if (is_about_certificates(alert) && s->asked && s->tls->certificate_file == NULL)
        return say(s, HF_PEER_DENIES, "the server asks for a certificate of ours (%s)", words);
    if (is_about_certificates(alert) && s->asked)
        return say(s, HF_PEER_DENIES, "the server refuses our certificate: %s", words);
    if (is_about_certificates(alert) || alert == SSL_AD_INSUFFICIENT_SECURITY ||
        alert == SSL_AD_UNRECOGNIZED_NAME)
        return say(s, HF_PEER_DENIES, "the server refuses the TLS handshake: %s", words);
    return say(s, -EPROTO, "the server ended TLS: %s", words);
}

/* ---- All of it ---- */

static bool is_too_old(int reason)
{
    return reason == SSL_R_UNSUPPORTED_PROTOCOL || reason == SSL_R_WRONG_SSL_VERSION ||
           reason == SSL_R_VERSION_TOO_LOW || reason == SSL_R_DH_KEY_TOO_SMALL ||
           reason == SSL_R_UNSAFE_LEGACY_RENEGOTIATION_DISABLED;
}

/* Until a first message of the server has been understood, it may be anything that listens. */
static bool is_no_tls(const hf__tls_stream *s)
{
    OSSL_HANDSHAKE_STATE state = SSL_get_state(s->ssl);
    return state == TLS_ST_BEFORE || state == TLS_ST_CW_CLNT_HELLO;
}

static int judge(hf__tls_stream *s)
{
    unsigned long error = ERR_peek_last_error();
    int reason = ERR_GET_REASON(error);
    const char *text = ERR_reason_error_string(error);
    if (error == 0)
        return -EPROTO;
    if (ERR_GET_LIB(error) == ERR_LIB_SSL && reason > SSL_AD_REASON_OFFSET)
        return heed_alert(s, error);
    if (ERR_GET_LIB(error) == ERR_LIB_SSL && reason == SSL_R_CERTIFICATE_VERIFY_FAILED)
        return refuse_server(s);
    if (reason == ERR_R_MALLOC_FAILURE)
        return -ENOMEM;
    if (text == NULL)
        text = "reason unknown";
    if (ERR_GET_LIB(error) == ERR_LIB_SSL && is_too_old(reason))
        return say(s, HF_PEER_UNSAFE, "the server's TLS is not good enough: %s", text);
    if (!s->established && is_no_tls(s))
        return say(s, -EPROTO, "does not speak TLS here (%s)", text);
    return say(s, -EPROTO, "TLS failed: %s", text);
}

int hf__tls_outcome(hf__tls_stream *s, int result)
{
    int status;
    switch (SSL_get_error(s->ssl, result)) {
    case SSL_ERROR_WANT_READ:
        s->wait = HF_WAIT_READ;
        status = -EAGAIN;
        break;
    case SSL_ERROR_WANT_WRITE:
        s->wait = HF_WAIT_WRITE;
        status = -EAGAIN;
        break;
    case SSL_ERROR_ZERO_RETURN:
        status = 0;
        break;
    default:
        s->words[0] = '\0';
        status = s->failure != 0 ? s->failure : judge(s);
        s->failure = 0; /* what the server said before it can still be read */
    }
    ERR_clear_error();
    return status;
}
