/* SPDX-License-Identifier: MIT
 *
 * Advisory locks of PostgreSQL: pg_advisory_lock() and pg_advisory_unlock(), prepared, which belong
 * to the connection and end with it. A lock is a number there, so the name is hashed. Each task has
 * a connection of its own; many held locks share one.
 */
#include <inttypes.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"

struct session {
    const struct settings *settings;
    PGconn *shared; /* when locks are only held */
};

struct place {
    const struct settings *settings;
    PGconn *connection;
    bool own_connection;
    char number[24];
};

static bool prepare(PGconn *connection, const char *name, const char *text)
{
    PGresult *result = PQprepare(connection, name, text, 1, NULL);
    bool prepared = PQresultStatus(result) == PGRES_COMMAND_OK;
    PQclear(result);
    return prepared;
}

static PGconn *dial(const struct settings *settings, char *problem)
{
    PGconn *connection = PQconnectdb(settings->url);
    if (PQstatus(connection) == CONNECTION_OK &&
        prepare(connection, "lock", "SELECT pg_advisory_lock($1::bigint)") &&
        prepare(connection, "try", "SELECT pg_try_advisory_lock($1::bigint)") &&
        prepare(connection, "unlock", "SELECT pg_advisory_unlock($1::bigint)"))
        return connection;
    problem_set(problem, "%s", PQerrorMessage(connection));
    PQfinish(connection);
    return NULL;
}

static void session_close(void *arg)
{
    struct session *session = arg;
    if (session->shared != NULL)
        PQfinish(session->shared);
    free(session);
}

static void *session_open(const struct settings *settings, char *problem)
{
    struct session *session = calloc(1, sizeof *session);
    if (session == NULL)
        return NULL;
    session->settings = settings;
    if (settings->mode != MODE_HOLD || (session->shared = dial(settings, problem)) != NULL)
        return session;
    session_close(session);
    return NULL;
}

static int64_t number_of(const char *lock) /* FNV-1a */
{
    uint64_t hash = 14695981039346656037u;
    for (const unsigned char *byte = (const unsigned char *)lock; *byte != '\0'; byte++)
        hash = (hash ^ *byte) * 1099511628211u;
    return (int64_t)(hash >> 1);
}

static void place_close(void *arg)
{
    struct place *place = arg;
    if (place->own_connection)
        PQfinish(place->connection);
    free(place);
}

static void *place_open(void *arg, const char *lock, char *problem)
{
    struct session *session = arg;
    struct place *place = calloc(1, sizeof *place);
    if (place == NULL) {
        problem_set(problem, "out of memory");
        return NULL;
    }
    place->settings = session->settings;
    place->own_connection = session->shared == NULL;
    place->connection = session->shared;
    snprintf(place->number, sizeof place->number, "%" PRId64, number_of(lock));
    if (place->own_connection && (place->connection = dial(session->settings, problem)) == NULL) {
        free(place);
        return NULL;
    }
    return place;
}

/* The first letter of the answer: t or f for a truth, something else for none. */
static char ask(const struct place *place, const char *statement, char *problem)
{
    const char *values[] = {place->number};
    PGresult *result = PQexecPrepared(place->connection, statement, 1, values, NULL, NULL, 0);
    char answer = '\0';
    if (PQresultStatus(result) == PGRES_TUPLES_OK)
        answer = PQgetlength(result, 0, 0) > 0 ? PQgetvalue(result, 0, 0)[0] : ' ';
    else
        problem_set(problem, "%s", PQerrorMessage(place->connection));
    PQclear(result);
    return answer;
}

static enum outcome acquire(void *arg, char *problem)
{
    struct place *place = arg;
    char answer = ask(place, place->settings->wait ? "lock" : "try", problem);
    if (answer == '\0')
        return FAILED;
    return answer == 'f' ? REFUSED : GOT;
}

static bool release(void *arg, char *problem)
{
    return ask(arg, "unlock", problem) == 't';
}

static const char *const peers[] = {"postgres", NULL};

const struct backend backend = {.peers = peers,
                                .open = session_open,
                                .close = session_close,
                                .place_open = place_open,
                                .place_close = place_close,
                                .acquire = acquire,
                                .release = release,
                                .lasts = true,
                                .refusal = "advisory locks are no ids"};
