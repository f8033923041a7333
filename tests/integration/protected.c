/* SPDX-License-Identifier: MIT */
/* See protected.h. */
#include "protected.h"

#include <stdio.h>
#include <string.h>

enum { LINES_MAX = 1000, LINE = 300 };

static hf_error error;
static hf_client *passing; /* of one verb */

int begin_certificates(void **state)
{
    (void)state;
    certificates_begin();
    return 0;
}

int end_certificates(void **state)
{
    (void)state;
    certificates_end();
    return 0;
}

/* ---- Servers and clients --------------------------------------------------------------------- */

static const char *file_of(const char *stem, const char *ending)
{
    char file[64];
    (void)snprintf(file, sizeof(file), "%s.%s", stem, ending);
    return certificate_path(file);
}

struct redis_server *start_protected(const char *stem, const struct redis_server_tls *tls)
{
    struct redis_server_options options = {.ipv6 = has_ipv6_loopback()};
    if (tls != NULL)
        options.tls = *tls;
    options.tls.certificate = file_of(stem, "crt");
    options.tls.key = file_of(stem, "key");
    if (options.tls.authority == NULL)
        options.tls.authority = certificate_path("authority.crt");
    server = redis_server_start(&options);
    return server;
}

struct redis_server *start_showing(const char *stem)
{
    return start_protected(stem, NULL);
}

const hf_tls *trusting(void)
{
    static hf_tls tls;
    tls = (hf_tls){.size = sizeof(tls), .ca_file = certificate_path("authority.crt")};
    return &tls;
}

const hf_tls *showing(const char *stem)
{
    static hf_tls tls;
    tls = *trusting();
    tls.certificate_file = file_of(stem, "crt");
    tls.key_file = file_of(stem, "key");
    return &tls;
}

const char *tls_url_of(const struct redis_server *at, const char *host)
{
    static char url[128];
    (void)snprintf(url, sizeof(url), "rediss://%s:%d", host, at->tls_port);
    return url;
}

void close_client(hf_client **client)
{
    EXPECT_STATUS(HF_OK, hf_close(*client));
    *client = NULL;
}

/* A machine with two cores and sanitizers may take its time for a handshake. */
void expect_serves(const char *url, const hf_tls *tls)
{
    open_client_at(url, &passing, HF_CLIENT(.tls = tls, .connect_timeout_ms = 5000));
    hf_hold *hold = acquire_with(passing, HF_ACQUIRE(.wait_ms = 5000));
    assert_string_equal(raw(server, "EXISTS lock"), "1");
    release(&hold);
    close_client(&passing);
}

void expect_final(const char *url, const hf_tls *tls, hf_status status, const char *words)
{
    hf_hold *hold;
    open_client_at(url, &passing, HF_CLIENT(.tls = tls));
    for (int i = 0; i < 2; i++) { /* the second one finds a connection that has failed before */
        int64_t start = now_ms();
        EXPECT(status, hf_acquire(passing, "lock", HF_ACQUIRE(.wait_ms = 20000), &hold, &error));
        EXPECT_TOOK(start, 0, 500);
        assert_null(hold);
        expect_says(error.text, words);
    }
    close_client(&passing);
}

/* ---- The log --------------------------------------------------------------------------------- */

static pthread_mutex_t log_mutex = PTHREAD_MUTEX_INITIALIZER;
static char lines[LINES_MAX][LINE];
static size_t line_count;

void keep_log(void *arg, hf_log_level level, const char *text)
{
    (void)arg;
    (void)level;
    pthread_mutex_lock(&log_mutex);
    if (line_count < LINES_MAX)
        (void)snprintf(lines[line_count++], LINE, "%s", text);
    pthread_mutex_unlock(&log_mutex);
}

void forget_log(void)
{
    pthread_mutex_lock(&log_mutex);
    line_count = 0;
    pthread_mutex_unlock(&log_mutex);
}

void expect_not_logged(const char *words)
{
    char found[LINE] = "";
    pthread_mutex_lock(&log_mutex);
    for (size_t i = 0; i < line_count && found[0] == '\0'; i++)
        if (strstr(lines[i], words) != NULL)
            memcpy(found, lines[i], LINE);
    pthread_mutex_unlock(&log_mutex);
    if (found[0] != '\0')
        fail_msg("the log has: %s", found);
}

int logged(const char *words)
{
    int found = 0;
    pthread_mutex_lock(&log_mutex);
    for (size_t i = 0; i < line_count; i++)
        found += strstr(lines[i], words) != NULL;
    pthread_mutex_unlock(&log_mutex);
    return found;
}
