/* SPDX-License-Identifier: MIT */
/* Checking what the caller hands in, before anything is done with it. Option structs may grow at
 * their end: see base/sized.h. */
#include <string.h>

#include "api/client.h"
#include "base/sized.h"
#include "core/fail.h"
#include "core/holder.h"

enum {
    CONNECT_TIMEOUT_MS = 1000,
    REPLY_TIMEOUT_MS = 1000,
    CALL_TIMEOUT_MS = 3000,
    MAX_LEASE_MS = 60000,
    LEASE_MS = 10000,
    LOCAL_TURNS = 64,
    RETRY_INTERVAL_MIN_MS = 10,
    RENEW_INTERVAL_MIN_MS = 10,
    RENEWALS_IN_A_LEASE = 3,
    DRIFT_PPM = 10000,
    DRIFT_PPM_MAX = 500000,
    DRIFT_MS = 2,
    PPM = 1000000,
    VALID_MIN_MS = 2 * RENEW_INTERVAL_MIN_MS, /* so that a renewal comes in time */
    REPLICAS_MAX = 1000                       /* nobody has as many */
};

hf_status hf__struct_read(const void *given, void *options, size_t size, hf_error *error)
{
    const size_t *given_size = given; /* what such a struct begins with */
    memset(options, 0, size);
    if (given == NULL)
        return HF_OK;
    if (!hf__sized_is_plausible(*given_size))
        return hf__fail(error, HF_EINVAL, "options: set size, or use a macro like HF_CLIENT()");
    if (!hf__sized_copy(given, *given_size, options, size))
        return hf__fail(error, HF_EINVAL, "options: made for a newer version of the library");
    return HF_OK;
}

/* Zero becomes the default; anything else must be within the limits. */
static hf_status read_ms(int64_t *value, const char *name, int64_t otherwise, hf_error *error)
{
    if (*value == 0)
        *value = otherwise;
    if (*value >= 1 && *value <= HF_MS_MAX)
        return HF_OK;
    return hf__fail(error, HF_EINVAL, "%s must be 1 to %lld, or 0 for the default", name,
                    (long long)HF_MS_MAX);
}

static hf_status check_side_prefix(const char *prefix, hf_error *error)
{
    if (strnlen(prefix, HF_SIDE_PREFIX_MAX + 1) > HF_SIDE_PREFIX_MAX)
        return hf__fail(error, HF_EINVAL, "side_prefix has more than %d bytes", HF_SIDE_PREFIX_MAX);
    if (strchr(prefix, '{') != NULL)
        return hf__fail(error, HF_EINVAL, "side_prefix must not contain '{'");
    return HF_OK;
}

static hf_status read_check(hf_check *check, const char *name, hf_check otherwise, hf_error *error)
{
    if (*check == HF_CHECK_DEFAULT)
        *check = otherwise;
    if (*check >= HF_CHECK_IGNORE && *check <= HF_CHECK_REFUSE)
        return HF_OK;
    return hf__fail(error, HF_EINVAL, "%s must be one of HF_CHECK_...", name);
}

static hf_status read_checks(hf_client_options *options, hf_error *error)
{
    struct {
        hf_check *check;
        const char *name;
        hf_check otherwise;
    } all[] = {{&options->check_eviction, "check_eviction", HF_CHECK_WARN},
               {&options->check_replica, "check_replica", HF_CHECK_REFUSE},
               {&options->check_version, "check_version", HF_CHECK_REFUSE},
               {&options->check_persistence, "check_persistence", HF_CHECK_WARN},
               {&options->check_clock, "check_clock", HF_CHECK_WARN}};
    hf_status status = HF_OK;
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]) && status == HF_OK; i++)
        status = read_check(all[i].check, all[i].name, all[i].otherwise, error);
    return status;
}

/* Before 0.4 it ended before `describe`. */
static hf_status check_transport(const hf_transport *transport, hf_error *error)
{
    if (transport == NULL)
        return HF_OK;
    if ((transport->size != sizeof(*transport) &&
         transport->size != offsetof(hf_transport, describe)) ||
        transport->open == NULL || transport->connected == NULL || transport->descriptor == NULL ||
        transport->read == NULL || transport->write == NULL || transport->close == NULL)
        return hf__fail(error, HF_EINVAL, "transport: size is wrong or a function is missing");
    return HF_OK;
}

/* What the allowance for clocks leaves of a lease: for so long a grant is valid. */
static int64_t valid_ms(int64_t lease_ms, int64_t drift_ppm, int64_t drift_ms)
{
    return lease_ms - lease_ms * drift_ppm / PPM - drift_ms;
}

/* A grant that is over before it arrives looks like a server that does not answer. */
static hf_status check_drift(const char *lease, int64_t lease_ms, int64_t drift_ppm,
                             int64_t drift_ms, hf_error *error)
{
    int64_t left_ms = valid_ms(lease_ms, drift_ppm, drift_ms);
    if (left_ms >= VALID_MIN_MS)
        return HF_OK;
    return hf__fail(error, HF_EINVAL,
                    "drift_ms (%lld) and drift_ppm (%lld) leave %lld ms of %s (%lld); "
                    "at least %d must be left",
                    (long long)drift_ms, (long long)drift_ppm,
                    (long long)(left_ms > 0 ? left_ms : 0), lease, (long long)lease_ms,
                    VALID_MIN_MS);
}

hf_status hf__client_options_read(const hf_client_options *given, hf_client_options *options,
                                  hf_error *error)
{
    if (hf__struct_read(given, options, sizeof(*options), error) != HF_OK)
        return HF_EINVAL;
    if (options->links < 0 || options->links > HF_LINKS_MAX)
        return hf__fail(error, HF_EINVAL, "links must be 1 to %d", HF_LINKS_MAX);
    if (options->local_turns == 0)
        options->local_turns = LOCAL_TURNS;
    if (options->local_turns < -1 || options->local_turns > HF_LOCAL_TURNS_MAX)
        return hf__fail(error, HF_EINVAL, "local_turns must be -1 (never) to %d",
                        HF_LOCAL_TURNS_MAX);
    if (options->prefix == NULL)
        options->prefix = "";
    if (strnlen(options->prefix, HF_NAME_MAX) >= HF_NAME_MAX)
        return hf__fail(error, HF_EINVAL, "prefix must be shorter than %d bytes", HF_NAME_MAX);
    if (options->side_prefix == NULL)
        options->side_prefix = "";
    hf_status status = check_side_prefix(options->side_prefix, error);
    if (status == HF_OK)
        status = check_transport(options->transport, error);
    if (status == HF_OK)
        status = read_checks(options, error);
    if (status == HF_OK)
        status =
            read_ms(&options->connect_timeout_ms, "connect_timeout_ms", CONNECT_TIMEOUT_MS, error);
    if (status == HF_OK)
        status = read_ms(&options->reply_timeout_ms, "reply_timeout_ms", REPLY_TIMEOUT_MS, error);
    if (status == HF_OK)
        status = read_ms(&options->call_timeout_ms, "call_timeout_ms", CALL_TIMEOUT_MS, error);
    if (status == HF_OK)
        status = read_ms(&options->max_lease_ms, "max_lease_ms", MAX_LEASE_MS, error);
    if (status == HF_OK)
        status = read_ms(&options->drift_ms, "drift_ms", DRIFT_MS, error);
    if (options->drift_ppm == 0)
        options->drift_ppm = DRIFT_PPM;
    if (status == HF_OK && (options->drift_ppm < 1 || options->drift_ppm > DRIFT_PPM_MAX))
        status = hf__fail(error, HF_EINVAL, "drift_ppm must be 1 to %d", DRIFT_PPM_MAX);
    if (status == HF_OK && options->max_lease_ms < HF_LEASE_MIN_MS)
        status = hf__fail(error, HF_EINVAL, "max_lease_ms must be at least %d", HF_LEASE_MIN_MS);
    if (status == HF_OK) /* otherwise no lease at all would do */
        status = check_drift("max_lease_ms", options->max_lease_ms, options->drift_ppm,
                             options->drift_ms, error);
    return status;
}

hf_status hf__lease_check(const hf_client *client, int64_t lease_ms, hf_error *error)
{
    if (lease_ms < HF_LEASE_MIN_MS || lease_ms > client->max_lease_ms)
        return hf__fail(error, HF_EINVAL,
                        "lease_ms must be %d to %lld (max_lease_ms of the client)", HF_LEASE_MIN_MS,
                        (long long)client->max_lease_ms);
    return check_drift("lease_ms", lease_ms, client->drift_ppm, client->drift_ms, error);
}

static hf_status read_waiting(hf_acquire_options *options, hf_error *error)
{
    if (options->wait_ms < -1 || options->wait_ms > HF_MS_MAX)
        return hf__fail(error, HF_EINVAL, "wait_ms must be -1 (no limit) or 0 to %lld",
                        (long long)HF_MS_MAX);
    if (options->max_retries < 0)
        return hf__fail(error, HF_EINVAL, "max_retries must not be negative");
    if (options->retry_interval_ms == 0)
        return HF_OK; /* whether it was given decides more than the interval */
    hf_status status = read_ms(&options->retry_interval_ms, "retry_interval_ms", 0, error);
    if (options->retry_interval_ms < RETRY_INTERVAL_MIN_MS)
        options->retry_interval_ms = RETRY_INTERVAL_MIN_MS;
    return status;
}

/* With several servers a majority of them is what makes a grant good. */
static hf_status check_replicas(const hf_client *client, int replicas, hf_error *error)
{
    if (replicas < 0 || replicas > REPLICAS_MAX)
        return hf__fail(error, HF_EINVAL, "replicas must be 0 to %d", REPLICAS_MAX);
    if (replicas > 0 && client->server_count > 1)
        return hf__fail(error, HF_EINVAL, "replicas is for one server");
    return HF_OK;
}

/* After the lease has been checked. */
static hf_status read_renewal(const hf_client *client, hf_acquire_options *options, hf_error *error)
{
    int64_t lease_ms = options->lease_ms;
    int64_t half_ms = valid_ms(lease_ms, client->drift_ppm, client->drift_ms) / 2;
    if (options->no_renewal && options->renew_interval_ms != 0)
        return hf__fail(error, HF_EINVAL, "renew_interval_ms and no_renewal exclude each other");
    if (options->renew_interval_ms == 0)
        options->renew_interval_ms =
            lease_ms / RENEWALS_IN_A_LEASE < half_ms ? lease_ms / RENEWALS_IN_A_LEASE : half_ms;
    if (options->renew_interval_ms < RENEW_INTERVAL_MIN_MS ||
        options->renew_interval_ms >= lease_ms)
        return hf__fail(error, HF_EINVAL,
                        "renew_interval_ms must be at least %d and less than the "
                        "lease (%lld)",
                        RENEW_INTERVAL_MIN_MS, (long long)lease_ms);
    int64_t half_of_rest_ms = (lease_ms - options->renew_interval_ms + 1) / 2;
    int64_t timeout_ms =
        client->reply_timeout_ms < half_of_rest_ms ? client->reply_timeout_ms : half_of_rest_ms;
    hf_status status = read_ms(&options->renew_timeout_ms, "renew_timeout_ms", timeout_ms, error);
    if (status != HF_OK)
        return status;
    if (options->max_hold_ms < 0 || options->max_hold_ms > HF_MS_MAX)
        return hf__fail(error, HF_EINVAL, "max_hold_ms must be 1 to %lld, or 0 for no limit",
                        (long long)HF_MS_MAX);
    if (options->warn_ms < 0 || options->warn_ms >= lease_ms)
        return hf__fail(error, HF_EINVAL, "warn_ms must be less than the lease (%lld)",
                        (long long)lease_ms);
    return HF_OK;
}

static hf_status check_words(const hf_acquire_options *options, hf_error *error)
{
    size_t owner = options->owner != NULL ? strnlen(options->owner, HF_OWNER_MAX + 1) : 1;
    size_t label = options->label != NULL ? strnlen(options->label, HF_LABEL_MAX + 1) : 0;
    if (owner == 0)
        return hf__fail(error, HF_EINVAL, "owner is empty; leave it NULL for the calling thread");
    if (options->owner != NULL && hf__holder_is_value((hf__slice){options->owner, owner}))
        return hf__fail(error, HF_EINVAL, "owner looks like a value of the library's own");
    if (options->owner != NULL &&
        hf__slice_begins((hf__slice){options->owner, owner}, HF__SLICE("hf:")))
        return hf__fail(error, HF_EINVAL,
                        "owner begins with \"hf:\"; such owners belong to the library");
    if (owner > HF_OWNER_MAX)
        return hf__fail(error, HF_EINVAL, "owner has more than %d bytes", HF_OWNER_MAX);
    if (label > HF_LABEL_MAX)
        return hf__fail(error, HF_EINVAL, "label has more than %d bytes", HF_LABEL_MAX);
    for (size_t i = 0; i < label; i++)
        if (options->label[i] < ' ' || options->label[i] > '~')
            return hf__fail(error, HF_EINVAL, "label: byte %zu is not a printable character", i);
    return HF_OK;
}

hf_status hf__acquire_options_copy(const hf_acquire_options *given, hf_acquire_options *options,
                                   hf_error *error)
{
    hf_status status = hf__struct_read(given, options, sizeof(*options), error);
    options->size = sizeof(*options);
    return status;
}

hf_status hf__acquire_options_read(const hf_client *client, const hf_acquire_options *given,
                                   hf_acquire_options *options, hf_error *error)
{
    if (hf__struct_read(given, options, sizeof(*options), error) != HF_OK)
        return HF_EINVAL;
    if (options->lease_ms == 0)
        options->lease_ms = LEASE_MS < client->max_lease_ms ? LEASE_MS : client->max_lease_ms;
    hf_status status = hf__lease_check(client, options->lease_ms, error);
    if (status == HF_OK)
        status = read_waiting(options, error);
    if (status == HF_OK)
        status = read_renewal(client, options, error);
    if (status == HF_OK)
        status = check_replicas(client, options->replicas, error);
    return status == HF_OK ? check_words(options, error) : status;
}

/* Whether the key, which is prefix and name, begins like this, wherever the border is. */
static bool key_begins(const hf_client *client, hf__slice name, hf__slice start)
{
    size_t from_prefix =
        client->prefix_length < start.length ? client->prefix_length : start.length;
    size_t rest = start.length - from_prefix;
    return name.length >= rest && memcmp(client->prefix, start.bytes, from_prefix) == 0 &&
           memcmp(name.bytes, start.bytes + from_prefix, rest) == 0;
}

/* The key must not look like one of our side keys, with our side prefix or without one; and behind
 * the prefix such names are those of locks of our own. */
static bool is_reserved(const hf_client *client, hf__slice name)
{
    char start[HF_SIDE_PREFIX_MAX + 3];
    char *end = hf__slice_put(start, hf__slice_text(client->side_prefix));
    end = hf__slice_put(end, HF__SLICE("hf:"));
    return hf__slice_begins(name, HF__SLICE("hf:")) || key_begins(client, name, HF__SLICE("hf:")) ||
           key_begins(client, name, (hf__slice){start, (size_t)(end - start)});
}

hf_status hf__name_check(const hf_client *client, const char *name, size_t *length, hf_error *error)
{
    if (name == NULL)
        return hf__fail(error, HF_EINVAL, "name is NULL");
    if (*length == 0)
        *length = strnlen(name, HF_NAME_MAX + 1);
    if (*length == 0)
        return hf__fail(error, HF_EINVAL, "the name is empty");
    if (*length > HF_NAME_MAX || client->prefix_length + *length > HF_NAME_MAX)
        return hf__fail(error, HF_EINVAL, "prefix and name have more than %d bytes", HF_NAME_MAX);
    if (is_reserved(client, (hf__slice){name, *length}))
        return hf__fail(error, HF_EINVAL,
                        "what begins with \"hf:\", behind prefix or side_prefix or not, belongs to "
                        "the library");
    return HF_OK;
}
