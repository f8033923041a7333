/* SPDX-License-Identifier: MIT */
/* How connections are to be protected: options become an OpenSSL context, once for each client.
 *
 * Whatever can be found wrong is found here, with the name of the option and the file: a client
 * that could never connect is not opened. Only our own certificate and key are read again for each
 * connection (see tls_stream.c), by the same function that tries them here.
 *
 * Who is trusted is decided by three lines that belong together: SSL_VERIFY_PEER, the trusted
 * certificates, and the expected name in the context's parameters. All connections inherit them,
 * and a session that is resumed was made under the same ones.
 *
 * OpenSSL keeps a queue of errors for each thread. It is the application's queue too, and an old
 * entry would be taken for a new failure; so it is emptied before and after we use it. */
#include "net/tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/sized.h"
#include "base/text.h"
#include "core/fail.h"
#include "net/tls_parts.h"

enum { NAME_MAX_BYTES = 255, WORDS = 250 };

static hf_status no_memory(hf_error *error)
{
    return hf__fail(error, HF_ENOMEM, "out of memory");
}

/* ---- Files ---- */

/* OpenSSL's own words about files that cannot be read are for programmers. */
static bool file_is_there(const char *option, const char *path, mode_t kind, char *words,
                          size_t capacity)
{
    char text[128];
    struct stat status;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0 || fstat(descriptor, &status) != 0) {
        const char *why = strerror_r(errno, text, sizeof(text));
        hf__format(words, capacity, "%s: %.150s: %s", option, path, why);
        if (descriptor >= 0)
            close(descriptor);
        return false;
    }
    close(descriptor);
    if ((status.st_mode & S_IFMT) == kind)
        return true;
    hf__format(words, capacity, "%s: %.150s is not a %s", option, path,
               kind == S_IFDIR ? "folder" : "file");
    return false;
}

static const char *last_reason(void)
{
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());
    return reason != NULL ? reason : "reason unknown";
}

/* Nobody is asked for passwords on a terminal; that one was needed is noted. */
static int refuse_password(char *place, int capacity, int writing, void *needed)
{
    (void)place;
    (void)capacity;
    (void)writing;
    if (needed != NULL)
        *(bool *)needed = true;
    return -1;
}

static bool use_certificate(const hf__tls *tls, SSL *ssl, char *words, size_t capacity)
{
    const char *path = tls->certificate_file;
    if (!file_is_there("certificate_file", path, S_IFREG, words, capacity))
        return false;
    if (SSL_use_certificate_chain_file(ssl, path) == 1)
        return true;
    hf__format(words, capacity,
               "certificate_file: %.150s: there is no certificate to use in it: %s", path,
               last_reason());
    return false;
}

static bool use_key(const hf__tls *tls, SSL *ssl, bool *encrypted, char *words, size_t capacity)
{
    const char *option = tls->key_file != NULL ? "key_file" : "certificate_file";
    const char *path = tls->key_file != NULL ? tls->key_file : tls->certificate_file;
    if (!file_is_there(option, path, S_IFREG, words, capacity))
        return false;
    bool used = SSL_use_PrivateKey_file(ssl, path, SSL_FILETYPE_PEM) == 1;
    if (used && SSL_check_private_key(ssl) == 1)
        return true;
    if (*encrypted)
        hf__format(words, capacity, "%s: %.150s: the key is encrypted", option, path);
    else if (used || ERR_GET_LIB(ERR_peek_last_error()) == ERR_LIB_X509)
        hf__format(words, capacity, "%s: %.150s: the key does not fit the certificate", option,
                   path);
    else
        hf__format(words, capacity, "%s: %.150s: there is no key to use in it: %s", option, path,
                   last_reason());
    return false;
}

bool hf__tls_identify(const hf__tls *tls, SSL *ssl, char *words, size_t capacity)
{
    bool encrypted = false;
    if (tls->certificate_file == NULL)
        return true;
    ERR_clear_error();
    SSL_set_default_passwd_cb(ssl, refuse_password);
    SSL_set_default_passwd_cb_userdata(ssl, &encrypted);
    bool fine = use_certificate(tls, ssl, words, capacity) &&
                use_key(tls, ssl, &encrypted, words, capacity);
    SSL_set_default_passwd_cb_userdata(ssl, NULL);
    ERR_clear_error();
    return fine;
}

static hf_status try_identity(const hf__tls *tls, hf_error *error)
{
    char words[WORDS];
    SSL *ssl = SSL_new(tls->context);
    if (ssl == NULL)
        return no_memory(error);
    bool fine = hf__tls_identify(tls, ssl, words, sizeof(words));
    SSL_free(ssl);
    return fine ? HF_OK : hf__fail(error, HF_EINVAL, "%s", words);
}

/* ---- Trust ---- */

static hf_status trust(const hf__tls *tls, const hf_tls *options, hf_error *error)
{
    char words[WORDS];
    if (options->ca_file != NULL) {
        if (!file_is_there("ca_file", options->ca_file, S_IFREG, words, sizeof(words)))
            return hf__fail(error, HF_EINVAL, "%s", words);
        if (SSL_CTX_load_verify_file(tls->context, options->ca_file) != 1)
            return hf__fail(error, HF_EINVAL, "ca_file: %.150s: there is no certificate in it: %s",
                            options->ca_file, last_reason());
    }
    if (options->ca_dir != NULL) {
        if (!file_is_there("ca_dir", options->ca_dir, S_IFDIR, words, sizeof(words)))
            return hf__fail(error, HF_EINVAL, "%s", words);
        if (SSL_CTX_load_verify_dir(tls->context, options->ca_dir) != 1)
            return no_memory(error);
    }
    if (options->ca_file != NULL || options->ca_dir != NULL || options->insecure_trust_anybody)
        return HF_OK;
    if (SSL_CTX_set_default_verify_paths(tls->context) != 1)
        return hf__fail(error, HF_EINVAL,
                        "the system's certificates cannot be read: %s; set "
                        "ca_file or ca_dir",
                        last_reason());
    return HF_OK;
}

/* A link-local address may come with the name of an interface behind a '%', which is not part of
 * what a certificate says. */
static bool is_address(const char *name)
{
    unsigned char address[sizeof(struct in6_addr)];
    return inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1;
}

static bool expect_name(hf__tls *tls)
{
    X509_VERIFY_PARAM *parameters = SSL_CTX_get0_param(tls->context);
    if (tls->name_is_address)
        return X509_VERIFY_PARAM_set1_ip_asc(parameters, tls->name) == 1;
    X509_VERIFY_PARAM_set_hostflags(parameters, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return X509_VERIFY_PARAM_set1_host(parameters, tls->name, 0) == 1;
}

/* "example.org." is the same name, but certificates never have the dot. */
static bool take_name(hf__tls *tls, const char *name)
{
    tls->name = hf__copy_text(name);
    if (tls->name == NULL)
        return false;
    char *zone = strchr(tls->name, '%');
    size_t length = strlen(tls->name);
    if (zone != NULL && strchr(tls->name, ':') != NULL)
        *zone = '\0';
    else if (length > 1 && tls->name[length - 1] == '.')
        tls->name[length - 1] = '\0';
    tls->name_is_address = is_address(tls->name);
    return true;
}

/* ---- The context ---- */

static hf_status read_options(const hf_tls *given, hf_tls *options, hf_error *error)
{
    *options = (hf_tls){0};
    if (given == NULL)
        return HF_OK;
    if (!hf__sized_is_plausible(given->size))
        return hf__fail(error, HF_EINVAL, "tls: set size, or use HF_TLS()");
    if (!hf__sized_copy(given, given->size, options, sizeof(*options)))
        return hf__fail(error, HF_EINVAL, "tls: made for a newer version of the library");
    const struct {
        const char *name, *value;
    } texts[] = {
        {"ca_file", options->ca_file},
        {"ca_dir", options->ca_dir},
        {"certificate_file", options->certificate_file},
        {"key_file", options->key_file},
        {"server_name", options->server_name},
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (texts[i].value != NULL && texts[i].value[0] == '\0')
            return hf__fail(error, HF_EINVAL, "%s is empty; leave it NULL for the default",
                            texts[i].name);
    if (options->key_file != NULL && options->certificate_file == NULL)
        return hf__fail(error, HF_EINVAL, "key_file needs a certificate_file");
    return HF_OK;
}

static bool copy_texts(hf__tls *tls, const hf_tls *options, const char *host)
{
    if (options->certificate_file != NULL)
        tls->certificate_file = hf__copy_text(options->certificate_file);
    if (options->key_file != NULL)
        tls->key_file = hf__copy_text(options->key_file);
    return take_name(tls, options->server_name != NULL ? options->server_name : host) &&
           (options->certificate_file == NULL || tls->certificate_file != NULL) &&
           (options->key_file == NULL || tls->key_file != NULL);
}

/* The system's configuration may ask for more than TLS 1.2; that is left alone. Buffers are kept
 * while a connection is idle: there are few, and they would be taken anew for each request. */
static bool make_context(hf__tls *tls, bool trusts_anybody)
{
    tls->method = hf__tls_stream_method();
    tls->context = tls->method != NULL ? SSL_CTX_new(TLS_client_method()) : NULL;
    SSL_CTX *context = tls->context;
    if (context == NULL)
        return false;
    if (SSL_CTX_get_min_proto_version(context) < TLS1_2_VERSION &&
        SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) != 1)
        return false;
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_IGNORE_UNEXPECTED_EOF |
                                     SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(context, hf__tls_stream_keep_session);
    SSL_CTX_set_default_passwd_cb(context, refuse_password);
    SSL_CTX_set_verify(context, trusts_anybody ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, NULL);
    return expect_name(tls);
}

static hf_status prepare(hf__tls *tls, const hf_tls *options, const char *host, hf_error *error)
{
    if (!copy_texts(tls, options, host))
        return no_memory(error);
    if (strlen(tls->name) > NAME_MAX_BYTES)
        return hf__fail(error, HF_EINVAL, "server_name must have at most %d bytes", NAME_MAX_BYTES);
    if (!make_context(tls, options->insecure_trust_anybody))
        return no_memory(error);
    hf_status status = trust(tls, options, error);
    return status == HF_OK ? try_identity(tls, error) : status;
}

/* A client's threads may still be at work while the process exits; so OpenSSL must not clean up
 * after itself then. This has a say only if nobody has used OpenSSL before us. */
static hf_status start_openssl(hf_error *error)
{
    hf_status status = hf__openssl_load(error);
    if (status == HF_OK && OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, NULL) != 1)
        return no_memory(error);
    return status;
}

hf_status hf__tls_new(const hf_tls *given, const hf_transport *inner, const char *host,
                      hf__tls **tls, hf_error *error)
{
    hf_tls options;
    *tls = NULL;
    hf_status status = read_options(given, &options, error);
    if (status == HF_OK)
        status = start_openssl(error);
    if (status != HF_OK)
        return status;
    hf__tls *fresh = hf__alloc(sizeof(*fresh));
    if (fresh == NULL)
        return no_memory(error);
    memcpy(&fresh->inner, inner, inner->size);
    fresh->transport = hf__tls_stream_transport;
    fresh->transport.arg = fresh;
    ERR_clear_error();
    status = prepare(fresh, &options, host, error);
    ERR_clear_error();
    if (status != HF_OK)
        hf__tls_free(fresh);
    else
        *tls = fresh;
    return status;
}

const hf_transport *hf__tls_transport(const hf__tls *tls)
{
    return &tls->transport;
}

void hf__tls_free(hf__tls *tls)
{
    if (tls == NULL)
        return;
    SSL_SESSION_free(tls->session);
    SSL_CTX_free(tls->context);
    BIO_meth_free(tls->method);
    hf__free(tls->name);
    hf__free(tls->certificate_file);
    hf__free(tls->key_file);
    hf__free(tls);
}
