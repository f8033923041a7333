/* SPDX-License-Identifier: MIT */
/* Opening and closing. A client outlives hf_close() as an empty shell for as long as the
 * application still has holds of it, so that teardown works in any order. */
#include "api/client.h"

#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "core/fail.h"
#include "net/socket.h"

enum { FENCE_KEEP_MS = 3600 * 1000 };

static void free_client(hf_client *client)
{
    if (client->driver != NULL)
        hf__driver_free(client->driver);
    hf__tls_free(client->tls);
    hf__url_free(&client->server);
    hf__free(client->password_file);
    hf__free(client->side_prefix);
    hf__free(client->prefix);
    hf__free(client);
}

void hf__client_release(hf_client *client)
{
    if (atomic_fetch_sub(&client->references, 1) == 1)
        free_client(client);
}

hf_status hf__plain(hf_error *error, hf_status status)
{
    if (status == HF_OK)
        return hf__ok(error);
    return hf__fail(error, status, "%s", hf_status_text(status));
}

hf_status hf__client_check(const hf_client *client, hf_error *error)
{
    if (hf__driver_forked(client->driver))
        return hf__plain(error, HF_EFORKED);
    if (hf__driver_in_callback())
        return hf__plain(error, HF_EDEADLK);
    return HF_OK;
}

/* The host stands between ':', '@' and '/' in values. */
static void make_host(char *place, size_t capacity)
{
    char host[65] = "?";
    gethostname(host, sizeof(host) - 1);
    hf__printable(place, capacity, host, strlen(host));
    for (char *at = place; (at = strpbrk(at, ":@/")) != NULL;)
        *at = '?';
}

/* Who we are, for values that nobody else has. */
static hf_status identify(hf_client *client, uint64_t *seed, hf_error *error)
{
    unsigned char bytes[16 + sizeof(*seed)];
    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
        return hf__fail(error, HF_EINTERNAL, "the system gives no random numbers");
    for (size_t i = 0; i < 16; i++)
        hf__format(client->client_id + 2 * i, 3, "%02x", bytes[i]);
    memcpy(seed, bytes + 16, sizeof(*seed));
    make_host(client->host, sizeof(client->host));
    client->pid = (uint64_t)getpid();
    client->next_number = 1;
    return HF_OK;
}

/* What comes from elsewhere than the URL. */
static hf_status find_password(hf_client *client, const hf_client_options *options, hf_error *error)
{
    const char *found =
        options->password_env != NULL ? hf__secret_environment(options->password_env) : NULL;
    int sources = (client->server.password != NULL) + (options->password_env != NULL) +
                  (options->password_file != NULL) + (options->credentials != NULL);
    if (sources > 1)
        return hf__fail(error, HF_EINVAL,
                        "give the password once: in the URL, or by one of password_env, "
                        "password_file and credentials");
    if (sources == 0 && client->server.user != NULL)
        return hf__fail(error, HF_EINVAL, "the URL has a user, but there is no password");
    if (options->password_env != NULL && (found == NULL || found[0] == '\0'))
        return hf__fail(error, HF_EINVAL, "password_env: that variable is not set, or empty");
    if (found != NULL && strlen(found) > HF_PASSWORD_MAX)
        return hf__fail(error, HF_EINVAL, "the password has more than %d bytes", HF_PASSWORD_MAX);
    if (found != NULL)
        client->server.password = hf__copy_text(found);
    if (options->password_file != NULL)
        client->password_file = hf__copy_text(options->password_file);
    if ((found != NULL && client->server.password == NULL) ||
        (options->password_file != NULL && client->password_file == NULL))
        return hf__fail(error, HF_ENOMEM, "out of memory");
    return HF_OK;
}

static hf_status protect(hf_client *client, const hf_client_options *options,
                         const hf_transport **transport, hf_error *error)
{
    if (!client->server.tls && options->tls != NULL)
        return hf__fail(error, HF_EINVAL, "tls is for URLs that begin with rediss://");
    if (!client->server.tls)
        return HF_OK;
    hf_status status =
        hf__tls_new(options->tls, *transport, client->server.host, &client->tls, error);
    if (status == HF_OK)
        *transport = hf__tls_transport(client->tls);
    return status;
}

static hf_status start(hf_client *client, const hf_client_options *options, hf_error *error)
{
    hf__driver_config config = {
        .core = {.servers = &client->server,
                 .server_count = 1,
                 .connect_timeout = hf__span_ms(options->connect_timeout_ms),
                 .reply_timeout = hf__span_ms(options->reply_timeout_ms),
                 .call_timeout = hf__span_ms(options->call_timeout_ms),
                 .side_prefix = hf__slice_text(client->side_prefix),
                 .fence_keep = hf__span_ms(FENCE_KEEP_MS),
                 .max_lease = hf__span_ms(options->max_lease_ms),
                 .drift_ppm = options->drift_ppm,
                 .drift = hf__span_ms(options->drift_ms),
                 .durable_servers = options->durable_servers,
                 .links = options->links,
                 .local_turns = options->local_turns,
                 .checks = {[HF__CHECK_EVICTION] = options->check_eviction,
                            [HF__CHECK_REPLICA] = options->check_replica,
                            [HF__CHECK_VERSION] = options->check_version,
                            [HF__CHECK_PERSISTENCE] = options->check_persistence,
                            [HF__CHECK_CLOCK] = options->check_clock}},
        .transport = options->transport != NULL ? options->transport : &hf__socket_transport,
        .log = options->log,
        .log_arg = options->log_arg,
        .own_loop = options->own_loop,
    };
    hf_status status = protect(client, options, &config.transport, error);
    if (status == HF_OK)
        status = identify(client, &config.core.seed, error);
    if (status != HF_OK)
        return status;
    config.secret = (hf__secret){&client->server, client->password_file, options->credentials,
                                 options->credentials_arg};
    memcpy(config.core.client_id, client->client_id, sizeof(client->client_id));
    client->max_lease_ms = options->max_lease_ms;
    client->reply_timeout_ms = options->reply_timeout_ms;
    client->fair = options->fair;
    client->prefix_length = strlen(client->prefix);
    client->driver = hf__driver_new(&config);
    if (client->driver == NULL)
        return hf__fail(error, HF_ENOMEM, "not enough memory, threads or descriptors");
    return HF_OK;
}

hf_status hf_open(const char *url, const hf_client_options *options, hf_client **client,
                  hf_error *error)
{
    hf_client_options checked;
    if (client == NULL)
        return hf__fail(error, HF_EINVAL, "client is NULL");
    *client = NULL;
    if (url == NULL)
        return hf__fail(error, HF_EINVAL, "url is NULL");
    hf_status status = hf__client_options_read(options, &checked, error);
    if (status != HF_OK)
        return status;
    hf_client *fresh = hf__alloc(sizeof(*fresh));
    if (fresh == NULL)
        return hf__fail(error, HF_ENOMEM, "out of memory");
    fresh->references = 1;
    fresh->prefix = hf__copy_text(checked.prefix);
    fresh->side_prefix = hf__copy_text(checked.side_prefix);
    if (fresh->prefix == NULL || fresh->side_prefix == NULL)
        status = hf__fail(error, HF_ENOMEM, "out of memory");
    if (status == HF_OK)
        status = hf__url_parse(url, &fresh->server, error);
    if (status == HF_OK)
        status = find_password(fresh, &checked, error);
    if (status == HF_OK)
        status = start(fresh, &checked, error);
    if (status != HF_OK) {
        free_client(fresh);
        return status;
    }
    *client = fresh;
    return hf__ok(error);
}

hf_status hf_close(hf_client *client)
{
    hf__call call = {.kind = HF__CALL_CLOSE};
    if (client == NULL)
        return HF_OK;
    if (hf__driver_in_callback() && !hf__driver_forked(client->driver))
        return HF_EDEADLK;
    hf_status status = hf__driver_call(client->driver, &call);
    hf__driver_stop(client->driver);
    hf__client_release(client);
    return status;
}

hf_status hf_stats_read(hf_client *client, hf_stats *stats)
{
    if (client == NULL || stats == NULL)
        return HF_EINVAL;
    *stats = (hf_stats){0};
    return hf__driver_stats(client->driver, stats);
}
