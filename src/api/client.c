/* SPDX-License-Identifier: MIT */
/* Opening and closing. A client outlives hf_close() as an empty shell for as long as the
 * application still has holds of it, so that teardown works in any order, and until the last call
 * has returned that began before. */
#include "api/client.h"

#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "core/fail.h"
#include "net/socket.h"

enum { LINKS_OF_ONE = 4, LINKS_OF_EACH = 1 };

static void free_client(hf_client *client)
{
    if (client->driver != NULL)
        hf__driver_free(client->driver);
    for (int i = 0; i < client->server_count; i++) {
        hf__tls_free(client->tls[i]);
        hf__url_free(&client->servers[i]);
    }
    hf__free(client->password_file);
    hf__free(client->side_prefix);
    hf__free(client->prefix);
    hf__free(client);
}

void hf__client_release(hf_client *client)
{
    if (client->driver != NULL && hf__driver_is_torn(client->driver))
        return;
    if (atomic_fetch_sub(&client->references, 1) == 1)
        free_client(client);
}

hf_client *hf__visit_begin(hf_client *client)
{
    if (client != NULL)
        atomic_fetch_add(&client->references, 1);
    return client;
}

void hf__visit_end(hf_client **visited)
{
    if (*visited != NULL)
        hf__client_release(*visited);
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
    client->number_step = client->server_count > 1 ? HF__NUMBER_STEP : 1;
    client->next_number = client->number_step;
    return HF_OK;
}

/* ---- Passwords ---- */

static hf_status check_sources(const hf_client *client, const hf_client_options *options,
                               hf_error *error)
{
    bool in_url = false, is_missing = false;
    for (int i = 0; i < client->server_count; i++) {
        const hf__url *server = &client->servers[i];
        in_url = in_url || server->password != NULL;
        is_missing = is_missing || (server->user != NULL && server->password == NULL);
    }
    int elsewhere = (options->password_env != NULL) + (options->password_file != NULL) +
                    (options->credentials != NULL);
    if (in_url + elsewhere > 1)
        return hf__fail(error, HF_EINVAL,
                        "give the password once: in the URL, or by one of password_env, "
                        "password_file and credentials");
    if (elsewhere == 0 && is_missing)
        return hf__fail(error, HF_EINVAL, "the URL has a user, but there is no password");
    return HF_OK;
}

/* What is read now is as if it stood in every URL. */
static hf_status read_environment(hf_client *client, const char *name, hf_error *error)
{
    const char *found = hf__secret_environment(name);
    if (found == NULL || found[0] == '\0')
        return hf__fail(error, HF_EINVAL, "password_env: that variable is not set, or empty");
    if (strlen(found) > HF_PASSWORD_MAX)
        return hf__fail(error, HF_EINVAL, "the password has more than %d bytes", HF_PASSWORD_MAX);
    for (int i = 0; i < client->server_count; i++) {
        client->servers[i].password = hf__copy_text(found);
        if (client->servers[i].password == NULL)
            return hf__fail(error, HF_ENOMEM, "out of memory");
    }
    return HF_OK;
}

/* What comes from elsewhere than the URL. */
static hf_status find_password(hf_client *client, const hf_client_options *options, hf_error *error)
{
    hf_status status = check_sources(client, options, error);
    if (status == HF_OK && options->password_env != NULL)
        status = read_environment(client, options->password_env, error);
    if (status != HF_OK || options->password_file == NULL)
        return status;
    client->password_file = hf__copy_text(options->password_file);
    if (client->password_file == NULL)
        return hf__fail(error, HF_ENOMEM, "out of memory");
    return HF_OK;
}

/* ---- Opening ---- */

/* Each server has to show a certificate of its own. */
static hf_status choose_transports(hf_client *client, const hf_client_options *options,
                                   const hf_transport **transports, hf_error *error)
{
    const hf_transport *plain =
        options->transport != NULL ? options->transport : &hf__socket_transport;
    hf_status status = HF_OK;
    bool is_protected = false;
    for (int i = 0; i < client->server_count && status == HF_OK; i++) {
        const hf__url *server = &client->servers[i];
        transports[i] = plain;
        if (!server->tls)
            continue;
        is_protected = true;
        status = hf__tls_new(options->tls, plain, server->host, &client->tls[i], error);
        if (status == HF_OK)
            transports[i] = hf__tls_transport(client->tls[i]);
    }
    if (status == HF_OK && !is_protected && options->tls != NULL)
        return hf__fail(error, HF_EINVAL, "tls is for URLs that begin with rediss://");
    return status;
}

static int choose_links(const hf_client *client, int wanted)
{
    if (wanted != 0)
        return wanted;
    return client->server_count == 1 ? LINKS_OF_ONE : LINKS_OF_EACH;
}

static hf_status start(hf_client *client, const hf_client_options *options, hf_error *error)
{
    hf__driver_config config = {
        .core = {.servers = client->servers,
                 .server_count = client->server_count,
                 .connect_timeout = hf__span_ms(options->connect_timeout_ms),
                 .reply_timeout = hf__span_ms(options->reply_timeout_ms),
                 .call_timeout = hf__span_ms(options->call_timeout_ms),
                 .side_prefix = hf__slice_text(client->side_prefix),
                 .fence_keep = hf__span_ms(HF__FENCE_KEEP_MS),
                 .max_lease = hf__span_ms(options->max_lease_ms),
                 .drift_ppm = options->drift_ppm,
                 .drift = hf__span_ms(options->drift_ms),
                 .durable_servers = options->durable_servers,
                 .links = choose_links(client, options->links),
                 .local_turns = options->local_turns,
                 .checks = {[HF__CHECK_EVICTION] = options->check_eviction,
                            [HF__CHECK_REPLICA] = options->check_replica,
                            [HF__CHECK_VERSION] = options->check_version,
                            [HF__CHECK_PERSISTENCE] = options->check_persistence,
                            [HF__CHECK_CLOCK] = options->check_clock}},
        .secret = {client->password_file, options->credentials, options->credentials_arg},
        .log = options->log,
        .log_arg = options->log_arg,
        .own_loop = options->own_loop,
    };
    hf_status status = choose_transports(client, options, config.transports, error);
    if (status == HF_OK)
        status = identify(client, &config.core.seed, error);
    if (status != HF_OK)
        return status;
    memcpy(config.core.client_id, client->client_id, sizeof(client->client_id));
    client->max_lease_ms = options->max_lease_ms;
    client->drift_ppm = options->drift_ppm;
    client->drift_ms = options->drift_ms;
    client->reply_timeout_ms = options->reply_timeout_ms;
    client->call_timeout_ms = options->call_timeout_ms;
    client->own_loop = options->own_loop;
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
        status = hf__urls_parse(url, fresh->servers, HF_SERVERS_MAX, &fresh->server_count, error);
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
    HF__VISIT(client);
    if (client == NULL || stats == NULL)
        return HF_EINVAL;
    *stats = (hf_stats){0};
    return hf__driver_stats(client->driver, stats);
}

hf_status hf_load_read(hf_client *client, hf_load *load)
{
    HF__VISIT(client);
    hf_load all = {0};
    if (client == NULL || load == NULL || load->size < sizeof(load->size))
        return HF_EINVAL;
    size_t size = load->size < sizeof(all) ? load->size : sizeof(all);
    hf_status status = hf__driver_load(client->driver, &all);
    all.size = load->size;
    memcpy(load, &all, size);
    return status;
}
