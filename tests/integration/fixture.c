/* SPDX-License-Identifier: MIT */
/* See fixture.h. Clients are remembered by the address of the test's variable, not by themselves,
 * so that a test may close one, or open another in its place, and the teardown still does what is
 * left: hf_close() of NULL is fine. */
#include "fixture.h"

#include <stdlib.h>
#include <string.h>

enum { CLIENTS_MAX = 4 };

struct redis_server *server;

static hf_error error;
static hf_client **opened[CLIENTS_MAX];
static size_t opened_count;

/* ---- Set-up and teardown --------------------------------------------------------------------- */

int start_server(void **state)
{
    (void)state;
    server = redis_server_start(NULL);
    return 0;
}

int end_server(void **state)
{
    (void)state;
    redis_server_end_all();
    return 0;
}

int close_clients(void **state)
{
    (void)state;
    int result = 0;
    for (size_t i = 0; i < opened_count; i++) {
        if (hf_close(*opened[i]) != HF_OK)
            result = -1;
        *opened[i] = NULL;
    }
    opened_count = 0;
    return result;
}

int end_everything(void **state)
{
    int result = close_clients(state);
    process_end_all();
    redis_server_end_all();
    return result;
}

void empty_server(void)
{
    assert_string_equal(raw(server, "FLUSHALL"), "OK");
    assert_string_equal(raw(server, "CONFIG RESETSTAT"), "OK");
}

void open_client(hf_client **client)
{
    open_client_with(client, NULL);
}

void open_client_with(hf_client **client, const hf_client_options *options)
{
    EXPECT(HF_OK, hf_open(server->url, options, client, &error));
    for (size_t i = 0; i < opened_count; i++)
        if (opened[i] == client)
            return;
    assert_true(opened_count < CLIENTS_MAX);
    opened[opened_count++] = client;
}

/* ---- Verbs ----------------------------------------------------------------------------------- */

hf_hold *acquire_with(hf_client *client, const hf_acquire_options *options)
{
    hf_hold *hold = NULL;
    EXPECT(HF_OK, hf_acquire(client, "lock", options, &hold, &error));
    assert_non_null(hold);
    return hold;
}

hf_hold *acquire_for(hf_client *client, int64_t lease_ms)
{
    return acquire_with(client, HF_ACQUIRE(.lease_ms = lease_ms, .no_renewal = true));
}

void release(hf_hold **hold)
{
    EXPECT(HF_OK, hf_release(hold, &error));
    assert_null(*hold);
}

void expect_refused(hf_client *client)
{
    hf_hold *none = (hf_hold *)&error; /* anything but NULL: the call has to clear it */
    EXPECT(HF_EBUSY, hf_acquire(client, "lock", NULL, &none, &error));
    assert_null(none);
}

void expect_free(hf_client *client)
{
    hf_hold *hold = acquire_with(client, NULL);
    release(&hold);
}

void expect_says(const char *text, const char *word)
{
    if (strcasestr(text, word) == NULL)
        fail_msg("does not say \"%s\": %s", word, text);
}

const hf_stats *stats_of(hf_client *client)
{
    static hf_stats stats;
    EXPECT_STATUS(HF_OK, hf_stats_read(client, &stats));
    return &stats;
}

/* ---- The server ------------------------------------------------------------------------------ */

long long connections_seen(void)
{
    static const char field[] = "total_connections_received:";
    const char *found = strstr(raw(server, "INFO stats"), field);
    assert_non_null(found);
    return strtoll(found + sizeof(field) - 1, NULL, 10);
}

redisContext *begin_endless_script(void)
{
    int written = 0;
    redisContext *context = redisConnectUnix(server->socket);
    assert_non_null(context);
    assert_int_equal(context->err, 0);
    assert_int_equal(redisAppendCommand(context, "EVAL %s 0", "while true do end"), REDIS_OK);
    while (!written)
        assert_int_equal(redisBufferWrite(context, &written), REDIS_OK);
    return context;
}
