/* SPDX-License-Identifier: MIT */
/* What a server lets us do is found out by doing it: a lock of a name that nobody else uses is
 * watched, taken, looked at, renewed and released. What the library can do without, it says in its
 * log. How long the server takes for renewals says how near it is to its limit: a client whose
 * renewals are late takes no new locks. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "doctor.h"
#include "instant.h"

enum {
    MESSAGES_MS = 1000,
    SCRATCH_LEASE_MS = 5000,
    RENEWALS = 15,
    SLOW_US = 20000,
    NS_PER_US = 1000
};

struct doctor_log {
    pthread_mutex_t mutex;
    pthread_cond_t news;
    char warning[300]; /* that there are no messages */
    bool watching;     /* what happens to the lock is heard of */
    bool released_seen;
};

struct doctor_log *doctor_log_new(void)
{
    struct doctor_log *log = calloc(1, sizeof(*log));
    pthread_condattr_t how;
    if (log == NULL)
        return NULL;
    pthread_mutex_init(&log->mutex, NULL);
    pthread_condattr_init(&how);
    pthread_condattr_setclock(&how, CLOCK_MONOTONIC);
    pthread_cond_init(&log->news, &how);
    pthread_condattr_destroy(&how);
    return log;
}

void doctor_log_free(struct doctor_log *log)
{
    if (log == NULL)
        return;
    pthread_cond_destroy(&log->news);
    pthread_mutex_destroy(&log->mutex);
    free(log);
}

/* ---- What comes from elsewhere ---- */

void doctor_log_line(void *arg, hf_log_level level, const char *text)
{
    struct doctor_log *log = arg;
    if (level < HF_LOG_WARNING || strncmp(text, "no messages", 11) != 0)
        return;
    pthread_mutex_lock(&log->mutex);
    if (log->warning[0] == '\0')
        (void)snprintf(log->warning, sizeof(log->warning), "%s", text);
    pthread_cond_broadcast(&log->news);
    pthread_mutex_unlock(&log->mutex);
}

static void see(void *arg, const hf_sight *sight)
{
    struct doctor_log *log = arg;
    pthread_mutex_lock(&log->mutex);
    log->watching = true;
    log->released_seen = log->released_seen || sight->kind == HF_SEEN_RELEASED;
    pthread_cond_broadcast(&log->news);
    pthread_mutex_unlock(&log->mutex);
}

/* Until that is so, or it has been said that there are no messages, or none come. */
static void wait_until(struct doctor_log *log, const bool *so)
{
    struct timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += MESSAGES_MS / 1000;
    pthread_mutex_lock(&log->mutex);
    while (!*so && log->warning[0] == '\0' &&
           pthread_cond_timedwait(&log->news, &log->mutex, &end) == 0)
        continue;
    pthread_mutex_unlock(&log->mutex);
}

/* ---- The try ---- */

static void ignore(void *arg, const hf_event *event)
{
    (void)arg;
    (void)event;
}

static int by_size(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

static hf_status renew_often(hf_hold *hold, int64_t *median_us, hf_error *error)
{
    int64_t took_us[RENEWALS];
    hf_status status = HF_OK;
    for (int i = 0; i < RENEWALS && status == HF_OK; i++) {
        int64_t began = instant_now();
        status = hf_extend(hold, SCRATCH_LEASE_MS, error);
        took_us[i] = (instant_now() - began) / NS_PER_US;
    }
    if (status != HF_OK)
        return status;
    qsort(took_us, RENEWALS, sizeof(took_us[0]), by_size);
    *median_us = took_us[RENEWALS / 2];
    return HF_OK;
}

static void judge_pace(int64_t renewal_us, struct findings *findings)
{
    if (renewal_us > SLOW_US)
        findings_add(findings, FINDING_WARNING, "load",
                     "a renewal takes %lld ms: the server is busy or far away; use longer leases, "
                     "or fewer locks in a client",
                     (long long)(renewal_us / 1000));
    else
        findings_add(findings, FINDING_OK, "load", "a renewal takes %lld us",
                     (long long)renewal_us);
}

static hf_status take_and_release(hf_client *client, const char *name, int64_t *renewal_us,
                                  hf_error *error)
{
    static hf_inspection lock;
    hf_hold *hold;
    hf_status status = hf_acquire(
        client, name, HF_ACQUIRE(.lease_ms = SCRATCH_LEASE_MS, .on_event = ignore), &hold, error);
    if (status != HF_OK)
        return status;
    status = hf_inspect(client, name, 0, &lock, error);
    if (status == HF_OK)
        status = renew_often(hold, renewal_us, error);
    if (status == HF_OK)
        return hf_release(&hold, error);
    (void)hf_release(&hold, NULL);
    return status;
}

static void judge_messages(struct doctor_log *log, struct findings *findings)
{
    pthread_mutex_lock(&log->mutex);
    if (log->warning[0] != '\0')
        findings_add(findings, FINDING_WARNING, "messages",
                     "%s; it works, but slower and with more load: allow +subscribe, +publish and "
                     "the channels hf:*",
                     log->warning);
    else if (!log->released_seen)
        findings_add(findings, FINDING_WARNING, "messages",
                     "none came within a second; those who wait find out later than they could");
    else
        findings_add(findings, FINDING_OK, "messages", "they come");
    pthread_mutex_unlock(&log->mutex);
}

void doctor_try(hf_client *client, struct doctor_log *log, struct findings *findings)
{
    char name[64];
    uint64_t random = 0;
    hf_observer *observer = NULL;
    hf_error error;
    if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
        random = (uint64_t)(uintptr_t)&random;
    (void)snprintf(name, sizeof(name), "holdfast-doctor:%016llx", (unsigned long long)random);
    if (hf_observe(client, name, 0, see, log, &observer, NULL) == HF_OK)
        wait_until(log, &log->watching);
    int64_t renewal_us = 0;
    if (take_and_release(client, name, &renewal_us, &error) == HF_OK) {
        findings_add(findings, FINDING_OK, "rights",
                     "locks may be taken, looked at, renewed and released");
        wait_until(log, &log->released_seen);
        judge_messages(log, findings);
        judge_pace(renewal_us, findings);
    } else {
        findings_add_failure(findings, "rights", &error);
    }
    hf_observe_end(&observer);
}
