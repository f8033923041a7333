/* SPDX-License-Identifier: MIT */
/* A client of several servers, as its transport sees it: every server is dialled at its own address
 * and hears only what is meant for it. The transport of this program connects to nobody: it takes
 * every byte, notes it down for its endpoint, and never answers. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wired.h"

#undef OPEN /* over the wires */

/* ---- The transport ---- */

enum { ENDPOINTS = HF_SERVERS_MAX, NOTES = 16 * 1024 };

typedef struct endpoint {
    char address[64]; /* empty: not in use */
    int opens;
    size_t count;
    char bytes[NOTES]; /* the first ones that were written there, whatever the connection */
} endpoint;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static endpoint endpoints[ENDPOINTS];
static int connections;

static endpoint *find_endpoint(const char *address)
{
    int i = 0;
    while (i < ENDPOINTS && endpoints[i].address[0] != '\0' &&
           strcmp(endpoints[i].address, address) != 0)
        i++;
    if (i == ENDPOINTS)
        abort(); /* there are not so many servers */
    snprintf(endpoints[i].address, sizeof(endpoints[i].address), "%s", address);
    return &endpoints[i];
}

static int open_one(void *arg, const hf_endpoint *to, void **connection)
{
    char address[64];
    (void)arg;
    if (to->path != NULL)
        snprintf(address, sizeof(address), "%s", to->path);
    else
        snprintf(address, sizeof(address), "%s:%d", to->host, to->port);
    pthread_mutex_lock(&mutex);
    endpoint *at = find_endpoint(address);
    at->opens++;
    connections++;
    pthread_mutex_unlock(&mutex);
    *connection = at;
    return 0;
}

static int is_connected(void *connection)
{
    (void)connection;
    return 0;
}

static int no_descriptor(void *connection)
{
    (void)connection;
    return -1;
}

static int read_nothing(void *connection, void *bytes, size_t capacity)
{
    (void)connection;
    (void)bytes;
    (void)capacity;
    return -EAGAIN;
}

static int note_bytes(void *connection, const void *bytes, size_t count)
{
    endpoint *at = connection;
    pthread_mutex_lock(&mutex);
    size_t room = sizeof(at->bytes) - at->count;
    size_t noted = count < room ? count : room;
    memcpy(at->bytes + at->count, bytes, noted);
    at->count += noted;
    pthread_mutex_unlock(&mutex);
    return (int)count;
}

static void close_one(void *connection)
{
    (void)connection;
    pthread_mutex_lock(&mutex);
    connections--;
    pthread_mutex_unlock(&mutex);
}

static const hf_transport noting = {.size = sizeof(noting),
                                    .open = open_one,
                                    .connected = is_connected,
                                    .descriptor = no_descriptor,
                                    .read = read_nothing,
                                    .write = note_bytes,
                                    .close = close_one};

static int begin(void **state)
{
    (void)state;
    gate_open();
    memset(endpoints, 0, sizeof(endpoints));
    atomic_store(&lines, 0);
    return 0;
}

static int end(void **state)
{
    (void)state;
    return connections; /* all of them are closed */
}

/* ---- Verbs ---- */

#define OPEN(url)           open_at(url, HF_CLIENT(.transport = &noting))
#define OPEN_WITH(url, ...) open_at(url, HF_CLIENT(.transport = &noting, __VA_ARGS__))

static hf_client *open_at(const char *urls, const hf_client_options *options)
{
    hf_client *client = NULL;
    hf_error error;
    expect_status(hf_open(urls, options, &client, &error), HF_OK, &error);
    return client;
}

static void refuse(const char *urls, const hf_client_options *options, const char *part)
{
    hf_client *client;
    hf_error error;
    expect_status(hf_open(urls, options, &client, &error), HF_EINVAL, &error);
    assert_null(client);
    if (strstr(error.text, part) == NULL)
        fail_msg("\"%s\" does not tell of \"%s\"", error.text, part);
}

static int count_opens_at(const char *address)
{
    pthread_mutex_lock(&mutex);
    int opens = find_endpoint(address)->opens;
    pthread_mutex_unlock(&mutex);
    return opens;
}

static bool has_heard(const char *address, const char *text)
{
    pthread_mutex_lock(&mutex);
    const endpoint *at = find_endpoint(address);
    bool heard = memmem(at->bytes, at->count, text, strlen(text)) != NULL;
    pthread_mutex_unlock(&mutex);
    return heard;
}

static void ignore_sight(void *arg, const hf_sight *sight)
{
    (void)arg;
    (void)sight;
}

/* Whoever observes asks every server. */
static void meet_all(hf_client *client)
{
    hf_observer *observer;
    hf_error error;
    expect_status(hf_observe(client, "x", 0, ignore_sight, NULL, &observer, &error), HF_OK, &error);
    hf_observe_end(&observer);
}

/* ---- Tests ---- */

static void each_server_is_dialled_at_its_address(void **state)
{
    static const char *const addresses[] = {"a:6379", "b:7000", "/s"};
    (void)state;
    hf_client *client = OPEN_WITH("redis://a,redis://b:7000 unix:///s", .links = 1);
    assert_int_equal(count_opens_at("a:6379"), 0); /* only when it is needed */
    meet_all(client);
    for (size_t i = 0; i < COUNT_OF(addresses); i++)
        assert_true(count_opens_at(addresses[i]) > 0);
    assert_string_equal(endpoints[COUNT_OF(addresses)].address, "");
    hf_close(client);
}

static void nine_servers_are_dialled(void **state)
{
    (void)state;
    char address[24];
    hf_client *client = OPEN_WITH("redis://1,2,3,4,5,6,7,8,9", .links = HF_LINKS_MAX);
    meet_all(client);
    for (int i = 1; i <= HF_SERVERS_MAX; i++) {
        snprintf(address, sizeof(address), "%d:6379", i);
        assert_true(count_opens_at(address) > 0);
    }
    hf_close(client);
}

static void each_server_gets_its_own_credentials_and_database(void **state)
{
    (void)state;
    hf_client *client = OPEN("redis://ann:apw@a/11 redis://:bpw@b/12,unix://cid:cpw@/c redis://d");
    meet_all(client);
    EVENTUALLY(has_heard("a:6379", "\r\nann\r\n") && has_heard("a:6379", "\r\napw\r\n"));
    EVENTUALLY(has_heard("b:6379", "\r\nbpw\r\n") && has_heard("/c", "\r\ncid\r\n"));
    EVENTUALLY(has_heard("/c", "\r\ncpw\r\n") && has_heard("d:6379", "INFO"));
    assert_true(has_heard("a:6379", "\r\n11\r\n") && has_heard("b:6379", "\r\n12\r\n"));
    assert_false(has_heard("a:6379", "bpw") || has_heard("a:6379", "cpw"));
    assert_false(has_heard("b:6379", "apw") || has_heard("b:6379", "\r\nann\r\n"));
    assert_false(has_heard("/c", "apw") || has_heard("/c", "bpw"));
    assert_false(has_heard("d:6379", "AUTH") || has_heard("d:6379", "pw\r\n"));
    hf_close(client);
}

static void hosts_of_one_url_share_its_credentials(void **state)
{
    (void)state;
    hf_client *client = OPEN("redis://ann:apw@a,b:1/11");
    meet_all(client);
    EVENTUALLY(has_heard("a:6379", "\r\nann\r\n") && has_heard("a:6379", "\r\napw\r\n"));
    EVENTUALLY(has_heard("b:1", "\r\nann\r\n") && has_heard("b:1", "\r\napw\r\n"));
    assert_true(has_heard("a:6379", "\r\n11\r\n") && has_heard("b:1", "\r\n11\r\n"));
    hf_close(client);
}

static bool give_password(void *arg, hf_credentials *credentials)
{
    (void)arg;
    snprintf(credentials->password, sizeof(credentials->password), "of-%.100s", credentials->user);
    return true;
}

static void other_sources_serve_all_servers(void **state)
{
    (void)state;
    hf_client *client = OPEN_WITH("redis://ann@a redis://bob@b", .credentials = give_password);
    meet_all(client);
    EVENTUALLY(has_heard("a:6379", "\r\nof-ann\r\n") && has_heard("b:6379", "\r\nof-bob\r\n"));
    hf_close(client);
    assert_int_equal(setenv("HF_TEST_PASSWORD", "everywhere", 1), 0);
    client = OPEN_WITH("redis://ann@c redis://d,e", .password_env = "HF_TEST_PASSWORD");
    assert_int_equal(unsetenv("HF_TEST_PASSWORD"), 0);
    meet_all(client);
    EVENTUALLY(has_heard("c:6379", "\r\neverywhere\r\n") && has_heard("c:6379", "\r\nann\r\n"));
    EVENTUALLY(has_heard("d:6379", "\r\neverywhere\r\n"));
    EVENTUALLY(has_heard("e:6379", "\r\neverywhere\r\n"));
    hf_close(client);
}

/* The first message of TLS names the server in the clear. */
static void each_server_is_asked_for_its_own_certificate(void **state)
{
    (void)state;
    hf_client *client = OPEN("rediss://one.example,two.example redis://plain.example");
    meet_all(client);
    EVENTUALLY(has_heard("one.example:6379", "one.example"));
    EVENTUALLY(has_heard("two.example:6379", "two.example"));
    EVENTUALLY(has_heard("plain.example:6379", "INFO"));
    assert_false(has_heard("one.example:6379", "two.example"));
    assert_false(has_heard("two.example:6379", "one.example"));
    assert_false(has_heard("one.example:6379", "INFO"));
    hf_close(client);
    client = OPEN_WITH("rediss://3,4", .tls = HF_TLS(.server_name = "all.example"));
    meet_all(client);
    EVENTUALLY(has_heard("3:6379", "all.example") && has_heard("4:6379", "all.example"));
    hf_close(client);
}

static void passwords_come_from_one_kind_of_place(void **state)
{
    (void)state;
    refuse("redis://a redis://:pw@b", HF_CLIENT(.password_file = "/x"), "once");
    refuse("redis://:pw@a,b", HF_CLIENT(.credentials = give_password), "once");
    refuse("redis://a,b", HF_CLIENT(.password_env = "HF_NOT_THERE"), "not set");
    refuse("redis://ann:apw@a redis://bob@b", NULL, "no password");
    refuse("redis://a,b unix:///s", HF_CLIENT(.tls = HF_TLS(.server_name = "x")), "rediss://");
    refuse("redis://a rediss://b", HF_CLIENT(.tls = HF_TLS(.ca_file = "/not/there")), "ca_file");
    refuse("redis://a,b,a", NULL, "listed twice");
    refuse("redis://1,2,3,4,5,6,7,8,9,10", NULL, "more than 9");
}

/* Nobody answers, so nothing is granted. */
static void expect_nothing(void *arg, hf_hold *hold, const hf_error *error)
{
    (void)arg;
    if (hold != NULL || error->status == HF_OK)
        abort();
}

/* So many locks would use more connections for commands than a quorum has by default. */
static void ask_for_many(hf_client *client)
{
    char name[16];
    for (int i = 0; i < 32; i++) {
        snprintf(name, sizeof(name), "%d", i);
        assert_int_equal(hf_acquire_async(client, name, NULL, expect_nothing, NULL, NULL, NULL),
                         HF_OK);
    }
}

/* Connections are not given up, so each is opened once. */
#define PATIENT .call_timeout_ms = 100, .reply_timeout_ms = 60000, .connect_timeout_ms = 60000

static void several_servers_have_one_link_each(void **state)
{
    (void)state;
    hf_client *client = OPEN_WITH("redis://a", PATIENT);
    ask_for_many(client);
    EVENTUALLY(count_opens_at("a:6379") >= 4);
    hf_close(client);
    client = OPEN_WITH("redis://b,c,d", PATIENT);
    ask_for_many(client);
    meet_all(client);
    assert_true(count_opens_at("b:6379") <= 2); /* and one for messages */
    hf_close(client);
}

static void two_servers_are_warned_of(void **state)
{
    static const struct {
        const char *urls;
        int warnings;
    } cases[] = {{"redis://a", 0}, {"redis://a,b", 1}, {"redis://a,b,c", 0}};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        atomic_store(&lines, 0);
        hf_client *client = OPEN_WITH(cases[i].urls, LOGGED);
        assert_int_equal(atomic_load(&lines), cases[i].warnings);
        hf_close(client);
    }
    assert_int_equal(atomic_load(&bad_lines), 0);
    hf_close(OPEN("redis://a,b")); /* nobody to be told */
}

static void every_allocation_may_fail(void **state)
{
    static const char urls[] = "redis://ann:apw@a,b unix:///s rediss://d";
    (void)state;
    bool refused = true;
    for (long number = 0; refused; number++) {
        hf_client *client = NULL;
        hf_error error;
        gate_fail_at(number);
        hf_status status = hf_open(urls, HF_CLIENT(.transport = &noting), &client, &error);
        refused = gate_open();
        expect_status(status, refused ? HF_ENOMEM : HF_OK, &error);
        assert_int_equal(client == NULL, refused);
        hf_close(client);
    }
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_server_is_dialled_at_its_address),
        TEST(nine_servers_are_dialled),
        TEST(each_server_gets_its_own_credentials_and_database),
        TEST(hosts_of_one_url_share_its_credentials),
        TEST(other_sources_serve_all_servers),
        TEST(each_server_is_asked_for_its_own_certificate),
        TEST(passwords_come_from_one_kind_of_place),
        TEST(several_servers_have_one_link_each),
        TEST(two_servers_are_warned_of),
        TEST(every_allocation_may_fail),
    };
    gate_install();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
