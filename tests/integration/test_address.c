/* SPDX-License-Identifier: MIT */
/* Goal: a URL leads to the server, the user and the database that it names, and to nothing else.
 *
 * Each test opens a client by one form of URL, takes a lock and looks with raw(), which always goes
 * through the unix socket, whether the lock is where the URL said. Refused credentials must be
 * refused at once, however long the caller was ready to wait, because waiting cannot help.
 */
#include <stdio.h>
#include <string.h>

#include "../lib/redis_server.h"

/* Every character that has a meaning of its own in a URL, and how it is written. */
#define PASSWORD     "p@ss:w/r?d#%[x]"
#define PASSWORD_URL "p%40ss%3Aw%2Fr%3Fd%23%25%5Bx%5D"

static hf_error error;

static int end(void **state)
{
    (void)state;
    redis_server_end_all();
    return 0;
}

/* ---- Verbs ----------------------------------------------------------------------------------- */

static hf_client *open_url(const char *format, ...) __attribute__((format(printf, 1, 2)));
static hf_client *open_url(const char *format, ...)
{
    char url[256];
    hf_client *client;
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(url, sizeof(url), format, arguments);
    va_end(arguments);
    EXPECT(HF_OK, hf_open(url, NULL, &client, &error));
    return client;
}

/* Takes and gives back a lock through the client, which is closed. */
static void expect_works(hf_client *client, struct redis_server *server, int database)
{
    hf_hold *hold;
    char selected[32];
    (void)snprintf(selected, sizeof(selected), "SELECT %d", database);
    assert_string_equal(raw(server, selected), "OK");
    EXPECT(HF_OK, hf_acquire(client, "lock", NULL, &hold, &error));
    assert_string_equal(raw(server, "EXISTS lock"), "1");
    EXPECT(HF_OK, hf_release(&hold, &error));
    assert_string_equal(raw(server, "EXISTS lock"), "0");
    EXPECT_STATUS(HF_OK, hf_close(client));
}

static void expect_refused(hf_client *client, hf_status status)
{
    hf_hold *hold;
    int64_t start = now_ms();
    EXPECT(status, hf_acquire(client, "lock", HF_ACQUIRE(.wait_ms = 20000), &hold, &error));
    EXPECT_TOOK(start, 0, 500);
    assert_null(hold);
    EXPECT(status, hf_acquire(client, "lock", NULL, &hold, &error));
    EXPECT_STATUS(HF_OK, hf_close(client));
}

/* ---- Addresses ------------------------------------------------------------------------------- */

static void ipv4_address(void **state)
{
    (void)state;
    struct redis_server *server = redis_server_start(NULL);
    expect_works(open_url("redis://127.0.0.1:%d", server->port), server, 0);
}

static void ipv6_address(void **state)
{
    (void)state;
    if (!has_ipv6_loopback()) {
        print_message("this machine has no IPv6 loopback\n");
        skip();
    }
    struct redis_server *server = redis_server_start(&(struct redis_server_options){.ipv6 = true});
    expect_works(open_url("redis://[::1]:%d", server->port), server, 0);
}

static void host_name(void **state)
{
    (void)state;
    struct redis_server *server = redis_server_start(NULL);
    expect_works(open_url("redis://localhost:%d", server->port), server, 0);
}

static void unix_socket(void **state)
{
    (void)state;
    struct redis_server *server = redis_server_start(
        &(struct redis_server_options){.extra = (const char *const[]){"--port", "0", NULL}});
    expect_works(open_url("unix://%s", server->socket), server, 0);
}

static void unix_socket_that_is_not_there(void **state)
{
    (void)state;
    struct redis_server *server = redis_server_start(NULL);
    hf_hold *hold;
    hf_client *client = open_url("unix://%s.missing", server->socket);
    EXPECT(HF_EUNAVAILABLE, hf_acquire(client, "lock", NULL, &hold, &error));
    assert_non_null(strstr(error.text, "redis.sock.missing"));
    EXPECT_STATUS(HF_OK, hf_close(client));
}

/* ---- Databases ------------------------------------------------------------------------------- */

static void database_over_tcp(void **state)
{
    (void)state;
    struct redis_server *server = redis_server_start(NULL);
    expect_works(open_url("redis://127.0.0.1:%d/3", server->port), server, 3);
    expect_works(open_url("redis://127.0.0.1:%d/0", server->port), server, 0);
}

static void database_over_a_unix_socket(void **state)
{
    (void)state;
    struct redis_server *server = redis_server_start(NULL);
    expect_works(open_url("unix://%s?db=5", server->socket), server, 5);
}

/* The server has 16; no waiting gives it more. */
static void database_that_the_server_does_not_have(void **state)
{
    (void)state;
    struct redis_server *server = redis_server_start(NULL);
    expect_refused(open_url("redis://127.0.0.1:%d/99", server->port), HF_ESERVER);
}

static void databases_are_apart(void **state)
{
    (void)state;
    struct redis_server *server = redis_server_start(NULL);
    hf_client *first = open_url("redis://127.0.0.1:%d/1", server->port);
    hf_client *second = open_url("redis://127.0.0.1:%d/2", server->port);
    hf_hold *holds[2];
    EXPECT(HF_OK, hf_acquire(first, "lock", NULL, &holds[0], &error));
    EXPECT(HF_OK, hf_acquire(second, "lock", NULL, &holds[1], &error));
    EXPECT(HF_OK, hf_release(&holds[0], &error));
    EXPECT(HF_OK, hf_release(&holds[1], &error));
    EXPECT_STATUS(HF_OK, hf_close(first));
    EXPECT_STATUS(HF_OK, hf_close(second));
}

/* ---- Credentials ----------------------------------------------------------------------------- */

static struct redis_server *start_with_password(void)
{
    return redis_server_start(&(struct redis_server_options){.password = PASSWORD});
}

static void right_password(void **state)
{
    (void)state;
    struct redis_server *server = start_with_password();
    expect_works(open_url("redis://:%s@127.0.0.1:%d", PASSWORD_URL, server->port), server, 0);
    expect_works(open_url("redis://default:%s@127.0.0.1:%d/2", PASSWORD_URL, server->port), server,
                 2);
    expect_works(open_url("unix://:%s@%s", PASSWORD_URL, server->socket), server, 0);
}

static void wrong_password(void **state)
{
    (void)state;
    struct redis_server *server = start_with_password();
    expect_refused(open_url("redis://:guess@127.0.0.1:%d", server->port), HF_EDENIED);
    expect_refused(open_url("unix://:guess@%s", server->socket), HF_EDENIED);
    assert_null(strstr(error.text, "guess"));
}

static void missing_password(void **state)
{
    (void)state;
    struct redis_server *server = start_with_password();
    expect_refused(open_url("redis://127.0.0.1:%d", server->port), HF_EDENIED);
}

static void user_and_password(void **state)
{
    (void)state;
    struct redis_server *server = redis_server_start(NULL);
    assert_string_equal(raw(server, "ACL SETUSER ann on >secret ~* &* +@all"), "OK");
    expect_works(open_url("redis://ann:secret@127.0.0.1:%d", server->port), server, 0);
    expect_refused(open_url("redis://ann:guess@127.0.0.1:%d", server->port), HF_EDENIED);
    expect_refused(open_url("redis://bea:secret@127.0.0.1:%d", server->port), HF_EDENIED);
}

static void user_without_permission(void **state)
{
    (void)state;
    struct redis_server *server = redis_server_start(NULL);
    assert_string_equal(raw(server, "ACL SETUSER nokeys on >secret &* +@all"), "OK");
    assert_string_equal(raw(server, "ACL SETUSER noscripts on >secret ~* &* +@all -@scripting"),
                        "OK");
    expect_refused(open_url("redis://nokeys:secret@127.0.0.1:%d", server->port), HF_EDENIED);
    expect_refused(open_url("redis://noscripts:secret@127.0.0.1:%d", server->port), HF_EDENIED);
}

/* A permission that is given later helps the next call of the same client. */
static void a_refused_client_stays_usable(void **state)
{
    (void)state;
    struct redis_server *server = redis_server_start(NULL);
    hf_hold *hold;
    hf_client *client = open_url("redis://late:secret@127.0.0.1:%d", server->port);
    EXPECT(HF_EDENIED, hf_acquire(client, "lock", NULL, &hold, &error));
    assert_string_equal(raw(server, "ACL SETUSER late on >secret ~* &* +@all"), "OK");
    EXPECT(HF_OK, hf_acquire(client, "lock", HF_ACQUIRE(.wait_ms = 5000), &hold, &error));
    EXPECT(HF_OK, hf_release(&hold, &error));
    EXPECT_STATUS(HF_OK, hf_close(client));
}

#define TEST(function) cmocka_unit_test_teardown(function, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(ipv4_address),
        TEST(ipv6_address),
        TEST(host_name),
        TEST(unix_socket),
        TEST(unix_socket_that_is_not_there),
        TEST(database_over_tcp),
        TEST(database_over_a_unix_socket),
        TEST(database_that_the_server_does_not_have),
        TEST(databases_are_apart),
        TEST(right_password),
        TEST(wrong_password),
        TEST(missing_password),
        TEST(user_and_password),
        TEST(user_without_permission),
        TEST(a_refused_client_stays_usable),
    };
    return cmocka_run_group_tests_name("addresses", tests, NULL, NULL);
}
