/* SPDX-License-Identifier: MIT */
/* See certificates.h. Made with libcrypto: the `openssl` command would take a process and a
 * configuration file for each. */
#include "certificates.h"

#include <ftw.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATHS = 8, DAY_S = 24 * 60 * 60 };

static char folder[64]; /* empty: there is none */

/* ---- Files ----------------------------------------------------------------------------------- */

const char *certificate_path(const char *file)
{
    static char paths[PATHS][160];
    static size_t next;
    char *path = paths[next++ % PATHS];
    (void)snprintf(path, sizeof(paths[0]), "%s/%s", folder, file);
    return path;
}

static const char *path_of(const char *stem, const char *ending)
{
    char file[64];
    (void)snprintf(file, sizeof(file), "%s.%s", stem, ending);
    return certificate_path(file);
}

static FILE *open_file(const char *path, const char *mode)
{
    FILE *file = fopen(path, mode);
    if (file == NULL)
        fail_msg("cannot open %s", path);
    return file;
}

void certificate_write(const char *name, const char *text)
{
    FILE *file = open_file(certificate_path(name), "we");
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

void certificate_copy(const char *from, const char *to)
{
    char text[16 * 1024];
    FILE *file = open_file(certificate_path(from), "re");
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    (void)fclose(file);
    certificate_write(to, text);
}

/* ---- Making ---------------------------------------------------------------------------------- */

static void extend(X509 *certificate, X509 *signer, int kind, const char *value)
{
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, signer, certificate, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, kind, value);
    assert_non_null(extension);
    assert_int_equal(X509_add_ext(certificate, extension, -1), 1);
    X509_EXTENSION_free(extension);
}

static X509 *load_certificate(const char *stem)
{
    FILE *file = open_file(path_of(stem, "crt"), "re");
    X509 *certificate = PEM_read_X509(file, NULL, NULL, NULL);
    (void)fclose(file);
    assert_non_null(certificate);
    return certificate;
}

static EVP_PKEY *load_key(const char *stem)
{
    FILE *file = open_file(path_of(stem, "key"), "re");
    EVP_PKEY *key = PEM_read_PrivateKey(file, NULL, NULL, NULL);
    (void)fclose(file);
    assert_non_null(key);
    return key;
}

static X509 *make(const char *stem, EVP_PKEY *key, const struct certificate_wish *wish)
{
    static long serial;
    X509 *certificate = X509_new();
    assert_non_null(certificate);
    X509 *signer = wish->signer != NULL ? load_certificate(wish->signer) : certificate;
    EVP_PKEY *signing = wish->signer != NULL ? load_key(wish->signer) : key;
    X509_NAME *subject = X509_get_subject_name(certificate);
    X509_set_version(certificate, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), ++serial);
    X509_gmtime_adj(X509_getm_notBefore(certificate), -2L * DAY_S);
    X509_gmtime_adj(X509_getm_notAfter(certificate), wish->expired ? -DAY_S : DAY_S);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)stem, -1, -1, 0);
    X509_set_issuer_name(certificate, X509_get_subject_name(signer));
    X509_set_pubkey(certificate, key);
    extend(certificate, signer, NID_basic_constraints,
           wish->signs ? "critical,CA:TRUE" : "critical,CA:FALSE");
    if (wish->names != NULL)
        extend(certificate, signer, NID_subject_alt_name, wish->names);
    assert_true(X509_sign(certificate, signing, EVP_sha256()) > 0);
    if (wish->signer != NULL) {
        X509_free(signer);
        EVP_PKEY_free(signing);
    }
    return certificate;
}

static void write_key(FILE *file, EVP_PKEY *key, const char *password)
{
    const EVP_CIPHER *cipher = password != NULL ? EVP_aes_128_cbc() : NULL;
    assert_int_equal(PEM_write_PKCS8PrivateKey(file, key, cipher, password,
                                               password != NULL ? (int)strlen(password) : 0, NULL,
                                               NULL),
                     1);
}

static void write_files(const char *stem, X509 *certificate, EVP_PKEY *key, const char *password)
{
    FILE *alone = open_file(path_of(stem, "crt"), "we");
    FILE *secret = open_file(path_of(stem, "key"), "we");
    FILE *both = open_file(path_of(stem, "pem"), "we");
    assert_int_equal(PEM_write_X509(alone, certificate), 1);
    assert_int_equal(PEM_write_X509(both, certificate), 1);
    write_key(secret, key, password);
    write_key(both, key, password);
    assert_int_equal(fclose(alone) | fclose(secret) | fclose(both), 0);
}

void certificate_make(const char *stem, const struct certificate_wish *wish)
{
    EVP_PKEY *key = wish->rsa ? EVP_RSA_gen(2048) : EVP_EC_gen("P-256");
    assert_non_null(key);
    X509 *certificate = make(stem, key, wish);
    write_files(stem, certificate, key, wish->password);
    X509_free(certificate);
    EVP_PKEY_free(key);
}

/* ---- The folder ------------------------------------------------------------------------------ */

void certificates_begin(void)
{
    const char *parent = getenv("TMPDIR");
    if (parent == NULL || strlen(parent) > 32)
        parent = "/tmp";
    certificates_end();
    (void)snprintf(folder, sizeof(folder), "%s/holdfast-XXXXXX", parent);
    assert_non_null(mkdtemp(folder));
    certificate_make("authority", &(struct certificate_wish){.signs = true});
    certificate_make("stranger", &(struct certificate_wish){.signs = true});
    certificate_make("server",
                     &(struct certificate_wish){.signer = "authority", .names = LOCAL_NAMES});
    certificate_make("client", &(struct certificate_wish){.signer = "authority"});
}

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)status;
    (void)kind;
    (void)place;
    return remove(path);
}

void certificates_end(void)
{
    if (folder[0] != '\0')
        (void)nftw(folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    folder[0] = '\0';
}
