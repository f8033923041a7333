/* SPDX-License-Identifier: MIT */
/* Looking at locks from outside, and acting on those that others hold. Each call is one query or a
 * few, one after the other. On a quorum a query about a lock is for all servers; a list is made of
 * what the servers have, one after the other. */
#include <string.h>

#include "api/client.h"
#include "base/glob.h"
#include "base/memory.h"
#include "core/agree.h"
#include "core/fail.h"
#include "net/clock.h"

/* Side keys of fences: "<side prefix>hf:f:{<number>}<key>". Every lock that we ever took has had
 * one. */
#define FENCE_KEYS "hf:f:{*}"

enum { PATTERN_MAX = 1024 };

static const hf__slice nothing = {NULL, 0};

static hf_status ask(hf_client *client, hf__query_kind kind, hf__slice name, hf__slice text,
                     uint64_t number, hf__answer *answer, hf_error *error)
{
    hf__slice prefix = hf__client_prefix(client);
    hf__query *query = hf__query_new(kind, prefix, name, text, number);
    return hf__client_run(client, query, answer, error);
}

/* What is about one server, and not about a lock. */
static hf_status ask_server(hf_client *client, int server, hf__query_kind kind, hf__answer *answer,
                            hf_error *error)
{
    hf__slice prefix = hf__client_prefix(client);
    hf__query *query = hf__query_new(kind, prefix, nothing, nothing, 0);
    if (query != NULL)
        hf__query_ask(query, server);
    return hf__client_run(client, query, answer, error);
}

/* ---- Observe ---- */

hf_status hf_observe(hf_client *client, const char *name, size_t name_length,
                     hf_sight_function *function, void *arg, hf_observer **observer,
                     hf_error *error)
{
    HF__VISIT(client);
    if (observer == NULL)
        return hf__fail(error, HF_EINVAL, "observer is NULL");
    *observer = NULL;
    if (client == NULL || function == NULL)
        return hf__fail(error, HF_EINVAL, "%s is NULL", client == NULL ? "client" : "function");
    if (hf__driver_forked(client->driver))
        return hf__plain(error, HF_EFORKED);
    hf_status status = hf__name_check(client, name, &name_length, error);
    if (status != HF_OK)
        return status;
    hf__slice prefix = hf__client_prefix(client);
    hf_observer *fresh = hf__observer_new(prefix, (hf__slice){name, name_length}, function, arg);
    if (fresh == NULL)
        return hf__fail(error, HF_ENOMEM, "out of memory");
    hf__observer_set_client(fresh, client);
    atomic_fetch_add(&client->references, 1);
    *observer = fresh; /* now: the function may run before we are back */
    status = hf__driver_observe(client->driver, fresh);
    if (status == HF_OK)
        return hf__ok(error);
    *observer = NULL;
    hf__observer_drop(fresh);
    hf__client_release(client);
    return hf__plain(error, status);
}

void hf_observe_end(hf_observer **observer)
{
    if (observer == NULL || *observer == NULL)
        return;
    hf_client *client = hf__observer_client(*observer);
    hf__driver_unobserve(client->driver, *observer);
    *observer = NULL;
    hf__client_release(client);
}

/* ---- Inspect ---- */

static hf_status inspect(hf_client *client, hf__slice name, hf__answer *answer, hf_error *error)
{
    hf_status status = ask(client, HF__QUERY_INSPECT, name, nothing, 0, answer, error);
    if (status == HF_OK) {
        memcpy(answer->inspection->name, name.bytes, name.length);
        answer->inspection->name_length = name.length;
    }
    return status;
}

hf_status hf_inspect(hf_client *client, const char *name, size_t name_length,
                     hf_inspection *inspection, hf_error *error)
{
    HF__VISIT(client);
    hf__answer answer = {.inspection = inspection};
    hf_status status = hf__client_ready(client, error);
    if (status == HF_OK && inspection == NULL)
        status = hf__fail(error, HF_EINVAL, "inspection is NULL");
    if (status == HF_OK)
        status = hf__name_check(client, name, &name_length, error);
    if (status != HF_OK)
        return status;
    status = inspect(client, (hf__slice){name, name_length}, &answer, error);
    hf__buffer_free(&answer.value);
    return status;
}

/* ---- Examine ---- */

enum { TIME_ROUNDS = 5 };

/* The shortest of a few round trips says most about the other clock. */
static hf_status compare_clocks(hf_client *client, int server, hf_examination *examination,
                                hf_error *error)
{
    hf_status status = HF_OK;
    examination->round_trip_us = INT64_MAX;
    for (int i = 0; i < TIME_ROUNDS && status == HF_OK; i++) {
        hf__answer answer = {0};
        hf__instant start = hf__clock_now();
        hf__wall before = hf__clock_wall();
        status = ask_server(client, server, HF__QUERY_TIME, &answer, error);
        int64_t round_trip_us = hf__between(start, hf__clock_now()).ns / 1000;
        if (status != HF_OK || round_trip_us >= examination->round_trip_us)
            continue;
        examination->round_trip_us = round_trip_us;
        examination->clock_ahead_us = answer.wall.us - before.us - round_trip_us / 2;
    }
    return status;
}

int hf_server_count(const hf_client *client)
{
    return client != NULL ? client->server_count : 0;
}

hf_status hf_examine_server(hf_client *client, int server, hf_examination *examination,
                            hf_error *error)
{
    HF__VISIT(client);
    hf__answer answer = {.examination = examination};
    hf_status status = hf__client_ready(client, error);
    if (status == HF_OK && examination == NULL)
        status = hf__fail(error, HF_EINVAL, "examination is NULL");
    if (status == HF_OK && (server < 0 || server >= client->server_count))
        status = hf__fail(error, HF_EINVAL, "server is %d, but the last one has number %d", server,
                          client->server_count - 1);
    if (status != HF_OK)
        return status;
    *examination = (hf_examination){0};
    status = ask_server(client, server, HF__QUERY_INFO, &answer, error);
    return status == HF_OK ? compare_clocks(client, server, examination, error) : status;
}

hf_status hf_examine(hf_client *client, hf_examination *examination, hf_error *error)
{
    return hf_examine_server(client, 0, examination, error);
}

/* ---- List ---- */

/* A prefix stands for itself: what a pattern would take for a wildcard is escaped. */
static void append_escaped(hf__buffer *place, const char *prefix)
{
    for (const char *at = prefix; *at != '\0'; at++) {
        if (strchr("*?[]\\^", *at) != NULL)
            hf__buffer_append(place, "\\", 1);
        hf__buffer_append(place, at, 1);
    }
}

static bool make_pattern(hf__buffer *place, const hf_client *client, const char *pattern)
{
    size_t length = strlen(pattern), prefixes = strlen(client->side_prefix) + client->prefix_length;
    if (!hf__buffer_reserve(place, sizeof(FENCE_KEYS) + 2 * prefixes + length))
        return false;
    append_escaped(place, client->side_prefix);
    hf__buffer_append(place, FENCE_KEYS, sizeof(FENCE_KEYS) - 1);
    append_escaped(place, client->prefix);
    hf__buffer_append(place, pattern, length);
    return true;
}

/* The lock's name in its fence's key; false: it is not one of ours. */
static bool name_in(const hf_client *client, hf__slice key, hf__slice *name)
{
    size_t skipped = strlen(client->side_prefix); /* which may have a '}' in it */
    const char *end =
        key.length > skipped ? memchr(key.bytes + skipped, '}', key.length - skipped) : NULL;
    if (end == NULL)
        return false;
    size_t before = (size_t)(end + 1 - key.bytes) + client->prefix_length;
    if (before >= key.length || memcmp(end + 1, client->prefix, client->prefix_length) != 0)
        return false;
    *name = (hf__slice){key.bytes + before, key.length - before};
    return name->length <= HF_NAME_MAX - client->prefix_length;
}

/* Servers of a quorum are scanned one after the other, and a lock may be at all of them. It is seen
 * at the first that has it: at a later one, the answer to inspect says that one before has a fence
 * of it, and so its name was there. That takes an answer of each one before; one that fails to give
 * it is not waited for any more, and what it has may be seen twice. */
typedef struct listing {
    hf_client *client;
    hf__slice pattern; /* of names */
    hf__slice keys;    /* the pattern of their fences' keys */
    hf_list_function *see;
    void *arg;
    hf_inspection *inspection;
    unsigned scanned; /* bit n: all that server n has was looked at */
    hf_error failure; /* of an inspection */
    bool stopped;
} listing;

/* A majority of a quorum has answered. Then those that have not may decide who has this lock, but
 * they are no reason not to see the others. */
static bool is_quorum(const listing *list, unsigned answered)
{
    int count = 0;
    for (; answered != 0; answered >>= 1)
        count += (int)(answered & 1);
    return count >= hf__majority(list->client->server_count);
}

static void see_lock(listing *list, hf__slice name)
{
    hf__answer answer = {.inspection = list->inspection, .awaits = list->scanned};
    hf_status status = inspect(list->client, name, &answer, &list->failure);
    hf__buffer_free(&answer.value);
    bool enough = is_quorum(list, answer.answered);
    if (status == HF_ESERVER || enough)
        hf__ok(&list->failure); /* ESERVER: no lock any more, something else is stored there */
    if (enough)
        list->scanned &= answer.answered;
    if (status == HF_OK && list->inspection->held && (answer.knows & list->scanned) == 0)
        list->stopped = !list->see(list->arg, list->inspection);
}

static void see_page(listing *list, const hf__buffer *keys)
{
    const char *at = hf__buffer_front(keys);
    const char *end = at + hf__buffer_length(keys);
    while (list->failure.status == HF_OK && !list->stopped && at != end) {
        uint32_t length;
        hf__slice name;
        memcpy(&length, at, sizeof(length));
        hf__slice key = {at + sizeof(length), length};
        at = key.bytes + length;
        /* The server's match is not exact: its star in the braces also takes a '}' of the name. */
        if (name_in(list->client, key, &name) &&
            hf__glob_matches(list->pattern.bytes, list->pattern.length, name.bytes, name.length))
            see_lock(list, name);
    }
}

/* The prefix stands for the locks under it when permissions are asked about. */
static hf_status see_server(listing *list, int server, hf_error *error)
{
    hf__slice prefix = hf__client_prefix(list->client);
    hf__answer answer = {.number = 0};
    hf_status status;
    do {
        hf__query *query =
            hf__query_new(HF__QUERY_SCAN, prefix, nothing, list->keys, answer.number);
        if (query != NULL)
            hf__query_ask(query, server);
        status = hf__client_run(list->client, query, &answer, error);
        if (status == HF_OK && hf__buffer_length(&answer.keys) > 0)
            see_page(list, &answer.keys);
    } while (status == HF_OK && list->failure.status == HF_OK && !list->stopped &&
             answer.number != 0);
    hf__buffer_free(&answer.keys);
    return status;
}

/* What a majority holds is at one of any majority. */
static hf_status see_all(listing *list, hf_error *error)
{
    hf_error errors[HF_SERVERS_MAX];
    const hf_error *troubles[HF_SERVERS_MAX];
    int failed = 0, count = list->client->server_count;
    for (int i = 0; i < count && list->failure.status == HF_OK && !list->stopped; i++) {
        if (see_server(list, i, &errors[failed]) == HF_OK) {
            list->scanned |= 1U << i;
        } else {
            troubles[failed] = &errors[failed];
            failed++;
        }
    }
    if (list->failure.status != HF_OK)
        return hf__fail(error, list->failure.status, "%s", list->failure.text);
    if (list->stopped || count - failed >= hf__majority(count))
        return hf__ok(error);
    if (count == 1)
        return hf__fail(error, errors[0].status, "%s", errors[0].text);
    return hf__fail_each(error, troubles, failed, "%d of %d did not answer", failed, count);
}

hf_status hf_list(hf_client *client, const char *pattern, hf_list_function *see, void *arg,
                  hf_error *error)
{
    HF__VISIT(client);
    hf__buffer full = {0};
    hf_status status = hf__client_ready(client, error);
    if (status == HF_OK && see == NULL)
        status = hf__fail(error, HF_EINVAL, "see is NULL");
    if (status == HF_OK && pattern != NULL && strnlen(pattern, PATTERN_MAX + 1) > PATTERN_MAX)
        status = hf__fail(error, HF_EINVAL, "pattern has more than %d bytes", PATTERN_MAX);
    if (status != HF_OK)
        return status;
    pattern = pattern != NULL ? pattern : "*";
    listing list = {.client = client, .pattern = hf__slice_text(pattern), .see = see, .arg = arg};
    list.inspection = hf__alloc(sizeof(*list.inspection));
    if (list.inspection == NULL || !make_pattern(&full, client, pattern)) {
        status = hf__fail(error, HF_ENOMEM, "out of memory");
    } else {
        list.keys = (hf__slice){hf__buffer_front(&full), hf__buffer_length(&full)};
        status = see_all(&list, error);
    }
    hf__buffer_free(&full);
    hf__free(list.inspection);
    return status;
}

/* ---- Revoke and break ---- */

static hf_status not_held(hf_error *error)
{
    return hf__plain(error, HF_ENOTHELD);
}

/* For the hold that is there now and no other, so that a late copy of the order does nothing. The
 * core does the same at each server of a quorum. */
static hf_status order_seen(hf_client *client, hf__query_kind kind, hf__slice name, hf__slice words,
                            hf__answer *answer, hf_error *error)
{
    hf_status status = inspect(client, name, answer, error);
    if (status != HF_OK)
        return status;
    if (!answer->inspection->held)
        return not_held(error);
    if (kind == HF__QUERY_BREAK)
        words = (hf__slice){hf__buffer_front(&answer->value), hf__buffer_length(&answer->value)};
    return ask(client, kind, name, words, answer->inspection->fence, answer, error);
}

static hf_status order(hf_client *client, hf__query_kind kind, hf__slice name, hf__slice words,
                       uint64_t *result, hf_error *error)
{
    HF__VISIT(client);
    hf__answer answer = {0};
    hf_status status = hf__client_ready(client, error);
    if (status == HF_OK)
        status = hf__name_check(client, name.bytes, &name.length, error);
    if (status != HF_OK)
        return status;
    answer.inspection = hf__alloc(sizeof(*answer.inspection));
    if (answer.inspection == NULL)
        return hf__fail(error, HF_ENOMEM, "out of memory");
    if (client->server_count > 1)
        status = ask(client, kind, name, words, 0, &answer, error);
    else
        status = order_seen(client, kind, name, words, &answer, error);
    if (status == HF_OK && answer.number == 0)
        status = not_held(error);
    if (status == HF_OK && result != NULL)
        *result = answer.number;
    hf__buffer_free(&answer.value);
    hf__free(answer.inspection);
    return status;
}

hf_status hf_revoke(hf_client *client, const char *name, size_t name_length, const char *why,
                    hf_error *error)
{
    hf__slice words = hf__slice_text(why != NULL ? why : "");
    if (words.length > HF_REASON_MAX)
        return hf__fail(error, HF_EINVAL, "why has more than %d bytes", HF_REASON_MAX);
    return order(client, HF__QUERY_REVOKE, (hf__slice){name, name_length}, words, NULL, error);
}

hf_status hf_break(hf_client *client, const char *name, size_t name_length, uint64_t *fence,
                   hf_error *error)
{
    return order(client, HF__QUERY_BREAK, (hf__slice){name, name_length}, nothing, fence, error);
}
