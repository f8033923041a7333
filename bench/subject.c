/* SPDX-License-Identifier: MIT
 *
 * What is being measured, through the public header and with default options, because that is what
 * people will run; over TLS, with the one option that says whom to trust; on several servers, with
 * the one that spares new ones their quarantine, after which they would answer no differently.
 * Every status is looked at: a benchmark that counts refused acquires as fast ones proves nothing.
 */
#include "subject.h"

#include <stdio.h>

#define URL_SIZE 128

static size_t put_url(char url[URL_SIZE], const struct server *server, enum transport transport)
{
    if (transport == OVER_UNIX)
        return (size_t)snprintf(url, URL_SIZE, "unix://%s", server->socket_path);
    return (size_t)snprintf(url, URL_SIZE, "%s://127.0.0.1:%d",
                            transport == OVER_TLS ? "rediss" : "redis", server->port);
}

static bool open_client(struct subject *subject, const char *urls, const hf_client_options *options,
                        struct result *result)
{
    *subject = (struct subject){.lock = "bench:subject"};
    hf_error error;
    hf_status status = hf_open(urls, options, &subject->client, &error);
    if (status == HF_OK)
        return true;
    return result_fail(result, "hf_open: %s: %s", hf_status_name(status), error.text);
}

bool subject_open(struct subject *subject, const struct server *server, enum transport transport,
                  struct result *result)
{
    char url[URL_SIZE];
    (void)put_url(url, server, transport);
    const hf_client_options *options = HF_CLIENT(.tls = HF_TLS(.ca_file = server->authority_path));
    return open_client(subject, url, transport == OVER_TLS ? options : NULL, result);
}

bool subject_open_quorum(struct subject *subject, const struct server *servers, int count,
                         enum transport transport, struct result *result)
{
    char urls[HF_SERVERS_MAX * URL_SIZE];
    size_t length = 0;
    for (int i = 0; i < count; i++) {
        if (i > 0)
            urls[length++] = ' ';
        length += put_url(urls + length, &servers[i], transport);
    }
    return open_client(subject, urls, NULL, result);
}

bool subject_close(struct subject *subject, struct result *result)
{
    hf_status status = hf_close(subject->client);
    subject->client = NULL;
    if (status == HF_OK)
        return true;
    return result_fail(result, "hf_close: %s", hf_status_name(status));
}

static const char *problem_of(struct subject *subject, const char *call, hf_status status,
                              const char *text)
{
    snprintf(subject->problem, sizeof subject->problem, "%s: %s: %s", call, hf_status_name(status),
             text);
    return subject->problem;
}

const char *subject_acquire(struct subject *subject, hf_hold **hold)
{
    hf_error error;
    hf_status status = hf_acquire(
        subject->client, subject->lock,
        HF_ACQUIRE(.lease_ms = BENCH_LEASE_MS, .wait_ms = subject->wait_ms), hold, &error);
    return status == HF_OK ? NULL : problem_of(subject, "hf_acquire", status, error.text);
}

const char *subject_release(struct subject *subject, hf_hold **hold)
{
    hf_error error;
    if (subject->nowait) {
        hf_status status = hf_release_nowait(hold);
        return status == HF_OK ? NULL : problem_of(subject, "hf_release_nowait", status, "");
    }
    hf_status status = hf_release(hold, &error);
    return status == HF_OK ? NULL : problem_of(subject, "hf_release", status, error.text);
}

const char *subject_pair(void *arg)
{
    hf_hold *hold;
    const char *problem = subject_acquire(arg, &hold);
    return problem != NULL ? problem : subject_release(arg, &hold);
}
