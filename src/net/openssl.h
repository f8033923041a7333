/* SPDX-License-Identifier: MIT */
/* OpenSSL, loaded when the first client wants TLS: see openssl.c. Whoever includes this calls its
 * functions by their names, after hf__openssl_load() has said HF_OK; no other file includes
 * OpenSSL's headers. A function that is not in both lists below is found by the compiler or by the
 * linker. Macros of OpenSSL are what they expand to: SSL_CTX_set_mode() is SSL_CTX_ctrl() here. */
#ifndef HF_NET_OPENSSL_H
#define HF_NET_OPENSSL_H

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <holdfast.h>

/* HF_OK; HF_EINVAL: it is not there, or is another one than we were built for; HF_ENOMEM. */
hf_status hf__openssl_load(hf_error *error);

/* The file to load. For tests only, set while no other thread is inside the library. */
extern const char *hf__openssl_file;

#define HF__OPENSSL_MAP(X)                \
    X(BIO_clear_flags)                    \
    X(BIO_get_data)                       \
    X(BIO_meth_free)                      \
    X(BIO_meth_new)                       \
    X(BIO_meth_set_ctrl)                  \
    X(BIO_meth_set_read)                  \
    X(BIO_meth_set_write)                 \
    X(BIO_new)                            \
    X(BIO_set_data)                       \
    X(BIO_set_flags)                      \
    X(BIO_set_init)                       \
    X(ERR_clear_error)                    \
    X(ERR_peek_error)                     \
    X(ERR_peek_last_error)                \
    X(ERR_reason_error_string)            \
    X(EVP_sha256)                         \
    X(OPENSSL_init_ssl)                   \
    X(SSL_CIPHER_get_name)                \
    X(SSL_CTX_ctrl)                       \
    X(SSL_CTX_free)                       \
    X(SSL_CTX_get0_param)                 \
    X(SSL_CTX_load_verify_dir)            \
    X(SSL_CTX_load_verify_file)           \
    X(SSL_CTX_new)                        \
    X(SSL_CTX_sess_set_new_cb)            \
    X(SSL_CTX_set_default_passwd_cb)      \
    X(SSL_CTX_set_default_verify_paths)   \
    X(SSL_CTX_set_options)                \
    X(SSL_CTX_set_verify)                 \
    X(SSL_SESSION_free)                   \
    X(SSL_SESSION_is_resumable)           \
    X(SSL_check_private_key)              \
    X(SSL_connect)                        \
    X(SSL_ctrl)                           \
    X(SSL_free)                           \
    X(SSL_get_certificate)                \
    X(SSL_get_current_cipher)             \
    X(SSL_get_error)                      \
    X(SSL_get_ex_data)                    \
    X(SSL_get_state)                      \
    X(SSL_get_verify_result)              \
    X(SSL_get_version)                    \
    X(SSL_has_pending)                    \
    X(SSL_new)                            \
    X(SSL_read_ex)                        \
    X(SSL_session_reused)                 \
    X(SSL_set_bio)                        \
    X(SSL_set_cert_cb)                    \
    X(SSL_set_default_passwd_cb)          \
    X(SSL_set_default_passwd_cb_userdata) \
    X(SSL_set_ex_data)                    \
    X(SSL_set_read_ahead)                 \
    X(SSL_set_session)                    \
    X(SSL_set_shutdown)                   \
    X(SSL_use_PrivateKey_file)            \
    X(SSL_use_certificate_chain_file)     \
    X(SSL_write_ex)                       \
    X(TLS_client_method)                  \
    X(X509_VERIFY_PARAM_set1_host)        \
    X(X509_VERIFY_PARAM_set1_ip_asc)      \
    X(X509_VERIFY_PARAM_set_hostflags)    \
    X(X509_digest)                        \
    X(X509_verify_cert_error_string)

#define HF__OPENSSL_MEMBER(name) __typeof__(&name) name;
struct hf__openssl {
    HF__OPENSSL_MAP(HF__OPENSSL_MEMBER)
};
extern struct hf__openssl hf__openssl;

/* From here on the names are those of the members. */
#define BIO_clear_flags                    hf__openssl.BIO_clear_flags
#define BIO_get_data                       hf__openssl.BIO_get_data
#define BIO_meth_free                      hf__openssl.BIO_meth_free
#define BIO_meth_new                       hf__openssl.BIO_meth_new
#define BIO_meth_set_ctrl                  hf__openssl.BIO_meth_set_ctrl
#define BIO_meth_set_read                  hf__openssl.BIO_meth_set_read
#define BIO_meth_set_write                 hf__openssl.BIO_meth_set_write
#define BIO_new                            hf__openssl.BIO_new
#define BIO_set_data                       hf__openssl.BIO_set_data
#define BIO_set_flags                      hf__openssl.BIO_set_flags
#define BIO_set_init                       hf__openssl.BIO_set_init
#define ERR_clear_error                    hf__openssl.ERR_clear_error
#define ERR_peek_error                     hf__openssl.ERR_peek_error
#define ERR_peek_last_error                hf__openssl.ERR_peek_last_error
#define ERR_reason_error_string            hf__openssl.ERR_reason_error_string
#define EVP_sha256                         hf__openssl.EVP_sha256
#define OPENSSL_init_ssl                   hf__openssl.OPENSSL_init_ssl
#define SSL_CIPHER_get_name                hf__openssl.SSL_CIPHER_get_name
#define SSL_CTX_ctrl                       hf__openssl.SSL_CTX_ctrl
#define SSL_CTX_free                       hf__openssl.SSL_CTX_free
#define SSL_CTX_get0_param                 hf__openssl.SSL_CTX_get0_param
#define SSL_CTX_load_verify_dir            hf__openssl.SSL_CTX_load_verify_dir
#define SSL_CTX_load_verify_file           hf__openssl.SSL_CTX_load_verify_file
#define SSL_CTX_new                        hf__openssl.SSL_CTX_new
#define SSL_CTX_sess_set_new_cb            hf__openssl.SSL_CTX_sess_set_new_cb
#define SSL_CTX_set_default_passwd_cb      hf__openssl.SSL_CTX_set_default_passwd_cb
#define SSL_CTX_set_default_verify_paths   hf__openssl.SSL_CTX_set_default_verify_paths
#define SSL_CTX_set_options                hf__openssl.SSL_CTX_set_options
#define SSL_CTX_set_verify                 hf__openssl.SSL_CTX_set_verify
#define SSL_SESSION_free                   hf__openssl.SSL_SESSION_free
#define SSL_SESSION_is_resumable           hf__openssl.SSL_SESSION_is_resumable
#define SSL_check_private_key              hf__openssl.SSL_check_private_key
#define SSL_connect                        hf__openssl.SSL_connect
#define SSL_ctrl                           hf__openssl.SSL_ctrl
#define SSL_free                           hf__openssl.SSL_free
#define SSL_get_certificate                hf__openssl.SSL_get_certificate
#define SSL_get_current_cipher             hf__openssl.SSL_get_current_cipher
#define SSL_get_error                      hf__openssl.SSL_get_error
#define SSL_get_ex_data                    hf__openssl.SSL_get_ex_data
#define SSL_get_state                      hf__openssl.SSL_get_state
#define SSL_get_verify_result              hf__openssl.SSL_get_verify_result
#define SSL_get_version                    hf__openssl.SSL_get_version
#define SSL_has_pending                    hf__openssl.SSL_has_pending
#define SSL_new                            hf__openssl.SSL_new
#define SSL_read_ex                        hf__openssl.SSL_read_ex
#define SSL_session_reused                 hf__openssl.SSL_session_reused
#define SSL_set_bio                        hf__openssl.SSL_set_bio
#define SSL_set_cert_cb                    hf__openssl.SSL_set_cert_cb
#define SSL_set_default_passwd_cb          hf__openssl.SSL_set_default_passwd_cb
#define SSL_set_default_passwd_cb_userdata hf__openssl.SSL_set_default_passwd_cb_userdata
#define SSL_set_ex_data                    hf__openssl.SSL_set_ex_data
#define SSL_set_read_ahead                 hf__openssl.SSL_set_read_ahead
#define SSL_set_session                    hf__openssl.SSL_set_session
#define SSL_set_shutdown                   hf__openssl.SSL_set_shutdown
#define SSL_use_PrivateKey_file            hf__openssl.SSL_use_PrivateKey_file
#define SSL_use_certificate_chain_file     hf__openssl.SSL_use_certificate_chain_file
#define SSL_write_ex                       hf__openssl.SSL_write_ex
#define TLS_client_method                  hf__openssl.TLS_client_method
#define X509_VERIFY_PARAM_set1_host        hf__openssl.X509_VERIFY_PARAM_set1_host
#define X509_VERIFY_PARAM_set1_ip_asc      hf__openssl.X509_VERIFY_PARAM_set1_ip_asc
#define X509_VERIFY_PARAM_set_hostflags    hf__openssl.X509_VERIFY_PARAM_set_hostflags
#define X509_digest                        hf__openssl.X509_digest
#define X509_verify_cert_error_string      hf__openssl.X509_verify_cert_error_string

#endif
