/* SPDX-License-Identifier: MIT
 *
 * Advisory locks of PostgreSQL: pg_advisory_lock() and pg_advisory_unlock(), prepared, which belong
 * to the connection and end with it. A lock is a number there, so the name is hashed.
 */
#include <inttypes.h>
#include <libpq-fe.h>
#include <stdio.h>

#include "wire.h"

static bool prepare(PGconn *connection, const char *name, const char *text)
{
    PGresult *result = PQprepare(connection, name, text, 1, NULL);
    bool prepared = PQresultStatus(result) == PGRES_COMMAND_OK;
    PQclear(result);
    return prepared;
}

void *wire_dial(const struct settings *settings, char *problem)
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

void wire_hang_up(void *connection)
{
    PQfinish(connection);
}

static int64_t number_of(const char *lock) /* FNV-1a */
{
    uint64_t hash = 14695981039346656037u;
    for (const unsigned char *byte = (const unsigned char *)lock; *byte != '\0'; byte++)
        hash = (hash ^ *byte) * 1099511628211u;
    return (int64_t)(hash >> 1);
}

/* The first letter of the answer: t or f for a truth, a space for none; 0: failed. */
static char ask(const struct wire_place *place, const char *statement, char *problem)
{
    char number[24];
    const char *values[] = {number};
    snprintf(number, sizeof number, "%" PRId64, number_of(place->lock));
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
    const struct wire_place *place = arg;
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
                                WIRE_PLACES,
                                .acquire = acquire,
                                .release = release,
                                .lasts = true,
                                .refusal = "advisory locks are no ids"};
