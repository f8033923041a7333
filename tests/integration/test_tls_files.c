/* SPDX-License-Identifier: MIT */
/* Goal: a client whose options for TLS can never work is not opened, and the text names the option,
 * the file and the reason. Nobody is asked for a password on the terminal.
 *
 * No server is needed: hf_open() does not connect. What happens to files that change later is in
 * test_tls.c.
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "protected.h"

#define URL "rediss://localhost:1"

static hf_error error;

/* ---- Verbs ----------------------------------------------------------------------------------- */

static void refuse(const hf_tls *tls, const char *option, const char *file, const char *reason)
{
    hf_client *client = (hf_client *)&error; /* to be cleared */
    EXPECT(HF_EINVAL, hf_open(URL, HF_CLIENT(.tls = tls), &client, &error));
    assert_null(client);
    expect_says(error.text, option);
    expect_says(error.text, file);
    expect_says(error.text, reason);
}

static void accept(const hf_tls *tls)
{
    hf_client *client;
    EXPECT(HF_OK, hf_open(URL, HF_CLIENT(.tls = tls), &client, &error));
    EXPECT_STATUS(HF_OK, hf_close(client));
}

static int begin(void **state)
{
    int result = begin_certificates(state);
    certificate_write("garbage", "this is not a certificate\n");
    certificate_write("empty", "");
    certificate_write("broken", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
                                "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n");
    certificate_make("locked",
                     &(struct certificate_wish){.signer = "authority", .password = "sesame"});
    return result;
}

/* What each option that names a file says of one that cannot be read. */
static const struct {
    const char *file, *reason;
} bad_files[] = {
    {"missing", "No such file"}, {".", "is not a file"},    {"garbage", "there is no"},
    {"empty", "there is no"},    {"broken", "there is no"},
};

enum { BAD_FILES = sizeof(bad_files) / sizeof(bad_files[0]) };

/* ---- Trust ----------------------------------------------------------------------------------- */

static void a_bad_file_of_trust(void **state)
{
    (void)state;
    for (size_t i = 0; i < BAD_FILES; i++)
        refuse(HF_TLS(.ca_file = certificate_path(bad_files[i].file)),
               "ca_file: ", bad_files[i].file, bad_files[i].reason);
    refuse(HF_TLS(.ca_file = certificate_path("client.key")), "ca_file: ", "client.key",
           "there is no certificate in it");
}

static void a_bad_folder_of_trust(void **state)
{
    (void)state;
    refuse(HF_TLS(.ca_dir = certificate_path("missing")), "ca_dir: ", "missing", "No such file");
    refuse(HF_TLS(.ca_dir = certificate_path("authority.crt")), "ca_dir: ", "authority.crt",
           "is not a folder");
    accept(HF_TLS(.ca_dir = certificate_path(".")));
}

/* What is not looked at later is looked at now all the same: somebody may switch it on again. */
static void bad_files_of_those_who_trust_anybody(void **state)
{
    (void)state;
    refuse(HF_TLS(.ca_file = certificate_path("garbage"), .insecure_trust_anybody = true),
           "ca_file: ", "garbage", "there is no certificate in it");
}

static void a_fifo_is_not_waited_for(void **state)
{
    (void)state;
    assert_int_equal(mkfifo(certificate_path("fifo"), 0600), 0);
    refuse(HF_TLS(.ca_file = certificate_path("fifo")), "ca_file: ", "fifo", "is not a file");
}

/* ---- Our own certificate --------------------------------------------------------------------- */

static void a_bad_certificate(void **state)
{
    (void)state;
    for (size_t i = 0; i < BAD_FILES; i++)
        refuse(HF_TLS(.certificate_file = certificate_path(bad_files[i].file),
                      .key_file = certificate_path("client.key")),
               "certificate_file: ", bad_files[i].file, bad_files[i].reason);
    accept(HF_TLS(.certificate_file = certificate_path("client.crt"),
                  .key_file = certificate_path("client.key")));
}

static void a_bad_key(void **state)
{
    (void)state;
    for (size_t i = 0; i < BAD_FILES; i++)
        refuse(HF_TLS(.certificate_file = certificate_path("client.crt"),
                      .key_file = certificate_path(bad_files[i].file)),
               "key_file: ", bad_files[i].file, bad_files[i].reason);
}

static void a_key_that_is_nowhere(void **state)
{
    (void)state;
    refuse(HF_TLS(.certificate_file = certificate_path("client.crt")),
           "certificate_file: ", "client.crt", "there is no key");
    accept(HF_TLS(.certificate_file = certificate_path("client.pem")));
}

static void a_key_that_does_not_fit(void **state)
{
    (void)state;
    refuse(HF_TLS(.certificate_file = certificate_path("client.crt"),
                  .key_file = certificate_path("server.key")),
           "key_file: ", "server.key", "does not fit");
    certificate_make("thick", &(struct certificate_wish){.signer = "authority", .rsa = true});
    refuse(HF_TLS(.certificate_file = certificate_path("client.crt"),
                  .key_file = certificate_path("thick.key")),
           "key_file: ", "thick.key", "does not fit");
    accept(HF_TLS(.certificate_file = certificate_path("thick.pem")));
}

static void a_key_without_a_certificate(void **state)
{
    (void)state;
    refuse(HF_TLS(.key_file = certificate_path("client.key")), "key_file", "", "certificate_file");
}

/* With a terminal that would be asked, if there is one: a prompt would hang the test. */
static void an_encrypted_key(void **state)
{
    (void)state;
    refuse(HF_TLS(.certificate_file = certificate_path("locked.crt"),
                  .key_file = certificate_path("locked.key")),
           "key_file: ", "locked.key", "encrypted");
    refuse(HF_TLS(.certificate_file = certificate_path("locked.pem")),
           "certificate_file: ", "locked.pem", "encrypted");
}

/* ---- Words ----------------------------------------------------------------------------------- */

static void empty_words(void **state)
{
    (void)state;
    refuse(HF_TLS(.ca_file = ""), "ca_file", "", "empty");
    refuse(HF_TLS(.ca_dir = ""), "ca_dir", "", "empty");
    refuse(HF_TLS(.certificate_file = ""), "certificate_file", "", "empty");
    refuse(HF_TLS(.key_file = ""), "key_file", "", "empty");
    refuse(HF_TLS(.server_name = ""), "server_name", "", "empty");
}

static void a_name_without_end(void **state)
{
    (void)state;
    char name[300];
    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    refuse(HF_TLS(.server_name = name), "server_name", "", "255");
}

static void options_of_another_size(void **state)
{
    (void)state;
    struct {
        hf_tls known;
        uint64_t unknown;
    } newer = {.known.size = sizeof(newer)};
    hf_tls older = {.size = offsetof(hf_tls, server_name), .server_name = ""};
    accept(&newer.known);
    newer.unknown = 1;
    refuse(&newer.known, "tls", "", "newer");
    accept(&older);
    refuse(&(hf_tls){.size = 0}, "tls", "", "size");
    refuse(&(hf_tls){.size = 1}, "tls", "", "size");
}

static void options_without_a_use(void **state)
{
    (void)state;
    hf_client *client;
    EXPECT(HF_EINVAL, hf_open("redis://localhost:1", HF_CLIENT(.tls = HF_TLS()), &client, &error));
    expect_says(error.text, "rediss://");
}

#define TEST(function) cmocka_unit_test(function)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_bad_file_of_trust),
        TEST(a_bad_folder_of_trust),
        TEST(bad_files_of_those_who_trust_anybody),
        TEST(a_fifo_is_not_waited_for),
        TEST(a_bad_certificate),
        TEST(a_bad_key),
        TEST(a_key_that_is_nowhere),
        TEST(a_key_that_does_not_fit),
        TEST(a_key_without_a_certificate),
        TEST(an_encrypted_key),
        TEST(empty_words),
        TEST(a_name_without_end),
        TEST(options_of_another_size),
        TEST(options_without_a_use),
    };
    return cmocka_run_group_tests_name("files for TLS", tests, begin, end_certificates);
}
