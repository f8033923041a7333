/* SPDX-License-Identifier: MIT
 *
 * Sessions and places of backends with connections. A place hangs up the connection that it has
 * dialled, a session the one that all share.
 */
#include "wire.h"

#include <stdio.h>
#include <stdlib.h>

void *wire_session_open(const struct settings *settings, char *problem)
{
    struct wire_session *session = calloc(1, sizeof *session);
    if (session == NULL) {
        problem_set(problem, "out of memory");
        return NULL;
    }
    session->settings = settings;
    if (settings->mode != MODE_HOLD && settings->mode != MODE_IDS)
        return session;
    session->shared = wire_dial(settings, problem);
    if (session->shared != NULL)
        return session;
    free(session);
    return NULL;
}

void wire_session_close(void *arg)
{
    struct wire_session *session = arg;
    if (session->shared != NULL)
        wire_hang_up(session->shared);
    free(session);
}

void *wire_place_open(void *arg, const char *lock, char *problem)
{
    const struct wire_session *session = arg;
    struct wire_place *place = calloc(1, sizeof *place);
    if (place == NULL) {
        problem_set(problem, "out of memory");
        return NULL;
    }
    place->settings = session->settings;
    place->own_connection = session->shared == NULL;
    place->connection =
        place->own_connection ? wire_dial(session->settings, problem) : session->shared;
    snprintf(place->lock, sizeof place->lock, "%s", lock);
    if (place->connection != NULL)
        return place;
    free(place);
    return NULL;
}

void wire_place_close(void *arg)
{
    struct wire_place *place = arg;
    if (place->own_connection)
        wire_hang_up(place->connection);
    free(place);
}
