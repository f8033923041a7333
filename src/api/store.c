/* SPDX-License-Identifier: MIT */
/* Guarded writes and values: check the arguments, run the errand, say what came of it.
 *
 * A write that also releases is two messages in one go: the release has the write ahead of it
 * (hf__call.ahead), the core sends both in one step over the connection of the lock, and the server
 * serves them in that order. Nobody can get the lock between them, and when the write is refused
 * the lock is given back all the same; one script for both would have had to do the release's work
 * with the queue a second time, and could not have released where a write fails. The call that
 * waits is an ordinary release, so it waits as those do: with threads, in an own loop, and when the
 * client is closed or forked meanwhile. Both are sent again after a lost connection, in the same
 * order. The lock is not passed on to another thread of this client then: that one would have it
 * while the write is still on its way. */
#include <string.h>

#include "api/client.h"
#include "core/fail.h"
#include "core/store.h"

/* What is kept under a name of its own, so that it may be any. */
static hf_status check_name(const hf_client *client, hf__slice *name, const char *what,
                            hf_error *error)
{
    if (name->bytes == NULL)
        return hf__fail(error, HF_EINVAL, "%s is NULL", what);
    if (name->length == 0)
        name->length = strnlen(name->bytes, HF_VALUE_NAME_MAX + 1);
    if (name->length == 0)
        return hf__fail(error, HF_EINVAL, "%s is empty", what);
    if (name->length > HF_VALUE_NAME_MAX ||
        client->prefix_length + name->length > HF_VALUE_NAME_MAX)
        return hf__fail(error, HF_EINVAL, "prefix and %s have more than %d bytes", what,
                        HF_VALUE_NAME_MAX);
    return HF_OK;
}

static hf_status check_store(const hf_client *client, hf__slice *name, const char *what,
                             hf_error *error)
{
    hf_status status = hf__client_ready(client, error);
    if (status == HF_OK)
        status = hf__client_check_single(client, error);
    return status == HF_OK ? check_name(client, name, what, error) : status;
}

/* ---- While a lock is held ---- */

/* Makes the order, or says why there is none: HF_EINVAL, HF_EFORKED, HF_EDEADLK, HF_ELOST,
 * HF_ENOMEM. */
static hf_status order_held(hf_hold *hold, const hf__store_writes *writes, hf__query **query,
                            hf_error *error)
{
    char word[HF__CALL_WORD_MAX];
    if (hold == NULL)
        return hf__fail(error, HF_EINVAL, "hold is NULL");
    hf_client *client = hf__hold_client(hold);
    hf__store_held held = {hf__hold_key_text(hold), hf__hold_value_text(hold),
                           hf__hold_owner_text(hold)};
    hf_status status = hf__client_check_single(client, error);
    if (status == HF_OK)
        status = hf__store_check(writes, hf__slice_text(client->side_prefix), held.key, error);
    if (status == HF_OK)
        status = hf__client_check(client, error);
    if (status != HF_OK)
        return status;
    if (!hf_is_valid(hold))
        return hf__fail(error, HF_ELOST, "the hold has ended; nothing was written");
    *query = hf__store_write_held(&held, hf__client_name_call(client, word), writes);
    return *query != NULL ? HF_OK : hf__fail(error, HF_ENOMEM, "out of memory");
}

hf_status hf_write_held(hf_hold *hold, const hf_write *writes, size_t count, hf_error *error)
{
    hf__answer answer = {0};
    hf__query *query = NULL;
    hf_status status = order_held(hold, &(hf__store_writes){writes, count}, &query, error);
    if (status == HF_OK)
        status = hf__client_run_for(hf__hold_client(hold), hold, query, &answer, error);
    hf__buffer_free(&answer.value);
    return status == HF_OK ? hf__store_held_outcome(&answer.numbers, error) : status;
}

static hf_status run_with_release(hf_hold *hold, hf__query *query, hf_error *error)
{
    hf__answer answer = {0};
    hf__call write = {.kind = HF__CALL_QUERY, .query = query, .answer = &answer};
    hf__call release = {.kind = HF__CALL_RELEASE, .hold = hold, .ahead = &write};
    hf_client *client = hf__hold_client(hold);
    hf_status status = hf__driver_call(client->driver, &release);
    if (!release.taken)
        hf__query_drop(query); /* never started */
    if (release.done)
        status = write.error.status;
    hf__client_release(client);
    hf__buffer_free(&answer.value);
    if (status == HF_OK)
        return hf__store_held_outcome(&answer.numbers, error);
    return hf__call_outcome(error, status, &write);
}

hf_status hf_write_held_and_release(hf_hold **hold, const hf_write *writes, size_t count,
                                    hf_error *error)
{
    hf__query *query = NULL;
    hf_hold *given = hold != NULL ? *hold : NULL;
    hf_status status = order_held(given, &(hf__store_writes){writes, count}, &query, error);
    if (status == HF_EINVAL || status == HF_EDEADLK)
        return status;
    if (status != HF_OK) {
        hf_release(hold, NULL);
        return status;
    }
    *hold = NULL;
    return run_with_release(given, query, error);
}

/* ---- With a fence ---- */

hf_status hf_write_fenced(hf_client *store, const char *guard, size_t guard_length, uint64_t fence,
                          const hf_write *writes, size_t count, uint64_t *newest, hf_error *error)
{
    HF__VISIT(store);
    char word[HF__CALL_WORD_MAX];
    hf__answer answer = {0};
    hf__store_writes all = {writes, count};
    hf__slice name = {guard, guard_length};
    if (newest != NULL)
        *newest = 0;
    hf_status status = check_store(store, &name, "guard", error);
    if (status == HF_OK && (fence == 0 || fence > HF__STORE_NUMBER_MAX))
        status = hf__fail(error, HF_EINVAL, "%llu is not a fence", (unsigned long long)fence);
    if (status == HF_OK)
        status =
            hf__store_check(&all, hf__slice_text(store->side_prefix), (hf__slice){NULL, 0}, error);
    if (status != HF_OK)
        return status;
    hf__query *query = hf__store_write_fenced(hf__client_prefix(store), name,
                                              hf__client_name_call(store, word), fence, &all);
    status = hf__client_run(store, query, &answer, error);
    hf__buffer_free(&answer.value);
    return status == HF_OK ? hf__store_fenced_outcome(&answer.numbers, newest, error) : status;
}

/* ---- Values ---- */

static void copy_out(const hf__buffer *value, void *place, size_t capacity, size_t *length)
{
    *length = hf__buffer_length(value);
    size_t count = *length < capacity ? *length : capacity;
    if (count > 0)
        memcpy(place, hf__buffer_front(value), count);
}

hf_status hf_value_read(hf_client *client, const char *name, size_t name_length, void *place,
                        size_t capacity, size_t *length, uint64_t *version, hf_error *error)
{
    HF__VISIT(client);
    hf__answer answer = {0};
    hf__slice named = {name, name_length};
    hf_status status = check_store(client, &named, "name", error);
    if (status == HF_OK && (length == NULL || version == NULL || (place == NULL && capacity > 0)))
        status = hf__fail(error, HF_EINVAL, "%s is NULL",
                          length == NULL    ? "length"
                          : version == NULL ? "version"
                                            : "place");
    if (status != HF_OK)
        return status;
    *length = 0;
    *version = 0;
    status =
        hf__client_run(client, hf__store_read(hf__client_prefix(client), named), &answer, error);
    if (status == HF_OK)
        status = hf__store_read_outcome(&answer.numbers, version, error);
    if (status == HF_OK)
        copy_out(&answer.value, place, capacity, length);
    hf__buffer_free(&answer.value);
    return status;
}

hf_status hf_value_write(hf_client *client, const char *name, size_t name_length, const void *bytes,
                         size_t length, uint64_t expected, uint64_t *version, hf_error *error)
{
    HF__VISIT(client);
    char word[HF__CALL_WORD_MAX];
    hf__answer answer = {0};
    hf__slice named = {name, name_length};
    if (version != NULL)
        *version = 0;
    hf_status status = check_store(client, &named, "name", error);
    if (status == HF_OK && length > (bytes != NULL ? HF_VALUE_MAX : 0))
        status =
            hf__fail(error, HF_EINVAL, "%s",
                     bytes != NULL ? "the value is too large" : "bytes is NULL, but has a length");
    if (status == HF_OK && expected > HF__STORE_NUMBER_MAX)
        status = hf__fail(error, HF_EINVAL, "expected is not a version");
    if (status != HF_OK)
        return status;
    hf__query *query =
        hf__store_write(hf__client_prefix(client), named, hf__client_name_call(client, word),
                        expected, (hf__slice){bytes, length});
    status = hf__client_run(client, query, &answer, error);
    hf__buffer_free(&answer.value);
    return status == HF_OK ? hf__store_write_outcome(&answer.numbers, version, error) : status;
}
