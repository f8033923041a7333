/* SPDX-License-Identifier: MIT */
/* Goal: a client talks to the server that its URL means, and to nobody else; and to a server that
 * wants to know who we are, with the certificate that it was given.
 *
 * Who is refused is refused for good: calls end at once, however long they would wait, and say why
 * in words. Files that are wrong from the start are in test_tls_files.c, peers that are not TLS
 * servers in test_tls_peers.c, and what goes over a good connection in test_tls_traffic.c.
 */
#include <stdio.h>
#include <stdlib.h>

#include "protected.h"

static hf_client *client;
static hf_error error;

static const hf_tls blind_trust = {.size = sizeof(hf_tls), .insecure_trust_anybody = true};

/* ---- Good servers ---------------------------------------------------------------------------- */

static void a_server_is_known_by_name_and_by_address(void **state)
{
    (void)state;
    start_showing("server");
    expect_serves(tls_url_of(server, "localhost"), trusting());
    expect_serves(tls_url_of(server, "127.0.0.1"), trusting());
    if (has_ipv6_loopback())
        expect_serves(tls_url_of(server, "[::1]"), trusting());
    else
        print_message("no IPv6 here: not tried\n");
    hf_tls dotted = *trusting();
    dotted.server_name = "localhost."; /* the same name */
    expect_serves(server->tls_url, &dotted);
}

static void a_folder_of_trust_will_do(void **state)
{
    (void)state;
    char command[256];
    (void)snprintf(command, sizeof(command), "openssl rehash %s 2>/dev/null",
                   certificate_path("."));
    assert_int_equal(system(command), 0);
    start_showing("server");
    expect_serves(server->tls_url, HF_TLS(.ca_dir = certificate_path(".")));
}

static void a_password_and_a_database_go_along(void **state)
{
    (void)state;
    char url[128];
    server = redis_server_start(&(struct redis_server_options){
        .password = "open sesame",
        .tls = {certificate_path("server.crt"), certificate_path("server.key"),
                certificate_path("authority.crt"), NULL, NULL}});
    (void)snprintf(url, sizeof(url), "rediss://:open%%20sesame@localhost:%d/3", server->tls_port);
    open_client_at(url, &client, HF_CLIENT(.tls = trusting()));
    hf_hold *hold = acquire_with(client, HF_ACQUIRE(.wait_ms = 5000));
    expect_says(raw(server, "INFO keyspace"), "db3:keys");
    release(&hold);
    (void)snprintf(url, sizeof(url), "rediss://:wrong@localhost:%d", server->tls_port);
    expect_final(url, trusting(), HF_EDENIED, "password");
}

/* The log says how a connection is protected. */
static void expect_version(const char *protocols, const char *words)
{
    forget_log();
    start_protected("server", &(struct redis_server_tls){.protocols = protocols});
    open_client_at(server->tls_url, &client, HF_CLIENT(.tls = trusting(), .log = keep_log));
    expect_free(client);
    assert_true(logged("connected to localhost") > 0);
    assert_true(logged(words) > 0);
    close_client(&client);
}

static void both_versions_of_tls_are_spoken(void **state)
{
    (void)state;
    expect_version("TLSv1.2", "(TLSv1.2, ");
    expect_version("TLSv1.3", "(TLSv1.3, TLS_");
}

static void an_older_version_is_refused(void **state)
{
    (void)state;
    server = redis_server_start(&(struct redis_server_options){
        .tls = {certificate_path("server.crt"), certificate_path("server.key"),
                certificate_path("authority.crt"), NULL, "TLSv1.1"},
        .extra = (const char *const[]){"--tls-ciphers", "ALL:@SECLEVEL=0", NULL}});
    expect_final(server->tls_url, trusting(), HF_EUNSAFE, "version");
    expect_final(server->tls_url, &blind_trust, HF_EUNSAFE, "version");
}

/* ---- Servers that are refused ---------------------------------------------------------------- */

static void a_signature_of_a_stranger(void **state)
{
    (void)state;
    certificate_make("foreign",
                     &(struct certificate_wish){.signer = "stranger", .names = LOCAL_NAMES});
    start_showing("foreign");
    expect_final(server->tls_url, trusting(), HF_EUNSAFE, "signed by somebody unknown");
    expect_serves(server->tls_url, HF_TLS(.ca_file = certificate_path("stranger.crt")));
    expect_serves(server->tls_url, &blind_trust);
}

static void the_system_does_not_know_our_authority(void **state)
{
    (void)state;
    start_showing("server");
    expect_final(server->tls_url, NULL, HF_EUNSAFE, "signed by somebody unknown");
    expect_final(server->tls_url, HF_TLS(), HF_EUNSAFE, "certificate was refused");
}

static void a_signature_of_its_own(void **state)
{
    (void)state;
    certificate_make("alone", &(struct certificate_wish){.names = LOCAL_NAMES});
    start_showing("alone");
    expect_final(server->tls_url, trusting(), HF_EUNSAFE, "self-signed");
    expect_serves(server->tls_url, HF_TLS(.ca_file = certificate_path("alone.crt")));
    expect_serves(server->tls_url, &blind_trust);
}

static void another_name(void **state)
{
    (void)state;
    certificate_make("other", &(struct certificate_wish){.signer = "authority",
                                                         .names = "DNS:redis.example.org"});
    start_showing("other");
    expect_final(tls_url_of(server, "localhost"), trusting(), HF_EUNSAFE,
                 "for another host name than localhost");
    expect_final(tls_url_of(server, "127.0.0.1"), trusting(), HF_EUNSAFE,
                 "not for the address 127.0.0.1");
    hf_tls named = *trusting();
    named.server_name = "redis.example.org";
    expect_serves(tls_url_of(server, "localhost"), &named);
    expect_serves(tls_url_of(server, "127.0.0.1"), &named);
    named.server_name = "redis.example.com";
    expect_final(server->tls_url, &named, HF_EUNSAFE, "than redis.example.com");
    expect_serves(server->tls_url, &blind_trust);
}

static void a_wildcard_is_a_whole_label(void **state)
{
    (void)state;
    certificate_make("wild",
                     &(struct certificate_wish){.signer = "authority",
                                                .names = "DNS:*.example.org,DNS:r*.example.com"});
    start_showing("wild");
    hf_tls named = *trusting();
    named.server_name = "redis.example.org";
    expect_serves(server->tls_url, &named);
    named.server_name = "redis.example.com";
    expect_final(server->tls_url, &named, HF_EUNSAFE, "another host name");
    named.server_name = "a.redis.example.org";
    expect_final(server->tls_url, &named, HF_EUNSAFE, "another host name");
}

static void an_expired_one(void **state)
{
    (void)state;
    certificate_make("old", &(struct certificate_wish){
                                .signer = "authority", .names = LOCAL_NAMES, .expired = true});
    start_showing("old");
    expect_final(server->tls_url, trusting(), HF_EUNSAFE, "certificate has expired");
    expect_serves(server->tls_url, &blind_trust);
}

/* ---- Our own certificate --------------------------------------------------------------------- */

static const char *const versions[] = {"TLSv1.2", "TLSv1.3"};

/* With TLS 1.2 the server says so during the handshake, with TLS 1.3 after it. */
static void a_server_asks_who_we_are(void **state)
{
    (void)state;
    certificate_make("impostor", &(struct certificate_wish){.signer = "stranger"});
    certificate_make("stale", &(struct certificate_wish){.signer = "authority", .expired = true});
    for (size_t i = 0; i < 2; i++) {
        start_protected("server", &(struct redis_server_tls){.client_certificates = "yes",
                                                             .protocols = versions[i]});
        expect_serves(server->tls_url, showing("client"));
        expect_final(server->tls_url, trusting(), HF_EDENIED, "asks for a certificate of ours");
        expect_final(server->tls_url, showing("impostor"), HF_EDENIED,
                     "refuses our certificate: unknown ca");
        expect_final(server->tls_url, showing("stale"), HF_EDENIED,
                     "refuses our certificate: certificate expired");
    }
}

static void a_key_may_be_with_its_certificate(void **state)
{
    (void)state;
    start_protected("server", &(struct redis_server_tls){.client_certificates = "yes"});
    hf_tls both = *trusting();
    both.certificate_file = certificate_path("client.pem");
    expect_serves(server->tls_url, &both);
}

static void a_certificate_that_is_optional_may_be_missing(void **state)
{
    (void)state;
    start_protected("server", &(struct redis_server_tls){.client_certificates = "optional"});
    expect_serves(server->tls_url, trusting());
    expect_serves(server->tls_url, showing("client"));
}

static void disconnect_everybody(void)
{
    assert_true(raw_number(server, "CLIENT KILL TYPE normal") > 0);
}

/* The client has a session that it could resume; it would be for the certificate of before. */
static void a_renewed_certificate_is_used_on_reconnect(void **state)
{
    (void)state;
    certificate_make("changing", &(struct certificate_wish){.signer = "authority"});
    start_protected("server", &(struct redis_server_tls){.client_certificates = "yes"});
    forget_log();
    open_client_at(server->tls_url, &client,
                   HF_CLIENT(.tls = showing("changing"), .links = 1, .log = keep_log));
    expect_free(client);
    disconnect_everybody();
    expect_free(client);
    assert_int_equal(logged("session resumed"), 1);

    certificate_make("changing", &(struct certificate_wish){.signer = "stranger"});
    disconnect_everybody();
    hf_hold *hold;
    int64_t start = now_ms();
    EXPECT(HF_EDENIED, hf_acquire(client, "lock", HF_ACQUIRE(.wait_ms = 20000), &hold, &error));
    EXPECT_TOOK(start, 0, 500);
    expect_says(error.text, "refuses our certificate");

    certificate_write("changing.crt", "gone");
    EXPECT(HF_EDENIED, hf_acquire(client, "lock", HF_ACQUIRE(.wait_ms = 20000), &hold, &error));
    expect_says(error.text, "changing.crt: there is no certificate");

    certificate_make("changing", &(struct certificate_wish){.signer = "authority"});
    hold = acquire_with(client, HF_ACQUIRE(.wait_ms = 5000));
    release(&hold);
    assert_int_equal(logged("session resumed"), 1);
}

#define TEST(function) cmocka_unit_test_teardown(function, end_everything)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_server_is_known_by_name_and_by_address),
        TEST(a_folder_of_trust_will_do),
        TEST(a_password_and_a_database_go_along),
        TEST(both_versions_of_tls_are_spoken),
        TEST(an_older_version_is_refused),
        TEST(a_signature_of_a_stranger),
        TEST(the_system_does_not_know_our_authority),
        TEST(a_signature_of_its_own),
        TEST(another_name),
        TEST(a_wildcard_is_a_whole_label),
        TEST(an_expired_one),
        TEST(a_server_asks_who_we_are),
        TEST(a_key_may_be_with_its_certificate),
        TEST(a_certificate_that_is_optional_may_be_missing),
        TEST(a_renewed_certificate_is_used_on_reconnect),
    };
    return cmocka_run_group_tests_name("TLS", tests, begin_certificates, end_certificates);
}
