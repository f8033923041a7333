/* SPDX-License-Identifier: MIT */
/* See fixture.h. Clients are remembered by the address of the test's variable, not by themselves,
 * so that a test may close one, or open another in its place, and the teardown still does what is
 * left: hf_close() of NULL is fine. */
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crowd.h"

enum { CLIENTS_MAX = 4 };

struct redis_server *server;
hf_client *alice;
hf_client *bob;

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
    crowd_end();
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
    open_client_at(server->url, client, options);
}

void open_client_at(const char *url, hf_client **client, const hf_client_options *options)
{
    EXPECT(HF_OK, hf_open(url, options, client, &error));
    for (size_t i = 0; i < opened_count; i++)
        if (opened[i] == client)
            return;
    assert_true(opened_count < CLIENTS_MAX);
    opened[opened_count++] = client;
}

void open_both(void)
{
    open_client(&alice);
    open_client(&bob);
}

int begin_with_both(void **state)
{
    (void)state;
    empty_server();
    open_both();
    return 0;
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

long long keys_like(const char *pattern)
{
    long long count = -1;
    assert_int_equal(sscanf(raw(server, "KEYS %s", pattern), "(array of %lld)", &count), 1);
    return count;
}

/* The number in braces makes the side keys share the lock's slot; see docs/wire.md. */
static unsigned slot_of(const char *text)
{
    unsigned crc = 0;
    for (; *text != '\0'; text++) {
        crc ^= (unsigned)(unsigned char)*text << 8;
        for (int bit = 0; bit < 8; bit++)
            crc = (crc << 1) ^ ((crc & 0x8000) != 0 ? 0x1021 : 0);
    }
    return crc & 0x3fff;
}

const char *side_key(char kind)
{
    static char key[48];
    static unsigned tag;
    char digits[16];
    do {
        (void)snprintf(digits, sizeof(digits), "%u", tag);
    } while (slot_of(digits) != slot_of("lock") && ++tag > 0);
    (void)snprintf(key, sizeof(key), "hf:%c:{%u}lock", kind, tag);
    return key;
}

long long queued(void)
{
    return raw_number(server, "ZCOUNT %s 0 +inf", side_key('q'));
}

void expect_only_fences(void)
{
    WAIT_UNTIL(raw_number(server, "DBSIZE") == keys_like("hf:[fm]:*"), 10000);
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
