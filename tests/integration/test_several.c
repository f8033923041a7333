/* SPDX-License-Identifier: MIT */
/* Goal: a client of several real servers speaks to each of them in the way that its URL says, over
 * TCP, over a unix socket and over TLS, with the credentials of each; it does so with threads and
 * in a loop of the application, with as many servers and connections as there can be; and a server
 * that is not who it should be is left out.
 *
 * What the servers make of it together is for other programs: here it is enough that a majority of
 * them has the lock, and that nothing is left of it afterwards.
 */
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "protected.h"

enum { PATIENCE_MS = 20000, URLS = 1024 };

static hf_client *client;
static hf_error error;
static struct redis_server *all[HF_SERVERS_MAX];
static int count;

/* They are new, so without this they would have no vote for a while. */
#define QUORUM .durable_servers = true, .connect_timeout_ms = 5000, .reply_timeout_ms = 5000

/* ---- Verbs ----------------------------------------------------------------------------------- */

static void take_server(struct redis_server *fresh)
{
    assert_non_null(fresh);
    all[count++] = fresh;
}

static void start_three(void)
{
    take_server(redis_server_start(NULL));
    take_server(redis_server_start(&(struct redis_server_options){.password = "s3cret"}));
    take_server(start_showing("server"));
}

/* One URL of each kind. */
static const char *urls_of_three(void)
{
    static char urls[URLS];
    (void)snprintf(urls, sizeof(urls), "%s,unix://:s3cret@%s %s", all[0]->url, all[1]->socket,
                   all[2]->tls_url);
    return urls;
}

static int servers_with(const char *key)
{
    int have = 0;
    for (int i = 0; i < count; i++)
        have += raw_number(all[i], "EXISTS %s", key) == 1;
    return have;
}

static long long connections_of(struct redis_server *at)
{
    long long connected = 0;
    const char *line = strstr(raw(at, "INFO clients"), "connected_clients:");
    assert_non_null(line);
    assert_int_equal(sscanf(line, "connected_clients:%lld", &connected), 1);
    return connected - 1; /* ours for looking */
}

static void ignore_sight(void *arg, const hf_sight *sight)
{
    (void)arg;
    (void)sight;
}

static int end_servers(void **state)
{
    int result = end_everything(state);
    count = 0;
    return result;
}

/* ---- Tests ----------------------------------------------------------------------------------- */

static void each_server_is_reached_in_its_own_way(void **state)
{
    hf_observer *observer;
    (void)state;
    start_three();
    open_client_at(urls_of_three(), &client, HF_CLIENT(.tls = trusting(), QUORUM));
    EXPECT(HF_OK, hf_observe(client, "lock", 0, ignore_sight, NULL, &observer, &error));
    for (int i = 0; i < count; i++)
        WAIT_UNTIL(scripts_run(all[i]) > 0, PATIENCE_MS); /* it looks at all of them */
    hf_observe_end(&observer);
}

static void a_majority_has_the_lock(void **state)
{
    (void)state;
    start_three();
    open_client_at(urls_of_three(), &client, HF_CLIENT(.tls = trusting(), QUORUM));
    hf_hold *hold = acquire_with(client, HF_ACQUIRE(.wait_ms = PATIENCE_MS));
    assert_true(hf_fence(hold) > 0);
    assert_true(servers_with("lock") >= 2);
    release(&hold);
    WAIT_UNTIL(servers_with("lock") == 0, PATIENCE_MS);
}

/* Its certificate is for another name. What the others have is a majority all the same. */
static void a_server_that_is_not_who_it_should_be_is_left_out(void **state)
{
    (void)state;
    char urls[URLS];
    certificate_make(
        "other", &(struct certificate_wish){.signer = "authority", .names = "DNS:other.example"});
    take_server(redis_server_start(NULL));
    take_server(start_showing("server"));
    take_server(start_showing("other"));
    (void)snprintf(urls, sizeof(urls), "%s %s %s", all[0]->unix_url, all[1]->tls_url,
                   all[2]->tls_url);
    open_client_at(urls, &client, HF_CLIENT(.tls = trusting(), QUORUM));
    hf_hold *hold = acquire_with(client, HF_ACQUIRE(.wait_ms = PATIENCE_MS));
    assert_int_equal(servers_with("lock"), 2);
    assert_int_equal(raw_number(all[2], "EXISTS lock"), 0);
    release(&hold);
}

static void one_of_three_may_be_gone(void **state)
{
    (void)state;
    start_three();
    redis_server_kill(all[0]);
    open_client_at(urls_of_three(), &client, HF_CLIENT(.tls = trusting(), QUORUM));
    hf_hold *hold = acquire_with(client, HF_ACQUIRE(.wait_ms = PATIENCE_MS));
    assert_string_equal(raw(all[1], "EXISTS lock"), "1");
    assert_string_equal(raw(all[2], "EXISTS lock"), "1");
    release(&hold);
}

/* ---- As many as there can be ----------------------------------------------------------------- */

enum { LOCKS = 64 };

static hf_hold *holds[LOCKS];
static int granted;

static void keep(void *arg, hf_hold *hold, const hf_error *why)
{
    hf_hold **place = arg;
    assert_int_equal(why->status, HF_OK);
    *place = hold;
    granted++;
}

static void process_until(const int *number, int wanted)
{
    struct pollfd loop = {.fd = hf_loop_descriptor(client), .events = POLLIN};
    while (*number < wanted) {
        assert_int_equal(poll(&loop, 1, PATIENCE_MS), 1);
        EXPECT(HF_OK, hf_process(client, &error));
    }
}

static void start_nine(char *urls, size_t capacity)
{
    size_t used = 0;
    while (count < HF_SERVERS_MAX) {
        take_server(redis_server_start(NULL));
        const char *url = all[count - 1]->unix_url;
        used += (size_t)snprintf(urls + used, capacity - used, "%s%s", used > 0 ? " " : "", url);
    }
}

static void ask_for_all(void)
{
    char name[32];
    granted = 0;
    for (int i = 0; i < LOCKS; i++) {
        (void)snprintf(name, sizeof(name), "lock:%d", i);
        EXPECT(HF_OK, hf_acquire_async(client, name, HF_ACQUIRE(.wait_ms = PATIENCE_MS), keep,
                                       &holds[i], NULL, &error));
    }
}

static void all_links_to_nine_servers_work(void **state)
{
    (void)state;
    char urls[URLS];
    start_nine(urls, sizeof(urls));
    open_client_at(
        urls, &client,
        HF_CLIENT(.own_loop = true, .links = HF_LINKS_MAX, .max_lease_ms = 60000, QUORUM));
    ask_for_all();
    process_until(&granted, LOCKS);
    for (int i = 0; i < count; i++)
        WAIT_UNTIL(connections_of(all[i]) >= HF_LINKS_MAX, PATIENCE_MS);
    for (int i = 0; i < LOCKS; i++)
        release(&holds[i]);
}

#define TEST(test) cmocka_unit_test_teardown(test, end_servers)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_server_is_reached_in_its_own_way),
        TEST(a_majority_has_the_lock),
        TEST(a_server_that_is_not_who_it_should_be_is_left_out),
        TEST(one_of_three_may_be_gone),
        TEST(all_links_to_nine_servers_work),
    };
    return cmocka_run_group_tests(tests, begin_certificates, end_certificates);
}
