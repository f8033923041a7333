/* SPDX-License-Identifier: MIT */
/* Generators of ids: opening and closing them, and what ids say. Inside, ids are plain: in the
 * order of time. What has a key is shuffled on its way out, and nowhere else.
 *
 * A child after fork() has a copy of all that its parent has reserved. So every call asks first
 * whether it is in one, and in a child nothing is handed out, no lock is touched (a thread that the
 * child does not have may hold it), and closing only frees memory. */
#include "api/ids.h"

#include <string.h>

#include "base/memory.h"
#include "core/fail.h"
#include "net/clock.h"

enum { SKEW_S = 2 };

static const int64_t epoch_max_s = INT64_C(253402300799); /* the end of the year 9999 */

/* ---- Options ---- */

static hf_status check_key(const hf_ids_options *options, hf_error *error)
{
    if (options->key == NULL && options->key_length == 0)
        return HF_OK;
    if (options->key == NULL)
        return hf__fail(error, HF_EINVAL, "key is NULL, but key_length is not 0");
    if (options->key_length < HF_IDS_KEY_MIN || options->key_length > HF_IDS_KEY_MAX)
        return hf__fail(error, HF_EINVAL, "key_length must be %d to %d", HF_IDS_KEY_MIN,
                        HF_IDS_KEY_MAX);
    return HF_OK;
}

static hf_status read_options(const hf_ids_options *given, hf_ids_options *options, hf_error *error)
{
    if (hf__struct_read(given, options, sizeof(*options), error) != HF_OK)
        return HF_EINVAL;
    if (options->ordered && options->by_thread)
        return hf__fail(error, HF_EINVAL, "ordered and by_thread exclude each other");
    if (options->epoch_s == 0)
        options->epoch_s = HF_IDS_EPOCH;
    if (options->max_skew_s == 0)
        options->max_skew_s = SKEW_S;
    if (options->epoch_s < 0 || options->epoch_s > epoch_max_s)
        return hf__fail(error, HF_EINVAL, "epoch_s must be 1 to %lld, or 0 for the default",
                        (long long)epoch_max_s);
    if (options->max_skew_s < 0 || options->max_skew_s > HF_IDS_SKEW_MAX)
        return hf__fail(error, HF_EINVAL, "max_skew_s must be 1 to %d, or 0 for the default",
                        HF_IDS_SKEW_MAX);
    return check_key(options, error);
}

static hf_status check_name(const hf_client *client, const char *name, size_t *length,
                            hf_error *error)
{
    hf_status status = hf__name_check(client, name, length, error);
    if (status == HF_OK && client->prefix_length + *length > HF_IDS_NAME_MAX)
        return hf__fail(error, HF_EINVAL, "prefix and name of ids have more than %d bytes",
                        HF_IDS_NAME_MAX);
    return status;
}

/* ---- Opening and closing ---- */

static uint64_t fresh_serial(void)
{
    static atomic_uint_fast64_t last;
    return atomic_fetch_add(&last, 1) + 1;
}

static void free_ids(hf_ids *ids)
{
    hf__wipe(&ids->shuffle, sizeof(ids->shuffle));
    hf__free(ids->name);
    hf__free(ids);
}

static bool fill(hf_ids *ids, hf_client *client, const char *name, const hf_ids_options *options)
{
    ids->name = hf__alloc(options->name_length);
    if (ids->name == NULL)
        return false;
    memcpy(ids->name, name, options->name_length);
    ids->client = client;
    ids->driver = client->driver;
    ids->serial = fresh_serial();
    ids->ordered = options->ordered;
    ids->by_thread = options->by_thread;
    ids->keyed = options->key != NULL;
    if (ids->keyed)
        hf__shuffle_init(&ids->shuffle, options->key, options->key_length);
    ids->config = (hf__ids_config){.prefix = hf__client_prefix(client),
                                   .name = {ids->name, options->name_length},
                                   .epoch_s = options->epoch_s,
                                   .skew_s = options->max_skew_s};
    return ids->ordered ? hf__ids_order_init(&ids->as.order) : hf__ids_lease_init(&ids->as.lease);
}

/* Whether its driver still works, which is asked for something that costs nothing. */
static hf_status check_open(hf_client *client, hf_error *error)
{
    hf_stats unused;
    hf_status status = hf__driver_stats(client->driver, &unused);
    return status == HF_OK ? status : hf__plain(error, status);
}

hf_status hf_ids_open(hf_client *client, const char *name, const hf_ids_options *options,
                      hf_ids **ids, hf_error *error)
{
    HF__VISIT(client);
    hf_ids_options checked;
    if (ids == NULL)
        return hf__fail(error, HF_EINVAL, "ids is NULL");
    *ids = NULL;
    if (client == NULL)
        return hf__fail(error, HF_EINVAL, "client is NULL");
    hf_status status = read_options(options, &checked, error);
    if (status == HF_OK)
        status = check_name(client, name, &checked.name_length, error);
    if (status == HF_OK)
        status = check_open(client, error);
    if (status != HF_OK)
        return status;
    hf_ids *fresh = hf__alloc(sizeof(*fresh));
    if (fresh == NULL || !fill(fresh, client, name, &checked)) {
        if (fresh != NULL)
            free_ids(fresh);
        return hf__fail(error, HF_ENOMEM, "out of memory");
    }
    atomic_fetch_add(&client->references, 1);
    *ids = fresh;
    return hf__ok(error);
}

void hf_ids_close(hf_ids *ids)
{
    if (ids == NULL)
        return;
    if (!hf__driver_forked(ids->driver)) {
        if (ids->ordered)
            hf__ids_order_end(&ids->as.order);
        else
            hf__ids_lease_end(ids);
    }
    hf__client_release(ids->client);
    if (!hf__driver_is_torn(ids->driver))
        free_ids(ids);
}

/* ---- Taking ---- */

hf__instant hf__ids_deadline(const hf_ids *ids)
{
    return hf__after(hf__clock_now(), hf__span_ms(ids->client->call_timeout_ms));
}

static inline int64_t publish(const hf_ids *ids, int64_t plain)
{
    return ids->keyed ? hf__shuffle_do(&ids->shuffle, plain) : plain;
}

/* As hf__ok() does, but for the zeros behind the end of an empty text: they cost more than an id.
 */
static inline hf_status done(hf_error *error)
{
    if (error != NULL) {
        error->status = HF_OK;
        error->text[0] = '\0';
    }
    return HF_OK;
}

hf_status hf_ids_next(hf_ids *ids, int64_t *id, hf_error *error)
{
    int64_t plain;
    if (ids == NULL || id == NULL)
        return hf__fail(error, HF_EINVAL, "%s is NULL", ids == NULL ? "ids" : "id");
    if (hf__driver_forked(ids->driver))
        return hf__plain(error, HF_EFORKED);
    hf_status status = ids->ordered ? hf__ids_order_take(ids, 1, &plain, error)
                                    : hf__ids_lease_next(ids, &plain, error);
    if (status != HF_OK)
        return status;
    *id = publish(ids, plain);
    return done(error);
}

static void put(const hf_ids *ids, int64_t *place, const hf__ids_block *block)
{
    for (int64_t i = 0; i < block->count; i++)
        place[i] = publish(ids, block->first + i);
}

static hf_status take_leased(hf_ids *ids, int64_t *place, int64_t count, hf_error *error)
{
    hf__instant ends = hf__ids_deadline(ids);
    hf__ids_block part;
    hf_status status = HF_OK;
    for (int64_t got = 0; got < count && status == HF_OK; got += part.count) {
        status = hf__ids_lease_some(ids, count - got, ends, &part, error);
        if (status == HF_OK)
            put(ids, place + got, &part);
    }
    return status;
}

static hf_status take_ordered(hf_ids *ids, int64_t *place, int64_t count, hf_error *error)
{
    hf__ids_block block = {.count = count};
    hf_status status = hf__ids_order_take(ids, count, &block.first, error);
    if (status == HF_OK)
        put(ids, place, &block);
    return status;
}

hf_status hf_ids_next_batch(hf_ids *ids, int64_t *place, size_t count, hf_error *error)
{
    if (ids == NULL || place == NULL)
        return hf__fail(error, HF_EINVAL, "%s is NULL", ids == NULL ? "ids" : "place");
    if (count == 0 || count > HF_IDS_BATCH_MAX)
        return hf__fail(error, HF_EINVAL, "count must be 1 to %d", HF_IDS_BATCH_MAX);
    if (hf__driver_forked(ids->driver))
        return hf__plain(error, HF_EFORKED);
    hf_status status = ids->ordered ? take_ordered(ids, place, (int64_t)count, error)
                                    : take_leased(ids, place, (int64_t)count, error);
    return status == HF_OK ? done(error) : status;
}

/* ---- What they say ---- */

hf_status hf_ids_parse(const hf_ids *ids, int64_t id, hf_id_parts *parts, hf_error *error)
{
    if (ids == NULL || parts == NULL)
        return hf__fail(error, HF_EINVAL, "%s is NULL", ids == NULL ? "ids" : "parts");
    if (id <= 0)
        return hf__fail(error, HF_EINVAL, "ids are positive, unlike %lld", (long long)id);
    int64_t plain = ids->keyed ? hf__shuffle_undo(&ids->shuffle, id) : id;
    *parts = (hf_id_parts){.unix_s = ids->config.epoch_s + hf__ids_part(plain),
                           .sequence = hf__ids_sequence(plain),
                           .plain = plain};
    return hf__ok(error);
}

int64_t hf_ids_life_s(const hf_ids *ids)
{
    static const int64_t all_s = INT64_C(1) << HF__IDS_PART_BITS;
    if (ids == NULL)
        return 0;
    int64_t now_s = hf__clock_wall().us / 1000000 - ids->config.epoch_s;
    int64_t seen_s = hf__ids_part(atomic_load(&ids->seen));
    int64_t left_s = all_s - (now_s > seen_s ? now_s : seen_s);
    return left_s > 0 ? left_s : 0;
}
