/* SPDX-License-Identifier: MIT
 *
 * GET_LOCK() and RELEASE_LOCK() of MariaDB, which belong to the connection and end with it. Each
 * task has a connection of its own; many held locks share one. A wait without limit is one of a
 * week.
 */
#include <mysql.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"

#define WEEK_S 604800

struct session {
    const struct settings *settings;
    char host[128];
    char user[64];
    unsigned port;
    MYSQL *shared; /* when locks are only held */
};

struct place {
    MYSQL *connection;
    bool own_connection;
    char lock[LOCK_NAME_SIZE * 2 + 64]; /* the statements */
    char unlock[LOCK_NAME_SIZE * 2 + 64];
};

static MYSQL *dial(const struct session *session, char *problem)
{
    MYSQL *connection = mysql_init(NULL);
    if (connection != NULL && mysql_real_connect(connection, session->host, session->user, NULL,
                                                 NULL, session->port, NULL, 0) != NULL)
        return connection;
    problem_set(problem, "%s", connection != NULL ? mysql_error(connection) : "out of memory");
    if (connection != NULL)
        mysql_close(connection);
    return NULL;
}

static void session_close(void *arg)
{
    struct session *session = arg;
    if (session->shared != NULL)
        mysql_close(session->shared);
    free(session);
}

static void *session_open(const struct settings *settings, char *problem)
{
    struct session *session = calloc(1, sizeof *session);
    if (session == NULL)
        return NULL;
    session->settings = settings;
    bool understood = sscanf(settings->url, "mysql://%63[^@]@%127[^:]:%u", session->user,
                             session->host, &session->port) == 3;
    if (!understood)
        problem_set(problem, "not mysql://user@host:port: %s", settings->url);
    if (understood &&
        (settings->mode != MODE_HOLD || (session->shared = dial(session, problem)) != NULL))
        return session;
    session_close(session);
    return NULL;
}

static void place_close(void *arg)
{
    struct place *place = arg;
    if (place->own_connection)
        mysql_close(place->connection);
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
    place->own_connection = session->shared == NULL;
    place->connection = place->own_connection ? dial(session, problem) : session->shared;
    if (place->connection == NULL) {
        free(place);
        return NULL;
    }
    char name[LOCK_NAME_SIZE * 2 + 1];
    mysql_real_escape_string(place->connection, name, lock, strlen(lock));
    snprintf(place->lock, sizeof place->lock, "SELECT GET_LOCK('%s', %d)", name,
             session->settings->wait ? WEEK_S : 0);
    snprintf(place->unlock, sizeof place->unlock, "SELECT RELEASE_LOCK('%s')", name);
    return place;
}

/* 1 or 0 as the statement says, -1 if it says neither. */
static int ask(struct place *place, const char *statement, char *problem)
{
    int answer = -1;
    MYSQL_RES *result = NULL;
    if (mysql_query(place->connection, statement) == 0)
        result = mysql_store_result(place->connection);
    MYSQL_ROW row = result != NULL ? mysql_fetch_row(result) : NULL;
    if (row != NULL && row[0] != NULL)
        answer = row[0][0] == '1';
    else
        problem_set(problem, "%s: %s", statement, mysql_error(place->connection));
    if (result != NULL)
        mysql_free_result(result);
    return answer;
}

static enum outcome acquire(void *arg, char *problem)
{
    struct place *place = arg;
    int answer = ask(place, place->lock, problem);
    if (answer < 0)
        return FAILED;
    return answer == 1 ? GOT : REFUSED;
}

static bool release(void *arg, char *problem)
{
    struct place *place = arg;
    return ask(place, place->unlock, problem) == 1;
}

static const char *const peers[] = {"mariadb", NULL};

const struct backend backend = {.peers = peers,
                                .open = session_open,
                                .close = session_close,
                                .place_open = place_open,
                                .place_close = place_close,
                                .acquire = acquire,
                                .release = release,
                                .lasts = true,
                                .refusal = "GET_LOCK is no source of ids"};
