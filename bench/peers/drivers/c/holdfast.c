/* SPDX-License-Identifier: MIT
 *
 * Holdfast, as its header shows it: one client for the process, default settings, releases that are
 * waited for. `holdfast-fair` asks for strict order; otherwise threads of a process may pass the
 * lock among themselves, within the limits that are the default.
 *
 * On several servers max_lease_ms is the lease that is measured with: servers that were started for
 * the occasion have a vote after that time, and the runner waits for it.
 */
#include <holdfast_ids.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"

struct session {
    const struct settings *settings;
    hf_client *client;
    hf_ids *ids; /* when they are what is measured */
};

struct place {
    struct session *session;
    hf_acquire_options options;
    hf_hold *hold;
    char lock[LOCK_NAME_SIZE];
};

static void explain(char *problem, const char *what, const hf_error *error)
{
    problem_set(problem, "%s: %s: %s", what, hf_status_name(error->status), error->text);
}

static void session_close(void *arg)
{
    struct session *session = arg;
    hf_ids_close(session->ids);
    hf_close(session->client);
    free(session);
}

static void *session_open(const struct settings *settings, char *problem)
{
    hf_error error;
    struct session *session = calloc(1, sizeof *session);
    if (session == NULL)
        return NULL;
    session->settings = settings;
    hf_status status = hf_open(settings->url, HF_CLIENT(.max_lease_ms = settings->lease_ms),
                               &session->client, &error);
    if (status == HF_OK && settings->mode == MODE_IDS)
        status = hf_ids_open(session->client, settings->lock, NULL, &session->ids, &error);
    if (status == HF_OK)
        return session;
    explain(problem, "hf_open", &error);
    session_close(session);
    return NULL;
}

static void *place_open(void *arg, const char *lock, char *problem)
{
    struct session *session = arg;
    const struct settings *settings = session->settings;
    struct place *place = calloc(1, sizeof *place);
    if (place == NULL) {
        problem_set(problem, "out of memory");
        return NULL;
    }
    place->session = session;
    place->options = *HF_ACQUIRE(.lease_ms = settings->lease_ms, .wait_ms = settings->wait ? -1 : 0,
                                 .fair = strcmp(settings->peer, "holdfast-fair") == 0);
    strncpy(place->lock, lock, sizeof place->lock - 1);
    return place;
}

static enum outcome acquire(void *arg, char *problem)
{
    struct place *place = arg;
    hf_error error;
    hf_status status =
        hf_acquire(place->session->client, place->lock, &place->options, &place->hold, &error);
    if (status == HF_OK)
        return GOT;
    explain(problem, "hf_acquire", &error);
    return status == HF_EBUSY ? REFUSED : FAILED;
}

static bool release(void *arg, char *problem)
{
    struct place *place = arg;
    hf_error error;
    if (hf_release(&place->hold, &error) == HF_OK)
        return true;
    explain(problem, "hf_release", &error);
    return false;
}

static uint64_t take_ids(void *arg, char *problem)
{
    enum { STEP = 4096 };
    struct session *session = arg;
    hf_error error;
    int64_t id;
    for (int i = 0; i < STEP; i++)
        if (hf_ids_next(session->ids, &id, &error) != HF_OK) {
            explain(problem, "hf_ids_next", &error);
            return 0;
        }
    return STEP;
}

static const char *const peers[] = {"holdfast", "holdfast-fair", NULL};

const struct backend backend = {.peers = peers,
                                .open = session_open,
                                .close = session_close,
                                .place_open = place_open,
                                .place_close = free,
                                .acquire = acquire,
                                .release = release,
                                .lasts = true,
                                .several_servers = true,
                                .take_ids = take_ids};
