/* SPDX-License-Identifier: MIT
 *
 * PostgreSQL through libpq. It writes $1, $2 where others write ?, so statements are rewritten;
 * parameters go beside the statement, as text with a type. */
#include "db.h"

#include <inttypes.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SQL_MAX   1024
#define TYPE_INT8 20 /* the oid of BIGINT in pg_type, which never changes */

static void be_quiet(void *nothing, const char *message)
{
    (void)nothing;
    (void)message; /* such as: table "..." does not exist, skipping */
}

static void say_why(PGconn *session, struct db_words *why)
{
    snprintf(why->text, sizeof why->text, "%s", PQerrorMessage(session));
    why->text[strcspn(why->text, "\n")] = '\0';
}

static void postgres_close(void *session)
{
    PQfinish(session);
}

static void *postgres_open(const char *url, struct db_words *why)
{
    PGconn *session = PQconnectdb(url);
    if (PQstatus(session) == CONNECTION_OK) {
        PQsetNoticeProcessor(session, be_quiet, NULL);
        return session;
    }
    say_why(session, why);
    PQfinish(session);
    return NULL;
}

static bool number_parameters(const char *sql, char *place, size_t capacity)
{
    size_t length = 0;
    int next = 1;
    for (; *sql != '\0' && length + 4 < capacity; sql++) {
        if (*sql == '?')
            length += (size_t)snprintf(place + length, capacity - length, "$%d", next++);
        else
            place[length++] = *sql;
    }
    place[length] = '\0';
    return *sql == '\0';
}

static enum db_trouble trouble_of(PGconn *session, const PGresult *result, struct db_words *why)
{
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    say_why(session, why);
    if (state == NULL)
        return DB_BROKEN;
    if (strcmp(state, "23505") == 0) /* unique_violation */
        return DB_DUPLICATE;
    /* serialization_failure, deadlock_detected */
    return strcmp(state, "40001") == 0 || strcmp(state, "40P01") == 0 ? DB_AGAIN : DB_BROKEN;
}

static enum db_trouble read_result(PGconn *session, const PGresult *result, int64_t *number,
                                   struct db_words *why)
{
    switch (PQresultStatus(result)) {
    case PGRES_TUPLES_OK:
        *number = PQntuples(result) > 0 ? strtoll(PQgetvalue(result, 0, 0), NULL, 10) : 0;
        return DB_FINE;
    case PGRES_COMMAND_OK:
        *number = strtoll(PQcmdTuples((PGresult *)result), NULL, 10);
        return DB_FINE;
    default:
        return trouble_of(session, result, why);
    }
}

static enum db_trouble postgres_run(void *session, const char *sql, int count,
                                    const int64_t *parameters, int64_t *number,
                                    struct db_words *why)
{
    char numbered[SQL_MAX], texts[DB_PARAMETERS_MAX][24];
    const char *values[DB_PARAMETERS_MAX];
    Oid types[DB_PARAMETERS_MAX];
    if (count > DB_PARAMETERS_MAX || !number_parameters(sql, numbered, sizeof numbered)) {
        snprintf(why->text, sizeof why->text, "statement too long: %.100s...", sql);
        return DB_BROKEN;
    }
    for (int i = 0; i < count; i++) {
        snprintf(texts[i], sizeof texts[i], "%" PRId64, parameters[i]);
        values[i] = texts[i];
        types[i] = TYPE_INT8;
    }
    PGresult *result = PQexecParams(session, numbered, count, types, values, NULL, NULL, 0);
    enum db_trouble trouble = read_result(session, result, number, why);
    PQclear(result);
    return trouble;
}

const struct db_driver db_postgres = {"BEGIN", postgres_open, postgres_close, postgres_run};
